//! The rows of plans of summaries.

use serde::{Deserialize, Serialize};

use crate::model::{GroupState, MemoryId, PlanState, Refusal, RunId, Time};

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlanRow {
    /// How far it is, but for the end of its time.
    pub(crate) state: PlanState,
    /// Transaction time at which it was made.
    pub(crate) created_ms: i64,
    /// Instant from which nothing of it is carried out.
    pub(crate) expires_ms: i64,
    /// Number of the policy that it was made under.
    pub(crate) policy_number: u64,
    /// Hash of that policy.
    pub(crate) policy_hash: [u8; 8],
    /// Number of its groups.
    pub(crate) groups: u32,
    /// Why it was given up.
    pub(crate) reason: Option<String>,
    /// Questions of the caller; none once the plan is over.
    pub(crate) probes: Vec<String>,
}

impl PlanRow {
    /// The plan once it is over.
    pub(crate) fn ended(self, state: PlanState) -> Self {
        PlanRow { state, probes: Vec::new(), ..self }
    }

    /// How far it is at an instant.
    pub(crate) fn state_at(&self, now: Time) -> PlanState {
        match self.state {
            PlanState::Open if now.as_millis() >= self.expires_ms => PlanState::Expired,
            state => state,
        }
    }
}

/// A group of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupRow {
    /// How far it is.
    pub(crate) state: GroupState,
    /// Number of its partition.
    pub(crate) part: u32,
    /// Its sources, as the plan saw them.
    pub(crate) sources: Vec<Stamp>,
    /// Estimated tokens of the sources.
    pub(crate) tokens: u64,
    /// The summary.
    pub(crate) summary: Option<MemoryId>,
    /// HMAC of the summary as it was given, by which a repetition is known.
    pub(crate) digest: Option<[u8; 32]>,
    /// The run of the commit.
    pub(crate) run: Option<RunId>,
    /// Sources that went.
    pub(crate) removed: u64,
    /// Sources that had changed and stayed, with the reason.
    pub(crate) skipped: Vec<(MemoryId, Refusal)>,
    /// Questions that were asked of its sources, how many of these found a source before the commit, and how many of them
    /// find the summary.
    pub(crate) guard: [u32; 3],
    /// Why the last summary was refused.
    pub(crate) refusal: Option<Refusal>,
    /// Why it was given up.
    pub(crate) reason: Option<String>,
}

/// A source as a plan saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) id: MemoryId,
    pub(crate) version: u64,
    /// Retrievals and inclusions so far.
    pub(crate) access_seq: u64,
    /// When it happened, or was created.
    pub(crate) at_ms: i64,
}

impl GroupRow {
    /// Whether it waits for a summary.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, GroupState::Planned | GroupState::Refused)
    }
}
