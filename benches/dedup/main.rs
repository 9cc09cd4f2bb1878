//! What finding duplicates costs: each figure a ratio to a floor that is measured in the same run.
//!
//! `cargo bench --bench dedup` takes all of them; names as arguments take some: `vector`.

#![allow(
    missing_docs,
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench prints and may panic; the sample is shared"
)]

mod passes;
#[path = "../figures/sample.rs"]
mod sample;

use std::time::{Duration, Instant};

use oubliette::policy::{Policy, Syntax};
use oubliette::{Database, Draft, Durability, Effort, NamespaceName, Query, WriteOptions};
use sample::{Rng, Sample};

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with("--")).collect();
    // `cargo test --benches` only wants to see that it starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    println!("| figure | ours | floor | ratio | bound |\n|---|---|---|---|---|");
    let all: [(&str, fn()); 4] =
        [("ladder", ladder), ("vector", vector), ("collapse", passes::collapse), ("beside", passes::beside)];
    for (name, take) in all {
        if wanted.is_empty() || wanted.iter().any(|want| want == name) {
            take();
        }
    }
}

fn row(figure: &str, ours: String, floor: String, ratio: f64, bound: &str) {
    println!("| {figure} | {ours} | {floor} | {ratio:.2} | {bound} |");
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

fn percentile(mut times: Vec<Duration>, of_100: usize) -> Duration {
    times.sort_unstable();
    times[times.len() * of_100 / 100]
}

fn p50(times: Vec<Duration>) -> Duration {
    percentile(times, 50)
}

/// The pair of times whose ratio is the median.
fn middle(mut pairs: Vec<(Duration, Duration)>) -> (Duration, Duration) {
    pairs.sort_by(|a, b| ratio(a.0, a.1).total_cmp(&ratio(b.0, b.1)));
    pairs[pairs.len() / 2]
}

fn time<R>(run: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let value = run();
    (value, start.elapsed())
}

/// A store of the first 10,000 rows of a sample without a graph, whose vector step is as named.
fn store(folder: &tempfile::TempDir, drafts: &[Draft], vector_match: &str) -> Database {
    let off = "index.scan_max = 1000000000000\nwrite.vector_match = ";
    let policy = Policy::parse(&format!("{off}'{vector_match}'"), Syntax::Toml).unwrap();
    let path = folder.path().join(vector_match);
    let db = Database::builder().durability(Durability::Batch).policy(policy).open(path).unwrap();
    for part in drafts.chunks(1_000) {
        add(&db, part);
    }
    db
}

fn add(db: &Database, drafts: &[Draft]) -> Duration {
    time(|| {
        db.namespace(NamespaceName::default())
            .unwrap()
            .add_all(drafts.to_vec(), &WriteOptions::default())
            .unwrap()
    })
    .1
}

/// An import with the ladder but for its vector step, against the same import that stores whatever comes.
fn ladder() {
    let sample = Sample::new(20_000, 11);
    let drafts = sample.drafts();
    let import = |no_dedup: bool| {
        let folder = tempfile::tempdir().unwrap();
        let db = store(&folder, &[], "off");
        let how = WriteOptions { no_dedup, ..WriteOptions::default() };
        let parts: Vec<Vec<Draft>> = drafts.chunks(1_000).map(<[Draft]>::to_vec).collect();
        time(|| {
            for part in parts {
                db.namespace(NamespaceName::default()).unwrap().add_all(part, &how).unwrap();
            }
        })
        .1
    };
    let pairs = (0..5).map(|round| {
        // Neither of the two is always the first.
        let first = import(round % 2 == 0);
        let second = import(round % 2 == 1);
        if round % 2 == 0 { (second, first) } else { (first, second) }
    });
    let (with, without) = middle(pairs.collect());
    row(
        "import of 20,000 rows × 384 with the ladder, its vector step off, against one with `no_dedup` (median of 5)",
        ms(with),
        ms(without),
        ratio(with, without),
        "≤ 1.25",
    );
}

/// The vector step of a batch, as what the same batches take longer with it than without, against as many exact searches.
fn vector() {
    const BATCH: usize = 1_000;
    let sample = Sample::new(10_000 + 5 * BATCH, 12);
    let drafts = sample.drafts();
    let (stored, new) = drafts.split_at(10_000);
    let folder = tempfile::tempdir().unwrap();
    let (with, without) = (store(&folder, stored, "hint"), store(&folder, stored, "off"));
    let ns = NamespaceName::default();
    let mut rng = Rng(13);
    let (mut steps, mut searches) = (Vec::new(), Vec::new());
    for batch in new.chunks(BATCH) {
        for at in 0..200 {
            let query = sample::near(&sample.vectors[at * 37], 0.05, &mut rng);
            let asked = Query::vector(query).effort(Effort::Exact);
            searches
                .push(time(|| std::hint::black_box(with.namespace(&ns).unwrap().search(&asked).unwrap())).1);
        }
        let (with, without) = (add(&with, batch), add(&without, batch));
        steps.push(with.saturating_sub(without));
    }
    let (step, search) = (p50(steps), p50(searches));
    let floor = search * BATCH as u32;
    row(
        "vector step of a batch of 1,000 into 10,000 × 384 against as many exact searches (median of 5)",
        ms(step),
        ms(floor),
        ratio(step, floor),
        "≤ 0.5",
    );
}
