//! The floors: bare redb programs and plain loops.

#![allow(unsafe_code)]

use std::path::Path;
use std::time::{Duration, Instant};

use oubliette::Database;
use redb::{ReadableDatabase, ReadableTable, TableDefinition, TableHandle};

use crate::sample::{DIM, Sample};

type Table = TableDefinition<'static, &'static [u8], &'static [u8]>;
const ROWS: Table = TableDefinition::new("rows");
const VECTORS: Table = TableDefinition::new("vectors");
const INDEXES: [Table; 8] = [
    TableDefinition::new("i0"),
    TableDefinition::new("i1"),
    TableDefinition::new("i2"),
    TableDefinition::new("i3"),
    TableDefinition::new("i4"),
    TableDefinition::new("i5"),
    TableDefinition::new("i6"),
    TableDefinition::new("i7"),
];

fn put(txn: &redb::WriteTransaction, sample: &Sample, rows: std::ops::Range<usize>) {
    let mut table = txn.open_table(ROWS).unwrap();
    let mut vectors = txn.open_table(VECTORS).unwrap();
    let mut indexes: Vec<_> = INDEXES.iter().map(|index| txn.open_table(*index).unwrap()).collect();
    for at in rows {
        // Ids in the order of time, as version 7 gives them.
        let id = ((at as u128) << 64).to_be_bytes();
        // The text and 240 bytes of fields: what the hot and the cold part of a memory take beside it.
        let mut row = sample.texts[at].clone().into_bytes();
        row.resize(row.len() + 240, 7);
        table.insert(&id[..], &row[..]).unwrap();
        let vector: Vec<u8> = sample.vectors[at].iter().flat_map(|v| v.to_le_bytes()).collect();
        vectors.insert(&id[..], &vector[..]).unwrap();
        for (number, index) in indexes.iter_mut().enumerate() {
            // Half of the indexes are in the order of time, half are not.
            let spread = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15 | number as u64);
            let first = if number % 2 == 0 { at as u64 } else { spread };
            let mut key = first.to_be_bytes().to_vec();
            key.extend_from_slice(&id);
            index.insert(&key[..], &[][..]).unwrap();
        }
    }
}

/// A bare redb program that puts the same row and vector bytes and eight index rows, one sync a batch.
pub fn import(path: &Path, sample: &Sample, batch: usize) -> Duration {
    let db = redb::Database::builder().set_cache_size(64 << 20).create(path).unwrap();
    let start = Instant::now();
    let mut at = 0;
    while at < sample.texts.len() {
        let end = (at + batch).min(sample.texts.len());
        let txn = db.begin_write().unwrap();
        put(&txn, sample, at..end);
        txn.commit().unwrap();
        at = end;
    }
    start.elapsed()
}

/// Bare durable commits of one row.
pub struct Commits(redb::Database);

impl Commits {
    pub fn new(path: &Path, sample: &Sample, rows: usize) -> Self {
        let db = redb::Database::builder().set_cache_size(64 << 20).create(path).unwrap();
        let txn = db.begin_write().unwrap();
        put(&txn, sample, 0..rows);
        txn.commit().unwrap();
        Commits(db)
    }

    pub fn commit(&self, sample: &Sample, at: usize) {
        let mut txn = self.0.begin_write().unwrap();
        txn.set_two_phase_commit(true);
        txn.set_quick_repair(true);
        put(&txn, sample, at..at + 1);
        txn.commit().unwrap();
    }
}

/// Sums bytes with the widest instructions that the machine has.
pub fn sum_bytes(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") {
            // SAFETY: the features were detected.
            return unsafe { wide_512(bytes) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the feature was detected.
            return unsafe { wide_256(bytes) };
        }
    }
    plain_sum(bytes)
}

