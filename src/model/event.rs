//! Messages as they came, and families of repeated messages in numbers.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::limits::{PAGE_MAX, within};
use crate::model::closed::closed_set;
use crate::model::hex;
use crate::model::id::{AggregateId, EventId, MemoryId, RunId};
use crate::model::kind::AuthorKind;
use crate::model::name::Partition;
use crate::model::query::PageRequest;
use crate::model::time::Time;

closed_set! {
    /// What was decided about a message.
    #[derive(Default)]
    #[non_exhaustive]
    pub EventDecision "decision" {
        /// The message became a memory of its own.
        #[default]
        Stored = 0, "stored";
        /// The message reinforced the memory that says the same.
        Reinforced = 1, "reinforced";
        /// The message is an event only, counted in an aggregate.
        Aggregated = 2, "aggregated";
    }
}

/// A message of an author as it came. An event is never embedded, and no search returns it.
///
/// Forgetting a memory erases what its messages said: text, signatures, hashes, author and place become none. The
/// instant, the links and the decision stay. The pass `retention` takes away the texts (`payload`, `normalized`, `embed_sig`) after
/// `events.payload_ttl`, and the event after `events.metadata_ttl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// The id.
    #[serde(rename = "event_id")]
    pub id: EventId,
    /// When the message was written: `created_at` of the write.
    pub ts: Time,
    /// The partition to which the message was written.
    #[serde(rename = "agent")]
    pub partition: Partition,
    /// Channel.
    pub channel: Option<String>,
    /// Thread.
    pub thread: Option<String>,
    /// Session.
    pub session: Option<String>,
    /// The key of the write that brought the message. Not in JSON of a write without a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether the author is a person or a program.
    pub author_kind: AuthorKind,
    /// The id of the author.
    pub author_id: Option<String>,
    /// The raw text.
    pub payload: Option<String>,
    /// The text in normal form.
    pub normalized: Option<String>,
    /// The id of the normal form: `msg-1`.
    pub normalizer_id: String,
    /// The signature of the attachments.
    pub attachment_sig: Option<String>,
    /// The signature of the embeds.
    pub embed_sig: Option<String>,
    /// The exact key; 64 hex digits in JSON.
    #[serde(with = "hex::maybe")]
    pub dup_key: Option<[u8; 32]>,
    /// The SimHash, none for a text without tokens; 16 hex digits in JSON.
    #[serde(with = "hex::maybe_simhash")]
    pub simhash: Option<u64>,
    /// The aggregate that counts the message.
    pub aggregate_id: Option<AggregateId>,
    /// The memory that the message became or reinforced. If that memory is gone, a tombstone has this id.
    pub memory_id: Option<MemoryId>,
    /// The memory by which the message was told first, where maintenance has erased that memory since. Not in JSON while there is
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin_memory_id: Option<MemoryId>,
    /// The import that brought the message.
    #[serde(rename = "run_id")]
    pub run: Option<RunId>,
    /// What was decided about the message.
    pub decision: EventDecision,
}

closed_set! {
    /// How the members of a family were recognised.
    pub AggregateType "type" {
        /// All members have one exact key.
        Exact = 0, "exact";
        /// Some members were matched by their SimHash.
        Near = 1, "near";
    }
}

/// The hashes of the first member of a family. None when that member was forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamilyFingerprint {
    /// The exact key; 64 hex digits in JSON.
    #[serde(with = "hex::maybe")]
    pub exact_hash: Option<[u8; 32]>,
    /// The SimHash; 16 hex digits in JSON.
    #[serde(with = "hex::maybe_simhash")]
    pub simhash: Option<u64>,
}

