//! How texts become the terms of the full-text index.
//!
//! A text is brought into the form that near repeats also use (NFKC, ASCII decimal digits). It is divided at white
//! space, each piece into words (Unicode Standard Annex 29), and each word into its parts. The result has three roles
//! of terms: words, parts of words, and compounds of words. `docs/recall.md` has the rules with examples.
//!
//! Positions count words. A compound stands at the position of its first word. The parts of a word stand at the
//! position of the word and the following ones, beside the words that follow. So a phrase finds a name by its parts,
//! and finds what stands beside the name however the name is written.

mod fold;
mod function;
mod query;
mod stem;

#[cfg(test)]
mod tests;

pub(crate) use query::Clause;
pub(crate) use query::TextQuery;

use std::collections::VecDeque;
use std::ops::Range;

use fold::is_apostrophe;
use fold::is_ignored;
use stem::Stems;
use stem::without_possessive;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use super::bigram::bigrams;
use super::bigram::is_unspaced;
use super::bigram::runs;
use super::words::compatible;
use super::words::is_word;
use crate::policy::Stemming;

/// The name of the rules in this file. Other rules get another name.
const RULES: &str = "terms-1";

/// The largest number of parts of a word. A word with more parts is a hash or an encoded key, and is kept
/// whole only.
const PARTS_MAX: usize = 8;

/// How texts become terms. The id of the analyzer is stored with every index, because an index is read only with the
/// analyzer that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Analyzer {
    stemming: Stemming,
}

/// The role of a term in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A word, a bigram or an emoji. Each position has one.
    Word,
    /// A piece of a word: `user` of `getUserName`.
    Part,
    /// Words with their joining signs: `src/main.rs`.
    Compound,
}

impl Analyzer {
    /// An analyzer with this stemming.
    pub(crate) fn new(stemming: Stemming) -> Self {
        Analyzer { stemming }
    }

    /// The id of the rules and the stemming: `terms-1/english`.
    pub(crate) fn id(&self) -> String {
        format!("{RULES}/{}", self.stemming.as_str())
    }

    /// The analyzer with this id, if this version knows it.
    pub(crate) fn from_id(id: &str) -> Option<Self> {
        let (rules, stemming) = id.split_once('/')?;
        let made = Analyzer::new(stemming.parse().ok().filter(|_| rules == RULES)?);
        // Names are read in any letters, and an id is written in one way.
        Some(made).filter(|made| made.id() == id)
    }

    /// Calls `take(term, position)` for each term of `text`.
    ///
    /// A term has 1 to [`TERM_BYTES_MAX`](crate::limits::TERM_BYTES_MAX) bytes. Positions begin at 0 and never go back. Words have consecutive
    /// positions, other terms share them, and one term can come twice at one position. The cost is linear in the text.
    pub(crate) fn analyze(&self, text: &str, take: &mut dyn FnMut(&str, u32)) {
        self.walk(text, &mut |term, position, _| take(term, position));
    }

    fn walk(&self, text: &str, take: &mut dyn FnMut(&str, u32, Role)) {
        let text = compatible(text);
        let mut walk = Walk::new(self.stemming, take);
        for chunk in text.split_whitespace() {
            match plain(chunk) {
                Some(word) => walk.plain(word),
                None => walk.chunk(chunk),
            }
        }
        walk.finish();
    }
}

/// The word of a piece that consists of one word of ASCII letters without inner capitals, and punctuation around it.
fn plain(chunk: &str) -> Option<&str> {
    let bytes = chunk.as_bytes();
    let start = bytes.iter().position(|byte| !byte.is_ascii_punctuation())?;
    let end = bytes.iter().rposition(|byte| !byte.is_ascii_punctuation())? + 1;
    let word = chunk.get(start..end)?;
    let (first, rest) = word.as_bytes().split_first()?;
    let small = || rest.iter().all(u8::is_ascii_lowercase);
    let capital = || rest.iter().all(u8::is_ascii_uppercase);
    let plain = match first {
        b'a'..=b'z' => small(),
        b'A'..=b'Z' => small() || capital(),
        _ => false,
    };
    plain.then_some(word)
}

/// A walk through a text.
struct Walk<'a> {
    stems: Stems,
    /// The position of the next word.
    position: u32,
    /// Parts that stand at later positions, in order.
    later: VecDeque<(u32, String)>,
    /// Words that the next word may join: their places in the present run.
    open: Vec<Range<usize>>,
    take: &'a mut dyn FnMut(&str, u32, Role),
}

