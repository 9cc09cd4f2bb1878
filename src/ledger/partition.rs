//! Empty partitions: their rows are removed, and the names of their agents with them.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::ledger::writer::{Ledger, truth};
use crate::store::control::CounterSort as Sort;
use crate::store::{IndexId, MessageRows, NsId, PartId, Rows, TextId};

/// The counters that count each memory of a partition, those in limbo too, and everything that messages left
/// there.
const IN_USE: [Sort; 5] = [Sort::Vectors, Sort::Pending, Sort::Limbo, Sort::Events, Sort::Aggregates];

/// The agents of a namespace whose partitions are empty, by what the counters say.
pub(crate) fn seem_vacant(rows: &impl Rows, ns: NsId) -> Result<BTreeMap<PartId, String>> {
    let mut vacant = BTreeMap::new();
    'next: for (agent, part) in rows.partitions(ns)? {
        for sort in IN_USE {
            if rows.counter(ns, part, sort as u8, "")?.rows != 0 {
                continue 'next;
            }
        }
        vacant.insert(part, agent);
    }
    Ok(vacant)
}

impl Ledger<'_, '_> {
    /// Removes the partitions of a namespace that have neither a memory in any state nor an event. Their tombstones,
    /// which name no partition, count among those of the shared partition from now on. Returns the removed indexes,
    /// whose images are no longer valid.
    ///
    /// # Errors
    /// `Corrupted` if an unreadable row may lie in one of the partitions.
    pub(crate) fn drop_vacant(&mut self, ns: NsId) -> Result<Vec<IndexId>> {
        let mut vacant = seem_vacant(&*self.tx, ns)?;
        if vacant.is_empty() {
            return Ok(Vec::new());
        }
        // A wrong counter must not cost a memory its partition.
        for part in self.tx.parts_in_use(ns)? {
            vacant.remove(&part);
        }
        let mut gone: Vec<IndexId> =
            self.tx.slot_heads(Some(ns))?.into_iter().map(|(index, _)| index).collect();
        gone.retain(|index| vacant.contains_key(&index.part));
        for (part, agent) in vacant {
            let stones = self.tx.counter(ns, part, Sort::Tombstones as u8, "")?.rows;
            self.counters.add(ns, part, Sort::Tombstones, "", -stones, 0);
            self.counters.add(ns, PartId(0), Sort::Tombstones, "", stones, 0);
            truth(self.tx).delete_partition(ns, part, &agent)?;
            gone.push(TextId { ns, part }.index());
        }
        Ok(gone)
    }

    /// Takes at most `most` rows of a namespace away that is hidden, whatever they are, and says how many.
    pub(crate) fn drop_rows(&mut self, ns: NsId, most: usize) -> Result<usize> {
        truth(self.tx).delete_rows_of(ns, most)
    }
}
