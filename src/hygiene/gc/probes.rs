//! Which past queries ask for what a summary stands for?

use std::collections::BTreeSet;

use crate::error::{Result, sound};
use crate::model::MemoryId;
use crate::policy::Gc;
use crate::store::{NsId, QueryPlace, QueryRow, QueryRows, Snapshot};

/// The past queries that had found one of some memories, the latest first: one of each text, at most `gc.auto_probes`. None
/// where the policy keeps none. One that is damaged is left out.
///
/// # Errors
/// `Corrupted`, where more than single rows is damaged.
pub(crate) fn past_queries(
    rows: &Snapshot,
    ns: NsId,
    sources: &[MemoryId],
    gc: &Gc,
) -> Result<Vec<QueryRow>> {
    let mut places: BTreeSet<QueryPlace> = BTreeSet::new();
    for id in sources.iter().filter(|_| gc.keep_queries && gc.auto_probes > 0) {
        places.extend(rows.queries_of(ns, *id)?);
    }
    let mut found = Vec::with_capacity(places.len());
    for place in places {
        found.extend(sound(rows.query(ns, place))?.flatten().map(|row| (row.at_ms, place, row)));
    }
    found.sort_by_key(|(at_ms, place, _)| std::cmp::Reverse((*at_ms, *place)));
    let (mut texts, mut latest) = (BTreeSet::new(), Vec::new());
    for (.., row) in found {
        if latest.len() < gc.auto_probes as usize && texts.insert(row.text.clone()) {
            latest.push(row);
        }
    }
    Ok(latest)
}
