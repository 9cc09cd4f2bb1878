//! What goes for its age alone: the texts of messages, messages, tombstones. Memories stay as they are.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::json;

use crate::error::{Result, sound};
use crate::ledger::writer::{Context, Ledger, Why, truth};
use crate::model::{Delta, Evidence, MemoryId, Op, Pass, RuleId};
use crate::store::control::{CounterSort as Sort, TOTAL};
use crate::store::{
    AggregateRow, FamilyRow, Id, Junction, MessageRows, NsId, PartId, Read, Rows, Table, Walk, keys,
};

impl Ledger<'_, '_> {
    /// Writes the journal row of rows that went for their age. `what` names their sort.
    pub(crate) fn journal_purge(&mut self, context: &Context, what: &str, count: u64) -> Result<()> {
        let gone = Delta { field: what.to_owned(), before: json!(count), after: json!(0) };
        let why = Why { rule: RuleId::of_pass(Pass::Retention), evidence: Evidence::default() };
        self.journal(context, Op::Purge, None, vec![gone], why)
    }

    /// Takes away what messages said. Who said it where stays, with the hashes by which repeats are recognised. Returns the
    /// number of messages that had a text.
    pub(crate) fn redact_events(&mut self, ns: NsId, ids: &[Id]) -> Result<u64> {
        let mut redacted = 0;
        for id in ids {
            let Some(mut row) = sound(self.tx.event(ns, id))?.flatten().filter(|row| row.has_text()) else {
                continue;
            };
            row.redact();
            truth(self.tx).put_event(ns, id, &row)?;
            // The words of the first message of a family are its text as well.
            if let Some(family) = sound(self.tx.family(ns, id))?.flatten() {
                truth(self.tx).put_family(ns, id, &FamilyRow { tokens: Vec::new(), ..family })?;
            }
            redacted += 1;
        }
        Ok(redacted)
    }

    /// Removes messages, with the families that they began. Their aggregates go on counting them, and go with the last of
    /// their messages. Returns the number of messages that there were.
    pub(crate) fn end_events(&mut self, ns: NsId, ids: &[Id]) -> Result<u64> {
        let (mut ended, mut members) = (0, BTreeMap::<Id, Vec<Id>>::new());
        for id in ids {
            let Some(row) = sound(self.tx.event(ns, id))?.flatten() else { continue };
            truth(self.tx).delete_family(ns, id)?;
            truth(self.tx).delete_event(ns, id, &row)?;
            self.counters.add(ns, PartId(row.part), Sort::Events, "", -1, 0);
            row.aggregate.into_iter().for_each(|aggregate| members.entry(aggregate).or_default().push(*id));
            ended += 1;
        }
        for (aggregate, gone) in members {
            let Some(mut row) = sound(self.tx.aggregate(ns, &aggregate))?.flatten() else { continue };
            row.ended = row.ended.saturating_add(gone.len() as u64);
            row.examples.retain(|example| !gone.contains(example));
            self.put_or_end_aggregate(ns, &aggregate, &row)?;
        }
        Ok(ended)
    }

    /// Puts an aggregate; it ends with the last of its messages.
    pub(super) fn put_or_end_aggregate(&mut self, ns: NsId, id: &Id, row: &AggregateRow) -> Result<()> {
        if !self.tx.events_of(ns, id, 1)?.is_empty() {
            return truth(self.tx).put_aggregate(ns, id, row);
        }
        truth(self.tx).delete_aggregate(ns, id)?;
        self.counters.add(ns, PartId(row.part), Sort::Aggregates, "", -1, 0);
        Ok(())
    }

    /// Removes tombstones. Returns the number of those that there were.
    pub(crate) fn end_tombstones(&mut self, ns: NsId, ids: &[MemoryId]) -> Result<u64> {
        let mut ended = 0;
        for id in ids {
            let Some(stone) = sound(self.tx.tombstone(ns, *id))?.flatten() else { continue };
            truth(self.tx).delete_tombstone(ns, &stone)?;
            ended += 1;
        }
        self.uncount_tombstones(ns, ended)?;
        Ok(ended)
    }

    /// Takes tombstones out of the counters. A tombstone does not say in which partition its row was, so they are taken from
    /// the partitions with the most.
    fn uncount_tombstones(&mut self, ns: NsId, mut gone: u64) -> Result<()> {
        let (tx, mut parts) = (&*self.tx, Vec::new());
        tx.walk(Table::Counter, &Walk::prefix(&keys::ns(ns)), &mut |key, _| {
            let keys::Counter { part, sort, name, .. } = keys::Counter::read(Table::Counter, key)?;
            if sort == Sort::Tombstones as u8 && part != TOTAL {
                let rows = sound(tx.counter_row(ns, part, sort, name.0))?.unwrap_or_default().rows;
                parts.push((u64::try_from(rows).unwrap_or_default(), part));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        parts.sort_unstable_by(|a, b| b.cmp(a));
        for (rows, part) in parts {
            let of_it = rows.min(gone);
            gone -= of_it;
            self.counters.add(ns, part, Sort::Tombstones, "", -of_it.cast_signed(), 0);
        }
        // What no partition counts was damage before.
        self.counters.add_total(ns, Sort::Tombstones, -gone.cast_signed());
        Ok(())
    }
}

/// Whether a memory that may be gone is named by another memory, or by a message.
pub(crate) fn is_named(rows: &impl MessageRows, ns: NsId, id: MemoryId) -> Result<bool> {
    Ok(!rows.superseded_by(ns, id)?.is_empty()
        || rows.is_joined_to(ns, Junction::Source, id.as_bytes())?
        || !rows.events_of(ns, id.as_bytes(), 1)?.is_empty())
}
