//! The states of plans and groups of summary GC, and why a summary is refused.

use crate::model::closed::closed_set;

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
    }
}
