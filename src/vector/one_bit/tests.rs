//! The estimate has no bias, its error is the promised one whatever the data, and every kernel sums alike.

use proptest::prelude::*;

use super::*;
use crate::limits::DIM_MAX;
use crate::vector::kernel::{GROUP_BYTES, QuerySigns, SignQueries, available};
use crate::vector::{SignBatch, UnitVector, dot_f32, encode};

/// Numbers of a seed, uniform in −1 to 1.
fn uniform(seed: u64) -> impl Iterator<Item = f32> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        next_flip(&mut state);
        let mixed = (state ^ state >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 40) as f32 / (1 << 23) as f32 - 1.0
    })
}

fn unit(values: &[f32]) -> UnitVector {
    UnitVector::new("vector", values).unwrap()
}

/// What the rows of a data set have in common.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Random,
    /// All but the last few dimensions are the same for all.
    Constant,
    /// Every value is one of three.
    FewValues,
    /// Every row is near one row.
    NearEqual,
    /// The mean of the rows is far off.
    FarOff,
    /// One dimension of each row holds almost everything.
    Spiky,
}

const SHAPES: [Shape; 6] =
    [Shape::Random, Shape::Constant, Shape::FewValues, Shape::NearEqual, Shape::FarOff, Shape::Spiky];

fn rows(shape: Shape, dim: usize, count: usize) -> Vec<UnitVector> {
    let mut numbers = uniform(dim as u64 * 31 + shape as u64);
    let base: Vec<f32> = numbers.by_ref().take(dim).collect();
    (0..count)
        .map(|row| {
            let mut values: Vec<f32> = numbers.by_ref().take(dim).collect();
            for (at, (value, base)) in values.iter_mut().zip(&base).enumerate() {
                *value = match shape {
                    Shape::Random => *value,
                    Shape::Constant => {
                        if at + 8 < dim {
                            *base
                        } else {
                            *value
                        }
                    }
                    Shape::FewValues => (*value * 1.4).round(),
                    Shape::NearEqual => base + *value / 50.0,
                    Shape::FarOff => *value + 3.0,
                    Shape::Spiky => {
                        if at == row % dim {
                            20.0
                        } else {
                            *value
                        }
                    }
                };
            }
            values.iter_mut().take(1).for_each(|first| *first += 1e-3);
            unit(&values)
        })
        .collect()
}

/// The rows in blocks, around their mean.
fn coded(rows: &[UnitVector]) -> (BitFrame, BitBlocks) {
    let dim = rows[0].dim();
    let mean = (0..dim).map(|at| rows.iter().map(|row| row.as_slice()[at]).sum::<f32>() / rows.len() as f32);
    let frame = BitFrame::around(mean.collect());
    let mut room = Vec::new();
    let mut blocks = BitBlocks::vacant(&frame, rows.len().div_ceil(BIT_SLOTS));
    for (slot, row) in rows.iter().enumerate() {
        let mut code = vec![0; dim];
        let params = encode(row, &mut code);
        blocks.set(slot, &frame, &code, params.scale, &mut room);
    }
    (frame, blocks)
}

/// Every slot, whatever it scores.
const ALL: Wanted = Wanted { slots: u64::MAX, least: f32::NEG_INFINITY };

fn uppers(query: &BitQuery, blocks: &BitBlocks, rows: usize) -> Vec<f32> {
    let mut all = Vec::new();
    for at in 0..rows.div_ceil(BIT_SLOTS) {
        let block = blocks.block(at).unwrap();
        let mut uppers = [0.0; BIT_SLOTS];
        query.likely_uppers(block, blocks.block(at + 1), ALL, &mut uppers);
        all.extend(uppers);
    }
    all.truncate(rows);
    all
}

