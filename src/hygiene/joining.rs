//! Which rows of a group can go into one, where callers have set ends of life, or where the tags are too many for one row?
//!
//! Rows join in their order, and the end of what they make moves with each that joins, as its tags do. What can't join makes groups of its own. Each
//! row is read once, and looked at again only where its end lets it join: a tree over the rows finds the next such row in a number of steps that is the
//! logarithm of theirs.

use std::collections::{BTreeSet, HashMap};

use crate::error::Result;
use crate::hygiene::plan::{Field, Stop};
use crate::ledger::{End, Whole, Writer, tags_fit, unite};
use crate::model::{MemoryId, Time};
use crate::store::Snapshot;

/// An end: never is the latest.
type Until = (bool, Option<Time>);

/// Rows whose tags do not fit that a group passes over, so that the work does not grow with the square of the rows.
const MISFITS_MAX: usize = 256;

/// What of a row tells whether it can go into another.
struct Bounds {
    end: End,
    /// Its tags by their numbers among those of all rows, sorted.
    tags: Vec<u32>,
}

impl Bounds {
    /// Takes in another row if it may join, as the run does; says whether it may.
    fn join(&mut self, other: &Bounds) -> bool {
        let joins = tags_fit(&self.tags, &other.tags) && self.end.join(&other.end);
        if joins {
            unite(&mut self.tags, &other.tags);
        }
        joins
    }
}

/// Rows that are the same, in canonical order, as far as they are in no group yet.
pub(super) struct Joining<T> {
    rows: Vec<Option<(T, Bounds)>>,
    /// All rows before this place are in a group.
    from: usize,
    ends: Ends,
    /// The places of the rows of a promised end.
    promised: HashMap<Until, BTreeSet<usize>>,
    /// The places of the rows that one writer without a key has written.
    writers: HashMap<Writer, BTreeSet<usize>>,
}

impl<T> Joining<T> {
    /// Reads the ends and tags of some rows. What can't be read is left out. None when `stop` ended it.
    ///
    /// # Errors
    /// Damage that is not of single rows.
    pub(super) fn read(
        rows: &Snapshot,
        field: &Field,
        members: impl IntoIterator<Item = T>,
        id: impl Fn(&T) -> MemoryId,
        stop: Stop<'_>,
    ) -> Result<Option<Self>> {
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let (mut all, mut writers) = (Vec::new(), HashMap::<Writer, BTreeSet<usize>>::new());
        let mut promised = HashMap::<Until, BTreeSet<usize>>::new();
        for member in members {
            if stop(1) {
                return Ok(None);
            }
            let whole = field.sound(Whole::read(rows, field.ns, id(&member)))?.flatten();
            if let Some(whole) = whole {
                let (end, mut tags) = (whole.end(), Vec::with_capacity(whole.content.tags.len()));
                for tag in whole.content.tags {
                    let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                    tags.push(*numbers.entry(tag).or_insert(next));
                }
                tags.sort_unstable();
                let at = all.len();
                if let (true, until) = end_of(&end) {
                    promised.entry(until).or_default().insert(at);
                }
                if let Some(writer) = end.writer() {
                    writers.entry(writer.clone()).or_default().insert(at);
                }
                all.push((member, Bounds { end, tags }));
            }
        }
        let ends = Ends::of(all.iter().map(|(_, bounds)| end_of(&bounds.end)));
        Ok(Some(Joining { rows: all.into_iter().map(Some).collect(), from: 0, ends, promised, writers }))
    }

    /// The first row that is left, and all that can go into it.
    pub(super) fn next_group(&mut self) -> Option<Vec<T>> {
        while self.rows.get(self.from)?.is_none() {
            self.from += 1;
        }
        let (row, mut bounds) = self.take(self.from)?;
        let (mut group, mut misfits) = (vec![row], 0);
        loop {
            let (before, mut from) = (group.len(), self.from);
            while let Some(at) = self.candidate(&bounds.end, from) {
                from = at + 1;
                let Some((_, other)) = self.rows.get(at).and_then(Option::as_ref) else { continue };
                if bounds.join(other) {
                    group.extend(self.take(at).map(|(row, _)| row));
                    continue;
                }
                misfits += 1;
                if misfits >= MISFITS_MAX {
                    return Some(group);
                }
            }
            // The end only becomes longer, so that is soon over.
            if group.len() == before {
                return Some(group);
            }
        }
    }

    /// The rows that are in no group, in their order.
    pub(super) fn left(self) -> Vec<T> {
        self.rows.into_iter().flatten().map(|(row, _)| row).collect()
    }

    /// The next row from a place on that may join a row of this end: one whose end nobody has promised, unless it lives longer than an
    /// end that was; one of the same promised end, or of any later one; or one of the same writer, since what has
    /// taken one in is of no one writer any more.
    fn candidate(&self, end: &End, from: usize) -> Option<usize> {
        let next_of = |places: Option<&BTreeSet<usize>>| places?.range(from..).next().copied();
        let (is_promised, until) = end_of(end);
        let of_end = match is_promised {
            true => {
                let free = self.ends.next(from, |branch| branch.free.is_some_and(|free| free <= until));
                free.into_iter().chain(next_of(self.promised.get(&until))).min()
            }
            false => {
                let is_later = |promised| promised >= until;
                self.ends.next(from, |branch| branch.free.is_some() || branch.promised.is_some_and(is_later))
            }
        };
        let of_writer = next_of(end.writer().and_then(|writer| self.writers.get(writer)));
        of_end.into_iter().chain(of_writer).min()
    }

