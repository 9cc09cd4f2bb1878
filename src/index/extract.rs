//! An extract: the slots that searches see of an image, side by side, where they see few of many.
//!
//! Slots that are seen lie scattered among those that are not. A scan then waits for the memory at each of them, and passes
//! through the whole image. An extract is an image of the seen slots alone, so a search of it costs what it would cost if the
//! others had never been there. The second search that sees the same slots makes it, because after a write or at the end
//! of a memory's life others are seen.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::index::view::View;
use crate::limits::BITS_SLOTS_MIN;

/// An extract is made if at most one in so many slots is seen. Its bytes are counted with those of the image.
const SPARSE: usize = 32;

/// The seen slots of an image.
#[derive(Debug)]
pub(super) struct Extract {
    /// The image of these slots alone.
    view: Arc<View>,
    /// Their numbers in the index, ascending.
    slots: Box<[u32]>,
}

impl Extract {
    /// The most bytes of the extract of an image of so many slots.
    pub(super) fn bytes_of(slots: usize, dim: usize) -> usize {
        match slots < BITS_SLOTS_MIN as usize {
            true => 0,
            false => View::flat_bytes_of(slots / SPARSE, dim) + slots / SPARSE * size_of::<u32>(),
        }
    }

    /// The image of the slots alone.
    pub(super) fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// The slot of the index that has this number in the extract.
    #[expect(clippy::expect_used, reason = "a number comes from a search of the extract")]
    pub(super) fn slot_of(&self, number: u32) -> u32 {
        *self.slots.get(number as usize).expect("a slot of the extract")
    }

    /// The number in the extract of a slot of the index; none for a slot that is not seen.
    pub(super) fn number_of(&self, slot: u32) -> Option<u32> {
        self.slots.binary_search(&slot).ok().map(|number| number as u32)
    }
}

/// The extract of the slots that are seen, once it was asked for twice.
#[derive(Debug, Default)]
pub(super) struct OnDemand {
    asked: AtomicBool,
    made: OnceLock<Arc<Extract>>,
}

impl OnDemand {
    /// The extract of `view` with the slots of `words`, a bit for each, of which `seen` are set; none where an extract
    /// does not pay, and for the first that asks.
    pub(super) fn get(&self, view: &View, words: &[u64], seen: u64) -> Option<&Arc<Extract>> {
        let pays = view.len() >= BITS_SLOTS_MIN && seen > 0 && seen * SPARSE as u64 <= u64::from(view.len());
        (pays && self.asked.swap(true, Ordering::Relaxed)).then(|| {
            self.made.get_or_init(|| {
                let slots = slots_of(words).collect::<Box<_>>();
                Arc::new(Extract { view: Arc::new(view.of_slots(&slots)), slots })
            })
        })
    }
}

/// The slots whose bit is set.
fn slots_of(words: &[u64]) -> impl Iterator<Item = u32> {
    (0..).step_by(u64::BITS as usize).zip(words).flat_map(|(first, word)| {
        (0..u64::BITS).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first + bit)
    })
}