#[test]
fn estimates_have_no_bias_and_the_promised_error() {
    for shape in SHAPES {
        for dim in [64, 100, 384, 1_000, DIM_MAX] {
            let rows = rows(shape, dim, 640);
            let (frame, blocks) = coded(&rows);
            let (mut sum, mut missed, mut count) = (0.0, 0, 0);
            for at in (0..rows.len()).step_by(21) {
                // A query lies between two rows.
                let other = &rows[(at + 320) % rows.len()];
                let values = rows[at].as_slice().iter().zip(other.as_slice());
                let query = unit(&values.map(|(a, b)| 0.7 * a + 0.3 * b + 1e-6).collect::<Vec<_>>());
                // With an even chance to miss nothing is added to the estimate.
                let estimates = uppers(&BitQuery::new(&frame, query.as_slice(), 0.5), &blocks, rows.len());
                let likely = uppers(&BitQuery::new(&frame, query.as_slice(), 0.999), &blocks, rows.len());
                for ((row, estimate), upper) in rows.iter().zip(estimates).zip(likely) {
                    let score = dot_f32(row.as_slice(), query.as_slice());
                    let deviation = (upper - estimate) / (-2.0 * 0.002_f32.ln()).sqrt();
                    sum += f64::from((estimate - SUMS_ERROR - score) / deviation.max(SUMS_ERROR));
                    missed += u32::from(score > upper + 2e-3);
                    count += 1;
                }
            }
            let bias = sum / f64::from(count);
            // Over rotations there is no bias. Here is one rotation, and rows that differ in eight dimensions have few
            // independent errors. Near-equal rows differ less than their codes err. Both still stay below their bound.
            let many = !matches!(shape, Shape::Constant | Shape::NearEqual);
            assert!(!many || bias.abs() < 0.4, "{shape:?} × {dim}: the mean error is {bias} deviations");
            assert!(f64::from(missed) <= f64::from(count) * 0.001, "{shape:?} × {dim}: {missed} of {count}");
        }
    }
}

#[test]
fn slots_that_score_a_floor_are_missed_as_rarely_as_promised() {
    for shape in SHAPES {
        for dim in [64, 384, 1_000] {
            let rows = rows(shape, dim, 640);
            let (frame, blocks) = coded(&rows);
            let (mut missed, mut near, mut marked) = (0, 0, 0);
            for at in 0..rows.len() {
                let other = &rows[(at + 320) % rows.len()];
                let values = rows[at].as_slice().iter().zip(other.as_slice());
                let query = unit(&values.map(|(a, b)| 0.7 * a + 0.5 * b + 1e-6).collect::<Vec<_>>());
                let scores: Vec<f32> =
                    rows.iter().map(|row| dot_f32(row.as_slice(), query.as_slice())).collect();
                let mut sorted = scores.clone();
                sorted.sort_by(|a, b| b.total_cmp(a));
                let asked = BitQuery::new(&frame, query.as_slice(), 0.999);
                // The codes of slots are made from codes of a byte, which have an error of their own.
                let least = sorted[1] - 2e-3;
                for (block, scores) in scores.chunks(BIT_SLOTS).enumerate() {
                    let wanted = Wanted { slots: u64::MAX, least };
                    let mut uppers = [0.0; BIT_SLOTS];
                    let found = asked.likely_uppers(blocks.block(block).unwrap(), None, wanted, &mut uppers);
                    marked += found.count_ones();
                    for (slot, score) in scores.iter().enumerate().filter(|(_, score)| **score >= sorted[1]) {
                        near += 1;
                        missed += u32::from(found >> slot & 1 == 0 || uppers[slot] + 4e-3 < *score);
                    }
                }
            }
            assert!(f64::from(missed) <= f64::from(near) * 0.001, "{shape:?} × {dim}: {missed} of {near}");
            let random = matches!(shape, Shape::Random) && dim >= 384;
            assert!(!random || marked < 2 * near, "{shape:?} × {dim}: {marked} for {near}");
        }
    }
}

#[test]
fn a_vector_in_the_center_and_a_query_there_have_finite_scores() {
    let row = unit(&[0.6, 0.8]);
    let frame = BitFrame::around([0.0; 2].into());
    let mut blocks = BitBlocks::vacant(&frame, 1);
    blocks.set(3, &frame, &[0, 0], 1.0, &mut Vec::new());
    let block = blocks.block(0).unwrap();
    assert!(blocks.block(1).is_none());
    for query in [[0.0, 0.0], [0.6, 0.8]] {
        let mut uppers = [0.0; BIT_SLOTS];
        let query = BitQuery::new(&frame, &query, 0.999);
        let near =
            |least, uppers: &mut _| query.likely_uppers(block, None, Wanted { slots: 1 << 3, least }, uppers);
        assert_eq!(near(-1e-3, &mut uppers), 1 << 3, "{uppers:?}");
        assert_eq!(near(1e-3, &mut uppers), 0, "{uppers:?}");
    }
    assert_eq!(row.dim(), frame.dim());
}

