//! Group commit: writers queue their units, one of them leads, one sync serves all that wait.
//!
//! Whoever gets the leader's lock takes what is queued, first come first served, and commits it as one
//! transaction. Those who wait for the lock find their answer when they get it. The queue knows nothing of what a
//! unit does; `Committer` does, so that the protocol can be tested with any scheduler.

use std::collections::VecDeque;

use crate::engine::sync::{Arc, Mutex};
use crate::error::{Error, Result};
use crate::limits::{GROUP_BYTES_MAX, GROUP_ROWS_MAX};

/// What carries out a group of units as one transaction.
pub(super) trait Committer {
    /// One caller's work.
    type Unit: Send;

    /// Commits the units together, or without those that fail. Gives one answer a unit, in order.
    fn commit(&self, units: &mut [Self::Unit]) -> Vec<Result<()>>;
}

struct Ticket<U> {
    /// The unit, until it is answered.
    work: Mutex<Option<(U, Weight)>>,
    answer: Mutex<Option<Result<()>>>,
}

/// What a unit weighs against the bounds of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weight {
    pub(super) rows: usize,
    pub(super) bytes: usize,
}

/// The queue.
pub(super) struct Queue<U> {
    waiting: Mutex<VecDeque<Arc<Ticket<U>>>>,
    leader: Mutex<()>,
}

impl<U: Send> Queue<U> {
    pub(super) fn new() -> Self {
        Queue { waiting: Mutex::new(VecDeque::new()), leader: Mutex::new(()) }
    }

    /// Queues a unit and waits until it is committed or refused.
    pub(super) fn submit<C: Committer<Unit = U>>(
        &self,
        committer: &C,
        unit: U,
        weight: Weight,
    ) -> Result<()> {
        let ticket = Arc::new(Ticket { work: Mutex::new(Some((unit, weight))), answer: Mutex::new(None) });
        self.waiting.lock().push_back(Arc::clone(&ticket));
        let _leading = self.leader.lock();
        loop {
            if let Some(answer) = ticket.answer.lock().take() {
                return answer;
            }
            self.lead(committer);
        }
    }

    /// Runs `exclusively` while nobody commits.
    pub(super) fn alone<R>(&self, exclusively: impl FnOnce() -> R) -> R {
        let _leading = self.leader.lock();
        exclusively()
    }

    /// Commits the units at the front of the queue.
    fn lead<C: Committer<Unit = U>>(&self, committer: &C) {
        let (tickets, mut units) = self.take_group();
        let answers = committer.commit(&mut units);
        assert_eq!(answers.len(), tickets.len(), "one answer a unit");
        for (ticket, answer) in tickets.into_iter().zip(answers) {
            *ticket.answer.lock() = Some(answer);
        }
    }

    /// As many units as a group may have, at least one.
    fn take_group(&self) -> (Vec<Arc<Ticket<U>>>, Vec<U>) {
        let mut waiting = self.waiting.lock();
        let (mut tickets, mut units, mut sum) = (Vec::new(), Vec::new(), Weight::default());
        while let Some(ticket) = waiting.front() {
            let mut work = ticket.work.lock();
            if let Some((_, weight)) = work.as_ref() {
                let (rows, bytes) = (sum.rows + weight.rows, sum.bytes + weight.bytes);
                if !units.is_empty() && (rows > GROUP_ROWS_MAX || bytes > GROUP_BYTES_MAX) {
                    break;
                }
                sum = Weight { rows, bytes };
            }
            let taken = work.take();
            drop(work);
            if let (Some(ticket), Some((unit, _))) = (waiting.pop_front(), taken) {
                tickets.push(ticket);
                units.push(unit);
            }
        }
        (tickets, units)
    }
}

/// The error of a commit that failed for every unit of its group.
pub(super) fn failed_together(why: &Error) -> Error {
    match why {
        Error::Retry { why } => Error::Retry { why: why.clone() },
        Error::Unavailable { why } => Error::Unavailable { why: why.clone() },
        Error::Closed => Error::Closed,
        Error::ReadOnly => Error::ReadOnly,
        other => Error::Unavailable { why: other.to_string() },
    }
}

#[cfg(test)]
mod tests;
