//! x86-64 with AVX-512 and VNNI: sixty-four bytes, or sixteen floats, at a step.
//!
//! VNNI multiplies an unsigned byte by a signed one. So 128 is added to each byte of a row, which flips its highest
//! bit, and each sum begins at −128 · Σ query. This is exact, and takes one operation for each step.

#![allow(unsafe_code, reason = "vector loads take raw pointers")]

use std::arch::x86_64::*;

use super::avx2::{self, prefetch, sum_f32};
use super::instruction_set::{
    BIT_SLOTS, GROUP_BYTES, Kernel, LANES, Levels, QuerySigns, ScanBlock, SignBytes, SignQueries, Tables,
    Wanted, in_turns, padded,
};

pub(super) static KERNEL: Kernel = Kernel {
    name: "avx512-vnni",
    supported: || {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vnni")
            && is_x86_feature_detected!("avx2")
    },
    dot_i8,
    gather_i8,
    dot_f32,
    sign_scores,
    sign_marks: avx2::sign_marks,
};

pub(super) static KERNEL_BITALG: Kernel = Kernel {
    name: "avx512-bitalg",
    supported: || (KERNEL.supported)() && is_x86_feature_detected!("avx512bitalg"),
    sign_marks,
    ..KERNEL
};

/// Bytes of a step.
const BYTES: usize = 64;
#[target_feature(enable = "avx512f,avx512vnni")]
fn dot_i8(query: &[i8], rows: &[i8], out: &mut [i32]) {
    let query = Query::new(query);
    for (row, out) in rows.chunks_exact(query.dim).zip(out) {
        *out = query.dot(row);
    }
}

#[target_feature(enable = "avx512f,avx512dq,avx512vnni")]
fn gather_i8(query: &[i8], rows: &[&[i8]], out: &mut [i32]) {
    let query = Query::new(query);
    rows.iter().for_each(|row| prefetch(row));
    let (fours, rest) = rows.as_chunks::<4>();
    let (out_fours, out_rest) = out.split_at_mut(4 * fours.len());
    for (rows, out) in fours.iter().zip(out_fours.as_chunks_mut::<4>().0) {
        *out = query.dot_four(rows);
    }
    for (row, out) in rest.iter().zip(out_rest) {
        *out = query.dot(row);
    }
}

/// A query code, with the values that are the same for every row.
struct Query<'q> {
    dim: usize,
    groups: &'q [[i8; BYTES]],
    tail: __m512i,
    /// The lanes with which a sum begins: what the flip of the highest bits adds, taken away ahead.
    start: __m512i,
}

impl<'q> Query<'q> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    fn new(query: &'q [i8]) -> Self {
        let (groups, tail) = query.as_chunks::<BYTES>();
        let tail = if tail.is_empty() { _mm512_setzero_si512() } else { bytes(&padded(tail)) };
        // As an unsigned byte the highest bit is the 128 that it adds to a byte of a row.
        let highest_bits = _mm512_set1_epi8(i8::MIN);
        let mut added = _mm512_dpbusd_epi32(_mm512_setzero_si512(), highest_bits, tail);
        for group in groups {
            added = _mm512_dpbusd_epi32(added, highest_bits, bytes(group));
        }
        let start = _mm512_sub_epi32(_mm512_setzero_si512(), added);
        Query { dim: query.len(), groups, tail, start }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    fn dot(&self, row: &[i8]) -> i32 {
        let highest_bits = _mm512_set1_epi8(i8::MIN);
        let (row_groups, row_tail) = row.as_chunks::<BYTES>();
        let mut sum = self.start;
        for (q, r) in self.groups.iter().zip(row_groups) {
            sum = _mm512_dpbusd_epi32(sum, _mm512_xor_si512(bytes(r), highest_bits), bytes(q));
        }
        if !row_tail.is_empty() {
            let row_tail = _mm512_xor_si512(bytes(&padded(row_tail)), highest_bits);
            sum = _mm512_dpbusd_epi32(sum, row_tail, self.tail);
        }
        _mm512_reduce_add_epi32(sum)
    }

    /// Four rows at a time: each group of the query is loaded once, and the last steps of the four sums are shared.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vnni")]
    fn dot_four(&self, rows: &[&[i8]; 4]) -> [i32; 4] {
        let highest_bits = _mm512_set1_epi8(i8::MIN);
        let [(a, a_tail), (b, b_tail), (c, c_tail), (d, d_tail)] = rows.map(<[i8]>::as_chunks::<BYTES>);
        let add = |sum, row, query| _mm512_dpbusd_epi32(sum, _mm512_xor_si512(row, highest_bits), query);
        let [mut sum_a, mut sum_b, mut sum_c, mut sum_d] = [self.start; 4];
        for ((((q, a), b), c), d) in self.groups.iter().zip(a).zip(b).zip(c).zip(d) {
            let q = bytes(q);
            sum_a = add(sum_a, bytes(a), q);
            sum_b = add(sum_b, bytes(b), q);
            sum_c = add(sum_c, bytes(c), q);
            sum_d = add(sum_d, bytes(d), q);
        }
        if !a_tail.is_empty() {
            sum_a = add(sum_a, bytes(&padded(a_tail)), self.tail);
            sum_b = add(sum_b, bytes(&padded(b_tail)), self.tail);
            sum_c = add(sum_c, bytes(&padded(c_tail)), self.tail);
            sum_d = add(sum_d, bytes(&padded(d_tail)), self.tail);
        }
        let two = _mm_hadd_epi32(quarter(sum_a), quarter(sum_b));
        let other = _mm_hadd_epi32(quarter(sum_c), quarter(sum_d));
        let sums = _mm_hadd_epi32(two, other);
        [
            _mm_extract_epi32::<0>(sums),
            _mm_extract_epi32::<1>(sums),
            _mm_extract_epi32::<2>(sums),
            _mm_extract_epi32::<3>(sums),
        ]
    }
}

