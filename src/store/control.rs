//! What small rows hold: the identity of the file, its clock and numbers, names and runs, messages and their families.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::closed::closed_set;
use crate::model::{Actor, EventDecision, Included, LedLink, MemoryId, RunId, Time, Times, TombstoneReason};
pub(crate) use crate::model::{RunSort, RunState};
use crate::store::part::{NsId, PartId};

/// What a file is: written once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Version of the file format.
    pub(crate) format: u32,
    /// Id of the normalizer of its fingerprints: those of another are never compared.
    pub(crate) normalizer: String,
    /// Secret of the HMACs.
    pub(crate) secret: [u8; 32],
}

/// What moves with every commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Clock {
    /// Number of the commit.
    pub(crate) commit: u64,
    /// Transaction time of the commit, milliseconds since 1970; never less than in the commit before.
    pub(crate) at_ms: i64,
    /// Number of the next journal row.
    pub(crate) next_seq: u64,
    /// Number of the next namespace.
    pub(crate) next_ns: u32,
    /// Number of the next category or entity.
    pub(crate) next_term: u32,
    /// Number of the next embedding space.
    pub(crate) next_space: u16,
    /// Number of the policy in force; 0 is the built-in one.
    pub(crate) policy: u64,
    /// Space that searches use; 0 while none is known.
    pub(crate) space: u16,
    /// By it two commits of one number are told apart, which two processes have made, or one and a loss between.
    pub(crate) nonce: Nonce,
}

/// The mark of a commit, which no other one has: 8 bytes that were drawn at random for the handle that made it, then the
/// number of its attempt.
pub(crate) type Nonce = [u8; 16];

/// How much of the file its rows take. Every value of the row is of one length, so that the row does not change its own sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SizeRow {
    /// Bytes of the keys and values of every row of every table, this row among them.
    #[serde(with = "postcard::fixint::le")]
    pub(crate) live: u64,
    /// What `live` was, but for this row, when the pages of the file were counted: as it was written as a copy, or as it was closed
    /// and much of it seemed free. 0 as long as they were not.
    #[serde(with = "postcard::fixint::le")]
    pub(crate) copied: u64,
    /// Bytes of pages in use that the file had beyond `copied` then.
    #[serde(with = "postcard::fixint::le")]
    pub(crate) overhead: u64,
}

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NamespaceRow {
    /// Its number, never used again.
    pub(crate) number: u32,
    /// Transaction time of its first write.
    pub(crate) created_ms: i64,
    /// Number of its next partition; 0 is the shared one.
    pub(crate) next_part: u32,
    /// Content known before this instant may be gone.
    pub(crate) horizon_known_ms: i64,
    /// Content valid before this instant may be gone.
    pub(crate) horizon_valid_ms: i64,
    /// It is being dropped: hidden already, its rows go in slices.
    pub(crate) dropping: bool,
}

impl NamespaceRow {
    /// Raises the purge horizons for a row that maintenance erases: so far that no read behind them would have seen it.
    pub(crate) fn raise_horizons(&mut self, erased: &Times) {
        let raise = |horizon: &mut i64, to: Option<Time>| {
            *horizon = to.map_or(*horizon, |to| to.as_millis().max(*horizon));
        };
        // A row that ended in transaction time was seen by what knew of nothing later. Another one still counts for the
        // world as it was before its end.
        match erased.tx_end() {
            Some(end) => raise(&mut self.horizon_known_ms, Some(end)),
            None => {
                raise(&mut self.horizon_known_ms, erased.superseded.map(|by| by.at));
                raise(
                    &mut self.horizon_valid_ms,
                    [erased.valid_to, erased.expires_at].into_iter().flatten().min(),
                );
            }
        }
    }
}

/// An embedding space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SpaceRow {
    /// Name of the model, or `caller` where vectors are the caller's own.
    pub(crate) name: String,
    /// Dimensions.
    pub(crate) dim: u32,
}

impl SpaceRow {
    /// Name of the space of vectors that callers bring.
    pub(crate) const CALLER: &'static str = "caller";

    /// Id of the embedder whose vectors lie in it, or `caller`. Older writers marked an embedder that nobody had asked for.
    pub(crate) fn embedder(&self) -> &str {
        self.name.strip_prefix("suggested:").unwrap_or(&self.name)
    }
}

