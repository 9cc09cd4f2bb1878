//! The room's promises: one set of bits everywhere, bounds that hold, candidates that miss nothing.

use std::path::PathBuf;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::code::RESIDUAL_MAX;
use super::kernel::available;
use super::*;
use crate::error::ErrorKind;
use crate::limits::{DIM_MAX, K_MAX};

/// Rows with their codes, as a partition keeps them.
#[derive(Debug)]
struct Store {
    rows: Vec<UnitVector>,
    codes: Vec<i8>,
    scales: Vec<f32>,
    residuals: Vec<f32>,
}

impl Store {
    fn new(rows: Vec<UnitVector>) -> Self {
        let dim = rows[0].dim();
        let mut codes = vec![0; dim * rows.len()];
        let params = rows.iter().zip(codes.chunks_exact_mut(dim)).map(|(row, code)| encode(row, code));
        let (scales, residuals) = params.map(|params| (params.scale, params.residual)).unzip();
        Store { rows, codes, scales, residuals }
    }

    fn dim(&self) -> usize {
        self.rows[0].dim()
    }

    fn codes(&self, from: usize, to: usize) -> Codes<'_> {
        let dim = self.dim();
        Codes::new(dim, &self.codes[from * dim..to * dim], &self.scales[from..to], &self.residuals[from..to])
    }

    /// The chunks of `chunk` slots, each with its own words of a bitmap.
    fn chunks(&self, chunk: usize, bitmaps: Option<&[Vec<u64>]>) -> Vec<(u32, Codes<'_>, Option<Vec<u64>>)> {
        let firsts = (0..self.rows.len()).step_by(chunk).enumerate();
        let parts = firsts.map(|(at, first)| {
            let codes = self.codes(first, self.rows.len().min(first + chunk));
            (first as u32, codes, bitmaps.map(|bitmaps| bitmaps[at].clone()))
        });
        parts.collect()
    }

    fn score(&self, query: &UnitVector, slot: u32) -> f32 {
        dot_f32(query.as_slice(), self.rows[slot as usize].as_slice())
    }

    /// The k best visible slots of a full f32 scan, and all that tie with the last of them.
    fn top_with_ties(&self, query: &UnitVector, k: usize, visible: impl Fn(u32) -> bool) -> Vec<(f32, u32)> {
        let slots = (0..self.rows.len() as u32).filter(|&slot| visible(slot));
        let mut scores: Vec<_> = slots.map(|slot| (self.score(query, slot), slot)).collect();
        scores.sort_by(|a, b| b.0.total_cmp(&a.0));
        let last = scores.get(k - 1).map_or(f32::NEG_INFINITY, |last| last.0);
        scores.retain(|&(score, _)| score >= last);
        scores
    }
}

fn unit(values: &[f32]) -> UnitVector {
    UnitVector::new("vector", values).unwrap()
}

/// Values of very different sizes, never all zero. Made from a seed: a strategy for each value would take most of the
/// time of these tests.
fn values(dim: usize) -> impl Strategy<Value = Vec<f32>> {
    any::<u64>().prop_map(move |seed| values_of(seed, dim))
}

fn values_of(mut seed: u64, dim: usize) -> Vec<f32> {
    // SplitMix64 (Steele, Lea, Flood 2014).
    let mut next = || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    };
    let value = |bits: u64| {
        let uniform = (bits >> 40) as f32 / (1 << 23) as f32 - 1.0;
        match bits % 32 {
            0 => 0.0,
            1 => uniform * 1e-3,
            2 => uniform * 1e-30,
            3 => uniform * 1e-44,
            4 => uniform * 100.0,
            _ => uniform,
        }
    };
    let mut values: Vec<f32> = (0..dim).map(|_| value(next())).collect();
    if values.iter().all(|&value| value == 0.0) {
        values[0] = 1.0;
    }
    values
}

fn dims() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 1_usize..=67, 1 => 68_usize..=515, 1 => prop::sample::select(vec![128, 384, 512])]
}

