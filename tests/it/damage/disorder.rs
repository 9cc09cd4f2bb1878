//! A damaged key that is out of order: the row under it may be lost, and no other is.

use std::path::Path;

use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{AuthorKind, Expiry, Got};
use oubliette::report::CheckOptions;
use oubliette::{Database, Draft, Effort, NamespaceName, Patch, Query, Scope, WriteOptions};

use super::store::{message, rot_key, tables, vector};

/// The bytes of rows that one transaction of a copy takes.
const SLICE_BYTES: usize = 4 << 20;

/// What the rows of a table hang on is the last key of a slice: rows that it seems to stand behind were left out.
#[test]
fn a_copy_takes_the_rows_behind_a_damaged_key_at_the_end_of_a_slice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.oub");
    let open = || Database::builder().cache_bytes(4 << 20).open(&path).unwrap();
    let name = NamespaceName::default();
    let db = open();
    let text = |at: usize| format!("note {at} {}", "of many words ".repeat(7_000));
    for at in 0..60 {
        db.namespace(&name).unwrap().add(Draft::new(text(at)).key(format!("k{at}"))).unwrap();
    }
    db.close().unwrap();
    let mut bytes = 0;
    let rows = &tables(&path)["memory"];
    let last = rows.iter().position(|(key, value)| {
        bytes += key.len() + value.len();
        bytes >= SLICE_BYTES
    });
    rot_key(&path, "memory", &rows[last.expect("more than a slice")].0, 4, 0x7f);
    let db = open();
    let report = db.compact().unwrap();
    assert!(report.whole && report.damaged.iter().any(|row| row.table == "memory"), "{report:?}");
    let ns = db.namespace(&name).unwrap();
    for at in 0..60 {
        let got = ns.look_up(format!("k{at}"), false).unwrap();
        assert!(matches!(got, Got::Memory(memory) if memory.text == text(at)), "row {at}");
    }
    assert!(db.check(&CheckOptions::default()).unwrap().ok);
    db.close().unwrap();
}

/// What a drop had read to the end had no end in its order: it removed nothing, again and again, and so did whoever opened the
/// file next.
#[test]
fn a_drop_goes_past_keys_that_are_out_of_order() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole.oub"), folder.path().join("memory.oub"));
    let open = |path: &Path| Database::builder().cache_bytes(4 << 20).open(path).unwrap();
    let db = open(&whole);
    for (name, at) in (0..8).flat_map(|at| [("went", at), ("stays", at)]) {
        db.namespace(name).unwrap().add(Draft::new(format!("note {at}")).key(format!("k{at}"))).unwrap();
    }
    db.close().unwrap();
    for table in ["vitals", "holder_key"] {
        let rows = tables(&whole).remove(table).unwrap();
        let first = rows.iter().filter(|(key, _)| key[..4] == rows[0].0[..4]).map(|(key, _)| key);
        for (key, at, byte) in first.flat_map(|key| [(key, 0, 0x7f), (key, 4, 0xff), (key, 4, 0)]) {
            std::fs::copy(&whole, &path).unwrap();
            rot_key(&path, table, key, at, byte);
            let db = open(&path);
            let dropped = db.drop_namespace("went");
            let what = format!("{table} {key:x?} {at} {byte}: {dropped:?}");
            assert!(dropped.is_ok(), "{what}");
            for at in 0..8 {
                let got = db.namespace("stays").unwrap().look_up(format!("k{at}"), false);
                assert!(matches!(got, Ok(Got::Memory(_))), "{what}");
            }
            db.close().unwrap();
            open(&path).close().unwrap();
            // A row whose key says another namespace may stay.
            // The one whose key says another namespace may stay.
            assert!(tables(&path)[table].len() <= if at == 0 { 9 } else { 8 }, "{what}");
        }
    }
}

