//! What changes, what does the change take along, and why?
//!
//! Every mutation is a [`Change`] with its evidence. [`Ledger::apply`] carries it out with all cascades: junction rows
//! in both directions, secondary indexes, vector slot, counters, journal, tombstone. Ingest and maintenance decide. No
//! other room writes truth.
//!
//! Invariants. The derived rows of a memory are a function of its vitals and its content alone ([`derived`]).
//! So a change writes the difference of that function before and after, and `check` uses the same function.
//! Both ends of every junction row exist. Every change has an inverse or says that it has none.
//!
//! The room reads no clock and decides nothing. Instants, ids and rules come with the change.

mod afresh;
pub(crate) mod counters;
mod damage;
pub(crate) mod derived;
mod erase;
mod holders;
mod insert;
mod inverse;
mod journal;
mod keep;
mod leave;
mod limbo;
mod mend;
mod merge;
mod message;
mod metadata;
mod partition;
mod recount;
mod rename;
mod returns;
mod settle;
mod supersede;
mod terms;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::index::Staged;
use crate::ledger::holders::Brought;
use crate::ledger::leave::Departure;
use crate::model::{
    Access, Actor, Content, Delta, Evidence, Holder, Life, Memory, MemoryId, Parts, Payload, RuleId, RunId,
    SupersedeMode, Tier, Time, TombstoneReason, Vitals,
};
use crate::policy::TombstoneHash;
use crate::store::control::Clock;
use crate::store::{Id, Keeper, Lock, NsId, Rows, Truth, WriteTx};
use crate::text::Secret;
use crate::vector::UnitVector;

pub(crate) use afresh::Afresh;
pub(crate) use counters::Counters;
pub(crate) use damage::losses;
pub(crate) use erase::{Erased, Onward};
pub(crate) use insert::tags_fit;
pub(crate) use inverse::inverse;
pub(crate) use leave::Left;
pub(crate) use message::{Recorded, statistics};
pub(crate) use partition::seem_vacant;
pub(crate) use supersede::Restored;

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
    /// The write that the row stands for.
    pub(crate) holder: Holder,
    /// The unit vector; without one the row is pending.
    pub(crate) vector: Option<UnitVector>,
    /// The provenance.
    pub(crate) sources: Vec<MemoryId>,
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
    /// All holders.
    All,
    /// All holders except the one with this number, with which the new row was made.
    AllBut(u32),
}

/// One mutation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// A new memory.
    Insert(Box<NewRow>),
    /// A memory of an export, put back as it was.
    Recreate(Box<(Memory, Parts)>),
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
    },
    /// A superseded memory becomes live again.
    Restore {
        /// The memory.
        id: MemoryId,
        /// Whether a caller named this memory. Then it is live, whatever its writers have said since.
        asked: bool,
    },
    /// The superseder of a memory is gone. The memory is now superseded by what had superseded that
    /// superseder.
    LeadOn {
        /// The memory.
        id: MemoryId,
        /// What had superseded the row that is gone.
        onward: Box<Onward>,
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

/// What a [`Merge`] did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Merged {
    /// The rows that were removed.
    pub(crate) removed: Vec<MemoryId>,
    /// The reinforcement that they brought, counted by the rule: at least 1 for each.
    pub(crate) transferred: u64,
    /// The number of rows that were left out.
    pub(crate) skipped: u64,
    /// The version of the row that stays, for the next slice of the same group; 0 if nothing was merged.
    pub(crate) version: u64,
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

/// Who makes a change, when and under which policy. It is the same for all changes of a unit.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// The namespace of the unit.
    pub(crate) ns: NsId,
    /// The transaction time.
    pub(crate) now: Time,
    /// Who makes the change.
    pub(crate) actor: Actor,
    /// The run, if there is one.
    pub(crate) run: Option<RunId>,
    /// The number of the policy in force.
    pub(crate) policy_number: u64,
    /// The hash of the policy in force.
    pub(crate) policy_hash: [u8; 8],
    /// Whether memories that maintenance removes wait in limbo. Otherwise they are erased at once.
    pub(crate) keeps_limbo: bool,
}

