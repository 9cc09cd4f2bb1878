//! Instants: UTC milliseconds, RFC 3339 outside.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits::{TIME_MAX_MS, TIME_MIN_MS};
use crate::model::span::Span;

/// An instant: UTC milliseconds since 1970, from year 1 to year 9999, shown as RFC 3339.
///
/// ```
/// use oubliette::Time;
/// let t: Time = "2026-01-03T10:00:00Z".parse()?;
/// assert_eq!(t.as_millis(), 1_767_434_400_000);
/// assert_eq!(t.to_string(), "2026-01-03T10:00:00Z");
/// assert!("yesterday".parse::<Time>().is_err());
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Time(i64);

impl Time {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Time = Time(0);
    /// The earliest instant.
    pub const MIN: Time = Time(TIME_MIN_MS);
    /// The latest instant.
    pub const MAX: Time = Time(TIME_MAX_MS);

    /// The instant of these milliseconds since 1970, limited to the years 1 to 9999.
    ///
    /// ```
    /// use oubliette::Time;
    /// assert_eq!(Time::from_millis(0), Time::EPOCH);
    /// assert_eq!(Time::from_millis(i64::MAX), Time::MAX);
    /// ```
    pub const fn from_millis(millis: i64) -> Self {
        if millis < TIME_MIN_MS {
            Time(TIME_MIN_MS)
        } else if millis > TIME_MAX_MS {
            Time(TIME_MAX_MS)
        } else {
            Time(millis)
        }
    }

    /// Milliseconds since 1970.
    ///
    /// ```
    /// use oubliette::Time;
    /// assert_eq!("1970-01-01T00:00:01Z".parse::<Time>()?.as_millis(), 1_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This instant moved by `span`, limited to the years 1 to 9999.
    ///
    /// ```
    /// use oubliette::Time;
    /// assert_eq!(Time::EPOCH.plus("90m".parse()?).to_string(), "1970-01-01T01:30:00Z");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn plus(self, span: Span) -> Self {
        Time::from_millis(self.0.saturating_add(span.as_millis()))
    }

    /// This instant moved back by `span`, limited to the years 1 to 9999.
    ///
    /// ```
    /// use oubliette::Time;
    /// assert_eq!(Time::EPOCH.minus("1d".parse()?).day(), "1969-12-31");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn minus(self, span: Span) -> Self {
        Time::from_millis(self.0.saturating_sub(span.as_millis()))
    }

    /// Year and month in UTC, the month from 1 to 12.
    pub(crate) fn month(self) -> (i16, i8) {
        let date =
            jiff::Timestamp::from_millisecond(self.0).map(|at| at.to_zoned(jiff::tz::TimeZone::UTC).date());
        date.map_or((0, 0), |date| (date.year(), date.month()))
    }

    /// The first instant of a date in UTC; none for a date that does not exist.
    pub(crate) fn of_date(year: i16, month: i8, day: i8) -> Option<Self> {
        let date = jiff::civil::Date::new(year, month, day).ok()?;
        let zoned = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(Time::from_millis(zoned.timestamp().as_millisecond()))
    }

    /// The UTC day, as `2026-01-03`.
    ///
    /// ```
    /// use oubliette::Time;
    /// assert_eq!("2026-01-03T10:00:00Z".parse::<Time>()?.day(), "2026-01-03");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn day(self) -> String {
        let mut text = self.to_string();
        text.truncate(10);
        text
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(stamp) => fmt::Display::fmt(&stamp, f),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Time {
    type Err = Error;

    /// Reads RFC 3339 with any offset. A time without an offset is taken as UTC. A date alone stands for its
    /// first instant in UTC. Anything finer than a millisecond is cut off. The last hours of the year 9999, by which
    /// many mean for ever, are read as [`Time::MAX`]. A zone in brackets must stand beside an offset, which decides.
    fn from_str(text: &str) -> Result<Self> {
        let millis = if let Ok(stamp) = text.parse::<jiff::Timestamp>() {
            stamp.as_millisecond()
        } else {
            let civil: jiff::civil::DateTime = match text.parse() {
                Ok(civil) => civil,
                Err(_) => return at_the_edge(text),
            };
            // Which offset a zone has then depends on the machine that reads the text.
            let pieces = jiff::fmt::temporal::Pieces::parse(text);
            if pieces.is_ok_and(|pieces| pieces.time_zone_annotation().is_some()) {
                let why =
                    "must have an offset beside its zone, such as 2026-01-03T10:00:00+01:00[Europe/Brussels]";
                return Err(Error::invalid("time", why, text));
            }
            match civil.to_zoned(jiff::tz::TimeZone::UTC) {
                Ok(zoned) => zoned.timestamp().as_millisecond(),
                Err(_) => return at_the_edge(text),
            }
        };
        match millis {
            ..TIME_MIN_MS => Err(out_of_bounds(text)),
            millis => Ok(Time::from_millis(millis)),
        }
    }
}

