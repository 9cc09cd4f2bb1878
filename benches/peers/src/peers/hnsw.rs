//! hnsw_rs 0.3.5, with the distance of its feature `simdeez_f` (AVX2 on x86-64, chosen at run time).
//!
//! This crate's AVX-512 kernel in its place was tried on the real rows and changed neither its build nor its search by
//! more than 6 %: it waits for memory.

use hnsw_rs::anndists::dist::DistDot;
use hnsw_rs::hnsw::{Hnsw, Neighbour};

use super::{EF_CONSTRUCTION, M, Peer};
use crate::dataset::{Dataset, K};

/// Layers at most; the library's own bound.
const LAYERS: usize = 16;

pub struct HnswRs {
    graph: Hnsw<'static, f32, DistDot>,
    found: Vec<Neighbour>,
}

impl HnswRs {
    pub fn new(rows: usize) -> Self {
        HnswRs { graph: Hnsw::new(M, rows, LAYERS, EF_CONSTRUCTION, DistDot), found: Vec::new() }
    }
}

impl Peer for HnswRs {
    fn name(&self) -> String {
        "hnsw_rs".into()
    }

    fn insert(&mut self, data: &Dataset, from: usize, to: usize) {
        self.graph.set_searching_mode(false);
        (from..to).for_each(|at| self.graph.insert((data.row(at), at)));
        self.graph.set_searching_mode(true);
    }

    fn search(&mut self, query: &[f32], ef: usize) {
        self.found = self.graph.search(query, K, ef);
    }

    fn found(&self) -> Vec<u32> {
        self.found.iter().map(|neighbour| neighbour.d_id as u32).collect()
    }
}
