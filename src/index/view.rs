//! A view: the image of one index at one commit, immutable and shared.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result, sound};
use crate::hnsw::{Graph, Points};
use crate::index::adjacency::{Linked, read_graph};
use crate::index::bits::Bits;
use crate::index::chunk::{CHUNK_SLOTS, Chunk, Span, Window, ones};
use crate::index::extract::{Extract, most_of};
use crate::index::sight::{Sight, Sights};
use crate::limits::BITS_SLOTS_MIN;
use crate::model::MemoryId;
use crate::record::{At, BitRow, SlotBlock, SlotBlockRef, slots_per_block};
use crate::store::control::SlotHead;
use crate::store::{IndexId, Read, Rows, Snapshot, Table, Walk, keys};
use crate::vector::{QueryCode, dot_i8_many};

/// The image of one index at one commit.
#[derive(Debug)]
pub(crate) struct View {
    dim: usize,
    len: u32,
    chunks: Vec<Arc<Chunk>>,
    /// When all slots of a chunk are visible, by chunk. They lie together, so that a scan need not look into every chunk.
    spans: Vec<Span>,
    sights: Sights<View>,
    /// The one-bit codes; none for a small index.
    bits: Option<Bits>,
    /// The graph; none for a small index, and if the rows of the graph are damaged.
    linked: Option<Linked>,
    /// Why there is no graph although there may be rows of one.
    fault: Option<Fault>,
    /// The number of slots of blocks that can't be read. No search finds their memories until the index is rebuilt.
    lost: u32,
    /// The slots that hold a memory and are not nodes, by chunk, with a bit for each; empty without a graph.
    tail: Vec<(u32, u64)>,
    bytes: usize,
    /// When the view was last used, in ticks of the budget.
    pub(super) used: AtomicU64,
}

