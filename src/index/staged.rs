//! The vectors that a transaction has written so far, which the published state can't know yet.

use std::collections::{BTreeMap, HashMap};

use crate::model::MemoryId;
use crate::store::IndexId;
use crate::vector::{Candidates, Coded, Codes, QueryCode, UnitVector};

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

    /// The memories that may be among the `most` nearest to `query` and score at least `least`, of the last [`WINDOW`]
    /// vectors of the index. Each comes with an upper bound on its score; the most promising comes first.
    pub(crate) fn near(
        &self,
        index: IndexId,
        query: &UnitVector,
        least: f32,
        most: usize,
    ) -> Vec<(MemoryId, f32)> {
        let Some(side) = self.indexes.get(&index) else { return Vec::new() };
        let code = QueryCode::new(query);
        let mut candidates = Candidates::at_least(&code, most, least);
        let (codes, first) = side.last(query.dim());
        candidates.push_chunk(first, codes, side.visible.get(first as usize / 64..));
        let mut candidates = candidates.finish();
        candidates.sort_unstable();
        let id = |slot: u32| side.ids.get(slot as usize).copied();
        candidates.iter().filter_map(|near| Some((id(near.slot)?, near.upper))).collect()
    }
}
