//! The place of a snapshot in its series.

use serde_json::Value;

use crate::model::kind::Kind;
use crate::model::memory::Memory;
use crate::model::parts::Content;
use crate::model::time::Time;
use crate::model::vitals::{Counted, Vitals};

/// The metadata key in which a snapshot says when it was taken.
const TIMESTAMP: &str = "timestamp";

/// When a snapshot was taken: the `timestamp` of its metadata, as RFC 3339 or as whole milliseconds since 1970, or
/// else the instant of its creation. None for a timestamp that can't be read: such a snapshot belongs to no period.
/// The first instant of year 1 counts as unreadable, because unreadable timestamps have that place in the index.
pub(crate) fn snapshot_time(metadata: &Value, created_at: Time) -> Option<Time> {
    let at = match metadata.get(TIMESTAMP) {
        None | Some(Value::Null) => Some(created_at),
        Some(Value::String(text)) => text.parse().ok(),
        Some(number) => {
            let millis = number.as_i64();
            millis.filter(|millis| Time::from_millis(*millis).as_millis() == *millis).map(Time::from_millis)
        }
    };
    at.filter(|at| *at > Time::MIN)
}

/// The place of a current snapshot in the index of series: the series and the time, or the first instant of year 1 if
/// its time can't be read. None for any other row.
pub(crate) fn series_place<'c>(vitals: &Vitals, content: &'c Content) -> Option<(&'c str, Time)> {
    let current = vitals.times.superseded.is_none()
        && matches!(vitals.place.counted, Counted::Live | Counted::Ahead)
        && vitals.kind_code == Kind::Snapshot.code();
    let at = snapshot_time(&content.metadata, vitals.created_at).unwrap_or(Time::MIN);
    current.then_some((content.series.as_str(), at))
}

impl Memory {
    /// When a snapshot was taken: the `timestamp` of its metadata if there is one, or else its creation. None
    /// for a timestamp that can't be read, and for a memory of another kind.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let taken = "2026-01-03T12:00:00Z".parse()?;
    /// let facts = team.push_snapshot("12 facts", taken)?.id;
    /// assert_eq!(team.get(facts)?.unwrap().snapshot_time(), Some(taken));
    /// let tea = team.add("Ann prefers tea")?.id;
    /// assert_eq!(team.get(tea)?.unwrap().snapshot_time(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot_time(&self) -> Option<Time> {
        let taken = snapshot_time(&self.metadata, self.created_at);
        taken.filter(|_| self.kind == Kind::Snapshot)
    }
}
