//! Blocks of documents of a full-text index: which memory a document number stands for, and what decides whether a
//! reader sees it, so that a query reads no row.
//!
//! ```text
//! header 4 | count u8 | count × document | crc u32
//! document: 0                                                                  of a number that stands for nothing
//!         | shape u8 | id 16 | from i64 | until i64 | terms varint | before varint | after varint | slot varint
//! shape: 1 | 2 where `from` is written | 4 where `until` is | 8 where the document has ended | 16 where terms are counted
//!          | 32 where there is one before | 64 where there is one after | 128 where there is a slot
//! ```

use crate::error::Result;
use crate::limits::{TIME_MAX_MS, TIME_MIN_MS};
use crate::model::MemoryId;
use crate::record::frame::{At, begin, no_flags, open, seal, tag};
use crate::record::varint::{put_varint, take_varint};

/// Documents of one block.
pub(crate) const DOCS_PER_BLOCK: usize = 128;

/// Bits of the shape of a document.
mod shape {
    pub(super) const IS: u8 = 1;
    pub(super) const FROM: u8 = 1 << 1;
    pub(super) const UNTIL: u8 = 1 << 2;
    pub(super) const ENDED: u8 = 1 << 3;
    pub(super) const COUNTED: u8 = 1 << 4;
    pub(super) const BEFORE: u8 = 1 << 5;
    pub(super) const AFTER: u8 = 1 << 6;
    pub(super) const SLOT: u8 = 1 << 7;
}

/// What an index knows of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DocMeta {
    /// The memory.
    pub(crate) id: MemoryId,
    /// First instant of a live read that sees it, milliseconds.
    pub(crate) from: i64,
    /// First instant of a live read that no longer sees it, milliseconds.
    pub(crate) until: i64,
    /// How many terms its text has, repeated ones as often as they occur; none until its postings are written.
    pub(crate) terms: Option<u32>,
    /// The document before it in its thread.
    pub(crate) before: Option<u32>,
    /// The document after it in its thread.
    pub(crate) after: Option<u32>,
    /// Slot of the vector of the memory.
    pub(crate) slot: Option<u32>,
}

impl DocMeta {
    /// Whether a live read at an instant, in milliseconds, sees it.
    pub(crate) fn is_seen(&self, now: i64) -> bool {
        self.from <= now && now < self.until
    }
}

/// A block that can be changed. A place outside it is a bug of ours and panics.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DocBlock {
    docs: Vec<Option<DocMeta>>,
}

impl DocBlock {
    /// Places, those that stand for nothing too.
    pub(crate) fn len(&self) -> usize {
        self.docs.len()
    }

    /// Whether no place stands for a memory.
    pub(crate) fn is_vacant(&self) -> bool {
        self.docs.iter().all(Option::is_none)
    }

    /// The document at a place.
    pub(crate) fn get(&self, at: usize) -> Option<&DocMeta> {
        self.docs.get(at).and_then(Option::as_ref)
    }

    /// All places in order.
    pub(crate) fn docs(&self) -> &[Option<DocMeta>] {
        &self.docs
    }

    /// Writes a place; those between the last one and it stand for nothing.
    pub(crate) fn put(&mut self, at: usize, doc: Option<DocMeta>) {
        assert!(at < DOCS_PER_BLOCK, "document {at} lies outside the block");
        let sound = |doc: &DocMeta| {
            let bounds = TIME_MIN_MS..=TIME_MAX_MS;
            bounds.contains(&doc.from) && bounds.contains(&doc.until) && doc.id.as_bytes() != &[0; 16]
        };
        assert!(doc.as_ref().is_none_or(sound), "an instant out of bounds: {doc:?}");
        if self.docs.len() <= at {
            self.docs.resize(at + 1, None);
        }
        if let Some(place) = self.docs.get_mut(at) {
            *place = doc;
        }
    }

