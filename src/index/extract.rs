//! An extract: the slots that searches see of an image, side by side, where they see few of many.
//!
//! Slots that are seen lie scattered among those that are not. A scan then waits for the memory at each of them, and passes
//! through the whole image. An extract is an image of the seen slots alone, so a search of it costs what it would cost if the
//! others had never been there. The second search that sees the same slots makes it, because after a write or at the end
//! of a memory's life others are seen.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::index::chunk::ones;
use crate::limits::BITS_SLOTS_MIN;

/// An extract is made if at most one in so many slots is seen. Its bytes are counted with those of the image.
const SPARSE: usize = 32;

/// The seen slots of an image of the sort `V`.
#[derive(Debug)]
pub(super) struct Extract<V> {
    /// The image of these slots alone.
    view: Arc<V>,
    /// Their numbers in the index, ascending.
    slots: Box<[u32]>,
}

/// The most slots of the extract of an image of so many slots.
pub(super) fn most_of(slots: usize) -> usize {
    if slots < BITS_SLOTS_MIN as usize { 0 } else { slots / SPARSE }
}

impl<V> Extract<V> {
    /// The bytes of an extract of so many slots beside its image.
    pub(super) fn bytes_of(slots: usize) -> usize {
        size_of::<Self>() + slots * size_of::<u32>()
    }

    /// The image of the slots alone.
    pub(super) fn view(&self) -> &Arc<V> {
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
#[derive(Debug)]
pub(super) struct OnDemand<V> {
    asked: AtomicBool,
    made: OnceLock<Arc<Extract<V>>>,
}

impl<V> OnDemand<V> {
    /// Nobody has asked yet.
    pub(super) fn new() -> Self {
        OnDemand { asked: AtomicBool::new(false), made: OnceLock::new() }
    }

    /// The extract with the slots of `words`, a bit for each, of which `seen` are set among `len`. `make` makes the image of
    /// some slots. None where an extract does not pay, and for the first that asks.
    pub(super) fn get(
        &self,
        words: &[u64],
        (seen, len): (u64, u32),
        make: impl FnOnce(&[u32]) -> V,
    ) -> Option<&Arc<Extract<V>>> {
        let pays = seen > 0 && seen <= most_of(len as usize) as u64;
        (pays && self.asked.swap(true, Ordering::Relaxed)).then(|| {
            self.made.get_or_init(|| {
                let slots = slots_of(words).collect::<Box<_>>();
                Arc::new(Extract { view: Arc::new(make(&slots)), slots })
            })
        })
    }
}

/// The slots whose bit is set.
fn slots_of(words: &[u64]) -> impl Iterator<Item = u32> {
    let words = (0..).step_by(u64::BITS as usize).zip(words);
    words.flat_map(|(first, word)| ones(*word).map(move |bit| first + bit))
}
