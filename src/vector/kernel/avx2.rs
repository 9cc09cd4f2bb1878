//! x86-64 with AVX2: sixteen bytes widened to 16 bits, or two times eight floats, at a step.

#![allow(unsafe_code, reason = "vector loads take raw pointers")]

use std::arch::x86_64::*;

use super::instruction_set::{Kernel, LANES, padded};

pub(super) static KERNEL: Kernel =
    Kernel { name: "avx2", supported: || is_x86_feature_detected!("avx2"), dot_i8, gather_i8, dot_f32 };

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
