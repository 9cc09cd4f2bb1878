//! What became of a write, and why.

use crate::model::id::{AggregateId, EventId, MemoryId};
use crate::model::name::Partition;

/// The rule that decided: a name that stays the same from one release to the next. What each stands for is told beside its constant.
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
    /// Nothing else decided: stored.
    STORE = "DEDUP-55.7";
    /// The caller's key decided.
    KEY = "DEDUP-56";
    /// Byte-equal content decided.
    CONTENT = "DEDUP-55.2";
    /// Content equal but for white space and case decided, by policy.
    NORMALIZED = "DEDUP-4";
    /// A change through one of several keys: copy on write.
    DETACH = "MODEL-8";
    /// New content under a key or id.
    REVISE = "MODEL-21.revise";
    /// Fields changed in place.
    UPDATE = "MODEL-21.update";
    /// Superseded on request.
    SUPERSEDE = "LIFE-6";
    /// Made live again.
    RESTORE = "LIFE-7";
    /// Forgotten by id.
    FORGET_ID = "MODEL-30.id";
    /// Forgotten by key.
    FORGET_KEY = "MODEL-30.key";
    /// Forgotten by tag.
    FORGET_TAG = "LIFE-26";
    /// Forgotten by filter.
    FORGET_FILTER = "MODEL-30.filter";
    /// A run taken back.
    UNDO = "MODEL-33";
    /// Reinforced on request.
    REINFORCE = "LIFE-18";
    /// Namespace dropped.
    DROP_NAMESPACE = "MODEL-28";
    /// Linked or unlinked.
    LINK = "MODEL-22";
    /// A row of an export put back as it was.
    IMPORT_ROW = "MODEL-48";
    /// Rows were linked into the graph of their index, or the graph was dropped: pass `index`.
    INDEX = "pass.index";
    /// Nodes were unlinked from the graph of their index: pass `repair`.
    REPAIR = "pass.repair";
    /// An index was dropped and its codes written anew.
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
    /// At most one snapshot of a series in a period.
    SNAPSHOT = "DEDUP-67";
    /// Operational duplicates were collapsed: pass `collapse`.
    COLLAPSE = "DEDUP-18";
    /// A memory that had none gets a vector, or one of another model.
    EMBED = "pass.embed";
    /// Rows of equal text were merged: pass `near-duplicates`.
    NEAR_DUPLICATES = "pass.near-duplicates";
    /// A cluster of vectors was merged: pass `vector-duplicates`.
    VECTOR_DUPLICATES = "DEDUP-46";
    /// Earlier snapshots of a period went: pass `snapshots`.
    PRUNE_SNAPSHOTS = "DEDUP-69";
    /// A chain of superseders that leads nowhere was mended: pass `supersession`.
    REPAIR_SUPERSESSION = "LIFE-9";
    /// A row of limbo was erased at its horizon: pass `limbo`.
    LIMBO = "MODEL-29";
    /// A memory was erased that had expired.
    EXPIRED = "LIFE-3";
}

impl RuleId {
    /// Its code on disk.
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

/// What a decision rests on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Similarity, where one was measured.
    pub score: Option<f32>,
    /// What was equal: `content`, `fingerprint`, `key` …
    pub signature: Option<String>,
    /// Memories that took part.
    pub members: Vec<MemoryId>,
    /// Reinforcement that moved.
    pub transferred: Option<u32>,
}

/// A near hit that did not decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Hint {
    /// The memory that is near.
    pub id: MemoryId,
    /// Why it is near: `equal content`, `equal fingerprint`, `near vector` …
    pub why: &'static str,
    /// Similarity, where one was measured.
    pub score: Option<f32>,
    /// The guard that kept the two apart, where one did.
    pub guard: Option<&'static str>,
}

impl Hint {
    /// A hint without a measured similarity.
    pub const fn new(id: MemoryId, why: &'static str) -> Self {
        Hint { id, why, score: None, guard: None }
    }
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// A memory of its own.
    Stored,
    /// The same write again: nothing changed.
    Unchanged,
    /// Fields of the memory changed in place.
    Updated,
    /// Absorbed by a memory with the same content, which now stands for this write as well.
    Reinforced,
    /// New content: a new memory superseded the old one.
    Revised {
        /// The memory that was superseded.
        old: MemoryId,
    },
    /// One more member of a family of messages: an event, and no memory of its own.
    Aggregated {
        /// The family in numbers.
        aggregate: AggregateId,
        /// The message as it came.
        event: EventId,
    },
    /// A rule, or a later snapshot of the same period, made it unnecessary: nothing is stored.
    Ignored,
    /// A rule sent it to another partition, where this became of it.
    Routed {
        /// Where.
        partition: Partition,
        /// What became of it there.
        inner: Box<Decision>,
    },
    /// A rule united it with the memory of a key.
    Consolidated,
}

impl Decision {
    /// Its name in JSON.
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

    /// What became of the write where it went: of a routed one the inner decision, else itself.
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
    /// The memory that holds the write now. Of an ignored write without such a memory it is an id that no memory has
    /// and under which the journal tells of it.
    pub id: MemoryId,
    /// The key that was written.
    pub key: Option<String>,
    /// Where it lies.
    pub partition: Partition,
    /// What became of it.
    pub decision: Decision,
    /// The rule that decided.
    pub rule: RuleId,
    /// The typed rule of the policy that decided or sent it elsewhere, by its name, such as `R1`.
    pub policy_rule: Option<String>,
    /// The message as it came, where it was one of an author.
    pub event: Option<EventId>,
    /// What the decision rests on.
    pub evidence: Evidence,
    /// Near hits that did not decide.
    pub hints: Vec<Hint>,
    /// Number of the policy that was in force.
    pub policy_number: u64,
}
