//! Search: query → partitions → exact ranking → hits.

use crate::error::{Error, Result};
use crate::index::{Ask, Found, Sieve, Target, nearest, nearest_matching, rank_rows};
use crate::model::Hit;
use crate::model::{Filter, MemoryId, Query, SearchPlan, Vitals};
use crate::recall::assemble::index_of;
use crate::recall::matching::Matcher;
use crate::recall::{Part, Reader};
use crate::store::control::{CounterSort, TOTAL};
use crate::store::{IndexId, NsId, PartId, Rows, SpaceId, Walk, keys};
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
        let ask = Ask { query: &vector, k: query.k, now: self.now, effort: query.effort };
        let found = match &query.filter {
            None => nearest(self.published, target, ask)?,
            Some(filter) => self.search_filtered(ns, (part, target), filter, ask)?,
        };
        let Found { hits, partitions, scanned, walked, ef, ranked, tested, regime, filter } = found;
        let pending = u64::try_from(pending).unwrap_or(0);
        let plan = SearchPlan { partitions, scanned, walked, ef, ranked, regime, filter, tested, pending };
        Ok(SearchResult { hits, plan })
    }

    fn search_filtered(
        &self,
        ns: NsId,
        (part, target): (Part, Target),
        filter: &Filter,
        ask: Ask<'_>,
    ) -> Result<Found> {
        let mut matcher = Matcher::new(self, ns, filter);
        let Some(ids) = self.short_list(ns, filter)? else {
            return nearest_matching(self.published, target, ask, &mut Rowwise { ns, part, matcher });
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
        rank_rows(self.published, target, &mut rows, ask.query, ask.k)
    }
}

/// A filter that is tried on rows of a namespace.
struct Rowwise<'r> {
    ns: NsId,
    part: Part,
    matcher: Matcher<'r>,
}

impl Sieve for Rowwise<'_> {
    fn matches(&mut self, id: MemoryId) -> Result<bool> {
        let vitals = self.matcher.reader().vitals(self.ns, id)?;
        self.matcher.matches(id, &vitals)
    }

    fn all(&mut self, target: Target, visit: &mut dyn FnMut(IndexId, u32)) -> Result<()> {
        let reader = self.matcher.reader();
        match self.part {
            Part::One(part) if !reader.is_most_of(self.ns, part)? => {
                let walk = Walk::prefix(&keys::ns_part(self.ns, part));
                reader.rows().ids_by_time(&walk, &mut |id| {
                    let vitals = reader.vitals(self.ns, id)?;
                    self.offer(target, id, &vitals, visit)
                })
            }
            _ => reader.rows().all_vitals(self.ns, &mut |id, vitals| self.offer(target, id, vitals, visit)),
        }
    }
}

impl Rowwise<'_> {
    /// Gives `visit` the slot of a row that lies in the target and matches.
    fn offer(
        &mut self,
        target: Target,
        id: MemoryId,
        vitals: &Vitals,
        visit: &mut dyn FnMut(IndexId, u32),
    ) -> Result<()> {
        let Some(slot) = vitals.place.slot else { return Ok(()) };
        let index = index_of(self.ns, vitals);
        let inside = match target {
            Target::Index(wanted) => index == wanted,
            Target::Namespace(_, space) => index.space == space,
        };
        if inside && self.matcher.reader().sees(vitals) && self.matcher.matches(id, vitals)? {
            visit(index, slot);
        }
        Ok(())
    }
}

impl Reader<'_> {
    /// Whether so many rows of a namespace lie in a partition that a walk over all of them is shorter than one look-up
    /// for each of its own.
    fn is_most_of(&self, ns: NsId, part: PartId) -> Result<bool> {
        let count =
            |part| self.rows().counter(ns, part, CounterSort::Vectors as u8, "").map(|found| found.rows);
        Ok(count(part)?.saturating_mul(4) >= count(TOTAL)?)
    }
}
