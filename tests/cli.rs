//! The command line as its users meet it: documents, exit codes, bad input, pipes.

#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "cli/bad.rs"]
mod bad;
#[path = "cli/contract.rs"]
mod contract;
#[path = "cli/flags.rs"]
mod flags;
#[path = "cli/index.rs"]
mod index;
#[path = "cli/recall.rs"]
mod recall;
#[path = "cli/sandbox.rs"]
mod sandbox;
