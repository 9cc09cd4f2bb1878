//! Counts counters again from the rows that they count. This is needed if a counter can't be read, or if it is unknown
//! how a removed row was counted.

use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::ledger::counters::{CounterRows, Counters};
use crate::ledger::writer::Ledger;
use crate::store::control::{CounterRow, CounterSort as Sort, TOTAL};
use crate::store::{MessageRows, NsId, PartId, Read, Rows, Table, Walk, keys, last_id};

/// Counters whose rows do not tell their partition, or which count no rows.
const OF_NO_ROW: [Sort; 2] = [Sort::Tombstones, Sort::Ignored];

impl Ledger<'_, '_> {
    /// Writes every counter of a namespace again, from the rows of the transaction.
    pub(super) fn count_again(&mut self, ns: NsId) -> Result<()> {
        // The rows of the transaction include what the pending changes tell, so these would be counted twice.
        let kept = self.counters.keep(ns, &OF_NO_ROW);
        let mut counted = self.counted(ns)?;
        let mut old = CounterRows::new();
        let tx = &*self.tx;
        tx.walk(Table::Counter, &Walk::prefix(&keys::ns(ns)), &mut |key, _| {
            if let Some(keys::Counter { part, sort, name, .. }) = keys::Counter::parse(key) {
                let row = sound(tx.counter_row(ns, part, sort, name.0))?;
                old.insert((part, sort, name.0.to_owned()), row.unwrap_or_default());
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for sort in OF_NO_ROW {
            let same = old.iter().filter(|((_, of, _), _)| *of == sort as u8);
            counted.extend(same.map(|(place, row)| (place.clone(), *row)));
        }
        self.count_tombstones(ns, kept, &mut counted)?;
        // A counter of nothing is not among the counted ones, so its old row would stay.
        for (part, sort, name) in old.keys() {
            if !counted.contains_key(&(*part, *sort, name.clone())) {
                self.tx.put_counter(ns, *part, *sort, name, CounterRow::default())?;
            }
        }
        for ((part, sort, name), row) in counted {
            self.tx.put_counter(ns, part, sort, &name, row)?;
        }
        Ok(())
    }

    /// The counters that the rows of the namespace add up to.
    fn counted(&self, ns: NsId) -> Result<CounterRows> {
        let mut counters = Counters::default();
        let tx = &*self.tx;
        tx.all_vitals(ns, &mut |id, vitals| {
            let content = sound(tx.content(ns, id))?.flatten();
            counters.count(ns, 1, vitals, content.as_ref());
            Ok(())
        })?;
        // Equal fingerprints stand side by side in key order, so each row after the first of them is a
        // duplicate.
        let mut last = None;
        tx.walk(Table::ByFingerprint, &Walk::prefix(&keys::ns(ns)), &mut |key, _| {
            let equal = keys::ByFingerprint::parse(key).map(|row| (row.part, row.tier, *row.fingerprint));
            if let Some((part, ..)) = equal.filter(|_| last == equal) {
                counters.add(ns, part, Sort::Duplicates, "", 1, 0);
            }
            last = equal;
            Ok(ControlFlow::Continue(()))
        })?;
        for (table, sort) in [(Table::Event, Sort::Events), (Table::Aggregate, Sort::Aggregates)] {
            tx.walk(table, &Walk::prefix(&keys::ns(ns)), &mut |key, _| {
                let id = last_id(table, key)?;
                let part = match table {
                    Table::Event => tx.event(ns, id.as_bytes())?.map(|row| row.part),
                    _ => tx.aggregate(ns, id.as_bytes())?.map(|row| row.part),
                };
                part.into_iter().for_each(|part| counters.add(ns, PartId(part), sort, "", 1, 0));
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(counters.of(ns))
    }

    /// Tombstones do not say in which partition their rows were. Those that the counters of the partitions do not
    /// count are added to the partition whose counter can't be read, or else to the one with the most. `delta` of them
    /// are still to be added.
    fn count_tombstones(&self, ns: NsId, delta: i64, counted: &mut CounterRows) -> Result<()> {
        let mut all = -delta;
        self.tx.walk(Table::Tombstone, &Walk::prefix(&keys::ns(ns)), &mut |_, _| {
            all += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        let sort = Sort::Tombstones as u8;
        let mut parts: Vec<(PartId, i64)> = Vec::new();
        for ((part, of, _), row) in counted.iter() {
            if *of == sort && *part != TOTAL {
                parts.push((*part, row.rows));
            }
        }
        let left = all - parts.iter().map(|(_, rows)| rows).sum::<i64>();
        let most = parts.iter().max_by_key(|(_, rows)| if *rows == 0 { i64::MAX } else { *rows });
        let part = most.map_or(PartId(0), |(part, _)| *part);
        if left != 0 {
            counted.entry((part, sort, String::new())).or_default().rows += left;
        }
        counted.insert((TOTAL, sort, String::new()), CounterRow { rows: all, bytes: 0 });
        Ok(())
    }
}
