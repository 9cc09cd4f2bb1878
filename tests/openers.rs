//! Several openers of one file: what one of them is told is stored is there for all of them, whoever compacts, opens again
//! or fails to sync meanwhile (I1).

#![cfg(all(feature = "faults", unix))]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "openers/seam.rs"]
mod seam;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use oubliette::{
    CheckOptions, Database, Draft, Durability, ErrorKind, Got, Kind, MaintainOptions, Namespace, PageRequest,
    Pass, Query, Result,
};
use seam::{Seam, SeamDisk};

/// Every way to write: durability, and whether others may read meanwhile.
const WAYS: [(Durability, bool); 5] = [
    (Durability::Safe, false),
    (Durability::Fast, false),
    (Durability::Batch, false),
    (Durability::Safe, true),
    (Durability::Fast, true),
];

fn ns() -> Namespace {
    Namespace::default()
}

fn fresh() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.oub");
    (folder, path)
}

fn open(path: &Path, (durability, shared): (Durability, bool), disk: &SeamDisk) -> Result<Database> {
    let builder = Database::builder().durability(durability).shared(shared).cache_bytes(1 << 20);
    builder.disk(Arc::new(disk.clone())).open(path)
}

fn add(db: &Database, key: &str) -> Result<()> {
    db.add(&ns(), Draft::new(format!("text of {key}")).key(key)).map(|_| ())
}

fn has(db: &Database, key: &str) -> bool {
    matches!(db.get(&ns(), key, false), Ok(Got::Memory(_)))
}

fn clean(db: &Database) {
    let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
    assert!(report.ok, "{:#?}", report.findings);
}

/// A1: one opens the file, another compacts before the first has its lock: the first must not write to the file that has
/// lost its name.
#[test]
fn a_file_that_is_replaced_before_it_is_locked_is_opened_again() {
    for way in WAYS {
        let (_folder, path) = fresh();
        let first = open(&path, way, &SeamDisk::default()).unwrap();
        add(&first, "first").unwrap();
        let disk = SeamDisk::default();
        let hook = first.clone();
        // The lock is free when the second one asks for it.
        Seam::set(&disk.0.after_open, move || {
            hook.compact().unwrap();
            hook.close().unwrap();
        });
        let second = open(&path, way, &disk).unwrap();
        assert!(has(&second, "first"), "{way:?}");
        add(&second, "second").unwrap();
        second.close().unwrap();
        let again = Database::open(&path).unwrap();
        assert!(has(&again, "second"), "{way:?}: an acknowledged write is lost");
        clean(&again);
    }
}

/// A1: as long as the one that has compacted stays open, the other one is refused.
#[test]
fn a_file_that_is_replaced_and_held_is_locked() {
    for way in WAYS {
        let (_folder, path) = fresh();
        let first = open(&path, way, &SeamDisk::default()).unwrap();
        add(&first, "first").unwrap();
        let (disk, hook) = (SeamDisk::default(), first.clone());
        Seam::set(&disk.0.after_open, move || assert!(hook.compact().is_ok()));
        assert_eq!(open(&path, way, &disk).unwrap_err().kind(), ErrorKind::Locked, "{way:?}");
        add(&first, "more").unwrap();
        assert!(has(&first, "first") && has(&first, "more"));
        clean(&first);
    }
}

/// A1: a reader that opens while another compacts reads the new file.
#[test]
fn a_reader_opens_the_file_that_has_the_name() {
    let (_folder, path) = fresh();
    let writer = open(&path, (Durability::Safe, true), &SeamDisk::default()).unwrap();
    add(&writer, "first").unwrap();
    let (disk, hook) = (SeamDisk::default(), writer.clone());
    Seam::set(&disk.0.after_open, move || {
        hook.compact().unwrap();
        add(&hook, "second").unwrap();
    });
    let reader = Database::builder().read_only(true).disk(Arc::new(disk)).open(&path).unwrap();
    assert!(has(&reader, "first") && has(&reader, "second"));
}

/// A2: the last sync fails, and before the file is open again another process commits as many times as this one had: no
/// commit of another is taken for one's own.
#[test]
fn a_commit_of_another_is_not_taken_for_ones_own() {
    for way in WAYS {
        for commits in [1, 2, 3] {
            let (_folder, path) = fresh();
            let disk = SeamDisk::default();
            let first = open(&path, way, &disk).unwrap();
            add(&first, "one").unwrap();
            first.flush().unwrap();
            let other = path.clone();
            Seam::set(&disk.0.before_open, move || {
                let db = Database::open(&other).unwrap();
                (0..commits).for_each(|at| add(&db, &format!("other {at}")).unwrap());
                db.close().unwrap();
            });
            // In batch mode nothing is synced before the flush.
            disk.0.syncs.store(1, Ordering::SeqCst);
            let answer = add(&first, "mine").and_then(|()| first.flush());
            let what = format!("{way:?}, {commits} commits of the other: {answer:?}");
            let there = has(&first, "mine");
            assert!(there || answer.is_err(), "{what}: an acknowledged write is nowhere");
            if let Err(why) = &answer {
                let kind = why.kind();
                assert!(matches!(kind, ErrorKind::Retry | ErrorKind::Unavailable), "{what}");
                assert!(kind != ErrorKind::Retry || !there, "{what}: it may be written twice");
            }
            assert!(has(&first, "one") && has(&first, "other 0"), "{what}");
            add(&first, "after").unwrap();
            clean(&first);
            first.close().unwrap();
            let again = Database::open(&path).unwrap();
            assert!(has(&again, "after") && has(&again, "mine") == there, "{what}");
        }
    }
}

