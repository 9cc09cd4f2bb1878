//! Several openers of one file: what one of them is told is stored is there for all of them, whoever compacts, opens again
//! or fails to sync meanwhile (I1).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::seam::{Seam, SeamDisk};
use oubliette::faults::Tally;
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::Got;
use oubliette::report::CheckOptions;
use oubliette::{
    Database, Draft, Durability, ErrorKind, Forget, Kind, Mode, Namespace, NamespaceName, PageRequest, Query,
    Result, Scope, WriteOptions,
};

/// Every way to write: durability, and whether others may read meanwhile.
const WAYS: [(Durability, bool); 5] = [
    (Durability::Safe, false),
    (Durability::Fast, false),
    (Durability::Batch, false),
    (Durability::Safe, true),
    (Durability::Fast, true),
];

fn ns(db: &Database) -> Namespace {
    db.namespace("default").unwrap()
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
    ns(db).add(Draft::new(format!("text of {key}")).key(key)).map(|_| ())
}

fn has(db: &Database, key: &str) -> bool {
    matches!(ns(db).look_up(key, false), Ok(Got::Memory(_)))
}

fn clean(db: &Database) {
    let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
    assert!(report.ok, "{:#?}", report.findings);
}

/// A backup that is moved over the file of an open handle: nothing is acknowledged that the name does not lead to, and the
/// backup is not overwritten.
#[test]
fn nothing_is_written_to_a_file_that_has_lost_its_name() {
    for way in WAYS {
        let (folder, path) = fresh();
        let copy = folder.path().join("copy.oub");
        let db = open(&path, way, &SeamDisk::default()).unwrap();
        add(&db, "before").unwrap();
        db.backup(&copy).unwrap();
        std::fs::rename(&copy, &path).unwrap();
        let moved = std::fs::read(&path).unwrap();
        assert!(db.is_replaced().unwrap());
        assert_eq!(add(&db, "lost").unwrap_err().kind(), ErrorKind::Unavailable, "{way:?}");
        let refused = db.compact().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
        assert!(std::fs::read(&path).unwrap() == moved, "the file that was moved here is as it was");
        assert!(has(&db, "before") && !has(&db, "lost"));
        drop(db);
        assert_eq!(names(folder.path()), ["m.oub"]);
        let db = open(&path, way, &SeamDisk::default()).unwrap();
        add(&db, "after").unwrap();
        assert!(has(&db, "before") && has(&db, "after"));
    }
    // A name that is free, and one that was moved, are no reason to refuse.
    let (folder, path) = fresh();
    let db = open(&path, WAYS[0], &SeamDisk::default()).unwrap();
    std::fs::rename(&path, folder.path().join("elsewhere.oub")).unwrap();
    assert!(!db.is_replaced().unwrap());
    add(&db, "moved").unwrap();
    db.close().unwrap();
    assert!(has(
        &open(&folder.path().join("elsewhere.oub"), WAYS[0], &SeamDisk::default()).unwrap(),
        "moved"
    ));
}

