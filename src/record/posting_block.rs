//! Blocks of postings: in which documents a term occurs, and at which positions.
//!
//! ```text
//! header 4 | count varint | bytes of documents varint | documents | positions | crc u32
//! document: (number - the one before) × 2 + (1 where the term occurs once) varint, else also how often varint
//! positions of a document: the first varint, then each as the difference to the one before varint
//! ```
//! The first number stands in the key, and as a difference of 0. Numbers ascend, positions of a document as well.

use crate::error::Result;
use crate::record::frame::{At, begin, no_flags, open, seal, tag};
use crate::record::varint::{put_varint, take_varint};

/// Documents of a block once blocks are merged.
pub(crate) const POSTINGS_PER_BLOCK: u32 = 512;
/// Numbers of documents: twice one must fit.
pub(crate) const DOC_MAX: u32 = u32::MAX >> 1;

/// Documents of one term, ascending, as bytes that are ready to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Postings {
    first: u32,
    last: u32,
    count: u32,
    docs: Vec<u8>,
    positions: Vec<u8>,
}

impl Postings {
    /// Adds a document behind the last one, with the positions of the term, ascending and at least one.
    ///
    /// # Panics
    /// For a document that does not lie behind the last one, which is a bug of the index.
    pub(crate) fn push(&mut self, doc: u32, positions: impl ExactSizeIterator<Item = u32>) {
        self.push_doc(doc, positions.len() as u32);
        let mut before = 0;
        for position in positions {
            // Positions of a document ascend, so the difference does not underflow.
            put_varint(&mut self.positions, position - before);
            before = position;
        }
    }

    fn push_doc(&mut self, doc: u32, often: u32) {
        assert!(doc <= DOC_MAX && often > 0, "document {doc} with {often} positions");
        if self.count == 0 {
            (self.first, self.last) = (doc, doc);
        } else {
            assert!(doc > self.last, "document {doc} behind {}", self.last);
        }
        put_varint(&mut self.docs, ((doc - self.last) << 1) | u32::from(often == 1));
        if often != 1 {
            put_varint(&mut self.docs, often);
        }
        self.last = doc;
        self.count += 1;
    }

    /// Adds all documents of others, which lie behind the last one.
    pub(crate) fn extend(&mut self, other: PostingsRef<'_>, last: u32) {
        let mut docs = other.docs;
        let Some(first) = take_varint(&mut docs) else { return };
        // Only the first difference is another one; the rest are the same bytes.
        let often = if first & 1 == 1 { Some(1) } else { take_varint(&mut docs) };
        self.push_doc(other.first, often.unwrap_or(1));
        self.docs.extend_from_slice(docs);
        self.positions.extend_from_slice(other.positions);
        // `push_doc` has counted the first document. An open block has at least one, so nothing underflows.
        self.count += other.count - 1;
        self.last = last;
    }

    /// Number of the first document.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// Number of the last document.
    pub(crate) fn last(&self) -> u32 {
        self.last
    }

    /// How many documents.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Bytes in memory beside the struct itself.
    pub(crate) fn bytes(&self) -> usize {
        self.docs.capacity() + self.positions.capacity()
    }

    /// As a reader sees them.
    pub(crate) fn as_ref(&self) -> PostingsRef<'_> {
        PostingsRef { first: self.first, count: self.count, docs: &self.docs, positions: &self.positions }
    }

    /// Writes the block into `out`, replacing what is there.
    pub(crate) fn encode(&self, key: &[u8], out: &mut Vec<u8>) {
        begin(tag::POSTING_BLOCK, out);
        put_varint(out, self.count);
        // A text is at most 1 MiB, a block at most the texts of one drain: far below 4 GiB.
        put_varint(out, self.docs.len() as u32);
        out.extend_from_slice(&self.docs);
        out.extend_from_slice(&self.positions);
        seal(0, key, out);
    }
}

/// A block that loses documents. They leave it together: to make it anew for each of them would cost each as much as there are
/// documents in it.
pub(crate) struct Thinned {
    block: Postings,
    /// The documents that stay so far, ascending.
    left: Vec<u32>,
}

