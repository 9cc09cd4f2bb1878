//! The executor of passes: each plans on the published state, and its steps are applied in short transactions, within the
//! budget of the call and with pauses for writers.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::attached::Asked;
use crate::engine::database::Database;
use crate::engine::maintain::Sweep;
use crate::engine::namespace::Namespace;
use crate::engine::options::MaintainOptions;
use crate::engine::pace::{STALE_MAX, outpaced};
use crate::engine::session::Session;
use crate::error::{Error, Result, sound};
use crate::hygiene::{
    Applied, CarryingOut, Field, Job, Judge, MaintenancePlan, PassReport, PlanInput, Planned, Slice, Step,
    StepInput, Vectorizer, implementation,
};
use crate::model::{NamespaceName, Pass, RunId, RunSort};
use crate::policy::{Policy, PolicyVersion};
use crate::store::control::RunState;
use crate::store::{Durability, NsId, Rows};

/// Slices from one sync to the next, of a job that keeps its progress. Nobody was told of those between, and a crash takes
/// them with their cursor, so the run goes on before them; a commit of somebody else syncs them as well. They cost a sync
/// each otherwise, which is more than their work, and the file can't use freed pages again before one.
const SLICES_PER_SYNC: u32 = 16;
/// Of the time that a slice may work, the part after which it ends for a writer who waits; and how many times that time it
/// may work for while nobody does.
const PART_WAITED_FOR: u32 = 8;
const TIMES_ALONE: u32 = 8;

/// What the jobs of one pass share in one namespace.
pub(super) struct Site<'w> {
    pub(super) namespace: &'w NamespaceName,
    pub(super) ns: NsId,
    pub(super) run: RunId,
    /// What the row of the run calls what the steps count.
    pub(super) counted_as: &'static str,
    pub(super) policy: &'w Policy,
    /// Threads that may work on a step.
    pub(super) threads: usize,
}

/// What the row of a run is to note of a step.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    pub(super) sort: RunSort,
    pub(super) name: &'static str,
    /// Whether a step is noted that changed nothing.
    pub(super) even_if_idle: bool,
}

/// What a pass found to do in a namespace.
enum Work {
    Plan(Box<MaintenancePlan>),
    Jobs(Vec<Box<dyn Job>>),
}

