//! Writes an index again from the rows that it follows from: memories say which slot they have, and vectors give the
//! codes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::index::bit_rows;
use crate::index::slots::{place, vector_at};
use crate::model::{MemoryId, Times};
use crate::record::{ALIVE, SlotBlock, SlotMeta, slots_per_block, vectors_per_block};
use crate::store::control::SlotHead;
use crate::store::{IndexId, NsId, PartId, Read, Rows, SpaceId, Table, Walk, WriteTx, keys};
use crate::vector::encode;

/// The memories that have their slots in an index, by slot.
pub(crate) type SlotRows = BTreeMap<u32, (MemoryId, Times)>;

/// The memories of each of these indexes of a namespace, by one walk over all memories of the namespace: only the truth tells
/// whose slot it is. An index without memories has no entry.
pub(crate) fn rows_of(
    tx: &WriteTx<'_>,
    ns: NsId,
    indexes: &BTreeSet<IndexId>,
) -> Result<BTreeMap<IndexId, SlotRows>> {
    let mut all: BTreeMap<IndexId, SlotRows> = BTreeMap::new();
    tx.all_vitals(ns, &mut |id, vitals| {
        let place = &vitals.place;
        let index = IndexId { ns, part: PartId(place.partition), space: SpaceId(place.space) };
        if let Some(slot) = place.slot.filter(|_| indexes.contains(&index)) {
            all.entry(index).or_default().insert(slot, (id, vitals.times));
        }
        Ok(())
    })?;
    Ok(all)
}

/// The dimensions of the space of an index.
fn dim_of(tx: &WriteTx<'_>, index: IndexId) -> Result<usize> {
    let space = tx.space(index.space)?.ok_or_else(|| {
        Error::corrupted(Table::Space.name(), &keys::space(index.space), "an index lies in a space unknown")
    })?;
    Ok(space.dim as usize)
}

/// The slots of memories of an index whose vectors can't be read. Nothing can replace these vectors.
pub(crate) fn without_vector(tx: &WriteTx<'_>, index: IndexId, rows: &SlotRows) -> Result<Vec<u32>> {
    let dim = dim_of(tx, index)?;
    let mut lost = Vec::new();
    for slot in rows.keys() {
        if vector_at(tx, index, dim, *slot)?.is_none() {
            lost.push(*slot);
        }
    }
    Ok(lost)
}

/// Drops the graph, the codes and the lists of slots of an index, and writes codes and lists again. Nothing of what is
/// dropped is read, so it may be damaged. Vectors that belong to no memory of `rows` are removed as well. Returns the number
/// of rows with a vector. `commit` is the number of the present commit.
///
/// # Errors
/// `Corrupted` for a memory without its vector; [`without_vector`] lists the slots of such memories.
pub(crate) fn rebuild(tx: &mut WriteTx<'_>, index: IndexId, rows: &SlotRows, commit: u64) -> Result<u32> {
    let dim = dim_of(tx, index)?;
    erase_strangers(tx, index, dim, rows)?;
    tx.delete_index_rows(index)?;
    let len = rows.last_key_value().map_or(0, |(last, _)| last + 1);
    let per = slots_per_block(dim);
    let mut code = vec![0_i8; dim];
    for number in 0..len.div_ceil(per as u32) {
        let mut block = SlotBlock::new(dim);
        let first = number * per as u32;
        for slot in (first..len).take(per) {
            let (_, at) = place(slot, per);
            let Some((id, times)) = rows.get(&slot) else {
                block.put(at, SlotMeta::VACANT, &vec![0; dim]);
                // The graph is gone, so no link leads to a slot without a memory and the slot can be used again.
                tx.put_free_slot(index, commit, slot)?;
                continue;
            };
            let vector = vector_at(tx, index, dim, slot)?.ok_or_else(|| {
                Error::corrupted(
                    Table::Vector.name(),
                    &keys::memory(index.ns, *id),
                    "a memory without its vector",
                )
            })?;
            let params = encode(&vector, &mut code);
            let (from, until) = (times.from().as_millis(), times.until().as_millis());
            let (scale, residual) = (params.scale, params.residual);
            let meta = SlotMeta { id: *id, from, until, born: commit, died: ALIVE, scale, residual };
            block.put(at, meta, &code);
        }
        tx.put_slot_block(index, number, &block)?;
    }
    let used = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    tx.put_slot_head(index, SlotHead { len, used });
    if bit_rows::is_due(len, dim) {
        bit_rows::make(tx, index, dim, len)?;
    }
    Ok(used)
}

/// Erases vectors at positions that belong to no memory.
fn erase_strangers(tx: &mut WriteTx<'_>, index: IndexId, dim: usize, rows: &SlotRows) -> Result<()> {
    // The walk borrows the transaction, so blocks are noted first and changed afterwards.
    let mut blocks = Vec::new();
    tx.vector_blocks(&Walk::prefix(&keys::index(index)), &mut |block, _, _| {
        blocks.push(block);
        Ok(ControlFlow::Continue(()))
    })?;
    let per = vectors_per_block(dim) as u32;
    for block in blocks {
        let Some(vectors) = tx.vector_block(index, block, dim)? else { continue };
        let is_strange = |at: &u32| {
            let slot = block.saturating_mul(per).saturating_add(*at);
            vectors.is_taken(*at as usize) && !rows.contains_key(&slot)
        };
        let strange: Vec<u32> = (0..per).filter(is_strange).collect();
        for at in strange {
            tx.vector_block_mut(index, block, dim)?.erase(at as usize);
        }
    }
    Ok(())
}
