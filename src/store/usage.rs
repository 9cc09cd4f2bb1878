//! Reads of the tables of memories by their use: those that nobody has used, and the short-term ones in use.

use crate::error::Result;
use crate::model::{MemoryId, Tier, Time};
use crate::store::keys;
use crate::store::part::NsId;
use crate::store::raw::Walk;
use crate::store::rows::Rows;
use crate::store::tables::{Table, last_id};

/// Typed reads of memories by their use.
pub(crate) trait UsageRows: Rows {
    /// The unused durable memories of a class of importance that were last written before `until`, the longest ago first.
    fn unused(&self, ns: NsId, class: u8, until: Time) -> Result<Vec<MemoryId>> {
        let class = keys::of_class(ns, class);
        let walk = Walk::prefix(&class).before(&keys::at(&class, until));
        self.each_key(Table::Unused, &walk, usize::MAX, |key| last_id(Table::Unused, key))
    }

    /// The memories of a short-term tier that were used at least so often and that no consolidation has looked at.
    fn in_use(&self, ns: NsId, tier: Tier, uses: u8) -> Result<Vec<MemoryId>> {
        let walk = Walk::prefix(&keys::of_tier(ns, tier)).starting_at(&keys::used(ns, tier, uses));
        self.each_key(Table::InUse, &walk, usize::MAX, |key| last_id(Table::InUse, key))
    }
}

impl<R: Rows> UsageRows for R {}
