//! Slot blocks: int8 codes side by side with what decides the visibility of each, so that a scan reads no row.
//!
//! ```text
//! header 4 | count u16 | dim u16 | count × meta 56 | count × dim × i8 | crc u32
//! meta: id 16 | from i64 | until i64 | born u64 | died u64 | scale f32 | residual f32
//! ```
//! A vacant slot is zero bytes throughout, its id too. A dead one is a node of the graph whose memory was deleted: id
//! and instants are zero, `born` is kept, `died` is the commit of the deletion, and the code is there still, because
//! walks pass through the node until it is unlinked. The block fills a page of the key-value store.

use crate::error::Result;
use crate::limits::{DIM_MAX, TIME_MAX_MS, TIME_MIN_MS};
use crate::model::MemoryId;
use crate::record::frame::{
    At, CRC_BYTES, HEADER_BYTES, begin, counted, entries_per_block, no_flags, open, seal, tag,
};

/// Header, count, dim and crc.
const OVERHEAD: usize = HEADER_BYTES + 4 + CRC_BYTES;
/// Bytes of a [`SlotMeta`].
const META_BYTES: usize = 56;
/// `died` of a slot that is alive.
pub(crate) const ALIVE: u64 = u64::MAX;

/// Slots of `dim` dimensions in one block: 18 at 384, 7 at 1,024, 2,048 and 4,096.
pub(crate) const fn slots_per_block(dim: usize) -> usize {
    entries_per_block(OVERHEAD, META_BYTES + dim)
}

/// What the index knows of a slot beside its code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SlotMeta {
    /// The memory; all zero in a vacant slot and in a dead one.
    pub(crate) id: MemoryId,
    /// First instant of a live read that sees it, milliseconds.
    pub(crate) from: i64,
    /// First instant of a live read that no longer sees it, milliseconds.
    pub(crate) until: i64,
    /// Number of the commit that made it.
    pub(crate) born: u64,
    /// Number of the commit that ended it, [`ALIVE`] before.
    pub(crate) died: u64,
    /// Scale of the code.
    pub(crate) scale: f32,
    /// Norm of the rounding residual.
    pub(crate) residual: f32,
}

impl SlotMeta {
    /// A slot without a memory.
    pub(crate) const VACANT: SlotMeta = SlotMeta {
        id: MemoryId::from_bytes([0; 16]),
        from: 0,
        until: 0,
        born: 0,
        died: 0,
        scale: 0.0,
        residual: 0.0,
    };

    /// Whether the slot has no memory: it was never used, is erased, or is dead.
    pub(crate) fn is_vacant(&self) -> bool {
        self.id.as_bytes() == &[0; 16]
    }

    /// Whether its memory is gone and its code is kept for the walks that pass through it.
    pub(crate) fn is_dead(&self) -> bool {
        self.is_vacant() && self.died != 0
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.id.as_bytes());
        out.extend_from_slice(&self.from.to_le_bytes());
        out.extend_from_slice(&self.until.to_le_bytes());
        out.extend_from_slice(&self.born.to_le_bytes());
        out.extend_from_slice(&self.died.to_le_bytes());
        out.extend_from_slice(&self.scale.to_le_bytes());
        out.extend_from_slice(&self.residual.to_le_bytes());
    }

    fn read(bytes: &[u8; META_BYTES]) -> Self {
        let part = |at: usize| {
            // Every place below lies within the array, so the default is never taken.
            let bytes = bytes.get(at..at + 8).and_then(|part| <[u8; 8]>::try_from(part).ok());
            bytes.unwrap_or_default()
        };
        let [s0, s1, s2, s3, r0, r1, r2, r3] = part(48);
        let id = (u128::from(u64::from_be_bytes(part(0))) << 64) | u128::from(u64::from_be_bytes(part(8)));
        SlotMeta {
            id: MemoryId::from_bytes(id.to_be_bytes()),
            from: i64::from_le_bytes(part(16)),
            until: i64::from_le_bytes(part(24)),
            born: u64::from_le_bytes(part(32)),
            died: u64::from_le_bytes(part(40)),
            scale: f32::from_le_bytes([s0, s1, s2, s3]),
            residual: f32::from_le_bytes([r0, r1, r2, r3]),
        }
    }

    /// Whether its instants lie in the years 1 to 9999 and its floats are finite.
    fn is_sound(&self) -> bool {
        let bounds = TIME_MIN_MS..=TIME_MAX_MS;
        bounds.contains(&self.from)
            && bounds.contains(&self.until)
            && self.scale.is_finite()
            && self.residual.is_finite()
    }
}

/// A block read where it lies, for scans: checked once, then only walked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotBlockRef<'b> {
    dim: usize,
    metas: &'b [[u8; META_BYTES]],
    codes: &'b [u8],
}

impl<'b> SlotBlockRef<'b> {
    /// Checks frame, checksum, lengths and the bounds of every slot.
    ///
    /// # Errors
    /// `Corrupted` for bytes that [`SlotBlock::encode`] did not write, or a block of another dimension.
    pub(crate) fn open(at: At<'_>, dim: usize, bytes: &'b [u8]) -> Result<Self> {
        let (flags, body) = open(tag::SLOT_BLOCK, at, bytes)?;
        no_flags(at, flags)?;
        let (count, slots) = counted(at, dim, body)?;
        // The count is bounded first, so the product can't overflow.
        if count > slots_per_block(dim) || slots.len() != count * (META_BYTES + dim) {
            return Err(at.corrupted(format!("{count} slots in {} bytes", slots.len())));
        }
        let Some((metas, codes)) = slots.split_at_checked(count * META_BYTES) else {
            return Err(at.corrupted(format!("{count} slots in {} bytes", slots.len())));
        };
        // The split above left a whole number of them, so nothing remains.
        let (metas, _) = metas.as_chunks::<META_BYTES>();
        let block = SlotBlockRef { dim, metas, codes };
        match block.metas().position(|meta| !meta.is_sound()) {
            None => Ok(block),
            Some(slot) => Err(at.corrupted(format!("slot {slot} has an instant or a float out of bounds"))),
        }
    }

