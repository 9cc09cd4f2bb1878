//! Oubliette's graph alone: codes and links in memory, no file, no transactions, no ids.

use std::sync::Arc;

use oubliette::faults::hnsw::{Crew, Graph, Points, Probe, Scratch, level_of};
use oubliette::faults::vector::{TopK, UnitVector, dot_f32, dot_i8, encode};

use super::Peer;
use crate::dataset::{DIM, Dataset, K};

/// Nodes that are inserted in one step.
const BATCH: usize = 256;
/// Candidates that are ranked by their f32 rows.
const RANKED: usize = 4 * K;

#[derive(Default)]
struct Codes {
    codes: Vec<i8>,
    scales: Vec<f32>,
}

impl Points for Codes {
    fn code(&self, slot: u32) -> &[i8] {
        &self.codes[slot as usize * DIM..][..DIM]
    }

    fn scale(&self, slot: u32) -> f32 {
        self.scales[slot as usize]
    }
}

/// Writes the code of a vector and gives the value of one step of it that makes the code a unit vector, so that what
/// the walk compares are cosines. With the scale of the code itself its length is off by what was rounded away, and
/// among near-equal rows the longest code draws the edges: recall then stays below 0.995 at any `ef`.
fn coded(vector: &[f32], code: &mut [i8]) -> f32 {
    encode(&UnitVector::new("vector", vector).unwrap(), code);
    1.0 / (dot_i8(code, code) as f32).sqrt()
}

pub struct OwnGraph {
    graph: Graph,
    codes: Codes,
    crew: Crew,
    scratch: Scratch,
    rows: Arc<[f32]>,
    found: Vec<u32>,
}

impl OwnGraph {
    /// An empty graph that is built by so many threads.
    pub fn new(data: &Dataset, threads: usize) -> Self {
        OwnGraph {
            graph: Graph::new(),
            codes: Codes::default(),
            crew: Crew::new(threads),
            scratch: Scratch::default(),
            rows: data.rows.clone(),
            found: Vec::new(),
        }
    }
}

/// A slot and its level, from the number of the row in the place of an id.
fn node(row: usize) -> (u32, u8) {
    (row as u32, level_of(&(row as u128).to_be_bytes()))
}

impl Peer for OwnGraph {
    fn name(&self) -> String {
        "Oubliette, the graph alone".into()
    }

    fn insert(&mut self, data: &Dataset, from: usize, to: usize) {
        // Room for all at once, so that no more than that is counted.
        self.codes.codes.reserve_exact(data.rows.len() - self.codes.codes.len());
        self.codes.codes.resize(to * DIM, 0);
        for at in from..to {
            let scale = coded(data.row(at), &mut self.codes.codes[at * DIM..][..DIM]);
            self.codes.scales.push(scale);
        }
        let nodes: Vec<(u32, u8)> = (from..to).map(node).collect();
        for batch in nodes.chunks(BATCH) {
            self.graph.insert_batch(&self.codes, batch, |_| true, &mut self.crew);
        }
    }

    fn search(&mut self, query: &[f32], ef: usize) {
        let mut code = [0; DIM];
        let probe = Probe { scale: coded(query, &mut code), code: &code };
        self.graph.search(&self.codes, probe, ef, &mut self.scratch, |_| true.into());
        let mut top = TopK::new(K);
        for near in self.scratch.found().iter().take(RANKED) {
            let from = near.slot() as usize * DIM;
            top.push(dot_f32(query, &self.rows[from..from + DIM]), near.slot());
        }
        self.found = top.into_sorted().iter().map(|scored| scored.id).collect();
    }

    fn found(&self) -> Vec<u32> {
        self.found.clone()
    }
}
