//! One bit a dimension: which slots deserve a look at their codes?
//!
//! The method is RaBitQ (Gao and Long, SIGMOD 2024). A vector x is taken relative to a center c, rotated by R, and only
//! the signs s of the rotated values are kept. For a query q with v = R(q − c),
//!
//! ```text
//! ⟨q, x⟩ = ⟨q − c, x − c⟩ + ⟨c, x⟩ + ⟨q, c⟩ − |c|²
//! ⟨q − c, x − c⟩ ≈ factor · ⟨s, v⟩,   factor = |x − c| / ⟨s, y⟩,   y = R(x − c) / |x − c|
//! ```
//!
//! Over the choice of the rotation the estimate has no bias. With D rotated dimensions and a = ⟨s, y⟩ / √D, its standard
//! deviation is |q − c| · |x − c| · √((1 − a²) / a²) / √(D − 1) · √(1 − ρ²), where ρ is the cosine between both differences: what
//! q − c has along x − c does not err. A slot that scores a floor has at least the ρ of that floor, so the error of those that
//! count is known to be smaller than that of the others. The query is rounded to four bits a dimension, so that
//! ⟨s, v⟩ follows from a sum of small integers. The rounding error d of the query adds a deviation of factor · |d|,
//! because the signs do not depend on it.
//!
//! The rotation is the product of four rounds. A round flips signs, transforms a part of the values by Walsh and
//! Hadamard, and mixes both halves. The flips come from a constant seed, so the codes of a vector are the same on every
//! machine.

use std::sync::OnceLock;

use super::kernel::{
    BIT_SLOTS, Levels, QUERY_BITS, ScanBlock, SignBytes, SignLimits, SlotNumbers, Wanted, prefetch,
    sign_scores,
};
use super::sign_limits::limits_of;

/// The highest level of a query.
const LEVEL_MAX: f32 = ((1 << QUERY_BITS) - 1) as f32;
/// Rounds of the rotation.
const ROUNDS: usize = 4;
/// The seed of the flips: the digits of π after the point, in hexadecimal.
const SEED: u64 = 0x243f_6a88_85a3_08d3;
/// The relative error of the f32 sums in a code and in an estimate, generously.
const SUMS_ERROR: f32 = 1e-5;

/// The center and the rotation that codes were made with. A query is compared only with codes of its own frame.
#[derive(Debug)]
pub struct BitFrame {
    dim: usize,
    center: Box<[f32]>,
    /// The square of the length of the center.
    square: f32,
    /// For each round and dimension, the sign bit to flip.
    flips: [Box<[u32]>; ROUNDS],
    /// For each group of signs, how many may differ.
    limits: OnceLock<Box<[SignLimits]>>,
}

impl BitFrame {
    /// A frame around a point, which has a value for each dimension. The nearer the vectors are to the center, the
    /// smaller are the errors.
    pub fn around(center: Box<[f32]>) -> Self {
        let dim = center.len();
        let mut state = SEED;
        let flips = [(); ROUNDS].map(|()| (0..padded(dim)).map(|_| next_flip(&mut state)).collect());
        let square = center.iter().map(|value| value * value).sum();
        BitFrame { dim, center, square, flips, limits: OnceLock::new() }
    }

    /// Dimensions of the vectors.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The center.
    pub fn center(&self) -> &[f32] {
        &self.center
    }

    /// Bytes of the signs of a slot.
    pub fn sign_bytes(&self) -> usize {
        padded(self.dim) / 8
    }

    /// For each group of signs, how many may differ from those of a query. Only batches ask for them, so they are computed
    /// when first asked for.
    pub(super) fn limits(&self) -> &[SignLimits] {
        self.limits.get_or_init(|| limits_of(padded(self.dim)))
    }

    /// Subtracts the center and rotates. The result has a multiple of 64 values and the length of the difference.
    pub(super) fn place(&self, values: impl Iterator<Item = f32>, out: &mut Vec<f32>) {
        out.clear();
        out.extend(values.zip(&self.center).map(|(value, center)| value - center));
        out.resize(padded(self.dim), 0.0);
        self.rotate(out);
    }

