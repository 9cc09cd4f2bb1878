//! Keyed hashes: what remains of a text that must go.

use std::fmt;

use hmac::{Hmac, Mac};
use serde_json::Value;
use sha2::digest::KeyInit;
use sha2::{Digest, Sha256};

use crate::text::likeness::canonical;

/// Bytes that SHA-256 takes at once, the length of a padded HMAC key (RFC 2104).
const BLOCK_BYTES: usize = 64;

/// What the text of a hidden value begins with.
const HIDDEN: &str = "hmac:";
/// Bytes of the hash in such a text: enough that equal values, and no others, stay recognisable as equal.
const HIDDEN_BYTES: usize = 16;

/// The secret of a store. Without it the text behind a hash could be guessed if the text is short.
///
/// The keyed state is made once, so that the hash of a short text costs two compressions of SHA-256.
#[derive(Clone)]
pub struct Secret {
    keyed: Hmac<Sha256>,
}

impl Secret {
    /// The secret of these 32 bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        // A key shorter than a block is filled with zeros (RFC 2104). It is filled here, so that no length
        // can be refused.
        let mut block = [0_u8; BLOCK_BYTES];
        block.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        Secret { keyed: KeyInit::new(&block.into()) }
    }

    /// HMAC-SHA-256 of `domain`, a zero byte and `bytes`. A domain (`key`, `content`, the name of a field)
    /// has no zero byte, so hashes of two domains are never equal.
    pub fn hmac(&self, domain: &str, bytes: &[u8]) -> [u8; 32] {
        debug_assert!(!domain.contains('\0'), "a domain holds no zero byte");
        let mut mac = self.keyed.clone();
        mac.update(domain.as_bytes());
        mac.update(&[0]);
        mac.update(bytes);
        mac.finalize().into_bytes().into()
    }

    /// What stands in the journal in the place of a value that must go: `hmac:` and 32 hexadecimal digits. Equal values have equal
    /// texts.
    pub fn hidden(&self, value: &str) -> String {
        let hash = self.hmac("journal", value.as_bytes());
        let hex = hash.iter().take(HIDDEN_BYTES).map(|byte| format!("{byte:02x}"));
        std::iter::once(HIDDEN.to_owned()).chain(hex).collect()
    }

    /// The hash by which a key is found in a tombstone.
    pub fn of_key(&self, key: &str) -> [u8; 32] {
        self.hmac("key", key.as_bytes())
    }

    /// The hash by which a content is found in a tombstone.
    pub fn of_content(&self, text: &str) -> [u8; 32] {
        self.hmac("content", text.as_bytes())
    }

    /// The hashes under which a key may stand in a tombstone: with the secret, and without it.
    pub fn names_of_key(&self, key: &str) -> [[u8; 32]; 2] {
        [self.of_key(key), plain(key)]
    }

    /// The hashes under which a content may stand in a tombstone: with the secret, and without it.
    pub fn names_of_content(&self, text: &str) -> [[u8; 32]; 2] {
        [self.of_content(text), plain(text)]
    }

    /// The hash by which the tombstone of a dropped namespace is found.
    pub fn of_namespace(&self, name: &str) -> [u8; 32] {
        self.hmac("namespace", name.as_bytes())
    }

    /// The hash under which an agent is told of that may be gone.
    pub fn of_agent(&self, agent: &str) -> [u8; 32] {
        self.hmac("agent", agent.as_bytes())
    }

    /// The first 8 bytes of [`Secret::hmac`], which are enough to recognise a field that was given the same
    /// value again.
    pub fn short(&self, domain: &str, bytes: &[u8]) -> [u8; 8] {
        let [a, b, c, d, e, f, g, h, ..] = self.hmac(domain, bytes);
        [a, b, c, d, e, f, g, h]
    }

    /// The short HMAC of a value of the field of a memory with this code.
    pub fn of_field(&self, code: u8, value: &Value) -> [u8; 8] {
        let mut bytes = Vec::new();
        canonical(value, &mut bytes);
        self.of_field_bytes(code, &bytes)
    }

    /// The same of a value that is no JSON.
    pub fn of_field_bytes(&self, code: u8, value: &[u8]) -> [u8; 8] {
        self.short("field", &[&[code], value].concat())
    }
}

/// Whether a text has the form of [`Secret::hidden`]. A value of a caller that happens to have it says 32 hexadecimal digits and
/// nothing else, and stays.
pub fn is_hidden(text: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.strip_prefix(HIDDEN).is_some_and(|hex| hex.len() == 2 * HIDDEN_BYTES && hex.bytes().all(is_digit))
}

/// SHA-256 of a text. Other systems can compare it, and anyone can guess a short text from it.
pub fn plain(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
