//! The whole loop of summaries in one call: plan, pack, summarize, commit, group by group.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::engine::failed::FailedPass;
use crate::engine::gc::{Read, draft_of, number};
use crate::engine::namespace::Namespace;
use crate::error::{Error, Result};
use crate::hygiene::{GcGroup, GcOptions, GcPlan, Plans, pack, shared};
use crate::ingest::prepare;
use crate::model::{GroupState, MemoryId, PlanState, RecallGuard, Refusal, RunId, Time, Tombstone, is_zero};
use crate::recall::{Got, Reader};
use crate::store::{GroupRow, NsId, Snapshot};
use crate::summary::{
    Accepted, Expected, Extractive, Fault, InputPack, Summarizer, SummaryDocument, accept, token_estimate,
};

/// Bytes of the reason of a group that was given up.
const REASON_CHARS: usize = 400;

/// What a run of summaries is asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GcRunOptions {
    /// What each plan is asked for.
    pub plan: GcOptions,
    /// Groups of the whole call; none: until nothing is left to do. Groups that are too short for a summary do not count: they
    /// would keep each call from what is behind them.
    pub max_groups: Option<u64>,
    /// Whether the call only tells what it would do.
    pub dry_run: bool,
}

impl GcRunOptions {
    /// Whether as many groups are done as were asked for.
    fn are_done(&self, report: &GcRunReport) -> bool {
        self.max_groups.is_some_and(|most| report.groups - report.too_short >= most)
    }
}

/// What a run of summaries came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GcRunReport {
    /// Plans that had groups.
    pub plans: u64,
    /// Groups of these plans that were summarized, or given up.
    pub groups: u64,
    /// Groups in whose place a summary stands.
    pub committed: u64,
    /// Groups for which there was no summary.
    pub aborted: u64,
    /// Groups whose summary was refused.
    pub refused: u64,
    /// Groups that the summarizer found too short for a summary that is shorter.
    pub too_short: u64,
    /// Memories that went.
    pub sources: u64,
    /// Summaries that came.
    pub summaries: u64,
    /// Estimated tokens of the memories of the committed groups.
    pub tokens_before: u64,
    /// Estimated tokens of their summaries.
    pub tokens_after: u64,
    /// The runs of the commits, for `undo`.
    pub runs: Vec<RunId>,
    /// Whether what found the sources finds the summaries, over all groups.
    pub recall_guard: RecallGuard,
    /// Why groups were given up or refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// The first of `failures` with the kind of its error. Not in JSON.
    #[serde(skip)]
    pub first_failure: Option<FailedPass>,
    /// Whether a sweep ended before a group that would have let more memories go than the sweep may. In JSON only then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub budget_exhausted: bool,
    /// Memories that can't be read, and were left alone. Not in JSON while there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub damaged: u64,
}

impl GcRunReport {
    /// Notes why a group was given up or refused, told as `reason`.
    fn fail(&mut self, why: &Error, reason: String) {
        let first = || FailedPass { why: reason.clone(), ..FailedPass::unbegun(why) };
        self.first_failure.get_or_insert_with(first);
        self.failures.push(reason);
    }
}

/// How far a run is.
#[derive(Default)]
struct UnderWay {
    report: GcRunReport,
    /// The plans that it made.
    unfinished: Vec<RunId>,
    /// Groups without a summary, with their plans and the reasons.
    given_up: Vec<(RunId, String, String)>,
    /// The number of memories that may go.
    may_destroy: u64,
}

/// A summary, and what it stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Expanded {
    /// The summary.
    pub summary: MemoryId,
    /// The memories that it was made from, each with its tombstone if it is gone.
    pub sources: Vec<(MemoryId, Option<Tombstone>)>,
    /// Those of them that can't be read. Nobody knows whether they are gone.
    pub damaged: BTreeSet<MemoryId>,
}

