//! A copy that goes past damage is a whole store, and its report names what was lost.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::Path;

use crate::world::{World, text};
use oubliette::exchange::{Export, Import, LineReader, VectorsTo};
use oubliette::memory::Got;
use oubliette::report::{CheckOptions, CompactReport};
use oubliette::{Database, Kind, MemoryId, NamespaceName};

use super::store::{Store, WAYS, change, damaged, open, overwrite, store, tables, word};
use super::{OF_LARGE_INDEXES, OF_THE_STORE, victim_of};

/// What is wrong with a copy of a store of which one memory at most is lost.
fn wrong_with(db: &Database, store: &Store, lost: &BTreeSet<MemoryId>) -> Vec<String> {
    let mut wrong = Vec::new();
    let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
    if !report.ok {
        wrong.push(format!("the check finds {:#?}", report.findings));
    }
    for (id, at) in store.rows.iter().filter(|(id, _)| !lost.contains(id)) {
        match db.namespace(NamespaceName::default()).unwrap().look_up(id.to_string(), false) {
            Ok(Got::Memory(memory)) if memory.text.contains(&word(*at)) => {}
            other => wrong.push(format!("row {at}: {other:?}")),
        }
    }
    wrong
}

/// Whether a report names a table, and the memory if the row is one's.
fn names(report: &CompactReport, table: &str, victim: Option<MemoryId>) -> bool {
    report.whole
        && report.damaged.iter().any(|row| {
            row.table == table
                && victim.is_none_or(|id| row.id == Some(id) && row.namespace.as_deref() == Some("default"))
        })
}

#[test]
fn a_copy_past_damage_is_a_whole_store() {
    let store = store();
    let copy = store.file.with_extension("read");
    std::fs::copy(&store.file, &copy).unwrap();
    let mut failures = Vec::new();
    for (number, (table, rows)) in tables(&copy).iter().enumerate() {
        if OF_THE_STORE.contains(&table.as_str()) {
            continue;
        }
        // Nothing of the journal is old enough to have been removed.
        let may_be_empty = table == "journal_head" || OF_LARGE_INDEXES.contains(&table.as_str());
        if may_be_empty && rows.is_empty() {
            continue;
        }
        let at = (number * 17 + 3) % rows.len();
        let way = if rows[at].1.is_empty() { WAYS[0] } else { WAYS[number % WAYS.len()] };
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("memory.oub"), folder.path().join("copy.oub"));
        std::fs::copy(&store.file, &path).unwrap();
        overwrite(&path, table, &rows[at].0, &damaged(way, at, rows));
        let (db, _) = open(&path, store.now);
        // Of the statistics alone nothing is lost that a memory says, and its key and tags tell of a lost writer.
        let victim = victim_of(table, &rows[at].0);
        let lost = victim.into_iter().filter(|_| !["access", "holder"].contains(&table.as_str())).collect();
        let mut wrong = Vec::new();
        // A copy has no list of free slots, and compaction takes the dead out of graphs before, and so may mend them.
        let unseen = table.starts_with("slot_") || table.starts_with("graph");
        let is_named = |report: &CompactReport| names(report, table, victim) || unseen && report.whole;
        let compacts = number % 2 == 0;
        match if compacts { db.compact() } else { db.backup(&copy) } {
            Ok(report) if is_named(&report) && compacts => wrong.extend(wrong_with(&db, &store, &lost)),
            Ok(report) if is_named(&report) => {
                let (copy, _) = open(&copy, store.now);
                wrong.extend(wrong_with(&copy, &store, &lost));
                copy.close().unwrap();
            }
            other => wrong.push(format!("{other:?}")),
        }
        let beside = std::fs::read_dir(folder.path()).unwrap().count();
        if beside != if compacts { 1 } else { 2 } {
            wrong.push(format!("{beside} files are left"));
        }
        if !wrong.is_empty() {
            failures.push(format!("{table} row {at} {way}: {}", wrong.join("\n  ")));
        }
        db.close().unwrap();
    }
    assert!(failures.is_empty(), "{} tables: {}", failures.len(), failures.join("\n"));
}