/// What applying a change did, for the answer to the caller.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Applied {
    /// The rows that were erased.
    pub(crate) erased: Vec<Erased>,
    /// What is left of the row from which holders were detached; none if the row is gone.
    pub(crate) left: Option<Left>,
    /// The number of keyless writes that were merged into a row and went with it.
    pub(crate) went_with: u64,
    /// What restoring, or returning from limbo, did.
    pub(crate) restored: Option<Restored>,
    /// The number of messages without a memory of their own that were taken back.
    pub(crate) withdrawn: u64,
    /// What merging did.
    pub(crate) merged: Option<Merged>,
    /// The number of writes whose key was renamed.
    pub(crate) renamed: u64,
}

/// The key to the writes of the truth: nobody but this room can make one.
pub(crate) struct TruthKey(());

impl Keeper for Lock {
    type Key = TruthKey;
}

/// The writes of the truth in a transaction.
fn truth<'a, 't>(tx: &'a mut WriteTx<'t>) -> Truth<'a, 't> {
    tx.truth(TruthKey(()))
}

/// The one writer of truth within a transaction.
pub(crate) struct Ledger<'a, 't> {
    pub(crate) tx: &'a mut WriteTx<'t>,
    pub(crate) clock: Clock,
    pub(crate) counters: Counters,
    pub(crate) secret: &'a Secret,
    /// How a tombstone names erased content.
    pub(crate) tombstone_hash: TombstoneHash,
    /// The id of the analyzer for new full-text indexes.
    pub(crate) analyzer: String,
    /// The vectors that the transaction has written so far.
    pub(crate) staged: Staged,
    /// The memories that wait for a vector since this transaction.
    pub(crate) waiting: Vec<(NsId, MemoryId)>,
    /// The paths of metadata with an index, for the namespaces to which the transaction has written.
    declared: BTreeMap<NsId, Arc<derived::Declared>>,
    /// What the holders of one row bring: the row that a holder left last.
    brought: Option<Brought>,
    /// Namespaces whose counters are counted again at the end, because it is unknown how a damaged row was counted.
    recount: BTreeSet<NsId>,
}

impl<'a, 't> Ledger<'a, 't> {
    /// Opens the ledger of a transaction at clock `now`. The commit gets the next number, and a time that does not run
    /// backwards.
    pub(crate) fn open(
        tx: &'a mut WriteTx<'t>,
        secret: &'a Secret,
        analyzer: String,
        now: Time,
    ) -> Result<Self> {
        let mut clock = tx.clock()?;
        clock.commit += 1;
        // A clock that was set back must not give a later commit an earlier time: reads by transaction time rely on it.
        clock.at_ms = clock.at_ms.max(now.as_millis());
        Ok(Ledger {
            tx,
            clock,
            counters: Counters::default(),
            secret,
            tombstone_hash: TombstoneHash::Hmac,
            analyzer,
            staged: Staged::default(),
            waiting: Vec::new(),
            declared: BTreeMap::new(),
            brought: None,
            recount: BTreeSet::new(),
        })
    }

    /// The transaction time.
    pub(crate) fn now(&self) -> Time {
        Time::from_millis(self.clock.at_ms)
    }

