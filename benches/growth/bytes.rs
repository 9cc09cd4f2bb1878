//! Memory and bytes in the file.

use std::sync::Barrier;

use oubliette::policy::Syntax;
use oubliette::{Database, Draft, Durability, NamespaceName, Query};

use crate::ground::{Ground, peak_mib, vector};
use crate::{Bound, Row};

pub const ROWS: &[Row] = &[
    Row {
        name: "peak memory of `compact`, a file of n texts of 200 kB",
        unit: "MiB",
        sizes: (250, 1_000),
        bound: Bound::Most(64.0),
        measure: compaction,
    },
    Row {
        name: "n cold readers at once, peak memory",
        unit: "MiB",
        sizes: (1, 16),
        bound: Bound::Growth(1.5),
        measure: cold_readers,
    },
    Row {
        name: "a vector of n dimensions in the file, by its raw bytes",
        unit: "x",
        sizes: (1_024, 2_048),
        bound: Bound::Most(1.15),
        measure: vector_bytes,
    },
];

fn compaction(n: usize) -> f64 {
    let small = |builder: oubliette::Builder| builder.cache_bytes(8 << 20).memory_budget_bytes(16 << 20);
    let Ground { db, ns, folder, .. } = {
        let ground = Ground::with(small);
        for from in (0..n).step_by(50) {
            let drafts =
                (from..from + 50).map(|at| Draft::new(format!("{at}-{}", "abcdefghi ".repeat(20_000))));
            ground.ns.add_all(drafts.collect(), &Default::default()).unwrap();
        }
        ground
    };
    drop(ns);
    db.close().unwrap();
    let db = small(Database::builder()).open(folder.path().join("m.oub")).unwrap();
    peak_mib(|| {
        db.compact().unwrap();
    })
}

fn cold_readers(threads: usize) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.oub");
    let ns = NamespaceName::default();
    let open =
        || Database::builder().cache_bytes(16 << 20).durability(Durability::Batch).open(&path).unwrap();
    let db = open();
    db.set_policy("index.scan_max = 1000000000000", Syntax::Toml).unwrap();
    for from in (0..16_000).step_by(2_000) {
        let drafts =
            (from..from + 2_000).map(|at| Draft::new(format!("t{at}")).vector(vector(at, 512))).collect();
        let how = oubliette::WriteOptions { no_dedup: true, ..Default::default() };
        db.namespace(&ns).unwrap().add_all(drafts, &how).unwrap();
    }
    db.close().unwrap();
    let db = open();
    let barrier = Barrier::new(threads);
    peak_mib(|| {
        std::thread::scope(|scope| {
            for seed in 0..threads {
                let (db, ns, barrier) = (&db, &ns, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    db.namespace(ns).unwrap().search(Query::vector(vector(seed, 512)).k(1)).unwrap();
                });
            }
        });
    })
}

/// Bytes by which a row with a vector is longer in a compacted file than one without, by four bytes of f32 and one of int8 a
/// dimension.
fn vector_bytes(dim: usize) -> f64 {
    // Whole blocks of 7.
    const ROWS: usize = 1_400;
    let bytes = |dim: Option<usize>| {
        let ground = Ground::new();
        ground.fill(ROWS, true, |at| {
            let draft = Draft::new(format!("t{at}"));
            match dim {
                Some(dim) => draft.vector(vector(at, dim)),
                None => draft,
            }
        });
        ground.db.compact().unwrap().bytes_after as f64
    };
    (bytes(Some(dim)) - bytes(None)) / (ROWS * dim * 5) as f64
}
