//! Whoever writes summaries.

use super::pack::InputPack;
use crate::error::Result;

/// Writes the summary of a group of memories.
///
/// A summarizer is called outside of transactions. Its answer is repaired where that is certain, and read strictly. A
/// group whose answer is refused stays as it is.
///
/// ```
/// use oubliette::Result;
/// use oubliette::gc::{InputPack, Summarizer};
///
/// /// Says how many there were.
/// struct Counting;
///
/// impl Summarizer for Counting {
///     fn summarize(&self, pack: &InputPack) -> Result<String> {
///         Ok(format!(
///             r#"{{"topic": "messages", "time_range": {{"start": 0, "end": 0}}, "summary": ["{} messages"]}}"#,
///             pack.sources.len()
///         ))
///     }
/// }
/// ```
pub trait Summarizer: Send + Sync {
    /// The summary as text: JSON of the form `json_v1`.
    ///
    /// # Errors
    /// When there is no summary. The group then stays as it is.
    fn summarize(&self, pack: &InputPack) -> Result<String>;
}
