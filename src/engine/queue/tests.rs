use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

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
            let queue = Arc::new(Queue::new());
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
            assert!(queue.waiting.lock().is_empty());
        },
        500,
    );
}

#[test]
fn a_group_ends_at_its_bounds_and_never_splits_a_unit() {
    shuttle::check_random(
        || {
            let queue = Queue::new();
            for unit in [1_usize, 2, 3] {
                let work = Mutex::new(Some((unit, Weight { rows: GROUP_ROWS_MAX / 2 + 1, bytes: 1 })));
                queue.waiting.lock().push_back(Arc::new(Ticket { work, answer: Mutex::new(None) }));
            }
            assert_eq!(queue.take_group().1, [1], "two would be more rows than a group may have");
            assert_eq!(queue.take_group().1, [2]);
        },
        1,
    );
}
