//! Tables of redb as they are: looks and walks.
//!
//! redb ends in a panic where a page of the file is damaged; every call into it is fenced here, so that damage comes
//! out as `Corrupted` and a broken disk as `Retry`.

use std::ops::{Bound, ControlFlow, RangeBounds};
use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::{ReadableTable, StorageError, TableDefinition, TableError};

use crate::error::{Error, FILE_CUT, Result};
use crate::store::{keys, tally};

pub(super) type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;
pub(super) type ReadTable = redb::ReadOnlyTable<&'static [u8], &'static [u8]>;
pub(super) type WriteTable<'t> = redb::Table<'t, &'static [u8], &'static [u8]>;

/// Rows that nobody asked for and that a walk passes, one after the other: as many cost about as much as a look-up.
pub(super) const PASSED_MAX: usize = 6;

/// What a scan calls for each row, with key and value; it can end the scan.
pub(crate) type Visit<'f> = &'f mut dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>>;

/// The part of a table that a scan walks.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    reverse: bool,
}

impl Walk {
    /// Every key that begins with `prefix`.
    pub(crate) fn prefix(prefix: &[u8]) -> Self {
        let to = keys::end_of(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        Walk { from: Bound::Included(prefix.to_vec()), to, reverse: false }
    }

    /// The whole table.
    pub(crate) fn all() -> Self {
        Walk { from: Bound::Unbounded, to: Bound::Unbounded, reverse: false }
    }

    /// From `key` on, that key included, as far as this walk goes.
    pub(crate) fn starting_at(mut self, key: &[u8]) -> Self {
        self.from = Bound::Included(key.to_vec());
        self
    }

    /// Only what lies after `key`.
    pub(crate) fn after(mut self, key: &[u8]) -> Self {
        self.from = Bound::Excluded(key.to_vec());
        self
    }

    /// Only what lies before `key`.
    pub(crate) fn before(mut self, key: &[u8]) -> Self {
        self.to = Bound::Excluded(key.to_vec());
        self
    }

    /// From the last key to the first.
    pub(crate) fn reversed(mut self) -> Self {
        self.reverse = true;
        self
    }

    pub(super) fn is_reversed(&self) -> bool {
        self.reverse
    }

    /// Whether no key can lie in it, which redb would call a misuse.
    pub(super) fn is_empty(&self) -> bool {
        let (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) =
            (&self.from, &self.to)
        else {
            return false;
        };
        from > to
            || (from == to && !matches!((&self.from, &self.to), (Bound::Included(_), Bound::Included(_))))
    }

    /// Whether a key lies in it.
    pub(super) fn has(&self, key: &[u8]) -> bool {
        RangeBounds::<[u8]>::contains(&self.bounds(), key)
    }

    pub(super) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.from.as_ref().map(Vec::as_slice), self.to.as_ref().map(Vec::as_slice))
    }
}

/// Runs a call into redb; a panic of its is damage to the file.
pub(crate) fn fenced<R, E>(table: &'static str, key: &[u8], call: impl FnOnce() -> Result<R, E>) -> Result<R>
where
    E: Into<Fault>,
{
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(why)) => Err(why.into().said_of(table, key)),
        Err(_) => Err(Error::corrupted(table, key, "a page of the key-value store is damaged")),
    }
}

/// What redb says to one that begins to read while another process tries the locks of a writer that is alone.
pub(super) const LOCKED_OUT: &str = "holds an active transaction byte exclusively";

/// A failure of redb, of whatever call.
pub(crate) enum Fault {
    /// The bytes make no sense.
    Damage(String),
    /// The disk or the handle failed.
    Storage(String),
}

impl Fault {
    fn said_of(self, table: &'static str, key: &[u8]) -> Error {
        match self {
            Fault::Damage(why) => Error::corrupted(table, key, why),
            Fault::Storage(why) => Error::Retry { why },
        }
    }
}

impl From<StorageError> for Fault {
    fn from(why: StorageError) -> Self {
        match why {
            // Another process asks for the file alone, and will be refused.
            StorageError::Corrupted(why) if why.contains(LOCKED_OUT) => Fault::Storage(why),
            StorageError::Corrupted(why) => Fault::Damage(why),
            // No disk does that: the file was cut.
            StorageError::Io(why) if why.kind() == std::io::ErrorKind::UnexpectedEof => {
                Fault::Damage(FILE_CUT.to_owned())
            }
            other => Fault::Storage(other.to_string()),
        }
    }
}

impl From<TableError> for Fault {
    fn from(why: TableError) -> Self {
        match why {
            TableError::Storage(why) => why.into(),
            other => Fault::Damage(other.to_string()),
        }
    }
}

/// Errors that wrap one of the storage; whatever else they say is no damage to the file.
macro_rules! storage_faults {
    ($($error:ident),+) => {$(
        impl From<redb::$error> for Fault {
            fn from(why: redb::$error) -> Self {
                match why {
                    redb::$error::Storage(why) => why.into(),
                    other => Fault::Storage(other.to_string()),
                }
            }
        }
    )+};
}

storage_faults!(CommitError, TransactionError, CompactionError, CursorError);

impl From<redb::SetDurabilityError> for Fault {
    fn from(why: redb::SetDurabilityError) -> Self {
        Fault::Storage(why.to_string())
    }
}

pub(super) fn look_row(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    name: &'static str,
    key: &[u8],
    f: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<bool> {
    tally::read();
    match fenced(name, key, || table.get(key))? {
        Some(value) => f(fenced(name, key, || Ok::<_, StorageError>(value.value()))?).map(|()| true),
        None => Ok(false),
    }
}

pub(super) fn walk_rows(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    name: &'static str,
    walk: &Walk,
    visit: Visit<'_>,
) -> Result<()> {
    if walk.is_empty() {
        return Ok(());
    }
    let mut rows = fenced(name, &[], || table.range::<&[u8]>(walk.bounds()))?;
    loop {
        let row = fenced(name, &[], || match if walk.reverse { rows.next_back() } else { rows.next() } {
            Some(row) => row.map(Some),
            None => Ok::<_, StorageError>(None),
        })?;
        let Some((key, value)) = row else { return Ok(()) };
        tally::read();
        // On a damaged page even looking at what was found can end in a panic.
        let (key, value) = fenced(name, &[], || Ok::<_, StorageError>((key.value(), value.value())))?;
        if visit(key, value)?.is_break() {
            return Ok(());
        }
    }
}
