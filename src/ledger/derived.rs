//! The rows that follow from the vitals and the content of a memory: secondary indexes and counters.
//!
//! A change writes the difference of this function before and after. `check` compares the function with the rows of
//! the file. So an index can't contradict its memory (law 4).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::Result;
use crate::index::{Edit, Written, rebuild, slots, without_vector};
use crate::ledger::{Context, Ledger, Why, truth};
use crate::model::{
    Content, Counted, Evidence, Kind, MemoryId, MetaValue, Op, PINNED_TAG, RuleId, Tier, Time, Times, Vitals,
    series_place,
};
use crate::store::control::CounterSort as Sort;
use crate::store::keys::{self, Key};
use crate::store::{IndexId, NsId, PartId, Rows, Table};
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
    /// The row waits for a vector.
    Pending(PartId),
    /// The row that superseded it.
    Superseded(MemoryId),
    /// By series and time, for a current snapshot.
    Series(PartId, String, Time),
    /// By a value of the metadata, at a path that has an index.
    Meta(Arc<str>, MetaValue),
}

impl IndexRow {
    /// The tables in which such rows stand.
    pub(crate) const TABLES: [Table; 7] = [
        Table::Superseded,
        Table::ByTime,
        Table::ByFingerprint,
        Table::Due,
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
            IndexRow::Pending(part) => (Table::Pending, keys::pending(ns, *part, id)),
            IndexRow::Superseded(by) => (Table::Superseded, keys::superseded(ns, *by, id)),
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
        // took its place.
        rows.extend(vitals.times.superseded_by().map(IndexRow::Superseded));
        return rows;
    }
    if let Some(at) = next_due(&vitals.times, vitals.place.counted) {
        rows.insert(IndexRow::Due(at));
    }
    if vitals.place.slot.is_none() {
        rows.insert(IndexRow::Pending(part));
    }
    if let Some(by) = vitals.times.superseded_by() {
        rows.insert(IndexRow::Superseded(by));
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

/// The key of everything besides the normal form that must be equal before a write is absorbed.
pub(crate) fn likeness_of(vitals: &Vitals, content: &Content) -> [u8; LIKENESS_BYTES] {
    let world = (vitals.times.valid_from, vitals.times.valid_to);
    likeness(&content.kind(vitals.kind_code), world, &content.metadata, &content.text)
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
        Counted::Superseded => all.push((Sort::Superseded, String::new(), bytes)),
        Counted::Limbo => all.push((Sort::Limbo, String::new(), bytes)),
    }
    all
}

/// A row of the main table as the derived rows see it.
pub(crate) type Seen<'r> = Option<(&'r Vitals, &'r Content)>;

impl Ledger<'_, '_> {
    /// Writes one step in the upkeep of a graph, with one journal row. The step changes no memory and has no
    /// inverse: the graph can be dropped and built again.
    pub(crate) fn derive(&mut self, context: &Context, edit: &Edit, rule: RuleId) -> Result<Written> {
        let written = edit.write(self.tx, self.clock.commit)?;
        if let Written::Done(_) = &written {
            let what = format!("{} rows of partition {}", edit.rows(), edit.index.part.0);
            self.journal_derived(context, rule, what)?;
        }
        Ok(written)
    }

    /// Writes the journal row of a change of derived rows. `what` was written, and no memory changed.
    pub(super) fn journal_derived(&mut self, context: &Context, rule: RuleId, what: String) -> Result<()> {
        let evidence = Evidence { signature: Some(what), ..Evidence::default() };
        self.journal(context, Op::Derive, None, Vec::new(), Why { rule, evidence }).map(|_| ())
    }

    /// Writes the codes and slots of an index again from its memories and their vectors, and drops its graph (law 4).
    /// The rows before may be damaged. Memories whose vectors can't be read wait for a vector again. Returns the
    /// number of rows.
    pub(crate) fn rebuild_index(&mut self, context: &Context, index: IndexId) -> Result<u32> {
        for id in without_vector(self.tx, index)? {
            self.lose_vector(context, id)?;
        }
        let rows = rebuild(self.tx, index, self.clock.commit)?;
        self.journal_derived(context, RuleId::REINDEX, format!("{rows} rows of partition {}", index.part.0))?;
        Ok(rows)
    }

