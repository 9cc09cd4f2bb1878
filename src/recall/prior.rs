//! What counts for a memory besides its words and its vector: its time, if the query names one, and by the policy its
//! recency, trust and significance.

use crate::error::{Result, sound};
use crate::model::{MemoryId, Significance, Time, Vitals};
use crate::policy;
use crate::recall::Reader;
use crate::store::NsId;
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
    /// The score of recency, trust and significance, if the policy gives them a weight.
    pub(super) prior: Option<f32>,
}

/// What counts in one query.
pub(super) struct Priors<'w> {
    weights: &'w policy::Recall,
    named: NamedTimes,
    now: Time,
}

impl<'w> Priors<'w> {
    /// None if nothing has a weight. Then no row is read.
    pub(super) fn of(words: &str, weights: &'w policy::Recall, now: Time) -> Option<Self> {
        let named = NamedTimes::of(words);
        let by_time = !named.is_none() && (weights.month > 0.0 || weights.day > 0.0);
        let by_row = weights.recency > 0.0 || weights.trust > 0.0 || weights.significance > 0.0;
        (by_time || by_row).then_some(Priors { weights, named, now })
    }

    /// What counts for one memory.
    pub(super) fn speak(&self, reader: &Reader<'_>, ns: NsId, id: MemoryId) -> Result<Spoken> {
        let Some(vitals) = sound(reader.vitals(ns, id))? else { return Ok(Spoken::default()) };
        let at = vitals.happened_at.unwrap_or(vitals.created_at);
        let time = (!self.named.is_none()).then(|| self.time(at));
        let weights = [self.weights.recency, self.weights.trust, self.weights.significance];
        let prior = weights.iter().any(|weight| *weight > 0.0).then(|| self.prior(at, &vitals));
        Ok(Spoken { time, prior })
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
