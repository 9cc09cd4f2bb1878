//! Vectors: real ones where they are at hand, and clusters of any size.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use redb::{ReadableDatabase, ReadableTable, TableDefinition};

use crate::sample::{Rng, Sample, near};

/// The folder of real data.
fn folder() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    if beside.is_dir() { Some(beside) } else { std::env::var_os("OUBLIETTE_DATA").map(PathBuf::from) }
}

/// Different unit vectors of 384 dimensions in an order without order, and whether they are `real` or `synthetic`.
pub fn rows(count: usize) -> (Vec<Vec<f32>>, &'static str) {
    let mut rows = folder().map(|folder| real(&folder)).unwrap_or_default();
    if rows.len() < count {
        return (Sample::new(count, 77).vectors, "synthetic");
    }
    let mut rng = Rng(1);
    for at in 0..count {
        let other = at + rng.next() as usize % (rows.len() - at);
        rows.swap(at, other);
    }
    rows.truncate(count);
    (rows, "real")
}

fn real(folder: &Path) -> Vec<Vec<f32>> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with("_384.f32.npy"));
    files.sort();
    let mut rows: Vec<Vec<f32>> = Vec::new();
    for file in files {
        let bytes = std::fs::read(file).unwrap();
        let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let (values, _) = bytes[header..].as_chunks::<4>();
        let values: Vec<f32> = values.iter().map(|value| f32::from_le_bytes(*value)).collect();
        rows.extend(values.chunks_exact(384).map(<[f32]>::to_vec));
    }
    let mut seen = HashSet::new();
    rows.retain(|row| seen.insert(row.iter().map(|value| value.to_bits()).collect::<Vec<_>>()));
    rows
}

/// Rows of a cluster, on average.
const CROWD: usize = 50;

/// Vectors around centres, one after the other without end. Centres come with the rows, so that a set of any size looks
/// the same from near.
pub struct Clusters {
    dim: usize,
    centers: Vec<Vec<f32>>,
    /// Centre of each row.
    rows: Vec<u32>,
    rng: Rng,
}

impl Clusters {
    pub fn new(dim: usize, seed: u64) -> Self {
        Clusters { dim, centers: Vec::new(), rows: Vec::new(), rng: Rng(seed) }
    }

    pub fn next(&mut self) -> Vec<f32> {
        if self.rows.len().is_multiple_of(CROWD) {
            let origin = vec![0.0; self.dim];
            self.centers.push(near(&origin, 1.0, &mut self.rng));
        }
        let at = self.rng.next() as usize % self.centers.len();
        self.rows.push(at as u32);
        near(&self.centers[at], 0.8, &mut self.rng)
    }

    /// A vector where a row could be.
    pub fn question(&mut self) -> Vec<f32> {
        let at = self.rows[self.rng.next() as usize % self.rows.len()];
        near(&self.centers[at as usize], 0.8, &mut self.rng)
    }
}

/// Reads every byte of some tables.
pub fn read_tables(path: &Path, tables: &[&str]) -> u64 {
    let db = redb::Database::builder().set_cache_size(64 << 20).open(path).unwrap();
    let rows = db.begin_read().unwrap();
    let mut sum = 0_u64;
    for name in tables {
        let table = rows.open_table(TableDefinition::<&[u8], &[u8]>::new(name)).unwrap();
        for row in table.iter().unwrap() {
            let (_, value) = row.unwrap();
            sum = sum.wrapping_add(value.value().iter().map(|byte| u64::from(*byte)).sum::<u64>());
        }
    }
    std::hint::black_box(sum)
}
