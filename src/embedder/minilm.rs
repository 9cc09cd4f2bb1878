//! all-MiniLM-L6-v2, read from a folder: BERT, the mean over the tokens, unit length.
//!
//! Each text goes through the model alone, and the kernels of `vector` compute every product of matrices. So
//! a vector has the same bits whatever other texts are embedded with it, and however many threads share the
//! work.

mod folder;
mod layers;
mod precision;
#[cfg(test)]
mod tests;
mod weights;

pub use precision::Precision;

use super::Embedder;
use super::wordpiece::WordPiece;
use crate::error::{Error, Result};
use crate::limits::{THREADS_MAX, within};
use folder::Folder;
use layers::Bert;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of tokens of a text that the model sees, `[CLS]` and `[SEP]` included: `max_seq_length` of this
/// model in sentence-transformers. Later tokens have no part in the vector.
const TOKENS_MAX: usize = 256;

/// With fewer texts than this for each thread, a thread is not worth starting.
const TEXTS_A_THREAD: usize = 2;

/// The embedder all-MiniLM-L6-v2: 384 dimensions, English, texts of up to 254 word pieces.
///
/// The folder is the one that sentence-transformers writes: `model.safetensors`, `vocab.txt` or `tokenizer.json`, and
/// `config.json` if the model does not have twelve heads. Nothing is downloaded. Other models of the same architecture
/// can be read as well: uncased BERT, mean pooling, unit length.
///
/// ```no_run
/// use oubliette::embed::{Embedder, MiniLm, Precision};
///
/// let model = MiniLm::open("models/all-MiniLM-L6-v2", Precision::Int8)?;
/// assert_eq!(model.embed_query("Where are the keys?")?.len(), 384);
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Debug)]
pub struct MiniLm {
    id: String,
    pieces: WordPiece,
    /// `[CLS]` and `[SEP]`.
    marks: (u32, u32),
    bert: Bert,
    threads: usize,
}

impl MiniLm {
    /// Reads the model in `folder`. The id of the embedder contains the hash of the weights.
    ///
    /// ```
    /// use oubliette::ErrorKind;
    /// use oubliette::embed::{MiniLm, Precision};
    /// let why = MiniLm::open("no such folder", Precision::Int8).unwrap_err();
    /// assert_eq!(why.kind(), ErrorKind::Io);
    /// ```
    ///
    /// # Errors
    /// `Io` when a file cannot be read. `Invalid`, with the name of the file or tensor, when the folder does not hold
    /// such a model: a file is not safetensors or is cut off; a tensor is missing, has another shape or type, or is
    /// not finite; a size is out of bounds (4,096 dimensions, 48 layers, 1 GiB); the vocabulary does not fit.
    pub fn open(folder: impl AsRef<Path>, precision: Precision) -> Result<Self> {
        let folder = Folder(folder.as_ref());
        let (pieces, config) = (folder.pieces()?, folder.config()?);
        let bytes = folder.weights()?;
        let bert = Bert::read(&weights::Weights::parse(&bytes)?, &config, precision)?;
        if pieces.len() > bert.vocabulary() {
            let why = format!("must have no more tokens than the model: {}", bert.vocabulary());
            return Err(Error::invalid("vocabulary", why, pieces.len()));
        }
        let mark = |token| {
            pieces.id(token).ok_or_else(|| Error::invalid("vocabulary", format!("must hold {token}"), "none"))
        };
        let marks = (mark("[CLS]")?, mark("[SEP]")?);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let id = folder::id(&bytes, precision);
        Ok(Self { id, pieces, marks, bert, threads: cores.min(THREADS_MAX) })
    }

    /// Lets this number of threads share the texts of one call; one for each core by default. The vectors are the same
    /// for any number.
    ///
    /// ```no_run
    /// use oubliette::embed::{MiniLm, Precision};
    /// let model = MiniLm::open("models/all-MiniLM-L6-v2", Precision::Int8)?.with_threads(2)?;
    /// assert!(model.with_threads(0).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` when the number is 0, or more than a database may use.
    pub fn with_threads(mut self, threads: usize) -> Result<Self> {
        within("threads", threads, 1..=THREADS_MAX)?;
        self.threads = threads;
        Ok(self)
    }

    fn vector(&self, text: &str) -> Result<Vec<f32>> {
        let limit = TOKENS_MAX.min(self.bert.places());
        let mut tokens = vec![self.marks.0];
        self.pieces.tokenize(text, limit.saturating_sub(2), &mut tokens);
        tokens.push(self.marks.1);
        let failed = || Error::Embedding {
            embedder: self.id.clone(),
            why: "the weights give a vector that is not finite, or zero".to_owned(),
        };
        self.bert.vector(&tokens).ok_or_else(failed)
    }

    /// The vectors of the texts that this thread takes, with their positions.
    fn share(&self, texts: &[&str], next: &AtomicUsize) -> Result<Vec<(usize, Vec<f32>)>> {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(text) = texts.get(at) else {
                return Ok(done);
            };
            done.push((at, self.vector(text)?));
        }
    }
}

impl Embedder for MiniLm {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.bert.dimensions()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let threads = self.threads.min(texts.len() / TEXTS_A_THREAD);
        if threads < 2 {
            return texts.iter().map(|text| self.vector(text)).collect();
        }
        let next = AtomicUsize::new(0);
        let shares = std::thread::scope(|scope| {
            let crew: Vec<_> = (0..threads).map(|_| scope.spawn(|| self.share(texts, &next))).collect();
            crew.into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect::<Result<Vec<_>>>()
        })?;
        let mut vectors: Vec<_> = shares.into_iter().flatten().collect();
        vectors.sort_unstable_by_key(|(at, _)| *at);
        Ok(vectors.into_iter().map(|(_, vector)| vector).collect())
    }
}
