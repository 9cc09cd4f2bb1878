//! Rows that a transaction has put or taken away, and whose tables do not know it yet.
//!
//! A row that is put or taken away by itself costs a walk down the tree of its table. Rows that lie side by side cost one such walk
//! together in the order of their keys. A unit that moves or removes many memories changes a dozen rows for each, every one in
//! another table, so it gathers these changes first. Whoever reads the transaction meanwhile finds the rows as if their tables had
//! been changed.

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::{Bound, ControlFlow, Range};

use redb::{CursorError, CursorMut, StorageError};

use crate::error::Result;
use crate::limits::GATHERED_BYTES_MAX;
use crate::store::raw::{Fault, PASSED_MAX, Visit, Walk, WriteTable, fenced};
use crate::store::tables::Table;
use crate::store::tally;

type Cursor<'c> = CursorMut<'c, &'static [u8], &'static [u8]>;

/// A row that was put, with its value, or taken away, with none; and the length of the value that stood there before.
pub(super) type VisitChange<'f> = &'f mut dyn FnMut(&[u8], Option<&[u8]>, Option<usize>);

/// A row as a transaction leaves it: its key, and its value unless it was taken away.
type Row<'r> = (&'r [u8], Option<&'r [u8]>);

/// Rows of a table that are gathered at most. To put one between others moves what stands behind it.
const ROWS_MAX: usize = if cfg!(test) { 64 } else { 2_048 };
/// A shorter run of rows side by side costs more than its rows one by one.
const RUN_MIN: usize = 8;
/// So many rows are changed one by one at most before a run is tried again.
const PAUSE_MAX: usize = 64;
/// A longer value fills pages of its own, so its row has no neighbours to be put together with.
const VALUE_MAX: usize = 2_048;
/// Rows that were taken away and that a walk meets all the same. Beyond that the table is changed before the next row is, or
/// whoever takes rows away one after the other would pass all those that have gone, again and again.
const GONE_MAX: usize = 16;

/// The rows that are gathered.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    bytes: usize,
    tables: BTreeMap<Table, Sorted>,
}

/// Rows of a table in the order of their keys. Their memory is used again for the next ones.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    bytes: Vec<u8>,
    rows: Vec<Placed>,
    /// Whether a walk has met too many that are gone.
    is_crowded: Cell<bool>,
}

/// Where a row stands: first its key, then its value unless the row was taken away.
#[derive(Clone, Copy, Debug)]
struct Placed {
    at: usize,
    key: usize,
    value: Option<usize>,
}

