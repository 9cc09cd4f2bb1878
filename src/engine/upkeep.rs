//! The passes `index` and `repair`, and the help of writers who are past a bound.
//!
//! A pass works in slices. Each is worked out on the published state, beside readers and writers, and written in one
//! short commit. While others write, slices are small, so that nobody waits for one for long; alone they grow.

use std::collections::BTreeSet;

use crate::engine::database::{Database, Inner};
use crate::engine::maintain::{MaintainOptions, Pass, PassReport, Sweep};
use crate::engine::pace::{Pace, STALE_MAX, outpaced};
use crate::error::{Error, ErrorKind, Result};
use crate::hnsw::Crew;
use crate::index::text::upkeep as text_upkeep;
use crate::index::upkeep::{self, Counts, Need, Regimes, Work};
use crate::index::{Edit, Written};
use crate::ledger::Afresh;
use crate::limits::SLICE_ROWS_MAX;
use crate::model::{NamespaceName, RuleId, RunId};
use crate::store::{IndexId, NsId, Read, Rows, TextId};

/// Rows that a writer links at least when it helps: so it is one write in so many that waits.
const HELP_ROWS: usize = 128;
/// Rows that a writer links for each of its own.
const HELP_PER_ROW: usize = 4;
/// Steps that the repair of one index takes, about.
const REPAIR_STEPS_MAX: usize = 1_024;
/// Rows of a write that is helped by all cores.
const HELP_BY_ALL: usize = 1_024;

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

/// One pass over one index.
struct Worker<'d> {
    database: &'d Database,
    index: IndexId,
    rule: RuleId,
    run: RunId,
    crew: Crew,
    pace: &'d mut Pace,
}

impl Worker<'_> {
    fn inner(&self) -> &Inner {
        &self.database.inner
    }

    fn counts(&self) -> Result<Counts> {
        Counts::read(&**self.inner().state()?.snapshot(), self.index)
    }

    /// Writes a step and publishes it; false when the index has changed under it.
    fn write(&mut self, edit: &Edit) -> Result<bool> {
        let done = self.database.write_edit(edit, self.rule, self.run)?;
        if done {
            let commit = self.inner().state()?.commit();
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
            let commit = self.inner().state()?.commit();
            // What was worked on for less time has changed less often.
            let rows = (self.pace.rows(commit) >> stale).max(1);
            let Some(edit) = step(self, rows)? else { return Ok((changed, true)) };
            if self.write(&edit)? {
                (changed, stale) = (changed + edit.rows(), 0);
            } else {
                stale += 1;
                if stale > STALE_MAX {
                    return Err(outpaced());
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
                let (_, whole) =
                    self.steps(u64::MAX, |worker, _| upkeep::unlink_all(&*worker.inner().state()?, index))?;
                if whole {
                    report.changed += u64::from(before.in_graph);
                    report.note("dropped", 1);
                }
                return Ok(());
            }
            Need::Link(waiting) => {
                report.note("built", u64::from(!before.has_graph));
                let (changed, whole) = self.steps(u64::from(waiting), |worker, rows| {
                    upkeep::link(&*worker.inner().state()?, index, rows, &mut worker.crew)
                })?;
                report.changed += changed;
                if !whole {
                    return Ok(());
                }
            }
            Need::Nothing if !before.has_graph => return Ok(()),
            Need::Nothing => {}
        }
        self.finish(false)
    }

    /// The pass `repair` on one index.
    fn repair(&mut self, report: &mut PassReport) -> Result<()> {
        let (index, mut work) = (self.index, Work::default());
        let dead = u64::from(self.counts()?.dead);
        let (changed, whole) = self.steps(dead, |worker, rows| {
            // Each step looks at the whole graph once; there are only so many steps, however busy others are.
            let published = worker.inner().state()?;
            let floor = published.snapshot().slot_head(index)?.len as usize / REPAIR_STEPS_MAX;
            let rows = rows.max(floor.min(worker.pace.rows_left()));
            upkeep::repair(&published, index, rows, &mut work, &mut worker.crew)
        })?;
        report.note("mended", work.mended());
        report.changed += changed;
        if whole && self.counts()?.has_graph {
            self.finish(changed > 0)?;
        }
        Ok(())
    }

    /// Measures the recall again where it no longer holds.
    fn finish(&mut self, repaired: bool) -> Result<()> {
        let index = self.index;
        let mut measured = false;
        self.steps(u64::MAX, |worker, _| {
            if measured {
                return Ok(None);
            }
            measured = true;
            upkeep::calibrate(&*worker.inner().state()?, index, repaired)
        })?;
        Ok(())
    }
}

