//! The holders of a row with the ranks of the rows from which they came.

use crate::model::order::{Rank, canonical};
use crate::model::{Holder, MemoryId, Significance, Vitals};
use crate::store::NsId;

/// A holder, and the rank of the row from which it came; none if that row is gone or damaged.
#[derive(Debug)]
pub(super) struct Ranked {
    pub(super) holder: Holder,
    pub(super) rank: Option<Rank>,
}

/// The holders of a row, in the order of their numbers.
#[derive(Debug)]
pub(super) struct Writers {
    pub(super) id: MemoryId,
    pub(super) all: Vec<Ranked>,
}

/// Writers that were read before, and the number of changes after which they are what the row has.
#[derive(Debug)]
pub(super) struct KeptWriters {
    pub(super) ns: NsId,
    pub(super) changes: u64,
    pub(super) writers: Writers,
}

impl Writers {
    /// Of those of these that are wanted, the one that comes first by the order of the rows from which they came.
    pub(super) fn first(&self, row: &Vitals, is_wanted: impl Fn(&Holder) -> bool) -> Option<&Holder> {
        let wanted = self.all.iter().filter(|one| is_wanted(&one.holder));
        let first = wanted.map(|one| (one.rank_in(self.id, row), &one.holder));
        first.min_by(|a, b| canonical(&a.0, &b.0)).map(|(_, holder)| holder)
    }

    /// The holders.
    pub(super) fn holders(&self) -> impl Iterator<Item = &Holder> {
        self.all.iter().map(|one| &one.holder)
    }
}

impl KeptWriters {
    /// Whether these are the writers of a row after so many changes.
    pub(super) fn are_of(&self, ns: NsId, id: MemoryId, changes: Option<u64>) -> bool {
        (self.ns, self.writers.id, Some(self.changes)) == (ns, id, changes)
    }
}

impl Ranked {
    /// If the row from which the holder came is gone or damaged, the rank comes from what the holder still says of it.
    fn rank_in(&self, id: MemoryId, row: &Vitals) -> Rank {
        self.rank.unwrap_or(Rank {
            significance: Significance::default(),
            reinforcement_count: self.holder.share.max(1),
            created_at: row.created_at,
            id: self.holder.from.unwrap_or(id),
        })
    }
}
