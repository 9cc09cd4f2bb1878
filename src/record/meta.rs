//! Small metadata rows: a postcard value inside the frame, whose type belongs to the caller.
//!
//! postcard writes integers as varints and nothing but the values, so the types are part of the file format:
//! a field may not be added, removed or moved under one tag.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Result;
use crate::record::frame::{At, check_sum, tag};
use crate::record::parts::{PartReader, PartWriter};

/// Writes `value` under one of the metadata tags into `out`, replacing what is there.
pub(crate) fn encode_meta<T: Serialize>(table_tag: u8, key: &[u8], value: &T, out: &mut Vec<u8>) {
    debug_assert!(table_tag >= tag::META_FIRST, "{table_tag} is the tag of a record");
    let mut parts = PartWriter::begin(table_tag, out);
    parts.always(value);
    parts.seal(key);
}

/// The value that [`encode_meta`] wrote.
///
/// # Errors
/// `Corrupted` for other bytes.
pub(crate) fn decode_meta<T: DeserializeOwned>(table_tag: u8, at: At<'_>, bytes: &[u8]) -> Result<T> {
    let mut parts = PartReader::open(table_tag, at, bytes)?;
    let value = parts.always("value")?;
    parts.finish()?;
    Ok(value)
}

/// As [`decode_meta`], also where one byte of the value is damaged: the checksum tells which it was. A value with other damage is taken
/// for one of these by chance once in 400,000 times for every 40 bytes; two that fit are none.
///
/// # Errors
/// `Corrupted` for other bytes.
pub(crate) fn decode_mended_meta<T: DeserializeOwned>(table_tag: u8, at: At<'_>, bytes: &[u8]) -> Result<T> {
    let read = decode_meta(table_tag, at, bytes);
    if read.is_ok() {
        return read;
    }
    let (mut tried, mut fits) = (bytes.to_vec(), Vec::new());
    for (place, was) in bytes.iter().enumerate() {
        for other in (0..=u8::MAX).filter(|other| other != was) {
            tried.get_mut(place).into_iter().for_each(|byte| *byte = other);
            if check_sum(at, &tried).is_ok() {
                fits.extend(decode_meta(table_tag, at, &tried).ok());
            }
        }
        tried.get_mut(place).into_iter().for_each(|byte| *byte = *was);
    }
    match fits.pop() {
        Some(value) if fits.is_empty() => Ok(value),
        _ => read,
    }
}
