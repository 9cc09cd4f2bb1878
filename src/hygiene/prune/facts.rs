//! The rules of pruning, on what is known of one memory.

use crate::hygiene::score::days;
use crate::model::{Access, Time, Vitals};
use crate::policy::{Prune, PruneMode};

/// Age in days from which on a threshold rises with `prune.age_slope`, and the days of the year by which it rises.
const SLOPE_FROM_DAYS: f64 = 30.0;
const YEAR_DAYS: f64 = 365.0;

/// A level of consolidation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// A summary of a session.
    Session,
    /// A summary of a chapter.
    Chapter,
}

impl Level {
    pub(super) const ALL: [Level; 2] = [Level::Session, Level::Chapter];

    /// Its number in the table of levels.
    pub(super) fn number(self) -> u8 {
        match self {
            Level::Session => 1,
            Level::Chapter => 2,
        }
    }

    pub(super) fn of(number: u8) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.number() == number)
    }

    /// Score below which a memory may go, before age and stability of goals.
    pub(super) fn threshold(self, prune: &Prune) -> f64 {
        match self {
            Level::Session => prune.l1.mus,
            Level::Chapter => prune.l2.mus,
        }
    }

    /// Share of the level whose scores are the lowest that goes at a look; 0: a threshold decides.
    pub(super) fn bottom(self, prune: &Prune) -> f64 {
        match self {
            Level::Session => prune.l1.bottom,
            Level::Chapter => prune.l2.bottom,
        }
    }

    /// Steps of its own from which on a summary is too old; 0: any number.
    pub(super) fn max_steps(self, prune: &Prune) -> u64 {
        match self {
            Level::Session => prune.l1.max_steps,
            Level::Chapter => prune.l2.max_steps,
        }
    }

    fn min_age_days(self, prune: &Prune) -> f64 {
        let span = match self {
            Level::Session => prune.l1.min_age,
            Level::Chapter => prune.l2.min_age,
        };
        span.as_millis() as f64 / 86_400_000.0
    }

    /// Steps between two looks.
    pub(super) fn every_steps(self, prune: &Prune) -> u64 {
        let own = match self {
            Level::Session => prune.l1.every_steps,
            Level::Chapter => prune.l2.every_steps,
        };
        if own == 0 { prune.every_steps } else { own }
    }
}

/// When a summary of a session went into one of a chapter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Consolidated {
    pub(super) at: Option<Time>,
    pub(super) step: Option<u64>,
}

/// What the rules ask of a memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Facts {
    /// None: a memory of another kind.
    pub(super) level: Option<Level>,
    /// Days since its creation, at least 0.
    pub(super) age: f64,
    /// Steps since its own, where the host counts steps and it has one.
    pub(super) age_steps: Option<u64>,
    /// Days since its last retrieval, at least 0; none without one.
    pub(super) rest: Option<f64>,
    /// Steps since its last retrieval, where the host counts steps.
    pub(super) rest_steps: Option<u64>,
    pub(super) retrievals: u64,
    pub(super) relevance_max: f64,
    pub(super) is_shielded: bool,
    /// Days and steps since a summary of a session was consolidated.
    pub(super) consolidated: Option<(Option<f64>, Option<u64>)>,
}

impl Facts {
    /// What is known of a row at an instant, and at a step of the host if there is one.
    pub(super) fn of(
        level: Option<Level>,
        vitals: &Vitals,
        access: &Access,
        consolidated: Option<Consolidated>,
        now: Time,
        step: Option<u64>,
    ) -> Self {
        let since = |then: Option<u64>| Some(step?.saturating_sub(then?));
        Facts {
            level,
            age: days(vitals.created_at, now),
            age_steps: None,
            rest: access.last_retrieved.map(|last| days(last, now)),
            rest_steps: since(access.last_retrieved_step),
            retrievals: access.retrieval_count,
            relevance_max: f64::from(access.relevance_max),
            is_shielded: access.protected_until.is_some_and(|until| now < until),
            consolidated: consolidated.map(|at| (at.at.map(|at| days(at, now)), since(at.step))),
        }
    }

    /// Whether the memory was retrieved so lately that it is left alone.
    pub(super) fn is_cooling(&self, prune: &Prune) -> bool {
        let in_days = self.rest.is_some_and(|rest| rest < prune.cooldown_days);
        in_days || self.rest_steps.is_some_and(|rest| rest < prune.cooldown_steps)
    }

    /// Whether the memory is too old. Steps decide where host and memory have them, days otherwise.
    pub(super) fn is_aged(&self, prune: &Prune) -> bool {
        let is_past = |level: Level| {
            let most = level.max_steps(prune);
            most > 0 && self.age_steps.is_some_and(|steps| steps >= most)
        };
        match self.level {
            None => false,
            Some(level) if is_past(level) => true,
            Some(Level::Chapter) => self.age > prune.l2.max_age.as_millis() as f64 / 86_400_000.0,
            Some(Level::Session) => match self.consolidated {
                Some((_, Some(steps))) => steps >= prune.l1.delay_steps,
                Some((Some(days), None)) => days >= Level::Session.min_age_days(prune),
                Some((None, None)) | None => false,
            },
        }
    }

    /// Whether a score may not decide about the memory: it answered too well, is protected for a while, or is too young.
    pub(super) fn is_exempt(&self, prune: &Prune) -> Option<Exempt> {
        if self.relevance_max > prune.protect_relevance {
            return Some(Exempt::Relevant);
        }
        if self.is_shielded {
            return Some(Exempt::Shielded);
        }
        // In the modes without goals no score decides about a young memory; in the hybrid mode none that was never found.
        let is_open = prune.mode == PruneMode::Hybrid && self.retrievals > 0;
        let is_young = self.level.is_some_and(|level| self.age < level.min_age_days(prune));
        (is_young && !is_open).then_some(Exempt::Young)
    }

