//! In how many signs may two vectors differ whose cosine is at least ρ?
//!
//! Over the choice of the rotation, both differ in a sign with a chance of p = arccos(ρ) / π (Goemans and Williamson 1995;
//! Charikar 2002). The number of signs that differ among d rotated dimensions varies at most as much as that of independent
//! signs where ρ ≥ 0, because the dimensions are orthogonal (Ji and others, *Super-bit locality-sensitive hashing*, NIPS
//! 2012). So its tail is taken as that of a binomial distribution. From the mean on, each term of the tail is at most r times
//! the one before, with the r of the first two, and a geometric series bounds the sum:
//!
//! ```text
//! chance of h or more ≤ C(d, h) · pʰ · (1 − p)ᵈ⁻ʰ / (1 − r),   r = (d − h) · p / ((h + 1) · (1 − p)) < 1
//! ```

use super::kernel::{GROUP_BYTES, SignLimits};

/// The share of the slots above a floor that a batch may not miss: what an f32 can say below 1. A slot is then missed with
/// a chance of one in ten million.
pub const SURE: f32 = 1.0 - f32::EPSILON;

/// The highest level of a cosine. Level 0 stands for any cosine, and level *l* for at least *l* / 255.
pub(super) const LEVEL_MAX: usize = u8::MAX as usize;

/// For each group of signs, how many of the signs until its end may differ, for each level of the cosine.
pub(super) fn limits_of(dims: usize) -> Box<[SignLimits]> {
    let groups = dims.div_ceil(8 * GROUP_BYTES);
    let chance = f64::from(1.0 - SURE) / groups as f64;
    let limits = (1..=groups).map(|group| {
        let mut limits = [u8::MAX; LEVEL_MAX + 1];
        let mut tail = Tail::first(dims.min(8 * GROUP_BYTES * group));
        for (level, limit) in limits.iter_mut().enumerate().skip(1).rev() {
            // A cosine of 1 leaves no room for the rounding of a code, so the highest level counts from the one below.
            let cosine = level.min(LEVEL_MAX - 1) as f64 / LEVEL_MAX as f64;
            let share = cosine.acos() / std::f64::consts::PI;
            while tail.from <= tail.dims && tail.chance(share) > chance {
                tail.advance();
            }
            *limit = u8::try_from(tail.from as u32 - 1).unwrap_or(u8::MAX);
        }
        limits
    });
    limits.collect()
}

/// The tail of a binomial distribution: so many of some signs differ, or more.
struct Tail {
    dims: f64,
    from: f64,
    /// The logarithm of the number of ways in which just so many differ.
    ln_ways: f64,
}

impl Tail {
    /// One or more of `dims` signs.
    fn first(dims: usize) -> Self {
        Tail { dims: dims as f64, from: 1.0, ln_ways: (dims as f64).ln() }
    }

    /// One more.
    fn advance(&mut self) {
        self.ln_ways += ((self.dims - self.from) / (self.from + 1.0)).ln();
        self.from += 1.0;
    }

    /// A bound on its chance, if each sign differs with a chance of `share`, above 0 and below 1.
    fn chance(&self, share: f64) -> f64 {
        let others = self.dims - self.from;
        let ratio = others * share / ((self.from + 1.0) * (1.0 - share));
        if ratio >= 1.0 {
            return 1.0;
        }
        let first = self.ln_ways + self.from * share.ln() + others * (1.0 - share).ln();
        first.exp() / (1.0 - ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chance that more than `limit` of `dims` independent signs differ.
    fn tail(dims: u32, share: f64, limit: u32) -> f64 {
        let (mut term, mut sum) = ((1.0 - share).powi(dims as i32), 0.0);
        for differing in 0..dims {
            term *= f64::from(dims - differing) / f64::from(differing + 1) * share / (1.0 - share);
            sum += if differing + 1 > limit { term } else { 0.0 };
        }
        sum
    }

    #[test]
    fn limits_are_passed_as_rarely_as_promised_and_leave_most_others_out() {
        for (dims, groups) in [(64, 1), (128, 1), (192, 2), (384, 3), (1_536, 12)] {
            let limits = limits_of(dims);
            assert_eq!(limits.len(), groups);
            let chance = f64::from(1.0 - SURE) / groups as f64;
            for (limits, dims) in limits.iter().zip((1..).map(|group| dims.min(128 * group) as u32)) {
                assert_eq!(limits[0], u8::MAX, "level 0 stands for any cosine");
                assert!(limits.is_sorted_by(|low, high| low >= high), "{dims}");
                for level in [1, 100, 200, 230, 250, 254] {
                    let limit = u32::from(limits[level]);
                    if limit < dims.min(255) {
                        let share = (level as f64 / 255.0).acos() / std::f64::consts::PI;
                        let passed = tail(dims, share, limit);
                        assert!(passed <= chance, "{dims} at {level}: {passed} above {limit}");
                        assert!(
                            tail(dims, share, limit - 1) > chance * 0.8,
                            "{dims} at {level}: {limit} is generous"
                        );
                    }
                }
            }
        }
        let limits = limits_of(384);
        let out = 1.0 - tail(128, 0.5, u32::from(limits[0][230]));
        assert!(out < 1e-3, "of slots that have nothing in common {out} stay after 128 dimensions");
    }
}
