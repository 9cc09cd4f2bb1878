//! The indexes of vectors in a copy: codes, vectors and graphs, without holes.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::error::{Error, Result, sound};
use crate::record::{SlotMeta, slots_per_block, vectors_per_block};
use crate::store::compact::bits::CopiedBits;
use crate::store::compact::copy::{Copy, RESTORED, SLICE_BYTES, torn};
use crate::store::compact::graph::Graph;
use crate::store::compact::numbers::Numbers;
use crate::store::control::SlotHead;
use crate::store::keys;
use crate::store::part::IndexId;
use crate::store::raw::Walk;
use crate::store::rows::Rows;
use crate::store::tables::{Table, meta_of};
use crate::store::tx::{Read, Snapshot, WriteTx};

/// The tables of an index of vectors.
const OF_INDEXES: [Table; 9] = [
    Table::Slot,
    Table::SlotHead,
    Table::SlotFree,
    Table::SlotDead,
    Table::Vector,
    Table::Graph,
    Table::GraphHead,
    Table::Bits,
    Table::BitsHead,
];
/// Bytes of a slot that is being copied, beside its code and its vector, which lie in memory twice.
const SLOT_BYTES: usize = 256;

/// A slot that a copy keeps.
struct CopiedSlot {
    old: u32,
    new: u32,
    meta: SlotMeta,
    code: Vec<i8>,
}

