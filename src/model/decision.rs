//! What was decided about a write, and why.

use crate::model::id::{AggregateId, EventId, MemoryId};
use crate::model::name::Partition;

/// The rule that decided. The name of a rule stays the same from one release to the next. The comment of each constant
/// says what its rule stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleId(pub &'static str);

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $id:literal;)+) => {
        impl RuleId {
            /// Every rule that a journal row may name; the position is its code on disk.
            pub const ALL: &[RuleId] = &[$(RuleId::$name,)+];

            $($(#[$doc])* pub const $name: RuleId = RuleId($id);)+
        }
    };
}

rules! {
    /// No other rule decided: the write was stored.
    STORE = "DEDUP-55.7";
    /// The caller's key decided.
    KEY = "DEDUP-56";
    /// Byte-equal content decided.
    CONTENT = "DEDUP-55.2";
    /// Content that differs only in white space and case decided, by policy.
    NORMALIZED = "DEDUP-4";
    /// A change through one of several keys moved the write to a row of its own: copy on write.
    DETACH = "MODEL-8";
    /// New content came under a key or id.
    REVISE = "MODEL-21.revise";
    /// Fields were changed in place.
    UPDATE = "MODEL-21.update";
    /// A caller superseded the memory.
    SUPERSEDE = "LIFE-6";
    /// A caller made the memory live again.
    RESTORE = "LIFE-7";
    /// Forgotten by id.
    FORGET_ID = "MODEL-30.id";
    /// Forgotten by key.
    FORGET_KEY = "MODEL-30.key";
    /// Forgotten by tag.
    FORGET_TAG = "LIFE-26";
    /// Forgotten by filter.
    FORGET_FILTER = "MODEL-30.filter";
    /// A run was undone.
    UNDO = "MODEL-33";
    /// A caller reinforced the memory.
    REINFORCE = "LIFE-18";
    /// The namespace was dropped.
    DROP_NAMESPACE = "MODEL-28";
    /// A link was added or removed.
    LINK = "MODEL-22";
    /// A row of an export was put back unchanged.
    IMPORT_ROW = "MODEL-48";
    /// Rows were linked into the graph of their index, or the graph was dropped: pass `index`.
    INDEX = "pass.index";
    /// Nodes were unlinked from the graph of their index: pass `repair`.
    REPAIR = "pass.repair";
    /// An index was dropped, and its codes were written again.
    REINDEX = "reindex";
    /// A typed rule of the policy decided; the outcome names it.
    RULE = "DEDUP-59";
    /// An equal operational signature decided, by policy.
    OPERATIONAL = "DEDUP-55.3";
    /// An equal token key decided, by policy.
    TOKEN_KEY = "DEDUP-55.4";
    /// The exact key of a message decided.
    MESSAGE_EXACT = "DEDUP-33";
    /// The family of a message decided.
    MESSAGE_NEAR = "DEDUP-36";
    /// A vector at or above the threshold decided, by policy.
    VECTOR = "DEDUP-55.6";
    /// A rule of the policy consolidated the write with a stored memory.
    CONSOLIDATE = "DEDUP-63";
    /// A period of a series has at most one snapshot.
    SNAPSHOT = "DEDUP-67";
    /// Operational duplicates were collapsed: pass `collapse`.
    COLLAPSE = "DEDUP-18";
    /// A memory without a vector got one, or a memory got a vector of another model.
    EMBED = "pass.embed";
    /// Rows of equal text were merged: pass `near-duplicates`.
    NEAR_DUPLICATES = "pass.near-duplicates";
    /// A cluster of vectors was merged: pass `vector-duplicates`.
    VECTOR_DUPLICATES = "DEDUP-46";
    /// Earlier snapshots of a period were removed: pass `snapshots`.
    PRUNE_SNAPSHOTS = "DEDUP-69";
    /// A chain of superseders that led nowhere was mended: pass `supersession`.
    REPAIR_SUPERSESSION = "LIFE-9";
    /// A row of limbo was erased at its horizon: pass `limbo`.
    LIMBO = "MODEL-29";
    /// An expired memory was erased.
    EXPIRED = "LIFE-3";
}

impl RuleId {
    /// The code on disk.
    pub fn code(self) -> u8 {
        RuleId::ALL
            .iter()
            .position(|rule| *rule == self)
            .and_then(|at| u8::try_from(at).ok())
            .unwrap_or(u8::MAX)
    }

    /// The rule with a code from disk.
    pub fn from_code(code: u8) -> Option<Self> {
        RuleId::ALL.get(usize::from(code)).copied()
    }
}

/// The evidence behind a decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The similarity, if one was measured.
    pub score: Option<f32>,
    /// What was equal: `content`, `fingerprint`, `key` …
    pub signature: Option<String>,
    /// The memories that took part.
    pub members: Vec<MemoryId>,
    /// The reinforcement that moved.
    pub transferred: Option<u32>,
}

