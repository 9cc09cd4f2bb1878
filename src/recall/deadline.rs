//! When must a search end?

use std::cell::Cell;

/// Asks whether the time of a search is over, and remembers if it was.
pub(crate) struct Deadline<'d> {
    over: &'d dyn Fn() -> bool,
    met: Cell<bool>,
}

impl<'d> Deadline<'d> {
    /// A deadline that is over when `over` says so.
    pub(crate) fn new(over: &'d dyn Fn() -> bool) -> Self {
        Deadline { over, met: Cell::new(false) }
    }

    /// Whether the time is over. Once over, it stays over.
    pub(super) fn is_over(&self) -> bool {
        if !self.met.get() {
            self.met.set((self.over)());
        }
        self.met.get()
    }

    /// Whether the deadline made the search leave something out.
    pub(super) fn was_met(&self) -> bool {
        self.met.get()
    }
}

impl std::fmt::Debug for Deadline<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deadline").field("met", &self.met).finish_non_exhaustive()
    }
}
