//! Which bytes stand in the file?
//!
//! The value of every row of the key-value store, one file per sort of record; `docs/format.md`, "Records",
//! shows them byte by byte.
//!
//! Invariants: what an encoder writes, its decoder reads back equal, bit for bit of every float. Bytes from the
//! disk are hostile: a decoder answers [`Corrupted`](crate::Error::Corrupted) for every value that no encoder
//! wrote under this key, never panics, and allocates no more than a small multiple of what it was given. A
//! layout never changes under its version; the tests hold the bytes of one record of each sort.
//!
//! This room knows no table, no transaction and no key layout: whoever calls says by [`At`] where a value lies.
//! It alone names postcard, and gives no type of `model` to it but numbers and texts.

mod access;
mod content;
mod doc_block;
mod fields;
mod graph_block;
mod holder;
mod journal;
mod meta;
mod parts;
mod payload;
mod posting_block;
mod slot_block;
mod tombstone;
mod varint;
mod vector_block;
mod vitals;

use crate::error::{Error, Result};
use crate::limits::{BLOCK_PAGE_BYTES, BLOCK_PAGE_OVERHEAD, TIME_MAX_MS, TIME_MIN_MS};
use crate::model::Time;

pub(crate) use access::{decode_access, encode_access};
pub(crate) use content::{decode_content, decode_text, encode_content};
pub(crate) use doc_block::{DOCS_PER_BLOCK, DocBlock, DocMeta};
pub(crate) use graph_block::{GraphBlockRef, GraphNode, GraphNodeRef, NODES_PER_BLOCK, encode_graph_block};
pub(crate) use holder::{decode_holder, encode_holder};
pub(crate) use journal::{decode_journal, encode_journal};
pub(crate) use meta::{decode_meta, encode_meta};
pub(crate) use payload::{decode_payload, encode_payload};
pub(crate) use posting_block::{DOC_MAX, POSTINGS_PER_BLOCK, Postings, PostingsRef};
pub(crate) use slot_block::{ALIVE, SlotBlock, SlotBlockRef, SlotMeta, slots_per_block};
pub(crate) use tombstone::{decode_tombstone, encode_tombstone};
pub(crate) use vector_block::{VectorBlock, read_vector, vectors_per_block};
pub(crate) use vitals::{decode_vitals, encode_vitals};

/// Tags: the second byte of a value says what sort of record it is. A tag is never given to another sort.
pub(crate) mod tag {
    /// [`Vitals`](crate::model::Vitals).
    pub(crate) const VITALS: u8 = 1;
    /// [`Content`](crate::model::Content).
    pub(crate) const CONTENT: u8 = 2;
    /// [`Access`](crate::model::Access).
    pub(crate) const ACCESS: u8 = 3;
    /// [`Holder`](crate::model::Holder).
    pub(crate) const HOLDER: u8 = 4;
    /// [`JournalRow`](crate::model::JournalRow).
    pub(crate) const JOURNAL: u8 = 5;
    /// [`Tombstone`](crate::model::Tombstone).
    pub(crate) const TOMBSTONE: u8 = 6;
    /// [`SlotBlock`](super::SlotBlock).
    pub(crate) const SLOT_BLOCK: u8 = 7;
    /// [`VectorBlock`](super::VectorBlock).
    pub(crate) const VECTOR_BLOCK: u8 = 8;
    /// [`GraphBlockRef`](super::GraphBlockRef).
    pub(crate) const GRAPH_BLOCK: u8 = 9;

    /// [`DocBlock`](super::DocBlock).
    pub(crate) const DOC_BLOCK: u8 = 10;
    /// [`Postings`](super::Postings).
    pub(crate) const POSTING_BLOCK: u8 = 11;
    /// [`Payload`](crate::model::Payload).
    pub(crate) const PAYLOAD: u8 = 12;