/// A near memory that did not decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Hint {
    /// The near memory.
    pub id: MemoryId,
    /// Why the memory is near: `equal content`, `equal fingerprint`, `near vector` …
    pub why: &'static str,
    /// The similarity, if one was measured.
    pub score: Option<f32>,
    /// The guard that kept the two apart, if one did.
    pub guard: Option<&'static str>,
}

impl Hint {
    /// A hint without a measured similarity.
    pub const fn new(id: MemoryId, why: &'static str) -> Self {
        Hint { id, why, score: None, guard: None }
    }
}

/// What was decided about a write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The write became a memory of its own.
    Stored,
    /// The same write came again; nothing changed.
    Unchanged,
    /// Fields of the memory were changed in place.
    Updated,
    /// A memory with the same content absorbed the write and now stands for it as well.
    Reinforced,
    /// The content was new: a new memory superseded the old one.
    Revised {
        /// The memory that was superseded.
        old: MemoryId,
    },
    /// The message is one more member of a family: an event, and no memory of its own.
    Aggregated {
        /// The family in numbers.
        aggregate: AggregateId,
        /// The message as it came.
        event: EventId,
    },
    /// A rule, or a later snapshot of the same period, made the write unnecessary: nothing is stored.
    Ignored,
    /// A rule sent the write to another partition.
    Routed {
        /// The other partition.
        partition: Partition,
        /// What was decided there.
        inner: Box<Decision>,
    },
    /// A rule merged the write with the memory of a key.
    Consolidated,
}

impl Decision {
    /// The name in JSON.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Decision::Stored => "stored",
            Decision::Unchanged => "unchanged",
            Decision::Updated => "updated",
            Decision::Reinforced => "reinforced",
            Decision::Revised { .. } => "revised",
            Decision::Aggregated { .. } => "aggregated",
            Decision::Ignored => "ignored",
            Decision::Routed { .. } => "routed",
            Decision::Consolidated => "consolidated",
        }
    }

    /// The decision where the write ended up: the inner decision of a routed write, otherwise the decision
    /// itself.
    pub fn settled(&self) -> &Decision {
        match self {
            Decision::Routed { inner, .. } => inner.settled(),
            other => other,
        }
    }
}

/// The answer to a write: decision, rule and evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The memory that now holds the write. If an ignored write has no such memory, this is the id under which the
    /// journal tells of the write, and no memory has it.
    pub id: MemoryId,
    /// The key that was written.
    pub key: Option<String>,
    /// The partition of the memory.
    pub partition: Partition,
    /// What was decided.
    pub decision: Decision,
    /// The rule that decided.
    pub rule: RuleId,
    /// The name of the typed rule of the policy that decided or routed the write, such as `R1`.
    pub policy_rule: Option<String>,
    /// The event, if the write was a message of an author.
    pub event: Option<EventId>,
    /// The evidence behind the decision.
    pub evidence: Evidence,
    /// Near memories that did not decide.
    pub hints: Vec<Hint>,
    /// The number of the policy that was in force.
    pub policy_number: u64,
}
