//! Parts that change from one message of a program to the next: times, ids, counters.
//!
//! A pattern looks only at text that no edit covers yet, so nothing is replaced twice. Whether a match stands
//! alone is decided on the text before any edit. A mark belongs to the letter or digit before it.

use std::borrow::Cow;
use std::ops::Range;

use regex::Regex;
use regex::RegexBuilder;

use crate::error::Error;
use crate::error::Result;
use crate::limits::REGEX_BYTES_MAX;
use crate::policy::MessagePattern;
use crate::text::digit::is_digit;
use crate::text::words::is_word;

/// The least length of a run of digits that counts as an id.
const ID_DIGITS_MIN: usize = 15;

/// The least length of a run of hex characters that counts as a hash.
const HEX_DIGITS_MIN: usize = 7;

/// Names whose number is a counter.
const COUNTERS: [&str; 5] = ["run=", "job=", "build=", "attempt=", "retry="];

/// A part of a text, in bytes, and its replacement.
#[derive(Clone, Debug)]
pub(super) struct Edit<'p> {
    pub(super) range: Range<usize>,
    pub(super) put: Cow<'p, str>,
}

/// A pattern, ready to search.
#[derive(Clone, Debug)]
pub(super) enum Noise {
    Datetime,
    Clock,
    LongDigits,
    Hex,
    Counter,
    Custom { regex: Regex, put: String },
}

impl Noise {
    pub(super) fn new(pattern: &MessagePattern) -> Result<Noise> {
        Ok(match pattern {
            MessagePattern::Datetime => Noise::Datetime,
            MessagePattern::Clock => Noise::Clock,
            MessagePattern::LongDigits => Noise::LongDigits,
            MessagePattern::Hex => Noise::Hex,
            MessagePattern::Custom { regex, put } => {
                let built = RegexBuilder::new(regex).size_limit(REGEX_BYTES_MAX).build();
                let refused = |error| Error::Policy {
                    place: "msg.patterns".to_owned(),
                    why: format!("invalid regular expression {regex:?}: {error}"),
                };
                Noise::Custom { regex: built.map_err(refused)?, put: put.clone() }
            }
        })
    }

    /// `edits`, and between them an edit for each match of this pattern; in order.
    pub(super) fn replaced<'p>(&'p self, base: &str, edits: Vec<Edit<'p>>) -> Vec<Edit<'p>> {
        let mut all = Vec::with_capacity(edits.len());
        let mut from = 0;
        for edit in edits {
            self.search(base, from..edit.range.start, &mut all);
            from = edit.range.end;
            all.push(edit);
        }
        self.search(base, from..base.len(), &mut all);
        all
    }

    fn search<'p>(&'p self, base: &str, gap: Range<usize>, found: &mut Vec<Edit<'p>>) {
        match self {
            Noise::Datetime => scan(base, gap, "<ts>", datetime, found),
            Noise::Clock => scan(base, gap, "<time>", clock, found),
            Noise::LongDigits => scan(base, gap, "<id>", long_digits, found),
            Noise::Hex => scan(base, gap, "<hex>", hex, found),
            Noise::Counter => scan(base, gap, "<n>", counter, found),
            Noise::Custom { regex, put } => search(base, gap, regex, put, found),
        }
    }
}

/// The part that a built-in pattern replaces at the beginning of a text. The function says whether a match that ends
/// at a given place would stand alone.
type Pattern = fn(&str, &dyn Fn(usize) -> bool) -> Option<Range<usize>>;

fn scan<'p>(base: &str, gap: Range<usize>, put: &'p str, pattern: Pattern, found: &mut Vec<Edit<'p>>) {
    let text = base.get(gap.clone()).unwrap_or_default();
    let mut inside = word_before(base, gap.start);
    let mut next = gap.start;
    for (at, c) in text.char_indices() {
        let start = gap.start + at;
        let word = is_word(c);
        if start >= next && !(word && inside) {
            let alone = |len| !word_at(base, start + len);
            if let Some(range) = text.get(at..).and_then(|rest| pattern(rest, &alone)) {
                next = start + range.end;
                found.push(Edit { range: start + range.start..next, put: Cow::Borrowed(put) });
            }
        }
        inside = word;
    }
}

/// The matches of a custom pattern, one after the other. A match that does not stand alone is left unchanged.
fn search<'p>(base: &str, gap: Range<usize>, regex: &Regex, put: &'p str, found: &mut Vec<Edit<'p>>) {
    for matched in regex.find_iter(base.get(gap.clone()).unwrap_or_default()) {
        let range = gap.start + matched.start()..gap.start + matched.end();
        if !range.is_empty() && !word_before(base, range.start) && !word_at(base, range.end) {
            found.push(Edit { range, put: Cow::Borrowed(put) });
        }
    }
}

fn word_before(base: &str, at: usize) -> bool {
    base.get(..at).and_then(|text| text.chars().next_back()).is_some_and(is_word)
}

fn word_at(base: &str, at: usize) -> bool {
    base.get(at..).and_then(|text| text.chars().next()).is_some_and(is_word)
}

/// How far a text has been read, and where the longest match that stands alone ends.
struct Reading<'t> {
    text: &'t str,
    at: usize,
    end: Option<usize>,
}

