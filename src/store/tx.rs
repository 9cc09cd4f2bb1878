//! Reading and writing under one roof: a snapshot, a write transaction, and the reads that both can do.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, OnceLock};

use redb::{ReadTransaction, WriteTransaction};

use crate::error::{Error, Result};
use crate::limits::STAGED_BYTES_MAX;
use crate::record::{
    self, At, BitRow, DocBlock, SlotBlock, SlotMeta, Thinned, VectorBlock, slots_per_block, vectors_per_block,
};
use crate::store::control::{BitsHead, Nonce, SlotHead, TextHead};
use crate::store::gather::{Gathered, change, change_sorted, take_back, take_met};
use crate::store::handle::FILE;
use crate::store::keys;
use crate::store::part::{IndexId, NsId, PartId, TextId};
use crate::store::raw::{Definition, ReadTable, Visit, Walk, WriteTable, fenced, look_row, walk_rows};
use crate::store::tables::Table;
use crate::store::tally;
use crate::store::watch::Watch;

/// What is wrong with a row that can't be taken away.
const OUT_OF_ORDER: &str = "its key is out of order, and it can't be removed";

/// What a snapshot and a write transaction both can do: look up and walk. The typed reads of `rows` stand on it.
pub(crate) trait Read {
    /// Calls `f` with the value under `key`, if there is one, and says whether there was.
    fn look(&self, table: Table, key: &[u8], f: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool>;

    /// Walks rows in key order. The rows are those of the moment: a write transaction must not change the table
    /// meanwhile, which its `&mut` methods make sure of.
    fn walk(&self, table: Table, walk: &Walk, visit: Visit<'_>) -> Result<()>;

    /// One block of codes; none when there is no such block.
    fn slot_block(&self, index: IndexId, block: u32, dim: usize) -> Result<Option<SlotBlock>> {
        stored(self, Table::Slot, index, block, |at, bytes| SlotBlock::decode(at, dim, bytes))
    }

    /// One block of vectors, of which those that are damaged can't be had; none when there is no such block.
    fn vector_block(&self, index: IndexId, block: u32, dim: usize) -> Result<Option<VectorBlock>> {
        stored(self, Table::Vector, index, block, |at, bytes| Ok(VectorBlock::salvage(at, dim, bytes)))
    }

    /// How many slots an index has.
    fn slot_head(&self, index: IndexId) -> Result<SlotHead> {
        stored_slot_head(self, index)
    }

    /// The full-text index of a partition as a whole; none where no memory was ever in it.
    fn text_head(&self, text: TextId) -> Result<Option<TextHead>> {
        found(self, Table::TextHead, &keys::ns_part(text.ns, text.part), |at, bytes| {
            record::decode_meta(Table::TextHead.tag(), at, bytes)
        })
    }

    /// One block of documents; none when there is no such block.
    fn doc_block(&self, text: TextId, block: u32) -> Result<Option<DocBlock>> {
        found(self, Table::TextDoc, &keys::text(text.ns, text.part, block), DocBlock::decode)
    }
}

/// A block as it stands in the file.
fn stored<B>(
    rows: &(impl Read + ?Sized),
    table: Table,
    index: IndexId,
    block: u32,
    decode: impl Fn(At<'_>, &[u8]) -> Result<B>,
) -> Result<Option<B>> {
    found(rows, table, &keys::block(index, block), decode)
}

/// The head of the slots of an index as it stands in the file.
fn stored_slot_head(rows: &(impl Read + ?Sized), index: IndexId) -> Result<SlotHead> {
    let head = found(rows, Table::SlotHead, &keys::index(index), |at, bytes| {
        record::decode_meta(Table::SlotHead.tag(), at, bytes)
    })?;
    Ok(head.unwrap_or_default())
}

/// A value as it stands in the file.
fn found<T>(
    rows: &(impl Read + ?Sized),
    table: Table,
    key: &[u8],
    decode: impl Fn(At<'_>, &[u8]) -> Result<T>,
) -> Result<Option<T>> {
    let mut found = None;
    rows.look(table, key, &mut |bytes| {
        found = Some(decode(At::new(table.name(), key), bytes)?);
        Ok(())
    })?;
    Ok(found)
}

/// The bytes of a row that was put or taken away, and those by which the rows have grown. `old` is the length of the value
/// that stood there before.
fn changed_bytes(key: &[u8], value: Option<&[u8]>, old: Option<usize>) -> (u64, i64) {
    let row = |value: usize| (key.len() + value) as u64;
    let (new, old) = (value.map(|value| row(value.len())), old.map(row).unwrap_or_default());
    (new.unwrap_or(old), new.unwrap_or_default() as i64 - old as i64)
}

/// The store at one commit. Cheap to keep for a moment, dear to keep for long: pages that it may read are not used
/// again while it lives.
pub(crate) struct Snapshot {
    txn: ReadTransaction,
    /// The epoch of the store that gave it.
    epoch: u64,
    /// Tables that were used.
    tables: [OnceLock<ReadTable>; Table::COUNT],
}

impl Snapshot {
    pub(crate) fn new(txn: ReadTransaction, epoch: u64) -> Self {
        Snapshot { txn, epoch, tables: [const { OnceLock::new() }; Table::COUNT] }
    }

    /// The epoch of the store when it was taken ([`Store::epoch`](crate::store::Store::epoch)).
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) fn table(&self, table: Table) -> Result<&ReadTable> {
        let cell = self.tables.get(table.at()).unwrap_or_else(|| unreachable!("each table has a cell"));
        if let Some(open) = cell.get() {
            return Ok(open);
        }
        let name = table.name();
        let open = fenced(name, &[], || self.txn.open_table(Definition::new(name)))?;
        Ok(cell.get_or_init(|| open))
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Snapshot")
    }
}

impl Read for Snapshot {
    fn look(&self, table: Table, key: &[u8], f: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        look_row(self.table(table)?, table.name(), key, f)
    }

    fn walk(&self, table: Table, walk: &Walk, visit: Visit<'_>) -> Result<()> {
        walk_rows(self.table(table)?, table.name(), walk, visit)
    }
}

/// What a transaction wrote of what readers keep images of.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    /// Indexes of which it wrote blocks before its end, and kept none of these.
    pub(crate) spilled: BTreeSet<IndexId>,
    /// Codes.
    pub(crate) slots: BTreeMap<(IndexId, u32), SlotBlock>,
    /// One-bit codes.
    pub(crate) bits: BTreeMap<(IndexId, u32), BitRow>,
    /// Documents of full-text indexes.
    pub(crate) docs: BTreeMap<(TextId, u32), DocBlock>,
}

/// A write transaction. Blocks of codes and vectors that it changes are kept decoded until it ends, so that a batch
/// writes each of them once; past [`STAGED_BYTES_MAX`] they are written before.
pub(crate) struct WriteTx<'t> {
    txn: &'t WriteTransaction,
    /// The mark of its commit.
    pub(super) nonce: Nonce,
    epoch: u64,
    tables: [OnceCell<WriteTable<'t>>; Table::COUNT],
    slots: BTreeMap<(IndexId, u32), SlotBlock>,
    vectors: BTreeMap<(IndexId, u32), VectorBlock>,
    pub(super) bits: BTreeMap<(IndexId, u32), BitRow>,
    /// The centers of one-bit codes that were read, so that each is read once.
    pub(super) centers: RefCell<BTreeMap<IndexId, Option<Arc<BitsHead>>>>,
    pub(super) slot_heads: BTreeMap<IndexId, SlotHead>,
    pub(super) text_heads: BTreeMap<TextId, TextHead>,
    pub(super) docs: BTreeMap<(TextId, u32), DocBlock>,
    /// Blocks of postings that have lost documents, by the key that they had.
    pub(super) postings: BTreeMap<Vec<u8>, Thinned>,
    /// Rows that wait to be put or taken away in the order of their keys.
    gathered: Gathered,
    /// Rows that it put or took away.
    rows: u64,
    /// Bytes that the blocks take that are kept decoded.
    staged_bytes: usize,
    /// Indexes of which blocks were written to make room for others.
    pub(super) spilled: BTreeSet<IndexId>,
    /// Bytes of the block of links that is being encoded.
    pub(super) scratch: Vec<u8>,
    /// Bytes of keys and values that came, less those that went.
    pub(super) grown: i64,
    /// Bytes of keys and values that were put, and of those that were taken away.
    pub(super) moved: u64,
    /// What it watches of one memory.
    pub(crate) watch: Watch,
}

impl Drop for WriteTx<'_> {
    /// Lets go of one table after the other. redb works on its list of tables then. Where a page of that list is damaged, each
    /// table ends in a panic, and the second one, in the midst of the first, would end the process.
    fn drop(&mut self) {
        for table in self.tables.iter_mut().filter_map(OnceCell::take) {
            // What was wrong with the list has been told when the table was opened, or is told when the transaction ends.
            let _ = fenced(FILE, &[], || {
                drop(table);
                Ok::<_, redb::StorageError>(())
            });
        }
    }
}

impl<'t> WriteTx<'t> {
    pub(crate) fn new(txn: &'t WriteTransaction, nonce: Nonce, epoch: u64) -> Self {
        let tables = [const { OnceCell::new() }; Table::COUNT];
        WriteTx {
            txn,
            nonce,
            epoch,
            tables,
            slots: BTreeMap::new(),
            vectors: BTreeMap::new(),
            bits: BTreeMap::new(),
            centers: RefCell::default(),
            slot_heads: BTreeMap::new(),
            text_heads: BTreeMap::new(),
            docs: BTreeMap::new(),
            postings: BTreeMap::new(),
            gathered: Gathered::default(),
            rows: 0,
            staged_bytes: 0,
            spilled: BTreeSet::new(),
            scratch: Vec::new(),
            grown: 0,
            moved: 0,
            watch: Watch::default(),
        }
    }