/// How the rows of a store lie to each other and to the query.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Independent directions.
    Random,
    /// All at cosine 0.99 or more to each other.
    Clustered,
    /// Few distinct rows, many times.
    Duplicates,
    /// Every row is the query, one component moved by a few units in the last place.
    LastPlace,
    /// One dominant component, so that the step of the code is as coarse as it gets.
    Spiky,
}

fn shape() -> impl Strategy<Value = Shape> {
    use Shape::*;
    prop::sample::select(vec![Random, Clustered, Duplicates, LastPlace, Spiky])
}

/// A query, and rows made of `noise` in that shape.
fn bent(query: &[f32], noise: &[Vec<f32>], shape: Shape) -> (UnitVector, Store) {
    let query = unit(query);
    let row = |at: usize| -> UnitVector {
        let mut values = noise[at].clone();
        let dim = values.len();
        match shape {
            Shape::Random => {}
            Shape::Clustered => {
                let noise = unit(&values);
                values = query.as_slice().to_vec();
                values.iter_mut().zip(noise.as_slice()).for_each(|(value, noise)| *value += 0.05 * noise);
            }
            Shape::Duplicates => values.clone_from(&noise[at % noise.len().div_ceil(7)]),
            Shape::LastPlace => {
                values = query.as_slice().to_vec();
                values[at % dim] = f32::from_bits(values[at % dim].to_bits() ^ (at as u32 & 3));
            }
            Shape::Spiky => values[at % dim] = 40.0,
        }
        unit(&values)
    };
    let rows = (0..noise.len()).map(row).collect();
    (query, Store::new(rows))
}

fn scene() -> impl Strategy<Value = (UnitVector, Store)> {
    let noise = (dims(), 1_usize..200).prop_flat_map(|(dim, rows)| (values(dim), vec(values(dim), rows)));
    (noise, shape()).prop_map(|((query, noise), shape)| bent(&query, &noise, shape))
}

// Unit vectors.

#[test]
fn a_vector_outside_its_bounds_is_refused_by_name() {
    let refused = |values: &[f32]| {
        let error = UnitVector::new("embedding", values).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.to_string()
    };
    assert_eq!(refused(&[]), "embedding: must have 1 to 4096 dimensions (got 0)");
    assert_eq!(refused(&vec![1.0; DIM_MAX + 1]), "embedding: must have 1 to 4096 dimensions (got 4097)");
    assert_eq!(refused(&[0.0, f32::NAN]), "embedding: component 1 must be finite (got NaN)");
    assert_eq!(refused(&[f32::NEG_INFINITY]), "embedding: component 0 must be finite (got -inf)");
    assert_eq!(refused(&[0.0, -0.0]), "embedding: must not be the zero vector (got 0 in every dimension)");
}

#[test]
fn any_length_above_zero_normalises() {
    for size in [f32::from_bits(1), 1e-38, 1e-30, 1.0, 1e30, f32::MAX] {
        let values = unit(&[size, -size, size, size]);
        assert_eq!(values.as_slice(), [0.5, -0.5, 0.5, 0.5], "components of {size:e}");
        assert_eq!(unit(&vec![size; DIM_MAX]).as_slice(), vec![1.0 / 64.0; DIM_MAX]);
    }
}

#[test]
fn stored_values_that_are_no_unit_vector_are_refused() {
    assert!(UnitVector::from_stored([0.6, 0.8]).is_some());
    for values in [&[][..], &[0.0], &[0.6, 0.801], &[f32::NAN, 1.0], &[1.0, f32::INFINITY], &[0.5; DIM_MAX]] {
        assert_eq!(UnitVector::from_stored(values), None);
    }
    let too_long = vec![1.0 / ((DIM_MAX + 1) as f32).sqrt(); DIM_MAX + 1];
    assert_eq!(UnitVector::from_stored(too_long), None);
}

proptest! {
    #[test]
    fn normalising_is_idempotent(values in dims().prop_flat_map(values), size in -38_i32..37) {
        let values: Vec<f32> = values.iter().map(|value| value * 10_f32.powi(size)).collect();
        prop_assume!(values.iter().any(|&value| value != 0.0));
        let once = unit(&values);
        let bits = |vector: &UnitVector| vector.as_slice().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&unit(once.as_slice())), bits(&once));
        let stored = UnitVector::from_stored(once.as_slice());
        prop_assert_eq!(stored.as_ref().map(bits), Some(bits(&once)));
    }
}

