//! The static embedder: which vector does a text have, if every token has a vector of its own and the text is their
//! sum?
//!
//! All sums are sums of integers, so their order does not matter. The arithmetic of `f64` after them has one order. So
//! the same text has the same bits on every machine.

mod table;

use super::Embedder;
use super::wordpiece::{Laid, WordPiece};
use crate::error::{Error, Result};
use crate::limits::CONTENT_BYTES_MAX;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use table::{TABLE_BYTES_MAX, Table};

/// The table that this crate ships. `static_mini/NOTICE` says from what it was made, `static_mini/recipe.py`
/// how.
static SHIPPED: &[u8] = include_bytes!("static_mini/table.bin");

/// Its vocabulary, which the compiler has read: a process that embeds one text would spend a sixth of its time on that.
#[allow(long_running_const_eval, reason = "200 kB are read in about two seconds")]
static VOCABULARY: Laid<{ table::rows_of(SHIPPED) }> =
    Laid::read(SHIPPED, table::HEADER_BYTES, table::HEADER_BYTES + table::vocabulary_bytes_of(SHIPPED));

/// The number of tokens whose products of a byte and a multiplier of at most 63 fit a sum of 32 bits.
const BLOCK_TOKENS: usize = 1 << 18;
const _: () = assert!(BLOCK_TOKENS * 128 * 63 <= i32::MAX as usize);

/// The embedder to begin with. Every token has a vector, and a text has the sum of the vectors of its tokens. It has
/// 256 dimensions, adds 8 MB to the program, needs no download, and takes some microseconds for a text.
///
/// The table is distilled from all-MiniLM-L6-v2 and made for English. Word order has no effect: *the dog bit the man*
/// and *the man bit the dog* have one vector. `docs/embedders.md` compares its quality with that of the full model,
/// and says when to use the full model.
///
/// Every token of a text counts, however long the text is. A text without any token (empty, or only white space) has
/// the vector of the unknown token. So has a text of unknown tokens only; most emoji are unknown.
///
/// ```
/// use oubliette::embed::{Embedder, StaticMini};
///
/// let embedder = StaticMini::new();
/// let texts = ["Ana adopted a puppy", "Ben has a new dog", "The build failed on ARM"];
/// let vectors = embedder.embed(&texts)?;
/// let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
/// assert!(cosine(&vectors[0], &vectors[1]) > cosine(&vectors[0], &vectors[2]) + 0.2);
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct StaticMini {
    model: Arc<Model>,
}

#[derive(Debug)]
struct Model {
    id: String,
    table: Table,
    words: Words,
}

/// The vocabulary of a table.
#[derive(Debug)]
struct Words {
    pieces: WordPiece,
    /// The row of the unknown token.
    unknown: u32,
}

impl StaticMini {
    /// The embedder with the table of this crate. A process reads the table once, and all embedders made by
    /// this function share it.
    ///
    /// ```
    /// use oubliette::embed::{Embedder, StaticMini};
    /// let embedder = StaticMini::new();
    /// assert_eq!(embedder.embed_query("tea").unwrap().len(), embedder.dimensions());
    /// ```
    #[expect(clippy::expect_used, reason = "a test reads the shipped table, digest included")]
    pub fn new() -> Self {
        static MODEL: OnceLock<Arc<Model>> = OnceLock::new();
        let model = MODEL.get_or_init(|| {
            let table = Table::trusted(SHIPPED).expect("the shipped table is whole");
            let pieces = WordPiece::of_laid(&VOCABULARY, SHIPPED).expect("the shipped vocabulary has [UNK]");
            Arc::new(Model::new(table, pieces).expect("the shipped vocabulary is that of the table"))
        });
        Self { model: Arc::clone(model) }
    }

