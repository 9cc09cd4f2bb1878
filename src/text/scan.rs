//! Datetimes, ids and numbers in a text: the patterns for signatures and guards.
//!
//! The rule replaces one pattern after the other in the whole text. [`Pieces`] finds the same matches in one
//! walk. A pattern begins only where a run of letters and digits begins. So at each run the patterns are
//! tried in the order of the rule, and a pattern of several runs ends before a run where an earlier pattern
//! begins.
//!
//! Each run is read a bounded number of times. Only two patterns can fail after reading an unbounded
//! distance: the tail of a run id, and a chain of units. The place where they failed is kept, because from
//! inside that distance they would fail again.

use std::ops::Range;

use unicode_normalization::char::is_combining_mark;

use super::words::WordSet;

/// The least number of hex characters and dashes after the first dash of a UUID.
const UUID_TAIL_BYTES: usize = 27;
/// The group lengths of a UUID after the first eight characters.
const UUID_GROUPS: [usize; 4] = [4, 4, 4, 12];
/// The least number of hex characters of an id.
const HEX_BYTES: usize = 8;
/// The words before the dash of a run id.
const RUN_ID_WORDS: [&str; 4] = ["run", "req", "request", "msg"];

/// A stretch of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Text that no pattern matches.
    Text(&'a str),
    /// A date, perhaps with a clock time and a zone.
    Datetime(&'a str),
    /// A UUID, a run id or a hex string.
    Id(&'a str),
    /// A number with its `%`, and the unit directly after it, or no unit.
    Number {
        /// Digits with inner dots and commas, and perhaps a `%`.
        number: &'a str,
        /// One of the units, or empty.
        unit: &'a str,
    },
}

/// The pieces of a text in order. Together they are the text.
pub(super) struct Pieces<'a> {
    text: &'a str,
    units: &'a WordSet,
    /// Where the next piece begins.
    at: usize,
    /// A match behind a piece of text, not yet returned.
    found: Option<PatternMatch>,
    /// Numbers with units follow each other up to here.
    chain_end: usize,
    /// A chain of units that begins before this place does not end.
    no_chain_before: usize,
    /// A run id that begins before this place has no digit in its tail.
    no_run_id_before: usize,
}

/// A pattern that matched.
enum PatternMatch {
    Datetime(Range<usize>),
    Id(Range<usize>),
    Number(Range<usize>),
    /// One or more numbers with units, and the place where they end.
    Chain(usize, usize),
}

impl PatternMatch {
    fn start(&self) -> usize {
        match self {
            PatternMatch::Datetime(range) | PatternMatch::Id(range) | PatternMatch::Number(range) => {
                range.start
            }
            PatternMatch::Chain(start, _) => *start,
        }
    }
}

/// The digits of a number, without `%`.
struct Number {
    end: usize,
    /// Where the number would end without its last dot or comma.
    shorter: Option<usize>,
}

/// The role of a character in the patterns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Digit,
    Letter,
    Mark,
    Other,
}

impl<'a> Pieces<'a> {
    /// The pieces of a text as [`super::words::lowered`] makes it.
    ///
    /// A unit is one run of letters; other words of `units` never match.
    pub(super) fn new(text: &'a str, units: &'a WordSet) -> Self {
        Pieces { text, units, at: 0, found: None, chain_end: 0, no_chain_before: 0, no_run_id_before: 0 }
    }

    /// The next pattern from `at` on. `at` must not be inside a run.
    fn next_found(&mut self, mut at: usize) -> Option<PatternMatch> {
        loop {
            at = self.past(at, |class| !matches!(class, Class::Digit | Class::Letter));
            if at >= self.text.len() {
                return None;
            }
            let end = self.run_end(at);
            let found = match self.byte(at)? {
                b'0'..=b'9' => self.datetime(at).map(|end| PatternMatch::Datetime(at..end)).or_else(|| {
                    let id = self.uuid(at, end).or_else(|| self.hex(at, end));
                    id.map(|end| PatternMatch::Id(at..end)).or_else(|| self.number(at))
                }),
                b'a'..=b'f' => {
                    let id = self.uuid(at, end).or_else(|| self.hex(at, end));
                    id.map(|end| PatternMatch::Id(at..end))
                }
                b'r' | b'm' => self.run_id(at, end).map(|end| PatternMatch::Id(at..end)),
                _ => None,
            };
            if found.is_some() {
                return found;
            }
            at = end;
        }
    }

