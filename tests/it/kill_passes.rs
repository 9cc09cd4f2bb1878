//! SIGKILL in the middle of maintenance passes, again and again, until they are done.
//!
//! The test runs itself as a child, which carries out one pass on a prepared file in slices of a millisecond. Whatever
//! instant the child dies at, the file opens and a walk through it finds no fault; the next call goes on with the run,
//! and what it tells at the end, and every row, is as if nobody had been killed (MODEL-34). `OUBLIETTE_KILLS=n` has
//! n rounds of one or two kills for each pass.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use oubliette::maintain::{MaintainOptions, Pass, PassReport, RunStatus};
use oubliette::policy::Syntax;
use oubliette::report::CheckOptions;
use oubliette::{
    Database, Draft, Durability, Kind, NamespaceName, PageRequest, Scope, State, Time, WriteOptions,
};
use serde_json::{Value, json};

/// The passes, in the order in which they run one after the other on the same file.
const PASSES: [Pass; 4] = [Pass::Snapshots, Pass::Collapse, Pass::NearDuplicates, Pass::VectorDuplicates];
/// Tells the test that it is the child, and where the file is.
const CHILD: &str = "OUBLIETTE_KILL_CHILD";
/// Most rounds beyond those that were asked for, as long as no kill has come in the middle of a pass. On a busy machine the first
/// kills come late.
const MORE_ROUNDS: u32 = 30;
/// Names the pass to the child.
const PASS: &str = "OUBLIETTE_KILL_PASS";

fn open(path: &Path, durability: Durability) -> Database {
    Database::builder().create(false).durability(durability).open(path).unwrap()
}

/// A number in letters: digits would be the same to a signature, and kept apart by a guard.
fn letters(number: usize) -> String {
    let letter = |at: usize| char::from(b'a' + u8::try_from(at % 26).unwrap());
    [letter(number), letter(number / 26), letter(number / 676), 'q'].iter().collect()
}

/// Reports, 20 of each of 60 sorts; equal texts, 3 of each of 200, in a partition of their own, like 150 trios of
/// near vectors; 20 snapshots on each of 30 days.
fn prepare(path: &Path) {
    let db = Database::builder().durability(Durability::Batch).open(path).unwrap();
    let policy = "plan.max_ms = 1\nplan.max_rows = 16\nsnapshot.period = '1h'\nwrite.vector_match = 'off'";
    db.set_policy(policy, Syntax::Toml).unwrap();
    let reports = (0..1_200).map(|at| {
        let text = format!("service {} status: {at} jobs pending", letters(at % 60));
        Draft::new(text).kind(Kind::Profile).key(format!("report-{at}")).tag(format!("t{}", at % 5))
    });
    let equal = (0..600).map(|at| {
        Draft::new(format!("the lamp of {} burns", letters(at % 200)))
            .key(format!("equal-{at}"))
            .agent("equal")
    });
    let near = (0..450).map(|at| {
        let (mut vector, sort) = (vec![0.01_f32; 160], at % 150);
        vector[sort] = 1.0;
        vector[150 + at / 150] = 0.05;
        let verb = ["answers", "responds", "replies"][at / 150];
        Draft::new(format!("{} {verb} late", letters(sort)))
            .key(format!("near-{at}"))
            .agent("near")
            .vector(vector)
    });
    let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    db.namespace(NamespaceName::default())
        .unwrap()
        .add_all(reports.chain(equal).chain(near).collect(), &how)
        .unwrap();
    for at in 0..600_i64 {
        let taken = Time::from_millis(1_700_000_000_000 + at / 20 * 86_400_000 + at % 20 * 3_600_000);
        db.namespace(NamespaceName::default())
            .unwrap()
            .push_snapshot(Draft::new(format!("{at} facts")), taken)
            .unwrap();
    }
    db.set_policy("plan.max_ms = 1\nplan.max_rows = 16\nwrite.vector_match = 'off'", Syntax::Toml).unwrap();
    db.close().unwrap();
}

/// Carries one pass out to its end.
fn run(db: &Database, pass: Pass) -> PassReport {
    let options = MaintainOptions { destroy_max: Some(u64::MAX), ..MaintainOptions::live() };
    db.maintain_with(&options.passes([pass])).unwrap().passes.swap_remove(0)
}

/// The child: says that it begins, and does.
fn child(path: &Path, pass: &str) {
    let durability = if std::process::id().is_multiple_of(2) { Durability::Safe } else { Durability::Fast };
    let db = open(path, durability);
    let mut out = std::io::stdout();
    writeln!(out, "begins").unwrap();
    out.flush().unwrap();
    run(&db, pass.parse().unwrap());
}

