//! What a query in words asks for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use unicode_normalization::char::is_combining_mark;

use super::Analyzer;
use super::Role;
use super::fold::cut;
use super::fold::fold;
use super::fold::is_apostrophe;
use super::fold::lower;
use super::is_unspaced;
use super::is_word;
use crate::limits::QUERY_CLAUSES_MAX;
use crate::limits::TERM_BYTES_MAX;
use crate::text::words::compatible;

/// The least number of characters before the `*` of a prefix.
const PREFIX_CHARS_MIN: usize = 2;

/// Opening quotes, each with its closing quotes.
const QUOTES: [(char, &[char]); 7] = [
    ('"', &['"']),
    ('\u{201C}', &['\u{201D}']),
    ('\u{201E}', &['\u{201C}', '\u{201D}']),
    ('\u{AB}', &['\u{BB}']),
    ('\u{BB}', &['\u{AB}']),
    ('\u{300C}', &['\u{300D}']),
    ('\u{300E}', &['\u{300F}']),
];

/// One thing that a query asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Clause {
    /// A term.
    Term {
        /// The term, as the analyzer gives it.
        term: String,
    },
    /// Any term with this prefix.
    Prefix {
        /// The prefix, folded and not stemmed.
        prefix: String,
        /// The term of the prefix as a word, where the word has only this one and it does not begin with the prefix, because
        /// its stem is shorter or ends otherwise. So a plain word with a star is found wherever the word alone is.
        word: Option<String>,
    },
    /// Terms at these distances from each other.
    Phrase {
        /// The terms, at least two and at most [`QUERY_CLAUSES_MAX`]. Each has its position behind the first;
        /// ascending from 0.
        terms: Vec<(String, u32)>,
    },
}

/// What a query in words asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextQuery {
    /// Each clause once, at most [`QUERY_CLAUSES_MAX`], in the order of their first occurrence, with the number of
    /// occurrences.
    pub clauses: Vec<(Clause, u32)>,
    /// Whether the query had more clauses than are kept.
    pub cut: bool,
}

impl Analyzer {
    /// Reads a query: words, words that end in `*`, and phrases in double quotes.
    ///
    /// The terms of loose words are those of [`Analyzer::analyze`]. If there are loose words, the words of a phrase
    /// count as single clauses as well.
    pub(crate) fn parse_query(&self, text: &str) -> TextQuery {
        let text = compatible(text);
        let segments = segments(&text);
        let loose =
            segments.iter().any(|segment| !segment.quoted && segment.text.contains(char::is_alphanumeric));
        let mut clauses = Clauses::default();
        for segment in segments {
            if segment.quoted {
                self.phrase(segment.text, loose, &mut clauses);
            } else {
                self.loose(segment.text, &mut clauses);
            }
        }
        TextQuery { clauses: clauses.list, cut: clauses.cut }
    }

    /// Words outside quotes.
    fn loose(&self, text: &str, clauses: &mut Clauses) {
        let mut from = 0;
        for chunk in text.split_whitespace() {
            let Some((before, run, prefix)) = prefix(chunk) else { continue };
            // The chunk lies in the text, so the difference of their addresses is its position.
            let at = chunk.as_ptr() as usize - text.as_ptr() as usize;
            self.terms(text.get(from..at + before.len()).unwrap_or_default(), clauses);
            let word = self.one_term(run).filter(|term| !term.starts_with(&prefix));
            clauses.add(Clause::Prefix { prefix, word });
            from = at + chunk.len();
        }
        self.terms(text.get(from..).unwrap_or_default(), clauses);
    }

    fn terms(&self, text: &str, clauses: &mut Clauses) {
        self.analyze(text, &mut |term, _| clauses.add(single(term.to_owned())));
    }

    /// The term of a text that has only one.
    fn one_term(&self, text: &str) -> Option<String> {
        let mut terms = Vec::new();
        self.analyze(text, &mut |term, _| terms.push(term.to_owned()));
        match <[String; 1]>::try_from(terms) {
            Ok([term]) => Some(term),
            Err(_) => None,
        }
    }

