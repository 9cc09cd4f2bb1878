//! Which runs does this handle work on? A run that the file calls open and that is not here was cut off.

use std::sync::Arc;

use crate::engine::inner::Inner;
use crate::error::Result;
use crate::model::RunId;

/// A run that the handle works on until this is dropped.
pub(crate) struct AtWork {
    inner: Arc<Inner>,
    run: RunId,
    /// Whether the run leaves by itself, later than this.
    stays: bool,
}

impl AtWork {
    /// The run.
    pub(crate) fn run(&self) -> RunId {
        self.run
    }

    /// Leaves the run at work until [`Inner::leaves`].
    pub(super) fn stay(mut self) -> RunId {
        self.stays = true;
        self.run
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if !self.stays {
            self.inner.leaves(self.run);
        }
    }
}

impl Inner {
    /// The handle works on a run from now on: said before the run stands in the file, so that no reader finds the run there
    /// and not here.
    pub(super) fn works_on(self: &Arc<Self>, run: RunId) -> AtWork {
        self.at_work.lock().push(run);
        AtWork { inner: Arc::clone(self), run, stays: false }
    }

    /// The handle works on a new run from now on.
    pub(super) fn works_on_new(self: &Arc<Self>) -> Result<AtWork> {
        let run = self.new_run()?;
        Ok(self.works_on(run))
    }

    /// The handle works on a run no more. Two calls can work on one run, so only one of its entries goes.
    pub(super) fn leaves(&self, run: RunId) {
        let mut all = self.at_work.lock();
        if let Some(at) = all.iter().position(|other| *other == run) {
            all.swap_remove(at);
        }
    }
}
