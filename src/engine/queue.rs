//! Group commit: writers queue their units, one of them leads, one sync serves all that wait.
//!
//! Whoever gets the leader's lock takes what is queued, first come first served, and commits it as one
//! transaction. Those who wait for the lock find their answer when they get it. The queue knows nothing of what a
//! unit does; `Committer` does, so that the protocol can be tested with any scheduler.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::engine::sync::{Exclusive, Mutexes, Parked};
use crate::error::{Error, Result};
use crate::limits::{GROUP_BYTES_MAX, GROUP_ROWS_MAX};

/// What carries out a group of units as one transaction.
pub(super) trait Committer {
    /// One caller's work.
    type Unit: Send;

    /// Commits the units together, or without those that fail. Gives one answer a unit, in order.
    fn commit(&self, units: &mut [Self::Unit]) -> Vec<Result<()>>;
}

struct Ticket<U: Send, L: Mutexes> {
    /// The unit, until it is taken.
    work: L::Of<Option<U>>,
    weight: Weight,
    answer: L::Of<Option<Result<()>>>,
}

/// What a unit weighs against the bounds of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weight {
    pub(super) rows: usize,
    pub(super) bytes: usize,
}

/// The units that wait, first come first.
type Waiting<U, L> = VecDeque<Arc<Ticket<U, L>>>;

/// The queue.
pub(super) struct Queue<U: Send, L: Mutexes = Parked> {
    waiting: L::Of<Waiting<U, L>>,
    leader: L::Of<()>,
}

impl<U: Send, L: Mutexes> Queue<U, L> {
    pub(super) fn new() -> Self {
        Queue { waiting: L::Of::new(VecDeque::new()), leader: L::Of::new(()) }
    }

    /// Queues a unit and waits until it is committed or refused.
    pub(super) fn submit<C: Committer<Unit = U>>(
        &self,
        committer: &C,
        unit: U,
        weight: Weight,
    ) -> Result<()> {
        let ticket = Arc::new(Ticket { work: L::Of::new(Some(unit)), weight, answer: L::Of::new(None) });
        self.waiting.with(|waiting| waiting.push_back(Arc::clone(&ticket)));
        self.alone(|| {
            loop {
                if let Some(answer) = ticket.answer.with(Option::take) {
                    return answer;
                }
                self.lead(committer);
            }
        })
    }

    /// Runs `exclusively` while nobody commits.
    pub(super) fn alone<R>(&self, exclusively: impl FnOnce() -> R) -> R {
        self.leader.with(|()| exclusively())
    }

    /// Commits the units at the front of the queue.
    fn lead<C: Committer<Unit = U>>(&self, committer: &C) {
        let tickets = self.waiting.with(take_group);
        let mut units: Vec<U> = tickets.iter().filter_map(|ticket| ticket.work.with(Option::take)).collect();
        let answers = committer.commit(&mut units);
        assert_eq!(answers.len(), tickets.len(), "one answer a unit");
        for (ticket, answer) in tickets.into_iter().zip(answers) {
            ticket.answer.with(|place| *place = Some(answer));
        }
    }
}

/// Takes as many units as a group may have, at least one.
fn take_group<U: Send, L: Mutexes>(waiting: &mut Waiting<U, L>) -> Vec<Arc<Ticket<U, L>>> {
    let (mut tickets, mut sum) = (Vec::new(), Weight::default());
    while let Some(ticket) = waiting.front() {
        let (rows, bytes) = (sum.rows + ticket.weight.rows, sum.bytes + ticket.weight.bytes);
        if !tickets.is_empty() && (rows > GROUP_ROWS_MAX || bytes > GROUP_BYTES_MAX) {
            break;
        }
        sum = Weight { rows, bytes };
        tickets.extend(waiting.pop_front());
    }
    tickets
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
