//! Passes over memories: a plan on the published state, carried out in short transactions that each look again at what
//! the plan assumed.

use std::cell::Cell;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::engine::database::Database;
use crate::engine::maintain::{MaintainOptions, Pass, PassReport, Sweep};
use crate::engine::session::Session;
use crate::error::{Error, Result};
use crate::hygiene::{self, Cursor, Done, Field, Planned, Sight, carry_out};
use crate::ledger::{Change, Context, Entry};
use crate::model::{Actor, MemoryId, NamespaceName, RunId, Time};
use crate::policy::PolicyVersion;
use crate::store::control::{CounterSort, PassRow, RunRow, RunState, TOTAL};
use crate::store::{Durability, NsId, Rows};

/// Instants that came without a write, applied at the head of each slice.
const SETTLE_PER_SLICE: usize = 64;
/// Slices from one sync to the next. Nobody was told of those between, and a crash takes them with their cursor, so the
/// run goes on before them; a commit of somebody else syncs them as well. They cost a sync each otherwise, which is more
/// than their work, and the file can't use freed pages again before one.
const SLICES_PER_SYNC: u32 = 16;
/// Of the time that a slice may work, the part after which it ends for a writer who waits; and how many times that time it
/// may work for while nobody does.
const PART_WAITED_FOR: u32 = 8;
const TIMES_ALONE: u32 = 8;

/// What a pass would do to a namespace, planned on one state. [`Database::carry_out`] does it: each row is
/// left alone that has changed since.
#[derive(Clone, Debug)]
pub struct MaintenancePlan {
    id: RunId,
    run: RunId,
    pass: Pass,
    namespace: NamespaceName,
    ns: NsId,
    /// The document in effect, with the overrides of the call.
    policy: PolicyVersion,
    /// Hash of the stored document that these are laid over.
    base: [u8; 8],
    created_at: Time,
    expires_at: Time,
    max_ms: u64,
    max_rows: usize,
    latest_happened_at: bool,
    planned: Planned,
    /// Rows that could not be read.
    damaged: u64,
    /// Rows of the whole plan, what the destruction budget cut off included.
    rows: u64,
    destroy: u64,
    /// Whether the next call may go on with it, having asked for the same.
    goes_on: bool,
    resumed: Option<PassRow>,
}

impl MaintenancePlan {
    /// Its id.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// The run that its changes will belong to.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// The pass that made it.
    pub fn pass(&self) -> Pass {
        self.pass
    }

    /// The namespace that it is about.
    pub fn namespace(&self) -> &NamespaceName {
        &self.namespace
    }

    /// Number and hash of the policy that it was made under, with the overrides of the call.
    pub fn policy(&self) -> PolicyVersion {
        self.policy
    }

    /// When it was made.
    pub fn created_at(&self) -> Time {
        self.created_at
    }

    /// From when on it is no longer carried out.
    pub fn expires_at(&self) -> Time {
        self.expires_at
    }

    /// Rows that it is about.
    pub fn planned(&self) -> u64 {
        self.rows
    }

    /// Its report, as a dry run shows it.
    pub fn report(&self) -> PassReport {
        let mut report = PassReport::new(self.pass);
        self.tell(&mut report, &Progress::of(self), true);
        report
    }

    /// Whether there is nothing in it, nor a run to go on with.
    fn does_nothing(&self) -> bool {
        self.planned.plan.actions.is_empty() && self.resumed.is_none()
    }

    /// Adds it to the report of a pass over several namespaces.
    fn tell(&self, report: &mut PassReport, progress: &Progress, dry_run: bool) {
        let Progress { done, cursor, .. } = progress;
        report.planned += progress.planned;
        report.scanned += progress.scanned;
        report.changed += done.removed + done.superseded + done.mended;
        report.tombstoned += done.removed;
        report.skipped += done.skipped;
        report.damaged += self.damaged;
        report.left += cursor.left(&self.planned.plan);
        report.resumed |= self.resumed.is_some();
        report.budget_exhausted |= self.planned.plan.budget_exhausted;
        // Where nothing is to be done there is no run that could be taken back.
        report.run = Some(self.run).filter(|_| !dry_run && !self.does_nothing()).or(report.run);
        let mut own = self.planned.report.clone();
        for (name, count) in &progress.counts {
            own.insert(name.clone(), json!(count));
        }
        own.extend(progress.told(self.pass).map(|(name, count)| (name.to_owned(), json!(count))));
        // Where a report has these they are the same for every pass.
        for (name, value) in [
            ("dryRun", json!(dry_run)),
            ("run_id", json!(report.run)),
            ("budget_exhausted", json!(report.budget_exhausted)),
        ] {
            if own.contains_key(name) {
                own.insert(name.to_owned(), value);
            }
        }
        for (name, value) in own {
            add_up(&mut report.report, name, value);
        }
    }
}

