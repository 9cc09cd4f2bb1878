//! The instants of a reader of the past.

use crate::model::{PurgeHorizon, Time};

/// The instants at which a reader of the past asks which rows were visible.
#[derive(Clone, Copy, Debug)]
pub(super) struct Past {
    /// World time.
    pub(super) valid: Time,
    /// Transaction time.
    pub(super) known: Time,
    /// The horizon behind which the reader reads; none if nothing is missing.
    pub(super) horizon: Option<PurgeHorizon>,
}