/// Passes that read page by page went on behind the key that they had read last, which led them back.
#[test]
fn passes_come_to_an_end_whatever_key_is_out_of_order() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole.oub"), folder.path().join("memory.oub"));
    let db = Database::open(&whole).unwrap();
    let ns = db.namespace("team").unwrap();
    for at in 0..8 {
        ns.add(Draft::new(format!("note {at}")).key(format!("k{at}")).vector(vector(at))).unwrap();
    }
    db.close().unwrap();
    let rows = tables(&whole).remove("vitals").unwrap();
    for (nth, byte) in [(0, 0xff), (3, 0xff), (3, 0), (7, 0)] {
        std::fs::copy(&whole, &path).unwrap();
        rot_key(&path, "vitals", &rows[nth].0, 6, byte);
        let db = Database::open(&path).unwrap();
        let passes = [Pass::VectorDuplicates, Pass::Cluster, Pass::Collapse, Pass::Supersession];
        for dry_run in [true, false] {
            let options = MaintainOptions { dry_run, ..MaintainOptions::default() }.passes(passes);
            let done = db.maintain_with(&options);
            assert!(done.is_ok(), "{nth} {byte}: {done:?}");
            let told = db.fsck(dry_run);
            assert!(told.is_ok(), "{nth} {byte}: {told:?}");
        }
        db.close().unwrap();
    }
}

/// The rows that an import had brought were read again and again, and one of them could not go.
#[test]
fn an_undo_goes_past_damaged_keys_of_the_rows_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole.oub"), folder.path().join("memory.oub"));
    let db = Database::open(&whole).unwrap();
    let ns = db.namespace("team").unwrap();
    let run = ns.start_import().unwrap();
    let how = WriteOptions { run: Some(run), ..WriteOptions::default() };
    let drafts = (0..8).map(|at| Draft::new(format!("note {at}")).key(format!("k{at}")));
    let messages = (0..4).map(|at| message(AuthorKind::Human, &format!("question {at} of the day?")));
    ns.add_all(drafts.chain(messages).collect(), &how).unwrap();
    db.close().unwrap();
    for (table, byte) in [("holder_run", 0xff), ("holder_run", 0), ("event_of", 0xff), ("event_of", 0)] {
        let rows = tables(&whole).remove(table).unwrap();
        for nth in [0, rows.len() / 2, rows.len() - 1] {
            std::fs::copy(&whole, &path).unwrap();
            // A byte of the id at the end, behind namespace and run.
            rot_key(&path, table, &rows[nth].0, 30, byte);
            let db = Database::open(&path).unwrap();
            let undone = db.namespace("team").unwrap().undo(run).unwrap();
            let told = undone.lost.iter().any(|lost| lost.contains("out of order"));
            assert!(told || table == "event_of", "{table} {nth}: {undone:?}");
            assert!(db.namespace("team").unwrap().undo(run).unwrap().already, "{table} {nth}");
            db.close().unwrap();
        }
    }
}

/// An instant that no memory has stayed on the list, and each call applied it ten thousand times.
#[test]
fn an_instant_that_no_memory_has_leaves_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.oub");
    let db = Database::open(&path).unwrap();
    let ns = db.namespace("team").unwrap();
    for at in 0..3 {
        let end = "2090-01-01T00:00:00Z".parse().unwrap();
        ns.add(Draft::new(format!("note {at}")).expiry(Expiry::At(end))).unwrap();
    }
    db.close().unwrap();
    let due = tables(&path).remove("due").unwrap();
    // The instant stands behind the namespace.
    rot_key(&path, "due", &due[1].0, 5, 0);
    let db = Database::open(&path).unwrap();
    db.stats().unwrap();
    db.close().unwrap();
    assert_eq!(tables(&path)["due"], due, "the memory has its own instant again");
}

