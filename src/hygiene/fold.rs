//! Which accesses does no commit hold yet, which past queries does the policy still keep, and which plans are late? The pass
//! `fold`, and what every write does of its work.

use std::sync::Arc;

use crate::error::{Result, sound};
use crate::hygiene::accesses::{Accesses, Noted, Taken};
use crate::hygiene::pass::{Applied, Job, MaintenancePass, PlanInput, Planned, Step, StepInput};
use crate::hygiene::plan::Stop;
use crate::hygiene::told::PassReport;
use crate::ingest::grown;
use crate::ledger::{Change, Context, Entry, Folded, Ledger, queries_beyond, tier_ttl};
use crate::model::{Access, Actor, MemoryId, Pass, RuleId, RunId, Time, Vitals};
use crate::policy::Policy;
use crate::store::{ContextRows, NsId, PlanRows, Rows, Snapshot};

/// The pass `fold`.
pub(crate) struct Fold;

impl MaintenancePass for Fold {
    fn plan(&self, input: PlanInput<'_>, _: Stop<'_>) -> Result<Option<Planned>> {
        let (ns, noted) = (input.field.ns, Arc::clone(&input.field.noted));
        let ids = noted.ids(ns);
        // What the log tells can't be undone before its memories are beyond undo.
        let kept = input.policy.access.log_ttl.max(input.policy.undo.horizon);
        let until = input.field.now.minus(kept);
        let old = input.published.snapshot().contexts_before(ns, until, usize::MAX)?.len() as u64;
        let beyond = queries_beyond(&**input.published.snapshot(), ns, kept_of(input.policy))?.len() as u64;
        let late = input.published.snapshot().late_gc_plans(ns, input.field.now)?.len() as u64;
        let due = beyond + late;
        let is_over = due == 0 && noted.queries.len(Some(ns)) == 0;
        Ok(Some(Planned::Jobs(vec![
            Box::new(Folding::of(ns, noted, ids)),
            Box::new(Trimming { ns, until, due: old, dropped: 0, is_over: old == 0, run: None }),
            Box::new(Keeping { ns, due, dropped: 0, is_over, run: None }),
        ])))
    }
}

struct Folding {
    ns: NsId,
    noted: Arc<Accesses>,
    /// Memories with accesses when the pass was planned. Searches go on, and this run counts no others.
    ids: Vec<MemoryId>,
    /// What no step has counted. No commit of others counts it meanwhile, because damage in it would take what is beside it along.
    left: Option<Taken>,
    /// What the present step counts.
    taken: Option<Taken>,
    /// Most memories of a step: fewer after damage, until the memory is found that can't be written.
    most: usize,
    /// Memories that there were to count at first.
    due: u64,
    folded: u64,
    /// Damaged memories of the present step, and of all.
    damaged: (u64, u64),
    run: Option<RunId>,
}

impl Folding {
    fn of(ns: NsId, noted: Arc<Accesses>, ids: Vec<MemoryId>) -> Self {
        let due = ids.len() as u64;
        let (left, taken, most, damaged) = (None, None, usize::MAX, (0, 0));
        Folding { ns, noted, ids, left, taken, most, due, folded: 0, damaged, run: None }
    }
}

impl Job for Folding {
    fn next<'s>(&'s mut self, input: StepInput<'s>) -> Result<Option<Step<'s>>> {
        self.run = input.run;
        let left = self.left.get_or_insert_with(|| self.noted.take_of(self.ns, self.ids.drain(..)));
        if left.is_empty() {
            return Ok(None);
        }
        let taken = &*self.taken.insert(left.split(self.most.min(input.rows)));
        let (policy, damaged) = (input.policy, &mut self.damaged.0);
        Ok(Some(Box::new(move |slice| {
            let folded = fold(slice.ledger, &slice.context, policy, taken)?;
            *damaged = folded.damaged;
            Ok(Applied::rows(folded.counted))
        })))
    }

    fn applied(&mut self, applied: Applied) {
        if let Some(mut taken) = self.taken.take() {
            taken.is_committed();
        }
        self.most = self.most.saturating_mul(2);
        self.folded += applied.count;
        self.damaged.1 += self.damaged.0;
    }

    fn met_damage(&mut self) -> bool {
        let (Some(mut taken), Some(left)) = (self.taken.take(), &mut self.left) else { return false };
        self.most = (taken.len() / 2).max(1);
        if taken.len() > 1 {
            left.put_back(taken);
        } else {
            taken.give_up();
            self.damaged.1 += 1;
        }
        true
    }

    fn tell(&self, _: &Snapshot, report: &mut PassReport) -> Result<()> {
        report.planned += self.due;
        report.scanned += self.due;
        report.changed += self.folded;
        report.damaged += self.damaged.1;
        report.left += (self.ids.len() + self.left.as_ref().map_or(0, Taken::len)) as u64;
        report.run = self.run.filter(|_| self.folded > 0).or(report.run);
        Ok(())
    }
}

/// Takes contexts out of the inclusion log that are past their time.
struct Trimming {
    ns: NsId,
    /// Contexts before it are past their time.
    until: Time,
    due: u64,
    dropped: u64,
    is_over: bool,
    run: Option<RunId>,
}

