//! The mutations, as the rooms that decide ask for them.

use crate::ledger::applied::Onward;
use crate::ledger::fold::Folded;
use crate::model::{
    Access, Content, Delta, Evidence, GoalId, Holder, Life, Limbo, MemoryId, Parts, Payload, RuleId,
    SupersedeMode, Tier, Time, TombstoneReason, Vitals,
};
use crate::store::{AggregateRow, ContextPlace, ContextRow, EventRow, FamilyRow, GoalRow, Id};
use crate::vector::UnitVector;

/// A new row: everything except what the ledger works out itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NewRow {
    /// The id, never used before.
    pub(crate) id: MemoryId,
    /// The hot part. The ledger sets the slot, the state of the counters and the numbers of holders.
    pub(crate) vitals: Vitals,
    /// The cold part. The ledger sets the tags to those of the holder.
    pub(crate) content: Content,
    /// The statistics, if the caller gave any.
    pub(crate) access: Access,
    /// The write that the row stands for, with the run that it came in.
    pub(crate) holder: Holder,
    /// The unit vector; without one the row is pending.
    pub(crate) vector: Option<UnitVector>,
    /// The provenance.
    pub(crate) sources: Vec<MemoryId>,
    /// What it carries beside its text.
    pub(crate) payload: Option<Payload>,
}

/// A memory of an export or of another namespace, as it was there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recreated {
    /// The id.
    pub(crate) id: MemoryId,
    /// Everything that fields decide. The ledger sets the slot and the document.
    pub(crate) parts: Parts,
    /// The writes that it stands for.
    pub(crate) holders: Vec<Holder>,
    /// The values of its vector, if it has one.
    pub(crate) vector: Option<Vec<f32>>,
    /// The provenance.
    pub(crate) sources: Vec<MemoryId>,
    /// What its return needs, if maintenance has removed it.
    pub(crate) limbo: Option<Box<Limbo>>,
    /// What it carries beside its text.
    pub(crate) payload: Option<Payload>,
}

/// What absorbing a write raises on the absorbing row. It stays raised.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Raise {
    /// The end of life, and who set it.
    pub(crate) life: Option<Life>,
    /// The higher significance.
    pub(crate) significance: Option<crate::model::Significance>,
    /// The more durable tier.
    pub(crate) tier: Option<Tier>,
    /// The higher importance.
    pub(crate) importance: Option<f32>,
    /// The confidence after the reinforcement.
    pub(crate) confidence: Option<f32>,
    /// A vector for a row that waits for one, with its space.
    pub(crate) vector: Option<(crate::store::SpaceId, UnitVector)>,
    /// The instant of the reinforcement.
    pub(crate) last_reinforced_at: Option<Time>,
}

/// Which holders move with a supersession.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moves {
    /// None. The new row was made with the only holder.
    None,
    /// All holders. A supersession that would give the new memory too many tags is refused.
    All,
    /// The same but for keys that are to say a text of their own at an instant ahead: nothing lets that text follow the new memory.
    AllButToCome,
    /// All holders whose tags have room on the new memory, and whose keys have said nothing else since. The key of another
    /// stays with the old memory.
    Fitting,
    /// All holders except the one with this number, with which the new row was made.
    AllBut(u32),
}

impl Moves {
    /// Whether a key comes along that is to say a text of its own at an instant ahead: the same transaction lets that text follow.
    pub(super) fn takes_to_come(self) -> bool {
        !matches!(self, Moves::AllButToCome | Moves::Fitting)
    }

    /// Whether a supersession is refused that would give the new memory too many tags.
    pub(super) fn needs_room(self) -> bool {
        matches!(self, Moves::All | Moves::AllButToCome)
    }
}

/// What a superseded memory comes back for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestoreTo {
    /// To be live: a caller named this memory, so whatever its writers have said since does not matter.
    Live,
    /// To be as before a run that is undone, or as far as its writers have said nothing since.
    Undo,
    /// To be changed by a write, before the instant at which another memory takes its place.
    Write,
}

