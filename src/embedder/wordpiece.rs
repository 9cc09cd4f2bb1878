//! WordPiece as the uncased models of BERT use it: which tokens make up a text?
//!
//! The steps and the classes of characters are those of `BasicTokenizer` and `WordpieceTokenizer` in
//! google-research/bert (`tokenization.py`). The order is that of the `tokenizers` library, which
//! sentence-transformers runs: control characters are dropped, ideographs stand alone, accents are stripped, letters
//! are lowered one by one, and words end at white space and at punctuation. A text is only text here: `[CLS]` in a
//! text is five words, not the special token.

use super::keys::{EMPTY, Entry, Inserted, Keys, put, with};
use crate::error::{Error, Result};
use unicode_normalization::char::decompose_canonical;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// The longest word, in characters, that is looked up. A longer word is unknown. BERT calls this
/// `max_input_chars_per_word`.
const WORD_CHARS_MAX: usize = 100;

/// The largest vocabulary, in bytes of text: thirty times that of a model for a hundred languages.
const VOCABULARY_BYTES_MAX: usize = 16 << 20;

/// The mark before a token that continues a word.
const CONTINUES: &str = "##";

/// The token for a word that the vocabulary cannot spell.
const UNKNOWN: &str = "[UNK]";

/// A vocabulary, ready to divide texts.
#[derive(Debug)]
pub(crate) struct WordPiece {
    /// The tokens that begin a word, the special tokens among them.
    begins: Keys,
    /// The tokens that continue a word, without their mark.
    continues: Keys,
    unknown: u32,
    len: usize,
}

/// A vocabulary that the compiler has read, of so many tokens: at most 2^15, of which at most 2^13 continue a word.
pub(super) struct Laid<const TOKENS: usize> {
    tokens: [Entry; TOKENS],
    begins: [u32; 1 << 16],
    continues: [u32; 1 << 14],
    /// The bytes of the longest tokens of both.
    longest: (usize, usize),
}

impl<const TOKENS: usize> Laid<TOKENS> {
    /// Reads the part of `bytes` from `at` up to `end`, with one token on each line, each line ended by `\n`. The number of a line
    /// is the id of its token. No token may stand twice.
    #[expect(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "the compiler runs it")]
    pub(super) const fn read(bytes: &[u8], mut at: usize, end: usize) -> Self {
        let none = Entry { span: (0, 0), id: 0 };
        let mut laid =
            Laid { tokens: [none; TOKENS], begins: [0; 1 << 16], continues: [0; 1 << 14], longest: (0, 0) };
        let mut id = 0;
        while at < end {
            let goes_on = bytes[at] == b'#' && bytes[at + 1] == b'#' && bytes[at + 2] != b'\n';
            let from = if goes_on { at + CONTINUES.len() } else { at };
            let mut hash = EMPTY;
            at = from;
            while bytes[at] != b'\n' {
                hash = with(hash, bytes[at]);
                at += 1;
            }
            laid.tokens[id] = Entry { span: (from as u32, at as u32), id: id as u32 };
            id += 1;
            let (places, longest): (&mut [u32], _) = match goes_on {
                true => (&mut laid.continues, &mut laid.longest.1),
                false => (&mut laid.begins, &mut laid.longest.0),
            };
            assert!(put(places, hash, id as u32), "a token has found no place");
            if at - from > *longest {
                *longest = at - from;
            }
            at += 1;
        }
        assert!(id == TOKENS, "the vocabulary has another number of tokens");
        laid
    }
}

impl WordPiece {
    /// The vocabulary that lies in `bytes`; none if it lacks `[UNK]`.
    pub(super) fn of_laid<const TOKENS: usize>(
        laid: &'static Laid<TOKENS>,
        bytes: &'static [u8],
    ) -> Option<Self> {
        let (begins, continues) = laid.longest;
        let begins = Keys::laid(bytes, &laid.tokens, (&laid.begins, begins));
        let continues = Keys::laid(bytes, &laid.tokens, (&laid.continues, continues));
        let unknown = begins.get(UNKNOWN.as_bytes())?;
        Some(Self { begins, continues, unknown, len: TOKENS })
    }

