//! Bytes as hexadecimal digits, as lines and answers show hashes.

use std::fmt::Write;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

use crate::error::{Error, Result};

/// Two lowercase digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes that [`hex`] showed.
///
/// # Errors
/// `Invalid` that names `field` for other digits, or another number of them.
pub(crate) fn unhex<const N: usize>(field: &str, text: &str) -> Result<[u8; N]> {
    let invalid = || Error::invalid(field, format!("must be {} hexadecimal digits", 2 * N), text);
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return Err(invalid());
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(high).zip(digit(low)).map(|(high, low)| high << 4 | low).ok_or_else(invalid)?;
    }
    Ok(bytes)
}

/// For `serde(with)`: a hash that may be missing.
pub(crate) mod maybe {
    use super::*;

    #[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
    pub(crate) fn serialize<S: Serializer, const N: usize>(
        hash: &Option<[u8; N]>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match hash {
            Some(hash) => to.serialize_some(&hex(hash)),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        from: D,
    ) -> Result<Option<[u8; N]>, D::Error> {
        let text: Option<String> = Deserialize::deserialize(from)?;
        text.map(|text| unhex("hash", &text)).transpose().map_err(D::Error::custom)
    }
}

/// For `serde(with)`: a SimHash that may be missing.
pub(crate) mod maybe_simhash {
    use super::*;

    #[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
    pub(crate) fn serialize<S: Serializer>(hash: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        maybe::serialize(&hash.map(u64::to_be_bytes), to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        Ok(maybe::deserialize(from)?.map(u64::from_be_bytes))
    }
}