/// A file that was deleted has no name by which anybody finds what is written to it; one with another name has.
#[cfg(target_os = "linux")]
#[test]
fn nothing_is_written_to_a_file_that_was_deleted() {
    let (folder, path) = fresh();
    let db = Database::open(&path).unwrap();
    add(&db, "before").unwrap();
    let link = folder.path().join("link.oub");
    std::fs::hard_link(&path, &link).unwrap();
    std::fs::remove_file(&path).unwrap();
    add(&db, "linked").unwrap();
    std::fs::remove_file(&link).unwrap();
    assert!(db.is_replaced().unwrap());
    let refused = add(&db, "lost").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert!(refused.to_string().contains("has been deleted"), "{refused}");
    assert!(has(&db, "linked") && !has(&db, "lost"));
    drop(db);
    assert!(names(folder.path()).is_empty());
    let db = Database::open(&path).unwrap();
    add(&db, "after").unwrap();
    db.compact().unwrap();
    add(&db, "then").unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(add(&db, "lost").unwrap_err().kind(), ErrorKind::Unavailable);
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
            |key: &str, words: &str, at: usize| ns(&db).add(Draft::new(words).key(key).vector(vector(at)));
        let nearest = |at: usize| {
            let found = ns(&db).search(Query::vector(vector(at)).k(5)).unwrap().hits;
            found.into_iter().map(|hit| hit.id).collect::<Vec<_>>()
        };
        let worded = |word: &str| ns(&db).search(Query::text(word)).unwrap().hits.len();
        let kept = put("kept", "flushed before", 0).unwrap().id;
        db.flush().unwrap();
        put("lost", "vanished meanwhile", 1).unwrap();
        db.set_policy("[index]\nscan_max = 7777\n", oubliette::policy::Syntax::Toml).unwrap();
        assert_eq!((nearest(1).len(), worded("vanished")), (2, 1));
        disk.0.syncs.store(1, Ordering::SeqCst);
        disk.0.opens.store(tries, Ordering::SeqCst);
        assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::Unavailable);
        // Whoever comes next is told, or reads what the file holds.
        for _ in 2..tries {
            assert_eq!(ns(&db).look_up("kept", false).unwrap_err().kind(), ErrorKind::Unavailable);
        }
        assert_eq!(disk.0.opens.load(Ordering::SeqCst), 0);
        assert_eq!((nearest(1), worded("vanished")), (vec![kept], 0), "{tries} tries");
        assert_ne!(db.policy().0.index.scan_max, 7777, "the policy is lost as well");
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
    assert_eq!(ns(&db).search(Query::text("lost")).unwrap().hits.len(), 1);
    disk.0.syncs.store(1, Ordering::SeqCst);
    // The flush and whoever catches up after it.
    disk.0.opens.store(2, Ordering::SeqCst);
    db.flush().unwrap_err();
    add(&db, "after").unwrap();
    assert_eq!(ns(&db).search(Query::text("lost")).unwrap().hits.len(), 0);
    assert_eq!(ns(&db).search(Query::text("after")).unwrap().hits.len(), 1);
    assert_eq!(
        before.namespace("default").unwrap().search(Query::text("lost")).unwrap_err().kind(),
        ErrorKind::SnapshotExpired
    );
    clean(&db);
}

/// The files of a folder, by name.
fn names(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// A file system without hard links: a name is claimed before the file gets it. Whoever is killed in between leaves nothing
/// that anybody stumbles over.
#[test]
fn a_claim_that_was_left_behind_is_no_obstacle() {
    let (folder, path) = fresh();
    let disk = SeamDisk::default();
    disk.0.killed.store(true, Ordering::SeqCst);
    open(&path, WAYS[0], &disk).unwrap_err();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0, "the claim");
    // There is no database yet for those that make none.
    let none = Database::builder().create(false).open(&path);
    assert_eq!(none.unwrap_err().kind(), ErrorKind::NotFound);
    let none = Database::builder().read_only(true).open(&path);
    assert_eq!(none.unwrap_err().kind(), ErrorKind::NotFound);
    disk.0.killed.store(false, Ordering::SeqCst);
    let db = open(&path, WAYS[0], &disk).unwrap();
    add(&db, "one").unwrap();
    assert_eq!(names(folder.path()), ["m.oub"]);
    let copy = folder.path().join("copy.oub");
    disk.0.killed.store(true, Ordering::SeqCst);
    db.backup(&copy).unwrap_err();
    assert_eq!(std::fs::metadata(&copy).unwrap().len(), 0, "the claim");
    disk.0.killed.store(false, Ordering::SeqCst);
    db.backup(&copy).unwrap();
    assert_eq!(names(folder.path()), ["copy.oub", "m.oub"]);
    assert!(has(&Database::open(&copy).unwrap(), "one"));
}

