//! The published state: what every reader of one commit shares, and the swap from one commit to the next.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result, sound};
use crate::index::adjacency::Linked;
use crate::index::sketch::Sketch;
use crate::index::stop::Stop;
use crate::index::text::TextView;
use crate::index::view::View;
use crate::limits::BITS_SLOTS_MIN;
use crate::model::Time;
use crate::record::{BitRow, DocBlock, SlotBlock};
use crate::store::control::{Clock, SlotHead};
use crate::store::{IndexId, NsId, Read, Rows, Snapshot, SpaceId, StagedBlocks, Table, TextId, TextRows};

/// The number of maps of views. A publish copies this many pointers, and the maps with changed views.
const SHARDS: usize = 64;

/// A lock with a value. The shipped one is [`Parked`]; the model checker of the tests brings its own.
pub(crate) trait Lock<T> {
    /// A lock around a value.
    fn new(value: T) -> Self;
    /// Reads the value, together with other readers.
    fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R;
    /// Changes the value, alone.
    fn write<R>(&self, change: impl FnOnce(&mut T) -> R) -> R;
}

/// A family of locks.
pub(crate) trait Locks: 'static {
    /// The lock of a value.
    type Of<T: Send + Sync>: Lock<T> + Send + Sync;
}

/// The locks of `parking_lot`.
#[derive(Debug)]
pub(crate) struct Parked;

impl Locks for Parked {
    type Of<T: Send + Sync> = parking_lot::RwLock<T>;
}

impl<T> Lock<T> for parking_lot::RwLock<T> {
    fn new(value: T) -> Self {
        parking_lot::RwLock::new(value)
    }

    fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&parking_lot::RwLock::read(self))
    }

    fn write<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut parking_lot::RwLock::write(self))
    }
}

/// The number of vectors from which on the first search of an index loads no view. Below it, a view costs little.
const STREAMED_FIRST_MIN: u32 = 4_096;

/// How many bytes the views of a published state may take together, and the clock that tells which view was
/// used least recently. All states of a database share it.
#[derive(Debug)]
pub(crate) struct ViewBudget {
    bytes_max: usize,
    ticks: AtomicU64,
    /// The large indexes that were searched.
    searched: parking_lot::Mutex<BTreeSet<IndexId>>,
}

