//! The embedder of a handle, with the vectors that it gave last.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::embedder::Embedder;
use crate::error::{Error, Result};
use crate::hygiene::Vectorizer;
use crate::ingest::EmbedderSpace;
use crate::vector::UnitVector;

/// Texts that are given to the embedder at once.
pub(super) const BATCH: usize = 64;
/// What an embedder is asked to learn whether it answers at all: no text of a caller.
const PROBE: &str = "Is the model there?";
/// Refused requests after which a batch that was taken apart is left: three refused texts of one batch are found by then.
const REFUSALS_MAX: usize = 24;
/// What a handle keeps of the vectors that it was given last, in bytes: texts come again, in other rows and by other ways.
const MEMO_BYTES: usize = 8 << 20;

/// The embedder's answer for a batch, each checked; an answer of another shape is its failure.
fn vectors(embedder: &dyn Embedder, texts: &[&str]) -> Result<Vec<Option<UnitVector>>> {
    let failed = |why: String| Error::Embedding { embedder: embedder.id().to_owned(), why };
    let vectors = embedder.embed(texts)?;
    if vectors.len() != texts.len() {
        return Err(failed(format!("{} vectors for {} texts", vectors.len(), texts.len())));
    }
    let dim = embedder.dimensions();
    if let Some(other) = vectors.iter().find(|vector| vector.len() != dim) {
        return Err(failed(format!("a vector of {} dimensions, not {dim}", other.len())));
    }
    Ok(vectors.iter().map(|vector| UnitVector::new("vector", vector).ok()).collect())
}

/// Both halves of a part, where there are any: what is asked for next stands last.
fn halves(part: Range<usize>) -> Vec<Range<usize>> {
    let middle = part.start + part.len() / 2;
    let halves = [middle..part.end, part.start..middle];
    halves.into_iter().filter(|half| part.len() > 1 && !half.is_empty()).collect()
}

/// The vectors of the texts that were embedded last, by the SHA-256 of the text.
#[derive(Default)]
struct Memo {
    /// What came since `old` was set aside. Full, it takes the place of `old`.
    new: HashMap<[u8; 32], UnitVector>,
    old: HashMap<[u8; 32], UnitVector>,
}

impl Memo {
    fn get(&self, text: &[u8; 32]) -> Option<UnitVector> {
        self.new.get(text).or_else(|| self.old.get(text)).cloned()
    }

    fn put(&mut self, text: [u8; 32], vector: UnitVector, dim: usize) {
        if self.new.len() * (dim * 4 + 64) >= MEMO_BYTES / 2 {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(text, vector);
    }
}

/// An embedder as a handle has it.
#[derive(Clone)]
pub(super) struct AttachedEmbedder {
    pub(super) embedder: Arc<dyn Embedder>,
    /// Name of the space that its vectors open.
    pub(super) name: Arc<str>,
    /// Whether nobody asked for it.
    pub(super) suggested: bool,
    memo: Arc<Mutex<Memo>>,
}

impl AttachedEmbedder {
    pub(super) fn new(embedder: Arc<dyn Embedder>, suggested: bool) -> Self {
        let name = embedder.id().into();
        AttachedEmbedder { embedder, name, suggested, memo: Arc::default() }
    }

    /// The vector of each text, none for a text that has none. A text that stands among them twice, or was embedded a short
    /// while ago, is not given to the embedder again.
    ///
    /// # Errors
    /// Those of the embedder. Writers then store their texts without vectors, whichever is to blame, and the pass `embed` looks.
    pub(super) fn vectors<'t>(
        &self,
        texts: impl Iterator<Item = &'t str>,
    ) -> Result<Vec<Option<UnitVector>>> {
        self.remembering(texts, |batch| vectors(&*self.embedder, batch))
    }

    /// The vectors of texts, asked for in batches where they are not remembered.
    fn remembering<'t>(
        &self,
        texts: impl Iterator<Item = &'t str>,
        ask: impl Fn(&[&str]) -> Result<Vec<Option<UnitVector>>>,
    ) -> Result<Vec<Option<UnitVector>>> {
        let texts: Vec<([u8; 32], &str)> =
            texts.map(|text| (Sha256::digest(text.as_bytes()).into(), text)).collect();
        let mut known: HashMap<[u8; 32], Option<UnitVector>> = HashMap::new();
        let mut asked = Vec::new();
        for (name, text) in &texts {
            if known.contains_key(name) {
                continue;
            }
            let remembered = self.memo.lock().get(name);
            if remembered.is_none() {
                asked.push((*name, *text));
            }
            known.insert(*name, remembered);
        }
        // No lock is held while the model works, which may take seconds. Two threads may embed the same text.
        for batch in asked.chunks(BATCH) {
            let given: Vec<&str> = batch.iter().map(|(_, text)| *text).collect();
            for ((name, _), vector) in batch.iter().zip(ask(&given)?) {
                if let Some(vector) = &vector {
                    self.memo.lock().put(*name, vector.clone(), self.embedder.dimensions());
                }
                known.insert(*name, vector);
            }
        }
        Ok(texts.iter().map(|(name, _)| known.get(name).cloned().flatten()).collect())
    }

    /// The vectors of a batch. One text that the embedder refuses, such as one that is too long for the model, fails all texts
    /// that it is asked with. So a batch that fails is halved until that text stands alone, if the embedder answers otherwise. Past
    /// [`REFUSALS_MAX`] refusals the rest waits: a server may need a minute for each.
    fn taken_apart(&self, texts: &[&str]) -> Result<Vec<Option<UnitVector>>> {
        let why = match vectors(&*self.embedder, texts) {
            Ok(vectors) => return Ok(vectors),
            Err(why) => why,
        };
        if self.probe().is_err() {
            return Err(why);
        }
        let (mut all, mut refusals) = (vec![None; texts.len()], 0);
        let mut open = halves(0..texts.len());
        while let Some(part) = open.pop().filter(|_| refusals < REFUSALS_MAX) {
            let (Some(asked), Some(places)) = (texts.get(part.clone()), all.get_mut(part.clone())) else {
                continue;
            };
            match vectors(&*self.embedder, asked) {
                Ok(found) => places.iter_mut().zip(found).for_each(|(place, vector)| *place = vector),
                Err(why) => {
                    refusals += 1;
                    if part.len() == 1 {
                        tracing::warn!(%why, "the embedder refuses a text");
                    }
                    open.append(&mut halves(part));
                }
            }
        }
        // It may have gone meanwhile.
        if refusals >= REFUSALS_MAX && self.probe().is_err() {
            return Err(why);
        }
        Ok(all)
    }

    /// Looks whether the embedder answers at all.
    ///
    /// # Errors
    /// Those of the embedder.
    pub(super) fn probe(&self) -> Result<()> {
        vectors(&*self.embedder, &[PROBE]).map(|_| ())
    }

    /// The space that its vectors open.
    pub(super) fn space(&self) -> EmbedderSpace {
        let (name, dim) = (Arc::clone(&self.name), self.embedder.dimensions());
        EmbedderSpace { name, dim, suggested: self.suggested }
    }
}

impl Vectorizer for AttachedEmbedder {
    fn space(&self) -> &str {
        &self.name
    }

    fn vectors_of(&self, texts: &[&str]) -> Result<Vec<Option<UnitVector>>> {
        self.remembering(texts.iter().copied(), |batch| self.taken_apart(batch))
    }
}
