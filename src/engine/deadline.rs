//! Code of the host that may hang or panic, waited for as long as a deadline says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::model::Span;

/// How often whoever waits looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// What `work` answers on a thread of its own. The thread is left to itself when the time is over or `stop` is set.
///
/// # Errors
/// Why there is no answer, in words.
pub(super) fn answered_within<T: Send + 'static>(
    deadline: Span,
    stop: &AtomicBool,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> std::result::Result<T, String> {
    let (tell, told) = sync_channel(1);
    let begun = Instant::now();
    let work = move || {
        // Nobody listens any more to an answer that comes too late.
        drop(tell.send(work()));
    };
    let thread = thread::Builder::new().name("oubliette-hook".to_owned()).spawn(work);
    thread.map_err(|why| why.to_string())?;
    loop {
        let left = Duration::from(deadline).saturating_sub(begun.elapsed());
        match told.recv_timeout(left.min(LOOK)) {
            Ok(answer) => return answer.map_err(|why| why.to_string()),
            Err(RecvTimeoutError::Disconnected) => return Err("the summarizer panicked".to_owned()),
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                return Err("whoever waited for it has stopped".to_owned());
            }
            Err(RecvTimeoutError::Timeout) if left > LOOK => {}
            Err(RecvTimeoutError::Timeout) => return Err(format!("no answer within {deadline}")),
        }
    }
}
