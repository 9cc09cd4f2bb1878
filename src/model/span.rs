//! Durations: whole milliseconds, `30d` or ISO 8601 outside.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::error::{Error, Result};
use crate::limits::SPAN_MS_MAX;

/// Units of the short form, largest first, in milliseconds.
const UNITS: [(&str, i64); 6] =
    [("w", 7 * DAY), ("d", DAY), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const DAY: i64 = 86_400_000;

/// A duration of whole milliseconds, never negative.
///
/// It is written as a whole number with one of the units `ms`, `s`, `m`, `h`, `d` and `w`, or as ISO 8601. A day has 24
/// hours. `0` needs no unit; any other bare number is refused, because its unit would be a guess.
///
/// ```
/// use oubliette::Span;
/// assert_eq!("30d".parse::<Span>()?.as_millis(), 30 * 86_400_000);
/// assert_eq!("PT12H".parse::<Span>()?, "12h".parse::<Span>()?);
/// assert_eq!("0".parse::<Span>()?, Span::ZERO);
/// assert!("72".parse::<Span>().is_err());
/// assert!("-1d".parse::<Span>().is_err());
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(i64);

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// The longest span that somebody waits for: 100 years.
    pub(crate) const MAX: Span = Span(SPAN_MS_MAX.cast_signed());

    /// The span of these milliseconds. A negative number becomes 0.
    ///
    /// ```
    /// use oubliette::Span;
    /// assert_eq!(Span::from_millis(1_500).as_millis(), 1_500);
    /// assert_eq!(Span::from_millis(-1), Span::ZERO);
    /// ```
    pub const fn from_millis(millis: i64) -> Self {
        Span(if millis < 0 { 0 } else { millis })
    }

    /// The span of these minutes.
    ///
    /// ```
    /// use oubliette::Span;
    /// assert_eq!(Span::from_mins(60), Span::from_hours(1));
    /// ```
    pub const fn from_mins(mins: u32) -> Self {
        Span(mins as i64 * 60_000)
    }

    /// The span of these hours.
    ///
    /// ```
    /// use oubliette::Span;
    /// assert_eq!(Span::from_hours(24), Span::from_days(1));
    /// ```
    pub const fn from_hours(hours: u32) -> Self {
        Span(hours as i64 * 3_600_000)
    }

    /// The span of these days of 24 hours.
    ///
    /// ```
    /// use oubliette::Span;
    /// assert_eq!(Span::from_days(7), "1w".parse()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn from_days(days: u32) -> Self {
        Span(days as i64 * DAY)
    }

    /// Checks the bounds of a span that somebody waits for.
    pub(crate) fn check(self, field: &'static str) -> Result<()> {
        if self > Self::MAX {
            return Err(Error::invalid(field, format!("must be at most {}", Self::MAX), self));
        }
        Ok(())
    }

    /// Milliseconds, never negative.
    ///
    /// ```
    /// use oubliette::Span;
    /// assert_eq!(Span::from_mins(2).as_millis(), 120_000);
    /// ```
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Days, with their fraction.
    ///
    /// ```
    /// use oubliette::Span;
    /// assert_eq!(Span::from_hours(36).as_days(), 1.5);
    /// ```
    pub fn as_days(self) -> f64 {
        self.0 as f64 / DAY as f64
    }

    /// A whole number and its unit, which only 0 may lack.
    fn parse_short(text: &str) -> Option<i64> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at_checked(digits)?;
        let number: i64 = number.parse().ok()?;
        if number == 0 && unit.is_empty() {
            return Some(0);
        }
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
        number.checked_mul(*scale)
    }
}

fn parse_iso(text: &str) -> Option<i64> {
    if !text.starts_with(['P', 'p']) {
        return None;
    }
    let span: jiff::Span = text.parse().ok()?;
    // A day is 24 hours here: UTC has no other.
    let options = jiff::SpanRelativeTo::days_are_24_hours();
    let millis = span.total((jiff::Unit::Millisecond, options)).ok()?;
    (0.0..9e15).contains(&millis).then_some(millis as i64)
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = UNITS.iter().find(|(name, scale)| *name != "w" && self.0 % scale == 0);
        match exact {
            Some((name, scale)) if self.0 != 0 => write!(f, "{}{name}", self.0 / scale),
            _ => f.write_str("0"),
        }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Span {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let millis = Span::parse_short(text).or_else(|| parse_iso(text)).ok_or_else(|| {
            let why = "must be a whole number with ms, s, m, h, d or w, such as 30d, or ISO 8601 without months and years, not negative";
            Error::invalid("duration", why, text)
        })?;
        Ok(Span(millis))
    }
}

impl TryFrom<&str> for Span {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self> {
        text.parse()
    }
}

impl From<std::time::Duration> for Span {
    /// Its whole milliseconds.
    fn from(span: std::time::Duration) -> Self {
        Span::from_millis(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
    }
}

impl From<jiff::SignedDuration> for Span {
    /// Its whole milliseconds; a negative one is held to 0.
    fn from(span: jiff::SignedDuration) -> Self {
        Span::from_millis(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
    }
}

impl From<Span> for std::time::Duration {
    fn from(span: Span) -> Self {
        Self::from_millis(span.0.unsigned_abs())
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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
        f.write_str("a duration such as \"72h\", or 0")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Span, E> {
        if number == 0 {
            return Ok(Span::ZERO);
        }
        let write = format!("write \"{number}s\", \"{number}h\" or another of ms, s, m, h, d, w");
        Err(E::custom(format!("{number} has no unit; {write}")))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Span, E> {
        self.visit_u64(number.try_into().map_err(|_| E::custom("a duration is never negative"))?)
    }
}

#[cfg(test)]
mod tests;
