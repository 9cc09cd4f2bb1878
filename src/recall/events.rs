//! Listings of messages and of aggregates.

use std::ops::ControlFlow;

use crate::error::{Error, Result, sound};
use crate::model::hex::hex;
use crate::model::{
    Aggregate, AggregateId, AggregateType, AuthorKind, Event, EventId, EventQuery, EventsOf,
    FamilyFingerprint, MemoryId, Page, RunId, Time,
};
use crate::recall::Reader;
use crate::recall::list::{nothing, position};
use crate::store::keys::{self, Key};
use crate::store::{
    AggregateRow, EventPlace, EventRow, Id, MessageRows, NsId, PartId, Read, Rows, Table, Walk,
};

/// Bytes of the cursor of events by time: namespace, instant, id.
const TIME_BYTES: usize = 4 + 8 + 16;
/// Bytes of a key of `event_of`: namespace, owner, instant, id.
const OWNER_BYTES: usize = 4 + 16 + 8 + 16;

/// Events that a listing has read, by instant and id, and those that could not be read.
#[derive(Default)]
struct Found {
    rows: Vec<(Time, Id, EventRow)>,
    damaged: Vec<MemoryId>,
}

impl Reader<'_> {
    /// # Errors
    /// `Invalid` for a limit outside 1 to 10,000 or a cursor of another listing; `Corrupted`.
    pub(crate) fn events(&self, query: &EventQuery) -> Result<Page<Event>> {
        query.check()?;
        let Some(ns) = self.ns else { return Ok(nothing()) };
        let prefix = match query.of {
            EventsOf::All => return self.events_by_time(ns, query),
            EventsOf::Event(id) => {
                let found = self.rows().event(ns, id.as_bytes())?.filter(|row| within(query, row));
                let damaged = found.as_ref().map_or(Ok(None), |_| self.family_lost(ns, id.as_bytes()))?;
                let items = found.map(|row| self.event_shown(ns, id.as_bytes(), row)).transpose()?;
                return Ok(Page::new(Vec::from_iter(items), None, Vec::from_iter(damaged)));
            }
            EventsOf::Aggregate(id) => owner(ns, id.as_bytes()),
            EventsOf::Memory(id) => {
                let stands_for = self.aggregate_of_memory(ns, id)?;
                owner(ns, &stands_for.unwrap_or(*id.as_bytes()))
            }
        };
        let mut walk = Walk::prefix(&prefix);
        if let Some(cursor) = &query.cursor {
            walk = walk.after(&position(cursor, &prefix, OWNER_BYTES)?);
        }
        let mut found = Found::default();
        self.take(ns, query, Table::EventOf, &walk, &mut found)?;
        self.page(ns, query, &prefix, found)
    }

    /// All events of a namespace: those that have a text and the others, each in the order of time.
    fn events_by_time(&self, ns: NsId, query: &EventQuery) -> Result<Page<Event>> {
        let prefix = keys::ns(ns);
        let after = query.cursor.as_ref().map(|cursor| position(cursor, &prefix, TIME_BYTES)).transpose()?;
        let mut found = Found::default();
        for half in EventPlace::HALVES {
            let half = keys::event_half(ns, half);
            let mut walk = Walk::prefix(&half);
            walk = query.from.into_iter().fold(walk, |walk, at| walk.starting_at(&keys::at(&half, at)));
            walk = query.to.into_iter().fold(walk, |walk, at| walk.before(&keys::at(&half, at)));
            if let Some(after) = after.as_deref().and_then(|key| key.get(prefix.len()..)) {
                walk = walk.after(&[&*half, after].concat());
            }
            self.take(ns, query, Table::EventTime, &walk, &mut found)?;
        }
        self.page(ns, query, &prefix, found)
    }

    /// Reads events of a walk, one more than requested, which tells whether there is a next page.
    fn take(&self, ns: NsId, query: &EventQuery, table: Table, walk: &Walk, found: &mut Found) -> Result<()> {
        let full = found.rows.len() + query.limit;
        self.rows().walk(table, walk, &mut |key, _| {
            let id = *crate::store::last_id(table, key)?.as_bytes();
            let Some(row) = sound(self.rows().event(ns, &id))?.flatten() else {
                found.damaged.push(MemoryId::from_bytes(id));
                return Ok(ControlFlow::Continue(()));
            };
            if within(query, &row) {
                found.rows.push((row.at(), id, row));
            }
            Ok(if found.rows.len() > full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
    }

    /// A page of events, whose cursor is the prefix with the instant and the id of the last one.
    fn page(&self, ns: NsId, query: &EventQuery, prefix: &Key, found: Found) -> Result<Page<Event>> {
        let Found { mut rows, mut damaged } = found;
        rows.sort_unstable_by_key(|(at, id, _)| (*at, *id));
        let more = rows.len() > query.limit;
        rows.truncate(query.limit);
        let last = rows.last().filter(|_| more);
        let next = last.map(|(at, id, _)| hex(&[&keys::at(prefix, *at), &id[..]].concat()));
        for (_, id, _) in &rows {
            damaged.extend(self.family_lost(ns, id)?);
        }
        let items = rows.into_iter().map(|(_, id, row)| self.event_shown(ns, &id, row));
        Ok(Page::new(items.collect::<Result<_>>()?, next, damaged))
    }

    fn event_shown(&self, ns: NsId, id: &Id, row: EventRow) -> Result<Event> {
        let key = keys::memory(ns, MemoryId::from_bytes(*id));
        let bad = |why: &str| Error::corrupted(Table::Event.name(), &key, why);
        Ok(Event {
            id: EventId::from_bytes(*id),
            ts: row.at(),
            partition: self.partition(ns, PartId(row.part))?,
            channel: row.channel,
            thread: row.thread,
            session: row.session,
            key: row.key,
            author_kind: AuthorKind::from_code(row.author).ok_or_else(|| bad("no such author kind"))?,
            author_id: row.author_id,
            payload: row.payload,
            normalized: row.normalized,
            normalizer_id: row.normalizer,
            attachment_sig: row.attachment_sig,
            embed_sig: row.embed_sig,
            dup_key: row.dup_key,
            simhash: row.simhash,
            aggregate_id: row.aggregate.map(AggregateId::from_bytes),
            memory_id: row.memory.map(MemoryId::from_bytes),
            origin_memory_id: row.origin.map(MemoryId::from_bytes),
            run: row.run.map(RunId::from_bytes),
            decision: row.decision,
        })
    }

    /// Families of repeated messages by id, which is the order in which they came.
    ///
    /// # Errors
    /// `Invalid` when the limit is not 1 to 10,000 or the cursor is of another listing; `Corrupted`.
    pub(crate) fn aggregates(&self, cursor: Option<&str>, limit: usize) -> Result<Page<Aggregate>> {
        self.page_of_ids(Table::Aggregate, cursor, limit, |ns, id, damaged| {
            let aggregate = sound(self.aggregate_shown(ns, id.as_bytes()))?.flatten();
            if let Some(aggregate) = &aggregate {
                damaged.extend(self.family_lost(ns, aggregate.first_event_id.as_bytes())?);
            }
            Ok(aggregate)
        })
    }

    /// # Errors
    /// `NotFound`, `Corrupted`.
    pub(crate) fn aggregate(&self, id: AggregateId) -> Result<Aggregate> {
        let found = self.ns.map(|ns| self.aggregate_shown(ns, id.as_bytes())).transpose()?.flatten();
        found.ok_or_else(|| Error::NotFound { what: "aggregate", name: id.to_string() })
    }

    fn aggregate_shown(&self, ns: NsId, id: &Id) -> Result<Option<Aggregate>> {
        let Some(row) = self.rows().aggregate(ns, id)? else { return Ok(None) };
        let AggregateRow { first_ts, last_ts, .. } = row;
        Ok(Some(Aggregate {
            id: AggregateId::from_bytes(*id),
            aggregate_type: if row.near { AggregateType::Near } else { AggregateType::Exact },
            partition: self.partition(ns, PartId(row.part))?,
            scope: row.scope,
            family_id: MemoryId::from_bytes(row.family),
            slice: row.slice,
            first_event_id: EventId::from_bytes(row.first_event),
            last_event_id: EventId::from_bytes(row.last_event),
            ts_first: Time::from_millis(first_ts),
            ts_last: Time::from_millis(last_ts),
            dup_count: row.dup_count,
            events_ended: row.ended,
            time_span: last_ts.abs_diff(first_ts),
            authors_seen: row.authors,
            example_event_ids: row.examples.into_iter().map(EventId::from_bytes).collect(),
            example_snippets: row.snippets,
            normalized_fingerprint: FamilyFingerprint { exact_hash: row.exact_hash, simhash: row.simhash },
            classification: row.classification,
            recognition_signals: row.signals,
            memory_id: row.memory.map(MemoryId::from_bytes),
        }))
    }

    /// The aggregate of the family to which a memory belongs. The memory may stand for the family, be its first
    /// message, or be the message that a person repeated.
    pub(crate) fn family_of(&self, ns: NsId, id: MemoryId) -> Result<Option<Aggregate>> {
        if let Some(aggregate) = self.aggregate_of_memory(ns, id)? {
            return Ok(sound(self.aggregate_shown(ns, &aggregate))?.flatten());
        }
        for event in self.rows().events_of(ns, id.as_bytes(), 1)? {
            if let Some(aggregate) =
                sound(self.rows().event(ns, &event))?.flatten().and_then(|row| row.aggregate)
            {
                return Ok(sound(self.aggregate_shown(ns, &aggregate))?.flatten());
            }
        }
        Ok(None)
    }

    /// The first message of a memory, or of the aggregate that it stands for, if the family that the message began is damaged.
    pub(crate) fn family_lost_of(&self, ns: NsId, id: MemoryId) -> Result<Option<MemoryId>> {
        let stands_for = self.aggregate_of_memory(ns, id)?;
        let first = self.rows().events_of(ns, &stands_for.unwrap_or(*id.as_bytes()), 1)?;
        first.first().map_or(Ok(None), |event| self.family_lost(ns, event))
    }

    /// A message, if the family that it began is damaged.
    fn family_lost(&self, ns: NsId, event: &Id) -> Result<Option<MemoryId>> {
        let is_lost = sound(self.rows().family(ns, event))?.is_none();
        Ok(is_lost.then_some(MemoryId::from_bytes(*event)))
    }

    /// The aggregate that a memory stands for. The memory's own statement is not trusted, because a caller
    /// may have written it.
    fn aggregate_of_memory(&self, ns: NsId, id: MemoryId) -> Result<Option<Id>> {
        let named = sound(self.rows().content(ns, id))?.flatten().and_then(|content| content.aggregate_id);
        let Some(aggregate) = named else { return Ok(None) };
        let row = sound(self.rows().aggregate(ns, aggregate.as_bytes()))?.flatten();
        Ok(row.filter(|row| row.memory == Some(*id.as_bytes())).map(|_| *aggregate.as_bytes()))
    }
}

/// The prefix of the rows that belong to an owner. It is also the key of an aggregate.
fn owner(ns: NsId, id: &Id) -> Key {
    keys::memory(ns, MemoryId::from_bytes(*id))
}

fn within(query: &EventQuery, row: &EventRow) -> bool {
    query.from.is_none_or(|from| row.at() >= from) && query.to.is_none_or(|to| row.at() < to)
}