impl Namespace {
    /// Plans the one pass that the options name, and changes nothing.
    ///
    /// ```
    /// use oubliette::maintain::{MaintainOptions, Pass};
    /// use oubliette::{Database, Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// for apps in [4, 7] {
    ///     team.add(Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile))?;
    /// }
    /// let options = MaintainOptions::live().passes([Pass::Collapse]);
    /// let plan = team.plan(&options)?;
    /// assert_eq!(team.list(&Default::default())?.items.len(), 2);
    /// assert_eq!(team.carry_out(&plan, &options)?.tombstoned, 1);
    /// assert!(team.plan(&MaintainOptions::live()).is_err()); // It names no pass.
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for options that do not name exactly one pass, for a pass without a plan (`embed`, `limbo`, `index`,
    /// `repair`), and for options out of bounds; `NotFound` for a namespace that no write has made; `Corrupted`.
    pub fn plan(&self, options: &MaintainOptions) -> Result<MaintenancePlan> {
        options.check()?;
        let &[pass] = options.passes.as_slice() else {
            let named: Vec<&str> = options.passes.iter().map(|pass| pass.as_str()).collect();
            return Err(Error::invalid("passes", "must be one, for a plan", named.join(", ")));
        };
        let run = self.db.inner.new_run()?;
        let mut sweep = Sweep::new(run, RunSort::Maintain, Some(self.name.clone()), options);
        let Some((namespace, ns)) = self.db.tenants(Some(&self.name))?.pop() else {
            return Err(Error::NotFound { what: "namespace", name: self.name.to_string() });
        };
        match self.db.plan_in(pass, namespace, ns, options, &mut sweep)? {
            Some(Work::Plan(plan)) => Ok(*plan),
            Some(Work::Jobs(_)) => Err(Error::invalid("pass", "must be one that works on memories", pass)),
            None => Err(Error::Conflict {
                what: format!("plan {pass}"),
                why: "its time was over before it was made".to_owned(),
            }),
        }
    }

    /// Carries out a plan of this namespace, within the bounds of the options. A row that has changed since, or is
    /// protected now, is left alone and counted as skipped. With `dry_run`, the default, it says what the plan would do and
    /// changes nothing.
    ///
    /// ```
    /// use oubliette::maintain::{MaintainOptions, Pass};
    /// use oubliette::{Database, Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// # for apps in [4, 7] {
    /// #     team.add(Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile))?;
    /// # }
    /// let options = MaintainOptions::live().passes([Pass::Collapse]);
    /// let plan = team.plan(&options)?;
    /// assert!(db.namespace("others")?.carry_out(&plan, &options).is_err());
    /// assert_eq!(team.carry_out(&plan, &MaintainOptions::default())?.planned, 1);
    /// assert_eq!(team.list(&Default::default())?.items.len(), 2);
    /// let report = team.carry_out(&plan, &options)?;
    /// assert_eq!((report.planned, report.changed, report.skipped), (1, 1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - `Invalid` for a plan of another namespace;
    /// - `Conflict` with `policy_changed` when another policy is in force than it was made under, and with `plan_expired`
    ///   when it is older than a day: nothing is written;
    /// - else as [`Namespace::maintain_with`].
    pub fn carry_out(&self, plan: &MaintenancePlan, options: &MaintainOptions) -> Result<PassReport> {
        options.check()?;
        if plan.namespace != self.name {
            let why = format!("must be of the namespace {}", self.name);
            return Err(Error::invalid("plan", why, &plan.namespace));
        }
        let db = &self.db;
        db.inner.check_open()?;
        let _one = db.inner.upkeep.lock();
        // A plan that a pass makes for itself is carried out at once, however long that takes.
        if db.inner.instant(&*db.inner.state()?) >= plan.expires_at {
            return Err(plan.refused("plan_expired: it was made too long ago"));
        }
        let (begun, mut report) = (Instant::now(), PassReport::new(plan.pass));
        if options.dry_run {
            plan.tell_dry(&mut report);
        } else {
            let mut sweep = Sweep::new(plan.run, RunSort::Maintain, Some(self.name.clone()), options);
            db.execute(plan, options, &mut sweep, &mut report)?;
            db.end_runs(&sweep);
        }
        report.ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(report)
    }
}

impl Database {
    /// One pass over a namespace, or over all, one by one.
    pub(super) fn run_pass(
        &self,
        pass: Pass,
        options: &MaintainOptions,
        sweep: &mut Sweep,
    ) -> Result<PassReport> {
        let (report, failed) = self.run_to_end(pass, options, sweep);
        failed.map_or(Ok(report), Err)
    }

    /// One pass over a namespace, or over all, one by one: what it came to, and why it failed if it did.
    pub(super) fn run_to_end(
        &self,
        pass: Pass,
        options: &MaintainOptions,
        sweep: &mut Sweep,
    ) -> (PassReport, Option<Error>) {
        let (begun, mut report) = (Instant::now(), PassReport::new(pass));
        let failed = self.run_each(options, sweep, &mut report).err();
        report.ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        (report, failed)
    }

