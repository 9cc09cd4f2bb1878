//! What of the past is older than the policy keeps it? The pass `retention`.
//!
//! The journal, messages and tombstones each have their own order of time, so what is too old stands at the front, and the pass
//! reads next to nothing that stays. Of plans of summaries there are few, so all are read. All of it is kept for `undo.horizon` in any case.

mod aged;
mod events;
mod journal;
mod plans;
mod tombstones;

use crate::error::Result;
use crate::hygiene::pass::{Job, MaintenancePass, PlanInput, Planned};
use crate::hygiene::plan::Stop;
pub use crate::hygiene::retention::aged::RetentionReport;
use crate::hygiene::retention::aged::{Ending, Site};
use crate::hygiene::retention::events::{Messages, Texts};
use crate::hygiene::retention::journal::Journal;
use crate::hygiene::retention::plans::Plans;
use crate::hygiene::retention::tombstones::Tombstones;

/// The pass `retention`.
pub(crate) struct Retention;

impl MaintenancePass for Retention {
    fn plan(&self, input: PlanInput<'_>, _: Stop<'_>) -> Result<Option<Planned>> {
        let (snapshot, site) = (&**input.published.snapshot(), Site::of(&input));
        let policy = input.policy;
        let jobs: Vec<Box<dyn Job>> = vec![
            Ending::begin(Journal::of(snapshot, policy, site)?, snapshot)?,
            Ending::begin(Plans::of(policy, site), snapshot)?,
            // A text goes before its event may, so that both are counted.
            Ending::begin(Texts::of(policy, site), snapshot)?,
            Ending::begin(Messages::of(snapshot, policy, site)?, snapshot)?,
            Ending::begin(Tombstones::of(snapshot, policy, site)?, snapshot)?,
        ];
        Ok(Some(Planned::Jobs(jobs)))
    }
}