impl Thinned {
    /// A block that has lost none yet.
    pub(crate) fn of(block: Postings) -> Self {
        let mut left = Vec::with_capacity(block.count as usize);
        block.as_ref().docs(|doc, _| left.push(doc));
        Thinned { block, left }
    }

    /// Lets a document go; false if the block does not hold it, or no longer does.
    pub(crate) fn lose(&mut self, doc: u32) -> bool {
        let found = self.left.binary_search(&doc);
        found.map(|at| self.left.remove(at)).is_ok()
    }

    /// What is left.
    pub(crate) fn rest(&self) -> Postings {
        if self.left.is_empty() {
            return Postings::default();
        }
        // What was pushed makes sense.
        self.block.as_ref().to_owned(|doc| self.left.binary_search(&doc).is_ok()).unwrap_or_default()
    }

    /// Bytes in memory beside the struct itself.
    pub(crate) fn bytes(&self) -> usize {
        self.block.bytes() + self.left.capacity() * size_of::<u32>()
    }
}

/// A block read where it lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostingsRef<'b> {
    first: u32,
    count: u32,
    docs: &'b [u8],
    positions: &'b [u8],
}

impl<'b> PostingsRef<'b> {
    /// Checks frame and checksum of a block whose key says that it begins with document `first`. What stands inside is
    /// checked by whoever walks through it.
    ///
    /// # Errors
    /// `Corrupted` for bytes that [`Postings::encode`] did not write.
    pub(crate) fn open(at: At<'_>, first: u32, bytes: &'b [u8]) -> Result<Self> {
        let (flags, mut body) = open(tag::POSTING_BLOCK, at, bytes)?;
        no_flags(at, flags)?;
        let counts = take_varint(&mut body).zip(take_varint(&mut body));
        let parts = counts.and_then(|(count, len)| Some((count, body.split_at_checked(len as usize)?)));
        // A document takes at least a byte here and one there.
        match parts {
            Some((count, (docs, positions)))
                if count > 0 && docs.len() >= count as usize && positions.len() >= count as usize =>
            {
                Ok(PostingsRef { first, count, docs, positions })
            }
            _ => Err(at.corrupted("a block of postings that does not hold what it says")),
        }
    }

    /// How many documents it says that it holds.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Calls `visit` for each document with how often the term occurs there; false when the bytes make no sense.
    #[inline]
    pub(crate) fn docs(&self, mut visit: impl FnMut(u32, u32)) -> bool {
        let mut bytes = self.docs;
        let mut doc = self.first;
        for number in 0..self.count {
            let Some(value) = take_varint(&mut bytes) else { return false };
            let often = if value & 1 == 1 { Some(1) } else { take_varint(&mut bytes) };
            // Both are below 2 to the 31st.
            let next = doc.wrapping_add(value >> 1);
            let Some(often) = often.filter(|often| *often > 0) else { return false };
            if (value >> 1 == 0) != (number == 0) || next > DOC_MAX {
                return false;
            }
            doc = next;
            visit(doc, often);
        }
        bytes.is_empty()
    }

    /// Calls `visit` for each document with the positions of the term; false when the bytes make no sense.
    pub(crate) fn positions(&self, mut visit: impl FnMut(u32, &[u32])) -> bool {
        let (mut bytes, mut sound) = (self.positions, true);
        let mut positions = Vec::new();
        let walked = self.docs(|doc, often| {
            positions.clear();
            let mut at = 0_u32;
            for number in 0..often {
                let next = take_varint(&mut bytes)
                    .and_then(|step| at.checked_add(step).filter(|_| number == 0 || step > 0));
                let Some(next) = next.filter(|_| sound) else {
                    sound = false;
                    return;
                };
                at = next;
                positions.push(at);
            }
            visit(doc, &positions);
        });
        walked && sound && bytes.is_empty()
    }

    /// The same documents, to be changed; none when the bytes make no sense.
    pub(crate) fn to_owned(self, keep: impl Fn(u32) -> bool) -> Option<Postings> {
        let mut all = Postings::default();
        let sound = self.positions(|doc, positions| {
            if keep(doc) {
                all.push(doc, positions.iter().copied());
            }
        });
        sound.then_some(all)
    }
}