impl Namespace {
    /// Summarizes what is old and unused: plans, and commits a summary for each group, until nothing is left to do. A
    /// group without a summary stays as it is, and the others go on. `each` is called after each group.
    ///
    /// ```
    /// use oubliette::gc::{Extractive, GcRunOptions};
    /// use oubliette::{Database, Draft, Kind};
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
    /// let dry = GcRunOptions { dry_run: true, ..GcRunOptions::default() };
    /// assert_eq!(team.gc_run(&Extractive::default(), &dry, |_| ())?.sources, 2);
    /// let done = team.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ())?;
    /// assert_eq!((done.committed, done.sources, done.runs.len()), (1, 2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Namespace::gc_plan`]; those of a write that are not about one group. What was planned is given up before the
    /// call ends; `PlanOpen` where that fails too.
    pub fn gc_run(
        &self,
        summarizer: &dyn Summarizer,
        options: &GcRunOptions,
        mut each: impl FnMut(&GcRunReport),
    ) -> Result<GcRunReport> {
        self.gc_run_while(summarizer, options, u64::MAX, &mut |report| {
            each(report);
            true
        })
    }

    /// As [`Namespace::gc_run`], until the next group would let more memories go than `may_destroy`, and as long as `goes_on` says
    /// so, which is asked after each group.
    pub(super) fn gc_run_while(
        &self,
        summarizer: &dyn Summarizer,
        options: &GcRunOptions,
        may_destroy: u64,
        goes_on: &mut dyn FnMut(&GcRunReport) -> bool,
    ) -> Result<GcRunReport> {
        if self.db.tenants(Some(&self.name))?.is_empty() {
            return Ok(GcRunReport::default());
        }
        let group_tokens = options.plan.group_tokens.or(summarizer.group_tokens());
        let plan = GcOptions { group_tokens, ..options.plan.clone() };
        let options = &GcRunOptions { plan, ..*options };
        if options.dry_run {
            return self.gc_dry_run(summarizer, options);
        }
        let mut under_way = UnderWay { may_destroy, ..UnderWay::default() };
        let ended = self.gc_rounds(summarizer, options, goes_on, &mut under_way);
        let UnderWay { report, unfinished, given_up, .. } = under_way;
        // Groups that failed hold their sources until here: freed before, the next plan would take them again, and a
        // summarizer that always fails would be asked for ever.
        let freed = ended.and_then(|()| {
            for (plan, group, reason) in given_up {
                self.gc_abort(plan, Some(&group), &reason)?;
            }
            let over = "the run that made it is over";
            unfinished.iter().try_for_each(|plan| self.gc_abort(*plan, None, over).map(drop))
        });
        let Err(source) = freed else { return Ok(report) };
        let reason: String =
            format!("the run that made it failed: {source}").chars().take(REASON_CHARS).collect();
        let mut left_open = None;
        for plan in unfinished {
            let abort = self.gc_abort(plan, None, &reason).err();
            left_open = left_open.or(abort.map(|abort| (plan, abort)));
        }
        Err(match left_open {
            Some((plan, abort)) => {
                Error::PlanOpen { plan: plan.to_string(), source: Box::new(source), abort: Box::new(abort) }
            }
            None => source,
        })
    }

    /// Plans and commits until nothing is left to do, or `goes_on` says so.
    fn gc_rounds(
        &self,
        summarizer: &dyn Summarizer,
        options: &GcRunOptions,
        goes_on: &mut dyn FnMut(&GcRunReport) -> bool,
        UnderWay { report, unfinished, given_up, may_destroy }: &mut UnderWay,
    ) -> Result<()> {
        let mut read = Read::default();
        let mut is_over = options.are_done(report);
        while !is_over {
            let plan = self.gc_next_plan(&options.plan, &mut read)?;
            // Each plan looks at them again.
            report.damaged = report.damaged.max(plan.damaged);
            if plan.groups.is_empty() {
                break;
            }
            report.plans += 1;
            unfinished.push(plan.plan_id);
            let mut committed = 0;
            for group in &plan.groups {
                let goes = group.source_ids.len() as u64;
                if !is_over && goes > *may_destroy {
                    // No sweep could do it, so it keeps none from the others.
                    report.groups += 1;
                    report.refused += 1;
                    let reason =
                        format!("{}: {goes} memories would go, and {may_destroy} may", Refusal::Budget);
                    self.gc_refused(plan.plan_id, number(&group.group_id)?, Refusal::Budget)?;
                    given_up.push((plan.plan_id, group.group_id.clone(), reason.clone()));
                    report.fail(&refused(Refusal::Budget), reason);
                    continue;
                }
                report.budget_exhausted |= !is_over && report.sources + goes > *may_destroy;
                if is_over || report.budget_exhausted {
                    is_over = true;
                    break;
                }
                report.groups += 1;
                let is_committed = self.gc_one(summarizer, &plan, group, report, given_up)?;
                committed += usize::from(is_committed);
                // A plan that has expired holds its sources no more. The next would take them again, and be as late.
                let is_late = !is_committed && plan.expires_at <= self.gc_now()?;
                is_over = is_late || !goes_on(report) || options.are_done(report);
            }
            // Nothing of it is left to give up.
            if committed == plan.groups.len() {
                unfinished.pop();
            }
            is_over |= options.are_done(report);
        }
        Ok(())
    }