    /// The threshold of the memory: that of its level, raised by its age and by the stability of the goals of its agent.
    ///
    /// Source: the memory-pruning proposal, age factor and goal stability; the formulas are ours.
    pub(super) fn threshold(&self, base: f64, stability: f64, prune: &Prune) -> f64 {
        let old = prune.age_slope * (self.age - SLOPE_FROM_DAYS).max(0.0) / YEAR_DAYS;
        (base + old) * (1.0 + prune.stability_gain * stability)
    }
}

/// Why a score does not decide about a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exempt {
    Relevant,
    Shielded,
    Young,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Policy, Preset};

    fn facts(level: Level, age: f64) -> Facts {
        Facts {
            level: Some(level),
            age,
            age_steps: None,
            rest: None,
            rest_steps: None,
            retrievals: 0,
            relevance_max: 0.0,
            is_shielded: false,
            consolidated: None,
        }
    }

    #[test]
    fn v178_and_v179_the_age_rules() {
        let prune = Prune::default();
        let after = |steps| Facts { consolidated: Some((None, Some(steps))), ..facts(Level::Session, 1.0) };
        assert_eq!([after(9), after(10)].map(|row| row.is_aged(&prune)), [false, true]);
        // Without steps the time since the consolidation decides; without either nothing does.
        let days = |days| Facts { consolidated: Some((Some(days), None)), ..facts(Level::Session, 99.0) };
        assert_eq!([days(6.9), days(7.0)].map(|row| row.is_aged(&prune)), [false, true]);
        let untimed = Facts { consolidated: Some((None, None)), ..facts(Level::Session, 99.0) };
        assert!(!untimed.is_aged(&prune) && !facts(Level::Session, 999.0).is_aged(&prune));
        let ms = 1.0 / 86_400_000.0;
        let chapter = |age| facts(Level::Chapter, age).is_aged(&prune);
        assert_eq!([chapter(30.0), chapter(30.0 + ms)], [false, true]);
    }

    #[test]
    fn life_41_steps_of_its_own_can_end_a_summary() {
        let prune = Policy::default().with_preset(Preset::StepsEarly).unwrap().prune;
        let row = |level, steps| Facts { age_steps: steps, ..facts(level, 9_999.0) }.is_aged(&prune);
        let sessions = [None, Some(49), Some(50)].map(|steps| row(Level::Session, steps));
        assert_eq!(sessions, [false, false, true]);
        let chapters = [None, Some(499), Some(500)].map(|steps| row(Level::Chapter, steps));
        assert_eq!(chapters, [false, false, true]);
    }

    #[test]
    fn v183_protection_is_strict_at_its_bounds() {
        let prune = Prune::default();
        let row = Facts { retrievals: 1, ..facts(Level::Session, 20.0) };
        let relevant = |max| Facts { relevance_max: max, ..row }.is_exempt(&prune);
        assert_eq!((relevant(f64::from(0.9_f32)), relevant(0.95)), (None, Some(Exempt::Relevant)));
        let cooling = |rest| Facts { rest: Some(rest), ..row }.is_cooling(&prune);
        assert_eq!((cooling(6.999), cooling(7.0)), (true, false));
        let steps = Prune { cooldown_steps: 5, cooldown_days: 0.0, ..Prune::default() };
        let cooling = |rest| Facts { rest_steps: rest, rest: Some(0.0), ..row }.is_cooling(&steps);
        assert_eq!((cooling(Some(4)), cooling(Some(5)), cooling(None)), (true, false, false));
    }

    #[test]
    fn life_40_the_young_wait_and_in_the_hybrid_mode_only_those_never_found() {
        let hybrid = Prune { mode: PruneMode::Hybrid, ..Prune::default() };
        let row = |age, retrievals| Facts { retrievals, ..facts(Level::Session, age) };
        for (age, retrievals, both, in_hybrid) in [
            (6.9, 0, Some(Exempt::Young), Some(Exempt::Young)),
            (6.9, 1, Some(Exempt::Young), None),
            (7.0, 0, None, None),
        ] {
            assert_eq!(row(age, retrievals).is_exempt(&Prune::default()), both);
            assert_eq!(row(age, retrievals).is_exempt(&hybrid), in_hybrid);
        }
        assert_eq!(facts(Level::Chapter, 13.9).is_exempt(&Prune::default()), Some(Exempt::Young));
        let shielded = Facts { is_shielded: true, ..facts(Level::Chapter, 99.0) };
        assert_eq!(shielded.is_exempt(&Prune::default()), Some(Exempt::Shielded));
    }

    #[test]
    fn life_38_age_and_stable_goals_raise_a_threshold() {
        let row = facts(Level::Session, 30.0 + 365.0);
        let of = |slope, gain, stability| {
            let prune = Prune { age_slope: slope, stability_gain: gain, ..Prune::default() };
            row.threshold(0.2, stability, &prune)
        };
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
        near(of(0.0, 0.0, 1.0), 0.2);
        near(of(0.1, 0.0, 1.0), 0.3);
        near(of(0.1, 0.5, 1.0), 0.45);
        near(of(0.1, 0.5, 0.5), 0.375);
        near(
            facts(Level::Session, 10.0).threshold(0.2, 0.0, &Prune { age_slope: 9.0, ..Prune::default() }),
            0.2,
        );
    }
}