    /// The pass of a report over a namespace, or over all. Damage in one of all keeps none of the others from it, and is told in
    /// the end.
    fn run_each(&self, options: &MaintainOptions, sweep: &mut Sweep, report: &mut PassReport) -> Result<()> {
        let mut failed = None;
        for (namespace, ns) in self.tenants(sweep.only.as_ref())? {
            match self.run_in(&namespace, ns, options, sweep, report) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(why @ Error::Corrupted { .. }) if sweep.only.is_none() => {
                    tracing::warn!(%why, pass = %report.pass, %namespace, "a namespace is left out of maintenance");
                    failed.get_or_insert(why);
                }
                Err(why) => return Err(why),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// The pass of a report over one namespace. Breaks off where the time of the call is over.
    fn run_in(
        &self,
        namespace: &NamespaceName,
        ns: NsId,
        options: &MaintainOptions,
        sweep: &mut Sweep,
        report: &mut PassReport,
    ) -> Result<ControlFlow<()>> {
        match self.plan_in(report.pass, namespace.clone(), ns, options, sweep)? {
            None => {
                report.cut_short = sweep.pace.is_over();
                return Ok(ControlFlow::Break(()));
            }
            Some(Work::Plan(plan)) if options.dry_run => {
                plan.tell_dry(report);
                sweep.destroy.insert(ns, plan.would_leave());
            }
            Some(Work::Plan(plan)) => self.execute(&plan, options, sweep, report)?,
            Some(Work::Jobs(jobs)) => self.run_jobs(jobs, namespace, ns, options, sweep, report)?,
        }
        Ok(ControlFlow::Continue(()))
    }

    fn run_jobs(
        &self,
        jobs: Vec<Box<dyn Job>>,
        namespace: &NamespaceName,
        ns: NsId,
        options: &MaintainOptions,
        sweep: &mut Sweep,
        report: &mut PassReport,
    ) -> Result<()> {
        let policy = options.effective(&self.inner.in_force().policy);
        let counted_as = report.pass.as_str();
        let threads = options.threads();
        let site = Site { namespace, ns, run: sweep.run, counted_as, policy: &policy, threads };
        for mut job in jobs {
            let mut done = Ok(());
            if !options.dry_run && !sweep.pace.is_over() {
                done = match self.work(&mut *job, &site, sweep) {
                    Err(why @ Error::Corrupted { .. }) if job.may_be_left_out() => {
                        tracing::warn!(%why, "an index is left out of maintenance");
                        report.skipped += 1;
                        Ok(())
                    }
                    done => done,
                };
            }
            // What it did before it failed stands, and is told.
            let told = self.inner.state().and_then(|state| job.tell(state.snapshot(), report));
            done.and(told)?;
        }
        Ok(())
    }

    fn plan_in(
        &self,
        pass: Pass,
        namespace: NamespaceName,
        ns: NsId,
        options: &MaintainOptions,
        sweep: &mut Sweep,
    ) -> Result<Option<Work>> {
        let in_force = self.inner.in_force();
        let policy = options.effective(&in_force.policy);
        let version = PolicyVersion { number: in_force.number, hash: policy.hash() };
        let published = self.inner.state()?;
        let now = self.inner.instant(&published);
        let noted = Arc::clone(&self.inner.accesses);
        let field = Field::new(ns, now, noted);
        let selection = options.selection();
        let asking = self.inner.asking(&published, &namespace, now)?;
        let input = PlanInput {
            published: &published,
            namespace: &namespace,
            field: &field,
            secret: &self.inner.secret,
            policy: &policy,
            selection: &selection,
            is_named: options.passes.contains(&pass),
            judge: asking.as_ref().map(|asking| asking as &dyn Judge),
            looks: &self.inner.looks,
        };
        let pace = &sweep.pace;
        let planned = implementation(pass).plan(input, &mut |_| pace.is_over())?;
        if let Some(asking) = asking.as_ref().filter(|_| !options.dry_run && !self.inner.read_only) {
            self.inner.journal_faults(ns, asking)?;
        }
        drop(asking);
        let (mut plan, scanned, mut details) = match planned {
            None => return Ok(None),
            Some(Planned::Jobs(jobs)) => return Ok(Some(Work::Jobs(jobs))),
            Some(Planned::Actions { plan, scanned, details }) => (plan, scanned, details),
        };
        let open = published.snapshot().pass(ns, pass.as_str())?;
        let resumed = open.filter(|row| row.open && row.policy_hash == version.hash.0 && !options.dry_run);
        let resumed = resumed.filter(|_| selection.is_all());
        let destroy = match sweep.destroy.get(&ns) {
            Some(left) => *left,
            None => self.may_destroy(ns, options, &policy)?,
        };
        let destroy = resumed.as_ref().map_or(destroy, |row| destroy.min(row.budget_left));
        let rows = plan.rows();
        if plan.cut(destroy) {
            details.cut(&plan);
        }
        Ok(Some(Work::Plan(Box::new(MaintenancePlan {
            id: RunId::from_bytes(self.inner.ids.next(now)?),
            run: resumed.as_ref().map_or(sweep.run, |row| row.run),
            pass,
            namespace,
            ns,
            policy: version,
            base: in_force.hash,
            created_at: now,
            expires_at: now.plus(policy.gc.plan_ttl),
            max_rows: policy.plan.max_rows as usize,
            notes_first_look: implementation(pass).notes_first_look(),
            latest_happened_at: policy.collapse.merge_latest_happened_at,
            plan,
            scanned,
            details,
            damaged: field.damaged.get(),
            rows,
            destroy,
            goes_on: selection.is_all(),
            resumed,
        }))))
    }

    /// Visible rows of a namespace that one sweep may remove or supersede.
    fn may_destroy(&self, ns: NsId, options: &MaintainOptions, policy: &Policy) -> Result<u64> {
        if let Some(most) = options.destroy_max {
            return Ok(most);
        }
        self.inner.budget_of(ns, policy)
    }

    /// Carries a plan out as far as the run may go.
    fn execute(
        &self,
        plan: &MaintenancePlan,
        options: &MaintainOptions,
        sweep: &mut Sweep,
        report: &mut PassReport,
    ) -> Result<()> {
        let policy = options.effective(&self.inner.in_force().policy);
        let site = Site {
            namespace: &plan.namespace,
            ns: plan.ns,
            run: plan.run,
            counted_as: plan.pass.as_str(),
            policy: &policy,
            threads: options.threads(),
        };
        let mut job = CarryingOut::new(plan);
        let done = self.work(&mut job, &site, sweep);
        // What a pass removed before it failed counts as well: the passes behind it get what is left.
        sweep.destroy.insert(plan.ns, job.may_destroy());
        done.and(self.inner.state().and_then(|state| job.tell(state.snapshot(), report)))
    }

    /// Takes step after step of a job until there is none or the run is over. A step that finds its rows changed is worked out
    /// again.
    pub(super) fn work(&self, job: &mut dyn Job, site: &Site<'_>, sweep: &mut Sweep) -> Result<()> {
        let in_force = self.inner.in_force();
        let attached = self.inner.embedder_for(&*self.inner.state()?)?;
        let embedder = attached.as_ref().map(|attached| Asked { attached, end: sweep.pace.end() });
        let (keeps_progress, slice_time) =
            (job.keeps_progress(), Duration::from_millis(u64::from(site.policy.plan.max_ms)));
        let noted = Noted {
            sort: sweep.sort,
            name: site.counted_as,
            // The row of the pass names the run, whatever the plan came to.
            even_if_idle: keeps_progress,
        };
        let (mut stale, mut unsynced, mut last) = (0, 0, 0);
        loop {
            let (begun, published) = (Instant::now(), self.inner.state()?);
            // A commit of somebody else has synced all before it.
            unsynced = if published.commit() == last { unsynced + 1 } else { 1 };
            let input = StepInput {
                published: &published,
                policy: site.policy,
                messages: &in_force.messages,
                embedder: embedder.as_ref().map(|asked| asked as &dyn Vectorizer),
                run: Some(site.run),
                threads: site.threads,
                // What was worked on for less time has changed less often.
                rows: (sweep.pace.rows(published.commit()) >> stale).max(1),
                rows_left: sweep.pace.rows_left(),
            };
            let Some(mut step) = job.next(input)? else { break };
            sweep.enter(&self.inner, site.namespace, site.ns, site.run);
            let mut enough = || {
                let worked = begun.elapsed();
                worked >= slice_time * TIMES_ALONE
                    || (worked >= slice_time / PART_WAITED_FOR && self.inner.queue.is_waited_for())
            };
            let may_wait = keeps_progress && unsynced < SLICES_PER_SYNC;
            let durability = if may_wait { Durability::Batch } else { self.inner.durability };
            let applied = self.inner.run_alone_as(durability, |session| {
                // A plan says by itself that its namespace is gone.
                if !keeps_progress && !session.stands(site.namespace, site.ns)? {
                    return Ok(None);
                }
                apply_in(session, site.ns, Some(site.run), Some(noted), &mut enough, &mut step).map(Some)
            });
            drop(step);
            let applied = match applied {
                Err(why) if why.is_damage() && job.met_damage() => {
                    tracing::warn!(%why, "maintenance goes past what is damaged");
                    continue;
                }
                applied => applied?,
            };
            let Some(applied) = applied else { break };
            if applied.is_stale {
                stale += 1;
                if stale > STALE_MAX {
                    return Err(outpaced());
                }
            } else {
                (stale, last, unsynced) = (0, self.inner.state()?.commit(), unsynced % SLICES_PER_SYNC);
                sweep.has_counted |= applied.count > 0;
                sweep.pace.spend(applied.rows, last);
                job.applied(applied);
            }
            if sweep.pace.is_over() {
                break;
            }
        }
        if keeps_progress && last > 0 && self.inner.durability != Durability::Batch {
            self.inner.sync()?;
        }
        Ok(())
    }

    /// Applies one step in a transaction of its own; to a namespace that is being dropped, nothing. The help of a writer is a
    /// run of one step, which its journal rows name and no row notes.
    pub(super) fn apply(
        &self,
        ns: NsId,
        run: Option<RunId>,
        noted: Option<Noted>,
        mut step: Step<'_>,
    ) -> Result<Applied> {
        self.inner.run_alone(|session| match session.is_dropping(ns)? {
            true => Ok(Applied::default()),
            false => apply_in(session, ns, run, noted, &mut || false, &mut step),
        })
    }

    /// Ends the runs that a call has worked on, except those that the next call goes on with. What they did stands
    /// already: what goes wrong here is no error of it.
    pub(super) fn end_runs(&self, sweep: &Sweep) {
        if let Err(why) = self.end_each(sweep) {
            tracing::warn!(%why, "a run that is whole is not marked as whole");
        }
    }

    fn end_each(&self, sweep: &Sweep) -> Result<()> {
        let published = self.inner.state()?;
        let mut whole = Vec::new();
        for (&(ns, run), (name, _)) in &sweep.entered {
            let row = sound(published.snapshot().run(ns, run))?.flatten();
            let goes_on = || -> Result<bool> {
                let passes = published.snapshot().passes(ns)?;
                Ok(passes.iter().any(|(_, pass)| pass.open && pass.run == run))
            };
            if row.is_some_and(|row| row.state == RunState::Open) && !goes_on()? {
                whole.push((name, ns, run));
            }
        }
        if whole.is_empty() {
            return Ok(());
        }
        self.inner.run_alone(|session| {
            for &(name, ns, run) in &whole {
                if session.stands(name, ns)? {
                    session.ledger.end_run(ns, run, session.ledger.now())?;
                }
            }
            Ok(())
        })
    }
}

fn apply_in(
    session: &mut Session<'_, '_, '_>,
    ns: NsId,
    run: Option<RunId>,
    noted: Option<Noted>,
    enough: &mut dyn FnMut() -> bool,
    step: &mut Step<'_>,
) -> Result<Applied> {
    let context = session.context(ns, run);
    let mut slice =
        Slice { ledger: session.ledger, context: context.clone(), linked: &mut session.linked, enough };
    let applied = step(&mut slice)?;
    if let (Some(run), Some(Noted { sort, name, even_if_idle })) = (run, noted)
        && !applied.is_stale
        && (applied.count > 0 || even_if_idle)
    {
        session.ledger.note_part(&context, run, sort, [(name, applied.count)])?;
    }
    Ok(applied)
}
