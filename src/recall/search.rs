//! Search: query → partitions → exact ranking → hits.

use std::ops::ControlFlow;

use crate::error::{Error, Result, sound};
use crate::index::{Ask, Found, Sieve, Stop, Target, nearest, nearest_listed, nearest_matching, rank_rows};
use crate::limits::K_MAX;
use crate::model::{Filter, Hit, Kind, MemoryId, Mode, Query, Ranked, SearchPlan, StandsFor, Vitals};
use crate::policy;
use crate::recall::around::POOL;
use crate::recall::deadline::Deadline;
use crate::recall::matching::{Matcher, ShortList, Wanted};
use crate::recall::prior::has_summaries;
use crate::recall::relevance::relevance;
use crate::recall::{Part, Reader};
use crate::store::control::{CounterSort, TOTAL};
use crate::store::{IndexId, Junction, NsId, PartId, Rows, SpaceId, Walk, keys};
use crate::vector::UnitVector;

/// The answer to a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResult {
    /// The best memories, best first; equal scores by ascending id.
    pub hits: Vec<Hit>,
    /// How the hits were found.
    pub plan: SearchPlan,
}

/// The best memories of a search before they are read.
pub(super) struct Ranking {
    pub(super) ns: NsId,
    /// Best first.
    pub(super) hits: Vec<Ranked>,
    /// What the scores are made of.
    pub(super) mode: Mode,
    pub(super) plan: SearchPlan,
}

/// How a search by vector was answered.
pub(super) fn plan_of(found: &Found, filter: Option<&Filter>) -> SearchPlan {
    SearchPlan {
        partitions: found.partitions,
        scanned: found.scanned,
        walked: found.walked,
        ef: found.ef,
        ranked: found.ranked,
        regime: found.regime,
        // In a search of the past rows are judged without a filter too.
        filter: if filter.is_some() { found.filter } else { "" },
        tested: found.tested,
        damaged: found.damaged,
        ..SearchPlan::default()
    }
}

