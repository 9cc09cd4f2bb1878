//! Runs: operations of many parts, what became of them, and how long they can be taken back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::closed::closed_set;
use crate::model::history::Actor;
use crate::model::id::RunId;
use crate::model::time::Time;

closed_set! {
    /// How far a run is, as the file says.
    pub RunState "state" {
        /// The run is at work, or was interrupted.
        Open = 0, "open";
        /// The run is finished.
        Done = 1, "done";
        /// The run is being undone.
        Undoing = 2, "undoing";
        /// The run was undone.
        Undone = 3, "undone";
    }
}

closed_set! {
    /// What a run does.
    #[non_exhaustive]
    pub RunSort "what" {
        /// The run is an import.
        Import = 0, "import";
        /// The run is a pass of maintenance, or several passes.
        Maintain = 1, "maintain";
        /// The run builds what follows from memories anew.
        Reindex = 2, "reindex";
        /// The run gives memories the vectors of another embedder.
        Reembed = 3, "reembed";
        /// The run erases what is past its end, before the file is copied.
        Compact = 4, "compact";
        /// The run fills a declared index of metadata, or clears one that is to go.
        Index = 5, "index";
    }
}

closed_set! {
    /// How far a run is, as the handle that is asked knows.
    #[non_exhaustive]
    pub RunStatus "state" {
        /// The handle works on the run.
        Running = 0, "running";
        /// Nobody works on the run, and its end was not reached. The next call of maintenance goes on with a pass that was
        /// cut off.
        CutOff = 1, "cut off";
        /// The run is at work in another process, or was cut off. A handle that only reads can't tell.
        Open = 2, "open";
        /// The end of the run was reached.
        Done = 3, "done";
        /// Some of the run was taken back. The next `undo` of the run goes on with the rest.
        Undoing = 4, "undoing";
        /// The run was taken back.
        Undone = 5, "undone";
    }
}

impl RunSort {
    /// Whether `undo` can take back what such runs do.
    pub(crate) const fn can_be_undone(self) -> bool {
        matches!(self, RunSort::Import | RunSort::Maintain)
    }
}

impl RunStatus {
    /// What a stored state means to a handle that works on the run or not. A handle that can't write may stand beside one
    /// that can.
    pub(crate) fn of(state: RunState, is_at_work: bool, may_write: bool) -> Self {
        match state {
            RunState::Open if is_at_work => RunStatus::Running,
            RunState::Open if may_write => RunStatus::CutOff,
            RunState::Open => RunStatus::Open,
            RunState::Done => RunStatus::Done,
            RunState::Undoing => RunStatus::Undoing,
            RunState::Undone => RunStatus::Undone,
        }
    }
}

/// A run of one namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunReport {
    /// The id, for `undo`.
    pub id: RunId,
    /// What the run does.
    #[serde(rename = "what")]
    pub sort: RunSort,
    /// How far the run is.
    #[serde(rename = "state")]
    pub status: RunStatus,
    /// Who began the run.
    pub by: Actor,
    /// The transaction time of the start.
    pub started_at: Time,
    /// The transaction time of the latest part, or of the end.
    pub latest_at: Time,
    /// What the parts did: writes of an import by their decision, rows that maintenance changed by the pass.
    pub counts: BTreeMap<String, u64>,
    /// Whether `undo` would still find something to take back.
    pub can_be_undone: bool,
    /// Until when `undo` may begin; none where there is no such end, and where nothing can be undone.
    pub undoable_until: Option<Time>,
}

/// A page of the runs of a namespace, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunPage {
    /// The runs.
    pub items: Vec<RunReport>,
    /// The last run of the page, behind which the next page begins; none after the last page.
    pub next: Option<RunId>,
    /// Runs whose rows are damaged. They are not among the items.
    pub damaged: Vec<RunId>,
}
