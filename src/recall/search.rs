//! Search: query → partitions → exact ranking → hits.

use crate::error::{Error, Result};
use crate::index::{Found, Target, nearest, rank_rows};
use crate::model::{Filter, Hit, MemoryId, Query, SearchPlan};
use crate::recall::assemble::index_of;
use crate::recall::matching::Matcher;
use crate::recall::{Part, Reader};
use crate::store::control::{CounterSort, TOTAL};
use crate::store::{IndexId, NsId, Rows, SpaceId};
use crate::vector::UnitVector;

/// The answer to a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResult {
    /// The nearest memories, best first; equal scores by ascending id.
    pub hits: Vec<Hit>,
    /// How they were found.
    pub plan: SearchPlan,
}

impl Reader<'_> {
    /// The memories nearest to a query among those that are visible now and match its filter, exactly. A query with
    /// a vector is answered by it, its text is then not looked at.
    ///
    /// # Errors
    /// `Invalid` for a query out of bounds, without vector and text, or of another dimension than the store;
    /// `NoEmbedder` for one that has only a text; `Corrupted`.
    pub(crate) fn search(&self, query: &Query) -> Result<SearchResult> {
        query.check()?;
        let vector = match (&query.vector, &query.text) {
            (Some(values), _) => UnitVector::new("vector", values)?,
            (None, Some(_)) => return Err(Error::NoEmbedder),
            (None, None) => return Err(Error::invalid("query", "must have a vector or a text", "neither")),
        };
        let space = SpaceId(self.rows().clock()?.space);
        if space.0 == 0 {
            return Ok(SearchResult::default());
        }
        let dim = self.published.dim(space)?;
        if vector.dim() != dim {
            return Err(Error::invalid("vector", format!("must have {dim} dimensions"), vector.dim()));
        }
        let Some(ns) = self.ns else { return Ok(SearchResult::default()) };
        let part = self.part(ns, &query.scope)?;
        let (target, counted) = match part {
            Part::Nowhere => return Ok(SearchResult::default()),
            Part::One(part) => (Target::Index(IndexId { ns, part, space }), part),
            Part::Every => (Target::Namespace(ns, space), TOTAL),
        };
        let pending = self.rows().counter(ns, counted, CounterSort::Pending as u8, "")?.rows;
        let found = match &query.filter {
            None => nearest(self.published, target, &vector, query.k, self.now, None)?,
            Some(filter) => self.search_filtered(ns, (part, target), filter, &vector, query.k)?,
        };
        let Found { hits, partitions, scanned, ranked, regime } = found;
        let pending = u64::try_from(pending).unwrap_or(0);
        Ok(SearchResult { hits, plan: SearchPlan { partitions, scanned, ranked, regime, pending } })
    }

    fn search_filtered(
        &self,
        ns: NsId,
        (part, target): (Part, Target),
        filter: &Filter,
        vector: &UnitVector,
        k: usize,
    ) -> Result<Found> {
        let mut matcher = Matcher::new(self, ns, filter);
        let Some(ids) = self.short_list(ns, filter)? else {
            let mut accept = |id: MemoryId| matcher.matches(id, &self.vitals(ns, id)?);
            return nearest(self.published, target, vector, k, self.now, Some(&mut accept));
        };
        let space = match target {
            Target::Index(index) => index.space,
            Target::Namespace(_, space) => space,
        };
        let mut rows = Vec::new();
        for id in ids {
            let Some(vitals) = self.rows().vitals(ns, id)? else { continue };
            let Some(slot) = vitals.place.slot else { continue };
            let index = index_of(ns, &vitals);
            let inside = index.space == space && part.holds(vitals.place.partition);
            if inside && self.sees(&vitals) && matcher.matches(id, &vitals)? {
                rows.push((index, slot, id));
            }
        }
        rank_rows(self.published, target, &mut rows, vector, k)
    }
}
