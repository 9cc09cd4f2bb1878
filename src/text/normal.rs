//! The normal form `fp-1` and its fingerprint.

use sha2::{Digest, Sha256};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// What [`normal_form`] made of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormalForm {
    fingerprint: Option<[u8; 32]>,
}

impl NormalForm {
    /// SHA-256 of the normal form; none when that is empty, which never matches anything.
    pub fn fingerprint(&self) -> Option<[u8; 32]> {
        self.fingerprint
    }

    /// The first 16 bytes of the fingerprint: what a row and the index of candidates keep.
    pub fn prefix(&self) -> Option<[u8; 16]> {
        self.fingerprint().and_then(|hash| hash.first_chunk().copied())
    }
}

/// The text in Unicode's form NFKC, lowercased, each run of white space one space, none at the ends; hashed.
///
/// Lowercase is Unicode's full mapping, white space its property `White_Space`.
pub fn normal_form(text: &str) -> NormalForm {
    let normal = if text.is_ascii() { normalize_ascii(text) } else { normalize(text) };
    NormalForm { fingerprint: (!normal.is_empty()).then(|| Sha256::digest(&normal).into()) }
}

/// ASCII is in NFKC already, and a byte is a character.
pub(super) fn normalize_ascii(text: &str) -> Vec<u8> {
    let words = text.as_bytes().split(|&byte| is_ascii_white_space(byte));
    let mut normal = join(words.filter(|word| !word.is_empty()), text.len());
    normal.make_ascii_lowercase();
    normal
}

/// The ASCII part of `White_Space`, to which, unlike for `u8::is_ascii_whitespace`, the vertical tab belongs.
fn is_ascii_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

pub(super) fn normalize(text: &str) -> Vec<u8> {
    // Most text is in NFKC as it stands, and a look at each character tells.
    let lower = match is_nfkc_quick(text.chars()) {
        IsNormalized::Yes => text.to_lowercase(),
        IsNormalized::No | IsNormalized::Maybe => text.nfkc().collect::<String>().to_lowercase(),
    };
    join(lower.split_whitespace().map(str::as_bytes), lower.len())
}

/// The words with one space between them, `bytes` at most.
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