/// What no calendar of instants has: the end of the last year, which is there, or an instant out of bounds.
fn at_the_edge(text: &str) -> Result<Time> {
    let read = jiff::fmt::temporal::Pieces::parse(text).map_err(|_| {
        let why = match has_form(text) {
            true => "must be a day and a time that exist: the form is right, and the calendar has no such day or hour",
            false => "must be RFC 3339, such as 2026-01-03T10:00:00Z or 2026-01-03",
        };
        Error::invalid("time", why, text)
    })?;
    match read.date().year() {
        9999 => Ok(Time::MAX),
        _ => Err(out_of_bounds(text)),
    }
}

/// Whether a text has the digits of a date, alone or before a time, in their places.
fn has_form(text: &str) -> bool {
    let (date, time) = text.split_at_checked("2026-01-03".len()).unwrap_or((text, ""));
    let is_digit = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    let hour = time.get(1..).unwrap_or_default();
    let is_time = |byte: u8| byte.is_ascii_digit() || b":.,+-Zz".contains(&byte);
    let is_hour =
        time.starts_with(['T', 't', ' ']) && hour.len() >= "10:00".len() && hour.bytes().all(is_time);
    date.len() == "2026-01-03".len() && date.bytes().enumerate().all(is_digit) && (time.is_empty() || is_hour)
}

fn out_of_bounds(text: &str) -> Error {
    Error::invalid("time", format!("must lie from {} to {}", Time::MIN, Time::MAX), text)
}

impl TryFrom<&str> for Time {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self> {
        text.parse()
    }
}

impl From<std::time::SystemTime> for Time {
    /// The millisecond in which the instant lies, held to the years 1 to 9999.
    fn from(at: std::time::SystemTime) -> Self {
        use std::time::UNIX_EPOCH;
        let millis = |span: std::time::Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Time::from_millis(match at.duration_since(UNIX_EPOCH) {
            Ok(after) => millis(after),
            Err(before) => -millis(before.duration()),
        })
    }
}

impl From<jiff::Timestamp> for Time {
    /// The millisecond in which the instant lies.
    fn from(at: jiff::Timestamp) -> Self {
        Time::from_millis(at.as_millisecond())
    }
}

impl TryFrom<String> for Time {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Time> for String {
    fn from(time: Time) -> String {
        time.to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::Time;

    /// The offset of a zone is not guessed, and not left out.
    #[test]
    fn a_zone_needs_an_offset_beside_it() {
        for text in ["2026-01-01T10:00:00[Europe/Brussels]", "2026-01-01[Europe/Brussels]"] {
            let why = text.parse::<Time>().unwrap_err().to_string();
            assert!(why.contains("an offset beside its zone"), "{why}");
        }
        let read = |text: &str| text.parse::<Time>().unwrap().to_string();
        assert_eq!(read("2026-01-01T10:00:00+01:00[Europe/Brussels]"), "2026-01-01T09:00:00Z");
        assert_eq!(read("2026-01-01T10:00:00[u-ca=iso8601]"), "2026-01-01T10:00:00Z");
    }

    /// Many write the end of the last year for what has no end. It lies behind the last instant that every offset can show.
    #[test]
    fn the_end_of_the_last_year_is_the_last_instant() {
        for text in [
            "9999-12-30T22:00:00Z",
            "9999-12-30T22:00:00.999Z",
            "9999-12-31",
            "9999-12-31T23:59:59Z",
            "9999-12-31T23:59:59.999Z",
            "9999-12-31T23:59:59",
            "9999-12-31T23:59:59-12:00",
        ] {
            assert_eq!(text.parse::<Time>().unwrap(), Time::MAX, "{text}");
        }
        assert!("9999-12-30T21:59:59.999Z".parse::<Time>().unwrap() < Time::MAX);
        for text in [
            "0000-12-31T23:59:59Z",
            "-009999-01-02T01:59:59Z",
            "10000-01-01",
            "9999-12-31T25:00:00Z",
            "9999-13-01",
        ] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
    }
}
