//! What an instruction set has to offer: the functions of a kernel, and what all kernels share.

#![allow(
    unsafe_code,
    reason = "calls functions that are compiled for instructions which the processor may lack"
)]

use crate::limits::DIM_MAX;

/// Lanes of a float sum.
pub(super) const LANES: usize = 16;

/// Slots of a block of one-bit codes.
pub const BIT_SLOTS: usize = 64;
/// The signs of eight dimensions, a byte for each slot of a block: bit n is the sign of dimension n of the eight.
pub type SignBytes = [u8; BIT_SLOTS];
/// The signs of eight dimensions of a query, four times. Processors load 32 bits into every place of a register at no cost,
/// but not 8 bits.
pub(in crate::vector) type QuerySigns = [u8; 4];
/// Bits of a value of a query.
pub(in crate::vector) const QUERY_BITS: u32 = 4;

/// What each half of a byte of signs adds to a sum: the levels of a query where the half has a one. The lower half
/// comes first.
pub(in crate::vector) type Tables = [[u8; 16]; 2];

/// Scores that are compared at once with the least that is wanted.
const AT_ONCE: usize = 8;

/// The numbers of the slots of a block of one-bit codes.
#[derive(Clone, Debug)]
pub(in crate::vector) struct SlotNumbers {
    /// The number of positive signs.
    pub(in crate::vector) ones: [f32; BIT_SLOTS],
    /// What the inner product of signs and query is multiplied with.
    pub(in crate::vector) factors: [f32; BIT_SLOTS],
    /// The standard deviation of the estimate for a query at distance 1 from the center.
    pub(in crate::vector) errors: [f32; BIT_SLOTS],
    /// The inner products with the center.
    pub(in crate::vector) offsets: [f32; BIT_SLOTS],
}

/// A block of one-bit codes as a scan reads it.
#[derive(Clone, Copy, Debug)]
pub(in crate::vector) struct ScanBlock<'b> {
    /// For each eight dimensions, the signs of all slots.
    pub(in crate::vector) signs: &'b [SignBytes],
    /// The signs of the block that is read next. A kernel may ask the processor to load them while it reads those of this
    /// block, a line for a line. Asked for all at once, most of them would wait for each other.
    pub(in crate::vector) ahead: &'b [SignBytes],
    pub(in crate::vector) numbers: &'b SlotNumbers,
}

/// Which slots of a block a scan wants.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Slots that count, a bit for each.
    pub slots: u64,
    /// What a slot must score at least.
    pub least: f32,
}

/// A query as kernels compare it with one-bit codes. Its value at level *l* is `low + step · l`.
#[derive(Clone, Debug)]
pub(in crate::vector) struct Levels {
    /// For each byte of the signs, what it adds to a sum.
    pub(in crate::vector) tables: Box<[Tables]>,
    pub(in crate::vector) twice_low: f32,
    pub(in crate::vector) twice_step: f32,
    /// The sum of the values.
    pub(in crate::vector) total: f32,
    /// What every estimate has in common.
    pub(in crate::vector) base: f32,
    /// The squares of the distance to the center and of the rounding error, times the square of the deviations.
    pub(in crate::vector) reach: f32,
    pub(in crate::vector) lost: f32,
}

impl Levels {
    /// Writes the scores of a block from the sums of its signs. No product is fused with a sum, so every instruction set
    /// gives the same bits.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a kernel compiles it for its own instructions")]
    pub(super) fn scores(&self, numbers: &SlotNumbers, sums: &[i32; BIT_SLOTS], out: &mut [f32; BIT_SLOTS]) {
        let SlotNumbers { ones, factors, errors, offsets } = numbers;
        for (((((out, sum), ones), factor), error), offset) in
            out.iter_mut().zip(sums).zip(ones).zip(factors).zip(errors).zip(offsets)
        {
            let product = self.twice_low * ones + self.twice_step * *sum as f32 - self.total;
            let spread = error * error * self.reach + factor * factor * self.lost;
            *out = factor * product + offset + self.base + spread.sqrt();
        }
    }
}

/// The slots whose score is at least `least`, a bit for each, where the instructions have no comparison that gives bits.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a kernel compiles it for its own instructions")]
pub(super) fn at_least(scores: &[f32; BIT_SLOTS], least: f32) -> u64 {
    let mut all = 0;
    for (number, scores) in scores.as_chunks::<AT_ONCE>().0.iter().enumerate() {
        // Mostly none of them is, which is seen of all at once.
        if scores.iter().fold(false, |any, score| any | (*score >= least)) {
            let bits = scores.iter().enumerate();
            let bits = bits.fold(0, |bits, (bit, score)| bits | (u64::from(*score >= least) << bit));
            all |= bits << (number * AT_ONCE);
        }
    }
    all
}