impl ViewBudget {
    /// A budget of `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(ViewBudget { bytes_max, ticks: AtomicU64::new(1), searched: parking_lot::Mutex::default() })
    }

    fn touch(&self, image: &Image) {
        image.used().store(self.ticks.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// What a commit changed in the indexes.
#[derive(Debug)]
pub(crate) struct Changes<'c> {
    /// The blocks of codes and documents that the commit wrote, and the indexes of which it kept no block.
    pub(crate) blocks: &'c StagedBlocks,
    /// The namespaces of which the commit deleted rows.
    pub(crate) dropped: &'c [NsId],
    /// The graphs that the commit replaced; none for a dropped graph.
    pub(crate) linked: &'c BTreeMap<IndexId, Option<Linked>>,
    /// The indexes that the commit wrote as a whole. No image of them is valid any more.
    pub(crate) reset: &'c BTreeSet<IndexId>,
}

/// The image of an index at one commit.
#[derive(Clone, Debug)]
enum Image {
    /// Codes and links of vectors.
    Codes(Arc<View>),
    /// One-bit codes of vectors.
    Sketch(Arc<Sketch>),
    /// Documents of texts.
    Texts(Arc<TextView>),
}

impl Image {
    fn bytes(&self) -> usize {
        match self {
            Image::Codes(view) => view.bytes(),
            Image::Sketch(sketch) => sketch.bytes(),
            Image::Texts(view) => view.bytes(),
        }
    }

    fn used(&self) -> &AtomicU64 {
        match self {
            Image::Codes(view) => &view.used,
            Image::Sketch(sketch) => &sketch.used,
            Image::Texts(view) => &view.used,
        }
    }

    fn codes(&self) -> Option<Arc<View>> {
        match self {
            Image::Codes(view) => Some(Arc::clone(view)),
            Image::Sketch(_) | Image::Texts(_) => None,
        }
    }

    fn sketch(&self) -> Option<Arc<Sketch>> {
        match self {
            Image::Sketch(sketch) => Some(Arc::clone(sketch)),
            Image::Codes(_) | Image::Texts(_) => None,
        }
    }

    fn texts(&self) -> Option<Arc<TextView>> {
        match self {
            Image::Codes(_) | Image::Sketch(_) => None,
            Image::Texts(view) => Some(Arc::clone(view)),
        }
    }
}

type Shard = Arc<HashMap<IndexId, Image>>;

/// The state of the store at one commit: the snapshot of the rows, and the views of the same commit, each loaded when
/// it is first needed. An old state that a reader still holds keeps its views. The budget counts the views of each
/// state by themselves, and so the views that can be reached from the current state.
pub(crate) struct PublishedIn<L: Locks> {
    snapshot: Arc<Snapshot>,
    commit: u64,
    committed_at: Time,
    images: Arc<ImagesIn<L>>,
}

/// The images of one commit that are in memory. They hold no snapshot, so they pin no page of the file.
///
/// Locks are taken in one order: the gate of an index, then the sum of the bytes, then a shard. The map of gates is
/// locked for a moment before and after, while none of the others is taken.
pub(crate) struct ImagesIn<L: Locks> {
    shards: [L::Of<Shard>; SHARDS],
    /// The sum of the bytes of the views in the shards. Adding or removing a view requires this lock.
    kept_bytes: L::Of<usize>,
    budget: Arc<ViewBudget>,
    /// The locks under which images are loaded, one reader at a time for each index. All commits share them.
    gates: Arc<L::Of<Gates<L>>>,
}

/// A lock for each index whose image is being loaded.
type Gates<L> = HashMap<IndexId, Arc<<L as Locks>::Of<()>>>;

/// The images with the locks of the shipped program.
pub(crate) type Images = ImagesIn<Parked>;

/// The published state with the locks of the shipped program.
pub(crate) type Published = PublishedIn<Parked>;

impl<L: Locks> std::fmt::Debug for PublishedIn<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Published").field("commit", &self.commit).finish_non_exhaustive()
    }
}

impl<L: Locks> PublishedIn<L> {
    /// The state of `snapshot`, whose clock row is `clock`, without any view yet.
    pub(crate) fn first(snapshot: Arc<Snapshot>, clock: &Clock, budget: Arc<ViewBudget>) -> Self {
        Self::with(snapshot, clock, Arc::new(ImagesIn::none(budget)))
    }

    /// The state of `snapshot`, whose clock row is `clock`, with images of the same commit.
    pub(crate) fn with(snapshot: Arc<Snapshot>, clock: &Clock, images: Arc<ImagesIn<L>>) -> Self {
        let committed_at = Time::from_millis(clock.at_ms);
        PublishedIn { snapshot, commit: clock.commit, committed_at, images }
    }

