//! One write transaction: a unit of work, and its commit.

use redb::Database;

use crate::error::{Error, Result};
use crate::store::Durability;
use crate::store::control::{Clock, Nonce};
use crate::store::handle::FILE;
use crate::store::raw::fenced;
use crate::store::rows::Rows;
use crate::store::tx::{Staged, WriteTx};

/// What a write transaction gave back.
pub(crate) struct Written<R> {
    /// What the closure returned.
    pub(crate) value: R,
    /// The blocks that changed of what readers keep images of.
    pub(crate) staged: Staged,
    /// Whether it has put or taken away any row but that of the clock.
    pub(crate) has_changed: bool,
    /// Bytes of keys and values that came, less those that went.
    pub(super) grown: i64,
    /// Bytes of keys and values that were put, and of those that were taken away.
    pub(super) moved: u64,
}

/// A commit that failed: the file may hold it.
pub(super) struct Unsure<R> {
    pub(super) written: Written<R>,
    /// Its clock row, by which it is known.
    pub(super) clock: Clock,
}

/// A write transaction that did not end well.
pub(super) struct Failed<R> {
    pub(super) why: Error,
    /// Whether the storage was to blame: the handle is to be opened again.
    pub(super) is_broken: bool,
    /// What it wrote, when only the commit itself failed: the file may hold it.
    pub(super) unsure: Option<Box<Unsure<R>>>,
}

impl<R> From<Error> for Failed<R> {
    fn from(why: Error) -> Self {
        Failed { is_broken: is_of_storage(&why), why, unsure: None }
    }
}

fn is_of_storage(why: &Error) -> bool {
    matches!(why, Error::Retry { .. })
}

/// Runs `unit` in a transaction of a file that is no store yet.
pub(super) fn transact<R>(
    db: &Database,
    durability: Durability,
    unit: impl FnOnce(&mut WriteTx<'_>) -> Result<R>,
) -> Result<Written<R>> {
    let done = attempt(db, durability, Nonce::default(), 0, unit);
    done.map(|(written, _)| written).map_err(|failed| failed.why)
}

/// Runs `unit` in a transaction and commits it with a mark, at an epoch of the store. Gives the clock row of the commit too.
pub(super) fn attempt<R>(
    db: &Database,
    durability: Durability,
    nonce: Nonce,
    epoch: u64,
    unit: impl FnOnce(&mut WriteTx<'_>) -> Result<R>,
) -> Result<(Written<R>, Clock), Failed<R>> {
    let mut txn = fenced(FILE, &[], || db.begin_write())?;
    // `Safe` pays for a second sync and a saved allocator, so that opening after a crash walks no file.
    let level = match durability {
        Durability::Safe | Durability::Fast => redb::Durability::Immediate,
        Durability::Batch => redb::Durability::None,
    };
    fenced(FILE, &[], || txn.set_durability(level))?;
    txn.set_two_phase_commit(durability == Durability::Safe);
    txn.set_quick_repair(durability == Durability::Safe);
    let result = {
        let mut tx = WriteTx::new(&txn, nonce, epoch);
        unit(&mut tx).and_then(|value| {
            // Staged blocks are rows too: they are written before the rows are summed up.
            let staged = tx.flush()?;
            let has_changed = tx.has_changed();
            let grown = tx.keep_size()?;
            Ok((Written { value, staged, has_changed, grown, moved: tx.moved }, tx.clock()?))
        })
    };
    match result {
        Ok((written, clock)) => match fenced(FILE, &[], || txn.commit()) {
            Ok(()) => Ok((written, clock)),
            Err(why) => {
                Err(Failed { why, is_broken: true, unsure: Some(Box::new(Unsure { written, clock })) })
            }
        },
        Err(why) => {
            // A failing disk fails the abort as well, without the reason; the transaction is gone either way.
            let aborted = fenced(FILE, &[], || txn.abort());
            let is_broken = is_of_storage(&why) || aborted.is_err_and(|fault| is_of_storage(&fault));
            Err(Failed { why, is_broken, unsure: None })
        }
    }
}
