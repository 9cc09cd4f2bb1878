//! Accesses of memories: retrievals, and inclusions in contexts.

use super::group;
use crate::model::Span;
use crate::policy::bounds::{count, days, lasting};

group! {
    /// Accesses that wait for a commit, and inclusions in contexts.
    Access {
        /// Number of memories whose accesses a handle keeps in mind between two commits, at least 1.
        buffer: u32 = 65_536, count(1, 10_000_000);
        /// Time constant in days by which inclusions in contexts lose weight, above 0.
        tau_days: f64 = 21.0, days;
        /// How long the inclusion log keeps a context.
        log_ttl: Span = Span::from_days(90), lasting;
    }
}
