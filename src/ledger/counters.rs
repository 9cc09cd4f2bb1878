//! Counters: changed in the transaction of the mutation, read with one look-up.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::ledger::derived::counted_in;
use crate::model::{Content, Vitals};
use crate::store::control::{CounterRow, CounterSort as Sort, TOTAL};
use crate::store::{NsId, PartId, Rows, WriteTx};

/// Counters of a namespace by partition, sort and name.
pub(crate) type CounterRows = BTreeMap<(PartId, u8, String), CounterRow>;

/// The changes of a transaction, which are written at its end. So a batch writes each counter once.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    deltas: BTreeMap<(NsId, PartId, Sort), BTreeMap<String, CounterRow>>,
}

impl Counters {
    /// Adds a memory to every counter that it counts in, or takes it off where `sign` is below 0. Without the content, to those that
    /// follow from the vitals.
    pub(super) fn count(&mut self, ns: NsId, sign: i64, vitals: &Vitals, content: Option<&Content>) {
        for (sort, name, bytes) in counted_in(vitals, content) {
            let rows = if sort == Sort::Holders { i64::from(vitals.place.holders) } else { 1 };
            self.add(ns, PartId(vitals.place.partition), sort, &name, sign * rows, sign * bytes);
        }
    }

    /// Adds to the counter of a partition and to that of its namespace.
    pub(crate) fn add(&mut self, ns: NsId, part: PartId, sort: Sort, name: &str, rows: i64, bytes: i64) {
        for part in [part, TOTAL] {
            self.add_one(ns, part, sort, name, rows, bytes);
        }
    }

    /// Adds to a counter that only the namespace has.
    pub(crate) fn add_total(&mut self, ns: NsId, sort: Sort, rows: i64) {
        self.add_one(ns, TOTAL, sort, "", rows, 0);
    }

    fn add_one(&mut self, ns: NsId, part: PartId, sort: Sort, name: &str, rows: i64, bytes: i64) {
        let names = self.deltas.entry((ns, part, sort)).or_default();
        match names.get_mut(name) {
            Some(delta) => {
                delta.rows += rows;
                delta.bytes += bytes;
            }
            None => {
                names.insert(name.to_owned(), CounterRow { rows, bytes });
            }
        }
    }

    /// Discards the pending changes in a namespace, except for counters of these sorts. Returns the pending change of
    /// the namespace's tombstones.
    pub(super) fn keep(&mut self, ns: NsId, sorts: &[Sort]) -> i64 {
        self.deltas.retain(|(of, _, sort), _| *of != ns || sorts.contains(sort));
        let stones = self.deltas.get(&(ns, TOTAL, Sort::Tombstones)).and_then(|names| names.get(""));
        stones.map_or(0, |row| row.rows)
    }

    /// The pending changes in a namespace, by partition, sort and name.
    pub(super) fn of(self, ns: NsId) -> CounterRows {
        let of_ns = self.deltas.into_iter().filter(|((of, ..), _)| *of == ns);
        of_ns
            .flat_map(|((_, part, sort), names)| {
                names.into_iter().map(move |(name, row)| ((part, sort as u8, name), row))
            })
            .collect()
    }

    /// Discards the pending changes in a namespace that is being dropped.
    pub(crate) fn forget(&mut self, ns: NsId) {
        self.deltas.retain(|(of, _, _), _| *of != ns);
    }

    /// Adds the deltas to the rows.
    pub(crate) fn write(self, tx: &mut WriteTx<'_>) -> Result<()> {
        for ((ns, part, sort), names) in self.deltas {
            for (name, delta) in names {
                if delta == CounterRow::default() {
                    continue;
                }
                let old = tx.counter_row(ns, part, sort as u8, &name)?;
                let new = CounterRow { rows: old.rows + delta.rows, bytes: old.bytes + delta.bytes };
                debug_assert!(new.rows >= 0, "counter {sort:?} {name:?} fell below 0");
                tx.put_counter(ns, part, sort as u8, &name, new)?;
            }
        }
        Ok(())
    }
}
