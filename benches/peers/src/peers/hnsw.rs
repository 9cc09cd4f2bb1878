//! hnsw_rs 0.3.5, with the distance of its feature `simdeez_f` (AVX2 on x86-64, chosen at run time), and with ours, so
//! that what is compared is the graph and not the kernel.

use anndists::dist::{DistDot, Distance};
use hnsw_rs::hnsw::{Hnsw, Neighbour};
use oubliette::faults::vector::dot_f32;

use super::{EF_CONSTRUCTION, M, Peer};
use crate::dataset::{Dataset, K};

/// Layers at most; the library's own bound.
const LAYERS: usize = 16;

/// One minus the dot product, by this crate's kernel.
#[derive(Clone, Copy, Default)]
pub struct OwnDot;

impl Distance<f32> for OwnDot {
    fn eval(&self, a: &[f32], b: &[f32]) -> f32 {
        // Rounding may bring a cosine above 1, and the library wants no negative distance.
        (1.0 - dot_f32(a, b)).max(0.0)
    }
}

pub struct HnswRs<D: Distance<f32> + Send + Sync> {
    name: &'static str,
    graph: Hnsw<'static, f32, D>,
    found: Vec<Neighbour>,
}

impl HnswRs<DistDot> {
    pub fn simdeez(rows: usize) -> Self {
        HnswRs::new("hnsw_rs (simdeez)", DistDot, rows)
    }
}

impl HnswRs<OwnDot> {
    pub fn own(rows: usize) -> Self {
        HnswRs::new("hnsw_rs (our kernel)", OwnDot, rows)
    }
}

impl<D: Distance<f32> + Send + Sync> HnswRs<D> {
    fn new(name: &'static str, distance: D, rows: usize) -> Self {
        HnswRs { name, graph: Hnsw::new(M, rows, LAYERS, EF_CONSTRUCTION, distance), found: Vec::new() }
    }
}

impl<D: Distance<f32> + Send + Sync> Peer for HnswRs<D> {
    fn name(&self) -> String {
        self.name.into()
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
