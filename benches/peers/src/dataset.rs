//! Which vectors are searched, and what is the right answer?

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use oubliette::exchange::NpyReader;
use oubliette::faults::vector::{TopK, UnitVector, dot_f32, dot_f32_many};

pub const DIM: usize = 384;
/// Neighbours asked for and compared.
pub const K: usize = 10;
/// Two scores so near are one: f32 sums differ by that in another order.
const TIE: f32 = 1e-6;

/// Rows to search and queries that are not among them, all of length 1.
pub struct Dataset {
    pub name: &'static str,
    /// One row after the other.
    pub rows: Arc<[f32]>,
    pub queries: Vec<Vec<f32>>,
    /// For each query the score of the last of its `K` nearest rows.
    worst: Vec<f32>,
}

impl Dataset {
    fn new(name: &'static str, mut vectors: Vec<Vec<f32>>, rows: usize, queries: usize) -> Self {
        let queries = vectors.split_off(vectors.len().saturating_sub(queries));
        vectors.truncate(rows);
        assert!(vectors.len() > K && !queries.is_empty(), "{name}: too few vectors");
        let rows: Arc<[f32]> = vectors.concat().into();
        let worst = queries.iter().map(|query| nearest(&rows, query).last().unwrap().1).collect();
        Dataset { name, rows, queries, worst }
    }

    /// The vectors of all `*_384.f32.npy` files of a folder, each once, in a fixed random order; the last `queries` of
    /// them ask.
    pub fn real(folder: &Path, rows: usize, queries: usize) -> Option<Self> {
        let entries = std::fs::read_dir(folder).ok()?;
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.to_string_lossy().ends_with("_384.f32.npy"));
        files.sort_unstable();
        let (mut vectors, mut seen) = (Vec::new(), HashSet::new());
        for file in &files {
            let mut reader = NpyReader::open(file).unwrap();
            assert_eq!(reader.dim(), DIM, "{}", file.display());
            let mut row = Vec::new();
            while reader.next_row(&mut row).unwrap() {
                let row = UnitVector::new("row", &row).unwrap().as_slice().to_vec();
                if seen.insert(row.iter().map(|v| v.to_bits()).collect::<Vec<u32>>()) {
                    vectors.push(row);
                }
            }
        }
        if vectors.is_empty() {
            return None;
        }
        Rng(11).shuffle(&mut vectors);
        Some(Dataset::new("real", vectors, rows, queries))
    }

    /// Vectors in clusters of about 200 that differ in 32 directions and a little in all, which is about as hard to
    /// search as embeddings of sentences are.
    pub fn synthetic(rows: usize, queries: usize) -> Self {
        let mut rng = Rng(12);
        let directions: Vec<Vec<f32>> = (0..32).map(|_| rng.direction()).collect();
        let centers: Vec<Vec<f32>> = (0..rows.div_ceil(200)).map(|_| rng.direction()).collect();
        let vector = |_| {
            let mut vector = centers[rng.below(centers.len())].clone();
            for direction in &directions {
                let weight = rng.normal() * 0.14;
                vector.iter_mut().zip(direction).for_each(|(v, d)| *v += weight * d);
            }
            vector.iter_mut().for_each(|v| *v += rng.normal() * 0.015);
            unit(&vector)
        };
        let vectors = (0..rows + queries).map(vector).collect();
        Dataset::new("synthetic", vectors, rows, queries)
    }

    pub fn len(&self) -> usize {
        self.rows.len() / DIM
    }

    pub fn row(&self, at: usize) -> &[f32] {
        &self.rows[at * DIM..(at + 1) * DIM]
    }

    /// How many of the `K` places of an answer hold a row that is as near as the true neighbours are.
    pub fn right(&self, query: usize, found: &[u32]) -> usize {
        let distinct: HashSet<u32> = found.iter().take(K).copied().collect();
        let score = |row: &u32| dot_f32(&self.queries[query], self.row(*row as usize));
        distinct.iter().filter(|row| score(row) >= self.worst[query] - TIE).count()
    }
}

/// The `K` nearest rows to a query with their scores, by looking at each.
pub fn nearest(rows: &[f32], query: &[f32]) -> Vec<(u32, f32)> {
    let mut scores = vec![0.0; rows.len() / DIM];
    dot_f32_many(query, rows, &mut scores);
    let mut top = TopK::new(K);
    scores.into_iter().zip(0_u32..).for_each(|(score, row)| top.push(score, row));
    top.into_sorted().iter().map(|scored| (scored.id, scored.score)).collect()
}

fn unit(vector: &[f32]) -> Vec<f32> {
    UnitVector::new("vector", vector).unwrap().as_slice().to_vec()
}

/// SplitMix64 (Steele, Lea, Flood 2014), so that every run sees the same rows.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Nearly normal: the sum of four uniform numbers, brought to a variance of 1.
    fn normal(&mut self) -> f32 {
        let sum: f64 = (0..4).map(|_| (self.next() >> 11) as f64 / (1_u64 << 53) as f64).sum();
        ((sum - 2.0) * 3.0_f64.sqrt()) as f32
    }

    fn direction(&mut self) -> Vec<f32> {
        unit(&(0..DIM).map(|_| self.normal()).collect::<Vec<f32>>())
    }

    /// Fisher and Yates.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let other = self.below(at + 1);
            items.swap(at, other);
        }
    }
}
