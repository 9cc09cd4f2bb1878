//! What is the writer of a summary shown of a group?

use crate::error::{Result, sound};
use crate::model::MemoryId;
use crate::policy::Gc;
use crate::store::{AggregateRow, MessageRows, NsId};
use crate::summary::{InputPack, PackAggregate, PackLimits, PackSource, TimeSpan};

/// The memories of these that can still be read, and the numbers of the aggregates among them.
///
/// # Errors
/// `Corrupted`, where more than single rows is damaged.
pub(crate) fn pack<R: MessageRows>(
    rows: &R,
    ns: NsId,
    ids: impl IntoIterator<Item = MemoryId>,
    gc: &Gc,
) -> Result<InputPack> {
    let (mut sources, mut aggregates) = (Vec::new(), Vec::new());
    for id in ids {
        let vitals = sound(rows.vitals(ns, id))?.flatten();
        let content = sound(rows.content(ns, id))?.flatten();
        let Some((vitals, content)) = vitals.zip(content) else { continue };
        if let Some(aggregate) = content.aggregate_id
            && let Some(row) = sound(rows.aggregate(ns, aggregate.as_bytes()))?.flatten()
        {
            aggregates.push(statistics(aggregate, row));
        }
        sources.push(PackSource {
            id: id.to_string(),
            ts: vitals.happened_at.unwrap_or(vitals.created_at).as_millis(),
            kind: content.kind(vitals.kind_code),
            channel: content.channel,
            author_kind: content.author_kind,
            text: content.text,
        });
    }
    Ok(InputPack::new(sources, aggregates, pack_limits(gc)))
}

/// How much a summary may have.
pub(crate) fn pack_limits(gc: &Gc) -> PackLimits {
    PackLimits { bullets: gc.max_bullets as usize, patterns: gc.max_patterns as usize }
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

/// The observed numbers of messages of the aggregates among some memories.
///
/// # Errors
/// As [`pack`].
pub(crate) fn observed<R: MessageRows>(rows: &R, ns: NsId, sources: &[MemoryId]) -> Result<Vec<u64>> {
    let mut all = Vec::new();
    for id in sources {
        let content = sound(rows.content(ns, *id))?.flatten();
        if let Some(id) = content.and_then(|content| content.aggregate_id) {
            let row = sound(rows.aggregate(ns, id.as_bytes()))?.flatten();
            all.extend(row.map(|row| row.dup_count));
        }
    }
    Ok(all)
}

/// The tags that each of some memories has.
///
/// # Errors
/// As [`pack`].
pub(crate) fn tags_of_all<R: MessageRows>(rows: &R, ns: NsId, sources: &[MemoryId]) -> Result<Vec<String>> {
    let mut all: Option<Vec<String>> = None;
    for id in sources {
        let tags = sound(rows.content(ns, *id))?.flatten().map(|content| content.tags).unwrap_or_default();
        match &mut all {
            None => all = Some(tags),
            Some(all) => all.retain(|tag| tags.contains(tag)),
        }
    }
    Ok(all.unwrap_or_default())
}
