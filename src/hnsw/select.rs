//! Which of many near nodes a node is linked to: those that lead in different directions.

use super::near::{Near, Points, score_each};

/// Links to nodes with the very code of the base: more of them would close a crowd of equal vectors off.
const TWINS_MAX: usize = 4;
/// Selected nodes that a candidate is compared with at a time.
const STEP: usize = 8;

/// The nodes that `base` is linked to, at most `most` of `candidates`, which come nearest first and hold neither the
/// base nor a node twice. A candidate is taken if it is not nearer to one that was taken before than to the base
/// (Malkov and Yashunin, algorithm 4); if then there are fewer than `fill`, the nearest of the others are taken too.
pub(super) fn select<P: Points + ?Sized>(
    points: &P,
    base: u32,
    candidates: &[Near],
    most: usize,
    fill: usize,
) -> Vec<u32> {
    debug_assert!(candidates.is_sorted_by(|a, b| a > b), "nearest first, none twice");
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
    // Those that were taken last lie in the same distance and cover it most often.
    selected.rchunks(STEP).any(|part| {
        let mut covered = false;
        score_each(points, probe, part, |near| covered |= near.score() > candidate.score());
        covered
    })
}