    /// The state of the next commit, which made these changes. A view that can't be brought forward is loaded again
    /// when it is next needed.
    pub(crate) fn next(&self, snapshot: Arc<Snapshot>, clock: &Clock, changes: &Changes<'_>) -> Self {
        let Changes { blocks: StagedBlocks { spilled, slots, bits, docs }, dropped, linked, reset } = changes;
        let is_void = |index: &IndexId| reset.contains(index) || spilled.contains(index);
        let images = &self.images;
        // Both are read under the lock of the sum. A reader that adds a view meanwhile is in both or in neither, so the
        // sum fits the copied maps.
        let (mut shards, mut kept) = images.kept_bytes.read(|kept| (images.all(), *kept));
        if !dropped.is_empty() {
            images.budget.searched.lock().retain(|index| !dropped.contains(&index.ns));
            for shard in &mut shards {
                if shard.keys().any(|index| dropped.contains(&index.ns)) {
                    Arc::make_mut(shard).retain(|index, view| {
                        let stays = !dropped.contains(&index.ns);
                        kept -= if stays { 0 } else { view.bytes() };
                        stays
                    });
                }
            }
        }
        let mut blocks: BTreeMap<IndexId, Vec<(u32, &SlotBlock)>> = BTreeMap::new();
        for ((index, block), value) in slots {
            blocks.entry(*index).or_default().push((*block, value));
        }
        let mut rows: BTreeMap<IndexId, Vec<(u32, &BitRow)>> = BTreeMap::new();
        for ((index, row), value) in bits {
            rows.entry(*index).or_default().push((*row, value));
            blocks.entry(*index).or_default();
        }
        // An index without a kept block is visited too: its image takes the new graph, or is dropped.
        for index in linked.keys().chain(*reset).chain(spilled) {
            blocks.entry(*index).or_default();
        }
        for (index, blocks) in blocks {
            let Some(shard) = shards.get_mut(shard_of(index)) else { continue };
            let Some(old) = shard.get(&index).cloned() else { continue };
            let rows = rows.remove(&index).unwrap_or_default();
            let next = match (&old, snapshot.slot_head(index)) {
                _ if is_void(&index) => None,
                (Image::Codes(old), Ok(head)) => {
                    Some(Image::Codes(Arc::new(old.with(&blocks, &rows, head.len, linked.get(&index)))))
                }
                (Image::Sketch(old), _) => old.with(&rows).map(|next| Image::Sketch(Arc::new(next))),
                _ => None,
            };
            replace(shard, index, &old, next, &mut kept);
        }
        let mut texts: BTreeMap<TextId, Vec<(u32, &DocBlock)>> = BTreeMap::new();
        for ((text, block), value) in docs {
            texts.entry(*text).or_default().push((*block, value));
        }
        for (text, blocks) in texts {
            let index = text.index();
            let Some(shard) = shards.get_mut(shard_of(index)) else { continue };
            let Some(old) = shard.get(&index).cloned() else { continue };
            let next = old.texts().and_then(|old| old.with(&snapshot, &blocks).ok().flatten());
            replace(shard, index, &old, next.map(|view| Image::Texts(Arc::new(view))), &mut kept);
        }
        let next = ImagesIn::<L> {
            shards: shards.map(L::Of::new),
            kept_bytes: L::Of::new(kept),
            budget: Arc::clone(&images.budget),
            gates: Arc::clone(&images.gates),
        };
        // The commit may have made views longer, and the sum larger than the budget.
        next.kept_bytes.write(|kept| next.evict(kept, 0));
        Self::with(snapshot, clock, Arc::new(next))
    }

    /// The state of a file that was opened again or replaced. No earlier view is valid.
    pub(crate) fn afresh(&self, snapshot: Arc<Snapshot>, clock: &Clock) -> Self {
        Self::first(snapshot, clock, Arc::clone(&self.images.budget))
    }

    /// The rows of the commit.
    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// The number of the commit.
    pub(crate) fn commit(&self) -> u64 {
        self.commit
    }

    /// The transaction time of the commit.
    pub(crate) fn committed_at(&self) -> Time {
        self.committed_at
    }

