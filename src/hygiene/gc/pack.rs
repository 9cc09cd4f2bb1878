//! What is the writer of a summary shown of a group?

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::error::{Result, sound};
use crate::hygiene::gc::candidates::may_be_told;
use crate::ingest::{owner_in, owner_of};
use crate::model::{Content, Draft, Field, Kind, MemoryId, PLACE_NAMES, Span, Time, Vitals};
use crate::policy::Gc;
use crate::store::control::{CounterSort, TOTAL};
use crate::store::keys;
use crate::store::{AggregateRow, MessageRows, NsId, PartId, Rows, Snapshot, Table, Walk, last_id};
use crate::summary::{InputPack, PackAggregate, PackLimits, PackSource, TimeSpan};

/// Largest number of aggregates of a pack.
const AGGREGATES_MAX: usize = 50;
/// Memories of the days of a group among which other aggregates are looked for.
const ROWS_BESIDE_MAX: usize = 10_000;

/// Those of some memories of which a summary may tell still.
///
/// # Errors
/// `Corrupted`, where more than single rows is damaged.
pub(crate) fn told<R: MessageRows>(
    rows: &R,
    (ns, now): (NsId, Time),
    ids: impl IntoIterator<Item = MemoryId>,
) -> Result<Vec<MemoryId>> {
    let mut told = Vec::new();
    for id in ids {
        let vitals = sound(rows.vitals(ns, id))?.flatten();
        told.extend(vitals.filter(|vitals| may_be_told(vitals, now)).map(|_| id));
    }
    Ok(told)
}

/// The memories of these that can still be read, and in numbers the aggregates among them and those beside them: of their
/// channels on their days.
///
/// # Errors
/// `Corrupted`, where more than single rows is damaged.
pub(crate) fn pack(
    rows: &Snapshot,
    (ns, now): (NsId, Time),
    ids: impl IntoIterator<Item = MemoryId>,
    gc: &Gc,
) -> Result<InputPack> {
    let (mut sources, mut aggregates) = (Vec::new(), Vec::new());
    let (mut known, mut days) = (BTreeSet::new(), BTreeSet::new());
    for id in ids {
        let vitals = sound(rows.vitals(ns, id))?.flatten();
        let content = sound(rows.content(ns, id))?.flatten();
        let Some((vitals, content)) = vitals.zip(content) else { continue };
        if let Some(aggregate) = content.aggregate_id
            && let Some(row) = sound(rows.aggregate(ns, aggregate.as_bytes()))?.flatten()
        {
            known.insert(aggregate);
            aggregates.push(statistics(aggregate, row));
        }
        days.insert(Day {
            part: vitals.place.partition,
            owner: owner_of(&content.metadata),
            channel: content.channel.clone(),
            begin: day_of(vitals.created_at),
        });
        sources.push(PackSource {
            id: id.to_string(),
            ts: vitals.happened_at.unwrap_or(vitals.created_at).as_millis(),
            kind: content.kind(vitals.kind_code),
            channel: content.channel,
            author_kind: content.author_kind,
            text: content.text,
        });
    }
    beside(rows, (ns, now), days, known, &mut aggregates)?;
    Ok(InputPack::new(sources, aggregates, pack_limits(gc)))
}

/// How much a summary may have.
pub(crate) fn pack_limits(gc: &Gc) -> PackLimits {
    PackLimits { bullets: gc.max_bullets as usize, patterns: gc.max_patterns as usize }
}

/// The first instant of a UTC day.
fn day_of(at: Time) -> Time {
    let day = Span::from_days(1).as_millis();
    Time::from_millis(at.as_millis().div_euclid(day) * day)
}

/// The messages of one owner in a channel on a UTC day.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Day {
    part: u32,
    owner: String,
    channel: Option<String>,
    begin: Time,
}

