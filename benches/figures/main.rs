//! The figures of `docs/benchmarks.md`: each a ratio to a floor that is measured in the same run.
//!
//! `cargo bench --bench figures` takes all of them; names as arguments take some: `import add threads search near
//! filtered open partitions stats size`.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod floor;
mod matches;
mod sample;

use std::time::{Duration, Instant};

use oubliette::policy::{Policy, Syntax};
use oubliette::{
    Builder, Database, Draft, Durability, Effort, Forget, NamespaceName, PageRequest, Query, Scope,
    WriteOptions,
};
use sample::{Rng, Sample};

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with("--")).collect();
    // `cargo test --benches` only wants to see that it starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let all: [(&str, fn()); 10] = [
        ("import", import),
        ("add", add),
        ("threads", threads),
        ("search", search),
        ("near", near),
        ("filtered", matches::take),
        ("open", open),
        ("partitions", partitions),
        ("stats", stats),
        ("size", size),
    ];
    println!("| figure | ours | floor | ratio | bound |\n|---|---|---|---|---|");
    for (name, take) in all {
        if wanted.is_empty() || wanted.iter().any(|want| want == name) {
            take();
        }
    }
}

fn row(figure: &str, ours: String, floor: String, ratio: f64, bound: &str) {
    println!("| {figure} | {ours} | {floor} | {ratio:.2} | {bound} |");
}

fn p50(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn us(time: Duration) -> String {
    format!("{:.0} µs", time.as_secs_f64() * 1e6)
}

fn time<R>(run: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let value = run();
    (value, start.elapsed())
}

/// No graph: these figures are of the store, and of searches that scan. `cargo bench --bench index` takes those of
/// the graph, an import whose writer links what it writes among them.
fn builder() -> Builder {
    let exact = Policy::parse("index.scan_max = 1000000000000", Syntax::Toml).unwrap();
    Database::builder().durability(Durability::Fast).policy(exact)
}

fn fill(db: &Database, ns: &NamespaceName, drafts: &[Draft], batch: usize) {
    for part in drafts.chunks(batch) {
        db.namespace(ns).unwrap().add_all(part.to_vec(), &WriteOptions::default()).unwrap();
    }
}

fn import() {
    import_with("`write.vector_match = off`", "\nwrite.vector_match = \"off\"", "≥ 0.35");
    import_with("the default policy", "", "");
}

fn import_with(how: &str, more: &str, bound: &str) {
    let sample = Sample::new(20_000, 1);
    let ns = NamespaceName::default();
    let policy = Policy::parse(&format!("index.scan_max = 1000000000000{more}"), Syntax::Toml).unwrap();
    let mut pairs = Vec::new();
    for _ in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let drafts = sample.drafts();
        let db = builder().policy(policy.clone()).open(folder.path().join("a")).unwrap();
        let (_, ours) = time(|| fill(&db, &ns, &drafts, 1_000));
        let floor = floor::import(&folder.path().join("b"), &sample, 1_000);
        pairs.push((ours, floor));
    }
    pairs.sort_by(|a, b| ratio(a.1, a.0).total_cmp(&ratio(b.1, b.0)));
    let (ours, floor) = pairs[1];
    let rate = |time: Duration| format!("{:.0} rows/s", 20_000.0 / time.as_secs_f64());
    row(
        &format!("import of 20,000 rows, batches of 1,000, `Fast`, {how}, against bare redb (median of 3)"),
        rate(ours),
        rate(floor),
        ratio(floor, ours),
        bound,
    );
}