/// A message, and the new state of its family.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recorded {
    /// The id of its event, never used before.
    pub(crate) event: Id,
    pub(crate) row: EventRow,
    /// The slice of the family, with its id, which is that of its first event.
    pub(crate) family: Option<(Id, FamilyRow)>,
    /// The aggregate of the slice. If it is new, the first event of the slice joins it.
    pub(crate) aggregate: Option<(Id, AggregateRow)>,
    /// The new end of life of the aggregate's memory; none if it does not change.
    pub(crate) life: Option<Life>,
}

/// One mutation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// A new memory.
    Insert(Box<NewRow>),
    /// A memory that is put back as it was.
    Recreate(Box<Recreated>),
    /// A memory absorbs a write: it gets one more holder, or a keyless holder counts one more write.
    Hold {
        /// The memory.
        id: MemoryId,
        /// The write.
        holder: Box<Holder>,
        /// What the write raises.
        raise: Raise,
    },
    /// Fields of a memory change in place, and its version grows by 1.
    Update {
        /// The memory.
        id: MemoryId,
        /// The version on which the change was decided.
        version: u64,
        /// The new hot part.
        vitals: Box<Vitals>,
        /// The new cold part. Its tags follow from the holders.
        content: Box<Content>,
        /// The new statistics.
        access: Box<Access>,
        /// The new form of holders, by number.
        holders: Vec<Holder>,
        /// A vector that replaces the present one.
        vector: Option<UnitVector>,
        /// A payload that replaces the present one, or none from now on.
        payload: Option<Option<Payload>>,
        /// The changed fields, for the journal.
        deltas: Vec<Delta>,
    },
    /// A memory takes the place of another.
    Supersede {
        /// The memory that is superseded.
        old: MemoryId,
        /// The memory that takes its place.
        new: MemoryId,
        /// The mode.
        mode: SupersedeMode,
        /// World time of the change, for the mode `replaced`.
        at: Time,
        /// Which holders of the old memory move to the new one, with share 0.
        moves: Moves,
        /// Since when the same has been known, if a write has only interrupted it.
        since: Option<Time>,
        /// The memory that brings the two together among what is to come, if nobody has said it.
        via: Option<MemoryId>,
    },
    /// A superseded memory becomes live again.
    Restore {
        /// The memory.
        id: MemoryId,
        /// What the memory comes back for.
        to: RestoreTo,
    },
    /// The superseder of a memory is gone. The memory is now superseded by what had superseded that
    /// superseder.
    LeadOn {
        /// The memory.
        id: MemoryId,
        /// What had superseded the row that is gone.
        onward: Box<Onward>,
    },
    /// A key of a superseded memory leads again to what has taken the place of the memory, and on from there. What had been said there
    /// through the key is gone.
    LeadAgain {
        /// The superseded memory.
        id: MemoryId,
        /// Number of its holder with the key.
        number: u32,
    },
    /// Holders are forgotten. The row goes with the last holder that wrote a text.
    Detach {
        /// The memory.
        id: MemoryId,
        /// Numbers of the holders.
        numbers: Vec<u32>,
        /// Why.
        reason: TombstoneReason,
        /// The id of the tombstone that tells of the holders if their text goes and the row stays. It was
        /// never used before.
        stone: MemoryId,
    },
    /// A holder leaves a row for a row of its own, which is made with it. Other holders that stay have a
    /// text.
    Part {
        /// The memory.
        id: MemoryId,
        /// Number of the holder.
        number: u32,
    },
    /// A memory is erased, with all its holders.
    Remove {
        /// The memory.
        id: MemoryId,
        /// Why.
        reason: TombstoneReason,
        /// The memory that takes its place.
        replaced_by: Option<MemoryId>,
    },
    /// The members of a group of duplicates become one.
    Merge(Box<Merge>),
    /// Maintenance, or a later snapshot, removes a memory. The tombstone is written at once, and the row waits in
    /// limbo until the undo horizon.
    Retire {
        /// The memory.
        id: MemoryId,
        /// Why.
        reason: TombstoneReason,
        /// The memory that takes its place.
        replaced_by: Option<MemoryId>,
    },
    /// A memory comes back from limbo.
    Return {
        /// The memory.
        id: MemoryId,
    },
    /// A row of limbo is erased, at its horizon or because it is to be forgotten.
    Purge {
        /// The memory.
        id: MemoryId,
    },
    /// A message came. The change has its event, and the new state of its family and its aggregate.
    Record(Box<Recorded>),
    /// The messages of an import are taken back.
    Withdraw {
        /// Their events.
        events: Vec<Id>,
    },
    /// A record gets another key, in every row and tombstone that has the old one.
    Rename {
        /// The key.
        old: String,
        /// The new key, which no current row holds.
        new: String,
    },
    /// Accesses of memories are counted. No version changes.
    Fold {
        /// The memories with their new statistics.
        rows: Vec<Folded>,
    },
    /// Maintenance changes fields of a memory.
    Adjust {
        /// The memory.
        id: MemoryId,
        /// The version on which the change was decided.
        version: u64,
        /// The new hot part, with the new version.
        vitals: Box<Vitals>,
        /// The new statistics.
        access: Box<Access>,
        /// The changed fields.
        deltas: Vec<Delta>,
    },
    /// A context comes into the inclusion log.
    LogContext {
        /// Its name, which the log does not have.
        context: String,
        /// The context.
        row: Box<ContextRow>,
        /// Its memories with their new statistics.
        rows: Vec<Folded>,
    },
    /// A goal is set, or gets another weight.
    SetGoal {
        /// The goal.
        id: GoalId,
        /// The goal from now on.
        row: Box<GoalRow>,
    },
    /// A goal is dropped.
    DropGoal {
        /// The goal.
        id: GoalId,
    },
    /// Contexts go out of the inclusion log because they are old.
    DropContexts {
        /// Their instants and names.
        places: Vec<ContextPlace>,
    },
    /// A memory proves useful.
    Reinforce {
        /// The memory.
        id: MemoryId,
        /// The amount. Its sign is the direction.
        by: i64,
        /// The new expiry; none if it does not change.
        expires_at: Option<Time>,
        /// The new confidence; none if it does not change.
        confidence: Option<f32>,
    },
}

