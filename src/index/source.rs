//! One index among those that a search looks through.

use std::sync::Arc;

use crate::index::sketch::Sketch;
use crate::index::view::View;
use crate::store::IndexId;

/// An index in a search. Its slots have the numbers from `base` on.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) base: u32,
    pub(super) index: IndexId,
    pub(super) used: u32,
    pub(super) len: u32,
    /// None if the blocks are read from the table.
    pub(super) view: Option<Arc<View>>,
    /// The one-bit codes, if there is no view.
    pub(super) sketch: Option<Arc<Sketch>>,
    /// The share of slots that the search sees; 1 without a view, which would be needed to tell.
    pub(super) seen: f64,
}

impl Source {
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
