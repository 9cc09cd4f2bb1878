//! The one visibility predicate.
//!
//! ```text
//! transaction time  known-at k     recorded_at ─────────────── tx_end
//! world time        valid-at v       world_begin ─────────── world_end
//! life                                              ─────── expires_at
//! ```
//! A memory is visible at (v, k) if and only if it lies in all three half-open intervals. Nothing else
//! decides. Where several ends were announced for a memory, one before the other, its row keeps the last of them beside its own, and a
//! reader of the past asks what was announced for the others. The index keeps [`Times::from`] and [`Times::until`] beside each code,
//! so that it can answer the same question for a live read without reading the row.

use serde::{Deserialize, Serialize};

use crate::model::id::MemoryId;
use crate::model::kind::{State, SupersedeMode};
use crate::model::time::Time;

/// The supersession of a memory: by which memory, when and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supersession {
    /// The transaction time.
    pub at: Time,
    /// The memory that took its place.
    pub by: MemoryId,
    /// The mode.
    pub mode: SupersedeMode,
    /// The memory that has brought the two together by taking its place among what is to come; none if somebody has said that
    /// the one replaces the other.
    pub via: Option<MemoryId>,
}

/// An end in world time that was announced, and that another supersession has overtaken before it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced {
    /// The end.
    pub end: Time,
    /// The transaction time since which it was known.
    pub at: Time,
}

/// A supersession at an instant ahead that another one has come before: what takes the place of the row where the other one is
/// taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overtaken {
    /// The memory that was to take the place.
    pub by: MemoryId,
    /// The instant: the end in world time that the row was to have.
    #[serde(rename = "valid_to")]
    pub end: Time,
    /// The transaction time since which the end was known.
    pub at: Time,
    /// The memory that had brought the two together, as for [`Supersession::via`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<MemoryId>,
}

/// The instants that decide visibility.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Times {
    /// The transaction time of the row.
    pub recorded_at: Time,
    /// World time from which the text is true; none means always.
    pub valid_from: Option<Time>,
    /// The transaction time of the supersession that gave `valid_from` to a row that was there before; none if a write gave
    /// it. Until then the text was believed to have been true always.
    pub valid_from_recorded_at: Option<Time>,
    /// World time until which the text is true (exclusive); none means for ever.
    pub valid_to: Option<Time>,
    /// What `valid_to` was before the row was replaced: the older belief.
    pub valid_to_before: Option<Time>,
    /// The end that was known until the present supersession took the place of the one that had announced it.
    pub announced: Option<Announced>,
    /// The end of life (exclusive); none means never.
    pub expires_at: Option<Time>,
    /// The supersession: by which memory, when and how.
    pub superseded: Option<Supersession>,
    /// When maintenance removed the row; for rows in limbo.
    pub removed_at: Option<Time>,
}

impl Default for Time {
    fn default() -> Self {
        Time::EPOCH
    }
}

impl Times {
    /// The end of the row in transaction time: its removal, or its supersession in a mode other than
    /// `replaced`.
    pub fn tx_end(&self) -> Option<Time> {
        let superseded = self.superseded.filter(|s| s.mode != SupersedeMode::Replaced).map(|s| s.at);
        earliest(self.removed_at, superseded)
    }

    /// The begin of the row in world time, as believed at `known`.
    fn world_begin(&self, known: Time) -> Option<Time> {
        self.valid_from.filter(|_| self.valid_from_recorded_at.is_none_or(|since| since <= known))
    }

    /// The end of the row in world time, as believed at `known`.
    fn world_end(&self, known: Time) -> Option<Time> {
        match (self.superseded, self.announced) {
            (Some(s), Some(announced)) if announced.at <= known && known < s.at => Some(announced.end),
            (Some(s), _) if known < s.at => self.own_end(),
            _ => self.valid_to,
        }
    }

    /// Whether the row was superseded later, and tells of no end that was known at `known`: what was announced may tell of one.
    pub(crate) fn may_end_as_announced(&self, known: Time) -> bool {
        let superseded = self.superseded.is_some_and(|superseded| known < superseded.at);
        superseded && self.announced.is_none_or(|announced| known < announced.at)
    }

    /// The end in world time that the row has without what takes its place.
    pub fn own_end(&self) -> Option<Time> {
        match self.superseded {
            Some(s) if s.mode == SupersedeMode::Replaced => self.valid_to_before,
            _ => self.valid_to,
        }
    }