fn plain_sum(bytes: &[u8]) -> u64 {
    bytes.chunks(64).map(|chunk| chunk.iter().map(|&b| u32::from(b)).sum::<u32>()).map(u64::from).sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn wide_512(bytes: &[u8]) -> u64 {
    use std::arch::x86_64::{
        _mm512_add_epi64, _mm512_loadu_si512, _mm512_reduce_add_epi64, _mm512_sad_epu8, _mm512_setzero_si512,
    };
    let zero = _mm512_setzero_si512();
    let mut sums = [zero; 4];
    let chunks = bytes.chunks_exact(256);
    let rest = plain_sum(chunks.remainder());
    for chunk in chunks {
        for (lane, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the chunk has 256 bytes.
            let part = unsafe { _mm512_loadu_si512(chunk.as_ptr().add(lane * 64).cast()) };
            *sum = _mm512_add_epi64(*sum, _mm512_sad_epu8(part, zero));
        }
    }
    let total = _mm512_add_epi64(_mm512_add_epi64(sums[0], sums[1]), _mm512_add_epi64(sums[2], sums[3]));
    _mm512_reduce_add_epi64(total) as u64 + rest
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn wide_256(bytes: &[u8]) -> u64 {
    plain_sum(bytes)
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 16];
    for (a, b) in a.chunks_exact(16).zip(b.chunks_exact(16)) {
        for lane in 0..16 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    lanes.iter().sum()
}

/// A plain f32 scan with the widest instructions that the compiler finds; gives the best score.
pub fn f32_scan(flat: &[f32], query: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the feature was detected.
        return unsafe { scan_512(flat, query) };
    }
    scan(flat, query)
}

#[inline(always)]
fn scan(flat: &[f32], query: &[f32]) -> f32 {
    flat.chunks_exact(DIM).map(|row| dot(row, query)).fold(f32::MIN, f32::max)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn scan_512(flat: &[f32], query: &[f32]) -> f32 {
    scan(flat, query)
}

/// The k best scores of a plain scan, best first.
pub fn f32_top(vectors: &[Vec<f32>], query: &[f32], k: usize) -> Vec<f32> {
    let mut scores: Vec<f32> = vectors.iter().map(|row| dot(row, query)).collect();
    scores.sort_unstable_by(|a, b| b.total_cmp(a));
    scores.truncate(k);
    scores
}

/// Reads every block of codes of a file from redb and sums its bytes: what a scan must do at the least.
pub fn block_scan(path: &Path) -> Duration {
    let db = redb::Database::builder().set_cache_size(64 << 20).open(path).unwrap();
    let table: Table = TableDefinition::new("slot");
    let mut times: Vec<Duration> = (0..9)
        .map(|_| {
            let txn = db.begin_read().unwrap();
            let rows = txn.open_table(table).unwrap();
            let start = Instant::now();
            let mut sum = 0;
            for row in rows.iter().unwrap() {
                sum += sum_bytes(row.unwrap().1.value());
            }
            std::hint::black_box(sum);
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// Prints what each table takes.
pub fn by_table(path: &Path, db: &Database) {
    db.clone().close().unwrap();
    let bare = redb::Database::open(path).unwrap();
    let txn = bare.begin_read().unwrap();
    let mut all: Vec<(String, u64, u64, u64)> = txn
        .list_tables()
        .unwrap()
        .map(|table| {
            let name = table.name().to_owned();
            let rows = txn.open_untyped_table(table).unwrap();
            let stats = redb::ReadableTableMetadata::stats(&rows).unwrap();
            let len = redb::ReadableTableMetadata::len(&rows).unwrap();
            (name, len, stats.stored_bytes(), stats.metadata_bytes() + stats.fragmented_bytes())
        })
        .collect();
    all.sort_by_key(|row| std::cmp::Reverse(row.2 + row.3));
    let shown = all.iter().filter(|row| row.1 > 0).map(|(name, len, stored, rest)| {
        format!("{name} {len} rows {:.2}+{:.2} MiB", *stored as f64 / 1_048_576.0, *rest as f64 / 1_048_576.0)
    });
    println!("| by table, stored + pages: {} | | | | |", shown.collect::<Vec<_>>().join("; "));
}
