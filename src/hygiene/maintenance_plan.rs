//! A plan of a pass that can be kept, shown and carried out, and how far it is.

use crate::error::{Error, Result, sound};
use crate::hygiene::carry::{Carried, Cursor, Done, carry_out};
use crate::hygiene::pass::{Applied, Job, Slice, Step, StepInput};
use crate::hygiene::plan::Plan;
use crate::hygiene::told::{Outcome, PassDetails, PassReport};
use crate::ledger::Context;
use crate::model::{Actor, MemoryId, NamespaceName, Pass, RuleId, RunId, Time};
use crate::policy::PolicyVersion;
use crate::store::control::PassRow;
use crate::store::{NsId, Rows, Snapshot};

/// Instants that came without a write, applied at the head of each slice.
const SETTLE_PER_SLICE: usize = 64;

/// What a pass would do to a namespace, planned on one state. [`Namespace::carry_out`](crate::Namespace::carry_out) does it: each row is
/// left alone that has changed since.
#[derive(Clone, Debug)]
pub struct MaintenancePlan {
    pub(crate) id: RunId,
    pub(crate) run: RunId,
    pub(crate) pass: Pass,
    pub(crate) namespace: NamespaceName,
    pub(crate) ns: NsId,
    /// The document in effect, with the overrides of the call.
    pub(crate) policy: PolicyVersion,
    /// Hash of the stored document that these are laid over.
    pub(crate) base: [u8; 8],
    pub(crate) created_at: Time,
    pub(crate) expires_at: Time,
    pub(crate) max_rows: usize,
    /// Whether a run without anything to do is written down where none was before.
    pub(crate) notes_first_look: bool,
    pub(crate) latest_happened_at: bool,
    pub(crate) plan: Plan,
    /// Rows that were looked at.
    pub(crate) scanned: u64,
    pub(crate) details: PassDetails,
    /// Rows that could not be read.
    pub(crate) damaged: u64,
    /// Rows of the whole plan, what the destruction budget cut off included.
    pub(crate) rows: u64,
    /// Visible rows that it may remove or supersede.
    pub(crate) destroy: u64,
    /// Whether the next call may go on with it, having asked for the same.
    pub(crate) goes_on: bool,
    /// Where an earlier call was cut off.
    pub(crate) resumed: Option<PassRow>,
}

