//! Which rows of a group can go into one, where callers have set ends of life, or where the tags are too many for one row?
//!
//! Rows join in their order, and the end of what they make moves with each that joins, as its tags do. What can't join makes groups of its own. Each
//! row is read once, and looked at again only where it may join: rows of the same end, those whose end nobody has promised, and
//! those of the same writer.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use crate::error::Result;
use crate::hygiene::plan::{Field, Stop};
use crate::ledger::{End, Whole, Writer, tags_fit, unite};
use crate::model::{MemoryId, Time};
use crate::store::Snapshot;

/// Whether an end was promised, and the end: never is the latest.
type EndOf = (bool, (bool, Option<Time>));

/// No end.
const NEVER: (bool, Option<Time>) = (true, None);

/// Rows whose tags do not fit that a group passes over, so that the work does not grow with the square of the rows.
const MISFITS_MAX: usize = 256;

/// What of a row tells whether it can go into another.
struct Bounds {
    end: End,
    /// Its tags by their numbers among those of all rows, sorted.
    tags: Vec<u32>,
}

/// What became of a row that was to join.
enum Joined {
    Yes,
    OtherEnd,
    ManyTags,
}

impl Bounds {
    /// Takes in another row if it may join, as the run does.
    fn join(&mut self, other: &Bounds) -> Joined {
        if !tags_fit(&self.tags, &other.tags) {
            return Joined::ManyTags;
        }
        if !self.end.join(&other.end) {
            return Joined::OtherEnd;
        }
        unite(&mut self.tags, &other.tags);
        Joined::Yes
    }
}

/// Rows that are the same, in canonical order, as far as they are in no group yet.
pub(super) struct Joining<T> {
    rows: Vec<Option<(T, Bounds)>>,
    /// All rows before this place are in a group.
    from: usize,
    /// The places of the rows by their ends.
    ends: BTreeMap<EndOf, BTreeSet<usize>>,
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
        let mut all = Joining { rows: Vec::new(), from: 0, ends: BTreeMap::new(), writers: HashMap::new() };
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
                let at = all.rows.len();
                all.ends.entry(end_of(&end)).or_default().insert(at);
                if let Some(writer) = end.writer() {
                    all.writers.entry(writer.clone()).or_default().insert(at);
                }
                all.rows.push(Some((member, Bounds { end, tags })));
            }
        }
        Ok(Some(all))
    }

    /// The first row that is left, and all that can go into it.
    pub(super) fn next_group(&mut self) -> Option<Vec<T>> {
        while self.rows.get(self.from)?.is_none() {
            self.from += 1;
        }
        let (row, mut bounds) = self.take(self.from)?;
        let (mut group, mut misfits) = (vec![row], 0);
        loop {
            let before = group.len();
            for at in self.candidates(&bounds.end) {
                let Some((_, other)) = self.rows.get(at).and_then(Option::as_ref) else { continue };
                match bounds.join(other) {
                    Joined::Yes => group.extend(self.take(at).map(|(row, _)| row)),
                    Joined::OtherEnd => {}
                    Joined::ManyTags => misfits += 1,
                }
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

    fn take(&mut self, at: usize) -> Option<(T, Bounds)> {
        let (row, bounds) = self.rows.get_mut(at)?.take()?;
        let key = end_of(&bounds.end);
        if let Some(places) = self.ends.get_mut(&key) {
            places.remove(&at);
            if places.is_empty() {
                self.ends.remove(&key);
            }
        }
        if let Some(places) = bounds.end.writer().and_then(|writer| self.writers.get_mut(writer)) {
            places.remove(&at);
        }
        Some((row, bounds))
    }
}

fn end_of(end: &End) -> EndOf {
    let life = end.life();
    (life.is_promised_end(), (life.end.is_none(), life.end))
}
