//! Merging: members of a group of duplicates become one (DEDUP-18).

use crate::error::Result;
use crate::ledger::{Applied, Context, Ledger, Merge, Why};

impl Ledger<'_, '_> {
    pub(super) fn merge(&mut self, _context: &Context, _merge: Merge, _why: Why) -> Result<Applied> {
        unimplemented!()
    }
}
