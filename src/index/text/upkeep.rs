//! The upkeep of a full-text index: writing postings for its tail, and joining blocks of one term.

use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::index::published::Published;
use crate::index::text::run::RunBuilder;
use crate::model::MemoryId;
use crate::record::{POSTINGS_PER_BLOCK, Postings};
use crate::store::control::TextHead;
use crate::store::{Read, TextId, TextRows, Walk, WriteTx, bad_postings, doc_place, keys};

/// Blocks are joined when one part in this many of all documents has been posted since the last joining.
const JOIN_SHARE: u32 = 8;
/// The largest number of documents that are posted at once.
pub(crate) const POST_MAX: usize = 4_096;

/// About how many bytes of texts are posted at once.
pub(crate) const POST_BYTES: usize = 2 << 20;

/// Postings of the first documents of a tail, worked out on a published state, and the state that they
/// assume.
#[derive(Debug)]
pub(crate) struct TextEdit {
    pub(crate) text: TextId,
    /// The epoch of that state. Documents of another file have the same numbers.
    epoch: u64,
    first: u32,
    /// The number behind the last document.
    end: u32,
    docs: Vec<(u32, MemoryId, u32)>,
    postings: Vec<(Box<str>, Postings)>,
    /// The bytes of the texts.
    bytes: u64,
}

/// The number of documents that any tail may have.
const TAIL_MIN: u32 = 4_096;
/// The number of documents of which the tail is posted at the end of an import.
const TAIL_WORTH_POSTING: u32 = 256;
/// One part in this many of an index may lie in its tail.
const TAIL_SHARE: u32 = 16;

/// The bytes of texts that a tail may have. A search divides them into terms and keeps the terms in memory.
const TAIL_BYTES: u64 = 2 << 20;

/// Whether a tail is so long that writers must help.
pub(crate) fn is_pressed(head: &TextHead) -> bool {
    waiting(head) > TAIL_MIN.max(head.posted / TAIL_SHARE) || head.waiting_bytes > TAIL_BYTES
}

/// Whether a tail is so long that the end of an import is the time to post it. A shorter one costs a search less than a
/// commit costs.
pub(crate) fn is_worth_posting(head: &TextHead) -> bool {
    waiting(head) >= TAIL_WORTH_POSTING
}

/// The number of documents in a tail.
pub(crate) fn waiting(head: &TextHead) -> u32 {
    head.len.saturating_sub(head.posted)
}

/// Whether joining the blocks of one term is worth the work.
pub(crate) fn is_loose(head: &TextHead) -> bool {
    head.merging.is_some() || (head.unmerged > 0 && head.unmerged.saturating_mul(JOIN_SHARE) >= head.posted)
}

/// The postings of at most `most` documents of a tail; none for an empty tail.
///
/// A damaged text has no postings.
///
/// # Errors
/// `Corrupted` for damaged blocks of documents.
pub(crate) fn post(published: &Published, text: TextId, most: usize) -> Result<Option<TextEdit>> {
    let Some(view) = published.text_view(text)? else { return Ok(None) };
    let first = view.head().posted;
    let mut end = view.head().len.min(first.saturating_add(most.clamp(1, POST_MAX) as u32));
    if first >= end {
        return Ok(None);
    }
    let (mut run, mut docs, mut bytes) = (RunBuilder::default(), Vec::new(), 0);
    for doc in first..end {
        // A document without a memory needs no postings. It lies in the range and so counts as posted.
        let Some(id) = view.id(doc) else { continue };
        let words = sound(view.words(published.snapshot(), id))?.unwrap_or_default();
        docs.push((doc, id, run.push(view.analyzer(), doc, &words)));
        bytes += words.len();
        if bytes >= POST_BYTES {
            end = doc + 1;
            break;
        }
    }
    let (postings, bytes, epoch) = (run.finish().into_terms(), bytes as u64, published.snapshot().epoch());
    Ok(Some(TextEdit { text, epoch, first, end, docs, postings, bytes }))
}

impl TextEdit {
    /// The number of documents of the edit.
    pub(crate) fn rows(&self) -> u64 {
        u64::from(self.end - self.first)
    }

