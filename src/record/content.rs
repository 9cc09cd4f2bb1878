//! Content: the text, which can be read where it lies, and the fields of [`Content`] that differ from their defaults.
//!
//! ```text
//! header 4 | length of the text varint | text | fields (`fields.rs`) | crc 4
//! ```

use serde_json::Value;

use crate::error::Result;
use crate::model::{Belonging, Content};
use crate::record::fields::{put_content, take_belonging, take_content};
use crate::record::frame::{At, begin, no_flags, open, seal, tag};
use crate::record::varint::{put_varint, take_varint};

/// Writes `content` into `out`, replacing what is there.
pub(crate) fn encode_content(content: &Content, key: &[u8], out: &mut Vec<u8>) {
    begin(tag::CONTENT, out);
    put_varint(out, u32::try_from(content.text.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(content.text.as_bytes());
    put_content(content, out);
    seal(0, key, out);
}

/// The text, and the fields behind it.
fn split<'b>(at: At<'_>, bytes: &'b [u8]) -> Result<(&'b str, &'b [u8])> {
    let (flags, mut body) = open(tag::CONTENT, at, bytes)?;
    no_flags(at, flags)?;
    let text = take_varint(&mut body).and_then(|length| body.split_at_checked(length as usize));
    let (text, fields) = text.ok_or_else(|| at.corrupted("the text is longer than the row"))?;
    let text =
        std::str::from_utf8(text).map_err(|why| at.corrupted(format!("the text is not UTF-8: {why}")))?;
    Ok((text, fields))
}

/// The text alone, where it lies.
///
/// # Errors
/// `Corrupted` for bytes that [`encode_content`] did not write.
pub(crate) fn decode_text<'b>(at: At<'_>, bytes: &'b [u8]) -> Result<&'b str> {
    split(at, bytes).map(|(text, _)| text)
}

/// The content that [`encode_content`] wrote.
///
/// # Errors
/// `Corrupted` for other bytes, an unknown code, text that is not JSON, metadata that are no object.
pub(crate) fn decode_content(at: At<'_>, bytes: &[u8]) -> Result<Content> {
    let (text, fields) = split(at, bytes)?;
    let content = take_content(at, fields)?;
    match &content.metadata {
        Value::Object(_) => Ok(Content { text: text.to_owned(), ..content }),
        _ => Err(at.corrupted("metadata are not a JSON object")),
    }
}

/// What of the content says which memories belong together; the text and the rest are not looked at.
///
/// # Errors
/// `Corrupted` for bytes that [`encode_content`] did not write.
pub(crate) fn decode_belonging(at: At<'_>, bytes: &[u8]) -> Result<Belonging> {
    let (_, fields) = split(at, bytes)?;
    let belonging = take_belonging(at, fields)?;
    match &belonging.metadata {
        Value::Object(_) | Value::Null => Ok(belonging),
        _ => Err(at.corrupted("metadata are not a JSON object")),
    }
}