/// Starts a child, and kills it a while after it began.
fn kill_after(path: &Path, pass: Pass, wait: Duration) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["kill_passes::killed_passes_end_as_if_they_had_not_been", "--exact", "--nocapture"])
        .env(CHILD, path)
        .env(PASS, pass.as_str())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.unwrap();
    let said = BufReader::new(child.stdout.take().unwrap());
    assert!(said.lines().map_while(Result::ok).any(|line| line.ends_with("begins")));
    std::thread::sleep(wait);
    child.kill().unwrap();
    child.wait().unwrap();
}

fn check(db: &Database, when: &str) {
    let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
    assert!(report.ok, "{when}: {:?}", report.findings);
}

/// What there is to see of every row, in whatever state it is.
fn rows(db: &Database) -> Vec<String> {
    let mut all = Vec::new();
    for state in [State::Live, State::Superseded, State::Limbo] {
        let request = PageRequest { scope: Scope::Any, state, limit: 10_000, ..PageRequest::default() };
        let page = db.namespace(NamespaceName::default()).unwrap().list(&request).unwrap();
        assert!(page.next.is_none());
        all.extend(page.items.into_iter().map(|row| {
            let (by, count) = (row.superseded_by(), row.reinforcement_count);
            let holders: Vec<_> = row
                .holders
                .iter()
                .map(|holder| (&holder.key, holder.count, holder.from, &holder.text))
                .collect();
            format!("{} {state:?} {count} {by:?} {:?} {holders:?} {:?}", row.id, row.keys, row.tags)
        }));
    }
    all.sort();
    all
}

/// What a report tells of the whole run: the samples are of what was left to do, and every run has its own number.
fn told(report: PassReport) -> Value {
    let mut told = json!(PassReport { run: None, resumed: false, ms: 0, ..report });
    for name in ["samples", "actions", "run_id"] {
        told["report"].as_object_mut().unwrap().shift_remove(name);
    }
    told
}

#[test]
fn killed_passes_end_as_if_they_had_not_been() {
    if let Some(path) = std::env::var_os(CHILD) {
        child(&PathBuf::from(path), &std::env::var(PASS).unwrap());
        return;
    }
    let rounds = std::env::var("OUBLIETTE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let folder = tempfile::tempdir().unwrap();
    let (whole, killed) = (folder.path().join("whole.oub"), folder.path().join("killed.oub"));
    let before = folder.path().join("before.oub");
    prepare(&whole);
    let (mut chance, mut all_resumed) = (0x9e37_79b9_7f4a_7c15_u64, 0);
    for pass in PASSES {
        std::fs::copy(&whole, &before).unwrap();
        let (db, begun) = (open(&whole, Durability::Safe), Instant::now());
        let expected = run(&db, pass);
        let took = begun.elapsed();
        assert!(expected.changed > 200 && expected.left == 0, "{expected:?}");
        let expected_rows = rows(&db);
        check(&db, pass.as_str());
        db.close().unwrap();
        let (mut resumed, mut round, mut reach) = (0, 0, 0.8);
        while round < rounds || (all_resumed + resumed == 0 && round < rounds + MORE_ROUNDS) {
            std::fs::copy(&before, &killed).unwrap();
            for kill in 0..=round % 2 {
                chance = chance.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                let wait = took.mul_f64((chance >> 33) as f64 / f64::from(u32::MAX >> 1) * reach);
                kill_after(&killed, pass, wait);
                let when = format!("{}, round {round}, kill {kill} after {wait:?}", pass.as_str());
                let db = open(&killed, Durability::Fast);
                check(&db, &when);
                let left = db.namespace("default").unwrap().runs(None, 1).unwrap().items;
                assert!(
                    left.iter().all(|run| matches!(run.status, RunStatus::CutOff | RunStatus::Done)),
                    "{when}: {left:?}"
                );
            }
            let db = open(&killed, Durability::Safe);
            let report = run(&db, pass);
            // Where it had ended already nothing was left to tell of, and the next kill is to come earlier.
            let had_begun = report.resumed || report.planned == 0;
            reach *= if report.resumed {
                1.0
            } else if had_begun {
                0.5
            } else {
                2.0
            };
            if report.resumed || report.planned > 0 {
                let listed = db.namespace("default").unwrap().run(report.run.unwrap()).unwrap().unwrap();
                assert_eq!(
                    (listed.status, listed.counts[pass.as_str()]),
                    (RunStatus::Done, expected.changed)
                );
                resumed += u64::from(report.resumed);
                assert_eq!(told(report), told(expected.clone()), "{}, round {round}", pass.as_str());
            }
            assert_eq!(rows(&db), expected_rows, "{}, round {round}", pass.as_str());
            check(&db, pass.as_str());
            db.close().unwrap();
            round += 1;
        }
        all_resumed += resumed;
        let (name, changed) = (pass.as_str(), expected.changed);
        eprintln!("{name}: {changed} rows in {took:?}; {resumed} of {round} rounds cut off in the middle");
    }
    assert!(all_resumed > 0, "no kill came in the middle of a pass");
}
