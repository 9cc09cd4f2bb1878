//! Summaries in place of old memories: plans, packs, commits, aborts.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use crate::engine::gc_guard::Guard;
use crate::engine::in_force::InForce;
use crate::engine::namespace::Namespace;
use crate::error::{Error, Result};
use crate::hygiene::{
    Committing, GcCommitted, GcOptions, GcPlan, GcReport, GroupLimits, Plans, Shared, Verdict, carry_out,
    close_plan, committed, gc_report, group_of, pack, pack_limits, plan_told, refuse, shared, told,
};
use crate::index::Published;
use crate::ingest::prepare;
use crate::limits::{PLAN_GROUPS_MAX, PROBE_CHARS_MAX, within};
use crate::model::{
    Draft, Entity, Field, Fields, GroupState, Kind, MemoryId, PlanState, Refusal, RunId, Tier, Time,
    TimeRange,
};
use crate::policy::Policy;
use crate::recall::Reader;
use crate::store::{GroupRow, NsId, PlanRow, PlanRows, Rows, Snapshot};
use crate::summary::{
    Accepted, Expected, Fault, InputPack, SummaryDocument, TimeSpan, accept, canonical_json,
};

/// Tokens of the sources of a plan, unless the call names another number.
const LIMIT_TOKENS: u64 = 60_000;
/// Largest number of tokens of a plan.
const LIMIT_TOKENS_MAX: u64 = 1_000_000;
/// Largest number of questions of a plan.
const PROBES_MAX: usize = 10;
/// Confidence of a summary.
const CONFIDENCE: f32 = 0.4;

/// What the plans of one run have read. A plan reads more of it, and nothing twice: that would cost as much for each plan
/// as for all of them. What is planned of it is compared with the present state; where that differs, all is read anew.
#[derive(Default)]
pub(super) struct Read {
    /// The plans that follow, with the namespace that they are of.
    plans: Option<(NsId, Plans)>,
    /// The policy that they were made under.
    policy: (u64, [u8; 8]),
    /// The plans of the file when the last of them was made.
    made: u64,
    /// The memories that the plans had. None is planned twice.
    taken: BTreeSet<MemoryId>,
}

impl Read {
    /// Whether what was read holds still: no other policy is in force, and nobody else has made a plan, which may have the
    /// same memories.
    fn goes_on(&self, in_force: &InForce, made: u64) -> bool {
        self.plans.is_some() && self.policy == (in_force.number, in_force.hash) && self.made == made
    }
}

/// A group that is asked for by name, and what is known of it.
struct Asked {
    ns: NsId,
    number: u32,
    group: GroupRow,
    /// The questions of the plan's caller.
    probes: Vec<String>,
}

impl Namespace {
    /// Plans summaries: which memories are old and unused, and which of them become one summary. Nothing changes but the
    /// plan. A memory is in one open plan only.
    ///
    /// ```
    /// use oubliette::gc::{Extractive, GcOptions, PlanState, Summarizer};
    /// use oubliette::{Database, Draft, Kind, Span};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let texts = [
    ///     "Ann: The boiler broke on 3 March. It is so cold here, and there is no hot water for any of us. What should we do?",
    ///     "Bob: The plumber asks for 480 euros. I told him that this is much more than we had. Should we do it all the same?",
    /// ];
    /// for text in texts {
    ///     let old = "2025-01-02T10:00:00Z".parse()?;
    ///     team.add(Draft::new(text).kind(Kind::Message).channel("home").created_at(old))?;
    /// }
    /// let plan = team.gc_plan(&GcOptions::default())?;
    /// assert_eq!((plan.groups.len(), plan.groups[0].source_ids.len()), (1, 2));
    ///
    /// let pack = team.gc_pack(plan.plan_id, "1")?;
    /// let done = team.gc_commit(plan.plan_id, "1", &Extractive::default().summarize(&pack)?, None)?;
    /// assert_eq!(done.deleted_count, 2);
    /// assert_eq!(team.search("boiler")?.hits[0].id, done.summary_memory_id);
    /// assert_eq!(team.gc_show(plan.plan_id)?.state, PlanState::Committed);
    /// team.undo(done.run.unwrap())?;
    /// assert_eq!(team.list(&Default::default())?.items.len(), 2);
    /// assert!(team.gc_plan(&GcOptions { max_groups: Some(0), ..GcOptions::default() }).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for options out of bounds; `NotFound` for a namespace that no write has made; `Retry`, `Unavailable`, `ReadOnly`,
    /// `Closed`, `Corrupted`.
    pub fn gc_plan(&self, options: &GcOptions) -> Result<GcPlan> {
        let plan = self.gc_next_plan(options, &mut Read::default())?;
        let held_by = if plan.groups.is_empty() { self.gc_holders()? } else { Vec::new() };
        Ok(GcPlan { held_by, ..plan })
    }