    /// Writes the difference between the index rows and counters of a row before and after a change.
    pub(crate) fn rederive(
        &mut self,
        ns: NsId,
        id: MemoryId,
        before: Seen<'_>,
        after: Seen<'_>,
    ) -> Result<()> {
        let declared = self.declared(ns)?;
        let rows =
            |seen: Seen<'_>| seen.map(|(vitals, content)| index_rows(vitals, Some(content), &declared));
        let (old, new) = (rows(before).unwrap_or_default(), rows(after).unwrap_or_default());
        for row in old.difference(&new) {
            self.take_index_row(ns, id, row)?;
        }
        for row in new.difference(&old) {
            self.put_index_row(ns, id, row)?;
        }
        for (seen, sign) in [(before, -1), (after, 1)] {
            let Some((vitals, content)) = seen else { continue };
            let part = PartId(vitals.place.partition);
            for (sort, name, bytes) in counted_in(vitals, Some(content)) {
                let rows = if sort == Sort::Holders { i64::from(vitals.place.holders) } else { 1 };
                self.counters.add(ns, part, sort, &name, sign * rows, sign * bytes);
            }
        }
        Ok(())
    }

    pub(super) fn put_index_row(&mut self, ns: NsId, id: MemoryId, row: &IndexRow) -> Result<()> {
        match row {
            // Rows beyond the first with an equal fingerprint are duplicates (MODEL-42).
            IndexRow::ByFingerprint(part, tier, fingerprint, _)
                if self.tx.has_fingerprint(ns, *part, *tier, fingerprint)? =>
            {
                self.counters.add(ns, *part, Sort::Duplicates, "", 1, 0);
            }
            IndexRow::Pending(_) => self.waiting.push((ns, id)),
            _ => {}
        }
        let (table, key) = row.place(ns, id);
        debug_assert!(IndexRow::TABLES.contains(&table), "check and reindex walk these tables");
        truth(self.tx).put(table, &key, &[])
    }

    pub(super) fn take_index_row(&mut self, ns: NsId, id: MemoryId, row: &IndexRow) -> Result<()> {
        let (table, key) = row.place(ns, id);
        truth(self.tx).delete(table, &key)?;
        if let IndexRow::ByFingerprint(part, tier, fingerprint, _) = row
            && self.tx.has_fingerprint(ns, *part, *tier, fingerprint)?
        {
            self.counters.add(ns, *part, Sort::Duplicates, "", -1, 0);
        }
        Ok(())
    }

    /// Tells the staged vectors of this transaction what neighbour searches may find: a row that ends is no longer
    /// found, and a row that comes back is found again.
    fn stage(
        &mut self,
        context: &Context,
        id: MemoryId,
        before: Option<&Vitals>,
        vitals: &Vitals,
    ) -> Result<()> {
        let index = Self::index_of(context.ns, vitals);
        if !vitals.times.is_current(context.now) {
            self.staged.end(index, id);
        } else if let (Some(before), Some(slot)) = (before, vitals.place.slot)
            && !before.times.is_current(context.now)
            && let Some(vector) = slots::vector_at(self.tx, index, self.dim_of(vitals)?, slot)?
        {
            self.staged.push(index, id, &vector);
        }
        Ok(())
    }

    /// Writes the vitals and the content of a row with everything that follows from them. `before` is the row
    /// as stored.
    pub(crate) fn store_row(
        &mut self,
        context: &Context,
        id: MemoryId,
        before: Seen<'_>,
        mut vitals: Vitals,
        content: &Content,
    ) -> Result<Vitals> {
        // The tag and the flag mean the same (MODEL-9).
        vitals.pinned = content.tags.iter().any(|tag| tag == PINNED_TAG);
        let is_like = |(was, old): (&Vitals, &Content)| {
            let world = |vitals: &Vitals| (vitals.kind_code, vitals.times.valid_from, vitals.times.valid_to);
            world(was) == world(&vitals) && old.text == content.text && old.metadata == content.metadata
        };
        // Computing the likeness costs a hash of the text, so an unchanged one is kept.
        vitals.place.likeness = match before.filter(|before| is_like(*before)) {
            Some((was, _)) => was.place.likeness,
            None => likeness_of(&vitals, content),
        };
        vitals.place.counted = Counted::at(&vitals.times, context.now);
        self.rederive(context.ns, id, before, Some((&vitals, content)))?;
        self.stage(context, id, before.map(|(before, _)| before), &vitals)?;
        vitals.place.doc = self.index_text(context.ns, id, before, &vitals, content)?;
        truth(self.tx).put_vitals(context.ns, id, &vitals)?;
        if before.is_none_or(|(_, old)| old != content) {
            truth(self.tx).put_content(context.ns, id, content)?;
        }
        Ok(vitals)
    }
}
