//! A stored memory: its hot part, its cold part, its statistics and its holders.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::model::closed::closed_set;
use crate::model::field::{Attachment, Embed, Entity, Link, TimeRange, memory_fields, stored};
use crate::model::id::{MemoryId, RunId};
use crate::model::kept::Limbo;
use crate::model::kind::{AuthorKind, ExpiresBy, Kind, Significance, State, SupersedeMode, Tier};
use crate::model::name::{NamespaceName, Partition};
use crate::model::order::Rank;
use crate::model::parts::{Access, Parts};
use crate::model::payload::Payload;
use crate::model::time::{Span, Time};
use crate::model::visible::Times;

/// The supersession of a memory: by which memory, when and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supersession {
    /// The transaction time.
    pub at: Time,
    /// The memory that took its place.
    pub by: MemoryId,
    /// The mode.
    pub mode: SupersedeMode,
}

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
    pub Counted "counted" {
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
            } else {
                Counted::Superseded
            }
        } else if times.expires_at.is_some_and(|end| end <= now) {
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
            },
        }
    }

    /// The end of life, and who set it.
    pub(crate) fn life(&self) -> Life {
        Life { end: self.times.expires_at, by: self.expires_by }
    }

    /// Sets another end of life.
    pub(crate) fn set_life(&mut self, life: Life) {
        (self.times.expires_at, self.expires_by) = (life.end, life.by);
    }

    /// Whether automatic actors must leave the memory alone.
    pub fn is_protected(&self) -> bool {
        self.pinned || self.admin_locked || self.system_locked
    }

    /// When the row with these statistics was last touched.
    pub fn last_accessed(&self, access: &Access) -> Time {
        [access.last_retrieved, access.last_included_at, self.last_reinforced_at]
            .into_iter()
            .flatten()
            .fold(self.created_at, Time::max)
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

/// One write that a row stands for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holder {
    /// The number in the row.
    pub number: u32,
    /// The key that was written. Keyless writes with equal tags and run share a holder.
    pub key: Option<String>,
    /// The number of writes that the holder stands for; more than 1 only without a key.
    pub count: u32,
    /// The share of the row's reinforcement count.
    pub share: u32,
    /// The tags that the write brought, sorted.
    pub tags: Vec<String>,
    /// The categories that the write brought, sorted.
    pub categories: Vec<String>,
    /// The entities that the write brought, sorted.
    pub entities: Vec<Entity>,
    /// The links that the write brought, sorted.
    pub links: Vec<Link>,
    /// The code of each other field that the write gave, with the first 8 bytes of the HMAC of its value, by
    /// code.
    pub fields: Vec<(u8, [u8; 8])>,
    /// The import that brought the write.
    pub run: Option<RunId>,
    /// The holder's own text, where it differs from that of the row.
    pub text: Option<String>,
    /// The row from which the holder came when that row was superseded or merged. A restore brings the holder
    /// back there.
    pub from: Option<MemoryId>,
    /// Whether the holder wrote a text other than the row's and keeps none of its own. Such a holder came with a
    /// supersession, as a way to the newest text, or was merged without a key. It does not keep the text of the row
    /// alive.
    pub follows: bool,
}

impl Holder {
    /// Whether the holder wrote the text of its row. The text lives as long as such a holder exists.
    pub fn wrote_row_text(&self) -> bool {
        self.text.is_none() && !self.follows
    }

    /// Whether the holder has written a text in its row: that of the row, or one of its own.
    pub(crate) fn has_text(&self) -> bool {
        !self.follows
    }

    /// Whether this holder is the copy of `other` that was taken along to another row.
    pub(crate) fn is_copy_of(&self, other: &Holder) -> bool {
        (&self.key, &self.tags, self.run, self.count) == (&other.key, &other.tags, other.run, other.count)
    }

    /// The holder after its row, with the text `old`, was merged into a row with the text `new`. A key keeps the text
    /// that it answers with. A write without a key keeps no text.
    pub(crate) fn merged(mut self, old: &str, new: &str) -> Self {
        if !self.follows {
            let text = self.text.take().unwrap_or_else(|| old.to_owned());
            let differs = text != new;
            self.follows = differs && self.key.is_none();
            self.text = Some(text).filter(|_| differs && !self.follows);
        }
        self
    }

    /// Whether a keyless write with these tags, this run and this text of its own is a repeat of this
    /// holder's write.
    pub fn takes_keyless(&self, tags: &[String], run: Option<RunId>, text: Option<&str>) -> bool {
        let is_like = self.key.is_none() && self.from.is_none() && !self.follows;
        is_like && self.run == run && self.tags == tags && self.text.as_deref() == text
    }
}

