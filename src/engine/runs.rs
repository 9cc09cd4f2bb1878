//! Runs: imports begin and end, all are listed and taken back. And the dropping of whole namespaces.

use serde::Serialize;

use crate::engine::at_work::AtWork;
use crate::engine::database::Database;
use crate::engine::namespace::Namespace;
use crate::engine::queue::ONE;
use crate::error::{Error, Result};
use crate::hygiene::{Returned, undo_slice};
use crate::ledger::Context;
use crate::limits::SLICE_ROWS_MAX;
use crate::model::{
    Actor, MemoryId, NamespaceName, Pass, RunId, RunPage, RunReport, RunSort, RunStatus, Time,
};
use crate::recall::{Got, Reader, RunContext};
use crate::store::control::{CounterSort, DROPPED, RunRow, RunState, TOTAL, dropped_name};
use crate::store::{NsId, Rows};

/// Passes that erase what no run has taken out of use before, so that nothing tells of it any more.
const ERASING: [Pass; 2] = [Pass::Superseded, Pass::Retention];

/// How often a slice is tried again that the storage refuses.
const DROP_TRIES: u32 = 3;

/// What taking a run back did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Undone {
    /// Rows that are live again, having been superseded by the run.
    pub restored: u64,
    /// Rows that the run had made, now gone.
    pub removed: u64,
    /// Rows that stand for other writes as well and stay.
    pub detached: u64,
    /// What could not be taken back, with the reason.
    pub lost: Vec<String>,
    /// Summaries that stay and may tell of what went: made of writes of an import, or said anew since the run made them.
    pub summaries: Vec<MemoryId>,
    /// Changes that are left, because their memories are in another namespace now. The run can be undone there.
    pub moved: u64,
    /// Whether the run was taken back before, so that nothing was left to do.
    pub already: bool,
}

impl Undone {
    /// Names summaries that stay, each once.
    fn keep_summaries(&mut self, stay: Vec<MemoryId>) {
        for id in stay {
            if !self.summaries.contains(&id) {
                self.summaries.push(id);
            }
        }
    }
}

impl Namespace {
    /// Begins an import: writes that carry its id can be taken back together. [`Namespace::runs`] lists it as `running` until
    /// [`Namespace::finish_import`] or the end of the handle.
    ///
    /// ```
    /// use oubliette::WriteOptions;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let run = team.start_import()?;
    /// let how = WriteOptions { run: Some(run), ..WriteOptions::default() };
    /// team.add_all(vec!["Ann prefers tea".into(), "Bob walks".into()], &how)?;
    /// team.finish_import(run)?;
    /// assert_eq!(team.undo(run)?.removed, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Retry`, `Unavailable`, `ReadOnly`, `Closed`.
    pub fn start_import(&self) -> Result<RunId> {
        self.begin_import().map(AtWork::stay)
    }

    /// As [`Namespace::start_import`], for an import that may end by an error: the run is at work as long as the answer lives.
    ///
    /// # Errors
    /// As [`Namespace::start_import`].
    pub(crate) fn begin_import(&self) -> Result<AtWork> {
        self.db.inner.check_open()?;
        let at_work = self.db.inner.works_on_new()?;
        let (namespace, run) = (self.name.clone(), at_work.run());
        self.db.submit(ONE, move |session| {
            let writer = session.writer(&namespace, None, false)?;
            writer.ledger.begin_run(&writer.context, run, RunSort::Import)?;
            session.forget_nothing();
            Ok(())
        })?;
        Ok(at_work)
    }

    /// Marks an import as whole. One that is being taken back, or was, stays so. What the import has left to do for a search
    /// by words is done now.
    ///
    /// ```
    /// use oubliette::maintain::RunId;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let run = team.start_import()?;
    /// team.finish_import(run)?;
    /// assert!(team.finish_import(RunId::from_bytes([0; 16])).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for a run that was never started.
    pub fn finish_import(&self, run: RunId) -> Result<()> {
        let namespace = self.name.clone();
        let ns = self.db.submit(ONE, move |session| {
            let writer = session.known_writer(&namespace)?;
            let (ns, now) = (writer.context.ns, writer.context.now);
            let is_known = writer.ledger.end_run(ns, run, now)?;
            session.forget_nothing();
            if is_known { Ok(ns) } else { Err(unknown(run)) }
        })?;
        self.db.inner.leaves(run);
        self.db.post_tails(ns);
        Ok(())
    }

