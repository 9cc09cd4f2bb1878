//! What the rows share: a database in a folder that goes away, data, and how costs are taken.

use std::sync::atomic::Ordering;
use std::time::Duration;

use oubliette::clock::ManualClock;
use oubliette::{Builder, Database, Draft, Durability, Namespace, Outcome, WriteOptions};
use tempfile::TempDir;

use crate::counting::{ALLOCATED, PEAK};

/// A database without syncs, so that what is measured is work.
pub struct Ground {
    pub db: Database,
    pub ns: Namespace,
    pub clock: ManualClock,
    pub folder: TempDir,
}

impl Ground {
    pub fn new() -> Self {
        Ground::with(|builder| builder)
    }

    pub fn with(options: impl Fn(Builder) -> Builder) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at("2026-01-02T10:00:00Z".parse().unwrap());
        let builder =
            Database::builder().durability(Durability::Batch).cache_bytes(256 << 20).clock(clock.clone());
        let db = options(builder).open(folder.path().join("m.oub")).unwrap();
        Ground { ns: db.namespace("default").unwrap(), db, clock, folder }
    }

    pub fn add(&self, draft: Draft) -> Outcome {
        self.ns.add(draft).unwrap()
    }

    /// Adds `n` drafts in batches, with dedup or without.
    pub fn fill(&self, n: usize, no_dedup: bool, draft: impl Fn(usize) -> Draft) -> Vec<Outcome> {
        let how = WriteOptions { no_dedup, ..WriteOptions::default() };
        let mut all = Vec::with_capacity(n);
        for from in (0..n).step_by(1_000) {
            let drafts = (from..n.min(from + 1_000)).map(&draft).collect();
            all.extend(self.ns.add_all(drafts, &how).unwrap());
        }
        all
    }
}

/// Milliseconds of processor time that this thread takes for `work`: a long run that other programs interrupt is not longer than
/// a short one that they do not.
pub fn ms(work: impl FnOnce()) -> f64 {
    let begun = clock();
    work();
    (clock() - begun).as_secs_f64() * 1e3
}

#[cfg(unix)]
fn clock() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

/// Elsewhere there is only the time that passes.
#[cfg(not(unix))]
fn clock() -> Duration {
    static BEGUN: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    BEGUN.elapsed()
}

/// The median of so many runs, in milliseconds.
pub fn median_ms(times: usize, mut work: impl FnMut(usize)) -> f64 {
    let mut all: Vec<f64> = (0..times).map(|at| ms(|| work(at))).collect();
    all.sort_unstable_by(f64::total_cmp);
    all[times / 2]
}

/// A vector of no particular direction.
pub fn vector(seed: usize, dim: usize) -> Vec<f32> {
    let mut state = (seed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    };
    (0..dim).map(|_| next()).collect()
}

/// MiB by which what is allocated rises above what it is now while `work` runs.
pub fn peak_mib(work: impl FnOnce()) -> f64 {
    let before = ALLOCATED.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    work();
    (PEAK.load(Ordering::Relaxed) - before) as f64 / (1 << 20) as f64
}
