//! The hot part of a memory, and what of it the counters and the end of life are made from.

use crate::error::{Error, Result};
use crate::model::closed::closed_set;
use crate::model::id::MemoryId;
use crate::model::kind::{ExpiresBy, Kind, Significance, Tier};
use crate::model::order::Rank;
use crate::model::span::Span;
use crate::model::time::Time;
use crate::model::usage::Usage;
use crate::model::visible::{Overtaken, Times};

/// The hot part of a memory, which every filter and ranking reads. Its width is fixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Vitals {
    /// The code of the kind. The name of a custom kind stands in `Content::custom_kind`.
    pub kind_code: u8,
    /// Tier.
    pub tier: Tier,
    /// Significance.
    pub significance: Significance,
    /// The importance, 0 to 1.
    pub importance: f32,
    /// The confidence, 0 to 1; none for short-term rows.
    pub confidence: Option<f32>,
    /// The reinforcement count: at least 1, saturating.
    pub reinforcement_count: u32,
    /// Pinned by a caller.
    pub pinned: bool,
    /// Locked by an administrator.
    pub admin_locked: bool,
    /// Locked by the host.
    pub system_locked: bool,
    /// Whether the row is a summary whose sources were removed.
    pub deletes_source: bool,
    /// The instants that decide visibility.
    pub times: Times,
    /// The supersessions at instants ahead that another one has come before, in the order of their instants.
    pub overtaken: Vec<Overtaken>,
    /// Who set the end of life, `expires_at` of the times.
    pub expires_by: ExpiresBy,
    /// When the memory was created.
    pub created_at: Time,
    /// When a caller last wrote the memory.
    pub updated_at: Time,
    /// When the event that the text tells of happened.
    pub happened_at: Option<Time>,
    /// When the memory was last reinforced.
    pub last_reinforced_at: Option<Time>,
    /// The version: 1 at first, and one more with every change except the folding of access counts.
    pub version: u64,
    /// The number of bytes of the content.
    pub content_bytes: u32,
    /// Where the engine keeps the row.
    pub place: Place,
}

/// What only the engine knows of a row. It is never shown, and is stored beside the vitals.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The number of the partition in the namespace.
    pub partition: u32,
    /// The number of the embedding space.
    pub space: u16,
    /// The slot of the vector; none as long as there is no vector.
    pub slot: Option<u32>,
    /// The number of the document in the full-text index of the partition; none in limbo.
    pub doc: Option<u32>,
    /// The first 16 bytes of the fingerprint; none for an empty normal form.
    pub fingerprint: Option<[u8; 16]>,
    /// The key of everything else that must be equal before a write is absorbed: kind, world time, metadata, and the
    /// bytes of the text.
    pub likeness: [u8; 12],
    /// Whether the row has a payload, which lies in a table of its own.
    pub payload: bool,
    /// How the counters count the row now.
    pub counted: Counted,
    /// The number for the next holder.
    pub next_holder: u32,
    /// The number of holders.
    pub holders: u32,
    /// How much the row was used, as far as tables of memories follow from it.
    pub usage: Usage,
}

impl Place {
    /// The number for the next holder. A number is never given out again.
    ///
    /// # Errors
    /// `Conflict` for a row that has given out every number.
    pub(crate) fn give_number(&mut self) -> Result<u32> {
        let number = self.next_holder;
        self.next_holder = number.checked_add(1).ok_or_else(|| Error::Conflict {
            what: format!("holder {number}"),
            why: "the memory has given out every number of a holder".to_owned(),
        })?;
        Ok(number)
    }
}

closed_set! {
    /// How the counters count a row. A row moves from one member to the next at its next instant.
    pub(crate) Counted "counted" {
        /// Visible: counted as live, and by kind, tier, tag and label.
        Live = 0, "live";
        /// Not yet valid; a later reader will see the row.
        Ahead = 1, "ahead";
        /// Past its world time, but neither superseded nor expired.
        Past = 2, "past";
        /// Expired, not yet purged.
        Expired = 3, "expired";
        /// Superseded and no longer visible.
        Superseded = 4, "superseded";
        /// Removed by maintenance, kept for undo.
        Limbo = 5, "limbo";
        /// Superseded, and past its end of life, not yet purged. Counted as superseded.
        Over = 6, "over";
    }
}

impl Counted {
    /// How the counters count a row with `times` at `now`, a committed instant. A row that will be replaced at an
    /// instant ahead is superseded, yet visible until then. It counts as live, and before that as ahead. So a row
    /// never returns to an earlier member, and its next due instant always lies in the future.
    pub fn at(times: &Times, now: Time) -> Counted {
        if times.removed_at.is_some() {
            Counted::Limbo
        } else if times.visible_live(now) {
            Counted::Live
        } else if times.superseded.is_some() {
            if now < times.from() && times.from() < times.until() {
                Counted::Ahead
            } else if times.is_expired(now) {
                Counted::Over
            } else {
                Counted::Superseded
            }
        } else if times.is_expired(now) {
            Counted::Expired
        } else if now < times.from() {
            Counted::Ahead
        } else {
            Counted::Past
        }
    }
}

