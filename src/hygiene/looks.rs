//! What has a pass found nothing to do in? A sweep over what has not changed since then need not look again.
//!
//! What a look finds follows from the memories of its namespace, from the goals, from the policy and from the instant. The
//! journal tells each change of a memory, so a few of its rows say whether there was one. An instant at which a memory begins
//! or ends without a write is in the order of those instants. The looks are those of the handle and not of the file: a look
//! that is lost is made again, and nothing that is restored, imported or written by others can contradict one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use parking_lot::Mutex;

use crate::error::{Result, sound};
use crate::hygiene::plan::Field;
use crate::model::{Op, Time};
use crate::policy::Policy;
use crate::store::{GoalRows, NsId, Rows, Snapshot};

/// Rows of the journal that are read for a change. Where more came since, looking again is about as cheap.
const ROWS_MAX: usize = 1_000;

/// The looks of a handle that have found nothing to do, by namespace.
#[derive(Default)]
pub(crate) struct Looks(Mutex<BTreeMap<NsId, Look>>);

/// What is looked at.
#[derive(Clone, Copy)]
pub(super) struct Sight<'s> {
    pub(super) rows: &'s Snapshot,
    pub(super) field: &'s Field,
    pub(super) policy: &'s Policy,
    /// The step of the host, where it decides what may go.
    pub(super) step: Option<u64>,
}

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
    step: Option<u64>,
}

impl Seen {
    fn of(sight: Sight<'_>) -> Result<Self> {
        let Sight { rows, field, policy, step } = sight;
        let (epoch, space) = (rows.epoch(), rows.clock()?.space);
        Ok(Seen { epoch, policy: policy.hash().0, space, goals: rows.goal_changes(field.ns)?, step })
    }
}

impl Looks {
    /// Whether nothing has changed since a look that found nothing to do.
    ///
    /// # Errors
    /// What is no damage of single values: where a value is damaged, no look stands.
    pub(super) fn stand(&self, sight: Sight<'_>) -> Result<bool> {
        let looks = self.0.lock();
        let stands = looks.get(&sight.field.ns).map(|look| sound(look.stands(sight))).transpose()?;
        Ok(stands.flatten().unwrap_or(false))
    }

    /// Notes a look that has found nothing to do. It stands until `until` at most, if something changes with time alone.
    ///
    /// # Errors
    /// As [`Looks::stand`].
    pub(super) fn note(&self, sight: Sight<'_>, until: Option<Time>) -> Result<()> {
        let look = sound(Look::of(sight, until))?.flatten();
        let mut looks = self.0.lock();
        match look {
            Some(look) => looks.insert(sight.field.ns, look),
            None => looks.remove(&sight.field.ns),
        };
        Ok(())
    }
}

impl Look {
    /// None where no look can be told to stand: something is damaged, which may be mended without a row of the journal, or
    /// very much came due and is not settled.
    fn of(sight: Sight<'_>, until: Option<Time>) -> Result<Option<Look>> {
        let Sight { rows, field, .. } = sight;
        let (ns, now) = (field.ns, field.now);
        let passed = rows.due(ns, now, ROWS_MAX)?;
        let mut ahead: Vec<Time> = until.into_iter().collect();
        // What came due and is not settled yet hides the next instant of its memory.
        for (_, id) in &passed {
            let times = field.sound(rows.vitals(ns, *id))?.flatten().map(|vitals| vitals.times);
            ahead.extend(times.iter().flat_map(|times| [times.from(), times.until()]));
        }
        if passed.len() == ROWS_MAX || field.damaged.get() > 0 {
            return Ok(None);
        }
        ahead.extend(rows.due(ns, Time::MAX, passed.len() + 1)?.last().map(|(at, _)| *at));
        let until = ahead.into_iter().filter(|at| *at > now).min().unwrap_or(Time::MAX);
        Ok(Some(Look { seen: Seen::of(sight)?, seq: rows.clock()?.next_seq, at: now, until }))
    }

    fn stands(&self, sight: Sight<'_>) -> Result<bool> {
        let Sight { rows, field, .. } = sight;
        let is_in_time = self.at <= field.now && field.now < self.until;
        // A use that no commit has counted yet is in no journal.
        if !is_in_time || field.noted.len(Some(field.ns)) > 0 || self.seen != Seen::of(sight)? {
            return Ok(false);
        }
        if rows.journal_from(field.ns)? > self.seq {
            return Ok(false);
        }
        let (mut read, mut stands) = (0, true);
        rows.journal_on(field.ns, self.seq, &mut |_, row| {
            read += 1;
            stands = read < ROWS_MAX && row.is_some_and(|row| !can_matter(row.op));
            Ok(if stands { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(stands)
    }
}

/// Whether an operation can change what a look finds: all can that change a memory.
fn can_matter(op: Op) -> bool {
    !matches!(op, Op::Derive | Op::Ignore | Op::Rename | Op::Refuse | Op::Unscored)
}