/// What somebody else has put there is never replaced, and is told from a claim.
#[test]
fn a_name_that_is_given_is_not_taken() {
    for bytes in [&b""[..], b"of somebody else"] {
        let (folder, path) = fresh();
        let db = open(&path, WAYS[0], &SeamDisk::default()).unwrap();
        let copy = folder.path().join("copy.oub");
        std::fs::write(&copy, bytes).unwrap();
        assert_eq!(db.backup(&copy).unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(std::fs::read(&copy).unwrap(), bytes);
        assert_eq!(Database::open(&copy).unwrap_err().kind(), ErrorKind::NotADatabase);
        assert_eq!(std::fs::read(&copy).unwrap(), bytes);
        assert_eq!(names(folder.path()), ["copy.oub", "m.oub"]);
    }
}

/// Two that make one file at the same time: the second one finds it locked, and what either is told is stored is there.
#[test]
fn two_that_make_one_file_do_not_replace_each_other() {
    let (folder, path) = fresh();
    let disk = SeamDisk::default();
    let (hook, refused) = (path.clone(), Arc::new(std::sync::Mutex::new(None)));
    let seen = Arc::clone(&refused);
    Seam::set(&disk.0.before_rename, move || {
        let second = Database::open(&hook).map(drop);
        *seen.lock().unwrap() = Some(second.unwrap_err().kind());
    });
    let first = open(&path, WAYS[0], &disk).unwrap();
    assert_eq!(*refused.lock().unwrap(), Some(ErrorKind::Locked));
    add(&first, "first").unwrap();
    first.close().unwrap();
    assert!(has(&Database::open(&path).unwrap(), "first"));
    assert_eq!(names(folder.path()), ["m.oub"]);
}

/// A8: passes commit slices without a sync, which a shared file does not know.
#[test]
fn passes_run_on_a_shared_file() {
    let (_folder, path) = fresh();
    let db = open(&path, (Durability::Safe, true), &SeamDisk::default()).unwrap();
    for apps in [4, 7, 9] {
        let draft = Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile);
        ns(&db).add(draft).unwrap();
    }
    let passes: Vec<Pass> = Pass::ALL.iter().copied().filter(|pass| *pass != Pass::Embed).collect();
    let report = db.maintain_with(&MaintainOptions::live().passes(passes)).unwrap();
    let collapse = report.passes.iter().find(|report| report.pass == Pass::Collapse).unwrap();
    assert_eq!(collapse.tombstoned, 2, "{report:?}");
    let reader = Database::builder().read_only(true).open(&path).unwrap();
    assert_eq!(ns(&reader).list(&PageRequest::default()).unwrap().items.len(), 1);
    clean(&db);
}

/// A9: a handle that only reads sees each commit of the writer, in rows, in both searches and in the policy, also when the file
/// was compacted meanwhile; and nothing that was forgotten.
#[test]
fn a_reader_follows_the_writer() {
    let (_folder, path) = fresh();
    let writer = open(&path, (Durability::Safe, true), &SeamDisk::default()).unwrap();
    add(&writer, "one").unwrap();
    let reader = Database::builder().read_only(true).open(&path).unwrap();
    let word = |word: &str| ns(&reader).search(Query::text(word)).unwrap().hits.len();
    let near = || ns(&reader).search(Query::vector([1.0, 0.0]).k(5)).unwrap().hits.len();
    assert!(has(&reader, "one"));
    assert_eq!(word("one"), 1);
    for (round, compacts) in [false, true, true].into_iter().enumerate() {
        let key = format!("round{round}");
        ns(&writer).add(Draft::new(format!("word{round}")).key(&key).vector([1.0, 0.0])).unwrap();
        assert_eq!((word(&format!("word{round}")), near()), (1, 1));
        if compacts {
            writer.compact().unwrap();
        }
        ns(&writer).forget(Forget::names([key.clone()])).unwrap();
        assert!(!has(&reader, &key), "a forgotten memory is still served");
        assert_eq!((word(&format!("word{round}")), near()), (0, 0));
        let policy = format!("[index]\nscan_max = {}\n", 8_000 + round);
        writer.set_policy(&policy, oubliette::policy::Syntax::Toml).unwrap();
        assert_eq!(reader.policy().0.index.scan_max, 8_000 + round as u64);
        clean(&reader);
    }
    let held = reader.snapshot().unwrap();
    writer.compact().unwrap();
    assert!(has(&reader, "one"));
    assert_eq!(
        held.namespace("default").unwrap().look_up("one", false).unwrap_err().kind(),
        ErrorKind::SnapshotExpired
    );
    // The one who has the new file open alone locks the reader out, which says so and goes on later.
    writer.close().unwrap();
    let other = Database::open(&path);
    assert_eq!(other.unwrap_err().kind(), ErrorKind::Locked);
    drop((reader, held));
    Database::open(&path).unwrap().close().unwrap();
}