impl Reader<'_> {
    /// The memories that answer a query best, among those that are visible, now or at the instants of the query, and match
    /// its filter: by vector, as exactly as the effort asks; by words; or by both.
    ///
    /// # Errors
    /// `Invalid` for a query that is out of bounds, has neither vector nor text, or has another dimension
    /// than the store; `NoEmbedder` for a search by vector that has only a text; `BeforePurgeHorizon`; `Corrupted`.
    pub(crate) fn search(&self, query: &Query, weights: &policy::Recall) -> Result<SearchResult> {
        query.check()?;
        let reader = self.at(&query.at)?;
        let ranking = reader.rank(query, weights)?;
        ranking.map_or_else(|| Ok(SearchResult::default()), |ranking| reader.answer(ranking))
    }

    /// The memories that answer a query best. None where there is nothing to search.
    pub(super) fn rank(&self, query: &Query, weights: &policy::Recall) -> Result<Option<Ranking>> {
        let vector = query.vector.as_ref().filter(|_| query.mode != Mode::Text);
        let vector = vector.map(|values| UnitVector::new("vector", values)).transpose()?;
        match (query.text.as_ref().filter(|_| query.mode != Mode::Vector), vector) {
            (Some(words), vector) => self.rank_by_words(query, words, vector.as_ref(), weights),
            (None, Some(vector)) => self.rank_by_vector(query, &vector),
            (None, None) if query.text.is_some() => Err(Error::NoEmbedder),
            (None, None) => Err(Error::invalid("query", "must have a vector or a text", "neither")),
        }
    }

    fn rank_by_vector(&self, query: &Query, vector: &UnitVector) -> Result<Option<Ranking>> {
        let Some(ns) = self.ns else { return Ok(None) };
        let part = self.part(ns, &query.scope)?;
        let Some(target) = self.target(ns, part, vector)? else { return Ok(None) };
        let diverse = query.diversity > 0.0;
        let depth = query.depth();
        let k = if diverse { depth.saturating_mul(POOL).min(K_MAX) } else { depth };
        let over = || self.is_over();
        let (slots, effort) = (self.slots(), self.effort(query.effort));
        let ask = Ask { query: vector, k, sure: k, slots, effort, stop: Stop(&over) };
        let filter = query.filter.as_ref();
        let list = self.listed(ns, filter)?;
        let mut matcher = self.matcher(ns, filter, list.as_ref());
        let mut found = self.nearest(ns, part, target, matcher.as_mut(), ask)?;
        let mut away = self.unindexed(ns, part, filter, None)?;
        self.add_unindexed(&mut away, target, vector, &mut found, k)?;
        let partial = self.deadline.is_some_and(Deadline::was_met);
        let damaged = matcher.as_ref().map_or(0, Matcher::damaged);
        let (pending, past) = (self.pending(ns, part)? + away.pending, self.past_plan(&away, false));
        let plan = plan_of(&found, filter);
        let plan = SearchPlan { pending, partial, damaged: plan.damaged + damaged, past, ..plan };
        let hits = self.cut(ns, found.hits, query)?;
        Ok(Some(Ranking { ns, hits, mode: Mode::Vector, plan }))
    }

    /// What a query asks for of the ranked memories: good enough, different enough, behind its offset.
    pub(super) fn cut(&self, ns: NsId, mut ranked: Vec<Ranked>, query: &Query) -> Result<Vec<Ranked>> {
        ranked.retain(|hit| query.takes(hit.score));
        if query.diversity > 0.0 {
            ranked = self.diverse(ns, ranked, query.depth(), query.diversity)?;
        }
        ranked.truncate(query.depth());
        ranked.drain(..query.offset.min(ranked.len()));
        Ok(ranked)
    }

    /// The best memories with their keys and texts. One whose text is damaged is left out. One
    /// whose writers are damaged has no key. Both are counted.
    fn answer(&self, ranking: Ranking) -> Result<SearchResult> {
        let Ranking { ns, hits: best, mode, mut plan } = ranking;
        plan.mode = mode.as_str();
        let mut hits = Vec::with_capacity(best.len());
        // Of a damaged counter nobody knows, and each row says what it is.
        let summaries = sound(has_summaries(self, ns))?.unwrap_or(true);
        for Ranked { id, score, signals } in best {
            let Some(text) = sound(self.rows().text(ns, id))?.flatten() else {
                plan.damaged += 1;
                continue;
            };
            let key = sound(self.first_key(ns, id))?;
            plan.damaged += u64::from(key.is_none());
            let key = key.flatten();
            let stands_for = if summaries { sound(self.stands_for(ns, id))?.flatten() } else { None };
            hits.push(Hit { id, score, relevance: relevance(mode, score), key, text, signals, stands_for });
        }
        Ok(SearchResult { hits, plan })
    }

    /// The first key of a memory.
    ///
    /// # Errors
    /// `Corrupted` if no holder of it is there, or if one before the first with a key is damaged.
    fn first_key(&self, ns: NsId, id: MemoryId) -> Result<Option<String>> {
        let mut found = None;
        self.rows().any_holder(ns, id, &mut |holder| {
            found = Some(holder.key.clone());
            holder.key.is_some()
        })?;
        found.ok_or_else(|| Error::corrupted("holder", &keys::memory(ns, id), "a memory without holders"))
    }

    /// What a summary stands for; none for other memories.
    fn stands_for(&self, ns: NsId, id: MemoryId) -> Result<Option<StandsFor>> {
        let is_summary = |vitals: &Vitals| vitals.kind_code == Kind::Summary.code();
        if !self.rows().vitals(ns, id)?.as_ref().is_some_and(is_summary) {
            return Ok(None);
        }
        let time = self.content(ns, id)?.time_range;
        let sources =
            self.rows().junctions(ns, id)?.iter().filter(|row| row.sort == Junction::Source).count();
        let source_forgotten = self.rows().access(ns, id)?.source_forgotten;
        let (start, end) = (time.map(|time| time.start), time.map(|time| time.end));
        Ok(Some(StandsFor { count: sources as u64, start, end, source_forgotten }))
    }

    /// Where vectors are to be searched; none if there are none.
    pub(super) fn target(&self, ns: NsId, part: Part, vector: &UnitVector) -> Result<Option<Target>> {
        let space = SpaceId(self.rows().clock()?.space);
        if space.0 == 0 {
            return Ok(None);
        }
        let dim = self.source.dim(space)?;
        if vector.dim() != dim {
            return Err(Error::invalid("vector", format!("must have {dim} dimensions"), vector.dim()));
        }
        Ok(match part {
            Part::Nowhere => None,
            Part::One(part) => Some(Target::Index(IndexId { ns, part, space })),
            Part::Every => Some(Target::Namespace(ns, space)),
        })
    }

    /// The number of memories without a vector in a scope.
    pub(super) fn pending(&self, ns: NsId, part: Part) -> Result<u64> {
        let counted = match part {
            Part::Nowhere => return Ok(0),
            Part::One(part) => part,
            Part::Every => TOTAL,
        };
        let pending = self.rows().counter(ns, counted, CounterSort::Pending as u8, "")?.rows;
        Ok(u64::try_from(pending).unwrap_or(0))
    }

    /// The only rows that a search with a filter can find, if the filter names them.
    pub(super) fn listed<'f>(&self, ns: NsId, filter: Option<&'f Filter>) -> Result<Option<ShortList<'f>>> {
        match filter {
            Some(filter) => self.short_list(ns, filter, Wanted::Standing),
            None => Ok(None),
        }
    }

    /// The nearest memories, and with a filter only those that match.
    pub(super) fn nearest(
        &self,
        ns: NsId,
        part: Part,
        target: Target,
        matcher: Option<&mut Matcher<'_>>,
        ask: Ask<'_>,
    ) -> Result<Found> {
        let Some(matcher) = matcher else { return nearest(self.source, target, ask) };
        match matcher.list() {
            None => nearest_matching(self.source, target, ask, &mut Rowwise { ns, part, matcher }),
            Some(list) if list.by_index && list.ids.len() > RANKED_ROWS_MAX => {
                let rows = list.ids.len() as u64;
                nearest_listed(self.source, target, ask, &mut Rowwise { ns, part, matcher }, rows)
            }
            Some(list) => {
                let mut rows = Vec::new();
                let mut sieve = Rowwise { ns, part, matcher };
                for id in &list.ids {
                    let Some(vitals) = sieve.matcher.vitals(*id)? else { continue };
                    sieve.offer(target, *id, &vitals, &mut |index, slot| rows.push((index, slot, *id)))?;
                }
                rank_rows(self.source, target, &mut rows, ask.query, ask.k)
            }
        }
    }
}

