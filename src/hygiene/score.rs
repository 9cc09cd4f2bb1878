//! How much is a memory worth keeping? The RetentionScore.

use crate::hygiene::scorer::Judge;
use crate::model::{Access, Memory, MemoryId, Tier, Time, Vitals};
use crate::policy::{Policy, RetentionForm};

const DAY_MS: f64 = 86_400_000.0;
const WEEK_DAYS: f64 = 7.0;

/// Days from one instant to another, at least 0.
pub(super) fn days(since: Time, now: Time) -> f64 {
    ((now.as_millis() - since.as_millis()) as f64 / DAY_MS).max(0.0)
}

/// What the score of one row rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Worth {
    tier: Tier,
    importance: f64,
    confidence: Option<f64>,
    /// Uses.
    uses: f64,
    /// Days since it was last used, at least 0.
    age: f64,
    /// Days since it was last written or used, at least 0.
    rest: f64,
}

impl Worth {
    /// Of a row with these statistics, at an instant.
    pub(crate) fn of(vitals: &Vitals, access: &Access, now: Time) -> Self {
        let used = access.last_accessed(vitals);
        Worth {
            tier: vitals.tier,
            importance: f64::from(vitals.importance),
            confidence: vitals.confidence.map(f64::from),
            uses: access.count() as f64,
            age: days(used, now),
            rest: days(used.max(vitals.updated_at), now),
        }
    }

    /// With the importance that a hook gives the row; without an answer it stays as it is.
    pub(crate) fn judged(self, judge: Option<&dyn Judge>, id: MemoryId) -> Self {
        let importance = judge.and_then(|judge| judge.importance(id));
        Worth { importance: importance.unwrap_or(self.importance), ..self }
    }

    /// Of a memory that is shown, at an instant.
    pub(crate) fn of_shown(memory: &Memory, now: Time) -> Self {
        let used = memory.last_accessed();
        Worth {
            tier: memory.tier,
            importance: f64::from(memory.importance),
            confidence: memory.confidence.map(f64::from),
            uses: memory.access_count() as f64,
            age: days(used, now),
            rest: days(used.max(memory.updated_at), now),
        }
    }

    /// The RetentionScore: salience times effective confidence times usage, and for short-term rows times recency.
    pub(crate) fn score(&self, policy: &Policy) -> f64 {
        let lasting = self.salience(policy) * self.confidence(policy) * self.usage();
        if self.tier.is_short_term() || policy.retention.recency_all {
            lasting * self.recency(policy)
        } else {
            lasting
        }
    }

    /// How much it matters, by tier and importance.
    fn salience(&self, policy: &Policy) -> f64 {
        let weight = match self.tier {
            Tier::Working => policy.salience.working,
            Tier::Episodic => policy.salience.episodic,
            Tier::Semantic => policy.salience.semantic,
            Tier::Procedural => policy.salience.procedural,
        };
        (weight * (0.5 + 0.5 * self.importance)).clamp(0.0, 1.0)
    }

    /// How far it can be believed still: short-term rows and those without a confidence wholly, others by a confidence that
    /// falls with every week without use after the first.
    pub(crate) fn confidence(&self, policy: &Policy) -> f64 {
        let Some(confidence) = self.confidence.filter(|_| !self.tier.is_short_term()) else { return 1.0 };
        let weeks = self.rest / WEEK_DAYS;
        if weeks <= 1.0 {
            return confidence;
        }
        (confidence - policy.confidence.weekly_loss * (weeks - 1.0)).max(policy.confidence.floor)
    }

    /// How often it was used.
    fn usage(&self) -> f64 {
        1.0 + self.uses.ln_1p()
    }

    /// How lately it was used.
    fn recency(&self, policy: &Policy) -> f64 {
        let retention = &policy.retention;
        let stretched = retention.tau_days * (1.0 + retention.spacing * self.uses.ln_1p());
        match retention.form {
            RetentionForm::Exp => (-self.age / stretched).exp(),
            RetentionForm::HalfLife => (-self.age / stretched).exp2(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worth(tier: Tier, importance: f64, uses: f64, age: f64) -> Worth {
        Worth { tier, importance, confidence: None, uses, age, rest: age }
    }

    fn with(text: &str) -> Policy {
        Policy::parse(text, crate::policy::Syntax::Toml).unwrap()
    }

    #[track_caller]
    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 5e-6 * expected.max(1.0), "{found}, not {expected}");
    }

    #[test]
    fn v125_to_v128_salience() {
        let policy = Policy::default();
        for (tier, importance, expected) in [
            (Tier::Semantic, 0.5, 0.675),
            (Tier::Procedural, 1.0, 0.95),
            (Tier::Episodic, 0.0, 0.275),
            (Tier::Working, 0.5, 0.225),
        ] {
            near(worth(tier, importance, 0.0, 0.0).salience(&policy), expected);
        }
    }

    #[test]
    fn v129_to_v131_recency_in_both_forms() {
        let half_life = with("retention.form = 'half_life'");
        for (days, exp, half) in
            [(7.0, 0.367_879, 0.5), (14.0, 0.135_335, 0.25), (30.0, 0.013_764, 0.051_271)]
        {
            let row = worth(Tier::Episodic, 0.5, 0.0, days);
            near(row.recency(&Policy::default()), exp);
            near(row.recency(&half_life), half);
        }
    }

    #[test]
    fn v132_to_v136_retention_score() {
        let policy = Policy::default();
        near(worth(Tier::Episodic, 0.5, 0.0, 7.0).score(&policy), 0.151_75);
        let used = worth(Tier::Episodic, 0.5, 2.0, 14.0);
        near(used.score(&policy), 0.117_157);
        near(used.score(&with("retention.spacing = 1.0")), 0.333_787);
        let semantic = worth(Tier::Semantic, 0.5, 0.0, 7.0);
        near(semantic.score(&policy), 0.675);
        near(semantic.score(&with("retention.recency_all = true")), 0.248_319);
        let doubted = Worth { confidence: Some(0.4), rest: 28.0, ..worth(Tier::Semantic, 0.5, 3.0, 30.0) };
        near(doubted.score(&policy), 0.402_687);
        near(worth(Tier::Procedural, 1.0, 1.0, 400.0).score(&policy), 1.608_49);
    }

    #[test]
    fn v137_to_v141_effective_confidence() {
        let policy = Policy::default();
        for (confidence, weeks, expected) in
            [(0.4, 1.0, 0.4), (0.4, 2.0, 0.35), (0.4, 20.0, 0.05), (0.25, 2.0, 0.2), (0.7, 1.5, 0.675)]
        {
            let row = worth(Tier::Semantic, 0.5, 0.0, 0.0);
            let row = Worth { confidence: Some(confidence), rest: 7.0 * weeks, ..row };
            near(row.confidence(&policy), expected);
            assert_eq!(
                Worth { tier: Tier::Working, ..row }.confidence(&policy),
                1.0,
                "short-term rows have none"
            );
        }
    }
}
