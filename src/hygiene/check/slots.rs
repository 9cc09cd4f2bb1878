//! Slots: codes, vectors, free lists and the memories that they belong to.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::hygiene::check::state::{Check, seen};
use crate::hygiene::report::Code;
use crate::model::{MemoryId, Vitals};
use crate::record::{ALIVE, At, SlotBlockRef, SlotMeta, VectorBlock, slots_per_block, vectors_per_block};
use crate::store::keys;
use crate::store::{IndexId, NsId, Read, Rows, Table, Walk, meta_of};
use crate::vector::{CodeParams, UnitVector, encode};

impl Check<'_> {
    /// Reads how many slots each index has, as far as that can be read.
    pub(super) fn learn_heads(&mut self) -> Result<()> {
        let snapshot = self.snapshot;
        let heads = snapshot.walk(Table::SlotHead, &Walk::all(), &mut |key, value| {
            let head = seen(meta_of(Table::SlotHead, key, value))?;
            self.heads.extend(keys::SlotHead::parse(key).map(|key| key.index).zip(head));
            Ok(ControlFlow::Continue(()))
        });
        seen(heads).map(|_| ())
    }

    /// The slot that a memory says it has.
    pub(super) fn slot_of(&mut self, ns: NsId, id: MemoryId, key: &[u8], vitals: &Vitals) -> Result<()> {
        let Some(slot) = vitals.place.slot else { return Ok(()) };
        let index = IndexId::of(ns, vitals);
        let Some(dim) = self.spaces.get(&index.space).copied() else {
            let what = format!("no embedding space {}", index.space.0);
            self.find(Code::SpaceUnknown, Table::Vitals, key, what);
            return Ok(());
        };
        let Some(meta) = self.slot_meta(index, dim, slot)? else { return Ok(()) };
        match meta.filter(|meta| meta.id == id) {
            None => self.find(Code::SlotMissing, Table::Vitals, key, format!("slot {slot} holds another")),
            Some(meta) => {
                let times = &vitals.times;
                if (meta.from, meta.until) != (times.from().as_millis(), times.until().as_millis()) {
                    let what = format!("slot {slot} has other instants than its memory");
                    self.find(Code::SlotTimes, Table::Vitals, key, what);
                }
            }
        }
        Ok(())
    }

    /// What stands beside the code of a slot; none where the block is damaged, some(none) for a vacant one.
    fn slot_meta(&self, index: IndexId, dim: usize, slot: u32) -> Result<Option<Option<SlotMeta>>> {
        let per = slots_per_block(dim) as u32;
        let block = seen(self.snapshot.slot_block(index, slot / per, dim))?;
        Ok(block.map(|block| {
            let meta = block.and_then(|block| block.meta((slot % per) as usize).copied());
            meta.filter(|meta| !meta.is_vacant())
        }))
    }

    pub(super) fn slot_block(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let Some((index, block, dim)) = self.block_of(key) else { return Ok(()) };
        let codes = SlotBlockRef::open(At::new(Table::Slot.name(), key), dim, value)?;
        let first = u64::from(block) * slots_per_block(dim) as u64;
        let len = self.len_of(Table::Slot, key, index);
        if first + codes.len() as u64 > len {
            let what = format!("{} slots from {first} on, and the index has {len}", codes.len());
            self.find(Code::SlotHead, Table::Slot, key, what);
            return Ok(());
        }
        for (at, meta) in codes.metas().enumerate() {
            let Ok(slot) = u32::try_from(first + at as u64) else { return Ok(()) };
            let code = codes.code(at).unwrap_or_default();
            let tally = self.slots.entry(index).or_default();
            if !meta.is_vacant() {
                tally.used += 1;
                self.level_of_node(key, index, slot, meta.id);
                self.used_slot(key, index, slot, dim, &meta, code)?;
                continue;
            }
            if meta.is_dead() && self.graphs.contains_key(&index) {
                tally.dead.insert(slot, meta.died);
                self.dead_slot(key, index, slot, &meta);
                continue;
            }
            tally.vacant.insert(slot);
            if meta != SlotMeta::VACANT || code.iter().any(|byte| *byte != 0) {
                self.find(Code::SlotValue, Table::Slot, key, format!("a code is left in vacant slot {slot}"));
            }
        }
        Ok(())
    }

    fn used_slot(
        &mut self,
        key: &[u8],
        index: IndexId,
        slot: u32,
        dim: usize,
        meta: &SlotMeta,
        code: &[u8],
    ) -> Result<()> {
        let known = self.vitals_of(index.ns, meta.id)?;
        let fits = |v: Option<Vitals>| {
            v.is_some_and(|v| v.place.slot == Some(slot) && IndexId::of(index.ns, &v) == index)
        };
        if known.is_some_and(|vitals| !fits(vitals)) {
            let what = format!("memory {} does not have slot {slot}", meta.id);
            self.find(Code::SlotOrphan, Table::Slot, key, what);
        }
        if meta.born > self.clock.commit || meta.died != ALIVE {
            let what = format!("slot {slot} lives from commit {} to {}", meta.born, meta.died);
            self.find(Code::SlotBorn, Table::Slot, key, what);
        }
        let mut vector = Vec::new();
        let Some(present) = seen(self.snapshot.vector(index, dim, slot, &mut vector))? else { return Ok(()) };
        if !present {
            self.find(Code::VectorMissing, Table::Slot, key, format!("slot {slot} has no vector"));
        } else if !self.code_fits(vector, meta, code) {
            self.find(
                Code::SlotValue,
                Table::Slot,
                key,
                format!("the code of slot {slot} is not its vector's"),
            );
        }
        Ok(())
    }

    /// Whether a code can be that of its vector; with `deep` whether it is. A vector that is none is reported by
    /// its own table.
    fn code_fits(&self, vector: Vec<f32>, meta: &SlotMeta, code: &[u8]) -> bool {
        if !self.deep {
            return CodeParams::from_stored(meta.scale, meta.residual).is_some();
        }
        let Some(vector) = UnitVector::from_stored(vector) else { return true };
        let mut fresh = vec![0_i8; vector.dim()];
        let params = encode(&vector, &mut fresh);
        let same = fresh.iter().map(|byte| byte.cast_unsigned()).eq(code.iter().copied());
        same && (params.scale, params.residual) == (meta.scale, meta.residual)
    }

    pub(super) fn vector_block(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let Some((index, block, dim)) = self.block_of(key) else { return Ok(()) };
        let vectors = VectorBlock::decode(At::new(Table::Vector.name(), key), dim, value)?;
        self.len_of(Table::Vector, key, index);
        let per = vectors_per_block(dim);
        for at in 0..per {
            let Some(vector) = vectors.get(at) else { continue };
            let slot = u64::from(block) * per as u64 + at as u64;
            let meta = match u32::try_from(slot) {
                Ok(slot) => self.slot_meta(index, dim, slot)?,
                Err(_) => Some(None),
            };
            if meta.is_some_and(|meta| meta.is_none()) {
                self.find(Code::VectorExtra, Table::Vector, key, format!("slot {slot} is vacant"));
            }
            if UnitVector::from_stored(vector).is_none() {
                let what = format!("the vector of slot {slot} has not the length 1");
                self.find(Code::VectorLength, Table::Vector, key, what);
            }
        }
        Ok(())
    }

    pub(super) fn slot_free(&mut self, key: &[u8]) -> Result<()> {
        let keys::SlotFree { index, died, slot } = keys::SlotFree::read(Table::SlotFree, key)?;
        let len = self.len_of(Table::SlotFree, key, index);
        let tally = self.slots.entry(index).or_default();
        let twice = !tally.free.insert(slot);
        let vacant = tally.blind || tally.vacant.contains(&slot);
        let dead = tally.dead.contains_key(&slot);
        let what = match () {
            () if twice => "stands here twice",
            () if u64::from(slot) >= len => "was never given out",
            () if dead => "is dead, and the graph needs it still",
            () if !vacant => "is in use",
            () if died > self.clock.commit => "was freed by a commit that is not yet",
            () => return Ok(()),
        };
        self.find(Code::SlotFree, Table::SlotFree, key, format!("slot {slot} {what}"));
        Ok(())
    }

    /// Every slot of an index is used, free or dead, once.
    pub(super) fn finish_slots(&mut self) {
        let heads: Vec<_> = self.heads.iter().map(|(index, head)| (*index, *head)).collect();
        for (index, head) in heads {
            let key = keys::index(index);
            let tally = self.slots.remove(&index).unwrap_or_default();
            if tally.blind || self.tenants.get(&index.ns).is_none_or(|tenant| tenant.dropping) {
                continue;
            }
            if tally.used != u64::from(head.used) {
                let what = format!("{} slots in use counted, {} there", head.used, tally.used);
                self.find(Code::SlotHead, Table::SlotHead, &key, what);
            }
            for slot in tally.vacant.difference(&tally.free) {
                self.find(Code::SlotFree, Table::SlotHead, &key, format!("vacant slot {slot} is in no list"));
            }
            for slot in tally.dead.keys().filter(|slot| !tally.listed.contains(slot)) {
                self.find(Code::SlotDead, Table::SlotHead, &key, format!("dead slot {slot} is in no list"));
            }
            let met = tally.used + (tally.vacant.len() + tally.dead.len()) as u64;
            if met != u64::from(head.len) {
                let what = format!("{} slots given out, {met} there", head.len);
                self.find(Code::SlotHead, Table::SlotHead, &key, what);
            }
        }
    }

    /// Index, number and dimensions of a block; none in a space that is not there, which is a finding already.
    pub(super) fn block_of(&self, key: &[u8]) -> Option<(IndexId, u32, usize)> {
        let keys::Slot { index, block } = keys::Slot::parse(key)?;
        let dim = self.spaces.get(&index.space).copied().filter(|dim| *dim > 0)?;
        Some((index, block, dim))
    }

    /// How many slots an index has; as many as there can be when its head is missing.
    pub(super) fn len_of(&mut self, table: Table, key: &[u8], index: IndexId) -> u64 {
        match self.heads.get(&index) {
            Some(head) => u64::from(head.len),
            None => {
                self.find(Code::SlotHead, table, key, "an index without its count of slots");
                u64::MAX
            }
        }
    }
}
