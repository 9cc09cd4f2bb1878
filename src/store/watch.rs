//! What a transaction watches of one memory, so that what was read of it can be used again as long as nothing changes.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::MemoryId;
use crate::store::keys;
use crate::store::part::NsId;
use crate::store::tables::Table;

/// The holders of one memory, and the vitals of some others.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    of: Option<(NsId, MemoryId)>,
    /// What the keys of its holders begin with.
    holders: Vec<u8>,
    /// The memories whose vitals are watched, by the keys of these.
    vitals: BTreeMap<Vec<u8>, MemoryId>,
    /// Those of them whose vitals have changed.
    stale: BTreeSet<MemoryId>,
    changes: u64,
}

impl Watch {
    /// Watches the holders of a memory, and the vitals of these, in place of what was watched before.
    pub(crate) fn begin(&mut self, ns: NsId, id: MemoryId, vitals: impl IntoIterator<Item = MemoryId>) {
        let key = |id| keys::memory(ns, id).to_vec();
        self.of = Some((ns, id));
        self.holders = key(id);
        self.vitals = vitals.into_iter().map(|id| (key(id), id)).collect();
        self.stale.clear();
        self.changes += 1;
    }

    /// The number of changes of the holders so far, if this memory is watched. As long as the number is the same, no holder
    /// has changed.
    pub(crate) fn changes(&self, ns: NsId, id: MemoryId) -> Option<u64> {
        (self.of == Some((ns, id))).then_some(self.changes)
    }

    /// The memories of which the watched vitals have changed since this was asked last.
    pub(crate) fn stale(&mut self) -> BTreeSet<MemoryId> {
        std::mem::take(&mut self.stale)
    }

    /// Takes note of a change of a row.
    pub(super) fn note(&mut self, table: Table, key: &[u8]) {
        match table {
            Table::Holder if self.of.is_some() && key.starts_with(&self.holders) => self.changes += 1,
            Table::Vitals => self.stale.extend(self.vitals.get(key)),
            _ => {}
        }
    }

    /// Takes note of a change of many rows.
    pub(super) fn note_all(&mut self) {
        self.changes += 1;
    }
}
