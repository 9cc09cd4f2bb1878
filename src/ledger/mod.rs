//! What changes, with what it takes along, and why?
//!
//! Every mutation is a [`Change`] with its evidence. [`Ledger::apply`] carries it out with all cascades: junction
//! rows in both directions, secondary indexes, vector slot, counters, journal, tombstone. Ingest and maintenance
//! decide; nothing else writes truth.
//!
//! Invariants: the derived rows of a memory are a function of its vitals and content alone ([`derived`]), so a
//! change writes the difference between that function before and after, and `check` asks the same function; no
//! junction row stands without both its ends; every change has an inverse or says that it has none.
//!
//! It reads no clock and decides nothing: instants, ids and rules come with the change.

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
    Access, Actor, Content, Delta, Evidence, Holder, Life, Memory, MemoryId, Parts, RuleId, RunId,
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

/// A row that is to be: everything but what the ledger works out itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NewRow {
    /// Its id, never used before.
    pub(crate) id: MemoryId,
    /// Hot part. Slot, counters' state and holder numbers are set by the ledger.
    pub(crate) vitals: Vitals,
    /// Cold part. Tags are set by the ledger to what the holder brings.
    pub(crate) content: Content,
    /// Statistics, where the caller brought some.
    pub(crate) access: Access,
    /// The write that it stands for.
    pub(crate) holder: Holder,
    /// Its unit vector; none: pending.
    pub(crate) vector: Option<UnitVector>,
    /// Provenance.
    pub(crate) sources: Vec<MemoryId>,
}

/// What absorbing a write raises on the row that absorbs it; it stays raised.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Raise {
    /// The end of its life, with who set it.
    pub(crate) life: Option<Life>,
    /// The higher significance.
    pub(crate) significance: Option<crate::model::Significance>,
    /// The more durable tier.
    pub(crate) tier: Option<Tier>,
    /// The higher importance.
    pub(crate) importance: Option<f32>,
    /// Grown by the reinforcement.
    pub(crate) confidence: Option<f32>,
    /// A vector for a row that waits for one, with the space that it lies in.
    pub(crate) vector: Option<(crate::store::SpaceId, UnitVector)>,
    /// Reinforced now.
    pub(crate) last_reinforced_at: Option<Time>,
}

/// Which holders go along with a supersession.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moves {
    /// None: the new row was made with the only one.
    None,
    /// All.
    All,
    /// All but the one with this number, which the new row was made with.
    AllBut(u32),
}

/// One mutation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// A new memory.
    Insert(Box<NewRow>),
    /// A memory of an export, put back as it was.
    Recreate(Box<(Memory, Parts)>),
    /// A memory absorbs a write: one more holder, or one more of a keyless one.
    Hold {
        /// The memory.
        id: MemoryId,
        /// The write.
        holder: Box<Holder>,
        /// What it raises.
        raise: Raise,
    },
    /// Fields of a memory change in place; version + 1.
    Update {
        /// The memory.
        id: MemoryId,
        /// The version that the change was decided on.
        version: u64,
        /// Hot part as it shall be.
        vitals: Box<Vitals>,
        /// Cold part as it shall be; its tags follow from the holders.
        content: Box<Content>,
        /// Statistics as they shall be.
        access: Box<Access>,
        /// Holders as they shall be, by number.
        holders: Vec<Holder>,
        /// A vector that takes the place of the one it has.
        vector: Option<UnitVector>,
        /// What changed, for the journal.
        deltas: Vec<Delta>,
    },
    /// A memory takes the place of another.
    Supersede {
        /// The one that steps back.
        old: MemoryId,
        /// The one that takes its place.
        new: MemoryId,
        /// How.
        mode: SupersedeMode,
        /// World time of the change, for the mode `replaced`.
        at: Time,
        /// Which holders of the old one move to the new one, with share 0.
        moves: Moves,
    },
    /// A superseded memory becomes live again.
    Restore {
        /// The memory.
        id: MemoryId,
        /// Whether a caller named this memory: then it is live, whatever its writers have said since.
        asked: bool,
    },
    /// A memory whose superseder is gone is superseded by what had superseded that.
    LeadOn {
        /// The memory.
        id: MemoryId,
        /// What had superseded the one that is gone.
        onward: Box<Onward>,
    },
    /// Holders are forgotten; the row goes with the last of those that wrote a text.
    Detach {
        /// The memory.
        id: MemoryId,
        /// Numbers of the holders.
        numbers: Vec<u32>,
        /// Why.
        reason: TombstoneReason,
        /// Id of the tombstone that tells of them where their text goes and the row stays; never used before.
        stone: MemoryId,
    },
    /// A holder leaves a row for one of its own, which is made with it. Others that stay have a text.
    Part {
        /// The memory.
        id: MemoryId,
        /// Number of the holder.
        number: u32,
    },
    /// A memory goes, with all its holders.
    Remove {
        /// The memory.
        id: MemoryId,
        /// Why.
        reason: TombstoneReason,
        /// What stands in its place.
        replaced_by: Option<MemoryId>,
    },
    /// Members of a group of duplicates become one.
    Merge(Box<Merge>),
    /// Maintenance, or a later snapshot, removes a memory: a tombstone at once, the row waits in limbo until the undo
    /// horizon.
    Retire {
        /// The memory.
        id: MemoryId,
        /// Why.
        reason: TombstoneReason,
        /// What stands in its place.
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
    /// A message came: its event, and its family and the numbers of that as they are to be.
    Record(Box<Recorded>),
    /// Messages of an import are taken back.
    Withdraw {
        /// Their events.
        events: Vec<Id>,
    },
    /// A memory proves useful.
    Reinforce {
        /// The memory.
        id: MemoryId,
        /// By how much; its sign is the direction.
        by: i64,
        /// Its new expiry; none: unchanged.
        expires_at: Option<Time>,
        /// Its new confidence; none: unchanged.
        confidence: Option<f32>,
    },
}

