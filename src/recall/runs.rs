//! The runs of a namespace, the newest first: how far each is, what it did, and how long it can be taken back.

use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::limits::{PAGE_MAX, within};
use crate::model::{RunId, RunPage, RunReport, RunSort, RunState, RunStatus, Span, Time};
use crate::recall::{Reader, Source};
use crate::store::control::RunRow;
use crate::store::{MessageRows, NsId, Read, Rows, Table, Walk, keys, meta_of};

/// What the handle that is asked knows of runs.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'h> {
    /// The runs that the handle works on.
    pub(crate) at_work: &'h [RunId],
    /// Whether the handle may write, so that nobody else does.
    pub(crate) may_write: bool,
    /// How long maintenance can be taken back (`undo.horizon`).
    pub(crate) horizon: Span,
}

impl<S: Source> Reader<'_, S> {
    /// At most `limit` runs that are older than `before`.
    ///
    /// # Errors
    /// `Invalid` for a limit outside 1 to 10,000; `Corrupted`.
    pub(crate) fn runs(
        &self,
        before: Option<RunId>,
        limit: usize,
        context: RunContext<'_>,
    ) -> Result<RunPage> {
        within("limit", limit, 1..=PAGE_MAX)?;
        let mut page = RunPage::default();
        let Some(ns) = self.ns else { return Ok(page) };
        let mut walk = Walk::prefix(&keys::ns(ns)).reversed();
        if let Some(before) = before {
            walk = walk.before(&keys::run(ns, before));
        }
        // One row more than asked for tells whether there is a next page.
        let (mut rows, mut last, mut more) = (Vec::new(), None, false);
        self.rows().walk(Table::Run, &walk, &mut |key, bytes| {
            if rows.len() + page.damaged.len() == limit {
                more = true;
                return Ok(ControlFlow::Break(()));
            }
            let id = keys::Run::read(Table::Run, key)?.run;
            last = Some(id);
            match sound(meta_of(Table::Run, key, bytes))? {
                Some(row) => rows.push((id, row)),
                None => page.damaged.push(id),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for (id, row) in rows {
            page.items.push(self.run_shown(ns, id, row, context)?);
        }
        page.next = last.filter(|_| more);
        Ok(page)
    }

    /// One run; none if it was never begun here.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn run(&self, id: RunId, context: RunContext<'_>) -> Result<Option<RunReport>> {
        let Some(ns) = self.ns else { return Ok(None) };
        let row = self.rows().run(ns, id)?;
        row.map(|row| self.run_shown(ns, id, row, context)).transpose()
    }

    fn run_shown(&self, ns: NsId, id: RunId, row: RunRow, context: RunContext<'_>) -> Result<RunReport> {
        let started_at = Time::from_millis(row.started_ms);
        // An undo that was begun in time may end later.
        let ends = row.sort == RunSort::Maintain && row.state != RunState::Undoing;
        let latest_at = Time::from_millis(row.latest_ms);
        let until = ends.then(|| latest_at.plus(context.horizon));
        let in_time = until.is_none_or(|until| self.now < until);
        let can_be_undone = row.state != RunState::Undone && in_time && self.has_left(ns, id)?;
        Ok(RunReport {
            id,
            sort: row.sort,
            status: RunStatus::of(row.state, context.at_work.contains(&id), context.may_write),
            by: row.by,
            started_at,
            latest_at,
            counts: row.counts,
            can_be_undone,
            undoable_until: until.filter(|_| can_be_undone),
        })
    }

    /// Whether something of a run is left that `undo` would look at.
    pub(super) fn has_left(&self, ns: NsId, run: RunId) -> Result<bool> {
        let rows = self.rows();
        Ok(!rows.journal_of_run(ns, run, 1)?.is_empty()
            || !rows.holders_of_run(ns, run, 1)?.is_empty()
            || !rows.events_of(ns, run.as_bytes(), 1)?.is_empty())
    }
}
