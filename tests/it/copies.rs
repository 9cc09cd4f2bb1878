//! Copies of a database: what `compact` and `backup` write, where it lies, and who may read it.

use std::path::{Path, PathBuf};

use crate::world::{START, World, assert_clean, axis, keeping, span, text};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::Expiry;
use oubliette::memory::{Actor, Got, Tier, TombstoneReason};
use oubliette::report::{CheckOptions, CheckReport, ErasedProbe, RuleId};
use oubliette::{Database, Draft, ErrorKind, Kind, State};

const SECRET: &str = "the secret is XYZZY-PLUGH-42-SECRET";

/// Whether a file holds the secret.
fn tells(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap();
    bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
}

/// The files of the folder that hold the secret.
fn telling(world: &World) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(world.path().parent().unwrap()).unwrap();
    folder.map(|entry| entry.unwrap().path()).filter(|path| path.is_file() && tells(path)).collect()
}

fn erased(db: &Database) -> CheckReport {
    let probe = ErasedProbe { texts: vec![SECRET.to_owned()], vector: None, keys: vec![] };
    db.check(&CheckOptions { deep: true, erased: vec![probe] }).unwrap()
}

/// What a killed `compact` leaves: a copy under the name of a draft.
fn leave_draft(world: &World, of: &str) -> PathBuf {
    let draft = world.beside(&format!(".{of}.0123456789abcdef.new"));
    std::fs::copy(world.path(), &draft).unwrap();
    draft
}

/// `compact` put its copy in place of a link to the database: the real file kept every forgotten byte, and what was written
/// afterwards was not in it.
#[cfg(unix)]
#[test]
fn a_link_leads_to_the_one_file() {
    let mut world = World::new();
    world.add(text(SECRET).key("s"));
    world.db.clone().close().unwrap();
    let (link, folder) = (world.beside("link.oub"), world.beside("folder"));
    std::os::unix::fs::symlink("memory.oub", &link).unwrap();
    std::os::unix::fs::symlink(world.path().parent().unwrap(), &folder).unwrap();
    for path in [link.clone(), folder.join("link.oub")] {
        world.db = world.builder().open(&path).unwrap();
        world.ns = world.db.namespace("default").unwrap();
        assert_eq!(world.db.path(), std::fs::canonicalize(world.path()).unwrap());
        assert_eq!(world.builder().open(world.path()).unwrap_err().kind(), ErrorKind::Locked);
        world.ns.forget(oubliette::Forget::names(["s"])).unwrap();
        world.db.compact().unwrap();
        let after = world.add(text("written after the compaction").key("after")).id;
        world.reopen();
        assert_eq!(world.row("after").id, after);
        assert!(telling(&world).is_empty());
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        world.check();
        world.db.clone().close().unwrap();
    }
}

/// A link whose file is yet to be made leads to where that is made.
#[cfg(unix)]
#[test]
fn a_link_to_nothing_is_where_its_file_will_be() {
    let world = World::new();
    let (link, real) = (world.beside("new-link.oub"), world.beside("new.oub"));
    std::os::unix::fs::symlink("new.oub", &link).unwrap();
    let db = world.builder().open(&link).unwrap();
    assert_eq!(db.path(), std::fs::canonicalize(&real).unwrap());
    db.compact().unwrap();
    db.close().unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(std::fs::symlink_metadata(&real).unwrap().is_file());
}

/// A killed `compact` left its copy of everything beside the file, where neither a later one nor `check` looked.
#[test]
fn what_a_killed_copy_left_goes_with_the_next_opening() {
    let mut world = World::new();
    world.add(text(SECRET).key("s"));
    world.reopen();
    let draft = leave_draft(&world, "memory.oub");
    let other = leave_draft(&world, "other.oub");
    let short = world.beside(".memory.oub.0123.new");
    std::fs::copy(world.path(), &short).unwrap();
    world.reopen();
    assert!(!draft.exists());
    assert!(other.exists() && short.exists(), "they are not drafts for this file");
}