/// A9: a reader that does nothing keeps no page of the file from being used again.
#[test]
fn an_idle_reader_pins_no_page() {
    let bytes = [false, true].map(|with_reader| {
        let (_folder, path) = fresh();
        let writer = open(&path, (Durability::Fast, true), &SeamDisk::default()).unwrap();
        for at in 0..20 {
            ns(&writer).add(Draft::new("x".repeat(4_000)).key(format!("k{at}"))).unwrap();
        }
        let reader = with_reader.then(|| Database::builder().read_only(true).open(&path).unwrap());
        if let Some(reader) = &reader {
            assert_eq!(ns(reader).search(Query::text("x")).unwrap().hits.len(), 0);
        }
        for at in 0..300 {
            ns(&writer).reinforce(format!("k{}", at % 20), 1).unwrap();
        }
        std::fs::metadata(&path).unwrap().len()
    });
    assert!(bytes[1] <= bytes[0] * 5 / 4, "{bytes:?} bytes without and with a reader");
}

/// What a child of the next test does: it opens, adds, compacts and closes, and notes each key that it was told is stored.
fn child(path: &Path, (way, number): (usize, usize), notes: &Path) {
    use std::io::Write;
    let mut notes = std::fs::OpenOptions::new().append(true).create(true).open(notes).unwrap();
    for round in 0..2 {
        let (durability, shared) = WAYS[way];
        let builder = Database::builder().durability(durability).shared(shared).cache_bytes(1 << 20);
        let db = builder.wait("120s".parse::<oubliette::Span>().unwrap()).open(path).unwrap();
        let keys: Vec<String> = (0..3).map(|at| format!("{number}-{round}-{at}")).collect();
        keys.iter().for_each(|key| add(&db, key).unwrap());
        if (round + number).is_multiple_of(2) {
            db.compact().unwrap();
        }
        db.close().unwrap();
        // One write, so that lines of several processes do not mix.
        notes.write_all((keys.join("\n") + "\n").as_bytes()).unwrap();
    }
}

/// I1 across processes: several of them open, write, compact and close one file in turns, in every way, beside one that
/// reads; whatever one was told is stored is there in the end.
#[test]
fn what_a_process_is_told_is_stored_is_there_for_all() {
    if let Ok(task) = std::env::var("OUBLIETTE_OPENER") {
        let parts: Vec<&str> = task.split('|').collect();
        let number = |at: usize| parts[at].parse().unwrap();
        return child(Path::new(parts[0]), (number(1), number(2)), Path::new(parts[3]));
    }
    for (way, how) in WAYS.iter().enumerate() {
        let (folder, path) = fresh();
        let notes = folder.path().join("notes");
        Database::open(&path).unwrap().close().unwrap();
        let children: Vec<_> = (0..3)
            .map(|number| {
                let task = format!("{}|{way}|{number}|{}", path.display(), notes.display());
                let mut me = std::process::Command::new(std::env::current_exe().unwrap());
                me.args(["openers::what_a_process_is_told_is_stored_is_there_for_all", "--exact"]);
                me.env("OUBLIETTE_OPENER", task).stdout(std::process::Stdio::null()).spawn().unwrap()
            })
            .collect();
        for mut child in children {
            assert!(child.wait().unwrap().success(), "{how:?}");
        }
        let db = Database::open(&path).unwrap();
        let notes = std::fs::read_to_string(&notes).unwrap();
        assert_eq!(notes.lines().count(), 3 * 2 * 3);
        for key in notes.lines() {
            assert!(has(&db, key), "{how:?}: {key} was acknowledged and is lost");
        }
        clean(&db);
    }
}

