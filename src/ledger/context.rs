//! The inclusion log: contexts come, with the statistics of their memories, go when they are old, and go along when
//! memories move to another namespace.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::ledger::applied::Applied;
use crate::ledger::fold::Folded;
use crate::ledger::writer::{Context, Ledger, Why, truth};
use crate::model::{Delta, Included, MemoryId, Op};
use crate::store::keys;
use crate::store::{ContextPlace, ContextRow, ContextRows, NsId, Read, Table, Walk};

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
    pub(super) fn drop_contexts(
        &mut self,
        context: &Context,
        places: &[ContextPlace],
        why: Why,
    ) -> Result<Applied> {
        let ns = context.ns;
        let mut damaged = BTreeMap::new();
        for (at, name) in places {
            match sound(self.tx.context(ns, name))?.flatten() {
                Some(row) => truth(self.tx).delete_context(ns, name, &row)?,
                None => drop(damaged.insert((*at, name.clone()), Vec::new())),
            }
        }
        if !damaged.is_empty() {
            self.drop_damaged_contexts(ns, damaged)?;
        }
        let contexts = Delta {
            field: "contexts".to_owned(),
            before: places.len().into(),
            after: serde_json::Value::Null,
        };
        self.journal(context, Op::Fold, None, vec![contexts], why)?;
        Ok(Applied::default())
    }

    /// Takes contexts out of the log that can't be read. Only the keys of the namespace tell which memories they had.
    fn drop_damaged_contexts(
        &mut self,
        ns: NsId,
        mut damaged: BTreeMap<ContextPlace, Vec<Included>>,
    ) -> Result<()> {
        self.tx.walk(Table::ContextOf, &Walk::prefix(&keys::ns(ns)), &mut |key, _| {
            let row = keys::ContextOf::read(Table::ContextOf, key)?;
            if let Some(items) = damaged.get_mut(&(row.at, row.context.0.to_owned())) {
                items.push(Included { id: Some(row.id), tokens: 0, bucket: None, counted: false });
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for ((at, name), items) in damaged {
            let row = ContextRow { at_ms: at.as_millis(), items, ..ContextRow::default() };
            truth(self.tx).delete_context(ns, &name, &row)?;
        }
        Ok(())
    }

    /// Brings what the log tells of a memory to another namespace. A context that can't be read stays behind.
    pub(super) fn bring_contexts(&mut self, from: NsId, to: NsId, id: MemoryId) -> Result<()> {
        for (_, name) in self.tx.contexts_of(from, id, None, usize::MAX)? {
            let Some(row) = sound(self.tx.context(from, &name))?.flatten() else { continue };
            let Some(there) = sound(self.tx.context(to, &name))? else { continue };
            let of_it = row.items.iter().filter(|item| item.id == Some(id)).copied();
            // A part of a context is no longer what the call said that wrote it.
            let next = match there {
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
            let Some(mut row) = sound(self.tx.context(ns, &name))?.flatten() else { continue };
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
            let Some(row) = sound(self.tx.context(from, &name))?.flatten() else { continue };
            let Some(there) = sound(self.tx.context(to, &name))? else { continue };
            if let Some(there) = there {
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
