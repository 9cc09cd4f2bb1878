//! The image of the documents of one full-text index at one commit, immutable and shared.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::error::{Error, Result, sound};
use crate::index::stop::Stop;
use crate::index::text::analyzer_of;
use crate::index::text::run::{RunBuilder, Tail};
use crate::model::{MemoryId, Time};
use crate::record::{DOCS_PER_BLOCK, DocBlock, DocMeta, PostingsRef};
use crate::store::control::TextHead;
use crate::store::{Read, Rows, Snapshot, Table, TextId, TextRows, doc_place, keys};
use crate::text::Analyzer;

/// How long a reader waits for the work of another reader before it checks whether its own time is over.
const MOMENT: std::time::Duration = std::time::Duration::from_millis(2);

/// Documents side by side, with facts that hold for all of them.
#[derive(Debug)]
struct Chunk {
    docs: DocBlock,
    /// The number of terms of each document; 0 if they are not counted.
    lengths: Vec<u32>,
    /// All documents are visible while `all_from <= now < all_until`.
    all_from: i64,
    all_until: i64,
    /// The number of documents that stand for a memory.
    used: u32,
    /// The number of all their counted terms.
    terms: u64,
}

impl Chunk {
    fn new(docs: DocBlock) -> Self {
        let present = || docs.docs().iter().flatten();
        Chunk {
            all_from: present().map(|doc| doc.from).max().unwrap_or(i64::MIN),
            all_until: present().map(|doc| doc.until).min().unwrap_or(i64::MAX),
            used: present().count() as u32,
            terms: present().filter_map(|doc| doc.terms).map(u64::from).sum(),
            lengths: docs.docs().iter().map(|doc| doc.and_then(|doc| doc.terms).unwrap_or(0)).collect(),
            docs,
        }
    }
}

/// The image of one full-text index.
#[derive(Debug)]
pub(crate) struct TextView {
    text: TextId,
    head: TextHead,
    analyzer: Analyzer,
    /// By number of the block; none for a block without documents.
    chunks: Vec<Option<Arc<Chunk>>>,
    /// The number of documents that no search finds, because their blocks can't be read.
    lost: u32,
    /// The tail. The first search makes it.
    tail: OnceLock<Arc<Tail>>,
    /// The lock under which the tail is made.
    making: Mutex<()>,
    /// What an earlier image, or an interrupted search, knew of the tail.
    seed: Mutex<Option<Arc<Tail>>>,
    bytes: usize,
    /// When the image was last used, in ticks of the budget.
    pub(in crate::index) used: AtomicU64,
}

impl TextView {
    /// Reads an index from a snapshot; none if no memory was ever in it.
    ///
    /// The documents of a damaged block are not found until the index is rebuilt.
    ///
    /// # Errors
    /// `Corrupted` if the blocks and the head contradict each other.
    pub(crate) fn load(snapshot: &Snapshot, text: TextId) -> Result<Option<Self>> {
        let Some(head) = snapshot.readable_text_head(text)? else { return Ok(None) };
        let mut whole = true;
        let blocks = (head.len as usize).div_ceil(DOCS_PER_BLOCK);
        let mut chunks: Vec<Option<Arc<Chunk>>> = Vec::new();
        snapshot.doc_blocks(text, &mut |block, docs| {
            let block = block as usize;
            let Some(docs) = docs else {
                whole = false;
                return Ok(());
            };
            if block >= blocks || block * DOCS_PER_BLOCK + docs.len() > head.len as usize {
                return Err(disagree(text, format!("block {block} lies behind {head:?}")));
            }
            chunks.resize(block, None);
            chunks.push(Some(Arc::new(Chunk::new(docs))));
            Ok(())
        })?;
        let view = TextView::new(text, head, chunks, None)?;
        let used = used_of(&view.chunks);
        if whole && used != view.head.used {
            return Err(disagree(text, format!("{used} documents, not as {:?} says", view.head)));
        }
        Ok(Some(view))
    }