impl<'t> Reading<'t> {
    fn new(text: &'t str) -> Self {
        Reading { text, at: 0, end: None }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Reads one accepted character.
    fn one(&mut self, does: impl Fn(char) -> bool) -> Option<()> {
        let c = self.rest().chars().next().filter(|c| does(*c))?;
        self.at += c.len_utf8();
        Some(())
    }

    fn digits(&mut self, count: usize) -> Option<()> {
        (0..count).try_for_each(|_| self.one(is_digit))
    }

    /// Notes that a match may end here.
    fn may_end(&mut self, alone: &dyn Fn(usize) -> bool) {
        if alone(self.at) {
            self.end = Some(self.at);
        }
    }

    /// H:MM or HH:MM.
    fn hours_and_minutes(&mut self) -> Option<()> {
        self.digits(1)?;
        if self.one(|c| c == ':').is_none() {
            self.digits(1)?;
            self.one(|c| c == ':')?;
        }
        self.digits(2)
    }

    /// Reads `part`, or nothing.
    fn try_read(&mut self, part: impl Fn(&mut Self) -> Option<()>) -> bool {
        let from = self.at;
        let read = part(self).is_some();
        if !read {
            self.at = from;
        }
        read
    }
}

fn is_sign(c: char) -> bool {
    c == '+' || c == '-'
}

fn seconds(reading: &mut Reading<'_>) -> Option<()> {
    reading.one(|c| c == ':')?;
    reading.digits(2)
}

/// A point, or a comma as in ISO 8601 and many logs, and digits.
fn fraction(reading: &mut Reading<'_>) -> Option<()> {
    reading.one(|c| c == '.' || c == ',')?;
    reading.digits(1)?;
    while reading.one(is_digit).is_some() {}
    Some(())
}

/// Z, +HH:MM or +HHMM, with or without a space before it.
fn zone(reading: &mut Reading<'_>) -> Option<()> {
    reading.try_read(|reading| reading.one(|c| c == ' '));
    if reading.try_read(|reading| reading.one(|c| c.eq_ignore_ascii_case(&'z'))) {
        return Some(());
    }
    reading.one(is_sign)?;
    reading.digits(2)?;
    reading.try_read(|reading| reading.one(|c| c == ':'));
    reading.digits(2)
}

/// A date, a space or T, and a clock time with what may follow it. A date alone is left unchanged.
fn datetime(text: &str, alone: &dyn Fn(usize) -> bool) -> Option<Range<usize>> {
    let mut reading = Reading::new(text);
    reading.digits(4)?;
    for _ in 0..2 {
        reading.one(|c| c == '-')?;
        reading.digits(2)?;
    }
    reading.one(|c| c == ' ' || c.eq_ignore_ascii_case(&'t'))?;
    reading.hours_and_minutes()?;
    reading.may_end(alone);
    if reading.try_read(seconds) {
        reading.may_end(alone);
        if reading.try_read(fraction) {
            reading.may_end(alone);
        }
    }
    if reading.try_read(zone) {
        reading.may_end(alone);
    }
    reading.end.map(|end| 0..end)
}

/// H:MM or HH:MM, perhaps with seconds, AM or PM.
fn clock(text: &str, alone: &dyn Fn(usize) -> bool) -> Option<Range<usize>> {
    let mut reading = Reading::new(text);
    reading.hours_and_minutes()?;
    reading.may_end(alone);
    if reading.try_read(seconds) {
        reading.may_end(alone);
    }
    let half = |reading: &mut Reading<'_>| {
        reading.try_read(|reading| reading.one(|c| c == ' '));
        reading.one(|c| "AaPp".contains(c))?;
        reading.one(|c| "Mm".contains(c))
    };
    if reading.try_read(half) {
        reading.may_end(alone);
    }
    reading.end.map(|end| 0..end)
}

fn long_digits(text: &str, alone: &dyn Fn(usize) -> bool) -> Option<Range<usize>> {
    let mut reading = Reading::new(text);
    reading.digits(ID_DIGITS_MIN)?;
    while reading.one(is_digit).is_some() {}
    alone(reading.at).then_some(0..reading.at)
}

/// A run with at least one digit and one letter. So neither `defaced` nor `1234567` is a match.
fn hex(text: &str, alone: &dyn Fn(usize) -> bool) -> Option<Range<usize>> {
    let run = text.split(|c: char| !c.is_ascii_hexdigit()).next()?;
    let mixed = run.contains(|c: char| c.is_ascii_digit()) && run.contains(|c: char| c.is_ascii_alphabetic());
    (run.len() >= HEX_DIGITS_MIN && mixed && alone(run.len())).then_some(0..run.len())
}

/// The number of `(#123)`, or the number after a name such as `run=`, in any case.
fn counter(text: &str, alone: &dyn Fn(usize) -> bool) -> Option<Range<usize>> {
    let named = COUNTERS.iter().find_map(|name| {
        text.get(..name.len()).filter(|start| start.eq_ignore_ascii_case(name)).map(str::len)
    });
    let start = named.or_else(|| text.starts_with("(#").then_some(2))?;
    let mut reading = Reading { at: start, ..Reading::new(text) };
    reading.digits(1)?;
    while reading.one(is_digit).is_some() {}
    let ends = if named.is_some() { alone(reading.at) } else { reading.rest().starts_with(')') };
    ends.then_some(start..reading.at)
}
