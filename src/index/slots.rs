//! Slots on disk: the codes of an index and the instants of their visibility, changed in the transaction of
//! their memory.

use crate::error::{Error, Result};
use crate::index::bit_rows;
use crate::model::{MemoryId, Times};
use crate::record::{ALIVE, SlotMeta, slots_per_block, vectors_per_block};
use crate::store::control::GraphHead;
use crate::store::{IndexId, Read, Rows, WriteTx};
use crate::vector::{Coded, UnitVector};

/// The block and the position of a slot in tables with `per` slots for each block.
pub(super) fn place(slot: u32, per: usize) -> (u32, usize) {
    let per = per as u32;
    (slot / per, (slot % per) as usize)
}

/// What a memory brings into its slot.
#[derive(Clone, Copy)]
pub(crate) struct Filling<'f> {
    /// The commit that fills the slot.
    pub(crate) commit: u64,
    /// The memory.
    pub(crate) id: MemoryId,
    /// When it can be seen.
    pub(crate) times: &'f Times,
    /// Its vector.
    pub(crate) coded: &'f Coded<'f>,
}

/// Gives a memory a slot: the slot that has been free for longest, or a new one. Returns its number.
pub(crate) fn claim(tx: &mut WriteTx<'_>, index: IndexId, filling: Filling<'_>) -> Result<u32> {
    let (mut head, dim) = (tx.slot_head(index)?, filling.coded.vector.dim());
    // Where every slot is used, none is free, and the list need not be asked.
    let free = if head.used < head.len { tx.free_slot(index)? } else { None };
    let slot = match free {
        Some((died, slot)) => {
            tx.delete_free_slot(index, died, slot)?;
            slot
        }
        None => {
            let slot = head.len;
            head.len = slot.checked_add(1).ok_or_else(|| Error::Conflict {
                what: "vector index".to_owned(),
                why: "a partition holds at most 4,294,967,295 vectors".to_owned(),
            })?;
            slot
        }
    };
    // If a head or a list of free slots is damaged or gone, no other memory must lose its vector.
    let (block, at) = place(slot, slots_per_block(dim));
    let before = tx.slot_block_mut(index, block, dim)?.meta(at);
    if before.is_some_and(|meta| !meta.is_vacant() || meta.is_dead()) {
        let why = format!("slot {slot} is to be given out and is in use");
        return Err(Error::corrupted("slot_head", &crate::store::keys::index(index), why));
    }
    head.used += 1;
    tx.put_slot_head(index, head);
    fill(tx, index, slot, filling)?;
    Ok(slot)
}

/// Writes another vector into the slot of a memory.
fn fill(tx: &mut WriteTx<'_>, index: IndexId, slot: u32, filling: Filling<'_>) -> Result<()> {
    let Filling { commit, id, times, coded: Coded { vector, code, params } } = filling;
    let dim = vector.dim();
    let meta = SlotMeta {
        id,
        from: times.from().as_millis(),
        until: times.until().as_millis(),
        born: commit,
        died: ALIVE,
        scale: params.scale,
        residual: params.residual,
    };
    let (block, at) = place(slot, slots_per_block(dim));
    tx.slot_block_mut(index, block, dim)?.put(at, meta, code);
    let (block, at) = place(slot, vectors_per_block(dim));
    tx.vector_block_mut(index, block, dim)?.put(at, vector.as_slice());
    bit_rows::put(tx, index, slot, &meta, code)
}

/// The vector in a slot, as the transaction sees it; none for a slot without a memory.
pub(crate) fn vector_at(
    tx: &WriteTx<'_>,
    index: IndexId,
    dim: usize,
    slot: u32,
) -> Result<Option<UnitVector>> {
    let (block, at) = place(slot, vectors_per_block(dim));
    Ok(tx.vector_in(index, block, dim, at)?.and_then(UnitVector::from_stored))
}

