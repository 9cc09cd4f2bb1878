//! x86-64 with AVX2: sixteen bytes widened to 16 bits, or two times eight floats, at a step.

#![allow(unsafe_code, reason = "vector loads take raw pointers")]

use std::arch::x86_64::*;

use super::instruction_set::{
    BIT_SLOTS, GROUP_BYTES, Kernel, LANES, Levels, ScanBlock, SignBytes, SignQueries, Tables, Wanted,
    in_turns, padded,
};

pub(super) static KERNEL: Kernel = Kernel {
    name: "avx2",
    supported: || is_x86_feature_detected!("avx2"),
    dot_i8,
    gather_i8,
    dot_f32,
    sign_scores,
    sign_marks,
};

/// Bytes of a step.
const BYTES: usize = 16;

#[target_feature(enable = "avx2")]
fn dot_i8(query: &[i8], rows: &[i8], out: &mut [i32]) {
    let (query_groups, query_tail) = query.as_chunks::<BYTES>();
    let query_tail = widened(&padded(query_tail));
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        let (row_groups, row_tail) = row.as_chunks::<BYTES>();
        let mut sum = _mm256_setzero_si256();
        for (q, r) in query_groups.iter().zip(row_groups) {
            // Two products of 16 bits are at most 2 · 2¹⁴, so their sum is exact in 32.
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(widened(q), widened(r)));
        }
        if !row_tail.is_empty() {
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(query_tail, widened(&padded(row_tail))));
        }
        *out = sum_i32(sum);
    }
}

#[target_feature(enable = "avx2")]
fn gather_i8(query: &[i8], rows: &[&[i8]], out: &mut [i32]) {
    for (row, out) in rows.iter().zip(out) {
        dot_i8(query, row, std::slice::from_mut(out));
    }
}