    /// Reads a vocabulary with one token on each line, as `vocab.txt`. The number of a line, from 0, is the id of its
    /// token.
    ///
    /// # Errors
    /// `Invalid` when the tokens have more than 16 MiB, when a token is empty or stands twice, or when `[UNK]` is
    /// missing.
    pub(crate) fn from_vocabulary(text: &str) -> Result<Self> {
        Self::from_tokens(text.lines().zip(0..), text.len())
    }

    /// A vocabulary of tokens and their ids, within the bounds of [`WordPiece::from_vocabulary`]. There is room at once for
    /// tokens of so many bytes.
    pub(super) fn from_tokens<'a>(tokens: impl Iterator<Item = (&'a str, u32)>, room: usize) -> Result<Self> {
        // As in the vocabularies of BERT: a token has seven bytes, and one of five continues a word.
        let room = room.min(VOCABULARY_BYTES_MAX);
        let (mut begins, mut continues, mut bytes, mut len) =
            (Keys::with_room(room / 8, room), Keys::with_room(room / 36, room / 6), 0, 0);
        for (token, id) in tokens {
            bytes += token.len();
            if bytes > VOCABULARY_BYTES_MAX || id as usize >= VOCABULARY_BYTES_MAX {
                let why = format!("must have at most {VOCABULARY_BYTES_MAX} bytes, and ids below that");
                return Err(Error::invalid("vocabulary", why, format!("id {id}")));
            }
            let (keys, spelled) = match token.strip_prefix(CONTINUES) {
                Some(rest) if !rest.is_empty() => (&mut continues, rest),
                _ => (&mut begins, token),
            };
            if spelled.is_empty() {
                return Err(Error::invalid(
                    "vocabulary",
                    "a token must have at least 1 byte",
                    format!("id {id}"),
                ));
            }
            match keys.insert(spelled.as_bytes(), id) {
                Inserted::Done => {}
                Inserted::Twice => {
                    return Err(Error::invalid("vocabulary", "must not have a token twice", token));
                }
                Inserted::Crowded => {
                    let why = "must not have tokens that were chosen to share their hashes";
                    return Err(Error::invalid("vocabulary", why, token));
                }
            }
            len = len.max(id as usize + 1);
        }
        let Some(unknown) = begins.get(UNKNOWN.as_bytes()) else {
            return Err(Error::invalid("vocabulary", "must hold the token [UNK]", format!("{len} tokens")));
        };
        Ok(Self { begins, continues, unknown, len })
    }

    /// The largest id plus one.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The id of the token with this spelling.
    pub(crate) fn id(&self, token: &str) -> Option<u32> {
        match token.strip_prefix(CONTINUES) {
            Some(rest) if !rest.is_empty() => self.continues.get(rest.as_bytes()),
            _ => self.begins.get(token.as_bytes()),
        }
    }

    /// Appends the ids of the first `limit` tokens of `text`, without `[CLS]` and `[SEP]`, and reads no more of the
    /// text than these need.
    pub(crate) fn tokenize(&self, text: &str, limit: usize, out: &mut Vec<u32>) {
        let end = out.len().saturating_add(limit);
        let mut rest = text;
        let mut spelling = Spelling::default();
        while out.len() < end && !rest.is_empty() {
            let plain = rest.bytes().position(|byte| class(byte) != Class::Word).unwrap_or(rest.len());
            let taken = match rest.as_bytes().get(plain).map(|byte| class(*byte)) {
                None | Some(Class::Space | Class::Punctuation | Class::Word) => {
                    let (word, after) = rest.split_at(plain);
                    self.word(word.as_bytes(), plain, out);
                    match after.as_bytes().first() {
                        Some(byte) if class(*byte) == Class::Punctuation => self.word(&[*byte], 1, out),
                        _ => {}
                    }
                    (plain + 1).min(rest.len())
                }
                Some(Class::Control | Class::Wide) => self.spell(rest, end, &mut spelling, out),
            };
            rest = rest.split_at_checked(taken).map_or("", |(_, after)| after);
        }
        out.truncate(end);
    }

    /// Takes words of any script, up to white space or ASCII punctuation. Returns the number of bytes taken.
    fn spell(&self, text: &str, end: usize, spelling: &mut Spelling, out: &mut Vec<u32>) -> usize {
        for (at, c) in text.char_indices() {
            let after = at + c.len_utf8();
            match u8::try_from(c).ok().filter(u8::is_ascii).map_or(Class::Wide, class) {
                Class::Word => spelling.push(c),
                Class::Control => {}
                Class::Space => {
                    self.flush(spelling, out);
                    return after;
                }
                Class::Punctuation => {
                    self.alone(c, spelling, out);
                    return after;
                }
                Class::Wide => self.wide(c, spelling, out),
            }
            if out.len() >= end {
                return after;
            }
        }
        self.flush(spelling, out);
        text.len()
    }

    /// Takes one character beyond ASCII.
    fn wide(&self, c: char, spelling: &mut Spelling, out: &mut Vec<u32>) {
        if c == char::REPLACEMENT_CHARACTER || is_other(c) {
            return;
        }
        if c.is_whitespace() {
            return self.flush(spelling, out);
        }
        let ideograph = is_ideograph(c);
        if ideograph {
            self.flush(spelling, out);
        }
        decompose_canonical(c, |part| {
            if part.general_category() == GeneralCategory::NonspacingMark {
                return;
            }
            for lower in part.to_lowercase() {
                if lower.is_whitespace() {
                    self.flush(spelling, out);
                } else if is_punctuation(lower) {
                    self.alone(lower, spelling, out);
                } else {
                    spelling.push(lower);
                }
            }
        });
        if ideograph {
            self.flush(spelling, out);
        }
    }

    /// Ends the word before `c`, and takes `c` as a word of its own.
    fn alone(&self, c: char, spelling: &mut Spelling, out: &mut Vec<u32>) {
        self.flush(spelling, out);
        spelling.push(c);
        self.flush(spelling, out);
    }

    fn flush(&self, spelling: &mut Spelling, out: &mut Vec<u32>) {
        self.word(spelling.word.as_bytes(), spelling.chars, out);
        spelling.word.clear();
        spelling.chars = 0;
    }

    /// The tokens of one word: the longest token at its beginning, then the longest token that continues from there. A
    /// word that cannot be spelled to its end is unknown as a whole.
    fn word(&self, word: &[u8], chars: usize, out: &mut Vec<u32>) {
        if word.is_empty() {
            return;
        }
        if chars > WORD_CHARS_MAX {
            return out.push(self.unknown);
        }
        let before = out.len();
        let (mut rest, mut keys) = (word, &self.begins);
        while !rest.is_empty() {
            let Some((id, after)) = keys.longest(rest) else {
                out.truncate(before);
                return out.push(self.unknown);
            };
            out.push(id);
            (rest, keys) = (after, &self.continues);
        }
    }
}

