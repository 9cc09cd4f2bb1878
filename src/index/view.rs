//! A view: the image of one index at one commit, immutable and shared.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result, sound};
use crate::hnsw::{Graph, Points};
use crate::index::adjacency::{Linked, read_graph};
use crate::model::{MemoryId, Time};
use crate::record::{At, SlotBlock, SlotBlockRef, SlotMeta, slots_per_block};
use crate::store::control::SlotHead;
use crate::store::{IndexId, Rows, Snapshot, Table, Walk, keys};
use crate::vector::{Codes, QueryCode, dot_i8_many, unit_scale};

/// The number of slots in a chunk: those of one word of a bitmap. Blocks of the table cross the borders of
/// chunks.
const CHUNK_SLOTS: usize = u64::BITS as usize;

/// The instants that a slot must cover to be searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// The slot begins no later than this.
    latest: i64,
    /// The slot ends after this.
    now: i64,
}

impl Window {
    /// The window of a live read at `now`.
    pub(super) fn live(now: Time) -> Self {
        Window { latest: now.as_millis(), now: now.as_millis() }
    }

    /// The window of rows that are current at `now`: visible now, or not valid yet.
    pub(super) fn current(now: Time) -> Self {
        Window { latest: i64::MAX, now: now.as_millis() }
    }

    /// Whether the window includes a slot that is visible from `from` to `until`. A vacant slot is never
    /// visible.
    #[inline]
    fn holds(self, from: i64, until: i64) -> bool {
        from <= self.latest && self.now < until && from < until
    }
}

/// Which slots of a chunk are visible at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Visible {
    /// Every slot.
    All,
    /// The slots whose bit is set: bit *i* mod 64 of word *i*/64 for the *i*-th slot.
    Some(Vec<u64>),
}

impl Visible {
    /// The words of bits, as the scan of codes takes them.
    pub(super) fn words(&self) -> Option<&[u64]> {
        match self {
            Visible::All => None,
            Visible::Some(words) => Some(words),
        }
    }

    /// The visible slots whose bit is also set in `mask`.
    pub(super) fn within(self, mask: &[u64]) -> Self {
        match self {
            Visible::All => Visible::Some(mask.to_vec()),
            Visible::Some(words) => Visible::Some(words.iter().zip(mask).map(|(a, b)| a & b).collect()),
        }
    }

    /// The number of visible slots among `len`.
    pub(super) fn count(&self, len: usize) -> u64 {
        match self {
            Visible::All => len as u64,
            Visible::Some(words) => words.iter().map(|word| u64::from(word.count_ones())).sum(),
        }
    }
}

/// A run of slots side by side. It is replaced as a whole when one of them changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunk {
    ids: Vec<MemoryId>,
    from: Vec<i64>,
    until: Vec<i64>,
    scales: Vec<f32>,
    residuals: Vec<f32>,
    /// The reciprocals of the lengths of the codes.
    units: Vec<f32>,
    codes: Vec<i8>,
    /// All slots are visible while `all_from <= now < all_until`.
    all_from: i64,
    all_until: i64,
}

impl Chunk {
    /// The bytes of one slot besides its code.
    const META_BYTES: usize = size_of::<MemoryId>() + 2 * size_of::<i64>() + 3 * size_of::<f32>();

    /// An empty chunk with room for `slots` slots.
    pub(super) fn with_room(slots: usize, dim: usize) -> Self {
        Chunk {
            ids: Vec::with_capacity(slots),
            from: Vec::with_capacity(slots),
            until: Vec::with_capacity(slots),
            scales: Vec::with_capacity(slots),
            residuals: Vec::with_capacity(slots),
            units: Vec::with_capacity(slots),
            codes: Vec::with_capacity(slots * dim),
            ..Chunk::default()
        }
    }

