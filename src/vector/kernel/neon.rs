//! aarch64 with NEON: sixteen bytes, or four times four floats, at a step; with `dotprod` four products an instruction.

#![allow(unsafe_code, reason = "vector loads take raw pointers, and `sdot` is stable as assembly only")]

use std::arch::aarch64::*;
use std::arch::{asm, is_aarch64_feature_detected};

use super::instruction_set::{
    BIT_SLOTS, Kernel, LANES, Levels, ScanBlock, SignBytes, SignQueries, Tables, Wanted, at_least, marks,
    padded,
};

pub(super) static KERNEL: Kernel = Kernel {
    name: "neon",
    supported: || is_aarch64_feature_detected!("neon"),
    dot_i8,
    gather_i8,
    dot_f32,
    sign_scores,
    sign_marks,
};

pub(super) static KERNEL_DOTPROD: Kernel = Kernel {
    name: "neon-dotprod",
    supported: || is_aarch64_feature_detected!("neon") && is_aarch64_feature_detected!("dotprod"),
    dot_i8: dot_i8_dotprod,
    gather_i8: gather_i8_dotprod,
    dot_f32,
    sign_scores,
    sign_marks,
};

/// Bytes of a step.
const BYTES: usize = 16;

#[target_feature(enable = "neon")]
fn dot_i8(query: &[i8], rows: &[i8], out: &mut [i32]) {
    let (query_groups, query_tail) = query.as_chunks::<BYTES>();
    let query_tail = bytes(&padded(query_tail));
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        let (row_groups, row_tail) = row.as_chunks::<BYTES>();
        let mut sum = vdupq_n_s32(0);
        for (q, r) in query_groups.iter().zip(row_groups) {
            sum = add_products(sum, bytes(q), bytes(r));
        }
        if !row_tail.is_empty() {
            sum = add_products(sum, query_tail, bytes(&padded(row_tail)));
        }
        *out = vaddvq_s32(sum);
    }
}

#[target_feature(enable = "neon,dotprod")]
fn dot_i8_dotprod(query: &[i8], rows: &[i8], out: &mut [i32]) {
    let (query_groups, query_tail) = query.as_chunks::<BYTES>();
    let query_tail = bytes(&padded(query_tail));
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        let (row_groups, row_tail) = row.as_chunks::<BYTES>();
        let mut sum = vdupq_n_s32(0);
        for (q, r) in query_groups.iter().zip(row_groups) {
            sum = add_products_dotprod(sum, bytes(q), bytes(r));
        }
        if !row_tail.is_empty() {
            sum = add_products_dotprod(sum, query_tail, bytes(&padded(row_tail)));
        }
        *out = vaddvq_s32(sum);
    }
}

#[target_feature(enable = "neon")]
fn gather_i8(query: &[i8], rows: &[&[i8]], out: &mut [i32]) {
    for (row, out) in rows.iter().zip(out) {
        dot_i8(query, row, std::slice::from_mut(out));
    }
}

#[target_feature(enable = "neon,dotprod")]
fn gather_i8_dotprod(query: &[i8], rows: &[&[i8]], out: &mut [i32]) {
    for (row, out) in rows.iter().zip(out) {
        dot_i8_dotprod(query, row, std::slice::from_mut(out));
    }
}

#[target_feature(enable = "neon")]
fn dot_f32(query: &[f32], rows: &[f32], out: &mut [f32]) {
    let (query_groups, query_tail) = query.as_chunks::<LANES>();
    let query_tail = padded(query_tail);
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        let (row_groups, row_tail) = row.as_chunks::<LANES>();
        let mut lanes = [vdupq_n_f32(0.0); 4];
        for (q, r) in query_groups.iter().zip(row_groups) {
            lanes = add_float_products(lanes, q, r);
        }
        if !row_tail.is_empty() {
            lanes = add_float_products(lanes, &query_tail, &padded(row_tail));
        }
        let [a, b, c, d] = lanes;
        let four = vaddq_f32(vaddq_f32(a, c), vaddq_f32(b, d));
        let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
        *out = vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two);
    }
}

