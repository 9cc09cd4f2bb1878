//! What is kept of the past: journal rows and tombstones.

use serde_json::Value;

use crate::model::closed::closed_set;
use crate::model::decision::{Evidence, RuleId};
use crate::model::id::{MemoryId, RunId};
use crate::model::time::Time;

closed_set! {
    /// Who caused a change.
    pub Actor "actor" {
        /// The application.
        Caller = 0, "caller";
        /// A tool call of a language model.
        Tool = 1, "tool";
        /// The engine's own maintenance.
        Sweeper = 2, "sweeper";
    }
}

closed_set! {
    /// What was done, as the journal names it.
    #[non_exhaustive]
    pub Op "op" {
        /// A new memory.
        Insert = 0, "insert";
        /// A memory absorbed a write.
        Hold = 1, "hold";
        /// Fields changed.
        Update = 3, "update";
        /// Another memory took its place.
        Supersede = 4, "supersede";
        /// It became live again.
        Restore = 5, "restore";
        /// It is gone.
        Remove = 6, "remove";
        /// A holder is gone, others remain.
        Detach = 7, "detach";
        /// It proved useful.
        Reinforce = 10, "reinforce";
        /// It was put back from an export.
        Recreate = 11, "recreate";
        /// Its namespace is gone.
        DropNamespace = 12, "drop_namespace";
        /// The graph of an index changed: derived rows alone.
        Derive = 13, "derive";
        /// Duplicates were merged into it.
        Merge = 14, "merge";
        /// Maintenance removed it: it waits in limbo.
        Retire = 15, "retire";
        /// It came back from limbo.
        Return = 16, "return";
        /// A write was not stored: no row changed.
        Ignore = 17, "ignore";
        /// A message came.
        Event = 18, "event";
        /// Messages of an import were taken back.
        Withdraw = 19, "withdraw";
        /// The text of one of its holders took the place of its own.
        Retell = 20, "retold";
    }
}

closed_set! {
    /// Why a memory is gone.
    pub TombstoneReason "reason" {
        /// Forgotten by id, key or filter.
        Forget = 0, "forget";
        /// Forgotten by tag.
        ForgetByTag = 1, "forget_by_tag";
        /// Its import was undone.
        Undone = 2, "undone";
        /// Its time was over.
        Expired = 3, "expired";
        /// The short-term cap was reached.
        CapEvicted = 4, "cap_evicted";
        /// It said the same as another.
        Collapsed = 5, "collapsed";
        /// It was superseded long ago.
        SupersededPurged = 6, "superseded_purged";
        /// It was of no use.
        Pruned = 7, "pruned";
        /// It stands in a summary.
        Summarized = 8, "summarized";
        /// A later snapshot of its period came.
        SnapshotReplaced = 9, "snapshot_replaced";
        /// Its namespace was dropped.
        NamespaceDropped = 10, "namespace_dropped";
        /// Its retention was over.
        Retention = 11, "retention";
    }
}

/// What stays of a memory that is gone: no content, no vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Tombstone {
    /// The id, never used again.
    pub id: MemoryId,
    /// Transaction time.
    pub deleted_at: Time,
    /// Why.
    pub reason: TombstoneReason,
    /// The run that removed it.
    pub run: Option<RunId>,
    /// What stands in its place.
    pub replaced_by: Option<MemoryId>,
    /// The run that had made it.
    pub made_by: Option<RunId>,
    /// Memories that had been merged into it.
    pub merged_from: Vec<MemoryId>,
    /// HMAC of each key that it held.
    pub key_hashes: Vec<[u8; 32]>,
    /// HMAC of its content.
    pub content_hash: [u8; 32],
    /// Rows that it stands for: 1, or those of a dropped namespace.
    pub rows: u64,
    /// When the memory was erased that had waited in limbo since `deleted_at`; none where it was erased at once, or still
    /// waits.
    pub erased_at: Option<Time>,
}

/// One changed field: the value before and after; values of an erased subject are HMACs.
#[derive(Clone, Debug, PartialEq)]
pub struct Delta {
    /// Name of the field.
    pub field: String,
    /// Value before.
    pub before: Value,
    /// Value after.
    pub after: Value,
}

/// One line of the journal, written in the transaction of the change.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalRow {
    /// Number in the store, ascending.
    pub seq: u64,
    /// Transaction time.
    pub at: Time,
    /// Who.
    pub actor: Actor,
    /// In which run.
    pub run: Option<RunId>,
    /// What was done: `insert`, `update`, `supersede` …
    pub op: Op,
    /// The rule that decided.
    pub rule: RuleId,
    /// The memory that changed; none for a whole namespace.
    pub subject: Option<MemoryId>,
    /// The holder that came, changed or went.
    pub holder: Option<u32>,
    /// Changed fields, without content.
    pub deltas: Vec<Delta>,
    /// What the decision rests on.
    pub evidence: Evidence,
    /// Number of the policy.
    pub policy_number: u64,
    /// Hash of the effective policy.
    pub policy_hash: [u8; 8],
}

impl JournalRow {
    /// The memories whose story it is part of: its subject with the holder, and the rows that were merged into it.
    pub fn found_by(&self) -> impl Iterator<Item = (&MemoryId, Option<u32>)> {
        let members = self.evidence.members.iter().filter(|_| self.op == Op::Merge);
        self.subject.iter().map(|id| (id, self.holder)).chain(members.map(|id| (id, None)))
    }
}