    /// What every estimate for a query has in common, with an allowance for the error of sums.
    pub(super) fn base_of(&self, query: &[f32]) -> f32 {
        let along: f32 = query.iter().zip(&self.center).map(|(value, center)| value * center).sum();
        along - self.square + SUMS_ERROR
    }

    fn rotate(&self, values: &mut [f32]) {
        let len = values.len();
        let part = 1_usize << len.ilog2();
        let scale = 1.0 / (part as f32).sqrt();
        for (round, flips) in self.flips.iter().enumerate() {
            for (value, flip) in values.iter_mut().zip(flips) {
                *value = f32::from_bits(value.to_bits() ^ flip);
            }
            let first = if round % 2 == 0 { 0 } else { len - part };
            let (_, from_first) = values.split_at_mut(first);
            let (transformed, _) = from_first.split_at_mut(part);
            transform(transformed);
            transformed.iter_mut().for_each(|value| *value *= scale);
            if part < len {
                let (low, high) = values.split_at_mut(len / 2);
                butterflies(low, high, std::f32::consts::FRAC_1_SQRT_2);
            }
        }
    }
}

/// Dimensions after the rotation.
const fn padded(dim: usize) -> usize {
    dim.next_multiple_of(64)
}

/// The next of a series of random sign bits: SplitMix64 (Steele, Lea, Flood 2014).
fn next_flip(state: &mut u64) -> u32 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed >> 63) as u32) << 31
}

/// The Walsh–Hadamard transform without its scale, of a power of two of values.
fn transform(values: &mut [f32]) {
    let mut half = 1;
    while half < values.len() {
        for pair in values.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            butterflies(low, high, 1.0);
        }
        half *= 2;
    }
}

fn butterflies(low: &mut [f32], high: &mut [f32], scale: f32) {
    for (low, high) in low.iter_mut().zip(high) {
        (*low, *high) = ((*low + *high) * scale, (*low - *high) * scale);
    }
}

/// The one-bit codes of some blocks of slots, one block after the other in memory.
#[derive(Clone, Debug)]
pub struct BitBlocks {
    /// For each block and each eight dimensions, the signs of its slots.
    signs: Box<[SignBytes]>,
    numbers: Box<[SlotNumbers]>,
}

/// The one-bit codes of a block of [`BIT_SLOTS`] slots.
#[derive(Clone, Copy, Debug)]
pub struct BitBlock<'b> {
    pub(super) signs: &'b [SignBytes],
    pub(super) numbers: &'b SlotNumbers,
}

/// The numbers of a one-bit code beside its signs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlotCode {
    /// The number of positive signs.
    pub ones: u32,
    /// What the inner product of signs and query is multiplied with.
    pub factor: f32,
    /// The standard deviation of the estimate for a query at distance 1 from the center.
    pub error: f32,
    /// The inner product with the center.
    pub offset: f32,
}

/// The numbers of the one-bit codes of a block of [`BIT_SLOTS`] slots.
#[derive(Clone, Debug)]
pub struct BitNumbers(SlotNumbers);

impl BitNumbers {
    /// The numbers of [`SlotCode`] of all slots, each sort in a list of its own, with the number of their rotated dimensions.
    pub fn new(
        dims: usize,
        ones: &[u16; BIT_SLOTS],
        factors: &[f32; BIT_SLOTS],
        errors: &[f32; BIT_SLOTS],
        offsets: &[f32; BIT_SLOTS],
    ) -> Self {
        let (factors, errors, offsets) = (*factors, *errors, *offsets);
        let each = factors.iter().zip(&errors).map(|(factor, error)| squared_error(dims, *factor, *error));
        let least_error = each.fold(f32::INFINITY, f32::min);
        BitNumbers(SlotNumbers { ones: ones.map(f32::from), factors, errors, offsets, least_error })
    }
}