// Codes.

#[test]
fn codes_are_the_same_on_every_machine() {
    let vector = unit(&[3.0, -1.5, 0.0, 1e-3, -3.0]);
    let mut code = [0; 5];
    let params = encode(&vector, &mut code);
    assert_eq!(code, [127, -64, 0, 0, -127]);
    assert_eq!(params.scale.to_bits(), 0x3bac_02af);
    assert_eq!(params.residual.to_bits(), 0x3b2c_a00d);
}

#[test]
fn stored_parameters_that_no_vector_has_are_refused() {
    assert!(CodeParams::from_stored(1.0 / 127.0, 0.0).is_some());
    for (scale, residual) in [(0.0, 0.0), (-0.001, 0.0), (0.008, 0.0), (f32::NAN, 0.0), (0.001, f32::NAN)] {
        assert_eq!(CodeParams::from_stored(scale, residual), None);
    }
    assert_eq!(CodeParams::from_stored(0.001, -0.001), None);
    assert_eq!(CodeParams::from_stored(0.001, RESIDUAL_MAX.next_up()), None);
}

proptest! {
    #[test]
    fn the_residual_bounds_what_rounding_took((_, store) in scene()) {
        for (at, row) in store.rows.iter().enumerate() {
            let code = &store.codes[at * store.dim()..][..store.dim()];
            let lost = row.as_slice().iter().zip(code).map(|(&value, &code)| {
                (f64::from(value) - f64::from(store.scales[at]) * f64::from(code)).powi(2)
            });
            let lost = lost.sum::<f64>().sqrt();
            prop_assert!(f64::from(store.residuals[at]) >= lost);
            prop_assert!(f64::from(store.residuals[at]) <= lost * 1.000_001);
            prop_assert!(CodeParams::from_stored(store.scales[at], store.residuals[at]).is_some());
            prop_assert!(code.iter().all(|&code| code != i8::MIN));
        }
    }
}

// Kernels.

/// Every kernel of this machine gives the scalar kernel's bits.
fn check_kernels(bytes: &[i8], floats: &[f32], dim: usize) -> Result<(), TestCaseError> {
    let (query, rows) = bytes.split_at(dim);
    let exact: Vec<i64> = rows
        .chunks_exact(dim)
        .map(|row| query.iter().zip(row).map(|(&q, &r)| i64::from(q) * i64::from(r)).sum())
        .collect();
    let (query_f32, rows_f32) = floats.split_at(dim);
    let scalar = available().last().unwrap();
    let mut expected = vec![0.0; rows_f32.len() / dim];
    scalar.dot_f32_many(query_f32, rows_f32, &mut expected);
    for kernel in available() {
        let mut dots = vec![7; exact.len()];
        kernel.dot_i8_many(query, rows, &mut dots);
        prop_assert!(dots.iter().map(|&dot| i64::from(dot)).eq(exact.iter().copied()), "{}", kernel.name());
        let apart: Vec<&[i8]> = rows.chunks_exact(dim).collect();
        let mut gathered = vec![7; exact.len()];
        kernel.dot_i8_gather(query, &apart, &mut gathered);
        prop_assert_eq!(&gathered, &dots, "{}", kernel.name());
        let mut dots = vec![7.0; expected.len()];
        kernel.dot_f32_many(query_f32, rows_f32, &mut dots);
        let bits = |dots: &[f32]| dots.iter().map(|dot| dot.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&dots), bits(&expected), "{}", kernel.name());
    }
    Ok(())
}

#[test]
fn the_scalar_kernel_is_the_last_and_the_fastest_is_in_use() {
    let names: Vec<_> = available().map(|kernel| kernel.name()).collect();
    assert_eq!(names.last(), Some(&"scalar"));
    assert_eq!(names.first(), Some(&instruction_set()));
    #[cfg(target_arch = "x86_64")]
    assert_eq!(names.contains(&"avx2"), is_x86_feature_detected!("avx2"));
    #[cfg(target_arch = "aarch64")]
    assert!(names.contains(&"neon"));
}

