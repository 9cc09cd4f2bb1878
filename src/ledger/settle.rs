//! Instants that come without a write: counters and indexes catch up.

use std::collections::BTreeSet;

use crate::error::{Result, sound};
use crate::ledger::counters::{CounterRows, Counters};
use crate::ledger::derived::{IndexRow, index_rows};
use crate::ledger::writer::{Context, Ledger, truth};
use crate::model::{Counted, MemoryId, Time};
use crate::store::{NsId, Rows, Table, Walk, keys};

/// What settling would add to the counters of a namespace, of at most `most` due instants, by partition, sort and name; and how many
/// instants these are. Duplicates are left as they are: which rows are some is known only once rows leave the list of fingerprints.
///
/// # Errors
/// `Corrupted`, where more than single rows is damaged.
pub(crate) fn unsettled(rows: &impl Rows, ns: NsId, now: Time, most: usize) -> Result<(usize, CounterRows)> {
    let due = rows.due(ns, now, most)?;
    let mut counters = Counters::default();
    for id in due.iter().map(|(_, id)| *id).collect::<BTreeSet<_>>() {
        let Some(before) = sound(rows.vitals(ns, id))?.flatten() else { continue };
        let content = sound(rows.content(ns, id))?.flatten();
        let mut after = before.clone();
        after.place.counted = Counted::at(&before.times, now);
        counters.count(ns, -1, &before, content.as_ref());
        counters.count(ns, 1, &after, content.as_ref());
    }
    Ok((due.len(), counters.of(ns)))
}

impl Ledger<'_, '_> {
    /// Applies the due instants of a namespace, at most `most`, and returns how many it looked at. Those of memories for which `leaves`
    /// says so are left as they are.
    pub(crate) fn settle(
        &mut self,
        context: &Context,
        most: usize,
        mut leaves: impl FnMut(&Self, MemoryId) -> Result<bool>,
    ) -> Result<usize> {
        let due = self.tx.due(context.ns, context.now, most)?;
        let mut settled = BTreeSet::new();
        for (at, id) in &due {
            if !leaves(self, *id)? {
                self.settle_one(context, *id)?;
                settled.insert((*at, *id));
            }
        }
        self.strike_settled(context, due.len(), &settled)?;
        Ok(due.len())
    }

    /// Applies a due instant of a memory.
    fn settle_one(&mut self, context: &Context, id: MemoryId) -> Result<()> {
        match sound(self.load(context.ns, id))? {
            Some((before, content)) => {
                self.store_row(context, id, Some((&before, &content)), before.clone(), &content)?;
                Ok(())
            }
            // A damaged row must leave the list of due instants too, or every call would begin with it.
            None => self.settle_damaged(context, id),
        }
    }

    /// Strikes off the list of due instants what is settled and still stands there: a row of it is damaged, and no memory
    /// has that instant. The memory gets the row again that it should have.
    fn strike_settled(
        &mut self,
        context: &Context,
        most: usize,
        settled: &BTreeSet<(Time, MemoryId)>,
    ) -> Result<()> {
        let (ns, until) = (context.ns, context.now);
        let left = |ledger: &Self| -> Result<BTreeSet<(Time, MemoryId)>> {
            let due = ledger.tx.due(ns, until, most)?;
            Ok(due.into_iter().filter(|place| settled.contains(place)).collect())
        };
        if left(self)?.is_empty() {
            return Ok(());
        }
        // Among keys that are out of order, rows that wait to be taken away are met as if they stayed.
        self.tx.put_gathered()?;
        let stays = left(self)?;
        let end = keys::from_instant(ns, Time::from_millis(until.as_millis().saturating_add(1)));
        truth(self.tx).strike(Table::Due, &Walk::prefix(&keys::ns(ns)).before(&end), &|key| {
            keys::Due::parse(key).is_some_and(|row| stays.contains(&(row.at, row.id)))
        })?;
        for (_, id) in stays {
            let Some(vitals) = sound(self.tx.vitals(ns, id))?.flatten() else { continue };
            for row in index_rows(&vitals, None, &[]) {
                if matches!(row, IndexRow::Due(_)) {
                    self.put_index_row(ns, id, &row)?;
                }
            }
        }
        Ok(())
    }

    /// Strikes a memory off the list of those whose life is over, on which it does not belong: the list, or the memory,
    /// is damaged. The list would begin with it for ever.
    pub(crate) fn strike_ended(&mut self, ns: NsId, id: MemoryId) -> Result<()> {
        self.delete_found(ns, id, &[Table::Ended])
    }
}
