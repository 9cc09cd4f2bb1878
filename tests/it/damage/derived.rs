//! `reindex` makes every row again that follows from others, and takes away what follows from nothing.

use oubliette::report::CheckOptions;

use super::store::{change, open, store, tables};

/// Tables whose rows all follow from rows of other tables, or have a counterpart that says the same.
const DERIVED: [&str; 35] = [
    "partition",
    "partition_name",
    "term",
    "term_name",
    "slot",
    "slot_head",
    "slot_free",
    "slot_dead",
    "graph",
    "graph_head",
    "holder_key",
    "holder_tag",
    "holder_run",
    "junction",
    "junction_back",
    "superseded",
    "journal_subject",
    "tombstone_hash",
    "tombstone_time",
    "by_time",
    "by_fingerprint",
    "due",
    "pending",
    "counter",
    "limbo_time",
    "event_time",
    "event_of",
    "family_key",
    "family_band",
    "series",
    "text_head",
    "text_doc",
    "thread",
    "text_posting",
    "meta_value",
];

/// Of these a key that names nothing can be put beside the others without a value.
const ALL_KEY: [&str; 22] = [
    "holder_key",
    "holder_tag",
    "holder_run",
    "junction",
    "junction_back",
    "superseded",
    "journal_subject",
    "journal_run",
    "tombstone_hash",
    "tombstone_time",
    "by_time",
    "by_fingerprint",
    "due",
    "pending",
    "limbo_time",
    "event_time",
    "event_of",
    "family_key",
    "family_band",
    "series",
    "thread",
    "meta_value",
];

/// Measured as it was: a row of `by_time`, `due` and of most others that was missing stayed so, whatever was run.
#[test]
fn a_derived_row_that_is_missing_or_too_many_is_made_right() {
    let store = store();
    let copy = store.file.with_extension("read");
    std::fs::copy(&store.file, &copy).unwrap();
    let tables = tables(&copy);
    let mut wrong = Vec::new();
    let cases = DERIVED.iter().map(|table| (table, true)).chain(ALL_KEY.iter().map(|table| (table, false)));
    for (number, (table, missing)) in cases.enumerate() {
        let rows = &tables[*table];
        let (key, _) = &rows[number * 7 % rows.len()];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.oub");
        std::fs::copy(&store.file, &path).unwrap();
        change(&path, table, |rows| {
            if missing {
                rows.remove(key.as_slice()).unwrap();
                return;
            }
            let mut stray = key.clone();
            // Ids count up, so another last byte could be that of another row.
            let at = stray.len() - 2;
            stray[at] ^= 0x55;
            rows.insert(stray.as_slice(), [].as_slice()).unwrap();
        });
        let (db, _) = open(&path, store.now);
        let check = || db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
        let what = format!("{table}, {}", if missing { "one missing" } else { "one too many" });
        if check().ok {
            wrong.push(format!("{what}: the check finds nothing"));
        }
        if let Err(why) = db.reindex() {
            wrong.push(format!("{what}: {why}"));
        }
        let report = check();
        if !report.ok {
            wrong.push(format!("{what}: {:#?}", report.findings));
        }
        db.close().unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
