//! Reads of the past: which instants they ask about, and how far back they reach.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::model::time::Time;

/// The instants that a read asks about. By default it asks about the present.
///
/// ```
/// use oubliette::memory::PointInTime;
/// use oubliette::{Draft, PageRequest};
/// # let folder = tempfile::tempdir()?;
/// # let clock = oubliette::clock::ManualClock::at("2026-03-01T00:00:00Z".parse()?);
/// # let builder = oubliette::Database::builder().clock(clock.clone());
/// # let team = builder.open(folder.path().join("m.oub"))?.namespace("team")?;
/// team.add(Draft::new("Ann lives in Ghent").key("home"))?;
/// let march = "2026-03-02T00:00:00Z".parse()?;
/// # clock.set("2026-05-01T00:00:00Z".parse()?);
/// team.add(Draft::new("Ann lives in Bruges").key("home"))?;
/// let request = PageRequest { at: PointInTime::as_of(march), ..PageRequest::default() };
/// assert_eq!(team.list(&request)?.items[0].text, "Ann lives in Ghent");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointInTime {
    /// Read what was true at this instant of the world; now by default. It may lie ahead.
    pub valid_at: Option<Time>,
    /// Read what the database knew at this instant of transaction time; everything by default. It can't lie ahead.
    pub known_at: Option<Time>,
    /// Whether to answer from what is left where maintenance has erased memories that the read would have seen.
    pub allow_partial: bool,
}

impl PointInTime {
    /// What was true at an instant, as it was known then.
    ///
    /// ```
    /// use oubliette::memory::PointInTime;
    /// let at: oubliette::Time = "2026-03-02T00:00:00Z".parse()?;
    /// let point = PointInTime::as_of(at);
    /// assert_eq!((point.valid_at, point.known_at), (Some(at), Some(at)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn as_of(at: Time) -> Self {
        PointInTime { valid_at: Some(at), known_at: Some(at), allow_partial: false }
    }

    /// Whether it is the present, as every read without an instant is.
    pub(crate) fn is_present(&self) -> bool {
        self.valid_at.is_none() && self.known_at.is_none()
    }
}

/// How far back reads reach: maintenance has erased memories that reads of earlier instants would have seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PurgeHorizon {
    /// The earliest transaction time at which all that was known is still there; none if nothing was erased.
    pub known: Option<Time>,
    /// The earliest world time at which all that was true is still there; none if nothing was erased.
    pub valid: Option<Time>,
}

impl PurgeHorizon {
    /// The horizon that a namespace keeps as milliseconds since 1970.
    pub(crate) fn of(known_ms: i64, valid_ms: i64) -> Self {
        let reached = |millis: i64| (millis > Time::MIN.as_millis()).then(|| Time::from_millis(millis));
        PurgeHorizon { known: reached(known_ms), valid: reached(valid_ms) }
    }

    /// Whether a read reaches back behind it.
    pub(crate) fn hides(&self, valid: Time, known: Time) -> bool {
        self.known.is_some_and(|horizon| known < horizon) || self.valid.is_some_and(|horizon| valid < horizon)
    }

    /// The error of a read that reaches back behind it.
    pub(crate) fn refusal(&self) -> Error {
        let millis = |time: Option<Time>| time.map(Time::as_millis);
        Error::BeforePurgeHorizon { known: millis(self.known), valid: millis(self.valid) }
    }
}

/// How a search of the past was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PastPlan {
    /// The instant of the world that was read.
    pub valid_at: Time,
    /// The instant of transaction time that was read; none for everything that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_at: Option<Time>,
    /// The number of memories in limbo that took part. Their texts and vectors were read one by one.
    pub limbo: u64,
    /// `now` if the search went by words: how rare a word is, and how long a text is beside others, is counted over the
    /// memories that are visible now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistics: Option<&'static str>,
    /// The horizon behind which the read reaches, so that memories may be missing; none if none are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon: Option<PurgeHorizon>,
}

/// Refuses an instant of transaction time that no commit has reached.
pub(crate) fn check_known(point: &PointInTime, now: Time) -> Result<()> {
    match point.known_at.filter(|at| *at > now) {
        Some(at) => {
            let why = format!("must not lie ahead: it is {now}, and valid_at alone asks what will be true");
            // What asks for both with one instant is `as_of`.
            let field = if point.valid_at == point.known_at { "as_of" } else { "known_at" };
            Err(Error::invalid(field, why, at))
        }
        None => Ok(()),
    }
}
