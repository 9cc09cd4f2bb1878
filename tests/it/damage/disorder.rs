//! A damaged key that is out of order: the row under it may be lost, and no other is.

use oubliette::memory::Got;
use oubliette::report::CheckOptions;
use oubliette::{Database, Draft, NamespaceName};

use super::store::{rot_key, tables};

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
