//! The locks of the queue, behind a seam: those that ship, and in tests those of a checker that tries schedules.

/// A lock that one thread holds at a time.
pub(super) trait Exclusive<T>: Send + Sync {
    /// Around a value.
    fn new(value: T) -> Self;
    /// Works on the value, alone.
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R;
}

/// A family of such locks.
pub(super) trait Mutexes: 'static {
    /// The lock of a value.
    type Of<T: Send>: Exclusive<T>;
}

/// The locks of `parking_lot`.
#[derive(Debug)]
pub(super) struct Parked;

impl Mutexes for Parked {
    type Of<T: Send> = parking_lot::Mutex<T>;
}

impl<T: Send> Exclusive<T> for parking_lot::Mutex<T> {
    fn new(value: T) -> Self {
        parking_lot::Mutex::new(value)
    }

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.lock())
    }
}
