//! Writes derived rows again: rows that the truth requires are restored where they are missing, and rows that it does
//! not require are removed.
//!
//! A change writes the difference between the derived rows before and after it. So nothing else would ever restore a
//! lost row. Codes, graphs, documents and postings have rebuilds of their own, and counters are counted again. The
//! list of what a run can take back follows from no other row, so a lost row of it stays lost.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Result, sound};
use crate::ledger::derived::{Declared, IndexRow, index_rows};
use crate::ledger::{Context, Ledger};
use crate::model::{JournalRow, MemoryId, RuleId, RunId, Tombstone};
use crate::store::keys::{self, Parts};
use crate::store::{
    Id, Junction, JunctionRow, MessageRows, NsId, PartId, Read, Rows, Table, Traces, Walk, bad_key,
    holder_keys, junction_row, last_id,
};

/// What is done with the rows of a table.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The rows that follow from a row are restored where they are missing.
    Complete,
    /// A row that nothing requires is removed.
    Prune,
}

/// The steps in their order: names come before the rows that are joined to them, and joined rows before names to which
/// nothing is joined.
const STEPS: [(Step, Table); 33] = [
    (Step::Complete, Table::Partition),
    (Step::Complete, Table::PartitionName),
    (Step::Complete, Table::Term),
    (Step::Complete, Table::TermName),
    (Step::Complete, Table::Vitals),
    (Step::Complete, Table::Holder),
    (Step::Complete, Table::Junction),
    (Step::Complete, Table::Journal),
    (Step::Complete, Table::Tombstone),
    (Step::Complete, Table::Limbo),
    (Step::Complete, Table::Event),
    (Step::Complete, Table::Family),
    (Step::Prune, Table::Junction),
    (Step::Prune, Table::JunctionBack),
    (Step::Prune, Table::Term),
    (Step::Prune, Table::HolderKey),
    (Step::Prune, Table::HolderTag),
    (Step::Prune, Table::HolderRun),
    (Step::Prune, Table::Superseded),
    (Step::Prune, Table::ByTime),
    (Step::Prune, Table::ByFingerprint),
    (Step::Prune, Table::Due),
    (Step::Prune, Table::Pending),
    (Step::Prune, Table::Series),
    (Step::Prune, Table::MetaValue),
    (Step::Prune, Table::JournalSubject),
    (Step::Prune, Table::JournalRun),
    (Step::Prune, Table::TombstoneHash),
    (Step::Prune, Table::LimboTime),
    (Step::Prune, Table::EventTime),
    (Step::Prune, Table::EventOf),
    (Step::Prune, Table::FamilyKey),
    (Step::Prune, Table::FamilyBand),
];

/// How far the derived rows of a namespace have been written again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Afresh {
    /// The number of finished steps.
    done: usize,
    /// The last key that the present step has read.
    after: Option<Vec<u8>>,
    /// The number of rows that were restored or removed.
    changed: u64,
}

impl Ledger<'_, '_> {
    /// Continues with the derived rows of a namespace, by at least `most` rows if there are that many. Returns true
    /// when all rows are as the truth requires. If a row can't be read, the rows that follow from it are left as they
    /// are.
    pub(crate) fn derive_afresh(&mut self, context: &Context, at: &mut Afresh, most: usize) -> Result<bool> {
        let (ns, before) = (context.ns, at.changed);
        let mut left = most.max(1);
        while let Some((step, table)) = STEPS.get(at.done).copied().filter(|_| left > 0) {
            let keys = self.keys_after(table, ns, at.after.take(), left)?;
            left -= keys.len();
            for key in &keys {
                at.changed += match step {
                    Step::Complete => self.complete(ns, table, key)?,
                    Step::Prune => u64::from(self.prune(ns, table, key)?),
                };
            }
            match keys.into_iter().next_back().filter(|_| left == 0) {
                Some(last) => at.after = Some(last),
                None => at.done += 1,
            }
        }
        if at.changed > before {
            self.recount.insert(ns);
        }
        let whole = at.done == STEPS.len();
        if whole && at.changed > 0 {
            self.journal_derived(context, RuleId::REINDEX, format!("{} derived rows", at.changed))?;
        }
        Ok(whole)
    }

