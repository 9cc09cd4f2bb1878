//! SIGKILL in the middle of a real import into a real file, again and again.
//!
//! The test runs itself as a child, which imports batches of JSON lines through the public API and says after each one
//! that it is in. Whatever instant the child dies at, the file opens, a walk through it finds no fault, and it holds
//! whole batches: at least those that were said to be in, at most one more. `OUBLIETTE_KILLS=n` kills n children.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use oubliette::exchange::{LineReader, NpyReader, ParsedLine, Records};
use oubliette::maintain::RunStatus;
use oubliette::report::CheckOptions;
use oubliette::{Database, Durability, ErrorKind, PageRequest, WriteOptions};

/// Rows of one batch.
const BATCH: usize = 50;
/// Batches of one import.
const BATCHES: usize = 40;
/// Tells the test that it is the child, and where the files are.
const CHILD: &str = "OUBLIETTE_KILL_CHILD";

fn lines() -> String {
    (0..BATCH * BATCHES)
        .map(|at| {
            let numbers: Vec<String> = (0..32).map(|d| format!("{}", 1 + (at * 31 + d * 17) % 101)).collect();
            let vector = numbers.join(",");
            format!(
                "{{\"key\":\"k{at}\",\"text\":\"line {at}\",\"tags\":[\"t{}\"],\"vector\":[{vector}]}}\n",
                at % 7
            )
        })
        .collect()
}

fn durability(kill: u64) -> Durability {
    if kill.is_multiple_of(2) { Durability::Safe } else { Durability::Fast }
}

/// The child: imports, and says after each batch how many there are.
fn import(folder: &Path, kill: u64) {
    let db = Database::builder().durability(durability(kill)).open(folder.join("memory.oub")).unwrap();
    let ns = db.namespace("default").unwrap();
    let lines = std::fs::File::open(folder.join("lines.jsonl")).unwrap();
    let lines = LineReader::new(BufReader::new(lines), "lines.jsonl");
    let mut records = Records::new(lines, None::<NpyReader<std::io::Empty>>, false);
    let run = ns.start_import().unwrap();
    let how = WriteOptions { run: Some(run), ..WriteOptions::default() };
    for batch in 1.. {
        let drafts: Vec<_> = (&mut records)
            .take(BATCH)
            .map(|(_, line)| match line.unwrap() {
                ParsedLine::Draft(line) => line.draft,
                other => panic!("{other:?}"),
            })
            .collect();
        if drafts.is_empty() {
            return;
        }
        ns.add_all(drafts, &how).unwrap();
        let mut out = std::io::stdout();
        writeln!(out, "batch {batch}").unwrap();
        out.flush().unwrap();
        // Now and then something other than adding.
        if batch % 13 == 0 {
            db.compact().unwrap();
            writeln!(out, "compacted").unwrap();
        }
    }
}

/// Starts a child, kills it after a while, and gives the number of the last batch that it said was in.
fn kill_after(folder: &Path, kill: u64, wait: Duration) -> usize {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["kill::a_killed_import_leaves_whole_batches", "--exact", "--nocapture"])
        .env(CHILD, folder)
        .env("OUBLIETTE_KILL_NUMBER", kill.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.unwrap();
    let said = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let numbers =
            said.lines().map_while(Result::ok).filter_map(|line| line.strip_prefix("batch ")?.parse().ok());
        numbers.last().unwrap_or(0_usize)
    });
    std::thread::sleep(wait);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

/// Opens what is left and counts whole batches; none when there is no database yet.
fn batches_in(path: &Path) -> Option<usize> {
    let db = match Database::builder().create(false).open(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => return None,
        opened => opened.unwrap(),
    };
    let ns = db.namespace("default").unwrap();
    let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
    assert!(report.ok, "{:?}", report.findings);
    let rows = ns.list(&PageRequest { limit: 10_000, ..PageRequest::default() }).unwrap().items;
    assert!(rows.len().is_multiple_of(BATCH), "{} rows are no whole batches", rows.len());
    let keys: std::collections::BTreeSet<String> = rows.into_iter().flat_map(|row| row.keys).collect();
    assert!((0..keys.len()).all(|at| keys.contains(&format!("k{at}"))), "rows of other batches");
    // The run knows of just these rows, and that nobody works on it.
    let runs = ns.runs(None, 2).unwrap().items;
    assert!(runs.len() <= 1 && (keys.is_empty() || runs.len() == 1), "{runs:?}");
    for run in runs {
        let stored = run.counts.get("stored").copied().unwrap_or(0);
        assert_eq!((run.status, stored), (RunStatus::CutOff, keys.len() as u64));
        if keys.len() <= 5 * BATCH {
            assert_eq!(ns.undo(run.id).unwrap().removed, stored);
            assert_eq!(ns.run(run.id).unwrap().unwrap().status, RunStatus::Undone);
            assert!(ns.list(&PageRequest::default()).unwrap().items.is_empty());
        }
    }
    Some(keys.len() / BATCH)
}

#[test]
fn a_killed_import_leaves_whole_batches() {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    if let Some(folder) = std::env::var_os(CHILD) {
        import(&PathBuf::from(folder), number("OUBLIETTE_KILL_NUMBER").unwrap());
        return;
    }
    let kills = number("OUBLIETTE_KILLS").unwrap_or(50);
    let (mut chance, begun) = (0x9e37_79b9_7f4a_7c15_u64, Instant::now());
    let (mut partial, mut none) = (0, 0);
    for kill in 0..kills {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("lines.jsonl"), lines()).unwrap();
        chance = chance.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let wait = Duration::from_millis(1 + (chance >> 33) % 300);
        let said = kill_after(folder.path(), kill, wait);
        let found = batches_in(&folder.path().join("memory.oub"));
        match found {
            None => assert_eq!(said, 0, "kill {kill} after {wait:?}: the database is gone"),
            Some(found) => {
                assert!(
                    (said..=said + 1).contains(&found),
                    "kill {kill} after {wait:?}: {found} of {said} batches"
                );
            }
        }
        partial += u64::from(found.is_some_and(|found| (1..BATCHES).contains(&found)));
        none += u64::from(found.is_none());
    }
    eprintln!(
        "{kills} kills in {:?}: {partial} inside the import, {none} before there was a file",
        begun.elapsed()
    );
    assert!(partial > 0, "no kill came in the middle of an import");
}
