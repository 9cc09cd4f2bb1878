//! Counters, counted again from the rows.

use crate::error::Result;
use crate::hygiene::check::state::Check;
use crate::hygiene::report::Code;
use crate::store::control::CounterRow;
use crate::store::control::CounterSort;
use crate::store::control::TOTAL;
use crate::store::keys;
use crate::store::{NsId, Table, meta_of};

impl Check<'_> {
    /// Every other table has been walked before this one.
    pub(super) fn counter(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let found: CounterRow = meta_of(Table::Counter, key, value)?;
        let keys::Counter { ns, part, sort, name } = keys::Counter::read(Table::Counter, key)?;
        if found == CounterRow::default() {
            self.find(Code::CounterZero, Table::Counter, key, "a counter that stands at nothing");
        }
        if part != TOTAL && sort == CounterSort::Tombstones as u8 {
            *self.counts.tombstones.entry(ns).or_default() += found.rows;
            return Ok(());
        }
        if part == TOTAL && sort == CounterSort::Ignored as u8 {
            // What was not stored has left no row to count.
            if found.rows < 0 || found.bytes != 0 {
                self.find(Code::Counter, Table::Counter, key, format!("{found:?} of ignored writes"));
            }
            return Ok(());
        }
        let counted = self.counts.rows.remove(&(ns, part, sort, name.0.to_owned())).unwrap_or_default();
        if found != counted && !self.counts.blind.contains(&ns) {
            let what = format!("{found:?} where the rows are {counted:?}");
            self.find(Code::Counter, Table::Counter, key, what);
        }
        if part == TOTAL && sort == CounterSort::Tombstones as u8 {
            self.tombstones_of(key, ns, counted.rows);
        }
        Ok(())
    }

    /// The partitions' tombstones add up to those of the namespace, whose counter comes after theirs.
    fn tombstones_of(&mut self, key: &[u8], ns: NsId, all: i64) {
        let parts = self.counts.tombstones.remove(&ns).unwrap_or_default();
        if parts != all && !self.counts.blind.contains(&ns) {
            let what = format!("{parts} tombstones in the partitions, {all} in all");
            self.find(Code::Counter, Table::Counter, key, what);
        }
    }

    /// What the rows count up to, and no counter says.
    pub(super) fn finish_counters(&mut self) {
        let left = std::mem::take(&mut self.counts.rows);
        for ((ns, part, sort, name), counted) in left {
            let dropping = self.tenants.get(&ns).is_none_or(|tenant| tenant.dropping);
            if counted == CounterRow::default() || dropping || self.counts.blind.contains(&ns) {
                continue;
            }
            let key = keys::counter(ns, part, sort, &name);
            let what = format!("no counter where the rows are {counted:?}");
            self.find(Code::Counter, Table::Counter, &key, what);
        }
        for (ns, rows) in std::mem::take(&mut self.counts.tombstones) {
            let key = keys::counter(ns, TOTAL, CounterSort::Tombstones as u8, "");
            let what = format!("{rows} tombstones in the partitions, none in all");
            self.find(Code::Counter, Table::Counter, &key, what);
        }
    }
}
