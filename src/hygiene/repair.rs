//! Which nodes of a graph stand for memories that are gone? The pass `repair`.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::hygiene::link::{Partition, partitions, write};
use crate::hygiene::pass::{Applied, DueInput, Job, MaintenancePass, PlanInput, Planned, Step, StepInput};
use crate::hygiene::plan::Stop;
use crate::hygiene::told::{PassReport, details};
use crate::index::upkeep::{self, Counts, Work};
use crate::model::{Pass, RuleId, is_zero};
use crate::store::{Rows, Snapshot};

/// Steps that the repair of one index takes, about.
const STEPS_MAX: usize = 1_024;

/// The pass `repair`.
pub(crate) struct Repair;

impl MaintenancePass for Repair {
    fn plan(&self, input: PlanInput<'_>, _: Stop<'_>) -> Result<Option<Planned>> {
        let job = |partition| -> Box<dyn Job> {
            Box::new(Repairing { partition, work: Work::default(), changed: 0 })
        };
        Ok(Some(Planned::Jobs(partitions(input)?.into_iter().map(job).collect())))
    }

    fn is_due(&self, _: &DueInput<'_>) -> Result<bool> {
        Ok(true)
    }
}

/// Report of the pass `repair`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RepairReport {
    /// Partitions with vectors.
    #[serde(skip_serializing_if = "is_zero")]
    pub partitions: u64,
    /// Nodes that were given other links, or whose place another memory with an equal vector took.
    #[serde(skip_serializing_if = "is_zero")]
    pub mended: u64,
}

details!(RepairReport {});

struct Repairing {
    partition: Partition,
    work: Work,
    changed: u64,
}

fn dead(counts: Counts) -> u64 {
    u64::from(counts.dead)
}

impl Job for Repairing {
    fn next<'s>(&'s mut self, input: StepInput<'s>) -> Result<Option<Step<'s>>> {
        let (index, rule) = (self.partition.index, RuleId::of_pass(Pass::Repair));
        let most = self.partition.counts.map_or(0, dead);
        if !self.partition.is_workable(most) {
            return Ok(None);
        }
        let rows = input.published.snapshot();
        if self.changed < most {
            // Each step looks at the whole graph once; there are only so many steps, however busy others are.
            let floor = rows.readable_slot_head(index)?.len as usize / STEPS_MAX;
            let (rows, crew) =
                (input.rows.max(floor.min(input.rows_left)), self.partition.crew(input.threads));
            if let Some(edit) = upkeep::repair(input.published, index, rows, &mut self.work, crew)? {
                return Ok(Some(write(edit, rule)));
            }
        }
        if !Counts::read(&**rows, index)?.has_graph {
            return Ok(None);
        }
        self.partition.calibrate(input, self.changed > 0, rule)
    }

    fn applied(&mut self, applied: Applied) {
        self.changed += applied.count;
    }

    fn tell(&self, rows: &Snapshot, report: &mut PassReport) -> Result<()> {
        let told = self.partition.tell(rows, report, dead)?;
        report.changed += self.changed;
        let details = report.report.of::<RepairReport>();
        details.partitions += u64::from(told);
        details.mended += self.work.mended();
        Ok(())
    }

    fn may_be_left_out(&self) -> bool {
        true
    }
}