impl<'b> BitBlock<'b> {
    /// A block with these signs, for each eight dimensions those of all slots.
    pub fn new(signs: &'b [SignBytes], numbers: &'b BitNumbers) -> Self {
        BitBlock { signs, numbers: &numbers.0 }
    }

    /// The inner products of the slots with the center.
    pub(super) fn offsets(self) -> &'b [f32; BIT_SLOTS] {
        &self.numbers.offsets
    }

    /// The distances of the slots to the center.
    pub(super) fn lengths(self) -> [f32; BIT_SLOTS] {
        let mut lengths = self.numbers.factors;
        for (length, error) in lengths.iter_mut().zip(&self.numbers.errors) {
            *length = squared_length(8 * self.signs.len(), *length, *error).sqrt();
        }
        lengths
    }

    /// Asks the processor to load the numbers into its cache soon.
    fn prefetch_numbers(self) {
        let SlotNumbers { ones, factors, errors, offsets, .. } = self.numbers;
        [ones, factors, errors, offsets].into_iter().for_each(|list| prefetch(list));
    }
}

impl BitBlocks {
    /// So many blocks of vacant slots.
    pub fn vacant(frame: &BitFrame, blocks: usize) -> Self {
        let zeros = [0.0; BIT_SLOTS];
        let least_error = f32::INFINITY;
        let numbers = SlotNumbers { ones: zeros, factors: zeros, errors: zeros, offsets: zeros, least_error };
        let signs = vec![[0; BIT_SLOTS]; blocks * frame.sign_bytes()].into();
        BitBlocks { signs, numbers: vec![numbers; blocks].into() }
    }

    /// Bytes in memory of so many blocks of slots with this many dimensions.
    pub const fn bytes(dim: usize, blocks: usize) -> usize {
        let block = size_of::<SlotNumbers>() + padded(dim) / 8 * size_of::<SignBytes>();
        size_of::<BitBlocks>() + blocks.saturating_mul(block)
    }

    /// A block; none past the last.
    #[inline]
    pub fn block(&self, at: usize) -> Option<BitBlock<'_>> {
        let len = self.signs.len() / self.numbers.len().max(1);
        Some(BitBlock { signs: self.signs.get(at * len..(at + 1) * len)?, numbers: self.numbers.get(at)? })
    }

    /// Writes the code of a vector, whose values are `scale · code`, into a slot. `room` is memory to use again.
    ///
    /// # Panics
    ///
    /// When there is no such slot, or the code does not have the dimensions of the frame.
    #[cfg(any(test, feature = "faults"))]
    pub fn set(&mut self, slot: usize, frame: &BitFrame, code: &[i8], scale: f32, room: &mut Vec<f32>) {
        let (block, at) = (slot / BIT_SLOTS, slot % BIT_SLOTS);
        assert!(block < self.numbers.len(), "a slot of the blocks");
        let mut signs = Vec::new();
        let SlotCode { ones: positive, factor, error, offset } = frame.code(code, scale, room, &mut signs);
        let rows = self.signs.iter_mut().skip(block * frame.sign_bytes());
        for (row, byte) in rows.zip(signs) {
            row.get_mut(at).into_iter().for_each(|place| *place = byte);
        }
        if let Some(SlotNumbers { ones, factors, errors, offsets, least_error }) = self.numbers.get_mut(block)
        {
            *least_error = least_error.min(squared_error(8 * frame.sign_bytes(), factor, error));
            let lists = [ones, factors, errors, offsets];
            for (list, value) in lists.into_iter().zip([positive as f32, factor, error, offset]) {
                list.get_mut(at).into_iter().for_each(|place| *place = value);
            }
        }
    }

    /// Writes the code of the slot `of` in another block of the same frame into a slot.
    ///
    /// # Panics
    ///
    /// When there is no such slot.
    pub fn copy(&mut self, slot: usize, from: BitBlock<'_>, of: usize) {
        let (block, at) = (slot / BIT_SLOTS, slot % BIT_SLOTS);
        assert!(block < self.numbers.len() && of < BIT_SLOTS, "a slot of the blocks");
        let copy = |to: &mut [f32], list: &[f32]| {
            to.get_mut(at).into_iter().zip(list.get(of)).for_each(|(to, value)| *to = *value);
        };
        if let Some(SlotNumbers { ones, factors, errors, offsets, least_error }) = self.numbers.get_mut(block)
        {
            *least_error = least_error.min(from.numbers.least_error);
            copy(ones, &from.numbers.ones);
            copy(factors, &from.numbers.factors);
            copy(errors, &from.numbers.errors);
            copy(offsets, &from.numbers.offsets);
        }
        let rows = self.signs.iter_mut().skip(block * from.signs.len());
        for (row, signs) in rows.zip(from.signs) {
            row.get_mut(at).into_iter().zip(signs.get(of)).for_each(|(to, byte)| *to = *byte);
        }
    }

    /// Writes a block: for each eight dimensions, the signs of its slots.
    ///
    /// # Panics
    ///
    /// When there is no such block, or it has another number of signs.
    pub fn put(&mut self, at: usize, signs: &[SignBytes], numbers: &BitNumbers) {
        assert!(at < self.numbers.len(), "a block of the run");
        let place = self.signs.get_mut(at * signs.len()..(at + 1) * signs.len());
        place.into_iter().for_each(|place| place.copy_from_slice(signs));
        self.numbers.get_mut(at).into_iter().for_each(|place| *place = numbers.0.clone());
    }
}

