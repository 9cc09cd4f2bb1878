//! The vectors that a transaction has written so far, which the published state can't know yet.

use std::collections::{BTreeMap, HashMap};

use crate::model::{MemoryId, Ranked};
use crate::store::IndexId;
use crate::vector::{Candidates, Coded, Codes, QueryCode, UnitVector, dot_f32};

/// The number of the last vectors of an index that a search reads. It is bounded so that the cost of a draft
/// does not grow with its batch.
pub(crate) const WINDOW: usize = 1 << 12;

/// The codes of the vectors that a transaction has written, by index. A row that is no longer current, or has got
/// another vector since, is never found.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    indexes: BTreeMap<IndexId, Side>,
    /// The index and the position of each memory.
    places: HashMap<(IndexId, MemoryId), usize>,
}

/// The codes of one index, side by side.
#[derive(Debug, Default)]
struct Side {
    ids: Vec<MemoryId>,
    codes: Vec<i8>,
    scales: Vec<f32>,
    residuals: Vec<f32>,
    /// The vectors themselves, of the last [`WINDOW`]: each takes the place of the one so many before it.
    vectors: Vec<f32>,
    /// A bit for each code that can be found.
    visible: Vec<u64>,
}

impl Side {
    /// The codes of the last vectors, and the position of the first of them, which begins a word of visibility.
    fn last(&self, dim: usize) -> (Codes<'_>, u32) {
        // Rounding up begins the window at a whole word of visibility and keeps it within its bound.
        let first = self.ids.len().saturating_sub(WINDOW).next_multiple_of(64);
        let (codes, scales) = (self.codes.get(first * dim..), self.scales.get(first..));
        let codes = Codes::new(
            dim,
            codes.unwrap_or_default(),
            scales.unwrap_or_default(),
            self.residuals.get(first..).unwrap_or_default(),
        );
        (codes, u32::try_from(first).unwrap_or(u32::MAX))
    }

    /// The vector at a position of the window.
    fn vector(&self, dim: usize, at: usize) -> Option<&[f32]> {
        let at = at % WINDOW;
        self.vectors.get(at * dim..(at + 1) * dim)
    }
}

impl Staged {
    /// Notes the vector of a memory.
    pub(crate) fn push(&mut self, index: IndexId, id: MemoryId, coded: &Coded<'_>) {
        // The earlier code of the memory must not be found beside the new one.
        self.end(index, id);
        let side = self.indexes.entry(index).or_default();
        let at = side.ids.len();
        side.codes.extend_from_slice(&coded.code);
        side.ids.push(id);
        side.scales.push(coded.params.scale);
        side.residuals.push(coded.params.residual);
        let (values, place) = (coded.vector.as_slice(), at % WINDOW * coded.vector.dim());
        match side.vectors.get_mut(place..place + values.len()) {
            Some(earlier) => earlier.copy_from_slice(values),
            None => side.vectors.extend_from_slice(values),
        }
        if at.is_multiple_of(64) {
            side.visible.push(0);
        }
        if let Some(word) = side.visible.last_mut() {
            *word |= 1 << (at % 64);
        }
        self.places.insert((index, id), at);
    }

    /// Notes that a memory is no longer current.
    pub(crate) fn end(&mut self, index: IndexId, id: MemoryId) {
        let Some(at) = self.places.remove(&(index, id)) else { return };
        let side = self.indexes.get_mut(&index);
        if let Some(word) = side.and_then(|side| side.visible.get_mut(at / 64)) {
            *word &= !(1 << (at % 64));
        }
    }

    /// Whether a vector of the memory was written.
    pub(crate) fn has(&self, index: IndexId, id: MemoryId) -> bool {
        self.places.contains_key(&(index, id))
    }

    /// The `most` memories nearest to `query` among those that score at least `least`, of the last [`WINDOW`] vectors of the
    /// index; best first, equal scores by id. There may be some more.
    pub(crate) fn near(&self, index: IndexId, query: &UnitVector, least: f32, most: usize) -> Vec<Ranked> {
        let Some(side) = self.indexes.get(&index) else { return Vec::new() };
        let code = QueryCode::new(query);
        let mut candidates = Candidates::at_least(&code, most, least);
        let (codes, first) = side.last(query.dim());
        candidates.push_chunk(first, codes, side.visible.get(first as usize / 64..));
        let scored = candidates.finish().into_iter().filter_map(|near| {
            let at = near.slot as usize;
            let score = dot_f32(query.as_slice(), side.vector(query.dim(), at)?);
            (score >= least).then_some(Ranked::near(*side.ids.get(at)?, score))
        });
        let mut scored: Vec<_> = scored.collect();
        scored.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.id.cmp(&b.id)));
        scored
    }
}