impl MaintenancePlan {
    /// Its id.
    ///
    /// ```
    /// use oubliette::maintain::{MaintainOptions, Pass};
    /// # use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// # for apps in [4, 7] {
    /// #     team.add(Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile))?;
    /// # }
    /// let plan = team.plan(&MaintainOptions::live().passes([Pass::Collapse]))?;
    /// let options = MaintainOptions::live().passes([Pass::Collapse]);
    /// assert_ne!(plan.id(), team.plan(&options)?.id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn id(&self) -> RunId {
        self.id
    }

    /// The run that its changes will belong to.
    ///
    /// ```
    /// use oubliette::maintain::{MaintainOptions, Pass};
    /// # use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// # for apps in [4, 7] {
    /// #     team.add(Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile))?;
    /// # }
    /// let plan = team.plan(&MaintainOptions::live().passes([Pass::Collapse]))?;
    /// let options = MaintainOptions::live().passes([Pass::Collapse]);
    /// assert_eq!(team.carry_out(&plan, &options)?.run, Some(plan.run()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run(&self) -> RunId {
        self.run
    }

    /// The pass that made it.
    ///
    /// ```
    /// use oubliette::maintain::{MaintainOptions, Pass};
    /// # use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// # for apps in [4, 7] {
    /// #     team.add(Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile))?;
    /// # }
    /// let plan = team.plan(&MaintainOptions::live().passes([Pass::Collapse]))?;
    /// assert_eq!(plan.pass(), Pass::Collapse);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pass(&self) -> Pass {
        self.pass
    }

    /// The namespace that it is about.
    ///
    /// ```
    /// use oubliette::maintain::{MaintainOptions, Pass};
    /// # use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// # for apps in [4, 7] {
    /// #     team.add(Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile))?;
    /// # }
    /// let plan = team.plan(&MaintainOptions::live().passes([Pass::Collapse]))?;
    /// assert_eq!(plan.namespace(), team.name());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn namespace(&self) -> &NamespaceName {
        &self.namespace
    }

    /// Number and hash of the policy that it was made under, with the overrides of the call.
    ///
    /// ```
    /// use oubliette::maintain::{MaintainOptions, Pass};
    /// # use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// # for apps in [4, 7] {
    /// #     team.add(Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile))?;
    /// # }
    /// let plan = team.plan(&MaintainOptions::live().passes([Pass::Collapse]))?;
    /// assert_eq!(plan.policy().number, 0); // No policy was stored yet.
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn policy(&self) -> PolicyVersion {
        self.policy
    }

    /// When it was made.
    ///
    /// ```
    /// use oubliette::maintain::{MaintainOptions, Pass};
    /// # use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// # for apps in [4, 7] {
    /// #     team.add(Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile))?;
    /// # }
    /// let plan = team.plan(&MaintainOptions::live().passes([Pass::Collapse]))?;
    /// assert!(plan.created_at() < plan.expires_at());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn created_at(&self) -> Time {
        self.created_at
    }

    /// From when on it is no longer carried out.
    ///
    /// ```
    /// use oubliette::maintain::{MaintainOptions, Pass};
    /// # use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// # for apps in [4, 7] {
    /// #     team.add(Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile))?;
    /// # }
    /// let plan = team.plan(&MaintainOptions::live().passes([Pass::Collapse]))?;
    /// assert_eq!(plan.expires_at(), plan.created_at().plus("24h".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expires_at(&self) -> Time {
        self.expires_at
    }

    /// Rows that it is about.
    ///
    /// ```
    /// use oubliette::maintain::{MaintainOptions, Pass};
    /// # use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// # for apps in [4, 7] {
    /// #     team.add(Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile))?;
    /// # }
    /// let plan = team.plan(&MaintainOptions::live().passes([Pass::Collapse]))?;
    /// assert_eq!(plan.planned(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn planned(&self) -> u64 {
        self.rows
    }

    /// Its report, as a dry run shows it.
    ///
    /// ```
    /// use oubliette::maintain::{MaintainOptions, Pass};
    /// # use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// # for apps in [4, 7] {
    /// #     team.add(Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile))?;
    /// # }
    /// let plan = team.plan(&MaintainOptions::live().passes([Pass::Collapse]))?;
    /// let report = plan.report();
    /// assert_eq!((report.pass, report.planned, report.changed), (Pass::Collapse, 1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn report(&self) -> PassReport {
        let mut report = PassReport::new(self.pass);
        self.tell(&mut report, &Progress::of(self), true);
        report
    }

    /// Adds it to the report of a dry run over several namespaces.
    pub(crate) fn tell_dry(&self, report: &mut PassReport) {
        self.tell(report, &Progress::of(self), true);
    }

    /// Visible rows that a run may still remove or supersede when the plan is carried out.
    pub(crate) fn would_leave(&self) -> u64 {
        self.destroy.saturating_sub(self.plan.cost())
    }

    /// Whether there is nothing in it, nor a run to go on with.
    fn does_nothing(&self) -> bool {
        self.plan.actions.is_empty() && self.resumed.is_none()
    }

    /// Whether nothing is to be done, nor anything to be written about it.
    fn is_idle(&self, rows: &Snapshot) -> Result<bool> {
        let notes = self.notes_first_look && self.scanned > 0;
        Ok(self.does_nothing() && !(notes && rows.pass(self.ns, self.pass.as_str())?.is_none()))
    }

    fn tell(&self, report: &mut PassReport, progress: &Progress, dry_run: bool) {
        let Progress { done, cursor, .. } = progress;
        report.planned += progress.planned;
        report.scanned += progress.scanned;
        report.changed += done.removed + done.superseded + done.mended;
        report.tombstoned += done.removed;
        report.skipped += done.skipped;
        report.damaged += self.damaged;
        // What the destruction budget cut off is left too.
        let cut = self.rows.saturating_sub(self.plan.rows());
        report.left += cursor.left(&self.plan) + cut;
        report.cut += cut;
        report.resumed |= self.resumed.is_some();
        report.budget_exhausted |= self.plan.budget_exhausted;
        // Where nothing is to be done there is no run that could be taken back.
        report.run = Some(self.run).filter(|_| !dry_run && !self.does_nothing()).or(report.run);
        let mut details = progress.details.clone();
        let (run_id, budget_exhausted) = (report.run, report.budget_exhausted);
        details.settle(&Outcome { done: *done, run_id, dry_run, budget_exhausted });
        report.report.add(details);
    }

    pub(crate) fn refused(&self, why: &str) -> Error {
        Error::Conflict { what: format!("plan {}", self.id), why: why.to_owned() }
    }

    /// Settles what came due, if the plan may still be carried out. Gives the context of its changes.
    fn open(&self, slice: &mut Slice<'_, '_, '_>) -> Result<Context> {
        if slice.context.policy_hash != self.base {
            return Err(self.refused("policy_changed: another policy is in force than it was made under"));
        }
        let there = slice.ledger.tx.namespace(self.namespace.as_str())?;
        if there.is_none_or(|row| NsId(row.number) != self.ns) {
            return Err(self.refused("its namespace was dropped"));
        }
        let own = (Actor::Sweeper, self.policy.hash.0);
        let context = Context { actor: own.0, policy_hash: own.1, ..slice.context.clone() };
        slice.ledger.settle(&context, SETTLE_PER_SLICE, |_, _| Ok(false))?;
        Ok(context)
    }

    /// Writes how far the run is, in the transaction of the slice.
    fn close(&self, slice: &mut Slice<'_, '_, '_>, progress: &Progress, now: Time) -> Result<PassRow> {
        let tx = &mut *slice.ledger.tx;
        let run = sound(tx.run(self.ns, self.run))?.flatten();
        let started_ms = run.map_or(now.as_millis(), |run| run.started_ms);
        let row = progress.row(self, started_ms, now);
        tx.put_pass(self.ns, self.pass.as_str(), &row)?;
        Ok(row)
    }
}

