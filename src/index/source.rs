//! One index among those that a search looks through.

use std::sync::Arc;

use crate::index::extract::Extract;
use crate::index::sketch::Sketch;
use crate::index::view::View;
use crate::store::IndexId;

/// An index in a search. Its slots have the numbers from `base` on, in the order of the image that is searched.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) base: u32,
    pub(super) index: IndexId,
    pub(super) used: u32,
    /// The number of slots that are searched, vacant ones included.
    pub(super) len: u32,
    /// None if the blocks are read from the table.
    pub(super) view: Option<Arc<View>>,
    /// Where the slots of the view lie in the index, if the view is that of the seen slots alone.
    pub(super) extract: Option<Arc<Extract<View>>>,
    /// The one-bit codes, if there is no view.
    pub(super) sketch: Option<Arc<Sketch>>,
    /// The share of slots that the search sees; 1 without a view, which would be needed to tell.
    pub(super) seen: f64,
}

impl Source {
    /// The slot of the index that has this number among those that are searched.
    pub(super) fn slot_of(&self, number: u32) -> u32 {
        self.extract.as_ref().map_or(number, |extract| extract.slot_of(number))
    }

    /// The number of a slot of the index among those that are searched; none for a slot that is not.
    pub(super) fn number_of(&self, slot: u32) -> Option<u32> {
        self.extract.as_ref().map_or(Some(slot), |extract| extract.number_of(slot))
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
