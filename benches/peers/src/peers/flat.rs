//! A loop over all f32 rows with this crate's own kernel: what any index must beat.

use std::sync::Arc;

use super::Peer;
use crate::dataset::{Dataset, nearest};

pub struct Flat {
    rows: Arc<[f32]>,
    found: Vec<(u32, f32)>,
}

impl Flat {
    pub fn new(data: &Dataset) -> Self {
        Flat { rows: data.rows.clone(), found: Vec::new() }
    }
}

impl Peer for Flat {
    fn name(&self) -> String {
        "flat f32 scan".into()
    }

    fn is_approximate(&self) -> bool {
        false
    }

    /// There is no index to bring them into.
    fn insert(&mut self, _data: &Dataset, _from: usize, _to: usize) {}

    fn search(&mut self, query: &[f32], _ef: usize) {
        self.found = nearest(&self.rows, query);
    }

    fn found(&self) -> Vec<u32> {
        self.found.iter().map(|(row, _)| *row).collect()
    }
}