#[test]
fn kernels_do_not_overflow_at_the_bounds() {
    for (query, row) in [(-128, -128), (-128, 127), (127, -128), (127, 127)] {
        let mut bytes = vec![query; DIM_MAX];
        bytes.extend(vec![row; 2 * DIM_MAX]);
        check_kernels(&bytes, &vec![1.0 / 64.0; 3 * DIM_MAX], DIM_MAX).unwrap();
    }
}

#[test]
fn floats_are_summed_in_the_order_of_the_doc() {
    // Lanes 0 and 8 meet first: the large parts cancel and the small one stays. Any other order loses it.
    let mut row = [0.0; 16];
    (row[0], row[8], row[4]) = (1e8, -1e8, 1.0);
    assert_eq!(dot_f32(&[1.0; 16], &row), 1.0);
    // A fused multiply-add would keep the part of the square that rounding takes away.
    let root = 1.0 + f32::EPSILON;
    let mut products = [0.0; 17];
    let mut negated = [0.0; 17];
    (products[0], products[16], negated[0], negated[16]) = (root * root, root, -1.0, root);
    assert_eq!(dot_f32(&products, &negated), 0.0);
}

#[test]
#[should_panic(expected = "rows are contiguous")]
fn a_kernel_refuses_rows_of_another_length() {
    dot_i8_many(&[1, 2], &[1, 2, 3], &mut [0]);
}

proptest! {
    #[test]
    fn kernels_equal_the_scalar_twin(
        (dim, bytes, floats) in (dims(), 1_usize..9).prop_flat_map(|(dim, rows)| {
            let len = dim * (rows + 1);
            (Just(dim), vec(any::<i8>(), len), values(len))
        })
    ) {
        check_kernels(&bytes, &floats, dim)?;
    }
}

// The scan.

proptest! {
    #[test]
    fn every_score_lies_within_its_bound((query, store) in scene()) {
        let code = QueryCode::new(&query);
        let mut seen = 0;
        code.scan(store.codes(0, store.rows.len()), None, |block| {
            for (slot, bound) in block.visible_rows() {
                let score = store.score(&query, slot);
                assert!(bound.lower() <= score && score <= bound.upper(), "{score} is outside of {bound:?}");
                seen += 1;
            }
        });
        prop_assert_eq!(seen, store.rows.len());
    }

    #[test]
    fn candidates_hold_the_true_top_k_with_ties(
        (query, store) in scene(),
        k in 1_usize..50,
        chunk in 1_usize..150,
        hidden in any::<Option<u64>>(),
    ) {
        // Bit patterns from none to all hidden, another one for each word.
        let word = |at: usize| hidden.map_or(u64::MAX, |hidden| !hidden.rotate_left(at as u32 * 7));
        let bitmaps: Vec<Vec<u64>> = (0..200).map(|at| vec![word(at), word(at + 1), word(at + 2)]).collect();
        let visible = |slot: u32| {
            let (at, row) = (slot as usize / chunk, slot as usize % chunk);
            bitmaps[at][row / 64] >> (row % 64) & 1 == 1
        };
        let code = QueryCode::new(&query);
        let mut candidates = Candidates::new(&code, k);
        let chunks = store.chunks(chunk, hidden.map(|_| &bitmaps[..]));
        for (first, codes, bitmap) in &chunks {
            candidates.push_chunk(*first, *codes, bitmap.as_deref());
        }
        let candidates = candidates.finish();
        prop_assert!(candidates.is_sorted_by_key(|candidate| candidate.slot));
        prop_assert!(candidates.iter().all(|candidate| visible(candidate.slot)));
        let truth = store.top_with_ties(&query, k, visible);
        for &(score, slot) in &truth {
            let found = candidates.iter().find(|candidate| candidate.slot == slot);
            prop_assert!(found.is_some_and(|found| found.upper >= score), "slot {slot} of score {score}");
        }

        let given = chunks.iter().map(|(first, codes, bitmap)| (*first, *codes, bitmap.as_deref()));
        let mut promises = Promises::new(&code);
        for (first, codes, visible) in given {
            promises.push_chunk(first, codes, visible);
        }
        let ranking: Vec<Candidate> = promises.finish().collect();
        prop_assert!(ranking.is_sorted());
        let candidates: Vec<Candidate> = Ranking::from(candidates).collect();
        prop_assert_eq!(&ranking[..candidates.len()], &candidates[..]);
        let mut slots: Vec<u32> = ranking.iter().map(|candidate| candidate.slot).collect();
        slots.sort_unstable();
        prop_assert!(slots.into_iter().eq((0..store.rows.len() as u32).filter(|&slot| visible(slot))));

        // Scored in order and stopped at the first bound below the threshold: the answer of the full scan.
        let mut top = TopK::new(k);
        for candidate in ranking {
            if top.threshold().is_some_and(|threshold| candidate.upper < threshold) {
                break;
            }
            top.push(store.score(&query, candidate.slot), candidate.slot);
        }
        let top: Vec<_> = top.into_sorted().iter().map(|scored| (scored.score, scored.id)).collect();
        prop_assert_eq!(&top[..], &truth[..truth.len().min(k)]);
    }
}

