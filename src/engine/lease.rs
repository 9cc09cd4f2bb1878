//! How long a snapshot is held: what it pins of the file is given back when its time is over.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::index::Published;
use crate::model::Time;

/// A snapshot that is pinned, as the engine sees it.
pub(super) struct Lease(pub(super) Weak<Held>);

/// What a snapshot holds until its time is over.
pub(super) struct Held {
    pub(super) published: Mutex<Option<Arc<Published>>>,
    pub(super) until: Time,
    /// Whether a call is under way that may last longer than the lease.
    pub(super) kept: AtomicUsize,
}

impl Held {
    /// Whether its time is over and no call keeps it.
    pub(super) fn is_over(&self, now: Time) -> bool {
        now >= self.until && self.kept.load(Ordering::SeqCst) == 0
    }
}

/// As long as it lives the lease of its snapshot does not end.
pub(crate) struct Keeper<'s>(pub(super) &'s Held);

impl Drop for Keeper<'_> {
    fn drop(&mut self) {
        self.0.kept.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Lease {
    /// Whether the snapshot is still held; one past its time loses its state.
    pub(super) fn holds(&self, now: Time) -> bool {
        let Some(held) = self.0.upgrade() else { return false };
        let mut published = held.published.lock();
        if held.is_over(now) {
            published.take();
        }
        published.is_some()
    }
}
