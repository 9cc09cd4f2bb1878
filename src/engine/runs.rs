//! Imports as runs that can be taken back, and the dropping of whole namespaces.

use crate::engine::database::Database;
use crate::engine::namespace::Namespace;
use crate::engine::queue::ONE;
use crate::error::{Error, Result};
use crate::hygiene::{Returned, undo_slice};
use crate::ledger::Context;
use crate::limits::SLICE_ROWS_MAX;
use crate::model::{Actor, MemoryId, NamespaceName, RunId, Time};
use crate::store::control::{CounterSort, DROPPED, RunRow, RunState, TOTAL, dropped_name};
use crate::store::{NsId, Rows};

/// How often a slice is tried again that the storage refuses.
const DROP_TRIES: u32 = 3;

/// What taking a run back did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// Rows that are live again, having been superseded by the run.
    pub restored: u64,
    /// Rows that the run had made, now gone.
    pub removed: u64,
    /// Rows that stand for other writes as well and stay.
    pub detached: u64,
    /// What could not be taken back, with the reason.
    pub lost: Vec<String>,
    /// Whether the run was taken back before, so that nothing was left to do.
    pub already: bool,
}

impl Namespace {
    /// Begins an import: writes that carry its id can be taken back together.
    ///
    /// # Errors
    /// `Retry`, `Unavailable`, `ReadOnly`, `Closed`.
    pub fn start_import(&self) -> Result<RunId> {
        let namespace = self.name.clone();
        self.db.submit(ONE, move |session| {
            let run = RunId::from_bytes(session.ids.next(session.ledger.now()));
            let writer = session.writer(&namespace, None, false)?;
            let started_ms = writer.context.now.as_millis();
            let row = RunRow { what: RunRow::IMPORT.to_owned(), started_ms, state: RunState::Open };
            writer.ledger.tx.put_run(writer.context.ns, run, &row)?;
            Ok(run)
        })
    }

    /// Marks a run as whole.
    ///
    /// # Errors
    /// `NotFound` for a run that was never started.
    pub fn finish_run(&self, run: RunId) -> Result<()> {
        let namespace = self.name.clone();
        self.db.submit(ONE, move |session| {
            let writer = session.known_writer(&namespace)?;
            let row = writer.ledger.tx.run(writer.context.ns, run)?;
            let row = row.ok_or_else(|| Error::NotFound { what: "run", name: run.to_string() })?;
            writer.ledger.tx.put_run(writer.context.ns, run, &RunRow { state: RunState::Done, ..row })
        })
    }

    /// Takes a run back. Of an import, the writes that it brought go, and what it superseded is live again; of
    /// maintenance, what it removed returns from limbo with holders, links and vector, what it superseded is live again,
    /// and reinforcement that it moved goes back. It works in slices; one that was cut off goes on with the next call,
    /// and undoing twice does nothing and says so.
    ///
    /// # Errors
    /// `NotFound` for a run that was never started; `Conflict` for one of maintenance past `undo.horizon`.
    pub fn undo(&self, run: RunId) -> Result<Undone> {
        let row = self.run_row(run)?;
        if row.as_ref().is_some_and(|row| row.state == RunState::Undone) {
            return Ok(Undone { already: true, ..Undone::default() });
        }
        if row.is_some_and(|row| row.what == RunRow::MAINTAIN) {
            return self.undo_maintenance(run);
        }
        let mut undone = Undone::default();
        loop {
            let namespace = self.name.clone();
            let step =
                self.db.submit(ONE, move |session| session.known_writer(&namespace)?.undo_import(run))?;
            undone.restored += step.done.restored;
            undone.removed += step.done.forgotten;
            undone.detached += step.done.detached;
            if step.finished {
                return Ok(undone);
            }
        }
    }

    fn run_row(&self, run: RunId) -> Result<Option<RunRow>> {
        let Some((_, ns)) = self.db.tenants(Some(&self.name))?.pop() else { return Ok(None) };
        self.db.inner.state()?.snapshot().run(ns, run)
    }

