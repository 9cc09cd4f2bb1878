//! A view: the image of one index at one commit, immutable and shared.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::model::{MemoryId, Time};
use crate::record::{At, SlotBlock, SlotBlockRef, SlotMeta, slots_per_block};
use crate::store::control::SlotHead;
use crate::store::{IndexId, Rows, Snapshot, Table, Walk, keys};
use crate::vector::Codes;

/// Slots of a chunk, unless one block has more: those of one word of the bitmap.
const CHUNK_SLOTS: usize = u64::BITS as usize;

/// Which slots of a chunk are visible at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Visible {
    /// Every one.
    All,
    /// Those whose bit is set: bit *i* mod 64 of word *i*/64 for the *i*-th slot.
    Some(Vec<u64>),
}

impl Visible {
    /// As the scan of codes takes it.
    pub(super) fn words(&self) -> Option<&[u64]> {
        match self {
            Visible::All => None,
            Visible::Some(words) => Some(words),
        }
    }

    /// How many of `len` slots.
    pub(super) fn count(&self, len: usize) -> u64 {
        match self {
            Visible::All => len as u64,
            Visible::Some(words) => words.iter().map(|word| u64::from(word.count_ones())).sum(),
        }
    }
}

/// A run of slots side by side; replaced as a whole when one of them changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunk {
    ids: Vec<MemoryId>,
    from: Vec<i64>,
    until: Vec<i64>,
    scales: Vec<f32>,
    residuals: Vec<f32>,
    codes: Vec<i8>,
    /// All slots are visible while `all_from <= now < all_until`.
    all_from: i64,
    all_until: i64,
}

impl Chunk {
    /// Bytes of one slot beside its code.
    const META_BYTES: usize = size_of::<MemoryId>() + 2 * size_of::<i64>() + 2 * size_of::<f32>();

    /// An empty chunk with room for `slots` slots.
    pub(super) fn with_room(slots: usize, dim: usize) -> Self {
        Chunk {
            ids: Vec::with_capacity(slots),
            from: Vec::with_capacity(slots),
            until: Vec::with_capacity(slots),
            scales: Vec::with_capacity(slots),
            residuals: Vec::with_capacity(slots),
            codes: Vec::with_capacity(slots * dim),
            ..Chunk::default()
        }
    }

    /// Forgets all slots and keeps the room.
    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.from.clear();
        self.until.clear();
        self.scales.clear();
        self.residuals.clear();
        self.codes.clear();
    }

    /// Fills up with vacant slots: no instant sees them.
    pub(super) fn pad(&mut self, slots: usize, dim: usize) {
        if self.ids.len() < slots {
            self.ids.resize(slots, SlotMeta::VACANT.id);
            self.from.resize(slots, i64::MAX);
            self.until.resize(slots, i64::MIN);
            self.scales.resize(slots, 0.0);
            self.residuals.resize(slots, 0.0);
            self.codes.resize(slots * dim, 0);
        }
    }

    /// Writes one slot; those between the last one and it become vacant.
    pub(super) fn set(&mut self, at: usize, meta: &SlotMeta, code: impl Iterator<Item = i8>, dim: usize) {
        self.pad(at + 1, dim);
        let vacant = meta.is_vacant();
        let (from, until) = if vacant { (i64::MAX, i64::MIN) } else { (meta.from, meta.until) };
        put(&mut self.ids, at, meta.id);
        put(&mut self.from, at, from);
        put(&mut self.until, at, until);
        put(&mut self.scales, at, meta.scale);
        put(&mut self.residuals, at, meta.residual);
        let place = self.codes.chunks_exact_mut(dim).nth(at).into_iter().flatten();
        place.zip(code).for_each(|(to, from)| *to = from);
    }

    /// Works out when all slots are visible; to be called after the last [`Chunk::set`].
    pub(super) fn summarise(&mut self) {
        self.all_from = self.from.iter().copied().max().unwrap_or(i64::MAX);
        self.all_until = self.until.iter().copied().min().unwrap_or(i64::MIN);
    }

    /// Slots, vacant ones too.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The memory of a slot; none for a vacant one.
    pub(super) fn id(&self, at: usize) -> Option<MemoryId> {
        self.ids.get(at).copied().filter(|id| *id != SlotMeta::VACANT.id)
    }

    /// The codes as the scan takes them.
    pub(super) fn codes(&self, dim: usize) -> Codes<'_> {
        Codes::new(dim, &self.codes, &self.scales, &self.residuals)
    }

    /// Which slots a live read at `now` sees.
    pub(super) fn visible(&self, now: Time) -> Visible {
        let now = now.as_millis();
        if self.all_from <= now && now < self.all_until {
            return Visible::All;
        }
        let pairs = self.from.chunks(64).zip(self.until.chunks(64));
        Visible::Some(
            pairs
                .map(|(from, until)| {
                    let bits = from.iter().zip(until).enumerate();
                    bits.fold(0_u64, |word, (bit, (from, until))| {
                        word | (u64::from(*from <= now && now < *until) << bit)
                    })
                })
                .collect(),
        )
    }

    fn occupied(&self) -> usize {
        self.ids.iter().filter(|id| **id != SlotMeta::VACANT.id).count()
    }

    fn bytes(&self) -> usize {
        size_of::<Chunk>() + self.ids.capacity() * Chunk::META_BYTES + self.codes.capacity()
    }
}

