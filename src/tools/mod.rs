//! How does a language model use the memory of its host?
//!
//! A [`Toolbox`] has the tools of one namespace. The host binds the namespace; no argument names another. A call is an envelope,
//! a line of JSON that [`Toolbox::answer`] answers with a line, or a name with arguments ([`Toolbox::call`]).
//!
//! Invariants. The schema of a tool and the check of its arguments are made from one description, so a call that the schema
//! allows is read, and another is refused with a JSON pointer to each wrong value. A schema has no word for bytes: where a bound
//! is one of bytes, the description says so. The schemas of the tools `memory.…` are fixed, and the error alone tells of
//! some of their bounds. A call that is refused changes nothing. What
//! removes memories is told first: a dry run is the default wherever a tool has one.
//!
//! A [`KnowledgeGraph`] has the tools of another memory server, over the same memories.
//!
//! This room is a client of the public API, as a user's program is.

mod arguments;
mod budget;
mod clock;
mod envelope;
mod error;
mod forgetting;
mod graph;
mod host;
mod maintenance;
mod reading;
mod shape;
mod summaries;
mod table;
mod toolbox;
mod upkeep;
mod writing;

pub use clock::{BEHIND_UNTOLD, behind_told};
pub use error::ToolError;
pub use graph::KnowledgeGraph;
#[cfg(feature = "mcp")]
pub(crate) use graph::only_reads_graph;
pub use host::Caller;
pub use toolbox::{ToolHints, ToolSchema, Toolbox, tool_schemas};
#[cfg(feature = "mcp")]
pub(crate) use toolbox::{can_take_long, known_names, only_reads};
pub use upkeep::explanation_json;