/// Writes the instants of a memory beside its code.
pub(crate) fn set_times(
    tx: &mut WriteTx<'_>,
    index: IndexId,
    dim: usize,
    slot: u32,
    times: &Times,
) -> Result<()> {
    let (block, at) = place(slot, slots_per_block(dim));
    let codes = tx.slot_block_mut(index, block, dim)?;
    match codes.meta(at) {
        Some(meta) if !meta.is_vacant() => {
            let span = (times.from().as_millis(), times.until().as_millis());
            codes.set_times(at, span.0, span.1);
            bit_rows::set_times(tx, index, dim, slot, span)
        }
        _ => Err(missing(index, slot)),
    }
}

/// Gives a memory that has a slot another vector. A node of the graph does not move, so the memory of a node gets
/// another slot. Returns the number of the slot.
pub(crate) fn refill(tx: &mut WriteTx<'_>, index: IndexId, slot: u32, filling: Filling<'_>) -> Result<u32> {
    if node(tx, index, slot)? == GraphRole::None {
        fill(tx, index, slot, filling)?;
        return Ok(slot);
    }
    release(tx, index, filling.coded.vector.dim(), filling.commit, slot)?;
    claim(tx, index, filling)
}

/// The role of a slot in the graph of its index.
#[derive(PartialEq)]
enum GraphRole {
    /// None: no link leads to the slot.
    None,
    /// A node of the graph with this head.
    Of(GraphHead),
    /// The slot may be a node: rows of the graph are damaged, and no walk uses the graph until it is rebuilt.
    Unknown,
}

/// Damage to a graph must not keep a memory from being forgotten.
fn node(tx: &WriteTx<'_>, index: IndexId, slot: u32) -> Result<GraphRole> {
    let found = tx.graph_head(index).and_then(|head| match head {
        Some(head) if tx.is_linked(index, slot)? => Ok(GraphRole::Of(head)),
        _ => Ok(GraphRole::None),
    });
    match found {
        Err(Error::Corrupted { .. }) => Ok(GraphRole::Unknown),
        other => other,
    }
}

/// Takes the slot from a memory that is gone. From this commit on its vector is zeros. If the slot is a node of the
/// graph, walks still pass through its code until it is unlinked. Otherwise the code is zeros as well, and the slot
/// can be used again.
pub(crate) fn release(
    tx: &mut WriteTx<'_>,
    index: IndexId,
    dim: usize,
    commit: u64,
    slot: u32,
) -> Result<()> {
    let (block, at) = place(slot, slots_per_block(dim));
    let codes = tx.slot_block_mut(index, block, dim)?;
    if codes.meta(at).is_none_or(SlotMeta::is_vacant) {
        return Err(missing(index, slot));
    }
    // The vector goes in any case. The code of a node stays, because walks pass through it.
    let node = node(tx, index, slot)?;
    let codes = tx.slot_block_mut(index, block, dim)?;
    if node == GraphRole::None {
        codes.erase(at);
    } else {
        codes.bury(at, commit);
    }
    let (block, at) = place(slot, vectors_per_block(dim));
    tx.vector_block_mut(index, block, dim)?.erase(at);
    bit_rows::erase(tx, index, dim, slot)?;
    let mut head = tx.slot_head(index)?;
    // A wrong count in the head must not keep a memory from being forgotten.
    head.used = head.used.saturating_sub(1);
    tx.put_slot_head(index, head);
    match node {
        GraphRole::None => tx.put_free_slot(index, commit, slot),
        GraphRole::Of(mut graph) => {
            graph.dead += 1;
            tx.put_graph_head(index, &graph)?;
            tx.put_dead_slot(index, commit, slot)
        }
        // Until a rebuild says that no link leads here, the slot must not be given out.
        GraphRole::Unknown => tx.put_dead_slot(index, commit, slot),
    }
}

/// The error if a memory says that it has a slot, and the slot does not know the memory.
fn missing(index: IndexId, slot: u32) -> Error {
    Error::corrupted("slot", &crate::store::keys::index(index), format!("slot {slot} holds no memory"))
}