#[test]
fn a_rotation_keeps_lengths_and_angles() {
    for dim in [1, 2, 63, 64, 65, 128, 200, 384, 1_536, DIM_MAX] {
        let frame = BitFrame::around(vec![0.0; dim].into());
        let numbers: Vec<f32> = uniform(7).take(2 * dim).collect();
        let (a, b) = numbers.split_at(dim);
        let place = |values: &[f32]| {
            let mut out = Vec::new();
            frame.place(values.iter().copied(), &mut out);
            assert_eq!(out.len(), frame.sign_bytes() * 8);
            out
        };
        let dot =
            |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
        let (placed_a, placed_b) = (place(a), place(b));
        let size = dot(a, a).max(dot(b, b));
        assert!((dot(&placed_a, &placed_a) - dot(a, a)).abs() < 1e-5 * size, "{dim}");
        assert!((dot(&placed_a, &placed_b) - dot(a, b)).abs() < 1e-5 * size, "{dim}");
    }
}

/// Numbers that show the sums of signs as scores.
fn sums_alone(tables: Vec<[[u8; 16]; 2]>) -> (Levels, SlotNumbers) {
    let (ones, zeros) = ([1.0; BIT_SLOTS], [0.0; BIT_SLOTS]);
    let tables = tables.into();
    let zero = 0.0;
    let levels = Levels {
        tables,
        twice_low: zero,
        twice_step: 1.0,
        total: zero,
        base: zero,
        allowed: zero,
        reach: zero,
        lost: zero,
    };
    let numbers =
        SlotNumbers { ones, factors: ones, errors: zeros, offsets: zeros, least_error: f32::INFINITY };
    (levels, numbers)
}

/// What a slot scores at most, if it scores `least`.
fn upper(levels: &Levels, numbers: &SlotNumbers, rows: &[SignBytes], slot: usize, least: f32) -> f32 {
    let halves = rows.iter().map(|row| (row[slot] & 15, row[slot] >> 4)).zip(&levels.tables);
    let sums = halves.map(|((low, high), tables)| {
        i32::from(tables[0][usize::from(low)]) + i32::from(tables[1][usize::from(high)])
    });
    let sum: i32 = sums.sum();
    let product = levels.twice_low * numbers.ones[slot] + levels.twice_step * sum as f32 - levels.total;
    let known = numbers.offsets[slot] + levels.base;
    let needed = (least - known).max(0.0);
    let (factor, error) = (numbers.factors[slot], numbers.errors[slot]);
    let square = error * error * levels.reach + factor * factor * levels.lost
        - levels.allowed * numbers.least_error * (needed * needed);
    factor * product + known + if square > 0.0 { square.sqrt() } else { 0.0 }
}