/// What names a memory that can't be read names its tombstone in an export of everything.
#[test]
fn an_import_takes_the_export_of_a_damaged_store() {
    let store = store();
    let copy = store.file.with_extension("read");
    std::fs::copy(&store.file, &copy).unwrap();
    let mut failures = Vec::new();
    let all = tables(&copy);
    for table in ["memory", "vitals", "holder", "limbo", "event"] {
        let rows = &all[table];
        // Of many rows that are alike, some.
        for at in (0..rows.len()).step_by(rows.len().div_ceil(20)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("memory.oub");
            std::fs::copy(&store.file, &path).unwrap();
            overwrite(&path, table, &rows[at].0, &damaged("a bit", at, rows));
            let (db, _) = open(&path, store.now);
            let export = Export { namespaces: vec![NamespaceName::default()], all_states: true };
            let (mut out, snapshot) = (Vec::new(), db.snapshot().unwrap());
            let told =
                export.write(&snapshot, &mut out, "lines", VectorsTo::<Cursor<Vec<u8>>>::Lines).unwrap();
            drop(snapshot);
            db.close().unwrap();
            let fresh = World::new();
            let lines = LineReader::new(&out[..], "lines");
            match Import::default().run(&fresh.db, lines, &mut ()) {
                Ok(done) if done.bad == 0 => fresh.check(),
                other => failures.push(format!("{table} row {at} ({told:?}): {other:?}")),
            }
        }
    }
    assert!(failures.is_empty(), "{} rows: {}", failures.len(), failures.join("\n"));
}

/// A key has no checksum of its own. That of the value covers it, and what is all key follows from other rows.
#[test]
fn one_damaged_byte_of_a_key_loses_nothing() {
    let store = store();
    let copy = store.file.with_extension("keys");
    std::fs::copy(&store.file, &copy).unwrap();
    let mut failures = Vec::new();
    for (number, (table, rows)) in tables(&copy).iter().enumerate() {
        if ["meta", "space", "policy"].contains(&table.as_str()) || rows.is_empty() {
            continue;
        }
        let (key, value) = rows[(number * 17 + 3) % rows.len()].clone();
        let mut other = key.clone();
        other[(number * 5 + 1) % key.len()] ^= [0x01, 0x10, 0x80][number % 3];
        if rows.iter().any(|(key, _)| *key == other) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("memory.oub"), folder.path().join("copy.oub"));
        std::fs::copy(&store.file, &path).unwrap();
        change(&path, table, |rows| {
            rows.remove(key.as_slice()).unwrap();
            rows.insert(other.as_slice(), value.as_slice()).unwrap();
        });
        let (db, _) = open(&path, store.now);
        let unseen = table.starts_with("slot_") || table.starts_with("graph");
        let wrong = match db.backup(&copy) {
            Ok(report) if report.whole && report.lost.is_empty() && report.damaged.is_empty() <= unseen => {
                let (copy, _) = open(&copy, store.now);
                let wrong = wrong_with(&copy, &store, &BTreeSet::new());
                copy.close().unwrap();
                wrong
            }
            other => vec![format!("{other:?}")],
        };
        failures.extend(wrong.into_iter().map(|what| format!("{table} {key:x?} {other:x?}: {what}")));
        db.close().unwrap();
    }
    assert!(failures.is_empty(), "{} tables: {}", failures.len(), failures.join("\n"));
}

/// No holder names the memories from which a memory was made, and two rows tell of each of them. A key that names one which never was
/// is no source: the other row tells the true one.
#[test]
fn a_source_that_never_was_is_a_damaged_key() {
    let mut world = World::new();
    let source = world.add(text("Ann likes tea")).id;
    let mut summary = text("what Ann likes").kind(Kind::Summary);
    summary.sources = Some(vec![source]);
    let summary = world.add(summary).id;
    world.db.clone().close().unwrap();
    let path = world.path();
    let sound = std::fs::read(&path).unwrap();
    let all = tables(&path);
    for table in ["junction", "junction_back"] {
        let of_source = |key: &&Vec<u8>| key.windows(16).any(|part| part == source.as_bytes());
        let key = all[table].iter().map(|(key, _)| key).find(of_source).unwrap();
        let at = key.windows(16).position(|part| part == source.as_bytes()).unwrap();
        for place in at..at + 16 {
            std::fs::write(&path, &sound).unwrap();
            let mut other = key.clone();
            other[place] ^= 0x60;
            change(&path, table, |rows| {
                rows.remove(key.as_slice()).unwrap();
                rows.insert(other.as_slice(), &[][..]).unwrap();
            });
            world.open_again(|builder| builder);
            let told = world.ns.expand(summary).unwrap();
            assert!(told.sources.iter().all(|(id, _)| *id == source || told.damaged.contains(id)));
            let copy = world.beside("copy.oub");
            drop(std::fs::remove_file(&copy));
            let report = world.db.backup(&copy).unwrap();
            assert!(report.whole && report.lost.is_empty(), "{report:?}");
            let (copy, _) = open(&copy, world.now());
            assert!(copy.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap().ok);
            let told = copy.namespace("default").unwrap().expand(summary).unwrap();
            assert_eq!((told.sources, told.damaged), (vec![(source, None)], BTreeSet::new()));
            copy.close().unwrap();
            world.db.reindex().unwrap();
            world.check();
            world.db.clone().close().unwrap();
        }
    }
}

