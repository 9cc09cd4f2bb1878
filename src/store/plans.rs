//! Plans of summaries: typed reads, typed writes.

use std::collections::BTreeSet;

use crate::error::{Result, sound};
use crate::model::{MemoryId, PlanState, RunId, Time};
use crate::store::keys;
use crate::store::part::NsId;
use crate::store::planned::{GroupRow, PlanRow};
use crate::store::raw::Walk;
use crate::store::rows::Rows;
use crate::store::tables::{Table, bad_key};
use crate::store::tx::WriteTx;

/// Typed reads of plans.
pub(crate) trait PlanRows: Rows {
    fn gc_plan(&self, ns: NsId, plan: RunId) -> Result<Option<PlanRow>> {
        self.meta(Table::GcPlan, &keys::gc_plan(ns, plan))
    }

    /// The plans of a namespace that can be read, oldest first.
    fn gc_plans(&self, ns: NsId) -> Result<Vec<(RunId, PlanRow)>> {
        let mut all = Vec::new();
        for plan in self.each_key(Table::GcPlan, &Walk::prefix(&keys::ns(ns)), usize::MAX, |key| {
            keys::GcPlan::parse(key).map(|row| row.plan).ok_or_else(|| bad_key(Table::GcPlan, key))
        })? {
            all.extend(sound(self.gc_plan(ns, plan))?.flatten().map(|row| (plan, row)));
        }
        Ok(all)
    }

    /// The open plans whose time is over. They keep their probes until they are ended.
    fn late_gc_plans(&self, ns: NsId, now: Time) -> Result<Vec<(RunId, PlanRow)>> {
        let mut plans = self.gc_plans(ns)?;
        plans.retain(|(_, row)| row.state == PlanState::Open && row.state_at(now) == PlanState::Expired);
        Ok(plans)
    }

    fn gc_group(&self, ns: NsId, plan: RunId, group: u32) -> Result<Option<GroupRow>> {
        self.meta(Table::GcGroup, &keys::gc_group(ns, plan, group))
    }

    /// The groups of a plan, in order. A damaged one is passed over, as a damaged plan is.
    fn gc_groups(&self, ns: NsId, plan: RunId, row: &PlanRow) -> Result<Vec<(u32, GroupRow)>> {
        let mut all = Vec::new();
        for group in 1..=row.groups {
            all.extend(sound(self.gc_group(ns, plan, group))?.flatten().map(|row| (group, row)));
        }
        Ok(all)
    }

    /// The sources of the groups that plans of a namespace still work on.
    fn gc_sources(&self, ns: NsId, now: Time) -> Result<BTreeSet<MemoryId>> {
        let mut all = BTreeSet::new();
        for (plan, row) in self.gc_plans(ns)? {
            if row.state_at(now) == PlanState::Open {
                let groups = self.gc_groups(ns, plan, &row)?.into_iter().map(|(_, group)| group);
                let at_work = groups.filter(|group| group.is_open());
                all.extend(at_work.flat_map(|group| group.sources).map(|stamp| stamp.id));
            }
        }
        Ok(all)
    }
}

impl<R: Rows + ?Sized> PlanRows for R {}

impl WriteTx<'_> {
    /// Ends the open plans whose time is over. Returns how many there were.
    pub(crate) fn end_late_gc_plans(&mut self, ns: NsId, now: Time) -> Result<u64> {
        let late = self.late_gc_plans(ns, now)?;
        let count = late.len() as u64;
        for (plan, row) in late {
            self.put_gc_plan(ns, plan, &row.ended(PlanState::Expired))?;
        }
        Ok(count)
    }

    pub(crate) fn put_gc_plan(&mut self, ns: NsId, plan: RunId, row: &PlanRow) -> Result<()> {
        self.put_meta(Table::GcPlan, &keys::gc_plan(ns, plan), row)
    }

    /// Removes a plan with its groups.
    pub(crate) fn delete_gc_plan(&mut self, ns: NsId, plan: RunId, row: &PlanRow) -> Result<()> {
        for group in 1..=row.groups {
            self.delete(Table::GcGroup, &keys::gc_group(ns, plan, group))?;
        }
        self.delete(Table::GcPlan, &keys::gc_plan(ns, plan))
    }

    pub(crate) fn put_gc_group(&mut self, ns: NsId, plan: RunId, group: u32, row: &GroupRow) -> Result<()> {
        self.put_meta(Table::GcGroup, &keys::gc_group(ns, plan, group), row)
    }
}
