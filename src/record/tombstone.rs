//! Tombstones: [`Tombstone`] as parts.
//!
//! Id, reason, instant and content hash are 63 bytes with the frame, and nothing else is
//! written for a row without keys or merges.

use crate::error::Result;
use crate::model::{MemoryId, RunId, Time, Tombstone, TombstoneReason};
use crate::record::frame::{At, tag};
use crate::record::parts::{PartReader, PartWriter};

/// Writes `tombstone` into `out`, replacing what is there.
pub(crate) fn encode_tombstone(tombstone: &Tombstone, key: &[u8], out: &mut Vec<u8>) {
    let mut parts = PartWriter::begin(tag::TOMBSTONE, out);
    parts.always(tombstone.id.as_bytes());
    parts.always(&tombstone.deleted_at.as_millis());
    parts.always(&tombstone.reason.code());
    parts.always(&tombstone.content_hash);
    parts.maybe((tombstone.rows != 1).then_some(tombstone.rows));
    parts.maybe(tombstone.run.as_ref().map(RunId::as_bytes));
    parts.maybe(tombstone.replaced_by.as_ref().map(MemoryId::as_bytes));
    parts.maybe(tombstone.made_by.as_ref().map(RunId::as_bytes));
    let merged: Vec<_> = tombstone.merged_from.iter().map(MemoryId::as_bytes).collect();
    parts.list(&merged);
    parts.list(&tombstone.key_hashes);
    parts.maybe(tombstone.erased_at.map(Time::as_millis));
    parts.maybe(tombstone.forgotten_at.map(Time::as_millis));
    parts.seal(key);
}

/// The tombstone that [`encode_tombstone`] wrote.
///
/// # Errors
/// `Corrupted` for other bytes, an unknown reason, an instant outside the years 1 to 9999.
pub(crate) fn decode_tombstone(at: At<'_>, bytes: &[u8]) -> Result<Tombstone> {
    let mut parts = PartReader::open(tag::TOMBSTONE, at, bytes)?;
    let id = MemoryId::from_bytes(parts.always("id")?);
    let deleted_at = at.time("deleted_at", parts.always("deleted_at")?)?;
    let reason = at.member("reason", parts.always("reason")?, TombstoneReason::from_code)?;
    let content_hash = parts.always("content_hash")?;
    let tombstone = Tombstone {
        id,
        deleted_at,
        reason,
        content_hash,
        rows: parts.maybe("rows")?.unwrap_or(1),
        run: parts.maybe("run")?.map(RunId::from_bytes),
        replaced_by: parts.maybe("replaced_by")?.map(MemoryId::from_bytes),
        made_by: parts.maybe("made_by")?.map(RunId::from_bytes),
        merged_from: ids(parts.list("merged_from")?),
        key_hashes: parts.list("key_hashes")?,
        erased_at: parts.maybe("erased_at")?.map(|at_ms| at.time("erased_at", at_ms)).transpose()?,
        forgotten_at: parts.maybe("forgotten_at")?.map(|at_ms| at.time("forgotten_at", at_ms)).transpose()?,
    };
    parts.finish()?;
    Ok(tombstone)
}

fn ids(rows: Vec<[u8; 16]>) -> Vec<MemoryId> {
    rows.into_iter().map(MemoryId::from_bytes).collect()
}