    /// First tag of the small metadata rows ([`encode_meta`](super::encode_meta)), which the table list of `store`
    /// gives out; below lie the records.
    pub(crate) const META_FIRST: u8 = 16;
}

/// Version of every layout here: the first byte of a value.
const LAYOUT_VERSION: u8 = 1;
/// Version u8, tag u8, flags u16.
const HEADER_BYTES: usize = 4;
/// The crc32 at the end.
const CRC_BYTES: usize = 4;

/// Where a value lies: for its checksum, and for the error if it is damaged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    /// Name of the table, as in `docs/format.md`.
    pub(crate) table: &'static str,
    /// The key, part of the checksum: a value that was moved to another key is found as well.
    pub(crate) key: &'a [u8],
}

impl<'a> At<'a> {
    pub(crate) fn new(table: &'static str, key: &'a [u8]) -> Self {
        At { table, key }
    }

    #[cold]
    fn corrupted(self, why: impl Into<String>) -> Error {
        Error::corrupted(self.table, self.key, why)
    }

    /// An instant inside the years 1 to 9999.
    fn time(self, field: &str, millis: i64) -> Result<Time> {
        if !(TIME_MIN_MS..=TIME_MAX_MS).contains(&millis) {
            return Err(self.corrupted(format!("{field} is {millis} ms, outside the years 1 to 9999")));
        }
        Ok(Time::from_millis(millis))
    }

    /// The member of a closed set with a code.
    fn member<T>(self, field: &str, code: u8, from_code: impl Fn(u8) -> Option<T>) -> Result<T> {
        from_code(code).ok_or_else(|| self.corrupted(format!("{field} has no member with code {code}")))
    }

    /// A JSON value that is kept as text.
    fn json(self, field: &str, text: &str) -> Result<serde_json::Value> {
        serde_json::from_str(text).map_err(|why| self.corrupted(format!("{field} is not JSON: {why}")))
    }
}

/// Empties `out` and begins a value in it.
fn begin(tag: u8, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[LAYOUT_VERSION, tag, 0, 0]);
}

/// Ends the value in `out`: sets its flags and appends the checksum over header, body and key.
fn seal(flags: u16, key: &[u8], out: &mut Vec<u8>) {
    if let Some(place) = out.get_mut(2..HEADER_BYTES) {
        place.copy_from_slice(&flags.to_le_bytes());
    }
    let crc = checksum(&[out, key]);
    out.extend_from_slice(&crc.to_le_bytes());
}

/// Checks the checksum of a sealed value, whatever record it is; a row without a value has none.
///
/// # Errors
/// `Corrupted` where it does not fit.
pub(crate) fn check_sum(at: At<'_>, bytes: &[u8]) -> Result<()> {
    match bytes.get(1) {
        // A block of vectors has one for each of them.
        Some(&tag::VECTOR_BLOCK) => Ok(()),
        found => open(found.copied().unwrap_or_default(), at, bytes).map(drop),
    }
}

/// Entries of `entry` bytes in a block with `overhead` bytes of its own: as many as fill a page of the key-value store. It is
/// the smallest page, of 8 KiB times a power of two, that entries fill to seven eighths.
const fn entries_per_block(overhead: usize, entry: usize) -> usize {
    let mut page = BLOCK_PAGE_BYTES;
    loop {
        let fit = (page - BLOCK_PAGE_OVERHEAD - overhead) / entry;
        if fit * entry * 8 >= page * 7 {
            return fit;
        }
        page *= 2;
    }
}

/// Flags and body of a sealed value.
///
/// # Errors
/// `Corrupted` for another version or tag, or a checksum that does not fit.
fn open<'b>(tag: u8, at: At<'_>, bytes: &'b [u8]) -> Result<(u16, &'b [u8])> {
    let Some((value, crc)) = bytes.split_last_chunk::<CRC_BYTES>() else {
        return Err(at.corrupted(format!("{} bytes are no value", bytes.len())));
    };
    let (flags, body) = open_header(tag, at, value)?;
    if checksum(&[value, at.key]) != u32::from_le_bytes(*crc) {
        return Err(at.corrupted("the checksum does not fit"));
    }
    Ok((flags, body))
}

