//! How far is the exact scan from the speed of memory?
//!
//! The yardstick of each figure is a loop that does nothing but add up the same bytes with the same instruction set.

#![allow(unsafe_code, reason = "the yardstick is written with the instruction set of the kernel")]
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a benchmark may stop at a surprise")]
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use oubliette::faults::vector::{
    BIT_SLOTS, BitBlocks, BitFrame, BitQuery, Candidates, Codes, QueryCode, Ranking, TopK, UnitVector,
    Wanted, dot_f32, dot_f32_many, dot_i8_many, encode, instruction_set,
};

const ROWS: usize = 10_000;
const DIM: usize = 384;
const K: usize = 10;

/// Vectors as a partition keeps them.
struct Store {
    rows: Vec<f32>,
    codes: Vec<i8>,
    scales: Vec<f32>,
    residuals: Vec<f32>,
}

impl Store {
    /// Rows around `center`: the larger `spread`, the farther from it and from each other.
    fn around(center: &UnitVector, spread: f32) -> Self {
        let mut random = Random(1);
        let mut store = Store { rows: vec![], codes: vec![0; ROWS * DIM], scales: vec![], residuals: vec![] };
        for code in store.codes.chunks_exact_mut(DIM) {
            let noise = random.unit();
            let values = center.as_slice().iter().zip(noise.as_slice()).map(|(c, n)| c + spread * n);
            let row = UnitVector::new("row", &values.collect::<Vec<_>>()).expect("a finite vector");
            let params = encode(&row, code);
            store.scales.push(params.scale);
            store.residuals.push(params.residual);
            store.rows.extend(row.as_slice());
        }
        store
    }

    fn codes(&self) -> Codes<'_> {
        Codes::new(DIM, &self.codes, &self.scales, &self.residuals)
    }

    /// A query and the rows in blocks of one-bit codes.
    fn one_bit(&self, query: &UnitVector) -> (BitQuery, BitBlocks) {
        let frame = BitFrame::around(vec![0.0; DIM].into());
        let mut blocks = BitBlocks::vacant(&frame, self.scales.len().div_ceil(BIT_SLOTS));
        let mut room = Vec::new();
        for (slot, (code, scale)) in self.codes.chunks_exact(DIM).zip(&self.scales).enumerate() {
            blocks.set(slot, &frame, code, *scale, &mut room);
        }
        (BitQuery::new(&frame, query.as_slice(), 0.99), blocks)
    }

    fn candidates(&self, query: &UnitVector) -> usize {
        let query = QueryCode::new(query);
        let mut candidates = Candidates::new(&query, K);
        candidates.push_chunk(0, self.codes(), None);
        candidates.finish().len()
    }

    /// The exact answer: candidates on codes, scored on f32 rows; in the order of the rows when there are many.
    fn search(&self, query: &UnitVector) -> f32 {
        let code = QueryCode::new(query);
        let mut candidates = Candidates::new(&code, K);
        candidates.push_chunk(0, self.codes(), None);
        let candidates = candidates.finish();
        let mut top = TopK::new(K);
        let mut score = |slot: u32| {
            let row = self.rows.chunks_exact(DIM).nth(slot as usize).expect("a slot of the store");
            top.push(dot_f32(query.as_slice(), row), slot);
            top.threshold()
        };
        if candidates.len() > 64 * K {
            for candidate in candidates {
                score(candidate.slot);
            }
        } else {
            let mut threshold = None;
            for candidate in Ranking::from(candidates) {
                if threshold.is_some_and(|threshold| candidate.upper < threshold) {
                    break;
                }
                threshold = score(candidate.slot);
            }
        }
        top.into_sorted().iter().map(|scored| scored.score).sum()
    }

    /// The same answer from every f32 row.
    fn search_f32(&self, query: &UnitVector) -> f32 {
        let mut scores = vec![0.0; ROWS];
        dot_f32_many(query.as_slice(), &self.rows, &mut scores);
        let mut top = TopK::new(K);
        scores.into_iter().zip(0_u32..).for_each(|(score, slot)| top.push(score, slot));
        top.into_sorted().iter().map(|scored| scored.score).sum()
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn unit(&mut self) -> UnitVector {
        let values: Vec<f32> = (0..DIM).map(|_| self.normal()).collect();
        UnitVector::new("vector", &values).expect("a finite vector")
    }

    /// Nearly normal: the sum of four uniform parts.
    fn normal(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31).to_le_bytes().chunks(2).map(|part| f32::from(part[0]) - 127.5).sum()
    }
}