    fn new(
        text: TextId,
        head: TextHead,
        chunks: Vec<Option<Arc<Chunk>>>,
        seed: Option<Arc<Tail>>,
    ) -> Result<Self> {
        let analyzer = analyzer_of(text, &head.analyzer)?;
        let seed = seed.filter(|seed| !seed.is_behind(head.posted));
        let block = size_of::<Chunk>() + DOCS_PER_BLOCK * size_of::<Option<DocMeta>>();
        let bytes = size_of::<TextView>()
            + chunks.iter().flatten().count() * block
            + chunks.capacity() * size_of::<Option<Arc<Chunk>>>()
            + seed.as_ref().map_or(0, |seed| seed.bytes());
        let lost = head.used.saturating_sub(used_of(&chunks));
        let used = AtomicU64::new(0);
        let seed = Mutex::new(seed);
        let (tail, making) = (OnceLock::new(), Mutex::new(()));
        Ok(TextView { text, head, analyzer, chunks, lost, tail, making, seed, bytes, used })
    }

    /// The image after a commit that wrote these blocks of documents. Unchanged parts are shared.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn with(&self, snapshot: &Snapshot, changed: &[(u32, &DocBlock)]) -> Result<Option<Self>> {
        let Some(head) = snapshot.text_head(self.text)? else { return Ok(None) };
        let mut chunks = self.chunks.clone();
        for (block, docs) in changed {
            let block = *block as usize;
            if chunks.len() <= block {
                chunks.resize(block + 1, None);
            }
            if let Some(place) = chunks.get_mut(block) {
                *place = (!docs.is_vacant()).then(|| Arc::new(Chunk::new((*docs).clone())));
            }
        }
        let seed = self.tail.get().cloned().or_else(|| self.seed.lock().clone());
        let view = TextView::new(self.text, head, chunks, seed)?;
        view.used.store(self.used.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok(Some(view))
    }

    /// The bytes in memory, with the tail as far as it was known when the image was made.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The bytes of an image of this many documents.
    pub(crate) fn bytes_of(docs: u32) -> usize {
        size_of::<TextView>() + docs as usize * size_of::<Option<DocMeta>>()
    }

    /// The analyzer of the index.
    pub(crate) fn analyzer(&self) -> &Analyzer {
        &self.analyzer
    }

    pub(super) fn text(&self) -> TextId {
        self.text
    }

    pub(super) fn head(&self) -> &TextHead {
        &self.head
    }

    /// The number of documents that no search finds, because their blocks can't be read.
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    /// The number behind the last possible document. The memory of a query depends on the blocks that exist, not on
    /// what the head says.
    pub(super) fn end(&self) -> u32 {
        let room = u32::try_from(self.chunks.len() * DOCS_PER_BLOCK).unwrap_or(u32::MAX);
        self.head.len.min(room)
    }

    /// A document that stands for a memory.
    #[inline]
    pub(super) fn doc(&self, doc: u32) -> Option<&DocMeta> {
        let (block, at) = doc_place(doc);
        self.chunks.get(block as usize)?.as_ref()?.docs.get(at)
    }

    /// The document of a memory, if documents stand in the order of ids, as those of new memories do. None proves
    /// nothing: the document may stand elsewhere, and blocks without documents mislead the search.
    pub(super) fn doc_in_order(&self, id: MemoryId) -> Option<u32> {
        let begins = |chunk: &Arc<Chunk>| chunk.docs.docs().iter().flatten().next().map(|doc| doc.id);
        let is_before =
            |chunk: &Option<Arc<Chunk>>| chunk.as_ref().and_then(begins).is_none_or(|first| first <= id);
        let block = self.chunks.partition_point(is_before).checked_sub(1)?;
        let docs = self.chunks.get(block)?.as_ref()?.docs.docs();
        let at = docs.partition_point(|doc| doc.as_ref().is_none_or(|doc| doc.id < id));
        docs.get(at)?.as_ref().filter(|doc| doc.id == id)?;
        Some((block * DOCS_PER_BLOCK + at) as u32)
    }

    /// The memory of a document.
    pub(crate) fn id(&self, doc: u32) -> Option<MemoryId> {
        self.doc(doc).map(|doc| doc.id)
    }

    /// The documents before or after a document in its thread, the nearest first.
    pub(crate) fn thread(&self, doc: u32, forward: bool) -> impl Iterator<Item = (u32, &DocMeta)> {
        let step = move |meta: &DocMeta| if forward { meta.after } else { meta.before };
        let mut next = self.doc(doc).and_then(step);
        let steps = std::iter::from_fn(move || {
            let at = next?;
            let meta = self.doc(at)?;
            next = step(meta);
            Some((at, meta))
        });
        // No chain is longer than the number of documents, whatever the file says.
        steps.take(self.head.len as usize)
    }

