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
        if row.vector.is_empty() {
            return Ok(());
        }
        match self.spaces.get(&SpaceId(row.space)) {
            None => {
                let what = format!("no embedding space {}", row.space);
                self.find(Code::SpaceUnknown, Table::Goal, key, what);
            }
            Some(dim) if *dim != row.vector.len() => {
                let what = format!("a vector of {} dimensions in a space of {dim}", row.vector.len());
                self.find(Code::ValueShape, Table::Goal, key, what);
            }
            Some(_) if UnitVector::from_stored(row.vector).is_none() => {
                self.find(Code::ValueShape, Table::Goal, key, "the vector has not the length 1");
            }
            Some(_) => {}
        }
        Ok(())
    }
}
