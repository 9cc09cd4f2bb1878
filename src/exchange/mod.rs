//! How do memories come in from files, and go out to them?
//!
//! One memory is one JSON line ([`parse_line`], [`write_memory`]), and so is what an export carries besides; vectors may stand beside the lines in a
//! NumPy file ([`NpyReader`], [`NpyWriter`]); [`Records`] pairs the two. [`Import`] writes them to a database, [`Export`]
//! reads them from one. [`adapters`] read the files of other
//! memory tools.
//!
//! Invariants: an exported line restores the memory as it was, and exporting that memory again gives the same
//! bytes. Every byte that is read is hostile: it gives a value or an error of kind
//! [`Invalid`](crate::ErrorKind::Invalid) that names the field, never a panic, and no allocation has a size
//! that the file only claims.
//!
//! This room never learns how a memory is stored: it is a client of the public API, as a user's program is.

pub mod adapters;

mod export;
mod graph;
mod import;
mod line;
mod lines;
mod npy;
mod parse;
mod restore;
mod target;
mod told;
mod write;

pub use export::{Export, ExportReport, VectorsTo};
pub(crate) use graph::Element;
pub use import::{Format, Import, ImportReport, Observer};
pub use line::{DraftLine, KeptLine, ParsedLine};
pub use lines::{LineReader, Records};
pub use npy::{NpyReader, NpyWriter};
pub use parse::parse_line;
pub use target::Target;
pub use told::{write_aggregate, write_context, write_event, write_goal, write_run, write_step};
pub use write::{journal_json, write_memory, write_tombstone};

pub use crate::engine::PutBack;
pub use crate::model::{Joint, JournalRow, Kept, LedLink};

#[cfg(test)]
mod tests;
