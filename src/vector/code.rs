//! The code of a vector: one signed byte for each dimension, and a bound on its error.

use super::kernel::dot_i8;
use super::unit::{LENGTH_MAX, UnitVector};
use crate::limits::DIM_MAX;

/// Largest magnitude of one dimension of a code. −128 is not used: the range is symmetric.
const CODE_MAX: f32 = 127.0;
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
    let scale = largest / CODE_MAX;
    let mut square = 0.0_f64;
    for (&value, code) in vector.as_slice().iter().zip(out) {
        *code = (value / scale).round().clamp(-CODE_MAX, CODE_MAX) as i8;
        let lost = f64::from(value) - f64::from(scale) * f64::from(*code);
        square += lost * lost;
    }
    // Each of up to 4,096 terms and the sum are rounded by 2⁻⁵³ at each step: below 1e-12 together.
    let params = CodeParams { scale, residual: round_up(square.sqrt() * (1.0 + 1e-12)) };
    debug_assert!(CodeParams::from_stored(params.scale, params.residual).is_some());
    params
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
