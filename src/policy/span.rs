//! A length of time as the policy writes it: a whole number and one unit, `72h`.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de;

use crate::limits::SPAN_MS_MAX;

/// The units, longest first, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A length of time in whole milliseconds, 0 to 100 years.
///
/// Written as a whole number with one of the units `ms`, `s`, `m`, `h`, `d` (a day is 24 hours). A bare `0` is
/// zero, which means *off* where the key says so; any other bare number is refused, because its unit would be a guess.
///
/// ```
/// use oubliette::policy::Span;
///
/// let span: Span = "72h".parse()?;
/// assert_eq!(span.as_ms(), 259_200_000);
/// assert_eq!(span.to_string(), "3d");
/// assert!("72".parse::<Span>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Span {
    /// No time at all: off, or for ever, as the key says.
    pub const ZERO: Span = Span(0);

    /// A span of `ms` milliseconds. Whether it is in the range of its key is checked with the document.
    pub const fn ms(ms: u64) -> Self {
        Span(ms)
    }

    pub(super) const fn seconds(count: u64) -> Self {
        Span(count * 1_000)
    }

    pub(super) const fn hours(count: u64) -> Self {
        Span(count * 3_600_000)
    }

    pub(super) const fn days(count: u64) -> Self {
        Span(count * 86_400_000)
    }

    /// The span in milliseconds.
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// Whether this is zero, which switches off what the key governs where the key says so.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        let exact = UNITS.iter().find(|(_, ms)| self.0.is_multiple_of(*ms));
        let (unit, ms) = exact.unwrap_or(&("ms", 1));
        write!(f, "{}{unit}", self.0 / ms)
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(digits_end);
        let wrong =
            || format!("{text:?} is no span of time; write a whole number and a unit of ms, s, m, h, d");
        if digits.is_empty() {
            return Err(wrong());
        }
        let too_long = || format!("{text:?} is longer than {}d", SPAN_MS_MAX / 86_400_000);
        let count: u64 = digits.parse().map_err(|_| too_long())?;
        if unit.is_empty() {
            return if count == 0 { Ok(Span::ZERO) } else { Err(unit_missing(count)) };
        }
        let (_, unit_ms) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        count.checked_mul(*unit_ms).filter(|ms| *ms <= SPAN_MS_MAX).map(Span).ok_or_else(too_long)
    }
}

fn unit_missing(count: impl fmt::Display) -> String {
    format!("{count} has no unit; write \"{count}s\", \"{count}h\" or another of ms, s, m, h, d")
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_zero() { serializer.serialize_u64(0) } else { serializer.collect_str(self) }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpanVisitor)
    }
}

struct SpanVisitor;

impl de::Visitor<'_> for SpanVisitor {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a span of time such as \"72h\", or 0")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, count: u64) -> Result<Span, E> {
        if count == 0 { Ok(Span::ZERO) } else { Err(E::custom(unit_missing(count))) }
    }

    fn visit_i64<E: de::Error>(self, count: i64) -> Result<Span, E> {
        match u64::try_from(count) {
            Ok(count) => self.visit_u64(count),
            Err(_) => Err(E::custom("a span of time is never negative")),
        }
    }
}

impl From<Span> for crate::model::Span {
    fn from(span: Span) -> Self {
        crate::model::Span::from_millis(i64::try_from(span.as_ms()).unwrap_or(i64::MAX))
    }
}
