//! A scan by one bit a dimension: only slots that are likely among the best have their codes read.
//!
//! The first pass reads one-bit codes and writes down for each chunk the best score that its slots exceed only by
//! chance. The second pass reads the codes of the slots that promise enough, those of the most promising chunk first,
//! until the best k of the codes are above everything that the other slots promise.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::index::bits::Bits;
use crate::index::search::{Scope, Search};
use crate::index::source::Source;
use crate::index::view::View;
use crate::model::Effort;
use crate::vector::{BIT_SLOTS, BitQuery, Candidates};

/// A chunk, ordered by the best that one of its slots promises.
struct Promising<'s> {
    best: f32,
    number: usize,
    visible: u64,
    of: &'s Sifted<'s>,
}

/// A source that is scanned by its one-bit codes.
struct Sifted<'s> {
    base: u32,
    view: &'s View,
    bits: &'s Bits,
    query: BitQuery,
    /// If given, only these slots count.
    among: Option<&'s [u64]>,
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
        let sifted = self.sources.iter().enumerate().filter_map(|(number, source)| {
            let (view, bits, recall) = self.bits_of(source).filter(|_| !self.is_walked(source, scope))?;
            let query = bits.query(self.ask.query.as_slice(), recall);
            let among = scope.among.and_then(|among| among.get(number)).map(Vec::as_slice);
            Some(Sifted { base: source.base, view, bits, query, among })
        });
        let sifted: Vec<_> = sifted.collect();
        let all: Vec<_> = sifted.iter().flat_map(|of| self.promising(of)).collect();
        let scanned = all.iter().map(|chunk| u64::from(chunk.visible.count_ones())).sum();
        let mut all = BinaryHeap::from(all);
        // The most promising chunk comes first, so all chunks behind the first one below the floor are below it too.
        while let Some(Promising { number, visible, of, .. }) =
            all.pop().filter(|next| next.best >= candidates.floor())
        {
            let (Some(chunk), Some(block)) = (of.view.chunk(number), of.bits.block(number)) else { continue };
            let likely = of.query.likely_above(block, visible, candidates.floor());
            candidates.push_slots(of.base + (number * BIT_SLOTS) as u32, chunk.codes(self.dim), likely);
        }
        scanned
    }

    /// What each chunk with a visible slot promises, until the search must stop.
    fn promising<'s>(&self, of: &'s Sifted<'s>) -> impl Iterator<Item = Promising<'s>> {
        let visible = of.view.visible(self.window).enumerate().map(|(number, visible)| {
            let among = of.among.map_or(u64::MAX, |words| words.get(number).copied().unwrap_or(0));
            (number, visible & among)
        });
        visible.filter(|(_, visible)| *visible != 0).map_while(move |(number, visible)| {
            let block = of.bits.block(number).filter(|_| !self.ask.stop.is_over())?;
            let best = of.query.likely_uppers(block, visible, &mut [0.0; BIT_SLOTS]);
            Some(Promising { best, number, visible, of })
        })
    }
}

impl Promising<'_> {
    /// Where the chunk stands among those of the search.
    fn place(&self) -> (u32, usize) {
        (self.of.base, self.number)
    }
}

impl Ord for Promising<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.best.total_cmp(&other.best).then_with(|| other.place().cmp(&self.place()))
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
