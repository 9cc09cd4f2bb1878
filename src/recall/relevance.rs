//! How likely is it that a hit answers the query?
//!
//! A score ranks the hits of one answer and says little by itself: 0.6 is a near vector, and a weak match of words and vector.
//! The relevance puts the scores of all modes on one scale. It is a logistic function of the score, fitted to judged questions
//! (J. Platt, "Probabilistic Outputs for Support Vector Machines", 1999). `docs/recall.md` says with which data, and how far
//! off it is there.

use crate::model::Mode;

/// The parameters of a mode: relevance = 1 / (1 + exp(-(slope · score + shift))).
struct Fit {
    slope: f64,
    shift: f64,
}

const fn fit(mode: Mode) -> Fit {
    match mode {
        Mode::Hybrid => Fit { slope: 3.12, shift: -4.80 },
        Mode::Vector => Fit { slope: 5.72, shift: -4.89 },
        Mode::Text => Fit { slope: 3.76, shift: -4.38 },
    }
}

/// The relevance of a score of a search in a mode, 0 to 1. It never falls where the score rises.
pub(super) fn relevance(mode: Mode, score: f32) -> f32 {
    let Fit { slope, shift } = fit(mode);
    (1.0 / (1.0 + (-(slope * f64::from(score) + shift)).exp())) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relevance_rises_with_the_score_and_stays_within_0_and_1() {
        for mode in Mode::ALL {
            let mut before = -1.0;
            for score in [f32::MIN, -1.0, 0.0, 1e-7, 0.25, 0.5, 0.500_001, 1.0, 2.0, 3.5, f32::MAX] {
                let relevance = relevance(*mode, score);
                assert!((0.0..=1.0).contains(&relevance), "{mode} {score}");
                assert!(relevance >= before, "{mode} {score}");
                before = relevance;
            }
            assert!(relevance(*mode, 0.0) < 0.02 && relevance(*mode, 2.5) > 0.9, "{mode}");
        }
    }
}
