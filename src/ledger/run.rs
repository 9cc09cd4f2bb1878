//! The row of a run: each part of the run writes there what it did, in its own transaction.

use crate::error::{Result, sound};
use crate::ledger::writer::{Context, Ledger, truth};
use crate::model::{Actor, MemoryId, Run, RunId, RunSort, RunState, Time};
use crate::store::control::RunRow;
use crate::store::{Id, MessageRows, NsId, Rows, Table, Walk, keys, last_id, last_id_and_number};

/// The holders and the messages to which the rows of a run lead.
type Led = (Vec<(MemoryId, u32)>, Vec<Id>);

impl Ledger<'_, '_> {
    /// Begins a run whose parts come from a caller.
    pub(crate) fn begin_run(&mut self, context: &Context, run: RunId, sort: RunSort) -> Result<()> {
        self.tx.put_run(context.ns, run, &RunRow::new(sort, context.actor, context.now))
    }

    /// Notes what a part of a run did, in the transaction of the part. A run of the engine begins with its first part. An
    /// import begins by [`Ledger::begin_run`] alone: writes under an id that nobody began are no run.
    pub(crate) fn note_part<'n>(
        &mut self,
        context: &Context,
        run: RunId,
        sort: RunSort,
        counts: impl IntoIterator<Item = (&'n str, u64)>,
    ) -> Result<()> {
        // A damaged row begins anew, because no write is refused for what is only told of it.
        let stored = sound(self.tx.run(context.ns, run))?.flatten();
        let mut row = match stored {
            Some(row) => row,
            None if sort == RunSort::Import => return Ok(()),
            None => RunRow::new(sort, context.actor, context.now),
        };
        for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            match row.counts.get_mut(name) {
                Some(sum) => *sum = sum.saturating_add(count),
                None => drop(row.counts.insert(name.to_owned(), count)),
            }
        }
        // A plan that a caller kept can be carried out again.
        if row.state == RunState::Done && sort != RunSort::Import {
            row.state = RunState::Open;
        }
        row.latest_ms = context.now.as_millis();
        self.tx.put_run(context.ns, run, &row)
    }

    /// Marks a run as whole. A run that is being taken back stays one. Returns false for a run that was never begun.
    pub(crate) fn end_run(&mut self, ns: NsId, run: RunId, now: Time) -> Result<bool> {
        let Some(row) = self.tx.run(ns, run)? else { return Ok(false) };
        if matches!(row.state, RunState::Open | RunState::Done) {
            let ended = RunRow { state: RunState::Done, latest_ms: now.as_millis(), ..row };
            self.tx.put_run(ns, run, &ended)?;
        }
        Ok(true)
    }

    /// Puts a run of an export back. An export tells of a run what `undo` asks, and not what its parts did.
    pub(crate) fn keep_run(&mut self, context: &Context, run: &Run) -> Result<()> {
        let stored = sound(self.tx.run(context.ns, run.id))?.flatten();
        let row = stored.unwrap_or_else(|| RunRow::new(run.sort, Actor::Caller, run.started_at));
        let started_ms = run.started_at.as_millis();
        let counts = run.counts.clone();
        let row = RunRow { sort: run.sort, started_ms, state: run.state, counts, ..row };
        self.tx.put_run(context.ns, run.id, &row)
    }

    /// Strikes off the lists of a run those of `holders` and `events` that still stand there, though a step of its undo was to take
    /// them away: their keys are out of order, or lead to no holder and no message. Returns how many there were.
    ///
    /// # Errors
    /// `Corrupted` where they can't be struck off.
    pub(crate) fn strike_of_run(
        &mut self,
        ns: NsId,
        run: RunId,
        holders: &[(MemoryId, u32)],
        events: &[Id],
    ) -> Result<usize> {
        let of_run = Walk::prefix(&keys::run(ns, run));
        let left = |ledger: &Self| -> Result<Led> {
            let mut there = ledger.tx.holders_of_run(ns, run, holders.len())?;
            there.retain(|holder| holders.contains(holder));
            let mut led_to = ledger.tx.events_of(ns, run.as_bytes(), events.len())?;
            led_to.retain(|event| events.contains(event));
            Ok((there, led_to))
        };
        if left(self)? == (Vec::new(), Vec::new()) {
            return Ok(0);
        }
        // Among keys that are out of order, rows that wait to be taken away are met as if they stayed.
        self.tx.put_gathered()?;
        let (there, led_to) = left(self)?;
        truth(self.tx).strike(Table::HolderRun, &of_run, &|key| {
            last_id_and_number(Table::HolderRun, key).is_ok_and(|holder| there.contains(&holder))
        })?;
        truth(self.tx).strike(Table::EventOf, &of_run, &|key| {
            last_id(Table::EventOf, key).is_ok_and(|id| led_to.contains(id.as_bytes()))
        })?;
        Ok(there.len() + led_to.len())
    }

    /// Mends the row of a run by what holders or the journal tell of the run.
    pub(super) fn mend_run(&mut self, ns: NsId, run: RunId) -> Result<()> {
        let imported = !self.tx.holders_of_run(ns, run, 1)?.is_empty()
            || !self.tx.events_of(ns, run.as_bytes(), 1)?.is_empty();
        let sort = if imported { RunSort::Import } else { RunSort::Maintain };
        // The first bytes of the id are the instant at which the run began.
        let [a, b, c, d, e, f, ..] = *run.as_bytes();
        let started = Time::from_millis(i64::from_be_bytes([0, 0, a, b, c, d, e, f]));
        self.tx.put_run(
            ns,
            run,
            &RunRow { state: RunState::Done, ..RunRow::new(sort, Actor::Caller, started) },
        )
    }
}