fn add() {
    let sample = Sample::new(1_400, 2);
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(folder.path().join("a")).unwrap();
    let ns = db.namespace("default").unwrap();
    let drafts = sample.drafts();
    fill(&db, ns.name(), &drafts[..1_000], 1_000);
    let floor = floor::Commits::new(&folder.path().join("b"), &sample, 1_000);
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for (at, draft) in drafts[1_000..].iter().enumerate() {
        ours.push(time(|| ns.add(draft.clone()).unwrap()).1);
        bare.push(time(|| floor.commit(&sample, 1_000 + at)).1);
    }
    let (ours, bare) = (p50(ours), p50(bare));
    row(
        "one `Safe` add, p50, against a bare two-phase commit of the same rows",
        us(ours),
        us(bare),
        ratio(ours, bare),
        "≤ 1.7",
    );
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

fn threads() {
    let sample = Sample::new(2_000, 3);
    let ns = NamespaceName::default();
    let drafts = sample.drafts();
    let rate = |threads: usize, rows: usize| {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::open(folder.path().join("a")).unwrap();
        let each = rows / threads;
        let (_, took) = time(|| {
            std::thread::scope(|scope| {
                for part in drafts[..rows].chunks(each) {
                    let (db, ns) = (&db, &ns);
                    scope.spawn(move || {
                        part.iter()
                            .for_each(|draft| drop(db.namespace(ns).unwrap().add(draft.clone()).unwrap()))
                    });
                }
            });
        });
        rows as f64 / took.as_secs_f64()
    };
    let mut pairs: Vec<_> = (0..3).map(|_| (rate(1, 400), rate(8, 1_600))).collect();
    pairs.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
    let (one, eight) = pairs[1];
    let shown = |rate: f64| format!("{rate:.0} adds/s");
    row("8 threads adding durably against one (median of 3)", shown(eight), shown(one), eight / one, "≥ 4");
}

fn searched(sample: &Sample) -> (tempfile::TempDir, Database, NamespaceName) {
    let ns = NamespaceName::default();
    let folder = tempfile::tempdir().unwrap();
    let db = builder().open(folder.path().join("a")).unwrap();
    fill(&db, &ns, &sample.drafts(), 1_000);
    (folder, db, ns)
}

fn search() {
    let sample = Sample::new(10_000, 4);
    let (_folder, db, ns) = searched(&sample);
    let bytes = sample.codes();
    let mut rng = Rng(9);
    let (mut ours, mut floor, mut right) = (Vec::new(), Vec::new(), 0);
    for at in 0..1_000 {
        let query = sample::near(&sample.vectors[at * 7 % 10_000], 0.05, &mut rng);
        let asked = Query::vector(query.clone()).effort(Effort::Exact);
        let (found, took) = time(|| db.namespace(&ns).unwrap().search(&asked).unwrap());
        ours.push(took);
        floor.push(time(|| std::hint::black_box(floor::sum_bytes(&bytes))).1);
        if at < 100 {
            let best = floor::f32_top(&sample.vectors, &query, 10);
            let worst = best.last().unwrap() - 1e-6;
            right += found.hits.iter().filter(|hit| hit.score >= worst).count();
        }
    }
    let (ours, floor) = (p50(ours), p50(floor));
    println!("| recall@10 of 100 of these queries, by distance | {} | 1 | | = 1 |", right as f64 / 1_000.0);
    row(
        "exact search, 10,000 × 384, k = 10, p50 of 1,000, against summing the same 3.84 MB",
        us(ours),
        us(floor),
        ratio(ours, floor),
        "≤ 2",
    );
}

fn near() {
    let sample = Sample::near_equal(10_000, 5);
    let (_folder, db, ns) = searched(&sample);
    let flat: Vec<f32> = sample.vectors.concat();
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for at in 0..100 {
        let query = sample.vectors[at * 31].clone();
        let asked = Query::vector(query.clone()).effort(Effort::Exact);
        ours.push(time(|| db.namespace(&ns).unwrap().search(&asked).unwrap()).1);
        floor.push(time(|| std::hint::black_box(floor::f32_scan(&flat, &query))).1);
    }
    let (ours, floor) = (p50(ours), p50(floor));
    row(
        "the same on near-equal vectors (cosine ≥ 0.99) against a plain f32 scan",
        us(ours),
        us(floor),
        ratio(ours, floor),
        "≤ 3",
    );
}

fn open() {
    let sample = Sample::new(100_000, 6);
    let ns = NamespaceName::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let small = folder.path().join("s");
    let drafts = sample.drafts();
    let db = builder().open(&path).unwrap();
    fill(&db, &ns, &drafts[..99_000], 5_000);
    let part: Vec<Draft> = drafts[99_000..].iter().cloned().map(|draft| draft.agent("small")).collect();
    fill(&db, &ns, &part, 1_000);
    db.close().unwrap();
    let db = builder().open(&small).unwrap();
    fill(&db, &ns, &part, 1_000);
    db.close().unwrap();
    let asked = Query::vector(sample.vectors[99_500].clone()).scope(Scope::agent("small").unwrap());
    let (mut ours, mut bare, mut first, mut first_small) = (vec![], vec![], vec![], vec![]);
    for _ in 0..15 {
        let (db, took) = time(|| Database::open(&path).unwrap());
        ours.push(took);
        first.push(time(|| db.namespace(&ns).unwrap().search(&asked).unwrap()).1);
        db.close().unwrap();
        bare.push(time(|| redb::Database::builder().set_cache_size(64 << 20).open(&path).unwrap()).1);
        let db = Database::open(&small).unwrap();
        first_small.push(time(|| db.namespace(&ns).unwrap().search(&asked).unwrap()).1);
        db.close().unwrap();
    }
    let (ours, bare) = (p50(ours), p50(bare));
    row(
        "open of a 100,000-row file against a bare redb open of it",
        us(ours),
        us(bare),
        ratio(ours, bare),
        "≤ 2",
    );
    let (first, first_small) = (p50(first), p50(first_small));
    row(
        "then the first search in a partition of 1,000, against a file of just those",
        us(first),
        us(first_small),
        ratio(first, first_small),
        "≤ 1.5",
    );
}

fn partitions() {
    let rows = 200_000;
    let ns = NamespaceName::default();
    let folder = tempfile::tempdir().unwrap();
    let (many, one) = (folder.path().join("many"), folder.path().join("one"));
    let sample = Sample::new(rows, 7);
    for (path, split) in [(&many, true), (&one, false)] {
        let db = builder().open(path).unwrap();
        let drafts: Vec<Draft> = sample
            .drafts()
            .into_iter()
            .enumerate()
            .map(|(at, draft)| if split { draft.agent(format!("agent-{:05}", at / 20)) } else { draft })
            .collect();
        fill(&db, &ns, &drafts, 5_000);
        db.close().unwrap();
    }
    let opened = |path: &std::path::Path| {
        p50((0..9).map(|_| time(|| Database::open(path).unwrap().close().unwrap()).1).collect())
    };
    let (ours, floor) = (opened(&many), opened(&one));
    row(
        "open and close with 10,000 partitions of 20 rows against one partition of as many",
        us(ours),
        us(floor),
        ratio(ours, floor),
        "≤ 1.5",
    );
    let db = Database::open(&many).unwrap();
    let codes = sample.codes();
    let asked = |at: usize| Query::vector(sample.vectors[at].clone()).scope(Scope::Any);
    let found = p50((0..20)
        .map(|at| time(|| db.namespace(&ns).unwrap().search(asked(at * 11)).unwrap()).1)
        .collect());
    db.close().unwrap();
    let scan = floor::block_scan(&many);
    let sum = p50((0..20).map(|_| time(|| std::hint::black_box(floor::sum_bytes(&codes))).1).collect());
    row(
        "`Any` search over them against reading the same blocks from redb",
        us(found),
        us(scan),
        ratio(found, scan),
        "≤ 3",
    );
    println!("| (summing their codes in memory takes {}) | | | | |", us(sum));
}

fn stats() {
    let cost = |rows: usize| {
        let (_folder, db, _) = searched(&Sample::new(rows, 8));
        let team = db.namespace(NamespaceName::default()).unwrap();
        p50((0..200).map(|_| time(|| team.stats().unwrap()).1).collect())
    };
    let (small, large) = (cost(1_000), cost(100_000));
    row("`stats` at 100,000 rows against 1,000", us(large), us(small), ratio(large, small), "≤ 1.5");
}

fn size() {
    let sample = Sample::new(20_000, 10);
    let (folder, db, ns) = searched(&sample);
    let payload = sample.payload_bytes() as f64;
    let whole = db.compact().unwrap().bytes_after;
    let mib = |bytes: f64| format!("{:.1} MiB", bytes / (1 << 20) as f64);
    row(
        "file after `compact` against text + metadata + f32 + codes",
        mib(whole as f64),
        mib(payload),
        whole as f64 / payload,
        "≤ 1.6",
    );
    floor::by_table(&folder.path().join("a"), &db);
    let db = Database::open(folder.path().join("a")).unwrap();
    let mut rng = Rng(3);
    let request = PageRequest { limit: 10_000, ..PageRequest::default() };
    let mut names = Vec::new();
    let mut page = db.namespace(&ns).unwrap().list(&request).unwrap();
    loop {
        names.extend(page.items.iter().filter(|_| rng.unit() < 0.5).map(|memory| memory.id.to_string()));
        let Some(cursor) = page.next else { break };
        page = db
            .namespace(&ns)
            .unwrap()
            .list(&PageRequest { cursor: Some(cursor), ..request.clone() })
            .unwrap();
    }
    let names = names.split_off(names.len().saturating_sub(10_000));
    db.namespace(&ns).unwrap().forget(Forget::names(names)).unwrap();
    let half = db.compact().unwrap().bytes_after;
    row(
        "after forgetting a random half and `compact`, against before",
        mib(half as f64),
        mib(whole as f64),
        half as f64 / whole as f64,
        "≤ 0.6",
    );
    db.close().unwrap();
    let db = Database::open(folder.path().join("a")).unwrap();
    floor::by_table(&folder.path().join("a"), &db);
}
