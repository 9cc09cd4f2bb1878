//! Giving space back: the file ends where its last page in use ends.
//!
//! redb doubles a file that grows, and at its closing cuts off the free pages at the end. A page in use near the end keeps
//! all the free pages before it. So where much of a file is free, redb moves its last pages forward before the file is
//! let go of. That is its own compaction: each step is a durable commit, and a crash in between costs the next opening a
//! walk through the file, and no row. Only whole pages are moved. [`Store::compact`] also makes room within pages, and
//! leaves nothing of what was forgotten.

use std::sync::atomic::Ordering;

use redb::Database;

use crate::error::{Error, Result};
use crate::store::Durability;
use crate::store::control::SizeRow;
use crate::store::handle::{FILE, Handle, closing, open_handle};
use crate::store::open::Store;
use crate::store::raw::fenced;
use crate::store::rows::Rows;
use crate::store::transact::transact;

/// Bytes of a file below which no space is given back: what could be won is not worth the syncs.
const SHRUNK_MIN: u64 = 4 << 20;

/// A handle that wrote less than this part of a file does not walk through the file for what is free only because the file has
/// grown.
const WRITTEN_PART: u64 = 16;

/// How many times as long as its pages in use a file can be that has just grown: redb doubles it, and has some pages of its own.
const GROWN_TIMES: f64 = 2.1;

impl Store {
    /// Closes the file as [`Store::close`] does. If more than the share `most_free` of it is free, it becomes shorter.
    ///
    /// A handle that lets others read gives nothing back, because a reader must not lose its pages. Neither does one that
    /// finds the file taken by another process right after it was closed. What goes wrong beyond the closing is logged: all
    /// commits are on the disk already.
    ///
    /// # Errors
    /// As [`Store::close`].
    pub(crate) fn close_and_shrink(&self, most_free: f64) -> Result<()> {
        let worth = !self.options.read_only && !self.options.shared && most_free < 1.0;
        let size = if worth { self.snapshot().and_then(|rows| rows.size()) } else { Ok(None) };
        self.close()?;
        let shrunk = size.and_then(|size| match size {
            Some(size) => self.shrink(&size, most_free),
            None => Ok(0),
        });
        match shrunk {
            Ok(0) => {}
            Ok(bytes) => tracing::debug!(bytes, "gave space back"),
            Err(why) => tracing::warn!(%why, "no space was given back"),
        }
        Ok(())
    }

    /// Whether this handle has written little of a file of so many bytes. A file without room would be doubled by such a
    /// handle, walked through to be made shorter, and doubled by the next.
    fn wrote_little(&self, before: u64) -> bool {
        self.moved.load(Ordering::Relaxed) < before / WRITTEN_PART
    }

    /// Makes the closed file shorter if it is worth it, and returns the bytes that it lost.
    fn shrink(&self, size: &SizeRow, most_free: f64) -> Result<u64> {
        let before = self.file_bytes()?;
        let is_free = |free: u64| {
            let has_grown = before as f64 <= GROWN_TIMES * before.saturating_sub(free) as f64;
            free as f64 > most_free * before as f64 && !(has_grown && self.wrote_little(before))
        };
        // To count what is free takes a walk through the file, which no process that writes a line should pay for. Rows take at
        // least their bytes; what their pages take beyond is known once they have been counted.
        let used = size.live.saturating_add(if size.is_counted() { size.overhead() } else { 0 });
        if before < SHRUNK_MIN || !is_free(before.saturating_sub(used)) {
            return Ok(0);
        }
        let _one = self.writer.lock();
        let mut database = match open_handle(self.disk.as_ref(), &self.options) {
            Ok((Handle::Write(database), _)) => database,
            Ok(_) | Err(Error::Locked { .. }) => return Ok(0),
            Err(why) => return Err(why),
        };
        let moved = move_forward(&mut database, size.live, |used| is_free(before.saturating_sub(used)));
        let closed = fenced(FILE, &[], || database.close().map_err(closing));
        moved.and(closed)?;
        Ok(before.saturating_sub(self.file_bytes()?))
    }
}

/// Counts the pages under rows of `live` bytes, notes what they take, and moves the last ones in use forward, if `is_worth_it` for
/// the bytes of pages in use.
fn move_forward(database: &mut Database, live: u64, is_worth_it: impl FnOnce(u64) -> bool) -> Result<()> {
    let tx = fenced(FILE, &[], || database.begin_write())?;
    let used = fenced(FILE, &[], || tx.stats()).map(|of| of.allocated_pages() * of.page_size() as u64);
    fenced(FILE, &[], || tx.abort())?;
    let used = used?;
    let counted = SizeRow { live, copied: live, overhead: used.saturating_sub(live) };
    // Noted before anything moves: pages in use are as many afterwards.
    transact(database, Durability::Fast, |tx| tx.put_size(&counted))?;
    if is_worth_it(used) {
        fenced(FILE, &[], || database.compact())?;
    }
    Ok(())
}
