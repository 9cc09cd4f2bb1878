//! What became of a write, and why.

use crate::model::id::{AggregateId, EventId, MemoryId};
use crate::model::name::Partition;

/// The rule that decided: a name that stays the same from one release to the next. What each stands for is told beside its constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleId(pub &'static str);

impl RuleId {
    /// Every rule that a journal row may name; the position is its code on disk, so the list only grows.
    pub const ALL: [RuleId; 37] = [
        RuleId::STORE,
        RuleId::KEY,
        RuleId::CONTENT,
        RuleId::NORMALIZED,
        RuleId::DETACH,
        RuleId::REVISE,
        RuleId::UPDATE,
        RuleId::SUPERSEDE,
        RuleId::RESTORE,
        RuleId::FORGET_ID,
        RuleId::FORGET_KEY,
        RuleId::FORGET_TAG,
        RuleId::FORGET_FILTER,
        RuleId::UNDO,
        RuleId::REINFORCE,
        RuleId::DROP_NAMESPACE,
        RuleId::LINK,
        RuleId::IMPORT_ROW,
        RuleId::INDEX,
        RuleId::REPAIR,
        RuleId::REINDEX,
        RuleId::RULE,
        RuleId::OPERATIONAL,
        RuleId::TOKEN_KEY,
        RuleId::MESSAGE_EXACT,
        RuleId::MESSAGE_NEAR,
        RuleId::VECTOR,
        RuleId::CONSOLIDATE,
        RuleId::SNAPSHOT,
        RuleId::COLLAPSE,
        RuleId::EMBED,
        RuleId::NEAR_DUPLICATES,
        RuleId::VECTOR_DUPLICATES,
        RuleId::PRUNE_SNAPSHOTS,
        RuleId::REPAIR_SUPERSESSION,
        RuleId::LIMBO,
        RuleId::EXPIRED,
    ];
    /// Nothing else decided: stored.
    pub const STORE: RuleId = RuleId("DEDUP-55.7");
    /// The caller's key decided.
    pub const KEY: RuleId = RuleId("DEDUP-56");
    /// Byte-equal content decided.
    pub const CONTENT: RuleId = RuleId("DEDUP-55.2");
    /// Content equal but for white space and case decided, by policy.
    pub const NORMALIZED: RuleId = RuleId("DEDUP-4");
    /// A change through one of several keys: copy on write.
    pub const DETACH: RuleId = RuleId("MODEL-8");
    /// New content under a key or id.
    pub const REVISE: RuleId = RuleId("MODEL-21.revise");
    /// Fields changed in place.
    pub const UPDATE: RuleId = RuleId("MODEL-21.update");
    /// Superseded on request.
    pub const SUPERSEDE: RuleId = RuleId("LIFE-6");
    /// Made live again.
    pub const RESTORE: RuleId = RuleId("LIFE-7");
    /// Forgotten by id.
    pub const FORGET_ID: RuleId = RuleId("MODEL-30.id");
    /// Forgotten by key.
    pub const FORGET_KEY: RuleId = RuleId("MODEL-30.key");
    /// Forgotten by tag.
    pub const FORGET_TAG: RuleId = RuleId("LIFE-26");
    /// Forgotten by filter.
    pub const FORGET_FILTER: RuleId = RuleId("MODEL-30.filter");
    /// A run taken back.
    pub const UNDO: RuleId = RuleId("MODEL-33");
    /// Reinforced on request.
    pub const REINFORCE: RuleId = RuleId("LIFE-18");
    /// Namespace dropped.
    pub const DROP_NAMESPACE: RuleId = RuleId("MODEL-28");
    /// Linked or unlinked.
    pub const LINK: RuleId = RuleId("MODEL-22");
    /// A row of an export put back as it was.
    pub const IMPORT_ROW: RuleId = RuleId("MODEL-48");
    /// Rows were linked into the graph of their index, or the graph was dropped: pass `index`.
    pub const INDEX: RuleId = RuleId("pass.index");
    /// Nodes were unlinked from the graph of their index: pass `repair`.
    pub const REPAIR: RuleId = RuleId("pass.repair");
    /// An index was dropped and its codes written anew.
    pub const REINDEX: RuleId = RuleId("reindex");
    /// A typed rule of the policy decided; the outcome names it.
    pub const RULE: RuleId = RuleId("DEDUP-59");
    /// An equal operational signature decided, by policy.
    pub const OPERATIONAL: RuleId = RuleId("DEDUP-55.3");
    /// An equal token key decided, by policy.
    pub const TOKEN_KEY: RuleId = RuleId("DEDUP-55.4");
    /// The exact key of a message decided.
    pub const MESSAGE_EXACT: RuleId = RuleId("DEDUP-33");
    /// The family of a message decided.
    pub const MESSAGE_NEAR: RuleId = RuleId("DEDUP-36");
    /// A vector at or above the threshold decided, by policy.
    pub const VECTOR: RuleId = RuleId("DEDUP-55.6");
    /// A rule of the policy consolidated the write with a stored memory.
    pub const CONSOLIDATE: RuleId = RuleId("DEDUP-63");
    /// At most one snapshot of a series in a period.
    pub const SNAPSHOT: RuleId = RuleId("DEDUP-67");
    /// Operational duplicates were collapsed: pass `collapse`.
    pub const COLLAPSE: RuleId = RuleId("DEDUP-18");
    /// Rows of equal text were merged: pass `near-duplicates`.
    pub const NEAR_DUPLICATES: RuleId = RuleId("pass.near-duplicates");
    /// A cluster of vectors was merged: pass `vector-duplicates`.
    pub const VECTOR_DUPLICATES: RuleId = RuleId("DEDUP-46");
    /// Earlier snapshots of a period went: pass `snapshots`.
    pub const PRUNE_SNAPSHOTS: RuleId = RuleId("DEDUP-69");
    /// A chain of superseders that leads nowhere was mended: pass `supersession`.
    pub const REPAIR_SUPERSESSION: RuleId = RuleId("LIFE-9");
    /// A row of limbo was erased at its horizon: pass `limbo`.
    pub const LIMBO: RuleId = RuleId("MODEL-29");
    /// A memory was erased that had expired.
    pub const EXPIRED: RuleId = RuleId("LIFE-3");
    /// A memory that had none gets a vector, or one of another model.
    pub const EMBED: RuleId = RuleId("pass.embed");

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
