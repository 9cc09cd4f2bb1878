//! A stored memory: its hot part, its cold part, its statistics, its holders.

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
use crate::model::time::{Span, Time};
use crate::model::visible::Times;

/// By what, when and how a memory was superseded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supersession {
    /// Transaction time.
    pub at: Time,
    /// The memory that stands in its place.
    pub by: MemoryId,
    /// How.
    pub mode: SupersedeMode,
}

/// The hot part of a memory: fixed in width, read by every filter and ranking (design, "Hot and cold apart").
#[derive(Clone, Debug, PartialEq)]
pub struct Vitals {
    /// Code of the kind; the name of a custom kind stands in `Content::custom_kind`.
    pub kind_code: u8,
    /// Tier.
    pub tier: Tier,
    /// Significance.
    pub significance: Significance,
    /// 0 to 1.
    pub importance: f32,
    /// 0 to 1, none for short-term rows.
    pub confidence: Option<f32>,
    /// At least 1, saturating.
    pub reinforcement_count: u32,
    /// Pinned by a caller.
    pub pinned: bool,
    /// Locked by an administrator.
    pub admin_locked: bool,
    /// Locked by the host.
    pub system_locked: bool,
    /// A summary whose sources were removed.
    pub deletes_source: bool,
    /// The instants that decide visibility.
    pub times: Times,
    /// Who set the end of its life, `expires_at` of its times.
    pub expires_by: ExpiresBy,
    /// When it came to be.
    pub created_at: Time,
    /// When a caller last wrote it.
    pub updated_at: Time,
    /// When what it tells happened.
    pub happened_at: Option<Time>,
    /// When it was last reinforced.
    pub last_reinforced_at: Option<Time>,
    /// Version: 1 at first, one more on every change except the folding of access counts.
    pub version: u64,
    /// Bytes of its content.
    pub content_bytes: u32,
    /// Where the engine keeps it.
    pub place: Place,
}

/// What the engine alone knows of a row: never shown, kept beside the vitals.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Number of its partition in the namespace.
    pub partition: u32,
    /// Number of its embedding space.
    pub space: u16,
    /// Slot of its vector; none while it has none.
    pub slot: Option<u32>,
    /// Number of its document in the full-text index of its partition; none in limbo.
    pub doc: Option<u32>,
    /// First 16 bytes of its fingerprint; none for an empty normal form.
    pub fingerprint: Option<[u8; 16]>,
    /// Key of what must be equal beside it before a write is absorbed: kind, world time, metadata, and the bytes of the text.
    pub likeness: [u8; 12],
    /// How it stands in the counters now.
    pub counted: Counted,
    /// Number that its next holder gets.
    pub next_holder: u32,
    /// How many holders it has.
    pub holders: u32,
}

impl Place {
    /// The number of the next holder, which is never given out again.
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
    /// How a row stands in the counters: it moves from one to the next when its instant comes.
    pub Counted "counted" {
        /// Visible: counted as live, by kind, tier, tag and label.
        Live = 0, "live";
        /// Not yet valid; a later reader will see it.
        Ahead = 1, "ahead";
        /// Past its world time, not superseded, not expired.
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
    /// How a row with `times` stands at `now`, a committed instant. A row that was replaced at an instant
    /// ahead is superseded yet visible until then: it counts as live, and as ahead before that. So a row never comes
    /// back to what it once counted as, and the next instant that is due lies always in the future.
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

/// The end of a memory's life, with who set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// The instant; none: never.
    pub(crate) end: Option<Time>,
    /// Who set it.
    pub(crate) by: ExpiresBy,
}

impl Life {
    /// The end that a tier gives to a row whose life begins at `base`; none of a durable tier.
    pub(crate) fn of_tier(base: Time, ttl: Option<Span>) -> Self {
        Life { end: ttl.map(|ttl| base.plus(ttl)), by: ExpiresBy::Tier }
    }