    /// The bytes of their texts.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// Writes the postings, if the documents are unchanged. Otherwise returns false and writes nothing.
    ///
    /// # Errors
    /// `Corrupted`; the transaction must then be given up.
    pub(crate) fn write(&self, tx: &mut WriteTx<'_>) -> Result<bool> {
        let Some(mut head) = tx.text_head(self.text)? else { return Ok(false) };
        if tx.epoch() != self.epoch || head.posted != self.first || head.len < self.end || !self.holds(tx)? {
            return Ok(false);
        }
        // The image of the index is made again from written blocks, even if no document is left.
        tx.doc_block_mut(self.text, doc_place(self.first).0)?;
        for (doc, _, terms) in &self.docs {
            let (block, at) = doc_place(*doc);
            let docs = tx.doc_block_mut(self.text, block)?;
            let meta = docs.get(at).copied();
            docs.put(at, meta.map(|meta| crate::record::DocMeta { terms: Some(*terms), ..meta }));
        }
        for (term, postings) in &self.postings {
            put_split(tx, self.text, term, postings)?;
        }
        head.posted = self.end;
        // Nothing waits behind an empty tail, so an error in the sum does not outlive the tail.
        head.waiting_bytes =
            if self.end == head.len { 0 } else { head.waiting_bytes.saturating_sub(self.bytes) };
        // The first postings of an index have each term in as few blocks as can be, so there is nothing to join.
        head.unmerged = if self.first == 0 { 0 } else { head.unmerged.saturating_add(self.end - self.first) };
        tx.put_text_head(self.text, head);
        Ok(true)
    }

    /// Whether every document still stands for the same memory.
    fn holds(&self, tx: &WriteTx<'_>) -> Result<bool> {
        let mut docs = self.docs.iter().peekable();
        for block in doc_place(self.first).0..=doc_place(self.end - 1).0 {
            let found = tx.doc_block(self.text, block)?.unwrap_or_default();
            while let Some((doc, id, _)) = docs.next_if(|(doc, ..)| doc_place(*doc).0 == block) {
                if found.get(doc_place(*doc).1).is_none_or(|meta| meta.id != *id) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Writes postings in blocks of at most [`POSTINGS_PER_BLOCK`] documents.
fn put_split(tx: &mut WriteTx<'_>, text: TextId, term: &str, postings: &Postings) -> Result<()> {
    if postings.count() <= POSTINGS_PER_BLOCK {
        return tx.put_postings(text, term, postings);
    }
    let (mut parts, mut part) = (Vec::new(), Postings::default());
    let sound = postings.as_ref().positions(|doc, positions| {
        if part.count() == POSTINGS_PER_BLOCK {
            parts.push(std::mem::take(&mut part));
        }
        part.push(doc, positions.iter().copied());
    });
    if !sound {
        return Err(bad_postings(text, term));
    }
    parts.push(part);
    parts.iter().try_for_each(|part| tx.put_postings(text, term, part))
}

/// Joins blocks of one term, of at most `most` blocks that it reads. Returns the number of blocks that were joined
/// into others. At the end of the index, the head says so.
///
/// # Errors
/// `Corrupted`; the transaction must then be given up.
pub(crate) fn join(tx: &mut WriteTx<'_>, text: TextId, most: usize) -> Result<u64> {
    let Some(mut head) = tx.text_head(text)? else { return Ok(0) };
    let mut walk = Walk::prefix(&keys::ns_part(text.ns, text.part));
    if let Some(term) = &head.merging {
        walk = walk.starting_at(&keys::posting_term(text.ns, text.part, term));
    }
    // The terms with their blocks. The blocks of a term are never divided.
    let mut groups: Vec<(String, Vec<Postings>)> = Vec::new();
    let (mut read, mut next) = (0, None);
    tx.postings(&walk, &mut |term, postings| {
        // One that is damaged stays as it is, until the index is rebuilt.
        let Some(postings) = postings else { return Ok(ControlFlow::Continue(())) };
        let is_new = groups.last().is_none_or(|(last, _)| last != term);
        if is_new {
            if read >= most {
                next = Some(term.to_owned());
                return Ok(ControlFlow::Break(()));
            }
            groups.push((term.to_owned(), Vec::new()));
        }
        read += 1;
        let owned = postings.to_owned(|_| true).ok_or_else(|| bad_postings(text, term))?;
        if let Some((_, blocks)) = groups.last_mut() {
            blocks.push(owned);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let mut joined = 0;
    for (term, blocks) in groups {
        joined += join_term(tx, text, &term, blocks)?;
    }
    if next.is_none() {
        head.unmerged = 0;
    }
    head.merging = next;
    tx.put_text_head(text, head);
    Ok(joined)
}

fn join_term(tx: &mut WriteTx<'_>, text: TextId, term: &str, blocks: Vec<Postings>) -> Result<u64> {
    let mut joined = 0;
    let mut whole: Option<(Postings, bool)> = None;
    for block in blocks {
        if whole.as_ref().is_some_and(|(before, _)| before.last() >= block.first()) {
            return Err(bad_postings(text, term));
        }
        match whole.take() {
            Some((mut before, _)) if before.count() + block.count() <= POSTINGS_PER_BLOCK => {
                tx.delete_postings(text, term, block.first())?;
                before.extend(block.as_ref(), block.last());
                joined += 1;
                whole = Some((before, true));
            }
            other => {
                if let Some((before, true)) = other {
                    tx.put_postings(text, term, &before)?;
                }
                whole = Some((block, false));
            }
        }
    }
    if let Some((last, true)) = whole {
        tx.put_postings(text, term, &last)?;
    }
    Ok(joined)
}
