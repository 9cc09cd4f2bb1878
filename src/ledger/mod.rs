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
mod aged;
mod announced;
mod applied;
mod change;
mod context;
mod copies;
pub(crate) mod counters;
mod damage;
pub(crate) mod derived;
mod ended;
mod erase;
mod fold;
mod given;
mod goal;
mod holders;
mod insert;
mod inverse;
mod journal;
mod keep;
mod leave;
mod lifetime;
mod limbo;
mod mend;
mod merge;
mod message;
mod metadata;
mod partition;
mod query;
mod raised;
mod ranked;
mod recount;
mod rederive;
mod relocate;
mod rename;
mod returns;
mod rewrite;
mod run;
mod settle;
mod stray;
mod summarized;
mod supersede;
mod terms;
mod text;
mod writer;
mod writers;

use crate::error::Result;
use crate::ledger::change::Superseding;
use crate::ledger::erase::Going;
use crate::ledger::insert::Next;
use crate::ledger::leave::Departure;
use crate::store::control::Clock;

pub(crate) use afresh::Afresh;
pub(crate) use aged::is_named;
pub(crate) use applied::{Applied, Left, Onward, Restored};
pub(crate) use change::{Change, Entry, Merge, Moves, NewRow, Raise, Recorded, Recreated, RestoreTo};
pub(crate) use damage::{Loss, losses, lost_keys, lost_payloads};
pub(crate) use fold::Folded;
pub(crate) use given::{given, note_vector, notes_vector, said_by, seed, tell};
pub(crate) use insert::{tags_fit, unite};
pub(crate) use inverse::inverse;
pub(crate) use lifetime::tier_ttl;
pub(crate) use message::{MembersMax, statistics};
pub(crate) use partition::seem_vacant;
pub(crate) use query::queries_beyond;
pub(crate) use raised::OF_THE_OTHER;
pub(crate) use relocate::{Gaps, LostKeys, Relocation, Trail};
pub(crate) use settle::unsettled;
pub(crate) use writer::{Context, End, Ledger, Whole, Why, Writer};

impl Ledger<'_, '_> {
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
            Change::Recreate(row) => self.recreate(context, *row, why),
            Change::Hold { id, holder, raise } => self.hold(context, id, *holder, raise, why),
            Change::Update { id, version, vitals, content, access, holders, vector, payload, deltas } => {
                let next =
                    Next { vitals: *vitals, content: *content, access: *access, holders, vector, payload };
                self.update(context, id, version, next, deltas, why)
            }
            Change::Supersede { old, new, mode, at, moves, since, via } => {
                self.supersede(context, Superseding { old, new, mode, at, moves, since, via }, why)
            }
            Change::Restore { id, to } => self.restore(context, id, to, why),
            Change::LeadOn { id, onward } => self.lead_on(context, id, *onward, why),
            Change::LeadAgain { id, number } => self.lead_again(context, id, number, &why),
            Change::Detach { id, numbers, reason, stone } => {
                self.detach(context, id, &numbers, Departure::Forgotten(reason, stone), why)
            }
            Change::Part { id, number } => self.detach(context, id, &[number], Departure::Apart, why),
            Change::Remove { id, reason, replaced_by } => {
                let applied = self.remove(context, id, Going { reason, replaced_by }, why.clone())?;
                if !reason.is_taken_back() {
                    self.lead_past(context, &applied, &why)?;
                }
                Ok(applied)
            }
            Change::Merge(merge) => self.merge(context, *merge, why),
            Change::Retire { id, reason, replaced_by } => {
                self.retire(context, id, Going { reason, replaced_by }, why)
            }
            Change::Return { id } => self.return_from_limbo(context, id, RestoreTo::Undo, why),
            Change::Purge { id } => self.purge(context, id, why),
            Change::Record(recorded) => self.record(context, *recorded, why),
            Change::Withdraw { events } => self.withdraw(context, &events, why),
            Change::Rename { old, new } => self.rename(context, &old, &new, &why),
            Change::Adjust { id, version, vitals, access, deltas } => {
                self.adjust(context, id, version, (*vitals, *access), deltas, why)
            }
            Change::Fold { rows } => self.fold(context, rows, why),
            Change::LogContext { context: name, row, rows } => {
                self.log_context(context, &name, &row, rows, why)
            }
            Change::SetGoal { id, row } => self.set_goal(context, id, &row, why),
            Change::DropGoal { id } => self.drop_goal(context, id, why),
            Change::DropContexts { places } => self.drop_contexts(context, &places, why),
            Change::Reinforce { id, by, expires_at, confidence } => {
                self.reinforce(context, id, by, expires_at, confidence, why)
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
        // The clock carries the mark of the commit, by which a commit of unsure outcome is recognised.
        self.tx.put_clock(&self.clock)?;
        Ok(self.clock)
    }
}
