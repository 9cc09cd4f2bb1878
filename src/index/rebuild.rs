//! An index written anew from what it is derived of: memories say who has which slot, vectors what its code is.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::index::slots::{place, vector_at};
use crate::model::{MemoryId, Times};
use crate::record::{ALIVE, SlotBlock, SlotMeta, slots_per_block};
use crate::store::control::SlotHead;
use crate::store::{IndexId, Rows, Table, WriteTx, keys};
use crate::vector::encode;

/// Drops graph, codes and lists of slots of an index, and writes codes and lists again. None of what is dropped is
/// read, so it may be damaged. Gives the number of rows with a vector. `commit` is that under way.
///
/// # Errors
/// `Corrupted` for a damaged memory or vector: these are the truth, and nothing can replace them.
pub(crate) fn rebuild(tx: &mut WriteTx<'_>, index: IndexId, commit: u64) -> Result<u32> {
    let space = tx.space(index.space)?.ok_or_else(|| {
        Error::corrupted(Table::Space.name(), &keys::space(index.space), "an index lies in a space unknown")
    })?;
    let dim = space.dim as usize;
    let mut rows: BTreeMap<u32, (MemoryId, Times)> = BTreeMap::new();
    tx.all_vitals(index.ns, &mut |id, vitals| {
        let place = &vitals.place;
        if let Some(slot) = place.slot
            && (place.partition, place.space) == (index.part.0, index.space.0)
        {
            rows.insert(slot, (id, vitals.times));
        }
        Ok(())
    })?;
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
    tx.put_slot_head(index, &SlotHead { len, used })?;
    Ok(used)
}
