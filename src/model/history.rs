//! What is kept of the past: journal rows and tombstones.

use serde::{Deserialize, Serialize};
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
    /// An operation, as the journal names it.
    #[non_exhaustive]
    pub Op "op" {
        /// A new memory was stored.
        Insert = 0, "insert";
        /// A memory absorbed a write.
        Hold = 1, "hold";
        /// Fields changed.
        Update = 3, "update";
        /// Another memory took its place.
        Supersede = 4, "supersede";
        /// The memory became live again.
        Restore = 5, "restore";
        /// The memory is gone.
        Remove = 6, "remove";
        /// A holder is gone, and others remain.
        Detach = 7, "detach";
        /// The memory proved useful.
        Reinforce = 10, "reinforce";
        /// The memory was put back from an export.
        Recreate = 11, "recreate";
        /// The namespace of the memory is gone.
        DropNamespace = 12, "drop_namespace";
        /// The graph of an index changed; derived rows only.
        Derive = 13, "derive";
        /// Duplicates were merged into the memory.
        Merge = 14, "merge";
        /// Maintenance removed the memory, which waits in limbo.
        Retire = 15, "retire";
        /// The memory came back from limbo.
        Return = 16, "return";
        /// A write was not stored, and no row changed.
        Ignore = 17, "ignore";
        /// A message came.
        Event = 18, "event";
        /// Messages of an import were undone.
        Withdraw = 19, "withdraw";
        /// The text of one of its holders replaced the text of the row.
        Retell = 20, "retold";
        /// A record got another key.
        Rename = 21, "rename";
        /// Messages or tombstones went for their age; no memory changed.
        Purge = 22, "purge";
        /// Accesses of memories were counted; no version changed.
        Fold = 44, "fold";
        /// Maintenance changed fields of the memory.
        Adjust = 45, "adjust";
        /// A summary was refused, and no row changed.
        Refuse = 60, "refuse";
        /// A goal was set, or got another weight.
        SetGoal = 70, "set_goal";
        /// A goal was dropped.
        DropGoal = 71, "drop_goal";
        /// A hook gave no score for memories, and the built-in formula stood; no row changed.
        Unscored = 72, "unscored";
    }
}

closed_set! {
    /// Why a memory is gone.
    #[derive(Default)]
    pub TombstoneReason "reason" {
        /// The memory was forgotten by id, key or filter.
        #[default]
        Forget = 0, "forget";
        /// The memory was forgotten by tag.
        ForgetByTag = 1, "forget_by_tag";
        /// The import of the memory was undone.
        Undone = 2, "undone";
        /// The lifetime of the memory was over.
        Expired = 3, "expired";
        /// The cap on short-term memories was reached.
        CapEvicted = 4, "cap_evicted";
        /// The memory said the same as another memory.
        Collapsed = 5, "collapsed";
        /// The memory was superseded long ago.
        SupersededPurged = 6, "superseded_purged";
        /// The memory was of no use.
        Pruned = 7, "pruned";
        /// The memory stands in a summary.
        Summarized = 8, "summarized";
        /// A later snapshot of the same period came.
        SnapshotReplaced = 9, "snapshot_replaced";
        /// The namespace of the memory was dropped.
        NamespaceDropped = 10, "namespace_dropped";
        /// The retention time of the memory was over.
        Retention = 11, "retention";
        /// The memory is in another namespace now.
        Moved = 12, "moved";
    }
}

impl TombstoneReason {
    /// Whether somebody asked for the removal. Then the text of the messages behind the memory is erased as well, and the
    /// queries that had found it. When maintenance removes a memory, its messages keep their own retention, and a query that
    /// had found others as well stays.
    pub(crate) const fn is_asked_for(self) -> bool {
        matches!(
            self,
            TombstoneReason::Forget
                | TombstoneReason::ForgetByTag
                | TombstoneReason::Undone
                | TombstoneReason::NamespaceDropped
        )
    }

