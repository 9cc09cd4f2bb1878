//! The memory utility score.

use super::group;
use crate::policy::bounds::{COUNT_MAX, count, weight};

group! {
    /// The memory utility score: what searches say of a memory.
    Mus {
        /// Weight of how often searches found the memory.
        w_frequency: f64 = 0.4, weight;
        /// Weight of the mean relevance of the memory.
        w_relevance: f64 = 0.4, weight;
        /// Weight of how lately a search found the memory.
        w_recency: f64 = 0.2, weight;
        /// Number of retrievals at which the frequency is 1, and rises no more; 0 leaves it without a bound.
        saturate_at: u64 = 0, count(0, COUNT_MAX);
    }
}
