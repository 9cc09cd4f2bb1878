//! The periods of a series of snapshots: days, or other spans, in a time zone.

use jiff::tz::{Offset, TimeZone};

use crate::error::{Error, Result};
use crate::model::span::Span;
use crate::model::time::Time;

/// Milliseconds of a day of civil time.
const DAY_MS: i64 = 86_400_000;

/// The periods of one length in a time zone.
#[derive(Clone, Debug)]
pub(crate) struct Periods {
    zone: TimeZone,
    length_ms: i64,
}

/// One period. For periods of the same [`Periods`] the order is that of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Period {
    /// The number of the period since 1970 by the clocks of the zone.
    number: i64,
    /// The seconds by which the clocks are behind UTC; 0 for whole days. So an hour that the clocks show twice is two
    /// hours.
    behind: i32,
}

impl Periods {
    /// Periods of `length_ms` in a zone: an IANA name such as `Europe/Vienna`, `UTC`, or an offset such as `+02:00`.
    /// Whole days begin at midnight and are civil days: a day on which the clocks change is an hour shorter or longer.
    ///
    /// # Errors
    /// `Invalid` for a zone that this machine does not know and for a length below 1 ms.
    pub(crate) fn new(zone: &str, length: Span) -> Result<Self> {
        let Some(known) = zone_of(zone) else {
            return Err(Error::invalid(
                "zone",
                "must be an IANA zone that this machine knows, or an offset such as +02:00",
                zone,
            ));
        };
        if length == Span::ZERO || length > Span::MAX {
            return Err(Error::invalid("period", "must be at least 1 ms and at most 100 years", length));
        }
        Ok(Periods { zone: known, length_ms: length.as_millis() })
    }

    /// The period in which an instant lies.
    pub(crate) fn of(&self, at: Time) -> Period {
        let offset = jiff::Timestamp::from_millisecond(at.as_millis())
            .map_or(Offset::UTC, |stamp| self.zone.to_offset(stamp));
        let local_ms = at.as_millis().saturating_add(i64::from(offset.seconds()) * 1_000);
        let whole_days = self.length_ms % DAY_MS == 0;
        let behind = if whole_days { 0 } else { -offset.seconds() };
        Period { number: local_ms.div_euclid(self.length_ms), behind }
    }
}

fn zone_of(name: &str) -> Option<TimeZone> {
    if name.eq_ignore_ascii_case("utc") || name.eq_ignore_ascii_case("z") {
        return Some(TimeZone::UTC);
    }
    offset_of(name).map(TimeZone::fixed).or_else(|| TimeZone::get(name).ok())
}

/// `+HH`, `+HH:MM` or `+HHMM`, or the same with a minus.
fn offset_of(text: &str) -> Option<Offset> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match digits.len() {
        2 => (digits, "0"),
        4 => digits.split_at_checked(2)?,
        _ => digits.split_once(':').filter(|(hours, minutes)| hours.len() == 2 && minutes.len() == 2)?,
    };
    let number = |digits: &str| {
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<i32>().ok().filter(|_| plain)
    };
    let minutes = number(minutes).filter(|minutes| *minutes < 60)?;
    Offset::from_seconds(sign * (number(hours)? * 3_600 + minutes * 60)).ok()
}

#[cfg(test)]
mod tests;
