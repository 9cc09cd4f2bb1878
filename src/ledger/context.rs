//! The inclusion log: contexts come, with the statistics of their memories, go when they are old, and go along when
//! memories move to another namespace.

use crate::error::{Result, sound};
use crate::ledger::applied::Applied;
use crate::ledger::fold::Folded;
use crate::ledger::writer::{Context, Ledger, Why, truth};
use crate::model::{Delta, MemoryId, Op};
use crate::store::keys;
use crate::store::{ContextRow, ContextRows, NsId, Walk};

impl Ledger<'_, '_> {
    /// Writes a context that the log does not have, and the statistics of its memories.
    pub(super) fn log_context(
        &mut self,
        context: &Context,
        name: &str,
        row: &ContextRow,
        rows: Vec<Folded>,
        why: Why,
    ) -> Result<Applied> {
        debug_assert!(self.tx.context(context.ns, name)?.is_none(), "a context is written once");
        truth(self.tx).put_context(context.ns, name, row)?;
        self.fold(context, rows, why)
    }

    /// Takes contexts out of the log. What they counted stays counted.
    pub(super) fn drop_contexts(&mut self, context: &Context, names: &[String], why: Why) -> Result<Applied> {
        for name in names {
            self.drop_context(context, name)?;
        }
        let contexts = Delta {
            field: "contexts".to_owned(),
            before: names.len().into(),
            after: serde_json::Value::Null,
        };
        self.journal(context, Op::Fold, None, vec![contexts], why)?;
        Ok(Applied::default())
    }

    /// Takes a context out of the log. One that can't be read is found by nothing else than its name.
    fn drop_context(&mut self, context: &Context, name: &str) -> Result<()> {
        let row = sound(self.tx.context(context.ns, name))?.flatten().unwrap_or_default();
        truth(self.tx).delete_context(context.ns, name, &row)
    }

    /// Brings what the log tells of a memory to another namespace.
    pub(super) fn bring_contexts(&mut self, from: NsId, to: NsId, id: MemoryId) -> Result<()> {
        for (_, name) in self.tx.contexts_of(from, id, None, usize::MAX)? {
            let Some(row) = self.tx.context(from, &name)? else { continue };
            let of_it = row.items.iter().filter(|item| item.id == Some(id)).copied();
            // A part of a context is no longer what the call said that wrote it.
            let next = match self.tx.context(to, &name)? {
                None => ContextRow { items: of_it.collect(), digest: None, ..row },
                Some(there) => {
                    truth(self.tx).delete_context(to, &name, &there)?;
                    let others = there.items.iter().filter(|item| item.id != Some(id)).copied();
                    ContextRow { items: others.chain(of_it).collect(), digest: None, ..there }
                }
            };
            truth(self.tx).put_context(to, &name, &next)?;
        }
        Ok(())
    }

    /// Takes a memory out of the log of the namespace that it has left.
    pub(super) fn leave_contexts(&mut self, ns: NsId, id: MemoryId) -> Result<()> {
        for (_, name) in self.tx.contexts_of(ns, id, None, usize::MAX)? {
            let Some(mut row) = self.tx.context(ns, &name)? else { continue };
            truth(self.tx).delete_context(ns, &name, &row)?;
            row.items.retain(|item| item.id != Some(id));
            if !row.items.is_empty() {
                row.digest = None;
                truth(self.tx).put_context(ns, &name, &row)?;
            }
        }
        Ok(())
    }

    /// Brings the log of a namespace that goes as a whole: a context whose memories have come stands there as it was.
    pub(super) fn bring_log(&mut self, from: NsId, to: NsId) -> Result<()> {
        for (_, name) in self.tx.context_places(&Walk::prefix(&keys::ns(from)), usize::MAX)? {
            let Some(row) = self.tx.context(from, &name)? else { continue };
            if let Some(there) = self.tx.context(to, &name)? {
                if !there.items.iter().all(|item| row.items.contains(item)) {
                    continue;
                }
                truth(self.tx).delete_context(to, &name, &there)?;
            }
            truth(self.tx).put_context(to, &name, &row)?;
        }
        Ok(())
    }
}
