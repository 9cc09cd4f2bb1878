//! How many rows a thread has read and written, and how much it has kept: for tests of what an operation costs, which must not go by the clock.

/// Rows that a thread has read and written since it began.
#[cfg(feature = "faults")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows that were looked up or walked over.
    pub read: u64,
    /// Rows that were put or taken away.
    pub written: u64,
    /// Most rows that one of its transactions has put or taken away.
    pub of_one: u64,
    /// Most bytes of decoded blocks that one of its transactions has kept.
    pub staged: usize,
}

#[cfg(feature = "faults")]
mod counted {
    use std::cell::Cell;

    use super::Tally;

    thread_local! {
        static TALLY: Cell<Tally> = const { Cell::new(Tally { read: 0, written: 0, of_one: 0, staged: 0 }) };
    }

    impl Tally {
        /// What this thread has done so far.
        pub fn of_thread() -> Tally {
            TALLY.get()
        }
    }

    pub(in crate::store) fn read() {
        let tally = TALLY.get();
        TALLY.set(Tally { read: tally.read + 1, ..tally });
    }

    pub(in crate::store) fn written(of_one: u64) {
        let tally = TALLY.get();
        TALLY.set(Tally { written: tally.written + 1, of_one: tally.of_one.max(of_one), ..tally });
    }

    pub(in crate::store) fn staged(bytes: usize) {
        let tally = TALLY.get();
        TALLY.set(Tally { staged: tally.staged.max(bytes), ..tally });
    }
}

#[cfg(not(feature = "faults"))]
mod counted {
    pub(in crate::store) const fn read() {}

    pub(in crate::store) const fn written(_of_one: u64) {}

    pub(in crate::store) const fn staged(_bytes: usize) {}
}

pub(super) use counted::{read, staged, written};
