//! What a scan keeps: the slots that may be among the best k, or all slots in the order of their bounds.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::scan::{Block, Bound, Codes, QueryCode, Row};
use super::top::TopK;

/// The number of kept slots at which slots are first dropped again.
const PRUNE_LEN_MIN: usize = 1_024;

/// A slot whose score may be as high as `upper`. Sorts by rank: the higher bound first, equal bounds by ascending
/// slot.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// The number of the slot.
    pub slot: u32,
    /// An upper bound on the score.
    pub upper: f32,
}

impl Candidate {
    fn new(slot: u32, bound: Bound) -> Self {
        Candidate { slot, upper: bound.upper() }
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        other.upper.total_cmp(&self.upper).then_with(|| self.slot.cmp(&other.slot))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

/// Collects the slots that can be among the best `k` by f32 score, with ties of the k-th score included.
///
/// There are few of them as a rule. Then the caller scores them in the order of a [`Ranking`], and stops at the first
/// upper bound below the k-th score found. Among near-equal vectors there are many. Then the caller scores them in the
/// order of their slots.
#[derive(Debug)]
pub struct Candidates<'q> {
    query: &'q QueryCode,
    /// The k highest lower bounds so far. A slot whose upper bound is below all of them is out.
    lowers: TopK<()>,
    /// A slot whose upper bound is below this is out as well.
    least: f32,
    kept: Vec<Candidate>,
    /// The length of `kept` at which slots that have fallen behind are dropped.
    prune_len: usize,
}

impl<'q> Candidates<'q> {
    /// An empty collector.
    ///
    /// # Panics
    ///
    /// When `k` is not in 1 to [`K_MAX`](crate::limits::K_MAX). The caller must check this bound.
    pub fn new(query: &'q QueryCode, k: usize) -> Self {
        Candidates::at_least(query, k, f32::NEG_INFINITY)
    }

    /// A collector for those of these slots that may score at least `least`.
    ///
    /// # Panics
    ///
    /// As [`Candidates::new`].
    pub fn at_least(query: &'q QueryCode, k: usize, least: f32) -> Self {
        Candidates { query, lowers: TopK::new(k), least, kept: Vec::new(), prune_len: PRUNE_LEN_MIN }
    }

    /// How many neighbours are wanted.
    pub fn k(&self) -> usize {
        self.lowers.k()
    }

    /// Reads a chunk whose first slot is `first_slot`. It keeps only slots whose bit in `visible` is set (bit *i* mod
    /// 64 of word *i*/64 for the *i*-th slot; a missing word is 0). `None` means all slots.
    pub fn push_chunk(&mut self, first_slot: u32, codes: Codes<'_>, visible: Option<&[u64]>) {
        let query = self.query;
        query.scan(codes, visible, |block| {
            // After a while almost no block has a row that gets in.
            if block.reaches(self.floor()) {
                self.push_block(first_slot, &block);
            }
        });
    }

    /// Reads the codes of single slots, of one chunk or of many.
    pub fn push_rows<'c>(&mut self, rows: impl IntoIterator<Item = Row<'c>>) {
        let query = self.query;
        query.read(rows, |row, dot| {
            let bound = query.bound(dot, row.scale, row.residual);
            if bound.upper() >= self.floor() {
                self.push(row.slot, bound);
            }
        });
        self.prune_if_long();
    }

    /// As [`Candidates::push_rows`], for a search that may miss a neighbour: a slot counts with the interval that its score
    /// leaves only by a small chance ([`QueryCode::likely_upper`]).
    pub fn push_likely<'c>(&mut self, rows: impl IntoIterator<Item = Row<'c>>) {
        let query = self.query;
        query.read(rows, |row, dot| {
            // The certain interval costs less, and is mostly enough to say that the slot is out.
            if query.bound(dot, row.scale, row.residual).upper() < self.floor() {
                return;
            }
            let bound = query.likely_of(row, dot);
            if bound.upper() >= self.floor() {
                self.push(row.slot, bound);
            }
        });
        self.prune_if_long();
    }

    fn push(&mut self, slot: u32, bound: Bound) {
        self.lowers.push(bound.lower(), ());
        self.kept.push(Candidate::new(slot, bound));
    }

    fn prune_if_long(&mut self) {
        if self.kept.len() >= self.prune_len {
            self.prune();
            // The next length is twice what is left, so pruning costs a constant amount for each slot.
            self.prune_len = PRUNE_LEN_MIN.max(2 * self.kept.len());
        }
    }

    fn push_block(&mut self, first_slot: u32, block: &Block<'_>) {
        for (row, bound) in block.visible_rows() {
            if bound.upper() >= self.floor() {
                self.push(first_slot + row, bound);
            }
        }
        self.prune_if_long();
    }

    /// The k-th highest lower bound so far, and at least the least score. A slot whose score is below is out.
    pub fn floor(&self) -> f32 {
        self.lowers.threshold().map_or(self.least, |lower| lower.max(self.least))
    }

    fn prune(&mut self) {
        let floor = self.floor();
        self.kept.retain(|candidate| candidate.upper >= floor);
    }

    /// The candidates, in the order in which they were read.
    pub fn finish(mut self) -> Vec<Candidate> {
        self.prune();
        self.kept
    }
}

/// Candidates in order of rank, sorted only as far as they are read.
#[derive(Debug)]
pub struct Ranking(BinaryHeap<Reverse<Candidate>>);

/// Collects every visible slot for a [`Ranking`], chunk by chunk, so that no chunk has to stay in memory.
#[derive(Debug)]
pub struct Promises<'q> {
    query: &'q QueryCode,
    all: Vec<Reverse<Candidate>>,
}

impl<'q> Promises<'q> {
    /// An empty collector.
    pub fn new(query: &'q QueryCode) -> Self {
        Promises { query, all: Vec::new() }
    }

    /// Reads a chunk, as [`Candidates::push_chunk`] does.
    pub fn push_chunk(&mut self, first_slot: u32, codes: Codes<'_>, visible: Option<&[u64]>) {
        self.query.scan(codes, visible, |block| {
            let rows = block.visible_rows();
            self.all.extend(rows.map(|(row, bound)| Reverse(Candidate::new(first_slot + row, bound))));
        });
    }

    /// Adds candidates that were found in another way.
    pub fn extend(&mut self, candidates: &[Candidate]) {
        self.all.extend(candidates.iter().copied().map(Reverse));
    }

    /// The slots in order of rank.
    pub fn finish(self) -> Ranking {
        Ranking(self.all.into())
    }
}

impl From<Vec<Candidate>> for Ranking {
    fn from(candidates: Vec<Candidate>) -> Self {
        Ranking(candidates.into_iter().map(Reverse).collect())
    }
}

impl Iterator for Ranking {
    type Item = Candidate;

    fn next(&mut self) -> Option<Candidate> {
        self.0.pop().map(|Reverse(candidate)| candidate)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len(), Some(self.0.len()))
    }
}

impl ExactSizeIterator for Ranking {}
