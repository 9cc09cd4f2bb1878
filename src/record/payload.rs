//! A payload: bytes or JSON text, compressed where that makes it shorter.
//!
//! ```text
//! header 4 | bytes varint, before compression | data | crc 4
//! ```
//!
//! Flag 1: JSON text. Flag 2: the data are an LZ4 block.

use lz4_flex::block::{compress, decompress_into};
use serde_json::Value;

use crate::error::Result;
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::model::Payload;
use crate::record::frame::{At, begin, open, seal, tag};
use crate::record::varint::{put_varint, take_varint};

/// Flag of the header: JSON text.
const JSON: u16 = 1;
/// Flag of the header: the data are compressed.
const PACKED: u16 = 2;

/// Writes `payload` into `out`, replacing what is there.
pub(crate) fn encode_payload(payload: &Payload, key: &[u8], out: &mut Vec<u8>) {
    begin(tag::PAYLOAD, out);
    let text;
    let (data, kind) = match payload {
        Payload::Json(value) => {
            text = value.to_string();
            (text.as_bytes(), JSON)
        }
        Payload::Bytes(bytes) => (bytes.as_slice(), 0),
    };
    put_varint(out, u32::try_from(data.len()).unwrap_or(u32::MAX));
    let packed = compress(data);
    let shorter = packed.len() < data.len();
    out.extend_from_slice(if shorter { &packed } else { data });
    seal(kind | if shorter { PACKED } else { 0 }, key, out);
}

/// The payload that [`encode_payload`] wrote.
///
/// # Errors
/// `Corrupted` for other bytes, an unknown flag, a length past the bound, text that is not JSON.
pub(crate) fn decode_payload(at: At<'_>, bytes: &[u8]) -> Result<Payload> {
    let (flags, mut body) = open(tag::PAYLOAD, at, bytes)?;
    if flags & !(JSON | PACKED) != 0 {
        return Err(at.corrupted(format!("unknown flags {flags:#06x}")));
    }
    let length = take_varint(&mut body).map(|length| length as usize);
    let length = length.filter(|length| *length <= PAYLOAD_BYTES_MAX);
    let length = length.ok_or_else(|| at.corrupted("the payload is longer than it may be"))?;
    let data = match flags & PACKED {
        0 => body.to_vec(),
        _ => {
            let mut data = vec![0; length];
            let written = decompress_into(body, &mut data)
                .map_err(|why| at.corrupted(format!("the payload is no LZ4 block: {why}")))?;
            data.truncate(written);
            data
        }
    };
    if data.len() != length {
        return Err(at.corrupted(format!("{} bytes of a payload where {length} belong", data.len())));
    }
    if flags & JSON == 0 {
        return Ok(Payload::Bytes(data));
    }
    let value: Value = serde_json::from_slice(&data)
        .map_err(|why| at.corrupted(format!("the payload is not JSON: {why}")))?;
    Ok(Payload::Json(value))
}
