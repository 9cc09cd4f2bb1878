//! The inclusion log, and the rows by which its contexts are found.

use crate::error::Result;
use crate::hygiene::check::state::{Check, seen};
use crate::hygiene::report::Code;
use crate::store::keys;
use crate::store::{ContextRow, ContextRows, Table, meta_of};

impl Check<'_> {
    pub(super) fn context(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let row: ContextRow = meta_of(Table::Context, key, value)?;
        let keys::Context { ns, context } = keys::Context::read(Table::Context, key)?;
        for (table, place) in row.keys(ns, context.0) {
            if self.lacks(table, &place)? {
                let what = format!("context {} is not found here", context.0);
                self.find(Code::IndexMissing, table, &place, what);
            }
        }
        Ok(())
    }

    /// A row by which a context is found must be one that it asks for.
    pub(super) fn context_index(&mut self, table: Table, key: &[u8]) -> Result<()> {
        let (ns, context) = match table {
            Table::ContextTime => keys::ContextTime::read(table, key).map(|row| (row.ns, row.context.0))?,
            _ => keys::ContextOf::read(table, key).map(|row| (row.ns, row.context.0))?,
        };
        // One that is damaged is a finding of its own table.
        let Some(row) = seen(self.snapshot.context(ns, context))? else { return Ok(()) };
        let asks =
            |row: ContextRow| row.keys(ns, context).iter().any(|(of, place)| *of == table && **place == *key);
        if !row.is_some_and(asks) {
            self.find(Code::IndexExtra, table, key, format!("context {context} does not stand here"));
        }
        Ok(())
    }
}