impl Database {
    /// The passes `index` and `repair`.
    pub(super) fn keep_up(
        &self,
        pass: Pass,
        options: &MaintainOptions,
        sweep: &mut Sweep,
        report: &mut PassReport,
    ) -> Result<()> {
        let regimes = Regimes::of(&self.inner);
        let work = |counts: Counts| match (pass, regimes.need(counts)) {
            (Pass::Repair, _) => u64::from(counts.dead),
            (_, Need::Link(rows)) => u64::from(rows),
            (_, Need::Drop) => u64::from(counts.in_graph),
            (_, Need::Nothing) => 0,
        };
        for (index, counts, fits) in self.vector_indexes(options.namespace.as_ref())? {
            let Some(counts) = counts else {
                report.skipped += 1;
                continue;
            };
            report.scanned += u64::from(counts.live);
            report.planned += work(counts);
            report.note("partitions", 1);
            if work(counts) > 0 && !fits {
                (report.skipped, report.left) = (report.skipped + 1, report.left + work(counts));
                continue;
            }
            let pace = &mut sweep.pace;
            if options.dry_run || !(counts.has_graph || work(counts) > 0) || pace.is_over() {
                report.left += work(counts);
                continue;
            }
            let crew = Crew::new(options.threads.unwrap_or_else(cores));
            let mut worker = Worker { database: self, index, rule: pass.rule(), run: sweep.run, crew, pace };
            let done = match pass {
                Pass::Repair => worker.repair(report),
                _ => worker.link(&regimes, report),
            };
            match done {
                Err(why) if why.kind() == ErrorKind::Corrupted => {
                    tracing::warn!(%why, "a partition is left out of maintenance");
                    report.skipped += 1;
                }
                other => other?,
            }
            report.left += work(worker.counts()?);
        }
        Ok(())
    }

    /// The indexes of a namespace or of all, with their counts, none where the head of the graph is damaged, and
    /// whether their images fit into memory.
    fn vector_indexes(
        &self,
        namespace: Option<&NamespaceName>,
    ) -> Result<Vec<(IndexId, Option<Counts>, bool)>> {
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
        if !self.inner.state()?.snapshot().has_dead_slots()? {
            return Ok(());
        }
        self.run_alone_pass(Pass::Repair, &MaintainOptions::live())
    }

    /// Drops the indexes of a namespace, or of all, and builds them anew from the memories and their vectors: codes,
    /// slots and graphs, and the full-text indexes from the texts, declared
    /// indexes from the metadata, counters from the rows. Heals what is damaged there. Rows by which memories, messages and
    /// what is told of them are found are put back where they are missing, and go where nothing asks for them. Gives the number of vectors.
    ///
    /// A memory that is damaged stands in no index of what can't be read of it; one whose vector is damaged waits for a
    /// vector again. Rows of the journal, of passes and of messages that can't be read go.
    ///
    /// # Errors
    /// `Retry`, `Unavailable`, `ReadOnly`, `Closed`.
    pub fn reindex(&self, namespace: Option<&NamespaceName>) -> Result<u64> {
        self.inner.check_open()?;
        let _one = self.inner.upkeep.lock();
        let run = RunId::from_bytes(self.inner.ids.next(self.inner.clock.now()));
        let mut rows = 0;
        for (name, ns) in self.tenants(namespace)? {
            self.inner.run_alone(|session| {
                if !session.stands(&name, ns)? {
                    return Ok(());
                }
                let context = session.context(ns, Some(run));
                session.ledger.mend(&context)
            })?;
            self.derive_afresh(&name, ns, run)?;
            let indexes = self.inner.state()?.snapshot().indexes_of(ns)?;
            for index in indexes {
                rows += u64::from(self.inner.run_alone(|session| {
                    if !session.stands(&name, ns)? {
                        return Ok(0);
                    }
                    session.reset.insert(index);
                    let context = session.context(ns, Some(run));
                    session.ledger.rebuild_index(&context, index)
                })?);
            }
        }
        self.rebuild_texts(namespace, run)?;
        self.void_declared(namespace, run)?;
        let options = MaintainOptions { namespace: namespace.cloned(), ..MaintainOptions::live() };
        self.run_alone_pass(Pass::Index, &options)?;
        self.inner.run_alone(|session| session.ledger.tx.count_size())?;
        Ok(rows)
    }

    /// Puts derived rows back that are missing and takes those away that nothing asks for, in slices.
    fn derive_afresh(&self, name: &NamespaceName, ns: NsId, run: RunId) -> Result<()> {
        let (mut at, mut whole) = (Afresh::default(), false);
        while !whole {
            (at, whole) = self.inner.run_alone(|session| {
                let mut next = at.clone();
                if !session.stands(name, ns)? {
                    return Ok((next, true));
                }
                let context = session.context(ns, Some(run));
                let whole = session.ledger.derive_afresh(&context, &mut next, SLICE_ROWS_MAX)?;
                Ok((next, whole))
            })?;
        }
        Ok(())
    }

    /// One pass as a run of its own; its caller holds the lock.
    fn run_alone_pass(&self, pass: Pass, options: &MaintainOptions) -> Result<()> {
        let run = RunId::from_bytes(self.inner.ids.next(self.inner.clock.now()));
        let mut sweep = Sweep::new(run, options);
        self.run_pass(pass, options, &mut sweep).map(|_| ())
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
        if let Some(text) = TextId::at(index) {
            let run = RunId::from_bytes(self.inner.ids.next(self.inner.clock.now()));
            return self.help_text(text, run);
        }
        let published = self.inner.state()?;
        let counts = Counts::read(&**published.snapshot(), index)?;
        let head = published.snapshot().readable_slot_head(index)?;
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
    pub(super) fn note_pressed(&self, written: BTreeSet<IndexId>) {
        let (Ok(current), regimes) = (self.state(), Regimes::of(self)) else { return };
        let rows = &**current.snapshot();
        for index in written {
            let is_pressed = match TextId::at(index) {
                Some(text) => rows
                    .text_head(text)
                    .is_ok_and(|head| head.is_some_and(|head| text_upkeep::is_pressed(&head))),
                None => Counts::read(rows, index).is_ok_and(|counts| regimes.is_pressed(counts)),
            };
            if is_pressed {
                self.pressed.lock().insert(index);
            }
        }
    }
}
