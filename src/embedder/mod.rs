//! Which vector does a text have?
//!
//! An [`Embedder`] gives the vector. The id of the embedder names the embedding space: vectors of two spaces are never
//! compared, and a database remembers the space of its vectors.
//!
//! The room never knows where a vector is kept, what a memory is, or what time it is.

mod function;
mod hash;
#[cfg(any(feature = "minilm", feature = "static-mini"))]
mod keys;
#[cfg(feature = "minilm")]
mod minilm;
#[cfg(feature = "openai")]
mod openai;
#[cfg(feature = "static-mini")]
mod static_mini;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "minilm", feature = "static-mini"))]
mod wordpiece;

pub use function::{FnEmbedder, embedder_fn};
pub use hash::HashEmbedder;
#[cfg(feature = "minilm")]
#[cfg_attr(docsrs, doc(cfg(feature = "minilm")))]
pub use minilm::{MiniLm, Precision};
#[cfg(feature = "openai")]
#[cfg_attr(docsrs, doc(cfg(feature = "openai")))]
pub use openai::{OpenAiEmbedder, OpenAiOptions};
#[cfg(feature = "static-mini")]
#[cfg_attr(docsrs, doc(cfg(feature = "static-mini")))]
pub use static_mini::StaticMini;

use std::sync::Arc;

use crate::error::Result;

/// Gives texts their vectors.
///
/// One embedder serves all threads of a database at once. It is called outside of transactions. If it fails, a write
/// is stored without a vector and waits for the pass `embed`, and a query falls back on its words.
///
/// ```
/// use oubliette::Result;
/// use oubliette::embed::Embedder;
///
/// /// How often each of two letters occurs: a space that nobody needs.
/// struct Letters;
///
/// impl Embedder for Letters {
///     fn id(&self) -> &str {
///         "letters-1"
///     }
///
///     fn dimensions(&self) -> usize {
///         2
///     }
///
///     fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
///         let count = |text: &str, letter| 1.0 + text.chars().filter(|c| *c == letter).count() as f32;
///         Ok(texts.iter().map(|text| vec![count(text, 'a'), count(text, 'b')]).collect())
///     }
/// }
///
/// assert_eq!(Letters.embed(&["abba"])?, [[3.0, 3.0]]);
/// # Ok::<(), oubliette::Error>(())
/// ```
pub trait Embedder: Send + Sync {
    /// The name of the embedding space, 1 to 256 bytes: the model, and whatever tells its versions apart, such as a
    /// hash of the weights. Two embedders of one name must give the same text the same vector.
    fn id(&self) -> &str;

    /// The number of dimensions of the vectors: 1 to 4,096.
    fn dimensions(&self) -> usize;

    /// One vector for each text, in the order of the texts: finite, not all zero, of any length in space.
    ///
    /// # Errors
    /// `Embedding` when the model cannot be asked. Then no text counts as embedded.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>>;

    /// The vector of a question. A model that was trained with a mark before questions adds that mark here.
    ///
    /// # Errors
    /// As [`Embedder::embed`].
    fn embed_query(&self, text: &str) -> Result<Vec<f32>> {
        Ok(self.embed(&[text])?.pop().unwrap_or_default())
    }
}

/// A pointer to an embedder is an embedder.
macro_rules! forwarded {
    ($($pointer:ident),+) => {$(
        impl<E: Embedder + ?Sized> Embedder for $pointer<E> {
            fn id(&self) -> &str {
                (**self).id()
            }

            fn dimensions(&self) -> usize {
                (**self).dimensions()
            }

            fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
                (**self).embed(texts)
            }

            fn embed_query(&self, text: &str) -> Result<Vec<f32>> {
                (**self).embed_query(text)
            }
        }
    )+};
}

forwarded!(Arc, Box);