impl BitFrame {
    /// The one-bit code of a vector whose values are `scale · code`. The signs are written to `signs`, eight
    /// dimensions a byte; `room` is memory to use again.
    ///
    /// # Panics
    ///
    /// When the code does not have the dimensions of the frame.
    pub fn code(&self, code: &[i8], scale: f32, room: &mut Vec<f32>, signs: &mut Vec<u8>) -> SlotCode {
        assert_eq!(code.len(), self.dim, "a code of the frame");
        let values = code.iter().map(|&value| scale * f32::from(value));
        let offset: f32 = values.clone().zip(&self.center).map(|(value, center)| value * center).sum();
        self.place(values, room);
        let (length, sum) =
            room.iter().fold((0.0, 0.0), |(length, sum), value| (length + value * value, sum + value.abs()));
        let length = f32::sqrt(length);
        let dims = room.len() as f32;
        // A vector in the center has an inner product of 0 with every query, whatever its signs.
        let (factor, error) = if sum > 0.0 {
            let alignment = (sum / length / dims.sqrt()).min(1.0);
            let spread = ((1.0 - alignment * alignment).max(0.0) / (dims - 1.0)).sqrt() / alignment;
            (length * length / sum, length * spread)
        } else {
            (0.0, 0.0)
        };
        signs.clear();
        signs.extend(sign_bytes(room));
        let ones = signs.iter().map(|byte| byte.count_ones()).sum();
        SlotCode { ones, factor, error, offset }
    }
}

/// A query as the scan of one bit reads it.
#[derive(Clone, Debug)]
pub struct BitQuery(Levels);

impl BitQuery {
    /// A query that misses each of the nearest slots with a chance of at most 1 − `recall`, 0 to below 1.
    ///
    /// # Panics
    ///
    /// When the query does not have the dimensions of the frame.
    pub fn new(frame: &BitFrame, query: &[f32], recall: f32) -> Self {
        assert_eq!(query.len(), frame.dim, "query and codes are of one embedding space");
        let mut values = Vec::new();
        frame.place(query.iter().copied(), &mut values);
        // The levels lie on both sides of 0 alike and none is 0, so that a value and its level have one sign. Otherwise the error
        // of the levels would depend on the signs of slots near the query, whose scores would be taken for too low.
        let high = values.iter().fold(0.0_f32, |high, value| high.max(value.abs()));
        let (low, step) = if high > 0.0 { (-high, 2.0 * high / LEVEL_MAX) } else { (0.0, 1.0) };
        let (mut total, mut lost, mut reach) = (0.0, 0.0, 0.0);
        let mut level_of = |value: &f32| {
            let level = ((value - low) / step).round().clamp(0.0, LEVEL_MAX);
            let rounded = low + step * level;
            total += rounded;
            lost += (value - rounded) * (value - rounded);
            reach += value * value;
            level as u8
        };
        let (eights, _) = values.as_chunks::<8>();
        let levels = eights.iter().map(|values| values.each_ref().map(&mut level_of));
        let tables =
            levels.map(|[a, b, c, d, e, f, g, h]| [table([a, b, c, d]), table([e, f, g, h])]).collect();
        let squared_deviations = squared_deviations(recall);
        BitQuery(Levels {
            tables,
            twice_low: 2.0 * low,
            twice_step: 2.0 * step,
            total,
            base: frame.base_of(query),
            allowed: squared_deviations,
            reach: reach * squared_deviations,
            lost: lost * squared_deviations,
        })
    }

