//! Group commit: writers queue their units, one of them leads, one sync serves all that wait.
//!
//! Whoever finds nobody leading takes what is queued, first come first served, and commits it as one transaction.
//! The others wait for their answer, or for the lead: an answer is taken at once, while the next group is under way.
//! The queue knows nothing of what a unit does; `Committer` does, so that the protocol can be tested with any scheduler.

use std::collections::{BTreeMap, VecDeque};
use std::thread::ThreadId;

use crate::engine::sync::{Monitor, Monitors, Parked};
use crate::error::{Error, Result};
use crate::limits::{GROUP_BYTES_MAX, GROUP_ROWS_MAX};

/// What carries out a group of units as one transaction.
pub(super) trait Committer {
    /// One caller's work.
    type Unit: Send;

    /// Commits the units together, or without those that fail. Gives one answer a unit, in order.
    fn commit(&self, units: &mut [Self::Unit]) -> Vec<Result<()>>;
}

/// A unit that waits.
struct Ticket<U> {
    number: u64,
    weight: Weight,
    unit: U,
}

/// What a unit weighs against the bounds of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weight {
    pub(super) rows: usize,
    pub(super) bytes: usize,
}

/// The weight of a unit that changes a row or two.
pub(super) const ONE: Weight = Weight { rows: 1, bytes: 1_024 };

/// The weight of a unit that changes so many rows.
pub(super) fn weight_of(rows: usize) -> Weight {
    Weight { rows, bytes: rows * 1_024 }
}

/// Who waits, and who leads.
struct State<U> {
    /// Number of the next unit.
    next: u64,
    waiting: VecDeque<Ticket<U>>,
    /// Answers that nobody has taken yet, by the number of their unit.
    answers: BTreeMap<u64, Result<()>>,
    /// Who commits, if somebody does.
    leader: Option<ThreadId>,
    /// Units of the last group.
    last: usize,
    /// How many wait to be alone.
    aside: usize,
    /// Whether who led last led a group: then it is the turn of those who wait to be alone. So neither waits for more
    /// than one of the other.
    was_group: bool,
}

/// The queue.
pub(super) struct Queue<U: Send, L: Monitors = Parked> {
    state: L::Of<State<U>>,
}

/// What a waiting writer is to do.
enum WaitOutcome {
    Answered(Result<()>),
    Lead,
}

impl<U: Send, L: Monitors> Queue<U, L> {
    pub(super) fn new() -> Self {
        let state = State {
            next: 0,
            waiting: VecDeque::new(),
            answers: BTreeMap::new(),
            leader: None,
            last: 1,
            aside: 0,
            was_group: false,
        };
        Queue { state: L::Of::new(state) }
    }

    /// Queues a unit and waits until it is committed or refused.
    pub(super) fn submit<C: Committer<Unit = U>>(
        &self,
        committer: &C,
        unit: U,
        weight: Weight,
    ) -> Result<()> {
        let number = self.state.with(|state| {
            let number = state.next;
            state.next += 1;
            state.waiting.push_back(Ticket { number, weight, unit });
            number
        });
        self.state.wake();
        loop {
            let outcome = self.state.wait(|state| {
                if let Some(answer) = state.answers.remove(&number) {
                    return Some(WaitOutcome::Answered(answer));
                }
                if state.leader.is_some() || (state.was_group && state.aside > 0) {
                    return None;
                }
                if !state.waiting.iter().any(|ticket| ticket.number == number) {
                    let why = "the commit that it was part of ended in a panic".to_owned();
                    return Some(WaitOutcome::Answered(Err(Error::Unavailable { why })));
                }
                state.leader = Some(std::thread::current().id());
                Some(WaitOutcome::Lead)
            });
            match outcome {
                WaitOutcome::Answered(answer) => return answer,
                WaitOutcome::Lead => self.lead(committer),
            }
        }
    }

    /// Runs `exclusively` while nobody commits.
    pub(super) fn alone<R>(&self, exclusively: impl FnOnce() -> R) -> R {
        self.state.with(|state| state.aside += 1);
        self.state.wait(|state| {
            if state.leader.is_some() || !(state.was_group || state.waiting.is_empty()) {
                return None;
            }
            (state.leader, state.was_group) = (Some(std::thread::current().id()), false);
            state.aside -= 1;
            Some(())
        });
        let _lead = Lead(self);
        exclusively()
    }

    /// Whether this very thread commits: to wait for the lead would be to wait for itself.
    pub(super) fn is_led_here(&self) -> bool {
        self.state.with(|state| state.leader == Some(std::thread::current().id()))
    }

    /// Whether a unit waits for somebody to lead it.
    pub(super) fn is_waited_for(&self) -> bool {
        self.state.with(|state| !state.waiting.is_empty())
    }

    /// Commits a group, for whoever has taken the lead.
    fn lead<C: Committer<Unit = U>>(&self, committer: &C) {
        let _lead = Lead(self);
        // Who was answered a moment ago is likely to come again: without waiting for them every other group would be
        // a small one. A writer that is alone waits for nobody.
        self.state.linger(|state| state.waiting.len() >= state.last);
        let tickets = self.state.with(|state| {
            let tickets = take_group(&mut state.waiting);
            state.last = tickets.len();
            state.was_group = true;
            tickets
        });
        let (numbers, mut units): (Vec<u64>, Vec<U>) =
            tickets.into_iter().map(|ticket| (ticket.number, ticket.unit)).unzip();
        let answers = committer.commit(&mut units);
        assert_eq!(answers.len(), numbers.len(), "one answer a unit");
        self.state.with(|state| state.answers.extend(numbers.into_iter().zip(answers)));
    }
}

/// The lead, given up when it goes, even by a panic.
struct Lead<'q, U: Send, L: Monitors>(&'q Queue<U, L>);

impl<U: Send, L: Monitors> Drop for Lead<'_, U, L> {
    fn drop(&mut self) {
        self.0.state.with(|state| state.leader = None);
        self.0.state.wake();
    }
}

/// Takes as many units as a group may have, at least one.
fn take_group<U>(waiting: &mut VecDeque<Ticket<U>>) -> Vec<Ticket<U>> {
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
        Error::Locked { path } => Error::Locked { path: path.clone() },
        Error::Closed => Error::Closed,
        Error::ReadOnly => Error::ReadOnly,
        other => Error::Unavailable { why: other.to_string() },
    }
}

#[cfg(test)]
mod tests;