    /// The runs of the namespace, the newest first: at most `limit` of those that are older than `before`. A run is an
    /// operation of many parts, each of which is a commit: an import, maintenance, `reindex`, `reembed`, an index of
    /// metadata, and what `compact` erases first. A run is listed whether it ended or was cut off.
    ///
    /// ```
    /// use oubliette::maintain::RunStatus;
    /// use oubliette::{Database, Draft, WriteOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let db = Database::open(&path)?;
    /// let team = db.namespace("team")?;
    /// let how = WriteOptions { run: Some(team.start_import()?), ..WriteOptions::default() };
    /// team.add_all(vec![Draft::new("Ann prefers tea"), Draft::new("Bob prefers coffee")], &how)?;
    /// assert_eq!(team.runs(None, 10)?.items[0].status, RunStatus::Running);
    /// db.close()?;
    ///
    /// let team = Database::open(&path)?.namespace("team")?;
    /// let left = team.runs(None, 10)?.items.remove(0);
    /// assert_eq!((left.status, left.counts["stored"]), (RunStatus::CutOff, 2));
    /// assert_eq!(team.undo(left.id)?.removed, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a limit outside 1 to 10,000; `Corrupted`, `Closed`.
    pub fn runs(&self, before: Option<RunId>, limit: usize) -> Result<RunPage> {
        self.ask_of_runs(|reader, context| reader.runs(before, limit, context))
    }

