//! Counters: changed in the transaction of the mutation, read in one look-up (MODEL-42).

use std::collections::BTreeMap;

use crate::error::Result;
use crate::store::control::CounterRow;
use crate::store::{NsId, PartId, Rows, WriteTx};

/// What a counter counts. The code stands in its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Sort {
    /// Visible rows.
    Live = 1,
    /// Visible rows of a kind.
    Kind = 2,
    /// Visible rows of a tier.
    Tier = 3,
    /// Visible rows with a tag.
    Tag = 4,
    /// Visible rows with a scope label.
    Label = 5,
    /// Rows that are superseded and no longer visible.
    Superseded = 6,
    /// Rows that are expired and not yet purged.
    Expired = 7,
    /// Rows that are not yet valid.
    Ahead = 8,
    /// Rows whose world time is over.
    Past = 9,
    /// Tombstones.
    Tombstones = 10,
    /// Holders.
    Holders = 11,
    /// Rows with a vector.
    Vectors = 12,
    /// Rows that wait for one.
    Pending = 13,
    /// Current rows beyond the first with an equal fingerprint, by partition and tier.
    Duplicates = 14,
}

impl Sort {
    /// Every sort.
    pub(crate) const ALL: [Sort; 14] = [
        Sort::Live,
        Sort::Kind,
        Sort::Tier,
        Sort::Tag,
        Sort::Label,
        Sort::Superseded,
        Sort::Expired,
        Sort::Ahead,
        Sort::Past,
        Sort::Tombstones,
        Sort::Holders,
        Sort::Vectors,
        Sort::Pending,
        Sort::Duplicates,
    ];

    /// The sort with a code from disk.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Sort::ALL.into_iter().find(|sort| *sort as u8 == code)
    }
}

/// The partition under which the totals of a namespace stand.
pub(crate) const TOTAL: PartId = PartId(u32::MAX);

/// The changes of a transaction, written at its end: a batch writes each counter once.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    deltas: BTreeMap<(NsId, PartId, Sort), BTreeMap<String, CounterRow>>,
}

impl Counters {
    /// Adds to the counter of a partition and to that of its namespace.
    pub(crate) fn add(&mut self, ns: NsId, part: PartId, sort: Sort, name: &str, rows: i64, bytes: i64) {
        for part in [part, TOTAL] {
            let names = self.deltas.entry((ns, part, sort)).or_default();
            match names.get_mut(name) {
                Some(delta) => {
                    delta.rows += rows;
                    delta.bytes += bytes;
                }
                None => {
                    names.insert(name.to_owned(), CounterRow { rows, bytes });
                }
            }
        }
    }

    /// Forgets what was to be added in a namespace that is being dropped.
    pub(crate) fn forget(&mut self, ns: NsId) {
        self.deltas.retain(|(of, _, _), _| *of != ns);
    }

    /// Adds the deltas to the rows.
    pub(crate) fn write(self, tx: &mut WriteTx<'_>) -> Result<()> {
        for ((ns, part, sort), names) in self.deltas {
            for (name, delta) in names {
                if delta == CounterRow::default() {
                    continue;
                }
                let old = tx.counter(ns, part, sort as u8, &name)?;
                let new = CounterRow { rows: old.rows + delta.rows, bytes: old.bytes + delta.bytes };
                debug_assert!(new.rows >= 0, "counter {sort:?} {name:?} fell below 0");
                tx.put_counter(ns, part, sort as u8, &name, new)?;
            }
        }
        Ok(())
    }
}
