//! A scan by one bit a dimension: only slots that are likely among the best have their codes read.
//!
//! The scan writes down each slot whose one-bit code promises as much as the best k of the codes that were read so far. It begins
//! with a sample of the blocks, and goes on with the others in their order. When the list is long, the codes of its most
//! promising slots are read, which raises what the others must promise. So after the sample few slots are written down, and
//! each block of one-bit codes is read once.

use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::index::bits::Bits;
use crate::index::chunk::{Chunk, ones, read_block};
use crate::index::cost::FEW_FOR_BITS;
use crate::index::search::{Scope, Search};
use crate::index::sketch::Sketch;
use crate::index::source::Source;
use crate::index::view::View;
use crate::model::Effort;
use crate::record::{At, SlotBlockRef, slots_per_block};
use crate::store::{Read, Table, keys};
use crate::vector::{BIT_SLOTS, BitQuery, Candidates, Wanted};

/// The number of slots that are written down before the codes of the most promising are read, at least, and for each
/// neighbour that is wanted. In a model of this scan of 20,000 real vectors with k = 10, 512 let 1,482 slots be written down
/// and 287 codes be read in all; 4,096 let 4,819 and 278.
const FOUND_MIN: usize = 512;
const FOUND_FOR_EACH: usize = 32;
/// How many of the most promising slots are read at once, for each neighbour that is wanted. In the same model 1 lets 281 codes
/// be read in all, and 4 lets 321, where the final floor alone lets 267.
const FIRST_FOR_EACH: usize = 2;
/// Codes that are on the way from memory while those before them are compared.
const AHEAD: usize = 8;
/// Slots of a chunk.
const SLOTS: u32 = BIT_SLOTS as u32;

/// A slot that may be among the best.
#[derive(Clone, Copy)]
struct Likely {
    /// A score that the slot exceeds only by chance.
    upper: f32,
    /// Its number in the source.
    slot: u32,
    /// The number of the source.
    of: u32,
}