    /// The bytes of the views that are in memory.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.images.kept_bytes.read(|kept| *kept)
    }

    /// The dimensions of an embedding space.
    ///
    /// # Errors
    /// `Corrupted` if there is no such space.
    pub(crate) fn dim(&self, space: SpaceId) -> Result<usize> {
        let row = self.snapshot.space(space)?.ok_or_else(|| {
            Error::corrupted(Table::Space.name(), &space.0.to_be_bytes(), "an index lies in a space unknown")
        })?;
        Ok(row.dim as usize)
    }

    /// Whether the view of an index with this head fits into memory. An index whose view does not fit is read
    /// block by block.
    pub(crate) fn has_room_for(&self, head: &SlotHead, dim: usize) -> bool {
        View::bytes_of(head.len as usize, dim) <= self.images.budget.bytes_max
    }

    /// Whether this is the first search of a large index without a graph. Such a search reads the one-bit codes of the
    /// index, or its blocks, of which it keeps none. That costs a part of loading a view, and a process that searches
    /// once needs no view.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn is_first_search(&self, index: IndexId, head: &SlotHead) -> Result<bool> {
        if head.used < STREAMED_FIRST_MIN || sound(self.snapshot.graph_head(index))? != Some(None) {
            return Ok(false);
        }
        Ok(self.images.budget.searched.lock().insert(index))
    }

    /// The views that are in memory.
    pub(crate) fn all_loaded(&self) -> Vec<(IndexId, Arc<View>)> {
        let images = self.images.all();
        let all = images.iter().flat_map(|shard| shard.iter());
        all.filter_map(|(index, image)| Some((*index, image.codes()?))).collect()
    }

    /// The view of an index, if it is in memory.
    pub(crate) fn loaded(&self, index: IndexId) -> Option<Arc<View>> {
        self.images.image(index)?.codes()
    }

    /// The one-bit codes of an index, read from the snapshot of this state if they are not in memory. They stay there for
    /// other readers and for later states until a view takes their place, unless they are larger than the whole budget. None
    /// for an index without one-bit codes.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn sketch(&self, index: IndexId, head: &SlotHead) -> Result<Option<Arc<Sketch>>> {
        if head.len < BITS_SLOTS_MIN {
            return Ok(None);
        }
        let dim = self.dim(index.space)?;
        let expected = Sketch::bytes_of(head.len as usize, dim);
        // A view has the one-bit codes too, but whoever asks for a sketch had no room for a view.
        self.images.keep(index, expected, Image::sketch, || {
            let sketch = Sketch::load(&self.snapshot, index, dim, head.len)?;
            Ok(sketch.map(|sketch| Image::Sketch(Arc::new(sketch))))
        })
    }

    /// The image of a full-text index, if it is in memory.
    pub(crate) fn loaded_text(&self, text: TextId) -> Option<Arc<TextView>> {
        self.images.image(text.index())?.texts()
    }

    /// The image of a full-text index, read from the snapshot of this state if it is not in memory. None if no memory
    /// was ever in the index.
    ///
    /// # Errors
    /// Those of [`TextView::load`].
    pub(crate) fn text_view(&self, text: TextId) -> Result<Option<Arc<TextView>>> {
        if let Some(view) = self.loaded_text(text) {
            return Ok(Some(view));
        }
        let Some(head) = self.snapshot.readable_text_head(text)? else { return Ok(None) };
        self.images.keep(text.index(), TextView::bytes_of(head.len), Image::texts, || {
            Ok(TextView::load(&self.snapshot, text)?.map(|view| Image::Texts(Arc::new(view))))
        })
    }

    /// Like [`PublishedIn::text_view`], with the tail. The image stays in memory only if there is room for it beside
    /// the others.
    ///
    /// # Errors
    /// As [`PublishedIn::text_view`], and when the text of a memory cannot be read.
    pub(crate) fn text_view_beside(&self, text: TextId, stop: Stop<'_>) -> Result<Option<Arc<TextView>>> {
        self.images.one_by_one(text.index(), || {
            if let Some(view) = self.loaded_text(text) {
                return Ok(Some(view));
            }
            let Some(view) = TextView::load(&self.snapshot, text)? else { return Ok(None) };
            let view = Arc::new(view.with_tail(&self.snapshot, stop)?);
            self.images.keep_beside(text.index(), Image::Texts(Arc::clone(&view)));
            Ok(Some(view))
        })
    }

    /// The view of an index, read from the snapshot of this state if it is not in memory. It stays in memory
    /// for other readers and for later states, unless it is larger than the whole budget.
    ///
    /// # Errors
    /// Those of [`View::load`].
    pub(crate) fn view(&self, index: IndexId) -> Result<Arc<View>> {
        if let Some(view) = self.loaded(index) {
            return Ok(view);
        }
        let dim = self.dim(index.space)?;
        let expected = View::bytes_of(self.snapshot.readable_slot_head(index)?.len as usize, dim);
        let view = self.images.keep(index, expected, Image::codes, || {
            Ok(Some(Image::Codes(Arc::new(View::load(&self.snapshot, index, dim)?))))
        })?;
        view.ok_or_else(|| {
            Error::corrupted(Table::Slot.name(), &[], "an index of vectors under the number of texts")
        })
    }
}