impl Sorted {
    fn row(&self, placed: Placed) -> Row<'_> {
        let Placed { at, key, value } = placed;
        let row = self.bytes.get(at..at + key + value.unwrap_or_default()).unwrap_or_default();
        let (key, there) = row.split_at_checked(key).unwrap_or_default();
        (key, value.map(|_| there))
    }

    /// The rows of a range of places.
    fn rows(&self, places: Range<usize>) -> impl DoubleEndedIterator<Item = Row<'_>> {
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

    fn keep(&mut self, key: &[u8], value: Option<&[u8]>) {
        let placed = Placed { at: self.bytes.len(), key: key.len(), value: value.map(<[u8]>::len) };
        match self.place(key) {
            Ok(place) => self.rows.iter_mut().skip(place).take(1).for_each(|row| *row = placed),
            Err(place) => self.rows.insert(place, placed),
        }
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.unwrap_or_default());
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
    /// Keeps a row that was put, or taken away where it has no value. Says whether it is time to change its table: what a
    /// transaction takes of memory does not go by what it changes.
    pub(super) fn keep(&mut self, table: Table, key: &[u8], value: Option<&[u8]>) -> bool {
        self.bytes += key.len() + value.map_or(0, <[u8]>::len);
        let rows = self.tables.entry(table).or_default();
        rows.keep(key, value);
        rows.rows.len() >= ROWS_MAX || rows.is_crowded.get()
    }

    /// Whether a row is put into its table at once.
    pub(super) fn is_alone(value: Option<&[u8]>) -> bool {
        value.is_some_and(|value| value.len() > VALUE_MAX)
    }

    /// Forgets what is gathered of a row that is put into its table at once.
    pub(super) fn forget(&mut self, table: Table, key: &[u8]) {
        let Some(rows) = self.tables.get_mut(&table) else { return };
        if let Ok(place) = rows.place(key) {
            rows.rows.remove(place);
        }
    }

    /// Whether it is time to change all tables.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > GATHERED_BYTES_MAX
    }

    /// The value of a row that was put; no value of one that was taken away; none where the table says what stands there.
    pub(super) fn get(&self, table: Table, key: &[u8]) -> Option<Option<&[u8]>> {
        let rows = self.tables.get(&table)?;
        let place = rows.place(key).ok()?;
        rows.rows.get(place).map(|placed| rows.row(*placed).1)
    }

    /// The tables of which rows were gathered.
    pub(super) fn tables(&self) -> Vec<Table> {
        self.tables.keys().copied().collect()
    }

    /// The changes of a table, which are to be made.
    pub(super) fn take(&mut self, table: Table) -> Sorted {
        let rows = self.tables.get_mut(&table).map(std::mem::take).unwrap_or_default();
        self.bytes -= rows.bytes.len();
        rows
    }

    /// Takes changes again: their memory if they were made. Otherwise they must not be lost unseen.
    pub(super) fn give_back(&mut self, table: Table, mut rows: Sorted, are_made: bool) {
        if are_made {
            rows.bytes.clear();
            rows.rows.clear();
            rows.is_crowded.set(false);
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
        let mut gone = 0;
        let merged = if walk.is_reversed() {
            merge(met.rev().peekable(), |gathered, key| gathered >= key, (&mut gone, visit), stored)
        } else {
            merge(met.peekable(), |gathered, key| gathered <= key, (&mut gone, visit), stored)
        };
        if gone > GONE_MAX {
            rows.is_crowded.set(true);
        }
        merged
    }
}