    /// The image with its tail. The bytes of the tail count among its own.
    ///
    /// # Errors
    /// As [`TextView::tail`].
    pub(in crate::index) fn with_tail(mut self, snapshot: &Snapshot, stop: Stop<'_>) -> Result<Self> {
        self.bytes += self.tail(snapshot, stop)?.bytes();
        Ok(self)
    }

    /// The documents without postings, from the memories of the same commit. If the work is stopped, these are the
    /// documents read so far, and the next search continues from there.
    ///
    /// # Errors
    /// Errors other than damage to single texts.
    pub(super) fn tail(&self, snapshot: &Snapshot, stop: Stop<'_>) -> Result<Arc<Tail>> {
        if let Some(tail) = self.tail.get() {
            return Ok(Arc::clone(tail));
        }
        // The tail takes as much memory as its texts. So if several readers come at the same time, one makes it. A
        // reader whose time ends before uses what is known so far.
        let _one = loop {
            if let Some(one) = self.making.try_lock_for(MOMENT) {
                break one;
            }
            if stop.is_over() {
                let known = self.seed.lock().clone();
                return Ok(known.unwrap_or_else(|| Arc::new(Tail::at(self.head.posted))));
            }
        };
        // Another reader may have made the tail while this one waited for the lock.
        if let Some(tail) = self.tail.get() {
            return Ok(Arc::clone(tail));
        }
        let seed = self.seed.lock().clone();
        let mut tail = seed.map_or_else(|| Tail::at(self.head.posted), |seed| Tail::clone(&seed));
        if tail.end() < self.end() {
            let (mut run, mut lengths) = (RunBuilder::default(), Vec::new());
            for doc in tail.end()..self.end() {
                if stop.is_over() {
                    break;
                }
                lengths.push(match self.doc(doc) {
                    Some(meta) => match sound(self.words(snapshot, meta.id))? {
                        Some(words) => run.push(&self.analyzer, doc, &words),
                        // A damaged text keeps no other text from being found.
                        None => {
                            tail.note_unread(doc);
                            0
                        }
                    },
                    None => 0,
                });
            }
            tail.push(run.finish(), &lengths);
        }
        // A tail that is not whole is no answer for others, but the next search need not read its texts again.
        if tail.end() < self.end() {
            let tail = Arc::new(tail);
            *self.seed.lock() = Some(Arc::clone(&tail));
            return Ok(tail);
        }
        Ok(Arc::clone(self.tail.get_or_init(|| Arc::new(tail))))
    }

    /// The text of the document of a memory.
    pub(super) fn words(&self, snapshot: &Snapshot, id: MemoryId) -> Result<String> {
        snapshot.text(self.text.ns, id)?.ok_or_else(|| {
            let key = keys::memory(self.text.ns, id);
            Error::corrupted(Table::Memory.name(), &key, "a document without its memory")
        })
    }

    /// The documents that a live read at `now` sees.
    pub(super) fn seen(&self, now: Time, tail: &Tail) -> Seen {
        let now = now.as_millis();
        // Documents of a lost block have postings.
        let all_posted = self.lost == 0;
        let mut seen = Seen { masks: Vec::with_capacity(self.chunks.len()), docs: 0, terms: 0, all_posted };
        for (number, chunk) in self.chunks.iter().enumerate() {
            let Some(chunk) = chunk else {
                seen.masks.push(0);
                continue;
            };
            let first = (number * DOCS_PER_BLOCK) as u32;
            let all = chunk.all_from <= now && now < chunk.all_until;
            if all && first as usize + DOCS_PER_BLOCK <= self.head.posted as usize {
                seen.docs += u64::from(chunk.used);
                seen.terms += chunk.terms;
                // Documents that are gone have no postings.
                seen.masks.push(u128::MAX);
                continue;
            }
            let mut mask = 0_u128;
            for (doc, meta) in (first..).zip(chunk.docs.docs()) {
                let Some(meta) = meta else { continue };
                if meta.is_seen(now) {
                    mask |= 1 << (doc - first);
                    seen.docs += 1;
                    seen.terms += u64::from(meta.terms.or_else(|| tail.length(doc)).unwrap_or(0));
                } else if doc < self.head.posted {
                    seen.all_posted = false;
                }
            }
            seen.masks.push(mask);
        }
        seen
    }

