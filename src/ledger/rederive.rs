//! Writing what follows from a row: the row itself, its derived rows, and the steps in the upkeep of an index.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::index::{Edit, Written, rebuild, rows_of, slots, without_vector};
use crate::ledger::derived::{IndexRow, index_rows, likeness_of, moves_rows};
use crate::ledger::writer::{Context, Ledger, Why, truth};
use crate::model::{Content, Counted, Evidence, MemoryId, Op, PINNED_TAG, RuleId, Vitals};
use crate::store::control::CounterSort as Sort;
use crate::store::{IndexId, NsId, Rows};
use crate::vector::Coded;

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

    /// Writes the codes and slots of indexes of a namespace again from the memories and their vectors, and drops their graphs
    /// (law 4). The rows before may be damaged. Memories whose vectors can't be read wait for a vector again. Returns the
    /// number of rows.
    ///
    /// It reads the namespace once, and holds the ids of all memories of these indexes.
    pub(crate) fn rebuild_indexes(&mut self, context: &Context, indexes: &BTreeSet<IndexId>) -> Result<u64> {
        let mut of_indexes = rows_of(self.tx, context.ns, indexes)?;
        let mut all = 0;
        for &index in indexes {
            let mut of_index = of_indexes.remove(&index).unwrap_or_default();
            for slot in without_vector(self.tx, index, &of_index)? {
                if let Some((id, _)) = of_index.remove(&slot) {
                    self.lose_vector(context, id)?;
                }
            }
            let rows = rebuild(self.tx, index, &of_index, self.clock.commit)?;
            let what = format!("{rows} rows of partition {}", index.part.0);
            self.journal_derived(context, RuleId::REINDEX, what)?;
            all += u64::from(rows);
        }
        Ok(all)
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
        // Old rows go first: a new row by fingerprint must not find the row's own old one and count as a
        // duplicate.
        for row in old.difference(&new) {
            self.take_index_row(ns, id, row)?;
        }
        for row in new.difference(&old) {
            self.put_index_row(ns, id, row)?;
        }
        for (seen, sign) in [(before, -1), (after, 1)] {
            let Some((vitals, content)) = seen else { continue };
            self.counters.count(ns, sign, vitals, Some(content));
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
        // The row goes before the question whether an equal one is left, so that it does not count itself.
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
        let index = IndexId::of(context.ns, vitals);
        if !vitals.times.is_current(context.now) {
            self.staged.end(index, id);
        } else if let (Some(before), Some(slot)) = (before, vitals.place.slot)
            && !before.times.is_current(context.now)
            && let Some(vector) = slots::vector_at(self.tx, index, self.dim_of(vitals)?, slot)?
        {
            self.staged.push(index, id, &Coded::of(&vector));
        }
        Ok(())
    }

    /// Writes the vitals of a row of which only the use, the confidence or the end has changed, and which is counted as before:
    /// nothing that follows from its content is another then, so the content is not read.
    pub(super) fn store_vitals(
        &mut self,
        ns: NsId,
        id: MemoryId,
        before: &Vitals,
        vitals: &Vitals,
    ) -> Result<()> {
        debug_assert_eq!(before.place.counted, vitals.place.counted, "the counters need the content");
        if before.times != vitals.times {
            if let Some(slot) = vitals.place.slot {
                let dim = self.dim_of(vitals)?;
                slots::set_times(self.tx, IndexId::of(ns, vitals), dim, slot, &vitals.times)?;
            }
            if let Some(doc) = vitals.place.doc {
                self.tx.refresh_doc(Self::text_of(ns, vitals), doc, vitals)?;
            }
        }
        if moves_rows(before, vitals) {
            let (old, new) = (index_rows(before, None, &[]), index_rows(vitals, None, &[]));
            for row in old.difference(&new) {
                self.take_index_row(ns, id, row)?;
            }
            for row in new.difference(&old) {
                self.put_index_row(ns, id, row)?;
            }
        }
        truth(self.tx).put_vitals(ns, id, vitals)
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
        vitals.place.usage = vitals.place.usage.for_tier(vitals.tier);
        // Index rows and counters follow from this state, so it is set before they are derived.
        vitals.place.counted = Counted::at(&vitals.times, context.now);
        self.rederive(context.ns, id, before, Some((&vitals, content)))?;
        self.stage(context, id, before.map(|(before, _)| before), &vitals)?;
        // The vitals are written after this, because they name the document.
        vitals.place.doc = self.index_text(context.ns, id, before, &vitals, content)?;
        truth(self.tx).put_vitals(context.ns, id, &vitals)?;
        // Most changes leave the content alone, and a text may be long.
        if before.is_none_or(|(_, old)| old != content) {
            truth(self.tx).put_content(context.ns, id, content)?;
        }
        Ok(vitals)
    }
}
