//! The typed writes of derived rows, by `index` and `ledger`, and of control rows, by `engine`. Those of the truth stand in
//! `truth`.

use serde::Serialize;

use crate::error::Result;
use crate::model::RunId;
use crate::record::{self, GraphNode};
use crate::store::control::{
    Clock, CounterRow, GraphHead, Identity, JournalHeadRow, NamespaceRow, PassRow, RunRow, SizeRow, SlotHead,
    SpaceRow, UnfinishedRow,
};
use crate::store::keys;
use crate::store::part::{IndexId, NsId, PartId, SpaceId};
use crate::store::raw::Walk;
use crate::store::tables::{CLOCK, IDENTITY, SIZE, Table};
use crate::store::tx::WriteTx;

impl WriteTx<'_> {
    pub(super) fn put_meta<T: Serialize>(&mut self, table: Table, key: &[u8], value: &T) -> Result<()> {
        let mut bytes = Vec::with_capacity(64);
        record::encode_meta(table.tag(), key, value, &mut bytes);
        self.put(table, key, &bytes)
    }

    pub(super) fn put_row<T>(
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

    pub(crate) fn delete_namespace(&mut self, name: &str) -> Result<()> {
        self.delete(Table::Namespace, name.as_bytes())
    }

    pub(crate) fn put_partition(&mut self, ns: NsId, name: &str, part: PartId) -> Result<()> {
        self.put_meta(Table::Partition, &keys::partition(ns, name), &part.0)?;
        self.put_meta(Table::PartitionName, &keys::ns_part(ns, part), &name)
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

    /// Keeps a head for the end of the transaction: a batch writes it once.
    pub(crate) fn put_slot_head(&mut self, index: IndexId, head: SlotHead) {
        self.slot_heads.insert(index, head);
    }

    pub(crate) fn put_free_slot(&mut self, index: IndexId, died: u64, slot: u32) -> Result<()> {
        self.put(Table::SlotFree, &keys::slot_ended(index, died, slot), &[])
    }

    pub(crate) fn delete_free_slot(&mut self, index: IndexId, died: u64, slot: u32) -> Result<()> {
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
            return self.delete(Table::Graph, &key);
        }
        // The buffer is lent out and given back, so that many blocks share one allocation.
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

    pub(crate) fn delete_graph_head(&mut self, index: IndexId) -> Result<()> {
        self.delete(Table::GraphHead, &keys::index(index))
    }

    pub(crate) fn put_dead_slot(&mut self, index: IndexId, died: u64, slot: u32) -> Result<()> {
        self.put(Table::SlotDead, &keys::slot_ended(index, died, slot), &[])
    }

    pub(crate) fn delete_dead_slot(&mut self, index: IndexId, died: u64, slot: u32) -> Result<bool> {
        self.delete_there(Table::SlotDead, &keys::slot_ended(index, died, slot))
    }

    /// Takes a journal row off the list of what its run can take back.
    pub(crate) fn delete_journal_run(&mut self, ns: NsId, run: RunId, seq: u64) -> Result<()> {
        self.delete(Table::JournalRun, &keys::journal_run(ns, run, seq))
    }

    pub(crate) fn put_pass(&mut self, ns: NsId, name: &str, row: &PassRow) -> Result<()> {
        self.put_meta(Table::Pass, &keys::pass(ns, name), row)
    }

    pub(crate) fn put_journal_head(&mut self, ns: NsId, row: &JournalHeadRow) -> Result<()> {
        self.put_meta(Table::JournalHead, &keys::journal_head(ns), row)
    }

    /// Declares an index, which is whole unless it says how far it is.
    pub(crate) fn put_meta_key(&mut self, ns: NsId, path: &str, row: Option<&UnfinishedRow>) -> Result<()> {
        self.put_meta(Table::MetaKey, &keys::meta_key(ns, path), &row)
    }

    pub(crate) fn delete_meta_key(&mut self, ns: NsId, path: &str) -> Result<()> {
        self.delete(Table::MetaKey, &keys::meta_key(ns, path))
    }

    /// Takes at most `most` rows of the index of a path away, unread, and says how many there were.
    pub(crate) fn delete_meta_values(&mut self, ns: NsId, path: &str, most: usize) -> Result<usize> {
        self.delete_walk(Table::MetaValue, &Walk::prefix(&keys::meta_values(ns, path)), most)
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
            return self.delete(Table::Counter, &key);
        }
        self.put_meta(Table::Counter, &key, &value)
    }

    /// Makes sure that a table exists.
    pub(super) fn touch(&mut self, table: Table) -> Result<()> {
        self.delete(table, &[])
    }
}