fn put<T>(list: &mut [T], at: usize, value: T) {
    if let Some(place) = list.get_mut(at) {
        *place = value;
    }
}

/// Reads the slots of a block behind each other into `chunk`, from its slot `first` on.
pub(super) fn read_block(chunk: &mut Chunk, first: usize, block: &SlotBlockRef<'_>, dim: usize) {
    let codes = block.codes().chunks_exact(dim);
    for (at, (meta, code)) in (first..).zip(block.metas().zip(codes)) {
        chunk.set(at, &meta, code.iter().map(|byte| byte.cast_signed()), dim);
    }
}

/// The image of one index at one commit.
#[derive(Debug)]
pub(crate) struct View {
    dim: usize,
    len: u32,
    chunks: Vec<Arc<Chunk>>,
    bytes: usize,
    /// When it was last asked for, in ticks of the budget.
    pub(super) used: AtomicU64,
}

impl View {
    /// Reads an index of `dim` dimensions out of a snapshot.
    ///
    /// # Errors
    /// `Corrupted` for a damaged block, and when blocks and slot head do not say the same.
    pub(crate) fn load(snapshot: &Snapshot, index: IndexId, dim: usize) -> Result<Self> {
        let head = snapshot.slot_head(index)?;
        let per = slots_per_block(dim);
        let room = per * blocks_per_chunk(dim);
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut next = 0_u32;
        snapshot.slot_blocks(&Walk::prefix(&keys::index(index)), &mut |_, block, key, bytes| {
            let at = At::new(Table::Slot.name(), key);
            if block != next || u64::from(block) * per as u64 >= u64::from(head.len) {
                return Err(disagree(index, format!("block {block} where block {next} of {head:?} belongs")));
            }
            next += 1;
            let slots = SlotBlockRef::open(at, dim, bytes)?;
            let first = (block as usize % blocks_per_chunk(dim)) * per;
            if first == 0 {
                chunks.push(Chunk::with_room(room, dim));
            }
            if let Some(chunk) = chunks.last_mut() {
                chunk.pad(first, dim);
                read_block(chunk, first, &slots, dim);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if u64::from(next) * (per as u64) < u64::from(head.len) {
            return Err(disagree(index, format!("{next} blocks are too few for {head:?}")));
        }
        let used: usize = chunks.iter().map(Chunk::occupied).sum();
        if used != head.used as usize {
            return Err(disagree(index, format!("{used} slots hold a memory, not as {head:?} says")));
        }
        chunks.iter_mut().for_each(Chunk::summarise);
        Ok(View::of(dim, head.len, chunks.into_iter().map(Arc::new).collect()))
    }

    fn of(dim: usize, len: u32, chunks: Vec<Arc<Chunk>>) -> Self {
        let bytes = chunks.iter().map(|chunk| chunk.bytes()).sum::<usize>()
            + chunks.capacity() * size_of::<Arc<Chunk>>()
            + size_of::<View>();
        View { dim, len, chunks, bytes, used: AtomicU64::new(0) }
    }

    /// The image after a commit that changed blocks, `len` slots long. Chunks that it did not touch are shared.
    pub(crate) fn with_blocks(&self, changed: &[(u32, &SlotBlock)], len: u32) -> View {
        let (dim, per) = (self.dim, slots_per_block(self.dim));
        let mut chunks = self.chunks.clone();
        for (number, block) in changed {
            let (chunk, first) = place(*number as usize * per, dim);
            while chunks.len() <= chunk {
                // What lies between is full of slots: a chunk is begun when the one before it is full.
                chunks.push(Arc::new(Chunk::default()));
            }
            let Some(chunk) = chunks.get_mut(chunk).map(Arc::make_mut) else { continue };
            for at in 0..block.len() {
                if let (Some(meta), Some(code)) = (block.meta(at), block.code(at)) {
                    chunk.set(first + at, meta, code.iter().copied(), dim);
                }
            }
            chunk.summarise();
        }
        let view = View::of(dim, len, chunks);
        view.used.store(self.used.load(Ordering::Relaxed), Ordering::Relaxed);
        view
    }

    /// Bytes that it takes in memory; chunks that it shares with its predecessor count for both.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Slots, vacant ones too.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The memory of a slot; none for a vacant one.
    pub(crate) fn id(&self, slot: u32) -> Option<MemoryId> {
        let (chunk, at) = place(slot as usize, self.dim);
        self.chunks.get(chunk)?.id(at)
    }

    /// The chunks with the number of the first slot of each.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (u32, &Chunk)> {
        let slots = (slots_per_block(self.dim) * blocks_per_chunk(self.dim)) as u32;
        (0_u32..).step_by(slots as usize).zip(self.chunks.iter().map(Arc::as_ref))
    }
}

/// Blocks of a chunk.
fn blocks_per_chunk(dim: usize) -> usize {
    (CHUNK_SLOTS / slots_per_block(dim)).max(1)
}

/// Chunk and position of a slot.
fn place(slot: usize, dim: usize) -> (usize, usize) {
    let slots = slots_per_block(dim) * blocks_per_chunk(dim);
    (slot / slots, slot % slots)
}

/// Slot head and blocks contradict each other.
fn disagree(index: IndexId, why: String) -> Error {
    Error::corrupted(Table::SlotHead.name(), &keys::index(index), why)
}

/// Whether an index is worth a view of its own although a search of many partitions did not find one.
pub(super) fn worth_a_view(head: &SlotHead) -> bool {
    head.used >= 1_024
}