impl Copy<'_> {
    /// Copies codes, vectors and graphs, index by index, without the holes.
    pub(super) fn indexes(&mut self) -> Result<()> {
        self.commit(|tx| OF_INDEXES.into_iter().try_for_each(|table| tx.touch(table)))?;
        for (index, head) in self.heads()? {
            if let Err(why) = torn(self.index(index, head))? {
                // Codes can be made again from the vectors, so these keep their places. A graph is left out.
                self.note(Table::Slot, &keys::index(index), why);
                let rows = Walk::prefix(&keys::index(index));
                for table in OF_INDEXES {
                    self.commit(|tx| tx.delete_walk(table, &rows, usize::MAX).map(drop))?;
                }
                for table in [Table::Slot, Table::SlotHead, Table::SlotFree, Table::Vector] {
                    self.plain(table, &rows)?;
                }
                self.slots.insert(index, Numbers::Same);
            }
        }
        Ok(())
    }

    /// The indexes with their heads. A head under a damaged key is that of the index whose key it fits, and one that is missing
    /// is made up from the blocks: what lies in them is truth, and the head is not. A head that can't be read has none.
    fn heads(&mut self) -> Result<BTreeMap<IndexId, Option<SlotHead>>> {
        let (mut heads, mut unread) = (BTreeMap::new(), Vec::new());
        let walked = self.from.walk(Table::SlotHead, &Walk::all(), &mut |key, value| {
            match keys::SlotHead::parse(key).zip(sound(meta_of(Table::SlotHead, key, value))?) {
                Some((key, head)) => drop(heads.insert(key.index, Some(head))),
                None => unread.push((key.to_vec(), value.to_vec())),
            }
            Ok(ControlFlow::Continue(()))
        });
        if let Err(why) = torn(walked)? {
            self.note(Table::SlotHead, &[], why);
        }
        for (key, value) in unread {
            if let Some(fits) = self.restored(Table::SlotHead, &key, &value)? {
                self.note(Table::SlotHead, &key, RESTORED);
                let head = meta_of(Table::SlotHead, &fits, &value)?;
                heads.insert(keys::SlotHead::read(Table::SlotHead, &fits)?.index, Some(head));
                continue;
            }
            match keys::SlotHead::parse(&key) {
                Some(key) if self.has_blocks(key.index)? => drop(heads.entry(key.index).or_insert(None)),
                _ => self.note(Table::SlotHead, &key, "the head of no index"),
            }
        }
        for table in [Table::Slot, Table::Vector] {
            for index in self.indexes_with_blocks(table)? {
                // A block whose key is damaged may name any index.
                let is_there = sound(self.from.space(index.space))? != Some(None);
                if is_there && !heads.contains_key(&index) {
                    self.note(Table::SlotHead, &keys::index(index), "an index has blocks and no head");
                    heads.insert(index, Some(self.from.counted_slots(index)?));
                }
            }
        }
        Ok(heads)
    }

    fn has_blocks(&self, index: IndexId) -> Result<bool> {
        let (walk, mut has) = (Walk::prefix(&keys::index(index)), false);
        for table in [Table::Slot, Table::Vector] {
            let walked = self.from.walk(table, &walk, &mut |_, _| {
                has = true;
                Ok(ControlFlow::Break(()))
            });
            // Behind a damaged page there may be some.
            has |= torn(walked)?.is_err();
        }
        Ok(has)
    }

    /// The indexes that have blocks in a table: a look at the first block of each.
    fn indexes_with_blocks(&self, table: Table) -> Result<Vec<IndexId>> {
        let (mut all, mut walk) = (Vec::new(), Some(Walk::all()));
        while let Some(from) = walk.take() {
            let walked = torn(self.from.walk(table, &from, &mut |key, _| {
                let index = keys::Slot::read(table, key)?.index;
                // A damaged key leads forward too, so this comes to an end.
                let end =
                    keys::end_of(&keys::index(index)).filter(|_| all.last().is_none_or(|last| *last < index));
                walk = end.map(|end| Walk::all().starting_at(&end));
                all.push(index);
                Ok(ControlFlow::Break(()))
            }))?;
            if walked.is_err() {
                break;
            }
        }
        Ok(all)
    }

    fn index(&mut self, index: IndexId, head: Option<SlotHead>) -> Result<()> {
        let head = head.map_or_else(|| self.from.slot_head(index), Ok)?;
        let space = self.from.space(index.space)?;
        let dim = space.map(|space| space.dim as usize).ok_or_else(|| {
            Error::corrupted(Table::Space.name(), &keys::space(index.space), "an index lies in no space")
        })?;
        let linked = self.from.look(Table::GraphHead, &keys::index(index), &mut |_| Ok(()))?;
        let mut numbers = Numbers::without_holes(self.from, index, head.len, dim, linked)?;
        let graph = Graph::of(self.from, index, &numbers)?;
        if linked && graph.is_none() {
            self.note(Table::Graph, &keys::index(index), "the graph can't be read");
            // Dead slots are kept for the graph alone, so without it the numbers are given again.
            numbers = Numbers::without_holes(self.from, index, head.len, dim, false)?;
        }
        self.codes(index, head, dim, &numbers)?;
        if let Some(graph) = graph {
            self.graph(index, &graph, &numbers)?;
        }
        self.slots.insert(index, numbers);
        Ok(())
    }

    /// Copies the codes and vectors of an index; the dead slots only where the copy has the graph that needs them.
    fn codes(&mut self, index: IndexId, head: SlotHead, dim: usize, numbers: &Numbers) -> Result<()> {
        let per = slots_per_block(dim) as u32;
        let mut bits = self.bits(index, head, dim, numbers)?;
        let (mut copied, mut kept) = (SlotHead::default(), Vec::new());
        // A dimension takes one byte in a code and four in a vector.
        let most = SLICE_BYTES / (SLOT_BYTES + 2 * 5 * dim);
        for block in 0..head.len.div_ceil(per) {
            let codes = self.from.slot_block(index, block, dim)?;
            for (at, slot) in (0..per as usize).zip(block * per..) {
                let (Some(codes), Some(new)) = (&codes, numbers.of(slot)) else { continue };
                let (Some(meta), Some(code)) = (codes.meta(at), codes.code(at)) else { continue };
                copied.len = new + 1;
                copied.used += u32::from(!meta.is_vacant());
                kept.push(CopiedSlot { old: slot, new, meta: *meta, code: code.to_vec() });
            }
            if kept.len() >= most || block + 1 == head.len.div_ceil(per) {
                self.put_slots(index, dim, &kept, &copied, bits.as_mut())?;
                kept.clear();
            }
        }
        Ok(())
    }

    fn put_slots(
        &mut self,
        index: IndexId,
        dim: usize,
        kept: &[CopiedSlot],
        head: &SlotHead,
        mut bits: Option<&mut CopiedBits>,
    ) -> Result<()> {
        let mut lost = Vec::new();
        let from = self.from;
        self.commit(|tx| {
            let mut vector = Vec::with_capacity(dim);
            for slot in kept {
                if let Some(bits) = &mut bits {
                    bits.put(tx, from, index, slot.old, slot.new)?;
                }
                if let Err(why) = put_slot(tx, from, index, slot, &mut vector, dim)? {
                    lost.push((keys::memory(index.ns, slot.meta.id), why));
                }
            }
            tx.put_slot_head(index, *head);
            Ok(())
        })?;
        self.rows += kept.len() as u64;
        lost.into_iter().for_each(|(key, why)| self.note(Table::Vector, &key, why));
        Ok(())
    }
}

/// Puts a slot under its new number, with its vector or its row among the dead. A vector that can't be read leaves its
/// place vacant.
fn put_slot(
    tx: &mut WriteTx<'_>,
    from: &Snapshot,
    index: IndexId,
    slot: &CopiedSlot,
    vector: &mut Vec<f32>,
    dim: usize,
) -> Result<Result<(), String>> {
    let per = slots_per_block(dim) as u32;
    let codes = tx.slot_block_mut(index, slot.new / per, dim)?;
    codes.put((slot.new % per) as usize, slot.meta, &slot.code);
    if slot.meta.is_vacant() {
        return tx.put_dead_slot(index, slot.meta.died, slot.new).map(Ok);
    }
    match torn(from.vector(index, dim, slot.old, vector))? {
        Ok(true) => {}
        Ok(false) => return Ok(Err("a code without its vector".to_owned())),
        Err(why) => return Ok(Err(why)),
    }
    let per = vectors_per_block(dim) as u32;
    tx.vector_block_mut(index, slot.new / per, dim)?.put((slot.new % per) as usize, vector);
    Ok(Ok(()))
}