    /// Drops all slots and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.from.clear();
        self.until.clear();
        self.scales.clear();
        self.residuals.clear();
        self.units.clear();
        self.codes.clear();
    }

    /// Fills the chunk with vacant slots, which no instant sees.
    pub(super) fn pad(&mut self, slots: usize, dim: usize) {
        if self.ids.len() < slots {
            self.ids.resize(slots, SlotMeta::VACANT.id);
            self.from.resize(slots, i64::MAX);
            self.until.resize(slots, i64::MIN);
            self.scales.resize(slots, 0.0);
            self.residuals.resize(slots, 0.0);
            self.units.resize(slots, 0.0);
            self.codes.resize(slots * dim, 0);
        }
    }

    /// Writes one slot. Slots between the last one and this one become vacant.
    pub(super) fn set<C: Copy>(&mut self, at: usize, meta: &SlotMeta, code: &[C], signed: impl Fn(C) -> i8) {
        let dim = code.len();
        self.pad(at + 1, dim);
        let vacant = meta.is_vacant();
        let (from, until) = if vacant { (i64::MAX, i64::MIN) } else { (meta.from, meta.until) };
        put(&mut self.ids, at, meta.id);
        put(&mut self.from, at, from);
        put(&mut self.until, at, until);
        put(&mut self.scales, at, meta.scale);
        put(&mut self.residuals, at, meta.residual);
        if let Some(place) = self.codes.get_mut(at * dim..(at + 1) * dim) {
            place.iter_mut().zip(code).for_each(|(to, from)| *to = signed(*from));
            put(&mut self.units, at, unit_scale(place));
        }
    }

    /// Works out when all slots are visible. It must be called after the last [`Chunk::set`].
    pub(super) fn summarise(&mut self) {
        self.all_from = self.from.iter().copied().max().unwrap_or(i64::MAX);
        self.all_until = self.until.iter().copied().min().unwrap_or(i64::MIN);
    }

    /// The number of slots, vacant ones included.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The memory of a slot; none for a vacant slot.
    pub(super) fn id(&self, at: usize) -> Option<MemoryId> {
        self.ids.get(at).copied().filter(|id| *id != SlotMeta::VACANT.id)
    }

    /// The codes, as the scan takes them.
    pub(super) fn codes(&self, dim: usize) -> Codes<'_> {
        Codes::new(dim, &self.codes, &self.scales, &self.residuals)
    }

    /// The slots that lie in a window.
    pub(super) fn visible(&self, window: Window) -> Visible {
        if window.holds(self.all_from, self.all_until) {
            return Visible::All;
        }
        let pairs = self.from.chunks(64).zip(self.until.chunks(64));
        Visible::Some(
            pairs
                .map(|(from, until)| {
                    let bits = from.iter().zip(until).enumerate();
                    bits.fold(0_u64, |word, (bit, (from, until))| {
                        word | (u64::from(window.holds(*from, *until)) << bit)
                    })
                })
                .collect(),
        )
    }

    /// A bit for each slot that holds a memory.
    fn occupied(&self) -> u64 {
        let bits = self.ids.iter().take(CHUNK_SLOTS).enumerate();
        bits.fold(0, |word, (bit, id)| word | (u64::from(*id != SlotMeta::VACANT.id) << bit))
    }

    /// Whether a slot lies in a window.
    #[inline]
    fn sees(&self, at: usize, window: Window) -> bool {
        window.holds(self.all_from, self.all_until)
            || matches!((self.from.get(at), self.until.get(at)), (Some(from), Some(until)) if window.holds(*from, *until))
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

/// Reads the slots of a block into `chunk`, one after the other.
pub(super) fn read_block(chunk: &mut Chunk, block: &SlotBlockRef<'_>, dim: usize) {
    let codes = block.codes().chunks_exact(dim);
    for (at, (meta, code)) in block.metas().zip(codes).enumerate() {
        chunk.set(at, &meta, code, u8::cast_signed);
    }
}

/// The image of one index at one commit.
#[derive(Debug)]
pub(crate) struct View {
    dim: usize,
    len: u32,
    chunks: Vec<Arc<Chunk>>,
    /// The graph; none for a small index, and if the rows of the graph are damaged.
    linked: Option<Linked>,
    /// Why there is no graph although there are rows of one.
    fault: Option<Arc<str>>,
    /// The slots that hold a memory and are not nodes, by chunk, with a bit for each; empty without a graph.
    tail: Vec<(u32, u64)>,
    bytes: usize,
    /// When the view was last used, in ticks of the budget.
    pub(super) used: AtomicU64,
}

impl View {
    /// Reads an index of `dim` dimensions from a snapshot. A graph with damaged rows is left out; codes and vectors
    /// answer without it.
    ///
    /// If a block of codes is damaged or gone, its slots read as vacant until the index is rebuilt.
    ///
    /// # Errors
    /// `Corrupted` if undamaged blocks and the slot head contradict each other.
    pub(crate) fn load(snapshot: &Snapshot, index: IndexId, dim: usize) -> Result<Self> {
        let head = snapshot.readable_slot_head(index)?;
        let per = slots_per_block(dim);
        let room = (head.len as usize).div_ceil(CHUNK_SLOTS);
        let mut chunks: Vec<Chunk> = Vec::with_capacity(room.min(LOAD_CHUNKS_MAX));
        let mut next = 0_u32;
        let mut fault = sound(snapshot.slot_head(index))?.is_none().then(|| "its head is damaged".to_owned());
        snapshot.slot_blocks(&Walk::prefix(&keys::index(index)), &mut |_, block, key, bytes| {
            let at = At::new(Table::Slot.name(), key);
            if u64::from(block) * per as u64 >= u64::from(head.len) {
                return Err(disagree(index, format!("block {block} lies behind {head:?}")));
            }
            if block != next {
                fault = Some(format!("block {next} is gone"));
            }
            next = block + 1;
            let Some(slots) = sound(SlotBlockRef::open(at, dim, bytes))? else {
                fault = Some(format!("block {block} is damaged"));
                return Ok(ControlFlow::Continue(()));
            };
            let codes = slots.codes().chunks_exact(dim);
            for (slot, (meta, code)) in (block as usize * per..).zip(slots.metas().zip(codes)) {
                let (chunk, at) = place(slot);
                while chunks.len() <= chunk {
                    if let Some(full) = chunks.last_mut() {
                        full.pad(CHUNK_SLOTS, dim);
                    }
                    let left = (head.len as usize).saturating_sub(chunks.len() * CHUNK_SLOTS);
                    chunks.push(Chunk::with_room(left.min(CHUNK_SLOTS), dim));
                }
                if let Some(chunk) = chunks.get_mut(chunk) {
                    chunk.set(at, &meta, code, u8::cast_signed);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if u64::from(next) * (per as u64) < u64::from(head.len) {
            fault = Some(format!("{next} blocks are too few for {head:?}"));
        }
        let used: u32 = chunks.iter().map(|chunk| chunk.occupied().count_ones()).sum();
        if used != head.used && fault.is_none() {
            return Err(disagree(index, format!("{used} slots hold a memory, not as {head:?} says")));
        }
        chunks.iter_mut().for_each(Chunk::summarise);
        let mut view = View {
            dim,
            len: head.len,
            chunks: chunks.into_iter().map(Arc::new).collect(),
            linked: None,
            fault: None,
            tail: Vec::new(),
            bytes: 0,
            used: AtomicU64::new(0),
        };
        if let Some(why) = fault {
            tracing::warn!(?index, %why, "codes are damaged: their memories are not found until the index is rebuilt");
            view.fault = Some(why.into());
            view.weigh();
            return Ok(view);
        }
        match read_graph(snapshot, index, view.len) {
            Ok(linked) => view.linked = linked,
            Err(Error::Corrupted { why, .. }) => {
                tracing::warn!(?index, %why, "the graph is damaged: the index is scanned until it is rebuilt");
                view.fault = Some(why.into());
            }
            Err(other) => return Err(other),
        }
        view.find_tail();
        view.weigh();
        Ok(view)
    }

    /// The bytes of the view of an index of this many slots, with a graph. More than any budget if the address space
    /// is too small for them.
    pub(super) fn bytes_of(slots: usize, dim: usize) -> usize {
        slots.saturating_mul(dim.saturating_add(Chunk::META_BYTES + Graph::SLOT_BYTES))
    }

    fn weigh(&mut self) {
        self.bytes = self.chunks.iter().map(|chunk| chunk.bytes()).sum::<usize>()
            + self.chunks.capacity() * size_of::<Arc<Chunk>>()
            + self.tail.capacity() * size_of::<(u32, u64)>()
            + self.linked.as_ref().map_or(0, Linked::bytes)
            + size_of::<View>();
    }

    /// The image after a commit that changed blocks, `len` slots long, with another graph if `linked` has one.
    /// Unchanged chunks are shared.
    pub(crate) fn with(
        &self,
        changed: &[(u32, &SlotBlock)],
        len: u32,
        linked: Option<&Option<Linked>>,
    ) -> View {
        let (dim, per) = (self.dim, slots_per_block(self.dim));
        let mut chunks = self.chunks.clone();
        let mut touched = Vec::new();
        for (number, block) in changed {
            for (at, slot) in (0..block.len()).zip(*number as usize * per..) {
                let (Some(meta), Some(code)) = (block.meta(at), block.code(at)) else { continue };
                let (chunk, at) = place(slot);
                while chunks.len() <= chunk {
                    if let Some(full) = chunks.last_mut() {
                        Arc::make_mut(full).pad(CHUNK_SLOTS, dim);
                    }
                    chunks.push(Arc::new(Chunk::with_room(CHUNK_SLOTS, dim)));
                }
                if let Some(place) = chunks.get_mut(chunk) {
                    Arc::make_mut(place).set(at, meta, code, |value| value);
                    touched.push(chunk);
                }
            }
        }
        touched.dedup();
        for chunk in &touched {
            chunks.get_mut(*chunk).map(Arc::make_mut).into_iter().for_each(Chunk::summarise);
        }
        let mut view = View {
            dim,
            len,
            chunks,
            linked: linked.cloned().unwrap_or_else(|| self.linked.clone()),
            fault: self.fault.clone().filter(|_| linked.is_none()),
            tail: self.tail.clone(),
            bytes: 0,
            used: AtomicU64::new(self.used.load(Ordering::Relaxed)),
        };
        match linked {
            Some(_) => view.find_tail(),
            None => view.adjust_tail(&touched),
        }
        view.weigh();
        view
    }

    /// Works out which slots hold a memory and are not nodes.
    fn find_tail(&mut self) {
        self.tail = Vec::new();
        if self.linked.is_some() {
            let all = (0..).zip(&self.chunks).map(|(number, _)| (number, self.loose(number as usize)));
            self.tail = all.filter(|(_, mask)| *mask != 0).collect();
        }
    }

    /// The same for some chunks.
    fn adjust_tail(&mut self, touched: &[usize]) {
        if self.linked.is_none() {
            return;
        }
        for &chunk in touched {
            let mask = self.loose(chunk);
            match self.tail.binary_search_by_key(&(chunk as u32), |(number, _)| *number) {
                Ok(at) if mask == 0 => drop(self.tail.remove(at)),
                Ok(at) => self.tail.get_mut(at).into_iter().for_each(|entry| entry.1 = mask),
                Err(at) if mask != 0 => self.tail.insert(at, (chunk as u32, mask)),
                Err(_) => {}
            }
        }
    }

    /// The slots of a chunk that hold a memory and are not nodes.
    fn loose(&self, chunk: usize) -> u64 {
        let occupied = self.chunks.get(chunk).map_or(0, |chunk| chunk.occupied());
        let first = (chunk * CHUNK_SLOTS) as u32;
        self.linked.as_ref().map_or(0, |linked| occupied & !linked.graph.nodes_of_word(first))
    }

    /// The bytes in memory. What the view shares with its predecessor counts for both.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of slots, vacant ones included.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The number of dimensions.
    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    /// The graph, if there is one that can be walked.
    pub(crate) fn linked(&self) -> Option<&Linked> {
        self.linked.as_ref()
    }

    /// What is wrong with the rows of the graph.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// The memory of a slot; none for a vacant slot.
    pub(crate) fn id(&self, slot: u32) -> Option<MemoryId> {
        let (chunk, at) = place(slot as usize);
        self.chunks.get(chunk)?.id(at)
    }

    /// The cosine of the code of a slot and that of a query; none if the slot does not hold this memory.
    pub(crate) fn cosine(&self, slot: u32, id: MemoryId, query: &QueryCode) -> Option<f32> {
        self.id(slot).filter(|found| *found == id)?;
        let mut dot = [0];
        dot_i8_many(query.code(), self.code(slot), &mut dot);
        let [dot] = dot;
        Some(dot as f32 * self.scale(slot) * query.unit_scale())
    }

    /// Whether a slot lies in a window.
    #[inline]
    pub(super) fn sees(&self, slot: u32, window: Window) -> bool {
        let (chunk, at) = place(slot as usize);
        self.chunks.get(chunk).is_some_and(|chunk| chunk.sees(at, window))
    }

    /// The share of the slots that lie in a window, by a sample of chunks; 1 without a graph, where nobody
    /// asks for it.
    pub(super) fn share_seen(&self, window: Window) -> f64 {
        if self.linked.is_none() {
            return 1.0;
        }
        let step = self.chunks.len().div_ceil(SAMPLED_CHUNKS).max(1);
        let (mut seen, mut slots) = (0, 0);
        for chunk in self.chunks.iter().step_by(step) {
            seen += chunk.visible(window).count(chunk.len());
            slots += chunk.len();
        }
        seen as f64 / slots.max(1) as f64
    }

    /// The norm of the rounding residual of the code of a slot.
    pub(super) fn residual(&self, slot: u32) -> f32 {
        let (chunk, at) = place(slot as usize);
        let residual = self.chunks.get(chunk).and_then(|chunk| chunk.residuals.get(at));
        residual.copied().unwrap_or_default()
    }

    /// The chunks, each with the number of its first slot.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (u32, &Chunk)> {
        (0_u32..).step_by(CHUNK_SLOTS).zip(self.chunks.iter().map(Arc::as_ref))
    }

    /// The codes and the reciprocals of their lengths, chunk by chunk, each with the number of its first
    /// slot.
    pub(super) fn rows(&self) -> impl Iterator<Item = (u32, &[i8], &[f32])> {
        self.chunks().map(|(first, chunk)| (first, chunk.codes.as_slice(), chunk.units.as_slice()))
    }

    /// The chunks with slots that hold a memory and are not nodes, each with the number of its first slot and the bits
    /// of these slots.
    pub(super) fn tail(&self) -> impl Iterator<Item = (u32, &Chunk, u64)> {
        let chunk = |number: u32| self.chunks.get(number as usize).map(Arc::as_ref);
        self.tail
            .iter()
            .filter_map(move |(number, mask)| Some((number * CHUNK_SLOTS as u32, chunk(*number)?, *mask)))
    }

    /// The slots of the tail, ascending.
    pub(super) fn tail_slots(&self) -> impl Iterator<Item = u32> {
        self.tail.iter().flat_map(|(number, mask)| {
            let first = number * CHUNK_SLOTS as u32;
            (0..u64::BITS).filter(move |bit| mask >> bit & 1 == 1).map(move |bit| first + bit)
        })
    }
}

impl Points for View {
    #[inline]
    #[expect(clippy::expect_used, reason = "links were checked when they were read: they lead to slots")]
    fn code(&self, slot: u32) -> &[i8] {
        let (chunk, at) = place(slot as usize);
        let chunk = self.chunks.get(chunk).expect("a link leads to a slot");
        chunk.codes.get(at * self.dim..(at + 1) * self.dim).expect("a slot has a code")
    }

    #[inline]
    fn scale(&self, slot: u32) -> f32 {
        let (chunk, at) = place(slot as usize);
        let unit = self.chunks.get(chunk).and_then(|chunk| chunk.units.get(at));
        unit.copied().unwrap_or_default()
    }
}

/// The number of chunks in which visible slots are counted.
const SAMPLED_CHUNKS: usize = 128;
/// The number of chunks for which memory is allocated before any was read.
const LOAD_CHUNKS_MAX: usize = 1 << 16;

/// Chunk and position of a slot.
#[inline]
fn place(slot: usize) -> (usize, usize) {
    (slot / CHUNK_SLOTS, slot % CHUNK_SLOTS)
}

/// The error if the slot head and the blocks contradict each other.
fn disagree(index: IndexId, why: String) -> Error {
    Error::corrupted(Table::SlotHead.name(), &keys::index(index), why)
}

/// Whether an index is worth a view of its own, although a search of many partitions did not load one.
pub(super) fn worth_a_view(head: &SlotHead) -> bool {
    head.used >= 1_024
}