    /// The epoch of the store that it writes to, as [`Snapshot::epoch`].
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    fn table(&self, table: Table) -> Result<&WriteTable<'t>> {
        let cell = self.tables.get(table.at()).unwrap_or_else(|| unreachable!("each table has a cell"));
        if let Some(open) = cell.get() {
            return Ok(open);
        }
        let open = fenced(table.name(), &[], || self.txn.open_table(Definition::new(table.name())))?;
        Ok(cell.get_or_init(|| open))
    }

    fn table_mut(&mut self, table: Table) -> Result<&mut WriteTable<'t>> {
        self.table(table)?;
        let open = self.tables.get_mut(table.at()).and_then(OnceCell::get_mut);
        Ok(open.unwrap_or_else(|| unreachable!("the line above opens it")))
    }

    /// Whether it has put or taken away any row so far but that of the clock, which each transaction puts.
    pub(super) fn has_changed(&self) -> bool {
        self.rows > 1
    }

    fn count_row(&mut self) {
        self.rows += 1;
        tally::written(self.rows);
    }

    /// Changes the tables as was gathered.
    pub(crate) fn put_gathered(&mut self) -> Result<()> {
        self.gathered.tables().into_iter().try_for_each(|table| self.put_gathered_of(table))
    }

    fn put_gathered_of(&mut self, table: Table) -> Result<()> {
        // Rows of a table that can't be opened stay where they are.
        self.table(table)?;
        let (rows, mut moved, mut grown) = (self.gathered.take(table), 0, 0);
        let made = change_sorted(self.table_mut(table)?, table.name(), &rows, &mut |key, value, old| {
            let (by, more) = changed_bytes(key, value, old);
            (moved, grown) = (moved + by, grown + more);
        });
        (self.moved, self.grown) = (self.moved + moved, self.grown + grown);
        self.gathered.give_back(table, rows, made.is_ok());
        made
    }

    /// Puts a row in place of whatever stood under its key.
    pub(super) fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.change(table, key, Some(value))
    }

    /// Takes a row away, if there is one.
    pub(super) fn delete(&mut self, table: Table, key: &[u8]) -> Result<()> {
        self.change(table, key, None)
    }

    /// Takes a row away and says whether there was one.
    pub(super) fn delete_there(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        let is_there = self.look(table, key, &mut |_| Ok(()))?;
        if is_there {
            self.delete(table, key)?;
        }
        Ok(is_there)
    }

    fn change(&mut self, table: Table, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        self.count_row();
        self.watch.note(table, key);
        if Gathered::is_alone(value) {
            self.gathered.forget(table, key);
            let mut by = (0, 0);
            change(self.table_mut(table)?, table.name(), (key, value), &mut |key, value, old| {
                by = changed_bytes(key, value, old);
            })?;
            (self.moved, self.grown) = (self.moved + by.0, self.grown + by.1);
            return Ok(());
        }
        let is_full = self.gathered.keep(table, key, value);
        match self.gathered.is_full() {
            true => self.put_gathered(),
            false if is_full => self.put_gathered_of(table),
            false => Ok(()),
        }
    }

    /// Takes away every row of a walk in key order, at most `most`, and says how many went. They go page by page: to look for
    /// each of them by its key takes several times as long.
    ///
    /// # Errors
    /// `Corrupted` where the walk has rows and none of them goes: whoever deletes until nothing is left would not come to an end.
    pub(super) fn delete_walk(&mut self, table: Table, walk: &Walk, most: usize) -> Result<usize> {
        self.put_gathered_of(table)?;
        let (mut met, mut last, mut strays) = (0, Vec::new(), Vec::new());
        self.walk(table, walk, &mut |key, _| {
            if met == most {
                return Ok(ControlFlow::Break(()));
            }
            // A damaged key stands where its row belongs, and not where it says.
            if !walk.has(key) || (met > 0 && *key <= *last) {
                strays.push(key.to_vec());
            }
            met += 1;
            last.clear();
            last.extend_from_slice(key);
            Ok(ControlFlow::Continue(()))
        })?;
        if met == 0 {
            return Ok(0);
        }
        let (mut gone, mut bytes) = (0, 0);
        let mut count = |key: &[u8], value: &[u8]| {
            gone += 1;
            bytes += key.len() + value.len();
        };
        let rows = self.table_mut(table)?;
        if strays.is_empty() {
            let doomed = (walk.bounds().0, Bound::Included(last.as_slice()));
            fenced(table.name(), &[], || {
                rows.retain_in::<&[u8], _>(doomed, |key, value| {
                    count(key, value);
                    false
                })
            })?;
        } else {
            let is_doomed = |key: &[u8]| walk.has(key) || strays.iter().any(|stray| *stray == key);
            take_met(rows, table.name(), walk.bounds().0, met, &is_doomed, &mut count)?;
        }
        if gone == 0 {
            return Err(Error::corrupted(table.name(), &last, OUT_OF_ORDER));
        }
        self.count_gone(gone, bytes);
        Ok(gone)
    }

    /// Takes away the rows that stand last in a walk, at most `most`, and says how many went. Where the first of them stands under
    /// a key that says another place, the walk ends before it has begun.
    pub(super) fn delete_back(&mut self, table: Table, walk: &Walk, most: usize) -> Result<usize> {
        let (mut gone, mut bytes) = (0, 0);
        let (rows, to) = (self.table_mut(table)?, walk.bounds().1);
        take_back(rows, table.name(), to, most, &|key| walk.has(key), &mut |key, value| {
            gone += 1;
            bytes += key.len() + value.len();
        })?;
        if gone > 0 {
            self.count_gone(gone, bytes);
        }
        Ok(gone)
    }

    /// Takes away the rows of a walk of whose keys `is_doomed` says so, also where a look by the key would not find them.
    ///
    /// # Errors
    /// `Corrupted` where the walk has such rows and none of them goes.
    pub(super) fn strike(
        &mut self,
        table: Table,
        walk: &Walk,
        is_doomed: &dyn Fn(&[u8]) -> bool,
    ) -> Result<()> {
        self.put_gathered_of(table)?;
        let (mut seen, mut met, mut last) = (0, 0, None);
        self.walk(table, walk, &mut |key, _| {
            seen += 1;
            if is_doomed(key) {
                (met, last) = (seen, Some(key.to_vec()));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let Some(last) = last else { return Ok(()) };
        let (mut gone, mut bytes) = (0, 0);
        take_met(
            self.table_mut(table)?,
            table.name(),
            walk.bounds().0,
            met,
            is_doomed,
            &mut |key, value| {
                gone += 1;
                bytes += key.len() + value.len();
            },
        )?;
        if gone == 0 {
            return Err(Error::corrupted(table.name(), &last, OUT_OF_ORDER));
        }
        self.count_gone(gone, bytes);
        Ok(())
    }

    fn count_gone(&mut self, gone: usize, bytes: usize) {
        self.watch.note_all();
        self.moved += bytes as u64;
        self.grown -= bytes as i64;
        (0..gone).for_each(|_| self.count_row());
    }

    /// A block of codes to change; a new one of `dim` dimensions where there is none.
    pub(crate) fn slot_block_mut(
        &mut self,
        index: IndexId,
        block: u32,
        dim: usize,
    ) -> Result<&mut SlotBlock> {
        if !self.slots.contains_key(&(index, block)) {
            let found = self.slot_block(index, block, dim)?.unwrap_or_else(|| SlotBlock::new(dim));
            // Room is made before the block is kept, because making room empties the maps.
            self.make_room(slots_per_block(dim) * (dim + size_of::<SlotMeta>()))?;
            self.slots.insert((index, block), found);
        }
        Ok(self.slots.get_mut(&(index, block)).unwrap_or_else(|| unreachable!("it is staged by now")))
    }

    /// A block of vectors to change; a new one of `dim` dimensions where there is none.
    pub(crate) fn vector_block_mut(
        &mut self,
        index: IndexId,
        block: u32,
        dim: usize,
    ) -> Result<&mut VectorBlock> {
        if !self.vectors.contains_key(&(index, block)) {
            let found = self.vector_block(index, block, dim)?.unwrap_or_else(|| VectorBlock::new(dim));
            self.make_room(vectors_per_block(dim) * dim * size_of::<f32>())?;
            self.vectors.insert((index, block), found);
        }
        Ok(self.vectors.get_mut(&(index, block)).unwrap_or_else(|| unreachable!("it is staged by now")))
    }

    /// The numbers of one vector of a block, without a copy of a block that is staged: a walk asks for thousands.
    pub(crate) fn vector_in(
        &self,
        index: IndexId,
        block: u32,
        dim: usize,
        at: usize,
    ) -> Result<Option<Vec<f32>>> {
        let of = |block: &VectorBlock| block.get(at).map(<[f32]>::to_vec);
        match self.vectors.get(&(index, block)) {
            Some(staged) => Ok(of(staged)),
            None => Ok(self.vector_block(index, block, dim)?.as_ref().and_then(of)),
        }
    }

    /// Writes a block of codes as a whole, whatever stood there; images of the index are void then.
    pub(crate) fn put_slot_block(&mut self, index: IndexId, block: u32, value: &SlotBlock) -> Result<()> {
        debug_assert!(!self.slots.contains_key(&(index, block)), "a block that is staged would win");
        let (key, mut bytes) = (keys::block(index, block), Vec::new());
        value.encode(&key, &mut bytes);
        self.put(Table::Slot, &key, &bytes)
    }

    /// Takes every row of an index away but its vectors, unread.
    pub(crate) fn delete_index_rows(&mut self, index: IndexId) -> Result<()> {
        // Staged blocks go first, or the end of the transaction would write them again.
        self.slots.retain(|(staged, _), _| *staged != index);
        self.slot_heads.remove(&index);
        let prefix = Walk::prefix(&keys::index(index));
        for table in [Table::Slot, Table::SlotFree, Table::SlotDead, Table::Graph] {
            self.delete_walk(table, &prefix, usize::MAX)?;
        }
        self.delete_bits(index)?;
        for table in [Table::SlotHead, Table::GraphHead] {
            self.delete(table, &keys::index(index))?;
        }
        Ok(())
    }

    /// Forgets the staged blocks of a namespace that is being dropped, or of one partition that goes.
    pub(crate) fn drop_staged(&mut self, ns: NsId, part: Option<PartId>) {
        let stays = |of: NsId, other: PartId| of != ns || part.is_some_and(|part| part != other);
        self.slots.retain(|(index, _), _| stays(index.ns, index.part));
        self.vectors.retain(|(index, _), _| stays(index.ns, index.part));
        self.bits.retain(|(index, _), _| stays(index.ns, index.part));
        self.centers.get_mut().clear();
        self.slot_heads.retain(|index, _| stays(index.ns, index.part));
        self.text_heads.retain(|text, _| stays(text.ns, text.part));
        self.docs.retain(|(text, _), _| stays(text.ns, text.part));
        let prefix = part.map_or_else(|| keys::ns(ns), |part| keys::ns_part(ns, part));
        self.postings.retain(|key, _| !key.starts_with(&prefix));
    }

    /// Makes room for a block of so many bytes that is to be kept decoded: where there is none, all others are written. What
    /// a transaction takes of memory does not go by what it changes.
    pub(super) fn make_room(&mut self, bytes: usize) -> Result<()> {
        if self.staged_bytes + bytes > STAGED_BYTES_MAX {
            let (slots, bits, docs) = (self.flush_vectors()?, self.flush_bits()?, self.flush_texts()?);
            // These blocks do not reach the images of readers, so their indexes are named instead.
            self.spilled.extend(slots.into_keys().chain(bits.into_keys()).map(|(index, _)| index));
            self.spilled.extend(docs.into_keys().map(|(text, _)| text.index()));
            self.staged_bytes = 0;
        }
        self.staged_bytes += bytes;
        tally::staged(self.staged_bytes);
        Ok(())
    }

    /// Writes what is staged and gives the blocks of codes and of documents to whoever keeps images of them.
    pub(crate) fn flush(&mut self) -> Result<Staged> {
        let (slots, bits, docs) = (self.flush_vectors()?, self.flush_bits()?, self.flush_texts()?);
        self.flush_slot_heads()?;
        self.flush_heads()?;
        self.put_gathered()?;
        Ok(Staged { spilled: std::mem::take(&mut self.spilled), slots, bits, docs })
    }

    fn flush_slot_heads(&mut self) -> Result<()> {
        for (index, head) in std::mem::take(&mut self.slot_heads) {
            self.put_meta(Table::SlotHead, &keys::index(index), &head)?;
        }
        Ok(())
    }

    fn flush_vectors(&mut self) -> Result<BTreeMap<(IndexId, u32), SlotBlock>> {
        let mut bytes = Vec::new();
        for ((index, block), value) in std::mem::take(&mut self.vectors) {
            let key = keys::block(index, block);
            bytes.clear();
            value.encode(&key, &mut bytes);
            self.put(Table::Vector, &key, &bytes)?;
        }
        let slots = std::mem::take(&mut self.slots);
        for ((index, block), value) in &slots {
            let key = keys::block(*index, *block);
            bytes.clear();
            value.encode(&key, &mut bytes);
            self.put(Table::Slot, &key, &bytes)?;
        }
        Ok(slots)
    }
}

impl Read for WriteTx<'_> {
    fn look(&self, table: Table, key: &[u8], f: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        match self.gathered.get(table, key) {
            Some(value) => {
                tally::read();
                value.map(f).transpose().map(|there| there.is_some())
            }
            None => look_row(self.table(table)?, table.name(), key, f),
        }
    }

    fn walk(&self, table: Table, walk: &Walk, visit: Visit<'_>) -> Result<()> {
        let stored = |visit: Visit<'_>| walk_rows(self.table(table)?, table.name(), walk, visit);
        self.gathered.walk(table, walk, visit, stored)
    }

    fn slot_block(&self, index: IndexId, block: u32, dim: usize) -> Result<Option<SlotBlock>> {
        match self.slots.get(&(index, block)) {
            Some(staged) => Ok(Some(staged.clone())),
            None => stored(self, Table::Slot, index, block, |at, bytes| SlotBlock::decode(at, dim, bytes)),
        }
    }

    fn vector_block(&self, index: IndexId, block: u32, dim: usize) -> Result<Option<VectorBlock>> {
        match self.vectors.get(&(index, block)) {
            Some(staged) => Ok(Some(staged.clone())),
            None => {
                let salvage = |at: At<'_>, bytes: &[u8]| Ok(VectorBlock::salvage(at, dim, bytes));
                stored(self, Table::Vector, index, block, salvage)
            }
        }
    }

    fn slot_head(&self, index: IndexId) -> Result<SlotHead> {
        match self.slot_heads.get(&index) {
            Some(staged) => Ok(*staged),
            None => stored_slot_head(self, index),
        }
    }

    fn text_head(&self, text: TextId) -> Result<Option<TextHead>> {
        match self.text_heads.get(&text) {
            Some(staged) => Ok(Some(staged.clone())),
            None => found(self, Table::TextHead, &keys::ns_part(text.ns, text.part), |at, bytes| {
                record::decode_meta(Table::TextHead.tag(), at, bytes)
            }),
        }
    }

    fn doc_block(&self, text: TextId, block: u32) -> Result<Option<DocBlock>> {
        match self.docs.get(&(text, block)) {
            Some(staged) => Ok(Some(staged.clone())),
            None => found(self, Table::TextDoc, &keys::text(text.ns, text.part, block), DocBlock::decode),
        }
    }
}
