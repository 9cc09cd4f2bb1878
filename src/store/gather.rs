//! Rows that a transaction has put and that are not in their tables yet.
//!
//! A row that is put by itself costs a walk down the tree of its table. Rows that lie side by side cost one such walk together if
//! they are put in the order of their keys. A unit that moves many memories puts a dozen rows for each, every one into another
//! table, so it gathers them first. Whoever reads the transaction meanwhile finds them as if they were in their tables.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::ops::{Bound, ControlFlow, Range};

use redb::{CursorError, CursorMut, StorageError};

use crate::error::Result;
use crate::limits::GATHERED_BYTES_MAX;
use crate::store::part::Key;
use crate::store::raw::{Fault, PASSED_MAX, Visit, Walk, WriteTable, fenced};
use crate::store::tables::Table;
use crate::store::tally;

type Cursor<'c> = CursorMut<'c, &'static [u8], &'static [u8]>;

/// A row that was put, with the length of the value that it replaced.
pub(super) type VisitPut<'f> = &'f mut dyn FnMut(&[u8], &[u8], Option<usize>);

/// Rows of a table that are gathered at most. To put one between others moves what stands behind it.
const ROWS_MAX: usize = if cfg!(test) { 64 } else { 2_048 };
/// A shorter run of rows side by side costs more than its rows one by one.
const RUN_MIN: usize = 8;
/// So many rows are put one by one at most before a run is tried again.
const PAUSE_MAX: usize = 64;

/// The rows that are gathered.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    is_on: bool,
    bytes: usize,
    tables: BTreeMap<Table, Sorted>,
}

/// Rows of a table in the order of their keys. Their memory is used again for the next ones.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    bytes: Vec<u8>,
    rows: Vec<Placed>,
}

/// Where a row stands: first its key, then its value.
#[derive(Clone, Copy, Debug)]
struct Placed {
    at: usize,
    key: usize,
    value: usize,
}

impl Sorted {
    fn row(&self, placed: Placed) -> (&[u8], &[u8]) {
        let Placed { at, key, value } = placed;
        let row = self.bytes.get(at..at + key + value).unwrap_or_default();
        row.split_at_checked(key).unwrap_or_default()
    }