/// The likely interval holds for dense and sparse vectors, and for vectors of a few values, whose rounding errors are alike.
/// It leaves fewer candidates than the certain interval.
#[test]
fn likely_candidates_hold_the_true_top_k() {
    type Shape = fn(f32, usize) -> f32;
    let shapes: [(&str, Shape); 5] = [
        ("dense", |value, _| value),
        ("sparse", |value, at| if value.abs() > 0.97 || at == 0 { value } else { 0.0 }),
        ("two values", |value, _| if value > 0.0 { 1.0 } else { 0.3 }),
        ("three values", |value, _| [0.3, 1.0, -0.71][(value.abs() * 2.99) as usize]),
        ("one large dimension", |value, at| if at == 0 { 10.0 } else { value }),
    ];
    for (name, shape) in shapes {
        let row = |seed: u64| {
            let uniform = values_of(seed, 384).into_iter().map(|value| value.clamp(-1.0, 1.0));
            unit(&uniform.enumerate().map(|(at, value)| shape(value, at)).collect::<Vec<f32>>())
        };
        let store = Store::new((100..1_600).map(row).collect());
        let (mut likely, mut certain) = (0, 0);
        for query in (0..40).map(row) {
            let code = QueryCode::new(&query);
            let rows = |first: usize| {
                let to = store.rows.len().min(first + 64);
                let wanted = u64::MAX >> (64 - (to - first));
                store.codes(first, to).rows(first as u32, wanted)
            };
            let (mut some, mut all) = (Candidates::new(&code, 10), Candidates::new(&code, 10));
            some.push_likely((0..store.rows.len()).step_by(64).flat_map(rows));
            all.push_rows((0..store.rows.len()).step_by(64).flat_map(rows));
            let (some, all) = (some.finish(), all.finish());
            for (score, slot) in store.top_with_ties(&query, 10, |_| true) {
                let found = some.iter().find(|candidate| candidate.slot == slot);
                assert!(
                    found.is_some_and(|found| found.upper >= score),
                    "{name}: slot {slot} of score {score}"
                );
            }
            (likely, certain) = (likely + some.len(), certain + all.len());
        }
        let found = 40 * 10;
        assert!(
            name != "dense" || 2 * (likely - found) < certain - found,
            "{likely} of {certain} candidates"
        );
    }
}

#[test]
fn candidates_that_fall_behind_are_dropped() {
    // Ascending scores: each row is better than all before it, so each one is kept at first.
    let rows = (0..6_000).map(|at| unit(&[at as f32 / 6_000.0, 1.0, 0.25])).collect();
    let store = Store::new(rows);
    let query = unit(&[1.0, 0.0, 0.0]);
    let code = QueryCode::new(&query);
    let mut candidates = Candidates::new(&code, 3);
    candidates.push_chunk(0, store.codes(0, 6_000), None);
    let finished = candidates.finish();
    assert!(finished.len() < 100, "{} candidates", finished.len());
    assert!([5_999, 5_998, 5_997].iter().all(|&slot| finished.iter().any(|kept| kept.slot == slot)));
}

