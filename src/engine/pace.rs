//! How far a run of maintenance may go, and how large its slices are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::engine::options::MaintainOptions;
use crate::error::Error;
use crate::limits::SLICE_ROWS_MAX;

/// Rows of the first slice.
const SLICE_ROWS: usize = 64;
/// Rows of a slice while others write.
const SLICE_ROWS_MIN: usize = 16;

/// Slices of one index that may find it changed, one after the other.
pub(super) const STALE_MAX: usize = 16;

/// What a pass says whose slices all find their rows changed.
pub(super) fn outpaced() -> Error {
    Error::Conflict {
        what: "maintenance".to_owned(),
        why: "the rows that it works on change faster than it does".to_owned(),
    }
}

/// When a run ends that has rows left.
#[derive(Clone, Default)]
pub(super) struct End {
    until: Option<Instant>,
    /// Set by whoever wants the run to end before its time.
    stop: Option<Arc<AtomicBool>>,
}

impl End {
    /// Whether somebody wants the run to end at once.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Whether the time of the run is over, or it was stopped.
    pub(super) fn is_there(&self) -> bool {
        self.is_stopped() || self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// What is left of a run's budget, and the size of its next slice: one while others write is short, so that nobody
/// waits for one for long; alone they grow.
pub(super) struct Pace {
    end: End,
    rows_left: u64,
    slice: usize,
    /// Number of our own last commit.
    commit: u64,
}

impl Pace {
    pub(super) fn of(options: &MaintainOptions) -> Self {
        let until = options.budget.and_then(|budget| Instant::now().checked_add(budget.into()));
        Pace {
            end: End { until, stop: None },
            rows_left: options.max_rows.unwrap_or(u64::MAX),
            slice: SLICE_ROWS,
            commit: 0,
        }
    }

    /// The same pace, but the run is over as soon as `stop` is set.
    pub(super) fn stopped_by(self, stop: Arc<AtomicBool>) -> Self {
        Pace { end: End { stop: Some(stop), ..self.end }, ..self }
    }

    /// When the run ends, for whoever works long within one slice.
    pub(super) fn end(&self) -> End {
        self.end.clone()
    }

    pub(super) fn is_over(&self) -> bool {
        self.rows_left == 0 || self.end.is_there()
    }

    /// Rows of the next slice, on a state of this commit.
    pub(super) fn rows(&mut self, commit: u64) -> usize {
        self.slice = match self.commit {
            0 => self.slice,
            own if own == commit => (self.slice * 2).min(SLICE_ROWS_MAX),
            _ => SLICE_ROWS_MIN,
        };
        self.slice.min(usize::try_from(self.rows_left).unwrap_or(usize::MAX))
    }

    pub(super) fn spend(&mut self, rows: u64, commit: u64) {
        self.rows_left = self.rows_left.saturating_sub(rows);
        self.commit = commit;
    }

    /// Rows of a slice that is cut by its time: all that are left of the run's budget.
    pub(super) fn rows_left(&self) -> usize {
        usize::try_from(self.rows_left).unwrap_or(usize::MAX)
    }
}
