//! `changes`: what changed since a host last asked.

use oubliette::Error;
use serde_json::json;

use crate::arguments::ChangesOptions;
use crate::output::{Done, Output};
use crate::place::{Access, Place};
use crate::story;

/// `changes`.
pub(crate) fn run(options: &ChangesOptions, place: &Place, output: Output<'_>) -> Done {
    let namespace = place.namespace()?;
    let database = place.open(Access::Read)?;
    place.unknown_namespace(&database.namespaces()?, output)?;
    let team = database.namespace(namespace)?;
    let page = match (team.changes(options.since.unwrap_or(0), options.limit), options.since) {
        // Whoever has no cursor yet begins with what is kept.
        (Err(Error::CursorTooOld { oldest }), None) => {
            output.remark(
                "Earlier changes are no longer kept (journal.max_age and journal.max_rows of the policy)",
            );
            team.changes(oldest, options.limit)?
        }
        (page, _) => page?,
    };
    if output.json {
        return output.document(&json!(page));
    }
    let rows = page.changes.iter().map(|change| {
        let mut row = vec![
            change.seq.to_string(),
            story::when(change.at, &place.present()),
            change.op.to_string(),
            change.id.map(|id| id.to_string()).unwrap_or_default(),
            change.fields.join(" "),
        ];
        if output.verbose {
            row.push(change.actor.to_string());
            row.push(change.run.map(|run| run.to_string()).unwrap_or_default());
        }
        row
    });
    let heads = ["seq", "when", "what", "id", "fields", "by", "run"];
    let heads = if output.verbose { &heads } else { &heads[..5] };
    output.list(heads, rows.collect(), "Nothing has changed")?;
    let when = if page.changes.len() < options.limit { "later" } else { "more" };
    output.line(&format!("{when}: --since {}", page.next))
}
