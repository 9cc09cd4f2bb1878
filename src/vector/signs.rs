//! Many queries against one-bit codes: which slots may be near to which query?
//!
//! A block of codes is read once for all queries of a batch, and of a query only the signs are compared. Let v = R(q − c)
//! be a query in the frame of the codes ([`BitFrame`]), and y = R(x − c) a slot. A slot that scores a floor has
//!
//! ```text
//! ⟨q − c, x − c⟩ ≥ floor − base − ⟨c, x⟩
//! ```
//!
//! Divided by both lengths, this is the least cosine of the slot. `sign_limits.rs` says how many signs may differ for it. The
//! numbers are compared after each 128 dimensions. Near vectors differ in few signs and others in about half of them: where
//! the cosine is 0.82, at most 86 of 256 signs may differ, and of a slot that has nothing in common with the query 128 ± 8 do.
//! So most blocks are out before their last signs.
//!
//! The limits do not count the rounding of a slot's code: a step of 0.0016 at 384 dimensions adds a tenth of a sign to a
//! deviation of seven.

use super::kernel::{QuerySigns, SignLimits, SignQueries, sign_marks};
use super::one_bit::{BitBlock, BitFrame, sign_bytes};
use super::sign_limits::LEVEL_MAX;

/// The length of a slot that is taken for 0.
const LENGTH_MIN: f32 = 1e-6;
/// Parts of the range of what queries need in which the least cosine of a block is interpolated.
const PARTS: usize = 8;

/// The signs of many queries in one frame.
#[derive(Clone, Debug)]
pub struct SignBatch<'f> {
    /// For each group of signs, how many may differ.
    limits: &'f [SignLimits],
    /// For each query, its signs.
    signs: Vec<QuerySigns>,
    /// For each query, what every score has in common.
    bases: Vec<f32>,
    /// For each query, what a slot must have beyond its base.
    needed: Vec<f32>,
    /// For each query, the reciprocal of its distance to the center.
    nearness: Vec<f32>,
    /// For each query, the level of the cosine that a slot needs: memory to use again.
    levels: Vec<u8>,
}

impl<'f> SignBatch<'f> {
    /// Queries each of which misses a slot with a chance of at most 1 − [`SURE`](super::SURE). Until a floor is given, every
    /// slot is likely.
    ///
    /// # Panics
    ///
    /// When a query does not have the dimensions of the frame.
    pub fn new<'q>(frame: &'f BitFrame, queries: impl IntoIterator<Item = &'q [f32]>) -> Self {
        let mut batch = SignBatch {
            limits: frame.limits(),
            signs: Vec::new(),
            bases: Vec::new(),
            needed: Vec::new(),
            nearness: Vec::new(),
            levels: Vec::new(),
        };
        let mut values = Vec::new();
        for query in queries {
            assert_eq!(query.len(), frame.dim(), "query and codes are of one embedding space");
            frame.place(query.iter().copied(), &mut values);
            batch.signs.extend(sign_bytes(&values).map(|signs| [signs; 4]));
            batch.bases.push(frame.base_of(query));
            let square: f32 = values.iter().map(|value| value * value).sum();
            batch.nearness.push(1.0 / square.sqrt().max(LENGTH_MIN));
        }
        batch.needed.resize(batch.bases.len(), f32::NEG_INFINITY);
        batch.levels.resize(batch.bases.len(), 0);
        batch
    }

    /// From now on, slots that may score less than `floor` are not likely for this query.
    pub fn set_floor(&mut self, query: usize, floor: f32) {
        if let (Some(needed), Some(base)) = (self.needed.get_mut(query), self.bases.get(query)) {
            *needed = floor - base;
        }
    }

    /// Writes for each query the slots of `block` that may score its floor, a bit for each.
    ///
    /// # Panics
    ///
    /// When the block is of another frame, or there is not one result for each query.
    pub fn likely(&mut self, block: BitBlock<'_>, out: &mut [u64]) {
        let least = LeastCosine::new(block, &self.needed);
        for ((level, needed), nearness) in self.levels.iter_mut().zip(&self.needed).zip(&self.nearness) {
            // What is below 0, and what is not a number, is level 0.
            *level = (least.of(*needed) * nearness * LEVEL_MAX as f32) as u8;
        }
        let queries = SignQueries { signs: &self.signs, levels: &self.levels, limits: self.limits };
        sign_marks(queries, block.signs, out);
    }
}

/// The least cosine of a slot in a block for a query at distance 1 from the center, as a function of what the query needs:
/// the least of (needed − ⟨c, x⟩) / |x − c|. The least of straight lines lies above each of its chords, so it is
/// interpolated.
#[derive(Debug)]
struct LeastCosine {
    /// The least of what queries need.
    start: f32,
    /// The reciprocal of a part of their range.
    per_part: f32,
    /// The function at the ends of the parts.
    nodes: [f32; PARTS + 1],
}

impl LeastCosine {
    fn new(block: BitBlock<'_>, needed: &[f32]) -> Self {
        let finite = needed.iter().copied().filter(|needed| needed.is_finite());
        let (start, end) = finite.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), needed| {
            (low.min(needed), high.max(needed))
        });
        let part = (end - start) / PARTS as f32;
        let per_part = if part > 0.0 { 1.0 / part } else { 0.0 };
        let lengths = block.lengths();
        let mut nodes = [f32::INFINITY; PARTS + 1];
        for (at, node) in nodes.iter_mut().enumerate() {
            let needed = start + part * at as f32;
            let cosines = lengths.iter().zip(block.offsets());
            let cosines = cosines.map(|(length, offset)| (needed - offset) / length.max(LENGTH_MIN));
            *node = cosines.fold(f32::INFINITY, f32::min);
        }
        LeastCosine { start, per_part, nodes }
    }

    fn of(&self, needed: f32) -> f32 {
        let place = (needed - self.start) * self.per_part;
        let part = (place as usize).min(PARTS - 1);
        let &[.., last] = &self.nodes;
        let at = |number: usize| self.nodes.get(number).copied().unwrap_or(last);
        let (low, high) = (at(part), at(part + 1));
        low + (place - part as f32) * (high - low)
    }
}
