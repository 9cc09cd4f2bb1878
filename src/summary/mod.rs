//! What may a summary say, and what does it say when no language model writes it?
//!
//! The room holds the contract between the database and whoever writes summaries. An [`InputPack`] is what the writer
//! of a summary is given, a [`SummaryDocument`] is what the writer answers. [`accept()`] repairs an answer where the
//! repair is certain, reads it strictly, and holds it to what is known of the sources. [`Extractive`] writes summaries
//! without a model: sentences of the sources, copied.
//!
//! Invariants: every function is pure. An answer that is refused names each wrong value by a JSON pointer. What is
//! repaired, cut or corrected is told. The extractive summary has no word that no source has.
//!
//! The room knows no disk, no clock and no row, and never decides which memories are summarized.

mod accept;
mod document;
mod extract;
#[cfg(feature = "openai")]
mod openai;
mod pack;
mod repair;
mod sentences;
mod summarizer;
#[cfg(test)]
mod tests;

pub use accept::{Accepted, Expected, accept};
pub use document::{Fault, SpamPattern, SummaryDocument, TimeSpan};
pub use extract::Extractive;
#[cfg(feature = "openai")]
#[cfg_attr(docsrs, doc(cfg(feature = "openai")))]
pub use openai::{ChatOptions, OpenAiSummarizer};
pub(crate) use pack::tokens_of;
pub use pack::{InputPack, PackAggregate, PackLimits, PackSource, token_estimate};
pub(crate) use repair::canonical_json;
pub use summarizer::Summarizer;
