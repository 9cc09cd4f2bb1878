//! What a memory carries beside its text.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::limits::{METADATA_DEPTH_MAX, PAYLOAD_BYTES_MAX};

/// What a memory carries beside its text: at most 1 MiB of JSON or bytes. No search looks at it, and no embedder. It is kept
/// compressed, apart from the memory, and goes with it: to limbo and back, into an export, and when the memory is forgotten.
///
/// A memory with a payload is a record of its own: deduplication absorbs no write into it and never merges it, and it takes no
/// part in families of messages. New text under its key leaves the payload behind with the old version, unless the write
/// brings one.
///
/// ```
/// use oubliette::memory::Payload;
/// let answer = Payload::from(serde_json::json!({"status": 200}));
/// let image = Payload::from(vec![0x89, b'P', b'N', b'G']);
/// assert_ne!(answer, image);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// A JSON value, but not null, of at most 1 MiB as text, and of at most 32 levels.
    Json(Value),
    /// At most 1 MiB.
    Bytes(Vec<u8>),
}

impl From<Value> for Payload {
    fn from(value: Value) -> Self {
        Payload::Json(value)
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Payload::Bytes(bytes)
    }
}

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Self {
        Payload::Bytes(bytes.to_vec())
    }
}

impl Payload {
    /// Checks the bounds.
    pub(crate) fn check(&self) -> Result<()> {
        if *self == Payload::Json(Value::Null) {
            return Err(Error::invalid("payload", "must not be null: leave it out", "null"));
        }
        if let Payload::Json(value) = self
            && is_deeper(value, METADATA_DEPTH_MAX)
        {
            let why = format!("must nest at most {METADATA_DEPTH_MAX} deep");
            return Err(Error::invalid("payload", why, "deeper"));
        }
        let bytes = self.size();
        if bytes > PAYLOAD_BYTES_MAX {
            let why = format!("must be at most {PAYLOAD_BYTES_MAX} bytes");
            return Err(Error::invalid("payload", why, format!("{bytes} bytes")));
        }
        Ok(())
    }

    /// The number of bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Payload::Json(value) => value.to_string().len(),
            Payload::Bytes(bytes) => bytes.len(),
        }
    }
}

/// Whether a value has more than `levels` levels. It goes no deeper than that itself.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(left) = levels.checked_sub(1) else { return true };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, left)),
        Value::Object(map) => map.values().any(|item| is_deeper(item, left)),
        _ => false,
    }
}
