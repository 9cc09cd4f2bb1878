//! Full-text indexes: typed reads and writes of their heads, documents and postings.
//!
//! Documents are numbered by partition, ascending, and a number is never used again. Those below the head's `posted`
//! have their postings in blocks by term; the text of a later one is read from its memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};

use crate::error::{Error, Result, sound};
use crate::limits::ANALYZER;
use crate::model::{MemoryId, Time, Times, Vitals};
use crate::record::{self, At, DOC_MAX, DOCS_PER_BLOCK, DocBlock, DocMeta, Postings, PostingsRef, Thinned};
use crate::store::control::TextHead;
use crate::store::keys;
use crate::store::part::{NsId, TextId};
use crate::store::raw::Walk;
use crate::store::rows::Rows;
use crate::store::tables::{Table, bad_key, meta_of};
use crate::store::tx::{Read, WriteTx};

/// Block and position of a document.
pub(crate) fn doc_place(doc: u32) -> (u32, usize) {
    (doc / DOCS_PER_BLOCK as u32, doc as usize % DOCS_PER_BLOCK)
}

/// What a walk over postings calls, with the term and a block of it; none for a block that is damaged.
pub(crate) type VisitPostings<'f> =
    &'f mut dyn FnMut(&str, Option<PostingsRef<'_>>) -> Result<ControlFlow<()>>;

