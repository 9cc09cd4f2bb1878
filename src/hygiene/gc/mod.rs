//! Which old memories make room for a summary, and how does the summary take their place?
//!
//! [`Plans`] finds the memories and makes groups of them, [`pack()`] shows a group to the writer of its
//! summary, and [`commit`] puts the summary in the place of its sources, if they are still as the plan saw them.

mod candidates;
mod commit;
mod groups;
mod pack;
mod probes;
mod report;
mod told;

pub(crate) use commit::{Committing, Verdict, carry_out, close_plan, group_of, refuse};
pub(crate) use groups::{GroupLimits, Plans};
pub(crate) use pack::{Shared, pack, pack_limits, shared, told};
pub(crate) use probes::past_queries;
pub(crate) use report::gc_report;
pub use report::{Compacted, ForgottenSources, GcReport, ReportedBudget, ReportedFamily, SuggestedFilter};
pub use told::{GcCommitted, GcGroup, GcOptions, GcPlan, GcSkipped};
pub(crate) use told::{committed, plan_told};
