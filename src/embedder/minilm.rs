//! all-MiniLM-L6-v2, read from a folder: BERT, the mean over its tokens, unit length.
//!
//! Each text goes through the model alone, and every product of matrices through the kernels of `vector`, so a
//! vector has the same bits in whatever company its text is embedded, and however many threads share the work.

mod folder;
mod layers;
#[cfg(test)]
mod tests;
mod weights;

use super::Embedder;
use super::wordpiece::WordPiece;
use crate::error::{Error, Result};
use crate::limits::THREADS_MAX;
use folder::Folder;
use layers::Bert;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tokens of a text that the model sees, `[CLS]` and `[SEP]` among them: `max_seq_length` of this model in
/// sentence-transformers. What comes after them has no part in the vector.
const TOKENS_MAX: usize = 256;

/// With fewer texts for it a thread is not worth starting.
const TEXTS_A_THREAD: usize = 2;

/// How weights are kept, and products computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// As they are in the file: 90 MB.
    #[default]
    F32,
    /// One signed byte a weight and a scale a row, 23 MB; activations are rounded likewise, token by token. Faster, and a
    /// little off: another embedding space by name.
    Int8,
}

/// The embedder all-MiniLM-L6-v2: 384 dimensions, English, texts of up to 254 word pieces.
///
/// Its folder is the one that sentence-transformers writes: `model.safetensors`, `vocab.txt` or `tokenizer.json`, and
/// `config.json` where the model has other heads than twelve. Nothing is downloaded. Other models of its build are
/// read as well: uncased BERT, mean pooling, unit length.
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
    /// Reads the model in `folder`; its id has the hash of the weights.
    ///
    /// # Errors
    /// `Io` when a file cannot be read; `Invalid`, with the name of the file or tensor, when it is not such a model: not
    /// safetensors, cut off, a tensor that is missing, of another shape or type or not finite, sizes out of bounds
    /// (4,096 dimensions, 48 layers, 1 GiB), a vocabulary that does not fit.
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

    /// Lets so many threads share the texts of one call; as many as there are cores by default. The vectors are the same.
    ///
    /// # Errors
    /// `Invalid` when it is 0 or more than a database may use.
    pub fn with_threads(mut self, threads: usize) -> Result<Self> {
        if !(1..=THREADS_MAX).contains(&threads) {
            return Err(Error::invalid("threads", format!("must be 1 to {THREADS_MAX}"), threads));
        }
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

    /// The vectors of the texts whose turn this thread gets, with their places.
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