    /// Slots, vacant ones too.
    pub(crate) fn len(&self) -> usize {
        self.metas.len()
    }

    /// What stands beside each code, in order.
    pub(crate) fn metas(&self) -> impl ExactSizeIterator<Item = SlotMeta> + use<'b> {
        self.metas.iter().map(SlotMeta::read)
    }

    /// All codes, one behind the other: i8 as their bytes.
    pub(crate) fn codes(&self) -> &'b [u8] {
        self.codes
    }

    /// The code of one slot.
    pub(crate) fn code(&self, slot: usize) -> Option<&'b [u8]> {
        self.codes.chunks_exact(self.dim).nth(slot)
    }
}

/// A block that can be changed. A slot number outside it is a bug of ours and panics.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SlotBlock {
    dim: usize,
    metas: Vec<SlotMeta>,
    codes: Vec<i8>,
}

impl SlotBlock {
    /// An empty block for codes of `dim` dimensions.
    ///
    /// # Panics
    /// For a dimension that no embedding space can have.
    pub(crate) fn new(dim: usize) -> Self {
        assert!((1..=DIM_MAX).contains(&dim), "{dim} is no dimension of an embedding");
        SlotBlock { dim, metas: Vec::new(), codes: Vec::new() }
    }

    /// Slots, vacant ones too.
    pub(crate) fn len(&self) -> usize {
        self.metas.len()
    }

    /// What stands beside the code of a slot.
    pub(crate) fn meta(&self, slot: usize) -> Option<&SlotMeta> {
        self.metas.get(slot)
    }

    /// The code of a slot.
    pub(crate) fn code(&self, slot: usize) -> Option<&[i8]> {
        self.codes.chunks_exact(self.dim).nth(slot)
    }

    /// Writes a slot; those between the last one and it become vacant.
    pub(crate) fn put(&mut self, slot: usize, meta: SlotMeta, code: &[i8]) {
        assert!(slot < slots_per_block(self.dim), "slot {slot} lies outside the block");
        assert_eq!(code.len(), self.dim, "a code of another length");
        assert!(meta.is_sound(), "an instant or a float out of bounds: {meta:?}");
        if self.metas.len() <= slot {
            self.metas.resize(slot + 1, SlotMeta::VACANT);
            self.codes.resize((slot + 1) * self.dim, 0);
        }
        *self.meta_mut(slot) = meta;
        if let Some(place) = self.codes.chunks_exact_mut(self.dim).nth(slot) {
            place.copy_from_slice(code);
        }
    }

    /// Sets the instants of a live read that see a slot.
    pub(crate) fn set_times(&mut self, slot: usize, from: i64, until: i64) {
        let meta = self.meta_mut(slot);
        (meta.from, meta.until) = (from, until);
        assert!(meta.is_sound(), "an instant out of bounds: {meta:?}");
    }

    /// Makes a slot vacant: id, instants and code are zero in the next encoding.
    pub(crate) fn erase(&mut self, slot: usize) {
        *self.meta_mut(slot) = SlotMeta::VACANT;
        if let Some(place) = self.codes.chunks_exact_mut(self.dim).nth(slot) {
            place.fill(0);
        }
    }

    /// Makes a slot dead: its memory was deleted by `commit`, its code stays until the graph no longer needs it.
    pub(crate) fn bury(&mut self, slot: usize, commit: u64) {
        assert!(commit != 0, "commits begin at 1");
        let meta = self.meta_mut(slot);
        *meta = SlotMeta {
            born: meta.born,
            died: commit,
            scale: meta.scale,
            residual: meta.residual,
            ..SlotMeta::VACANT
        };
    }

    #[expect(clippy::expect_used, reason = "a slot outside its block is a bug of the index")]
    fn meta_mut(&mut self, slot: usize) -> &mut SlotMeta {
        self.metas.get_mut(slot).expect("a slot of the block")
    }

    /// Writes the block into `out`, replacing what is there.
    pub(crate) fn encode(&self, key: &[u8], out: &mut Vec<u8>) {
        begin(tag::SLOT_BLOCK, out);
        out.reserve(OVERHEAD + self.metas.len() * (META_BYTES + self.dim));
        // Both are bounded far below 65,536 by the assertions of `new` and `put`.
        out.extend_from_slice(&(self.metas.len() as u16).to_le_bytes());
        out.extend_from_slice(&(self.dim as u16).to_le_bytes());
        self.metas.iter().for_each(|meta| meta.write(out));
        out.extend(self.codes.iter().map(|code| code.cast_unsigned()));
        seal(0, key, out);
    }

    /// The block that [`SlotBlock::encode`] wrote.
    ///
    /// # Errors
    /// As [`SlotBlockRef::open`].
    pub(crate) fn decode(at: At<'_>, dim: usize, bytes: &[u8]) -> Result<Self> {
        let block = SlotBlockRef::open(at, dim, bytes)?;
        let codes = block.codes().iter().map(|code| code.cast_signed()).collect();
        Ok(SlotBlock { dim, metas: block.metas().collect(), codes })
    }
}

const _: () = assert!(slots_per_block(384) == 18 && slots_per_block(DIM_MAX) == 7);
const _: () = assert!(slots_per_block(1) <= u16::MAX as usize && DIM_MAX <= u16::MAX as usize);