#[test]
fn a_compaction_clears_what_a_killed_copy_left() {
    let mut world = World::new();
    world.add(text(SECRET).key("s"));
    world.reopen();
    world.forget(&["s"]);
    let draft = leave_draft(&world, "memory.oub");
    assert!(!erased(&world.db).ok, "the copy is looked at too");
    // What a killed backup and a killed export left, whose names nobody uses again, and a file that has only such a name.
    let backup = leave_draft(&world, "backup-of-may.oub");
    // A database that somebody has open makes drafts of its own, and clears them.
    let other = world.beside("other.oub");
    let at_work = world.builder().open(&other).unwrap();
    let of_other = leave_draft(&world, "other.oub");
    // The killed process had claimed the name.
    let claim = world.beside("backup-of-may.oub");
    std::fs::write(&claim, "").unwrap();
    let export = world.beside(".may.jsonl.12.0.oubliette-part");
    std::fs::write(&export, SECRET).unwrap();
    // A clock may step back.
    let ahead = std::time::SystemTime::now() + std::time::Duration::from_secs(3_600);
    std::fs::File::options().write(true).open(&export).unwrap().set_modified(ahead).unwrap();
    let note = world.beside(".note.0123456789abcdef.new");
    std::fs::write(&note, "a note").unwrap();
    world.db.compact().unwrap();
    assert!(!draft.exists() && !backup.exists() && !export.exists() && note.exists());
    assert!(!claim.exists(), "the name is free again");
    assert!(of_other.exists(), "it may be under way");
    at_work.close().unwrap();
    world.db.compact().unwrap();
    assert!(!of_other.exists() && other.exists());
    let report = erased(&world.db);
    assert!(report.ok, "{:#?}", report.findings);
    assert!(telling(&world).is_empty());
}

/// A name need not be UTF-8: what a backup that was killed left under such a name kept every forgotten text.
#[cfg(target_os = "linux")]
#[test]
fn a_compaction_clears_what_a_backup_under_a_name_of_other_bytes_left() {
    use std::os::unix::ffi::OsStrExt;

    let mut world = World::new();
    world.add(text(SECRET).key("s"));
    world.reopen();
    world.forget(&["s"]);
    let beside = |bytes: &[u8]| world.path().with_file_name(std::ffi::OsStr::from_bytes(bytes));
    let draft = beside(b".caf\xe9.oub.0123456789abcdef.new");
    std::fs::copy(world.path(), &draft).unwrap();
    let claim = beside(b"caf\xe9.oub");
    std::fs::write(&claim, "").unwrap();
    world.db.compact().unwrap();
    assert!(!draft.exists() && !claim.exists());
    assert!(telling(&world).is_empty());
}

/// Another name of the file keeps what it was, so nobody is told that all of it is gone.
#[cfg(unix)]
#[test]
fn a_compaction_tells_of_other_names_of_the_file() {
    let mut world = World::new();
    world.add(text(SECRET).key("s"));
    world.reopen();
    let other = world.beside("other-name.oub");
    std::fs::hard_link(world.path(), &other).unwrap();
    world.forget(&["s"]);
    assert_eq!(world.db.compact().unwrap().other_names, 1);
    assert!(tells(&other) && !tells(&world.path()));
    assert_eq!(world.db.compact().unwrap().other_names, 0);
}

/// A draft that another process is at work on is locked, and stays.
#[test]
fn a_copy_under_way_is_left_alone() {
    let mut world = World::new();
    world.add(text(SECRET));
    world.reopen();
    let draft = leave_draft(&world, "memory.oub");
    let at_work = world.builder().open(&draft).unwrap();
    world.reopen();
    world.db.compact().unwrap();
    assert!(draft.exists());
    at_work.close().unwrap();
    world.reopen();
    assert!(!draft.exists());
}

#[test]
fn a_backup_clears_what_a_killed_one_left() {
    let world = World::new();
    world.add(text(SECRET));
    let draft = leave_draft(&world, "backup.oub");
    world.db.backup(world.beside("backup.oub")).unwrap();
    assert!(!draft.exists());
    assert_eq!(world.db.backup(world.beside("backup.oub")).unwrap_err().kind(), ErrorKind::Conflict);
}

/// Copies are made beside each other in one folder: a draft is locked until it has its name, so no compaction takes it for what was
/// left.
#[test]
fn a_compaction_takes_no_draft_that_is_under_way() {
    let (busy, world) = (World::new(), World::new());
    world.add(text("of the other file"));
    let other = world.builder().open(busy.beside("other.oub")).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::SeqCst) {
                other.compact().unwrap();
            }
        });
        for at in 0..30 {
            let target = busy.beside(&format!("copy{at}.oub"));
            let made = busy.db.backup(&target);
            if made.is_err() || busy.db.compact().is_err() || busy.builder().open(&target).is_err() {
                done.store(true, std::sync::atomic::Ordering::SeqCst);
                panic!("copy {at}: {made:?}");
            }
        }
        done.store(true, std::sync::atomic::Ordering::SeqCst);
    });
}