/// Adds a member of one namespace's report to those of the namespaces before it.
fn add_up(report: &mut Map<String, Value>, name: String, value: Value) {
    match (report.get_mut(&name), value) {
        (Some(Value::Number(sum)), Value::Number(more)) => {
            if let (Some(sum_u64), Some(more)) = (sum.as_u64(), more.as_u64()) {
                *sum = sum_u64.saturating_add(more).into();
            }
        }
        (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
        (_, value) => drop(report.insert(name, value)),
    }
}

/// How far a plan is carried out, earlier calls of the same run included.
struct Progress {
    planned: u64,
    scanned: u64,
    counts: Vec<(String, u64)>,
    done: Done,
    /// What earlier calls of the same run had done.
    before: Done,
    cursor: Cursor,
}

/// The names under which a run that was cut off keeps what it did.
const DONE: [&str; 7] = [
    "done.rows",
    "done.groups",
    "done.removed",
    "done.superseded",
    "done.mended",
    "done.transferred",
    "done.skipped",
];

/// The numbers of a report.
fn counts_of(report: &Map<String, Value>) -> Vec<(String, u64)> {
    report.iter().filter_map(|(name, value)| Some((name.clone(), value.as_u64()?))).collect()
}

impl Progress {
    fn of(plan: &MaintenancePlan) -> Self {
        let mut progress = Progress {
            planned: plan.rows,
            scanned: plan.planned.scanned,
            counts: counts_of(&plan.planned.report),
            done: Done::default(),
            before: Done::default(),
            cursor: Cursor::default(),
        };
        let Some(row) = &plan.resumed else { return progress };
        // What the run found when it began is what it tells in the end.
        let kept = |name: &str| row.report.iter().find(|(at, _)| at == name).map(|(_, count)| *count);
        for (name, count) in &mut progress.counts {
            *count = kept(name).unwrap_or(*count);
        }
        progress.planned = kept("plan.rows").unwrap_or(progress.planned);
        progress.scanned = kept("plan.scanned").unwrap_or(progress.scanned);
        let [rows, groups, removed, superseded, mended, transferred, skipped] =
            DONE.map(|name| kept(name).unwrap_or(0));
        progress.done = Done { rows, groups, removed, superseded, mended, transferred, skipped };
        progress.before = progress.done;
        progress
    }

    /// Rows that this call has removed or superseded.
    fn destroyed(&self) -> u64 {
        self.done.removed + self.done.superseded - self.before.removed - self.before.superseded
    }

    fn row(&self, plan: &MaintenancePlan, started_ms: i64, now: Time) -> PassRow {
        let Done { rows, groups, removed, superseded, mended, transferred, skipped } = self.done;
        let done = DONE.into_iter().zip([rows, groups, removed, superseded, mended, transferred, skipped]);
        let done = done.chain([("plan.rows", self.planned), ("plan.scanned", self.scanned)]);
        let told = self.told(plan.pass);
        let done = done.chain(told).map(|(name, count)| (name.to_owned(), count));
        let cut = self.cursor.cut(&plan.planned.plan);
        PassRow {
            run: *plan.run.as_bytes(),
            started_ms,
            ended_ms: now.as_millis(),
            policy_hash: plan.policy.hash.0,
            open: plan.goes_on && !self.cursor.is_done(&plan.planned.plan),
            cut: cut.map(|id| *id.as_bytes()),
            budget_left: plan.destroy.saturating_sub(self.destroyed()),
            report: self.counts.iter().cloned().chain(done).collect(),
        }
    }

    /// What was done, by the names of the pass's own report.
    fn told(&self, pass: Pass) -> impl Iterator<Item = (&'static str, u64)> {
        let totals = pass.planner().map(hygiene::Pass::totals).into_iter().flatten();
        let counts = [self.done.groups, self.done.removed, self.done.transferred];
        totals.zip(counts).filter_map(|(name, count)| Some((name?, count)))
    }
}

impl Database {
    /// Plans a pass over one namespace and changes nothing.
    ///
    /// # Errors
    /// `Invalid` for a pass without a plan (`limbo`, `index`, `repair`) and for options out of bounds; `NotFound` for a
    /// namespace that no write has made; `Corrupted`.
    pub fn plan(
        &self,
        pass: Pass,
        namespace: &NamespaceName,
        options: &MaintainOptions,
    ) -> Result<MaintenancePlan> {
        options.check()?;
        let run = RunId::from_bytes(self.inner.ids.next(self.inner.clock.now()));
        let mut sweep = Sweep::new(run, options);
        let Some((name, ns)) = self.tenants(Some(namespace))?.pop() else {
            return Err(Error::NotFound { what: "namespace", name: namespace.to_string() });
        };
        let plan = self.plan_in(pass, (name, ns), options, &mut sweep)?;
        plan.ok_or_else(|| Error::Conflict {
            what: format!("plan {}", pass.as_str()),
            why: "its time was over before it was made".to_owned(),
        })
    }

    /// Carries a plan out. A row that has changed since, or is protected now, is left alone and counted as skipped.
    ///
    /// # Errors
    /// `Conflict` with `policy_changed` when another policy is in force than it was made under, and with `plan_expired`
    /// when it is older than a day: nothing is written. Else as [`Database::maintain`].
    pub fn carry_out(&self, plan: &MaintenancePlan, options: &MaintainOptions) -> Result<PassReport> {
        options.check()?;
        self.inner.check_open()?;
        let _one = self.inner.upkeep.lock();
        // A plan that a pass makes for itself is carried out at once, however long that takes.
        if self.inner.instant(&*self.inner.state()?) >= plan.expires_at {
            return Err(plan.refused("plan_expired: it was made too long ago"));
        }
        let (begun, mut report) = (Instant::now(), PassReport::new(plan.pass));
        let mut sweep = Sweep::new(plan.run, options);
        self.execute(plan, &mut sweep, &mut report)?;
        report.ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(report)
    }

    /// One pass over the memories of a namespace, or of all, one by one.
    pub(super) fn sweep_memories(
        &self,
        pass: Pass,
        options: &MaintainOptions,
        sweep: &mut Sweep,
        report: &mut PassReport,
    ) -> Result<()> {
        for tenant in self.tenants(options.namespace.as_ref())? {
            if sweep.pace.is_over() {
                break;
            }
            let Some(plan) = self.plan_in(pass, tenant, options, sweep)? else { break };
            if options.dry_run {
                plan.tell(report, &Progress::of(&plan), true);
            } else {
                self.execute(&plan, sweep, report)?;
            }
        }
        Ok(())
    }

    fn plan_in(
        &self,
        pass: Pass,
        (namespace, ns): (NamespaceName, NsId),
        options: &MaintainOptions,
        sweep: &mut Sweep,
    ) -> Result<Option<MaintenancePlan>> {
        let Some(planner) = pass.planner() else {
            let with: Vec<&str> =
                Pass::ALL.iter().filter(|pass| pass.planner().is_some()).map(|pass| pass.as_str()).collect();
            return Err(Error::invalid("pass", format!("must be one of {}", with.join(", ")), pass.as_str()));
        };
        let in_force = self.inner.in_force();
        let policy = options.effective(&in_force.policy);
        let version = PolicyVersion { number: in_force.number, hash: policy.hash() };
        let published = self.inner.state()?;
        let now = self.inner.instant(&published);
        let field = Field { ns, parts: None, now, damaged: Cell::new(0) };
        let asked = options.asked();
        let sight = Sight { published: &published, field: &field, policy: &policy, asked: &asked };
        let pace = &sweep.pace;
        let Some(mut planned) = planner.plan(sight, &mut |_| pace.is_over())? else { return Ok(None) };
        let open = published.snapshot().pass(ns, pass.as_str())?;
        let resumed = open.filter(|row| row.open && row.policy_hash == version.hash.0 && !options.dry_run);
        let resumed = resumed.filter(|_| asked.is_all());
        let destroy = match sweep.destroy.get(&ns) {
            Some(left) => *left,
            None => self.may_destroy(ns, options, &policy)?,
        };
        let destroy = resumed.as_ref().map_or(destroy, |row| destroy.min(row.budget_left));
        let rows = planned.plan.rows();
        planned.plan.cut(destroy);
        Ok(Some(MaintenancePlan {
            id: RunId::from_bytes(self.inner.ids.next(now)),
            run: resumed.as_ref().map_or(sweep.run, |row| RunId::from_bytes(row.run)),
            pass,
            namespace,
            ns,
            policy: version,
            base: in_force.hash,
            created_at: now,
            expires_at: now.plus(policy.gc.plan_ttl.into()),
            max_ms: u64::from(policy.plan.max_ms),
            max_rows: policy.plan.max_rows as usize,
            latest_happened_at: policy.collapse.merge_latest_happened_at,
            planned,
            damaged: field.damaged.get(),
            rows,
            destroy,
            goes_on: asked.is_all(),
            resumed,
        }))
    }

    /// Visible rows of a namespace that one sweep may remove or supersede.
    fn may_destroy(
        &self,
        ns: NsId,
        options: &MaintainOptions,
        policy: &crate::policy::Policy,
    ) -> Result<u64> {
        if let Some(most) = options.destroy_max {
            return Ok(most);
        }
        let published = self.inner.state()?;
        let live = published.snapshot().counter(ns, TOTAL, CounterSort::Live as u8, "")?;
        let share = policy.budget.share * live.rows.max(0) as f64;
        Ok(policy.budget.floor.max(share.floor() as u64))
    }

    /// Carries a plan out as far as the run may go.
    fn execute(&self, plan: &MaintenancePlan, sweep: &mut Sweep, report: &mut PassReport) -> Result<()> {
        let mut progress = Progress::of(plan);
        if self.is_idle(plan)? {
            sweep.destroy.insert(plan.ns, plan.destroy);
            plan.tell(report, &progress, false);
            return Ok(());
        }
        let mut spent = progress.done.rows;
        let mut counted = plan.resumed.as_ref().and_then(|row| row.cut).map(MemoryId::from_bytes);
        let mut wrote: Option<PassRow> = None;
        let (mut unsynced, mut last) = (0, 0);
        loop {
            // A commit of somebody else has synced all before it.
            unsynced = if self.inner.state()?.commit() == last { unsynced + 1 } else { 1 };
            let (begun, slice_time) = (Instant::now(), Duration::from_millis(plan.max_ms));
            let rows = sweep.pace.rows_left().min(plan.max_rows);
            let durability =
                if unsynced < SLICES_PER_SYNC { Durability::Batch } else { self.inner.durability };
            let (next, row) = self.inner.run_alone_as(durability, |session| {
                let context = plan.open(session)?;
                plan.check_kept(session, wrote.as_ref())?;
                let mut enough = || {
                    let worked = begun.elapsed();
                    worked >= slice_time * TIMES_ALONE
                        || (worked >= slice_time / PART_WAITED_FOR && self.inner.queue.is_waited_for())
                };
                let (cursor, done) = carry_out(
                    session.ledger,
                    &context,
                    (&plan.planned.plan, plan.pass.rule(), plan.latest_happened_at),
                    (progress.cursor, counted),
                    rows,
                    &mut enough,
                )?;
                let mut next = Progress { cursor, counts: progress.counts.clone(), ..progress };
                next.done += done;
                let row = plan.close(session, &context, &next)?;
                Ok((next, row))
            })?;
            (progress, wrote, counted) = (next, Some(row), None);
            unsynced %= SLICES_PER_SYNC;
            let commit = self.inner.state()?.commit();
            last = commit;
            sweep.pace.spend(progress.done.rows - spent, commit);
            spent = progress.done.rows;
            if progress.cursor.is_done(&plan.planned.plan) || sweep.pace.is_over() {
                break;
            }
        }
        if self.inner.durability != Durability::Batch {
            self.inner.sync()?;
        }
        sweep.destroy.insert(plan.ns, plan.destroy.saturating_sub(progress.destroyed()));
        plan.tell(report, &progress, false);
        Ok(())
    }

    /// Whether nothing is to be done, nor anything to be written about it: no run was cut off, and the histories of snapshots,
    /// which are reduced once by themselves, have been looked at before.
    fn is_idle(&self, plan: &MaintenancePlan) -> Result<bool> {
        let nothing = plan.does_nothing();
        if !nothing || plan.pass != Pass::Snapshots || plan.planned.scanned == 0 {
            return Ok(nothing);
        }
        let published = self.inner.state()?;
        Ok(published.snapshot().pass(plan.ns, plan.pass.as_str())?.is_some())
    }

    /// The pass `limbo`: erases what no undo can ask for any more.
    pub(super) fn empty_limbo(
        &self,
        options: &MaintainOptions,
        sweep: &mut Sweep,
        report: &mut PassReport,
    ) -> Result<()> {
        let horizon = self.inner.in_force().policy.undo.horizon.as_ms();
        let horizon = i64::try_from(horizon).unwrap_or(i64::MAX);
        for (namespace, ns) in self.tenants(options.namespace.as_ref())? {
            let published = self.inner.state()?;
            let now = self.inner.instant(&published);
            // An instant that lies exactly at the horizon is past it.
            let until = Time::from_millis(now.as_millis().saturating_sub(horizon).saturating_add(1));
            let due = published.snapshot().limbo_before(ns, until, usize::MAX)?.len() as u64;
            report.planned += due;
            report.scanned += due;
            let mut erased = 0;
            while erased < due && !options.dry_run && !sweep.pace.is_over() {
                let rows = sweep.pace.rows(self.inner.state()?.commit());
                let gone = self
                    .inner
                    .run_alone(|session| purge(session, (&namespace, ns), sweep.run, until, rows))?;
                sweep.pace.spend(gone, self.inner.state()?.commit());
                erased += gone;
                if gone == 0 {
                    break;
                }
            }
            report.changed += erased;
            report.left += due.saturating_sub(erased);
        }
        // Of a run that has erased nothing no row of the file tells.
        report.run = Some(sweep.run).filter(|_| report.changed > 0);
        Ok(())
    }
}

/// Erases the rows of limbo that were removed before `until`, at most `most`, and raises the purge horizon.
fn purge(
    session: &mut Session<'_, '_, '_>,
    (namespace, ns): (&NamespaceName, NsId),
    run: RunId,
    until: Time,
    most: usize,
) -> Result<u64> {
    let context = Context { actor: Actor::Sweeper, ..session.context(ns, Some(run)) };
    let due = session.ledger.tx.limbo_before(ns, until, most)?;
    for (_, id) in &due {
        let entry = Entry::new(Pass::Limbo.rule(), Change::Purge { id: *id });
        session.ledger.apply(&context, entry)?;
    }
    let row = session.ledger.tx.namespace(namespace.as_str())?;
    if let (Some((last, _)), Some(mut row)) = (due.last(), row) {
        row.horizon_known_ms = row.horizon_known_ms.max(last.as_millis());
        session.ledger.tx.put_namespace(namespace.as_str(), &row)?;
    }
    Ok(due.len() as u64)
}

impl MaintenancePlan {
    fn refused(&self, why: &str) -> Error {
        Error::Conflict { what: format!("plan {}", self.id), why: why.to_owned() }
    }

    /// The context of a slice, if the plan may still be carried out.
    fn open(&self, session: &mut Session<'_, '_, '_>) -> Result<Context> {
        if session.in_force.hash != self.base {
            return Err(self.refused("policy_changed: another policy is in force than it was made under"));
        }
        let context = session.context(self.ns, Some(self.run));
        let there = session.ledger.tx.namespace(self.namespace.as_str())?;
        if there.is_none_or(|row| NsId(row.number) != self.ns) {
            return Err(self.refused("its namespace was dropped"));
        }
        let context = Context { actor: Actor::Sweeper, policy_hash: self.policy.hash.0, ..context };
        session.ledger.settle(&context, SETTLE_PER_SLICE)?;
        Ok(context)
    }

    /// Slices that were not synced are lost where the storage failed meanwhile under somebody else: then the run begins
    /// again after what is left of it.
    fn check_kept(&self, session: &Session<'_, '_, '_>, wrote: Option<&PassRow>) -> Result<()> {
        let stored = session.ledger.tx.pass(self.ns, self.pass.as_str())?;
        if wrote.is_some() && wrote != stored.as_ref() {
            return Err(Error::Retry { why: "slices of the pass since the last sync are lost".to_owned() });
        }
        Ok(())
    }

    /// Writes how far the run is, in the transaction of the slice.
    fn close(
        &self,
        session: &mut Session<'_, '_, '_>,
        context: &Context,
        progress: &Progress,
    ) -> Result<PassRow> {
        let tx = &mut *session.ledger.tx;
        let now = context.now.as_millis();
        let run = tx.run(self.ns, self.run)?;
        let started_ms = run.as_ref().map_or(now, |run| run.started_ms);
        let row = progress.row(self, started_ms, context.now);
        let state = if row.open { RunState::Open } else { RunState::Done };
        // A run that is being taken back stays one.
        if run.as_ref().is_none_or(|run| matches!(run.state, RunState::Open | RunState::Done)) {
            tx.put_run(self.ns, self.run, &RunRow { what: RunRow::MAINTAIN.to_owned(), started_ms, state })?;
        }
        tx.put_pass(self.ns, self.pass.as_str(), &row)?;
        Ok(row)
    }
}