/// A family of repeated messages in one slice of time, in numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aggregate {
    /// The id.
    #[serde(rename = "aggregate_id")]
    pub id: AggregateId,
    /// How the members were recognised.
    #[serde(rename = "type")]
    pub aggregate_type: AggregateType,
    /// The partition to which the messages were written.
    #[serde(rename = "agent")]
    pub partition: Partition,
    /// The channel of the messages.
    pub scope: Option<String>,
    /// The family, which is the same in every slice of time.
    pub family_id: MemoryId,
    /// The slice of time of a bot's family (`agg.slice`): its day, or its first instant where slices are not days.
    pub slice: Option<String>,
    /// The earliest member.
    pub first_event_id: EventId,
    /// The latest member.
    pub last_event_id: EventId,
    /// When the earliest member was written.
    pub ts_first: Time,
    /// When the latest member was written.
    pub ts_last: Time,
    /// The number of members, the first one included.
    pub dup_count: u64,
    /// The members whose events are gone (`events.metadata_ttl`, `events.max_rows`). Not in JSON while there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub events_ended: u64,
    /// `ts_last` - `ts_first` in milliseconds.
    pub time_span: u64,
    /// The ids of the authors, at most `agg.max_authors`, in the order in which they came.
    pub authors_seen: Vec<String>,
    /// The earliest members, at most `agg.max_examples`.
    pub example_event_ids: Vec<EventId>,
    /// The beginnings of different texts among the examples: at most 3, each of at most 200 bytes.
    pub example_snippets: Vec<String>,
    /// What the members have in common.
    pub normalized_fingerprint: FamilyFingerprint,
    /// The sort of spam; `unclassified` until a caller sets it.
    pub classification: String,
    /// Signs by which the family is recognised.
    pub recognition_signals: Vec<String>,
    /// The memory that stands for a bot's messages. The repeats of a person have none.
    pub memory_id: Option<MemoryId>,
}

/// For `skip_serializing_if`: a count that is mostly zero is not shown then.
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Which events a listing shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventsOf {
    /// All events of the namespace, by instant.
    #[default]
    All,
    /// The event with this id.
    Event(EventId),
    /// The events that an aggregate counts, in the order in which they came.
    Aggregate(AggregateId),
    /// The events that became or reinforced a memory, and the events that the memory of an aggregate stands for, in
    /// the order in which they came.
    Memory(MemoryId),
}

/// A page of events. The instants bound every listing.
///
/// ```
/// use oubliette::memory::{EventQuery, EventsOf};
/// let day = EventQuery {
///     from: Some("2026-01-02T00:00:00Z".parse()?),
///     to: Some("2026-01-03T00:00:00Z".parse()?),
///     ..EventQuery::default()
/// };
/// assert_eq!((day.of, day.limit), (EventsOf::All, 100));
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventQuery {
    /// Which events.
    pub of: EventsOf,
    /// Only events written at this instant or later.
    pub from: Option<Time>,
    /// Only events written before this instant.
    pub to: Option<Time>,
    /// The largest number of events, 1 to 10,000; 100 by default.
    pub limit: usize,
    /// The cursor of the page before.
    pub cursor: Option<String>,
}

impl Default for EventQuery {
    fn default() -> Self {
        EventQuery {
            of: EventsOf::All,
            from: None,
            to: None,
            limit: PageRequest::default().limit,
            cursor: None,
        }
    }
}

impl EventQuery {
    /// The events that an aggregate counts.
    ///
    /// ```
    /// use oubliette::memory::{AggregateId, EventQuery, EventsOf};
    /// let id = AggregateId::from_bytes([7; 16]);
    /// assert_eq!(EventQuery::of_aggregate(id).of, EventsOf::Aggregate(id));
    /// ```
    pub fn of_aggregate(id: AggregateId) -> Self {
        EventQuery { of: EventsOf::Aggregate(id), ..EventQuery::default() }
    }

    /// The events behind a memory.
    ///
    /// ```
    /// use oubliette::memory::{AuthorKind, EventQuery};
    /// use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let message = Draft::new("Deploy of api done").kind(Kind::Message).author_kind(AuthorKind::Bot);
    /// let id = team.add(message)?.id;
    /// assert_eq!(team.events(&EventQuery::of_memory(id))?.items.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_memory(id: MemoryId) -> Self {
        EventQuery { of: EventsOf::Memory(id), ..EventQuery::default() }
    }

    /// One event.
    ///
    /// ```
    /// use oubliette::memory::{AuthorKind, EventQuery};
    /// use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Deploy of api done").kind(Kind::Message).author_kind(AuthorKind::Bot))?;
    /// let event = team.events(&EventQuery::default())?.items.remove(0);
    /// assert_eq!(team.events(&EventQuery::one(event.id))?.items, [event]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn one(id: EventId) -> Self {
        EventQuery { of: EventsOf::Event(id), ..EventQuery::default() }
    }

    /// # Errors
    /// `Invalid` when the limit is out of bounds.
    pub(crate) fn check(&self) -> Result<()> {
        within("limit", self.limit, 1..=PAGE_MAX)
    }
}
