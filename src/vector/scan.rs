//! The scan of codes, and the proof that it loses nothing.
//!
//! Let *q* be the query and *v* a stored vector, both of length at most *N* = 1 + 2·10⁻⁶. Their codes give
//! *q* = *q̂* + *r* and *v* = *v̂* + *t*, where *q̂* = scale · code is known and ‖*t*‖ ≤ residual of *v*. So
//!
//! ```text
//! ⟨q,v⟩ = ⟨q̂,v̂⟩ + ⟨q̂,t⟩ + ⟨r,v⟩        and by Cauchy–Schwarz
//! |⟨q,v⟩ − ⟨q̂,v̂⟩| ≤ ‖q̂‖·residual(v) + residual(q)·N
//! ```
//!
//! The integer product of the codes is exact. Two roundings remain, with *u* = 2⁻²⁴:
//!
//! - The f32 score differs from ⟨q,v⟩ by at most γ·‖q‖·‖v‖ with γ = *nu*/(1 − *nu*) and *n* = ⌈dim/16⌉ + 5 the most
//!   roundings on the way of one product to the result: itself, the sums of its lane, four steps of the tree
//!   (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., section 3.1). Products that underflow add
//!   less than 4096 · 2⁻¹⁴⁹.
//! - The estimate is rounded three times (integer to float, product of the scales, product of both), the half width
//!   and its sum with the estimate three times. Residuals are at most 0.253, so ‖q̂‖·‖v̂‖ < 1.58 and the half width
//!   is below 0.58: all together less than 8·*u*, counted as 16·*u*.
//!
//! So every score lies within `estimate ± (reach · residual(v) + slack)`, where `reach` ≥ ‖*q̂*‖ and `slack` is the
//! sum of what does not depend on *v*. The k-th largest lower bound is at most the k-th best score, hence a slot
//! whose upper bound is below it is in no top k, not even as a tie.

use super::code::{CodeParams, encode, round_up, unit_scale};
use super::kernel::{dot_i8, dot_i8_gather, dot_i8_many, prefetch};
use super::unit::{LENGTH_MAX, UnitVector};
use crate::limits::DIM_MAX;

/// Half the distance of 1.0 to the next f32: the relative error of one rounding.
const UNIT_ROUNDOFF: f64 = 1.0 / (1 << 24) as f64;
/// The error that [`QueryCode::likely_upper`] allows for, in steps of a code: six deviations of 1/√12.
const LIKELY_STEPS: f32 = 1.732_051;
/// The number of slots scanned at a time: those of one word of the bitmap.
const BLOCK: usize = u64::BITS as usize;
/// The number of single slots whose codes are read at a time. A block with a likely slot mostly has one or two.
const READ_AT_ONCE: usize = 8;

/// A query as the scan reads it.
#[derive(Debug, Clone)]
pub struct QueryCode {
    code: Box<[i8]>,
    scale: f32,
    unit_scale: f32,
    /// The length of `scale · code`, rounded up.
    reach: f32,
    /// The half width of a bound beyond `reach · residual`, rounded up.
    slack: f32,
    /// The half width of a likely interval beyond what the step of the slot's code adds.
    likely_slack: f32,
}

impl QueryCode {
    /// The code of `query`, with the values that its bounds need.
    pub fn new(query: &UnitVector) -> Self {
        let mut code = vec![0; query.dim()].into_boxed_slice();
        let CodeParams { scale, residual } = encode(query, &mut code);
        let roundings = (query.dim().div_ceil(16) + 5) as f64 * UNIT_ROUNDOFF;
        let score_error = roundings / (1.0 - roundings) * LENGTH_MAX * LENGTH_MAX + 16.0 * UNIT_ROUNDOFF;
        let slack = f64::from(residual) * LENGTH_MAX + score_error;
        let likely_slack = LIKELY_STEPS * scale + score_error as f32;
        let reach = f64::from(scale) * f64::from(dot_i8(&code, &code)).sqrt();
        let (reach, slack) = (round_up(reach * (1.0 + 1e-12)), round_up(slack));
        QueryCode { unit_scale: unit_scale(&code), code, scale, reach, slack, likely_slack }
    }

    /// The code itself.
    pub fn code(&self) -> &[i8] {
        &self.code
    }

