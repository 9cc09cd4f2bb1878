//! The writes of the truth, behind a lock to which one room has the key.
//!
//! A [`WriteTx`] writes derived rows and control rows. [`Truth`] writes every table; [`WriteTx::truth`] gives one to whoever
//! has a key of the lock, and what a key is says the implementation of [`Keeper`]. `ledger` has it, with a type that no
//! other room can make. A second implementation does not compile.
//!
//! A vector is truth as well. It is written with its code, by `index`, which `ledger` calls.

use std::ops::{Deref, DerefMut};

use crate::error::Result;
use crate::model::{Access, Content, Holder, JournalRow, MemoryId, Payload, Time, Tombstone, Vitals};
use crate::record;
use crate::store::control::LimboRow;
use crate::store::keys;
use crate::store::part::{Junction, NsId, PartId};
use crate::store::raw::Walk;
use crate::store::rows::{JunctionRow, Rows};
use crate::store::tables::Table;
use crate::store::tx::WriteTx;

/// The lock on the truth.
pub(crate) struct Lock;

/// Says what opens the lock.
pub(crate) trait Keeper {
    type Key;
}

/// A write transaction that may write every table.
pub(crate) struct Truth<'a, 't>(&'a mut WriteTx<'t>);

impl<'t> WriteTx<'t> {
    /// The writes of the truth, for the room that has the key.
    pub(crate) fn truth(&mut self, _key: <Lock as Keeper>::Key) -> Truth<'_, 't> {
        Truth(self)
    }

    /// The same for tests, which write what no ledger would.
    #[cfg(test)]
    pub(crate) fn forged(&mut self) -> Truth<'_, 't> {
        Truth(self)
    }
}

impl<'t> Deref for Truth<'_, 't> {
    type Target = WriteTx<'t>;

    fn deref(&self) -> &WriteTx<'t> {
        self.0
    }
}

impl<'t> DerefMut for Truth<'_, 't> {
    fn deref_mut(&mut self) -> &mut WriteTx<'t> {
        self.0
    }
}

/// The tables of the indexes of a partition.
const PARTED: [Table; 13] = [
    Table::Bits,
    Table::BitsHead,
    Table::Slot,
    Table::SlotHead,
    Table::SlotFree,
    Table::SlotDead,
    Table::Graph,
    Table::GraphHead,
    Table::Vector,
    Table::TextHead,
    Table::TextDoc,
    Table::Thread,
    Table::TextPosting,
];

/// The tables of memories, whatever is derived from them.
const OF_MEMORIES: [Table; 14] = [
    Table::Vitals,
    Table::Memory,
    Table::Access,
    Table::Payload,
    Table::Holder,
    Table::HolderKey,
    Table::HolderTag,
    Table::HolderRun,
    Table::Term,
    Table::TermName,
    Table::Junction,
    Table::JunctionBack,
    Table::Limbo,
    Table::LimboTime,
];