/// Visits the rows of both in one order: `is_next` says whether a gathered row comes before a stored one or takes its place. Counts
/// the stored rows that are gone.
fn merge<'r>(
    mut gathered: Peekable<impl Iterator<Item = Row<'r>>>,
    is_next: impl Fn(&[u8], &[u8]) -> bool,
    (gone, visit): (&mut usize, Visit<'_>),
    stored: impl FnOnce(Visit<'_>) -> Result<()>,
) -> Result<()> {
    let mut is_over = false;
    stored(&mut |key, value| {
        let mut is_replaced = false;
        while let Some((newer, value)) = gathered.next_if(|(newer, _)| is_next(newer, key)) {
            is_replaced = newer == key;
            let Some(value) = value else {
                *gone += usize::from(is_replaced);
                continue;
            };
            tally::read();
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
    for (key, value) in gathered.filter_map(|(key, value)| Some((key, value?))) {
        tally::read();
        if visit(key, value)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Changes a table in the order of the keys of the rows, and tells of each what was done. A row that is to go and is not there is
/// passed over.
pub(super) fn change_sorted(
    table: &mut WriteTable<'_>,
    name: &'static str,
    rows: &Sorted,
    changed: VisitChange<'_>,
) -> Result<()> {
    let mut left = rows.rows(0..rows.rows.len()).peekable();
    let (mut pause, mut lone) = (0, 0);
    while let Some((key, value)) = left.next() {
        change(table, name, (key, value), changed)?;
        // Where rows do not lie side by side it is not tried each time whether they do.
        if lone > 0 {
            lone -= 1;
        } else if change_run(table, name, key, &mut left, changed)? < RUN_MIN {
            pause = (2 * pause + 1).min(PAUSE_MAX);
            lone = pause;
        } else {
            pause = 0;
        }
    }
    Ok(())
}

/// Puts one row, or takes it away.
pub(super) fn change(
    table: &mut WriteTable<'_>,
    name: &'static str,
    (key, value): Row<'_>,
    changed: VisitChange<'_>,
) -> Result<()> {
    let old = fenced(name, key, || {
        let old = match value {
            Some(value) => table.insert(key, value)?,
            None => table.remove(key)?,
        };
        Ok::<_, StorageError>(old.map(|old| old.value().len()))
    })?;
    if value.is_some() || old.is_some() {
        changed(key, value, old);
    }
    Ok(())
}

/// Makes the changes behind a key for as long as they lie side by side. Returns how many there were.
fn change_run<'r>(
    table: &mut WriteTable<'_>,
    name: &'static str,
    after: &[u8],
    left: &mut Peekable<impl Iterator<Item = Row<'r>>>,
    changed: VisitChange<'_>,
) -> Result<usize> {
    if left.peek().is_none() {
        return Ok(0);
    }
    let mut cursor = fenced(name, after, || table.lower_bound_mut(Bound::Excluded(after)))?;
    let mut count = 0;
    while let Some(row) = left.peek().copied() {
        match fenced(name, row.0, || step(&mut cursor, row, changed)) {
            Ok(true) => {
                count += 1;
                left.next();
            }
            Ok(false) => break,
            Err(why) => {
                // What it has gathered is lost, and even to drop it can end in a panic.
                let dropped = fenced(name, row.0, || {
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

/// Makes one change where a cursor stands; false where it stands elsewhere.
fn step(cursor: &mut Cursor<'_>, (key, value): Row<'_>, changed: VisitChange<'_>) -> Result<bool, Fault> {
    let Some(value) = value else { return Ok(take(cursor, key, changed)?) };
    match cursor.insert_before(key, value) {
        Ok(()) => {
            changed(key, Some(value), None);
            Ok(true)
        }
        Err(CursorError::UnorderedKey) => Ok(false),
        Err(why) => Err(why.into()),
    }
}

/// Takes a row away that lies behind a cursor; false where too many others lie between, or the row is not there.
fn take(cursor: &mut Cursor<'_>, key: &[u8], changed: VisitChange<'_>) -> Result<bool, StorageError> {
    for _ in 0..=PASSED_MAX {
        let Some((there, value)) = cursor.peek_next()? else { return Ok(false) };
        match there.value().cmp(key) {
            Ordering::Less => {
                drop((there, value));
                cursor.next()?;
            }
            Ordering::Equal => {
                let old = value.value().len();
                drop((there, value));
                cursor.remove_next()?;
                changed(key, None, Some(old));
                return Ok(true);
            }
            // Where a damaged key is out of order, only a look of its own finds the row behind it.
            Ordering::Greater => return Ok(false),
        }
    }
    Ok(false)
}

/// Takes away those of the first `met` rows behind a bound of whose keys `is_doomed` says so, one by one. Rows go so whose keys
/// are out of order: no range has them, and no look finds them.
pub(super) fn take_met(
    table: &mut WriteTable<'_>,
    name: &'static str,
    from: Bound<&[u8]>,
    met: usize,
    is_doomed: &dyn Fn(&[u8]) -> bool,
    taken: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<()> {
    let (mut passed, mut left) = (0, met);
    while left > 0 {
        // A cursor does not find its place again behind a damaged key, so each begins anew after a row was taken.
        fenced(name, &[], || {
            let mut cursor = table.lower_bound_mut(from)?;
            for _ in 0..passed {
                cursor.next()?;
            }
            while left > 0 {
                let Some((key, value)) = cursor.peek_next()? else {
                    left = 0;
                    break;
                };
                left -= 1;
                let is_taken = is_doomed(key.value());
                if is_taken {
                    taken(key.value(), value.value());
                }
                drop((key, value));
                if is_taken {
                    cursor.remove_next()?;
                    break;
                }
                cursor.next()?;
                passed += 1;
            }
            cursor.close()
        })?;
    }
    Ok(())
}

/// Takes away the rows that stand last before a bound, one by one, for as long as `is_doomed` says so of their keys, at most
/// `most`.
pub(super) fn take_back(
    table: &mut WriteTable<'_>,
    name: &'static str,
    to: Bound<&[u8]>,
    most: usize,
    is_doomed: &dyn Fn(&[u8]) -> bool,
    taken: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<()> {
    for _ in 0..most {
        let took = fenced(name, &[], || {
            let mut cursor = table.upper_bound_mut(to)?;
            let Some((key, value)) = cursor.peek_prev()? else { return Ok::<_, StorageError>(false) };
            let is_taken = is_doomed(key.value());
            if is_taken {
                taken(key.value(), value.value());
            }
            drop((key, value));
            if is_taken {
                cursor.remove_prev()?;
            }
            cursor.close()?;
            Ok(is_taken)
        })?;
        if !took {
            break;
        }
    }
    Ok(())
}
