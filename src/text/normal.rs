//! The normal form `fp-1` and its fingerprint.

use sha2::{Digest, Sha256};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// The result of [`normal_form`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormalForm {
    fingerprint: Option<[u8; 32]>,
}

impl NormalForm {
    /// The SHA-256 of the normal form; none if the form is empty, which never matches anything.
    pub fn fingerprint(&self) -> Option<[u8; 32]> {
        self.fingerprint
    }

    /// The first 16 bytes of the fingerprint, which a row and the index of candidates keep.
    pub fn prefix(&self) -> Option<[u8; 16]> {
        self.fingerprint().and_then(|hash| hash.first_chunk().copied())
    }
}

/// Brings a text into Unicode's form NFKC and into lower case, turns each run of white space into one space,
/// trims it, and hashes it.
///
/// Lowercase is Unicode's full mapping, white space its property `White_Space`.
pub fn normal_form(text: &str) -> NormalForm {
    let normal = if text.is_ascii() { normalize_ascii(text) } else { normalize(text) };
    NormalForm { fingerprint: (!normal.is_empty()).then(|| Sha256::digest(&normal).into()) }
}

/// ASCII is NFKC already, and each byte is a character.
pub(super) fn normalize_ascii(text: &str) -> Vec<u8> {
    let words = text.as_bytes().split(|&byte| is_ascii_white_space(byte));
    let mut normal = join(words.filter(|word| !word.is_empty()), text.len());
    normal.make_ascii_lowercase();
    normal
}

/// The ASCII part of `White_Space`. Unlike `u8::is_ascii_whitespace` it includes the vertical tab.
fn is_ascii_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

pub(super) fn normalize(text: &str) -> Vec<u8> {
    // Most texts are in NFKC as they stand, and a check of each character tells.
    let lower = match is_nfkc_quick(text.chars()) {
        IsNormalized::Yes => text.to_lowercase(),
        IsNormalized::No | IsNormalized::Maybe => text.nfkc().collect::<String>().to_lowercase(),
    };
    join(lower.split_whitespace().map(str::as_bytes), lower.len())
}

/// The words with one space between them, at most `bytes` long.
fn join<'a>(words: impl Iterator<Item = &'a [u8]>, bytes: usize) -> Vec<u8> {
    let mut normal = Vec::with_capacity(bytes);
    for word in words {
        if !normal.is_empty() {
            normal.push(b' ');
        }
        normal.extend_from_slice(word);
    }
    normal
}
