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
mod bit_row;
mod content;
mod doc_block;
mod fields;
mod frame;
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

#[cfg(any(test, feature = "faults"))]
use crate::error::Result;
#[cfg(any(test, feature = "faults"))]
use frame::tag;

pub(crate) use access::{decode_access, encode_access};
pub(crate) use bit_row::{BIT_ROW_SLOTS, BitCode, BitRow};
pub(crate) use content::{decode_belonging, decode_content, decode_text, encode_content};
pub(crate) use doc_block::{DOCS_PER_BLOCK, DocBlock, DocMeta};
pub(crate) use frame::{At, check_sum};
pub(crate) use graph_block::{
    GraphBlockRef, GraphNode, GraphNodeRef, NODES_PER_BLOCK, block_of, encode_graph_block,
};
pub(crate) use holder::{decode_holder, encode_holder};
pub(crate) use journal::{decode_journal, encode_journal};
pub(crate) use meta::{decode_mended_meta, decode_meta, encode_meta};
pub(crate) use payload::{decode_payload, encode_payload};
pub(crate) use posting_block::{DOC_MAX, POSTINGS_PER_BLOCK, Postings, PostingsRef, Thinned};
pub(crate) use slot_block::{ALIVE, SlotBlock, SlotBlockRef, SlotMeta, slots_per_block};
pub(crate) use tombstone::{decode_tombstone, encode_tombstone};
pub(crate) use varint::put_varint;
pub(crate) use vector_block::{VectorBlock, read_vector, vectors_per_block};
pub(crate) use vitals::{decode_vitals, encode_vitals};

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
        tag::CONTENT => decode_text(at, bytes)
            .and(decode_belonging(at, bytes).map(drop))
            .and(decode_content(at, bytes).map(drop)),
        tag::ACCESS => decode_access(at, bytes).map(drop),
        tag::HOLDER => decode_holder(at, bytes).map(drop),
        tag::JOURNAL => decode_journal(at, bytes).map(drop),
        tag::TOMBSTONE => decode_tombstone(at, bytes).map(drop),
        tag::SLOT_BLOCK => SlotBlock::decode(at, dim, bytes).map(drop),
        tag::BIT_ROW => BitRow::decode(at, dim, bytes).map(drop),
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