/// How far a declared index is that is not whole: writes keep it, and no read asks it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnfinishedRow {
    /// Whether it ends; else it is to be whole.
    pub(crate) ends: bool,
    /// Whether nothing is left of what stood in it.
    pub(crate) cleared: bool,
    /// The last memory whose rows are in it.
    pub(crate) after: Option<MemoryId>,
    /// Memories that stand in it, of those.
    pub(crate) filled: u64,
}

/// A goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GoalRow {
    /// The agent whose goal it is; none: the goal is one of all agents.
    pub(crate) agent: Option<String>,
    /// What the agent is after.
    pub(crate) text: String,
    /// How much the goal counts beside others.
    pub(crate) weight: f32,
    /// Transaction time at which the goal was set, or got its weight.
    pub(crate) set_ms: i64,
    /// The embedding space of the vector.
    pub(crate) space: u16,
    /// The unit vector of the text; empty while the goal waits for one.
    pub(crate) vector: Vec<f32>,
}

/// How often the goals of an agent, or those of all agents, have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GoalEpochRow {
    /// A count that grows with every change of what the goals say of memories.
    pub(crate) epoch: u64,
    /// Transaction time at which a goal was last set or dropped.
    pub(crate) changed_ms: i64,
}

/// A query that a search has asked, and what it had found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct QueryRow {
    /// When it was asked.
    pub(crate) at_ms: i64,
    /// Its words.
    pub(crate) text: String,
    /// The embedding space of the vector.
    pub(crate) space: u16,
    /// Its unit vector; empty where it had none.
    pub(crate) vector: Vec<f32>,
    /// The memories that it had found, the best first, without those that are gone since.
    pub(crate) hits: Vec<MemoryId>,
}

/// What is left of the journal of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JournalHeadRow {
    /// No row with this number or a higher one was removed for its age.
    pub(crate) from: u64,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunRow {
    /// What it does.
    pub(crate) sort: RunSort,
    /// Transaction time of its start.
    pub(crate) started_ms: i64,
    /// How far it is.
    pub(crate) state: RunState,
    /// Who began it.
    pub(crate) by: Actor,
    /// Transaction time of its latest part, or of its end.
    pub(crate) latest_ms: i64,
    /// What its parts did, by name.
    pub(crate) counts: BTreeMap<String, u64>,
}

/// A context of the inclusion log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ContextRow {
    /// When it was put together.
    pub(crate) at_ms: i64,
    /// The session of the host.
    pub(crate) session: Option<String>,
    /// The tokens that it had room for.
    pub(crate) window_tokens: Option<u32>,
    /// Its memories, in the order in which they were named.
    pub(crate) items: Vec<Included>,
    /// The first bytes of the HMAC of the call that wrote it; none of a context of an export.
    pub(crate) digest: Option<[u8; 16]>,
}

/// What a row that maintenance removed needs to come back; vitals, content and holders wait where they
/// stood.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LimboRow {
    /// The run that removed it.
    pub(crate) run: Option<RunId>,
    /// Why it was removed.
    pub(crate) reason: TombstoneReason,
    /// What stands in its place.
    pub(crate) replaced_by: Option<MemoryId>,
    /// Whether what stands in its place superseded it by this removal.
    pub(crate) replaced: bool,
    /// Reinforcement that moved to what stands in its place.
    pub(crate) transferred: u32,
    /// Its unit vector; empty where it had none.
    pub(crate) vector: Vec<f32>,
    /// What it was made from.
    pub(crate) sources: Vec<MemoryId>,
    /// Links of others to it.
    pub(crate) links: Vec<LedLink>,
}

/// How far a pass over a namespace is, or how its last run ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PassRow {
    /// The run.
    pub(crate) run: RunId,
    /// Transaction time of its first slice.
    pub(crate) started_ms: i64,
    /// Transaction time of its last slice.
    pub(crate) ended_ms: i64,
    /// Hash of the policy that it was planned under.
    pub(crate) policy_hash: [u8; 8],
    /// It was cut off: the next call goes on with it.
    pub(crate) open: bool,
    /// The canonical row of a group that a slice has cut.
    pub(crate) cut: Option<MemoryId>,
    /// Rows that it may still remove.
    pub(crate) budget_left: u64,
    /// Its report so far, by name.
    pub(crate) report: Vec<(String, u64)>,
}

impl PassRow {
    /// Whether a number of the report is kept for going on with the run, and is not part of what the pass tells.
    pub(crate) fn is_inner(name: &str) -> bool {
        name.starts_with("done.") || name.starts_with("plan.")
    }
}

