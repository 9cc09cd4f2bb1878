//! The table of fields against its document, and a value of each field for the tests of other rooms.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Value, json};

use super::{Fields, documented};
use crate::model::{MemoryId, Parts};

/// A JSON value for the field, other than its default.
pub(crate) fn sample(name: &str, number: u8) -> Value {
    let at = format!("2020-01-02T00:{:02}:{:02}Z", number / 60, number % 60);
    let values = [
        json!(format!("text {number}")),
        json!(0.25),
        json!(number),
        json!(true),
        json!(at),
        json!(MemoryId::from_bytes([number; 16])),
        json!([MemoryId::from_bytes([number; 16])]),
        json!([format!("point {number}")]),
        json!({ "of": number }),
        json!({ "start": at, "end": at }),
        json!([{ "type": "image/png", "size": number }]),
        json!([{ "url": format!("https://example.org/{number}") }]),
        json!("message"),
        json!("working"),
        json!("core"),
        json!("bot"),
    ];
    let fits = |value: &Value| {
        let mut fields = Fields::default();
        let is_set = fields.set_json(name, value.clone());
        let mut parts = Parts::defaults().clone();
        parts.apply(&fields);
        is_set.is_ok() && fields.check().is_ok() && parts != *Parts::defaults()
    };
    values.into_iter().find(fits).unwrap_or_else(|| panic!("{name} needs a sample of its type"))
}

/// Whether the table says that the journal tells of the field.
pub(crate) fn is_journaled(name: &str) -> bool {
    documented().iter().any(|row| row[1] == name && row[6].contains("journaled"))
}

#[test]
fn numbers_of_fields_ascend_within_a_part_and_leave_room_for_what_has_no_row() {
    let rows: Vec<(String, u8)> =
        documented().into_iter().map(|row| (row[5].clone(), row[0].parse().unwrap())).collect();
    let ascend = |rows: &[(String, u8)]| rows[0].0 != rows[1].0 || rows[0].1 < rows[1].1;
    assert!(rows.windows(2).all(ascend) && rows.iter().all(|(_, number)| *number < 240), "{rows:?}");
    let numbers: BTreeSet<u8> = Fields::NAMES.iter().map(|(number, _)| *number).collect();
    let names: BTreeSet<&str> = Fields::NAMES.iter().map(|(_, name)| *name).collect();
    assert_eq!((numbers.len(), names.len()), (rows.len(), rows.len()));
}

/// A new memory has the defaults that the table gives: nothing but them is given by giving them.
#[test]
fn a_new_memory_has_the_defaults_of_the_table() {
    let mut parts = Parts::defaults().clone();
    parts.apply(&super::defaults());
    assert_eq!(parts, *Parts::defaults());
}

#[test]
fn the_document_of_the_fields_is_that_of_the_table() {
    let mut table = String::new();
    for [number, name, ty, default, bound, part, rest, doc] in documented() {
        // Of what came to be at an unknown time the transaction gives the instant.
        let default = if default.contains("1970") { "now" } else { default.as_str() };
        writeln!(
            table,
            "| {number} | `{name}` | `{ty}` | `{default}` | {bound} | {part} | {rest} | {} |",
            doc.trim()
        )
        .unwrap();
    }
    let document = include_str!("../../../docs/fields.md");
    assert!(document.ends_with(&table), "docs/fields.md must end with this table:\n{table}");
}
