//! The rows that follow from the vitals and the content of a memory: secondary indexes and counters.
//!
//! A change writes the difference of this function before and after. `check` compares the function with the rows of
//! the file. So an index can't contradict its memory (law 4).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::limits::IMPORTANCE_CLASSES;
use crate::model::{
    Content, Counted, ExpiresBy, Kind, MemoryId, MetaValue, Tier, Time, Times, Vitals, series_place,
};
use crate::store::control::CounterSort as Sort;
use crate::store::keys::{self, Key};
use crate::store::{NsId, PartId, Table};
use crate::text::{LIKENESS_BYTES, likeness};

/// A row of a secondary index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IndexRow {
    /// By creation.
    ByTime(PartId, Time),
    /// By fingerprint and likeness, while the row is current.
    ByFingerprint(PartId, Tier, [u8; 16], [u8; 12]),
    /// The next instant at which the visibility of the row changes without a write.
    Due(Time),
    /// The end of life of a row that is over, from the settling of that instant until the row goes. A protected row
    /// stands apart, because no automatic actor removes it.
    Ended(bool, Time),
    /// The row is visible and of a short-term tier.
    ShortTerm,
    /// The row is visible and durable, and nobody has used it: class of importance, and when it was last written.
    Unused(u8, Time),
    /// The row is visible, of this short-term tier, used so often, and no consolidation has looked at it.
    InUse(Tier, u8),
    /// By level and creation, while the row is visible.
    ByLevel(u8, Time),
    /// The row waits for a vector.
    Pending(PartId),
    /// The row that superseded it.
    Superseded(MemoryId),
    /// When it was superseded.
    SupersededAt(Time),
    /// By series and time, for a current snapshot.
    Series(PartId, String, Time),
    /// By a value of the metadata, at a path that has an index.
    Meta(Arc<str>, MetaValue),
}

impl IndexRow {
    /// The tables in which such rows stand.
    pub(crate) const TABLES: [Table; 13] = [
        Table::Superseded,
        Table::SupersededTime,
        Table::ByTime,
        Table::ByFingerprint,
        Table::Due,
        Table::Ended,
        Table::ShortTerm,
        Table::Unused,
        Table::InUse,
        Table::ByLevel,
        Table::Pending,
        Table::Series,
        Table::MetaValue,
    ];

    /// Where it stands.
    pub(crate) fn place(&self, ns: NsId, id: MemoryId) -> (Table, Key) {
        match self {
            IndexRow::ByTime(part, created) => (Table::ByTime, keys::by_time(ns, *part, *created, id)),
            IndexRow::ByFingerprint(part, tier, fingerprint, likeness) => {
                (Table::ByFingerprint, keys::by_fingerprint(ns, *part, *tier, fingerprint, likeness, id))
            }
            IndexRow::Due(at) => (Table::Due, keys::by_instant(ns, *at, id)),
            IndexRow::Ended(protected, at) => (Table::Ended, keys::ended(ns, u8::from(*protected), *at, id)),
            IndexRow::ShortTerm => (Table::ShortTerm, keys::memory(ns, id)),
            IndexRow::Unused(class, updated) => (Table::Unused, keys::unused(ns, *class, *updated, id)),
            IndexRow::InUse(tier, uses) => (Table::InUse, keys::in_use(ns, *tier, *uses, id)),
            IndexRow::ByLevel(level, created) => (Table::ByLevel, keys::by_level(ns, *level, *created, id)),
            IndexRow::Pending(part) => (Table::Pending, keys::pending(ns, *part, id)),
            IndexRow::Superseded(by) => (Table::Superseded, keys::superseded(ns, *by, id)),
            IndexRow::SupersededAt(at) => (Table::SupersededTime, keys::by_instant(ns, *at, id)),
            IndexRow::Series(part, series, at) => (Table::Series, keys::series(ns, *part, series, *at, id)),
            IndexRow::Meta(path, value) => (Table::MetaValue, keys::meta_row(ns, path, value.clone(), id)),
        }
    }

