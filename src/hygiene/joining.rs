//! Which rows of a group can go into one, where callers have set ends of life?
//!
//! Rows join in their order, and the end of what they make moves with each that joins. What can't join makes groups of its own. Each
//! row is read once, and looked at again only where it may join: rows of the same end, those whose end nobody has promised, and
//! those of the same writer.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use crate::error::Result;
use crate::hygiene::plan::{Field, Stop};
use crate::ledger::{End, Whole, Writer};
use crate::model::{MemoryId, Time};
use crate::store::Rows;

/// Whether an end was promised, and the end: never is the latest.
type EndOf = (bool, (bool, Option<Time>));

/// No end.
const NEVER: (bool, Option<Time>) = (true, None);

/// Rows that are the same, in canonical order, as far as they are in no group yet.
pub(super) struct Joining<T> {
    rows: Vec<Option<(T, End)>>,
    /// All rows before this place are in a group.
    from: usize,
    /// The places of the rows by their ends.
    ends: BTreeMap<EndOf, BTreeSet<usize>>,
    /// The places of the rows that one writer without a key has written.
    writers: HashMap<Writer, BTreeSet<usize>>,
}

impl<T> Joining<T> {
    /// Reads the ends of some rows. What can't be read is left out. None when `stop` ended it.
    ///
    /// # Errors
    /// Damage that is not of single rows.
    pub(super) fn read<R: Rows>(
        rows: &R,
        field: &Field,
        members: impl IntoIterator<Item = T>,
        id: impl Fn(&T) -> MemoryId,
        stop: Stop<'_>,
    ) -> Result<Option<Self>> {
        let mut all = Joining { rows: Vec::new(), from: 0, ends: BTreeMap::new(), writers: HashMap::new() };
        for member in members {
            if stop(1) {
                return Ok(None);
            }
            let whole = field.sound(Whole::read(rows, field.ns, id(&member)))?.flatten();
            if let Some(end) = whole.map(|whole| whole.end()) {
                let at = all.rows.len();
                all.ends.entry(end_of(&end)).or_default().insert(at);
                if let Some(writer) = end.writer() {
                    all.writers.entry(writer.clone()).or_default().insert(at);
                }
                all.rows.push(Some((member, end)));
            }
        }
        Ok(Some(all))
    }

    /// The first row that is left, and all that can go into it.
    pub(super) fn next_group(&mut self) -> Option<Vec<T>> {
        while self.rows.get(self.from)?.is_none() {
            self.from += 1;
        }
        let (row, mut end) = self.take(self.from)?;
        let mut group = vec![row];
        loop {
            let before = group.len();
            for at in self.candidates(&end) {
                let other = self.rows.get(at).and_then(Option::as_ref);
                if other.is_some_and(|(_, other)| end.join(other)) {
                    group.extend(self.take(at).map(|(row, _)| row));
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

    /// The places of the rows that may join a row of this end: those whose end nobody has promised, unless they live longer than an
    /// end that was; those of the same promised end, or of any later one; and the next one of the same writer, since what has
    /// taken one in is of no one writer any more.
    fn candidates(&self, end: &End) -> BTreeSet<usize> {
        let (is_promised, until) = end_of(end);
        let free = ..=(false, if is_promised { until } else { NEVER });
        let promised = (
            Bound::Included((true, until)),
            Bound::Included((true, if is_promised { until } else { NEVER })),
        );
        let of_ends = self.ends.range(free).chain(self.ends.range(promised));
        let of_writer = end.writer().and_then(|writer| self.writers.get(writer)?.first());
        of_ends.flat_map(|(_, places)| places).chain(of_writer).copied().collect()
    }

    fn take(&mut self, at: usize) -> Option<(T, End)> {
        let (row, end) = self.rows.get_mut(at)?.take()?;
        let key = end_of(&end);
        if let Some(places) = self.ends.get_mut(&key) {
            places.remove(&at);
            if places.is_empty() {
                self.ends.remove(&key);
            }
        }
        if let Some(places) = end.writer().and_then(|writer| self.writers.get_mut(writer)) {
            places.remove(&at);
        }
        Some((row, end))
    }
}

fn end_of(end: &End) -> EndOf {
    let life = end.life();
    (life.is_promised_end(), (life.end.is_none(), life.end))
}