#[test]
#[should_panic(expected = "one embedding space")]
fn a_scan_refuses_codes_of_another_dimension() {
    let code = QueryCode::new(&unit(&[1.0, 0.0]));
    Candidates::new(&code, 1).push_chunk(0, Codes::new(1, &[1], &[0.001], &[0.0]), None);
}

// The best k.

#[test]
fn equal_scores_rank_by_ascending_id() {
    let mut top = TopK::new(3);
    assert_eq!(top.threshold(), None);
    for (score, id) in [(0.5, 9), (-0.0, 1), (0.0, 0), (0.5, 2), (-0.0, 0), (-1.0, 0)] {
        top.push(score, [id; 16]);
    }
    assert_eq!(top.threshold().map(f32::to_bits), Some(0.0_f32.to_bits()));
    let order: Vec<_> = top.into_sorted().iter().map(|scored| (scored.score, scored.id[0])).collect();
    assert_eq!(order, [(0.5, 2), (0.5, 9), (0.0, 0)]);
}

#[test]
#[should_panic(expected = "k is 1 to 1000")]
fn a_k_past_its_bound_is_a_bug_of_the_caller() {
    TopK::<u32>::new(K_MAX + 1);
}

proptest! {
    #[test]
    fn the_best_k_are_those_of_a_sort(scores in vec((-3_i8..3, 0_u32..20), 0..60), k in 1_usize..20) {
        let mut top = TopK::new(k);
        scores.iter().for_each(|&(score, id)| top.push(f32::from(score) / 2.0, id));
        let mut sorted: Vec<(i8, u32)> = scores;
        sorted.sort_by_key(|&(score, id)| (-score, id));
        sorted.truncate(k);
        prop_assert_eq!(top.threshold(), (sorted.len() == k).then(|| f32::from(sorted[k - 1].0) / 2.0));
        let top = top.into_sorted();
        prop_assert!(top.iter().map(|scored| (scored.score, scored.id)).eq(
            sorted.iter().map(|&(score, id)| (f32::from(score) / 2.0, id))
        ));
    }
}

// Real vectors.

/// The rows of a float32 NumPy file of 384 columns; `None` where the data is not at hand.
fn real_rows(name: &str) -> Option<Vec<UnitVector>> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let folder = if beside.is_dir() { beside } else { PathBuf::from(std::env::var_os("OUBLIETTE_DATA")?) };
    let bytes = std::fs::read(folder.join(name)).ok()?;
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let (values, rest) = bytes[header..].as_chunks::<4>();
    assert!(rest.is_empty());
    let values: Vec<f32> = values.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    Some(values.chunks_exact(384).map(unit).collect())
}

#[test]
#[allow(clippy::print_stderr, reason = "a skipped test says so")]
fn real_vectors_have_few_candidates() {
    let Some(rows) = real_rows("debian_dev_desc_384.f32.npy") else {
        eprintln!("skipped: no ../shared/data and no OUBLIETTE_DATA");
        return;
    };
    let store = Store::new(rows);
    assert_eq!(store.rows.len(), 5_644);
    let (mut queries, mut total, mut most) = (0, 0, 0);
    for query in store.rows.iter().step_by(23) {
        let code = QueryCode::new(query);
        let mut candidates = Candidates::new(&code, 10);
        candidates.push_chunk(0, store.codes(0, store.rows.len()), None);
        let candidates = candidates.finish();
        for (score, slot) in store.top_with_ties(query, 10, |_| true) {
            assert!(
                candidates.iter().any(|candidate| candidate.slot == slot),
                "slot {slot} of score {score}"
            );
        }
        (queries, total, most) = (queries + 1, total + candidates.len(), most.max(candidates.len()));
    }
    eprintln!("{queries} queries: {} candidates on average, {most} at most", total / queries);
    assert!(total / queries < 60);
}
