//! A scan by one bit a dimension: only slots that are likely among the best have their codes read.
//!
//! The first pass reads one-bit codes and writes down for each chunk the best score that its slots exceed only by
//! chance. The second pass reads the codes of the slots that promise enough, those of the most promising chunk first,
//! until the best k of the codes are above everything that the other slots promise.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::error::{Result, sound};
use crate::index::bits::Bits;
use crate::index::chunk::{Chunk, read_block};
use crate::index::cost::FEW_FOR_BITS;
use crate::index::search::{Scope, Search};
use crate::index::sketch::Sketch;
use crate::index::source::Source;
use crate::index::view::View;
use crate::model::Effort;
use crate::record::{At, SlotBlockRef, slots_per_block};
use crate::store::{Read, Table, keys};
use crate::vector::{BIT_SLOTS, BitBlock, BitQuery, Candidates, Codes, Row};

/// Some slots of a chunk in memory, whose codes are read one by one.
struct Few<'s> {
    first: u32,
    slots: u64,
    codes: Codes<'s>,
}

/// A chunk, ordered by the best that one of its slots promises.
struct Promising<'s> {
    best: f32,
    number: usize,
    visible: u64,
    of: &'s Sifted<'s>,
}

/// Where the one-bit codes of a source are.
enum Held<'s> {
    /// Beside its codes.
    View(&'s View, &'s Bits),
    /// Alone: codes are read from the file.
    Sketch(&'s Sketch),
}

/// A source that is scanned by its one-bit codes.
struct Sifted<'s> {
    source: &'s Source,
    held: Held<'s>,
    query: BitQuery,
    /// If given, only these slots count.
    among: Option<&'s [u64]>,
}

impl Search<'_> {
    /// The recall with which a source is scanned by its one-bit codes; none if it is not. A search that must be certain
    /// reads all codes, and so does one with a list of a given length, which has no recall to keep.
    pub(super) fn recall_by_bits(&self, source: &Source) -> Option<f32> {
        let Effort::Recall(recall) = self.ask.effort else { return None };
        let by_view = source.view.as_ref().is_some_and(|view| view.bits().is_some());
        (by_view || source.sketch.is_some()).then_some(recall)
    }

    /// Offers `candidates` the slots that are likely among the best, from every source in `scope` that is scanned and
    /// has one-bit codes. Returns the number of slots whose one-bit codes were read.
    pub(super) fn sift(&self, scope: Scope<'_>, candidates: &mut Candidates<'_>) -> Result<u64> {
        let sifted = self.sources.iter().enumerate().filter_map(|(number, source)| {
            let recall = self.recall_by_bits(source).filter(|_| !self.is_walked(source, scope))?;
            let query = self.ask.query.as_slice();
            let (held, query) = match (&source.view, &source.sketch) {
                (Some(view), _) => (Held::View(view, view.bits()?), view.bits()?.query(query, recall)),
                (None, sketch) => (Held::Sketch(sketch.as_deref()?), sketch.as_ref()?.query(query, recall)),
            };
            let among = scope.among.and_then(|among| among.get(number)).map(Vec::as_slice);
            Some(Sifted { source, held, query, among })
        });
        let sifted: Vec<_> = sifted.collect();
        let (mut all, mut few) = (Vec::new(), Vec::new());
        sifted.iter().for_each(|of| self.promising(of, &mut all, &mut few));
        let counts = all.iter().map(|chunk| chunk.visible).chain(few.iter().map(|few| few.slots));
        let scanned = counts.map(|visible| u64::from(visible.count_ones())).sum();
        candidates.push_likely(few.iter().flat_map(Few::rows));
        let mut all = BinaryHeap::from(all);
        let mut read = Chunk::with_room(slots_per_block(self.dim), self.dim);
        let mut coming = None;
        // The most promising chunk comes first, so all chunks behind the first one below the floor are below it too.
        while let Some(best) = all.pop().filter(|best| best.best >= candidates.floor()) {
            match best.of.held {
                Held::View(view, bits) => {
                    let next = all.peek().and_then(Promising::block);
                    let few = best.likely(view, bits, next, candidates.floor());
                    // The codes that the chunk before wants have come from memory meanwhile.
                    let come = std::mem::replace(&mut coming, few);
                    candidates.push_likely(come.iter().flat_map(Few::rows));
                }
                Held::Sketch(sketch) => {
                    let Promising { number, visible, of, .. } = best;
                    let likely = sketch.likely_above(&of.query, number, visible, candidates.floor());
                    let first = (number * BIT_SLOTS) as u32;
                    self.push_from_file(of.source, first, likely, candidates, &mut read)?;
                }
            }
        }
        candidates.push_likely(coming.iter().flat_map(Few::rows));
        Ok(scanned)
    }

    /// What each chunk with a visible slot promises, until the search must stop; and the chunks of which so few slots
    /// are visible that their codes cost less than a look at the one-bit codes.
    fn promising<'s>(&self, of: &'s Sifted<'s>, all: &mut Vec<Promising<'s>>, few: &mut Vec<Few<'s>>) {
        let mut visit = |number: usize, visible: u64| {
            let among = of.among.map_or(u64::MAX, |words| words.get(number).copied().unwrap_or(0));
            let visible = visible & among;
            if let Held::View(view, _) = of.held
                && (1..=FEW_FOR_BITS).contains(&visible.count_ones())
            {
                let codes = view.chunk(number)?.codes(self.dim);
                few.push(Few { first: of.source.base + (number * BIT_SLOTS) as u32, slots: visible, codes });
            } else if visible != 0 {
                let best = of.best(number, visible).filter(|_| !self.ask.stop.is_over())?;
                all.push(Promising { best, number, visible, of });
            }
            Some(())
        };
        // A chunk without codes ends the scan, and so does the stop.
        match of.held {
            Held::View(view, _) => {
                let sight = view.sight(self.window);
                sight.words().iter().enumerate().try_for_each(|(number, visible)| visit(number, *visible))
            }
            Held::Sketch(sketch) => sketch
                .visible(self.window)
                .enumerate()
                .try_for_each(|(number, visible)| visit(number, visible)),
        };
    }

    /// Offers `candidates` slots of 64 from `first` on, whose codes are read from the file. Those of a block that is damaged
    /// or gone are left out.
    fn push_from_file(
        &self,
        source: &Source,
        first: u32,
        mut likely: u64,
        candidates: &mut Candidates<'_>,
        read: &mut Chunk,
    ) -> Result<()> {
        let per = slots_per_block(self.dim) as u32;
        while likely != 0 {
            let block = (first + likely.trailing_zeros()) / per;
            // The slots of the block, by their places in it: those from `first` on, as far as the 64 bits go.
            let start = block * per;
            let of_block = (start.max(first)..(start + per).min(first + BIT_SLOTS as u32))
                .filter(|slot| likely >> (slot - first) & 1 == 1)
                .collect::<Vec<_>>();
            of_block.iter().for_each(|slot| likely &= !(1 << (slot - first)));
            let key = keys::block(source.index, block);
            read.clear();
            self.snapshot().look(Table::Slot, &key, &mut |bytes| {
                let at = At::new(Table::Slot.name(), &key);
                if let Some(slots) = sound(SlotBlockRef::open(at, self.dim, bytes))? {
                    read_block(read, &slots, self.dim);
                }
                Ok(())
            })?;
            if read.len() == 0 {
                self.lost.set(self.lost.get() + of_block.len() as u64);
            }
            // Blocks of few dimensions have more than 64 slots.
            for group in of_block.chunk_by(|a, b| (a - start) / 64 == (b - start) / 64) {
                let Some(at) = group.first().map(|slot| (slot - start) / 64 * 64) else { continue };
                let wanted = group.iter().filter(|slot| ((*slot - start) as usize) < read.len());
                let wanted = wanted.fold(0_u64, |bits, slot| bits | 1 << (slot - start - at));
                let codes = read.codes_from(at as usize, self.dim);
                candidates.push_likely(codes.rows(source.base + start + at, wanted));
            }
        }
        Ok(())
    }
}

