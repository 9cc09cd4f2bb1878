//! The states of plans and groups of summary GC, and why a summary is refused.

use serde::Serialize;
use serde_json::Value;

use crate::model::closed::closed_set;
use crate::model::id::MemoryId;

closed_set! {
    /// How far a plan of summaries is.
    pub PlanState "state" {
        /// Groups of the plan can be summarized.
        Open = 0, "open";
        /// Every group is done.
        Committed = 1, "committed";
        /// The plan was given up.
        Aborted = 2, "aborted";
        /// The time of the plan is over.
        Expired = 3, "expired";
    }
}

closed_set! {
    /// How far a group of such a plan is.
    pub GroupState "state" {
        /// The group waits for its summary.
        Planned = 0, "planned";
        /// The summary stands in the place of its sources.
        Committed = 1, "committed";
        /// The group was given up.
        Aborted = 2, "aborted";
        /// A summary was refused, and another one may follow.
        Refused = 3, "refused";
    }
}

closed_set! {
    /// Why a summary was refused. Nothing has changed then.
    #[non_exhaustive]
    pub Refusal "refusal" {
        /// There is no such plan or group.
        PlanNotFound = 0, "plan_not_found";
        /// The plan is over: committed, given up or expired.
        PlanClosed = 1, "plan_closed";
        /// The policy is not the one of the plan.
        PolicyChanged = 2, "policy_changed";
        /// The group has another summary.
        AlreadyCommitted = 3, "already_committed";
        /// A source is not one of the group.
        NotInGroup = 4, "not_in_group";
        /// The summary names a source that it does not stand for.
        BadProvenance = 5, "bad_provenance";
        /// The summary is not of the form `json_v1`.
        InvalidSummary = 6, "invalid_summary";
        /// A source is gone, or something has taken its place.
        SourceGone = 7, "source_gone";
        /// A source has changed.
        SourceChanged = 8, "source_changed";
        /// A source is protected.
        SourceProtected = 9, "source_protected";
        /// A source was used.
        SourceUsed = 10, "source_used";
        /// More memories would go than automatic actors may remove.
        Budget = 11, "budget";
        /// Fewer of the probes would find the summary than the floor of the policy asks for.
        RecallBelowFloor = 12, "recall_below_floor";
        /// Whoever was to write the summary gave none.
        NoSummary = 13, "no_summary";
        /// The sources are too short for a summary that is shorter.
        NoGain = 14, "no_gain";
    }
}

/// What of the content of a memory says which others it belongs to: its fields of the same names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Belonging {
    pub(crate) custom_kind: Option<String>,
    pub(crate) tags: Vec<String>,
    /// Null where the memory has none.
    pub(crate) metadata: Value,
    pub(crate) channel: Option<String>,
    pub(crate) thread: Option<String>,
    pub(crate) reply_to: Option<MemoryId>,
    pub(crate) family_id: Option<MemoryId>,
    pub(crate) aggregate_id: Option<MemoryId>,
    pub(crate) verbatim: bool,
}

closed_set! {
    /// Where a question comes from that a plan of summaries is asked.
    pub ProbeSource "source of a probe" {
        /// Whoever asked for the plan has named it.
        Caller = 0, "caller";
        /// A search has asked it before, and found a source of the group.
        Query = 1, "query";
    }
}

/// A question that finds a source of a group, and must find its summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GcProbe {
    /// The question.
    pub text: String,
    /// Where it comes from.
    pub from: ProbeSource,
}

/// How well a summary is found by what had found its sources: each probe is a question that is asked before and after the
/// summary takes their place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RecallGuard {
    /// Questions that were asked.
    pub probes: u32,
    /// Questions that found a source among the best `gc.probe_k` hits.
    pub hit_before: u32,
    /// Of these, questions that find the summary.
    pub hit_after: u32,
    /// `hit_after / hit_before`, 0 to 1; none where no question had found a source.
    pub ratio: Option<f64>,
}

impl RecallGuard {
    pub(crate) fn new(probes: u32, hit_before: u32, hit_after: u32) -> Self {
        let ratio = (hit_before > 0).then(|| f64::from(hit_after) / f64::from(hit_before));
        RecallGuard { probes, hit_before, hit_after, ratio }
    }

    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        let sum = |one: u32, other: u32| one.saturating_add(other);
        RecallGuard::new(
            sum(self.probes, other.probes),
            sum(self.hit_before, other.hit_before),
            sum(self.hit_after, other.hit_after),
        )
    }

    /// Whether too few questions find the summary. Without a question that had found a source there is nothing to lose.
    pub(crate) fn is_below(self, floor: f64) -> bool {
        self.ratio.is_some_and(|ratio| ratio < floor)
    }
}
