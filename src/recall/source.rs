//! Where a reader reads: what is published, or a transaction under way with its own writes.

use crate::error::Result;
use crate::index::Published;
use crate::store::{IndexId, Rows, Snapshot};

/// What a reader reads from: what is published, or, by the implementation of `engine`, a transaction under way. It has the rows and the vectors of one instant.
pub(crate) trait Source {
    /// What the rows are read from.
    type Rows: Rows;

    /// The rows.
    fn rows(&self) -> &Self::Rows;

    /// The unit vector in a slot; none if the slot holds none.
    fn vector(&self, index: IndexId, slot: u32) -> Result<Option<Vec<f32>>>;
}

impl Source for Published {
    type Rows = Snapshot;

    fn rows(&self) -> &Snapshot {
        self.snapshot()
    }

    fn vector(&self, index: IndexId, slot: u32) -> Result<Option<Vec<f32>>> {
        let mut values = Vec::new();
        let there = self.snapshot().vector(index, self.dim(index.space)?, slot, &mut values)?;
        Ok(there.then_some(values))
    }
}
