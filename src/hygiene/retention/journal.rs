//! Rows of the journal. They are numbered in the order of their instants.

use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::hygiene::pass::Slice;
use crate::hygiene::retention::aged::{Aged, RetentionReport, Site, Visit};
use crate::model::{JournalRow, Time};
use crate::policy::Policy;
use crate::store::control::RunState;
use crate::store::{Rows, Snapshot};

/// Which rows of the journal are too old.
pub(super) struct Journal {
    site: Site,
    /// Rows before this instant are.
    old: Time,
    /// Rows with a lower number are as well, if the horizon of undo is over for them.
    first: u64,
}

impl Journal {
    pub(super) fn of(rows: &Snapshot, policy: &Policy, site: Site) -> Result<Self> {
        // Of more rows than these the oldest go; the numbers are those of the whole file.
        let first = rows.clock()?.next_seq.saturating_sub(policy.journal.max_rows);
        Ok(Journal { site, old: site.now.minus(policy.journal.max_age).min(site.undoable), first })
    }

    fn is_over(&self, seq: u64, row: &JournalRow) -> bool {
        row.at < self.old || (seq < self.first && row.at < self.site.undoable)
    }
}

impl Aged for Journal {
    /// The number of the row.
    type Place = u64;

    const JOURNALED: Option<&'static str> = None;

    /// The numbers of the rows that are too old; damaged rows between them as well.
    fn due(&self, rows: &Snapshot, after: Option<u64>, visit: Visit<'_, u64>) -> Result<u64> {
        let mut damaged = Vec::new();
        let from = after.map_or(0, |last| last.saturating_add(1));
        rows.journal_on(self.site.ns, from, &mut |seq, row| {
            match row {
                // Of a damaged row the rows around it tell the age.
                None => damaged.push(seq),
                Some(row) if self.is_over(seq, &row) => {
                    return Ok(damaged.drain(..).chain([seq]).try_for_each(&mut *visit));
                }
                Some(_) => return Ok(ControlFlow::Break(())),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(0)
    }

    /// An undo that is under way needs its rows.
    fn end(&self, slice: &mut Slice<'_, '_, '_>, page: &[u64]) -> Result<u64> {
        let (ns, mut over) = (self.site.ns, Vec::with_capacity(page.len()));
        for seq in page {
            let row = sound(slice.ledger.tx.journal_row(ns, *seq))?.flatten();
            let run = row.and_then(|row| row.run);
            // A run that can't be read can't be taken back either.
            let run = run.map(|run| sound(slice.ledger.tx.run(ns, run))).transpose()?.flatten().flatten();
            if run.is_none_or(|run| run.state != RunState::Undoing) {
                over.push(*seq);
            }
        }
        slice.ledger.end_journal(ns, &over)
    }

    fn counted(report: &mut RetentionReport) -> &mut u64 {
        &mut report.journal
    }
}
