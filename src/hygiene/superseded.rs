//! Which superseded rows does nobody ask for any more? The pass `superseded`.
//!
//! A superseded row is kept for history, for restoring, and for reads of the past. The pass erases the rows that were
//! superseded longer ago than the policy keeps them. They are older than any run of maintenance that can still be taken
//! back, so they go without waiting in limbo. Nothing that a live read sees changes.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Result, sound};
use crate::hygiene::pass::{Applied, Job, MaintenancePass, PlanInput, Planned, Slice, Step, StepInput};
use crate::hygiene::plan::Stop;
use crate::hygiene::told::PassReport;
use crate::ledger::{Change, Context, Entry};
use crate::model::{
    Actor, MemoryId, NamespaceName, Op, Pass, RuleId, RunId, Span, SupersedeMode, Time, TombstoneReason,
    Vitals,
};
use crate::store::control::{RunRow, RunState};
use crate::store::{NsId, Rows, Snapshot, Table};

/// The pass `superseded`.
pub(crate) struct Superseded;

impl MaintenancePass for Superseded {
    fn plan(&self, input: PlanInput<'_>, _: Stop<'_>) -> Result<Option<Planned>> {
        let ttl = input.policy.sweeper.tombstone_ttl;
        if ttl == Span::ZERO {
            return Ok(Some(Planned::Jobs(Vec::new())));
        }
        let (ns, now, horizon) = (input.field.ns, input.field.now, input.policy.undo.horizon);
        // What a run has superseded can be taken back until its horizon.
        let until = now.minus(ttl).min(now.minus(horizon));
        let due = input
            .published
            .snapshot()
            .instants_before(Table::SupersededTime, ns, until, None, usize::MAX)?
            .len() as u64;
        let namespace = input.namespace.clone();
        let job = Purging {
            namespace,
            ns,
            until,
            horizon,
            due,
            tried: 0,
            erased: 0,
            page: Vec::new(),
            is_over: due == 0,
            run: None,
        };
        Ok(Some(Planned::Jobs(vec![Box::new(job)])))
    }
}

struct Purging {
    namespace: NamespaceName,
    ns: NsId,
    /// Rows that were superseded before it are erased.
    until: Time,
    /// How long a run can be taken back.
    horizon: Span,
    /// Rows that were superseded before `until` when the pass began.
    due: u64,
    tried: u64,
    erased: u64,
    /// The rows of the last step, by the instant of their supersession.
    page: Vec<(Time, MemoryId)>,
    is_over: bool,
    run: Option<RunId>,
}

impl Job for Purging {
    fn next<'s>(&'s mut self, input: StepInput<'s>) -> Result<Option<Step<'s>>> {
        self.run = input.run;
        if self.is_over {
            return Ok(None);
        }
        let after = self.page.last().copied();
        // Rows that are kept stand before the others in the order, so the next step goes on behind them.
        self.page = input.published.snapshot().instants_before(
            Table::SupersededTime,
            self.ns,
            self.until,
            after,
            input.rows,
        )?;
        let this = &*self;
        Ok(Some(Box::new(move |slice| this.purge(slice))))
    }

    fn applied(&mut self, applied: Applied) {
        self.erased += applied.count;
        self.tried += self.page.len() as u64;
        self.is_over = self.page.is_empty() || self.tried >= self.due;
    }

    fn tell(&self, _: &Snapshot, report: &mut PassReport) -> Result<()> {
        report.planned += self.due;
        report.scanned += self.due;
        report.changed += self.erased;
        report.tombstoned += self.erased;
        report.skipped += self.tried - self.erased;
        report.left += self.due.saturating_sub(self.tried);
        // Of a run that has erased nothing no row of the file tells.
        report.run = self.run.filter(|_| self.erased > 0).or(report.run);
        Ok(())
    }
}

impl Purging {
    /// Erases the rows of a page that may go, and raises the purge horizons.
    fn purge(&self, slice: &mut Slice<'_, '_, '_>) -> Result<Applied> {
        let context = Context { actor: Actor::Sweeper, ..slice.context.clone() };
        let row = slice.ledger.tx.namespace(self.namespace.as_str())?;
        let Some(mut row) = row else { return Ok(Applied::default()) };
        let (mut erased, mut writers) = (0, RunsOf::new());
        for (_, id) in &self.page {
            // A damaged row is left to the repair.
            let Some(vitals) = sound(slice.ledger.tx.vitals(self.ns, *id))?.flatten() else { continue };
            let superseded = vitals.times.superseded.filter(|by| by.at < self.until);
            let Some(superseded) = superseded.filter(|_| may_go(&vitals, context.now)) else { continue };
            let at = At { now: context.now, horizon: self.horizon };
            if is_restore_target(&*slice.ledger.tx, self.ns, (*id, superseded.by), at, &mut writers)? {
                continue;
            }
            let (reason, replaced_by) = (TombstoneReason::SupersededPurged, Some(superseded.by));
            let change = Change::Remove { id: *id, reason, replaced_by };
            slice.ledger.apply(&context, Entry::new(RuleId::of_pass(Pass::Superseded), change))?;
            row.raise_horizons(&vitals.times);
            erased += 1;
        }
        if erased > 0 {
            slice.ledger.tx.put_namespace(self.namespace.as_str(), &row)?;
        }
        Ok(Applied { rows: self.page.len() as u64, count: erased, ..Applied::default() })
    }
}

/// Whether a superseded row may be erased: maintenance did not remove it before, no flag protects it, and no live read
/// sees it, now or later. One that is to be replaced at an instant ahead is still seen.
fn may_go(vitals: &Vitals, now: Time) -> bool {
    let times = &vitals.times;
    let is_ahead =
        times.superseded.is_some_and(|by| by.mode == SupersedeMode::Replaced) && now < times.until();
    times.removed_at.is_none() && !vitals.is_protected() && !is_ahead
}

/// The runs that wrote what took the place of rows. Many rows may have given their place to one of many writers.
type RunsOf = BTreeMap<MemoryId, BTreeSet<RunId>>;

/// Until when a run can be taken back.
#[derive(Clone, Copy)]
struct At {
    now: Time,
    horizon: Span,
}

/// Whether an undo that is under way, or in time, would make a row live again: of the run that superseded the row, or of
/// the import that wrote what took its place.
fn is_restore_target(
    rows: &impl Rows,
    ns: NsId,
    (id, by): (MemoryId, MemoryId),
    at: At,
    writers: &mut RunsOf,
) -> Result<bool> {
    let is_open = |run: RunId| -> Result<bool> {
        let row = sound(rows.run(ns, run))?.flatten();
        Ok(row.is_some_and(|row| can_be_undone(&row, at.now, at.horizon)))
    };
    let mut runs = match writers.get(&by) {
        Some(runs) => runs.clone(),
        None => {
            let mut runs = BTreeSet::new();
            sound(rows.any_holder(ns, by, &mut |holder| {
                runs.extend(holder.run);
                false
            }))?;
            writers.insert(by, runs.clone());
            runs
        }
    };
    let steps = rows.journal_of(ns, id)?;
    runs.extend(steps.into_iter().filter(|step| step.op == Op::Supersede).filter_map(|step| step.run));
    for run in runs {
        if is_open(run)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn can_be_undone(row: &RunRow, now: Time, horizon: Span) -> bool {
    match row.state {
        RunState::Undone => false,
        RunState::Undoing => true,
        RunState::Open | RunState::Done => now < Time::from_millis(row.latest_ms).plus(horizon),
    }
}