/// A group of duplicates, or a slice of one: what stays and what goes into it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Merge {
    /// The member that stays, with the version that the plan saw: if it has changed since, nothing is merged.
    pub(crate) canonical: (MemoryId, u64),
    /// Those that go, in canonical order, with the versions that the plan saw. One that has changed since, is protected
    /// or no longer current is left out.
    pub(crate) losers: Vec<(MemoryId, u64)>,
    /// Whether the canonical row takes the latest `happened_at`.
    pub(crate) latest_happened_at: bool,
}

/// What a [`Merge`] did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Merged {
    /// The rows that went.
    pub(crate) removed: Vec<MemoryId>,
    /// Reinforcement that they brought, by the rule: at least 1 each.
    pub(crate) transferred: u64,
    /// Rows that were left out.
    pub(crate) skipped: u64,
    /// Version of the row that stays, for the next slice of the same group; 0 where nothing was merged.
    pub(crate) version: u64,
}

/// A change with the rule that led to it and what that rests on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The mutation.
    pub(crate) change: Change,
    /// The rule.
    pub(crate) rule: RuleId,
    /// What the decision rests on.
    pub(crate) evidence: Evidence,
}

impl Entry {
    /// A change without further evidence.
    pub(crate) fn new(rule: RuleId, change: Change) -> Self {
        Entry { change, rule, evidence: Evidence::default() }
    }
}

/// Who changes something, when and under which policy: the same for all changes of a unit.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// Namespace of the unit.
    pub(crate) ns: NsId,
    /// Transaction time.
    pub(crate) now: Time,
    /// Who.
    pub(crate) actor: Actor,
    /// In which run.
    pub(crate) run: Option<RunId>,
    /// Number of the policy in force.
    pub(crate) policy_number: u64,
    /// Hash of the policy in force.
    pub(crate) policy_hash: [u8; 8],
    /// Whether what maintenance removes waits in limbo; otherwise it is erased at once.
    pub(crate) keeps_limbo: bool,
}

