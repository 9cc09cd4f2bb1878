//! What summaries cost: each figure a ratio to a floor that is measured in the same run, or a rate.
//!
//! `cargo bench --bench gc` takes all of them; names as arguments take some: `plan`. `OUBLIETTE_ROWS` is the number of rows
//! that `plan` looks over, 1,000,000 by default.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench prints and may panic"
)]

use std::time::{Duration, Instant};

use oubliette::clock::{Clock, SystemClock};
use oubliette::faults::read_vitals;
use oubliette::gc::{Extractive, GcOptions, InputPack, PackLimits, PackSource, Summarizer};
use oubliette::{Database, Draft, Durability, Forget, Kind, MemoryId, Namespace, Span, Time, WriteOptions};

/// Rows of a write at a time.
const BATCH: usize = 5_000;
/// Memories of a group.
const GROUP: usize = 200;
const ROUNDS: usize = 5;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with("--")).collect();
    // `cargo test --benches` only wants to see that it starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    println!("| figure | ours | floor | ratio | bound |\n|---|---|---|---|---|");
    let all: [(&str, fn()); 3] = [("plan", plan), ("commit", commit), ("summarizer", summarizer)];
    for (name, take) in all {
        if wanted.is_empty() || wanted.iter().any(|want| want == name) {
            take();
        }
    }
}