    /// Whether the row is visible to a reader who asks what was true at `valid`, as known at `known`.
    pub fn visible(&self, valid: Time, known: Time) -> bool {
        self.recorded_at <= known
            && self.tx_end().is_none_or(|end| known < end)
            && self.world_begin(known).is_none_or(|from| from <= valid)
            && self.world_end(known).is_none_or(|end| valid < end)
            && self.expires_at.is_none_or(|end| valid < end)
    }

    /// Whether a live read at `now` sees the row. The row's instants of transaction time count as reached, because
    /// they are committed. So a clock that stepped back hides nothing. Nor is a row hidden that came from a machine
    /// whose clock is ahead. The index answers the same question by [`Times::from`] and [`Times::until`].
    pub fn visible_live(&self, now: Time) -> bool {
        self.visible(now, Time::MAX)
    }

    /// The first instant at which a live read can see the row. A committed instant of transaction time counts
    /// as reached, so only `valid_from` can lie ahead.
    pub fn from(&self) -> Time {
        self.valid_from.unwrap_or(Time::MIN)
    }

    /// The first instant at which a live read no longer sees the row, or [`Time::MAX`] for never. A committed
    /// end in transaction time has been reached, whatever the clock says: [`Time::MIN`].
    pub fn until(&self) -> Time {
        if self.tx_end().is_some() {
            return Time::MIN;
        }
        earliest(self.valid_to, self.expires_at).unwrap_or(Time::MAX)
    }

    /// Whether the row holds keys and absorbs writes: it is not superseded, and visible now or not yet valid.
    pub fn is_current(&self, now: Time) -> bool {
        self.superseded.is_none() && self.removed_at.is_none() && now < self.until()
    }

    /// Whether the row is current, or is one whose place another takes at an instant ahead and that a live read sees before.
    pub(crate) fn is_or_will_be_true(&self, now: Time) -> bool {
        let is_seen = self.removed_at.is_none() && self.from().max(now) < self.until();
        is_seen || self.is_current(now)
    }

    /// What takes the place of the row at an instant that lay ahead when that was said, also where the instant has come.
    pub(crate) fn told(&self) -> Option<Overtaken> {
        let Supersession { by, at, via, .. } =
            self.superseded.filter(|by| by.mode == SupersedeMode::Replaced)?;
        let end = self.valid_to.filter(|end| *end > at)?;
        Some(Overtaken { by, end, at, via })
    }

    /// What takes the place of the row at an instant ahead, as it is kept where another memory comes before.
    pub(crate) fn told_ahead(&self, now: Time) -> Option<Overtaken> {
        let (by, Announced { end, at }) = self.replaced_ahead(now)?;
        Some(Overtaken { by, end, at, via: self.superseded.and_then(|superseded| superseded.via) })
    }

    /// What takes the place of the row at an instant ahead, and that end. What was announced may begin and end at one instant.
    pub(crate) fn replaced_ahead(&self, now: Time) -> Option<(MemoryId, Announced)> {
        let superseded = self.superseded.filter(|by| by.mode == SupersedeMode::Replaced)?;
        let stands = self.removed_at.is_none() && !self.is_expired(now);
        let end = self.valid_to.filter(|end| *end > now && stands)?;
        Some((superseded.by, Announced { end, at: superseded.at }))
    }

    /// Whether the end of life has come, in whatever state the row is.
    pub(crate) fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// The label of a row of the main table at `now`.
    pub fn state(&self, now: Time) -> State {
        if self.removed_at.is_some() {
            State::Limbo
        } else if self.superseded.is_some() {
            State::Superseded
        } else if self.is_expired(now) {
            State::Expired
        } else {
            State::Live
        }
    }

    /// The row into which this row was merged as its duplicate, and which stands for it.
    pub(crate) fn merged_into(&self) -> Option<MemoryId> {
        self.superseded
            .filter(|s| self.removed_at.is_some() || s.mode == SupersedeMode::Duplicate)
            .map(|s| s.by)
    }

    /// The row that superseded this one.
    pub fn superseded_by(&self) -> Option<MemoryId> {
        self.superseded.map(|s| s.by)
    }
}

/// The earlier of two optional instants; none means never.
fn earliest(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests;
