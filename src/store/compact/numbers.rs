//! New numbers of the slots of an index in a copy: in order, without holes.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::record::{At, SlotBlockRef, slots_per_block};
use crate::store::keys;
use crate::store::part::IndexId;
use crate::store::raw::Walk;
use crate::store::rows::Rows;
use crate::store::tables::Table;
use crate::store::tx::Snapshot;

/// The number that each slot of an index has in the copy.
pub(super) enum Numbers {
    /// Its old one: the index is copied as it stands.
    Same,
    /// How many slots before it are kept: by words of 64 slots, a bit for each one that is, and the count before the word.
    Anew(Vec<(u64, u32)>),
}

impl Numbers {
    /// Numbers for the slots of an index that are alive, and with `dead` for those that are kept for the graph.
    pub(super) fn without_holes(
        from: &Snapshot,
        index: IndexId,
        len: u32,
        dim: usize,
        dead: bool,
    ) -> Result<Self> {
        let per = slots_per_block(dim);
        let (mut words, mut kept, mut blocks) = (Vec::new(), 0_u32, 0_u32);
        from.slot_blocks(&Walk::prefix(&keys::index(index)), &mut |_, block, key, bytes| {
            let at = At::new(Table::Slot.name(), key);
            if block != blocks {
                let why = format!("block {blocks} is missing before this one");
                return Err(Error::corrupted(at.table, key, why));
            }
            blocks += 1;
            let metas = SlotBlockRef::open(at, dim, bytes)?.metas();
            for (slot, meta) in (block as usize * per..).zip(metas) {
                // A word begins with the count before it, so a number is found without a walk.
                while words.len() <= slot / 64 {
                    words.push((0_u64, kept));
                }
                if !meta.is_vacant() || (dead && meta.is_dead()) {
                    words.last_mut().into_iter().for_each(|(bits, _)| *bits |= 1 << (slot % 64));
                    kept += 1;
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if blocks != len.div_ceil(per as u32) {
            let why = format!("{blocks} blocks where the {len} slots given out need others");
            return Err(Error::corrupted(Table::SlotHead.name(), &keys::index(index), why));
        }
        Ok(Numbers::Anew(words))
    }

    /// How many slots of an index with `len` slots are kept.
    pub(super) fn kept(&self, len: u32) -> u32 {
        let Numbers::Anew(words) = self else { return len };
        words.last().map_or(0, |(bits, before)| before + bits.count_ones())
    }

    /// The new number of a slot; none for one that is not kept.
    pub(super) fn of(&self, slot: u32) -> Option<u32> {
        let Numbers::Anew(words) = self else { return Some(slot) };
        let (bits, before) = words.get(slot as usize / 64)?;
        let bit = 1_u64 << (slot % 64);
        (bits & bit != 0).then(|| before + (bits & (bit - 1)).count_ones())
    }
}