    /// The rows of a range of places.
    fn rows(&self, places: Range<usize>) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
        self.rows.get(places).unwrap_or_default().iter().map(|placed| self.row(*placed))
    }

    /// The place of a row, or the one where it belongs.
    fn place(&self, key: &[u8]) -> Result<usize, usize> {
        // Most rows come in the order of their keys.
        match self.rows.last() {
            Some(last) if self.row(*last).0 < key => Err(self.rows.len()),
            _ => self.rows.binary_search_by(|placed| self.row(*placed).0.cmp(key)),
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        let placed = Placed { at: self.bytes.len(), key: key.len(), value: value.len() };
        match self.place(key) {
            Ok(place) => self.rows.iter_mut().skip(place).take(1).for_each(|row| *row = placed),
            Err(place) => self.rows.insert(place, placed),
        }
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    /// The places of the rows that a walk meets.
    fn met_by(&self, walk: &Walk) -> Range<usize> {
        let (from, to) = walk.bounds();
        let place = |key: &[u8], is_before: bool| match self.place(key) {
            Ok(place) => place + usize::from(!is_before),
            Err(place) => place,
        };
        let from = match from {
            Bound::Included(key) => place(key, true),
            Bound::Excluded(key) => place(key, false),
            Bound::Unbounded => 0,
        };
        let to = match to {
            Bound::Included(key) => place(key, false),
            Bound::Excluded(key) => place(key, true),
            Bound::Unbounded => self.rows.len(),
        };
        from..to
    }
}

impl Gathered {
    pub(super) fn begin(&mut self) {
        self.is_on = true;
    }

    pub(super) fn end(&mut self) {
        debug_assert_eq!(self.bytes, 0, "rows that nobody has written would be lost");
        *self = Gathered::default();
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Keeps a row. Says whether it is time to put those of its table: what a transaction takes of memory does not go by what
    /// it changes.
    pub(super) fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> bool {
        self.bytes += key.len() + value.len();
        let rows = self.tables.entry(table).or_default();
        rows.put(key, value);
        rows.rows.len() >= ROWS_MAX
    }

    /// Whether it is time to put the rows of all tables.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > GATHERED_BYTES_MAX
    }

    /// Takes a row back. Says whether it was there.
    pub(super) fn take_back(&mut self, table: Table, key: &[u8]) -> bool {
        let Some(rows) = self.tables.get_mut(&table) else { return false };
        let found = rows.place(key);
        found.is_ok_and(|place| {
            rows.rows.remove(place);
            true
        })
    }

    pub(super) fn get(&self, table: Table, key: &[u8]) -> Option<&[u8]> {
        let rows = self.tables.get(&table)?;
        let place = rows.place(key).ok()?;
        rows.rows.get(place).map(|placed| rows.row(*placed).1)
    }

    /// The tables of which rows were gathered.
    pub(super) fn tables(&self) -> Vec<Table> {
        self.tables.keys().copied().collect()
    }

    /// The rows of a table, which are to be put.
    pub(super) fn take(&mut self, table: Table) -> Sorted {
        let rows = self.tables.get_mut(&table).map(std::mem::take).unwrap_or_default();
        self.bytes -= rows.bytes.len();
        rows
    }

    /// Takes rows again: their memory if they were put. Otherwise they must not be lost unseen.
    pub(super) fn give_back(&mut self, table: Table, mut rows: Sorted, are_put: bool) {
        if are_put {
            rows.bytes.clear();
            rows.rows.clear();
        }
        self.bytes += rows.bytes.len();
        self.tables.insert(table, rows);
    }

    /// Walks the rows of a table and those that are gathered, in one order. `stored` walks the table.
    pub(super) fn walk(
        &self,
        table: Table,
        walk: &Walk,
        visit: Visit<'_>,
        stored: impl FnOnce(Visit<'_>) -> Result<()>,
    ) -> Result<()> {
        let rows = self.tables.get(&table).filter(|_| !walk.is_empty());
        let met = rows.map(|rows| (rows, rows.met_by(walk))).filter(|(_, places)| !places.is_empty());
        let Some((rows, places)) = met else { return stored(visit) };
        let met = rows.rows(places);
        if walk.is_reversed() {
            merge(met.rev().peekable(), |gathered, key| gathered >= key, visit, stored)
        } else {
            merge(met.peekable(), |gathered, key| gathered <= key, visit, stored)
        }
    }
}

/// Visits the rows of both in one order: `is_next` says whether a gathered row comes before a stored one or takes its place.
fn merge<'r>(
    mut gathered: Peekable<impl Iterator<Item = (&'r [u8], &'r [u8])>>,
    is_next: impl Fn(&[u8], &[u8]) -> bool,
    visit: Visit<'_>,
    stored: impl FnOnce(Visit<'_>) -> Result<()>,
) -> Result<()> {
    let mut is_over = false;
    stored(&mut |key, value| {
        let mut is_replaced = false;
        while let Some((newer, value)) = gathered.next_if(|(newer, _)| is_next(newer, key)) {
            tally::read();
            is_replaced = newer == key;
            if visit(newer, value)?.is_break() {
                is_over = true;
                return Ok(ControlFlow::Break(()));
            }
        }
        let flow = if is_replaced { ControlFlow::Continue(()) } else { visit(key, value)? };
        is_over = flow.is_break();
        Ok(flow)
    })?;
    if is_over {
        return Ok(());
    }
    for (key, value) in gathered {
        tally::read();
        if visit(key, value)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Puts rows into their table in the order of their keys.
pub(super) fn put_sorted(
    table: &mut WriteTable<'_>,
    name: &'static str,
    rows: &Sorted,
    put: VisitPut<'_>,
) -> Result<()> {
    let mut left = rows.rows(0..rows.rows.len()).peekable();
    let (mut pause, mut lone) = (0, 0);
    while let Some((key, value)) = left.next() {
        let old = fenced(name, key, || table.insert(key, value).map(|old| old.map(|old| old.value().len())))?;
        put(key, value, old);
        // Where rows do not lie side by side it is not tried each time whether they do.
        if lone > 0 {
            lone -= 1;
        } else if put_run(table, name, key, &mut left, put)? < RUN_MIN {
            pause = (2 * pause + 1).min(PAUSE_MAX);
            lone = pause;
        } else {
            pause = 0;
        }
    }
    Ok(())
}

/// Puts the rows behind a key for as long as no other row lies between them. Returns how many there were.
fn put_run<'r>(
    table: &mut WriteTable<'_>,
    name: &'static str,
    after: &[u8],
    left: &mut Peekable<impl Iterator<Item = (&'r [u8], &'r [u8])>>,
    put: VisitPut<'_>,
) -> Result<usize> {
    if left.peek().is_none() {
        return Ok(0);
    }
    let mut cursor = fenced(name, after, || table.lower_bound_mut(Bound::Excluded(after)))?;
    let mut count = 0;
    while let Some((key, value)) = left.peek().copied() {
        match fenced(name, key, || insert(&mut cursor, key, value)) {
            Ok(true) => {
                put(key, value, None);
                count += 1;
                left.next();
            }
            Ok(false) => break,
            Err(why) => {
                // What it has gathered is lost, and even to drop it can end in a panic.
                let dropped = fenced(name, key, || {
                    drop(cursor);
                    Ok::<_, StorageError>(())
                });
                return Err(dropped.err().unwrap_or(why));
            }
        }
    }
    fenced(name, after, || cursor.close())?;
    Ok(count)
}

/// Takes rows away that mostly lie side by side, by their keys in order, and tells of each its key and the length of its value.
/// A key without a row is passed over.
pub(super) fn take_sorted(
    table: &mut WriteTable<'_>,
    name: &'static str,
    keys: &BTreeSet<Key>,
    taken: &mut dyn FnMut(&[u8], usize),
) -> Result<()> {
    let mut left = keys.iter().peekable();
    while let Some(first) = left.peek().copied() {
        let mut cursor = fenced(name, first, || table.lower_bound_mut(Bound::Included(&**first)))?;
        let walked = fenced(name, first, || take_run(&mut cursor, &mut left, taken));
        let closed = fenced(name, first, || cursor.close());
        walked.and(closed)?;
        // Where a damaged key is out of order, only a look of its own finds the row behind it.
        if left.next_if_eq(&first).is_some() {
            let old =
                fenced(name, first, || table.remove(&**first).map(|old| old.map(|old| old.value().len())))?;
            old.into_iter().for_each(|value| taken(first, value));
        }
    }
    Ok(())
}

/// Takes away the rows before which a cursor stands, until it meets a row behind the next one or has passed too many others.
fn take_run<'k>(
    cursor: &mut Cursor<'_>,
    left: &mut Peekable<impl Iterator<Item = &'k Key>>,
    taken: &mut dyn FnMut(&[u8], usize),
) -> Result<(), StorageError> {
    let mut passed = 0;
    while let Some(wanted) = left.peek() {
        let Some((key, value)) = cursor.peek_next()? else { return Ok(()) };
        match key.value().cmp(wanted) {
            Ordering::Less if passed < PASSED_MAX => {
                passed += 1;
                drop((key, value));
                cursor.next()?;
            }
            Ordering::Equal => {
                taken(key.value(), value.value().len());
                drop((key, value));
                cursor.remove_next()?;
                left.next();
                passed = 0;
            }
            Ordering::Less | Ordering::Greater => return Ok(()),
        }
    }
    Ok(())
}

/// Puts a row where a cursor stands; false where another row lies between.
fn insert(cursor: &mut Cursor<'_>, key: &[u8], value: &[u8]) -> Result<bool, Fault> {
    match cursor.insert_before(key, value) {
        Ok(()) => Ok(true),
        Err(CursorError::UnorderedKey) => Ok(false),
        Err(why) => Err(why.into()),
    }
}