    /// Returns the wanted slots of `block` that may score enough, a bit for each, and writes for each of them a score that the
    /// slot exceeds only by chance if it scores enough. Meanwhile the processor is asked to load the block that is read `next`.
    pub fn likely_uppers(
        &self,
        block: BitBlock<'_>,
        next: Option<BitBlock<'_>>,
        wanted: Wanted,
        out: &mut [f32; BIT_SLOTS],
    ) -> u64 {
        let ahead = next.unwrap_or(block);
        ahead.prefetch_numbers();
        let block = ScanBlock { signs: block.signs, ahead: ahead.signs, numbers: block.numbers };
        sign_scores(&self.0, &block, wanted, out)
    }
}

/// The square of the distance to the center that a code has. With a as above, D rotated dimensions and a distance L, the
/// factor is L / (a·√D) and the error is L · √((1 − a²) / (D − 1)) / a.
fn squared_length(dims: usize, factor: f32, error: f32) -> f32 {
    let dims = dims as f32;
    (dims * factor * factor - (dims - 1.0) * error * error).max(0.0)
}

/// The square of an error in parts of the squared distance to the center. A slot in the center, like a vacant one, does not err.
fn squared_error(dims: usize, factor: f32, error: f32) -> f32 {
    match squared_length(dims, factor, error) {
        0.0 => f32::INFINITY,
        square => error * error / square,
    }
}

/// The sum of the levels in each set of four, whose members are the ones of its number.
fn table(levels: [u8; 4]) -> [u8; 16] {
    std::array::from_fn(|set| {
        levels.iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1).map(|(_, level)| level).sum()
    })
}

/// The signs of values, eight a byte: bit n is set where value n is not negative.
pub(super) fn sign_bytes(values: &[f32]) -> impl Iterator<Item = u8> {
    values.as_chunks::<8>().0.iter().map(|values| {
        values.iter().enumerate().fold(0, |bits, (bit, value)| bits | (u8::from(*value >= 0.0) << bit))
    })
}

/// The square of the deviations that an error exceeds with a chance of at most 1 − `recall`.
///
/// An error is a sum of many small ones, so its distribution is taken as normal. A normal value exceeds t deviations with
/// a chance of at most exp(−t²/2) / 2 (Chernoff), and of at most φ(t) / t, φ being the normal density (Mills' ratio, which Gordon
/// bounded by 1/t in 1941): the second is sharper from t = 0.8 on. At a recall of 0.999 they give 3.53 and 3.12 deviations, where
/// 3.09 would do.
pub(super) fn squared_deviations(recall: f32) -> f32 {
    let chance = f64::from(1.0 - recall);
    let by_chernoff = (-2.0 * (2.0 * chance).min(1.0).ln()).max(0.0).sqrt();
    let suffices = |t: f64| (-0.5 * t * t).exp() <= chance * t * std::f64::consts::TAU.sqrt();
    let (mut short, mut long) = (0.0, by_chernoff);
    if suffices(by_chernoff) {
        // Halved until what is left is below the precision of an f32.
        for _ in 0..24 {
            let middle = 0.5 * (short + long);
            if suffices(middle) { long = middle } else { short = middle }
        }
    }
    (long * long) as f32
}

#[cfg(test)]
mod tests;
