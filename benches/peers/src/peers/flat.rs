//! A loop over all f32 rows with this crate's own kernel: what any index must beat.

use super::Peer;
use crate::dataset::{Dataset, nearest};

#[derive(Default)]
pub struct Flat {
    rows: Vec<f32>,
    found: Vec<(u32, f32)>,
}

impl Peer for Flat {
    fn name(&self) -> String {
        "flat f32 scan".into()
    }

    fn is_approximate(&self) -> bool {
        false
    }

    fn insert(&mut self, data: &Dataset, from: usize, to: usize) {
        (from..to).for_each(|at| self.rows.extend(data.row(at)));
    }

    fn search(&mut self, query: &[f32], _ef: usize) {
        self.found = nearest(&self.rows, query);
    }

    fn found(&self) -> Vec<u32> {
        self.found.iter().map(|(row, _)| *row).collect()
    }
}
