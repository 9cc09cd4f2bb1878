//! Reads of the past: what was visible at an instant, as it was known at another.
//!
//! No index knows what was visible then: its instants are those of a live read. So each row that comes into question is
//! judged by the one predicate. A search by vector ranks the codes of all slots, whatever their instants, and judges the
//! rows in the order of their bounds until no other can be among the best; this is exact, because the codes bound the
//! cosines. Rows in limbo have no slot and no document any more. Those that were removed later than the instant are read
//! one by one, with their vectors and texts.

use crate::error::{Result, sound};
use crate::index::text::Lexical;
use crate::index::{Answering, Found, Slots, Target, holder_among};
use crate::model::{
    Effort, Filter, Memory, MemoryId, PastPlan, PointInTime, PurgeHorizon, Ranked, Time, check_known,
};
use crate::recall::instants::Past;
use crate::recall::matching::{Matcher, ShortList};
use crate::recall::rehearsal::Newcomer;
use crate::recall::{Part, Reader, Source};
use crate::store::{NsId, Rows};
use crate::vector::{UnitVector, dot_f32};

impl<S: Source> Reader<'_, S> {
    /// The same reader at the instants of a request.
    ///
    /// # Errors
    /// `Invalid` for an instant of transaction time that lies ahead; `BeforePurgeHorizon`; `Corrupted`.
    pub(super) fn at(&self, point: &PointInTime) -> Result<Self> {
        let at = |past| Reader { past, ..*self };
        if point.is_present() {
            return Ok(at(self.past));
        }
        check_known(point, self.now)?;
        // What is committed is known, whatever the clock says.
        let known = point.known_at.unwrap_or(Time::MAX);
        let valid = point.valid_at.unwrap_or(self.now);
        let row = self.rows().namespace(self.namespace.as_str())?;
        let horizon = row.map(|row| PurgeHorizon::of(row.horizon_known_ms, row.horizon_valid_ms));
        let horizon = horizon.filter(|horizon| horizon.hides(valid, known));
        if let Some(horizon) = horizon.filter(|_| !point.allow_partial) {
            return Err(horizon.refusal());
        }
        Ok(at(Some(Past { valid, known, horizon })))
    }

    /// The horizon behind which the reader reads; none if nothing is missing.
    pub(super) fn horizon(&self) -> Option<PurgeHorizon> {
        self.past.and_then(|past| past.horizon)
    }

    /// Which of the memories of a key the reader sees; none for what can be no key.
    pub(super) fn seen_by_key(&self, ns: NsId, key: &str) -> Result<Option<Answering>> {
        if crate::model::check_key(key).is_err() {
            return Ok(None);
        }
        holder_among(self.rows(), ns, key, self.now, |id, _, vitals| self.sees(id, vitals))
    }

    /// The memory that a name led to at an instant, if it was visible then.
    ///
    /// # Errors
    /// As [`Reader::at`].
    pub(crate) fn get_at(&self, name: &str, point: &PointInTime) -> Result<Option<Memory>> {
        let reader = self.at(point)?;
        let Some(ns) = reader.ns else { return Ok(None) };
        if let Ok(id) = name.parse::<MemoryId>()
            && let Some(vitals) = reader.rows().vitals(ns, id)?
        {
            let seen = reader.sees(id, &vitals)?;
            return seen.then(|| reader.memory(ns, id, vitals, None, false)).transpose();
        }
        let Some(found) = reader.seen_by_key(ns, name)? else { return Ok(None) };
        let holder = reader.rows().holder(ns, found.id, found.number)?;
        reader.memory(ns, found.id, found.vitals, holder.as_ref(), false).map(Some)
    }
}

/// A memory without a place in an index.
struct Away<'r> {
    id: MemoryId,
    vector: VectorOf<'r>,
    /// Its score by words; none in a search without words.
    share: Option<f32>,
    /// Its cosine; none without a vector to compare.
    cosine: Option<f32>,
}

/// Where the vector of a memory without a place in an index is.
enum VectorOf<'r> {
    /// In the row of limbo, in this space.
    Limbo(u16),
    /// At hand, if there is one.
    Newcomer(Option<&'r UnitVector>),
}

/// The memories without a place in an index that take part in a search: the rows of limbo that a reader of the past sees
/// and that match its filter, and the memory that a rehearsal adds.
#[derive(Default)]
pub(super) struct Unindexed<'r> {
    rows: Vec<Away<'r>>,
    /// Those that are left out because their texts can't be read.
    pub(super) damaged: u64,
    /// Those that a search by vector could not compare: their vectors are of another space.
    pub(super) pending: u64,
}

