//! Words: where they begin and end, which of them look like names, and sets of them.

use std::borrow::Cow;
use std::collections::HashSet;

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// The zeros of the decimal digits outside ASCII that NFKC keeps. Nine more digits follow each of them.
/// General category `Nd` of Unicode 16.
const ZEROS: [char; 67] = [
    '\u{660}',
    '\u{6F0}',
    '\u{7C0}',
    '\u{966}',
    '\u{9E6}',
    '\u{A66}',
    '\u{AE6}',
    '\u{B66}',
    '\u{BE6}',
    '\u{C66}',
    '\u{CE6}',
    '\u{D66}',
    '\u{DE6}',
    '\u{E50}',
    '\u{ED0}',
    '\u{F20}',
    '\u{1040}',
    '\u{1090}',
    '\u{17E0}',
    '\u{1810}',
    '\u{1946}',
    '\u{19D0}',
    '\u{1A80}',
    '\u{1A90}',
    '\u{1B50}',
    '\u{1BB0}',
    '\u{1C40}',
    '\u{1C50}',
    '\u{A620}',
    '\u{A8D0}',
    '\u{A900}',
    '\u{A9D0}',
    '\u{A9F0}',
    '\u{AA50}',
    '\u{ABF0}',
    '\u{104A0}',
    '\u{10D30}',
    '\u{10D40}',
    '\u{11066}',
    '\u{110F0}',
    '\u{11136}',
    '\u{111D0}',
    '\u{112F0}',
    '\u{11450}',
    '\u{114D0}',
    '\u{11650}',
    '\u{116C0}',
    '\u{116D0}',
    '\u{116DA}',
    '\u{11730}',
    '\u{118E0}',
    '\u{11950}',
    '\u{11BF0}',
    '\u{11C50}',
    '\u{11D50}',
    '\u{11DA0}',
    '\u{11F50}',
    '\u{16130}',
    '\u{16A60}',
    '\u{16AC0}',
    '\u{16B50}',
    '\u{16D70}',
    '\u{1E140}',
    '\u{1E2F0}',
    '\u{1E4F0}',
    '\u{1E5F1}',
    '\u{1E950}',
];

/// Whether a character is alphabetic, a mark or a number.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || is_combining_mark(c)
}

/// The maximal runs of word characters.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c)).filter(|word| !word.is_empty())
}

/// Whether a word begins with a capital, or mixes letters and digits. Such a word names something unless it
/// is a stopword.
pub(super) fn looks_like_name(word: &str) -> bool {
    word.starts_with(char::is_uppercase)
        || (word.contains(char::is_alphabetic) && word.contains(char::is_numeric))
}

/// The text in Unicode's form NFKC, with the decimal digits of any script written as ASCII digits, so that a
/// number has one form.
pub(super) fn compatible(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let nfkc = match is_nfkc_quick(text.chars()) {
        IsNormalized::Yes => Cow::Borrowed(text),
        IsNormalized::No | IsNormalized::Maybe => Cow::Owned(text.nfkc().collect()),
    };
    if nfkc.chars().all(|c| decimal(c).is_none()) {
        return nfkc;
    }
    Cow::Owned(nfkc.chars().map(|c| decimal(c).unwrap_or(c)).collect())
}

/// The same as [`compatible`], in lower case: the text in which patterns are searched (step 1).
pub(crate) fn lowered(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { compatible(text).to_lowercase() }
}

/// The ASCII digit with the value of a decimal digit of another script.
pub(super) fn decimal(c: char) -> Option<char> {
    let [first, ..] = ZEROS;
    if c < first {
        return None;
    }
    let after = ZEROS.partition_point(|&zero| zero <= c);
    let zero = after.checked_sub(1).and_then(|at| ZEROS.get(at))?;
    char::from_digit(u32::from(c) - u32::from(*zero), 10)
}

/// A set of lowercase words, normalized in the same way as the texts that are compared with it.
#[derive(Debug, Clone)]
pub(super) struct WordSet {
    words: HashSet<String>,
    /// For each first byte the lengths that occur, modulo 64. So most words are refused without being hashed.
    lengths: [u64; 256],
}

impl WordSet {
    /// The set of these words.
    pub(super) fn new<'a>(words: impl IntoIterator<Item = &'a String>) -> Self {
        let words: HashSet<String> = words.into_iter().map(|word| lowered(word)).collect();
        let mut lengths = [0_u64; 256];
        for word in &words {
            if let Some(mask) = first(word).and_then(|byte| lengths.get_mut(usize::from(byte))) {
                *mask |= 1 << (word.len() % 64);
            }
        }
        WordSet { words, lengths }
    }

    /// Whether the word is in the set.
    pub(super) fn contains(&self, word: &str) -> bool {
        let Some(mask) = first(word).and_then(|byte| self.lengths.get(usize::from(byte))) else {
            return false;
        };
        mask & 1 << (word.len() % 64) != 0 && self.words.contains(word)
    }
}

fn first(word: &str) -> Option<u8> {
    word.as_bytes().first().copied()
}

/// What two sets of words have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overlap {
    /// The number of words in both.
    pub shared: usize,
    /// The number of words in both, divided by the number of words in either; 0 to 1, and 1 if both sets are
    /// empty.
    pub jaccard: f64,
}

/// Compares two sets of words, each sorted by bytes and without repetition.
pub fn overlap(a: &[String], b: &[String]) -> Overlap {
    debug_assert!(a.is_sorted() && b.is_sorted(), "sets of words are sorted");
    let (mut left, mut right) = (a.iter().peekable(), b.iter().peekable());
    let mut shared = 0;
    while let (Some(x), Some(y)) = (left.peek(), right.peek()) {
        match x.cmp(y) {
            std::cmp::Ordering::Less => drop(left.next()),
            std::cmp::Ordering::Greater => drop(right.next()),
            std::cmp::Ordering::Equal => {
                shared += 1;
                left.next();
                right.next();
            }
        }
    }
    let either = a.len() + b.len() - shared;
    let jaccard = if either == 0 { 1.0 } else { shared as f64 / either as f64 };
    Overlap { shared, jaccard }
}

#[cfg(test)]
mod tests;
