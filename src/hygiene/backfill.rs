//! Which durable memories have no confidence? The pass `backfill`.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::hygiene::adjust::Adjustment;
use crate::hygiene::pass::{MaintenancePass, PlanInput, Planned};
use crate::hygiene::plan::{Action, Page, Pages, Plan, Stop};
use crate::hygiene::told::details;
use crate::model::RunId;

/// Rows of a page.
const PAGE_ROWS: usize = 500;

/// Report of the pass `backfill`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillConfidenceReport {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Live rows that were looked at.
    pub inspected: u64,
    /// Durable rows without a confidence: they get `confidence.imported`.
    pub seeded: u64,
    /// The others.
    pub skipped: u64,
    /// The run, for undo.
    pub run_id: Option<RunId>,
}

details!(BackfillConfidenceReport {
    numbers { inspected "inspected", seeded "seeded", skipped "skipped" }
    flags { dry_run = dry_run, run_id = run_id }
});

/// The pass `backfill`.
pub(crate) struct Backfill;

impl MaintenancePass for Backfill {
    fn plan(&self, input: PlanInput<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let (field, mut pages) = (input.field, Pages::new(input.field, PAGE_ROWS));
        let by = Adjustment::Seed(input.policy.confidence.imported as f32);
        let (mut plan, mut report) = (Plan::default(), BackfillConfidenceReport::default());
        loop {
            let is_live = |row: &crate::model::Vitals| row.times.visible_live(field.now);
            match pages.turn(input.published.snapshot(), &mut *stop, is_live)? {
                Page::Stopped => return Ok(None),
                Page::End => break,
                Page::Rows(rows) => {
                    for (id, vitals) in rows {
                        report.inspected += 1;
                        if !vitals.tier.is_short_term() && vitals.confidence.is_none() {
                            report.seeded += 1;
                            plan.actions.push(Action::Adjust { id, version: vitals.version, by });
                        } else {
                            report.skipped += 1;
                        }
                    }
                }
            }
        }
        Ok(Some(Planned::actions(plan, report.inspected, report)))
    }
}
