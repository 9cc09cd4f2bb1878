//! What the file takes, and for what.

use crate::world::{DIM, World, axis, ms, text};
use oubliette::memory::Expiry;
use oubliette::memory::SupersedeMode;
use oubliette::policy::Syntax;
use oubliette::report::CheckOptions;
use oubliette::{Database, Draft, Durability, Forget, WriteOptions};

/// The sum that commits keep is that of a recount, by table and as a whole, and the parts are the file. Gives live bytes and
/// free ones in percent of the file, by the estimate and exactly.
#[track_caller]
fn parts(db: &Database) -> (u64, [u64; 2]) {
    let (told, exact) = (db.stats().unwrap(), db.file_stats().unwrap());
    assert_eq!(told.health.size_warning, None);
    for bytes in [told.bytes, exact.bytes] {
        assert_eq!(bytes.live + bytes.overhead + bytes.free, bytes.file, "{bytes:?}");
        assert_eq!(bytes.live, exact.by_table.values().map(|table| table.live).sum::<u64>());
    }
    let of_tables = exact.by_table.values().map(|table| table.overhead).sum::<u64>();
    assert_eq!(exact.bytes.overhead, of_tables + (40 << 10));
    (told.bytes.live, [told.bytes, exact.bytes].map(|bytes| bytes.free * 100 / bytes.file))
}

fn around(at: usize) -> [f32; DIM] {
    let at = at as f32;
    [0.37, 0.73, 0.11, 0.53].map(|turn| (at * turn).cos() + 0.01)
}

/// A database of so many rows, each with a key, every fifth with a vector.
fn filled(rows: usize) -> World {
    let world = World::with(|builder| builder.durability(Durability::Batch));
    let said = |at: usize| -> Draft {
        let name =
            format!("memory {at} of those that fill the file, {}", "and what it says ".repeat(at % 20));
        let draft = text(&name).key(format!("k{at}")).tag(format!("t{}", at % 7));
        if at.is_multiple_of(5) { draft.vector(around(at)) } else { draft }
    };
    for from in (0..rows).step_by(500) {
        let drafts = (from..rows.min(from + 500)).map(said).collect();
        world.ns.add_all(drafts, &Default::default()).unwrap();
    }
    world
}

/// V-308 (with 5,000 rows): only texts and vectors were counted as live, and every index, holder and journal row as free.
#[test]
fn v308_right_after_a_compaction_hardly_anything_is_free() {
    let world = filled(5_000);
    let (before, free) = parts(&world.db);
    world.db.compact().unwrap();
    let (after, [told, exact]) = parts(&world.db);
    assert!(told <= 5 && exact <= 5, "{told} % and {exact} % are free, before {free:?}");
    assert_eq!(after, before, "a copy carries what is live");
    let table = world.db.file_stats().unwrap().by_table;
    assert_eq!((table["vitals"].rows, table["memory"].rows), (5_000, 5_000));
    assert!(table["vector"].live > 1_000 * 16 && table["holder"].live > 0 && table["event"].live == 0);

    // What is forgotten is live no more, and a part of the file after the next copy no more either.
    for tag in ["t0", "t1", "t2", "t3"] {
        world.ns.forget(Forget::tag(tag)).unwrap();
    }
    let (left, [told, exact]) = parts(&world.db);
    assert!(left < after, "{left} of {after}");
    assert!(told > 5 && exact > 5, "{told} % and {exact} % are free");
    world.db.compact().unwrap();
    let (last, [told, exact]) = parts(&world.db);
    assert!(last <= left && told <= 5 && exact <= 5, "{last} of {left}, {told} % and {exact} % are free");
    world.check();
}

/// Whatever a transaction does, refused ones and those of another handle among them.
#[test]
fn the_sum_of_the_rows_is_that_of_a_recount() {
    let mut world = World::at(10);
    assert!(parts(&world.db).0 > 0);
    let old = world.add(text("one").key("a").tag("t").vector(axis(1))).id;
    let new = world.add(text("two").expiry(Expiry::At(ms(500)))).id;
    parts(&world.db);
    world.supersede(old, new, SupersedeMode::Correction, None).unwrap();
    world.add(text("one, but longer by a good deal").key("a").vector(axis(2)));
    world.ns.add(text("refused").vector(vec![f32::NAN; 4])).unwrap_err();
    let (live, _) = parts(&world.db);
    world.reopen();
    assert_eq!(parts(&world.db).0, live);
    world.set(600);
    world.ns.forget(Forget::names(["a"])).unwrap();
    parts(&world.db);
    world.db.compact().unwrap();
    world.db.reindex().unwrap();
    parts(&world.db);
    world.check();
}

/// The sum goes along with a backup, whose own it is.
#[test]
fn a_backup_has_a_sum_of_its_own() {
    let world = filled(300);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.oub");
    world.db.backup(&path).unwrap();
    let copy = Database::open(&path).unwrap();
    let (live, [told, exact]) = parts(&copy);
    assert!(told <= 5 && exact <= 5, "{told} % and {exact} % are free of a small file");
    assert_eq!(live, parts(&world.db).0);
    assert!(copy.check(&Default::default()).unwrap().ok);
}

