//! Messages as they came, and families of repeated ones in numbers.

use serde::{Serialize, Serializer};

use crate::error::{Error, Result};
use crate::limits::PAGE_MAX;
use crate::model::closed::closed_set;
use crate::model::id::{AggregateId, EventId, MemoryId, RunId};
use crate::model::kind::AuthorKind;
use crate::model::name::Partition;
use crate::model::query::PageRequest;
use crate::model::time::Time;

closed_set! {
    /// What became of a message.
    #[non_exhaustive]
    pub EventDecision "decision" {
        /// It became a memory of its own.
        Stored = 0, "stored";
        /// It reinforced the memory that says the same.
        Reinforced = 1, "reinforced";
        /// It is an event only, counted in an aggregate.
        Aggregated = 2, "aggregated";
    }
}

/// A message of an author as it came. It is never embedded and no search returns it.
///
/// Forgetting a memory erases what its messages said: text, signatures, hashes, author and place become none, while
/// instant, links and decision stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Id.
    #[serde(rename = "event_id")]
    pub id: EventId,
    /// When it was written: `created_at` of the write.
    pub ts: Time,
    /// Where it was written to.
    #[serde(serialize_with = "shown")]
    pub partition: Partition,
    /// Channel.
    pub channel: Option<String>,
    /// Thread.
    pub thread: Option<String>,
    /// Session.
    pub session: Option<String>,
    /// A person or a program.
    pub author_kind: AuthorKind,
    /// Who.
    pub author_id: Option<String>,
    /// The raw text.
    pub payload: Option<String>,
    /// The text in normal form.
    pub normalized: Option<String>,
    /// Which normal form: `msg-1`.
    pub normalizer_id: String,
    /// Signature of the attachments.
    pub attachment_sig: Option<String>,
    /// Signature of the embeds.
    pub embed_sig: Option<String>,
    /// Exact key; 64 hex digits in JSON.
    #[serde(serialize_with = "hex_key")]
    pub dup_key: Option<[u8; 32]>,
    /// SimHash, none for a text without tokens; 16 hex digits in JSON.
    #[serde(serialize_with = "hex_hash")]
    pub simhash: Option<u64>,
    /// The numbers that it is counted in.
    pub aggregate_id: Option<AggregateId>,
    /// The memory that it became or reinforced; it may be gone, then a tombstone has this id.
    pub memory_id: Option<MemoryId>,
    /// The import that it came with.
    pub run: Option<RunId>,
    /// What became of it.
    pub decision: EventDecision,
}

closed_set! {
    /// How the members of a family were recognised.
    pub AggregateType "type" {
        /// All have one exact key.
        Exact = 0, "exact";
        /// Some came by their SimHash.
        Near = 1, "near";
    }
}

/// What a family has in common: the hashes of its first member. None when that was forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FamilyFingerprint {
    /// Exact key; 64 hex digits in JSON.
    #[serde(serialize_with = "hex_key")]
    pub exact_hash: Option<[u8; 32]>,
    /// SimHash; 16 hex digits in JSON.
    #[serde(serialize_with = "hex_hash")]
    pub simhash: Option<u64>,
}

/// A family of repeated messages in one slice of time, in numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Aggregate {
    /// Id.
    #[serde(rename = "aggregate_id")]
    pub id: AggregateId,
    /// How its members were recognised.
    #[serde(rename = "type")]
    pub aggregate_type: AggregateType,
    /// Where its messages were written to.
    #[serde(serialize_with = "shown")]
    pub partition: Partition,
    /// Channel of its messages.
    pub scope: Option<String>,
    /// The family, the same in every slice of time.
    pub family_id: MemoryId,
    /// The slice of time of a bot's family (`agg.slice`): its day, or its first instant where slices are no days.
    pub slice: Option<String>,
    /// The earliest member.
    pub first_event_id: EventId,
    /// The latest member.
    pub last_event_id: EventId,
    /// When the earliest was written.
    pub ts_first: Time,
    /// When the latest was written.
    pub ts_last: Time,
    /// Members, the first among them.
    pub dup_count: u64,
    /// `ts_last` - `ts_first` in milliseconds.
    pub time_span: u64,
    /// Ids of authors, at most `agg.max_authors`, in the order in which they came.
    pub authors_seen: Vec<String>,
    /// The earliest members, at most `agg.max_examples`.
    pub example_event_ids: Vec<EventId>,
    /// Beginnings of different texts among the examples, at most 3 of 200 bytes.
    pub example_snippets: Vec<String>,
    /// What its members have in common.
    pub normalized_fingerprint: FamilyFingerprint,
    /// Sort of spam; `unclassified` until a caller says.
    pub classification: String,
    /// Signs by which it is known.
    pub recognition_signals: Vec<String>,
    /// The memory that stands for a bot's messages; a person's repeats have none.
    pub memory_id: Option<MemoryId>,
}

/// Which events a listing shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventsOf {
    /// All of the namespace, by instant.
    #[default]
    All,
    /// The one with this id.
    Event(EventId),
    /// Those that an aggregate counts, in the order in which they came.
    Aggregate(AggregateId),
    /// Those that became or reinforced a memory, and those that the memory of an aggregate stands for; in the order in
    /// which they came.
    Memory(MemoryId),
}

/// A page of events. An instant bounds every listing.
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
    /// Which.
    pub of: EventsOf,
    /// Written at this instant or later.
    pub from: Option<Time>,
    /// Written before this instant.
    pub to: Option<Time>,
    /// At most so many, 1 to 10,000; 100.
    pub limit: usize,
    /// Where the page before ended.
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
    pub fn of_aggregate(id: AggregateId) -> Self {
        EventQuery { of: EventsOf::Aggregate(id), ..EventQuery::default() }
    }

    /// The events behind a memory.
    pub fn of_memory(id: MemoryId) -> Self {
        EventQuery { of: EventsOf::Memory(id), ..EventQuery::default() }
    }

    /// One event.
    pub fn one(id: EventId) -> Self {
        EventQuery { of: EventsOf::Event(id), ..EventQuery::default() }
    }

    /// # Errors
    /// `Invalid` when the limit is out of bounds.
    pub(crate) fn check(&self) -> Result<()> {
        if (1..=PAGE_MAX).contains(&self.limit) {
            return Ok(());
        }
        Err(Error::invalid("limit", format!("must be 1 to {PAGE_MAX}"), self.limit))
    }
}

fn shown<S: Serializer>(partition: &Partition, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(partition)
}

#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
fn hex_key<S: Serializer>(key: &Option<[u8; 32]>, to: S) -> Result<S::Ok, S::Error> {
    match key {
        Some(key) => to.collect_str(&key.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        None => to.serialize_none(),
    }
}

#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
fn hex_hash<S: Serializer>(hash: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
    match hash {
        Some(hash) => to.collect_str(&format_args!("{hash:016x}")),
        None => to.serialize_none(),
    }
}