impl RunRow {
    /// What its counts call the changes that have gone to another namespace with their memories, and can be taken back there.
    pub(crate) const MOVED: &str = "moved";
    /// What its counts call the changes of fields for which a key left a memory of several writers. An undo does not bring back the
    /// values of before.
    pub(crate) const CHANGED_APART: &str = "changed_apart";
    /// What its counts call the memories whose place the lines of an import let others take, by their names.
    pub(crate) const SUPERSEDED: &str = "superseded";
    /// What its counts call the memories of an export that an import has put back with their ids. They keep the runs that first
    /// brought them, so an undo of the import takes none of them away.
    pub(crate) const PUT_BACK: &str = "put_back";

    /// A run that begins at `now`.
    pub(crate) fn new(sort: RunSort, by: Actor, now: Time) -> Self {
        let now = now.as_millis();
        RunRow { sort, started_ms: now, state: RunState::Open, by, latest_ms: now, counts: BTreeMap::new() }
    }
}

/// How many slots an index has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SlotHead {
    /// Slots given out so far: the next new one has this number.
    pub(crate) len: u32,
    /// Slots that hold a vector.
    pub(crate) used: u32,
}

/// The full-text index of a partition as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TextHead {
    /// Id of the analyzer that made its terms.
    pub(crate) analyzer: String,
    /// Documents given out so far: the next one has this number.
    pub(crate) len: u32,
    /// Documents that stand for a memory.
    pub(crate) used: u32,
    /// Documents with a lower number have their postings; the others are the tail.
    pub(crate) posted: u32,
    /// Documents that were posted since blocks of one term were last joined.
    pub(crate) unmerged: u32,
    /// The term at which the joining under way goes on, one that has postings; none when none is under way.
    pub(crate) merging: Option<String>,
    /// Bytes of the texts that came into the tail since it was last empty, less those that were posted; never too few.
    pub(crate) waiting_bytes: u64,
}

/// The center of the one-bit codes of an index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct BitsHead {
    /// The number of the center, which the rows of codes name.
    pub(crate) center: u32,
    /// Slots given out when the center was chosen.
    pub(crate) made_at: u32,
    /// A value for each dimension.
    pub(crate) values: Vec<f32>,
}

/// The graph of an index as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GraphHead {
    /// Raised by every change of the links.
    pub(crate) version: u64,
    /// Where every search begins, a node of the highest level; none while there is no node.
    pub(crate) entry: Option<u32>,
    /// Nodes, dead ones too.
    pub(crate) linked: u32,
    /// Nodes whose memory is gone.
    pub(crate) dead: u32,
    /// Recall by breadth of search, as measured last.
    pub(crate) recall: Vec<RecallPoint>,
    /// Live rows when that was measured.
    pub(crate) calibrated_at: u32,
}

/// Recall of searches of one breadth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecallPoint {
    /// Breadth: candidates that a search keeps.
    pub(crate) ef: u16,
    /// Recall at it, per 10,000.
    pub(crate) recall: u16,
}

/// A counter: rows and, where it makes sense, their bytes of content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CounterRow {
    /// How many.
    pub(crate) rows: i64,
    /// Bytes of their content.
    pub(crate) bytes: i64,
}

closed_set! {
    /// What a counter counts. The code stands in its key.
    pub(crate) CounterSort "counter" {
        /// Visible rows.
        Live = 1, "live";
        /// Visible rows of a kind.
        Kind = 2, "kind";
        /// Visible rows of a tier.
        Tier = 3, "tier";
        /// Visible rows with a tag.
        Tag = 4, "tag";
        /// Visible rows with a scope label.
        Label = 5, "label";
        /// Rows that are superseded and no longer visible.
        Superseded = 6, "superseded";
        /// Rows that are expired and not yet purged.
        Expired = 7, "expired";
        /// Rows that are not yet valid.
        Ahead = 8, "ahead";
        /// Rows whose world time is over.
        Past = 9, "past";
        /// Tombstones.
        Tombstones = 10, "tombstones";
        /// Holders.
        Holders = 11, "holders";
        /// Rows with a vector.
        Vectors = 12, "vectors";
        /// Rows that wait for one.
        Pending = 13, "pending";
        /// Current rows beyond the first with an equal fingerprint, by partition and tier.
        Duplicates = 14, "duplicates";
        /// Rows that maintenance removed and that can still come back.
        Limbo = 15, "limbo";
        /// Writes that a rule, or a later snapshot, made unnecessary. Of the namespace alone, and of no row.
        Ignored = 16, "ignored";
        /// Messages as they came.
        Events = 17, "events";
        /// Families of repeated messages.
        Aggregates = 18, "aggregates";
    }
}

