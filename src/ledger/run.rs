//! The row of a run: each part of the run writes there what it did, in its own transaction.

use crate::error::{Result, sound};
use crate::ledger::writer::{Context, Ledger};
use crate::model::{Actor, Run, RunId, RunSort, RunState, Time};
use crate::store::control::RunRow;
use crate::store::{MessageRows, NsId, Rows};

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
        self.tx.put_run(context.ns, run.id, &RunRow { sort: run.sort, started_ms, state: run.state, ..row })
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