proptest! {
    #[test]
    fn every_kernel_scores_signs_like_the_scalar_one(words in 1_usize..70, seed: u64, wanted: u64) {
        let mut state = seed;
        let mut word = || {
            next_flip(&mut state);
            // Runs of ones reach the bounds of narrow sums.
            if state >> 60 == 0 { u64::MAX } else { state ^ state >> 29 }
        };
        let mut levels = || std::array::from_fn(|_| word() as u8 & LEVEL_MAX as u8);
        let tables: Vec<[[u8; 16]; 2]> = (0..8 * words).map(|_| [table(levels()), table(levels())]).collect();
        let rows: Vec<SignBytes> = (0..8 * words).map(|_| [(); BIT_SLOTS].map(|()| word() as u8)).collect();
        let mut numbers = uniform(seed);
        let mut some = || [(); BIT_SLOTS].map(|()| numbers.next().unwrap());
        let (ones, factors, errors, offsets) = (some(), some(), some(), some());
        let [twice_low, twice_step, total, base, reach, lost, allowed, least_error, ..] = some();
        let [reach, lost, allowed, least_error] = [reach, lost, allowed, least_error].map(f32::abs);
        let of_slots = SlotNumbers { ones, factors, errors, offsets, least_error };
        let (alone, plain) = sums_alone(tables);
        let tables = alone.tables.clone();
        let levels = Levels { tables, twice_low, twice_step, total, base, allowed, reach, lost };
        for (levels, of_slots) in [(&alone, &plain), (&levels, &of_slots)] {
            let mut least = f32::NEG_INFINITY;
            for slots in [u64::MAX, wanted, wanted] {
                let uppers: [f32; BIT_SLOTS] =
                    std::array::from_fn(|slot| upper(levels, of_slots, &rows, slot, least));
                let enough = (0..BIT_SLOTS).filter(|slot| slots >> slot & 1 == 1 && uppers[*slot] >= least);
                let expected = enough.clone().fold(0, |bits, slot| bits | 1 << slot);
                for kernel in available() {
                    let mut scores = [0.0; BIT_SLOTS];
                    let block = ScanBlock { signs: &rows, ahead: &rows, numbers: of_slots };
                    let found = kernel.sign_scores(levels, &block, Wanted { slots, least }, &mut scores);
                    prop_assert_eq!(found, expected, "{}", kernel.name());
                    for slot in enough.clone() {
                        prop_assert_eq!(scores[slot].to_bits(), uppers[slot].to_bits(), "{}", kernel.name());
                    }
                }
                // One of the scores, so that a slot may be just as good.
                least = uppers[(seed % 64) as usize];
            }
        }
    }
}

#[test]
fn sums_at_the_bound_do_not_overflow() {
    let highest = table([LEVEL_MAX as u8; 4]);
    let (levels, numbers) = sums_alone(vec![[highest; 2]; DIM_MAX / 8]);
    let rows = vec![[u8::MAX; BIT_SLOTS]; DIM_MAX / 8];
    for kernel in available() {
        let mut scores = [0.0; BIT_SLOTS];
        let block = ScanBlock { signs: &rows, ahead: &rows, numbers: &numbers };
        kernel.sign_scores(&levels, &block, ALL, &mut scores);
        assert_eq!(scores, [15.0 * DIM_MAX as f32; BIT_SLOTS], "{}", kernel.name());
    }
}

#[test]
fn a_batch_misses_no_near_slot_and_leaves_most_others_out() {
    for shape in SHAPES {
        for dim in [64, 100, 384, 1_000, DIM_MAX] {
            let rows = rows(shape, dim, 640);
            let (frame, blocks) = coded(&rows);
            let queries: Vec<UnitVector> = (0..rows.len())
                .step_by(40)
                .map(|at| {
                    let other = &rows[(at + 320) % rows.len()];
                    let values = rows[at].as_slice().iter().zip(other.as_slice());
                    unit(&values.map(|(a, b)| 0.9 * a + 0.1 * b + 1e-6).collect::<Vec<_>>())
                })
                .collect();
            let slices = || queries.iter().map(UnitVector::as_slice);
            let mut batch = SignBatch::new(&frame, slices());
            let mut likely = vec![0; queries.len()];
            batch.likely(blocks.block(0).unwrap(), &mut likely);
            assert!(likely.iter().all(|bits| *bits == u64::MAX), "without a floor every slot is likely");
            for least in [-0.5, 0.0, 0.6, 0.9] {
                (0..queries.len()).for_each(|at| batch.set_floor(at, least));
                let (mut missed, mut near, mut marked) = (0, 0, 0);
                for block in 0..rows.len() / BIT_SLOTS {
                    batch.likely(blocks.block(block).unwrap(), &mut likely);
                    for (query, bits) in queries.iter().zip(&likely) {
                        for (slot, row) in rows[block * BIT_SLOTS..][..BIT_SLOTS].iter().enumerate() {
                            let is_likely = bits >> slot & 1 == 1;
                            // The codes of slots are made from codes of a byte, which have an error of their own.
                            let is_near = dot_f32(row.as_slice(), query.as_slice()) >= least + 2e-3;
                            missed += u32::from(is_near && !is_likely);
                            near += u32::from(is_near);
                            marked += u32::from(is_likely);
                        }
                    }
                }
                assert_eq!(missed, 0, "{shape:?} × {dim} at {least}: of {near}");
                let random = matches!(shape, Shape::Random) && dim >= 384 && least == 0.9;
                assert!(!random || marked < 2 * near, "{shape:?} × {dim}: {marked} for {near}");
            }
        }
    }
}

