//! The term of a word: its folded form and its stem.

use std::borrow::Cow;
use std::cell::Cell;

use rust_stemmers::Algorithm;
use rust_stemmers::Stemmer;

use super::fold::cut;
use super::fold::fold;
use super::fold::is_apostrophe;
use super::fold::lower;
use crate::limits::TERM_BYTES_MAX;
use crate::policy::Stemming;
use crate::text::words::is_word;

/// The Snowball algorithm that removes the endings of a language.
const fn algorithm(stemming: Stemming) -> Option<Algorithm> {
    Some(match stemming {
        Stemming::None => return None,
        Stemming::Arabic => Algorithm::Arabic,
        Stemming::Danish => Algorithm::Danish,
        Stemming::Dutch => Algorithm::Dutch,
        Stemming::English => Algorithm::English,
        Stemming::Finnish => Algorithm::Finnish,
        Stemming::French => Algorithm::French,
        Stemming::German => Algorithm::German,
        Stemming::Greek => Algorithm::Greek,
        Stemming::Hungarian => Algorithm::Hungarian,
        Stemming::Italian => Algorithm::Italian,
        Stemming::Norwegian => Algorithm::Norwegian,
        Stemming::Portuguese => Algorithm::Portuguese,
        Stemming::Romanian => Algorithm::Romanian,
        Stemming::Russian => Algorithm::Russian,
        Stemming::Spanish => Algorithm::Spanish,
        Stemming::Swedish => Algorithm::Swedish,
        Stemming::Tamil => Algorithm::Tamil,
        Stemming::Turkish => Algorithm::Turkish,
    })
}

/// The largest number of bytes of a word, and of its stem, in the memory of stems.
const SHORT_BYTES: usize = 16;
/// The number of words in that memory, which takes half a megabyte for each thread.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 14;

/// A word and its stem, both padded with zeros.
#[derive(Clone, Copy)]
struct Slot {
    word: [u8; SHORT_BYTES],
    stem: [u8; SHORT_BYTES],
    /// The number of bytes of the stem; 0 for a free slot.
    len: u8,
}

/// Stems of frequent words. Of two words that share a slot it holds the later one.
struct Memory {
    algorithm: Algorithm,
    slots: Vec<Slot>,
}

thread_local! {
    /// What the last text of this thread left behind.
    static MEMORY: Cell<Option<Memory>> = const { Cell::new(None) };
}

/// Makes terms from words.
pub(super) struct Stems {
    stemming: Stemming,
    stemmer: Option<Stemmer>,
    memory: Option<Memory>,
    /// The word in small letters.
    small: String,
    /// The term.
    term: String,
}

impl Stems {
    pub(super) fn new(stemming: Stemming) -> Self {
        let algorithm = algorithm(stemming);
        let (stemmer, memory) = (algorithm.map(Stemmer::create), algorithm.map(Memory::new));
        Stems { stemming, stemmer, memory, small: String::new(), term: String::new() }
    }

    /// Whether an apostrophe of the language ends a word: `l'homme`.
    pub(super) fn elides(&self) -> bool {
        matches!(self.stemming, Stemming::French | Stemming::Italian)
    }

    /// The term of a word of ASCII letters.
    pub(super) fn plain(&mut self, word: &str) -> &str {
        let (Some(memory), Some(key)) = (&mut self.memory, short(word)) else { return self.make(word) };
        let slot = memory.slot(key);
        if slot.word != key || slot.len == 0 {
            self.make(word);
            let small = self.term.bytes().all(|byte| byte.is_ascii_lowercase());
            let Some(stem) = short(&self.term).filter(|_| small) else { return &self.term };
            let len = u8::try_from(self.term.len()).unwrap_or_default();
            if let Some(memory) = &mut self.memory {
                *memory.slot(key) = Slot { word: key, stem, len };
            }
            return &self.term;
        }
        let stem = slot.stem.get(..usize::from(slot.len)).unwrap_or_default();
        self.term.clear();
        self.term.push_str(std::str::from_utf8(stem).unwrap_or_default());
        &self.term
    }