    /// Writes the block into `out`, replacing what is there.
    pub(crate) fn encode(&self, key: &[u8], out: &mut Vec<u8>) {
        begin(tag::DOC_BLOCK, out);
        // At most 128, by the assertion of `put`.
        out.push(self.docs.len() as u8);
        for doc in &self.docs {
            let Some(DocMeta { id, from, until, terms, before, after, slot }) = *doc else {
                out.push(0);
                continue;
            };
            let has_from = from != TIME_MIN_MS;
            let ended = until == TIME_MIN_MS;
            let has_until = !ended && until != TIME_MAX_MS;
            let bits = [
                (true, shape::IS),
                (has_from, shape::FROM),
                (has_until, shape::UNTIL),
                (ended, shape::ENDED),
                (terms.is_some(), shape::COUNTED),
                (before.is_some(), shape::BEFORE),
                (after.is_some(), shape::AFTER),
                (slot.is_some(), shape::SLOT),
            ];
            out.push(bits.iter().map(|&(set, bit)| u8::from(set) * bit).sum());
            out.extend_from_slice(id.as_bytes());
            for instant in [Some(from).filter(|_| has_from), Some(until).filter(|_| has_until)] {
                out.extend(instant.into_iter().flat_map(i64::to_le_bytes));
            }
            for number in [terms, before, after, slot].into_iter().flatten() {
                put_varint(out, number);
            }
        }
        seal(0, key, out);
    }

    /// The block that [`DocBlock::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupted` for other bytes.
    pub(crate) fn decode(at: At<'_>, bytes: &[u8]) -> Result<Self> {
        let (flags, body) = open(tag::DOC_BLOCK, at, bytes)?;
        no_flags(at, flags)?;
        let Some((&count, mut rest)) = body.split_first() else {
            return Err(at.corrupted("a block without a count"));
        };
        if usize::from(count) > DOCS_PER_BLOCK {
            return Err(at.corrupted(format!("{count} documents in a block")));
        }
        let mut docs = Vec::with_capacity(usize::from(count));
        for number in 0..count {
            let doc = read_doc(&mut rest);
            docs.push(doc.ok_or_else(|| at.corrupted(format!("document {number} makes no sense")))?);
        }
        if !rest.is_empty() {
            return Err(at.corrupted(format!("{} bytes behind the last document", rest.len())));
        }
        Ok(DocBlock { docs })
    }
}

/// A place; none in the outer option for bytes that are none.
fn read_doc(rest: &mut &[u8]) -> Option<Option<DocMeta>> {
    let (&bits, tail) = rest.split_first()?;
    *rest = tail;
    if bits == 0 {
        return Some(None);
    }
    if bits & shape::IS == 0 || bits & (shape::UNTIL | shape::ENDED) == shape::UNTIL | shape::ENDED {
        return None;
    }
    let (id, tail) = rest.split_first_chunk::<16>()?;
    *rest = tail;
    // The one that no bit stands for is not written.
    let mut instant = |bit: u8, otherwise: i64, last: i64| {
        if bits & bit == 0 {
            return Some(otherwise);
        }
        let (bytes, tail) = rest.split_first_chunk::<8>()?;
        *rest = tail;
        Some(i64::from_le_bytes(*bytes)).filter(|at| (TIME_MIN_MS + 1..=last).contains(at))
    };
    let from = instant(shape::FROM, TIME_MIN_MS, TIME_MAX_MS)?;
    let never = if bits & shape::ENDED == 0 { TIME_MAX_MS } else { TIME_MIN_MS };
    let until = instant(shape::UNTIL, never, TIME_MAX_MS - 1)?;
    let mut number = |bit: u8| match bits & bit {
        0 => Some(None),
        _ => take_varint(rest).map(Some),
    };
    let (terms, before) = (number(shape::COUNTED)?, number(shape::BEFORE)?);
    let (after, slot) = (number(shape::AFTER)?, number(shape::SLOT)?);
    let id = Some(MemoryId::from_bytes(*id)).filter(|id| id.as_bytes() != &[0; 16])?;
    Some(Some(DocMeta { id, from, until, terms, before, after, slot }))
}