    /// An embedder with a table of your own. `docs/embedders.md` describes the format, and the recipe makes
    /// such a table.
    ///
    /// ```
    /// use oubliette::ErrorKind;
    /// use oubliette::embed::StaticMini;
    /// assert_eq!(StaticMini::from_file("no such file").unwrap_err().kind(), ErrorKind::Io);
    /// assert_eq!(StaticMini::from_file("Cargo.toml").unwrap_err().kind(), ErrorKind::Invalid);
    /// ```
    ///
    /// # Errors
    /// `Io` when the file cannot be read; `Invalid` as [`StaticMini::from_bytes`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |source| Error::io("read", path, source);
        let bytes = std::fs::metadata(path).map_err(failed)?.len();
        if bytes > TABLE_BYTES_MAX as u64 {
            return Err(Error::invalid("table", format!("must have at most {TABLE_BYTES_MAX} bytes"), bytes));
        }
        Self::from_bytes(std::fs::read(path).map_err(failed)?)
    }

    /// Like [`StaticMini::from_file`], but from a table in memory.
    ///
    /// ```
    /// use oubliette::embed::{Embedder, StaticMini};
    /// let embedder = StaticMini::from_bytes(std::fs::read("src/embedder/static_mini/table.bin")?)?;
    /// assert_eq!(embedder.id(), StaticMini::new().id());
    /// assert!(StaticMini::from_bytes(b"no table".to_vec()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` when the bytes are not a table, are cut off or damaged (the digest is checked), or have another
    /// version; when they exceed 256 MiB, 2^20 rows or 4,096 dimensions; or when a token stands twice in the
    /// vocabulary, or `[UNK]` is missing or has no vector.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self> {
        let table = Table::checked(bytes.into())?;
        let pieces = WordPiece::from_vocabulary(table.vocabulary())?;
        Ok(Self { model: Arc::new(Model::new(table, pieces)?) })
    }

    /// Only the tokens of a text, for the bench that compares the two steps.
    #[cfg(feature = "faults")]
    #[doc(hidden)]
    pub fn tokenize(&self, text: &str, tokens: &mut Vec<u32>) {
        self.model.words.pieces.tokenize(text, usize::MAX, tokens);
    }
}

impl Default for StaticMini {
    fn default() -> Self {
        Self::new()
    }
}

impl Embedder for StaticMini {
    fn id(&self) -> &str {
        &self.model.id
    }

    fn dimensions(&self) -> usize {
        self.model.table.dims()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let mut scratch = Scratch::new(self.dimensions());
        Ok(texts.iter().map(|text| self.model.vector(text, &mut scratch)).collect())
    }
}

impl Model {
    fn new(table: Table, pieces: WordPiece) -> Result<Self> {
        if pieces.len() != table.rows() {
            let why = format!("must have a token for each of its {} rows", table.rows());
            return Err(Error::invalid("table", why, pieces.len()));
        }
        let unknown = pieces.id("[UNK]").filter(|row| !table.is_zero(*row));
        let Some(unknown) = unknown else {
            return Err(Error::invalid("table", "the vector of [UNK] must not be zero", "zero"));
        };
        Ok(Self { id: format!("static-mini-1@{}", table.digest()), table, words: Words { pieces, unknown } })
    }

    /// The unit vector of a text.
    fn vector(&self, text: &str, scratch: &mut Scratch) -> Vec<f32> {
        let Words { pieces, unknown } = &self.words;
        scratch.tokens.clear();
        pieces.tokenize(text, usize::MAX, &mut scratch.tokens);
        self.sum(scratch);
        if scratch.total.iter().all(|sum| *sum == 0.0) {
            scratch.tokens.clear();
            scratch.tokens.push(*unknown);
            self.sum(scratch);
        }
        if scratch.tokens.capacity() > CONTENT_BYTES_MAX {
            scratch.tokens = Vec::new();
        }
        unit(&scratch.total)
    }

    /// Adds up the rows of the tokens. The result is exact, because the sums are integers below 2^53.
    fn sum(&self, scratch: &mut Scratch) {
        let Scratch { tokens, block, total } = scratch;
        total.fill(0.0);
        for tokens in tokens.chunks(BLOCK_TOKENS) {
            block.fill(0);
            self.table.add(tokens, block);
            for (total, sum) in total.iter_mut().zip(block.iter()) {
                *total += f64::from(*sum);
            }
        }
    }
}

/// Buffers that a call uses again for each text.
struct Scratch {
    tokens: Vec<u32>,
    block: Vec<i32>,
    total: Vec<f64>,
}

impl Scratch {
    fn new(dims: usize) -> Self {
        Self { tokens: Vec::new(), block: vec![0; dims], total: vec![0.0; dims] }
    }
}

/// `sums` at unit length. Squares are added in eight lanes, and then the lanes in order. So the order of operations is
/// the same on every machine, and a processor can still add eight at once.
fn unit(sums: &[f64]) -> Vec<f32> {
    let mut lanes = [0.0_f64; 8];
    for part in sums.chunks(8) {
        for (lane, sum) in lanes.iter_mut().zip(part) {
            *lane += sum * sum;
        }
    }
    let length = lanes.iter().fold(0.0, |length, lane| length + lane).sqrt();
    sums.iter().map(|sum| (sum / length) as f32).collect()
}

#[cfg(test)]
mod tests;