/// How far a plan is carried out, earlier calls of the same run included.
#[derive(Clone)]
struct Progress {
    planned: u64,
    scanned: u64,
    /// What the run found when it began.
    details: PassDetails,
    done: Done,
    /// What earlier calls of the same run had done.
    before: Done,
    cursor: Cursor,
    /// The canonical row of a group of which an earlier call has removed a row.
    counted: Option<MemoryId>,
    /// What the last slice has left in the file.
    wrote: Option<PassRow>,
}

impl Progress {
    fn of(plan: &MaintenancePlan) -> Self {
        let mut progress = Progress {
            planned: plan.rows,
            scanned: plan.scanned,
            details: plan.details.clone(),
            done: Done::default(),
            before: Done::default(),
            cursor: Cursor::default(),
            counted: None,
            wrote: None,
        };
        let Some(row) = &plan.resumed else { return progress };
        // What the run found when it began is what it tells in the end.
        let kept = |name: &str| row.report.iter().find(|(at, _)| at == name).map(|(_, count)| *count);
        for (name, count) in progress.details.numbers() {
            *count = kept(name).unwrap_or(*count);
        }
        progress.planned = kept("plan.rows").unwrap_or(progress.planned);
        progress.scanned = kept("plan.scanned").unwrap_or(progress.scanned);
        for (name, count) in progress.done.numbers() {
            *count = kept(name).unwrap_or(0);
        }
        progress.before = progress.done;
        progress.counted = row.cut;
        progress
    }