/// An index that nobody has, because the key of its head is damaged, kept everybody from adding and from mending.
#[test]
fn stray_derived_rows_keep_nobody_from_writing() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole.oub"), folder.path().join("memory.oub"));
    let db = Database::open(&whole).unwrap();
    for name in ["team", "other"] {
        let ns = db.namespace(name).unwrap();
        for at in 0..8 {
            let draft = Draft::new(format!("note {at}")).key(format!("k{at}")).vector(vector(at));
            ns.add(draft.agent("scout").metadata(serde_json::json!({ "room": at }))).unwrap();
        }
        ns.declare_index("room").unwrap();
    }
    db.close().unwrap();
    for (table, at, byte) in [
        ("slot_head", 9, 0x7f),
        ("slot_head", 5, 0x7f),
        ("meta_key", 5, 0xff),
        ("counter", 10, 0xff),
        ("partition_name", 7, 0x7f),
    ] {
        std::fs::copy(&whole, &path).unwrap();
        let key = tables(&path)[table][0].0.clone();
        rot_key(&path, table, &key, at.min(key.len() - 1), byte);
        let db = Database::open(&path).unwrap();
        for (name, step) in [("team", 20), ("other", 30), ("team", 40)] {
            let (ns, what) = (db.namespace(name).unwrap(), format!("{table} {key:x?} {name}"));
            let got = ns.get("k3").map(|got| got.is_some());
            assert!(matches!(got, Ok(true)), "{what}: {got:?}");
            let draft = Draft::new(format!("note {step}")).agent("scout").vector(vector(step));
            let added = ns.add(draft);
            assert!(added.is_ok(), "{what}: {added:?}");
            let done = ns.update("k4", Patch { tags: Some(vec![format!("t{step}")]), ..Patch::default() });
            assert!(done.is_ok(), "{what}: {done:?}");
            let done = db.stats();
            assert!(done.is_ok(), "{what}: {done:?}");
            let done = db.maintain();
            assert!(done.is_ok(), "{what}: {done:?}");
            let query = Query::vector(vector(2)).scope(Scope::Any).k(1).effort(Effort::Exact);
            let found = ns.search(query).map(|found| found.hits.len());
            assert!(matches!(found, Ok(1)), "{what}: {found:?}");
        }
        // A copy gives each row its key back: no vector is lost.
        let copied = db.compact();
        assert!(matches!(&copied, Ok(report) if report.whole), "{table}: {copied:?}");
        let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
        assert!(report.ok, "{table}: {report:?}");
        assert_eq!(db.stats().unwrap().pending, 0, "{table}");
        db.close().unwrap();
    }
}

/// Compaction listed the indexes by their heads: without its head, all vectors of an index were left out of the copy.
#[test]
fn a_copy_has_the_vectors_of_an_index_whose_head_is_astray() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole.oub"), folder.path().join("memory.oub"));
    let db = Database::open(&whole).unwrap();
    for (name, at) in (0..8).flat_map(|at| [("other", at), ("team", at)]) {
        db.namespace(name).unwrap().add(Draft::new(format!("note {at}")).vector(vector(at))).unwrap();
    }
    db.close().unwrap();
    let heads = tables(&whole).remove("slot_head").unwrap();
    for (nth, at, byte) in [(0, 9, 0x7f), (1, 9, 0x7f), (1, 5, 0x7f), (0, 0, 0x7f), (1, 3, 0)] {
        std::fs::copy(&whole, &path).unwrap();
        rot_key(&path, "slot_head", &heads[nth].0, at, byte);
        let db = Database::open(&path).unwrap();
        let copied = db.compact();
        assert!(matches!(&copied, Ok(report) if report.whole), "{nth} {at}: {copied:?}");
        for (name, step) in (0..8).flat_map(|step| [("team", step), ("other", step)]) {
            let query = Query::vector(vector(step)).k(1).effort(Effort::Exact);
            let found = db.namespace(name).unwrap().search(query).unwrap();
            assert_eq!(found.hits[0].text, format!("note {step}"), "{nth} {at}");
        }
        let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
        assert!(report.ok, "{nth} {at}: {report:?}");
        db.close().unwrap();
    }
}
