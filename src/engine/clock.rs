//! Where the time comes from.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::model::{Span, Time};

/// A source of the present instant. Inject one to replay the past or to test the future.
pub trait Clock: Send + Sync {
    /// The present instant. It may step back; transaction time will not.
    fn now(&self) -> Time;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        // A machine that thinks it is before 1970 gets the epoch.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that never shows the last instant, which stands for never: nothing would be true then, and no lease would end later.
pub(super) struct BeforeTheEnd<C>(pub(super) C);

impl<C: Clock> Clock for BeforeTheEnd<C> {
    fn now(&self) -> Time {
        self.0.now().min(Time::MAX.minus(Span::from_millis(1)))
    }
}

/// A clock that stands still until it is told otherwise. Clones show the same time.
///
/// ```
/// use oubliette::Time;
/// use oubliette::clock::{Clock, ManualClock};
/// let clock = ManualClock::at("2026-01-01T00:00:00Z".parse()?);
/// clock.advance("1h".parse()?);
/// assert_eq!(clock.now(), "2026-01-01T01:00:00Z".parse::<Time>()?);
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock that shows `time`.
    ///
    /// ```
    /// use oubliette::Time;
    /// use oubliette::clock::{Clock, ManualClock};
    /// assert_eq!(ManualClock::at(Time::EPOCH).now(), Time::EPOCH);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn at(time: Time) -> Self {
        ManualClock(Arc::new(AtomicI64::new(time.as_millis())))
    }

    /// Sets it, forwards or back.
    ///
    /// ```
    /// use oubliette::Time;
    /// use oubliette::clock::{Clock, ManualClock};
    /// let clock = ManualClock::at(Time::EPOCH);
    /// clock.set("2026-01-01T00:00:00Z".parse()?);
    /// assert_eq!(clock.now().day(), "2026-01-01");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set(&self, time: Time) {
        self.0.store(time.as_millis(), Ordering::SeqCst);
    }

    /// Moves it forwards.
    ///
    /// ```
    /// use oubliette::Time;
    /// use oubliette::clock::{Clock, ManualClock};
    /// let clock = ManualClock::at(Time::EPOCH);
    /// clock.advance("2d".parse()?);
    /// assert_eq!(clock.now().day(), "1970-01-03");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance(&self, span: Span) {
        self.0.fetch_add(span.as_millis(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time::from_millis(self.0.load(Ordering::SeqCst))
    }
}