/// A handle that only reads takes nothing out of the file, and its copy has no byte of what is gone.
#[test]
fn a_copy_by_a_reader_has_nothing_of_what_is_forgotten() {
    const AGENT: &str = "zqagentname";
    let mut world = World::new();
    for at in 0..40 {
        world.add(text(&format!("note {at}")).key(format!("k{at}")).vector(axis(at % 4)));
    }
    world.add(text(SECRET).key("s").agent(AGENT).vector(axis(1)));
    world.db.maintain().unwrap();
    world.forget(&["s", "k3", "k8"]);
    world.reopen();
    world.db.clone().close().unwrap();
    let has_name = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(AGENT.len()).any(|window| window == AGENT.as_bytes())
    };
    let before = std::fs::read(world.path()).unwrap();
    assert!(has_name(&world.path()));
    let copy = world.beside("copy.oub");
    let reader = world.builder().read_only(true).open(world.path()).unwrap();
    assert!(reader.backup(&copy).unwrap().whole);
    reader.close().unwrap();
    assert!(std::fs::read(world.path()).unwrap() == before, "the file is as it was");
    assert!(!has_name(&copy) && !tells(&copy));
    let copy = world.builder().open(&copy).unwrap();
    assert_eq!(copy.stats().unwrap().vectors.dead, 0);
    assert_clean(&copy);
    world.open_again(|builder| builder);
}

/// A name that is taken is found before the copy is begun.
#[test]
fn a_backup_to_a_name_that_is_taken_copies_nothing() {
    let world = World::new();
    let target = world.beside("backup.oub");
    std::fs::write(&target, "a letter").unwrap();
    let before = std::fs::metadata(world.path().parent().unwrap()).unwrap().modified().unwrap();
    assert_eq!(world.db.backup(&target).unwrap_err().kind(), ErrorKind::Conflict);
    let after = std::fs::metadata(world.path().parent().unwrap()).unwrap().modified().unwrap();
    assert_eq!(before, after, "no file was made beside it");
    assert_eq!(std::fs::read(&target).unwrap(), b"a letter");
}

/// `compact` gave the file the mode of a new one, and so took it from its group.
#[cfg(unix)]
#[test]
fn a_compaction_keeps_the_permissions_and_a_backup_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&world.path()), 0o600);
    for wanted in [0o660, 0o600, 0o644] {
        std::fs::set_permissions(world.path(), std::fs::Permissions::from_mode(wanted)).unwrap();
        world.db.compact().unwrap();
        assert_eq!(mode(&world.path()), wanted);
    }
    world.db.backup(world.beside("backup.oub")).unwrap();
    assert_eq!(mode(&world.beside("backup.oub")), 0o600);
}

/// V-295: a copy carries over nothing that is past its end (LIFE-55), and says so like the passes.
#[test]
fn v295_a_compaction_erases_what_is_past_its_end() {
    let world = World::with(keeping);
    let probe = |what: &str| format!("{what}-0123456789-abcdefghij");
    let ours = |what: &str| text(&probe(what)).key(what);
    let add = |draft: Draft| world.add(draft).id;
    for apps in [4, 7] {
        let mut status = text(&format!("Gateway status: {apps} apps pending"));
        status.fields.kind = Some(Kind::Profile);
        add(status);
    }
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    // Tier `working` lets a memory expire after three days; ten and one of them have passed since.
    let ten = add(ours("ten-days").tier(Tier::Working));
    let pinned = add(ours("pinned").tier(Tier::Working));
    world.ns.pin("pinned", true).unwrap();
    world.advance("9d");
    let one = add(ours("one-day").tier(Tier::Working));
    let callers = add(ours("callers").tier(Tier::Working).expiry(Expiry::After(span("95h"))));
    let lasting = add(ours("lasting"));
    world.advance("4d");
    let expired_at = world.row(callers).expires_at;
    let report = world.db.compact().unwrap();
    assert_eq!((report.expired, report.limbo, report.damaged.len()), (2, 1, 0));
    let bytes = std::fs::read(world.path()).unwrap();
    let left = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    for (what, there) in
        [("ten-days", false), ("callers", false), ("one-day", true), ("pinned", true), ("lasting", true)]
    {
        assert_eq!(left(&probe(what)), there, "{what}");
    }
    assert!(left("Gateway status: 7 apps pending") != left("Gateway status: 4 apps pending"));
    for gone in [ten, callers] {
        let stone = world.tombstone(gone);
        assert_eq!((stone.reason, stone.deleted_at), (TombstoneReason::Expired, world.now()));
        let history = world.ns.history(gone.to_string()).unwrap();
        assert_eq!(
            history.events.last().map(|row| (row.actor, row.rule)),
            Some((Actor::Sweeper, RuleId::EXPIRED))
        );
    }
    assert_eq!((world.row(one).state, world.row(pinned).state), (State::Expired, State::Expired));
    assert_eq!(world.row(lasting).state, State::Live);
    let horizon = world.db.stats().unwrap().purge_horizon;
    let horizon = horizon.values().next().unwrap();
    assert_eq!(horizon.known, Some(START.parse().unwrap()));
    assert_eq!(horizon.valid, expired_at);
    world.check();
    // Once more there is nothing to erase, until the last one is past the horizon too.
    let report = world.db.compact().unwrap();
    assert_eq!((report.expired, report.limbo), (0, 0));
    world.advance("6d");
    assert_eq!(world.db.compact().unwrap().expired, 1);
    world.check();
}