/// The largest number of rows of a declared index that are ranked at once. Of more rows the codes are scanned
/// first.
const RANKED_ROWS_MAX: usize = 64;

/// A filter that is tried on rows of a namespace.
struct Rowwise<'m, 'r> {
    ns: NsId,
    part: Part,
    matcher: &'m mut Matcher<'r>,
}

impl Sieve for Rowwise<'_, '_> {
    fn matches(&mut self, id: MemoryId) -> Result<bool> {
        // After the deadline nothing more is found.
        if self.matcher.reader().is_over() {
            return Ok(false);
        }
        self.matcher.admits(id)
    }

    fn all(&mut self, target: Target, visit: &mut dyn FnMut(IndexId, u32)) -> Result<()> {
        let reader = self.matcher.reader();
        if let Some(list) = self.matcher.list() {
            for id in &list.ids {
                if let Some(vitals) = self.matcher.vitals(*id)? {
                    self.offer(target, *id, &vitals, visit)?;
                }
            }
            return Ok(());
        }
        let (ns, part) = (self.ns, self.part);
        reader.each_of(ns, part, &mut |id, vitals| match vitals {
            Some(vitals) => self.offer(target, id, vitals, visit),
            None => {
                self.matcher.leave_out(id);
                Ok(())
            }
        })
    }
}

impl Rowwise<'_, '_> {
    /// Calls `visit` with the slot of a row that lies in the target and matches.
    fn offer(
        &mut self,
        target: Target,
        id: MemoryId,
        vitals: &Vitals,
        visit: &mut dyn FnMut(IndexId, u32),
    ) -> Result<()> {
        if self.matcher.reader().is_over() {
            return Ok(());
        }
        let Some(slot) = vitals.place.slot else { return Ok(()) };
        let index = IndexId::of(self.ns, vitals);
        let inside = match target {
            Target::Index(wanted) => index == wanted,
            Target::Namespace(_, space) => index.space == space,
        };
        if inside && self.matcher.reader().sees(id, vitals)? && self.matcher.lets_pass(id, vitals)? {
            visit(index, slot);
        }
        Ok(())
    }
}

impl Reader<'_> {
    /// Calls `visit` with the rows of a partition, or of all partitions; none where the hot part can't be read. Rows of other
    /// partitions may be among them.
    pub(super) fn each_of(
        &self,
        ns: NsId,
        part: Part,
        visit: &mut dyn FnMut(MemoryId, Option<&Vitals>) -> Result<()>,
    ) -> Result<()> {
        match part {
            Part::Nowhere => Ok(()),
            Part::One(part) if !self.is_most_of(ns, part)? => {
                let walk = Walk::prefix(&keys::ns_part(ns, part));
                self.rows().ids_by_time(&walk, &mut |_, id| visit(id, sound(self.vitals(ns, id))?.as_ref()))
            }
            _ => {
                let mut each = |id, vitals: Option<&Vitals>| visit(id, vitals).map(ControlFlow::Continue);
                self.rows().vitals_after(ns, None, &mut each)
            }
        }
    }

    /// Whether a partition holds so many rows of its namespace that a walk over all rows is shorter than one look-up
    /// for each row of the partition.
    fn is_most_of(&self, ns: NsId, part: PartId) -> Result<bool> {
        let count =
            |part| self.rows().counter(ns, part, CounterSort::Vectors as u8, "").map(|found| found.rows);
        Ok(count(part)?.saturating_mul(4) >= count(TOTAL)?)
    }
}
