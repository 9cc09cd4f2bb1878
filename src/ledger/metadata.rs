//! Declared indexes of metadata, filled and ended in slices. A row says how far each index is until it is whole.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Error, Result, sound};
use crate::ledger::derived::{Declared, IndexRow, index_rows};
use crate::ledger::writer::{Context, Ledger};
use crate::limits::INDEXES_MAX;
use crate::model::RuleId;
use crate::store::control::UnfinishedRow;
use crate::store::{NsId, Rows};

impl Ledger<'_, '_> {
    /// The paths of metadata that have an index in a namespace, read once.
    pub(super) fn declared(&mut self, ns: NsId) -> Result<Arc<Declared>> {
        if let Some(known) = self.declared.get(&ns) {
            return Ok(Arc::clone(known));
        }
        let read: Arc<Declared> = self.tx.meta_keys(ns)?.into_iter().map(|(path, _)| path).collect();
        self.declared.insert(ns, Arc::clone(&read));
        Ok(read)
    }

    /// Declares an index. Writes keep it up to date from now on, and reads use it when it is whole. Returns false if
    /// it is whole already.
    pub(crate) fn declare(&mut self, context: &Context, path: &str) -> Result<bool> {
        let declared = self.tx.meta_keys(context.ns)?;
        match declared.iter().find(|(known, _)| **known == *path) {
            Some((_, true)) => return Ok(false),
            // An interrupted index is continued.
            Some(_) if self.unfinished(context, path)?.is_some_and(|row| !row.ends) => return Ok(true),
            None if declared.len() >= INDEXES_MAX => {
                let why = format!("a namespace has at most {INDEXES_MAX} indexes of metadata");
                return Err(Error::invalid("key", why, path));
            }
            _ => {}
        }
        self.begin_declared(context, path, false).map(|()| true)
    }

    /// Begins to end an index. Returns false if there is none.
    pub(crate) fn end_declared(&mut self, context: &Context, path: &str) -> Result<bool> {
        let is_there = self.declared(context.ns)?.iter().any(|known| **known == *path);
        if is_there {
            self.begin_declared(context, path, true)?;
        }
        Ok(is_there)
    }

    /// Begins to write every declared index again, whatever it holds now.
    pub(crate) fn void_declared(&mut self, context: &Context) -> Result<()> {
        for path in self.declared(context.ns)?.iter() {
            let ends = self.unfinished(context, path)?.is_some_and(|row| row.ends);
            self.begin_declared(context, path, ends)?;
        }
        Ok(())
    }

    fn begin_declared(&mut self, context: &Context, path: &str, ends: bool) -> Result<()> {
        self.declared.remove(&context.ns);
        let row = UnfinishedRow { ends, ..UnfinishedRow::default() };
        self.tx.put_meta_key(context.ns, path, Some(&row))
    }

    /// How far an unfinished index is. An index whose row can't be read begins again.
    fn unfinished(&self, context: &Context, path: &str) -> Result<Option<UnfinishedRow>> {
        Ok(sound(self.tx.unfinished(context.ns, path))?.unwrap_or_else(|| Some(UnfinishedRow::default())))
    }

    /// Continues an unfinished index by about `most` rows. Returns the number of memories in the index when it is
    /// whole, and none if it is gone or there is nothing to do.
    pub(crate) fn go_on_declared(
        &mut self,
        context: &Context,
        path: &str,
        most: usize,
    ) -> Result<ControlFlow<u64>> {
        let ns = context.ns;
        let Some(mut row) = self.unfinished(context, path)? else { return Ok(ControlFlow::Break(0)) };
        if !row.cleared {
            // Fewer rows than asked for means that nothing of the old index is left.
            row.cleared = self.tx.delete_meta_values(ns, path, most)? < most;
            if row.cleared && row.ends {
                self.declared.remove(&ns);
                self.tx.delete_meta_key(ns, path)?;
                // A path can be the name that a memory alone had, and the memory is forgotten by now.
                self.journal_derived(context, RuleId::INDEX, "an index of metadata ended".to_owned())?;
                return Ok(ControlFlow::Break(0));
            }
            self.tx.put_meta_key(ns, path, Some(&row))?;
            return Ok(ControlFlow::Continue(()));
        }
        let rows = self.tx.vitals_page(ns, row.after, most)?;
        let (mut left, mut is_whole, declared) = (most, rows.len() < most, [Arc::from(path)]);
        for (id, vitals) in rows {
            // One memory may bring many index rows, so the slice is bounded by these as well.
            if left == 0 {
                is_whole = false;
                break;
            }
            row.after = Some(id);
            // Rows in limbo and unreadable rows are in no index.
            let content = match vitals.times.removed_at {
                None => sound(self.content_of(ns, id))?,
                Some(_) => None,
            };
            let before = left;
            for index_row in index_rows(&vitals, content.as_ref(), &declared) {
                if let IndexRow::Meta(..) = index_row {
                    self.put_index_row(ns, id, &index_row)?;
                    left = left.saturating_sub(1);
                }
            }
            row.filled += u64::from(left < before);
        }
        self.tx.put_meta_key(ns, path, Some(&row).filter(|_| !is_whole))?;
        if !is_whole {
            return Ok(ControlFlow::Continue(()));
        }
        let what = format!("{} rows of an index of metadata", row.filled);
        self.journal_derived(context, RuleId::INDEX, what)?;
        Ok(ControlFlow::Break(row.filled))
    }
}