impl Job for Trimming {
    fn next<'s>(&'s mut self, input: StepInput<'s>) -> Result<Option<Step<'s>>> {
        self.run = input.run;
        let (ns, until, rows) = (self.ns, self.until, input.rows);
        Ok((!self.is_over).then(|| -> Step<'s> {
            Box::new(move |slice| {
                let places = slice.ledger.tx.contexts_before(ns, until, rows)?;
                let count = places.len() as u64;
                if count > 0 {
                    let context = Context { actor: Actor::Sweeper, ..slice.context.clone() };
                    let change = Change::DropContexts { places };
                    slice.ledger.apply(&context, Entry::new(RuleId::of_pass(Pass::Fold), change))?;
                }
                Ok(Applied::rows(count))
            })
        }))
    }

    fn applied(&mut self, applied: Applied) {
        self.dropped += applied.count;
        self.is_over = applied.count == 0 || self.dropped >= self.due;
    }

    fn tell(&self, _: &Snapshot, report: &mut PassReport) -> Result<()> {
        tell_dropped(self.due, self.dropped, self.run, report);
        Ok(())
    }
}

/// Counts what a run has dropped of what was due.
fn tell_dropped(due: u64, dropped: u64, run: Option<RunId>, report: &mut PassReport) {
    report.planned += due;
    report.scanned += due;
    report.changed += dropped;
    report.left += due.saturating_sub(dropped);
    report.run = run.filter(|_| dropped > 0).or(report.run);
}

/// The number of queries of a partition that a policy keeps.
fn kept_of(policy: &Policy) -> u32 {
    if policy.gc.keep_queries { policy.gc.query_log } else { 0 }
}

/// Takes away the queries that the policy no longer keeps, and ends the plans whose time is over, which takes away their
/// probes. Its commit keeps the queries that searches have noted, as every one does.
struct Keeping {
    ns: NsId,
    /// Queries and plans that there were.
    due: u64,
    dropped: u64,
    is_over: bool,
    run: Option<RunId>,
}

impl Job for Keeping {
    fn next<'s>(&'s mut self, input: StepInput<'s>) -> Result<Option<Step<'s>>> {
        self.run = input.run;
        if self.is_over {
            return Ok(None);
        }
        let (ns, kept) = (self.ns, kept_of(input.policy));
        // Rings are bounded, so one step is enough.
        Ok(Some(Box::new(move |slice| {
            let ended = slice.ledger.tx.end_late_gc_plans(ns, slice.context.now)?;
            Ok(Applied::rows(slice.ledger.trim_queries(ns, kept)? + ended))
        })))
    }

    fn applied(&mut self, applied: Applied) {
        (self.dropped, self.is_over) = (applied.count, true);
    }

    fn tell(&self, _: &Snapshot, report: &mut PassReport) -> Result<()> {
        tell_dropped(self.due, self.dropped, self.run, report);
        Ok(())
    }
}

/// What became of accesses that were to be counted. A memory that is gone is neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FoldCount {
    /// Memories whose accesses are counted.
    pub(crate) counted: u64,
    /// Memories that can't be read.
    pub(crate) damaged: u64,
}

/// Counts accesses of the namespace of the context in the statistics of their memories; says how many memories those
/// were. A memory that is gone, or damaged, is left out.
///
/// # Errors
/// `Corrupted` where rows that follow from others are damaged, or a page on which a row is to be written.
pub(crate) fn fold(
    ledger: &mut Ledger<'_, '_>,
    context: &Context,
    policy: &Policy,
    taken: &Taken,
) -> Result<FoldCount> {
    let (mut rows, mut count) = (Vec::new(), FoldCount::default());
    for (_, noted) in taken.by_namespace().filter(|(ns, _)| *ns == context.ns) {
        for ((_, id), noted) in noted {
            let vitals = sound(ledger.tx.vitals(context.ns, *id))?;
            let access = sound(ledger.tx.access(context.ns, *id))?;
            match (vitals, access) {
                (Some(Some(vitals)), Some(access)) => rows.push(folded(*id, vitals, access, noted, policy)),
                (Some(None), _) => {}
                _ => count.damaged += 1,
            }
        }
    }
    count.counted = rows.len() as u64;
    if !rows.is_empty() {
        let context = Context { actor: Actor::Sweeper, ..context.clone() };
        ledger.apply(&context, Entry::new(RuleId::of_pass(Pass::Fold), Change::Fold { rows }))?;
    }
    Ok(count)
}

/// The row after its accesses. A row that was superseded or removed since its accesses is counted, and gains nothing else.
fn folded(id: MemoryId, before: Vitals, mut access: Access, noted: &Noted, policy: &Policy) -> Folded {
    noted.count_in(&mut access);
    let (mut expires_at, mut confidence) = (None, None);
    if before.times.superseded.is_none() && before.times.removed_at.is_none() {
        if noted.protects(access.retrieval_count, policy) {
            let until = noted.last.plus(policy.protect.period);
            access.protected_until = access.protected_until.max(Some(until));
        }
        expires_at = slid(&before, noted, policy);
        confidence = grown(before.confidence, access.confidence_grown_at, noted.last, policy);
        if confidence.is_some() {
            access.confidence_grown_at = Some(noted.last);
        }
    }
    Folded { id, before, access, expires_at, confidence }
}

/// The end of a memory after its accesses; none where they do not move it. A search finds no expired row. So an access came
/// before the end, whenever it is counted, and moves the end.
pub(super) fn slid(vitals: &Vitals, noted: &Noted, policy: &Policy) -> Option<Time> {
    let life = vitals.life();
    life.end.filter(|end| noted.last < *end)?;
    life.slid(noted.last, tier_ttl(vitals.tier, &policy.ttl)).end.filter(|end| life.end != Some(*end))
}