/// A commit that ends in a panic is looked for in the file as one that fails is.
#[test]
fn a_commit_that_panics_is_settled() {
    for way in WAYS {
        let (_folder, path) = fresh();
        let disk = SeamDisk::default();
        let db = open(&path, way, &disk).unwrap();
        add(&db, "one").unwrap();
        db.flush().unwrap();
        disk.0.panics.store(1, Ordering::SeqCst);
        let answer = add(&db, "mine").and_then(|()| db.flush());
        assert_eq!(disk.0.panics.swap(0, Ordering::SeqCst), 0, "{way:?}: it did write");
        assert!(answer.is_err() || has(&db, "mine"), "{way:?}: {answer:?}");
        assert!(has(&db, "one"));
        add(&db, "after").unwrap();
        assert!(has(&db, "after"));
        clean(&db);
        db.close().unwrap();
        clean(&Database::open(&path).unwrap());
    }
}

/// A3: the storage fails, and so does the first try to open the file again; the next call opens it. What was in memory is
/// made of what is lost by then: nothing of it may be served or gone on with.
#[test]
fn nothing_of_a_lost_handle_is_served_again() {
    for tries in 2..=4 {
        let (_folder, path) = fresh();
        let disk = SeamDisk::default();
        let db = open(&path, (Durability::Batch, false), &disk).unwrap();
        let vector = |at: usize| {
            let mut vector = [0.0_f32; 4];
            vector[at] = 1.0;
            vector
        };
        let put =
            |key: &str, words: &str, at: usize| db.add(&ns(), Draft::new(words).key(key).vector(vector(at)));
        let nearest = |at: usize| {
            let found = db.search(&ns(), &Query::vector(vector(at)).k(5)).unwrap().hits;
            found.into_iter().map(|hit| hit.id).collect::<Vec<_>>()
        };
        let worded = |word: &str| db.search(&ns(), &Query::text(word)).unwrap().hits.len();
        let kept = put("kept", "flushed before", 0).unwrap().id;
        db.flush().unwrap();
        put("lost", "vanished meanwhile", 1).unwrap();
        db.set_policy("[index]\nexact_max = 7777\n", oubliette::policy::Syntax::Toml).unwrap();
        assert_eq!((nearest(1).len(), worded("vanished")), (2, 1));
        disk.0.syncs.store(1, Ordering::SeqCst);
        disk.0.opens.store(tries, Ordering::SeqCst);
        assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::Unavailable);
        // Whoever comes next is told, or reads what the file holds.
        for _ in 2..tries {
            assert_eq!(db.get(&ns(), "kept", false).unwrap_err().kind(), ErrorKind::Unavailable);
        }
        assert_eq!(disk.0.opens.load(Ordering::SeqCst), 0);
        assert_eq!((nearest(1), worded("vanished")), (vec![kept], 0), "{tries} tries");
        assert_ne!(db.policy().0.index.exact_max, 7777, "the policy is lost as well");
        put("after", "came after", 1).unwrap();
        assert_eq!((nearest(1).len(), worded("came"), worded("flushed")), (2, 1, 1));
        assert!(has(&db, "after") && !has(&db, "lost"));
        clean(&db);
    }
}

/// A3, the same where a write finds the handle lost, and with a snapshot that was taken before.
#[test]
fn a_write_that_opens_the_file_again_begins_afresh() {
    let (_folder, path) = fresh();
    let disk = SeamDisk::default();
    let db = open(&path, (Durability::Batch, false), &disk).unwrap();
    add(&db, "kept").unwrap();
    db.flush().unwrap();
    add(&db, "lost").unwrap();
    let before = db.snapshot().unwrap();
    assert_eq!(db.search(&ns(), &Query::text("lost")).unwrap().hits.len(), 1);
    disk.0.syncs.store(1, Ordering::SeqCst);
    // The flush and whoever catches up after it.
    disk.0.opens.store(2, Ordering::SeqCst);
    db.flush().unwrap_err();
    add(&db, "after").unwrap();
    assert_eq!(db.search(&ns(), &Query::text("lost")).unwrap().hits.len(), 0);
    assert_eq!(db.search(&ns(), &Query::text("after")).unwrap().hits.len(), 1);
    assert_eq!(before.search(&ns(), &Query::text("lost")).unwrap_err().kind(), ErrorKind::SnapshotExpired);
    clean(&db);
}

/// A8: passes commit slices without a sync, which a shared file does not know.
#[test]
fn passes_run_on_a_shared_file() {
    let (_folder, path) = fresh();
    let db = open(&path, (Durability::Safe, true), &SeamDisk::default()).unwrap();
    for apps in [4, 7, 9] {
        let draft = Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile);
        db.add(&ns(), draft).unwrap();
    }
    let passes: Vec<Pass> = Pass::ALL.into_iter().filter(|pass| *pass != Pass::Embed).collect();
    let report = db.maintain(&passes, &MaintainOptions::live()).unwrap();
    let collapse = report.passes.iter().find(|report| report.pass == Pass::Collapse).unwrap();
    assert_eq!(collapse.tombstoned, 2, "{report:?}");
    let reader = Database::builder().read_only(true).open(&path).unwrap();
    assert_eq!(reader.list(&ns(), &PageRequest::default()).unwrap().items.len(), 1);
    clean(&db);
}