/// What kernels know of a query of which only the signs are compared.
#[derive(Clone, Copy, Debug)]
pub(in crate::vector) struct SignNumbers {
    /// What a sign of the query stands for.
    pub(in crate::vector) value: f32,
    /// The distance to the center.
    pub(in crate::vector) reach: f32,
    /// The least of what a slot must promise beyond what every estimate of the query has in common.
    pub(in crate::vector) needed: f32,
}

/// A block of one-bit codes as a batch of queries reads it.
#[derive(Clone, Debug)]
pub(in crate::vector) struct SignSlots<'b> {
    /// For each eight dimensions, the signs of all slots.
    pub(in crate::vector) signs: &'b [SignBytes],
    pub(in crate::vector) numbers: &'b SlotNumbers,
    /// What is allowed for the error of an estimate, for a query at distance 1 from the center.
    margins: [f32; BIT_SLOTS],
    /// The highest factor, margin and offset of a slot.
    most: (f32, f32, f32),
}

impl<'b> SignSlots<'b> {
    /// A block whose slots have no factor and no margin below 0.
    pub(in crate::vector) fn new(
        signs: &'b [SignBytes],
        numbers: &'b SlotNumbers,
        margins: [f32; BIT_SLOTS],
    ) -> Self {
        let highest = |values: &[f32; BIT_SLOTS]| values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let most = (highest(&numbers.factors), highest(&margins), highest(&numbers.offsets));
        SignSlots { signs, numbers, margins, most }
    }

    /// Whether any slot can promise what the query needs, if none differs from it in fewer signs than `fewest`. Most
    /// blocks are out by this. The bound has the steps of [`SignSlots::likely`] with numbers that are at least as high,
    /// and rounding keeps an order, so no slot is left out that the function finds.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a kernel compiles it for its own instructions")]
    pub(super) fn may_have(&self, query: SignNumbers, fewest: i32) -> bool {
        let (factor, margin, offset) = self.most;
        let product = query.value * (self.sign_count() - 2 * fewest).max(0) as f32;
        factor * product + query.reach * margin + offset >= query.needed
    }

    fn sign_count(&self) -> i32 {
        (self.signs.len() * 8) as i32
    }

    /// The slots that promise what the query needs, a bit for each, from the numbers of signs in which slot and query
    /// differ. No product is fused with a sum, so every instruction set gives the same bits.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a kernel compiles it for its own instructions")]
    pub(super) fn likely(&self, query: SignNumbers, differences: &[i32; BIT_SLOTS]) -> u64 {
        let SlotNumbers { factors, offsets, .. } = self.numbers;
        let signs = self.sign_count();
        let mut uppers = [0.0; BIT_SLOTS];
        let mut any = false;
        for ((((upper, difference), factor), margin), offset) in
            uppers.iter_mut().zip(differences).zip(factors).zip(&self.margins).zip(offsets)
        {
            let product = query.value * (signs - 2 * difference) as f32;
            let beyond = factor * product + query.reach * margin;
            *upper = if beyond > 0.0 { beyond } else { 0.0 } + offset;
            any |= *upper >= query.needed;
        }
        // Most blocks have no such slot, and a bit for each slot costs more than the question whether there is one.
        if !any {
            return 0;
        }
        let bits = uppers.iter().enumerate();
        bits.fold(0, |bits, (bit, upper)| bits | (u64::from(*upper >= query.needed) << bit))
    }
}

/// Counts for each slot the signs in which it differs from a query.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a kernel compiles it for its own instructions")]
pub(super) fn count_differences(rows: &[SignBytes], signs: &[QuerySigns]) -> [i32; BIT_SLOTS] {
    let mut differences = [0; BIT_SLOTS];
    for (row, [sign, ..]) in rows.iter().zip(signs) {
        for (difference, byte) in differences.iter_mut().zip(row) {
            *difference += (byte ^ sign).count_ones().cast_signed();
        }
    }
    differences
}

/// Two lists of 16 bits as one of 32 in turns: those of the even slots, and those of the odd ones.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a kernel compiles it for its own instructions")]
pub(super) fn in_turns(evens: &[u16], odds: &[u16], out: &mut [i32]) {
    for ((pair, even), odd) in out.as_chunks_mut::<2>().0.iter_mut().zip(evens).zip(odds) {
        *pair = [i32::from(*even), i32::from(*odd)];
    }
}

/// The sums of the widest integer kernel, which adds 128 to one side, stay within an i32.
const _: () = assert!(DIM_MAX * 255 * 128 <= i32::MAX as usize);
/// The sum of a slot stays within the 16 bits that kernels have for it, and those of two bytes of signs within 8.
const _: () = assert!(DIM_MAX << QUERY_BITS <= 1 << 16 && 16 * ((1 << QUERY_BITS) - 1) <= u8::MAX as usize);

