//! Hashed words: vectors without a model, for tests.

use super::Embedder;
use crate::error::Result;
use crate::limits::{DIM_MAX, within};

/// The shares of the whole text, of a word and of a run of characters in a vector. No sum of the last two is the
/// negative of the first, so no vector is zero.
const TEXT_SHARE: f64 = 0.125;
const WORD_SHARE: f64 = 1.0;
const GRAM_SHARE: f64 = 0.5;

/// The sort of a feature. A word and a run of characters with the same spelling have different hashes.
#[derive(Clone, Copy)]
enum Sort {
    Text = 1,
    Word = 2,
    Gram = 3,
}

/// An embedder without a model and without knowledge of any language. Texts are near each other when they share words
/// or parts of words. It is for tests, and for programs that have nothing better: it does not know that a car is a
/// vehicle.
///
/// The hashing trick (Weinberger et al., 2009): each word in lower case adds to one dimension with a sign. So does
/// each run of three characters of the word, with both ends of the word counted as characters. Vectors have unit
/// length and are the same on every machine.
///
/// ```
/// use oubliette::embed::{Embedder, HashEmbedder};
///
/// let embedder = HashEmbedder::new();
/// assert_eq!((embedder.id(), embedder.dimensions()), ("hash-1@256", 256));
///
/// let vectors = embedder.embed(&["The kettle boils", "the kettles boil", "a quarterly report"])?;
/// let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
/// assert!(cosine(&vectors[0], &vectors[1]) > cosine(&vectors[0], &vectors[2]));
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct HashEmbedder {
    id: String,
    dimensions: usize,
}

impl HashEmbedder {
    /// An embedder with 256 dimensions.
    ///
    /// ```
    /// use oubliette::embed::{Embedder, HashEmbedder};
    /// assert_eq!(HashEmbedder::new().dimensions(), 256);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::of(256)
    }

    /// An embedder with another number of dimensions.
    ///
    /// ```
    /// use oubliette::embed::{Embedder, HashEmbedder};
    /// assert_eq!(HashEmbedder::with_dimensions(64)?.embed(&["tea"])?[0].len(), 64);
    /// assert!(HashEmbedder::with_dimensions(0).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` when `dimensions` is not 1 to 4,096.
    pub fn with_dimensions(dimensions: usize) -> Result<Self> {
        within("dimensions", dimensions, 1..=DIM_MAX)?;
        Ok(Self::of(dimensions))
    }

    fn of(dimensions: usize) -> Self {
        Self { id: format!("hash-1@{dimensions}"), dimensions }
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut sums = vec![0.0_f64; self.dimensions];
        let mut add = |sort: Sort, spelled: &[char], share: f64| {
            let hash = hash(sort, spelled);
            // The remainder is below the length. The sign is a bit that hardly depends on the remainder.
            if let Some(sum) = sums.get_mut((hash % self.dimensions as u64) as usize) {
                *sum += if hash >> 63 == 0 { share } else { -share };
            }
        };
        let lower: Vec<char> = text.to_lowercase().chars().collect();
        add(Sort::Text, &lower, TEXT_SHARE);
        let mut padded = Vec::new();
        for word in lower.split(|c| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            add(Sort::Word, word, WORD_SHARE);
            padded.clear();
            padded.push(' ');
            padded.extend_from_slice(word);
            padded.push(' ');
            for gram in padded.windows(3) {
                add(Sort::Gram, gram, GRAM_SHARE);
            }
        }
        let length = sums.iter().map(|sum| sum * sum).sum::<f64>().sqrt();
        sums.iter().map(|sum| (sum / length) as f32).collect()
    }
}

impl Default for HashEmbedder {
    fn default() -> Self {
        Self::new()
    }
}

impl Embedder for HashEmbedder {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

/// FNV-1a over code points, then the finalizer of SplitMix64. Without the finalizer the low bits depend too little on
/// the last code point.
fn hash(sort: Sort, spelled: &[char]) -> u64 {
    let step = |hash: u64, value: u32| (hash ^ u64::from(value)).wrapping_mul(0x0100_0000_01B3);
    let start = step(0xCBF2_9CE4_8422_2325, sort as u32);
    let mut hash = spelled.iter().fold(start, |hash, c| step(hash, u32::from(*c)));
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}