    /// The end of a datetime: of the longest one that stands alone.
    fn datetime(&self, at: usize) -> Option<usize> {
        let date = self.digits(at, 4).and_then(|at| self.digits(self.one(at, b"-")?, 2));
        let date = date.and_then(|at| self.digits(self.one(at, b"-")?, 2))?;
        let mut longest = self.alone(date);
        let Some(minutes) = self.one(date, b" t").and_then(|at| self.clock(at)) else { return longest };
        let mut end = minutes;
        longest = self.alone(end).or(longest);
        if let Some(seconds) = self.one(end, b":").and_then(|at| self.digits(at, 2)) {
            end = seconds;
            longest = self.alone(end).or(longest);
        }
        if let Some(fraction) = self.one(end, b".,").and_then(|at| self.digits(at, 1)) {
            end = self.digits_end(fraction);
            longest = self.alone(end).or(longest);
        }
        let zone = self.zone(end).and_then(|end| self.alone(end));
        zone.or(longest)
    }

    /// The end of `H:MM` or `HH:MM`.
    fn clock(&self, at: usize) -> Option<usize> {
        let hours = self.digits(at, 1)?;
        let hours = self.digits(hours, 1).unwrap_or(hours);
        self.digits(self.one(hours, b":")?, 2)
    }

    /// The end of a zone, with or without a space before it.
    fn zone(&self, at: usize) -> Option<usize> {
        let at = self.one(at, b" ").unwrap_or(at);
        if let Some(end) = self.one(at, b"z") {
            return Some(end);
        }
        let hours = self.digits(self.one(at, b"+-")?, 2)?;
        self.digits(self.one(hours, b":").unwrap_or(hours), 2)
    }

    /// The end of a UUID whose first run ends at `end`: the usual groups, or else the longest looser form.
    fn uuid(&self, at: usize, end: usize) -> Option<usize> {
        if end - at != HEX_BYTES || self.byte(end) != Some(b'-') || !self.is_hex(at..end) {
            return None;
        }
        let groups = UUID_GROUPS.iter().try_fold(end, |at, &group| {
            let start = self.one(at, b"-")?;
            self.is_hex(start..start + group).then_some(start + group)
        });
        groups.and_then(|end| self.alone(end)).or_else(|| {
            let tail_end = self.hex_tail_end(end);
            (tail_end > end + UUID_TAIL_BYTES).then_some(tail_end)
        })
    }

    /// Where hex characters and dashes from a dash on end, if they stand alone.
    fn hex_tail_end(&self, mut at: usize) -> usize {
        loop {
            let run = self.dashes_end(at);
            if run == at || !self.joined(run) || self.datetime(run).is_some() {
                return run;
            }
            let run_end = self.run_end(run);
            if !self.is_hex(run..run_end) {
                // The run belongs to no id, so the match ends before the dash that touches the run.
                return run - 1;
            }
            at = run_end;
        }
    }

    /// The end of a run id whose first word ends at `end`.
    fn run_id(&mut self, at: usize, end: usize) -> Option<usize> {
        let tail = self.one(end, b"-").filter(|&tail| self.joined(tail))?;
        if at < self.no_run_id_before
            || !self.text.get(at..end).is_some_and(|word| RUN_ID_WORDS.contains(&word))
        {
            return None;
        }
        let (mut run, mut tail_end, mut digit) = (tail, tail, false);
        loop {
            let run_end = self.run_end(run);
            if self.datetime(run).is_some() || self.uuid(run, run_end).is_some() {
                break;
            }
            digit |= self.bytes(run..run_end).iter().any(u8::is_ascii_digit);
            tail_end = run_end;
            run = self.dashes_end(run_end);
            if run == run_end || !self.joined(run) {
                break;
            }
        }
        if !digit {
            self.no_run_id_before = tail_end;
        }
        digit.then_some(tail_end)
    }