    /// Visible rows that this call has removed or superseded.
    fn destroyed(&self) -> u64 {
        self.done.destroyed - self.before.destroyed
    }

    fn row(&self, plan: &MaintenancePlan, started_ms: i64, now: Time) -> PassRow {
        let mut done = self.done;
        let done = done
            .numbers()
            .into_iter()
            .map(|(name, count)| (name, *count))
            .chain([("plan.rows", self.planned), ("plan.scanned", self.scanned)]);
        let mut details = self.details.clone();
        let budget_exhausted = plan.plan.budget_exhausted;
        details.settle(&Outcome { done: self.done, run_id: None, dry_run: false, budget_exhausted });
        let found = details.numbers().into_iter().map(|(name, count)| (name, *count));
        let cut = self.cursor.cut(&plan.plan);
        PassRow {
            run: plan.run,
            started_ms,
            ended_ms: now.as_millis(),
            policy_hash: plan.policy.hash.0,
            open: plan.goes_on && !self.cursor.is_done(&plan.plan),
            cut,
            budget_left: plan.destroy.saturating_sub(self.destroyed()),
            report: found.chain(done).map(|(name, count)| (name.to_owned(), count)).collect(),
        }
    }
}

/// A plan that is being carried out.
pub(crate) struct CarryingOut<'p> {
    plan: &'p MaintenancePlan,
    progress: Progress,
    /// Where the slice gets to that is being written.
    next: Option<Progress>,
}

impl<'p> CarryingOut<'p> {
    pub(crate) fn new(plan: &'p MaintenancePlan) -> Self {
        CarryingOut { plan, progress: Progress::of(plan), next: None }
    }

    /// Visible rows that the call may still remove or supersede.
    pub(crate) fn may_destroy(&self) -> u64 {
        self.plan.destroy.saturating_sub(self.progress.destroyed())
    }
}

impl Job for CarryingOut<'_> {
    fn next<'s>(&'s mut self, input: StepInput<'s>) -> Result<Option<Step<'s>>> {
        let (plan, progress, written) = (self.plan, &self.progress, &mut self.next);
        let is_over = match progress.wrote {
            Some(_) => progress.cursor.is_done(&plan.plan),
            None => plan.is_idle(input.published.snapshot())?,
        };
        if is_over {
            return Ok(None);
        }
        let rows = input.rows_left.min(plan.max_rows);
        Ok(Some(Box::new(move |slice| {
            let context = plan.open(slice)?;
            // Slices that were not synced are lost where the storage failed meanwhile under somebody else: then the run
            // begins again after what is left of it.
            let stored = slice.ledger.tx.pass(plan.ns, plan.pass.as_str())?;
            if progress.wrote.is_some() && progress.wrote != stored {
                return Err(Error::Retry {
                    why: "slices of the pass since the last sync are lost".to_owned(),
                });
            }
            let carried = Carried {
                plan: &plan.plan,
                rule: RuleId::of_pass(plan.pass),
                latest_happened_at: plan.latest_happened_at,
                counted: progress.counted,
            };
            let (cursor, done) =
                carry_out(slice.ledger, &context, carried, progress.cursor, rows, slice.enough)?;
            let mut next = Progress { cursor, counted: None, ..progress.clone() };
            next.done += done;
            next.wrote = Some(plan.close(slice, &next, context.now)?);
            *written = Some(next);
            let count = done.removed + done.superseded + done.mended;
            Ok(Applied { rows: done.rows, count, ..Applied::default() })
        })))
    }

    fn applied(&mut self, _: Applied) {
        if let Some(next) = self.next.take() {
            self.progress = next;
        }
    }

    fn tell(&self, _: &Snapshot, report: &mut PassReport) -> Result<()> {
        self.plan.tell(report, &self.progress, false);
        Ok(())
    }

    fn keeps_progress(&self) -> bool {
        true
    }
}