impl<L: Locks> std::fmt::Debug for ImagesIn<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Images")
    }
}

impl<L: Locks> ImagesIn<L> {
    /// Images without any view yet.
    pub(crate) fn none(budget: Arc<ViewBudget>) -> Self {
        ImagesIn {
            shards: std::array::from_fn(|_| L::Of::new(Shard::default())),
            kept_bytes: L::Of::new(0),
            budget,
            gates: Arc::new(L::Of::new(Gates::<L>::new())),
        }
    }

    /// The images of the next commit, which another process made: no view, the same budget.
    pub(crate) fn void(&self) -> Self {
        ImagesIn { gates: Arc::clone(&self.gates), ..Self::none(Arc::clone(&self.budget)) }
    }

    fn image(&self, index: IndexId) -> Option<Image> {
        let image = self.shard(index)?.read(|shard| shard.get(&index).cloned())?;
        self.budget.touch(&image);
        Some(image)
    }

    /// The image of an index of the sort that `of` takes. One of about `expected` bytes is loaded where there is none, and kept
    /// if there is room, in place of an image of another sort.
    fn keep<T>(
        &self,
        index: IndexId,
        expected: usize,
        of: impl Fn(&Image) -> Option<T>,
        load: impl FnOnce() -> Result<Option<Image>>,
    ) -> Result<Option<T>> {
        self.one_by_one(index, || match self.image(index).and_then(|present| of(&present)) {
            Some(present) => Ok(Some(present)),
            None => Ok(self.load(index, expected, load)?.and_then(|image| of(&image))),
        })
    }

    /// If several readers ask for an image at the same time, one loads it and the others wait. So each image takes
    /// memory once.
    fn one_by_one<R>(&self, index: IndexId, load: impl FnOnce() -> R) -> R {
        // The map is locked only to find the gate, so that readers of other indexes do not wait for this load.
        let gate = self
            .gates
            .write(|gates| Arc::clone(gates.entry(index).or_insert_with(|| Arc::new(L::Of::new(())))));
        let loaded = gate.write(|()| load());
        self.gates.write(|gates| {
            // A count of two means the map and this reader. Nobody else is at the gate, and nobody can come
            // to it while the map is locked.
            if Arc::strong_count(&gate) == 2 {
                gates.remove(&index);
            }
        });
        loaded
    }

    /// Keeps an image if there is room for it beside the others.
    fn keep_beside(&self, index: IndexId, image: Image) {
        let bytes = image.bytes();
        self.budget.touch(&image);
        self.kept_bytes.write(|kept| {
            let fits = kept.saturating_add(bytes) <= self.budget.bytes_max;
            if let Some(shard) = self.shard(index).filter(|_| fits && self.image(index).is_none()) {
                shard.write(|shard| Arc::make_mut(shard).insert(index, image));
                *kept += bytes;
            }
        });
    }

