//! A bar with count, rate and time left, for what takes more than a second, on a terminal only.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;

/// What takes less shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often work that tells nothing of itself is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// The progress of one command.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    begun: Instant,
}

impl Progress {
    /// Of `total` things, if their number is known. A bar is drawn for a person at this process only.
    pub(crate) fn new(output: Output<'_>, total: Option<u64>) -> Self {
        let caller = output.caller;
        let wanted = !output.json && !output.quiet && caller.is_here() && caller.has_terminal();
        let bar = wanted.then(|| {
            let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
            let shape = match total {
                Some(_) => "{bar:40} {human_pos}/{human_len}  {per_sec}  {eta} left",
                None => "{spinner} {human_pos}  {per_sec}",
            };
            if let Ok(style) = ProgressStyle::with_template(shape) {
                bar.set_style(style);
            }
            bar
        });
        Progress { bar, begun: Instant::now() }
    }

    /// So many are done.
    pub(crate) fn set(&self, done: u64) {
        let Some(bar) = &self.bar else { return };
        if bar.is_hidden() && self.begun.elapsed() > PATIENCE {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.set_position(done);
    }

    /// Does a piece of work that tells nothing of itself, and asks `look` from time to time how much is done.
    pub(crate) fn during<T>(&self, look: impl Fn() -> Option<u64> + Send, work: impl FnOnce() -> T) -> T {
        if self.bar.is_none() {
            return work();
        }
        let (end, ended) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // Ends when the other half of the channel is dropped.
                while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                    if let Some(done) = look() {
                        self.set(done);
                    }
                }
            });
            let _end = end;
            work()
        })
    }

    /// Seconds since the beginning.
    pub(crate) fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