    /// One run; none if the namespace has no run with this id.
    ///
    /// ```
    /// use oubliette::maintain::{RunId, RunSort};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let id = team.start_import()?;
    /// assert_eq!(team.run(id)?.map(|run| run.sort), Some(RunSort::Import));
    /// assert!(team.run(RunId::from_bytes([0; 16]))?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn run(&self, run: RunId) -> Result<Option<RunReport>> {
        self.ask_of_runs(|reader, context| reader.run(run, context))
    }

    /// Reads with what the handle knows of runs.
    fn ask_of_runs<R>(&self, ask: impl Fn(&Reader<'_>, RunContext<'_>) -> Result<R>) -> Result<R> {
        let inner = &self.db.inner;
        // Held while the state is chosen and read: a run enters the list before its first commit and leaves after its last, so
        // a run that is open in the state is on the list if the handle works on it.
        let at_work = inner.at_work.lock();
        let horizon = inner.in_force().policy.undo.horizon;
        self.ask(|reader| ask(reader, RunContext { at_work: &at_work, may_write: !inner.read_only, horizon }))
    }

    /// Takes a run back. Of an import, the writes that it brought go, and what it superseded is live again; of
    /// maintenance, what it removed returns from limbo with holders, links and vector, what it superseded is live again,
    /// and reinforcement that it moved goes back. It works in slices; one that was cut off goes on with the next call,
    /// and undoing twice does nothing and says so.
    ///
    /// ```
    /// use oubliette::WriteOptions;
    /// use oubliette::maintain::RunId;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let run = team.start_import()?;
    /// let how = WriteOptions { run: Some(run), ..WriteOptions::default() };
    /// team.add_all(vec!["Ann prefers tea".into()], &how)?;
    /// assert_eq!(team.undo(run)?.removed, 1);
    /// assert_eq!(team.undo(run)?.removed, 0);
    /// assert!(team.undo(RunId::from_bytes([0; 16])).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for a run that was never started; `Conflict` for one of maintenance whose last work is older than
    /// `undo.horizon`, for one whose memories are all in another namespace by now, for an import of lines that came with their
    /// ids, as an export writes them, and for a run of a sort that nothing takes back (`reindex`, `reembed`, `compact`, `index`).
    pub fn undo(&self, run: RunId) -> Result<Undone> {
        let row = self.run_row(run)?;
        if row.as_ref().is_some_and(|row| row.state == RunState::Undone) {
            return Ok(Undone { already: true, ..Undone::default() });
        }
        match row.map(|row| row.sort) {
            Some(RunSort::Maintain) => return self.undo_maintenance(run),
            Some(sort) if !sort.can_be_undone() => {
                return Err(Error::Conflict {
                    what: format!("undo {run}"),
                    why: format!("nothing takes back what {sort} does"),
                });
            }
            _ => {}
        }
        let put_back = self.put_back_by(run)?;
        let (mut undone, mut astray, mut repeats) = (Undone::default(), 0, 0);
        loop {
            let namespace = self.name.clone();
            let step =
                self.db.submit(ONE, move |session| session.known_writer(&namespace)?.undo_import(run))?;
            undone.restored += step.done.restored;
            undone.removed += step.done.forgotten;
            undone.detached += step.done.detached;
            astray += step.astray;
            undone.keep_summaries(step.done.derived);
            let why = "it says what the run had brought, and its messages have ended";
            undone.lost.extend(step.told_on.iter().map(|id| format!("{id}: {why}")));
            undone.lost.extend(step.superseded);
            if step.untold > 0 {
                let what = "supersessions of which the journal tells no more, not taken back where the memory that took the place stays";
                undone.lost.push(format!("{what}: {}", step.untold));
            }
            repeats += step.repeats;
            if step.finished {
                if repeats > 0 {
                    let what = "messages of others that repeated one of the run, gone with its memory";
                    undone.lost.push(format!("{what}: {repeats}"));
                }
                if astray > 0 {
                    let what = "rows of the run that stood out of order, so that writes of it may be left";
                    undone.lost.push(format!("{what}: {astray}"));
                }
                if step.updated > 0 {
                    let what = "changes of fields in place, which stay where their memories stay";
                    undone.lost.push(format!("{what}: {}", step.updated));
                }
                if put_back > 0 {
                    let what =
                        "memories of an export, which came with their ids and stay: `forget` takes them away";
                    undone.lost.push(format!("{what}: {put_back}"));
                }
                return Ok(undone);
            }
        }
    }

    /// The number of memories that an import has put back as an export tells them. No undo of the import takes these away.
    ///
    /// # Errors
    /// `Conflict` where the import has brought nothing else, or nothing else is left of it.
    fn put_back_by(&self, run: RunId) -> Result<u64> {
        let Some(report) = self.run(run)? else { return Ok(0) };
        let put_back = report.counts.get(RunRow::PUT_BACK).copied().unwrap_or(0);
        if put_back == 0 || report.can_be_undone || report.status == RunStatus::Undoing {
            return Ok(put_back);
        }
        Err(Error::Conflict {
            what: format!("undo {run}"),
            why: "its memories are those of an export: they came with their ids and keep the runs that first brought them, so only \
                  `forget` takes them away"
                .to_owned(),
        })
    }

    /// Whether a run was taken back, or is being.
    pub(super) fn is_taken_back(&self, run: RunId) -> Result<bool> {
        let row = self.run_row(run)?;
        Ok(row.is_some_and(|row| matches!(row.state, RunState::Undoing | RunState::Undone)))
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
            let ((step, moved), waiting) = self.db.inner.run_alone(|session| {
                let horizon = session.in_force.policy.undo.horizon;
                let writer = session.known_writer(&self.name)?;
                let ns = writer.context.ns;
                let row = writer.ledger.tx.run(ns, run)?;
                let row = row.ok_or_else(|| unknown(run))?;
                if row.state == RunState::Undone {
                    return Ok(((Returned { finished: true, ..Returned::default() }, 0), Vec::new()));
                }
                if row.state != RunState::Undoing
                    && Time::from_millis(row.latest_ms).plus(horizon) <= writer.context.now
                {
                    return Err(Error::Conflict {
                        what: format!("undo {run}"),
                        why: "its horizon (undo.horizon) is over".to_owned(),
                    });
                }
                let context = Context { actor: Actor::Caller, run: None, ..writer.context.clone() };
                let did_nothing = writer.ledger.tx.journal_of_run(ns, run, 1)?.is_empty();
                let moved = row.counts.get(RunRow::MOVED).copied().unwrap_or(0);
                if did_nothing && moved > 0 && row.state != RunState::Undoing {
                    return Err(Error::Conflict {
                        what: format!("undo {run}"),
                        why: "the memories that it changed are in another namespace now: undo it there"
                            .to_owned(),
                    });
                }
                let mut step = undo_slice(writer.ledger, &context, run)?;
                if row.state != RunState::Undoing {
                    step.lost.extend(for_good(&row));
                }
                let state = match row.state {
                    // Where nothing can be taken back, nothing was.
                    RunState::Open | RunState::Done if did_nothing => row.state,
                    _ if step.finished => RunState::Undone,
                    _ => RunState::Undoing,
                };
                let latest_ms = context.now.as_millis();
                writer.ledger.tx.put_run(ns, run, &RunRow { state, latest_ms, ..row })?;
                for (pass, mut last) in writer.ledger.tx.passes(ns)? {
                    // What is taken back is not gone on with.
                    if last.open && last.run == run {
                        last.open = false;
                        writer.ledger.tx.put_pass(ns, &pass, &last)?;
                    }
                }
                Ok(((step, moved), std::mem::take(&mut writer.ledger.waiting)))
            })?;
            self.db.embed_waiting(waiting);
            undone.restored += step.restored;
            undone.removed += step.removed;
            undone.lost.extend(step.lost);
            undone.keep_summaries(step.summaries);
            if step.finished {
                undone.moved = moved;
                return Ok(undone);
            }
        }
    }
}