    /// The end of a hex string, which is one run.
    fn hex(&self, at: usize, end: usize) -> Option<usize> {
        let run = self.bytes(at..end);
        let run = run.strip_prefix(b"0x").unwrap_or(run);
        let hex = run.len() >= HEX_BYTES
            && run.iter().all(u8::is_ascii_hexdigit)
            && run.iter().any(u8::is_ascii_alphabetic);
        hex.then_some(end)
    }

    /// A number that begins at `at`, or a chain of numbers with units.
    fn number(&mut self, at: usize) -> Option<PatternMatch> {
        let number = self.number_digits(at);
        if let Some(chain_end) = self.chain(at, &number) {
            return Some(PatternMatch::Chain(at, chain_end));
        }
        let percent = self.one(number.end, b"%").and_then(|end| self.alone(end));
        let end = percent.or_else(|| self.alone(number.end)).or(number.shorter)?;
        Some(PatternMatch::Number(at..end))
    }

    /// Where a chain of numbers with units ends, if it stands alone.
    fn chain(&mut self, at: usize, first: &Number) -> Option<usize> {
        let mut end = self.unit(first.end)?.end;
        while self.joined(end) {
            if at < self.no_chain_before {
                return None;
            }
            let number = self.number_digits(end);
            match self.unit(number.end) {
                Some(unit) => end = unit.end,
                None => {
                    self.no_chain_before = number.end;
                    return None;
                }
            }
        }
        Some(end)
    }

    /// The digits from `at` on, with groups behind dots and commas.
    fn number_digits(&self, at: usize) -> Number {
        let mut number = Number { end: self.digits_end(at), shorter: None };
        while let Some(group) = self.one(number.end, b".,") {
            if self.digits(group, 1).is_none() || self.begins_otherwise(group) {
                break;
            }
            number = Number { end: self.digits_end(group), shorter: Some(number.end) };
        }
        number
    }

    /// Whether a pattern that takes precedence over numbers begins at a run.
    fn begins_otherwise(&self, at: usize) -> bool {
        let end = self.run_end(at);
        self.datetime(at).or_else(|| self.uuid(at, end)).or_else(|| self.hex(at, end)).is_some()
    }

    /// The unit directly after a number without its `%`.
    fn unit(&self, number_end: usize) -> Option<Range<usize>> {
        let start = match self.one(number_end, b"%") {
            Some(run) if self.begins_otherwise(run) => return None,
            Some(run) => run,
            None => number_end,
        };
        let end = self.letters_end(start);
        let unit = self.text.get(start..end)?;
        self.units.contains(unit).then_some(start..end)
    }

    /// The end of the letters from `at` on, each with its marks.
    fn letters_end(&self, at: usize) -> usize {
        if !matches!(self.class(at), (Class::Letter, _)) {
            return at;
        }
        self.past(at, |class| matches!(class, Class::Letter | Class::Mark))
    }

    /// The end of the letters and digits from `at` on. A mark belongs to the letter before it, so that `x̄12`
    /// is one word, as `p99` is. A mark behind a digit ends the run, so that the digit of a keycap is a
    /// number.
    fn run_end(&self, mut at: usize) -> usize {
        loop {
            let end = self.digits_end(self.letters_end(at));
            if end == at {
                return end;
            }
            at = end;
        }
    }

