//! What of the past is older than the policy keeps it? The pass `retention`.
//!
//! The journal is numbered in the order of its instants, so what is too old stands at its front, and the pass reads no row
//! that stays but the first. A row is kept for `undo.horizon` in any case, and while an undo that is under way needs it.

use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::hygiene::pass::{Applied, Job, MaintenancePass, PlanInput, Planned, Slice, Step, StepInput};
use crate::hygiene::plan::Stop;
use crate::hygiene::told::PassReport;
use crate::model::{JournalRow, RunId, Time};
use crate::store::control::RunState;
use crate::store::{NsId, Rows, Snapshot};

/// The pass `retention`.
pub(crate) struct Retention;

impl MaintenancePass for Retention {
    fn plan(&self, input: PlanInput<'_>, _: Stop<'_>) -> Result<Option<Planned>> {
        let (ns, now) = (input.field.ns, input.field.now);
        let (snapshot, journal) = (input.published.snapshot(), &input.policy.journal);
        // Of more rows than these the oldest go; the numbers are those of the whole file.
        let first = snapshot.clock()?.next_seq.saturating_sub(journal.max_rows);
        let undoable = now.minus(input.policy.undo.horizon);
        let ages = Ages { old: now.minus(journal.max_age).min(undoable), first, undoable };
        let due = ages.due(&**snapshot, ns, 0, usize::MAX)?.len() as u64;
        let job =
            Ending { ns, ages, due, tried: 0, removed: 0, page: Vec::new(), is_over: due == 0, run: None };
        Ok(Some(Planned::Jobs(vec![Box::new(job)])))
    }
}

/// Which rows of the journal are too old.
#[derive(Clone, Copy)]
struct Ages {
    /// Rows before this instant are.
    old: Time,
    /// Rows with a lower number are as well, if they are older than `undoable`.
    first: u64,
    /// No row from this instant on is.
    undoable: Time,
}

impl Ages {
    fn is_over(&self, seq: u64, row: &JournalRow) -> bool {
        row.at < self.old || (seq < self.first && row.at < self.undoable)
    }

    /// The numbers of the rows that are too old, from a number on, at most `most`; damaged rows between them as well.
    fn due(&self, rows: &impl Rows, ns: NsId, from: u64, most: usize) -> Result<Vec<u64>> {
        let (mut all, mut damaged) = (Vec::new(), Vec::new());
        rows.journal_on(ns, from, &mut |seq, row| {
            match row {
                // Of a damaged row the rows around it tell the age.
                None => damaged.push(seq),
                Some(row) if self.is_over(seq, &row) => {
                    all.append(&mut damaged);
                    all.push(seq);
                }
                Some(_) => return Ok(ControlFlow::Break(())),
            }
            Ok(if all.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        all.truncate(most);
        Ok(all)
    }
}

struct Ending {
    ns: NsId,
    ages: Ages,
    /// Rows that were too old when the pass began.
    due: u64,
    tried: u64,
    removed: u64,
    /// The rows of the last step.
    page: Vec<u64>,
    is_over: bool,
    run: Option<RunId>,
}

impl Job for Ending {
    fn next<'s>(&'s mut self, input: StepInput<'s>) -> Result<Option<Step<'s>>> {
        self.run = input.run;
        if self.is_over {
            return Ok(None);
        }
        // Rows that are kept stand before the others, so the next step goes on behind them.
        let from = self.page.last().map_or(0, |last| last + 1);
        self.page = self.ages.due(&**input.published.snapshot(), self.ns, from, input.rows)?;
        let this = &*self;
        Ok(Some(Box::new(move |slice| this.end(slice))))
    }

    fn applied(&mut self, applied: Applied) {
        self.removed += applied.count;
        self.tried += self.page.len() as u64;
        self.is_over = self.page.is_empty() || self.tried >= self.due;
    }

    fn tell(&self, _: &Snapshot, report: &mut PassReport) -> Result<()> {
        report.planned += self.due;
        report.scanned += self.due;
        report.changed += self.removed;
        report.skipped += self.tried - self.removed;
        report.left += self.due.saturating_sub(self.tried);
        // Of a run that has removed nothing no row of the file tells.
        report.run = self.run.filter(|_| self.removed > 0).or(report.run);
        Ok(())
    }
}

impl Ending {
    /// Removes the rows of a page that nobody needs.
    fn end(&self, slice: &mut Slice<'_, '_, '_>) -> Result<Applied> {
        let mut over = Vec::with_capacity(self.page.len());
        for seq in &self.page {
            let row = sound(slice.ledger.tx.journal_row(self.ns, *seq))?.flatten();
            let run = row.and_then(|row| row.run);
            let run = run.map(|run| slice.ledger.tx.run(self.ns, run)).transpose()?.flatten();
            if run.is_none_or(|run| run.state != RunState::Undoing) {
                over.push(*seq);
            }
        }
        let removed = slice.ledger.end_journal(self.ns, &over)?;
        Ok(Applied { rows: self.page.len() as u64, count: removed, ..Applied::default() })
    }
}
