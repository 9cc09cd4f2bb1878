//! What the sorts of rows that grow old have in common: where the pass looks, how it goes on, what it tells.

use std::ops::ControlFlow;

use serde::Serialize;

use crate::error::Result;
use crate::hygiene::pass::{Applied, Job, PlanInput, Slice, Step, StepInput};
use crate::hygiene::told::{PassReport, details};
use crate::model::{RunId, Time, is_zero};
use crate::policy::Policy;
use crate::store::{NsId, Snapshot};

/// Rows that a step looks up at most, and those of them after which it asks whether its slice has lasted long enough.
pub(super) const PAGE: usize = 1_024;
const PART: usize = 32;

/// What the pass `retention` removed, by its sort.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RetentionReport {
    /// Rows of the journal.
    #[serde(skip_serializing_if = "is_zero")]
    pub journal: u64,
    /// Plans of summaries.
    #[serde(skip_serializing_if = "is_zero")]
    pub plans: u64,
    /// Texts of messages, whose events stay.
    #[serde(skip_serializing_if = "is_zero")]
    pub payloads: u64,
    /// Events.
    #[serde(skip_serializing_if = "is_zero")]
    pub events: u64,
    /// Tombstones.
    #[serde(skip_serializing_if = "is_zero")]
    pub tombstones: u64,
}

details!(RetentionReport {
    numbers { journal "journal", plans "plans", payloads "payloads", events "events", tombstones "tombstones" }
});

/// Where and when the pass looks.
#[derive(Clone, Copy)]
pub(super) struct Site {
    pub(super) ns: NsId,
    pub(super) now: Time,
    /// Nothing from this instant on goes.
    pub(super) undoable: Time,
}

impl Site {
    pub(super) fn of(input: &PlanInput<'_>) -> Self {
        let Policy { undo, .. } = input.policy;
        let (ns, now) = (input.field.ns, input.field.now);
        Site { ns, now, undoable: now.minus(undo.horizon) }
    }
}

/// What is called with each row that is to go.
pub(super) type Visit<'v, P> = &'v mut dyn FnMut(P) -> ControlFlow<()>;

/// Rows of one sort that are too old.
pub(super) trait Aged: 'static {
    /// The place of a row in its order of time.
    type Place: Copy;

    /// The sort, as the journal names it where something of it goes; none for the journal itself, whose row would be one more
    /// to go.
    const JOURNALED: Option<&'static str>;

    /// Visits the rows that are to go, behind a place, and counts those that stay because they are damaged.
    fn due(&self, rows: &Snapshot, after: Option<Self::Place>, visit: Visit<'_, Self::Place>) -> Result<u64>;

    /// Takes away those of some of them that nothing needs, and says how many these were.
    fn end(&self, slice: &mut Slice<'_, '_, '_>, page: &[Self::Place]) -> Result<u64>;

    /// The number of the report that counts them.
    fn counted(report: &mut RetentionReport) -> &mut u64;
}

/// Removes the rows of one sort.
pub(super) struct Ending<A: Aged> {
    aged: A,
    /// Rows that were too old when the pass began.
    due: u64,
    damaged: u64,
    tried: u64,
    removed: u64,
    /// The rows of the last step.
    page: Vec<A::Place>,
    is_over: bool,
    run: Option<RunId>,
}

impl<A: Aged> Ending<A> {
    pub(super) fn begin(aged: A, rows: &Snapshot) -> Result<Box<dyn Job>> {
        let mut due = 0;
        let damaged = aged.due(rows, None, &mut |_| {
            due += 1;
            ControlFlow::Continue(())
        })?;
        Ok(Box::new(Ending {
            aged,
            due,
            damaged,
            tried: 0,
            removed: 0,
            page: Vec::new(),
            is_over: due == 0,
            run: None,
        }))
    }
}

impl<A: Aged> Job for Ending<A> {
    fn next<'s>(&'s mut self, input: StepInput<'s>) -> Result<Option<Step<'s>>> {
        self.run = input.run;
        if self.is_over {
            return Ok(None);
        }
        // Rows that are kept stand before the others, so the next step goes on behind them.
        let (after, most, mut page) = (self.page.last().copied(), input.rows.min(PAGE), Vec::new());
        self.aged.due(input.published.snapshot(), after, &mut |place| {
            page.push(place);
            if page.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        self.page = page;
        let this = &*self;
        Ok(Some(Box::new(move |slice| {
            let mut applied = Applied::default();
            for part in this.page.chunks(PART) {
                applied.count += this.aged.end(slice, part)?;
                applied.rows += part.len() as u64;
                if (slice.enough)() {
                    break;
                }
            }
            if let Some(what) = A::JOURNALED.filter(|_| applied.count > 0) {
                slice.ledger.journal_purge(&slice.context, what, applied.count)?;
            }
            Ok(applied)
        })))
    }

    fn applied(&mut self, applied: Applied) {
        self.removed += applied.count;
        self.tried += applied.rows;
        self.is_over = self.page.is_empty() || self.tried >= self.due;
        // What the slice had no time for stands first in the next page.
        self.page.truncate(usize::try_from(applied.rows).unwrap_or(usize::MAX));
    }

    fn tell(&self, _: &Snapshot, report: &mut PassReport) -> Result<()> {
        report.planned += self.due;
        report.scanned += self.due;
        report.changed += self.removed;
        report.skipped += self.tried - self.removed;
        report.damaged += self.damaged;
        report.left += self.due.saturating_sub(self.tried);
        *A::counted(report.report.of::<RetentionReport>()) += self.removed;
        // Of a run that has removed nothing no row of the file tells.
        report.run = self.run.filter(|_| self.removed > 0).or(report.run);
        Ok(())
    }
}