/// Slots that were found and whose codes were not read, in the order of the scan.
#[derive(Default)]
struct Found {
    slots: Vec<Likely>,
    /// The best that one slot promises, for each chunk of which slots were found.
    bests: Vec<f32>,
    /// Visible slots of the chunks that were scanned.
    scanned: u64,
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
    /// has one-bit codes. Returns the number of visible slots that were scanned.
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
        let mut found = Found::default();
        for number in 0..sifted.len() {
            self.sift_source(&sifted, number, &mut found, candidates)?;
        }
        self.settle(&sifted, &mut found, candidates)?;
        self.push(&sifted, &found.slots, candidates)?;
        Ok(found.scanned)
    }

    /// Scans a source until its end, or until the search must stop.
    fn sift_source(
        &self,
        sifted: &[Sifted<'_>],
        number: usize,
        found: &mut Found,
        candidates: &mut Candidates<'_>,
    ) -> Result<()> {
        let Some(of) = sifted.get(number) else { return Ok(()) };
        let found_min = FOUND_MIN.max(FOUND_FOR_EACH.saturating_mul(candidates.k()));
        let mut settle_len = found_min.max(2 * found.slots.len());
        let mut visit = |chunk: usize, visible: u64| -> Result<ControlFlow<()>> {
            let among = of.among.map_or(u64::MAX, |words| words.get(chunk).copied().unwrap_or(0));
            if visible & among != 0
                && !self.look(of, (number, chunk), visible & among, found, candidates.floor())
            {
                return Ok(ControlFlow::Break(()));
            }
            if found.slots.len() >= settle_len {
                self.settle(sifted, found, candidates)?;
                // The next length is twice what is left, so the work is in proportion to what was found.
                settle_len = found_min.max(2 * found.slots.len());
            }
            Ok(ControlFlow::Continue(()))
        };
        let (sight, read);
        let visible: &[u64] = match of.held {
            Held::View(view, _) => {
                sight = view.sight(self.window);
                sight.words()
            }
            Held::Sketch(sketch) => {
                read = Vec::from_iter(sketch.visible(self.window));
                &read
            }
        };
        // The first floor comes from chunks of all parts of the source: slots that lie side by side are often alike.
        let step = (visible.len() * BIT_SLOTS / found_min).max(1);
        let chunks = || visible.iter().copied().enumerate();
        let sample = chunks().step_by(step);
        let rest = chunks().filter(|(chunk, _)| !chunk.is_multiple_of(step));
        for (chunk, visible) in sample.chain(rest) {
            if visit(chunk, visible)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Writes down the slots of a chunk that promise `floor`. False if the search must stop.
    fn look(
        &self,
        of: &Sifted<'_>,
        (number, chunk): (usize, usize),
        visible: u64,
        found: &mut Found,
        floor: f32,
    ) -> bool {
        let first = (chunk * BIT_SLOTS) as u32;
        let likely = |bit: u32, upper| Likely { upper, slot: first + bit, of: number as u32 };
        if matches!(of.held, Held::View(..)) && (1..=FEW_FOR_BITS).contains(&visible.count_ones()) {
            // Their codes cost less than a look at the one-bit codes.
            found.slots.extend(ones(visible).map(|bit| likely(bit, f32::INFINITY)));
            found.scanned += u64::from(visible.count_ones());
            return true;
        }
        let room = &mut [0.0; BIT_SLOTS];
        let wanted = Wanted { slots: visible, least: floor };
        if self.ask.stop.is_over() {
            return false;
        }
        let Some(promising) = of.uppers(chunk, wanted, room) else { return true };
        found.scanned += u64::from(visible.count_ones());
        if promising != 0 {
            let slots = ones(promising).filter_map(|bit| Some(likely(bit, *room.get(bit as usize)?)));
            let before = found.slots.len();
            found.slots.extend(slots);
            let new = found.slots.iter().skip(before);
            found.bests.push(new.fold(f32::NEG_INFINITY, |best, slot| best.max(slot.upper)));
        }
        true
    }

    /// Reads the codes of the most promising slots, and strikes out the slots that promise too little after that.
    fn settle(
        &self,
        sifted: &[Sifted<'_>],
        found: &mut Found,
        candidates: &mut Candidates<'_>,
    ) -> Result<()> {
        let least = found.least_of_first(FIRST_FOR_EACH.saturating_mul(candidates.k()));
        let first: Vec<_> = found.slots.extract_if(.., |slot| slot.upper >= least).collect();
        self.push(sifted, &first, candidates)?;
        let floor = candidates.floor();
        found.slots.retain(|slot| slot.upper >= floor);
        found.bests.retain(|best| *best >= floor);
        Ok(())
    }

    /// Offers `candidates` slots, as far as they still promise enough, those of one source after those of another.
    fn push(&self, sifted: &[Sifted<'_>], slots: &[Likely], candidates: &mut Candidates<'_>) -> Result<()> {
        for slots in slots.chunk_by(|a, b| a.of == b.of) {
            let Some(of) = slots.first().and_then(|slot| sifted.get(slot.of as usize)) else { continue };
            match of.held {
                Held::View(view, _) => push_from_memory(of.source, view, slots, candidates),
                Held::Sketch(_) => {
                    let mut read = Chunk::with_room(slots_per_block(self.dim), self.dim);
                    for slots in slots.chunk_by(|a, b| a.slot / SLOTS == b.slot / SLOTS) {
                        let floor = candidates.floor();
                        let likely = slots.iter().filter(|slot| slot.upper >= floor);
                        let likely = likely.fold(0, |bits, slot| bits | 1 << (slot.slot % SLOTS));
                        let first = slots.first().map_or(0, |slot| slot.slot / SLOTS * SLOTS);
                        self.push_from_file(of.source, first, likely, candidates, &mut read)?;
                    }
                }
            }
        }
        Ok(())
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
    /// The wanted slots of a chunk that may score enough, a bit for each, and for each of them a score that the slot exceeds only
    /// by chance if it scores enough; none for a chunk without one-bit codes.
    fn uppers(&self, chunk: usize, wanted: Wanted, room: &mut [f32; BIT_SLOTS]) -> Option<u64> {
        match self.held {
            Held::View(_, bits) => {
                // The processor looks ahead within a page of memory only, and a block is nearly a page.
                let next = bits.block(chunk + 1);
                Some(self.query.likely_uppers(bits.block(chunk)?, next, wanted, room))
            }
            Held::Sketch(sketch) => sketch.likely_uppers(&self.query, chunk, wanted, room),
        }
    }
}

impl Found {
    /// What the `many` most promising slots promise at least.
    fn least_of_first(&self, many: usize) -> f32 {
        let mut scores = self.bests.clone();
        if scores.len() < many {
            scores = self.slots.iter().map(|slot| slot.upper).collect();
        }
        if scores.len() <= many {
            return f32::NEG_INFINITY;
        }
        let (_, last, _) = scores.select_nth_unstable_by(many.saturating_sub(1), |a, b| b.total_cmp(a));
        *last
    }
}

/// Offers `candidates` slots whose codes are in memory. Some of them are on their way while those before are compared.
fn push_from_memory(source: &Source, view: &View, slots: &[Likely], candidates: &mut Candidates<'_>) {
    let codes = |slot: &Likely| {
        let (chunk, at) = ((slot.slot / SLOTS) as usize, slot.slot % SLOTS);
        Some((view.chunk(chunk)?.codes(view.dim()), at))
    };
    let row = |slot: &Likely| {
        let (codes, at) = codes(slot)?;
        codes.rows(source.base + slot.slot - at, 1 << at).next()
    };
    let prefetch = |slots: &[Likely], floor: f32| {
        let likely = slots.iter().filter(|slot| slot.upper >= floor);
        likely.filter_map(codes).for_each(|(codes, at)| codes.prefetch(at as usize));
    };
    let mut parts = slots.chunks(AHEAD);
    let mut coming = parts.next().unwrap_or_default();
    prefetch(coming, candidates.floor());
    while !coming.is_empty() {
        let (come, floor) = (coming, candidates.floor());
        coming = parts.next().unwrap_or_default();
        prefetch(coming, floor);
        candidates.push_likely(come.iter().filter(|slot| slot.upper >= floor).filter_map(row));
    }
}