    fn undo_maintenance(&self, run: RunId) -> Result<Undone> {
        self.db.inner.check_open()?;
        // What a pass is still removing must not come back at the same time.
        let _one = self.db.inner.upkeep.lock();
        let mut undone = Undone::default();
        loop {
            let (step, waiting) = self.db.inner.run_alone(|session| {
                let horizon = session.in_force.policy.undo.horizon;
                let writer = session.known_writer(&self.name)?;
                let ns = writer.context.ns;
                let row = writer.ledger.tx.run(ns, run)?;
                let row = row.ok_or_else(|| Error::NotFound { what: "run", name: run.to_string() })?;
                if row.state == RunState::Undone {
                    return Ok((Returned { finished: true, ..Returned::default() }, Vec::new()));
                }
                if row.state != RunState::Undoing
                    && Time::from_millis(row.started_ms).plus(horizon) <= writer.context.now
                {
                    return Err(Error::Conflict {
                        what: format!("undo {run}"),
                        why: "its horizon (undo.horizon) is over".to_owned(),
                    });
                }
                let context = Context { actor: Actor::Caller, run: None, ..writer.context.clone() };
                let step = undo_slice(writer.ledger, &context, run)?;
                let state = if step.finished { RunState::Undone } else { RunState::Undoing };
                writer.ledger.tx.put_run(ns, run, &RunRow { state, ..row })?;
                for (pass, mut last) in writer.ledger.tx.passes(ns)? {
                    // What is taken back is not gone on with.
                    if last.open && last.run == run {
                        last.open = false;
                        writer.ledger.tx.put_pass(ns, &pass, &last)?;
                    }
                }
                Ok((step, std::mem::take(&mut writer.ledger.waiting)))
            })?;
            self.db.embed_waiting(waiting);
            undone.restored += step.restored;
            undone.lost.extend(step.lost);
            if step.finished {
                return Ok(undone);
            }
        }
    }
}

impl Database {
    /// Drops a namespace with everything in it: hidden at once, its rows deleted in slices. One tombstone stays for
    /// all. Gives the number of memories dropped.
    ///
    /// # Errors
    /// `NotFound` when there is no such namespace.
    pub fn drop_namespace(&self, namespace: &NamespaceName) -> Result<u64> {
        let name = namespace.clone();
        let (ns, rows) = self.submit(ONE, move |session| {
            let tx = &mut *session.ledger.tx;
            let row = tx.namespace(name.as_str())?;
            let mut row = row.ok_or_else(|| Error::NotFound { what: "namespace", name: name.to_string() })?;
            let ns = NsId(row.number);
            let count = |sort: CounterSort| tx.counter(ns, TOTAL, sort as u8, "").map(|counter| counter.rows);
            let rows = (count(CounterSort::Vectors)? + count(CounterSort::Pending)?).unsigned_abs();
            tx.delete_namespace(name.as_str())?;
            row.dropping = true;
            tx.put_namespace(&dropped_name(ns), &row)?;
            session.ledger.counters.forget(ns);
            session.dropped.push(ns);
            let context = session.context(DROPPED, None);
            let id = MemoryId::from_bytes(session.ids.next(context.now));
            session.ledger.bury_namespace(&context, id, name.as_str(), rows)?;
            Ok((ns, rows))
        })?;
        self.delete_rows(ns)?;
        Ok(rows)
    }

    /// Goes on with drops that were cut off.
    pub(super) fn resume_drops(&self) -> Result<()> {
        if self.inner.check_open().is_err() {
            return Ok(());
        }
        let namespaces = self.inner.state()?.snapshot().namespaces()?;
        for (_, row) in namespaces.into_iter().filter(|(_, row)| row.dropping) {
            self.delete_rows(NsId(row.number))?;
        }
        Ok(())
    }

    /// Deletes the rows of a hidden namespace. It is gone for every reader already, so a slice that the storage refuses
    /// is tried again here: the caller could not, for the name is free.
    fn delete_rows(&self, ns: NsId) -> Result<()> {
        let mut refused = 0;
        loop {
            let gone = self.submit(ONE, move |session| {
                let gone = session.ledger.drop_rows(ns, SLICE_ROWS_MAX)?;
                if gone == 0 {
                    session.ledger.tx.delete_namespace(&dropped_name(ns))?;
                }
                session.dropped.push(ns);
                Ok(gone)
            });
            match gone {
                Ok(0) => return Ok(()),
                Ok(_) => refused = 0,
                Err(Error::Retry { .. }) if refused < DROP_TRIES => refused += 1,
                Err(why) => return Err(why),
            }
        }
    }
}
