//! Many queries against one-bit codes: which slots may be near to which query?
//!
//! A block of codes is read once for all queries of a batch, and of a query only the signs are compared. Let v = R(q − c) be a query in the frame of the codes ([`BitFrame`]), D its
//! dimensions, t its signs and b = |v|² / Σ|v|. Then b·t has the inner product |v|² with v, so that the error
//! d = v − b·t has no part along v, and
//!
//! ```text
//! ⟨q − c, x − c⟩ ≈ factor · b · ⟨s, t⟩ = factor · b · (D − 2 · differing signs)
//! ```
//!
//! The error d adds a deviation of factor · |d|, with |d|² = D·b² − |v|², which is about 0.57·|v|² for any query after
//! the rotation. So the deviation is about one and a half times that of four bits, for a quarter of the work.
//!
//! Two vectors at an angle whose cosine is ρ agree in more signs than a linear law says where ρ > 0 (the arc sine), so
//! the estimate is too high there, and a neighbour is not missed for it. Where ρ < 0 the estimate is too low. A slot is
//! therefore never said to have an inner product below 0.

use super::kernel::{BIT_SLOTS, QuerySigns, SignNumbers, SignSlots, sign_marks};
use super::one_bit::{BitBlock, BitFrame, sign_bytes, squared_deviations};

/// The signs of many queries in one frame.
#[derive(Clone, Debug)]
pub struct SignBatch {
    /// For each query, its signs.
    signs: Vec<QuerySigns>,
    queries: Vec<SignNumbers>,
    /// For each query, what every estimate has in common.
    bases: Vec<f32>,
    /// The square of the deviations that are allowed for.
    squared_deviations: f32,
    /// The largest |d|² / |v|² of a query.
    lost: f32,
}

impl SignBatch {
    /// Queries each of which misses a slot with a chance of at most 1 − `recall`, 0 to below 1. Until a floor is given,
    /// every slot is likely.
    ///
    /// # Panics
    ///
    /// When a query does not have the dimensions of the frame.
    pub fn new<'q>(frame: &BitFrame, queries: impl IntoIterator<Item = &'q [f32]>, recall: f32) -> Self {
        let mut batch = SignBatch {
            signs: Vec::new(),
            queries: Vec::new(),
            bases: Vec::new(),
            squared_deviations: squared_deviations(recall),
            lost: 0.0,
        };
        let mut values = Vec::new();
        for query in queries {
            assert_eq!(query.len(), frame.dim(), "query and codes are of one embedding space");
            frame.place(query.iter().copied(), &mut values);
            batch.bases.push(frame.base_of(query));
            batch.push(&values);
        }
        batch
    }

    /// Adds a query in the frame of the codes.
    fn push(&mut self, values: &[f32]) {
        self.signs.extend(sign_bytes(values).map(|signs| [signs; 4]));
        let square: f32 = values.iter().map(|value| value * value).sum();
        let sum: f32 = values.iter().map(|value| value.abs()).sum();
        // A query in the center has an inner product of 0 with every slot.
        let value = if sum > 0.0 { square / sum } else { 0.0 };
        if square > 0.0 {
            self.lost = self.lost.max(values.len() as f32 * value * value / square - 1.0);
        }
        self.queries.push(SignNumbers { value, reach: square.sqrt(), needed: f32::NEG_INFINITY });
    }

    /// From now on, slots that may score less than `floor` are not likely for this query.
    pub fn set_floor(&mut self, query: usize, floor: f32) {
        if let (Some(query), Some(base)) = (self.queries.get_mut(query), self.bases.get(query)) {
            query.needed = floor - base;
        }
    }

    /// Writes for each query the slots of `block` that may score its floor, a bit for each.
    ///
    /// # Panics
    ///
    /// When the block is of another frame, or there is not one result for each query.
    pub fn likely(&self, BitBlock { signs, numbers }: BitBlock<'_>, out: &mut [u64]) {
        let mut margins = [0.0; BIT_SLOTS];
        for ((margin, factor), error) in margins.iter_mut().zip(&numbers.factors).zip(&numbers.errors) {
            *margin = ((error * error + factor * factor * self.lost) * self.squared_deviations).sqrt();
        }
        sign_marks(&self.signs, &self.queries, &SignSlots::new(signs, numbers, margins), out);
    }
}
