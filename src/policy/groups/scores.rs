//! Retention, salience and confidence.

use serde::{Deserialize, Serialize};

use super::group;
use crate::model::Span;
use crate::policy::bounds::{any, days, lasting, share, within};

group! {
    /// Recency in the RetentionScore.
    Retention {
        /// Time constant of recency in days, above 0.
        tau_days: f64 = 7.0, days;
        /// How much use stretches the time constant; a server sets 1.
        spacing: f64 = 0.0, within(0.0, 1_000.0);
        /// Form of the decay: `exp` or `half_life`.
        form: RetentionForm = RetentionForm::Exp, any;
        /// Whether recency also counts for durable memories.
        recency_all: bool = false, any;
    }
}

/// Form of the recency decay over age / S.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetentionForm {
    /// exp(-age / S).
    Exp,
    /// 2^(-age / S).
    HalfLife,
}

group! {
    /// Weight of each tier in salience, 0 to 1.
    Salience {
        /// Weight of tier `procedural`.
        procedural: f64 = 0.95, share;
        /// Weight of tier `semantic`.
        semantic: f64 = 0.90, share;
        /// Weight of tier `episodic`.
        episodic: f64 = 0.55, share;
        /// Weight of tier `working`.
        working: f64 = 0.30, share;
    }
}

group! {
    /// Confidence of durable rows, 0 to 1.
    Confidence {
        /// Confidence of a durable memory that is written without one.
        fresh: f64 = 0.40, share;
        /// Confidence of a durable memory that is imported without one.
        imported: f64 = 0.25, share;
        /// Highest confidence that a caller may give; a higher one counts as this.
        caller_max: f64 = 0.70, share;
        /// Least confidence that decay and contradiction leave.
        floor: f64 = 0.05, share;
        /// Confidence lost for each week without use after the first.
        weekly_loss: f64 = 0.05, share;
        /// Share of the distance to 1 that one use adds.
        growth: f64 = 0.1, share;
        /// Least time between two such additions to a memory.
        growth_gap: Span = Span::from_hours(24), lasting;
    }
}
