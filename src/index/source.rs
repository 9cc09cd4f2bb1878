//! One index among those that a search looks through.

use std::sync::Arc;

use crate::index::view::View;
use crate::store::IndexId;

/// The cost of a code in a scan, side by side with others, in codes of a walk.
const SCANNED_CODE: f64 = 0.25;
/// The cost of a one-bit code in a scan, with the codes that are read for its sake, in codes of a walk.
const SCANNED_BITS: f64 = 0.02;
/// The cost of finding that a slot is not visible, in codes of a walk.
const LOOKED_AT_SLOT: f64 = 0.005;

/// An index in a search. Its slots have the numbers from `base` on.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) base: u32,
    pub(super) index: IndexId,
    pub(super) used: u32,
    pub(super) len: u32,
    /// None if the blocks are read from the table.
    pub(super) view: Option<Arc<View>>,
    /// The share of slots that the search sees, by a sample; 1 if there is no graph to walk.
    pub(super) seen: f64,
}

impl Source {
    /// The cost of scanning the visible slots, in codes that a walk scores.
    pub(super) fn scan_cost(&self, by_bits: bool) -> f64 {
        let len = f64::from(self.len);
        let code = if by_bits { SCANNED_BITS } else { SCANNED_CODE };
        len * self.seen * code + len * LOOKED_AT_SLOT
    }

    /// The number of slots, vacant ones included.
    pub(super) fn slots(&self) -> u32 {
        self.len
    }

    /// Logs that an index has fewer blocks than its slots need.
    pub(super) fn ends_at(&self, blocks: u32, per: usize) {
        if blocks != self.len.div_ceil(per as u32) {
            self.misses(blocks);
        }
    }

    /// Logs that a block is gone. Its memories are not found until the index is rebuilt.
    pub(super) fn misses(&self, block: u32) {
        tracing::warn!(index = ?self.index, block, slots = self.len, "a block of codes is gone; `reindex` heals it");
    }
}
