//! Where do the bytes lie, and which of them belong together?
//!
//! One redb file: typed tables with tenant-first keys, snapshots, write transactions, safe creation, the format
//! check, compaction. What a value holds is `record`'s; what may be written when is `ledger`'s.
//!
//! Invariants: a transaction is all or nothing; a database appears under its name only when it is whole; a file is
//! replaced only by a whole copy of itself; after a failed commit the handle opens the file again by itself.
//!
//! This room alone names redb. It knows nothing of memories beyond their rows: no rule, no clock, no index.

mod bits;
mod commit;
mod compact;
mod contexts;
pub(crate) mod control;
mod counterparts;
pub(crate) mod disk;
mod draft;
mod gather;
mod goals;
mod handle;
mod hold;
pub(crate) mod keys;
mod layout;
mod messages;
mod open;
mod paging;
mod part;
mod planned;
mod plans;
mod queries;
mod raw;
mod recover;
pub(crate) mod rehearsal;
mod rows;
mod shrink;
mod size;
mod sorted;
mod tables;
#[cfg(feature = "faults")]
pub mod tally;
#[cfg(not(feature = "faults"))]
mod tally;
#[cfg(test)]
mod tests;
mod text;
mod traces;
mod transact;
mod truth;
mod tx;
mod usage;
mod watch;
mod write;

pub(crate) use bits::BitRows;
pub(crate) use compact::{Damaged, FileCopied};
pub(crate) use contexts::{ContextPlace, ContextRows};
#[cfg(test)]
pub(crate) use control::GoalEpochRow;
pub(crate) use control::{AggregateRow, ContextRow, EventRow, FamilyRow, GoalRow, Id, QueryRow};
pub(crate) use goals::GoalRows;
pub(crate) use handle::{Options, is_database};
pub(crate) use messages::{EventPlace, ExactKey, MessageRows, SimKey};
pub(crate) use open::Store;
pub(crate) use paging::{PagePlace, walk_page};
pub(crate) use part::{Address, End, IndexId, Junction, NsId, PartId, SpaceId, TextId};
pub(crate) use planned::{GroupRow, PlanRow, Stamp};
pub(crate) use plans::PlanRows;
pub(crate) use queries::{QueryPlace, QueryRows};
pub(crate) use raw::Walk;
pub(crate) use rows::{JunctionRow, Rows};
pub(crate) use size::OWN_BYTES;
pub use size::TableStats;
pub(crate) use sorted::SortedRows;
pub(crate) use tables::{
    CLOCK, IDENTITY, SIZE, Table, bad_key, last_id, last_id_and_number, meta_of, space_of,
};
pub(crate) use text::{TextRows, bad_postings, doc_place, posting_key};
pub(crate) use traces::Traces;
pub(crate) use transact::Written;
pub(crate) use truth::{Keeper, Lock, Truth, holder_keys};
pub(crate) use tx::{Read, Snapshot, Staged as StagedBlocks, WriteTx};
pub(crate) use usage::UsageRows;

use crate::model::closed::closed_set;

closed_set! {
    /// When a commit counts as done.
    #[derive(Default)]
    pub Durability "durability" {
        /// Two syncs and a saved allocator: survives a crash, opens at once after one. About 1.0 ms a commit.
        #[default]
        Safe = 0, "safe";
        /// One sync: survives a crash; opening after one walks the file. About 0.6 ms a commit.
        Fast = 1, "fast";
        /// No sync until `flush` or `close`: a crash may lose what came since, never half of a unit.
        Batch = 2, "batch";
    }
}
