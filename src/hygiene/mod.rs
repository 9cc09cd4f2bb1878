//! What is to be tidied up, is the store whole, and has it forgotten what it was told to forget?
//!
//! Each pass is a file with a function `plan` that reads one snapshot and says what it would do: [`collapse`] of
//! operational reports, merging of equal rows ([`near`]), pruning of [`snapshots`], repair of supersession
//! ([`chains`]). [`check`](fn@check) walks every row of every table and compares what can be said in two places;
//! [`check_erased`] searches the bytes of the file for what an erased memory consisted of.
//!
//! Invariants: nothing here changes anything. The same rows, instant and policy give the same [`plan`]: a dry run shows
//! what a live run carries out. In a check a damaged value is a finding and not the end of the walk; what derived
//! rows must say is asked of the same function that writes them ([`ledger::derived`](crate::ledger::derived)).
//!
//! This room opens no file and reads no clock: it is handed a snapshot and an instant, counts its work and asks whether
//! to stop, and gets the bytes of the file as a reader.

mod briefing;
mod carry;
mod chains;
mod check;
mod cluster;
mod collapse;
mod erased;
mod near;
mod pass;
mod plan;
mod report;
mod score;
mod snapshots;
#[cfg(test)]
mod tests;
mod undo;

pub use briefing::Briefed;
pub(crate) use briefing::briefing;
pub(crate) use carry::{Cursor, Done, carry_out};
pub use chains::RepairSupersessionReport;
pub(crate) use check::{check, locate};
pub use cluster::{DedupAction, DedupReport};
pub(crate) use collapse::is_due as collapse_is_due;
pub use collapse::{MergeTotals, ProfileCollapseGroupSample, ProfileCollapseReport};
pub use erased::ErasedProbe;
pub(crate) use erased::check_erased;
pub use near::NearDuplicateReport;
pub(crate) use pass::{
    Asked, Collapse, NearDuplicates, Pass, Planned, Sight, Snapshots, Supersession, VectorDuplicates,
};
pub(crate) use plan::Field;
pub use report::{CheckOptions, CheckReport, Finding};
pub use snapshots::PruneHistoryReport;
pub(crate) use undo::{Returned, undo_slice};