/// The rows of a page that is lost, beside one that can't be read: what had led to them goes as well.
#[test]
fn a_copy_of_a_store_that_misses_rows_is_whole() {
    let store = store();
    let copy = store.file.with_extension("missing");
    std::fs::copy(&store.file, &copy).unwrap();
    let mut failures = Vec::new();
    for table in [
        "vitals",
        "memory",
        "holder",
        "limbo",
        "tombstone",
        "journal",
        "event",
        "family",
        "aggregate",
        "vector",
        "payload",
        "run",
    ] {
        let rows = &tables(&copy)[table];
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("memory.oub"), folder.path().join("copy.oub"));
        std::fs::copy(&store.file, &path).unwrap();
        let gone: Vec<&Vec<u8>> = rows.iter().map(|(key, _)| key).skip(rows.len() / 3).take(7).collect();
        change(&path, table, |rows| {
            gone.iter().for_each(|key| drop(rows.remove(key.as_slice()).unwrap()));
            let key = gone.first().map_or([1].as_slice(), |key| key.as_slice());
            rows.insert(key, [9, 9, 9].as_slice()).unwrap();
        });
        let lost = gone.iter().filter(|_| table != "holder");
        let lost = lost.filter_map(|key| victim_of(table, key)).collect();
        let (db, _) = open(&path, store.now);
        match db.backup(&copy) {
            Ok(report) if report.whole => {
                // A memory that has lost its payload alone stays, and is named.
                if table == "payload" {
                    let id = |key: &[u8]| MemoryId::from_bytes(key[4..20].try_into().unwrap());
                    let all = gone.iter().all(|key| names(&report, table, Some(id(key))));
                    assert!(all && report.lost.is_empty(), "{report:?}");
                }
                let (copy, _) = open(&copy, store.now);
                failures.extend(
                    wrong_with(&copy, &store, &lost).into_iter().map(|what| format!("{table}: {what}")),
                );
                copy.close().unwrap();
            }
            other => failures.push(format!("{table}: {other:?}")),
        }
        db.close().unwrap();
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A page of one table that stands in another: what its keys name is whole, and does not go with it.
#[test]
fn rows_that_stand_in_another_table_take_nothing_along() {
    let store = store();
    let all = tables(&store.file);
    let mut failures = Vec::new();
    let froms = ["memory", "vitals", "journal", "event"];
    // A row under any name is that of a namespace, which is then lost and stays.
    let tos = all.keys().filter(|to| !["namespace", "file"].contains(&to.as_str()));
    let mut pairs: Vec<(&str, &str)> =
        tos.zip(froms.iter().cycle()).map(|(to, from)| (to.as_str(), *from)).collect();
    pairs.extend([("limbo", "memory"), ("limbo", "vitals"), ("tombstone", "vitals"), ("partition", "event")]);
    for (to, from) in pairs.into_iter().filter(|(to, from)| to != from) {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("memory.oub"), folder.path().join("copy.oub"));
        std::fs::copy(&store.file, &path).unwrap();
        let there: BTreeSet<&Vec<u8>> = all[to].iter().map(|(key, _)| key).collect();
        let strays = all[from].iter().filter(|(key, _)| !there.contains(key)).skip(20).take(7);
        change(&path, to, |rows| {
            strays.for_each(|(key, value)| drop(rows.insert(key.as_slice(), value.as_slice()).unwrap()));
        });
        let (db, _) = open(&path, store.now);
        match db.backup(&copy) {
            Ok(report) if report.whole && report.lost.is_empty() => {
                let (copy, _) = open(&copy, store.now);
                let wrong = wrong_with(&copy, &store, &BTreeSet::new());
                failures.extend(wrong.into_iter().map(|what| format!("{from} in {to}: {what}")));
                copy.close().unwrap();
            }
            Ok(report) => {
                failures.push(format!("{from} in {to}: whole {}, lost {:?}", report.whole, report.lost))
            }
            Err(error) => failures.push(format!("{from} in {to}: {error}")),
        }
        db.close().unwrap();
    }
    assert!(failures.is_empty(), "{}: {}", failures.len(), failures.join("\n"));
}