    fn keys_after(
        &self,
        table: Table,
        ns: NsId,
        after: Option<Vec<u8>>,
        most: usize,
    ) -> Result<Vec<Vec<u8>>> {
        let walk = after.iter().fold(Walk::prefix(&keys::ns(ns)), |walk, after| walk.after(after));
        let mut all = Vec::new();
        self.tx.walk(table, &walk, &mut |key, _| {
            all.push(key.to_vec());
            Ok(if all.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(all)
    }

    fn has(&self, table: Table, key: &[u8]) -> Result<bool> {
        self.tx.look(table, key, &mut |_| Ok(()))
    }

    /// Writes a row that consists of its key only, if it is missing.
    fn ensure(&mut self, table: Table, key: &[u8]) -> Result<u64> {
        if self.has(table, key)? {
            return Ok(0);
        }
        self.tx.put(table, key, &[]).map(|()| 1)
    }

    fn ensure_all(&mut self, rows: impl IntoIterator<Item = (Table, keys::Key)>) -> Result<u64> {
        let mut put = 0;
        for (table, key) in rows {
            put += self.ensure(table, &key)?;
        }
        Ok(put)
    }

    /// Writes the rows that follow from a row, if they are missing. Returns their number.
    fn complete(&mut self, ns: NsId, table: Table, key: &[u8]) -> Result<u64> {
        match table {
            Table::Partition | Table::PartitionName => self.complete_partition(ns, table, key),
            Table::Term | Table::TermName => self.complete_term(ns, table, key),
            Table::Vitals => self.complete_memory(ns, last_id(table, key)?),
            Table::Holder => self.complete_holder(ns, key),
            Table::Junction => {
                let (id, row) = junction_at(table, key)?;
                let back = keys::junction_back(ns, row.sort, &row.target, id, &row.role);
                self.ensure(Table::JunctionBack, &back)
            }
            Table::Journal => {
                let seq = seq_of(table, key)?;
                let Some(row) = sound(self.tx.journal_row(ns, seq))?.flatten() else { return Ok(0) };
                let subjects = row.found_by().map(|(id, holder)| keys::journal_subject(ns, *id, holder, seq));
                self.ensure_all(subjects.map(|key| (Table::JournalSubject, key)))
            }
            Table::Tombstone => {
                let id = last_id(table, key)?;
                let Some(stone) = sound(self.tx.tombstone(ns, id))?.flatten() else { return Ok(0) };
                let hashes = stone.key_hashes.iter().chain([&stone.content_hash]);
                self.ensure_all(hashes.map(|hash| (Table::TombstoneHash, keys::tombstone_hash(ns, hash, id))))
            }
            Table::Limbo => {
                let id = last_id(table, key)?;
                let vitals = sound(self.tx.vitals(ns, id))?.flatten();
                let Some(at) = vitals.and_then(|vitals| vitals.times.removed_at) else { return Ok(0) };
                self.ensure(Table::LimboTime, &keys::by_instant(ns, at, id.as_bytes()))
            }
            Table::Event | Table::Family => {
                let places = self.message_places(ns, table, last_id(table, key)?.as_bytes())?;
                self.ensure_all(places.unwrap_or_default())
            }
            _ => Ok(0),
        }
    }

    fn complete_partition(&mut self, ns: NsId, table: Table, key: &[u8]) -> Result<u64> {
        let rest = key.get(4..).unwrap_or_default();
        let named = match table {
            Table::Partition => match std::str::from_utf8(rest) {
                Ok(name) => self.tx.partition(ns, name)?.map(|part| (name.to_owned(), part)),
                Err(_) => None,
            },
            _ => match Parts(rest).u32().map(PartId) {
                Some(part) => self.tx.partition_name(ns, part)?.map(|name| (name, part)),
                None => None,
            },
        };
        let Some((name, part)) = named else { return Ok(0) };
        let both = self.has(Table::Partition, &keys::partition(ns, &name))?
            && self.has(Table::PartitionName, &keys::ns_part(ns, part))?;
        if both {
            return Ok(0);
        }
        self.tx.put_partition(ns, &name, part).map(|()| 1)
    }

    fn complete_term(&mut self, ns: NsId, table: Table, key: &[u8]) -> Result<u64> {
        let mut parts = Parts(key);
        let sort = parts.u32().and(parts.take::<1>()).and_then(|[code]| Junction::from_code(code));
        let Some(sort) = sort else { return Ok(0) };
        let named = match table {
            Table::Term => match parts.rest() {
                Some(name) => self.tx.term(ns, sort, name)?.map(|term| (name.to_owned(), term)),
                None => None,
            },
            _ => match parts.u32() {
                Some(term) => self.tx.term_name(ns, sort, term)?.map(|name| (name, term)),
                None => None,
            },
        };
        let Some((name, term)) = named else { return Ok(0) };
        let both = self.has(Table::Term, &keys::term(ns, sort, &name))?
            && self.has(Table::TermName, &keys::term_name(ns, sort, term))?;
        if both {
            return Ok(0);
        }
        self.tx.put_term(ns, sort, &name, term).map(|()| 1)
    }

    fn complete_memory(&mut self, ns: NsId, id: MemoryId) -> Result<u64> {
        let Some(vitals) = sound(self.tx.vitals(ns, id))?.flatten() else { return Ok(0) };
        let content = sound(self.tx.content(ns, id))?.flatten();
        let rows = index_rows(&vitals, content.as_ref(), &self.declared(ns)?);
        self.ensure_all(rows.iter().map(|row| row.place(ns, id)))
    }

    fn complete_holder(&mut self, ns: NsId, key: &[u8]) -> Result<u64> {
        let mut parts = Parts(key);
        let place = parts.u32().and(parts.id()).zip(parts.u32());
        let (id, number) = place.ok_or_else(|| bad_key(Table::Holder, key))?;
        let Some(mut holder) = sound(self.tx.holder(ns, id, number))?.flatten() else { return Ok(0) };
        let mut put = self.ensure_all(holder_keys(ns, id, &holder))?;
        // A row in limbo is joined to nothing.
        let vitals = sound(self.tx.vitals(ns, id))?.flatten();
        if vitals.is_some_and(|vitals| vitals.times.removed_at.is_none()) {
            let mut links = Vec::with_capacity(holder.links.len());
            for link in std::mem::take(&mut holder.links) {
                // Both ends of a link must exist.
                match self.tx.has_row(ns, link.to)? {
                    true => links.push(link),
                    false => put += 1,
                }
            }
            holder.links = links;
            if put > 0 {
                self.tx.put_holder(ns, id, &holder)?;
            }
            for row in self.junctions_of(ns, &holder)? {
                put +=
                    self.ensure(Table::Junction, &keys::junction(ns, id, row.sort, &row.target, &row.role))?;
            }
        }
        Ok(put)
    }

    /// The rows by which an event or a family is found; none if it can't be read.
    fn message_places(
        &self,
        ns: NsId,
        table: Table,
        id: &Id,
    ) -> Result<Option<BTreeSet<(Table, keys::Key)>>> {
        Ok(match table {
            Table::Event | Table::EventTime | Table::EventOf => {
                let row = sound(self.tx.event(ns, id))?;
                row.map(|row| row.map(|row| row.keys(ns, id)).unwrap_or_default())
            }
            _ => {
                let row = sound(self.tx.family(ns, id))?;
                row.map(|row| row.map(|row| row.keys(ns, id)).unwrap_or_default())
            }
        })
    }

    /// Removes a derived row that nothing requires. Returns whether it did.
    fn prune(&mut self, ns: NsId, table: Table, key: &[u8]) -> Result<bool> {
        let asked = match table {
            Table::Junction => return self.prune_junction(ns, key),
            Table::Term => return self.prune_term(ns, key),
            Table::JunctionBack => {
                let (id, row) = junction_at(table, key)?;
                let there = keys::junction(ns, id, row.sort, &row.target, &row.role);
                if row.sort == Junction::Source && self.is_joinable(ns, id)? {
                    return Ok(self.ensure(Table::Junction, &there)? > 0);
                }
                self.has(Table::Junction, &there)?
            }
            Table::HolderKey | Table::HolderTag | Table::HolderRun => {
                let end = key.len().checked_sub(20).and_then(|at| key.get(at..)).unwrap_or_default();
                let mut end = Parts(end);
                let (id, number) = end.id().zip(end.u32()).ok_or_else(|| bad_key(table, key))?;
                let asks = |row: (Table, keys::Key)| row.0 == table && *row.1 == *key;
                match sound(self.tx.holder(ns, id, number))? {
                    Some(Some(holder)) => holder_keys(ns, id, &holder).into_iter().any(asks),
                    Some(None) => false,
                    None => true,
                }
            }
            Table::JournalSubject => {
                let mut parts = Parts(key);
                let place = parts.u32().and(parts.id()).zip(parts.u32()).zip(parts.u64());
                let ((id, holder), seq) = place.ok_or_else(|| bad_key(table, key))?;
                let holder = Some(holder).filter(|number| *number != u32::MAX);
                let row = sound(self.tx.journal_row(ns, seq))?;
                row.is_none_or(|row| row.is_some_and(|row| row.found_by().any(|by| by == (&id, holder))))
            }
            Table::JournalRun => {
                let mut parts = Parts(key);
                let run = parts.u32().and(parts.take::<16>()).map(RunId::from_bytes);
                let of_run = |row: JournalRow| row.run == run && row.can_be_undone();
                let row = sound(self.tx.journal_row(ns, seq_of(table, key)?))?;
                row.is_none_or(|row| row.is_some_and(of_run))
            }
            Table::TombstoneHash => {
                let mut parts = Parts(key);
                let place = parts.u32().and(parts.take::<32>()).zip(parts.id());
                let (hash, id) = place.ok_or_else(|| bad_key(table, key))?;
                let stone = sound(self.tx.tombstone(ns, id))?;
                let has = |stone: Tombstone| stone.content_hash == hash || stone.key_hashes.contains(&hash);
                stone.is_none_or(|stone| stone.is_some_and(has))
            }
            Table::LimboTime => {
                let mut parts = Parts(key);
                let place = parts.u32().and(parts.time()).zip(parts.id());
                let (at, id) = place.ok_or_else(|| bad_key(table, key))?;
                let vitals = sound(self.tx.vitals(ns, id))?;
                vitals.is_none_or(|row| row.is_some_and(|row| row.times.removed_at == Some(at)))
            }
            Table::EventTime | Table::EventOf | Table::FamilyKey | Table::FamilyBand => {
                let places = self.message_places(ns, table, last_id(table, key)?.as_bytes())?;
                let asks = |(of, place): &(Table, keys::Key)| *of == table && **place == *key;
                places.is_none_or(|places| places.iter().any(asks))
            }
            _ => self.asks_for_index_row(table, key)?,
        };
        if asked {
            return Ok(false);
        }
        self.tx.delete(table, key)
    }

    /// Whether a memory exists and is not in limbo, so that the memories from which it was made are joined to
    /// it.
    fn is_joinable(&self, ns: NsId, id: MemoryId) -> Result<bool> {
        let vitals = sound(self.tx.vitals(ns, id))?;
        Ok(vitals.is_none_or(|row| row.is_some_and(|row| row.times.removed_at.is_none())))
    }

    fn asks_for_index_row(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        let (ns, id, row) = IndexRow::at(table, key).ok_or_else(|| bad_key(table, key))?;
        let vitals = match sound(self.tx.vitals(ns, id))? {
            Some(Some(vitals)) => vitals,
            Some(None) => return Ok(false),
            None => return Ok(true),
        };
        let content = sound(self.tx.content(ns, id))?;
        if content.is_none() && matches!(row, IndexRow::Series(..) | IndexRow::Meta(..)) {
            return Ok(true);
        }
        let declared: Arc<Declared> = self.declared(ns)?;
        Ok(index_rows(&vitals, content.flatten().as_ref(), &declared).contains(&row))
    }

    /// Removes a junction of a memory if none of its holders brings the junction, or if the memory does not
    /// exist.
    fn prune_junction(&mut self, ns: NsId, key: &[u8]) -> Result<bool> {
        let (id, row) = junction_at(Table::Junction, key)?;
        let mut asked = self.is_joinable(ns, id)?;
        if asked && row.sort != Junction::Source {
            let mut brought = false;
            for number in self.tx.holder_numbers(ns, id)? {
                brought |= match sound(self.tx.holder(ns, id, number))? {
                    Some(Some(holder)) => self.junctions_of(ns, &holder)?.contains(&row),
                    Some(None) => false,
                    None => true,
                };
            }
            asked = brought;
        }
        if asked {
            return Ok(false);
        }
        self.unjoin(ns, id, &row).map(|()| true)
    }

    /// Removes a name to which nothing is joined.
    fn prune_term(&mut self, ns: NsId, key: &[u8]) -> Result<bool> {
        let mut parts = Parts(key);
        let sort = parts.u32().and(parts.take::<1>()).and_then(|[code]| Junction::from_code(code));
        let Some((sort, name)) = sort.zip(parts.rest()) else { return Ok(false) };
        let Some(term) = self.tx.term(ns, sort, name)? else { return Ok(false) };
        if self.tx.is_joined_to(ns, sort, &term.to_be_bytes())? {
            return Ok(false);
        }
        self.tx.delete_term(ns, sort, term).map(|()| true)
    }
}

/// The memory and the row of a key of `junction` or `junction_back`.
fn junction_at(table: Table, key: &[u8]) -> Result<(MemoryId, JunctionRow)> {
    let mut parts = Parts(key);
    let found = parts.u32().and_then(|_| match table {
        Table::Junction => parts.id().zip(junction_row(&mut parts, true).map(|(row, _)| row)),
        _ => junction_row(&mut parts, false).and_then(|(row, id)| id.zip(Some(row))),
    });
    found.ok_or_else(|| bad_key(table, key))
}

/// The number of a journal row at the end of a key.
fn seq_of(table: Table, key: &[u8]) -> Result<u64> {
    key.last_chunk().map(|seq| u64::from_be_bytes(*seq)).ok_or_else(|| bad_key(table, key))
}
