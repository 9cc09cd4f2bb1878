use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// The monitors of a checker that tries schedules.
struct Checked;

impl Monitors for Checked {
    type Of<T: Send> = Checking<T>;
}

struct Checking<T> {
    value: shuttle::sync::Mutex<T>,
    changed: shuttle::sync::Condvar,
}

impl<T: Send> Monitor<T> for Checking<T> {
    fn new(value: T) -> Self {
        Checking { value: shuttle::sync::Mutex::new(value), changed: shuttle::sync::Condvar::new() }
    }

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.value.lock().unwrap())
    }

    fn wait<R>(&self, mut work: impl FnMut(&mut T) -> Option<R>) -> R {
        let mut value = self.value.lock().unwrap();
        loop {
            if let Some(result) = work(&mut value) {
                return result;
            }
            value = self.changed.wait(value).unwrap();
        }
    }

    fn linger(&self, mut wished: impl FnMut(&mut T) -> bool) {
        // A moment is whatever the schedule makes of it.
        if !self.with(&mut wished) {
            shuttle::thread::yield_now();
        }
    }

    fn wake(&self) {
        self.changed.notify_all();
    }
}

/// Counts what it committed; the unit 13 fails, and with it nobody else.
#[derive(Default)]
struct Sum {
    total: AtomicUsize,
    groups: AtomicUsize,
}

impl Committer for Sum {
    type Unit = usize;

    fn commit(&self, units: &mut [usize]) -> Vec<Result<()>> {
        self.groups.fetch_add(1, Ordering::SeqCst);
        let answer = |unit: &usize| match unit {
            13 => Err(Error::invalid("unit", "must not be 13", unit)),
            unit => {
                self.total.fetch_add(*unit, Ordering::SeqCst);
                Ok(())
            }
        };
        units.iter().map(answer).collect()
    }
}

/// Under every schedule that the checker tries: each unit is answered once, with its own answer, and no thread
/// waits for ever.
#[test]
fn every_writer_gets_its_own_answer() {
    shuttle::check_random(
        || {
            let queue = Arc::new(Queue::<usize, Checked>::new());
            let sum = Arc::new(Sum::default());
            let threads: Vec<_> = [1_usize, 2, 13, 4]
                .into_iter()
                .map(|unit| {
                    let (queue, sum) = (Arc::clone(&queue), Arc::clone(&sum));
                    shuttle::thread::spawn(move || {
                        let answer = queue.submit(&*sum, unit, Weight { rows: 1, bytes: 1 });
                        assert_eq!(answer.is_err(), unit == 13);
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(sum.total.load(Ordering::SeqCst), 7);
            assert!(queue.state.with(|state| state.waiting.is_empty()
                && state.answers.is_empty()
                && state.leader.is_none()));
        },
        500,
    );
}

/// Ends in a panic.
struct Broken;

impl Committer for Broken {
    type Unit = usize;

    fn commit(&self, _: &mut [usize]) -> Vec<Result<()>> {
        panic!("a bug of ours")
    }
}

#[test]
fn a_commit_that_panics_leaves_the_queue_to_others() {
    let queue = Queue::<usize>::new();
    let one = Weight { rows: 1, bytes: 1 };
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| queue.submit(&Broken, 1, one)));
    assert!(panicked.is_err());
    let sum = Sum::default();
    queue.submit(&sum, 2, one).unwrap();
    assert_eq!(sum.total.load(Ordering::SeqCst), 2);
}

#[test]
fn a_group_ends_at_its_bounds_and_never_splits_a_unit() {
    let ticket = |unit: usize, rows: usize| Ticket { number: 0, weight: Weight { rows, bytes: 1 }, unit };
    let half = GROUP_ROWS_MAX / 2 + 1;
    let mut waiting = VecDeque::from([ticket(1, half), ticket(2, half), ticket(3, 1), ticket(4, 9_999)]);
    let mut group = || take_group(&mut waiting).into_iter().map(|ticket| ticket.unit).collect::<Vec<_>>();
    assert_eq!(group(), [1], "two would be more rows than a group may have");
    assert_eq!(group(), [2, 3]);
    assert_eq!(group(), [4], "a unit that is larger than a group is a group of its own");
    assert!(group().is_empty());
}

/// Those who want to be alone and those who queue units take turns: nobody waits for ever, nobody is alone beside another,
/// and while a unit waits at most one of those who want to be alone goes before it.
#[test]
fn who_wants_to_be_alone_and_who_queues_take_turns() {
    shuttle::check_random(
        || {
            let queue = Arc::new(Queue::<usize, Checked>::new());
            let (sum, alone) = (Arc::new(Sum::default()), Arc::new(AtomicUsize::new(0)));
            let writers = [1_usize, 2, 4].map(|unit| {
                let (queue, sum) = (Arc::clone(&queue), Arc::clone(&sum));
                shuttle::thread::spawn(move || {
                    queue.submit(&*sum, unit, Weight { rows: 1, bytes: 1 }).unwrap();
                })
            });
            let others = [(); 2].map(|()| {
                let (queue, sum, alone) = (Arc::clone(&queue), Arc::clone(&sum), Arc::clone(&alone));
                shuttle::thread::spawn(move || {
                    for _ in 0..2 {
                        let groups = queue.alone(|| {
                            assert_eq!(alone.fetch_add(1, Ordering::SeqCst), 0);
                            let before = sum.groups.load(Ordering::SeqCst);
                            shuttle::thread::yield_now();
                            assert_eq!(alone.fetch_sub(1, Ordering::SeqCst), 1);
                            sum.groups.load(Ordering::SeqCst) - before
                        });
                        assert_eq!(groups, 0, "no group beside it");
                    }
                })
            });
            writers.into_iter().chain(others).for_each(|thread| thread.join().unwrap());
            assert_eq!(sum.total.load(Ordering::SeqCst), 7);
            assert!(
                queue
                    .state
                    .with(|state| state.waiting.is_empty() && state.leader.is_none() && state.aside == 0)
            );
        },
        500,
    );
}
