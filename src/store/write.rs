//! The typed writes of every table. Rows of the truth are put by `ledger` alone, derived ones by `index` and
//! `ledger`, control rows by `engine`.

use serde::Serialize;

use crate::error::Result;
use crate::model::{
    Access, Content, Holder, JournalRow, MemoryId, MetaValue, RunId, Tier, Time, Tombstone, Vitals,
};
use crate::record::{self, GraphNode};
use crate::store::control::{
    Clock, CounterRow, GraphHead, Identity, LimboRow, NamespaceRow, PassRow, RunRow, SizeRow, SlotHead,
    SpaceRow, UnfinishedRow,
};
use crate::store::keys::{self, IndexId, Junction, NsId, PartId, SpaceId};
use crate::store::rows::{CLOCK, IDENTITY, JunctionRow, Rows, SIZE};
use crate::store::tables::Table;
use crate::store::tx::{Walk, WriteTx};

/// The tables of the indexes of a partition.
const PARTED: [Table; 11] = [
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

impl WriteTx<'_> {
    fn put_meta<T: Serialize>(&mut self, table: Table, key: &[u8], value: &T) -> Result<()> {
        let mut bytes = Vec::with_capacity(64);
        record::encode_meta(table.tag(), key, value, &mut bytes);
        self.put(table, key, &bytes)
    }

    fn put_row<T>(
        &mut self,
        table: Table,
        key: &[u8],
        row: &T,
        encode: fn(&T, &[u8], &mut Vec<u8>),
    ) -> Result<()> {
        let mut bytes = Vec::with_capacity(256);
        encode(row, key, &mut bytes);
        self.put(table, key, &bytes)
    }

    pub(crate) fn put_identity(&mut self, identity: &Identity) -> Result<()> {
        self.put_meta(Table::Meta, IDENTITY, identity)
    }

    /// Writes the clock row, with the mark of this transaction.
    pub(crate) fn put_clock(&mut self, clock: &Clock) -> Result<()> {
        self.put_meta(Table::Meta, CLOCK, &Clock { nonce: self.nonce, ..*clock })
    }

    pub(crate) fn put_size(&mut self, size: &SizeRow) -> Result<()> {
        self.put_meta(Table::Meta, SIZE, size)
    }

    pub(crate) fn put_namespace(&mut self, name: &str, row: &NamespaceRow) -> Result<()> {
        self.put_meta(Table::Namespace, name.as_bytes(), row)
    }

    pub(crate) fn delete_namespace(&mut self, name: &str) -> Result<bool> {
        self.delete(Table::Namespace, name.as_bytes())
    }

    pub(crate) fn put_partition(&mut self, ns: NsId, name: &str, part: PartId) -> Result<()> {
        self.put_meta(Table::Partition, &keys::partition(ns, name), &part.0)?;
        self.put_meta(Table::PartitionName, &keys::ns_part(ns, part), &name)
    }

    /// Takes a partition away in which nothing is left, with what its indexes have kept. Its number is not given out again.
    pub(crate) fn delete_partition(&mut self, ns: NsId, part: PartId, name: &str) -> Result<()> {
        let prefix = keys::ns_part(ns, part);
        self.drop_staged_of(ns, part);
        for table in PARTED {
            self.delete_walk(table, &Walk::prefix(&prefix), usize::MAX)?;
        }
        self.delete(Table::PartitionName, &prefix)?;
        self.delete(Table::Partition, &keys::partition(ns, name)).map(|_| ())
    }

    pub(crate) fn put_space(&mut self, space: SpaceId, row: &SpaceRow) -> Result<()> {
        self.put_meta(Table::Space, &keys::space(space), row)
    }

    pub(crate) fn put_run(&mut self, ns: NsId, run: RunId, row: &RunRow) -> Result<()> {
        self.put_meta(Table::Run, &keys::run(ns, run), row)
    }

    pub(crate) fn put_policy(&mut self, number: u64, text: &str) -> Result<()> {
        self.put_meta(Table::Policy, &keys::policy(number), &text)
    }

    pub(crate) fn put_slot_head(&mut self, index: IndexId, head: &SlotHead) -> Result<()> {
        self.put_meta(Table::SlotHead, &keys::index(index), head)
    }

    pub(crate) fn put_free_slot(&mut self, index: IndexId, died: u64, slot: u32) -> Result<()> {
        self.put(Table::SlotFree, &keys::slot_ended(index, died, slot), &[])
    }

    pub(crate) fn delete_free_slot(&mut self, index: IndexId, died: u64, slot: u32) -> Result<bool> {
        self.delete(Table::SlotFree, &keys::slot_ended(index, died, slot))
    }

    /// Puts the links of 16 slots; a block in which no slot is a node is no row.
    pub(crate) fn put_graph_block(
        &mut self,
        index: IndexId,
        block: u32,
        nodes: &[Option<GraphNode<'_>>],
    ) -> Result<()> {
        let key = keys::block(index, block);
        if nodes.iter().all(Option::is_none) {
            return self.delete(Table::Graph, &key).map(|_| ());
        }
        let mut bytes = std::mem::take(&mut self.scratch);
        record::encode_graph_block(nodes, &key, &mut bytes);
        let put = self.put(Table::Graph, &key, &bytes);
        self.scratch = bytes;
        put
    }

    /// Takes at most `most` blocks of links of an index away and says how many there were.
    pub(crate) fn delete_graph_slice(&mut self, index: IndexId, most: usize) -> Result<usize> {
        self.delete_walk(Table::Graph, &Walk::prefix(&keys::index(index)), most)
    }

    pub(crate) fn put_graph_head(&mut self, index: IndexId, head: &GraphHead) -> Result<()> {
        self.put_meta(Table::GraphHead, &keys::index(index), head)
    }

    pub(crate) fn delete_graph_head(&mut self, index: IndexId) -> Result<bool> {
        self.delete(Table::GraphHead, &keys::index(index))
    }

    pub(crate) fn put_dead_slot(&mut self, index: IndexId, died: u64, slot: u32) -> Result<()> {
        self.put(Table::SlotDead, &keys::slot_ended(index, died, slot), &[])
    }

    pub(crate) fn delete_dead_slot(&mut self, index: IndexId, died: u64, slot: u32) -> Result<bool> {
        self.delete(Table::SlotDead, &keys::slot_ended(index, died, slot))
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
            return self.delete(Table::Access, &keys::memory(ns, id)).map(|_| ());
        }
        self.put_row(Table::Access, &keys::memory(ns, id), access, record::encode_access)
    }

    /// Takes vitals, content and statistics of a memory away.
    pub(crate) fn delete_memory(&mut self, ns: NsId, id: MemoryId) -> Result<()> {
        let key = keys::memory(ns, id);
        for table in [Table::Vitals, Table::Memory, Table::Access] {
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
        if let Some(name) = self.term_name(ns, sort, term)? {
            self.delete(Table::Term, &keys::term(ns, sort, &name))?;
        }
        self.delete(Table::TermName, &keys::term_name(ns, sort, term)).map(|_| ())
    }

    /// Puts a junction row in both directions.
    pub(crate) fn put_junction(&mut self, ns: NsId, id: MemoryId, row: &JunctionRow) -> Result<()> {
        self.put(Table::Junction, &keys::junction(ns, id, row.sort, &row.target, &row.role), &[])?;
        self.put(Table::JunctionBack, &keys::junction_back(ns, row.sort, &row.target, id, &row.role), &[])
    }

    /// Takes a junction row away in both directions.
    pub(crate) fn delete_junction(&mut self, ns: NsId, id: MemoryId, row: &JunctionRow) -> Result<bool> {
        self.delete(Table::JunctionBack, &keys::junction_back(ns, row.sort, &row.target, id, &row.role))?;
        self.delete(Table::Junction, &keys::junction(ns, id, row.sort, &row.target, &row.role))
    }

    pub(crate) fn put_superseded(&mut self, ns: NsId, new: MemoryId, old: MemoryId) -> Result<()> {
        self.put(Table::Superseded, &keys::superseded(ns, new, old), &[])
    }

    pub(crate) fn delete_superseded(&mut self, ns: NsId, new: MemoryId, old: MemoryId) -> Result<bool> {
        self.delete(Table::Superseded, &keys::superseded(ns, new, old))
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

    /// Puts another text of a journal row in its place.
    pub(crate) fn rewrite_journal(&mut self, ns: NsId, row: &JournalRow) -> Result<()> {
        self.put_row(Table::Journal, &keys::journal(ns, row.seq), row, record::encode_journal)
    }

    /// Takes a journal row off the list of what its run can take back.
    pub(crate) fn delete_journal_run(&mut self, ns: NsId, run: RunId, seq: u64) -> Result<bool> {
        self.delete(Table::JournalRun, &keys::journal_run(ns, run, seq))
    }

    pub(crate) fn put_limbo(&mut self, ns: NsId, id: MemoryId, at: Time, row: &LimboRow) -> Result<()> {
        self.put_meta(Table::Limbo, &keys::memory(ns, id), row)?;
        self.put(Table::LimboTime, &keys::by_instant(ns, at, id.as_bytes()), &[])
    }

    pub(crate) fn delete_limbo(&mut self, ns: NsId, id: MemoryId, at: Time) -> Result<()> {
        self.delete(Table::Limbo, &keys::memory(ns, id))?;
        self.delete(Table::LimboTime, &keys::by_instant(ns, at, id.as_bytes())).map(|_| ())
    }

    pub(crate) fn put_pass(&mut self, ns: NsId, name: &str, row: &PassRow) -> Result<()> {
        self.put_meta(Table::Pass, &keys::pass(ns, name), row)
    }

    /// Takes a tombstone away, with its rows by the HMAC of its keys and content.
    pub(crate) fn delete_tombstone(&mut self, ns: NsId, tombstone: &Tombstone) -> Result<()> {
        let id = tombstone.id;
        for hash in tombstone.key_hashes.iter().chain([&tombstone.content_hash]) {
            self.delete(Table::TombstoneHash, &keys::tombstone_hash(ns, hash, id))?;
        }
        self.delete(Table::Tombstone, &keys::memory(ns, id)).map(|_| ())
    }

    /// Puts a tombstone with its rows by the HMAC of its keys and content.
    pub(crate) fn put_tombstone(&mut self, ns: NsId, tombstone: &Tombstone) -> Result<()> {
        let id = tombstone.id;
        self.put_row(Table::Tombstone, &keys::memory(ns, id), tombstone, record::encode_tombstone)?;
        for hash in tombstone.key_hashes.iter().chain([&tombstone.content_hash]) {
            self.put(Table::TombstoneHash, &keys::tombstone_hash(ns, hash, id), &[])?;
        }
        Ok(())
    }

    pub(crate) fn put_by_time(&mut self, ns: NsId, part: PartId, created: Time, id: MemoryId) -> Result<()> {
        self.put(Table::ByTime, &keys::by_time(ns, part, created, id), &[])
    }

    pub(crate) fn delete_by_time(
        &mut self,
        ns: NsId,
        part: PartId,
        created: Time,
        id: MemoryId,
    ) -> Result<bool> {
        self.delete(Table::ByTime, &keys::by_time(ns, part, created, id))
    }

    pub(crate) fn put_by_fingerprint(
        &mut self,
        ns: NsId,
        part: PartId,
        tier: Tier,
        mark: (&[u8; 16], &[u8; 12]),
        id: MemoryId,
    ) -> Result<()> {
        self.put(Table::ByFingerprint, &keys::by_fingerprint(ns, part, tier, mark, id), &[])
    }

    pub(crate) fn delete_by_fingerprint(
        &mut self,
        ns: NsId,
        part: PartId,
        tier: Tier,
        mark: (&[u8; 16], &[u8; 12]),
        id: MemoryId,
    ) -> Result<bool> {
        self.delete(Table::ByFingerprint, &keys::by_fingerprint(ns, part, tier, mark, id))
    }

    pub(crate) fn put_due(&mut self, ns: NsId, at: Time, id: MemoryId) -> Result<()> {
        self.put(Table::Due, &keys::due(ns, at, id), &[])
    }

    pub(crate) fn delete_due(&mut self, ns: NsId, at: Time, id: MemoryId) -> Result<bool> {
        self.delete(Table::Due, &keys::due(ns, at, id))
    }

    /// Declares an index, which is whole unless it says how far it is.
    pub(crate) fn put_meta_key(&mut self, ns: NsId, path: &str, row: Option<&UnfinishedRow>) -> Result<()> {
        self.put_meta(Table::MetaKey, &keys::meta_key(ns, path), &row)
    }

    pub(crate) fn delete_meta_key(&mut self, ns: NsId, path: &str) -> Result<bool> {
        self.delete(Table::MetaKey, &keys::meta_key(ns, path))
    }

    /// Takes at most `most` rows of the index of a path away, unread, and says how many there were.
    pub(crate) fn delete_meta_values(&mut self, ns: NsId, path: &str, most: usize) -> Result<usize> {
        self.delete_walk(Table::MetaValue, &Walk::prefix(&keys::meta_values(ns, path)), most)
    }

    pub(crate) fn put_meta_value(
        &mut self,
        ns: NsId,
        path: &str,
        value: &MetaValue,
        id: MemoryId,
    ) -> Result<()> {
        self.put(Table::MetaValue, &keys::meta_row(ns, path, value, id), &[])
    }

    pub(crate) fn delete_meta_value(
        &mut self,
        ns: NsId,
        path: &str,
        value: &MetaValue,
        id: MemoryId,
    ) -> Result<bool> {
        self.delete(Table::MetaValue, &keys::meta_row(ns, path, value, id))
    }

    pub(crate) fn put_pending(&mut self, ns: NsId, part: PartId, id: MemoryId) -> Result<()> {
        self.put(Table::Pending, &keys::pending(ns, part, id), &[])
    }

    pub(crate) fn delete_pending(&mut self, ns: NsId, part: PartId, id: MemoryId) -> Result<bool> {
        self.delete(Table::Pending, &keys::pending(ns, part, id))
    }

    pub(crate) fn put_series(
        &mut self,
        ns: NsId,
        part: PartId,
        series: &str,
        at: Time,
        id: MemoryId,
    ) -> Result<()> {
        self.put(Table::Series, &keys::series(ns, part, series, at, id), &[])
    }

    pub(crate) fn delete_series(
        &mut self,
        ns: NsId,
        part: PartId,
        series: &str,
        at: Time,
        id: MemoryId,
    ) -> Result<bool> {
        self.delete(Table::Series, &keys::series(ns, part, series, at, id))
    }

    /// Puts a counter; one that stands at nothing is no row.
    pub(crate) fn put_counter(
        &mut self,
        ns: NsId,
        part: PartId,
        sort: u8,
        name: &str,
        value: CounterRow,
    ) -> Result<()> {
        let key = keys::counter(ns, part, sort, name);
        if value == CounterRow::default() {
            return self.delete(Table::Counter, &key).map(|_| ());
        }
        self.put_meta(Table::Counter, &key, &value)
    }

    /// Takes at most `most` rows of a namespace away, whatever they are, and says how many: a drop in slices.
    pub(crate) fn delete_rows_of(&mut self, ns: NsId, most: usize) -> Result<usize> {
        self.drop_staged(ns);
        let mut gone = 0;
        for table in Table::ALL {
            if matches!(table, Table::Meta | Table::Namespace | Table::Space | Table::Policy) {
                continue;
            }
            if gone == most {
                break;
            }
            gone += self.delete_walk(*table, &Walk::prefix(&keys::ns(ns)), most - gone)?;
        }
        Ok(gone)
    }

    /// Makes sure that a table exists.
    pub(super) fn touch(&mut self, table: Table) -> Result<()> {
        self.delete(table, &[]).map(|_| ())
    }
}

/// The rows by which a holder is found.
pub(crate) fn holder_keys(ns: NsId, id: MemoryId, holder: &Holder) -> Vec<(Table, keys::Key)> {
    // A keyless holder stands under the empty key, which no caller can write.
    let key = holder.key.as_deref().unwrap_or_default();
    let key = [(Table::HolderKey, keys::holder_key(ns, key, id, holder.number))].into_iter();
    let tags = holder.tags.iter().map(|tag| (Table::HolderTag, keys::holder_key(ns, tag, id, holder.number)));
    let run = holder.run.iter().map(|run| (Table::HolderRun, keys::holder_run(ns, *run, id, holder.number)));
    key.chain(tags).chain(run).collect()
}