    fn digits_end(&self, at: usize) -> usize {
        let rest = self.bytes(at..self.text.len());
        at + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    fn dashes_end(&self, at: usize) -> usize {
        let rest = self.bytes(at..self.text.len());
        at + rest.iter().take_while(|&&byte| byte == b'-').count()
    }

    /// The first place from `at` on whose character is not `of` this class.
    fn past(&self, mut at: usize, of: impl Fn(Class) -> bool) -> usize {
        loop {
            let (class, len) = self.class(at);
            if len == 0 || !of(class) {
                return at;
            }
            at += len;
        }
    }

    /// The class of the character at a place, and its length; 0 at the end of the text.
    fn class(&self, at: usize) -> (Class, usize) {
        match self.byte(at) {
            None => (Class::Other, 0),
            Some(b'0'..=b'9') => (Class::Digit, 1),
            Some(b'a'..=b'z' | b'A'..=b'Z') => (Class::Letter, 1),
            Some(0..=0x7F) => (Class::Other, 1),
            Some(_) => match self.text.get(at..).and_then(|rest| rest.chars().next()) {
                Some(c) if c.is_alphanumeric() => (Class::Letter, c.len_utf8()),
                Some(c) if is_combining_mark(c) => (Class::Mark, c.len_utf8()),
                Some(c) => (Class::Other, c.len_utf8()),
                None => (Class::Other, 0),
            },
        }
    }

    /// Whether a letter or digit stands at the place. Then whatever ends there does not stand alone.
    fn joined(&self, at: usize) -> bool {
        matches!(self.class(at), (Class::Letter | Class::Digit, _))
    }

    fn alone(&self, end: usize) -> Option<usize> {
        (!self.joined(end)).then_some(end)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn bytes(&self, range: Range<usize>) -> &'a [u8] {
        self.text.as_bytes().get(range).unwrap_or_default()
    }

    /// The place behind one of these bytes.
    fn one(&self, at: usize, of: &[u8]) -> Option<usize> {
        self.byte(at).filter(|byte| of.contains(byte)).map(|_| at + 1)
    }

    /// The place behind this many digits.
    fn digits(&self, at: usize, count: usize) -> Option<usize> {
        let digits = self.text.as_bytes().get(at..at + count)?;
        digits.iter().all(u8::is_ascii_digit).then_some(at + count)
    }

    fn is_hex(&self, range: Range<usize>) -> bool {
        self.text.as_bytes().get(range).is_some_and(|run| run.iter().all(u8::is_ascii_hexdigit))
    }

    fn slice(&self, range: Range<usize>) -> &'a str {
        self.text.get(range).unwrap_or_default()
    }

    /// The next number of a chain.
    fn link(&mut self) -> Piece<'a> {
        let start = self.at;
        let number_end = self.number_digits(start).end;
        let unit = self.unit(number_end).unwrap_or(number_end..self.chain_end);
        self.at = unit.end;
        Piece::Number { number: self.slice(start..unit.start), unit: self.slice(unit) }
    }

    fn give(&mut self, found: PatternMatch) -> Piece<'a> {
        match found {
            PatternMatch::Datetime(range) => {
                self.at = range.end;
                Piece::Datetime(self.slice(range))
            }
            PatternMatch::Id(range) => {
                self.at = range.end;
                Piece::Id(self.slice(range))
            }
            PatternMatch::Number(range) => {
                self.at = range.end;
                Piece::Number { number: self.slice(range), unit: "" }
            }
            PatternMatch::Chain(_, end) => {
                self.chain_end = end;
                self.link()
            }
        }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if let Some(found) = self.found.take() {
            return Some(self.give(found));
        }
        if self.at < self.chain_end {
            return Some(self.link());
        }
        if self.at >= self.text.len() {
            return None;
        }
        let start = self.at;
        match self.next_found(start) {
            Some(found) if found.start() == start => Some(self.give(found)),
            found => {
                self.at = found.as_ref().map_or(self.text.len(), PatternMatch::start);
                self.found = found;
                Some(Piece::Text(self.slice(start..self.at)))
            }
        }
    }
}

#[cfg(test)]
mod tests;