/// What is wrong with the rows of an index.
#[derive(Clone, Debug)]
enum Fault {
    /// Codes are lost, until the index is read again.
    Codes(Arc<str>),
    /// The graph can't be walked, until it is dropped.
    Graph(Arc<str>),
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
        let used: u32 = chunks.iter().map(|chunk| chunk.used() as u32).sum();
        if used != head.used && fault.is_none() {
            return Err(disagree(index, format!("{used} slots hold a memory, not as {head:?} says")));
        }
        chunks.iter_mut().for_each(Chunk::summarise);
        let chunks: Vec<Arc<Chunk>> = chunks.into_iter().map(Arc::new).collect();
        let mut view = View {
            dim,
            len: head.len,
            bits: Bits::load(snapshot, index, dim, head.len)?,
            spans: chunks.iter().map(|chunk| chunk.span()).collect(),
            sights: Sights::new(),
            chunks,
            linked: None,
            lost: head.used.saturating_sub(used),
            fault: None,
            tail: Vec::new(),
            bytes: 0,
            used: AtomicU64::new(0),
        };
        if let Some(why) = fault {
            tracing::warn!(?index, %why, "codes are damaged: their memories are not found until the index is rebuilt");
            view.fault = Some(Fault::Codes(why.into()));
            view.weigh();
            return Ok(view);
        }
        view.link(snapshot, index)?;
        view.find_tail();
        view.weigh();
        Ok(view)
    }

    /// Reads the graph of an index whose codes are whole.
    fn link(&mut self, snapshot: &Snapshot, index: IndexId) -> Result<()> {
        match read_graph(snapshot, index, self.len) {
            Ok(linked) => self.linked = linked,
            Err(Error::Corrupted { why, .. }) => {
                tracing::warn!(?index, %why, "the graph is damaged: the index is scanned until it is rebuilt");
                self.fault = Some(Fault::Graph(why.into()));
            }
            Err(other) => return Err(other),
        }
        Ok(())
    }

    /// The bytes of the view of an index of this many slots, with a graph. More than any budget if the address space
    /// is too small for them.
    pub(super) fn bytes_of(slots: usize, dim: usize) -> usize {
        let graph = slots.saturating_mul(Graph::SLOT_BYTES);
        Self::flat_bytes_of(slots, dim)
            .saturating_add(graph)
            .saturating_add(Self::extract_bytes_of(slots, dim))
    }

    /// The same without a graph and an extract.
    fn flat_bytes_of(slots: usize, dim: usize) -> usize {
        let beside = Chunk::META_BYTES + Sights::<View>::SLOT_BYTES;
        slots.saturating_mul(dim.saturating_add(beside)).saturating_add(Bits::bytes_of(slots, dim))
    }

    /// The most bytes of the extract of an image of so many slots.
    fn extract_bytes_of(slots: usize, dim: usize) -> usize {
        match most_of(slots) {
            0 => 0,
            most => Self::flat_bytes_of(most, dim).saturating_add(Extract::<View>::bytes_of(most)),
        }
    }

    /// The number of slots that no search finds, because their blocks can't be read.
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    fn weigh(&mut self) {
        self.bytes = self.chunks.iter().map(|chunk| chunk.bytes()).sum::<usize>()
            + self.chunks.capacity() * size_of::<Arc<Chunk>>()
            + self.spans.capacity() * size_of::<Span>()
            + Sights::<View>::bytes_of(self.chunks.len())
            + self.bits.as_ref().map_or(0, |_| Bits::bytes_of(self.chunks.len() * CHUNK_SLOTS, self.dim))
            + self.tail.capacity() * size_of::<(u32, u64)>()
            + self.linked.as_ref().map_or(0, Linked::bytes)
            + Self::extract_bytes_of(self.len as usize, self.dim)
            + size_of::<View>();
    }

    /// The image after a commit that changed blocks, `len` slots long, with another graph if `linked` has one.
    /// Unchanged chunks are shared.
    pub(crate) fn with(
        &self,
        changed: &[(u32, &SlotBlock)],
        bits: &[(u32, &BitRow)],
        len: u32,
        linked: Option<&Option<Linked>>,
    ) -> View {
        let (dim, per) = (self.dim, slots_per_block(self.dim));
        let (mut chunks, mut spans) = (self.chunks.clone(), self.spans.clone());
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
        spans.resize(chunks.len(), Span::default());
        for &number in &touched {
            if let (Some(chunk), Some(span)) = (chunks.get_mut(number), spans.get_mut(number)) {
                Arc::make_mut(chunk).summarise();
                *span = chunk.span();
            }
        }
        let mut view = View {
            dim,
            len,
            bits: self.bits.as_ref().and_then(|held| held.with(bits)),
            sights: self.sights.with(&touched, &spans, &chunks),
            chunks,
            spans,
            linked: linked.cloned().unwrap_or_else(|| self.linked.clone()),
            fault: self.fault.clone().filter(|fault| linked.is_none() || matches!(fault, Fault::Codes(_))),
            lost: self.lost,
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

    /// The image of these slots alone, in this order, without a graph.
    pub(super) fn of_slots(&self, slots: &[u32]) -> View {
        let chunks = slots.chunks(CHUNK_SLOTS).map(|slots| {
            let mut chunk = Chunk::with_room(slots.len(), self.dim);
            for (at, slot) in slots.iter().enumerate() {
                let (from, of) = place(*slot as usize);
                self.chunks.get(from).into_iter().for_each(|from| chunk.copy(at, from, of, self.dim));
            }
            chunk.summarise();
            Arc::new(chunk)
        });
        let chunks: Vec<_> = chunks.collect();
        // A scan of the codes of few slots is as fast, and certain.
        let bits = self.bits.as_ref().filter(|_| slots.len() >= BITS_SLOTS_MIN as usize);
        let mut view = View {
            dim: self.dim,
            len: slots.len() as u32,
            bits: bits.map(|bits| bits.of_slots(slots)),
            spans: chunks.iter().map(|chunk| chunk.span()).collect(),
            sights: Sights::new(),
            chunks,
            linked: None,
            lost: self.lost,
            fault: None,
            tail: Vec::new(),
            bytes: 0,
            used: AtomicU64::new(0),
        };
        view.weigh();
        view
    }

    /// The slots that searches in a window see, if they are few of all and more than one search has seen them.
    pub(super) fn extract(&self, window: Window) -> Option<Arc<Extract<View>>> {
        self.sight(window).extract(self.len, |slots| self.of_slots(slots)).cloned()
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

    /// The one-bit codes; none for a small index.
    pub(super) fn bits(&self) -> Option<&Bits> {
        self.bits.as_ref()
    }

    /// The graph, if there is one that can be walked.
    pub(crate) fn linked(&self) -> Option<&Linked> {
        self.linked.as_ref()
    }

    /// What is wrong with the codes or the rows of the graph. No graph is grown on lost codes.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.as_ref().map(|(Fault::Codes(why) | Fault::Graph(why))| &**why)
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

    /// The slots that lie in a window.
    pub(super) fn sight(&self, window: Window) -> Arc<Sight<View>> {
        self.sights.get(window, &self.spans, &self.chunks)
    }

    /// The share of the slots that lie in a window; 0 of no slots.
    pub(super) fn share_seen(&self, window: Window) -> f64 {
        self.sight(window).seen() as f64 / f64::from(self.len.max(1))
    }

    /// The step of the code of a slot.
    pub(super) fn step(&self, slot: u32) -> f32 {
        let (chunk, at) = place(slot as usize);
        let step = self.chunks.get(chunk).and_then(|chunk| chunk.scales.get(at));
        step.copied().unwrap_or_default()
    }

    /// The chunks, each with the number of its first slot.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (u32, &Chunk)> {
        (0_u32..).step_by(CHUNK_SLOTS).zip(self.chunks.iter().map(Arc::as_ref))
    }

    /// A chunk; none past the last.
    pub(super) fn chunk(&self, number: usize) -> Option<&Chunk> {
        self.chunks.get(number).map(Arc::as_ref)
    }

    /// The codes and the reciprocals of their lengths, chunk by chunk, each with the number of its first
    /// slot.
    pub(super) fn rows(&self) -> impl Iterator<Item = (u32, &[i8], &[f32])> {
        self.chunks().map(|(first, chunk)| (first, chunk.codes.as_slice(), chunk.units.as_slice()))
    }

    /// The numbers of the chunks with slots that hold a memory and are not nodes, each with the bits of these slots.
    pub(super) fn tail(&self) -> impl Iterator<Item = (usize, u64)> {
        self.tail.iter().map(|&(number, mask)| (number as usize, mask))
    }

    /// The slots of the tail, ascending.
    pub(super) fn tail_slots(&self) -> impl Iterator<Item = u32> {
        self.tail.iter().flat_map(|(number, mask)| {
            let first = number * CHUNK_SLOTS as u32;
            ones(*mask).map(move |bit| first + bit)
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
