//! A closure as an embedder.

use super::Embedder;
use crate::error::{Error, Result};
use crate::limits::{DIM_MAX, within};

/// Longest name of an embedding space, in bytes.
const ID_BYTES_MAX: usize = 256;

/// An embedder whose vectors come from a closure. [`embedder_fn`] makes one.
pub struct FnEmbedder<F> {
    id: String,
    dimensions: usize,
    function: F,
}

/// Turns a closure that maps texts to vectors into an embedder. The closure must do what [`Embedder::embed`]
/// says.
///
/// # Errors
/// `Invalid` when `id` does not have 1 to 256 bytes, or `dimensions` is not 1 to 4,096.
///
/// ```
/// use oubliette::embed::{Embedder, embedder_fn};
///
/// let lengths = embedder_fn("lengths-1", 2, |texts: &[&str]| {
///     Ok(texts.iter().map(|text| vec![1.0, text.len() as f32]).collect())
/// })?;
/// assert_eq!(lengths.embed(&["four"])?, [[1.0, 4.0]]);
/// assert!(embedder_fn("", 2, |_: &[&str]| Ok(Vec::new())).is_err());
/// # Ok::<(), oubliette::Error>(())
/// ```
pub fn embedder_fn<F>(id: impl Into<String>, dimensions: usize, function: F) -> Result<FnEmbedder<F>>
where
    F: Fn(&[&str]) -> Result<Vec<Vec<f32>>> + Send + Sync,
{
    let id = id.into();
    if !(1..=ID_BYTES_MAX).contains(&id.len()) {
        return Err(Error::invalid("embedder", format!("must have 1 to {ID_BYTES_MAX} bytes"), id));
    }
    within("dimensions", dimensions, 1..=DIM_MAX)?;
    Ok(FnEmbedder { id, dimensions, function })
}

impl<F> Embedder for FnEmbedder<F>
where
    F: Fn(&[&str]) -> Result<Vec<Vec<f32>>> + Send + Sync,
{
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        (self.function)(texts)
    }
}

impl<F> std::fmt::Debug for FnEmbedder<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FnEmbedder").field("id", &self.id).field("dimensions", &self.dimensions).finish()
    }
}
