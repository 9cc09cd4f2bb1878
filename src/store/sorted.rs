//! The rows of many memories of one table, read in the order of their keys.
//!
//! A look-up walks down the tree of the table. Rows that lie side by side, or nearly so, are read by one walk for a part of that.

use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::model::{Access, Belonging, MemoryId, Vitals};
use crate::record::{At, decode_access, decode_belonging, decode_vitals};
use crate::store::keys;
use crate::store::part::NsId;
use crate::store::raw::{PASSED_MAX, Walk};
use crate::store::rows::Rows;
use crate::store::tables::{Table, last_id};

/// What is called with a memory and its row; none where the row is damaged.
pub(crate) type VisitRow<'f, T> = &'f mut dyn FnMut(MemoryId, Option<T>) -> Result<()>;

/// Reads of the rows of many memories, whose ids ascend. A memory without a row is passed over.
pub(crate) trait SortedRows: Rows {
    fn each_vitals(&self, ns: NsId, ids: &[MemoryId], visit: VisitRow<'_, Vitals>) -> Result<()> {
        self.each_row((Table::Vitals, ns), ids, decode_vitals, visit)
    }

    fn each_access(&self, ns: NsId, ids: &[MemoryId], visit: VisitRow<'_, Access>) -> Result<()> {
        self.each_row((Table::Access, ns), ids, decode_access, visit)
    }

    fn each_belonging(&self, ns: NsId, ids: &[MemoryId], visit: VisitRow<'_, Belonging>) -> Result<()> {
        self.each_row((Table::Memory, ns), ids, decode_belonging, visit)
    }

    fn each_row<T>(
        &self,
        (table, ns): (Table, NsId),
        ids: &[MemoryId],
        decode: fn(At<'_>, &[u8]) -> Result<T>,
        visit: VisitRow<'_, T>,
    ) -> Result<()> {
        debug_assert!(ids.is_sorted(), "they are met in the order of their keys");
        let mut left = ids;
        while let Some((first, rest)) = left.split_first() {
            let walk = Walk::prefix(&keys::ns(ns)).starting_at(&keys::memory(ns, *first));
            let mut passed = 0;
            let walked = sound(self.walk(table, &walk, &mut |key, value| {
                let id = last_id(table, key)?;
                while let Some((_, behind)) = left.split_first().filter(|(wanted, _)| **wanted < id) {
                    left = behind;
                }
                if left.first() == Some(&id) {
                    (left, passed) = (left.get(1..).unwrap_or_default(), 0);
                    visit(id, sound(decode(At::new(table.name(), key), value))?)?;
                } else {
                    passed += 1;
                }
                let is_over = left.is_empty() || passed > PASSED_MAX;
                Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            }))?;
            match walked {
                // It has come to the end of the namespace, or of what is asked for.
                Some(()) if passed <= PASSED_MAX => return Ok(()),
                // A walk ends at a damaged page, which a look-up behind it may never touch.
                None if left.first() == Some(first) => {
                    left = rest;
                    match sound(self.row(table, &keys::memory(ns, *first), decode))? {
                        Some(None) => {}
                        row => visit(*first, row.flatten())?,
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl<R: Rows> SortedRows for R {}
