//! x86-64 with AVX2: sixteen bytes widened to 16 bits, or two times eight floats, at a step.

#![allow(unsafe_code, reason = "vector loads take raw pointers")]

use std::arch::x86_64::*;

use super::instruction_set::{
    BIT_SLOTS, Kernel, LANES, Levels, Planes, SLOTS_SIDE_BY_SIDE, SignNumbers, SignSlots, SlotNumbers,
    groups, padded,
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

/// Words whose counts fit in the bytes of a sum: each adds at most 8.
const WORDS_PER_SUM: usize = 31;

/// Counts the ones of each half byte by a table of sixteen (Muła, Kurz, Lemire 2018), four slots at a step.
#[target_feature(enable = "avx2")]
fn sign_sums(planes: &[Planes], words: &[u64], wanted: u64, out: &mut [i32; BIT_SLOTS]) {
    for (rows, out) in groups(words, wanted, out) {
        let mut halves = [_mm256_setzero_si256(); 2];
        for (rows, planes) in rows.chunks(WORDS_PER_SUM).zip(planes.chunks(WORDS_PER_SUM)) {
            for bit in (0..planes.first().map_or(0, |planes| planes.len())).rev() {
                let mut counts = [_mm256_setzero_si256(); 2];
                for (row, planes) in rows.iter().zip(planes) {
                    let plane =
                        _mm256_set1_epi64x(planes.get(bit).copied().unwrap_or_default().cast_signed());
                    let [low, high] = counts;
                    let [row_low, row_high] = slots(row);
                    counts = [
                        _mm256_add_epi8(low, ones_of_bytes(_mm256_and_si256(row_low, plane))),
                        _mm256_add_epi8(high, ones_of_bytes(_mm256_and_si256(row_high, plane))),
                    ];
                }
                let [low, high] = halves;
                let [low_counts, high_counts] = counts;
                halves = [add_weighted(low, low_counts, bit), add_weighted(high, high_counts, bit)];
            }
        }
        let [low, high] = halves;
        // The sums are the low halves of eight lanes of 64 bits.
        let evens = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(
            _mm256_castsi256_ps(low),
            _mm256_castsi256_ps(high),
        ));
        let sums = _mm256_permute4x64_epi64::<0b11_01_10_00>(evens);
        // SAFETY: the array is the thirty-two bytes that are written; the store needs no alignment.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), sums) };
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn sign_scores(
    levels: &Levels,
    words: &[u64],
    numbers: &SlotNumbers,
    wanted: u64,
    out: &mut [f32; BIT_SLOTS],
) -> f32 {
    let mut sums = [0; BIT_SLOTS];
    sign_sums(&levels.planes, words, wanted, &mut sums);
    levels.scores(numbers, &sums, wanted, out)
}

#[target_feature(enable = "avx2")]
pub(super) fn sign_marks(signs: &[u64], queries: &[SignNumbers], slots: &SignSlots, out: &mut [u64]) {
    let signs = signs.chunks_exact(slots.words.len());
    for ((out, signs), query) in out.iter_mut().zip(signs).zip(queries) {
        let mut sums = [_mm256_setzero_si256(); BIT_SLOTS / 4];
        for (words, signs) in slots.words.chunks(WORDS_PER_SUM).zip(signs.chunks(WORDS_PER_SUM)) {
            let mut counts = [_mm256_setzero_si256(); BIT_SLOTS / 4];
            for (word, sign) in words.iter().zip(signs) {
                let sign = _mm256_set1_epi64x(sign.cast_signed());
                for (count, four) in counts.iter_mut().zip(word.as_chunks::<4>().0) {
                    *count = _mm256_add_epi8(*count, ones_of_bytes(_mm256_xor_si256(four_slots(four), sign)));
                }
            }
            for (sum, counts) in sums.iter_mut().zip(counts) {
                *sum = add_weighted(*sum, counts, 0);
            }
        }
        let mut differences = [0; BIT_SLOTS];
        for (four, sum) in differences.as_chunks_mut::<4>().0.iter_mut().zip(sums) {
            // The sums are the low halves of four lanes of 64 bits.
            let evens = _mm256_permutevar8x32_epi32(sum, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
            // SAFETY: the array is the sixteen bytes that are written; the store needs no alignment.
            unsafe { _mm_storeu_si128(four.as_mut_ptr().cast(), _mm256_castsi256_si128(evens)) };
        }
        *out = slots.likely(*query, &differences);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn four_slots(words: &[u64; 4]) -> __m256i {
    // SAFETY: the array is the thirty-two bytes that are read; the load needs no alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

/// Adds the sums of the bytes of each lane, times 2 to the power of `bit`.
#[inline]
#[target_feature(enable = "avx2")]
fn add_weighted(sum: __m256i, counts: __m256i, bit: usize) -> __m256i {
    let lanes = _mm256_sad_epu8(counts, _mm256_setzero_si256());
    _mm256_add_epi64(sum, _mm256_sll_epi64(lanes, _mm_cvtsi32_si128(bit as i32)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn ones_of_bytes(bytes: __m256i) -> __m256i {
    let table = _mm256_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
    );
    let low_half = _mm256_set1_epi8(0x0f);
    let low = _mm256_shuffle_epi8(table, _mm256_and_si256(bytes, low_half));
    let high = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), low_half));
    _mm256_add_epi8(low, high)
}

#[inline]
#[target_feature(enable = "avx2")]
fn slots(row: &[u64; SLOTS_SIDE_BY_SIDE]) -> [__m256i; 2] {
    let start = row.as_ptr();
    // SAFETY: the array is the two times four words that are read; the loads need no alignment.
    unsafe { [_mm256_loadu_si256(start.cast()), _mm256_loadu_si256(start.add(4).cast())] }
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
