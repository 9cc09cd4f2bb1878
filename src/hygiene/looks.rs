//! What has a pass found nothing to do in? A sweep over what has not changed since then need not look again.
//!
//! What a look finds follows from the memories of its namespace, from the goals, from the policy and from the instant. The
//! journal tells each change of a memory, so a few of its rows say whether there was one. An instant at which a memory begins
//! or ends without a write is in the order of those instants. The looks are those of the handle and not of the file: a look
//! that is lost is made again, and nothing that is restored, imported or written by others can contradict one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use parking_lot::Mutex;

use crate::error::Result;
use crate::hygiene::pass::PlanInput;
use crate::model::{Op, Time};
use crate::store::{GoalRows, NsId, Rows};

/// Rows of the journal that are read for a change. Where more came since, looking again is about as cheap.
const ROWS_MAX: usize = 1_000;

/// The looks of a handle that have found nothing to do, by namespace.
#[derive(Default)]
pub(crate) struct Looks(Mutex<BTreeMap<NsId, Look>>);

/// When a look was made, and what it depends on.
struct Look {
    seen: Seen,
    /// The first number of the journal that it has not seen.
    seq: u64,
    at: Time,
    /// The instant at which something changes without a write.
    until: Time,
}

/// What a look depends on beside the memories.
#[derive(PartialEq, Eq)]
struct Seen {
    /// Of the file: its numbers count anew where it was opened again or replaced.
    epoch: u64,
    policy: [u8; 8],
    /// The space of searches.
    space: u16,
    /// How often goals have changed.
    goals: u64,
    /// The step of the host, where it decides what may go.
    step: Option<u64>,
}

impl Seen {
    fn of(input: PlanInput<'_>) -> Result<Self> {
        let rows = input.published.snapshot();
        Ok(Seen {
            epoch: rows.epoch(),
            policy: input.policy.hash().0,
            space: rows.clock()?.space,
            goals: rows.goal_changes(input.field.ns)?,
            step: input.selection.step.filter(|_| input.policy.cluster.prune),
        })
    }
}

impl Looks {
    /// Whether nothing has changed since a look that found nothing to do.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(super) fn stand(&self, input: PlanInput<'_>) -> Result<bool> {
        let (ns, now, rows) = (input.field.ns, input.field.now, input.published.snapshot());
        // A hook can say something else each time, and a use that no commit has counted yet is in no journal.
        if input.judge.is_some() || input.field.noted.len(Some(ns)) > 0 {
            return Ok(false);
        }
        let looks = self.0.lock();
        let Some(look) = looks.get(&ns) else { return Ok(false) };
        let is_in_time = look.at <= now && now < look.until;
        if !is_in_time || look.seen != Seen::of(input)? || rows.journal_from(ns)? > look.seq {
            return Ok(false);
        }
        let (mut read, mut stands) = (0, true);
        rows.journal_on(ns, look.seq, &mut |_, row| {
            read += 1;
            stands = read < ROWS_MAX && row.is_some_and(|row| !can_matter(row.op));
            Ok(if stands { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(stands)
    }

    /// Notes a look that has found nothing to do. It stands until `until` at most, if something changes with time alone.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(super) fn note(&self, input: PlanInput<'_>, until: Option<Time>) -> Result<()> {
        let (ns, now, rows) = (input.field.ns, input.field.now, input.published.snapshot());
        let passed = rows.due(ns, now, ROWS_MAX)?;
        // A damaged row may be mended, of which no journal tells.
        if passed.len() == ROWS_MAX || input.field.damaged.get() > 0 {
            self.0.lock().remove(&ns);
            return Ok(());
        }
        let mut ahead: Vec<Time> = until.into_iter().collect();
        // What came due and is not settled yet hides the next instant of its memory.
        for (_, id) in &passed {
            let times = input.field.sound(rows.vitals(ns, *id))?.flatten().map(|vitals| vitals.times);
            ahead.extend(times.iter().flat_map(|times| [times.from(), times.until()]));
        }
        ahead.extend(rows.due(ns, Time::MAX, passed.len() + 1)?.last().map(|(at, _)| *at));
        let until = ahead.into_iter().filter(|at| *at > now).min().unwrap_or(Time::MAX);
        let look = Look { seen: Seen::of(input)?, seq: rows.clock()?.next_seq, at: now, until };
        self.0.lock().insert(ns, look);
        Ok(())
    }
}

/// Whether an operation can change what a look finds: all can that change a memory.
fn can_matter(op: Op) -> bool {
    !matches!(op, Op::Derive | Op::Ignore | Op::Rename | Op::Refuse | Op::Unscored)
}