    /// Reciprocal of the length of the code.
    pub fn unit_scale(&self) -> f32 {
        self.unit_scale
    }

    /// Dimensions of the query.
    pub fn dim(&self) -> usize {
        self.code.len()
    }

    /// A score that the f32 vectors of a slot exceed only by a chance of some in a hundred million. `cosine` is that of the
    /// slot's code and the query's code, `scale` is the step of the slot's code.
    ///
    /// A cosine does not contain the rounding error along the vectors. Each dimension of the error across them is spread
    /// evenly over one step of the code, with a variance of step²/12. So its product with a vector of length 1 has a
    /// deviation of step/√12, whether that vector has many dimensions or few that are not 0, and a sum of such errors
    /// exceeds *t* deviations with a chance of at most exp(−*t*²/2): an even spread is strictly sub-Gaussian (Arbel,
    /// Marchal, Nguyen, *On strict sub-Gaussianity, optimal proxy variance and symmetry for bounded random variables*,
    /// 2020). For a search that may miss a neighbour anyway six deviations are enough, and it ranks a fraction of what the
    /// certain bound demands.
    pub fn likely_upper(&self, cosine: f32, scale: f32) -> f32 {
        self.likely(cosine, scale).upper()
    }

    fn likely(&self, cosine: f32, scale: f32) -> Bound {
        Bound { estimate: cosine, half_width: LIKELY_STEPS * scale * self.reach + self.likely_slack }
    }

    /// The likely interval of a row, in the place of the certain one.
    pub(super) fn likely_of(&self, row: &Row<'_>, dot: i32) -> Bound {
        self.likely(dot as f32 * unit_scale(row.code) * self.unit_scale, row.scale)
    }

    /// Calls `visit` with every row and its dot product. The rows of several chunks are fetched from memory at once.
    pub(super) fn read<'c>(
        &self,
        rows: impl IntoIterator<Item = Row<'c>>,
        mut visit: impl FnMut(&Row<'c>, i32),
    ) {
        let mut rows = rows.into_iter();
        loop {
            let (mut read, mut codes, mut dots) = (EMPTY_ROWS, [&[][..]; READ_AT_ONCE], [0; READ_AT_ONCE]);
            let mut count = 0;
            for ((place, code), row) in read.iter_mut().zip(&mut codes).zip(rows.by_ref().take(READ_AT_ONCE))
            {
                (*place, *code) = (row, row.code);
                count += 1;
            }
            let ((codes, _), (dots, _)) = (codes.split_at(count), dots.split_at_mut(count));
            dot_i8_gather(&self.code, codes, dots);
            read.iter().zip(dots.iter()).for_each(|(row, dot)| visit(row, *dot));
            if count < READ_AT_ONCE {
                break;
            }
        }
    }

    #[inline]
    pub(super) fn bound(&self, dot: i32, scale: f32, residual: f32) -> Bound {
        let &QueryCode { scale: query_scale, reach, slack, .. } = self;
        Bound { estimate: dot as f32 * (query_scale * scale), half_width: reach * residual + slack }
    }

    /// Calls `visit` with every block of `codes` that has a visible slot.
    pub(super) fn scan(&self, codes: Codes<'_>, visible: Option<&[u64]>, mut visit: impl FnMut(Block<'_>)) {
        assert_eq!(codes.dim, self.dim(), "query and codes are of one embedding space");
        let mut dots = [0; BLOCK];
        let blocks = codes.codes.chunks(BLOCK * codes.dim);
        let params = codes.scales.chunks(BLOCK).zip(codes.residuals.chunks(BLOCK));
        for (at, (block, (scales, residuals))) in blocks.zip(params).enumerate() {
            let visible = visible.map_or(u64::MAX, |words| words.get(at).copied().unwrap_or(0));
            if visible == 0 {
                continue;
            }
            let (dots, _) = dots.split_at_mut(scales.len());
            dot_i8_many(&self.code, block, dots);
            visit(Block { query: self, first_row: (at * BLOCK) as u32, visible, dots, scales, residuals });
        }
    }
}