#[test]
fn a_batch_with_a_query_in_the_center_has_finite_numbers() {
    let frame = BitFrame::around([0.6, 0.8].into());
    let mut blocks = BitBlocks::vacant(&frame, 1);
    blocks.set(3, &frame, &[76, 102], 1.0 / 127.0, &mut Vec::new());
    let queries = [[0.6_f32, 0.8], [-0.6, 0.8]];
    let mut batch = SignBatch::new(&frame, queries.iter().map(|query| &query[..]));
    (0..2).for_each(|at| batch.set_floor(at, 0.99));
    let mut likely = [0; 2];
    batch.likely(blocks.block(0).unwrap(), &mut likely);
    assert_eq!(likely[0] >> 3 & 1, 1, "the slot lies where the query does");
    assert_eq!(likely[1] >> 3 & 1, 0, "a query far off");
}

proptest! {
    #[test]
    fn every_kernel_marks_the_slots_that_promise_enough(words in 1_usize..70, count in 0_usize..5, seed: u64) {
        let mut state = seed;
        let mut word = || {
            next_flip(&mut state);
            // Runs of ones reach the bounds of narrow sums.
            if state >> 60 == 0 { u64::MAX } else { state ^ state >> 29 }
        };
        let signs: Vec<QuerySigns> = (0..8 * words * count).map(|_| [word() as u8; 4]).collect();
        let rows: Vec<SignBytes> = (0..8 * words).map(|_| [(); BIT_SLOTS].map(|()| word() as u8)).collect();
        let groups = words.div_ceil(GROUP_BYTES / 8);
        let limits: Vec<SignLimits> = (0..groups).map(|_| std::array::from_fn(|_| word() as u8)).collect();
        let levels: Vec<u8> = (0..count).map(|_| word() as u8).collect();
        let queries = SignQueries { signs: &signs, levels: &levels, limits: &limits };
        let is_likely = |signs: &[QuerySigns], level: u8, slot: usize| {
            (1..=groups).all(|group| {
                let rows = rows.iter().zip(signs).take(group * GROUP_BYTES);
                let differing = rows.map(|(row, sign)| (row[slot] ^ sign[0]).count_ones());
                differing.sum::<u32>().min(255) <= u32::from(limits[group - 1][usize::from(level)])
            })
        };
        let expected: Vec<u64> = signs
            .chunks(8 * words)
            .zip(&levels)
            .map(|(signs, level)| (0..BIT_SLOTS).fold(0, |bits, slot| bits | u64::from(is_likely(signs, *level, slot)) << slot))
            .collect();
        for kernel in available() {
            let mut out = vec![1; count];
            kernel.sign_marks(queries, &rows, &mut out);
            prop_assert_eq!(out, expected.clone(), "{}", kernel.name());
        }
    }
}

/// The bound is above the quantile of the normal distribution, and near it where a search asks.
#[test]
fn deviations_are_enough_for_the_recall_and_few_more() {
    for (missed, quantile) in [(0.05, 1.6449), (0.01, 2.3263), (0.001, 3.0902), (1e-6, 4.7534)] {
        let deviations = f64::from(squared_deviations(1.0 - missed as f32)).sqrt();
        // The chance is that of an f32 near 1.
        let near = if missed < 1e-5 { 0.98 } else { 1.0 };
        assert!(deviations >= quantile * near && deviations <= quantile * 1.08, "{missed}: {deviations}");
    }
    assert_eq!(squared_deviations(0.0), 0.0);
    let all: Vec<f32> = (0..1_000).map(|recall| squared_deviations(recall as f32 / 1_000.0)).collect();
    assert!(all.is_sorted());
}