    /// The row that a key of a secondary index stands for, with its memory; none for a key of another form.
    pub(crate) fn at(table: Table, key: &[u8]) -> Option<(NsId, MemoryId, IndexRow)> {
        let row = match table {
            Table::ByTime => keys::ByTime::parse(key).map(|row| IndexRow::ByTime(row.part, row.created)),
            Table::ByFingerprint => keys::ByFingerprint::parse(key)
                .map(|row| IndexRow::ByFingerprint(row.part, row.tier, *row.fingerprint, *row.likeness)),
            Table::Due => keys::Due::parse(key).map(|row| IndexRow::Due(row.at)),
            Table::Ended => keys::Ended::parse(key).map(|row| IndexRow::Ended(row.protected != 0, row.at)),
            Table::ShortTerm => keys::ShortTerm::parse(key).map(|_| IndexRow::ShortTerm),
            Table::Unused => keys::Unused::parse(key).map(|row| IndexRow::Unused(row.sixteenth, row.updated)),
            Table::InUse => keys::InUse::parse(key).map(|row| IndexRow::InUse(row.tier, row.uses)),
            Table::ByLevel => keys::ByLevel::parse(key).map(|row| IndexRow::ByLevel(row.level, row.created)),
            Table::SupersededTime => {
                keys::SupersededTime::parse(key).map(|row| IndexRow::SupersededAt(row.at))
            }
            Table::Pending => keys::Pending::parse(key).map(|row| IndexRow::Pending(row.part)),
            Table::Series => keys::Series::parse(key)
                .map(|row| IndexRow::Series(row.part, row.series.0.to_owned(), row.at)),
            Table::MetaValue => {
                keys::MetaValue::parse(key).map(|row| IndexRow::Meta(row.path.0.into(), row.value))
            }
            Table::Superseded => keys::Superseded::parse(key).map(|row| IndexRow::Superseded(row.new)),
            _ => None,
        };
        let (address, _) = table.address(key);
        Some((address.ns?, address.id?, row?))
    }
}

/// The paths of metadata that have an index in a namespace, in order.
pub(crate) type Declared = [Arc<str>];

/// The index rows that a memory must have. It may have no others. Without the content, the rows that follow from the
/// vitals.
pub(crate) fn index_rows(
    vitals: &Vitals,
    content: Option<&Content>,
    declared: &Declared,
) -> BTreeSet<IndexRow> {
    let part = PartId(vitals.place.partition);
    let mut rows = BTreeSet::from([IndexRow::ByTime(part, vitals.created_at)]);
    if let Some(fingerprint) = vitals.place.fingerprint.filter(|_| absorbs(vitals)) {
        rows.insert(IndexRow::ByFingerprint(part, vitals.tier, fingerprint, vitals.place.likeness));
    }
    if vitals.times.removed_at.is_some() {
        // A row in limbo is found only by its name, in listings that ask for limbo, and from the row that
        // took its place. An end that a caller set is kept there too.
        rows.extend(vitals.times.superseded_by().map(IndexRow::Superseded));
        let promised = vitals.times.expires_at.filter(|_| vitals.life().is_promised_end());
        rows.extend(promised.map(|at| IndexRow::Ended(vitals.is_protected(), at)));
        return rows;
    }
    if let Some(at) = next_due(&vitals.times, vitals.place.counted) {
        rows.insert(IndexRow::Due(at));
    }
    if let Some(at) = vitals.times.expires_at
        && matches!(vitals.place.counted, Counted::Expired | Counted::Over)
    {
        rows.insert(IndexRow::Ended(vitals.is_protected(), at));
    }
    if vitals.tier.is_short_term() && vitals.place.counted == Counted::Live {
        rows.insert(IndexRow::ShortTerm);
    }
    rows.extend(by_use(vitals));
    if let Some(level) = Kind::level_of(vitals.kind_code)
        && vitals.place.counted == Counted::Live
    {
        rows.insert(IndexRow::ByLevel(level, vitals.created_at));
    }
    if vitals.place.slot.is_none() {
        rows.insert(IndexRow::Pending(part));
    }
    if let Some(superseded) = vitals.times.superseded {
        rows.insert(IndexRow::Superseded(superseded.by));
        rows.insert(IndexRow::SupersededAt(superseded.at));
    }
    if let Some((series, at)) = content.and_then(|content| series_place(vitals, content)) {
        rows.insert(IndexRow::Series(part, series.to_owned(), at));
    }
    for (content, path) in
        content.into_iter().flat_map(|content| declared.iter().map(move |path| (content, path)))
    {
        let values = MetaValue::all_at(&content.metadata, path).into_iter();
        rows.extend(values.map(|value| IndexRow::Meta(Arc::clone(path), value)));
    }
    rows
}

/// Whether index rows differ before and after a change of the use, the confidence or the end of a memory that is counted as before.
pub(crate) fn moves_rows(before: &Vitals, after: &Vitals) -> bool {
    before.times != after.times || by_use(before) != by_use(after)
}

