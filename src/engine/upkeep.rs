//! Maintenance of the indexes: the passes `index` and `repair`, and the help of writers who are past a bound.
//!
//! A pass works in slices. Each is worked out on the published state, beside readers and writers, and written in one
//! short commit. While others write, slices are small, so that nobody waits for one for long; alone they grow.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::engine::database::{Database, Inner};
use crate::error::{Error, ErrorKind, Result};
use crate::hnsw::Crew;
use crate::index::upkeep::{self, Counts, Need, Regimes, Torn};
use crate::index::{Edit, Written};
use crate::limits::THREADS_MAX;
use crate::model::{Namespace, RuleId, RunId};
use crate::store::{IndexId, NsId, Rows};

/// Rows of the first slice.
const SLICE_ROWS: usize = 64;
/// Rows of a slice while others write.
const SLICE_ROWS_MIN: usize = 16;
/// Rows of the largest slice.
const SLICE_ROWS_MAX: usize = 8_192;
/// Slices of one index that may find it changed, one after the other.
const STALE_MAX: usize = 16;
/// Rows that a writer links at least when it helps: so it is one write in so many that waits.
const HELP_ROWS: usize = 128;
/// Rows that a writer links for each of its own.
const HELP_PER_ROW: usize = 4;
/// Rows of a write that is helped by all cores.
const HELP_BY_ALL: usize = 1_024;

/// A maintenance pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pass {
    /// Builds the graphs of large partitions, links what lies beside them, drops those of partitions that became small.
    Index,
    /// Unlinks the nodes of memories that are gone, erases their codes and frees their slots.
    Repair,
}

impl Pass {
    /// Every pass, in the order in which they run.
    pub const ALL: [Pass; 2] = [Pass::Index, Pass::Repair];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Pass::Index => "index",
            Pass::Repair => "repair",
        }
    }

    const fn rule(self) -> RuleId {
        match self {
            Pass::Index => RuleId::INDEX,
            Pass::Repair => RuleId::REPAIR,
        }
    }
}

impl std::str::FromStr for Pass {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let names = Pass::ALL.map(Pass::as_str).join(", ");
        let found = Pass::ALL.into_iter().find(|pass| pass.as_str() == name);
        found.ok_or_else(|| Error::invalid("pass", format!("must be one of {names}"), name))
    }
}

/// How maintenance runs.
#[derive(Clone, Debug)]
pub struct MaintainOptions {
    /// Only say what there is to do; the default.
    pub dry_run: bool,
    /// Stop after so much time; what is left the next call goes on with.
    pub budget: Option<Duration>,
    /// Stop after so many rows.
    pub max_rows: Option<u64>,
    /// Threads that work on one slice; as many as there are cores by default. The result is the same.
    pub threads: Option<usize>,
    /// Only this namespace.
    pub namespace: Option<Namespace>,
}

impl Default for MaintainOptions {
    fn default() -> Self {
        MaintainOptions { dry_run: true, budget: None, max_rows: None, threads: None, namespace: None }
    }
}

impl MaintainOptions {
    /// A run that does the work.
    pub fn live() -> Self {
        MaintainOptions { dry_run: false, ..MaintainOptions::default() }
    }
}

/// What one pass came to.
#[derive(Clone, Debug, PartialEq)]
pub struct PassReport {
    /// Which.
    pub pass: Pass,
    /// Rows that there were to work on when it began.
    pub planned: u64,
    /// Rows with a vector that it looked after.
    pub scanned: u64,
    /// Rows that it worked on.
    pub changed: u64,
    /// Partitions that it could not work on: damaged, or larger than the memory budget.
    pub skipped: u64,
    /// Rows that were left when it stopped.
    pub left: u64,
    /// Time that it took, in milliseconds.
    pub ms: u64,
    /// Details, by name.
    pub report: BTreeMap<&'static str, u64>,
}

/// What a maintenance run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct MaintainReport {
    /// The run that its journal rows name; none of a dry run.
    pub run: Option<RunId>,
    /// Its passes, in the order in which they ran.
    pub passes: Vec<PassReport>,
}

