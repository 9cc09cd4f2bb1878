//! Counters, counted again from the rows.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Result;
use crate::hygiene::check::Check;
use crate::hygiene::report::Code;
use crate::ledger::derived::counted_in;
use crate::model::{Content, Tier, Vitals};
use crate::store::control::CounterRow;
use crate::store::control::CounterSort;
use crate::store::control::TOTAL;
use crate::store::keys;
use crate::store::{NsId, PartId, Table, meta_of};

/// Rows with an equal fingerprint stand under this.
type Equal = (NsId, PartId, Tier, [u8; 16]);

/// What the rows count up to.
#[derive(Default)]
pub(super) struct Counts {
    rows: BTreeMap<(NsId, PartId, u8, String), CounterRow>,
    /// The fingerprint that was met last.
    last: Option<Equal>,
    /// Tombstones by the counters of the partitions; a tombstone itself does not say where its row was.
    tombstones: BTreeMap<NsId, i64>,
    /// Namespaces of which a row could not be read.
    pub(super) blind: BTreeSet<NsId>,
}

impl Counts {
    pub(super) fn add(
        &mut self,
        ns: NsId,
        part: PartId,
        sort: CounterSort,
        name: &str,
        rows: i64,
        bytes: i64,
    ) {
        let count = self.rows.entry((ns, part, sort as u8, name.to_owned())).or_default();
        count.rows = count.rows.saturating_add(rows);
        count.bytes = count.bytes.saturating_add(bytes);
    }

    pub(super) fn add_row(&mut self, ns: NsId, vitals: &Vitals, content: &Content) {
        for (sort, name, bytes) in counted_in(vitals, Some(content)) {
            let rows = if sort == CounterSort::Holders { i64::from(vitals.place.holders) } else { 1 };
            for part in [PartId(vitals.place.partition), TOTAL] {
                self.add(ns, part, sort, &name, rows, bytes);
            }
        }
    }

    /// Rows beyond the first with an equal fingerprint are duplicates; the index has them side by side.
    pub(super) fn add_fingerprint(&mut self, ns: NsId, part: PartId, tier: Tier, fingerprint: [u8; 16]) {
        let equal = (ns, part, tier, fingerprint);
        if self.last.replace(equal) == Some(equal) {
            self.add(ns, part, CounterSort::Duplicates, "", 1, 0);
            self.add(ns, TOTAL, CounterSort::Duplicates, "", 1, 0);
        }
    }

    pub(super) fn add_tombstone(&mut self, ns: NsId) {
        self.add(ns, TOTAL, CounterSort::Tombstones, "", 1, 0);
    }
}

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