/// The partition under which the totals of a namespace stand.
pub(crate) const TOTAL: PartId = PartId(u32::MAX);

/// The number under which the tombstones of dropped namespaces stand; namespaces begin at 1.
pub(crate) const DROPPED: NsId = NsId(0);

/// The name of a namespace that is being dropped: no caller can write one with a NUL.
pub(crate) fn dropped_name(ns: NsId) -> String {
    format!("\0{}", ns.0)
}

/// The bytes of an id: of an event, an aggregate, a family or a memory.
pub(crate) type Id = [u8; 16];

/// A message as it came. What was erased, or redacted for its age, is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EventRow {
    /// Number of its partition.
    pub(crate) part: u32,
    /// When it was written, in its author's world; milliseconds since 1970.
    pub(crate) ts: i64,
    /// Code of the author kind.
    pub(crate) author: u8,
    pub(crate) author_id: Option<String>,
    pub(crate) channel: Option<String>,
    pub(crate) thread: Option<String>,
    pub(crate) session: Option<String>,
    /// The key of the write that brought it: the message goes with what that key said.
    pub(crate) key: Option<String>,
    /// The raw text.
    pub(crate) payload: Option<String>,
    /// Id of the normalizer that made what follows.
    pub(crate) normalizer: String,
    pub(crate) normalized: Option<String>,
    pub(crate) attachment_sig: Option<String>,
    pub(crate) embed_sig: Option<String>,
    pub(crate) dup_key: Option<[u8; 32]>,
    pub(crate) simhash: Option<u64>,
    pub(crate) aggregate: Option<Id>,
    pub(crate) memory: Option<Id>,
    /// The memory by which it was told first, where maintenance has erased that memory: whoever asks to forget it means this
    /// message.
    pub(crate) origin: Option<Id>,
    /// The import that it came with.
    pub(crate) run: Option<Id>,
    /// What became of it.
    pub(crate) decision: EventDecision,
}

/// A family of messages in one slice of time. Its id is that of its first event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FamilyRow {
    /// The family, the same in every slice of one exact key.
    pub(crate) family: Id,
    /// Number of its partition.
    pub(crate) part: u32,
    /// Code of the author kind.
    pub(crate) author: u8,
    /// Channel; empty where there is none.
    pub(crate) channel: String,
    /// Milliseconds since 1970 of its earliest member.
    pub(crate) first_ts: i64,
    /// The same of its latest.
    pub(crate) latest_ts: i64,
    /// Exact key of the first event.
    pub(crate) dup_key: [u8; 32],
    /// What stands for what its members have in common besides their texts, as the first event brought it.
    pub(crate) standing: [u8; 8],
    /// SimHash of the first event.
    pub(crate) simhash: Option<u64>,
    /// Tokens of the first event.
    pub(crate) tokens: Vec<String>,
    /// Id of the normalizer that made the text behind the exact key, SimHash and tokens.
    pub(crate) normalizer: String,
    /// Id of the one that made SimHash and tokens of it.
    pub(crate) sim_normalizer: String,
    /// The memory that the first event became.
    pub(crate) first_memory: Id,
    /// Its numbers, from the second member on.
    pub(crate) aggregate: Option<Id>,
    /// Members.
    pub(crate) count: u64,
}

/// A family of messages in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AggregateRow {
    /// Number of its partition.
    pub(crate) part: u32,
    pub(crate) family: Id,
    /// Whether a member came by its SimHash alone.
    pub(crate) near: bool,
    /// Channel.
    pub(crate) scope: Option<String>,
    /// The slice of time of a bot's family, as its key names it.
    pub(crate) slice: Option<String>,
    pub(crate) first_event: Id,
    pub(crate) last_event: Id,
    pub(crate) first_ts: i64,
    pub(crate) last_ts: i64,
    /// The event that began the slice of a family that it counts. The slice has the same id and goes with that event, which may go
    /// before the aggregate.
    pub(crate) began: Id,
    pub(crate) dup_count: u64,
    /// Members whose events were removed for their age.
    pub(crate) ended: u64,
    pub(crate) authors: Vec<String>,
    pub(crate) examples: Vec<Id>,
    pub(crate) snippets: Vec<String>,
    pub(crate) exact_hash: Option<[u8; 32]>,
    pub(crate) simhash: Option<u64>,
    pub(crate) classification: String,
    pub(crate) signals: Vec<String>,
    pub(crate) memory: Option<Id>,
}
