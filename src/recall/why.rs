//! Why a search finds a memory, or why it does not.

use serde_json::json;

use crate::error::Result;
use crate::model::{Filter, Hit, MemoryId, Query, Signals, State};
use crate::policy;
use crate::recall::Reader;
use crate::recall::matching::Matcher;
use crate::recall::read::Named;

/// The fate of a memory in a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// The memory.
    pub id: MemoryId,
    /// The state at the instant of the search: live if the memory was visible then, and else the state of now.
    pub state: State,
    /// The place among the hits and those that are skipped, from 1; none if the memory is no hit.
    pub rank: Option<usize>,
    /// The score; none if no query could find the memory: it is not visible, lies elsewhere, or is left out
    /// by the filter.
    pub score: Option<f32>,
    /// What the score is made of.
    pub signals: Signals,
    /// The score of the last hit; none if there are fewer hits than requested.
    pub least: Option<f32>,
    /// The reason in a word: `hit`, `not_visible`, `other_partition`, `filter`, `nothing_in_common` (neither the
    /// memory nor its neighbours have a word of the query, and there is no vector), `below_min_score`, `skipped` (the
    /// offset of the query skips it), `damaged` (its row of the index can't be read, which `reindex` mends), or
    /// `others_are_better`.
    pub reason: &'static str,
}

impl Reader<'_> {
    /// Why a query finds a memory by id or key, or does not.
    ///
    /// # Errors
    /// `NotFound`, and those of [`Reader::search`].
    pub(crate) fn why(&self, query: &Query, name: &str, weights: &policy::Recall) -> Result<Why> {
        let reader = self.at(&query.at)?;
        let whole = Query { offset: 0, k: query.depth(), ..query.clone() };
        let found = self.search(&whole, weights)?.hits;
        let Some(ns) = self.ns else { return Err(self.not_found(name)) };
        // A key means the memory that had it then.
        let then = if reader.past.is_some() { reader.seen_by_key(ns, name)? } else { None };
        let named = match then {
            Some(found) => Some(Named::Row(found.id, Box::new(found.vitals), None)),
            None => self.resolve(name)?,
        };
        let Some(named) = named else { return Err(self.not_found(name)) };
        let least = found.get(whole.k - 1).map(|hit| hit.score);
        let (id, vitals) = match named {
            Named::Row(id, vitals, _) => (id, vitals),
            Named::Gone(tombstone) => {
                let (id, state, signals) = (tombstone.id, State::Tombstoned, Signals::default());
                return Ok(Why { id, state, rank: None, score: None, signals, least, reason: "not_visible" });
            }
        };
        // Of an instant of the past nothing is kept but what was visible then.
        let was_live = reader.past.is_some() && reader.sees(id, &vitals)?;
        let mut why = Why {
            id,
            state: if was_live { State::Live } else { vitals.times.state(self.now) },
            rank: found.iter().position(|hit| hit.id == id).map(|at| at + 1),
            score: None,
            signals: Signals::default(),
            least,
            reason: "hit",
        };
        if let Some(hit) = why.rank.and_then(|rank| found.get(rank - 1)) {
            (why.score, why.signals) = (Some(hit.score), hit.signals);
            if why.rank <= Some(query.offset) {
                (why.rank, why.reason) = (None, "skipped");
            }
            return Ok(why);
        }
        let here = self.part(ns, &query.scope)?.holds(vitals.place.partition);
        let passes = match &query.filter {
            Some(filter) => Matcher::new(self, ns, filter).matches(id, &vitals)?,
            None => true,
        };
        why.reason = match () {
            () if !reader.sees(id, &vitals)? => "not_visible",
            () if !here => "other_partition",
            () if !passes => "filter",
            () => "nothing_in_common",
        };
        if why.reason == "nothing_in_common" {
            let alone = Filter::from_json(&json!({ "id": id.to_string() }))?;
            let whole = Query { min_score: None, ..whole };
            // Alone a memory can have another score: how far its cosine stands out depends on the others.
            let all = self.search(&whole, weights)?;
            let low = all.hits.into_iter().find(|hit| hit.id == id);
            let hidden = low.is_none() && all.plan.damaged > 0;
            let alone = Query { filter: Some(alone), k: 1, diversity: 0.0, ..whole };
            let hit = low.map_or_else(|| self.first_of(&alone, weights), |low| Ok(Some(low)))?;
            if let Some(hit) = hit {
                let reason = match query.takes(hit.score) {
                    // It scores well where it is named, and the search had to leave out what it could not read.
                    true if hidden && least.is_none_or(|least| hit.score > least) => "damaged",
                    true => "others_are_better",
                    false => "below_min_score",
                };
                (why.score, why.signals, why.reason) = (Some(hit.score), hit.signals, reason);
            }
        }
        Ok(why)
    }

    fn first_of(&self, query: &Query, weights: &policy::Recall) -> Result<Option<Hit>> {
        Ok(self.search(query, weights)?.hits.into_iter().next())
    }
}