/// What applying a change did, for the answer to the caller.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Applied {
    /// Rows that are gone.
    pub(crate) erased: Vec<Erased>,
    /// What is left of the row that holders were detached from; none where it is gone.
    pub(crate) left: Option<Left>,
    /// Writes without a key that were merged into a row and went with it.
    pub(crate) went_with: u64,
    /// What restoring, or returning from limbo, did.
    pub(crate) restored: Option<Restored>,
    /// Messages without a memory of their own that were taken back.
    pub(crate) withdrawn: u64,
    /// What merging did.
    pub(crate) merged: Option<Merged>,
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
    /// How a tombstone names what is gone.
    pub(crate) tombstone_hash: TombstoneHash,
    /// Id of the analyzer of full-text indexes that are new.
    pub(crate) analyzer: String,
    /// The vectors that it has written so far.
    pub(crate) staged: Staged,
    /// The memories that wait for a vector since this transaction.
    pub(crate) waiting: Vec<(NsId, MemoryId)>,
    /// The paths of metadata with an index, of the namespaces that it has written to.
    declared: BTreeMap<NsId, Arc<derived::Declared>>,
    /// What the holders of the row bring that one of them left last.
    brought: Option<Brought>,
    /// Namespaces whose counters are counted again at the end: of a damaged row nobody knows what it counted as.
    recount: BTreeSet<NsId>,
}

impl<'a, 't> Ledger<'a, 't> {
    /// Opens the ledger of a transaction at clock `now`: the commit gets the next number, and a time that does not
    /// run backwards.
    pub(crate) fn open(
        tx: &'a mut WriteTx<'t>,
        secret: &'a Secret,
        analyzer: String,
        now: Time,
    ) -> Result<Self> {
        let mut clock = tx.clock()?;
        clock.commit += 1;
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

    /// Transaction time.
    pub(crate) fn now(&self) -> Time {
        Time::from_millis(self.clock.at_ms)
    }

    /// Carries out one change with all its cascades.
    ///
    /// # Errors
    /// `Conflict` when the state forbids it, `Corrupted` when a row that must exist is missing; the transaction
    /// must then be given up.
    pub(crate) fn apply(&mut self, context: &Context, entry: Entry) -> Result<Applied> {
        let Entry { change, rule, evidence } = entry;
        let why = Why { rule, evidence };
        match change {
            Change::Insert(row) => self.insert(context, *row, why),
            Change::Recreate(row) => self.recreate(context, row.0, row.1, why),
            Change::Hold { id, holder, raise } => self.hold(context, id, *holder, raise, why),
            Change::Update { id, version, vitals, content, access, holders, vector, deltas } => {
                let next = Next { vitals: *vitals, content: *content, access: *access, holders, vector };
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
            Change::Reinforce { id, by, expires_at, confidence } => {
                self.reinforce(context, (id, by), (expires_at, confidence), why)
            }
        }
    }

    /// Writes what was kept back: counters and clock.
    pub(crate) fn finish(mut self) -> Result<Clock> {
        for ns in std::mem::take(&mut self.recount) {
            self.count_again(ns)?;
        }
        let counters = std::mem::take(&mut self.counters);
        counters.write(self.tx)?;
        self.tx.put_clock(&self.clock)?;
        Ok(self.clock)
    }

    /// Vitals and content of a row that must be there.
    pub(crate) fn load(&self, ns: NsId, id: MemoryId) -> Result<(Vitals, Content)> {
        let vitals = self.tx.vitals(ns, id)?.ok_or_else(|| gone(id))?;
        Ok((vitals, self.content_of(ns, id)?))
    }

    /// Vitals and content of a row; none where there is none.
    pub(crate) fn load_there(&self, ns: NsId, id: MemoryId) -> Result<Option<(Vitals, Content)>> {
        let Some(vitals) = self.tx.vitals(ns, id)? else { return Ok(None) };
        Ok(Some((vitals, self.content_of(ns, id)?)))
    }

    /// Content of a row whose vitals are there.
    pub(super) fn content_of(&self, ns: NsId, id: MemoryId) -> Result<Content> {
        let content = self.tx.content(ns, id)?;
        content.ok_or_else(|| Error::corrupted("memory", id.as_bytes(), "vitals without content"))
    }
}

/// The rule and the evidence of the change at hand.
#[derive(Clone, Debug)]
pub(crate) struct Why {
    pub(crate) rule: RuleId,
    pub(crate) evidence: Evidence,
}

/// A row as an update leaves it.
pub(crate) struct Next {
    pub(crate) vitals: Vitals,
    pub(crate) content: Content,
    pub(crate) access: Access,
    pub(crate) holders: Vec<Holder>,
    pub(crate) vector: Option<UnitVector>,
}

/// The row that a change was decided on is no longer there.
fn gone(id: MemoryId) -> Error {
    Error::NotFound { what: "memory", name: id.to_string() }
}