    /// The open plans with a group that waits for its summary.
    fn gc_holders(&self) -> Result<Vec<RunId>> {
        let found = self.gc_read(|rows, ns, now| {
            let mut all = Vec::new();
            for (id, row) in rows.gc_plans(ns)? {
                let is_open = row.state_at(now) == PlanState::Open;
                if is_open && rows.gc_groups(ns, id, &row)?.iter().any(|(_, group)| group.is_open()) {
                    all.push(id);
                }
            }
            Ok(all)
        })?;
        Ok(found.unwrap_or_default())
    }

    /// As [`Namespace::gc_plan`], of what the plans before have read, as far as it holds still.
    pub(super) fn gc_next_plan(&self, options: &GcOptions, read: &mut Read) -> Result<GcPlan> {
        check(options)?;
        let inner = &self.db.inner;
        inner.check_open()?;
        // What waits to be counted is a use as well.
        self.db.flush_access()?;
        // Two plans at once could take the same sources.
        let _one = inner.upkeep.lock();
        let in_force = inner.in_force();
        let now = inner.instant(&*inner.state()?);
        let is_first = !read.goes_on(&in_force, inner.gc_plans.load(Ordering::Relaxed));
        let (found, damaged) = self.gc_found(options, &in_force, read)?;
        let id = RunId::from_bytes(inner.ids.next(now)?);
        let row = PlanRow {
            state: if found.is_empty() { PlanState::Committed } else { PlanState::Open },
            created_ms: now.as_millis(),
            expires_ms: now.plus(in_force.policy.gc.plan_ttl).as_millis(),
            policy_number: in_force.number,
            policy_hash: in_force.hash,
            groups: found.len() as u32,
            reason: None,
            probes: if found.is_empty() { Vec::new() } else { options.probes.clone() },
        };
        inner.run_alone(|session| {
            let writer = session.known_writer(&self.name)?;
            let (ns, tx) = (writer.context.ns, &mut *writer.ledger.tx);
            // All plans are read for it, and a run makes many.
            if is_first {
                tx.end_late_gc_plans(ns, now)?;
            }
            tx.put_gc_plan(ns, id, &row)?;
            for (number, group) in (1..).zip(&found) {
                tx.put_gc_group(ns, id, number, group)?;
            }
            Ok(())
        })?;
        read.made = inner.gc_plans.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(GcPlan { damaged, ..self.gc_show(id)? })
    }

    /// The groups of the next plan, and the number of memories that can't be read.
    fn gc_found(
        &self,
        options: &GcOptions,
        in_force: &InForce,
        read: &mut Read,
    ) -> Result<(Vec<GroupRow>, u64)> {
        let goes_on = read.goes_on(in_force, self.db.inner.gc_plans.load(Ordering::Relaxed));
        let kept = read.plans.take().filter(|_| goes_on);
        let found = self.gc_read(|rows, ns, now| {
            if let Some((_, mut plans)) = kept.filter(|(of, _)| *of == ns) {
                let groups = plans.groups(rows)?;
                if !groups.is_empty() && plans.are_as_read(rows, now, &groups)? {
                    return Ok((groups, plans.damaged(), Some((ns, plans))));
                }
            }
            let mut taken = rows.gc_sources(ns, now)?;
            taken.extend(&read.taken);
            let policy = overlaid(&in_force.policy, options);
            let mut plans = Plans::of(rows, (ns, now), policy, &taken, limits_of(options))?;
            Ok((plans.groups(rows)?, plans.damaged(), Some((ns, plans))))
        })?;
        let (groups, damaged, plans) = found.unwrap_or_default();
        read.taken.extend(groups.iter().flat_map(|group| &group.sources).map(|stamp| stamp.id));
        (read.plans, read.policy) = (plans, (in_force.number, in_force.hash));
        Ok((groups, damaged))
    }

