//! Instants that come without a write: counters and indexes catch up.

use crate::error::{Result, sound};
use crate::ledger::writer::{Context, Ledger};
use crate::model::{MemoryId, Time};
use crate::store::{NsId, Rows, Table};

impl Ledger<'_, '_> {
    /// Applies the due instants of a namespace, at most `most`, and returns how many it looked at. Those of memories for which `leaves`
    /// says so are left as they are.
    pub(crate) fn settle(
        &mut self,
        context: &Context,
        most: usize,
        mut leaves: impl FnMut(&Self, MemoryId) -> Result<bool>,
    ) -> Result<usize> {
        let due = self.tx.due(context.ns, context.now, most)?;
        for (at, id) in &due {
            if !leaves(self, *id)? {
                self.settle_one(context, *at, *id)?;
            }
        }
        Ok(due.len())
    }

    /// Applies a due instant of a memory.
    fn settle_one(&mut self, context: &Context, at: Time, id: MemoryId) -> Result<()> {
        match sound(self.load(context.ns, id))? {
            Some((before, content)) => {
                self.store_row(context, id, Some((&before, &content)), before.clone(), &content)?;
            }
            // A damaged row must leave the list of due instants too, or every call would begin with it.
            None => self.settle_damaged(context, id)?,
        }
        debug_assert!(!self.tx.due(context.ns, at, 1)?.contains(&(at, id)), "an instant that does not pass");
        Ok(())
    }

    /// Strikes a memory off the list of those whose life is over, on which it does not belong: the list, or the memory,
    /// is damaged. The list would begin with it for ever.
    pub(crate) fn strike_ended(&mut self, ns: NsId, id: MemoryId) -> Result<()> {
        self.delete_found(ns, id, &[Table::Ended])
    }
}