/// A group of duplicates, or a slice of one: the row that stays, and the rows that go into it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Merge {
    /// The member that stays, with the version that the plan saw. If the member has changed since, nothing is
    /// merged.
    pub(crate) canonical: (MemoryId, u64),
    /// The members that go, in canonical order, with the versions that the plan saw. A member that has changed since,
    /// is protected or is no longer current is left out.
    pub(crate) losers: Vec<(MemoryId, u64)>,
    /// Whether the canonical row takes the latest `happened_at`.
    pub(crate) latest_happened_at: bool,
}

/// A change, the rule that led to it, and its evidence.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The mutation.
    pub(crate) change: Change,
    /// The rule.
    pub(crate) rule: RuleId,
    /// The evidence behind the decision.
    pub(crate) evidence: Evidence,
}

impl Entry {
    /// A change without further evidence.
    pub(crate) fn new(rule: RuleId, change: Change) -> Self {
        Entry { change, rule, evidence: Evidence::default() }
    }
}

/// One memory is to take the place of another.
pub(super) struct Superseding {
    pub(super) old: MemoryId,
    pub(super) new: MemoryId,
    pub(super) mode: SupersedeMode,
    /// The instant at which the world changed.
    pub(super) at: Time,
    pub(super) moves: Moves,
    /// Since when the same has been known, if that is not new.
    pub(super) since: Option<Time>,
    /// The memory that brings the two together among what is to come.
    pub(super) via: Option<MemoryId>,
}