    /// A plan, with the state of each of its groups.
    ///
    /// ```
    /// use oubliette::gc::GcOptions;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// let plan = team.gc_plan(&GcOptions::default())?;
    /// assert_eq!(team.gc_show(plan.plan_id)?, plan);
    /// assert!(team.gc_show(oubliette::maintain::RunId::from_bytes([0; 16])).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `Corrupted`, `Closed`.
    pub fn gc_show(&self, plan: RunId) -> Result<GcPlan> {
        let in_force = self.db.inner.in_force();
        self.gc_read(|rows, ns, now| {
            let row = rows.gc_plan(ns, plan)?.ok_or_else(|| no_plan(plan))?;
            let groups = rows.gc_groups(ns, plan, &row)?;
            plan_told(rows, ns, plan, &row, groups, (now, &in_force.policy.gc))
        })?
        .ok_or_else(|| no_plan(plan))
    }

    /// The plans of the namespace, oldest first.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// # team.add("Ann prefers tea")?;
    /// assert!(team.gc_plans()?.is_empty());
    /// team.gc_plan(&Default::default())?;
    /// assert_eq!(team.gc_plans()?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn gc_plans(&self) -> Result<Vec<GcPlan>> {
        let in_force = self.db.inner.in_force();
        let all = self.gc_read(|rows, ns, now| {
            let plans = rows.gc_plans(ns)?.into_iter();
            let told = plans.map(|(id, row)| {
                let groups = rows.gc_groups(ns, id, &row)?;
                plan_told(rows, ns, id, &row, groups, (now, &in_force.policy.gc))
            });
            told.collect::<Result<Vec<_>>>()
        })?;
        Ok(all.unwrap_or_default())
    }

    /// What the writer of the summary of a group is given. Until there is one, memories are left out of which no summary may tell
    /// any more, because somebody has set their end since the plan.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// # team.add("Ann prefers tea")?;
    /// let plan = team.gc_plan(&Default::default())?;
    /// assert!(team.gc_pack(plan.plan_id, "1").is_err()); // There was nothing to summarize.
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Refused` for a group that does not exist; `Corrupted`, `Closed`.
    pub fn gc_pack(&self, plan: RunId, group: &str) -> Result<InputPack> {
        let gc = &self.db.inner.in_force().policy.gc;
        let found = self.gc_read(|rows, ns, now| match group_of(rows, ns, plan, number(group)?)? {
            Some((_, group)) => {
                let all = group.sources.iter().map(|stamp| stamp.id);
                // What a summary tells already is shown as it was told.
                let sources = if group.is_open() { told(rows, (ns, now), all)? } else { all.collect() };
                pack(rows, (ns, now), sources, gc).map(Some)
            }
            None => Ok(None),
        })?;
        found.flatten().ok_or_else(|| no_group(plan, group))
    }

    /// What the writer of a summary of these memories is given, whether a plan has them or not. Nothing changes.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// assert_eq!(team.gc_pack_of(&[tea])?.sources[0].text, "Ann prefers tea");
    /// team.forget(tea)?;
    /// assert!(team.gc_pack_of(&[tea]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for a memory that is not visible; `Corrupted`, `Closed`.
    pub fn gc_pack_of(&self, sources: &[MemoryId]) -> Result<InputPack> {
        let unknown = |id: &MemoryId| Error::NotFound { what: "memory", name: id.to_string() };
        let gc = &self.db.inner.in_force().policy.gc;
        let found = self.gc_read(|rows, ns, now| {
            for id in sources {
                let vitals = rows.vitals(ns, *id)?.filter(|vitals| vitals.times.visible_live(now));
                vitals.ok_or_else(|| unknown(id))?;
            }
            pack(rows, (ns, now), sources.iter().copied(), gc)
        })?;
        match (found, sources) {
            (Some(pack), _) => Ok(pack),
            (None, [id, ..]) => Err(unknown(id)),
            (None, []) => Ok(InputPack::new(Vec::new(), Vec::new(), pack_limits(gc))),
        }
    }

    /// Puts a summary in the place of a group, in one transaction: the summary is stored with text and vector, and its
    /// sources go to limbo with tombstones that name it. `sources` names those that it stands for, all of the group by
    /// default; others stay. The same call again gives the first answer.
    ///
    /// ```
    /// use oubliette::ErrorKind;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// # team.add("Ann prefers tea")?;
    /// let plan = team.gc_plan(&Default::default())?;
    /// let why = team.gc_commit(plan.plan_id, "1", "{}", None).unwrap_err();
    /// assert_eq!(why.kind(), ErrorKind::Refused);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Refused` with the rule, when nothing has changed but the note of the refusal; those of a write.
    pub fn gc_commit(
        &self,
        plan: RunId,
        group: &str,
        answer: &str,
        sources: Option<&[MemoryId]>,
    ) -> Result<GcCommitted> {
        let asked = self.gc_asked(plan, group)?;
        let all: Vec<MemoryId> = asked.group.sources.iter().map(|stamp| stamp.id).collect();
        let mut sources = sources.unwrap_or(&all).to_vec();
        sources.sort_unstable();
        sources.dedup();
        let sources = sources.as_slice();
        let digest = self.digest(answer, sources);
        let undone = asked.group.run.map(|run| self.is_taken_back(run)).transpose()?;
        if asked.group.state == GroupState::Committed && undone != Some(true) {
            return told_again(&asked.group, digest);
        }
        let (expected, shared) = self.expected(&asked, sources)?;
        let Accepted { document, repairs, warnings } = match accept(answer, &expected) {
            Ok(accepted) => accepted,
            Err(faults) => {
                let pointers = faults.iter().map(|fault| fault.pointer.clone()).collect();
                let why = Fault::first_of(&faults);
                return Err(self.refused(plan, asked.number, Refusal::InvalidSummary, why, pointers)?);
            }
        };
        let mut drafts = [prepare(draft_of(&document, &shared))?];
        self.db.inner.embed_drafts(&self.name, &mut drafts, true)?;
        let [draft] = drafts;
        let run = self.db.inner.new_run()?;
        let published = self.db.inner.state()?;
        let guard = self.gc_guard(&published, asked.group.part, &asked.probes, sources, &draft)?;
        let wanted = Committing {
            plan,
            group: asked.number,
            sources,
            named: &document.source_ids,
            draft: &|shared| prepare(draft_of(&document, shared)).map(|again| again.with_vector_of(&draft)),
            digest,
            run,
            budget: self.db.inner.budget_of(asked.ns, &self.db.inner.in_force().policy)?,
        };
        self.db.flush_access()?;
        let _one = self.db.inner.upkeep.lock();
        match self.gc_carry_out(&wanted, &guard)? {
            Verdict::Done(group) => {
                committed(&group, repairs, warnings).ok_or_else(|| no_group(plan, &asked.number.to_string()))
            }
            Verdict::Refused(refusal, why) => {
                Err(self.refused(plan, asked.number, refusal, why, Vec::new())?)
            }
        }
    }

    /// What happened to messages and summaries since an instant, up to now; without one, in the last `report.interval`. It
    /// is data for whoever tells a person of it, and its text is short.
    ///
    /// ```
    /// use oubliette::gc::{Extractive, GcRunOptions};
    /// use oubliette::{Database, Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// assert!(!team.gc_report(None)?.changed);
    /// let texts = [
    ///     "Ann: The boiler broke on 3 March. It is so cold here, and there is no hot water for any of us. What should we do?",
    ///     "Bob: The plumber asks for 480 euros. I told him that this is much more than we had. Should we do it all the same?",
    /// ];
    /// for text in texts {
    ///     let old = "2025-01-02T10:00:00Z".parse()?;
    ///     team.add(Draft::new(text).kind(Kind::Message).channel("home").created_at(old))?;
    /// }
    /// team.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ())?;
    /// let report = team.gc_report(None)?;
    /// assert_eq!((report.summaries_created, report.memories_deleted), (1, 2));
    /// assert!(report.to_string().contains("Summaries: 1, in the place of 2 memories"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for an instant that lies ahead; `Corrupted`, `Closed`.
    pub fn gc_report(&self, since: Option<Time>) -> Result<GcReport> {
        let inner = &self.db.inner;
        let report = inner.in_force().policy.report.clone();
        let now = inner.instant(&*inner.state()?);
        let since = since.unwrap_or_else(|| now.minus(report.interval));
        if since > now {
            return Err(Error::invalid("since", format!("must not lie ahead of {now}"), since));
        }
        let found = self.gc_read(|rows, ns, _| {
            gc_report(
                rows,
                ns,
                [since, now],
                self.db.inner.budget_of(ns, &self.db.inner.in_force().policy)?,
                &report,
            )
        })?;
        Ok(found.unwrap_or_else(|| GcReport::empty([since, now])))
    }

    /// Gives a plan up, or one group of it. Committed groups stay; `undo` takes their runs back. Giving up again does
    /// nothing.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// # team.add("Ann prefers tea")?;
    /// let plan = team.gc_plan(&Default::default())?;
    /// team.gc_abort(plan.plan_id, None, "not now")?;
    /// assert!(team.gc_abort(plan.plan_id, None, "").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a reason that is not 1 to 500 characters; `NotFound`, and `Refused` for a group that does not exist.
    pub fn gc_abort(&self, plan: RunId, group: Option<&str>, reason: &str) -> Result<GcPlan> {
        let chars = reason.chars().count();
        if !(1..=500).contains(&chars) {
            return Err(Error::invalid(
                "reason",
                "must have 1 to 500 characters",
                format!("{chars} characters"),
            ));
        }
        let only = group.map(number).transpose()?;
        self.db.inner.run_alone(|session| {
            let writer = session.known_writer(&self.name)?;
            let (ns, now) = (writer.context.ns, writer.context.now);
            let row = writer.ledger.tx.gc_plan(ns, plan)?.ok_or_else(|| no_plan(plan))?;
            if let Some(only) = only.filter(|only| *only == 0 || *only > row.groups) {
                return Err(no_group(plan, &only.to_string()));
            }
            if row.state_at(now) != PlanState::Open {
                return Ok(());
            }
            for (number, group) in writer.ledger.tx.gc_groups(ns, plan, &row)? {
                if only.is_none_or(|only| only == number) && group.is_open() {
                    let (state, reason) = (GroupState::Aborted, Some(reason.to_owned()));
                    let group = GroupRow { state, reason, ..group };
                    writer.ledger.tx.put_gc_group(ns, plan, number, &group)?;
                }
            }
            if only.is_some() {
                return close_plan(writer.ledger, ns, plan, row);
            }
            let row = PlanRow { reason: Some(reason.to_owned()), ..row.ended(PlanState::Aborted) };
            writer.ledger.tx.put_gc_plan(ns, plan, &row)
        })?;
        self.gc_show(plan)
    }

    /// What is made of the plans that would follow each other now; nothing where the namespace was never written to.
    pub(super) fn gc_planned<T: Default>(
        &self,
        options: &GcOptions,
        work: impl FnOnce(&Snapshot, (NsId, Time), Plans) -> Result<T>,
    ) -> Result<T> {
        check(options)?;
        let policy = overlaid(&self.db.inner.in_force().policy, options);
        let done = self.gc_read(|rows, ns, now| {
            let taken = rows.gc_sources(ns, now)?;
            work(rows, (ns, now), Plans::of(rows, (ns, now), policy, &taken, limits_of(options))?)
        })?;
        Ok(done.unwrap_or_default())
    }

    /// Reads what is published of the namespace; none where it was never written to.
    pub(super) fn gc_read<R>(
        &self,
        read: impl FnOnce(&Snapshot, NsId, Time) -> Result<R>,
    ) -> Result<Option<R>> {
        let inner = &self.db.inner;
        if inner.is_closed() {
            return Err(Error::Closed);
        }
        let published: std::sync::Arc<Published> = inner.state()?;
        let rows = &**published.snapshot();
        let ns = rows.namespace(self.name.as_str())?.map(|row| NsId(row.number));
        ns.map(|ns| read(rows, ns, inner.instant(&published))).transpose()
    }

    #[cfg(feature = "faults")]
    pub(crate) fn read_vitals(&self, ids: &[MemoryId]) -> Result<usize> {
        let read = self.gc_read(|rows, ns, _| {
            let found = ids.iter().map(|id| Ok(usize::from(rows.vitals(ns, *id)?.is_some())));
            found.sum::<Result<usize>>()
        });
        Ok(read?.unwrap_or(0))
    }

    fn gc_asked(&self, plan: RunId, group: &str) -> Result<Asked> {
        let number = number(group)?;
        let found = self.gc_read(|rows, ns, _| {
            let found = group_of(rows, ns, plan, number)?;
            Ok(found.map(|(plan, group)| Asked { ns, number, group, probes: plan.probes }))
        })?;
        found.flatten().ok_or_else(|| no_group(plan, group))
    }

    /// What a summary of some of the sources of a group must be, and what it gets of them.
    fn expected(&self, asked: &Asked, sources: &[MemoryId]) -> Result<(Expected, Shared)> {
        let gc = &self.db.inner.in_force().policy.gc;
        let mut group = asked.group.clone();
        group.sources.retain(|stamp| sources.contains(&stamp.id));
        let read = self.gc_read(|rows, ns, now| {
            Ok((pack(rows, (ns, now), sources.iter().copied(), gc)?, shared(rows, ns, sources)?))
        })?;
        // Another thread may have dropped the namespace since the group was found.
        let gone = || Error::NotFound { what: "namespace", name: self.name.to_string() };
        let (pack, shared) = read.ok_or_else(gone)?;
        let committing = sources.iter().map(MemoryId::to_string).collect();
        // A source that is gone has its time in the plan.
        let times = || group.sources.iter().map(|stamp| stamp.at_ms);
        let (start, end) = (times().min().unwrap_or_default(), times().max().unwrap_or_default());
        let span = TimeSpan { start, end };
        let expected = Expected::of(&pack);
        // And its length: that it is gone is for the commit to say.
        let planned = if pack.sources.len() < sources.len() { group.tokens } else { 0 };
        let tokens = expected.tokens.max(planned);
        Ok((Expected { committing, span, tokens, ..expected }, shared))
    }

    /// The HMAC of an answer for some sources.
    fn digest(&self, answer: &str, sources: &[MemoryId]) -> [u8; 32] {
        let mut bytes = canonical_json(answer);
        let mut sources: Vec<&MemoryId> = sources.iter().collect();
        sources.sort_unstable();
        for id in sources {
            bytes.extend_from_slice(id.as_bytes());
        }
        self.db.inner.secret.hmac("summary", &bytes)
    }

    fn gc_carry_out(&self, wanted: &Committing<'_>, guard: &Guard) -> Result<Verdict> {
        let inner = &self.db.inner;
        let (verdict, waiting) = inner.run_alone(|session| {
            // The state that the transaction began with is the present one: nobody else writes meanwhile.
            let reader = Reader::open(session.published, &self.name, &inner.secret, session.ledger.now())?;
            let weights = &session.in_force.policy.recall;
            let mut writer = session.known_writer(&self.name)?;
            let verdict = carry_out(&mut writer, wanted, &|kept| guard.ask(&reader, weights, kept))?;
            Ok((verdict, std::mem::take(&mut writer.ledger.waiting)))
        })?;
        self.db.embed_waiting(waiting);
        Ok(verdict)
    }

    /// Notes a refusal, and gives the error for it.
    fn refused(
        &self,
        plan: RunId,
        group: u32,
        refusal: Refusal,
        why: String,
        pointers: Vec<String>,
    ) -> Result<Error> {
        self.gc_refused(plan, group, refusal)?;
        Ok(Error::Refused { code: refusal.as_str(), why, pointers })
    }

    /// Notes in the journal and on the group that there is no summary for it.
    pub(super) fn gc_refused(&self, plan: RunId, group: u32, refusal: Refusal) -> Result<()> {
        self.db.inner.run_alone(|session| {
            let mut writer = session.known_writer(&self.name)?;
            refuse(&mut writer, plan, group, refusal)
        })
    }
}