impl<'a> Walk<'a> {
    fn new(stemming: Stemming, take: &'a mut dyn FnMut(&str, u32, Role)) -> Self {
        Walk { stems: Stems::new(stemming), position: 0, later: VecDeque::new(), open: Vec::new(), take }
    }

    /// Takes a word of ASCII letters that has no parts.
    fn plain(&mut self, word: &str) {
        self.catch_up();
        let term = self.stems.plain(word);
        (self.take)(term, self.position, Role::Word);
        self.position = self.position.saturating_add(1);
    }

    /// Takes a piece without white space.
    fn chunk(&mut self, chunk: &str) {
        if chunk.is_ascii() {
            return self.run(chunk);
        }
        for (unspaced, run) in runs(chunk, |c| is_unspaced(c) && is_word(c)) {
            if unspaced {
                bigrams(run, &mut |pair| self.word(pair));
            } else {
                self.run(run);
            }
        }
    }

    /// Takes a run of scripts that write spaces.
    fn run(&mut self, run: &str) {
        if run.is_ascii() {
            ascii_words(run, self.stems.elides(), &mut |word| self.join(run, word));
            return self.close(run);
        }
        for (at, piece) in run.split_word_bound_indices() {
            if piece.contains(char::is_alphanumeric) {
                words_of(piece, self.stems.elides(), &mut |word| {
                    self.join(run, at + word.start..at + word.end)
                });
            } else if piece.contains(is_emoji) {
                self.close(run);
                self.word(piece);
            }
        }
        self.close(run);
    }

    /// Takes the next word of the run.
    fn join(&mut self, run: &str, word: Range<usize>) {
        if !self.open.last().is_none_or(|last| joined(run, last, &word)) {
            self.close(run);
        }
        self.open.push(word);
    }

    /// Ends the joined words, and gives their compound.
    fn close(&mut self, run: &str) {
        let mut open = std::mem::take(&mut self.open);
        if let [first, .., last] = open.as_slice() {
            let grouped = run.get(first.end..).is_some_and(|rest| rest.starts_with(','));
            let compound = run.get(first.start..last.end).unwrap_or_default();
            self.catch_up();
            let term = self.stems.compound(without_possessive(compound), grouped);
            if !term.is_empty() {
                (self.take)(term, self.position, Role::Compound);
            }
        }
        for word in open.drain(..) {
            self.word(without_possessive(run.get(word).unwrap_or_default()));
        }
        self.open = open;
    }

    /// Takes a word and its parts.
    fn word(&mut self, word: &str) {
        self.catch_up();
        let term = self.stems.term(word);
        if term.is_empty() {
            return;
        }
        (self.take)(term, self.position, Role::Word);
        let mut starts = [0; PARTS_MAX];
        let parts = parts_of(word, &mut starts);
        if let [_, inner @ ..] = parts
            && !inner.is_empty()
        {
            let ends = inner.iter().copied().chain(std::iter::once(word.len()));
            for ((start, end), position) in parts.iter().zip(ends).zip(self.position..) {
                let term = self.stems.term(word.get(*start..end).unwrap_or_default());
                if position == self.position && !term.is_empty() {
                    (self.take)(term, position, Role::Part);
                } else if !term.is_empty() {
                    let at = self.later.partition_point(|(other, _)| *other <= position);
                    self.later.insert(at, (position, term.to_owned()));
                }
            }
        }
        self.position = self.position.saturating_add(1);
    }

    /// Gives the parts that stand at the position of the next word, or before it.
    fn catch_up(&mut self) {
        while let Some((position, part)) = self.later.pop_front() {
            if position > self.position {
                self.later.push_front((position, part));
                return;
            }
            (self.take)(&part, position, Role::Part);
        }
    }

    fn finish(&mut self) {
        while let Some((position, part)) = self.later.pop_front() {
            (self.take)(&part, position, Role::Part);
        }
    }
}

/// The words of a piece that Unicode does not divide: runs of letters, digits and marks. An apostrophe between letters
/// belongs to the word, unless the language elides there.
fn words_of(piece: &str, elides: bool, word: &mut dyn FnMut(Range<usize>)) {
    let (mut start, mut letter) = (None, false);
    for (at, c) in piece.char_indices() {
        let inside = is_word(c) || is_ignored(c) || (letter && is_apostrophe(c) && !elides);
        letter = c.is_alphabetic() || (letter && (is_combining_mark(c) || is_ignored(c)));
        match start {
            None if is_word(c) && !is_combining_mark(c) => start = Some(at),
            Some(from) if !inside => {
                word(from..at);
                start = None;
            }
            _ => {}
        }
    }
    if let Some(from) = start {
        word(from..piece.len());
    }
}

