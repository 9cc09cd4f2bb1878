//! usearch 2.26.6 with f32, f16 and i8 scalars, and with i8 codes that the caller makes and ranks again.
//!
//! All its metrics order unit vectors alike, but quantised ones have different lengths, and with the inner product those
//! that are a little longer draw edges and answers to them. So each kind of scalar has the metric with which it was
//! found to search fastest at equal recall; i8 has two, since the inner product builds faster.

use std::sync::Arc;

use usearch::ffi::Matches;
use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

use super::{EF_CONSTRUCTION, M, Peer};
use crate::dataset::{DIM, Dataset, K};
use oubliette::faults::vector::{TopK, dot_f32};

/// An index that stores vectors as `kind` and is given and asked f32 vectors.
pub struct Usearch {
    name: &'static str,
    index: Index,
    found: Matches,
}

fn index(kind: ScalarKind, metric: MetricKind, rows: usize) -> Index {
    let options = IndexOptions {
        dimensions: DIM,
        metric,
        quantization: kind,
        connectivity: M,
        expansion_add: EF_CONSTRUCTION,
        expansion_search: EF_CONSTRUCTION,
        multi: false,
    };
    let index = Index::new(&options).unwrap();
    index.reserve_capacity_and_threads(rows, 1).unwrap();
    index
}

fn no_matches() -> Matches {
    Matches { keys: Vec::new(), distances: Vec::new() }
}

/// What its arenas hold, without the room for more at their ends.
fn taken_bytes(index: &Index) -> usize {
    let stats = index.memory_stats();
    stats.graph_allocated + stats.vectors_allocated - stats.graph_reserved - stats.vectors_reserved
}

impl Usearch {
    /// The instruction sets that its kernels use here.
    pub fn instructions() -> String {
        Usearch::all(1)
            .map(|kind| format!("{}: {}", kind.name, kind.index.hardware_acceleration()))
            .join(", ")
    }

    pub fn all(rows: usize) -> [Self; 4] {
        let kinds = [
            ("usearch f32", ScalarKind::F32, MetricKind::IP),
            ("usearch f16", ScalarKind::F16, MetricKind::L2sq),
            ("usearch i8", ScalarKind::I8, MetricKind::Cos),
            ("usearch i8, inner product", ScalarKind::I8, MetricKind::IP),
        ];
        kinds.map(|(name, kind, metric)| Usearch {
            name,
            index: index(kind, metric, rows),
            found: no_matches(),
        })
    }
}

impl Peer for Usearch {
    fn name(&self) -> String {
        self.name.into()
    }

    fn insert(&mut self, data: &Dataset, from: usize, to: usize) {
        (from..to).for_each(|at| self.index.add(at as u64, data.row(at)).unwrap());
    }

    fn search(&mut self, query: &[f32], ef: usize) {
        self.index.change_expansion_search(ef);
        self.found = self.index.search(query, K).unwrap();
    }

    fn found(&self) -> Vec<u32> {
        self.found.keys.iter().map(|&key| key as u32).collect()
    }

    fn own_account_bytes(&self) -> Option<usize> {
        Some(taken_bytes(&self.index))
    }
}

/// What a careful caller makes of i8: codes that use the whole range (the library's own cast of a unit vector of 384
/// dimensions uses a tenth of it), and all candidates ranked by the f32 rows that the caller keeps.
pub struct Codes {
    index: Index,
    scale: f32,
    rows: Arc<[f32]>,
    found: Vec<u32>,
}

impl Codes {
    pub fn new(data: &Dataset) -> Self {
        let largest = data.rows.iter().fold(0.0_f32, |most, v| most.max(v.abs()));
        Codes {
            index: index(ScalarKind::I8, MetricKind::L2sq, data.len()),
            scale: 127.0 / largest,
            rows: data.rows.clone(),
            found: Vec::new(),
        }
    }

    fn code(&self, vector: &[f32]) -> Vec<i8> {
        vector.iter().map(|v| (v * self.scale).round() as i8).collect()
    }
}

impl Peer for Codes {
    fn name(&self) -> String {
        "usearch i8, own codes, f32 ranking".into()
    }

    fn insert(&mut self, data: &Dataset, from: usize, to: usize) {
        for at in from..to {
            self.index.add(at as u64, &self.code(data.row(at))).unwrap();
        }
    }

    fn search(&mut self, query: &[f32], ef: usize) {
        self.index.change_expansion_search(ef);
        let near = self.index.search(&self.code(query), ef).unwrap();
        let mut top = TopK::new(K);
        for key in near.keys {
            let from = key as usize * DIM;
            top.push(dot_f32(query, &self.rows[from..from + DIM]), key as u32);
        }
        self.found = top.into_sorted().iter().map(|scored| scored.id).collect();
    }

    fn found(&self) -> Vec<u32> {
        self.found.clone()
    }

    fn own_account_bytes(&self) -> Option<usize> {
        Some(taken_bytes(&self.index))
    }
}
