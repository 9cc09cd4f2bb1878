//! The journal as a feed: what changed, without what was said.

use serde::Serialize;

use crate::model::history::{Actor, JournalRow, Op};
use crate::model::id::{MemoryId, RunId};
use crate::model::time::Time;

/// One change of a namespace, as hosts follow it: to drop what they cached, to copy, to delete what they keep elsewhere. It
/// names memories and fields, and no content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangeNote {
    /// The number of the change in the file, ascending.
    pub seq: u64,
    /// Transaction time.
    pub at: Time,
    /// The operation.
    pub op: Op,
    /// The memory that changed; none where the change belongs to no single memory: a fold of uses, a goal, a namespace.
    pub id: Option<MemoryId>,
    /// Who caused the change.
    pub actor: Actor,
    /// The run of the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Other memories of the change: those that were merged into the memory, or the one that took its place and,
    /// where that one stands there for another that is gone, the one that is gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemoryId>,
    /// The names of the fields that changed in place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}

impl From<JournalRow> for ChangeNote {
    fn from(row: JournalRow) -> Self {
        let JournalRow { seq, at, actor, run, op, subject, deltas, evidence, .. } = row;
        let fields = deltas.into_iter().map(|delta| delta.field).collect();
        ChangeNote { seq, at, op, id: subject, actor, run, members: evidence.members, fields }
    }
}

/// A page of changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// The changes, in the order in which they were made.
    pub changes: Vec<ChangeNote>,
    /// The cursor behind the page. It also serves after the last page, for what is yet to come.
    pub next: u64,
    /// The numbers of changes that can't be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<u64>,
}
