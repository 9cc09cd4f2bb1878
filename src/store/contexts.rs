//! The inclusion log: rows, typed reads, typed writes.
//!
//! The rows by which a context is found follow from the row alone ([`ContextRow::keys`]), so `check` asks the same function.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::model::{MemoryId, Time};
use crate::store::control::ContextRow;
use crate::store::keys::{self, Key};
use crate::store::part::NsId;
use crate::store::raw::Walk;
use crate::store::rows::Rows;
use crate::store::tables::Table;
use crate::store::truth::Truth;

/// A context by its instant and its name.
pub(crate) type ContextPlace = (Time, String);

impl ContextRow {
    /// When the context was put together.
    pub(crate) fn at(&self) -> Time {
        Time::from_millis(self.at_ms)
    }

    /// The rows by which the context is found: by time, and by memory.
    pub(crate) fn keys(&self, ns: NsId, context: &str) -> BTreeSet<(Table, Key)> {
        let ids = self.items.iter().filter_map(|item| item.id);
        let by_memory = ids.map(|id| (Table::ContextOf, keys::context_of(ns, id, self.at(), context)));
        by_memory.chain([(Table::ContextTime, keys::context_time(ns, self.at(), context))]).collect()
    }
}

/// Typed reads of the inclusion log.
pub(crate) trait ContextRows: Rows {
    fn context(&self, ns: NsId, context: &str) -> Result<Option<ContextRow>> {
        self.meta(Table::Context, &keys::context(ns, context))
    }

    /// At most `most` of the contexts in which a memory was, the latest first, behind the key `after` if there is one.
    fn contexts_of(
        &self,
        ns: NsId,
        id: MemoryId,
        after: Option<&[u8]>,
        most: usize,
    ) -> Result<Vec<ContextPlace>> {
        let mut walk = Walk::prefix(&keys::memory(ns, id));
        if let Some(after) = after {
            walk = walk.before(after);
        }
        self.each_key(Table::ContextOf, &walk.reversed(), most, |key| {
            let row = keys::ContextOf::read(Table::ContextOf, key)?;
            Ok((row.at, row.context.0.to_owned()))
        })
    }

    /// At most `most` of the contexts that were put together before `until`, the earliest first.
    fn contexts_before(&self, ns: NsId, until: Time, most: usize) -> Result<Vec<ContextPlace>> {
        let walk = Walk::prefix(&keys::ns(ns)).before(&keys::context_time(ns, until, ""));
        self.context_places(&walk, most)
    }

    /// At most `most` of the contexts of a walk by time.
    fn context_places(&self, walk: &Walk, most: usize) -> Result<Vec<ContextPlace>> {
        self.each_key(Table::ContextTime, walk, most, |key| {
            let row = keys::ContextTime::read(Table::ContextTime, key)?;
            Ok((row.at, row.context.0.to_owned()))
        })
    }
}

impl<R: Rows> ContextRows for R {}

impl Truth<'_, '_> {
    /// Puts a context into the log, which has none of this name.
    pub(crate) fn put_context(&mut self, ns: NsId, context: &str, row: &ContextRow) -> Result<()> {
        self.put_meta(Table::Context, &keys::context(ns, context), row)?;
        for (table, key) in row.keys(ns, context) {
            self.put(table, &key, &[])?;
        }
        Ok(())
    }

    /// Takes a context out of the log.
    pub(crate) fn delete_context(&mut self, ns: NsId, context: &str, row: &ContextRow) -> Result<()> {
        self.delete(Table::Context, &keys::context(ns, context))?;
        for (table, key) in row.keys(ns, context) {
            self.delete(table, &key)?;
        }
        Ok(())
    }
}