impl Regimes {
    fn of(inner: &Inner) -> Self {
        let index = inner.in_force().policy.index.clone();
        Regimes {
            exact_max: index.exact_max,
            exact_min: index.exact_min,
            tail_min: index.tail_min,
            tail_share: index.tail_share,
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How far a run may go, and how large its slices are.
struct Pace {
    until: Option<Instant>,
    rows_left: u64,
    slice: usize,
    /// Number of our own last commit.
    commit: u64,
}

impl Pace {
    fn of(options: &MaintainOptions) -> Self {
        Pace {
            until: options.budget.and_then(|budget| Instant::now().checked_add(budget)),
            rows_left: options.max_rows.unwrap_or(u64::MAX),
            slice: SLICE_ROWS,
            commit: 0,
        }
    }

    fn is_over(&self) -> bool {
        self.rows_left == 0 || self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Rows of the next slice, on a state of this commit.
    fn rows(&mut self, commit: u64) -> usize {
        self.slice = match self.commit {
            0 => self.slice,
            own if own == commit => (self.slice * 2).min(SLICE_ROWS_MAX),
            _ => SLICE_ROWS_MIN,
        };
        self.slice.min(usize::try_from(self.rows_left).unwrap_or(usize::MAX))
    }

    fn spend(&mut self, rows: u64, commit: u64) {
        self.rows_left = self.rows_left.saturating_sub(rows);
        self.commit = commit;
    }
}

/// One pass over one index.
struct Worker<'d> {
    database: &'d Database,
    index: IndexId,
    rule: RuleId,
    run: RunId,
    crew: Crew,
    pace: Pace,
}

impl Worker<'_> {
    fn inner(&self) -> &Inner {
        &self.database.inner
    }

    fn counts(&self) -> Result<Counts> {
        Counts::read(&**self.inner().current.read().snapshot(), self.index)
    }

    /// Writes a step and publishes it; false when the index has changed under it.
    fn write(&mut self, edit: &Edit) -> Result<bool> {
        let done = self.database.write_edit(edit, self.rule, self.run)?;
        if done {
            let commit = self.inner().current.read().commit();
            self.pace.spend(edit.rows(), commit);
        }
        Ok(done)
    }

    /// Takes step after step until there is none, the run is over, or `most` rows were changed: those that were waiting
    /// when the pass began, for a writer as fast as the pass would keep it here for ever. Gives the rows that were
    /// changed, and whether the run goes on.
    fn steps(
        &mut self,
        most: u64,
        mut step: impl FnMut(&mut Self, usize) -> Result<Option<Edit>>,
    ) -> Result<(u64, bool)> {
        let (mut changed, mut stale) = (0, 0);
        while !self.pace.is_over() {
            if changed >= most {
                return Ok((changed, true));
            }
            let commit = self.inner().current.read().commit();
            // What was worked on for less time has changed less often.
            let rows = (self.pace.rows(commit) >> stale).max(1);
            let Some(edit) = step(self, rows)? else { return Ok((changed, true)) };
            if self.write(&edit)? {
                (changed, stale) = (changed + edit.rows(), 0);
            } else {
                stale += 1;
                if stale > STALE_MAX {
                    return Err(Error::Conflict {
                        what: "maintenance".to_owned(),
                        why: "the rows that it works on change faster than it does".to_owned(),
                    });
                }
            }
        }
        Ok((changed, false))
    }

    /// The pass `index` on one index.
    fn link(&mut self, regimes: &Regimes, report: &mut PassReport) -> Result<()> {
        let (index, before) = (self.index, self.counts()?);
        match regimes.need(before) {
            Need::Drop => {
                let (_, whole) = self
                    .steps(u64::MAX, |worker, _| upkeep::unlink_all(&worker.inner().current.read(), index))?;
                if whole {
                    report.changed += u64::from(before.in_graph);
                    note(report, "dropped", 1);
                }
                return Ok(());
            }
            Need::Link(waiting) => {
                note(report, "built", u64::from(!before.has_graph));
                let (changed, whole) = self.steps(u64::from(waiting), |worker, rows| {
                    upkeep::link(&worker.inner().current.read(), index, rows, &mut worker.crew)
                })?;
                report.changed += changed;
                if !whole {
                    return Ok(());
                }
            }
            Need::Nothing if !before.has_graph => return Ok(()),
            Need::Nothing => {}
        }
        self.finish(false, report)
    }

    /// The pass `repair` on one index.
    fn repair(&mut self, report: &mut PassReport) -> Result<()> {
        let (index, mut torn) = (self.index, Torn::default());
        let dead = u64::from(self.counts()?.dead);
        let (changed, whole) = self.steps(dead, |worker, rows| {
            upkeep::repair(&worker.inner().current.read(), index, rows, &mut torn, &mut worker.crew)
        })?;
        note(report, "mended", torn.mended());
        report.changed += changed;
        if whole && self.counts()?.has_graph {
            self.finish(changed > 0, report)?;
        }
        Ok(())
    }

    /// Closes what a pass may have left open: nodes that no walk comes to, and a recall that no longer holds.
    fn finish(&mut self, repaired: bool, report: &mut PassReport) -> Result<()> {
        let index = self.index;
        let mut rounds = 0;
        self.steps(u64::MAX, |worker, _| {
            let step = upkeep::reconnect(&worker.inner().current.read(), index, &mut worker.crew)?;
            rounds += u64::from(step.is_some());
            Ok(step)
        })?;
        note(report, "reconnected", rounds);
        let mut measured = false;
        self.steps(u64::MAX, |worker, _| {
            if measured {
                return Ok(None);
            }
            measured = true;
            upkeep::calibrate(&worker.inner().current.read(), index, repaired)
        })?;
        Ok(())
    }
}

fn note(report: &mut PassReport, name: &'static str, count: u64) {
    *report.report.entry(name).or_default() += count;
}

impl Database {
    /// Runs maintenance passes, or with [`MaintainOptions::dry_run`] says what they would do. A run can be stopped at
    /// any point, by a crash as well: what is left to do follows from the rows themselves.
    ///
    /// ```
    /// use oubliette::{Database, MaintainOptions, Pass};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::open(folder.path().join("m.oub"))?;
    /// let report = db.maintain(&Pass::ALL, &MaintainOptions::live())?;
    /// assert!(report.passes.iter().all(|pass| pass.left == 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Retry`, `Unavailable`, `ReadOnly`, `Closed`; `Conflict` when rows change faster than a pass can work on them.
    pub fn maintain(&self, passes: &[Pass], options: &MaintainOptions) -> Result<MaintainReport> {
        if let Some(threads) = options.threads.filter(|threads| !(1..=THREADS_MAX).contains(threads)) {
            return Err(Error::invalid("threads", format!("must be 1 to {THREADS_MAX}"), threads));
        }
        if !options.dry_run {
            self.inner.check_open()?;
        }
        let _one = self.inner.upkeep.lock();
        let run = RunId::from_bytes(self.inner.ids.next(self.inner.clock.now()));
        let mut pace = Pace::of(options);
        let mut reports = Vec::new();
        for &pass in passes {
            let report;
            (report, pace) = self.run_pass(pass, options, run, pace)?;
            reports.push(report);
        }
        Ok(MaintainReport { run: (!options.dry_run).then_some(run), passes: reports })
    }

    fn run_pass(
        &self,
        pass: Pass,
        options: &MaintainOptions,
        run: RunId,
        mut pace: Pace,
    ) -> Result<(PassReport, Pace)> {
        let (begun, regimes) = (Instant::now(), Regimes::of(&self.inner));
        let mut report = PassReport {
            pass,
            planned: 0,
            scanned: 0,
            changed: 0,
            skipped: 0,
            left: 0,
            ms: 0,
            report: BTreeMap::new(),
        };
        let work = |counts: Counts| match (pass, regimes.need(counts)) {
            (Pass::Repair, _) => u64::from(counts.dead),
            (Pass::Index, Need::Link(rows)) => u64::from(rows),
            (Pass::Index, Need::Drop) => u64::from(counts.in_graph),
            (Pass::Index, Need::Nothing) => 0,
        };
        for (index, counts, fits) in self.indexes(options.namespace.as_ref())? {
            let Some(counts) = counts else {
                report.skipped += 1;
                continue;
            };
            report.scanned += u64::from(counts.live);
            report.planned += work(counts);
            note(&mut report, "partitions", 1);
            if work(counts) > 0 && !fits {
                (report.skipped, report.left) = (report.skipped + 1, report.left + work(counts));
                continue;
            }
            if options.dry_run || !(counts.has_graph || work(counts) > 0) || pace.is_over() {
                report.left += work(counts);
                continue;
            }
            let crew = Crew::new(options.threads.unwrap_or_else(cores));
            let mut worker = Worker { database: self, index, rule: pass.rule(), run, crew, pace };
            let done = match pass {
                Pass::Index => worker.link(&regimes, &mut report),
                Pass::Repair => worker.repair(&mut report),
            };
            match done {
                Err(why) if why.kind() == ErrorKind::Corrupted => {
                    tracing::warn!(%why, "a partition is left out of maintenance");
                    report.skipped += 1;
                }
                other => other?,
            }
            report.left += work(worker.counts()?);
            pace = worker.pace;
        }
        report.ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok((report, pace))
    }

    /// The indexes of a namespace or of all, with their counts, none where the head of the graph is damaged, and
    /// whether their images fit into memory.
    fn indexes(&self, namespace: Option<&Namespace>) -> Result<Vec<(IndexId, Option<Counts>, bool)>> {
        self.read(|published, _| {
            let rows = published.snapshot();
            let mut all = Vec::new();
            for (name, row) in rows.namespaces()? {
                let wanted = namespace.is_none_or(|namespace| namespace.as_str() == name);
                if row.dropping || !wanted {
                    continue;
                }
                for (index, head) in rows.slot_heads(Some(NsId(row.number)))? {
                    let counts = match rows.graph_head(index) {
                        Ok(graph) => Some(Counts::of(&head, graph.as_ref())),
                        Err(Error::Corrupted { .. }) => None,
                        Err(other) => return Err(other),
                    };
                    let fits = published.has_room_for(&head, published.dim(index.space)?);
                    all.push((index, counts, fits));
                }
            }
            Ok(all)
        })
    }

    /// Writes a step of the upkeep of a graph; false when the index has changed under it.
    fn write_edit(&self, edit: &Edit, rule: RuleId, run: RunId) -> Result<bool> {
        self.inner.run_alone(|session| {
            let context = session.context(edit.index.ns, Some(run));
            match session.ledger.derive(&context, edit, rule)? {
                Written::Done(linked) => {
                    session.linked.insert(edit.index, linked);
                    Ok(true)
                }
                Written::Stale => Ok(false),
            }
        })
    }

    /// Unlinks all that is dead, so that no code of it is copied.
    pub(super) fn repair_all(&self) -> Result<()> {
        if !self.inner.current.read().snapshot().has_dead_slots()? {
            return Ok(());
        }
        let options = MaintainOptions::live();
        let run = RunId::from_bytes(self.inner.ids.next(self.inner.clock.now()));
        self.run_pass(Pass::Repair, &options, run, Pace::of(&options)).map(|_| ())
    }

    /// Drops the indexes of a namespace, or of all, and builds them anew from the memories and their vectors: codes,
    /// slots and graphs. Heals what is damaged there. Gives the number of vectors.
    ///
    /// # Errors
    /// `Corrupted` when a memory or a vector is damaged; `Retry`, `Unavailable`, `ReadOnly`, `Closed`.
    pub fn reindex(&self, namespace: Option<&Namespace>) -> Result<u64> {
        self.inner.check_open()?;
        let _one = self.inner.upkeep.lock();
        let run = RunId::from_bytes(self.inner.ids.next(self.inner.clock.now()));
        let mut rows = 0;
        for index in
            self.inner.current.read().snapshot().indexes_by_memory(namespace.map(Namespace::as_str))?
        {
            rows += u64::from(self.inner.run_alone(|session| {
                session.reset.insert(index);
                let context = session.context(index.ns, Some(run));
                session.ledger.rebuild_index(&context, index)
            })?);
        }
        let options = MaintainOptions { namespace: namespace.cloned(), ..MaintainOptions::live() };
        self.run_pass(Pass::Index, &options, run, Pace::of(&options))?;
        Ok(rows)
    }

    /// Helps with the indexes that are past their bounds, after a write of so many rows. The write itself stands
    /// already: what goes wrong here is no error of it.
    pub(super) fn relieve(&self, rows: usize) {
        let pressed = self.inner.pressed.lock().pop_first();
        let Some(index) = pressed else { return };
        // Maintenance is at work, and does more than this.
        let Some(_one) = self.inner.upkeep.try_lock() else { return };
        if let Err(why) = self.help(index, rows) {
            tracing::warn!(?index, %why, "a writer could not help with an index that is past its bounds");
        }
    }

    fn help(&self, index: IndexId, rows: usize) -> Result<()> {
        let published = self.inner.current.read();
        let counts = Counts::read(&**published.snapshot(), index)?;
        let head = published.snapshot().slot_head(index)?;
        if !published.has_room_for(&head, published.dim(index.space)?) {
            return Ok(());
        }
        let run = RunId::from_bytes(self.inner.ids.next(self.inner.clock.now()));
        let edit = match Regimes::of(&self.inner).need(counts) {
            Need::Nothing => None,
            Need::Drop => upkeep::unlink_all(&published, index)?,
            Need::Link(_) => {
                let mut crew = Crew::new(if rows >= HELP_BY_ALL { cores() } else { 1 });
                upkeep::link(&published, index, HELP_ROWS.max(rows * HELP_PER_ROW), &mut crew)?
            }
        };
        if let Some(edit) = edit {
            self.write_edit(&edit, Pass::Index.rule(), run)?;
        }
        Ok(())
    }
}

impl Inner {
    /// Notes which of the indexes that a commit wrote to are past their bounds.
    pub(super) fn note_pressed(&self, written: impl Iterator<Item = IndexId>) {
        let (current, regimes) = (self.current.read(), Regimes::of(self));
        for index in written {
            let counts = Counts::read(&**current.snapshot(), index);
            if counts.is_ok_and(|counts| regimes.is_pressed(counts)) {
                self.pressed.lock().insert(index);
            }
        }
    }
}
