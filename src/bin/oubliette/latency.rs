//! How long a call took, and percentiles of such times.

use std::time::Instant;

/// The microseconds since `begun`.
pub(crate) fn micros(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// The value below which `percent` of the sorted values lie, by the nearest rank.
pub(crate) fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}