fn told_again(group: &GroupRow, digest: [u8; 32]) -> Result<GcCommitted> {
    let same = (group.digest == Some(digest)).then(|| committed(group, Vec::new(), Vec::new())).flatten();
    same.ok_or_else(|| Error::Refused {
        code: Refusal::AlreadyCommitted.as_str(),
        why: "the group has another summary".to_owned(),
        pointers: Vec::new(),
    })
}

fn check(options: &GcOptions) -> Result<()> {
    within("limit_tokens", options.limit_tokens.unwrap_or(LIMIT_TOKENS), 1..=LIMIT_TOKENS_MAX)?;
    within("group_tokens", options.group_tokens.unwrap_or(LIMIT_TOKENS), 1..=LIMIT_TOKENS_MAX)?;
    within("max_groups", options.max_groups.unwrap_or(1), 1..=PLAN_GROUPS_MAX)?;
    within("probes", options.probes.len(), 0..=PROBES_MAX)?;
    for probe in &options.probes {
        within("probes", probe.chars().count(), 1..=PROBE_CHARS_MAX)?;
    }
    within("access_threshold", options.access_threshold.unwrap_or(0.0), 0.0..=1e6)?;
    Ok(())
}

fn limits_of(options: &GcOptions) -> GroupLimits {
    let plan_tokens = options.limit_tokens.unwrap_or(LIMIT_TOKENS);
    GroupLimits { plan_tokens, group_tokens: options.group_tokens }
}

