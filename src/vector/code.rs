//! The code of a vector: one signed byte for each dimension, and a bound on its error.

use super::kernel::dot_i8;
use super::unit::{LENGTH_MAX, UnitVector};
use crate::limits::DIM_MAX;

/// Largest magnitude of one dimension of a code. −128 is not used: the range is symmetric.
const CODE_MAX: i8 = 127;
/// Sums of squares that are made side by side.
const LANES: usize = 8;
/// The largest scale: the largest component of a unit vector, divided into [`CODE_MAX`] steps.
const SCALE_MAX: f32 = 0.007_875;
/// The largest residual: half a step of the largest scale in each of [`DIM_MAX`] dimensions, rounding included.
pub(super) const RESIDUAL_MAX: f32 = 0.253;

const _: () = assert!(SCALE_MAX as f64 > LENGTH_MAX / CODE_MAX as f64);
// √4096 · SCALE_MAX / 2 = 0.252
const _: () = assert!(DIM_MAX == 64 * 64 && RESIDUAL_MAX > 64.0 * SCALE_MAX / 2.0);

/// The parameters that turn a code back into its vector: `v = scale · code + r` with `‖r‖ ≤ residual`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CodeParams {
    /// The value of one step of the code; above 0, at most 1/127.
    pub scale: f32,
    /// An upper bound on the Euclidean length of the rounding error, rounded up; 0 to 0.253.
    pub residual: f32,
}

impl CodeParams {
    /// Takes stored parameters; `None` if [`encode`] can't have made them.
    pub fn from_stored(scale: f32, residual: f32) -> Option<Self> {
        let plausible = scale > 0.0 && scale <= SCALE_MAX && (0.0..=RESIDUAL_MAX).contains(&residual);
        plausible.then_some(CodeParams { scale, residual })
    }
}

/// Writes the code of `vector` to `out`. The same vector gives the same code on every machine.
///
/// # Panics
///
/// When `out` does not have one byte for each dimension.
pub fn encode(vector: &UnitVector, out: &mut [i8]) -> CodeParams {
    assert_eq!(out.len(), vector.dim(), "a code has one byte for each dimension");
    let largest = vector.as_slice().iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    let scale = largest / f32::from(CODE_MAX);
    let (values, values_left) = vector.as_slice().as_chunks::<LANES>();
    let (codes, codes_left) = out.as_chunks_mut::<LANES>();
    let most = i32::from(CODE_MAX);
    let mut squares = [0.0_f64; LANES];
    let mut rounded = |values: &[f32], codes: &mut [i8]| {
        for ((square, &value), code) in squares.iter_mut().zip(values).zip(codes) {
            *code = nearest(value / scale).clamp(-most, most) as i8;
            let lost = f64::from(value) - f64::from(scale) * f64::from(*code);
            *square += lost * lost;
        }
    };
    values.iter().zip(codes).for_each(|(values, codes)| rounded(values, codes));
    rounded(values_left, codes_left);
    let square: f64 = squares.iter().sum();
    // Each of up to 4,096 terms and the sum are rounded by 2⁻⁵³ at each step: below 1e-12 together.
    let params = CodeParams { scale, residual: round_up(square.sqrt() * (1.0 + 1e-12)) };
    debug_assert!(CodeParams::from_stored(params.scale, params.residual).is_some());
    params
}

/// The nearest whole number, a half away from zero: `f32::round` without a call for each value, for values that an `i32` holds.
fn nearest(value: f32) -> i32 {
    let whole = value as i32;
    let rest = value - whole as f32;
    whole + i32::from(rest >= 0.5) - i32::from(rest <= -0.5)
}

/// A vector with its code.
pub struct Coded<'v> {
    /// The vector.
    pub vector: &'v UnitVector,
    /// Its code.
    pub code: Vec<i8>,
    /// The parameters of the code.
    pub params: CodeParams,
}

impl<'v> Coded<'v> {
    /// Makes the code of a vector.
    pub fn of(vector: &'v UnitVector) -> Self {
        let mut code = vec![0; vector.dim()];
        let params = encode(vector, &mut code);
        Coded { vector, code, params }
    }
}

/// The reciprocal of the length of a code, or 0 for a code of zeros. It turns the dot product of two codes into their
/// cosine. It is the same on every machine.
pub fn unit_scale(code: &[i8]) -> f32 {
    match dot_i8(code, code) {
        0 => 0.0,
        square => (1.0 / f64::from(square).sqrt()) as f32,
    }
}

/// The smallest f32 that is not below `value`.
pub(super) fn round_up(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}