/// The word being spelled, as far as it can be looked up.
#[derive(Default)]
struct Spelling {
    word: String,
    chars: usize,
}

impl Spelling {
    fn push(&mut self, c: char) {
        self.chars += 1;
        if self.chars <= WORD_CHARS_MAX {
            self.word.push(c);
        }
    }
}

/// What a byte of UTF-8 means for a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Word,
    Space,
    Punctuation,
    Control,
    /// Part of a character beyond ASCII.
    Wide,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Wide; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        let class = match byte {
            b' ' | b'\t' | b'\n' | b'\r' => Class::Space,
            byte if byte.is_ascii_control() => Class::Control,
            byte if byte.is_ascii_punctuation() => Class::Punctuation,
            _ => Class::Word,
        };
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        {
            classes[byte as usize] = class;
        }
        byte += 1;
    }
    classes
};

fn class(byte: u8) -> Class {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(Class::Wide)
}

/// Whether a character is control, format or private use. Characters that Unicode has not assigned are kept,
/// as in the `tokenizers` library.
fn is_other(c: char) -> bool {
    use GeneralCategory::{Control, Format, PrivateUse};
    !c.is_alphanumeric() && matches!(c.general_category(), Control | Format | PrivateUse)
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
        || (!c.is_alphanumeric() && c.general_category_group() == GeneralCategoryGroup::Punctuation)
}

/// Ideographs of Chinese, in BERT's definition: no kana, no hangul.
fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c),
        0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x2A6DF | 0x2A700..=0x2B73F
        | 0x2B740..=0x2B81F | 0x2B820..=0x2CEAF | 0x2F800..=0x2FA1F)
}

#[cfg(test)]
mod tests;
