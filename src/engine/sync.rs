//! The locks of this room: those of `parking_lot`, and in tests those of a checker that tries schedules.

#[cfg(not(test))]
pub(super) use parking_lot::Mutex;
#[cfg(not(test))]
pub(super) use std::sync::Arc;

#[cfg(test)]
pub(super) use checked::Mutex;
#[cfg(test)]
pub(super) use std::sync::Arc;

#[cfg(test)]
mod checked {
    /// The checker's mutex inside a check, a plain one elsewhere, with the interface of `parking_lot`.
    #[derive(Debug, Default)]
    pub(in crate::engine) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(in crate::engine) fn new(value: T) -> Self {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub(in crate::engine) fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }
}
