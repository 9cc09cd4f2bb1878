//! The lock of the queue, behind a seam: the one that ships, and in tests that of a checker that tries schedules.

/// A value that threads work on one at a time, and whose changes they can wait for.
pub(super) trait Monitor<T>: Send + Sync {
    /// Around a value.
    fn new(value: T) -> Self;
    /// Works on the value, alone.
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R;
    /// Works on the value until that gives something, again after each [`Monitor::wake`].
    fn wait<R>(&self, work: impl FnMut(&mut T) -> Option<R>) -> R;
    /// Waits for a moment, or until the value is as wished.
    fn linger(&self, wished: impl FnMut(&mut T) -> bool);
    /// Lets all who wait look again.
    fn wake(&self);
}

/// A family of monitors.
pub(super) trait Monitors: 'static {
    /// The monitor of a value.
    type Of<T: Send>: Monitor<T>;
}

/// The monitors that ship.
#[derive(Debug)]
pub(super) struct Parked;

impl Monitors for Parked {
    type Of<T: Send> = Parking<T>;
}

/// How long a leader waits for those who wrote together with it a moment ago: a fraction of what a sync takes.
const MOMENT: std::time::Duration = std::time::Duration::from_micros(200);

/// A monitor of `parking_lot`.
#[derive(Debug)]
pub(super) struct Parking<T> {
    value: parking_lot::Mutex<T>,
    changed: parking_lot::Condvar,
}

impl<T: Send> Monitor<T> for Parking<T> {
    fn new(value: T) -> Self {
        Parking { value: parking_lot::Mutex::new(value), changed: parking_lot::Condvar::new() }
    }

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.value.lock())
    }

    fn wait<R>(&self, mut work: impl FnMut(&mut T) -> Option<R>) -> R {
        let mut value = self.value.lock();
        loop {
            if let Some(result) = work(&mut value) {
                return result;
            }
            self.changed.wait(&mut value);
        }
    }

    fn linger(&self, mut wished: impl FnMut(&mut T) -> bool) {
        let mut value = self.value.lock();
        self.changed.wait_while_for(&mut value, |value| !wished(value), MOMENT);
    }

    fn wake(&self) {
        self.changed.notify_all();
    }
}
