//! Work on the cores that there are, with a result that does not depend on how many they are.

use std::sync::{Mutex, PoisonError};

use super::search::Scratch;

/// Items that a worker takes at a time.
const SHARE: usize = 8;

/// Workers, each with its own scratch memory.
#[derive(Debug)]
pub struct Crew {
    scratches: Vec<Scratch>,
}

impl Crew {
    /// A crew of so many threads, the caller's among them; at least one.
    pub fn new(threads: usize) -> Self {
        Crew { scratches: std::iter::repeat_with(Scratch::default).take(threads.max(1)).collect() }
    }

    /// The scratch memory of the caller's thread.
    pub(super) fn own(&mut self) -> Option<&mut Scratch> {
        self.scratches.first_mut()
    }

    /// The results of `work` for the items from 0 on, in their order. What an item gives must follow from the item
    /// alone; then it does not matter who does it.
    pub(super) fn map<T: Send + Default>(
        &mut self,
        items: usize,
        work: impl Fn(usize, &mut Scratch) -> T + Sync,
    ) -> Vec<T> {
        let mut results: Vec<T> = std::iter::repeat_with(T::default).take(items).collect();
        let shares = Mutex::new((0..).step_by(SHARE).zip(results.chunks_mut(SHARE)));
        let run = |scratch: &mut Scratch| {
            loop {
                let share = shares.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((first, places)) = share else { return };
                for (item, place) in (first..).zip(places) {
                    *place = work(item, scratch);
                }
            }
        };
        if let Some((own, others)) = self.scratches.split_first_mut() {
            let hands = items.div_ceil(SHARE).saturating_sub(1);
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