    /// Whether the write that had brought the memory was taken back, with whatever the write had led to.
    pub(crate) const fn is_taken_back(self) -> bool {
        matches!(self, TombstoneReason::ForgetByTag | TombstoneReason::Undone)
    }

    /// Whether nothing of the memory was to stay. An undo leaves the messages of others.
    pub(crate) const fn is_forgotten(self) -> bool {
        self.is_asked_for() && !matches!(self, TombstoneReason::Undone)
    }
}

/// What remains of a memory that is gone: no content, no vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Tombstone {
    /// The id, which is never used again.
    pub id: MemoryId,
    /// The transaction time of the removal.
    pub deleted_at: Time,
    /// Why the memory was removed.
    pub reason: TombstoneReason,
    /// The run that removed the memory.
    pub run: Option<RunId>,
    /// The memory that took its place.
    pub replaced_by: Option<MemoryId>,
    /// The run that had made the memory.
    pub made_by: Option<RunId>,
    /// The memories that had been merged into the memory.
    pub merged_from: Vec<MemoryId>,
    /// The HMAC of each key of the memory.
    pub key_hashes: Vec<[u8; 32]>,
    /// The HMAC of the content.
    pub content_hash: [u8; 32],
    /// The number of rows that the tombstone stands for: 1, or the rows of a dropped namespace.
    pub rows: u64,
    /// When the memory was erased after waiting in limbo since `deleted_at`. None if the memory was erased at once or
    /// still waits.
    pub erased_at: Option<Time>,
    /// When somebody first asked to forget the memory after maintenance had removed it.
    pub forgotten_at: Option<Time>,
}

impl Tombstone {
    /// That of a memory of which no more is known.
    pub(crate) fn bare(id: MemoryId, deleted_at: Time, reason: TombstoneReason) -> Self {
        Tombstone {
            id,
            deleted_at,
            reason,
            run: None,
            replaced_by: None,
            made_by: None,
            merged_from: Vec::new(),
            key_hashes: Vec::new(),
            content_hash: [0; 32],
            rows: 1,
            erased_at: None,
            forgotten_at: None,
        }
    }

    /// Whether the memory was forgotten and nothing has its place: what it had replaced stays an earlier text.
    pub(crate) fn leaves_nothing(&self) -> bool {
        self.reason == TombstoneReason::Forget && self.replaced_by.is_none()
    }
}

/// One changed field with the values before and after. The values of an erased subject are HMACs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delta {
    /// The name of the field.
    pub field: String,
    /// Value before.
    pub before: Value,
    /// Value after.
    pub after: Value,
}

/// One line of the journal, written in the transaction of the change.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalRow {
    /// The number of the row in the store, ascending.
    pub seq: u64,
    /// Transaction time.
    pub at: Time,
    /// Who caused the change.
    pub actor: Actor,
    /// The run of the change.
    pub run: Option<RunId>,
    /// The operation: `insert`, `update`, `supersede` …
    pub op: Op,
    /// The rule that decided.
    pub rule: RuleId,
    /// The memory that changed; none for a whole namespace.
    pub subject: Option<MemoryId>,
    /// The holder that was added, changed or removed.
    pub holder: Option<u32>,
    /// The changed fields, without content.
    pub deltas: Vec<Delta>,
    /// The evidence behind the decision.
    pub evidence: Evidence,
    /// The number of the policy.
    pub policy_number: u64,
    /// The hash of the effective policy.
    pub policy_hash: [u8; 8],
}

impl JournalRow {
    /// The memories whose story the row is part of: the subject with the holder, and the rows that were merged into
    /// the subject.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// let history = team.history(tea)?;
    /// assert!(history.events[0].found_by().any(|(id, _)| *id == tea));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn found_by(&self) -> impl Iterator<Item = (&MemoryId, Option<u32>)> {
        let members = self.evidence.members.iter().filter(|_| self.op == Op::Merge);
        self.subject.iter().map(|id| (id, self.holder)).chain(members.map(|id| (id, None)))
    }
}
