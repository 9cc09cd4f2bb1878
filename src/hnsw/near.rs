//! Codes by slot, and slots ordered by nearness.

use crate::limits::GRAPH_M0;
use crate::vector::dot_i8_gather;

/// The codes of the slots of a graph.
pub trait Points: Sync {
    /// The code of a slot.
    ///
    /// # Panics
    /// For a slot without a code. Links lead only to slots that have one.
    fn code(&self, slot: u32) -> &[i8];

    /// The reciprocal of the length of a slot's code. With it a score is the cosine of two codes. The scale of a code
    /// would not do: rounding changes the length, and of near-equal vectors the longest code would then be the nearest
    /// to all.
    fn scale(&self, slot: u32) -> f32;

    /// The code of a slot as a query.
    fn probe(&self, slot: u32) -> Probe<'_> {
        Probe { code: self.code(slot), scale: self.scale(slot) }
    }
}

/// The point that a walk looks for.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'q> {
    /// The code of the point.
    pub code: &'q [i8],
    /// The reciprocal of the length of the code.
    pub scale: f32,
}

/// A slot with the cosine of its code and that of the query. The greater one is nearer; of equal ones the
/// slot with the lower number. It is one integer, so that a comparison is one step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Near(u64);

impl Near {
    /// The entry of a slot and its score, which must be a number.
    pub fn new(score: f32, slot: u32) -> Self {
        let bits = score.to_bits();
        // The bits of floats give their order once negative ones are inverted and the others raised above
        // them.
        let key = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
        Near(u64::from(key) << 32 | u64::from(!slot))
    }

    /// The slot.
    pub fn slot(self) -> u32 {
        !(self.0 as u32)
    }

    /// The score: a cosine, −1 to 1 except for rounding.
    pub fn score(self) -> f32 {
        let key = (self.0 >> 32) as u32;
        f32::from_bits(if key >> 31 == 1 { key & !(1 << 31) } else { !key })
    }
}

impl std::fmt::Debug for Near {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.slot(), self.score())
    }
}

/// Scores `slots` and passes each to `visit`, in order.
#[inline]
pub(super) fn score_each<P: Points + ?Sized>(
    points: &P,
    probe: Probe<'_>,
    slots: &[u32],
    mut visit: impl FnMut(Near),
) {
    let mut rows: [&[i8]; GRAPH_M0] = [&[]; GRAPH_M0];
    let mut dots = [0_i32; GRAPH_M0];
    for slots in slots.chunks(GRAPH_M0) {
        // A part has at most `GRAPH_M0` slots, so both buffers are long enough.
        let (rows, _) = rows.split_at_mut(slots.len());
        let (dots, _) = dots.split_at_mut(slots.len());
        for (row, &slot) in rows.iter_mut().zip(slots) {
            *row = points.code(slot);
        }
        dot_i8_gather(probe.code, rows, dots);
        for (&dot, &slot) in dots.iter().zip(slots) {
            visit(Near::new(dot as f32 * (probe.scale * points.scale(slot)), slot));
        }
    }
}