/// The policy with what a call asks for instead.
fn overlaid(policy: &Policy, options: &GcOptions) -> Policy {
    let mut policy = policy.clone();
    let gc = &mut policy.gc;
    gc.age_min = options.age_min.unwrap_or(gc.age_min);
    gc.access_threshold = options.access_threshold.unwrap_or(gc.access_threshold);
    gc.max_groups = options.max_groups.unwrap_or(gc.max_groups);
    policy
}

/// A summary as a memory, in the place of its sources.
pub(super) fn draft_of(document: &SummaryDocument, shared: &Shared) -> Draft {
    let (start, end) =
        (Time::from_millis(document.time_range.start), Time::from_millis(document.time_range.end));
    let list = |items: &[String]| match items {
        [] => Field::Absent,
        items => Field::Value(serde_json::json!(items)),
    };
    let patterns = serde_json::json!(document.spam_patterns);
    let fields = Fields {
        kind: Some(Kind::Summary),
        tier: Some(Tier::Semantic),
        confidence: Field::Value(CONFIDENCE),
        happened_at: Field::Value(start),
        topic: Field::Value(document.topic.clone()),
        time_range: Field::Value(TimeRange { start, end }),
        bullet_events: list(&document.summary),
        decisions: list(&document.decisions),
        open_loops: list(&document.open_loops),
        spam_patterns: if document.spam_patterns.is_empty() { Field::Absent } else { Field::Value(patterns) },
        ..Fields::default()
    };
    let names: BTreeSet<&String> = document.entities.iter().collect();
    let entity = |name: &String| Entity { name: name.clone(), role: "mentioned".to_owned() };
    let mut draft = Draft::new(document.content());
    draft.fields = fields;
    draft.entities = Some(names.into_iter().map(entity).collect());
    shared.place(&mut draft);
    draft
}

/// The number of a group.
pub(super) fn number(group: &str) -> Result<u32> {
    group.parse().map_err(|_| Error::invalid("group_id", "must be the number of a group", group))
}

fn no_plan(plan: RunId) -> Error {
    Error::NotFound { what: "plan", name: plan.to_string() }
}

fn no_group(plan: RunId, group: &str) -> Error {
    let (code, why) = (Refusal::PlanNotFound.as_str(), format!("there is no group {group} of a plan {plan}"));
    Error::Refused { code, why, pointers: Vec::new() }
}
