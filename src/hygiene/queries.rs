//! Which queries did searches ask since the last commit? They are kept as questions for summaries, where the policy wants it.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Result, sound};
use crate::ledger::Ledger;
use crate::model::{MemoryId, Time};
use crate::policy::Policy;
use crate::store::{NsId, PartId, QueryRow, Rows};

/// Queries that a handle has in mind, the latest ones.
const NOTED_MAX: usize = 256;

/// A query that a search has asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NotedQuery {
    /// When it was asked.
    pub(crate) at: Time,
    /// Its words.
    pub(crate) text: String,
    /// The space of the vector.
    pub(crate) space: u16,
    /// Its unit vector; empty where it has none.
    pub(crate) vector: Vec<f32>,
    /// What it has found, the best first.
    pub(crate) hits: Vec<FoundText>,
}

/// A memory that a query has found, by its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundText {
    pub(crate) id: MemoryId,
    /// The fingerprint of the text that was found.
    pub(crate) fingerprint: Option<[u8; 16]>,
}

/// The queries that a handle has noted and that no commit holds yet. A crash loses them.
#[derive(Debug, Default)]
pub(crate) struct Queries(Mutex<VecDeque<(NsId, NotedQuery)>>);

impl Queries {
    /// Notes a query, in the place of the same words before. Of too many the earliest goes: a ring has the latest ones, too.
    pub(crate) fn note(&self, ns: NsId, query: NotedQuery) {
        let mut all = self.0.lock();
        all.retain(|(of, other)| *of != ns || other.text != query.text);
        all.push_back((ns, query));
        if all.len() > NOTED_MAX {
            all.pop_front();
        }
    }

    /// Number of the queries of a namespace, or of all.
    pub(crate) fn len(&self, ns: Option<NsId>) -> usize {
        self.0.lock().iter().filter(|(of, _)| ns.is_none_or(|ns| ns == *of)).count()
    }

    /// Hands out at most `most` queries, the earliest first.
    pub(crate) fn take(self: &Arc<Self>, most: usize) -> TakenQueries {
        let mut all = self.0.lock();
        let most = most.min(all.len());
        TakenQueries { from: Arc::clone(self), entries: all.drain(..most).collect() }
    }
}

/// Queries that a transaction is to keep. What no commit took over goes back when this goes.
#[derive(Debug)]
pub(crate) struct TakenQueries {
    from: Arc<Queries>,
    entries: Vec<(NsId, NotedQuery)>,
}

impl TakenQueries {
    /// The queries, the earliest first.
    pub(crate) fn entries(&self) -> &[(NsId, NotedQuery)] {
        &self.entries
    }

    /// Whether there is nothing to keep.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A commit holds the queries, or none can.
    pub(crate) fn is_settled(&mut self) {
        self.entries.clear();
    }
}

impl Drop for TakenQueries {
    fn drop(&mut self) {
        let mut all = self.from.0.lock();
        // They were noted before those that are there, and had their room.
        for entry in self.entries.drain(..).rev() {
            all.push_front(entry);
        }
    }
}

/// Keeps those of some queries that are of a namespace, if the policy wants queries to be kept. A query is given up when
/// something that it had found is gone meanwhile, or has another text: its words may tell of what was forgotten.
///
/// # Errors
/// `Corrupted` where more than single rows is damaged.
pub(crate) fn keep_queries(
    ledger: &mut Ledger<'_, '_>,
    ns: NsId,
    policy: &Policy,
    taken: &TakenQueries,
) -> Result<()> {
    if !policy.gc.keep_queries {
        return Ok(());
    }
    for (_, query) in taken.entries().iter().filter(|(of, _)| *of == ns) {
        if let Some(part) = part_of(ledger, ns, query)? {
            let row = QueryRow {
                at_ms: query.at.as_millis(),
                text: query.text.clone(),
                space: query.space,
                vector: query.vector.clone(),
                hits: query.hits.iter().map(|hit| hit.id).collect(),
            };
            ledger.keep_query(ns, part, &row, policy.gc.query_log)?;
        }
    }
    Ok(())
}

/// The partition of the best hit of a query; none where a hit is not as it was found.
fn part_of(ledger: &Ledger<'_, '_>, ns: NsId, query: &NotedQuery) -> Result<Option<PartId>> {
    let mut part = None;
    for hit in &query.hits {
        let vitals = sound(ledger.tx.vitals(ns, hit.id))?.flatten();
        let same =
            vitals.filter(|row| row.times.removed_at.is_none() && row.place.fingerprint == hit.fingerprint);
        let Some(vitals) = same else { return Ok(None) };
        part = part.or(Some(PartId(vitals.place.partition)));
    }
    Ok(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> NotedQuery {
        let hits = vec![FoundText { id: MemoryId::from_bytes([1; 16]), fingerprint: None }];
        NotedQuery { at: Time::EPOCH, text: text.to_owned(), space: 0, vector: Vec::new(), hits }
    }

    fn texts(taken: &TakenQueries) -> Vec<&str> {
        taken.entries().iter().map(|(_, query)| query.text.as_str()).collect()
    }

    #[test]
    fn the_latest_stay_and_each_text_once() {
        let all = Arc::new(Queries::default());
        for number in 0..NOTED_MAX + 2 {
            all.note(NsId(1), query(&number.to_string()));
        }
        all.note(NsId(1), query("7"));
        all.note(NsId(2), query("7"));
        assert_eq!(
            (all.len(None), all.len(Some(NsId(1))), all.len(Some(NsId(2)))),
            (NOTED_MAX, NOTED_MAX - 1, 1)
        );
        let mut first = all.take(5);
        assert_eq!(texts(&first), ["3", "4", "5", "6", "8"]);
        first.is_settled();
        assert!(first.is_empty());
    }

    #[test]
    fn what_no_commit_holds_goes_back_to_its_place() {
        let all = Arc::new(Queries::default());
        for text in ["a", "b", "c"] {
            all.note(NsId(1), query(text));
        }
        assert_eq!(texts(&all.take(2)), ["a", "b"]);
        all.note(NsId(1), query("d"));
        assert_eq!(texts(&all.take(9)), ["a", "b", "c", "d"]);
    }
}