impl Truth<'_, '_> {
    /// Puts a row in place of whatever stood under its key.
    pub(crate) fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(table, key, value)
    }

    /// Takes a row away, if there is one.
    pub(crate) fn delete(&mut self, table: Table, key: &[u8]) -> Result<()> {
        self.0.delete(table, key)
    }

    /// Takes a row away and says whether there was one.
    pub(crate) fn delete_there(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        self.0.delete_there(table, key)
    }

    pub(crate) fn put_vitals(&mut self, ns: NsId, id: MemoryId, vitals: &Vitals) -> Result<()> {
        self.put_row(Table::Vitals, &keys::memory(ns, id), vitals, record::encode_vitals)
    }

    pub(crate) fn put_content(&mut self, ns: NsId, id: MemoryId, content: &Content) -> Result<()> {
        self.put_row(Table::Memory, &keys::memory(ns, id), content, record::encode_content)
    }

    /// A row of nothing but defaults is no row.
    pub(crate) fn put_access(&mut self, ns: NsId, id: MemoryId, access: &Access) -> Result<()> {
        if *access == Access::default() {
            return self.delete(Table::Access, &keys::memory(ns, id));
        }
        self.put_row(Table::Access, &keys::memory(ns, id), access, record::encode_access)
    }

    pub(crate) fn put_payload(&mut self, ns: NsId, id: MemoryId, payload: Option<&Payload>) -> Result<()> {
        let key = keys::memory(ns, id);
        match payload {
            Some(payload) => self.put_row(Table::Payload, &key, payload, record::encode_payload),
            None => self.delete(Table::Payload, &key),
        }
    }

    /// Takes vitals, content, statistics and payload of a memory away.
    pub(crate) fn delete_memory(&mut self, ns: NsId, id: MemoryId) -> Result<()> {
        let key = keys::memory(ns, id);
        for table in [Table::Vitals, Table::Memory, Table::Access, Table::Payload] {
            self.delete(table, &key)?;
        }
        Ok(())
    }

    /// Puts a holder with its rows by key, tag and run.
    pub(crate) fn put_holder(&mut self, ns: NsId, id: MemoryId, holder: &Holder) -> Result<()> {
        self.put_row(Table::Holder, &keys::holder(ns, id, holder.number), holder, record::encode_holder)?;
        for (table, key) in holder_keys(ns, id, holder) {
            self.put(table, &key, &[])?;
        }
        Ok(())
    }

    /// Takes a holder away with its rows by key, tag and run.
    pub(crate) fn delete_holder(&mut self, ns: NsId, id: MemoryId, holder: &Holder) -> Result<()> {
        self.delete(Table::Holder, &keys::holder(ns, id, holder.number))?;
        for (table, key) in holder_keys(ns, id, holder) {
            self.delete(table, &key)?;
        }
        Ok(())
    }

    pub(crate) fn put_term(&mut self, ns: NsId, sort: Junction, name: &str, term: u32) -> Result<()> {
        self.put_meta(Table::Term, &keys::term(ns, sort, name), &term)?;
        self.put_meta(Table::TermName, &keys::term_name(ns, sort, term), &name)
    }

    pub(crate) fn delete_term(&mut self, ns: NsId, sort: Junction, term: u32) -> Result<()> {
        // The number does not lead to the row by name, so the name is read before its row goes.
        if let Some(name) = self.term_name(ns, sort, term)? {
            self.delete(Table::Term, &keys::term(ns, sort, &name))?;
        }
        self.delete(Table::TermName, &keys::term_name(ns, sort, term))
    }

    /// Puts a junction row in both directions.
    pub(crate) fn put_junction(&mut self, ns: NsId, id: MemoryId, row: &JunctionRow) -> Result<()> {
        self.put(Table::Junction, &keys::junction(ns, id, row.end(), &row.role), &[])?;
        self.put(Table::JunctionBack, &keys::junction_back(ns, row.end(), id, &row.role), &[])
    }

    /// Takes a junction row away in both directions.
    pub(crate) fn delete_junction(&mut self, ns: NsId, id: MemoryId, row: &JunctionRow) -> Result<()> {
        self.delete(Table::JunctionBack, &keys::junction_back(ns, row.end(), id, &row.role))?;
        self.delete(Table::Junction, &keys::junction(ns, id, row.end(), &row.role))
    }

    /// Puts a journal row, found by its subject, and by its run where the engine's own maintenance wrote it.
    pub(crate) fn put_journal(&mut self, ns: NsId, row: &JournalRow) -> Result<()> {
        self.rewrite_journal(ns, row)?;
        for (id, holder) in row.found_by() {
            self.put(Table::JournalSubject, &keys::journal_subject(ns, *id, holder, row.seq), &[])?;
        }
        match row.run.filter(|_| row.can_be_undone()) {
            Some(run) => self.put(Table::JournalRun, &keys::journal_run(ns, run, row.seq), &[]),
            None => Ok(()),
        }
    }

    /// Takes journal rows away with the rows by which they are found.
    pub(crate) fn delete_journal<'r>(
        &mut self,
        ns: NsId,
        rows: impl IntoIterator<Item = &'r JournalRow>,
    ) -> Result<()> {
        for row in rows {
            for (id, holder) in row.found_by() {
                self.delete(Table::JournalSubject, &keys::journal_subject(ns, *id, holder, row.seq))?;
            }
            if let Some(run) = row.run {
                self.delete(Table::JournalRun, &keys::journal_run(ns, run, row.seq))?;
            }
            self.delete(Table::Journal, &keys::journal(ns, row.seq))?;
        }
        Ok(())
    }

    /// Puts another text of a journal row in its place.
    pub(crate) fn rewrite_journal(&mut self, ns: NsId, row: &JournalRow) -> Result<()> {
        self.put_row(Table::Journal, &keys::journal(ns, row.seq), row, record::encode_journal)
    }

    pub(crate) fn put_limbo(&mut self, ns: NsId, id: MemoryId, at: Time, row: &LimboRow) -> Result<()> {
        self.put_meta(Table::Limbo, &keys::memory(ns, id), row)?;
        self.put(Table::LimboTime, &keys::by_instant(ns, at, id), &[])
    }

    /// Takes away those rows of a walk that lead nowhere: whoever goes by them would begin with them for ever. A key that is out
    /// of order is not found by itself, so the rows are found by the walk.
    ///
    /// # Errors
    /// `Corrupted` where there are such rows and none of them goes.
    pub(crate) fn strike(
        &mut self,
        table: Table,
        walk: &Walk,
        leads_nowhere: &dyn Fn(&[u8]) -> bool,
    ) -> Result<()> {
        self.0.strike(table, walk, leads_nowhere)
    }

    pub(crate) fn delete_limbo(&mut self, ns: NsId, id: MemoryId, at: Time) -> Result<()> {
        self.delete(Table::Limbo, &keys::memory(ns, id))?;
        self.delete(Table::LimboTime, &keys::by_instant(ns, at, id))
    }

    /// Takes a tombstone away, with its rows by the HMAC of its keys and content, and by time.
    pub(crate) fn delete_tombstone(&mut self, ns: NsId, tombstone: &Tombstone) -> Result<()> {
        let id = tombstone.id;
        for hash in tombstone.key_hashes.iter().chain([&tombstone.content_hash]) {
            self.delete(Table::TombstoneHash, &keys::tombstone_hash(ns, hash, id))?;
        }
        self.delete(Table::TombstoneTime, &keys::by_instant(ns, tombstone.deleted_at, id))?;
        self.delete(Table::Tombstone, &keys::memory(ns, id))
    }

    /// Puts a tombstone with its rows by the HMAC of its keys and content, and by time.
    pub(crate) fn put_tombstone(&mut self, ns: NsId, tombstone: &Tombstone) -> Result<()> {
        let id = tombstone.id;
        self.put_row(Table::Tombstone, &keys::memory(ns, id), tombstone, record::encode_tombstone)?;
        for hash in tombstone.key_hashes.iter().chain([&tombstone.content_hash]) {
            self.put(Table::TombstoneHash, &keys::tombstone_hash(ns, hash, id), &[])?;
        }
        self.put(Table::TombstoneTime, &keys::by_instant(ns, tombstone.deleted_at, id), &[])
    }

    /// Takes a partition away in which nothing is left, with what its indexes have kept. Its number is not given out again.
    pub(crate) fn delete_partition(&mut self, ns: NsId, part: PartId, name: &str) -> Result<()> {
        let prefix = keys::ns_part(ns, part);
        // Staged blocks go first, or the end of the transaction would write rows of a partition that is gone.
        self.drop_staged(ns, Some(part));
        for table in PARTED {
            self.delete_walk(table, &Walk::prefix(&prefix), usize::MAX)?;
        }
        self.delete(Table::PartitionName, &prefix)?;
        self.delete(Table::Partition, &keys::partition(ns, name))
    }

    /// Takes every memory of a namespace away, unread, with the indexes of its partitions and the rows of these other tables.
    /// Its counters stay.
    pub(crate) fn delete_memories(&mut self, ns: NsId, derived: &[Table]) -> Result<()> {
        // Staged blocks go first, or the end of the transaction would write them again.
        self.drop_staged(ns, None);
        for table in OF_MEMORIES.iter().chain(&PARTED).chain(derived) {
            self.delete_walk(*table, &Walk::prefix(&keys::ns(ns)), usize::MAX)?;
        }
        Ok(())
    }

    /// Takes at most `most` rows of a namespace away, whatever they are, and says how many: a drop in slices.
    pub(crate) fn delete_rows_of(&mut self, ns: NsId, most: usize) -> Result<usize> {
        // Staged blocks go first, or the end of the transaction would write rows of a namespace that is going.
        self.drop_staged(ns, None);
        let mut gone = 0;
        for table in Table::ALL.iter().filter(|table| table.is_of_namespace()) {
            if gone == most {
                break;
            }
            let walk = Walk::prefix(&keys::ns(ns));
            gone += match self.delete_walk(*table, &walk, most - gone)? {
                0 => self.delete_back(*table, &walk, most - gone)?,
                some => some,
            };
        }
        Ok(gone)
    }
}

/// The rows by which a holder is found.
pub(crate) fn holder_keys(ns: NsId, id: MemoryId, holder: &Holder) -> Vec<(Table, keys::Key)> {
    // A keyless holder stands under the empty key, which no caller can write.
    let key = holder.key.as_deref().unwrap_or_default();
    let key = [(Table::HolderKey, keys::holder_key(ns, key, id, holder.number))].into_iter();
    let tags = holder.tags.iter().map(|tag| (Table::HolderTag, keys::holder_tag(ns, tag, id, holder.number)));
    let run = holder.run.iter().map(|run| (Table::HolderRun, keys::holder_run(ns, *run, id, holder.number)));
    key.chain(tags).chain(run).collect()
}
