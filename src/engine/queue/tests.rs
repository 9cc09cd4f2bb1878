use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// The locks of a checker that tries schedules.
struct Checked;

impl Mutexes for Checked {
    type Of<T: Send> = shuttle::sync::Mutex<T>;
}

impl<T: Send> Exclusive<T> for shuttle::sync::Mutex<T> {
    fn new(value: T) -> Self {
        shuttle::sync::Mutex::new(value)
    }

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.lock().unwrap())
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
            assert!(queue.waiting.with(|waiting| waiting.is_empty()));
        },
        500,
    );
}

#[test]
fn a_group_ends_at_its_bounds_and_never_splits_a_unit() {
    let ticket = |unit: usize, rows: usize| {
        let (work, answer) = (parking_lot::Mutex::new(Some(unit)), parking_lot::Mutex::new(None));
        Arc::new(Ticket::<usize, Parked> { work, weight: Weight { rows, bytes: 1 }, answer })
    };
    let mut waiting: Waiting<usize, Parked> = [
        ticket(1, GROUP_ROWS_MAX / 2 + 1),
        ticket(2, GROUP_ROWS_MAX / 2 + 1),
        ticket(3, 1),
        ticket(4, 9_999),
    ]
    .into();
    let mut group = || {
        let tickets = take_group(&mut waiting);
        tickets.iter().filter_map(|ticket| ticket.work.with(Option::take)).collect::<Vec<_>>()
    };
    assert_eq!(group(), [1], "two would be more rows than a group may have");
    assert_eq!(group(), [2, 3]);
    assert_eq!(group(), [4], "a unit that is larger than a group is a group of its own");
    assert!(group().is_empty());
}
