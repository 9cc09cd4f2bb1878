//! A chunk: a run of slots side by side in memory, and which of them a search sees.

use crate::model::{MemoryId, Time};
use crate::record::{SlotBlockRef, SlotMeta};
use crate::vector::{Codes, unit_scale};

/// The number of slots in a chunk: those of one word of a bitmap. Blocks of the table cross the borders of
/// chunks.
pub(super) const CHUNK_SLOTS: usize = u64::BITS as usize;

/// From when until when something is visible.
pub(super) type Span = (i64, i64);

/// The instants that a slot must cover to be searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// The slot begins no later than this.
    latest: i64,
    /// The slot ends after this.
    now: i64,
    /// Every slot that holds a memory is searched, whatever its instants.
    all: bool,
}

impl Window {
    /// The window of a live read at `now`.
    pub(super) fn live(now: Time) -> Self {
        Window { latest: now.as_millis(), now: now.as_millis(), all: false }
    }

    /// The window of rows that are current at `now`: visible now, or not valid yet.
    pub(super) fn current(now: Time) -> Self {
        Window { latest: i64::MAX, now: now.as_millis(), all: false }
    }

    /// The window of all slots that hold a memory.
    pub(super) fn all() -> Self {
        Window { latest: i64::MAX, now: i64::MAX, all: true }
    }

    /// Whether the window includes a slot that is visible from `from` to `until`. A vacant slot is never
    /// visible.
    #[inline]
    pub(super) fn holds(self, from: i64, until: i64) -> bool {
        // Only a vacant slot begins at the end of time.
        (from <= self.latest && self.now < until && from < until) || (self.all && from < i64::MAX)
    }

    /// The instant of the window.
    pub(super) fn now(self) -> i64 {
        self.now
    }

    /// Whether this is the window of a live read.
    pub(super) fn is_live(self) -> bool {
        !self.all && self.latest == self.now
    }

    /// Whether this is the window of rows that are current.
    pub(super) fn is_current(self) -> bool {
        !self.all && self.latest == i64::MAX
    }

    /// The part of `span` in which windows like this one agree with it about a slot that is visible from `from` to
    /// `until`. The instant of the window lies in it.
    #[inline]
    pub(super) fn same_near(self, (mut first, mut end): Span, from: i64, until: i64) -> Span {
        let mut turn = |at: i64| match at <= self.now {
            true => first = first.max(at),
            false => end = end.min(at),
        };
        if from < until && !self.all {
            turn(until);
            if self.latest < i64::MAX {
                turn(from);
            }
        }
        (first, end)
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
    /// The slots of a word of bits, of which `len` stand for slots; none if no bit is set.
    pub(super) fn of_word(word: u64, len: usize) -> Option<Self> {
        match word.count_ones() as usize {
            0 => None,
            count if count == len => Some(Visible::All),
            _ => Some(Visible::Some(vec![word])),
        }
    }

    /// The words of bits, as the scan of codes takes them.
    pub(super) fn words(&self) -> Option<&[u64]> {
        match self {
            Visible::All => None,
            Visible::Some(words) => Some(words),
        }
    }

    /// The bits of the first 64 of `len` slots.
    pub(super) fn first_word(&self, len: usize) -> u64 {
        match self {
            Visible::All if len >= 64 => u64::MAX,
            Visible::All => (1 << len) - 1,
            Visible::Some(words) => words.first().copied().unwrap_or(0),
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

/// The bits that are set, ascending.
pub(super) fn ones(mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (bits != 0).then(|| bits.trailing_zeros())?;
        bits &= bits - 1;
        Some(bit)
    })
}

/// A run of slots side by side. It is replaced as a whole when one of them changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunk {
    ids: Vec<MemoryId>,
    from: Vec<i64>,
    until: Vec<i64>,
    pub(super) scales: Vec<f32>,
    residuals: Vec<f32>,
    /// The reciprocals of the lengths of the codes.
    pub(super) units: Vec<f32>,
    pub(super) codes: Vec<i8>,
    /// All slots are visible while `all_from <= now < all_until`.
    all_from: i64,
    all_until: i64,
}

impl Chunk {
    /// The bytes of one slot besides its code.
    pub(super) const META_BYTES: usize = size_of::<MemoryId>() + 2 * size_of::<i64>() + 3 * size_of::<f32>();

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

    /// Writes the slot `of` of another chunk into one.
    pub(super) fn copy(&mut self, at: usize, from: &Chunk, of: usize, dim: usize) {
        self.pad(at + 1, dim);
        copy(&mut self.ids, at, &from.ids, of);
        copy(&mut self.from, at, &from.from, of);
        copy(&mut self.until, at, &from.until, of);
        copy(&mut self.scales, at, &from.scales, of);
        copy(&mut self.residuals, at, &from.residuals, of);
        copy(&mut self.units, at, &from.units, of);
        let place = self.codes.get_mut(at * dim..(at + 1) * dim);
        if let (Some(place), Some(code)) = (place, from.codes.get(of * dim..(of + 1) * dim)) {
            place.copy_from_slice(code);
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

    /// The codes of the slots from `first` on.
    pub(super) fn codes_from(&self, first: usize, dim: usize) -> Codes<'_> {
        let from = |list| <[f32]>::get(list, first..).unwrap_or_default();
        let codes = self.codes.get(first * dim..).unwrap_or_default();
        Codes::new(dim, codes, from(&self.scales), from(&self.residuals))
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

    /// When all slots of a full chunk are visible. Those that a shorter one lacks never are.
    pub(super) fn span(&self) -> Span {
        if self.len() == CHUNK_SLOTS { (self.all_from, self.all_until) } else { (i64::MAX, i64::MIN) }
    }

    /// When each slot is visible. A vacant slot never is.
    pub(super) fn spans(&self) -> impl Iterator<Item = Span> {
        self.from.iter().copied().zip(self.until.iter().copied())
    }

    /// The number of slots that hold a memory, however many slots there are: a block that is streamed can have more than
    /// [`CHUNK_SLOTS`].
    pub(super) fn used(&self) -> usize {
        self.ids.iter().filter(|id| **id != SlotMeta::VACANT.id).count()
    }

    /// A bit for each slot that holds a memory, of a chunk of at most [`CHUNK_SLOTS`].
    pub(super) fn occupied(&self) -> u64 {
        assert!(self.ids.len() <= CHUNK_SLOTS, "a bit for each slot");
        let bits = self.ids.iter().enumerate();
        bits.fold(0, |word, (bit, id)| word | (u64::from(*id != SlotMeta::VACANT.id) << bit))
    }

    /// Whether a slot lies in a window.
    #[inline]
    pub(super) fn sees(&self, at: usize, window: Window) -> bool {
        window.holds(self.all_from, self.all_until)
            || matches!((self.from.get(at), self.until.get(at)), (Some(from), Some(until)) if window.holds(*from, *until))
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Chunk>() + self.ids.capacity() * Chunk::META_BYTES + self.codes.capacity()
    }
}

fn copy<T: Copy>(list: &mut [T], at: usize, from: &[T], of: usize) {
    from.get(of).into_iter().for_each(|value| put(list, at, *value));
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
