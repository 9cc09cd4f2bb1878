//! When a pair of vectors counts as equal: two measures of a pair, and a threshold in either measure.

use crate::error::{Error, Result};
use crate::policy::Metric;

/// The largest error of f32 arithmetic in a cosine, with a margin. A search asks for this much less than the
/// threshold.
const COSINE_ERROR: f64 = 1e-5;

/// The score at which a pair counts as equal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Threshold {
    metric: Metric,
    least: f64,
}

impl Threshold {
    /// The threshold that `similarity` means. 0 stands for the default of the metric, and a negative number
    /// for none.
    ///
    /// # Errors
    /// `Invalid` for NaN and for a value above 1.
    pub(crate) fn new(metric: Metric, similarity: f64) -> Result<Option<Threshold>> {
        if similarity.is_nan() || similarity > 1.0 {
            return Err(Error::invalid("similarity", "must be a number of at most 1", similarity));
        }
        let least = if similarity == 0.0 { default_of(metric) } else { similarity };
        Ok((least > 0.0).then_some(Threshold { metric, least }))
    }

    /// The score of a pair of unit vectors with this cosine, if the score reaches the threshold.
    pub(crate) fn reached_by(&self, cosine: f32) -> Option<f32> {
        let score = of_cosine(self.metric, f64::from(cosine));
        (score >= self.least).then_some(score as f32)
    }

    /// The score of a pair of unit vectors with this cosine.
    pub(crate) fn score_of(&self, cosine: f32) -> f32 {
        of_cosine(self.metric, f64::from(cosine)) as f32
    }

    /// A lower bound on the cosine of every pair at the threshold.
    pub(crate) fn least_cosine(&self) -> f32 {
        (to_cosine(self.metric, self.least) - COSINE_ERROR).max(-1.0) as f32
    }
}

/// The default of a metric. Both defaults mean the same pair of unit vectors.
const fn default_of(metric: Metric) -> f64 {
    match metric {
        Metric::Cosine => 0.984_429,
        Metric::L2Score => 0.85,
    }
}

/// The score of two unit vectors: their cosine, or 1 / (1 + L2) with L2 = √(2 − 2 cos).
fn of_cosine(metric: Metric, cosine: f64) -> f64 {
    match metric {
        Metric::Cosine => cosine,
        Metric::L2Score => 1.0 / (1.0 + (2.0 - 2.0 * cosine).max(0.0).sqrt()),
    }
}

/// The cosine of two unit vectors with this score: 1 − L2² / 2 with L2 = 1 / score − 1.
fn to_cosine(metric: Metric, score: f64) -> f64 {
    match metric {
        Metric::Cosine => score,
        Metric::L2Score => {
            let distance = 1.0 / score - 1.0;
            1.0 - distance * distance / 2.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v98_to_v101_scores_and_cosines() {
        let pairs = [(0.625, 0.6, 0.82), (0.85, 0.176_471, 0.984_429), (0.9, 0.111_111, 0.993_827)];
        for (score, distance, cosine) in pairs.into_iter().chain([(0.95, 0.052_632, 0.998_615)]) {
            assert!((1.0_f64 / score - 1.0 - distance).abs() < 1e-6, "L2 of {score}");
            assert!((to_cosine(Metric::L2Score, score) - cosine).abs() < 1e-6, "cosine of {score}");
            assert!((of_cosine(Metric::L2Score, cosine) - score).abs() < 1e-5, "score of {cosine}");
            assert_eq!(
                (to_cosine(Metric::Cosine, cosine), of_cosine(Metric::Cosine, cosine)),
                (cosine, cosine)
            );
        }
        assert_eq!(of_cosine(Metric::L2Score, 1.000_000_1), 1.0, "a cosine above 1 is rounding");
    }

    #[test]
    fn v102_similarity_0_is_the_default_a_negative_one_is_off_and_nan_an_error() {
        for metric in [Metric::Cosine, Metric::L2Score] {
            let default = Threshold::new(metric, 0.0).unwrap().unwrap();
            assert_eq!(default.least, default_of(metric));
            assert_eq!(Threshold::new(metric, -1.0).unwrap(), None);
            for wrong in [f64::NAN, 1.000_001, f64::INFINITY] {
                assert!(Threshold::new(metric, wrong).is_err(), "{wrong}");
            }
            assert!(default.reached_by(0.984_43).is_some());
            assert_eq!(default.reached_by(0.984_42), None);
            let least = default.least_cosine();
            assert!((0.984_41..0.984_43).contains(&least), "{least}");
        }
        assert_eq!(Threshold::new(Metric::Cosine, 1.0).unwrap().unwrap().reached_by(1.0), Some(1.0));
        assert_eq!(Threshold::new(Metric::L2Score, 0.01).unwrap().unwrap().least_cosine(), -1.0);
    }
}