/// Adds the numbers of the other families of repeated messages of some days. What a summary must not be made of is not shown
/// either: the writer could take its words.
fn beside(
    rows: &Snapshot,
    (ns, now): (NsId, Time),
    days: BTreeSet<Day>,
    mut known: BTreeSet<MemoryId>,
    aggregates: &mut Vec<PackAggregate>,
) -> Result<()> {
    // Without an aggregate there is nothing to find, and every group of a busy day would read the whole day. A counter that
    // can't be read says nothing.
    let kind = Kind::Aggregate.to_string();
    let counted = sound(rows.counter_row(ns, TOTAL, CounterSort::Kind as u8, &kind))?;
    if counted.is_some_and(|counted| counted.rows == 0) {
        return Ok(());
    }
    let mut left = ROWS_BESIDE_MAX;
    for Day { part, owner, channel, begin: day } in days {
        let part = PartId(part);
        let from = keys::by_time(ns, part, day, MemoryId::from_bytes([0; 16]));
        let end = keys::by_time(ns, part, day.plus(Span::from_days(1)), MemoryId::from_bytes([0; 16]));
        let walk = Walk::prefix(&keys::ns_part(ns, part)).starting_at(&from).before(&end);
        let ids = rows.each_key(Table::ByTime, &walk, left, |key| last_id(Table::ByTime, key))?;
        left -= ids.len();
        for id in ids {
            if aggregates.len() >= AGGREGATES_MAX {
                return Ok(());
            }
            let vitals = sound(rows.vitals(ns, id))?.flatten();
            let stays =
                |vitals: &Vitals| vitals.kind_code == Kind::Aggregate.code() && may_be_told(vitals, now);
            if !vitals.as_ref().is_some_and(stays) {
                continue;
            }
            let content = sound(rows.content(ns, id))?.flatten();
            let content =
                content.filter(|content| content.channel == channel && owner_of(&content.metadata) == owner);
            let Some(id) = content.and_then(|content| content.aggregate_id) else { continue };
            if known.insert(id) {
                let row = sound(rows.aggregate(ns, id.as_bytes()))?.flatten();
                aggregates.extend(row.map(|row| statistics(id, row)));
            }
        }
    }
    Ok(())
}

fn statistics(id: MemoryId, row: AggregateRow) -> PackAggregate {
    PackAggregate {
        aggregate_id: id.to_string(),
        dup_count: row.dup_count,
        time_span: TimeSpan { start: row.first_ts, end: row.last_ts },
        examples: row.snippets,
        signals: row.signals,
    }
}

/// What each of some memories has, and their summary therefore has as well.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shared {
    pub(crate) tags: Vec<String>,
    channel: Option<String>,
    thread: Option<String>,
    session: Option<String>,
    /// What the metadata says of their owner and their place.
    metadata: Map<String, Value>,
}

impl Shared {
    fn of(content: Content) -> Self {
        let Content { tags, channel, thread, session, metadata, .. } = content;
        let place =
            PLACE_NAMES.iter().filter_map(|name| Some(((*name).to_owned(), metadata.get(name)?.clone())));
        let metadata = owner_in(&metadata).into_iter().chain(place).collect();
        Shared { tags, channel, thread, session, metadata }
    }

    fn keep_of(&mut self, other: &Self) {
        self.tags.retain(|tag| other.tags.contains(tag));
        for (field, other) in [
            (&mut self.channel, &other.channel),
            (&mut self.thread, &other.thread),
            (&mut self.session, &other.session),
        ] {
            field.take_if(|field| Some(&*field) != other.as_ref());
        }
        self.metadata.retain(|name, value| other.metadata.get(name) == Some(value));
    }

    /// Gives a draft its place in the channel and thread of the memories: neighbours in a thread lend a summary their
    /// words, as they lend them to a message.
    pub(crate) fn place(&self, draft: &mut Draft) {
        let field = |field: &Option<String>| field.clone().map_or(Field::Absent, Field::Value);
        draft.fields.channel = field(&self.channel);
        draft.fields.thread = field(&self.thread);
        draft.fields.session = field(&self.session);
        if !self.metadata.is_empty() {
            draft.fields.metadata = Some(Value::Object(self.metadata.clone()));
        }
    }
}

/// What each of some memories has. One that is gone or can't be read has no say.
///
/// # Errors
/// As [`pack`].
pub(crate) fn shared<R: MessageRows>(rows: &R, ns: NsId, sources: &[MemoryId]) -> Result<Shared> {
    let mut all: Option<Shared> = None;
    for id in sources {
        let Some(one) = sound(rows.content(ns, *id))?.flatten().map(Shared::of) else { continue };
        match &mut all {
            None => all = Some(one),
            Some(all) => all.keep_of(&one),
        }
    }
    Ok(all.unwrap_or_default())
}
