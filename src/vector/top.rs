//! The best k of many scores, with one order for every caller.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::limits::K_MAX;

/// A score with its owner. Sorts by rank: the higher score first, equal scores by ascending id.
#[derive(Debug, Clone, Copy)]
pub struct Scored<I> {
    /// Dot product with the query, never −0.0.
    pub score: f32,
    /// The id of the owner: sixteen bytes for a memory.
    pub id: I,
}

impl<I: Ord> Ord for Scored<I> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.id.cmp(&other.id))
    }
}

impl<I: Ord> PartialOrd for Scored<I> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<I: Ord> PartialEq for Scored<I> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<I: Ord> Eq for Scored<I> {}

/// Keeps the best `k` of the scores that it is given, whatever the order in which they come.
#[derive(Debug)]
pub struct TopK<I> {
    k: usize,
    /// The worst of the kept scores is on top.
    kept: BinaryHeap<Scored<I>>,
}

impl<I: Ord> TopK<I> {
    /// An empty ranking of at most `k` entries.
    ///
    /// # Panics
    ///
    /// When `k` is not in 1 to [`K_MAX`]. The caller must check this bound.
    pub fn new(k: usize) -> Self {
        assert!((1..=K_MAX).contains(&k), "k is 1 to {K_MAX}, checked at the door");
        TopK { k, kept: BinaryHeap::with_capacity(k) }
    }

    /// How many entries are kept at most.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Offers one score.
    pub fn push(&mut self, score: f32, id: I) {
        debug_assert!(!score.is_nan(), "the dot product of two unit vectors is a number");
        // Adding +0.0 turns −0.0 into +0.0 and changes nothing else. Both are the same score.
        let offered = Scored { score: score + 0.0, id };
        if self.kept.len() < self.k {
            self.kept.push(offered);
        } else if let Some(mut worst) = self.kept.peek_mut()
            && offered < *worst
        {
            *worst = offered;
        }
    }

    /// The k-th best score so far. A lower score can't get in, and an equal one may, by its id. `None` while
    /// there is room.
    pub fn threshold(&self) -> Option<f32> {
        if self.kept.len() < self.k { None } else { self.kept.peek().map(|worst| worst.score) }
    }

    /// The kept entries, best first.
    pub fn into_sorted(self) -> Vec<Scored<I>> {
        self.kept.into_sorted_vec()
    }
}
