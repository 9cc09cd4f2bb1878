//! Goals, and their vectors.

use crate::error::Result;
use crate::hygiene::check::state::Check;
use crate::hygiene::report::Code;
use crate::store::{GoalRow, SpaceId, Table, meta_of};
use crate::vector::UnitVector;

impl Check<'_> {
    pub(super) fn goal(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let row: GoalRow = meta_of(Table::Goal, key, value)?;
        row.check(key)?;
        self.stored_vector(Table::Goal, key, SpaceId(row.space), row.vector);
        Ok(())
    }

    /// The vector of a row that is no memory; it may have none.
    pub(super) fn stored_vector(&mut self, table: Table, key: &[u8], space: SpaceId, vector: Vec<f32>) {
        if vector.is_empty() {
            return;
        }
        match self.spaces.get(&space) {
            None => self.find(Code::SpaceUnknown, table, key, format!("no embedding space {}", space.0)),
            Some(dim) if *dim != vector.len() => {
                let what = format!("a vector of {} dimensions in a space of {dim}", vector.len());
                self.find(Code::ValueShape, table, key, what);
            }
            Some(_) if UnitVector::from_stored(vector).is_none() => {
                self.find(Code::ValueShape, table, key, "the vector has not the length 1");
            }
            Some(_) => {}
        }
    }
}
