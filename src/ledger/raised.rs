//! What a row has of the rows that it merges, for the journal and for the way back.

use serde_json::json;

use crate::model::{Delta, Vitals};

/// The field that says from when on a memory is true.
pub(super) const VALID_FROM: &str = "valid_from";

/// What stands before the name of a field in the journal row of a superseded memory, where the field is of the row that took
/// its place.
pub(crate) const OF_THE_OTHER: &str = "by.";

/// What a row that takes another one in has of it beside holders and counts, and gives back when the other returns: the
/// longest life, the most durable tier, the latest times.
pub(super) fn raised(before: &Vitals, after: &Vitals) -> Vec<Delta> {
    let shown = |vitals: &Vitals| {
        [
            ("tier", json!(vitals.tier)),
            ("expires_at", json!(vitals.times.expires_at)),
            ("expires_by", json!(vitals.expires_by)),
            ("happened_at", json!(vitals.happened_at)),
            ("last_reinforced_at", json!(vitals.last_reinforced_at)),
        ]
    };
    let pairs = shown(before).into_iter().zip(shown(after));
    pairs
        .filter(|((_, before), (_, after))| before != after)
        .map(|((field, before), (_, after))| Delta { field: field.to_owned(), before, after })
        .collect()
}