/// Up to 64 rows of a chunk with the dot products of their codes.
pub(super) struct Block<'a> {
    query: &'a QueryCode,
    first_row: u32,
    visible: u64,
    dots: &'a [i32],
    scales: &'a [f32],
    residuals: &'a [f32],
}

impl Block<'_> {
    /// The intervals of the scores of all rows.
    #[inline]
    fn bounds(&self) -> impl Iterator<Item = Bound> {
        let rows = self.dots.iter().zip(self.scales).zip(self.residuals);
        rows.map(|((dot, scale), residual)| self.query.bound(*dot, *scale, *residual))
    }

    /// Whether the score of any row, visible or not, may be as high as `floor`. The code has no branch, because this
    /// is the hot loop.
    #[inline]
    pub(super) fn reaches(&self, floor: f32) -> bool {
        self.bounds().fold(false, |any, bound| any | (bound.upper() >= floor))
    }

    /// The visible rows, counted from the start of the chunk, with the intervals of their scores.
    pub(super) fn visible_rows(&self) -> impl Iterator<Item = (u32, Bound)> {
        let rows = (self.first_row..).zip(self.bounds()).enumerate();
        rows.filter(|(bit, _)| self.visible >> bit & 1 == 1).map(|(_, row)| row)
    }
}

/// A chunk of contiguous slots: their codes, and the scale and the residual of each.
#[derive(Debug, Clone, Copy)]
pub struct Codes<'a> {
    dim: usize,
    codes: &'a [i8],
    scales: &'a [f32],
    residuals: &'a [f32],
}

impl<'a> Codes<'a> {
    /// A view of as many slots as there are scales.
    ///
    /// # Panics
    ///
    /// When `dim` is not in 1 to [`DIM_MAX`], or the three slices do not have the same number of slots.
    pub fn new(dim: usize, codes: &'a [i8], scales: &'a [f32], residuals: &'a [f32]) -> Self {
        assert!((1..=DIM_MAX).contains(&dim), "a code has 1 to {DIM_MAX} dimensions");
        assert_eq!(codes.len(), dim * scales.len(), "each slot has a code of its dimensions");
        assert_eq!(residuals.len(), scales.len(), "each slot has a residual");
        Codes { dim, codes, scales, residuals }
    }

    /// The number of slots.
    pub fn slots(self) -> usize {
        self.scales.len()
    }

    /// Asks the processor to load what is read of a slot into its cache soon.
    pub fn prefetch(self, slot: usize) {
        prefetch(self.codes.get(slot * self.dim..(slot + 1) * self.dim).unwrap_or_default());
        [self.scales, self.residuals].into_iter().filter_map(|list| list.get(slot..=slot)).for_each(prefetch);
    }

    /// The first 64 slots whose bit is set in `wanted`. The first slot of the chunk has the number `first`.
    ///
    /// # Panics
    ///
    /// When a bit stands for a slot that the chunk does not have.
    #[expect(clippy::expect_used, reason = "the caller takes bits from a word of the same chunk")]
    pub fn rows(self, first: u32, mut wanted: u64) -> impl Iterator<Item = Row<'a>> {
        std::iter::from_fn(move || {
            let at = (wanted != 0).then(|| wanted.trailing_zeros())?;
            wanted &= wanted - 1;
            let row = at as usize;
            let code = self.codes.get(row * self.dim..(row + 1) * self.dim).expect("a slot of the chunk");
            let of = |list: &[f32]| list.get(row).copied().unwrap_or_default();
            Some(Row { slot: first + at, code, scale: of(self.scales), residual: of(self.residuals) })
        })
    }
}

/// The code of one slot.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    pub(super) slot: u32,
    code: &'a [i8],
    pub(super) scale: f32,
    pub(super) residual: f32,
}

/// Places for the rows that are read at once.
const EMPTY_ROWS: [Row<'_>; READ_AT_ONCE] =
    [Row { slot: 0, code: &[], scale: 0.0, residual: 0.0 }; READ_AT_ONCE];

/// The interval of a score: within `half_width` of `estimate`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    pub(super) estimate: f32,
    half_width: f32,
}

impl Bound {
    pub(super) fn lower(self) -> f32 {
        self.estimate - self.half_width
    }

    pub(super) fn upper(self) -> f32 {
        self.estimate + self.half_width
    }
}
