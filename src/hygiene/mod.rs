//! What is to be tidied up, is the store whole, and has it forgotten what it was told to forget?
//!
//! Each pass is a file that implements [`MaintenancePass`](pass::MaintenancePass) and a row of the list of passes
//! ([`Pass`](crate::maintain::Pass)): [`collapse`] of operational reports, merging of equal rows ([`near`]) and of near vectors
//! ([`vector_duplicates`]), clusters of them ([`cluster`]), pruning of [`snapshots`], repair of supersession ([`chains`]); the end of [`superseded`] rows and of what is too old ([`retention`]); vectors for memories that wait ([`embed`]), the end of
//! [`limbo`], and the upkeep of indexes ([`link`], [`repair`]). [`check`](fn@check) walks every row of every table and
//! compares what can be said in two places; [`check_erased`] searches the bytes of the file for what an erased memory
//! consisted of.
//!
//! Invariants: a plan changes nothing, and the same rows, instant and policy give the same [`plan`]: a dry run shows
//! what a live run carries out. A step works in the transaction that it is handed, through the ledger. In a check a damaged
//! value is a finding and not the end of the walk; what derived rows must say is asked of the same function that writes
//! them ([`ledger::derived`](crate::ledger::derived)).
//!
//! This room opens no file and no transaction, and reads no clock: it is handed a snapshot and an instant, counts its work and
//! asks whether to stop, and gets the bytes of the file as a reader.

mod accesses;
mod adjust;
mod backfill;
mod briefing;
mod cap;
mod carry;
mod chains;
mod check;
mod cluster;
mod clusters;
mod collapse;
mod consolidate;
mod demote;
mod distribution;
mod embed;
mod erased;
mod expire;
mod fold;
mod fsck;
mod gc;
mod goals;
mod grouping;
mod joining;
mod limbo;
mod link;
mod list;
mod looks;
mod maintenance_plan;
mod near;
mod pass;
mod plan;
mod promote;
mod prune;
mod queries;
mod repair;
mod report;
mod retention;
mod score;
mod scorer;
mod scores;
mod snapshots;
mod superseded;
#[cfg(test)]
mod tests;
mod told;
mod undo;
mod uniqueness;
mod utility;
mod vector_duplicates;

pub(crate) use accesses::{Accesses, Noted, Taken};
pub use backfill::BackfillConfidenceReport;
pub(crate) use briefing::briefing;
pub use briefing::{Briefed, Briefing};
pub use cap::CapReport;
pub use chains::RepairSupersessionReport;
pub use check::CheckOptions;
pub(crate) use check::{check, locate};
pub use cluster::{ClusterReport, ClusterSample};
pub use collapse::{MergeTotals, ProfileCollapseGroupSample, ProfileCollapseReport};
pub(crate) use consolidate::{Distilled, consolidate, refuse_consolidation, to_consolidate, to_unite, unite};
pub use demote::DemoteReport;
pub(crate) use distribution::Distribution;
pub use distribution::{AccessDistribution, MostRetrieved, RetrievalBar, ScoreBar, ThresholdEffect};
pub(crate) use embed::fill;
pub use erased::ErasedProbe;
pub(crate) use erased::check_erased;
pub use expire::ExpireReport;
pub(crate) use expire::{Removing, Unsettled, erase_ended, expire, settle_due};
pub(crate) use fold::fold;
pub(crate) use fsck::duplicate_groups;
pub(crate) use gc::{
    Committing, GroupLimits, Plans, Shared, Verdict, carry_out, close_plan, committed, gc_report, group_of,
    pack, pack_limits, past_queries, plan_told, refuse, shared, told,
};
pub use gc::{
    Compacted, ForgottenSources, GcCommitted, GcGroup, GcOptions, GcPlan, GcReport, GcSkipped,
    ReportedBudget, ReportedFamily, SuggestedFilter,
};
pub use link::IndexReport;
pub(crate) use link::{Declaring, write, write_texts};
pub(crate) use list::implementation;
pub(crate) use looks::Looks;
pub(crate) use maintenance_plan::CarryingOut;
pub use maintenance_plan::MaintenancePlan;
pub use near::NearDuplicateReport;
pub use pass::PruneTarget;
pub(crate) use pass::{
    Applied, DueInput, Given, Job, PlanInput, Planned, Selection, Slice, Step, StepInput, Vectorizer,
};
pub use plan::KeptApart;
pub(crate) use plan::{Field, pruned_in};
pub use promote::PromoteReport;
pub use prune::PruneReport;
pub(crate) use queries::{FoundText, NotedQuery, TakenQueries, keep_queries};
pub use repair::RepairReport;
pub use report::{CheckReport, Finding};
pub use retention::RetentionReport;
pub(crate) use scorer::Judge;
pub use scorer::Scorer;
pub use scores::Scores;
pub(crate) use scores::scores;
pub use snapshots::PruneHistoryReport;
pub use told::{PassDetails, PassReport};
pub(crate) use undo::{Returned, undo_slice};
pub use utility::utility;
pub use vector_duplicates::{DedupAction, DedupReport};