/// The row by which demotion or promotion finds a memory, if it may.
fn by_use(vitals: &Vitals) -> Option<IndexRow> {
    // Automatic actors leave a protected memory alone.
    if vitals.place.counted != Counted::Live || vitals.is_protected() {
        return None;
    }
    let usage = vitals.place.usage;
    match vitals.tier {
        // What a caller said of the end of a memory is a promise, and demotion would set another end.
        Tier::Semantic | Tier::Procedural => (usage.uses == 0 && vitals.expires_by == ExpiresBy::Tier)
            .then(|| IndexRow::Unused(importance_class(f64::from(vitals.importance)), vitals.updated_at)),
        Tier::Working => (usage.uses > 0 && !(usage.is_consolidated && usage.is_promoted))
            .then_some(IndexRow::InUse(vitals.tier, usage.uses)),
        Tier::Episodic => {
            (usage.uses > 0 && !usage.is_consolidated).then_some(IndexRow::InUse(vitals.tier, usage.uses))
        }
    }
}

/// The sixteenth into which an importance from 0 to 1 falls, from 0 to 15.
pub(crate) fn importance_class(importance: f64) -> u8 {
    let classes = f64::from(IMPORTANCE_CLASSES);
    (importance * classes).clamp(0.0, classes - 1.0) as u8
}

/// The key of everything besides the normal form that must be equal before a write is absorbed.
pub(crate) fn likeness_of(vitals: &Vitals, content: &Content) -> [u8; LIKENESS_BYTES] {
    let (kind, times) = (content.kind(vitals.kind_code), &vitals.times);
    likeness(&kind, times.valid_from, times.valid_to, &content.metadata, &content.text)
}

/// Whether the row can absorb a write, as far as the counters know: it is current, and of a kind whose
/// repeats mean nothing. Snapshots are a series, not repeats.
fn absorbs(vitals: &Vitals) -> bool {
    vitals.times.superseded.is_none()
        && matches!(vitals.place.counted, Counted::Live | Counted::Ahead)
        && vitals.kind_code != Kind::Snapshot.code()
}

/// The first instant at which the row is counted differently from now.
pub(crate) fn next_due(times: &Times, counted: Counted) -> Option<Time> {
    let instants = [times.valid_from, times.valid_to, times.expires_at];
    instants
        .into_iter()
        .flatten()
        // Nothing lies before `Time::MIN`, and the next filter looks at the millisecond before an instant.
        .filter(|&at| at > Time::MIN && Counted::at(times, at) != counted)
        .filter(|&at| {
            // If the state that follows an instant has been counted already, the instant is past.
            Counted::at(times, Time::from_millis(at.as_millis() - 1)) == counted
        })
        .min()
}

/// The sort, the name and the bytes of every counter of a memory. Without the content, the counters that follow from
/// the vitals.
pub(crate) fn counted_in(vitals: &Vitals, content: Option<&Content>) -> Vec<(Sort, String, i64)> {
    let bytes = i64::from(vitals.content_bytes);
    let mut all = Vec::new();
    // A row in limbo stands for no write any more. Its holders belong to the row that took it in.
    if vitals.times.removed_at.is_none() {
        all.push((Sort::Holders, String::new(), 0));
        let has_vector = if vitals.place.slot.is_some() { Sort::Vectors } else { Sort::Pending };
        all.push((has_vector, String::new(), 0));
    }
    match vitals.place.counted {
        Counted::Live => {
            all.push((Sort::Live, String::new(), bytes));
            all.push((Sort::Tier, vitals.tier.as_str().to_owned(), bytes));
            if let Some(content) = content {
                let kind = content.kind(vitals.kind_code);
                all.push((Sort::Kind, kind.to_string(), bytes));
                all.push((Sort::Label, content.scope_label.clone(), bytes));
                all.extend(content.tags.iter().map(|tag| (Sort::Tag, tag.clone(), bytes)));
            }
        }
        Counted::Ahead => all.push((Sort::Ahead, String::new(), bytes)),
        Counted::Past => all.push((Sort::Past, String::new(), bytes)),
        Counted::Expired => all.push((Sort::Expired, String::new(), bytes)),
        Counted::Superseded | Counted::Over => all.push((Sort::Superseded, String::new(), bytes)),
        Counted::Limbo => all.push((Sort::Limbo, String::new(), bytes)),
    }
    all
}
