//! What changed since a host last asked: the journal as a feed.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::limits::{PAGE_MAX, at_most};
use crate::model::{Changes, Op};
use crate::recall::{Reader, Source};
use crate::store::Rows;

impl<S: Source> Reader<'_, S> {
    /// At most `limit` changes from the cursor `since` on, the first of all with 0. Steps in the upkeep of indexes change no
    /// memory, so they are left out.
    ///
    /// # Errors
    /// `Invalid` when the limit is not 1 to 10,000 or the cursor is none of this file; `CursorTooOld` when changes behind
    /// the cursor were removed from the journal; `Corrupted`.
    pub(crate) fn changes(&self, since: u64, limit: usize) -> Result<Changes> {
        if limit == 0 {
            return Err(Error::invalid("limit", format!("must be 1 to {PAGE_MAX}"), limit));
        }
        at_most("limit", limit, PAGE_MAX)?;
        let end = self.rows().clock()?.next_seq;
        if since > end {
            return Err(Error::invalid("since", "must be the cursor of a page of this file", since));
        }
        let mut page = Changes { changes: Vec::new(), next: end, damaged: Vec::new() };
        let Some(ns) = self.ns else { return Ok(page) };
        let oldest = self.rows().journal_from(ns)?;
        if since < oldest {
            return Err(Error::CursorTooOld { oldest });
        }
        self.rows().journal_on(ns, since, &mut |seq, row| {
            if page.changes.len() == limit {
                page.next = seq;
                return Ok(ControlFlow::Break(()));
            }
            match row {
                Some(row) if row.op == Op::Derive => {}
                Some(row) => page.changes.push(row.into()),
                None => page.damaged.push(seq),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(page)
    }
}