/// The functions of one instruction set. A kernel leaves this module through [`available`](super::available) only.
pub(in crate::vector) struct Kernel {
    pub(super) name: &'static str,
    /// Whether this processor has the instructions.
    pub(super) supported: fn() -> bool,
    /// Writes the dot product of the query with each row. It is safe to call if `supported` returns true.
    pub(super) dot_i8: unsafe fn(query: &[i8], rows: &[i8], out: &mut [i32]),
    /// The same for rows that lie apart; see `dot_i8`.
    pub(super) gather_i8: unsafe fn(query: &[i8], rows: &[&[i8]], out: &mut [i32]),
    /// See `dot_i8`.
    pub(super) dot_f32: unsafe fn(query: &[f32], rows: &[f32], out: &mut [f32]),
    /// Writes for each wanted slot of a block of one-bit codes a score that the slot exceeds only by chance, and returns
    /// the wanted slots that score enough, a bit for each. The scores come from sums of the query's levels where a slot
    /// has a one, looked up half a byte at a time. It is safe to call if `supported` returns true.
    pub(super) sign_scores:
        unsafe fn(levels: &Levels, block: &ScanBlock<'_>, wanted: Wanted, out: &mut [f32; BIT_SLOTS]) -> u64,
    /// Writes for each query the slots of a block that promise what it needs, a bit for each. `signs` has the signs of
    /// one query after the other. It is safe to call if `supported` returns true.
    pub(super) sign_marks:
        unsafe fn(signs: &[QuerySigns], queries: &[SignNumbers], slots: &SignSlots<'_>, out: &mut [u64]),
}

impl Kernel {
    pub(in crate::vector) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn is_supported(&self) -> bool {
        (self.supported)()
    }

    pub(in crate::vector) fn dot_i8_many(&self, query: &[i8], rows: &[i8], out: &mut [i32]) {
        check_shape(query.len(), rows.len(), out.len());
        // SAFETY: `available` has asked the processor whether it has the instructions.
        unsafe { (self.dot_i8)(query, rows, out) }
    }

    pub(in crate::vector) fn dot_i8_gather(&self, query: &[i8], rows: &[&[i8]], out: &mut [i32]) {
        assert!((1..=DIM_MAX).contains(&query.len()), "a query has 1 to {DIM_MAX} dimensions");
        assert_eq!(rows.len(), out.len(), "each row has a result");
        assert!(rows.iter().all(|row| row.len() == query.len()), "rows have the dimensions of the query");
        // SAFETY: `available` has asked the processor whether it has the instructions.
        unsafe { (self.gather_i8)(query, rows, out) }
    }

    pub(in crate::vector) fn dot_f32_many(&self, query: &[f32], rows: &[f32], out: &mut [f32]) {
        check_shape(query.len(), rows.len(), out.len());
        // SAFETY: `available` has asked the processor whether it has the instructions.
        unsafe { (self.dot_f32)(query, rows, out) }
    }

    pub(in crate::vector) fn sign_scores(
        &self,
        levels: &Levels,
        block: &ScanBlock<'_>,
        wanted: Wanted,
        out: &mut [f32; BIT_SLOTS],
    ) -> u64 {
        assert_eq!(block.signs.len(), levels.tables.len(), "a block has the signs of its slots");
        assert_eq!(block.ahead.len(), levels.tables.len(), "and so has the next one");
        // SAFETY: `available` has asked the processor whether it has the instructions.
        unsafe { (self.sign_scores)(levels, block, wanted, out) }
    }

    pub(in crate::vector) fn sign_marks(
        &self,
        signs: &[QuerySigns],
        queries: &[SignNumbers],
        slots: &SignSlots<'_>,
        out: &mut [u64],
    ) {
        assert!(!slots.signs.is_empty(), "a slot has signs");
        assert_eq!(signs.len(), queries.len() * slots.signs.len(), "queries have the signs of slots");
        assert_eq!(out.len(), queries.len(), "each query has a result");
        // SAFETY: `available` has asked the processor whether it has the instructions.
        unsafe { (self.sign_marks)(signs, queries, slots, out) }
    }
}

fn check_shape(dim: usize, row_values: usize, rows: usize) {
    assert!((1..=DIM_MAX).contains(&dim), "a query has 1 to {DIM_MAX} dimensions");
    assert_eq!(row_values, dim * rows, "rows are contiguous, with as many dimensions as the query");
}

/// The end of a row, filled with zeros to a whole group.
pub(super) fn padded<T: Copy + Default, const N: usize>(tail: &[T]) -> [T; N] {
    let mut group = [T::default(); N];
    for (value, &given) in group.iter_mut().zip(tail) {
        *value = given;
    }
    group
}