/// Typed reads of full-text indexes.
pub(crate) trait TextRows: Rows {
    /// The full-text indexes of a namespace, or of all, with their heads, as [`TextRows::readable_text_head`] gives them.
    fn text_heads(&self, ns: Option<NsId>) -> Result<Vec<(TextId, TextHead)>> {
        let mut all = Vec::new();
        let walk = ns.map_or_else(Walk::all, |ns| Walk::prefix(&keys::ns(ns)));
        self.walk(Table::TextHead, &walk, &mut |key, bytes| {
            let keys::TextHead { ns, part } = keys::TextHead::read(Table::TextHead, key)?;
            let text = TextId { ns, part };
            let head = sound(meta_of(Table::TextHead, key, bytes))?;
            all.push((text, head.map_or_else(|| self.counted_docs(text), Ok)?));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// The analyzer of the full-text indexes of a namespace; none where it has no index.
    fn analyzer_of_namespace(&self, ns: NsId) -> Result<Option<String>> {
        let mut found = None;
        self.walk(Table::TextHead, &Walk::prefix(&keys::ns(ns)), &mut |key, bytes| {
            found = Some(meta_of::<TextHead>(Table::TextHead, key, bytes)?.analyzer);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// The head of an index for readers: one that is damaged is made up from the blocks of documents.
    fn readable_text_head(&self, text: TextId) -> Result<Option<TextHead>> {
        match sound(self.text_head(text))? {
            Some(head) => Ok(head),
            None => self.counted_docs(text).map(Some),
        }
    }

    /// What the head of an index must say, as far as documents tell. Which of them have postings is not known: all are read
    /// as if none had, by the analyzer of other indexes.
    fn counted_docs(&self, text: TextId) -> Result<TextHead> {
        let mut head = TextHead { analyzer: ANALYZER.to_owned(), ..TextHead::default() };
        self.walk(Table::TextHead, &Walk::all(), &mut |key, bytes| {
            let Some(other) = sound(meta_of::<TextHead>(Table::TextHead, key, bytes))? else {
                return Ok(ControlFlow::Continue(()));
            };
            head.analyzer = other.analyzer;
            // All of a namespace are read alike.
            let same = key.starts_with(&keys::ns(text.ns));
            Ok(if same { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        self.doc_blocks(text, &mut |block, docs| {
            let docs = docs.unwrap_or_default();
            let end = block as usize * DOCS_PER_BLOCK + docs.len();
            head.len = u32::try_from(end).unwrap_or(DOC_MAX);
            head.used += docs.docs().iter().flatten().count() as u32;
            Ok(())
        })?;
        Ok(head)
    }

    /// The full-text indexes of a namespace, also those whose heads are damaged.
    fn text_ids(&self, ns: NsId) -> Result<BTreeSet<TextId>> {
        let mut all = BTreeSet::new();
        self.walk(Table::TextHead, &Walk::prefix(&keys::ns(ns)), &mut |key, _| {
            all.extend(keys::TextHead::parse(key).map(|head| TextId { ns, part: head.part }));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// The blocks of documents of an index in order, with their numbers; none for one that is damaged.
    fn doc_blocks(
        &self,
        text: TextId,
        visit: &mut dyn FnMut(u32, Option<DocBlock>) -> Result<()>,
    ) -> Result<()> {
        self.walk(Table::TextDoc, &Walk::prefix(&keys::ns_part(text.ns, text.part)), &mut |key, bytes| {
            let keys::TextDoc { block, .. } = keys::TextDoc::read(Table::TextDoc, key)?;
            visit(block, sound(DocBlock::decode(At::new(Table::TextDoc.name(), key), bytes))?)?;
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The blocks of a walk over postings with their terms; none for one that is damaged.
    fn postings(&self, walk: &Walk, visit: VisitPostings<'_>) -> Result<()> {
        self.walk(Table::TextPosting, walk, &mut |key, bytes| {
            let (_, term, first) = posting_key(key).ok_or_else(|| bad_key(Table::TextPosting, key))?;
            visit(term, sound(PostingsRef::open(At::new(Table::TextPosting.name(), key), first, bytes))?)
        })
    }
}

impl<R: Rows> TextRows for R {}

/// Index, term and first document that the key of a block of postings names.
pub(crate) fn posting_key(key: &[u8]) -> Option<(TextId, &str, u32)> {
    let keys::TextPosting { ns, part, term, first } = keys::TextPosting::parse(key)?;
    Some((TextId { ns, part }, term.0, first))
}

/// Damage that a walk through a block has met.
pub(crate) fn bad_postings(text: TextId, term: &str) -> Error {
    let key = keys::posting_term(text.ns, text.part, term);
    Error::corrupted(Table::TextPosting.name(), &key, "a posting makes no sense")
}

impl WriteTx<'_> {
    /// Gives a memory the next document of its index. One that is new has the terms of `analyzer`, unless another
    /// partition of the namespace has others: all of a namespace are read alike.
    pub(crate) fn claim_doc(
        &mut self,
        text: TextId,
        id: MemoryId,
        vitals: &Vitals,
        thread: Option<(String, Time)>,
        analyzer: &str,
    ) -> Result<u32> {
        let mut head = match self.text_head(text)? {
            Some(head) => head,
            None => {
                let analyzer = self.analyzer_of_namespace(text.ns)?.unwrap_or_else(|| analyzer.to_owned());
                TextHead { analyzer, ..TextHead::default() }
            }
        };
        let doc = head.len;
        if doc > DOC_MAX {
            return Err(Error::Conflict {
                what: "full-text index".to_owned(),
                why: format!("a partition holds at most {DOC_MAX} texts between two runs of `reindex`"),
            });
        }
        head.len += 1;
        head.used = head.used.saturating_add(1);
        self.put_text_head(text, head);
        let (block, at) = doc_place(doc);
        // A damaged head may name a number in use. Giving it out again would let one document stand for two
        // memories.
        if self.doc_block_mut(text, block)?.get(at).is_some() {
            let why = format!("document {doc} is to be given out and is in use");
            return Err(Error::corrupted(Table::TextHead.name(), &keys::ns_part(text.ns, text.part), why));
        }
        let (from, until) = instants(&vitals.times);
        let slot = vitals.place.slot;
        let meta = DocMeta { id, from, until, terms: None, before: None, after: None, slot };
        self.doc_block_mut(text, block)?.put(at, Some(meta));
        if let Some((thread, at)) = &thread {
            self.join_thread(text, doc, thread, *at)?;
        }
        Ok(doc)
    }

    /// Counts the bytes of a text whose document lies in the tail.
    pub(crate) fn add_waiting(&mut self, text: TextId, bytes: usize) -> Result<()> {
        let mut head = self.text_head(text)?.unwrap_or_default();
        head.waiting_bytes = head.waiting_bytes.saturating_add(bytes as u64);
        self.put_text_head(text, head);
        Ok(())
    }

    /// Changes a document in place.
    fn change_doc(&mut self, text: TextId, doc: u32, change: impl FnOnce(&mut DocMeta)) -> Result<()> {
        let (block, at) = doc_place(doc);
        let docs = self.doc_block_mut(text, block)?;
        let mut meta = *docs.get(at).ok_or_else(|| lost(text, doc))?;
        change(&mut meta);
        docs.put(at, Some(meta));
        Ok(())
    }

    /// Puts a document into its place in a thread.
    pub(crate) fn join_thread(&mut self, text: TextId, doc: u32, thread: &str, at: Time) -> Result<()> {
        let key = keys::thread(text.ns, text.part, thread, at, doc);
        let all = Walk::prefix(&keys::thread_prefix(text.ns, text.part, thread));
        let beside = |tx: &Self, walk: Walk| {
            let mut found = None;
            tx.walk(Table::Thread, &walk, &mut |key, _| {
                found = key.last_chunk().map(|doc| u32::from_be_bytes(*doc));
                Ok(ControlFlow::Break(()))
            })?;
            Ok::<_, Error>(found)
        };
        let before = beside(self, all.clone().before(&key).reversed())?;
        let after = beside(self, all.after(&key))?;
        self.put(Table::Thread, &key, &[])?;
        self.change_doc(text, doc, |meta| (meta.before, meta.after) = (before, after))?;
        if let Some(before) = before {
            self.change_doc(text, before, |meta| meta.after = Some(doc))?;
        }
        if let Some(after) = after {
            self.change_doc(text, after, |meta| meta.before = Some(doc))?;
        }
        Ok(())
    }

    /// Takes a document out of its thread.
    pub(crate) fn leave_thread(&mut self, text: TextId, doc: u32, thread: &str, at: Time) -> Result<()> {
        let (block, place) = doc_place(doc);
        // The document knows its neighbours, so nobody walks the thread to find them.
        let meta = self.doc_block(text, block)?.and_then(|docs| docs.get(place).copied());
        let DocMeta { before, after, .. } = meta.ok_or_else(|| lost(text, doc))?;
        self.delete(Table::Thread, &keys::thread(text.ns, text.part, thread, at, doc))?;
        self.change_doc(text, doc, |meta| (meta.before, meta.after) = (None, None))?;
        if let Some(before) = before {
            self.change_doc(text, before, |meta| meta.after = after)?;
        }
        if let Some(after) = after {
            self.change_doc(text, after, |meta| meta.before = before)?;
        }
        Ok(())
    }

    /// Writes the instants and the slot of a memory into its document.
    pub(crate) fn refresh_doc(&mut self, text: TextId, doc: u32, vitals: &Vitals) -> Result<()> {
        self.change_doc(text, doc, |meta| {
            (meta.from, meta.until) = instants(&vitals.times);
            meta.slot = vitals.place.slot;
        })
    }

    /// Takes the document from a memory that is gone; says whether it has postings, which its caller takes away.
    pub(crate) fn release_doc(&mut self, text: TextId, doc: u32, id: MemoryId) -> Result<bool> {
        let (block, at) = doc_place(doc);
        let docs = self.doc_block_mut(text, block)?;
        // Damaged vitals may name the document of another memory, which must stay.
        if docs.get(at).is_none_or(|meta| meta.id != id) {
            return Err(lost(text, doc));
        }
        docs.put(at, None);
        let mut head = self.text_head(text)?.unwrap_or_default();
        head.used = head.used.saturating_sub(1);
        let posted = doc < head.posted;
        self.put_text_head(text, head);
        Ok(posted)
    }

    /// Takes a document out of the postings of a term. Blocks are written when the transaction ends, each once.
    ///
    /// # Errors
    /// `Corrupted` where it is not in them, or they are damaged.
    pub(crate) fn remove_posting(&mut self, text: TextId, term: &str, doc: u32) -> Result<()> {
        // Documents that go together mostly share blocks, and a block that is staged need not be looked for in the file.
        if self.lose_staged(text, term, doc) {
            return Ok(());
        }
        // Only the last block that begins at or before the document can hold it.
        let walk = Walk::prefix(&keys::posting_term(text.ns, text.part, term))
            .before(&keys::posting(text.ns, text.part, term, doc + 1))
            .reversed();
        let mut found = None;
        self.walk(Table::TextPosting, &walk, &mut |key, bytes| {
            let (_, _, first) = posting_key(key).ok_or_else(|| bad_key(Table::TextPosting, key))?;
            // One that is staged has been asked.
            if !self.postings.contains_key(key) {
                let read = PostingsRef::open(At::new(Table::TextPosting.name(), key), first, bytes)?;
                let block = read.to_owned(|_| true).ok_or_else(|| bad_postings(text, term))?;
                found = Some((key.to_vec(), Thinned::of(block)));
            }
            Ok(ControlFlow::Break(()))
        })?;
        let Some((key, mut thinned)) = found else { return Err(bad_postings(text, term)) };
        if !thinned.lose(doc) {
            return Err(bad_postings(text, term));
        }
        self.make_room(key.len() + thinned.bytes())?;
        self.postings.insert(key, thinned);
        Ok(())
    }

    /// Takes a document out of a staged block of postings; false where none is known to hold it.
    fn lose_staged(&mut self, text: TextId, term: &str, doc: u32) -> bool {
        let key = keys::posting(text.ns, text.part, term, doc);
        let up_to = (Bound::Unbounded, Bound::Included(&*key));
        let last = self.postings.range_mut::<[u8], _>(up_to).next_back();
        let same = |of: &[u8]| of.starts_with(&keys::posting_term(text.ns, text.part, term));
        last.is_some_and(|(of, thinned)| same(of) && thinned.lose(doc))
    }

    /// Puts a block of postings, which must not be staged.
    pub(crate) fn put_postings(&mut self, text: TextId, term: &str, postings: &Postings) -> Result<()> {
        let (key, mut bytes) = (keys::posting(text.ns, text.part, term, postings.first()), Vec::new());
        postings.encode(&key, &mut bytes);
        self.put(Table::TextPosting, &key, &bytes)
    }

    /// Takes a block of postings away.
    pub(crate) fn delete_postings(&mut self, text: TextId, term: &str, first: u32) -> Result<()> {
        self.delete(Table::TextPosting, &keys::posting(text.ns, text.part, term, first))
    }

    /// Takes every row of the indexes of a namespace away, or of one of them, unread.
    pub(crate) fn delete_text_rows(&mut self, ns: NsId, only: Option<TextId>) -> Result<()> {
        let stays = |text: &TextId| text.ns != ns || only.is_some_and(|only| only != *text);
        // Staged blocks go first, or the end of the transaction would write them again.
        self.docs.retain(|(text, _), _| stays(text));
        self.text_heads.retain(|text, _| stays(text));
        let prefix = only.map_or(keys::ns(ns), |only| keys::ns_part(only.ns, only.part));
        self.postings.retain(|key, _| !key.starts_with(&prefix));
        for table in [Table::TextHead, Table::TextDoc, Table::Thread, Table::TextPosting] {
            self.delete_walk(table, &Walk::prefix(&prefix), usize::MAX)?;
        }
        Ok(())
    }

    /// Writes the staged blocks of full-text indexes and gives those of documents to whoever keeps images of them.
    pub(super) fn flush_texts(&mut self) -> Result<BTreeMap<(TextId, u32), DocBlock>> {
        let mut bytes = Vec::new();
        for (key, thinned) in std::mem::take(&mut self.postings) {
            let postings = thinned.rest();
            let named = posting_key(&key).map(|(text, term, first)| (text, term.to_owned(), first));
            let (text, term, first) = named.ok_or_else(|| bad_key(Table::TextPosting, &key))?;
            // The key names the first document, so a block that lost that document moves to another key.
            if postings.count() == 0 || postings.first() != first {
                self.delete(Table::TextPosting, &key)?;
            }
            if postings.count() > 0 {
                self.put_postings(text, &term, &postings)?;
            }
        }
        let docs = std::mem::take(&mut self.docs);
        for ((text, block), value) in &docs {
            let key = keys::text(text.ns, text.part, *block);
            // A number is not used again: a block of which nothing is left can go.
            if value.is_vacant() {
                self.delete(Table::TextDoc, &key)?;
                continue;
            }
            bytes.clear();
            value.encode(&key, &mut bytes);
            self.put(Table::TextDoc, &key, &bytes)?;
        }
        Ok(docs)
    }

    /// Writes the heads, behind all postings: a head names no term that is in no text any more.
    pub(super) fn flush_heads(&mut self) -> Result<()> {
        let mut bytes = Vec::new();
        for (text, mut head) in std::mem::take(&mut self.text_heads) {
            if let Some(term) = head.merging.take() {
                head.merging = self.term_from(text, &term)?;
                head.unmerged = if head.merging.is_some() { head.unmerged } else { 0 };
            }
            let key = keys::ns_part(text.ns, text.part);
            record::encode_meta(Table::TextHead.tag(), &key, &head, &mut bytes);
            self.put(Table::TextHead, &key, &bytes)?;
        }
        Ok(())
    }

    /// The first term with postings that is not before `term`; none where no text has one.
    fn term_from(&self, text: TextId, term: &str) -> Result<Option<String>> {
        let all = Walk::prefix(&keys::ns_part(text.ns, text.part));
        let mut found = None;
        self.walk(
            Table::TextPosting,
            &all.starting_at(&keys::posting_term(text.ns, text.part, term)),
            &mut |key, _| {
                found = posting_key(key).map(|(_, term, _)| term.to_owned());
                Ok(ControlFlow::Break(()))
            },
        )?;
        Ok(found)
    }

    /// A block of documents to change; an empty one where there is none.
    pub(crate) fn doc_block_mut(&mut self, text: TextId, block: u32) -> Result<&mut DocBlock> {
        if !self.docs.contains_key(&(text, block)) {
            let found = self.doc_block(text, block)?.unwrap_or_default();
            self.make_room(size_of::<DocBlock>() + DOCS_PER_BLOCK * size_of::<Option<DocMeta>>())?;
            self.docs.insert((text, block), found);
        }
        Ok(self.docs.get_mut(&(text, block)).unwrap_or_else(|| unreachable!("it is staged by now")))
    }

    /// Keeps a head for the end of the transaction.
    pub(crate) fn put_text_head(&mut self, text: TextId, head: TextHead) {
        self.text_heads.insert(text, head);
    }
}

/// When a live read sees a memory, in milliseconds.
fn instants(times: &Times) -> (i64, i64) {
    (times.from().as_millis(), times.until().as_millis())
}

/// A memory says that it has a document, and the document does not know it.
fn lost(text: TextId, doc: u32) -> Error {
    let key = keys::ns_part(text.ns, text.part);
    Error::corrupted(Table::TextDoc.name(), &key, format!("document {doc} is not that of its memory"))
}