/// A17: what is called through the handle within a batch of it would wait for itself.
#[test]
fn a_batch_refuses_its_own_handle() {
    let (folder, path) = fresh();
    let db = open(&path, (Durability::Fast, false), &SeamDisk::default()).unwrap();
    add(&db, "before").unwrap();
    let copy = folder.path().join("copy.oub");
    let calls: [(&str, &dyn Fn() -> Result<()>); 9] = [
        ("add", &|| add(&db, "within")),
        ("batch", &|| db.batch(|b| b.reinforce(&NamespaceName::default(), "before", 1))),
        ("maintain", &|| db.maintain().map(|_| ())),
        ("maintain, dry", &|| db.maintain_with(&MaintainOptions::default()).map(|_| ())),
        ("compact", &|| db.compact().map(|_| ())),
        ("backup", &|| db.backup(&copy).map(|_| ())),
        ("flush", &|| db.flush()),
        ("reindex", &|| db.reindex().map(|_| ())),
        ("close", &|| db.clone().close()),
    ];
    for (name, call) in calls {
        let inner = db.batch(|b| {
            b.add(&NamespaceName::default(), Draft::new(format!("beside {name}")).key(name))?;
            // Reads see the state before the batch.
            assert!(has(&db, "before") && !has(&db, name));
            db.stats()?;
            Ok(call().unwrap_err().kind())
        });
        assert_eq!(inner.unwrap(), ErrorKind::Conflict, "{name}");
        assert!(has(&db, name));
    }
    add(&db, "after").unwrap();
    clean(&db);
}

/// A search for what stands in the row of a number.
type Search<'a> = &'a (dyn Fn(&Database, usize) + Sync);

/// Of readers that ask for an image at the same time one loads it: together they load no more than one alone.
#[test]
fn an_image_is_loaded_once() {
    const READERS: usize = 8;
    let (_folder, path) = fresh();
    let db = open(&path, (Durability::Fast, false), &SeamDisk::default()).unwrap();
    let vector =
        |at: usize| (0..64).map(|axis| ((at * 7 + axis * 13) % 101) as f32 - 50.0).collect::<Vec<_>>();
    let drafts = (0..2_000).map(|at| Draft::new(format!("text {at}")).vector(vector(at))).collect();
    let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    ns(&db).add_all(drafts, &how).unwrap();
    db.close().unwrap();
    let near = |db: &Database, at: usize| {
        assert_eq!(ns(db).search(Query::vector(vector(at)).k(1)).unwrap().hits.len(), 1);
    };
    let worded = |db: &Database, _| {
        let query = Query::text("text 77").mode(Mode::Text).k(1);
        assert_eq!(ns(db).search(&query).unwrap().hits.len(), 1);
    };
    let anywhere = |db: &Database, _| {
        let query = Query::text("text 77").mode(Mode::Text).scope(Scope::Any).k(1);
        assert_eq!(ns(db).search(&query).unwrap().hits.len(), 1);
    };
    let read_by = |readers: usize, search: &(dyn Fn(&Database, usize) + Sync)| {
        let db = Database::open(&path).unwrap();
        let barrier = std::sync::Barrier::new(readers);
        let read = |at: usize| {
            barrier.wait();
            let cold = Tally::of_thread().read;
            search(&db, at);
            let warm = Tally::of_thread().read;
            search(&db, at);
            // What the first search has read beyond the second one.
            (warm - cold).saturating_sub(Tally::of_thread().read - warm)
        };
        let read = &read;
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..readers).map(|at| scope.spawn(move || read(at))).collect();
            readers.into_iter().map(|reader| reader.join().unwrap()).sum::<u64>()
        })
    };
    let searches: [(&str, Search<'_>); 3] =
        [("near", &near), ("by words", &worded), ("by words of any partition", &anywhere)];
    for (name, search) in searches {
        let (one, all) = (read_by(1, search), read_by(READERS, search));
        assert!(one > 0, "{name}: nothing is loaded");
        assert!(all < 2 * one, "{name}: {one} rows loaded by one, {all} by {READERS} together");
    }
}
