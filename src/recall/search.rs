//! Search: query → partitions → exact ranking → hits.

use crate::error::{Error, Result};
use crate::index::{Ask, Found, Sieve, Target, nearest, nearest_matching, rank_rows};
use crate::limits::K_MAX;
use crate::model::{Filter, Hit, MemoryId, Mode, Query, SearchPlan, Vitals};
use crate::policy;
use crate::recall::around::POOL;
use crate::recall::assemble::index_of;
use crate::recall::matching::Matcher;
use crate::recall::{Part, Reader};
use crate::store::control::{CounterSort, TOTAL};
use crate::store::{IndexId, NsId, PartId, Rows, SpaceId, Walk, keys};
use crate::vector::UnitVector;

/// The answer to a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResult {
    /// The best memories, best first; equal scores by ascending id.
    pub hits: Vec<Hit>,
    /// How they were found.
    pub plan: SearchPlan,
}

/// How a search by vector was answered.
pub(super) fn plan_of(found: &Found) -> SearchPlan {
    SearchPlan {
        mode: Mode::Vector.as_str(),
        partitions: found.partitions,
        scanned: found.scanned,
        walked: found.walked,
        ef: found.ef,
        ranked: found.ranked,
        regime: found.regime,
        filter: found.filter,
        tested: found.tested,
        ..SearchPlan::default()
    }
}

impl Reader<'_> {
    /// The memories that answer a query best, among those that are visible now and match its filter: by vector exactly as
    /// far as its effort asks for, by words, or by both.
    ///
    /// # Errors
    /// `Invalid` for a query out of bounds, without vector and text, or of another dimension than the store;
    /// `NoEmbedder` for one by vector that has only a text; `Corrupted`.
    pub(crate) fn search(&self, query: &Query, weights: &policy::Recall) -> Result<SearchResult> {
        query.check()?;
        let vector = query.vector.as_ref().filter(|_| query.mode != Mode::Text);
        let vector = vector.map(|values| UnitVector::new("vector", values)).transpose()?;
        match (query.text.as_ref().filter(|_| query.mode != Mode::Vector), vector) {
            (Some(words), vector) => self.search_words(query, words, vector.as_ref(), weights),
            (None, Some(vector)) => self.search_vector(query, &vector),
            (None, None) if query.text.is_some() => Err(Error::NoEmbedder),
            (None, None) => Err(Error::invalid("query", "must have a vector or a text", "neither")),
        }
    }

    fn search_vector(&self, query: &Query, vector: &UnitVector) -> Result<SearchResult> {
        let Some(ns) = self.ns else { return Ok(SearchResult::default()) };
        let part = self.part(ns, &query.scope)?;
        let Some(target) = self.target(ns, part, vector)? else { return Ok(SearchResult::default()) };
        let diverse = query.diversity > 0.0;
        let k = if diverse { query.k.saturating_mul(POOL).min(K_MAX) } else { query.k };
        let ask = Ask { query: vector, k, now: self.now, effort: query.effort };
        let found = self.nearest(ns, (part, target), query.filter.as_ref(), ask)?;
        let plan = SearchPlan { pending: self.pending(ns, part)?, ..plan_of(&found) };
        let hits = match diverse {
            true => self.diverse(ns, found.hits, query.k, query.diversity)?,
            false => found.hits,
        };
        Ok(SearchResult { hits, plan })
    }

    /// Where vectors are to be looked for; none where there are none.
    pub(super) fn target(&self, ns: NsId, part: Part, vector: &UnitVector) -> Result<Option<Target>> {
        let space = SpaceId(self.rows().clock()?.space);
        if space.0 == 0 {
            return Ok(None);
        }
        let dim = self.published.dim(space)?;
        if vector.dim() != dim {
            return Err(Error::invalid("vector", format!("must have {dim} dimensions"), vector.dim()));
        }
        Ok(match part {
            Part::Nowhere => None,
            Part::One(part) => Some(Target::Index(IndexId { ns, part, space })),
            Part::Every => Some(Target::Namespace(ns, space)),
        })
    }

    /// Memories without a vector in a scope.
    pub(super) fn pending(&self, ns: NsId, part: Part) -> Result<u64> {
        let counted = match part {
            Part::Nowhere => return Ok(0),
            Part::One(part) => part,
            Part::Every => TOTAL,
        };
        let pending = self.rows().counter(ns, counted, CounterSort::Pending as u8, "")?.rows;
        Ok(u64::try_from(pending).unwrap_or(0))
    }

    /// The nearest that match a filter, if there is one.
    pub(super) fn nearest(
        &self,
        ns: NsId,
        place: (Part, Target),
        filter: Option<&Filter>,
        ask: Ask<'_>,
    ) -> Result<Found> {
        match filter {
            None => nearest(self.published, place.1, ask),
            Some(filter) => self.search_filtered(ns, place, filter, ask),
        }
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