    /// The words in a pair of quotes.
    fn phrase(&self, text: &str, loose: bool, clauses: &mut Clauses) {
        let mut terms = Vec::new();
        self.walk(text, &mut |term, position, role| match role {
            Role::Word if terms.len() < QUERY_CLAUSES_MAX => terms.push((term.to_owned(), position)),
            Role::Word => clauses.cut = true,
            Role::Part | Role::Compound => {}
        });
        if terms.len() > 1 {
            clauses.add(Clause::Phrase { terms });
        } else if !loose {
            terms.into_iter().for_each(|(term, _)| clauses.add(single(term)));
        }
        if loose {
            self.terms(text, clauses);
        }
    }
}

/// The clauses so far.
#[derive(Default)]
struct Clauses {
    list: Vec<(Clause, u32)>,
    places: HashMap<Clause, usize>,
    cut: bool,
}

impl Clauses {
    fn add(&mut self, clause: Clause) {
        let next = self.list.len();
        match self.places.entry(clause) {
            Entry::Occupied(place) => {
                if let Some((_, count)) = self.list.get_mut(*place.get()) {
                    *count = count.saturating_add(1);
                }
            }
            Entry::Vacant(_) if next == QUERY_CLAUSES_MAX => self.cut = true,
            Entry::Vacant(place) => {
                self.list.push((place.key().clone(), 1));
                place.insert(next);
            }
        }
    }
}

/// A stretch of a query.
struct Segment<'a> {
    text: &'a str,
    quoted: bool,
}

/// The query, divided at its quotes. A quote opens where no word ends, and closes where no word begins. So inch signs
/// and Hebrew abbreviations open nothing. A quote that is never closed is not a quote.
fn segments(text: &str) -> Vec<Segment<'_>> {
    let mut segments = Vec::new();
    // Openers without a closing quote behind them. So they have none further on either.
    let mut vain: Vec<char> = Vec::new();
    let (mut from, mut past, mut last) = (0, 0, ' ');
    for (at, c) in text.char_indices() {
        let opens = at >= past && !is_word(last) && !vain.contains(&c);
        last = c;
        let Some((_, closers)) = QUOTES.iter().find(|(opener, _)| opens && *opener == c) else { continue };
        let inner = text.get(at + c.len_utf8()..).unwrap_or_default();
        let Some((end, closer)) = inner
            .match_indices(*closers)
            .find(|(end, closer)| !inner.get(end + closer.len()..).unwrap_or_default().starts_with(is_word))
        else {
            vain.push(c);
            continue;
        };
        segments.push(Segment { text: text.get(from..at).unwrap_or_default(), quoted: false });
        segments.push(Segment { text: inner.get(..end).unwrap_or_default(), quoted: true });
        from = at + c.len_utf8() + end + closer.len();
        past = from;
    }
    segments.push(Segment { text: text.get(from..).unwrap_or_default(), quoted: false });
    segments
}

/// The clause of one term. One character of a script without spaces, with its marks, is a term of the index only where it
/// has no neighbour, so it asks for the pairs that it begins as well.
fn single(term: String) -> Clause {
    let mut characters = term.chars();
    match characters.next().is_some_and(is_unspaced) && characters.all(is_combining_mark) {
        true => Clause::Prefix { prefix: term, word: None },
        false => Clause::Term { term },
    }
}

/// What stands before the prefix at the end of a piece without white space, the prefix as it stands there, and folded.
fn prefix(chunk: &str) -> Option<(&str, &str, String)> {
    let starred = chunk.trim_end_matches(|c: char| c != '*' && !is_word(c)).strip_suffix('*')?;
    let inside = |c: char| {
        is_word(c)
            || is_apostrophe(c)
            || matches!(c, '_' | '-' | '.' | '/' | ':' | '@' | '+' | '\\' | '\u{2010}')
    };
    let start = starred.char_indices().rev().take_while(|(_, c)| inside(*c)).last().map(|(at, _)| at)?;
    let (before, run) = starred.split_at_checked(start)?;
    let stem = run.trim_start_matches(|c| !is_word(c));
    if before.ends_with('*') || stem.contains(is_unspaced) {
        return None;
    }
    let mut small = String::new();
    lower(stem, TERM_BYTES_MAX, &mut small);
    let mut prefix = String::new();
    fold(&small, TERM_BYTES_MAX, &mut prefix);
    cut(&mut prefix, TERM_BYTES_MAX);
    (prefix.chars().count() >= PREFIX_CHARS_MIN).then_some((before, stem, prefix))
}
