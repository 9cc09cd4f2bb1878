//! How exactly the model computes.

/// How weights are stored and products are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// As in the file: 90 MB.
    #[default]
    F32,
    /// One signed byte for each weight and a scale for each row, 23 MB. Activations are rounded in the same way, token
    /// by token. This is faster and a little inexact, and counts as another embedding space.
    Int8,
}