    /// Commits a summary for each group of a plan that waits for one. A group without a summary is given up, and the
    /// others go on. `each` is called after each group.
    ///
    /// ```
    /// use oubliette::gc::{Extractive, GcOptions};
    /// use oubliette::{Database, Draft, Kind};
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
    /// let plan = team.gc_plan(&GcOptions::default())?.plan_id;
    /// assert_eq!(team.gc_run_plan(&Extractive::default(), plan, |_| ())?.committed, 1);
    /// assert!(team.gc_run_plan(&Extractive::default(), plan, |_| ()).is_err()); // The plan is over.
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`; `Refused` for a plan that is over; those of a write that are not about one group.
    pub fn gc_run_plan(
        &self,
        summarizer: &dyn Summarizer,
        plan: RunId,
        mut each: impl FnMut(&GcRunReport),
    ) -> Result<GcRunReport> {
        let plan = self.gc_show(plan)?;
        if plan.state != PlanState::Open {
            let (code, why) = (Refusal::PlanClosed.as_str(), format!("the plan is {}", plan.state));
            return Err(Error::Refused { code, why, pointers: Vec::new() });
        }
        let (mut report, mut given_up) = (GcRunReport { plans: 1, ..GcRunReport::default() }, Vec::new());
        let waits = |group: &&GcGroup| matches!(group.state, GroupState::Planned | GroupState::Refused);
        for group in plan.groups.iter().filter(waits) {
            report.groups += 1;
            self.gc_one(summarizer, &plan, group, &mut report, &mut given_up)?;
            each(&report);
        }
        for (plan, group, reason) in given_up {
            self.gc_abort(plan, Some(&group), &reason)?;
        }
        Ok(report)
    }

    /// The summary that a summarizer writes of a pack, read strictly. An answer that is no summary is given back to the
    /// summarizer, so often as the policy says (`gc.repair_attempts`). Nothing changes.
    ///
    /// ```
    /// use oubliette::gc::Extractive;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea. That is how it was, and so it will be for all of us. Should we do that?")?.id;
    /// let summary = team.gc_summary_of(&Extractive::default(), &team.gc_pack_of(&[tea])?)?;
    /// assert_eq!(summary.source_ids, [tea.to_string()]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of the summarizer, among them `Refused` with the code `no_gain` where no summary is shorter than its sources; `Refused`
    /// where the answer stays no summary.
    pub fn gc_summary_of(&self, summarizer: &dyn Summarizer, pack: &InputPack) -> Result<SummaryDocument> {
        rehearsed(summarizer, pack, self.db.inner.in_force().policy.gc.repair_attempts)
    }

    /// The built-in summarizer, with the length that the policy in force gives its summaries.
    ///
    /// ```
    /// use oubliette::gc::Extractive;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// assert_eq!(team.gc_builtin()?, Extractive::new(0.2)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// None: the policy holds the bound of the length.
    pub fn gc_builtin(&self) -> Result<Extractive> {
        Extractive::new(self.db.inner.in_force().policy.gc.summary_tokens)
    }

    fn gc_now(&self) -> Result<Time> {
        let inner = &self.db.inner;
        Ok(inner.instant(&*inner.state()?))
    }