#[target_feature(enable = "avx2")]
fn dot_f32(query: &[f32], rows: &[f32], out: &mut [f32]) {
    let (query_groups, query_tail) = query.as_chunks::<LANES>();
    let query_tail = padded(query_tail);
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        let (row_groups, row_tail) = row.as_chunks::<LANES>();
        let mut lanes = [_mm256_setzero_ps(); 2];
        for (q, r) in query_groups.iter().zip(row_groups) {
            lanes = add_products(lanes, q, r);
        }
        if !row_tail.is_empty() {
            lanes = add_products(lanes, &query_tail, &padded(row_tail));
        }
        let [low, high] = lanes;
        *out = sum_f32(_mm256_add_ps(low, high));
    }
}

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// A hint for any processor of the architecture.
#[inline]
pub(super) fn prefetch<T>(list: &[T]) {
    for line in list.chunks((LINE / size_of::<T>()).max(1)) {
        // SAFETY: a prefetch reads nothing that the program can see, and every x86-64 has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
}

/// Slots of a register.
const SLOTS: usize = 32;

/// Looks up what each half of a byte adds to the sum of its slot: 32 slots, whose bytes lie side by side, at a step. Both
/// halves of a block are summed side by side, so that a table is loaded once.
#[target_feature(enable = "avx2")]
fn sign_sums(tables: &[Tables], signs: &[SignBytes], ahead: &[SignBytes], out: &mut [i32; BIT_SLOTS]) {
    let (tables, _) = tables.as_chunks::<2>();
    let (signs, _) = signs.as_chunks::<2>();
    let (ahead, _) = ahead.as_chunks::<2>();
    let mut sums = [Sums::zero(), Sums::zero()];
    for (([first, second], [table, other]), ahead) in signs.iter().zip(tables).zip(ahead) {
        prefetch(ahead);
        for (half, sums) in sums.iter_mut().enumerate() {
            // At most 120 each.
            sums.add(_mm256_add_epi8(
                looked_up(table, half_of(first, half)),
                looked_up(other, half_of(second, half)),
            ));
        }
    }
    for (sums, out) in sums.iter().zip(out.as_chunks_mut::<SLOTS>().0) {
        sums.write(out);
    }
}

/// Sums of 16 bits of bytes.
struct Sums {
    /// Those of the even slots, and 256 times those of the odd ones, modulo 2¹⁶.
    all: __m256i,
    odd: __m256i,
}

impl Sums {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn zero() -> Self {
        Sums { all: _mm256_setzero_si256(), odd: _mm256_setzero_si256() }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn add(&mut self, bytes: __m256i) {
        self.all = _mm256_add_epi16(self.all, bytes);
        self.odd = _mm256_add_epi16(self.odd, _mm256_srli_epi16::<8>(bytes));
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn even(&self) -> __m256i {
        _mm256_sub_epi16(self.all, _mm256_slli_epi16::<8>(self.odd))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn write(&self, out: &mut [i32; SLOTS]) {
        in_turns(&words(self.even()), &words(self.odd), out);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn words(lanes: __m256i) -> [u16; SLOTS / 2] {
    let mut words = [0; SLOTS / 2];
    // SAFETY: the array is the thirty-two bytes that are written; the store needs no alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), lanes) };
    words
}

/// What each byte of signs adds to the sum of its slot.
#[inline]
#[target_feature(enable = "avx2")]
fn looked_up([low, high]: &Tables, bytes: __m256i) -> __m256i {
    let low_half = _mm256_set1_epi8(0x0f);
    let low = _mm256_shuffle_epi8(twice(low), _mm256_and_si256(bytes, low_half));
    let high = _mm256_shuffle_epi8(twice(high), _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), low_half));
    _mm256_add_epi8(low, high)
}

/// A table in both halves of a register, as a look-up wants it.
#[inline]
#[target_feature(enable = "avx2")]
fn twice(table: &[u8; 16]) -> __m256i {
    // SAFETY: the array is the sixteen bytes that are read; the load needs no alignment.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(table.as_ptr().cast()) })
}

/// The signs of the first or the second 32 slots.
#[inline]
#[target_feature(enable = "avx2")]
fn half_of(row: &SignBytes, half: usize) -> __m256i {
    let [first, second] = row.as_chunks::<SLOTS>().0 else { return _mm256_setzero_si256() };
    let half = if half == 0 { first } else { second };
    // SAFETY: the array is the thirty-two bytes that are read; the load needs no alignment.
    unsafe { _mm256_loadu_si256(half.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
pub(super) fn sign_scores(
    levels: &Levels,
    block: &ScanBlock<'_>,
    wanted: Wanted,
    out: &mut [f32; BIT_SLOTS],
) -> u64 {
    let mut sums = [0; BIT_SLOTS];
    sign_sums(&levels.tables, block.signs, block.ahead, &mut sums);
    if !levels.scores(block.numbers, &sums, wanted.least, out) {
        return 0;
    }
    let least = _mm256_set1_ps(wanted.least);
    let enough = |scores| {
        let enough = _mm256_cmp_ps::<_CMP_GE_OQ>(scores, least);
        u64::from(_mm256_movemask_ps(enough).cast_unsigned())
    };
    let lanes = out.as_chunks::<LANES>().0.iter().rev().map(|scores| halves(scores));
    let half = LANES / 2;
    wanted.slots & lanes.fold(0, |bits, [low, high]| (bits << half | enough(high)) << half | enough(low))
}

/// Counts the ones of each half byte by a table of sixteen (Muła, Kurz, Lemire 2018). A block is out when both its halves are.
#[target_feature(enable = "avx2")]
pub(super) fn sign_marks(queries: SignQueries<'_>, rows: &[SignBytes], out: &mut [u64]) {
    for (out, (signs, level)) in out.iter_mut().zip(queries.each(rows.len())) {
        let (mut counts, mut alive) = ([_mm256_setzero_si256(); 2], u64::MAX);
        let groups = rows.chunks(GROUP_BYTES).zip(signs.chunks(GROUP_BYTES));
        for ((rows, signs), limits) in groups.zip(queries.limits) {
            let limit = _mm256_set1_epi8(limits.get(level).map_or(-1, |limit| limit.cast_signed()));
            let mut within = [0; 2];
            for (half, (counts, within)) in counts.iter_mut().zip(&mut within).enumerate() {
                for (row, sign) in rows.iter().zip(signs) {
                    let sign = _mm256_set1_epi32(i32::from_le_bytes(*sign));
                    let differing = _mm256_xor_si256(half_of(row, half), sign);
                    *counts = _mm256_adds_epu8(*counts, ones_of_bytes(differing));
                }
                let least = _mm256_min_epu8(*counts, limit);
                *within = _mm256_movemask_epi8(_mm256_cmpeq_epi8(least, *counts)).cast_unsigned();
            }
            let [low, high] = within.map(u64::from);
            alive &= low | high << SLOTS;
            if alive == 0 {
                break;
            }
        }
        *out = alive;
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn ones_of_bytes(bytes: __m256i) -> __m256i {
    const ONES: [u8; 16] = [0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4];
    looked_up(&[ONES; 2], bytes)
}

#[inline]
#[target_feature(enable = "avx2")]
fn widened(bytes: &[i8; BYTES]) -> __m256i {
    // SAFETY: the array is the sixteen bytes that are read; the load needs no alignment.
    _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_products([low, high]: [__m256; 2], query: &[f32; LANES], row: &[f32; LANES]) -> [__m256; 2] {
    let [query_low, query_high] = halves(query);
    let [row_low, row_high] = halves(row);
    [
        _mm256_add_ps(low, _mm256_mul_ps(query_low, row_low)),
        _mm256_add_ps(high, _mm256_mul_ps(query_high, row_high)),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn halves(values: &[f32; LANES]) -> [__m256; 2] {
    let start = values.as_ptr();
    // SAFETY: the array is the two times eight floats that are read; the loads need no alignment.
    unsafe { [_mm256_loadu_ps(start), _mm256_loadu_ps(start.add(LANES / 2))] }
}

#[inline]
#[target_feature(enable = "avx2")]
fn sum_i32(lanes: __m256i) -> i32 {
    let four = _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256::<1>(lanes));
    let two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<1>(two)))
}

/// The last three steps of the fixed order: eight lanes to four, to two, to one.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn sum_f32(lanes: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps::<1>(lanes));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
}
