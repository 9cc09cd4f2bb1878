//! Which slots of an image a search sees. Searches of the same time see the same, so the answer is kept.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::index::chunk::{Chunk, Span, Window};
use crate::index::extract::{Extract, OnDemand};

/// The slots of an image that lie in a window, and from when until when a window of its sort holds the same ones.
#[derive(Debug)]
pub(super) struct Sight<V> {
    window: Window,
    /// The first instant and the first instant after the last.
    same: Span,
    /// The slots of each chunk, a bit for each.
    words: Vec<u64>,
    seen: u64,
    extract: OnDemand<V>,
}

impl<V> Sight<V> {
    fn of(window: Window, spans: &[Span], chunks: &[Arc<Chunk>]) -> Self {
        let words = Vec::with_capacity(chunks.len());
        let (same, extract) = ((i64::MIN, i64::MAX), OnDemand::new());
        let mut sight = Sight { window, same, words, seen: 0, extract };
        for (span, chunk) in spans.iter().zip(chunks) {
            let word = sight.look(*span, chunk);
            sight.words.push(word);
            sight.seen += u64::from(word.count_ones());
        }
        sight
    }

    /// The slots of a chunk that lie in the window. The instants at which this changes bound those of the sight.
    fn look(&mut self, span: Span, chunk: &Chunk) -> u64 {
        if self.window.holds(span.0, span.1) {
            self.same = self.window.same_near(self.same, span.0, span.1);
            return u64::MAX;
        }
        chunk.spans().enumerate().fold(0, |word, (bit, (from, until))| {
            self.same = self.window.same_near(self.same, from, until);
            word | (u64::from(self.window.holds(from, until)) << bit)
        })
    }

    /// The same after the chunks of these numbers have changed.
    fn with(&self, touched: &[usize], spans: &[Span], chunks: &[Arc<Chunk>]) -> Self {
        let Sight { window, same, ref words, seen, .. } = *self;
        let mut sight = Sight { window, same, words: words.clone(), seen, extract: OnDemand::new() };
        sight.words.resize(chunks.len(), 0);
        for &number in touched {
            let (Some(span), Some(chunk)) = (spans.get(number), chunks.get(number)) else { continue };
            let now = sight.look(*span, chunk);
            if let Some(word) = sight.words.get_mut(number) {
                sight.seen = sight.seen - u64::from(word.count_ones()) + u64::from(now.count_ones());
                *word = now;
            }
        }
        sight
    }

    fn is_of(&self, window: Window) -> bool {
        self.window.is_live() == window.is_live() && (self.same.0..self.same.1).contains(&window.now())
    }

    /// The visible slots of each chunk, a bit for each. Bits behind the last slot are never set.
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    /// The number of visible slots.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// The visible slots alone, if they are few of all `len`. `make` makes the image of some slots.
    pub(super) fn extract(&self, len: u32, make: impl FnOnce(&[u32]) -> V) -> Option<&Arc<Extract<V>>> {
        // Nobody keeps the sight of another window, so its extract would serve one search.
        self.window.is_live().then(|| self.extract.get(&self.words, (self.seen, len), make))?
    }
}

/// The last sight of each sort of window that searches ask for again and again.
#[derive(Debug)]
pub(super) struct Sights<V> {
    live: Mutex<Option<Arc<Sight<V>>>>,
    current: Mutex<Option<Arc<Sight<V>>>>,
}

impl<V> Sights<V> {
    /// None is kept yet.
    pub(super) fn new() -> Self {
        Sights { live: Mutex::new(None), current: Mutex::new(None) }
    }

    fn of(&self, window: Window) -> Option<&Mutex<Option<Arc<Sight<V>>>>> {
        match () {
            () if window.is_live() => Some(&self.live),
            () if window.is_current() => Some(&self.current),
            () => None,
        }
    }

    /// What a window shows of these chunks.
    pub(super) fn get(&self, window: Window, spans: &[Span], chunks: &[Arc<Chunk>]) -> Arc<Sight<V>> {
        let kept = self.of(window);
        let last = kept.and_then(|kept| kept.lock().clone());
        last.filter(|sight| sight.is_of(window)).unwrap_or_else(|| {
            let sight = Arc::new(Sight::of(window, spans, chunks));
            if let Some(kept) = kept {
                *kept.lock() = Some(Arc::clone(&sight));
            }
            sight
        })
    }

    /// The same after the chunks of these numbers have changed.
    pub(super) fn with(&self, touched: &[usize], spans: &[Span], chunks: &[Arc<Chunk>]) -> Self {
        let brought = |kept: &Mutex<Option<Arc<Sight<V>>>>| {
            let last = kept.lock().clone();
            Mutex::new(last.map(|sight| Arc::new(sight.with(touched, spans, chunks))))
        };
        Sights { live: brought(&self.live), current: brought(&self.current) }
    }

    /// The most that a slot takes: two bits, rounded up.
    pub(super) const SLOT_BYTES: usize = 1;

    /// The bytes in memory for an image of so many chunks.
    pub(super) fn bytes_of(chunks: usize) -> usize {
        2 * (size_of::<Sight<V>>() + chunks * size_of::<u64>())
    }
}
