//! What counts for a memory besides its words and its vector: its time, if the query names one, that it stands for
//! others, and by the policy its recency, trust and significance.

use crate::error::{Result, sound};
use crate::model::{Kind, MemoryId, Significance, Time, Vitals};
use crate::policy;
use crate::recall::Reader;
use crate::store::control::{CounterSort, TOTAL};
use crate::store::{Junction, NsId, Rows};
use crate::text::NamedTimes;

/// Milliseconds of a day.
const DAY_MS: f64 = 86_400_000.0;
/// The number of days from a named date after which a third of its weight is left.
const NEAR_DAYS: f64 = 3.0;
/// The confidence that counts for a memory without one.
const NO_CONFIDENCE: f32 = 0.5;

/// What counts for a memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spoken {
    /// The score of its time, if the query names one.
    pub(super) time: Option<f32>,
    /// The score of what the memory stands for, if it is a summary, and of recency, trust and significance, if the policy
    /// gives them a weight.
    pub(super) prior: Option<f32>,
}

/// What counts in one query.
pub(super) struct Priors<'w> {
    weights: &'w policy::Recall,
    named: NamedTimes,
    now: Time,
    /// What a summary gains.
    summary: f32,
}

impl<'w> Priors<'w> {
    /// None if nothing has a weight. Then no row is read.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(super) fn of(
        words: &str,
        weights: &'w policy::Recall,
        reader: &Reader<'_>,
        ns: NsId,
    ) -> Result<Option<Self>> {
        let named = NamedTimes::of(words);
        let by_time = !named.is_none() && (weights.month > 0.0 || weights.day > 0.0);
        let by_row = weights.recency > 0.0 || weights.trust > 0.0 || weights.significance > 0.0;
        let summary = if has_summaries(reader, ns)? { weights.summary as f32 } else { 0.0 };
        let counts = by_time || by_row || summary > 0.0;
        Ok(counts.then_some(Priors { weights, named, now: reader.instant(), summary }))
    }

    /// What counts for one memory.
    pub(super) fn speak(&self, reader: &Reader<'_>, ns: NsId, id: MemoryId) -> Result<Spoken> {
        // A memory that is not stored yet is a summary.
        if reader.newcomer.is_some_and(|newcomer| newcomer.id == id) {
            return Ok(Spoken { time: None, prior: self.gained() });
        }
        let Some(vitals) = sound(reader.vitals(ns, id))? else { return Ok(Spoken::default()) };
        let at = vitals.happened_at.unwrap_or(vitals.created_at);
        let time = (!self.named.is_none()).then(|| self.time(at));
        let weights = [self.weights.recency, self.weights.trust, self.weights.significance];
        let by_row = weights.iter().any(|weight| *weight > 0.0).then(|| self.prior(at, &vitals));
        let is_summary = vitals.kind_code == Kind::Summary.code() && self.summary > 0.0;
        // A copy of what is visible has no rows of the sources that a summary has taken the place of.
        let stands_for_others = is_summary && (vitals.deletes_source || has_sources(reader, ns, id)?);
        let gained = if stands_for_others { self.gained() } else { None };
        let prior = by_row.into_iter().chain(gained).reduce(|a, b| a + b);
        Ok(Spoken { time, prior })
    }

    fn gained(&self) -> Option<f32> {
        Some(self.summary).filter(|gained| *gained > 0.0)
    }

    fn time(&self, at: Time) -> f32 {
        let (year, month) = at.month();
        let in_month = if self.named.holds(year, month) { self.weights.month } else { 0.0 };
        let day = self.named.day().and_then(|(year, month, day)| Time::of_date(year, month, day));
        let near = day.map_or(0.0, |day| {
            // Whole days, because a date that was only named has no hour.
            let days =
                (at.as_millis().div_euclid(DAY_MS as i64) - day.as_millis().div_euclid(DAY_MS as i64)).abs();
            self.weights.day * (-(days as f64) / NEAR_DAYS).exp()
        });
        (in_month + near) as f32
    }

    fn prior(&self, at: Time, vitals: &Vitals) -> f32 {
        let age = (self.now.as_millis() - at.as_millis()).max(0) as f64 / DAY_MS;
        let recency = self.weights.recency * (-age / self.weights.recency_days).exp();
        let trust = self.weights.trust * f64::from(vitals.confidence.unwrap_or(NO_CONFIDENCE));
        let most = f64::from(Significance::Core.code());
        let significance = self.weights.significance * f64::from(vitals.significance.code()) / most;
        (recency + trust + significance) as f32
    }
}

/// Whether there is, or would be, a summary among the memories that are ranked.
pub(super) fn has_summaries(reader: &Reader<'_>, ns: NsId) -> Result<bool> {
    // What was visible in the past is counted nowhere.
    if reader.newcomer.is_some() || reader.past.is_some() {
        return Ok(true);
    }
    let kind = Kind::Summary.to_string();
    Ok(reader.rows().counter(ns, TOTAL, CounterSort::Kind as u8, &kind)?.rows > 0)
}

fn has_sources(reader: &Reader<'_>, ns: NsId, id: MemoryId) -> Result<bool> {
    let junctions = sound(reader.rows().junctions(ns, id))?.unwrap_or_default();
    Ok(junctions.iter().any(|row| row.sort == Junction::Source))
}