    /// All documents that stand for a memory, whatever their instants. Their terms are not counted.
    pub(super) fn held(&self) -> Seen {
        let bits = |chunk: &Chunk| {
            let docs = (0..).zip(chunk.docs.docs());
            docs.fold(0, |mask, (at, doc)| mask | (u128::from(doc.is_some()) << at))
        };
        let masks = self.chunks.iter().map(|chunk| chunk.as_deref().map_or(0, bits)).collect();
        let docs = self.chunks.iter().flatten().map(|chunk| u64::from(chunk.used)).sum();
        // Documents that are gone have no postings; those of a lost block have.
        Seen { masks, docs, terms: 0, all_posted: self.lost == 0 }
    }

    /// Calls `visit` for each visible document of a block of postings, with the number of occurrences of the term.
    /// Returns false if the bytes make no sense. From a run of the tail it takes only documents without postings in
    /// the file.
    #[inline]
    pub(super) fn each(
        &self,
        seen: &Seen,
        in_tail: bool,
        postings: PostingsRef<'_>,
        mut visit: impl FnMut(u32, u32),
    ) -> bool {
        let (mut at, mut mask) = (u32::MAX, 0_u128);
        let first = if in_tail { self.head.posted } else { 0 };
        postings.docs(|doc, often| {
            let (block, place) = doc_place(doc);
            if block != at {
                at = block;
                mask = seen.masks.get(block as usize).copied().unwrap_or(0);
            }
            if mask >> place & 1 == 1 && doc >= first {
                visit(doc, often);
            }
        })
    }
}

/// The lengths of documents. A look-up takes fewer steps the nearer the document is to the one before.
pub(super) struct Lengths<'v> {
    view: &'v TextView,
    tail: &'v Tail,
    block: u32,
    /// The lengths for documents of the block with postings in the file.
    lengths: &'v [u32],
}

impl<'v> Lengths<'v> {
    pub(super) fn of(view: &'v TextView, tail: &'v Tail) -> Self {
        Lengths { view, tail, block: u32::MAX, lengths: &[] }
    }

    /// The number of terms in the text of a document.
    #[inline]
    pub(super) fn get(&mut self, doc: u32) -> u32 {
        let (block, at) = doc_place(doc);
        if block != self.block {
            let chunk = self.view.chunks.get(block as usize).and_then(Option::as_ref);
            let posted = self.view.head.posted.saturating_sub(block * DOCS_PER_BLOCK as u32) as usize;
            let lengths = chunk.map(|chunk| chunk.lengths.as_slice()).unwrap_or_default();
            self.lengths = lengths.get(..posted.min(lengths.len())).unwrap_or_default();
            self.block = block;
        }
        self.lengths.get(at).copied().unwrap_or_else(|| self.tail.length(doc).unwrap_or(0))
    }
}

/// The documents of an index that a reader sees.
pub(super) struct Seen {
    /// By block, a bit for each document.
    masks: Vec<u128>,
    /// The number of these documents.
    pub(super) docs: u64,
    /// The number of their terms.
    pub(super) terms: u64,
    /// Whether every document with postings in the file is visible.
    pub(super) all_posted: bool,
}

impl Seen {
    /// Takes a document out.
    pub(super) fn leave_out(&mut self, doc: u32) {
        let (block, at) = doc_place(doc);
        if let Some(mask) = self.masks.get_mut(block as usize) {
            *mask &= !(1 << at);
        }
    }

    /// Whether a document is visible.
    #[inline]
    pub(super) fn holds(&self, doc: u32) -> bool {
        let (block, at) = doc_place(doc);
        self.masks.get(block as usize).is_some_and(|mask| mask >> at & 1 == 1)
    }
}

/// The number of documents that stand for a memory.
fn used_of(chunks: &[Option<Arc<Chunk>>]) -> u32 {
    chunks.iter().flatten().map(|chunk| chunk.used).sum()
}

fn disagree(text: TextId, why: String) -> Error {
    Error::corrupted(Table::TextDoc.name(), &keys::ns_part(text.ns, text.part), why)
}
