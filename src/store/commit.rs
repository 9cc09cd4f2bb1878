//! Writing: one unit of work after the other, each committed or without a trace.

use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::store::Durability;
use crate::store::handle::{Handle, lost};
use crate::store::open::Store;
use crate::store::transact::{Failed, Written, attempt};
use crate::store::tx::WriteTx;

impl Store {
    /// Runs `unit` in a write transaction and commits it, or leaves no trace.
    ///
    /// # Errors
    /// Those of `unit`; `Retry` when the storage failed and the handle has recovered; `Unavailable` when it could
    /// not, and when another file has the name; `ReadOnly`, `Closed`.
    pub(crate) fn write<R>(
        &self,
        durability: Durability,
        unit: impl FnOnce(&mut WriteTx<'_>) -> Result<R>,
    ) -> Result<Written<R>> {
        let _one = self.writer.lock();
        self.write_locked(durability, unit)
    }

    /// [`Store::write`] for whoever holds the writer's lock.
    pub(super) fn write_locked<R>(
        &self,
        durability: Durability,
        unit: impl FnOnce(&mut WriteTx<'_>) -> Result<R>,
    ) -> Result<Written<R>> {
        // A lost file is opened first: the name that is synced next is that of the file to which the commit goes.
        self.recover_locked()?;
        self.refuse_replaced()?;
        self.sync_name()?;
        let nonce = self.next_nonce();
        // A commit without a sync is no commit for the processes that read beside this one.
        let durability = match durability {
            Durability::Batch if self.options.shared => Durability::Fast,
            other => other,
        };
        // Readers share this lock. It must be free again before `settle`, which takes it alone to replace the handle.
        let result = {
            let guard = self.handle.read();
            match guard.as_ref() {
                Some(Handle::Write(db)) => attempt(db, durability, nonce, self.epoch(), unit),
                Some(Handle::Read(_)) => return Err(Error::ReadOnly),
                Some(Handle::Lost) => return Err(lost()),
                None => return Err(Error::Closed),
            }
        };
        match result {
            Ok((written, clock)) => {
                *self.last.lock() = clock.nonce;
                self.moved.fetch_add(written.moved, Ordering::Relaxed);
                Ok(written)
            }
            // However a commit has ended, by a panic too: the file says whether it counts.
            Err(Failed { why, is_broken: true, unsure }) => self.settle(why, unsure.map(|unsure| *unsure)),
            Err(Failed { why, .. }) => Err(why),
        }
    }

    /// Makes every commit so far durable.
    pub(crate) fn flush(&self) -> Result<()> {
        self.write(Durability::Safe, |_| Ok(())).map(|_| ())
    }
}
