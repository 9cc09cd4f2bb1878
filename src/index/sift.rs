//! A scan by one bit a dimension: only slots that are likely among the best have their codes read.
//!
//! The first pass reads one-bit codes and writes down for each slot a score that it exceeds only by chance. The second
//! pass reads the codes of slots, those of the most promising chunk first, until the best k of the codes are above
//! everything that the other slots promise.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::index::bits::Bits;
use crate::index::chunk::Chunk;
use crate::index::search::{Scope, Search};
use crate::index::source::Source;
use crate::index::view::View;
use crate::model::Effort;
use crate::vector::{BIT_SLOTS, BitBlock, Candidates, at_least};

thread_local! {
    /// What the slots of a search promise, in the order in which the first pass comes to them. The memory is used
    /// again.
    static PROMISES: RefCell<Vec<[f32; BIT_SLOTS]>> = const { RefCell::new(Vec::new()) };
}

/// Blocks of promises for which a thread keeps memory: 1 MiB.
const PROMISES_KEPT: usize = (1 << 20) / size_of::<[f32; BIT_SLOTS]>();

/// A chunk, ordered by the best that one of its slots promises.
struct Promising<'v> {
    best: f32,
    /// Where the promises of its slots stand.
    at: usize,
    /// The number of its first slot in the search.
    first: u32,
    chunk: &'v Chunk,
}

impl Search<'_> {
    /// The one-bit codes by which a source is scanned. A search that must be certain reads all codes, and so does one
    /// with a list of a given length, which has no recall to keep.
    pub(super) fn bits_of<'s>(&self, source: &'s Source) -> Option<(&'s View, &'s Bits, f32)> {
        let Effort::Recall(recall) = self.ask.effort else { return None };
        let view = source.view.as_deref()?;
        Some((view, view.bits()?, recall))
    }

    /// Offers `candidates` the slots that are likely among the best, from every source in `scope` that is scanned and
    /// has one-bit codes. Returns the number of slots whose one-bit codes were read.
    pub(super) fn sift(&self, scope: Scope<'_>, candidates: &mut Candidates<'_>) -> u64 {
        PROMISES.with_borrow_mut(|promises| {
            promises.clear();
            let (mut all, mut scanned) = (Vec::new(), 0);
            for (number, source) in self.sources.iter().enumerate() {
                if !self.is_walked(source, scope) {
                    let among = scope.among.and_then(|among| among.get(number));
                    scanned += self.promise(source, among.map(Vec::as_slice), promises, &mut all);
                }
            }
            let mut all = BinaryHeap::from(all);
            while let Some(next) = all.pop().filter(|next| next.best >= candidates.floor()) {
                let likely = promises.get(next.at).map_or(0, |uppers| at_least(uppers, candidates.floor()));
                candidates.push_slots(next.first, next.chunk.codes(self.dim), likely);
            }
            promises.shrink_to(PROMISES_KEPT);
            scanned
        })
    }

    /// Writes down what the slots of a source promise, if it has one-bit codes. With `among`, only those slots count.
    /// Returns the number of slots.
    fn promise<'s>(
        &self,
        source: &'s Source,
        among: Option<&[u64]>,
        promises: &mut Vec<[f32; BIT_SLOTS]>,
        all: &mut Vec<Promising<'s>>,
    ) -> u64 {
        let Some((view, bits, recall)) = self.bits_of(source) else { return 0 };
        let query = bits.query(self.ask.query.as_slice(), recall);
        let mut scanned = 0;
        for (number, (first, chunk)) in view.chunks().enumerate() {
            let among = among.map_or(u64::MAX, |words| words.get(number).copied().unwrap_or(0));
            let visible = chunk.visible_bits(self.window) & among;
            let Some(block) = bits.block(number).filter(|_| visible != 0) else { continue };
            if self.ask.stop.is_over() {
                break;
            }
            // Blocks lie apart, and the processor does not foresee where the next one begins.
            bits.block(number + 2).into_iter().for_each(BitBlock::prefetch_numbers);
            bits.block(number + 1).into_iter().for_each(BitBlock::prefetch_signs);
            scanned += u64::from(visible.count_ones());
            let mut uppers = [0.0; BIT_SLOTS];
            let best = query.likely_uppers(block, visible, &mut uppers);
            all.push(Promising { best, at: promises.len(), first: source.base + first, chunk });
            promises.push(uppers);
        }
        scanned
    }
}

impl Ord for Promising<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.best.total_cmp(&other.best).then_with(|| other.first.cmp(&self.first))
    }
}

impl PartialOrd for Promising<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Promising<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Promising<'_> {}
