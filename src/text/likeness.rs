//! The key of everything besides the normal form that must be equal before one write stands for another.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::model::{Kind, Tier, Time};

/// The bytes of the key that stand for kind, world time and metadata. The other bytes stand for the exact
/// text.
pub(crate) const ALIKE_BYTES: usize = 8;
/// The number of bytes of the key.
pub(crate) const LIKENESS_BYTES: usize = 12;

/// The number of bytes that stand for what messages of one family have in common besides their texts.
pub(crate) const STANDING_BYTES: usize = 8;

/// The first bytes of SHA-256 over kind, world time and metadata, then those over the bytes of the text. Equal writes
/// have equal keys. Unequal writes almost never have. So a key finds candidates and decides nothing.
pub(crate) fn likeness(
    kind: &Kind,
    valid_from: Option<Time>,
    valid_to: Option<Time>,
    metadata: &Value,
    text: &str,
) -> [u8; LIKENESS_BYTES] {
    let mut bytes = kind.to_string().into_bytes();
    for time in [valid_from, valid_to] {
        bytes.push(0);
        bytes.extend(time.map_or(i64::MIN, Time::as_millis).to_be_bytes());
    }
    canonical(metadata, &mut bytes);
    let (alike, exact) = (Sha256::digest(&bytes), Sha256::digest(text.as_bytes()));
    let mut key = [0; LIKENESS_BYTES];
    let first = alike.iter().take(ALIKE_BYTES).chain(exact.iter());
    key.iter_mut().zip(first).for_each(|(to, from)| *to = *from);
    key
}

/// The first bytes of SHA-256 over what messages of one family have in common besides their texts: tier, world time, the author
/// where a caller set an end, and the owner. So it finds families, and decides nothing.
pub(crate) fn standing(
    tier: Tier,
    (valid_from, valid_to): (Option<Time>, Option<Time>),
    end_of: Option<Option<&str>>,
    owner: &str,
) -> [u8; STANDING_BYTES] {
    let mut bytes = vec![tier.code(), u8::from(end_of.is_some())];
    for time in [valid_from, valid_to] {
        bytes.extend(time.map_or(i64::MIN, Time::as_millis).to_be_bytes());
    }
    bytes.extend(end_of.flatten().unwrap_or_default().as_bytes());
    bytes.push(0);
    bytes.extend(owner.as_bytes());
    Sha256::digest(&bytes).first_chunk().copied().unwrap_or_default()
}

/// JSON with the members of each object in byte order, so that equal values have equal bytes.
pub(crate) fn canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            let mut members: Vec<_> = map.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push(b'{');
            for (name, member) in members {
                out.extend_from_slice(name.as_bytes());
                out.push(0);
                canonical(member, out);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                canonical(item, out);
                out.push(0);
            }
            out.push(b']');
        }
        other => out.extend_from_slice(other.to_string().as_bytes()),
    }
}
