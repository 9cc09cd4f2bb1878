//! The other versions of memories that are forgotten by name: what such a forget leaves, and tells of.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Result, sound};
use crate::ingest::NamespaceWriter;
use crate::model::{Forgotten, MemoryId, SupersedeMode, TombstoneReason};
use crate::store::Rows;

/// The versions of all memories that one call forgets. Each chain is walked once, however many ids of it are given: where a
/// walk comes to a row that an earlier walk has seen, that walk has seen what lies behind as well.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// Keys whose rows are among the earlier versions.
    keys: BTreeSet<String>,
    /// The memories themselves, their earlier versions, and the other rows to which one of their keys leads.
    earlier: BTreeSet<MemoryId>,
    /// The memories themselves and what took their place, each with whether it is to come at an instant ahead.
    later: BTreeMap<MemoryId, bool>,
    /// The same of what is forgotten by key.
    led: BTreeMap<MemoryId, bool>,
    /// The rows in which one of these keys has said the text itself: a forget by key takes them, or says for whom they stay.
    said: BTreeSet<MemoryId>,
}

impl Versions {
    /// Whether one of the memories has or had this key.
    pub(super) fn has_key(&self, key: &str) -> bool {
        self.keys.contains(key)
    }
}

impl NamespaceWriter<'_, '_, '_> {
    /// Adds the versions of a memory that is there. Returns those that no memory before has added, without the memory.
    pub(super) fn add_versions_of(
        &self,
        id: MemoryId,
        versions: &mut Versions,
    ) -> Result<BTreeSet<MemoryId>> {
        let mut new = self.earlier_than(id, versions)?;
        new.append(&mut self.later_than(id, &mut versions.later)?);
        new.remove(&id);
        Ok(new)
    }

    /// Adds what took the place of what a key has said in these rows, or is to take it. It is told, and stays: others have said it.
    pub(super) fn add_led_from(&self, rows: &[(MemoryId, u32)], versions: &mut Versions) -> Result<()> {
        for (id, number) in rows {
            // Of what can't be read nobody says that it only follows.
            let holder = sound(self.ledger.tx.holder(self.ns(), *id, *number))?.flatten();
            if !holder.is_some_and(|holder| holder.follows) {
                versions.said.insert(*id);
                self.later_than(*id, &mut versions.led)?;
            }
        }
        Ok(())
    }

    /// The earlier versions of a row, and the other rows to which one of its keys leads. A row into which a pass or a caller has merged
    /// what the key said is none: others have written it, and the copy of the key goes with what it is a copy of.
    fn earlier_than(&self, id: MemoryId, versions: &mut Versions) -> Result<BTreeSet<MemoryId>> {
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        let (mut open, mut new) = (vec![id], BTreeSet::new());
        for key in self.ledger.readable_holders(ns, id)?.into_iter().filter_map(|holder| holder.key) {
            if !versions.keys.contains(&key) {
                for (row, number) in tx.holders_of_key(ns, &key)? {
                    let holder = sound(tx.holder(ns, row, number))?.flatten();
                    let is_copy = self.was_merged(holder.and_then(|holder| holder.from))?;
                    open.extend((!is_copy).then_some(row));
                }
                versions.keys.insert(key);
            }
        }
        while let Some(next) = open.pop() {
            if !versions.earlier.insert(next) {
                continue;
            }
            new.insert(next);
            for old in tx.superseded_by(ns, next)? {
                let superseded = sound(tx.vitals(ns, old))?.flatten().and_then(|row| row.times.superseded);
                open.extend(superseded.map(|_| old));
            }
        }
        Ok(new)
    }

    /// What took the place of a row, and of what did so: a caller who kept the id of the first text may mean the present one.
    fn later_than(&self, id: MemoryId, later: &mut BTreeMap<MemoryId, bool>) -> Result<BTreeSet<MemoryId>> {
        let (mut new, mut at) = (BTreeSet::new(), Some(id));
        while let Some(id) = at.filter(|id| !later.contains_key(id)) {
            let row = sound(self.ledger.tx.vitals(self.ns(), id))?.flatten();
            let is_to_come = row.as_ref().is_some_and(|row| row.times.from() > self.now());
            later.insert(id, is_to_come);
            new.insert(id);
            // What a row was merged into is the memory of others, and an aggregate no version of the message that it counts.
            let replaced = row
                .and_then(|row| row.times.superseded)
                .filter(|by| matches!(by.mode, SupersedeMode::Replaced | SupersedeMode::Correction));
            at = replaced.map(|by| by.by);
        }
        Ok(new)
    }

    /// Whether a row, if one is given, was merged into another.
    fn was_merged(&self, id: Option<MemoryId>) -> Result<bool> {
        let Some(id) = id else { return Ok(false) };
        if let Some(row) = sound(self.ledger.tx.vitals(self.ns(), id))?.flatten() {
            return Ok(row.times.merged_into().is_some());
        }
        let stone = sound(self.ledger.tx.tombstone(self.ns(), id))?.flatten();
        Ok(stone.is_some_and(|stone| stone.reason == TombstoneReason::Collapsed))
    }

    /// Tells of the versions that are still there.
    pub(super) fn tell_versions(&self, versions: &Versions, answer: &mut Forgotten) -> Result<()> {
        let led = versions.led.iter().filter(|(id, _)| !versions.said.contains(*id));
        let later: BTreeMap<MemoryId, bool> =
            led.chain(&versions.later).map(|(id, is_to_come)| (*id, *is_to_come)).collect();
        let all: BTreeSet<MemoryId> = versions.earlier.iter().chain(later.keys()).copied().collect();
        for id in all {
            if !self.ledger.tx.has_row(self.ns(), id)? {
                continue;
            }
            answer.versions_left += 1;
            let told = match later.get(&id) {
                Some(false) => &mut answer.later,
                Some(true) => &mut answer.to_come,
                None => &mut answer.earlier,
            };
            told.push(id);
        }
        Ok(())
    }
}