/// Sixteen lanes to four.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn quarter(lanes: __m512i) -> __m128i {
    let eight = _mm256_add_epi32(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64::<1>(lanes));
    _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256::<1>(eight))
}

#[target_feature(enable = "avx512f,avx512dq")]
fn dot_f32(query: &[f32], rows: &[f32], out: &mut [f32]) {
    let (query_groups, query_tail) = query.as_chunks::<LANES>();
    let query_tail = floats(&padded(query_tail));
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        let (row_groups, row_tail) = row.as_chunks::<LANES>();
        let mut lanes = _mm512_setzero_ps();
        for (q, r) in query_groups.iter().zip(row_groups) {
            lanes = _mm512_add_ps(lanes, _mm512_mul_ps(floats(q), floats(r)));
        }
        if !row_tail.is_empty() {
            lanes = _mm512_add_ps(lanes, _mm512_mul_ps(query_tail, floats(&padded(row_tail))));
        }
        let (low, high) = (_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps::<1>(lanes));
        *out = sum_f32(_mm256_add_ps(low, high));
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn bytes(group: &[i8; BYTES]) -> __m512i {
    // SAFETY: the array is the sixty-four bytes that are read; the load needs no alignment.
    unsafe { _mm512_loadu_si512(group.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn floats(group: &[f32; LANES]) -> __m512 {
    // SAFETY: the array is the sixteen floats that are read; the load needs no alignment.
    unsafe { _mm512_loadu_ps(group.as_ptr()) }
}

/// The slots of a block fill a register; see the same function of AVX2.
#[target_feature(enable = "avx512f,avx512bw")]
fn sign_sums(tables: &[Tables], signs: &[SignBytes], ahead: &[SignBytes], out: &mut [i32; BIT_SLOTS]) {
    let (tables, _) = tables.as_chunks::<2>();
    let (signs, _) = signs.as_chunks::<2>();
    let (ahead, _) = ahead.as_chunks::<2>();
    let mut sums = Sums::zero();
    for (([first, second], [table, other]), ahead) in signs.iter().zip(tables).zip(ahead) {
        prefetch(ahead);
        // At most 120 each.
        sums.add(_mm512_add_epi8(looked_up(table, slots(first)), looked_up(other, slots(second))));
    }
    sums.write(out);
}

/// Sums of 16 bits of bytes.
struct Sums {
    /// Those of the even slots, and 256 times those of the odd ones, modulo 2¹⁶.
    all: __m512i,
    odd: __m512i,
}

impl Sums {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn zero() -> Self {
        Sums { all: _mm512_setzero_si512(), odd: _mm512_setzero_si512() }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn add(&mut self, bytes: __m512i) {
        self.all = _mm512_add_epi16(self.all, bytes);
        self.odd = _mm512_add_epi16(self.odd, _mm512_srli_epi16::<8>(bytes));
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn even(&self) -> __m512i {
        _mm512_sub_epi16(self.all, _mm512_slli_epi16::<8>(self.odd))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn write(&self, out: &mut [i32; BIT_SLOTS]) {
        in_turns(&words(self.even()), &words(self.odd), out);
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn words(lanes: __m512i) -> [u16; BIT_SLOTS / 2] {
    let mut words = [0; BIT_SLOTS / 2];
    // SAFETY: the array is the sixty-four bytes that are written; the store needs no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), lanes) };
    words
}

/// What each byte of signs adds to the sum of its slot.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn looked_up([low, high]: &Tables, bytes: __m512i) -> __m512i {
    let low_half = _mm512_set1_epi8(0x0f);
    let low = _mm512_shuffle_epi8(four_times(low), _mm512_and_si512(bytes, low_half));
    let high =
        _mm512_shuffle_epi8(four_times(high), _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), low_half));
    _mm512_add_epi8(low, high)
}

/// A table in each quarter of a register, as a look-up wants it.
#[inline]
#[target_feature(enable = "avx512f")]
fn four_times(table: &[u8; 16]) -> __m512i {
    // SAFETY: the array is the sixteen bytes that are read; the load needs no alignment.
    _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(table.as_ptr().cast()) })
}

#[target_feature(enable = "avx512f,avx512bw")]
fn sign_scores(levels: &Levels, block: &ScanBlock<'_>, wanted: Wanted, out: &mut [f32; BIT_SLOTS]) -> u64 {
    let mut sums = [0; BIT_SLOTS];
    sign_sums(&levels.tables, block.signs, block.ahead, &mut sums);
    if !levels.scores(block.numbers, &sums, wanted.least, out) {
        return 0;
    }
    let least = _mm512_set1_ps(wanted.least);
    let enough = |scores| u64::from(_mm512_cmp_ps_mask::<_CMP_GE_OQ>(floats(scores), least));
    let lanes = out.as_chunks::<LANES>().0.iter().rev();
    wanted.slots & lanes.fold(0, |bits, scores| bits << LANES | enough(scores))
}

/// The first group of a block, with which every query begins, is loaded once for all of them.
#[target_feature(enable = "avx512f,avx512bw,avx512bitalg")]
fn sign_marks(queries: SignQueries<'_>, rows: &[SignBytes], out: &mut [u64]) {
    let (groups, tail) = rows.as_chunks::<GROUP_BYTES>();
    let first = groups.first().map(|rows| rows.each_ref().map(|row| slots(row)));
    for (out, (signs, level)) in out.iter_mut().zip(queries.each(rows.len())) {
        let (signs, signs_of_tail) = signs.as_chunks::<GROUP_BYTES>();
        let mut limits = queries.limits.iter().map(|limits| limits.get(level).copied().unwrap_or(u8::MAX));
        let (mut counts, mut alive) = (_mm512_setzero_si512(), u64::MAX);
        let mut within = |counts| {
            let limit = _mm512_set1_epi8(limits.next().unwrap_or(u8::MAX).cast_signed());
            alive &= _mm512_cmple_epu8_mask(counts, limit);
            alive
        };
        if let (Some(rows), Some(signs)) = (&first, signs.first()) {
            for (row, sign) in rows.iter().zip(signs) {
                counts = counted(counts, *row, *sign);
            }
            if within(counts) == 0 {
                *out = 0;
                continue;
            }
        }
        for (rows, signs) in groups.iter().zip(signs).skip(1) {
            for (row, sign) in rows.iter().zip(signs) {
                counts = counted(counts, slots(row), *sign);
            }
            if within(counts) == 0 {
                break;
            }
        }
        for (row, sign) in tail.iter().zip(signs_of_tail) {
            counts = counted(counts, slots(row), *sign);
        }
        // Without a tail nothing has been added since the last comparison.
        *out = within(counts);
    }
}

/// Adds to the count of each slot the signs in which it differs; a count stays at 255.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bitalg")]
fn counted(counts: __m512i, row: __m512i, sign: QuerySigns) -> __m512i {
    let differing = _mm512_xor_si512(row, _mm512_set1_epi32(i32::from_le_bytes(sign)));
    _mm512_adds_epu8(counts, _mm512_popcnt_epi8(differing))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn slots(row: &SignBytes) -> __m512i {
    // SAFETY: the array is the sixty-four bytes that are read; the load needs no alignment.
    unsafe { _mm512_loadu_si512(row.as_ptr().cast()) }
}
