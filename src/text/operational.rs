//! Operational signatures `op-1` and token keys.

use std::borrow::Cow;

use super::scan::{Piece, Pieces};
use super::words::{WordSet, lowered, words};
use crate::policy::Collapse;

/// The id of this normalizer, stored with every key that it made.
pub const OP_ID: &str = "op-1";

const DATETIME: &str = "<datetime>";
const ID: &str = "<id>";
const NUMBER: &str = "<num>";

/// How operational reports are recognised, compiled from a policy.
#[derive(Debug, Clone)]
pub struct Operational {
    keywords: WordSet,
    stopwords: WordSet,
    units: WordSet,
}

/// A text without its dates, ids and numbers; not empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature {
    text: String,
    ephemeral: bool,
}

impl Signature {
    /// Words and placeholders, one space between them.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The same, as an owned text.
    pub fn into_string(self) -> String {
        self.text
    }

    /// Whether the signature has a `<num>` or a `<datetime>`: data that the next report replaces.
    pub fn is_ephemeral(&self) -> bool {
        self.ephemeral
    }
}

impl Operational {
    /// The recogniser with the keywords, stopwords and units of a policy.
    pub fn new(policy: &Collapse) -> Self {
        Operational {
            keywords: WordSet::new(&policy.keywords),
            stopwords: WordSet::new(&policy.stopwords),
            units: WordSet::new(&policy.units),
        }
    }

    /// The signature of a text; none if no word and no placeholder remains.
    ///
    /// Decimal digits of other scripts are written as ASCII digits, also inside words.
    pub fn signature(&self, text: &str) -> Option<Signature> {
        let normal = lowered(text);
        let mut signature = Signature { text: String::with_capacity(normal.len()), ephemeral: false };
        for piece in Pieces::new(&normal, &self.units) {
            match piece {
                Piece::Text(text) => words(text).for_each(|word| signature.push(&stem(word))),
                Piece::Id(_) => signature.push(ID),
                Piece::Datetime(_) => {
                    signature.push(DATETIME);
                    signature.ephemeral = true;
                }
                Piece::Number { unit, .. } => {
                    signature.push(NUMBER);
                    signature.ephemeral = true;
                    if !unit.is_empty() {
                        signature.push(&stem(unit));
                    }
                }
            }
        }
        (!signature.text.is_empty()).then_some(signature)
    }

    /// Whether a keyword is a whole word of the text, in NFKC and lower case as in the signature.
    ///
    /// Words are compared unstemmed, because the list of keywords has their plurals.
    pub fn has_keyword(&self, text: &str) -> bool {
        words(&lowered(text)).any(|word| self.keywords.contains(word))
    }

    /// Whether a text with this signature is operational, as far as the text tells. The caller checks the
    /// kind.
    pub fn is_operational(&self, text: &str, signature: &Signature) -> bool {
        signature.is_ephemeral() && self.has_keyword(text)
    }

    /// The meaningful words of a signature, stemmed, sorted by bytes, each once.
    pub fn tokens(&self, signature: &str) -> Vec<String> {
        self.token_words(signature).into_iter().map(Cow::into_owned).collect()
    }

    /// The tokens of a signature with one space between them; none if there are fewer than `min`.
    pub fn token_key(&self, signature: &str, min: usize) -> Option<String> {
        let tokens = self.token_words(signature);
        if tokens.is_empty() || tokens.len() < min {
            return None;
        }
        let mut key = String::with_capacity(signature.len());
        tokens.iter().for_each(|token| push_word(&mut key, token));
        Some(key)
    }

    fn token_words<'a>(&self, signature: &'a str) -> Vec<Cow<'a, str>> {
        let words = signature.split(' ').filter(|word| !word.is_empty() && !word.starts_with('<'));
        let words = words.filter(|word| !self.stopwords.contains(word)).map(stem);
        let mut tokens: Vec<Cow<'a, str>> = words.filter(|word| !self.stopwords.contains(word)).collect();
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }
}

impl Signature {
    fn push(&mut self, word: &str) {
        push_word(&mut self.text, word);
    }
}

fn push_word(text: &mut String, word: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(word);
}

/// The singular of an English plural, roughly.
pub(super) fn stem(word: &str) -> Cow<'_, str> {
    if !word.ends_with('s') {
        return Cow::Borrowed(word);
    }
    if word == "statuses" {
        return Cow::Borrowed("status");
    }
    let longer_than = |chars: usize| word.chars().nth(chars).is_some();
    match (word.strip_suffix("ies"), word.strip_suffix('s')) {
        (Some(start), _) if longer_than(5) => Cow::Owned(format!("{start}y")),
        (_, Some(start)) if longer_than(4) && !start.ends_with(['s', 'u']) => Cow::Borrowed(start),
        _ => Cow::Borrowed(word),
    }
}

#[cfg(test)]
mod tests;