    fn take(&mut self, at: usize) -> Option<(T, Bounds)> {
        let (row, bounds) = self.rows.get_mut(at)?.take()?;
        self.ends.clear(at);
        let of_end = self.promised.get_mut(&end_of(&bounds.end).1);
        let of_writer = bounds.end.writer().and_then(|writer| self.writers.get_mut(writer));
        for places in of_end.into_iter().chain(of_writer) {
            places.remove(&at);
        }
        Some((row, bounds))
    }
}

/// The earliest end that nobody has promised, and the latest that a caller has, of some rows.
#[derive(Clone, Copy, Default)]
struct Branch {
    free: Option<Until>,
    promised: Option<Until>,
}

impl Branch {
    fn of(row: (bool, Until)) -> Self {
        match row {
            (true, until) => Branch { promised: Some(until), ..Branch::default() },
            (false, until) => Branch { free: Some(until), ..Branch::default() },
        }
    }

    fn with(self, other: Branch) -> Self {
        let free = self.free.into_iter().chain(other.free).min();
        Branch { free, promised: self.promised.max(other.promised) }
    }
}

/// A tree over the ends of rows. The branches below branch n are 2n and 2n + 1; the rows are the leaves.
struct Ends {
    branches: Vec<Branch>,
    /// Where the leaves begin.
    leaves: usize,
}

impl Ends {
    fn of(rows: impl ExactSizeIterator<Item = (bool, Until)>) -> Self {
        let leaves = rows.len().next_power_of_two();
        let mut branches = vec![Branch::default(); leaves];
        branches.extend(rows.map(Branch::of));
        branches.resize(2 * leaves, Branch::default());
        let mut ends = Ends { branches, leaves };
        (1..leaves).rev().for_each(|branch| ends.sum_up(branch));
        ends
    }

    fn branch(&self, at: usize) -> Branch {
        self.branches.get(at).copied().unwrap_or_default()
    }

    fn sum_up(&mut self, at: usize) {
        let both = self.branch(2 * at).with(self.branch(2 * at + 1));
        if let Some(branch) = self.branches.get_mut(at) {
            *branch = both;
        }
    }

    /// Takes a row out.
    fn clear(&mut self, row: usize) {
        let mut at = self.leaves + row;
        if let Some(leaf) = self.branches.get_mut(at) {
            *leaf = Branch::default();
        }
        while at > 1 {
            at /= 2;
            self.sum_up(at);
        }
    }

    /// The first row from a place on that fits. A branch must fit if and only if one of its rows does.
    fn next(&self, from: usize, fits: impl Fn(Branch) -> bool) -> Option<usize> {
        if from >= self.leaves {
            return None;
        }
        let mut at = self.leaves + from;
        while !fits(self.branch(at)) {
            // The next branch to the right; behind the last one there is none.
            while at % 2 == 1 {
                at /= 2;
            }
            if at == 0 {
                return None;
            }
            at += 1;
        }
        while at < self.leaves {
            at = if fits(self.branch(2 * at)) { 2 * at } else { 2 * at + 1 };
        }
        Some(at - self.leaves)
    }
}

/// Whether an end was promised, and the end.
fn end_of(end: &End) -> (bool, Until) {
    let life = end.life();
    (life.is_promised_end(), (life.end.is_none(), life.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree finds what a look at each row finds, while the rows leave one after the other.
    #[test]
    fn the_next_row_that_fits_is_found_as_by_a_look_at_each() {
        let until = |at: i64| (at == 0, (at > 0).then(|| Time::from_millis(at)));
        for count in [1, 2, 37] {
            let rows: Vec<(bool, Until)> =
                (0..count).map(|at| (at % 3 == 0, until(i64::from(at) * 7 % 11))).collect();
            let mut ends = Ends::of(rows.iter().copied());
            let mut left: BTreeSet<usize> = (0..rows.len()).collect();
            for leaves in 0..=rows.len() {
                for (from, end) in
                    (0..rows.len() + 2).flat_map(|from| (0..11).map(move |at| (from, until(at))))
                {
                    let first = |fits: &dyn Fn(&(bool, Until)) -> bool| {
                        left.range(from..).copied().find(|at| fits(&rows[*at]))
                    };
                    let free = ends.next(from, |branch| branch.free.is_some_and(|free| free <= end));
                    assert_eq!(free, first(&|(is_promised, until)| !is_promised && *until <= end));
                    let is_later = |promised| promised >= end;
                    let any = ends
                        .next(from, |branch| branch.free.is_some() || branch.promised.is_some_and(is_later));
                    assert_eq!(any, first(&|(is_promised, until)| !is_promised || *until >= end));
                }
                let goes = leaves * 5 % rows.len();
                ends.clear(goes);
                left.remove(&goes);
            }
        }
    }
}
