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
use crate::ledger::writer::{Context, Ledger, truth};
use crate::model::{JournalRow, MemoryId, RuleId, Tombstone};
use crate::store::keys;
use crate::store::{
    ContextRow, ContextRows, End, Id, Junction, JunctionRow, MessageRows, NsId, QueryRows, Read, Rows, Table,
    Walk, bad_key, holder_keys, last_id, last_id_and_number,
};

/// What is done with the rows of a table.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The rows that follow from a row are restored where they are missing.
    Complete,
    /// A row that nothing requires is removed.
    Prune,
}

/// A row of the journal that tells of more memories than this is read once for all of them.
const NAMED_MIN: usize = 16;

/// Tables from whose rows others follow: names before what is joined to them.
const COMPLETED: [Table; 14] = [
    Table::Partition,
    Table::PartitionName,
    Table::Term,
    Table::TermName,
    Table::Vitals,
    Table::Holder,
    Table::Junction,
    Table::Journal,
    Table::Tombstone,
    Table::Limbo,
    Table::Event,
    Table::Family,
    Table::Context,
    Table::Query,
];
/// Tables whose rows follow from others, beside those of [`IndexRow`]: what is joined before names that nothing is joined to.
const PRUNED: [Table; 18] = [
    Table::Junction,
    Table::JunctionBack,
    Table::Term,
    Table::HolderKey,
    Table::HolderTag,
    Table::HolderRun,
    Table::JournalSubject,
    Table::JournalRun,
    Table::TombstoneHash,
    Table::TombstoneTime,
    Table::LimboTime,
    Table::EventTime,
    Table::EventOf,
    Table::FamilyKey,
    Table::FamilyBand,
    Table::ContextTime,
    Table::ContextOf,
    Table::QueryOf,
];