fn time<R>(run: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let value = run();
    (value, start.elapsed())
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

/// The pair of times whose ratio is the median.
fn middle(mut pairs: Vec<(Duration, Duration)>) -> (Duration, Duration) {
    pairs.sort_by(|a, b| ratio(a.0, a.1).total_cmp(&ratio(b.0, b.1)));
    pairs.swap_remove(pairs.len() / 2)
}

fn row(figure: &str, (ours, floor): (Duration, Duration), bound: &str) {
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    println!("| {figure} | {} | {} | {:.2} | {bound} |", ms(ours), ms(floor), ratio(ours, floor));
}

/// Messages of many channels, one after the other, the first at an instant.
fn messages(rows: usize, first: Time, step: Span) -> impl Iterator<Item = Draft> {
    (0..rows).map(move |number| {
        let at = first.plus(Span::from_millis(step.as_millis() * number as i64));
        let text = format!("Ann: Box {number} went to shelf {} of hall {}.", number % 977, number % 31);
        let draft = Draft::new(text).kind(Kind::Message).channel(format!("hall-{}", number % 31));
        draft.created_at(at)
    })
}

/// A store of some messages, and their ids.
fn store(folder: &tempfile::TempDir, drafts: impl Iterator<Item = Draft>) -> (Namespace, Vec<MemoryId>) {
    let database =
        Database::builder().durability(Durability::Fast).open(folder.path().join("gc.oub")).unwrap();
    let namespace = database.namespace("team").unwrap();
    let (mut drafts, mut ids) = (drafts.peekable(), Vec::new());
    while drafts.peek().is_some() {
        let batch = drafts.by_ref().take(BATCH).collect();
        let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        ids.extend(namespace.add_all(batch, &how).unwrap().iter().map(|done| done.id));
    }
    (namespace, ids)
}

/// A plan over many rows of which one in ten is old enough, against reading the vitals of these.
fn plan() {
    let rows = std::env::var("OUBLIETTE_ROWS").ok().map_or(1_000_000, |rows| rows.parse().unwrap());
    let (old, step) = (rows / 10, Span::from_millis(1_000));
    // The last of the old ones is a minute older than the least age.
    let first =
        SystemClock.now().minus(Span::from_days(14)).minus(Span::from_millis(60_000 + 1_000 * old as i64));
    let young = SystemClock.now().minus(Span::from_days(1));
    let folder = tempfile::tempdir().unwrap();
    let drafts = messages(old, first, step).chain(messages(rows - old, young, Span::ZERO));
    let (namespace, ids) = store(&folder, drafts);
    let ids = &ids[..old];
    let pairs = (0..ROUNDS).map(|_| {
        let (read, floor) = time(|| read_vitals(&namespace, ids).unwrap());
        assert_eq!(read, old);
        let (found, planned) = time(|| namespace.gc_plan(&GcOptions::default()).unwrap());
        assert_eq!(found.groups.len(), 10);
        namespace.gc_abort(found.plan_id, None, "a bench").unwrap();
        (planned, floor)
    });
    let pairs = middle(pairs.collect());
    row(
        &format!("a plan over {rows} rows, {old} of them old enough, against reading the vitals of these"),
        pairs,
        "≤ 2",
    );
}

/// A summary in the place of 200 messages, against removing 200 messages and adding one.
fn commit() {
    let first = SystemClock.now().minus(Span::from_days(40));
    let folder = tempfile::tempdir().unwrap();
    // All of one day and channel, as many groups as rounds, and as many to remove.
    let draft = |number: usize| {
        let text = format!("Ann: Box {number} went to shelf {} of hall {}.", number % 977, number % 31);
        let old = Draft::new(text).kind(Kind::Message).channel("yard");
        old.created_at(if number < ROUNDS * GROUP { first } else { SystemClock.now() })
    };
    let (namespace, ids) = store(&folder, (0..40 * ROUNDS * GROUP).map(draft));
    let plan =
        namespace.gc_plan(&GcOptions { limit_tokens: Some(1_000_000), ..GcOptions::default() }).unwrap();
    assert_eq!(plan.groups.len(), ROUNDS);
    let pairs = plan.groups.iter().zip(ids[ROUNDS * GROUP..].chunks(GROUP)).map(|(group, others)| {
        let pack = namespace.gc_pack(plan.plan_id, &group.group_id).unwrap();
        let answer = Extractive::default().summarize(&pack).unwrap();
        let (done, ours) =
            time(|| namespace.gc_commit(plan.plan_id, &group.group_id, &answer, None).unwrap());
        assert_eq!(done.deleted_count as usize, GROUP);
        let summary = namespace.get(done.summary_memory_id).unwrap().unwrap();
        let names = others.iter().map(|id| id.to_string());
        let (_, floor) = time(|| {
            namespace.forget(Forget::names(names)).unwrap();
            namespace.add(Draft::new(format!("again {}", summary.text)).kind(Kind::Message)).unwrap();
        });
        (ours, floor)
    });
    let pairs = middle(pairs.collect());
    row("a summary in the place of 200 messages, against forgetting 200 and adding one", pairs, "≤ 2");
}

/// Tokens that the built-in summarizer reads in a second.
fn summarizer() {
    let drafts: Vec<Draft> = messages(3_000, Time::EPOCH, Span::from_millis(60_000)).collect();
    let source = |(number, draft): (usize, &Draft)| PackSource {
        id: number.to_string(),
        ts: number as i64 * 60_000,
        channel: None,
        author_kind: None,
        kind: Kind::Message,
        text: draft.text.clone(),
    };
    let limits = PackLimits { bullets: 25, patterns: 10 };
    for size in [20, GROUP] {
        let packs = drafts.chunks(size).map(|some| some.iter().enumerate().map(source).collect());
        let packs: Vec<InputPack> = packs.map(|sources| InputPack::new(sources, vec![], limits)).collect();
        let tokens: u64 = packs.iter().map(InputPack::tokens).sum();
        let rounds = (0..ROUNDS).map(|_| {
            time(|| packs.iter().for_each(|pack| drop(Extractive::default().summarize(pack).unwrap()))).1
        });
        let mut rounds: Vec<Duration> = rounds.collect();
        rounds.sort_unstable();
        let took = rounds[ROUNDS / 2];
        let rate = tokens as f64 / took.as_secs_f64();
        println!("| source tokens a second, groups of {size} messages | {rate:.0} | – | – | ≥ 20000 |");
    }
}