    /// Moved by a use at `now`: only a tier's end slides, and only where there is one.
    pub(crate) fn slid(self, now: Time, ttl: Option<Span>) -> Self {
        match (self.by, self.end, ttl) {
            (ExpiresBy::Tier, Some(end), Some(ttl)) => Life { end: Some(end.max(now.plus(ttl))), ..self },
            _ => self,
        }
    }

    /// That of a row which stands for one more write: the later of what the writes gave, but a write that gave none
    /// moves no end that a caller set.
    pub(crate) fn absorbing(self, write: Life) -> Self {
        match (self.by, write.by) {
            (ExpiresBy::Caller, ExpiresBy::Tier) => self,
            _ => self.longer(write),
        }
    }

    /// The longer of two lives, of which one without an end is the longest. Of two equal ones that of the caller.
    pub(crate) fn longer(self, other: Life) -> Self {
        let until = |life: Life| (life.end.is_none(), life.end, life.by);
        if until(other) > until(self) { other } else { self }
    }
}

impl Vitals {
    /// Those of a memory of this text, written at `now`, of which nothing else is known.
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
                counted: Counted::Live,
                next_holder: 0,
                holders: 0,
            },
        }
    }

    /// The end of its life, with who set it.
    pub(crate) fn life(&self) -> Life {
        Life { end: self.times.expires_at, by: self.expires_by }
    }

    /// Gives it another end.
    pub(crate) fn set_life(&mut self, life: Life) {
        (self.times.expires_at, self.expires_by) = (life.end, life.by);
    }

    /// Whether no automatic actor may touch it.
    pub fn is_protected(&self) -> bool {
        self.pinned || self.admin_locked || self.system_locked
    }

    /// Last time that anyone touched the row with these statistics.
    pub fn last_accessed(&self, access: &Access) -> Time {
        [access.last_retrieved, access.last_included_at, self.last_reinforced_at]
            .into_iter()
            .flatten()
            .fold(self.created_at, Time::max)
    }

    /// What the canonical order looks at.
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
    /// Number in the row.
    pub number: u32,
    /// The key that was written; keyless writes with equal tags and run share a holder.
    pub key: Option<String>,
    /// How many writes it stands for; more than 1 only without a key.
    pub count: u32,
    /// Its share of the row's reinforcement count.
    pub share: u32,
    /// Tags that it brought, sorted.
    pub tags: Vec<String>,
    /// Categories that it brought, sorted.
    pub categories: Vec<String>,
    /// Entities that it brought, sorted.
    pub entities: Vec<Entity>,
    /// Links that it brought, sorted.
    pub links: Vec<Link>,
    /// Code of each other field that it gave, with the first 8 bytes of the HMAC of its value, by code.
    pub fields: Vec<(u8, [u8; 8])>,
    /// The import that it came with.
    pub run: Option<RunId>,
    /// Its own text where that differs from the row's.
    pub text: Option<String>,
    /// The row that it came from when that row was superseded or merged; it goes back there on restore.
    pub from: Option<MemoryId>,
    /// Whether it wrote another text than the row's and keeps none of its own: it came with a supersession, as a way to
    /// the newest text, or was merged without a key. It does not keep the text of the row alive.
    pub follows: bool,
}

impl Holder {
    /// Whether it wrote the very text of its row, which lives as long as such a holder.
    pub fn wrote_row_text(&self) -> bool {
        self.text.is_none() && !self.follows
    }

    /// Whether it has written a text in its row: that of the row, or one of its own.
    pub(crate) fn has_text(&self) -> bool {
        !self.follows
    }

    /// Whether this is what a move made of `other`, taken along to another row.
    pub(crate) fn is_copy_of(&self, other: &Holder) -> bool {
        (&self.key, &self.tags, self.run, self.count) == (&other.key, &other.tags, other.run, other.count)
    }

