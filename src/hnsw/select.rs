//! To which of many near nodes a node is linked: to those that lead in different directions.

use super::near::{Near, Points, score_each};

/// The largest number of links to nodes with exactly the code of the base. More of them would close off a
/// crowd of equal vectors.
const TWINS_MAX: usize = 4;
/// The number of selected nodes with which a candidate is compared at a time.
const STEP: usize = 8;

/// The nodes to which `base` is linked: at most `most` of `candidates`. The candidates come nearest first, and contain
/// neither the base nor a node twice. A candidate is taken if it is not nearer to an earlier taken node than to the
/// base (Malkov and Yashunin, algorithm 4). If fewer than `fill` are taken then, the nearest of the others are taken
/// too.
pub(super) fn select<P: Points + ?Sized>(
    points: &P,
    base: u32,
    candidates: &[Near],
    most: usize,
    fill: usize,
) -> Vec<u32> {
    debug_assert!(candidates.is_sorted_by(|a, b| a > b), "nearest first, none twice");
    // The base is scored like the candidates, so a candidate with the same code has exactly this score.
    let mut own = f32::INFINITY;
    score_each(points, points.probe(base), &[base], |near| own = near.score());
    let mut selected: Vec<u32> = Vec::with_capacity(most.min(candidates.len()));
    let mut others = Vec::new();
    let mut twins = 0;
    for &candidate in candidates {
        if selected.len() == most {
            break;
        }
        let is_twin = candidate.score() >= own;
        if (is_twin && twins == TWINS_MAX) || is_covered(points, candidate, &selected) {
            others.push(candidate.slot());
            continue;
        }
        twins += usize::from(is_twin);
        selected.push(candidate.slot());
    }
    let missing = fill.min(most).saturating_sub(selected.len());
    selected.extend(others.into_iter().take(missing));
    selected
}

/// Whether a candidate is nearer to one of `selected` than to the base.
fn is_covered<P: Points + ?Sized>(points: &P, candidate: Near, selected: &[u32]) -> bool {
    let probe = points.probe(candidate.slot());
    // The nodes taken last lie at about the same distance, and cover the candidate most often.
    selected.rchunks(STEP).any(|part| {
        let mut covered = false;
        score_each(points, probe, part, |near| covered |= near.score() > candidate.score());
        covered
    })
}
