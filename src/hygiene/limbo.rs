//! Which rows of limbo can no undo ask for any more? The pass `limbo`.

use crate::error::{Result, sound};
use crate::hygiene::pass::{Applied, Job, MaintenancePass, PlanInput, Planned, Slice, Step, StepInput};
use crate::hygiene::plan::Stop;
use crate::hygiene::told::PassReport;
use crate::ledger::{Change, Context, Entry};
use crate::model::{Actor, NamespaceName, Pass, RuleId, RunId, Span, Time, Times};
use crate::store::{NsId, Rows, Snapshot};

/// The pass `limbo`.
pub(crate) struct Limbo;

impl MaintenancePass for Limbo {
    fn plan(&self, input: PlanInput<'_>, _: Stop<'_>) -> Result<Option<Planned>> {
        // An instant that lies exactly at the horizon is past it.
        let until = input.field.now.minus(input.policy.undo.horizon).plus(Span::from_millis(1));
        let ns = input.field.ns;
        let due = input.published.snapshot().limbo_before(ns, until, usize::MAX)?.len() as u64;
        let namespace = input.namespace.clone();
        let job = Emptying { namespace, ns, until, due, erased: 0, is_over: due == 0, run: None };
        Ok(Some(Planned::Jobs(vec![Box::new(job)])))
    }
}

struct Emptying {
    namespace: NamespaceName,
    ns: NsId,
    /// Rows that were removed before it are erased.
    until: Time,
    due: u64,
    erased: u64,
    is_over: bool,
    run: Option<RunId>,
}

impl Job for Emptying {
    fn next<'s>(&'s mut self, input: StepInput<'s>) -> Result<Option<Step<'s>>> {
        self.run = input.run;
        let rows = input.rows;
        Ok((!self.is_over).then(|| -> Step<'s> { Box::new(move |slice| self.purge(slice, rows)) }))
    }

    fn applied(&mut self, applied: Applied) {
        self.erased += applied.count;
        self.is_over = applied.count == 0 || self.erased >= self.due;
    }

    fn tell(&self, _: &Snapshot, report: &mut PassReport) -> Result<()> {
        report.planned += self.due;
        report.scanned += self.due;
        report.changed += self.erased;
        report.left += self.due.saturating_sub(self.erased);
        // Of a run that has erased nothing no row of the file tells.
        report.run = self.run.filter(|_| self.erased > 0).or(report.run);
        Ok(())
    }
}

impl Emptying {
    /// Erases at most `most` rows and raises the purge horizon.
    fn purge(&self, slice: &mut Slice<'_, '_, '_>, most: usize) -> Result<Applied> {
        let context = Context { actor: Actor::Sweeper, ..slice.context.clone() };
        let due = slice.ledger.tx.limbo_before(self.ns, self.until, most)?;
        let mut horizons = slice.ledger.tx.namespace(self.namespace.as_str())?;
        for (removed_at, id) in &due {
            let vitals = sound(slice.ledger.tx.vitals(self.ns, *id))?.flatten();
            // Of a damaged row it is known that it was removed.
            let gone = Times { removed_at: Some(*removed_at), ..Times::default() };
            if let Some(row) = &mut horizons {
                row.raise_horizons(&vitals.map_or(gone, |vitals| vitals.times));
            }
            let entry = Entry::new(RuleId::of_pass(Pass::Limbo), Change::Purge { id: *id });
            slice.ledger.apply(&context, entry)?;
        }
        if let Some(row) = horizons.filter(|_| !due.is_empty()) {
            slice.ledger.tx.put_namespace(self.namespace.as_str(), &row)?;
        }
        Ok(Applied::rows(due.len() as u64))
    }
}