    /// Commits a summary for a group, and says whether there is one.
    fn gc_one(
        &self,
        summarizer: &dyn Summarizer,
        plan: &GcPlan,
        group: &GcGroup,
        report: &mut GcRunReport,
        given_up: &mut Vec<(RunId, String, String)>,
    ) -> Result<bool> {
        let pack = self.gc_pack(plan.plan_id, &group.group_id)?;
        let attempts = self.db.inner.in_force().policy.gc.repair_attempts;
        let answer = match answered(summarizer, &pack, attempts) {
            Ok((answer, _)) => answer,
            Err(why) if is_too_short(&why) => {
                report.too_short += 1;
                given_up.push((plan.plan_id, group.group_id.clone(), why.to_string()));
                return Ok(false);
            }
            Err(why) => {
                let reason: String = format!("no summary: {why}").chars().take(REASON_CHARS).collect();
                self.gc_refused(plan.plan_id, number(&group.group_id)?, Refusal::NoSummary)?;
                given_up.push((plan.plan_id, group.group_id.clone(), reason.clone()));
                report.aborted += 1;
                report.fail(&why, reason);
                return Ok(false);
            }
        };
        match self.gc_commit(plan.plan_id, &group.group_id, &answer, None) {
            Ok(done) => {
                report.committed += 1;
                report.summaries += 1;
                report.sources += done.deleted_count;
                report.tokens_before += group.estimated_tokens;
                report.runs.extend(done.run);
                report.recall_guard = report.recall_guard.and(done.recall_guard);
                if let Got::Memory(summary) = self.look_up(done.summary_memory_id, false)? {
                    report.tokens_after += token_estimate(&summary.text);
                }
                Ok(true)
            }
            Err(why @ Error::Refused { .. }) => {
                report.refused += 1;
                report.fail(&why, why.to_string());
                Ok(false)
            }
            Err(why) => Err(why),
        }
    }

    fn gc_dry_run(&self, summarizer: &dyn Summarizer, options: &GcRunOptions) -> Result<GcRunReport> {
        self.gc_planned(&options.plan, |rows, at, plans| {
            self.gc_rehearsed(summarizer, options, (rows, at), plans)
        })
    }

    /// Plans, as if each plan before had been carried out, and asks for the summaries.
    fn gc_rehearsed(
        &self,
        summarizer: &dyn Summarizer,
        options: &GcRunOptions,
        (rows, at): (&Snapshot, (NsId, Time)),
        mut plans: Plans,
    ) -> Result<GcRunReport> {
        let mut report = GcRunReport::default();
        let in_force = self.db.inner.in_force();
        let (gc, budget) = (&in_force.policy.gc, self.db.inner.budget_of(at.0, &in_force.policy)?);
        loop {
            let found = plans.groups(rows)?;
            report.damaged = plans.damaged();
            if found.is_empty() {
                return Ok(report);
            }
            report.plans += 1;
            for group in &found {
                if options.are_done(&report) {
                    return Ok(report);
                }
                report.groups += 1;
                let pack = pack(rows, at, group.sources.iter().map(|stamp| stamp.id), gc)?;
                match rehearsed(summarizer, &pack, gc.repair_attempts) {
                    Ok(document) => {
                        let guard = self.gc_rehearse(&document, group, &options.plan.probes)?;
                        if guard.is_below(gc.recall_floor) {
                            report.refused += 1;
                            let refusal = Refusal::RecallBelowFloor;
                            report.fail(&refused(refusal), refusal.to_string());
                            continue;
                        }
                        report.recall_guard = report.recall_guard.and(guard);
                        if gc.delete_sources && group.sources.len() as u64 > budget {
                            report.refused += 1;
                            report.fail(&refused(Refusal::Budget), Refusal::Budget.to_string());
                            continue;
                        }
                        report.committed += 1;
                        report.summaries += 1;
                        report.sources += if gc.delete_sources { group.sources.len() as u64 } else { 0 };
                        report.tokens_before += group.tokens;
                        report.tokens_after += token_estimate(&document.content());
                    }
                    Err(why) if is_too_short(&why) => report.too_short += 1,
                    Err(why) => {
                        let is_refused = matches!(why, Error::Refused { .. });
                        *if is_refused { &mut report.refused } else { &mut report.aborted } += 1;
                        report.fail(&why, why.to_string());
                    }
                }
            }
        }
    }

    /// What would find the summary of a group in the place of its sources, if nobody wrote before it.
    fn gc_rehearse(
        &self,
        document: &SummaryDocument,
        group: &GroupRow,
        probes: &[String],
    ) -> Result<RecallGuard> {
        let inner = &self.db.inner;
        let sources: Vec<MemoryId> = group.sources.iter().map(|stamp| stamp.id).collect();
        let shared = self.gc_read(|rows, ns, _| shared(rows, ns, &sources))?.unwrap_or_default();
        let mut drafts = [prepare(draft_of(document, &shared))?];
        inner.embed_drafts(&self.name, &mut drafts, true)?;
        let [draft] = drafts;
        let (published, in_force) = (inner.state()?, inner.in_force());
        let guard = self.gc_guard(&published, group.part, probes, &sources, &draft)?;
        let reader = Reader::open(&*published, &self.name, &inner.secret, inner.instant(&published))?;
        guard.ask(&reader, &in_force.policy.recall, &sources)
    }