/// Flags and body behind the header alone, for a record with checksums of its own.
fn open_header<'b>(tag: u8, at: At<'_>, value: &'b [u8]) -> Result<(u16, &'b [u8])> {
    let Some((&[version, found, low, high], body)) = value.split_first_chunk::<HEADER_BYTES>() else {
        return Err(at.corrupted(format!("{} bytes hold no header", value.len())));
    };
    if version != LAYOUT_VERSION {
        return Err(at.corrupted(format!("layout version {version}, this build reads {LAYOUT_VERSION}")));
    }
    if found != tag {
        return Err(at.corrupted(format!("a record with tag {found} where {tag} belongs")));
    }
    Ok((u16::from_le_bytes([low, high]), body))
}

/// crc32 over `parts`, one after the other.
fn checksum(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// Refuses flags in a record that has none.
fn no_flags(at: At<'_>, flags: u16) -> Result<()> {
    match flags {
        0 => Ok(()),
        _ => Err(at.corrupted(format!("unknown flags {flags:#06x}"))),
    }
}

/// Tries the decoder of `table_tag` on `bytes`, for the fuzz targets: an error or not, but never a panic.
///
/// # Errors
/// `Corrupted` as the decoder says; also for a tag that no record has.
#[cfg(feature = "faults")]
pub fn decode_any(table_tag: u8, key: &[u8], bytes: &[u8]) -> Result<()> {
    decode_tagged(table_tag, At::new("any", key), bytes)
}

/// Runs the decoder of a tag, and the readers beside it.
#[cfg(any(test, feature = "faults"))]
fn decode_tagged(table_tag: u8, at: At<'_>, bytes: &[u8]) -> Result<()> {
    // A block must have the dimension that its space has; here we take it at its word.
    let dim = match bytes.get(6..8) {
        Some(&[low, high]) => usize::from(u16::from_le_bytes([low, high])),
        _ => 1,
    };
    match table_tag {
        tag::VITALS => decode_vitals(at, bytes).map(drop),
        tag::CONTENT => decode_text(at, bytes).and(decode_content(at, bytes).map(drop)),
        tag::ACCESS => decode_access(at, bytes).map(drop),
        tag::HOLDER => decode_holder(at, bytes).map(drop),
        tag::JOURNAL => decode_journal(at, bytes).map(drop),
        tag::TOMBSTONE => decode_tombstone(at, bytes).map(drop),
        tag::SLOT_BLOCK => SlotBlock::decode(at, dim, bytes).map(drop),
        tag::VECTOR_BLOCK => VectorBlock::decode(at, dim, bytes)
            .and_then(|_| read_vector(at, bytes, dim, 0, &mut Vec::new()))
            .map(drop),
        tag::GRAPH_BLOCK => GraphBlockRef::open(at, bytes).map(|block| {
            block.nodes().flatten().for_each(|node| {
                node.bottom().chain(node.host()).for_each(drop);
                (1..=node.level()).for_each(|level| node.upper(level).for_each(drop));
            });
        }),
        tag::DOC_BLOCK => DocBlock::decode(at, bytes).map(drop),
        tag::POSTING_BLOCK => {
            let block = PostingsRef::open(at, 0, bytes)?;
            block.to_owned(|_| true).map(drop).ok_or_else(|| at.corrupted("a posting makes no sense"))
        }
        tag::PAYLOAD => decode_payload(at, bytes).map(drop),
        tag::META_FIRST.. => decode_meta::<(u64, String, Vec<u32>)>(table_tag, at, bytes).map(drop),
        _ => Err(at.corrupted(format!("no record has tag {table_tag}"))),
    }
}

#[cfg(test)]
mod tests;