/// Bytes that no compression makes shorter.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// To see whether space can be given back takes a walk through the file. The walk notes what the pages take, so that the next
/// process, which may have a line to write, need not walk again.
#[test]
fn the_pages_of_a_file_are_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.oub");
    let open = || Database::builder().durability(Durability::Fast).open(&path).unwrap();
    let db = open();
    db.set_policy("storage.shrink = 0.1", Syntax::Toml).unwrap();
    let ns = db.namespace("default").unwrap();
    let note = |at: usize| {
        text(&format!("note {at} of the log")).key(format!("k{at}")).payload(noise(at as u64, 300))
    };
    let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    for at in 0..12 {
        ns.add_all((at * 1_000..(at + 1) * 1_000).map(note).collect(), &how).unwrap();
    }
    drop(ns);
    let (live, _) = parts(&db);
    db.close().unwrap();
    let length = std::fs::metadata(&path).unwrap().len();
    assert!(length > 4 << 20 && length - live > length / 10, "{live} bytes of rows in {length}");
    let db = open();
    let (_, [told, exact]) = parts(&db);
    assert!(told.abs_diff(exact) <= 1, "{told} % and {exact} % are free");
    let commits = db.stats().unwrap().commit;
    db.close().unwrap();
    let db = open();
    assert_eq!(db.stats().unwrap().commit, commits, "the pages were counted again");
    db.close().unwrap();
}

#[test]
fn a_file_that_is_free_for_the_most_part_becomes_shorter_when_it_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.oub");
    let length = || std::fs::metadata(&path).unwrap().len();
    let open = || Database::builder().durability(Durability::Fast).open(&path).unwrap();
    let db = open();
    db.set_policy("storage.shrink = 1.0\nundo.horizon = \"0s\"", Syntax::Toml).unwrap();
    let ns = db.namespace("default").unwrap();
    let heavy =
        |at: u64| Draft::new(format!("call {at}")).key(format!("k{at}")).payload(noise(at, 900 << 10));
    for at in 0..12 {
        ns.add(heavy(at)).unwrap();
    }
    // What is written last lies at the end, and keeps the pages before it.
    ns.forget(Forget::names((0..10).map(|at| format!("k{at}")))).unwrap();
    db.close().unwrap();
    let full = length();
    let db = open();
    db.set_policy("storage.shrink = 0.5", Syntax::Toml).unwrap();
    assert_eq!(length(), full, "with the share 1 nothing is given back");
    let reader = db.namespace("default").unwrap();
    let memory = reader.get("k11").unwrap();
    // A handle that others may still use has no say: the file is closed for all.
    db.clone().close().unwrap();
    assert!(full > 3 * length(), "{full} bytes before, {} after", length());
    assert!(reader.get("k11").is_err());
    let db = open();
    let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let ns = db.namespace("default").unwrap();
    assert_eq!(ns.get("k11").unwrap(), memory);
    for at in [10, 11] {
        assert_eq!(ns.payload(format!("k{at}")).unwrap(), Some(noise(at, 900 << 10).into()));
    }
    ns.add("it can be written as before").unwrap();
    db.close().unwrap();
}

/// A file without room doubles for one line. To make it shorter again would take a walk through all of it, for each line anew.
#[test]
fn the_room_of_a_file_that_has_just_doubled_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.oub");
    let length = || std::fs::metadata(&path).unwrap().len();
    let open = || Database::builder().durability(Durability::Fast).open(&path).unwrap();
    let db = open();
    db.set_policy("undo.horizon = \"0s\"", Syntax::Toml).unwrap();
    let ns = db.namespace("default").unwrap();
    let note = |at: u64| Draft::new(format!("note {at}")).key(format!("k{at}")).payload(noise(at, 3 << 10));
    let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    for at in 0..4 {
        ns.add_all((at * 1_000..(at + 1) * 1_000).map(note).collect(), &how).unwrap();
    }
    drop(ns);
    db.compact().unwrap();
    db.close().unwrap();
    let packed = length();
    let lengths = [0, 1, 2].map(|nth| {
        let db = open();
        db.namespace("default").unwrap().add(format!("line {nth}")).unwrap();
        db.close().unwrap();
        length()
    });
    assert!(
        lengths.iter().all(|length| *length > packed + packed / 2),
        "{packed} bytes packed, then {lengths:?}"
    );
    // Whoever replaces many memories writes much, though the rows take as many bytes as before.
    let db = open();
    let ns = db.namespace("default").unwrap();
    ns.forget(Forget::names((0..1_000).map(|at| format!("k{at}")))).unwrap();
    ns.add_all((4_000..5_000).map(note).collect(), &how).unwrap();
    drop(ns);
    db.close().unwrap();
    assert!(length() < packed + packed / 2, "{packed} bytes packed, {} after", length());
    let db = open();
    db.namespace("default")
        .unwrap()
        .forget(Forget::names((1_000..4_700).map(|at| format!("k{at}"))))
        .unwrap();
    db.close().unwrap();
    assert!(packed > 3 * length(), "{packed} bytes before, {} after", length());
}

#[test]
fn a_handle_that_lets_others_read_or_only_reads_gives_nothing_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.oub");
    let length = || std::fs::metadata(&path).unwrap().len();
    let db = Database::builder().durability(Durability::Fast).open(&path).unwrap();
    db.set_policy("storage.shrink = 1.0\nundo.horizon = \"0s\"", Syntax::Toml).unwrap();
    let ns = db.namespace("default").unwrap();
    for at in 0..12 {
        ns.add(Draft::new(format!("call {at}")).key(format!("k{at}")).payload(noise(at, 900 << 10))).unwrap();
    }
    ns.forget(Forget::names((0..11).map(|at| format!("k{at}")))).unwrap();
    db.set_policy("storage.shrink = 0.5\nundo.horizon = \"0s\"", Syntax::Toml).unwrap();
    drop(ns);
    drop(db);
    let full = length();
    Database::builder().shared(true).open(&path).unwrap().close().unwrap();
    Database::builder().read_only(true).open(&path).unwrap().close().unwrap();
    assert!(length() * 10 > full * 9, "{full} bytes before, {} after", length());
    Database::open(&path).unwrap().close().unwrap();
    assert!(full > 3 * length(), "{full} bytes before, {} after", length());
}