    /// The term of a word; empty if no character of it is visible.
    pub(super) fn term(&mut self, word: &str) -> &str {
        let word = without_possessive(word);
        if word.bytes().all(|byte| byte.is_ascii_alphabetic()) { self.plain(word) } else { self.make(word) }
    }

    fn make(&mut self, word: &str) -> &str {
        self.small.clear();
        self.term.clear();
        lower(word, TERM_BYTES_MAX, &mut self.small);
        let ends = !self.small.contains(char::is_numeric);
        match self.stemmer.as_ref().filter(|_| ends) {
            None => fold(&self.small, TERM_BYTES_MAX, &mut self.term),
            // English writes accents at will, and its stemmer knows none.
            Some(stemmer) if self.stemming == Stemming::English => {
                fold(&self.small, TERM_BYTES_MAX, &mut self.term);
                cut(&mut self.term, TERM_BYTES_MAX);
                if self.term.is_ascii() {
                    stem(stemmer, &mut self.term);
                }
            }
            // In other languages the endings depend on accents.
            Some(stemmer) => {
                cut(&mut self.small, TERM_BYTES_MAX);
                stem(stemmer, &mut self.small);
                fold(&self.small, TERM_BYTES_MAX, &mut self.term);
            }
        }
        cut(&mut self.term, TERM_BYTES_MAX);
        &self.term
    }

    /// The term of several words with their joining signs; without its commas if it is a number in groups.
    pub(super) fn compound(&mut self, words: &str, grouped: bool) -> &str {
        self.small.clear();
        self.term.clear();
        lower(words, TERM_BYTES_MAX, &mut self.small);
        fold(&self.small, TERM_BYTES_MAX, &mut self.term);
        if grouped {
            self.term.retain(|c| c != ',');
        }
        cut(&mut self.term, TERM_BYTES_MAX);
        &self.term
    }
}

impl Drop for Stems {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            // A thread that ends has nothing left in which to keep the memory.
            let _ = MEMORY.try_with(|kept| kept.set(Some(memory)));
        }
    }
}

impl Memory {
    /// The stems that this thread remembers for the language.
    fn new(algorithm: Algorithm) -> Self {
        let kept = MEMORY.try_with(Cell::take).ok().flatten();
        kept.filter(|memory| memory.algorithm == algorithm).unwrap_or_else(|| Memory {
            algorithm,
            slots: vec![Slot { word: [0; SHORT_BYTES], stem: [0; SHORT_BYTES], len: 0 }; SLOTS],
        })
    }

    #[expect(clippy::expect_used, reason = "the place is below the number of slots")]
    fn slot(&mut self, key: [u8; SHORT_BYTES]) -> &mut Slot {
        let key = u128::from_le_bytes(key);
        // Fibonacci hashing (D. Knuth, The Art of Computer Programming 3, 6.4).
        let hash = (key as u64 ^ (key >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.slots.get_mut((hash >> (64 - SLOT_BITS)) as usize).expect("so many bits number the slots")
    }
}

/// A word of ASCII letters in small letters, padded with zeros, if it is short enough.
fn short(word: &str) -> Option<[u8; SHORT_BYTES]> {
    const CASE: u128 = u128::from_le_bytes([0x20; SHORT_BYTES]);
    let mut key = [0; SHORT_BYTES];
    key.get_mut(..word.len())
        .filter(|room| !room.is_empty() && word.is_ascii())?
        .copy_from_slice(word.as_bytes());
    let case = CASE >> (8 * (SHORT_BYTES - word.len()));
    Some((u128::from_le_bytes(key) | case).to_le_bytes())
}

/// A word without the `'s` of a possessive at its end.
pub(super) fn without_possessive(word: &str) -> &str {
    let stem = word.strip_suffix(['s', 'S']).and_then(|rest| rest.strip_suffix(is_apostrophe));
    stem.filter(|stem| stem.ends_with(is_word)).unwrap_or(word)
}

/// Removes the ending of a word, unless nothing would be left.
fn stem(stemmer: &Stemmer, word: &mut String) {
    let stem = match stemmer.stem(word) {
        Cow::Borrowed(stem) => stem.to_owned(),
        Cow::Owned(stem) => stem,
    };
    if !stem.is_empty() {
        *word = stem;
    }
}