/// A value that can't be read stopped `compact` and `backup`, above all one of vitals. Both go past it, and name it.
#[test]
fn damage_stops_no_copy() {
    const IMPORTANCE: f32 = 0.712_345_6;
    for (table, part) in [("memory", SECRET.as_bytes()), ("vitals", &IMPORTANCE.to_le_bytes())] {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("memory.oub"), folder.path().join("copy.oub"));
        let ns = oubliette::NamespaceName::default();
        let db = Database::open(&path).unwrap();
        let secret = text(SECRET).key("bad").importance(IMPORTANCE).vector([0.0, 1.0, 0.0, 0.0]);
        let bad = db.namespace(&ns).unwrap().add(secret).unwrap().id;
        let good =
            db.namespace(&ns).unwrap().add(text("good").key("good").vector([1.0, 0.0, 0.0, 0.0])).unwrap().id;
        db.close().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        // The commit before may have left it in a page that is free now.
        for at in 0..bytes.len() - part.len() {
            if bytes[at..].starts_with(part) {
                bytes[at] ^= 1;
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        let db = Database::open(&path).unwrap();
        for report in [db.backup(&copy).unwrap(), db.compact().unwrap()] {
            let damaged: Vec<_> =
                report.damaged.iter().map(|row| (row.code, row.table, row.key.clone())).collect();
            let key = format!("00000001{}", bad.to_string().replace('-', ""));
            assert_eq!(damaged, [("corrupted", table, key)]);
        }
        for db in [db, Database::open(&copy).unwrap()] {
            let Got::Memory(row) = db.namespace(&ns).unwrap().look_up("good", false).unwrap() else {
                panic!("it is there")
            };
            assert_eq!(row.id, good);
        }
    }
}

/// A vector in a file takes at most 1.15 of its bytes, and a code with its slot at most 1.15 of its: at 1,024 and 2,048 dimensions
/// blocks filled half of their pages.
#[test]
fn vectors_fill_their_pages_at_any_dimension() {
    // With rows for whole blocks, and so many that the size of a file, which grows by steps, says what a vector takes.
    let sizes = [(8, 1_356), (128, 1_320), (384, 1_350), (768, 900), (1_024, 700), (1_536, 500)];
    for (dim, rows) in sizes.into_iter().chain([(2_048, 700), (3_072, 300), (4_096, 280)]) {
        let size = |with: bool| {
            let world = World::with(|builder| builder.durability(oubliette::Durability::Batch));
            let drafts = (0..rows).map(|at| {
                let draft = text(&format!("t{at}"));
                if !with {
                    return draft;
                }
                let values: Vec<f32> = (0..dim).map(|d| ((at * 31 + d * 17) % 101) as f32 - 50.5).collect();
                draft.vector(values)
            });
            let how = oubliette::WriteOptions { no_dedup: true, ..Default::default() };
            world.ns.add_all(drafts.collect(), &how).unwrap();
            world.db.compact().unwrap().bytes_after as f64
        };
        let (taken, slot) = ((size(true) - size(false)) / rows as f64, (5 * dim + 56) as f64);
        assert!(taken <= 1.15 * slot, "{dim} dimensions: {taken} bytes a vector for {slot}");
    }
}