/// Adds up `bytes` with the instructions of the kernel in use.
fn sum_bytes(bytes: &[i8]) -> u64 {
    match instruction_set() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the kernel in use has asked the processor for these instructions.
        "avx512-bitalg" | "avx512-vnni" => unsafe { sum_bytes_avx512(bytes) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the same.
        "avx2" => unsafe { sum_bytes_avx2(bytes) },
        _ => bytes.iter().map(|&byte| u64::from(byte.cast_unsigned())).sum(),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn sum_bytes_avx512(bytes: &[i8]) -> u64 {
    use std::arch::x86_64::*;
    let mut sums = [_mm512_setzero_si512(); 4];
    for group in bytes.as_chunks::<256>().0 {
        for (sum, part) in sums.iter_mut().zip(group.as_chunks::<64>().0) {
            // SAFETY: the array is the sixty-four bytes that are read.
            let part = unsafe { _mm512_loadu_si512(part.as_ptr().cast()) };
            *sum = _mm512_add_epi64(*sum, _mm512_sad_epu8(part, _mm512_setzero_si512()));
        }
    }
    let [a, b, c, d] = sums;
    _mm512_reduce_add_epi64(_mm512_add_epi64(_mm512_add_epi64(a, b), _mm512_add_epi64(c, d))).cast_unsigned()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_bytes_avx2(bytes: &[i8]) -> u64 {
    use std::arch::x86_64::*;
    let mut sums = [_mm256_setzero_si256(); 4];
    for group in bytes.as_chunks::<128>().0 {
        for (sum, part) in sums.iter_mut().zip(group.as_chunks::<32>().0) {
            // SAFETY: the array is the thirty-two bytes that are read.
            let part = unsafe { _mm256_loadu_si256(part.as_ptr().cast()) };
            *sum = _mm256_add_epi64(*sum, _mm256_sad_epu8(part, _mm256_setzero_si256()));
        }
    }
    let [a, b, c, d] = sums;
    let sum = _mm256_add_epi64(_mm256_add_epi64(a, b), _mm256_add_epi64(c, d));
    let mut lanes = [0_u64; 4];
    // SAFETY: the array is the thirty-two bytes that are written.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sum) };
    lanes.iter().sum()
}

fn scan(c: &mut Criterion) {
    let mut random = Random(2);
    let (center, query) = (random.unit(), random.unit());
    let spread = Store::around(&center, 4.0);
    let mut group = c.benchmark_group(format!("{ROWS}x{DIM} {}", instruction_set()));
    group.throughput(Throughput::Bytes((ROWS * DIM) as u64));
    group.bench_function("sum of the code bytes", |b| b.iter(|| sum_bytes(black_box(&spread.codes))));
    let code: Vec<i8> = spread.codes[..DIM].to_vec();
    let mut dots = vec![0; ROWS];
    group.bench_function("dot products of the codes", |b| {
        b.iter(|| dot_i8_many(black_box(&code), &spread.codes, &mut dots));
    });
    let (bits, blocks) = spread.one_bit(&query);
    group.bench_function("one-bit estimates", |b| {
        let mut uppers = [0.0; BIT_SLOTS];
        let wanted = Wanted { slots: u64::MAX, least: 1.0 };
        b.iter(|| {
            (0..)
                .map_while(|at| Some((blocks.block(at)?, blocks.block(at + 1))))
                .map(|(block, next)| black_box(&bits).likely_uppers(block, next, wanted, &mut uppers))
                .fold(0, |all, enough| all | enough)
        });
    });
    group.bench_function("candidates", |b| b.iter(|| spread.candidates(black_box(&query))));
    group.bench_function("search", |b| b.iter(|| spread.search(black_box(&query))));
    group.bench_function("search, f32 only", |b| b.iter(|| spread.search_f32(black_box(&query))));
    group.finish();
}

fn near_equal(c: &mut Criterion) {
    let mut random = Random(3);
    let center = random.unit();
    // Cosine to the center 0.998, to each other 0.995.
    let near = Store::around(&center, 0.07);
    let noise = random.unit();
    let values = center.as_slice().iter().zip(noise.as_slice()).map(|(c, n)| c + 0.07 * n);
    let query = UnitVector::new("query", &values.collect::<Vec<_>>()).expect("a finite vector");
    let mut group = c.benchmark_group(format!("{ROWS}x{DIM} near-equal {}", instruction_set()));
    group.bench_function("candidates", |b| b.iter(|| near.candidates(black_box(&query))));
    group.bench_function("search", |b| b.iter(|| near.search(black_box(&query))));
    group.bench_function("search, f32 only", |b| b.iter(|| near.search_f32(black_box(&query))));
    group.finish();
}

criterion_group!(benches, scan, near_equal);
criterion_main!(benches);
