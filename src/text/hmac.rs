//! Keyed hashes: what stays of a text when the text must not.

use std::fmt;

use hmac::{Hmac, Mac};
use sha2::digest::KeyInit;
use sha2::{Digest, Sha256};

/// Bytes that SHA-256 takes at once, the length of a padded HMAC key (RFC 2104).
const BLOCK_BYTES: usize = 64;

/// The secret of a store: without it a hash of a short text could be guessed.
///
/// The keyed state is made once, so that a hash of a short text costs two compressions of SHA-256.
#[derive(Clone)]
pub struct Secret {
    keyed: Hmac<Sha256>,
}

impl Secret {
    /// From its 32 bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        // A key shorter than a block is filled with zeros (RFC 2104); filled here, no length can be refused.
        let mut block = [0_u8; BLOCK_BYTES];
        block.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        Secret { keyed: KeyInit::new(&block.into()) }
    }

    /// HMAC-SHA-256 of `domain`, a zero byte and `bytes`. A domain (`key`, `content`, the name of a field)
    /// holds no zero byte, so hashes of two domains never meet.
    pub fn hmac(&self, domain: &str, bytes: &[u8]) -> [u8; 32] {
        debug_assert!(!domain.contains('\0'), "a domain holds no zero byte");
        let mut mac = self.keyed.clone();
        mac.update(domain.as_bytes());
        mac.update(&[0]);
        mac.update(bytes);
        mac.finalize().into_bytes().into()
    }

    /// By what a key is found in a tombstone.
    pub fn of_key(&self, key: &str) -> [u8; 32] {
        self.hmac("key", key.as_bytes())
    }

    /// By what a content is found in a tombstone.
    pub fn of_content(&self, text: &str) -> [u8; 32] {
        self.hmac("content", text.as_bytes())
    }

    /// The hashes by which a key may stand in a tombstone: with the secret, and without.
    pub fn names_of_key(&self, key: &str) -> [[u8; 32]; 2] {
        [self.of_key(key), plain(key)]
    }

    /// The hashes by which a content may stand in a tombstone: with the secret, and without.
    pub fn names_of_content(&self, text: &str) -> [[u8; 32]; 2] {
        [self.of_content(text), plain(text)]
    }

    /// By what the tombstone of a dropped namespace is found.
    pub fn of_namespace(&self, name: &str) -> [u8; 32] {
        self.hmac("namespace", name.as_bytes())
    }

    /// The first 8 bytes of [`Secret::hmac`]: enough to tell whether a field was given the same value again.
    pub fn short(&self, domain: &str, bytes: &[u8]) -> [u8; 8] {
        let [a, b, c, d, e, f, g, h, ..] = self.hmac(domain, bytes);
        [a, b, c, d, e, f, g, h]
    }
}

/// SHA-256 of a text, which other systems can compare and anyone can guess from.
pub fn plain(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