/// The words that [`words_of`] finds in all pieces of a run of ASCII. In ASCII Unicode divides wherever no two letters
/// or digits meet. The exceptions are an apostrophe between letters, and signs at which a word is divided anyway.
fn ascii_words(run: &str, elides: bool, word: &mut dyn FnMut(Range<usize>)) {
    let mut start = None;
    let mut bytes = run.bytes().enumerate().peekable();
    let mut letter = false;
    while let Some((at, byte)) = bytes.next() {
        let apostrophe = byte == b'\'' && letter && !elides;
        let inside = byte.is_ascii_alphanumeric()
            || (apostrophe && bytes.peek().is_some_and(|(_, next)| next.is_ascii_alphabetic()));
        letter = byte.is_ascii_alphabetic();
        match start {
            None if inside => start = Some(at),
            Some(from) if !inside => {
                word(from..at);
                start = None;
            }
            _ => {}
        }
    }
    if let Some(from) = start {
        word(from..run.len());
    }
}

/// Whether the text between two words makes a compound of them.
fn joined(run: &str, last: &Range<usize>, next: &Range<usize>) -> bool {
    let digits =
        |range: &Range<usize>| run.get(range.clone()).filter(|word| word.bytes().all(|b| b.is_ascii_digit()));
    match run.get(last.end..next.start).unwrap_or_default() {
        "_" | "-" | "." | "/" | ":" | "@" | "+" | "\\" | "\u{2010}" | "::" | "://" | "__" => true,
        // Thousands: `1,000`.
        "," => digits(last).is_some_and(|n| n.len() <= 3) && digits(next).is_some_and(|n| n.len() == 3),
        _ => false,
    }
}

/// Where the parts of a word begin: between letters and digits, before a capital behind a small letter, and before the
/// last of several capitals when a small letter follows, unless that letter is the `s` of a plural. If a word has too
/// many parts, only the word itself.
fn parts_of<'a>(word: &str, starts: &'a mut [usize; PARTS_MAX]) -> &'a [usize] {
    let mut count = 1;
    let mut last: Option<(usize, Kind)> = None;
    let mut capitals = 0;
    for (at, c) in word.char_indices() {
        let Some(kind) = Kind::of(c) else {
            if is_apostrophe(c) {
                (last, capitals) = (None, 0);
            }
            continue;
        };
        let boundary = match (last, kind) {
            (None, _) => None,
            (Some((_, Kind::Digit)), _) | (Some(_), Kind::Digit)
                if last.map(|(_, kind)| kind) != Some(kind) =>
            {
                Some(at)
            }
            (Some((_, Kind::Small)), Kind::Capital) => Some(at),
            (Some((capital, Kind::Capital)), Kind::Small) if capitals > 1 && word.get(at..) != Some("s") => {
                Some(capital)
            }
            _ => None,
        };
        if let Some(at) = boundary {
            let Some(start) = starts.get_mut(count) else { return starts.get(..1).unwrap_or_default() };
            *start = at;
            count += 1;
        }
        capitals = if kind == Kind::Capital { capitals + 1 } else { 0 };
        last = Some((at, kind));
    }
    starts.get(..count).unwrap_or_default()
}

/// The role of a character in the parts of its word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Capital,
    /// A small letter, or a letter of a script without capitals.
    Small,
    Digit,
}

impl Kind {
    /// None for a character that belongs to the character before it.
    fn of(c: char) -> Option<Kind> {
        match c {
            _ if c.is_numeric() => Some(Kind::Digit),
            _ if c.is_uppercase() => Some(Kind::Capital),
            _ if c.is_alphabetic() && !is_combining_mark(c) => Some(Kind::Small),
            _ => None,
        }
    }
}

/// A pictograph: the blocks that hold the emoji of Unicode 17, and the technical signs among them.
fn is_emoji(c: char) -> bool {
    matches!(c,
        '\u{231A}'..='\u{231B}' | '\u{23E9}'..='\u{23FA}' | '\u{2600}'..='\u{27BF}'
        | '\u{2B1B}'..='\u{2B1C}' | '\u{2B50}' | '\u{2B55}' | '\u{1F000}'..='\u{1FAFF}')
}