/// The end of a memory's life, and who set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// The instant of the end; none means never.
    pub(crate) end: Option<Time>,
    /// Who set the end.
    pub(crate) by: ExpiresBy,
}

impl Life {
    /// The end that a tier gives to a row whose life begins at `base`; none for a durable tier.
    pub(crate) fn of_tier(base: Time, ttl: Option<Span>) -> Self {
        Life { end: ttl.map(|ttl| base.plus(ttl)), by: ExpiresBy::Tier }
    }

    /// The life after a use at `now`. Only an end that the tier set slides, and only if there is an end.
    pub(crate) fn slid(self, now: Time, ttl: Option<Span>) -> Self {
        match (self.by, self.end, ttl) {
            (ExpiresBy::Tier, Some(end), Some(ttl)) => Life { end: Some(end.max(now.plus(ttl))), ..self },
            _ => self,
        }
    }

    /// The life of a row that absorbs one more write: the later of the given ends. A write without an end moves no end
    /// that a caller set.
    pub(crate) fn absorbing(self, write: Life) -> Self {
        match (self.by, write.by) {
            (ExpiresBy::Caller, ExpiresBy::Tier) => self,
            _ => self.longer(write),
        }
    }

    /// Whether a caller set the end of this life, and the tier of the write gives it a longer one.
    pub(crate) fn promises_less_than(self, write: Life) -> bool {
        self.is_promised_end() && write.by == ExpiresBy::Tier && self.longer(write) != self
    }

    /// Whether one row can have both lives, and neither writer finds its end moved: no caller set an end, or callers set
    /// the same end.
    pub(crate) fn agrees_with(self, other: Life) -> bool {
        self == other || !(self.is_promised_end() || other.is_promised_end())
    }

    /// Whether a caller set an end.
    pub(crate) fn is_promised_end(self) -> bool {
        self.by == ExpiresBy::Caller && self.end.is_some()
    }

    /// The longer of two lives. A life without an end is the longest. If both ends are equal, the life that a caller
    /// set.
    pub(crate) fn longer(self, other: Life) -> Self {
        let until = |life: Life| (life.end.is_none(), life.end, life.by);
        if until(other) > until(self) { other } else { self }
    }
}

impl Vitals {
    /// Whether the text is to have a vector, and has none.
    pub(crate) fn waits_for_vector(&self) -> bool {
        self.place.slot.is_none() && self.times.removed_at.is_none()
    }

    /// The vitals of a memory with this text, written at `now`, of which nothing else is known.
    pub(crate) fn new(text: &str, now: Time) -> Self {
        Vitals {
            kind_code: Kind::default().code(),
            tier: Tier::default(),
            significance: Significance::default(),
            importance: 0.5,
            confidence: None,
            reinforcement_count: 1,
            pinned: false,
            admin_locked: false,
            system_locked: false,
            deletes_source: false,
            times: Times { recorded_at: now, ..Times::default() },
            overtaken: Vec::new(),
            expires_by: ExpiresBy::Tier,
            created_at: now,
            updated_at: now,
            happened_at: None,
            last_reinforced_at: None,
            version: 1,
            content_bytes: u32::try_from(text.len()).unwrap_or(u32::MAX),
            place: Place {
                partition: 0,
                space: 0,
                slot: None,
                doc: None,
                fingerprint: None,
                likeness: [0; 12],
                payload: false,
                counted: Counted::Live,
                next_holder: 0,
                holders: 0,
                usage: Usage::default(),
            },
        }
    }

    /// The end of life, and who set it.
    pub(crate) fn life(&self) -> Life {
        Life { end: self.times.expires_at, by: self.expires_by }
    }

    /// Whether the row is in limbo until the undo horizon. An end that a caller set comes first.
    pub(crate) fn waits_for_horizon(&self) -> bool {
        self.times.removed_at.is_some() && !self.life().is_promised_end()
    }

    /// Sets another end of life.
    pub(crate) fn set_life(&mut self, life: Life) {
        (self.times.expires_at, self.expires_by) = (life.end, life.by);
    }

    /// Whether automatic actors must leave the memory alone.
    pub fn is_protected(&self) -> bool {
        self.pinned || self.admin_locked || self.system_locked
    }

    /// What the canonical order compares.
    pub fn rank(&self, id: MemoryId) -> Rank {
        Rank {
            significance: self.significance,
            reinforcement_count: self.reinforcement_count,
            created_at: self.created_at,
            id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Vitals;
    use crate::error::ErrorKind;
    use crate::model::Time;

    #[test]
    fn numbers_of_holders_end_and_never_begin_again() {
        let mut place = Vitals::new("text", Time::EPOCH).place;
        place.next_holder = u32::MAX - 1;
        assert_eq!(place.give_number().ok(), Some(u32::MAX - 1));
        for _ in 0..2 {
            assert_eq!(place.give_number().map_err(|why| why.kind()), Err(ErrorKind::Conflict));
        }
    }
}