/// What a run has erased for good, or has mended, by the pass that did it.
fn for_good(row: &RunRow) -> impl Iterator<Item = String> {
    let erased = |pass: &Pass| Some((*pass, *row.counts.get(pass.as_str())?));
    let mended = erased(&Pass::Supersession).map(|(pass, count)| {
        let what = if count == 1 { "memory" } else { "memories" };
        format!("what {pass} mended stays: {count} {what}")
    });
    let erased = ERASING.iter().filter_map(erased).map(|(pass, count)| {
        let what = if pass == Pass::Retention { "rows that were too old" } else { "memories" };
        format!("what {pass} erased does not come back: {count} {what}")
    });
    erased.chain(mended)
}

/// The error for a run that was never started.
fn unknown(run: RunId) -> Error {
    Error::NotFound { what: "run", name: run.to_string() }
}

impl<Of> Namespace<Of> {
    /// Whether the write that had brought a memory was taken back.
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub(crate) fn was_taken_back(&self, id: MemoryId) -> Result<bool> {
        match self.look_up(id, false) {
            Ok(Got::Tombstone(stone)) => Ok(stone.reason.is_taken_back()),
            Ok(Got::Memory(_)) | Err(Error::NotFound { .. }) => Ok(false),
            Err(why) => Err(why),
        }
    }
}

impl Database {
    /// Drops a namespace with everything in it: hidden at once, its rows deleted in slices. One tombstone stays for
    /// all. Gives the number of memories dropped.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// db.namespace("team")?.add("Ann prefers tea")?;
    /// assert_eq!(db.drop_namespace("team")?, 1);
    /// assert!(db.drop_namespace("team").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` when there is no such namespace, and `Invalid` for a text that is no name.
    pub fn drop_namespace<N>(&self, namespace: N) -> Result<u64>
    where
        N: TryInto<NamespaceName, Error: Into<Error>>,
    {
        let name = namespace.try_into().map_err(Into::into)?;
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
            let id = MemoryId::from_bytes(session.ids.next(context.now)?);
            session.ledger.bury_namespace(&context, id, name.as_str(), rows)?;
            Ok((ns, rows))
        })?;
        self.delete_rows(ns)?;
        Ok(rows)
    }

    /// Goes on with drops that were cut off. Damage that a drop can't go past keeps nobody from opening the file: its rows stay.
    pub(super) fn resume_drops(&self) -> Result<()> {
        if self.inner.check_open().is_err() {
            return Ok(());
        }
        let namespaces = self.inner.state()?.snapshot().namespaces()?;
        for (_, row) in namespaces.into_iter().filter(|(_, row)| row.dropping) {
            match self.delete_rows(NsId(row.number)) {
                Err(why @ Error::Corrupted { .. }) => {
                    tracing::warn!(namespace = row.number, %why, "rows of a dropped namespace stay");
                }
                dropped => dropped?,
            }
        }
        Ok(())
    }

    /// Deletes the rows of a hidden namespace. It is gone for every reader already, so a slice that the storage refuses
    /// is tried again here: the caller could not, for the name is free.
    ///
    /// # Errors
    /// `Corrupted` where damage keeps rows from going.
    pub(super) fn delete_rows(&self, ns: NsId) -> Result<()> {
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