    /// Carries out one change with all its cascades.
    ///
    /// # Errors
    /// `Conflict` when the state forbids the change; `Corrupted` when a row that must exist is missing. The
    /// transaction must then be given up.
    pub(crate) fn apply(&mut self, context: &Context, entry: Entry) -> Result<Applied> {
        let Entry { change, rule, evidence } = entry;
        let why = Why { rule, evidence };
        match change {
            Change::Insert(row) => self.insert(context, *row, why),
            Change::Recreate(row) => self.recreate(context, row.0, row.1, why),
            Change::Hold { id, holder, raise } => self.hold(context, id, *holder, raise, why),
            Change::Update { id, version, vitals, content, access, holders, vector, payload, deltas } => {
                let next =
                    Next { vitals: *vitals, content: *content, access: *access, holders, vector, payload };
                self.update(context, (id, version), next, deltas, why)
            }
            Change::Supersede { old, new, mode, at, moves } => {
                self.supersede(context, (old, new), (mode, at), moves, why)
            }
            Change::Restore { id, asked } => self.restore(context, id, asked, why),
            Change::LeadOn { id, onward } => self.lead_on(context, id, *onward, why),
            Change::Detach { id, numbers, reason, stone } => {
                self.detach(context, id, &numbers, Departure::Forgotten(reason, stone), why)
            }
            Change::Part { id, number } => self.detach(context, id, &[number], Departure::Apart, why),
            Change::Remove { id, reason, replaced_by } => {
                self.remove(context, id, (reason, replaced_by), why)
            }
            Change::Merge(merge) => self.merge(context, *merge, why),
            Change::Retire { id, reason, replaced_by } => {
                self.retire(context, id, (reason, replaced_by), why)
            }
            Change::Return { id } => self.return_from_limbo(context, id, why),
            Change::Purge { id } => self.purge(context, id, why),
            Change::Record(recorded) => self.record(context, *recorded, why),
            Change::Withdraw { events } => self.withdraw(context, &events, why),
            Change::Rename { old, new } => self.rename(context, &old, &new, &why),
            Change::Reinforce { id, by, expires_at, confidence } => {
                self.reinforce(context, (id, by), (expires_at, confidence), why)
            }
        }
    }

    /// Writes what was held back until the end: counters and clock.
    pub(crate) fn finish(mut self) -> Result<Clock> {
        // Counting again comes first: it counts the rows of the transaction and drops the pending changes of its counters.
        for ns in std::mem::take(&mut self.recount) {
            self.count_again(ns)?;
        }
        let counters = std::mem::take(&mut self.counters);
        counters.write(self.tx)?;
        self.tx.put_clock(&self.clock)?;
        Ok(self.clock)
    }

    /// The vitals and the content of a row that must exist.
    pub(crate) fn load(&self, ns: NsId, id: MemoryId) -> Result<(Vitals, Content)> {
        let vitals = self.tx.vitals(ns, id)?.ok_or_else(|| gone(id))?;
        Ok((vitals, self.content_of(ns, id)?))
    }

    /// The vitals and the content of a row; none if there is no row.
    pub(crate) fn load_there(&self, ns: NsId, id: MemoryId) -> Result<Option<(Vitals, Content)>> {
        let Some(vitals) = self.tx.vitals(ns, id)? else { return Ok(None) };
        Ok(Some((vitals, self.content_of(ns, id)?)))
    }

    /// The content of a row that has vitals.
    pub(super) fn content_of(&self, ns: NsId, id: MemoryId) -> Result<Content> {
        let content = self.tx.content(ns, id)?;
        content.ok_or_else(|| Error::corrupted("memory", id.as_bytes(), "vitals without content"))
    }
}

/// The rule and the evidence of the present change.
#[derive(Clone, Debug)]
pub(crate) struct Why {
    pub(crate) rule: RuleId,
    pub(crate) evidence: Evidence,
}

/// A row after an update.
pub(crate) struct Next {
    pub(crate) vitals: Vitals,
    pub(crate) content: Content,
    pub(crate) access: Access,
    pub(crate) holders: Vec<Holder>,
    pub(crate) vector: Option<UnitVector>,
    pub(crate) payload: Option<Option<Payload>>,
}

/// The error if the row on which a change was decided no longer exists.
fn gone(id: MemoryId) -> Error {
    Error::NotFound { what: "memory", name: id.to_string() }
}
