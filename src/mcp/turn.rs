//! The turn of a write among the calls of a client.

use std::sync::Arc;

use tokio::sync::Notify;

/// The turn of a write. It is over when the last one is gone who holds it: whoever carries the write out holds it until the end.
pub(super) struct Turn(Arc<Notify>);

impl Turn {
    /// A turn whose end is told.
    pub(super) fn new(over: Arc<Notify>) -> Self {
        Turn(over)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
