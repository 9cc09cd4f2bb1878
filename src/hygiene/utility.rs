//! How useful did a memory prove to be? The memory utility score.

use crate::hygiene::score::days;
use crate::model::{Access, Memory, Time};
use crate::policy::Policy;

/// What the score of one memory rests on.
#[derive(Clone, Copy, Debug)]
struct Use {
    retrievals: u64,
    /// Sum of the relevances, each 0 to 1.
    sum: f64,
    /// Number of the retrievals that had a relevance.
    scored: u64,
    /// Days since the last retrieval, at least 0; none without one.
    age: Option<f64>,
}

impl Use {
    /// Of a memory at an instant; `scored` is the sum and the number of its relevances.
    fn of(retrievals: u64, (sum, scored): (f64, u64), last: Option<Time>, now: Time) -> Self {
        Use { retrievals, sum, scored, age: last.map(|last| days(last, now)) }
    }

    /// Frequency: ln(1 + n), at least 0 and without a bound. With `mus.saturate_at` N it is ln(1 + n) / ln(1 + N), at most 1.
    fn frequency(self, saturate_at: u64) -> f64 {
        let frequency = (self.retrievals as f64).ln_1p();
        if saturate_at == 0 { frequency } else { (frequency / (saturate_at as f64).ln_1p()).min(1.0) }
    }

    /// Mean relevance, 0 to 1; 0 where none was recorded.
    fn relevance(self) -> f64 {
        if self.scored == 0 { 0.0 } else { self.sum / self.scored as f64 }
    }

    /// Recency: 1 / (1 + days), above 0 and at most 1; 0 for a memory that was never retrieved.
    fn recency(self) -> f64 {
        self.age.map_or(0.0, |age| 1.0 / (1.0 + age))
    }

    fn score(self, policy: &Policy) -> f64 {
        let mus = &policy.mus;
        mus.w_frequency * self.frequency(mus.saturate_at)
            + mus.w_relevance * self.relevance()
            + mus.w_recency * self.recency()
    }
}

/// The memory utility score (MUS) of a memory at an instant: how often searches found it, how well it answered, how lately.
/// It is a sum of frequency, mean relevance and recency with the weights `mus.*` of the policy: 0 for a memory that was never
/// found, without an upper bound unless `mus.saturate_at` is set.
///
/// Source: the memory-pruning proposal, with its weights.
///
/// ```
/// use oubliette::maintain::utility;
/// use oubliette::policy::Policy;
/// use oubliette::{Database, Query};
/// # let folder = tempfile::tempdir()?;
/// let db = Database::builder().track(true).open(folder.path().join("m.oub"))?;
/// let team = db.namespace("team")?;
/// let tea = team.add("Ann prefers tea")?.id;
/// let memory = team.get(tea)?.unwrap();
/// assert_eq!(utility(&memory, memory.created_at, &Policy::default()), 0.0);
/// team.search(Query::text("tea"))?;
/// db.flush_access()?;
/// let memory = team.get(tea)?.unwrap();
/// assert!(utility(&memory, memory.created_at, &Policy::default()) > 0.4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn utility(memory: &Memory, now: Time, policy: &Policy) -> f64 {
    let scored = (memory.relevance_score_sum, memory.relevance_score_count);
    Use::of(memory.retrieval_count, scored, memory.last_retrieved, now).score(policy)
}

/// The utility of the memory with these statistics.
pub(super) fn utility_of(access: &Access, now: Time, policy: &Policy) -> f64 {
    let scored = (access.relevance_score_sum, access.relevance_score_count);
    Use::of(access.retrieval_count, scored, access.last_retrieved, now).score(policy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Syntax;

    /// Long enough ago that nothing of the recency is left within the digits that are compared.
    const LONG_AGO: f64 = 1e9;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 5e-7, "{found}, not {expected}");
    }

    fn used(retrievals: u64, sum: f64, scored: u64, age: f64) -> Use {
        Use { retrievals, sum, scored, age: Some(age) }
    }

    #[test]
    fn v146_to_v154_utility() {
        let policy = Policy::default();
        near(Use { retrievals: 0, sum: 0.0, scored: 0, age: None }.score(&policy), 0.0);
        for (row, expected) in [
            (used(1, 0.5, 1, LONG_AGO), 0.477_259),
            (used(1, 0.5, 1, 0.0), 0.677_259),
            (used(3, 2.4, 3, 4.0), 0.914_518),
            (used(10, 5.0, 10, 1.0), 1.259_158),
            (used(2, 1.0, 2, 9.0), 0.659_445),
            (used(5, 2.5, 5, LONG_AGO), 0.916_704),
            (used(100, 50.0, 100, LONG_AGO), 2.046_048),
            (used(4, 0.0, 0, 0.0), 0.843_775),
        ] {
            near(row.score(&policy), expected);
        }
    }

    #[test]
    fn v156_frequency_can_be_held_to_1() {
        near(used(10, 0.0, 0, 0.0).frequency(100), 0.519_574);
        near(used(1_000, 0.0, 0, 0.0).frequency(100), 1.0);
        let policy = Policy::parse("mus.saturate_at = 100", Syntax::Toml).unwrap();
        near(used(10, 0.0, 0, LONG_AGO).score(&policy), 0.4 * 0.519_574);
    }
}
