//! How much of the file its rows take: a sum that every transaction keeps, and what the pages of each table take beyond it.

use std::ops::ControlFlow;

use redb::{ReadableTableMetadata, StorageError};
use serde::Serialize;

use crate::error::{Error, Result, sound};
use crate::store::control::SizeRow;
use crate::store::raw::{Walk, fenced};
use crate::store::rows::Rows;
use crate::store::tables::Table;
use crate::store::tx::{Read, Snapshot, WriteTx};

/// Bytes of pages that belong to no table, in a fresh copy: header, list of tables, allocator.
pub(crate) const OWN_BYTES: u64 = 40 << 10;
/// Bytes of pages of a new file: its own, and one for each of the dozen tables that have rows from the first memory on.
const OVERHEAD_NEW: u64 = OWN_BYTES + (48 << 10);
/// Bytes of pages beyond the rows, in percent of the rows, of a file that was written commit by commit.
const OVERHEAD_PERCENT: u64 = 30;
/// Bytes of rows from which on the share of a copy is believed: one of fewer rows is half-empty pages for the most part.
const COPIED_MIN: u64 = 256 << 10;

impl SizeRow {
    /// The row of a new file.
    pub(super) fn new() -> Self {
        SizeRow { live: 0, copied: 0, overhead: OVERHEAD_NEW }
    }

    /// Whether the pages of the file have been counted, and were enough for their share to be believed.
    pub(super) fn is_counted(&self) -> bool {
        self.copied >= COPIED_MIN
    }

    /// Bytes of pages beyond the rows: an estimate, which grows and shrinks with the rows by the share that was counted last.
    pub(crate) fn overhead(&self) -> u64 {
        let (part, whole) = match self.is_counted() {
            false => (OVERHEAD_PERCENT, 100),
            true => (self.overhead, self.copied),
        };
        // `whole` is 100 or at least `COPIED_MIN`, so it is never 0. The product needs 128 bits.
        let of = |rows: u64| {
            u64::try_from(u128::from(rows) * u128::from(part) / u128::from(whole)).unwrap_or(u64::MAX)
        };
        match self.live.checked_sub(self.copied) {
            Some(more) => self.overhead.saturating_add(of(more)),
            None => self.overhead.saturating_sub(of(self.copied - self.live)),
        }
    }
}

/// The bytes of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableStats {
    /// The number of rows.
    pub rows: u64,
    /// The bytes of their keys and values.
    pub live: u64,
    /// The bytes of their pages beyond that.
    pub overhead: u64,
}

impl Snapshot {
    /// What each table takes, in the order of [`Table::ALL`]. It walks every page.
    ///
    /// # Errors
    /// `Corrupted` where a page is damaged.
    pub(crate) fn sizes(&self) -> Result<Vec<(Table, TableStats)>> {
        let of = |table: &Table| {
            let open = self.table(*table)?;
            let sized = || Ok::<_, StorageError>((open.len()?, open.stats()?));
            let (rows, pages) = fenced(table.name(), &[], sized)?;
            let overhead = pages.metadata_bytes() + pages.fragmented_bytes();
            Ok((*table, TableStats { rows, live: pages.stored_bytes(), overhead }))
        };
        Table::ALL.iter().map(of).collect()
    }
}

impl WriteTx<'_> {
    /// Counts the bytes of all rows anew. Where not all can be met the sum stays as it is.
    pub(crate) fn count_size(&mut self) -> Result<()> {
        let old = sound(self.size())?.flatten().unwrap_or_else(SizeRow::new);
        self.put_size(&old)?;
        // By how much the rows have grown is known of what the tables have.
        self.put_gathered()?;
        let mut bytes = 0;
        for table in Table::ALL {
            let walked = self.walk(*table, &Walk::all(), &mut |key, value| {
                bytes += (key.len() + value.len()) as i64;
                Ok(ControlFlow::Continue(()))
            });
            // A sum that leaves out unreadable rows would be wrong, so the old sum stays.
            if sound(walked)?.is_none() {
                return Ok(());
            }
        }
        // What this transaction changes is added at its end.
        let live = u64::try_from(bytes - self.grown).unwrap_or_default();
        self.put_size(&SizeRow { live, ..old })
    }

    /// Keeps the row `size` true, and gives the bytes by which this transaction has made the rows longer. Where the row is
    /// missing or damaged the sum is unknown until a copy tells it anew.
    pub(super) fn keep_size(&mut self) -> Result<i64> {
        // The row of the sum exists and has one length, so writing it does not change the sum.
        let grown = self.grown;
        if grown != 0 {
            match self.size() {
                Ok(Some(row)) => {
                    self.put_size(&SizeRow { live: row.live.saturating_add_signed(grown), ..row })?;
                }
                // A lost sum stops no commit. `count_size` makes it again.
                Ok(None) | Err(Error::Corrupted { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        self.put_gathered()?;
        Ok(grown)
    }
}
