//! The rows of the store as a whole have no second copy: without one of them the file says so when it is opened, or all that
//! does not need it goes on.

use std::io::Cursor;

use oubliette::exchange::{Export, VectorsTo};
use oubliette::policy::Syntax;
use oubliette::report::CheckOptions;
use oubliette::{Database, Draft, ErrorKind, Forget, NamespaceName, Query};

use super::OF_THE_STORE;
use super::store::{WAYS, damaged, overwrite, tables};
use crate::world::{World, axis};

/// What is left without a row.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Left {
    /// The file is not opened.
    Nothing,
    /// What was written can be read by its text, and copied: how long vectors are is not known, so nothing is written.
    Texts,
    /// Everything but one namespace.
    Others,
    /// Everything.
    All,
}

/// What is left without each row of a store with two namespaces, two policies and one space, in the order of the keys.
const LEFT: [(&str, &[Left]); 4] = [
    // `clock`, `identity` and `size`: numbers that are not to be given out twice; the secret of every hash; a sum.
    ("meta", &[Left::Nothing, Left::Nothing, Left::All]),
    // `default` and `other`.
    ("namespace", &[Left::Others, Left::All]),
    // The first is in force no more.
    ("policy", &[Left::All, Left::Nothing]),
    ("space", &[Left::Texts]),
];

/// Works in a namespace of one memory, and says what fails.
fn work(db: &Database, ns: &NamespaceName, vectors: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut note = |what: &str, done: oubliette::Result<bool>| match done {
        Ok(true) => {}
        Ok(false) => wrong.push(format!("{what}: nothing")),
        Err(why) => wrong.push(format!("{what}: {why}")),
    };
    note("get", db.namespace(ns).unwrap().look_up("k", false).map(|got| got.into_memory().is_some()));
    note(
        "words",
        db.namespace(ns).unwrap().search(Query::text("harbour")).map(|found| found.hits.len() == 1),
    );
    if vectors {
        note("add", db.namespace(ns).unwrap().add(Draft::new("another text").key("more")).map(|_| true));
        note(
            "forget",
            db.namespace(ns).unwrap().forget(Forget::names(["more"])).map(|gone| gone.forgotten == 1),
        );
        note("maintain", db.maintain().map(|_| true));
        note(
            "vector",
            db.namespace(ns).unwrap().search(Query::vector(axis(0))).map(|found| found.hits.len() == 1),
        );
        note(
            "add with a vector",
            db.namespace(ns).unwrap().add(Draft::new("a third text").vector(axis(1))).map(|_| true),
        );
    }
    note("stats", db.stats().map(|_| true));
    let mut out = Vec::new();
    let to = VectorsTo::<Cursor<Vec<u8>>>::Nowhere;
    let export = Export { namespaces: vec![ns.clone()], all_states: true };
    let written = db.snapshot().and_then(|snapshot| export.write(&snapshot, &mut out, "lines", to));
    note("export", written.map(|report| report.memories >= 1));
    note("backup", db.backup(db.path().with_extension("copy")).map(|_| true));
    wrong
}

#[test]
fn a_damaged_row_of_the_store_is_told_or_missed_by_nobody_else() {
    let mut world = World::new();
    let other: NamespaceName = "other".parse().unwrap();
    for days in [9, 8] {
        world.db.set_policy(&format!("[undo]\nhorizon = \"{days}d\""), Syntax::Toml).unwrap();
    }
    for ns in [world.ns.name(), &other] {
        world
            .db
            .namespace(ns)
            .unwrap()
            .add(Draft::new("lights of the harbour").key("k").vector(axis(0)))
            .unwrap();
    }
    world.reopen();
    world.db.clone().close().unwrap();
    assert_eq!(LEFT.map(|(table, _)| table).as_slice(), ["meta", "namespace", "policy", "space"]);
    assert!(LEFT.iter().all(|(table, _)| OF_THE_STORE.contains(table)));
    let all = tables(&world.path());
    let sound = std::fs::read(world.path()).unwrap();
    let mut wrong = Vec::new();
    for (table, left) in LEFT {
        let rows = &all[table];
        assert_eq!(rows.len(), left.len(), "{table}");
        for (at, left) in left.iter().enumerate() {
            for way in WAYS {
                let path = world.path();
                let _ = std::fs::remove_file(path.with_extension("copy"));
                std::fs::write(&path, &sound).unwrap();
                overwrite(&path, table, &rows[at].0, &damaged(way, at, rows));
                let what = format!("{table} {} {way}", String::from_utf8_lossy(&rows[at].0));
                let db = match world.builder().open(&path) {
                    Ok(db) => db,
                    Err(why) => {
                        let told = why.kind() == ErrorKind::Corrupted && why.to_string().contains(table);
                        if *left != Left::Nothing || !told {
                            wrong.push(format!("{what}: open: {why}"));
                        }
                        continue;
                    }
                };
                if *left == Left::Nothing {
                    wrong.push(format!("{what}: it is opened"));
                }
                let vectors = *left != Left::Texts;
                if *left == Left::Others {
                    let why =
                        db.namespace(world.ns.name()).unwrap().look_up("k", false).map(|_| ()).unwrap_err();
                    if why.kind() != ErrorKind::Corrupted {
                        wrong.push(format!("{what}: get: {why}"));
                    }
                } else {
                    wrong.extend(
                        work(&db, world.ns.name(), vectors).into_iter().map(|why| format!("{what}: {why}")),
                    );
                    let _ = std::fs::remove_file(path.with_extension("copy"));
                }
                if table != "namespace" || at == 0 {
                    wrong.extend(work(&db, &other, vectors).into_iter().map(|why| format!("{what}: {why}")));
                }
                let found = db.check(&CheckOptions::default()).unwrap();
                if found.findings.iter().all(|finding| finding.table != table) && rows[at].0 != b"size" {
                    wrong.push(format!("{what}: the check finds {:?}", found.findings));
                }
                db.close().unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