macro_rules! memory {
    (own { $($own:tt)+ } $($part:ident { $(
        $(#[$doc:meta])*
        $number:literal $name:ident: $wrap:ident<$ty:ty> = $default:expr, $($place:ident).+, $bound:ident, $json:ident,
        $journal:ident, $merge:ident;
    )+ })+) => {
        /// A memory as it is shown, with everything that is stored of it.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct Memory {
            /// The id.
            pub id: MemoryId,
            /// The namespace.
            pub namespace: NamespaceName,
            /// The partition.
            pub partition: Partition,
            /// The state at the instant of the read.
            pub state: State,
            /// All keys that the memory answers to, sorted.
            pub keys: Vec<String>,
            /// The text as the caller asked for it. A key whose holder wrote other bytes answers with these
            /// bytes.
            pub text: String,
            /// The text of the row, which is that of most holders.
            pub row_text: String,
            /// The kind.
            pub kind: Kind,
            /// The number of observations that the memory stands for, at least 1.
            pub reinforcement_count: u32,
            /// The union of the tags of all holders, sorted.
            pub tags: Vec<String>,
            /// The union of the categories of all holders.
            pub categories: Vec<String>,
            /// The union of the entities of all holders.
            pub entities: Vec<Entity>,
            /// The union of the links of all holders.
            pub links: Vec<Link>,
            /// The provenance.
            pub sources: Vec<MemoryId>,
            /// When the database learned of the memory: transaction time.
            pub recorded_at: Time,
            /// What `valid_to` was before the memory was replaced.
            pub valid_to_before: Option<Time>,
            /// The end of life, exclusive; none means never.
            pub expires_at: Option<Time>,
            /// Who set the end of life.
            pub expires_by: ExpiresBy,
            /// The supersession of the memory: by which memory, when and how.
            pub superseded: Option<Supersession>,
            /// When maintenance removed the memory; only for a memory in limbo.
            pub removed_at: Option<Time>,
            /// How the memory was removed; only for a memory in limbo.
            pub limbo: Option<Box<Limbo>>,
            /// The other side of a supersession that lies ahead. For a memory that is still visible, the memory that
            /// will take its place. For the memory to come, the memory that is visible until then.
            pub also: Option<MemoryId>,
            /// The version: 1 at first, and one more with every change except the counts of use.
            pub version: u64,
            /// A count that grows with each counted use.
            pub access_seq: u64,
            /// Whether the memory is a summary whose sources were removed.
            pub deletes_source: bool,
            /// Whether the memory waits for a vector.
            pub pending: bool,
            /// The writes that the memory stands for.
            pub holders: Vec<Holder>,
            /// The number for the next holder.
            pub next_holder: u32,
            /// The unit vector, if the caller asked for it.
            pub vector: Option<Vec<f32>>,
            /// Whether the memory carries a payload.
            pub has_payload: bool,
            /// The payload. Only an export reads it with the memory; others ask
            /// [`Namespace::payload`](crate::Namespace::payload).
            pub payload: Option<Payload>,
            $($($(#[$doc])* pub $name: stored!($wrap, $ty),)+)+
        }

        impl Memory {
            /// The memory with these parts. Its namespace, its partition, what it is joined to and its vector are
            /// still empty.
            pub(crate) fn of(id: MemoryId, parts: Parts) -> Self {
                let kind = parts.kind();
                let times = parts.vitals.times;
                Memory {
                    id,
                    namespace: NamespaceName::default(),
                    partition: Partition::Shared,
                    state: State::Live,
                    keys: Vec::new(),
                    text: parts.content.text.clone(),
                    row_text: parts.content.text,
                    kind,
                    reinforcement_count: parts.vitals.reinforcement_count,
                    tags: parts.content.tags,
                    categories: Vec::new(),
                    entities: Vec::new(),
                    links: Vec::new(),
                    sources: Vec::new(),
                    recorded_at: times.recorded_at,
                    valid_to_before: times.valid_to_before,
                    expires_at: times.expires_at,
                    expires_by: parts.vitals.expires_by,
                    superseded: times.superseded,
                    removed_at: times.removed_at,
                    limbo: None,
                    also: None,
                    version: parts.vitals.version,
                    access_seq: parts.access.access_seq,
                    deletes_source: parts.vitals.deletes_source,
                    pending: parts.vitals.place.slot.is_none(),
                    holders: Vec::new(),
                    next_holder: parts.vitals.place.next_holder,
                    vector: None,
                    has_payload: parts.vitals.place.payload,
                    payload: None,
                    $($($name: parts.$part.$($place).+,)+)+
                }
            }

            /// What the rows of the memory itself store. Only the engine knows where they lie.
            pub(crate) fn parts(&self) -> Parts {
                let mut parts = Parts::new(&self.row_text, self.recorded_at);
                $($(parts.$part.$($place).+.clone_from(&self.$name);)+)+
                let Parts { vitals, content, access } = &mut parts;
                vitals.times.valid_to_before = self.valid_to_before;
                vitals.times.expires_at = self.expires_at;
                vitals.times.superseded = self.superseded;
                vitals.times.removed_at = self.removed_at;
                vitals.expires_by = self.expires_by;
                vitals.kind_code = self.kind.code();
                vitals.reinforcement_count = self.reinforcement_count;
                vitals.deletes_source = self.deletes_source;
                vitals.version = self.version;
                vitals.place.next_holder = self.next_holder;
                vitals.place.holders = u32::try_from(self.holders.len()).unwrap_or(u32::MAX);
                content.custom_kind = self.kind.custom_name().map(str::to_owned);
                content.tags.clone_from(&self.tags);
                access.access_seq = self.access_seq;
                parts
            }
        }
    };
}

memory_fields!(memory);

impl Memory {
    /// The instants that decide when the memory is visible.
    pub(crate) fn times(&self) -> Times {
        Times {
            recorded_at: self.recorded_at,
            valid_from: self.valid_from,
            valid_to: self.valid_to,
            valid_to_before: self.valid_to_before,
            expires_at: self.expires_at,
            superseded: self.superseded,
            removed_at: self.removed_at,
        }
    }

    /// The memory that took its place.
    pub fn superseded_by(&self) -> Option<MemoryId> {
        self.superseded.map(|superseded| superseded.by)
    }

    /// Whether automatic actors must leave the memory alone.
    pub fn is_protected(&self) -> bool {
        self.pinned || self.admin_locked || self.system_locked
    }

    /// When anyone last touched the memory.
    pub fn last_accessed(&self) -> Time {
        [self.last_retrieved, self.last_included_at, self.last_reinforced_at]
            .into_iter()
            .flatten()
            .fold(self.created_at, Time::max)
    }

    /// How often the memory was used.
    pub fn access_count(&self) -> u64 {
        self.retrieval_count.max(self.included_count_total)
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
