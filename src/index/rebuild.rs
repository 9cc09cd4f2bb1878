//! Writes an index again from the rows that it follows from: memories say which slot they have, and vectors give the
//! codes.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::index::bit_rows;
use crate::index::slots::{place, vector_at};
use crate::model::{MemoryId, Times};
use crate::record::{ALIVE, SlotBlock, SlotMeta, slots_per_block, vectors_per_block};
use crate::store::control::SlotHead;
use crate::store::{IndexId, Read, Rows, Table, Walk, WriteTx, keys};
use crate::vector::encode;

/// The memories that have their slots in an index, by slot.
fn rows_of(tx: &WriteTx<'_>, index: IndexId) -> Result<BTreeMap<u32, (MemoryId, Times)>> {
    let mut rows = BTreeMap::new();
    tx.all_vitals(index.ns, &mut |id, vitals| {
        let place = &vitals.place;
        if let Some(slot) = place.slot
            && (place.partition, place.space) == (index.part.0, index.space.0)
        {
            rows.insert(slot, (id, vitals.times));
        }
        Ok(())
    })?;
    Ok(rows)
}

/// The dimensions of the space of an index.
fn dim_of(tx: &WriteTx<'_>, index: IndexId) -> Result<usize> {
    let space = tx.space(index.space)?.ok_or_else(|| {
        Error::corrupted(Table::Space.name(), &keys::space(index.space), "an index lies in a space unknown")
    })?;
    Ok(space.dim as usize)
}

/// The memories of an index whose vectors can't be read. Nothing can replace these vectors.
pub(crate) fn without_vector(tx: &WriteTx<'_>, index: IndexId) -> Result<Vec<MemoryId>> {
    let dim = dim_of(tx, index)?;
    let mut lost = Vec::new();
    for (slot, (id, _)) in rows_of(tx, index)? {
        if vector_at(tx, index, dim, slot)?.is_none() {
            lost.push(id);
        }
    }
    Ok(lost)
}

/// Drops the graph, the codes and the lists of slots of an index, and writes codes and lists again. Nothing of what is
/// dropped is read, so it may be damaged. Vectors that belong to no memory are removed as well. Returns the number of
/// rows with a vector. `commit` is the number of the present commit.
///
/// # Errors
/// `Corrupted` for a memory without its vector; [`without_vector`] lists such memories.
pub(crate) fn rebuild(tx: &mut WriteTx<'_>, index: IndexId, commit: u64) -> Result<u32> {
    let (dim, rows) = (dim_of(tx, index)?, rows_of(tx, index)?);
    erase_strangers(tx, index, dim, &rows)?;
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
fn erase_strangers(
    tx: &mut WriteTx<'_>,
    index: IndexId,
    dim: usize,
    rows: &BTreeMap<u32, (MemoryId, Times)>,
) -> Result<()> {
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