impl Reader<'_> {
    /// Which slots a search by vector looks at.
    pub(super) fn slots(&self) -> Slots {
        self.past.map_or(Slots::Live(self.now), |_| Slots::Held)
    }

    /// The effort of a search: no walk finds what is no longer visible, so a search of the past is exact.
    pub(super) fn effort(&self, effort: Effort) -> Effort {
        self.past.map_or(effort, |_| Effort::Exact)
    }

    /// The instant at which a search judges the age of a memory.
    pub(super) fn instant(&self) -> Time {
        self.past.map_or(self.now, |past| past.valid)
    }

    /// What tries rows for a search; none if every row that an index brings counts.
    pub(super) fn matcher<'r>(
        &'r self,
        ns: NsId,
        filter: Option<&'r Filter>,
        list: Option<&'r ShortList<'r>>,
    ) -> Option<Matcher<'r>> {
        (filter.is_some() || self.past.is_some()).then(|| Matcher::with(self, ns, filter, list))
    }

    /// The memories without a place in an index that take part in a search, with their scores by its words.
    pub(super) fn unindexed(
        &self,
        ns: NsId,
        part: Part,
        filter: Option<&Filter>,
        words: Option<&Lexical>,
    ) -> Result<Unindexed<'_>> {
        let newcomer = self.newcomer.filter(|newcomer| part.holds(newcomer.part.0));
        let mut all: Vec<Away<'_>> =
            newcomer.map(|newcomer| Away::new(newcomer, words)).into_iter().collect();
        let mut damaged = 0;
        let Some(past) = self.past else { return Ok(Unindexed { rows: all, damaged, pending: 0 }) };
        let mut matcher = filter.map(|filter| Matcher::new(self, ns, filter));
        for id in self.rows().limbo_after(ns, past.known)? {
            if self.is_over() {
                break;
            }
            let Some(vitals) = sound(self.rows().vitals(ns, id))?.flatten() else { continue };
            if !part.holds(vitals.place.partition) || !self.sees(id, &vitals)? {
                continue;
            }
            if !matcher.as_mut().map_or(Ok(true), |matcher| matcher.lets_pass(id, &vitals))? {
                continue;
            }
            let mut share = None;
            if let Some(words) = words {
                let Some(text) = sound(self.rows().text(ns, id))?.flatten() else {
                    damaged += 1;
                    continue;
                };
                share = Some(words.share_of(&text));
            }
            all.push(Away { id, vector: VectorOf::Limbo(vitals.place.space), share, cosine: None });
        }
        Ok(Unindexed { rows: all, damaged, pending: 0 })
    }

    /// Adds the memories without a place in an index to the nearest that the index has.
    pub(super) fn add_unindexed(
        &self,
        away: &mut Unindexed<'_>,
        target: Target,
        vector: &UnitVector,
        found: &mut Found,
        k: usize,
    ) -> Result<()> {
        for row in &mut away.rows {
            row.cosine = self.cosine_of(target, row, vector)?;
            let is_comparable = !matches!(row.vector, VectorOf::Limbo(space) if space != target.space().0);
            away.pending += u64::from(!is_comparable);
        }
        if away.rows.is_empty() {
            return Ok(());
        }
        let more = away.rows.iter().filter_map(|row| Some(Ranked::near(row.id, row.cosine?)));
        found.hits.extend(more);
        found.hits.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        found.hits.truncate(k);
        found.ranked += away.rows.iter().filter(|row| row.cosine.is_some()).count() as u64;
        Ok(())
    }

    fn cosine_of(&self, target: Target, row: &Away<'_>, vector: &UnitVector) -> Result<Option<f32>> {
        let dot = |stored: &[f32]| (stored.len() == vector.dim()).then(|| dot_f32(vector.as_slice(), stored));
        match row.vector {
            VectorOf::Newcomer(stored) => Ok(stored.and_then(|stored| dot(stored.as_slice()))),
            VectorOf::Limbo(space) if space != target.space().0 => Ok(None),
            VectorOf::Limbo(_) => {
                let limbo = sound(self.rows().limbo(target.ns(), row.id))?.flatten();
                Ok(limbo.and_then(|limbo| dot(&limbo.vector)))
            }
        }
    }

    /// What the plan of a search says of the past.
    pub(super) fn past_plan(&self, away: &Unindexed<'_>, by_words: bool) -> Option<PastPlan> {
        let past = self.past?;
        Some(PastPlan {
            valid_at: past.valid,
            known_at: Some(past.known).filter(|known| *known < Time::MAX),
            limbo: away.rows.len() as u64,
            statistics: by_words.then_some("now"),
            horizon: past.horizon,
        })
    }
}

impl<'r> Away<'r> {
    fn new(newcomer: &'r Newcomer, words: Option<&Lexical>) -> Self {
        Away {
            id: newcomer.id,
            vector: VectorOf::Newcomer(newcomer.vector.as_ref()),
            share: words.map(|words| words.share_of(&newcomer.text)),
            cosine: None,
        }
    }
}

impl Unindexed<'_> {
    /// The memories with the highest scores above 0 by words, the best first, at most `most`.
    pub(super) fn best_by_words(&self, most: usize) -> Vec<MemoryId> {
        let scored =
            self.rows.iter().filter_map(|row| Some((row.share.filter(|share| *share > 0.0)?, row.id)));
        let mut scored: Vec<_> = scored.collect();
        scored.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        scored.into_iter().take(most).map(|(_, id)| id).collect()
    }

    /// The score by words and the cosine of a memory; none of a memory with a place in an index.
    pub(super) fn scores(&self, id: MemoryId) -> Option<(Option<f32>, Option<f32>)> {
        self.rows.iter().find(|row| row.id == id).map(|row| (row.share, row.cosine))
    }
}
