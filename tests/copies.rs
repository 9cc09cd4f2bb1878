//! Copies of a database: what `compact` and `backup` write, where it lies, and who may read it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod world;

use std::path::{Path, PathBuf};

use oubliette::{CheckOptions, CheckReport, Database, ErasedProbe, ErrorKind};
use world::{World, text};

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
    let probe = ErasedProbe { text: SECRET.to_owned(), vector: None, keys: vec![] };
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
        assert_eq!(world.db.path(), std::fs::canonicalize(world.path()).unwrap());
        assert_eq!(world.builder().open(world.path()).unwrap_err().kind(), ErrorKind::Locked);
        world.db.forget(&world.ns, oubliette::Forget::names(["s"])).unwrap();
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
    world.db.compact().unwrap();
    assert!(!draft.exists());
    let report = erased(&world.db);
    assert!(report.ok, "{:#?}", report.findings);
    assert!(telling(&world).is_empty());
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
