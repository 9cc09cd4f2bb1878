//! Opening the file again: after a failure of the storage, and where another file has taken its name.
//!
//! The lock of the file goes with the handle, so while it is opened again another process may write, or put a compacted
//! copy in its place. Whatever was read before counts no more: [`Store::epoch`] says so.

use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::store::Durability;
use crate::store::control::{Clock, Nonce};
use crate::store::disk::Which;
use crate::store::handle::{Handle, let_go, open_handle};
use crate::store::open::Store;
use crate::store::rows::Rows;
use crate::store::transact::{Unsure, Written, transact};
use crate::store::tx::Snapshot;

impl Store {
    /// Begins another epoch although the file stays open: what was read of it is not to be gone on with.
    pub(crate) fn outdate(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// Opens the file again, if that failed before.
    ///
    /// # Errors
    /// `Locked` when another process has it by now, `Unavailable` when it still can't be opened.
    pub(crate) fn recover(&self) -> Result<()> {
        if !self.is_lost() {
            return Ok(());
        }
        let _one = self.writer.lock();
        self.recover_locked()
    }

    /// [`Store::recover`] for whoever holds the writer's lock.
    pub(super) fn recover_locked(&self) -> Result<()> {
        if self.is_lost() {
            self.reopen().map_err(unavailable)?;
        }
        Ok(())
    }

    fn is_lost(&self) -> bool {
        matches!(*self.handle.read_recursive(), Some(Handle::Lost))
    }

    /// Opens the file again where its name stands for another one by now, as after the compaction of another process.
    ///
    /// # Errors
    /// `Locked` when another process has it, `Io` when there is nothing by the name, `Unavailable` when it can't be opened.
    pub(crate) fn follow(&self) -> Result<()> {
        self.recover()?;
        if self.is_in_place()? {
            return Ok(());
        }
        let _one = self.writer.lock();
        // Another thread may have opened the new file while this one waited for the lock.
        if !self.is_in_place()? {
            self.reopen().map_err(unavailable)?;
        }
        Ok(())
    }

    fn is_in_place(&self) -> Result<bool> {
        let path = self.path();
        let named = self.disk.id(path).map_err(|why| Error::io("look at", path, why))?;
        Ok(named == self.which.lock().id)
    }

    /// Whether nobody finds by the name what is written to the file that is open: another file has the name, or the file has been deleted.
    /// A file that was moved is still found by whoever knows its new name.
    ///
    /// # Errors
    /// `Io` when the name can't be looked at.
    pub(crate) fn is_replaced(&self) -> Result<bool> {
        if !self.is_replaced_now()? {
            return Ok(false);
        }
        // A compaction gives the name to its copy before it has that open in the place of the file.
        let _one = self.writer.lock();
        self.is_replaced_now()
    }

    /// [`Store::is_replaced`] for whoever holds the writer's lock.
    fn is_replaced_now(&self) -> Result<bool> {
        match self.is_in_place() {
            Ok(in_place) => Ok(!in_place),
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(self.which.lock().is_deleted())
            }
            Err(why) => Err(why),
        }
    }

    /// Refuses to write to a file that has lost its name: whoever reads by the name would never find what was acknowledged.
    ///
    /// # Errors
    /// `Unavailable`; `Io` when the name can't be looked at.
    pub(super) fn refuse_replaced(&self) -> Result<()> {
        if !self.is_replaced_now()? {
            return Ok(());
        }
        let path = self.path().display();
        let what = match self.which.lock().is_deleted() && !self.disk.exists(self.path()).unwrap_or(true) {
            true => format!("the file {path} has been deleted since it was opened"),
            false => format!("another file has taken the name {path} since this one was opened"),
        };
        let why = format!("{what}; open it again, or end this program and start it again");
        Err(Error::Unavailable { why })
    }

    /// The mark of the next commit.
    pub(super) fn next_nonce(&self) -> Nonce {
        let attempt = self.attempts.fetch_add(1, Ordering::SeqCst);
        let mut nonce = Nonce::default();
        // The mark has 16 bytes and each half 8, so both copies fit.
        let (opener, number) = nonce.split_at_mut(self.options.opener.len());
        opener.copy_from_slice(&self.options.opener);
        number.copy_from_slice(&attempt.to_be_bytes());
        nonce
    }

    /// What a transaction that ended badly came to, once the file is open again: the commit counts if the file holds it and
    /// that is synced; it is gone without a trace if not; where another process has written since, nobody can tell.
    pub(super) fn settle<R>(&self, why: Error, unsure: Option<Unsure<R>>) -> Result<Written<R>> {
        let last = *self.last.lock();
        let Some(Unsure { written, clock }) = unsure else {
            let found = self.reopen().map_err(unavailable)?;
            return Err(gone(why, found.nonce == last));
        };
        let unknown =
            |why: String| Error::Unavailable { why: format!("the last write may be there or not: {why}") };
        let found = self.reopen().map_err(|why| unknown(why.to_string()))?;
        if found.nonce != clock.nonce {
            // Numbers grow by one with each commit, so what was built on this one has a higher one.
            return Err(if found.commit > clock.commit {
                unknown(format!("{why}; another process has written since"))
            } else {
                gone(why, found.nonce == last)
            });
        }
        let guard = self.handle.read();
        // An empty commit with a sync makes every commit before it durable, also the one that was found.
        if let Some(Handle::Write(db)) = guard.as_ref() {
            transact(db, Durability::Safe, |_| Ok(())).map_err(|why| unknown(why.to_string()))?;
        }
        *self.last.lock() = clock.nonce;
        Ok(written)
    }

    /// Opens the file again and gives its clock row. Snapshots taken before fail with `Retry` from now on.
    fn reopen(&self) -> Result<Clock> {
        let mut guard = self.handle.write();
        if guard.is_none() {
            return Err(Error::Closed);
        }
        self.epoch.fetch_add(1, Ordering::SeqCst);
        // The file's lock goes with the old handle, so that must go first.
        let old = guard.replace(Handle::Lost);
        let_go(old);
        let (handle, id) = open_handle(self.disk.as_ref(), &self.options)?;
        let snapshot = Snapshot::new(handle.begin_read()?, self.epoch());
        self.check_format(&snapshot)?;
        let clock = snapshot.clock()?;
        drop(snapshot);
        *self.which.lock() = Which::of(self.disk.as_ref(), self.path(), id);
        *self.last.lock() = clock.nonce;
        // Whoever has replaced the file may not have synced its name yet.
        self.name_unsynced.store(!self.options.read_only, Ordering::SeqCst);
        *guard = Some(handle);
        Ok(clock)
    }
}

/// What is said of a failure that has taken earlier commits as well.
const LOST: &str = "; commits since the last flush are lost";

/// The error of a write of which nothing is in the file. Without `kept` the file has lost commits before it as well.
fn gone(why: Error, kept: bool) -> Error {
    match why {
        why if kept => why,
        Error::Retry { why } => Error::Retry { why: why + LOST },
        other => Error::Retry { why: other.to_string() + LOST },
    }
}

/// The error of a file that could not be opened again.
fn unavailable(why: Error) -> Error {
    match why {
        Error::Locked { .. } => why,
        other => Error::Unavailable { why: other.to_string() },
    }
}