    /// As it is after a merge of its row, with the text `old`, into one with the text `new`: a key keeps the text that it
    /// answers with; a write without one keeps none.
    pub(crate) fn merged(mut self, old: &str, new: &str) -> Self {
        if !self.follows {
            let text = self.text.take().unwrap_or_else(|| old.to_owned());
            let differs = text != new;
            self.follows = differs && self.key.is_none();
            self.text = Some(text).filter(|_| differs && !self.follows);
        }
        self
    }

    /// Whether a keyless write with these tags, this run and this text of its own is one more of the same.
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
        /// A memory as it is shown: everything that is stored of it.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct Memory {
            /// Id.
            pub id: MemoryId,
            /// Namespace.
            pub namespace: NamespaceName,
            /// Partition.
            pub partition: Partition,
            /// State at the instant of the read.
            pub state: State,
            /// All keys that it answers to, sorted.
            pub keys: Vec<String>,
            /// Text as the caller asked for it: a key whose holder wrote other bytes answers with its own.
            pub text: String,
            /// Text of the row; that of most holders.
            pub row_text: String,
            /// What sort of memory.
            pub kind: Kind,
            /// How many observations it stands for, at least 1.
            pub reinforcement_count: u32,
            /// Union of its holders' tags, sorted.
            pub tags: Vec<String>,
            /// Union of its holders' categories.
            pub categories: Vec<String>,
            /// Union of its holders' entities.
            pub entities: Vec<Entity>,
            /// Union of its holders' links.
            pub links: Vec<Link>,
            /// Provenance.
            pub sources: Vec<MemoryId>,
            /// When the database learned of it: transaction time.
            pub recorded_at: Time,
            /// What `valid_to` was before the memory was replaced.
            pub valid_to_before: Option<Time>,
            /// End of its life, exclusive; none: never.
            pub expires_at: Option<Time>,
            /// Who set the end of its life.
            pub expires_by: ExpiresBy,
            /// By what, when and how it was superseded.
            pub superseded: Option<Supersession>,
            /// When maintenance removed it, of a memory in limbo alone.
            pub removed_at: Option<Time>,
            /// How it was removed, of a memory in limbo alone.
            pub limbo: Option<Box<Limbo>>,
            /// With a supersession ahead: of a memory that is still visible the one that will take its place, and of
            /// the one to come the memory that is visible until then.
            pub also: Option<MemoryId>,
            /// 1 at first, one more on every change except the counts of its use.
            pub version: u64,
            /// One more for each use that was counted.
            pub access_seq: u64,
            /// A summary whose sources were removed.
            pub deletes_source: bool,
            /// Whether it waits for a vector.
            pub pending: bool,
            /// The writes that it stands for.
            pub holders: Vec<Holder>,
            /// Number that its next holder gets.
            pub next_holder: u32,
            /// Its unit vector, where the caller asked for it.
            pub vector: Option<Vec<f32>>,
            $($($(#[$doc])* pub $name: stored!($wrap, $ty),)+)+
        }

        impl Memory {
            /// The memory with these parts. Who it is, what it is joined to and its vector are those of nobody yet.
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
                    $($($name: parts.$part.$($place).+,)+)+
                }
            }

            /// What is stored of it in its own rows, of which the engine alone knows the places.
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
    /// The instants that decide when it is visible.
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

    /// The memory that stands in its place.
    pub fn superseded_by(&self) -> Option<MemoryId> {
        self.superseded.map(|superseded| superseded.by)
    }

    /// Whether no automatic actor may touch it.
    pub fn is_protected(&self) -> bool {
        self.pinned || self.admin_locked || self.system_locked
    }

    /// Last time that anyone touched it.
    pub fn last_accessed(&self) -> Time {
        [self.last_retrieved, self.last_included_at, self.last_reinforced_at]
            .into_iter()
            .flatten()
            .fold(self.created_at, Time::max)
    }

    /// How often it was used.
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