    fn load(
        &self,
        index: IndexId,
        expected: usize,
        load: impl FnOnce() -> Result<Option<Image>>,
    ) -> Result<Option<Image>> {
        if expected <= self.budget.bytes_max {
            // Room is made before the load, because the image takes memory while it is loaded.
            self.kept_bytes.write(|kept| self.evict(kept, expected));
        }
        let Some(image) = load()? else { return Ok(None) };
        self.budget.touch(&image);
        let bytes = image.bytes();
        // An image larger than the whole budget would push out every other image, so only this caller gets it.
        if bytes > self.budget.bytes_max {
            return Ok(Some(image));
        }
        Ok(Some(self.kept_bytes.write(|kept| {
            // `keep_beside` passes no gate and may have been first. The sum counts each index once.
            if let Some(present) = self.image(index)
                && std::mem::discriminant(&present) == std::mem::discriminant(&image)
            {
                return present;
            }
            self.evict(kept, bytes);
            if let Some(shard) = self.shard(index) {
                let before = shard.write(|shard| Arc::make_mut(shard).insert(index, image.clone()));
                *kept += bytes;
                *kept -= before.map_or(0, |before| before.bytes());
            }
            image
        })))
    }

    /// Drops the least recently used views until `bytes` more fit. It makes more room than that, so that one look at
    /// all views pays for many insertions.
    fn evict(&self, kept: &mut usize, bytes: usize) {
        let most = self.budget.bytes_max;
        if kept.saturating_add(bytes) <= most {
            return;
        }
        let images = self.all();
        let views = images.iter().flat_map(|shard| shard.iter());
        let mut by_use: Vec<_> = views
            .map(|(index, image)| (image.used().load(Ordering::Relaxed), *index, image.bytes()))
            .collect();
        by_use.sort_unstable();
        // The list of images is dropped first. Otherwise every map that changes would be copied.
        drop(images);
        let goal = (most - most / 8).saturating_sub(bytes);
        for (_, index, freed) in by_use {
            if *kept <= goal {
                break;
            }
            if let Some(shard) = self.shard(index) {
                shard.write(|shard| Arc::make_mut(shard).remove(&index));
                // The caller holds the lock of the sum, so the removed image is the one whose bytes were counted.
                *kept -= freed;
            }
        }
    }

    fn all(&self) -> [Shard; SHARDS] {
        self.shards.each_ref().map(|shard| shard.read(Arc::clone))
    }

    fn shard(&self, index: IndexId) -> Option<&L::Of<Shard>> {
        self.shards.get(shard_of(index))
    }
}

/// Replaces the image of an index by the next image. Without a next image, the image is read again when it is needed.
fn replace(shard: &mut Shard, index: IndexId, old: &Image, next: Option<Image>, kept: &mut usize) {
    *kept -= old.bytes();
    let images = Arc::make_mut(shard);
    match next {
        Some(next) => {
            *kept += next.bytes();
            images.insert(index, next);
        }
        None => {
            images.remove(&index);
        }
    }
}

/// The shard of an index. Neighbouring partitions of a namespace lie in different shards.
fn shard_of(index: IndexId) -> usize {
    let mixed = index.ns.0.wrapping_mul(0x9E37_79B1) ^ index.part.0 ^ u32::from(index.space.0);
    mixed as usize % SHARDS
}

/// The state that readers take and the writer replaces.
pub(crate) struct CurrentIn<L: Locks> {
    published: L::Of<Arc<PublishedIn<L>>>,
}

/// The current state with the locks of the shipped program.
pub(crate) type Current = CurrentIn<Parked>;

impl<L: Locks> CurrentIn<L> {
    /// A current state that begins with `first`.
    pub(crate) fn new(first: PublishedIn<L>) -> Self {
        CurrentIn { published: L::Of::new(Arc::new(first)) }
    }

    /// The state of the last published commit.
    pub(crate) fn read(&self) -> Arc<PublishedIn<L>> {
        self.published.read(Arc::clone)
    }

    /// Replaces the current state by `next`. Readers that hold the old state keep it.
    pub(crate) fn publish(&self, next: PublishedIn<L>) {
        let next = Arc::new(next);
        // The old state may hold the last reference to its snapshot. It is dropped after the lock, because
        // dropping it can take time.
        let old = self.published.write(|current| std::mem::replace(current, next));
        drop(old);
    }
}
