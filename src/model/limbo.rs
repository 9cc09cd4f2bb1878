//! A memory that maintenance removed, as long as it can return.

use serde::{Deserialize, Serialize};

use crate::model::history::{Tombstone, TombstoneReason};
use crate::model::id::{MemoryId, RunId};

/// What is known of the removal of a memory in limbo, and what its return needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Limbo {
    /// Why the memory was removed.
    pub reason: TombstoneReason,
    /// The run that removed the memory.
    pub run: Option<RunId>,
    /// The memory that took its place.
    pub replaced_by: Option<MemoryId>,
    /// Whether `replaced_by` superseded the memory by this removal, and gives its holders back.
    pub replaced: bool,
    /// The reinforcement that moved to the memory that took its place.
    pub transferred: u32,
    /// The links of other memories that led to this memory.
    pub links: Vec<LedLink>,
    /// The tombstone that will remain. A missing tombstone is a fault that a purge or an import mends.
    pub tombstone: Option<Tombstone>,
}

/// A link to a memory in limbo, with the holder and the memory that brought the link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedLink {
    /// The memory that has the link.
    pub from: MemoryId,
    /// The number of its holder.
    pub number: u32,
    /// The relation.
    pub relation: String,
    /// Whether the link meanwhile leads to the memory that took the place of its end.
    pub led_on: bool,
}
