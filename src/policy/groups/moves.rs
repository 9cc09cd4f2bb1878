//! When a memory moves from one tier to another.

use serde::{Deserialize, Serialize};

use super::group;
use crate::limits::USES_MAX;
use crate::model::Span;
use crate::policy::bounds::{any, count, kind, lasting, set, share};
use crate::policy::words;

group! {
    /// Demotion of durable memories that nobody has used.
    Demote {
        /// Which memories matter too little: `v1` or `v2`.
        profile: DemoteProfile = DemoteProfile::V1, any;
        /// Importance below which the profile `v1` demotes, 0 to 1.
        importance: f64 = 0.5, share;
        /// Importance below which the profile `v2` demotes, 0 to 1.
        v2_importance: f64 = 0.75, share;
        /// Effective confidence below which the profile `v2` demotes, 0 to 1.
        v2_confidence: f64 = 0.35, share;
        /// Kinds that are never demoted.
        exempt_kinds: Vec<String> = words::list(words::UNDEMOTED), set(kind);
    }
}

/// Which unused memories demotion takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DemoteProfile {
    /// Those of an importance below `demote.importance`.
    V1,
    /// Those of an importance below `demote.v2_importance` whose effective confidence is below `demote.v2_confidence`, without
    /// the tag `handoff`. A memory without a confidence stays.
    V2,
}

group! {
    /// Promotion of short-term memories in use.
    Promote {
        /// Number of uses from which a memory is promoted.
        access: u32 = 3, count(1, USES_MAX as u64);
        /// Least time from one consolidation of a namespace to the next.
        interval: Span = Span::from_hours(24), lasting;
        /// Number of memories that one consolidation is given.
        batch: u32 = 20, count(1, 1_000);
        /// How long a consolidation waits for an answer.
        deadline: Span = Span::from_mins(1), lasting;
        /// Longest text in characters that becomes durable as it is, where nobody consolidates.
        verbatim_max: u32 = 240, count(0, 1_048_576);
    }
}