    /// What a summary stands for: its sources, with the tombstones of those that are gone.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// let mut draft = Draft::new("Ann and her drinks");
    /// draft.sources = Some(vec![tea]);
    /// let summary = team.add(draft)?.id;
    /// assert_eq!(team.expand(summary)?.sources, [(tea, None)]);
    /// assert!(team.expand("nobody").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`; `Conflict` for a memory that is gone itself.
    pub fn expand(&self, name: impl Into<crate::model::Name>) -> Result<Expanded> {
        let name = name.into();
        let summary = match self.look_up(name.clone(), false)? {
            Got::Memory(summary) if summary.limbo.is_none() => summary,
            _ => {
                let why = "it is gone itself; its tombstone tells why".to_owned();
                return Err(Error::Conflict { what: format!("expand {}", name.as_str()), why });
            }
        };
        let mut damaged = BTreeSet::new();
        let mut stone = |id: MemoryId| {
            let stone = match self.look_up(id, false) {
                Ok(Got::Tombstone(stone)) => Some(stone),
                Ok(Got::Memory(memory)) => memory.limbo.and_then(|limbo| limbo.tombstone),
                // No memory was made from one that never was, so what names that is damaged.
                Err(why) if why.is_damage() || matches!(why, Error::NotFound { .. }) => {
                    damaged.insert(id);
                    None
                }
                Err(other) => return Err(other),
            };
            Ok((id, stone))
        };
        let sources = summary.sources.iter().map(|id| stone(*id)).collect::<Result<_>>()?;
        Ok(Expanded { summary: summary.id, sources, damaged })
    }
}

/// The error of a group that is refused.
fn refused(refusal: Refusal) -> Error {
    Error::Refused { code: refusal.as_str(), why: refusal.to_string(), pointers: Vec::new() }
}

/// Whether a summarizer gave no summary because none would be shorter than the sources. Nothing has failed then.
fn is_too_short(why: &Error) -> bool {
    matches!(why, Error::Refused { code, .. } if *code == Refusal::NoGain.as_str())
}

/// The answer of a summarizer for a pack, and what became of it. One that is no summary is given back with what is wrong
/// with it, so often, until it is one.
///
/// # Errors
/// When there is no answer at all.
fn answered(
    summarizer: &dyn Summarizer,
    pack: &InputPack,
    attempts: u32,
) -> Result<(String, std::result::Result<Accepted, Vec<Fault>>)> {
    let expected = Expected::of(pack);
    let mut answer = summarizer.summarize(pack)?;
    for _ in 0..attempts {
        let faults = match accept(&answer, &expected) {
            Ok(accepted) => foreign(&accepted.document, &expected),
            Err(faults) => faults,
        };
        if faults.is_empty() {
            break;
        }
        match summarizer.repair(pack, &answer, &faults) {
            Ok(Some(better)) => answer = better,
            Ok(None) => break,
            Err(why) => {
                tracing::warn!(%why, "a summary could not be repaired");
                break;
            }
        }
    }
    let accepted = accept(&answer, &expected);
    Ok((answer, accepted))
}

/// The sources that a summary names and was not shown. Its commit is refused.
fn foreign(document: &SummaryDocument, expected: &Expected) -> Vec<Fault> {
    let named = document.source_ids.iter().enumerate();
    let foreign = named.filter(|(_, id)| !expected.committing.contains(id));
    foreign.map(|(at, _)| Fault::new(format!("/source_ids/{at}"), "is none of the sources")).collect()
}

/// The summary of a pack, as it would be stored.
fn rehearsed(summarizer: &dyn Summarizer, pack: &InputPack, attempts: u32) -> Result<SummaryDocument> {
    let refused = |refusal: Refusal, faults: Vec<Fault>| Error::Refused {
        code: refusal.as_str(),
        why: Fault::first_of(&faults),
        pointers: faults.into_iter().map(|fault| fault.pointer).collect(),
    };
    let (_, accepted) = answered(summarizer, pack, attempts)?;
    let document = accepted.map_err(|faults| refused(Refusal::InvalidSummary, faults))?.document;
    match foreign(&document, &Expected::of(pack)) {
        faults if faults.is_empty() => Ok(document),
        faults => Err(refused(Refusal::BadProvenance, faults)),
    }
}
