//! `changes`: what changed since a host last asked.

use serde_json::json;

use crate::arguments::ChangesOptions;
use crate::output::{Done, Output};
use crate::place::{Access, Place};

/// `changes`.
pub(crate) fn run(options: &ChangesOptions, place: &Place, output: Output<'_>) -> Done {
    let namespace = place.namespace()?;
    let page = place.open(Access::Read)?.namespace(namespace)?.changes(options.since, options.limit)?;
    if output.json {
        return output.document(&json!(page));
    }
    let rows = page.changes.iter().map(|change| {
        vec![
            change.seq.to_string(),
            change.at.to_string(),
            change.op.to_string(),
            change.id.map(|id| id.to_string()).unwrap_or_default(),
            change.fields.join(" "),
        ]
    });
    output.list(&["seq", "at", "op", "id", "fields"], rows.collect(), "Nothing has changed")?;
    output.line(&format!("more: --since {}", page.next))
}
