//! What a search of one index costs by a scan and by a walk. Nothing else weighs the one against the other.
//!
//! The unit is a code that a walk scores: about 80 ns at 384 dimensions, because nearly each of them comes from another
//! place of the memory. `cargo bench --bench index -- costs` measures the constants; they are rounded, as they differ
//! by half between 128 and 1,536 dimensions.

/// A code of a scan, side by side with others.
const SCANNED_CODE: f64 = 0.45;
/// A one-bit code of a scan, with the codes that are read for its sake.
const SCANNED_BITS: f64 = 0.07;
/// A code that a scan reads alone.
const SINGLE_CODE: f64 = 1.0;
/// The word that says which slots of a chunk are visible.
const WORD: f64 = 0.05;
/// The number of codes that a walk scores for each entry of its list, if all slots are visible.
const SCORED_PER_ENTRY: f64 = 16.0;
/// The number of codes that a walk scores for each node that it passes through.
const SCORED_PER_PASS: f64 = 8.0;
/// The number of slots for which there is one word.
const SLOTS_PER_WORD: f64 = u64::BITS as f64;

/// If a search sees no more slots of a chunk than these, it reads their codes one by one, and no one-bit codes.
pub(super) const FEW_FOR_BITS: u32 = 6;
/// If a search sees no more slots of a chunk than these, it reads their codes one by one, and not those of the chunk.
pub(super) const FEW_FOR_CODES: u32 = 12;

/// If a search sees no more than this share of an index, the index may be scanned although it has a graph.
const RARELY_SEEN: f64 = 0.25;

/// What the cost of a search depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// The number of slots, vacant ones included.
    pub(super) slots: u32,
    /// The share of the slots that the search sees, from 0 to 1.
    pub(super) seen: f64,
    /// Whether one-bit codes tell a scan which codes to read.
    pub(super) by_bits: bool,
}

impl Cost {
    /// A scan of the visible slots.
    pub(super) fn scan(self) -> f64 {
        let visible = SLOTS_PER_WORD * self.seen;
        let (whole, few) = match self.by_bits {
            true => (SCANNED_BITS, FEW_FOR_BITS),
            false => (SCANNED_CODE, FEW_FOR_CODES),
        };
        let one_by_one = visible * SINGLE_CODE;
        let chunk = match visible <= f64::from(few) {
            true => one_by_one,
            // At the border between the two ways the dearer one counts, so that more visible slots never cost less.
            false => (SLOTS_PER_WORD * whole).max(f64::from(few) * SINGLE_CODE),
        };
        f64::from(self.slots) / SLOTS_PER_WORD * (chunk + WORD)
    }

    /// A walk with a list of `ef` entries. It has to score more codes for the same number of visible ones.
    pub(super) fn walk(self, ef: usize) -> f64 {
        (ef as f64 * SCORED_PER_ENTRY / self.seen.max(f64::MIN_POSITIVE)).min(f64::from(self.slots))
    }

    /// Whether a search walks a graph that it has. Whoever has no one-bit codes, or gives the length of the list, asks
    /// for the walk as long as it meets enough of what it looks for.
    pub(super) fn walks(self, ef: usize) -> bool {
        (self.seen > RARELY_SEEN && !self.by_bits) || self.walk(ef) < self.scan()
    }

    /// The number of slots outside the window which a walk may meet before a scan would have cost less.
    pub(super) fn passes(self, ef: usize) -> usize {
        (4 * ef).max((self.scan() / SCORED_PER_PASS) as usize)
    }
}
