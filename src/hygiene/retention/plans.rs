//! Plans of summaries that are over.

use crate::error::{Result, sound};
use crate::hygiene::pass::Slice;
use crate::hygiene::retention::aged::{Aged, RetentionReport, Site, Visit};
use crate::model::{PlanState, RunId, Time};
use crate::policy::Policy;
use crate::store::{PlanRow, PlanRows, Snapshot};

/// Which plans go.
pub(super) struct Plans {
    site: Site,
    /// Those that were over before this instant, as the journal keeps what it tells of them no longer either.
    old: Time,
}

impl Plans {
    pub(super) fn of(policy: &Policy, site: Site) -> Self {
        Plans { site, old: site.now.minus(policy.journal.max_age).min(site.undoable) }
    }

    /// Whether a plan goes. Nothing was done with it after its end, so a run of it that can be undone is no older than that.
    fn goes(&self, row: &PlanRow) -> bool {
        let is_over = row.state_at(self.site.now) != PlanState::Open;
        is_over && Time::from_millis(row.created_ms.max(row.expires_ms)) < self.old
    }
}

impl Aged for Plans {
    /// The plan.
    type Place = RunId;

    const JOURNALED: Option<&'static str> = Some("plans");

    /// The last plan stays, whatever its age: a sweeper goes by it.
    fn due(&self, rows: &Snapshot, after: Option<RunId>, visit: Visit<'_, RunId>) -> Result<u64> {
        let plans = rows.gc_plans(self.site.ns)?;
        let last = plans.iter().map(|(_, row)| row.created_ms).max();
        for (plan, row) in plans {
            let is_behind = after.is_none_or(|after| plan > after);
            if is_behind && Some(row.created_ms) != last && self.goes(&row) && visit(plan).is_break() {
                break;
            }
        }
        Ok(0)
    }

    fn end(&self, slice: &mut Slice<'_, '_, '_>, page: &[RunId]) -> Result<u64> {
        let (ns, mut ended) = (self.site.ns, 0);
        for plan in page {
            let row = sound(slice.ledger.tx.gc_plan(ns, *plan))?.flatten();
            if let Some(row) = row.filter(|row| self.goes(row)) {
                slice.ledger.tx.delete_gc_plan(ns, *plan, &row)?;
                ended += 1;
            }
        }
        Ok(ended)
    }

    fn counted(report: &mut RetentionReport) -> &mut u64 {
        &mut report.plans
    }
}