/// The steps in their order.
fn steps() -> impl Iterator<Item = (Step, Table)> {
    let pruned = PRUNED.into_iter().chain(IndexRow::TABLES);
    COMPLETED.into_iter().map(|table| (Step::Complete, table)).chain(pruned.map(|table| (Step::Prune, table)))
}

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
        // A slice without rows would make no progress, and the work would never become whole.
        let mut left = most.max(1);
        while let Some((step, table)) = steps().nth(at.done).filter(|_| left > 0) {
            let keys = self.keys_after(table, ns, at.after.take(), left)?;
            left -= keys.len();
            for key in &keys {
                at.changed += match step {
                    Step::Complete => self.complete(ns, table, key)?,
                    Step::Prune => u64::from(self.prune(ns, table, key)?),
                };
            }
            match keys.into_iter().next_back().filter(|_| left == 0) {
                // The slice is full, so the table may go on behind its last key.
                Some(last) => at.after = Some(last),
                None => at.done += 1,
            }
        }
        // Rows that come and go here pass the counters by, so the counters of the namespace are counted again.
        if at.changed > before {
            self.recount.insert(ns);
        }
        let whole = at.done == steps().count();
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
        // The keys are collected first, because a step may write to the table that the walk reads.
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
        truth(self.tx).put(table, key, &[]).map(|()| 1)
    }

    fn ensure_all(&mut self, rows: impl IntoIterator<Item = (Table, keys::Key)>) -> Result<u64> {
        let mut put = 0;
        for (table, key) in rows {
            put += self.ensure(table, &key)?;
        }
        Ok(put)
    }

    /// Writes the rows that follow from a row, if they are missing. Returns their number.
    pub(super) fn complete(&mut self, ns: NsId, table: Table, key: &[u8]) -> Result<u64> {
        match table {
            Table::Partition | Table::PartitionName => self.complete_partition(ns, table, key),
            Table::Term | Table::TermName => self.complete_term(ns, table, key),
            Table::Vitals => self.complete_memory(ns, last_id(table, key)?),
            Table::Holder => self.complete_holder(ns, key),
            Table::Junction => {
                let keys::Junction { id, end, role, .. } = keys::Junction::read(table, key)?;
                if !self.may_be_joined(ns, end)? {
                    return Ok(0);
                }
                let back = keys::junction_back(ns, end, id, role.0);
                self.ensure(Table::JunctionBack, &back)
            }
            Table::Journal => {
                let keys::Journal { seq, .. } = keys::Journal::read(table, key)?;
                let Some(row) = sound(self.tx.journal_row(ns, seq))?.flatten() else { return Ok(0) };
                let subjects = row.found_by().map(|(id, holder)| keys::journal_subject(ns, *id, holder, seq));
                self.ensure_all(subjects.map(|key| (Table::JournalSubject, key)))
            }
            Table::Tombstone => {
                let id = last_id(table, key)?;
                let Some(stone) = sound(self.tx.tombstone(ns, id))?.flatten() else { return Ok(0) };
                let hashes = stone.key_hashes.iter().chain([&stone.content_hash]);
                let hashes = hashes.map(|hash| (Table::TombstoneHash, keys::tombstone_hash(ns, hash, id)));
                let by_time = (Table::TombstoneTime, keys::by_instant(ns, stone.deleted_at, id));
                self.ensure_all(hashes.chain([by_time]))
            }
            Table::Limbo => {
                let id = last_id(table, key)?;
                let vitals = sound(self.tx.vitals(ns, id))?.flatten();
                let Some(at) = vitals.and_then(|vitals| vitals.times.removed_at) else { return Ok(0) };
                self.ensure(Table::LimboTime, &keys::by_instant(ns, at, id))
            }
            Table::Event | Table::Family => {
                let places = self.message_places(ns, table, last_id(table, key)?.as_bytes())?;
                self.ensure_all(places.unwrap_or_default())
            }
            Table::Context => {
                let keys::Context { context, .. } = keys::Context::read(table, key)?;
                let row = sound(self.tx.context(ns, context.0))?.flatten();
                self.ensure_all(row.map(|row| row.keys(ns, context.0)).unwrap_or_default())
            }
            Table::Query => {
                let keys::Query { part, number, .. } = keys::Query::read(table, key)?;
                let row = sound(self.tx.query(ns, (part, number)))?.flatten();
                let places = row.map(|row| row.keys(ns, (part, number))).unwrap_or_default();
                self.ensure_all(places.into_iter().map(|key| (Table::QueryOf, key)))
            }
            _ => Ok(0),
        }
    }

    fn complete_partition(&mut self, ns: NsId, table: Table, key: &[u8]) -> Result<u64> {
        let named = if table == Table::Partition {
            let Some(keys::Partition { name, .. }) = keys::Partition::parse(key) else { return Ok(0) };
            self.tx.partition(ns, name.0)?.map(|part| (name.0.to_owned(), part))
        } else {
            let Some(keys::PartitionName { part, .. }) = keys::PartitionName::parse(key) else {
                return Ok(0);
            };
            self.tx.partition_name(ns, part)?.map(|name| (name, part))
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
        let named = if table == Table::Term {
            let Some(keys::Term { sort, name, .. }) = keys::Term::parse(key) else { return Ok(0) };
            self.tx.term(ns, sort, name.0)?.map(|term| (sort, name.0.to_owned(), term))
        } else {
            let Some(keys::TermName { sort, term, .. }) = keys::TermName::parse(key) else { return Ok(0) };
            self.tx.term_name(ns, sort, term)?.map(|name| (sort, name, term))
        };
        let Some((sort, name, term)) = named else { return Ok(0) };
        let both = self.has(Table::Term, &keys::term(ns, sort, &name))?
            && self.has(Table::TermName, &keys::term_name(ns, sort, term))?;
        if both {
            return Ok(0);
        }
        truth(self.tx).put_term(ns, sort, &name, term).map(|()| 1)
    }

    fn complete_memory(&mut self, ns: NsId, id: MemoryId) -> Result<u64> {
        let Some(mut vitals) = sound(self.tx.vitals(ns, id))?.flatten() else { return Ok(0) };
        let content = sound(self.tx.content(ns, id))?.flatten();
        let declared = self.declared(ns)?;
        let before = index_rows(&vitals, content.as_ref(), &declared);
        let usage = sound(self.tx.access(ns, id))?.map(|access| access.usage(vitals.tier));
        let Some(usage) = usage.filter(|usage| *usage != vitals.place.usage) else {
            return self.ensure_all(before.iter().map(|row| row.place(ns, id)));
        };
        vitals.place.usage = usage;
        truth(self.tx).put_vitals(ns, id, &vitals)?;
        let rows = index_rows(&vitals, content.as_ref(), &declared);
        for row in before.difference(&rows) {
            let (table, key) = row.place(ns, id);
            truth(self.tx).delete(table, &key)?;
        }
        Ok(1 + self.ensure_all(rows.iter().map(|row| row.place(ns, id)))?)
    }

    fn complete_holder(&mut self, ns: NsId, key: &[u8]) -> Result<u64> {
        let keys::Holder { id, number, .. } = keys::Holder::read(Table::Holder, key)?;
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
                truth(self.tx).put_holder(ns, id, &holder)?;
            }
            for row in self.junctions_for(ns, &holder)? {
                put += self.ensure(Table::Junction, &keys::junction(ns, id, row.end(), &row.role))?;
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

    /// Whether a tombstone is found by a row, or can't be read and may be.
    fn asks_of_tombstone(&self, ns: NsId, table: Table, key: &[u8]) -> Result<bool> {
        let fits = |id, fits: &dyn Fn(&Tombstone) -> bool| {
            let stone = sound(self.tx.tombstone(ns, id))?;
            Ok(stone.is_none_or(|stone| stone.is_some_and(|stone| fits(&stone))))
        };
        if table == Table::TombstoneTime {
            let keys::TombstoneTime { at, id, .. } = keys::TombstoneTime::read(table, key)?;
            return fits(id, &|stone| stone.deleted_at == at);
        }
        let keys::TombstoneHash { hash, id, .. } = keys::TombstoneHash::read(table, key)?;
        fits(id, &|stone| stone.content_hash == *hash || stone.key_hashes.contains(hash))
    }

    /// Removes a derived row that nothing requires. Returns whether it did.
    pub(super) fn prune(&mut self, ns: NsId, table: Table, key: &[u8]) -> Result<bool> {
        let asked = match table {
            Table::Junction => return self.prune_junction(ns, key),
            Table::Term => return self.prune_term(ns, key),
            Table::JunctionBack => {
                let keys::JunctionBack { end, id, role, .. } = keys::JunctionBack::read(table, key)?;
                let there = keys::junction(ns, id, end, role.0);
                // No holder names a source, so this row is all that is left of a junction that was lost.
                if end.0 == Junction::Source && self.is_joinable(ns, id)? && self.may_be_joined(ns, end)? {
                    return Ok(self.ensure(Table::Junction, &there)? > 0);
                }
                self.has(Table::Junction, &there)?
            }
            Table::HolderKey | Table::HolderTag | Table::HolderRun => {
                let (id, number) = last_id_and_number(table, key)?;
                let asks = |row: (Table, keys::Key)| row.0 == table && *row.1 == *key;
                // A holder that can't be read may ask for the row, so the row stays.
                match sound(self.tx.holder(ns, id, number))? {
                    Some(Some(holder)) => holder_keys(ns, id, &holder).into_iter().any(asks),
                    Some(None) => false,
                    None => true,
                }
            }
            Table::JournalSubject => {
                let keys::JournalSubject { id, holder, seq, .. } = keys::JournalSubject::read(table, key)?;
                self.is_told_of((ns, seq), (id, holder))?
            }
            Table::JournalRun => {
                let keys::JournalRun { run, seq, .. } = keys::JournalRun::read(table, key)?;
                let of_run = |row: JournalRow| row.run == Some(run) && row.can_be_undone();
                let row = sound(self.tx.journal_row(ns, seq))?;
                row.is_none_or(|row| row.is_some_and(of_run))
            }
            Table::TombstoneHash | Table::TombstoneTime => self.asks_of_tombstone(ns, table, key)?,
            Table::LimboTime => {
                let keys::LimboTime { at, id, .. } = keys::LimboTime::read(table, key)?;
                let vitals = sound(self.tx.vitals(ns, id))?;
                vitals.is_none_or(|row| row.is_some_and(|row| row.times.removed_at == Some(at)))
            }
            Table::EventTime | Table::EventOf | Table::FamilyKey | Table::FamilyBand => {
                let places = self.message_places(ns, table, last_id(table, key)?.as_bytes())?;
                let asks = |(of, place): &(Table, keys::Key)| *of == table && **place == *key;
                places.is_none_or(|places| places.iter().any(asks))
            }
            Table::ContextTime | Table::ContextOf => {
                let (context, place) = match table {
                    Table::ContextTime => (keys::ContextTime::read(table, key)?.context, (table, key)),
                    _ => (keys::ContextOf::read(table, key)?.context, (table, key)),
                };
                let row = sound(self.tx.context(ns, context.0))?;
                let asks =
                    |row: ContextRow| row.keys(ns, context.0).iter().any(|(of, at)| (*of, &**at) == place);
                row.is_none_or(|row| row.is_some_and(asks))
            }
            Table::QueryOf => {
                let keys::QueryOf { id, part, number, .. } = keys::QueryOf::read(table, key)?;
                let row = sound(self.tx.query(ns, (part, number)))?;
                row.is_none_or(|row| row.is_some_and(|row| row.hits.contains(&id)))
            }
            _ => self.asks_for_index_row(table, key)?,
        };
        if asked {
            return Ok(false);
        }
        truth(self.tx).delete_there(table, key)
    }

    /// Whether a row of the journal tells of a memory, or of a holder of it. One that can't be read may do so.
    fn is_told_of(&mut self, at: (NsId, u64), subject: (MemoryId, Option<u32>)) -> Result<bool> {
        if let Some((_, named)) = self.named.as_ref().filter(|(of, _)| *of == at) {
            return Ok(named.contains(&subject));
        }
        let Some(row) = sound(self.tx.journal_row(at.0, at.1))? else { return Ok(true) };
        let named: BTreeSet<_> =
            row.iter().flat_map(JournalRow::found_by).map(|(id, by)| (*id, by)).collect();
        let is_told = named.contains(&subject);
        if named.len() > NAMED_MIN {
            self.named = Some((at, named));
        }
        Ok(is_told)
    }

    /// Whether a memory exists and is not in limbo, so that the memories from which it was made are joined to
    /// it.
    fn is_joinable(&self, ns: NsId, id: MemoryId) -> Result<bool> {
        let vitals = sound(self.tx.vitals(ns, id))?;
        Ok(vitals.is_none_or(|row| row.is_some_and(|row| row.times.removed_at.is_none())))
    }

    /// Whether a junction can have this end: no memory was made from one that never was, so the key that says so is damaged.
    fn may_be_joined(&self, ns: NsId, End(sort, target): End<'_>) -> Result<bool> {
        match target.try_into().map(MemoryId::from_bytes) {
            Ok(source) if sort == Junction::Source => self.has_been(ns, source),
            _ => Ok(true),
        }
    }

    fn asks_for_index_row(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        let (ns, id, row) = IndexRow::at(table, key).ok_or_else(|| bad_key(table, key))?;
        let vitals = match sound(self.tx.vitals(ns, id))? {
            Some(Some(vitals)) => vitals,
            Some(None) => return Ok(false),
            None => return Ok(true),
        };
        let content = sound(self.tx.content(ns, id))?;
        // Only these two sorts follow from the content. While the content can't be read, they are left alone.
        if content.is_none() && matches!(row, IndexRow::Series(..) | IndexRow::Meta(..)) {
            return Ok(true);
        }
        let declared: Arc<Declared> = self.declared(ns)?;
        Ok(index_rows(&vitals, content.flatten().as_ref(), &declared).contains(&row))
    }

    /// Removes a junction of a memory if none of its holders brings the junction, or if the memory does not
    /// exist.
    fn prune_junction(&mut self, ns: NsId, key: &[u8]) -> Result<bool> {
        let keys::Junction { id, end, role, .. } = keys::Junction::read(Table::Junction, key)?;
        let row = JunctionRow::of(end, role.0);
        let mut asked = self.is_joinable(ns, id)? && self.may_be_joined(ns, end)?;
        if asked && row.sort != Junction::Source {
            asked = self.is_brought(ns, id, &row)?;
        }
        if asked {
            return Ok(false);
        }
        self.unjoin(ns, id, &row).map(|()| true)
    }

    /// Removes a name to which nothing is joined.
    fn prune_term(&mut self, ns: NsId, key: &[u8]) -> Result<bool> {
        let Some(keys::Term { sort, name, .. }) = keys::Term::parse(key) else { return Ok(false) };
        let Some(term) = self.tx.term(ns, sort, name.0)? else { return Ok(false) };
        if self.tx.is_joined_to(ns, sort, &term.to_be_bytes())? {
            return Ok(false);
        }
        truth(self.tx).delete_term(ns, sort, term).map(|()| true)
    }
}
