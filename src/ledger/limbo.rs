//! Limbo: what maintenance removed waits here until its undo horizon (MODEL-29).

use crate::error::Result;
use crate::ledger::{Applied, Context, Ledger, Why};
use crate::model::{MemoryId, TombstoneReason};

impl Ledger<'_, '_> {
    pub(super) fn retire(
        &mut self,
        _context: &Context,
        _id: MemoryId,
        (_reason, _replaced_by): (TombstoneReason, Option<MemoryId>),
        _why: Why,
    ) -> Result<Applied> {
        unimplemented!()
    }

    pub(super) fn return_from_limbo(
        &mut self,
        _context: &Context,
        _id: MemoryId,
        _why: Why,
    ) -> Result<Applied> {
        unimplemented!()
    }

    pub(super) fn purge(&mut self, _context: &Context, _id: MemoryId, _why: Why) -> Result<Applied> {
        unimplemented!()
    }
}