/// Products of 8 bits are exact in 16, pairs of them are added in 32.
#[inline]
#[target_feature(enable = "neon")]
fn add_products(sum: int32x4_t, query: int8x16_t, row: int8x16_t) -> int32x4_t {
    let sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(query), vget_low_s8(row)));
    vpadalq_s16(sum, vmull_high_s8(query, row))
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn add_products_dotprod(mut sum: int32x4_t, query: int8x16_t, row: int8x16_t) -> int32x4_t {
    // SAFETY: `sdot` reads and writes these three registers only, and this function has the feature.
    unsafe {
        asm!(
            "sdot {sum:v}.4s, {query:v}.16b, {row:v}.16b",
            sum = inout(vreg) sum,
            query = in(vreg) query,
            row = in(vreg) row,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}

#[inline]
#[target_feature(enable = "neon")]
fn add_float_products(sums: [float32x4_t; 4], query: &[f32; LANES], row: &[f32; LANES]) -> [float32x4_t; 4] {
    let [a, b, c, d] = sums;
    let [query_a, query_b, query_c, query_d] = quarters(query);
    let [row_a, row_b, row_c, row_d] = quarters(row);
    [
        vaddq_f32(a, vmulq_f32(query_a, row_a)),
        vaddq_f32(b, vmulq_f32(query_b, row_b)),
        vaddq_f32(c, vmulq_f32(query_c, row_c)),
        vaddq_f32(d, vmulq_f32(query_d, row_d)),
    ]
}

#[inline]
#[target_feature(enable = "neon")]
fn bytes(group: &[i8; BYTES]) -> int8x16_t {
    // SAFETY: the array is the sixteen bytes that are read.
    unsafe { vld1q_s8(group.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn quarters(values: &[f32; LANES]) -> [float32x4_t; 4] {
    let start = values.as_ptr();
    // SAFETY: the array is the four times four floats that are read.
    unsafe { [vld1q_f32(start), vld1q_f32(start.add(4)), vld1q_f32(start.add(8)), vld1q_f32(start.add(12))] }
}

/// Looks up what each half of a byte adds to the sum of its slot: 16 slots, whose bytes lie side by side, at a step.
/// Slots side by side none of which is wanted are left out.
#[target_feature(enable = "neon")]
fn sign_sums(tables: &[Tables], signs: &[SignBytes], wanted: u64, out: &mut [i32; BIT_SLOTS]) {
    for (quarter, out) in out.as_chunks_mut::<BYTES>().0.iter_mut().enumerate() {
        if wanted >> (quarter * BYTES) & u64::from(u16::MAX) == 0 {
            continue;
        }
        let mut sums = [vdupq_n_u16(0); 2];
        for (row, [low, high]) in signs.iter().zip(tables) {
            let Some(row) = row.as_chunks::<BYTES>().0.get(quarter) else { continue };
            let bytes = signs_of(row);
            let low = vqtbl1q_u8(signs_of(low), vandq_u8(bytes, vdupq_n_u8(0x0f)));
            let high = vqtbl1q_u8(signs_of(high), vshrq_n_u8::<4>(bytes));
            sums = widely_added(sums, vaddq_u8(low, high));
        }
        write(sums, out);
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn signs_of(bytes: &[u8; BYTES]) -> uint8x16_t {
    // SAFETY: the array is the sixteen bytes that are read.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn widely_added([low, high]: [uint16x8_t; 2], bytes: uint8x16_t) -> [uint16x8_t; 2] {
    [vaddw_u8(low, vget_low_u8(bytes)), vaddw_high_u8(high, bytes)]
}

#[inline]
#[target_feature(enable = "neon")]
fn write(sums: [uint16x8_t; 2], out: &mut [i32; BYTES]) {
    for (out, sums) in out.as_chunks_mut::<8>().0.iter_mut().zip(sums) {
        let mut words = [0; 8];
        // SAFETY: the array is the sixteen bytes that are written.
        unsafe { vst1q_u16(words.as_mut_ptr(), sums) };
        *out = words.map(i32::from);
    }
}

#[target_feature(enable = "neon")]
fn sign_scores(levels: &Levels, block: &ScanBlock<'_>, wanted: Wanted, out: &mut [f32; BIT_SLOTS]) -> u64 {
    let mut sums = [0; BIT_SLOTS];
    sign_sums(&levels.tables, block.signs, wanted.slots, &mut sums);
    match levels.scores(block.numbers, &sums, wanted.least, out) {
        true => wanted.slots & at_least(out, wanted.least),
        false => 0,
    }
}

/// The counts of ones are left to the compiler, which has `cnt` for them.
#[target_feature(enable = "neon")]
fn sign_marks(queries: SignQueries<'_>, rows: &[SignBytes], out: &mut [u64]) {
    for (out, (signs, level)) in out.iter_mut().zip(queries.each(rows.len())) {
        *out = marks(rows, signs, queries.limits, level);
    }
}
