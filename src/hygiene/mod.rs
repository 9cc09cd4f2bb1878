//! Is the store whole, and has it forgotten what it was told to forget?
//!
//! [`check`](fn@check) walks every row of every table and compares what can be said in two places;
//! [`check_erased`] searches the bytes of the file for what an erased memory consisted of.
//!
//! Invariants: neither changes anything; a damaged value is a finding and not the end of the walk; what derived
//! rows must say is asked of the same function that writes them ([`ledger::derived`](crate::ledger::derived)).
//!
//! This room opens no file and reads no clock: it is handed a snapshot, and the bytes of the file as a reader.

mod check;
mod erased;
mod report;
#[cfg(test)]
mod tests;

pub(crate) use check::check;
pub use erased::ErasedProbe;
pub(crate) use erased::check_erased;
pub use report::{CheckOptions, CheckReport, Finding};
