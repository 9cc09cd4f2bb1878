//! What the pass `collapse` costs: planning, carrying out, and whoever writes meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::{Database, Draft, Durability, Forget, Kind, NamespaceName, WriteOptions};
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

use crate::sample::Rng;
use crate::{middle, ms, percentile, ratio, row, time};

/// Operational lines of the figures.
const LINES: usize = 20_000;
/// Lines that say the same but for their numbers.
const GROUP: usize = 5;

/// Names of nothing. Digits, and letters that could be a hexadecimal number, would be the same to a signature.
fn name(mut number: usize) -> String {
    let mut name = "z".to_owned();
    for _ in 0..4 {
        name.push(char::from(b'a' + (number % 26) as u8));
        name.push(['a', 'e', 'i', 'o', 'u'][number % 5]);
        number /= 26;
    }
    name
}

/// Lines as collectors write them, about 110 bytes each.
fn lines(rows: usize) -> Vec<String> {
    let mut rng = Rng(21);
    (0..rows)
        .map(|at| {
            let service = name(at % (rows / GROUP));
            let mut number = |most: u64| rng.next() % most;
            format!(
                "Service {service} status: {} jobs pending, {} failed, {} MB used, last seen at 2026-02-{:02} \
                 {:02}:{:02}:{:02} on node-{}",
                number(900),
                number(50),
                number(64_000),
                1 + number(28),
                number(24),
                number(60),
                number(60),
                number(300),
            )
        })
        .collect()
}

fn key(at: usize) -> String {
    format!("line-{at:06}")
}

/// A database of these lines, each under a key.
fn database(folder: &tempfile::TempDir, name: &str, lines: &[String], durability: Durability) -> Database {
    let path = folder.path().join(name);
    let db = Database::builder().durability(Durability::Batch).open(&path).unwrap();
    let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    for (part, texts) in lines.chunks(1_000).enumerate() {
        let drafts = texts.iter().enumerate();
        let drafts = drafts.map(|(at, text)| {
            Draft::new(text.clone()).kind(Kind::Profile).key(key(part * 1_000 + at)).tag("bench")
        });
        db.namespace(NamespaceName::default()).unwrap().add_all(drafts.collect(), &how).unwrap();
    }
    db.close().unwrap();
    Database::builder().durability(durability).open(&path).unwrap()
}

fn options() -> MaintainOptions {
    let options = MaintainOptions { destroy_max: Some(u64::MAX), ..MaintainOptions::live() };
    options.passes([Pass::Collapse])
}

/// What anything that compares texts must do at the least.
fn floor(lines: &[String]) -> Duration {
    time(|| {
        for line in lines {
            std::hint::black_box(Sha256::digest(line.nfkc().collect::<String>().as_bytes()));
        }
    })
    .1
}

pub fn collapse() {
    let lines = lines(LINES);
    plan(&lines);
    for durability in [Durability::Safe, Durability::Fast] {
        carry_out(&lines, durability);
    }
}

fn plan(lines: &[String]) {
    let folder = tempfile::tempdir().unwrap();
    let team =
        database(&folder, "plan", lines, Durability::Fast).namespace(NamespaceName::default()).unwrap();
    let pairs = (0..5).map(|_| {
        let (plan, ours) = time(|| team.plan(&options()).unwrap());
        assert_eq!(plan.planned(), (LINES - LINES / GROUP) as u64);
        (ours, floor(lines))
    });
    let (ours, floor) = middle(pairs.collect());
    row(
        "plan of `collapse` over 20,000 lines against NFKC and SHA-256 of their texts (median of 5)",
        ms(ours),
        ms(floor),
        ratio(ours, floor),
        "≤ 3",
    );
}

/// A plan that removes four rows of five, against forgetting the same number of rows by key in one call.
fn carry_out(lines: &[String], durability: Durability) {
    let folder = tempfile::tempdir().unwrap();
    let ns = NamespaceName::default();
    let pairs = (0..3).map(|round| {
        let db = database(&folder, &format!("collapse-{round}"), lines, durability);
        let team = db.namespace(&ns).unwrap();
        let plan = team.plan(&options()).unwrap();
        let (report, ours) = time(|| team.carry_out(&plan, &options()).unwrap());
        let removed = LINES - LINES / GROUP;
        assert_eq!((report.tombstoned, report.skipped), (removed as u64, 0));
        let db = database(&folder, &format!("forget-{round}"), lines, durability);
        let names: Vec<String> = (0..removed).map(key).collect();
        let (forgotten, floor) = time(|| db.namespace(&ns).unwrap().forget(Forget::names(names)).unwrap());
        assert_eq!(forgotten.forgotten, removed as u64);
        (floor, ours)
    });
    let (floor, ours) = middle(pairs.collect());
    let rate = |time: Duration| format!("{:.0} rows/s", (LINES - LINES / GROUP) as f64 / time.as_secs_f64());
    row(
        &format!(
            "carrying it out, `{durability:?}`, against `forget` of as many keys in one call (median of 3)"
        ),
        rate(ours),
        rate(floor),
        ratio(floor, ours),
        "≥ 0.5",
    );
}

/// Adds one after the other until `ends` says so.
fn adds(db: &Database, name: &str, ends: impl Fn(usize) -> bool) -> Vec<Duration> {
    let ns = db.namespace("default").unwrap();
    let mut times = Vec::new();
    while !ends(times.len()) {
        let text = format!("Ann prefers tea number {} of {name}", times.len());
        times.push(time(|| ns.add(Draft::new(text)).unwrap()).1);
    }
    times
}

/// One writer beside a collapse of thousands of groups.
pub fn beside() {
    let lines = lines(LINES);
    let folder = tempfile::tempdir().unwrap();
    let pairs = (0..3).map(|round| {
        let db = database(&folder, &format!("beside-{round}"), &lines, Durability::Safe);
        adds(&db, "warm", |count| count == 100);
        let without = adds(&db, "without", |count| count == 1_000);
        let over = AtomicBool::new(false);
        let with = std::thread::scope(|scope| {
            scope.spawn(|| {
                let report = db.maintain_with(&options()).unwrap();
                over.store(true, Ordering::SeqCst);
                assert_eq!(report.passes[0].tombstoned, (LINES - LINES / GROUP) as u64);
            });
            adds(&db, "with", |_| over.load(Ordering::SeqCst))
        });
        println!("| of {} adds beside it, p50 | {} | | | |", with.len(), ms(percentile(with.clone(), 50)));
        (percentile(with, 99), percentile(without, 99))
    });
    let (with, without) = middle(pairs.collect());
    row(
        "p99 of a `Safe` add while `collapse` merges 4,000 groups against without (median of 3)",
        ms(with),
        ms(without),
        ratio(with, without),
        "≤ 3",
    );
}