impl Sifted<'_> {
    /// The best that a slot of a chunk promises; none for a chunk without one-bit codes.
    fn best(&self, number: usize, visible: u64) -> Option<f32> {
        let room = &mut [0.0; BIT_SLOTS];
        match self.held {
            Held::View(_, bits) => {
                // The processor looks ahead within a page of memory only, and a block is nearly a page.
                let next = bits.block(number + 1);
                Some(self.query.likely_uppers(bits.block(number)?, next, visible, room))
            }
            Held::Sketch(sketch) => sketch.likely_uppers(&self.query, number, visible, room),
        }
    }
}

impl<'s> Few<'s> {
    fn rows(&self) -> impl Iterator<Item = Row<'s>> {
        self.codes.rows(self.first, self.slots)
    }
}

impl<'s> Promising<'s> {
    /// The one-bit codes, if they are in memory beside the codes.
    fn block(&self) -> Option<BitBlock<'s>> {
        match self.of.held {
            Held::View(_, bits) => bits.block(self.number),
            Held::Sketch(_) => None,
        }
    }

    /// The slots of a chunk of a view that are likely among the best. The processor is asked to load their codes, and the
    /// one-bit codes that are read next.
    fn likely(
        &self,
        view: &'s View,
        bits: &'s Bits,
        next: Option<BitBlock<'_>>,
        floor: f32,
    ) -> Option<Few<'s>> {
        let Promising { number, visible, of, .. } = *self;
        let (chunk, block) = (view.chunk(number)?, bits.block(number)?);
        let slots = of.query.likely_above(block, next, visible, floor);
        let few = Few {
            first: of.source.base + (number * BIT_SLOTS) as u32,
            slots,
            codes: chunk.codes(view.dim()),
        };
        few.rows().for_each(Row::prefetch);
        Some(few)
    }

    /// Where the chunk stands among those of the search.
    fn place(&self) -> (u32, usize) {
        (self.of.source.base, self.number)
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