/// Makes the pages with these bytes unreadable in a copy of a file.
fn lose_pages(file: &Path, row: &[u8], copy: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let places: Vec<usize> =
        (0..bytes.len() - row.len()).filter(|at| bytes[*at..].starts_with(row)).collect();
    assert!(!places.is_empty(), "{row:?}");
    for at in places {
        // A page keeps its sort, which a debug build of the key-value store looks at, and has more rows than it can hold.
        let page = &mut bytes[at / 4096 * 4096..][2..4096];
        page.fill(0);
        page[..2].fill(0xff);
    }
    std::fs::write(copy, bytes).unwrap();
}

/// A page of a small table that can't be read ends no check, and so no copy.
#[test]
fn a_lost_page_of_any_table_ends_no_check() {
    let store = store();
    let all = tables(&store.file);
    for table in ["text_head", "slot_head", "graph_head", "term", "event", "aggregate", "limbo", "counter"] {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("memory.oub"), folder.path().join("copy.oub"));
        let (key, value) = &all[table][0];
        lose_pages(&store.file, if value.is_empty() { key } else { value }, &path);
        let (db, _) = open(&path, store.now);
        assert!(!db.check(&CheckOptions::default()).unwrap().ok, "{table}");
        assert!(db.backup(&copy).unwrap().whole, "{table}");
        let (copy, _) = open(&copy, store.now);
        assert_eq!(wrong_with(&copy, &store, &BTreeSet::new()), Vec::<String>::new(), "{table}");
        copy.close().unwrap();
        db.close().unwrap();
    }
}

/// What tells of a dropped namespace belongs to none, and is mended all the same.
#[test]
fn damage_to_what_tells_of_a_dropped_namespace_is_mended() {
    let store = store();
    let (db, _) = open(&store.file, store.now);
    db.namespace("other").unwrap().add("Ann lives in Ghent").unwrap();
    db.drop_namespace("other").unwrap();
    db.close().unwrap();
    let of_none = |table: &str| {
        let rows = tables(&store.file).remove(table).unwrap();
        rows.into_iter().find(|(key, _)| key.starts_with(&[0; 4])).unwrap()
    };
    for table in ["tombstone", "journal", "tombstone_hash", "tombstone_time"] {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("memory.oub"), folder.path().join("copy.oub"));
        std::fs::copy(&store.file, &path).unwrap();
        let (mut key, mut value) = of_none(table);
        change(&path, table, |rows| {
            rows.remove(key.as_slice()).unwrap();
            match value.last_mut() {
                Some(last) => *last ^= 1,
                None => key[5] ^= 1,
            }
            rows.insert(key.as_slice(), value.as_slice()).unwrap();
        });
        let (db, _) = open(&path, store.now);
        let report = db.backup(&copy).unwrap();
        assert!(report.whole && !report.damaged.is_empty(), "{table}: {report:?}");
        db.close().unwrap();
        let (copy, _) = open(&copy, store.now);
        assert_eq!(wrong_with(&copy, &store, &BTreeSet::new()), Vec::<String>::new(), "{table}");
        copy.close().unwrap();
    }
}

/// A page of the file that can't be read stops no export: every memory that can be read is in it, and the report says that
/// something is missing.
#[test]
fn a_lost_page_of_what_stands_beside_the_memories_stops_no_export() {
    let store = store();
    let all = tables(&store.file);
    let write = |path: &Path| {
        let (db, _) = open(path, store.now);
        let (mut out, snapshot) = (Vec::new(), db.snapshot().unwrap());
        let export = Export { namespaces: vec![NamespaceName::default()], all_states: true };
        let told = export.write(&snapshot, &mut out, "lines", VectorsTo::<Cursor<Vec<u8>>>::Lines);
        drop(snapshot);
        db.close().unwrap();
        told
    };
    let whole = write(&store.file).unwrap();
    assert!(whole.is_whole());
    let mut failures = Vec::new();
    for table in [
        "aggregate",
        "by_time",
        "context",
        "context_time",
        "event",
        "event_of",
        "event_time",
        "family",
        "goal",
        "holder_run",
        "journal",
        "journal_run",
        "run",
        "superseded",
        "tombstone",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.oub");
        let rows = &all[table];
        for (key, value) in [&rows[0], &rows[rows.len() / 2], &rows[rows.len() - 1]] {
            lose_pages(&store.file, if value.is_empty() { key } else { value }, &path);
            match write(&path) {
                // A memory in limbo is nothing without its tombstone.
                Ok(told)
                    if table == "tombstone"
                        && told.memories + told.damaged.len() as u64 >= whole.memories => {}
                Ok(told) if told.memories == whole.memories && !told.is_whole() => {}
                other => failures.push(format!("{table}: {other:?}")),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
