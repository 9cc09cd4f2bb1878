//! Divides work among the cores of the machine. The result does not depend on their number.

use std::sync::{Mutex, PoisonError};

use super::search::Scratch;

/// The number of parts into which work is divided, so that no worker waits long for the last one.
const SHARES: usize = 128;
/// The largest number of items in a part.
const SHARE_MAX: usize = 64;

/// The workers, each with its own scratch memory.
#[derive(Debug)]
pub struct Crew {
    scratches: Vec<Scratch>,
}

impl Crew {
    /// A crew of this many threads, the caller's thread included; at least one.
    pub fn new(threads: usize) -> Self {
        Crew { scratches: std::iter::repeat_with(Scratch::default).take(threads.max(1)).collect() }
    }

    /// The scratch memory of the caller's thread.
    pub(super) fn own(&mut self) -> Option<&mut Scratch> {
        self.scratches.first_mut()
    }

    /// The results of `work` for the items from 0 on, in their order. The result of an item must follow from the item
    /// alone. Then it does not matter which worker does it.
    pub fn map<T: Send + Default>(
        &mut self,
        items: usize,
        work: impl Fn(usize, &mut Scratch) -> T + Sync,
    ) -> Vec<T> {
        let mut results: Vec<T> = std::iter::repeat_with(T::default).take(items).collect();
        let share = (items / SHARES).clamp(1, SHARE_MAX);
        let shares = Mutex::new((0..).step_by(share).zip(results.chunks_mut(share)));
        let run = |scratch: &mut Scratch| {
            loop {
                // The lock covers only the taking of a share. No worker panics inside it, so the iterator behind
                // it is whole.
                let next = shares.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((first, places)) = next else { return };
                for (item, place) in (first..).zip(places) {
                    *place = work(item, scratch);
                }
            }
        };
        if let Some((own, others)) = self.scratches.split_first_mut() {
            let hands = items.div_ceil(share).saturating_sub(1);
            std::thread::scope(|scope| {
                for scratch in others.iter_mut().take(hands) {
                    scope.spawn(|| run(scratch));
                }
                run(own);
            });
        }
        results
    }
}
