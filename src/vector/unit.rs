//! The unit vector: every embedding in the database has length 1.

use crate::error::{Error, Result};
use crate::limits::DIM_MAX;

/// How far the length of a [`UnitVector`] may be from 1.
///
/// Ten times the rounding of an f32 normalisation, so that vectors normalised elsewhere are kept as they are.
const LENGTH_TOLERANCE: f64 = 1e-6;
/// The largest length of a [`UnitVector`]: the tolerance, and room for the rounding of the f64 sum that
/// checked it.
pub(super) const LENGTH_MAX: f64 = 1.0 + 2.0 * LENGTH_TOLERANCE;

/// An embedding of length 1, within one millionth. It has 1 to [`DIM_MAX`] finite dimensions.
///
/// The dot product of two of them is their cosine.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitVector(Box<[f32]>);

impl UnitVector {
    /// Scales `values` to length 1. Values that have that length already are kept bit for bit. So the
    /// function is idempotent, and an exported vector comes back unchanged.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] naming `field` when there are no values or more than [`DIM_MAX`], when one value is
    /// not finite, or when all are zero. Any other length is accepted, from the smallest subnormal to
    /// `f32::MAX`.
    pub fn new(field: &str, values: &[f32]) -> Result<Self> {
        if values.is_empty() || values.len() > DIM_MAX {
            let why = format!("must have 1 to {DIM_MAX} dimensions");
            return Err(Error::invalid(field, why, values.len()));
        }
        if let Some((at, value)) = values.iter().enumerate().find(|(_, value)| !value.is_finite()) {
            return Err(Error::invalid(field, format!("component {at} must be finite"), value));
        }
        let length = length(values);
        if length == 0.0 {
            return Err(Error::invalid(field, "must not be the zero vector", "0 in every dimension"));
        }
        if is_unit(length) {
            return Ok(UnitVector(values.into()));
        }
        let unit = UnitVector(values.iter().map(|&value| (f64::from(value) / length) as f32).collect());
        debug_assert!(is_unit(self::length(&unit.0)), "a normalised vector has length 1");
        Ok(unit)
    }

    /// Takes the stored values of a unit vector; `None` if they are not a unit vector now.
    pub fn from_stored(values: impl Into<Box<[f32]>>) -> Option<Self> {
        let values = values.into();
        // A NaN or an infinity among the values makes the length NaN or infinite, too.
        ((1..=DIM_MAX).contains(&values.len()) && is_unit(length(&values))).then_some(UnitVector(values))
    }

    /// The values.
    pub fn as_slice(&self) -> &[f32] {
        &self.0
    }

    /// Number of dimensions, 1 to [`DIM_MAX`].
    pub fn dim(&self) -> usize {
        self.0.len()
    }
}

/// The Euclidean length. The square of every finite f32 is a normal f64 or zero, so nothing overflows or
/// vanishes.
fn length(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value) * f64::from(value)).sum::<f64>().sqrt()
}

fn is_unit(length: f64) -> bool {
    (length - 1.0).abs() <= LENGTH_TOLERANCE
}
