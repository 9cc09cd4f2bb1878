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

/// More than what the rounding of a score can add to it.
const ROUNDED: f32 = 1e-6;
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
    /// The least square of an error in parts of the squared distance to the center: a slot whose angle to a query is small
    /// errs less, by this part of the square of what lies along the query.
    pub(in crate::vector) least_error: f32,
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
    /// The square of the deviations that are allowed for.
    pub(in crate::vector) allowed: f32,
    /// The squares of the distance to the center and of the rounding error, times `allowed`.
    pub(in crate::vector) reach: f32,
    pub(in crate::vector) lost: f32,
}

impl Levels {
    /// Writes the scores of a block from the sums of its signs, and returns whether any of them may be `least`; if none is, it
    /// writes nothing. No product is fused with a sum, so every instruction set gives the same bits.
    ///
    /// Roots take as long as all the rest, and most blocks are out without them.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a kernel compiles it for its own instructions")]
    pub(super) fn scores(
        &self,
        numbers: &SlotNumbers,
        sums: &[i32; BIT_SLOTS],
        least: f32,
        out: &mut [f32; BIT_SLOTS],
    ) -> bool {
        let SlotNumbers { ones, factors, errors, offsets, least_error } = numbers;
        let along = self.allowed * least_error;
        let (mut spreads, mut scores, mut any) = ([0.0; BIT_SLOTS], [0.0; BIT_SLOTS], false);
        for ((((((score, spread), sum), ones), factor), error), offset) in
            scores.iter_mut().zip(&mut spreads).zip(sums).zip(ones).zip(factors).zip(errors).zip(offsets)
        {
            let product = self.twice_low * ones + self.twice_step * *sum as f32 - self.total;
            let known = offset + self.base;
            *score = factor * product + known;
            // What a slot that scores `least` has along the query. It does not err.
            let needed = least - known;
            let needed = if needed > 0.0 { needed } else { 0.0 };
            let square = error * error * self.reach + factor * factor * self.lost - along * (needed * needed);
            *spread = if square > 0.0 { square } else { 0.0 };
            let missing = least - *score - ROUNDED;
            any |= missing <= 0.0 || missing * missing <= *spread;
        }
        if any {
            for ((out, score), spread) in out.iter_mut().zip(&scores).zip(&spreads) {
                *out = score + spread.sqrt();
            }
        }
        any
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

/// Bytes of signs after which the signs that differ are compared with what may differ.
pub(in crate::vector) const GROUP_BYTES: usize = 16;
/// For each level of a cosine, how many signs of a slot may differ from those of a query; 255 stands for any number.
pub(in crate::vector) type SignLimits = [u8; 1 << u8::BITS];

/// The queries of a batch as kernels compare them with a block of one-bit codes.
#[derive(Clone, Copy, Debug)]
pub(in crate::vector) struct SignQueries<'q> {
    /// The signs of one query after the other.
    pub(in crate::vector) signs: &'q [QuerySigns],
    /// For each query, the level of the cosine that a slot of the block needs at least.
    pub(in crate::vector) levels: &'q [u8],
    /// For each group of [`GROUP_BYTES`] bytes of signs, how many signs may differ until its end.
    pub(in crate::vector) limits: &'q [SignLimits],
}

impl SignQueries<'_> {
    /// The signs of each query with its level.
    pub(super) fn each(&self, bytes: usize) -> impl Iterator<Item = (&[QuerySigns], usize)> {
        self.signs.chunks_exact(bytes).zip(self.levels.iter().map(|level| usize::from(*level)))
    }
}

/// The slots of a block that differ from a query in no more signs than the limits allow, a bit for each: in plain Rust, which
/// a kernel compiles for its own instructions. A count that passes 255 stays there.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a kernel compiles it for its own instructions")]
pub(super) fn marks(rows: &[SignBytes], signs: &[QuerySigns], limits: &[SignLimits], level: usize) -> u64 {
    let (mut counts, mut alive) = ([0_u8; BIT_SLOTS], u64::MAX);
    let groups = rows.chunks(GROUP_BYTES).zip(signs.chunks(GROUP_BYTES));
    for ((rows, signs), limits) in groups.zip(limits) {
        for (row, [sign, ..]) in rows.iter().zip(signs) {
            for (count, byte) in counts.iter_mut().zip(row) {
                *count = count.saturating_add((byte ^ sign).count_ones() as u8);
            }
        }
        let limit = limits.get(level).copied().unwrap_or(u8::MAX);
        let within = counts.iter().rev().fold(0, |bits, count| bits << 1 | u64::from(*count <= limit));
        alive &= within;
        if alive == 0 {
            break;
        }
    }
    alive
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
    /// Returns the wanted slots of a block of one-bit codes that may score enough, a bit for each, and writes for each of them a
    /// score that the slot exceeds only by chance if it scores enough. The scores come from sums of the query's levels where a slot
    /// has a one, looked up half a byte at a time. It is safe to call if `supported` returns true.
    pub(super) sign_scores:
        unsafe fn(levels: &Levels, block: &ScanBlock<'_>, wanted: Wanted, out: &mut [f32; BIT_SLOTS]) -> u64,
    /// Writes for each query the slots of a block that differ from it in no more signs than its limits allow, a bit for each.
    /// It is safe to call if `supported` returns true.
    pub(super) sign_marks: unsafe fn(queries: SignQueries<'_>, rows: &[SignBytes], out: &mut [u64]),
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
        queries: SignQueries<'_>,
        rows: &[SignBytes],
        out: &mut [u64],
    ) {
        assert!(!rows.is_empty(), "a slot has signs");
        assert_eq!(queries.signs.len(), out.len() * rows.len(), "queries have the signs of slots");
        assert_eq!(queries.levels.len(), out.len(), "each query has a level and a result");
        assert_eq!(queries.limits.len(), rows.len().div_ceil(GROUP_BYTES), "each group has limits");
        // SAFETY: `available` has asked the processor whether it has the instructions.
        unsafe { (self.sign_marks)(queries, rows, out) }
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
