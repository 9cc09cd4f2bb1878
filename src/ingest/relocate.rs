//! Memories of another namespace, brought to the namespace of the writer.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::ingest::NamespaceWriter;
use crate::ledger::{Change, Gaps, LostKeys, Relocation, Trail};
use crate::model::{MemoryId, Partition, RuleId};
use crate::store::control::NamespaceRow;
use crate::store::{NsId, PartId, Rows};

/// The largest number of keys that a refusal names.
const KEYS_NAMED: usize = 10;

/// What bringing memories came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Brought {
    /// References that lead across the border of the namespace now.
    pub(crate) edges: u64,
    /// Keys that the memories lost, because current memories of the namespace hold them.
    pub(crate) lost: BTreeSet<String>,
}

impl NamespaceWriter<'_, '_, '_> {
    /// Brings memories of another namespace, which has the row `of`, as they are there, in any state. They stay there too: the
    /// caller takes them away when all have been brought. With `is_all` they are all memories of that namespace, and its
    /// tombstones, its journal and its messages come along.
    ///
    /// # Errors
    /// `Conflict` where a current memory holds a key of theirs, unless they may lose it, and for an id that is or was used
    /// here; `Corrupted` for a memory that can't be read as a whole.
    pub(crate) fn bring(
        &mut self,
        of: &NamespaceRow,
        ids: &[MemoryId],
        may_lose_keys: bool,
        is_all: bool,
    ) -> Result<Brought> {
        let from = NsId(of.number);
        let lost = self.keys_held_here(from, ids)?;
        if !lost.is_empty() && !may_lose_keys {
            return Err(self.keys_clash(&lost));
        }
        let parts = self.partitions_for(from, ids, is_all)?;
        let set: BTreeSet<MemoryId> = ids.iter().copied().collect();
        let comes = |id| set.contains(&id);
        let (lost, mut edges) = (LostKeys::new(lost, self.ledger.secret), 0);
        let gaps = Gaps::of(&*self.ledger.tx, from)?;
        let way = Relocation { from, parts: &parts, lost: &lost, comes: &comes, is_all, gaps: &gaps };
        for id in ids {
            let (row, cut) = self.ledger.to_relocate(&way, *id)?;
            let trail = Trail::of(&row);
            self.ledger.welcome(self.ns(), *id)?;
            self.apply(RuleId::RELOCATE, Change::Recreate(Box::new(row)))?;
            self.ledger.bring_along(&self.context, &way, *id, trail)?;
            edges += cut;
        }
        if is_all {
            self.ledger.bring_rest(&self.context, &way)?;
        }
        self.raise_horizons(of)?;
        Ok(Brought { edges, lost: lost.into_keys() })
    }

    /// The keys of current memories among these that current memories of this namespace hold.
    fn keys_held_here(&self, from: NsId, ids: &[MemoryId]) -> Result<BTreeSet<String>> {
        let mut held = BTreeSet::new();
        if !self.ledger.tx.has_keys(from)? {
            return Ok(held);
        }
        for id in ids {
            let Some(vitals) = self.ledger.tx.vitals(from, *id)? else { continue };
            if !vitals.times.is_current(self.now()) {
                continue;
            }
            for key in self.ledger.tx.holders(from, *id)?.into_iter().filter_map(|holder| holder.key) {
                if self.current_holder(&key)?.is_some() {
                    held.insert(key);
                }
            }
        }
        Ok(held)
    }

    fn keys_clash(&self, keys: &BTreeSet<String>) -> Error {
        let named: Vec<&str> = keys.iter().take(KEYS_NAMED).map(String::as_str).collect();
        let more = keys.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Error::Conflict {
            what: format!("keys {}{more}", named.join(", ")),
            why: format!(
                "current memories of {} hold them: rename them, or let the memories that come lose them",
                self.namespace
            ),
        }
    }

    /// For each partition in which one of the memories lies, or for all, the partition of the same name here.
    fn partitions_for(
        &mut self,
        from: NsId,
        ids: &[MemoryId],
        is_all: bool,
    ) -> Result<BTreeMap<PartId, PartId>> {
        let (agents, mut used) = (self.ledger.tx.partitions(from)?, BTreeSet::new());
        // Only where there are agents, and some of their partitions may stay, is it asked where a memory lies.
        if !agents.is_empty() && !is_all {
            for id in ids {
                used.extend(self.ledger.tx.vitals(from, *id)?.map(|vitals| PartId(vitals.place.partition)));
            }
        }
        let mut parts = BTreeMap::new();
        for (agent, part) in agents {
            if is_all || used.contains(&part) {
                parts.insert(part, self.open_partition(&Partition::agent(&agent)?)?);
            }
        }
        Ok(parts)
    }

    /// What was erased in the other namespace is missing here too, in a look at the past.
    fn raise_horizons(&mut self, other: &NamespaceRow) -> Result<()> {
        let name = self.namespace.as_str();
        let Some(mut row) = self.ledger.tx.namespace(name)? else { return Ok(()) };
        row.horizon_known_ms = row.horizon_known_ms.max(other.horizon_known_ms);
        row.horizon_valid_ms = row.horizon_valid_ms.max(other.horizon_valid_ms);
        self.ledger.tx.put_namespace(name, &row)
    }
}
