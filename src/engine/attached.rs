//! The embedder of a handle, with the vectors that it gave last, and what is known of how it answers.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::embedder::Embedder;
use crate::engine::pace::End;
use crate::error::{Error, Result};
use crate::hygiene::{Given, Vectorizer};
use crate::ingest::EmbedderSpace;
use crate::vector::UnitVector;

/// Texts that are given to the embedder at once.
pub(super) const BATCH: usize = 64;
/// What an embedder is asked to learn whether it answers at all: no text of a caller.
const PROBE: &str = "Is the model there?";
/// How long a request takes that has failed slowly: its server hangs, or was asked several times.
const SLOW: Duration = Duration::from_secs(1);
/// Slow failures after which a batch that was taken apart is left: enough to find one text among all of a batch.
const SLOW_MAX: usize = 8;
/// How long a text that was refused is not given to the embedder again: at first, and at most. The time doubles with each refusal,
/// because a server may have been at fault.
const REFUSED_FOR: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(3_600)];
/// What a handle keeps of the vectors that it was given last, in bytes: texts come again, in other rows and by other ways.
const MEMO_BYTES: usize = 8 << 20;
/// Refused texts that a handle keeps in mind.
const REFUSED_MAX: usize = 10_000;

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

/// Both halves of a part, where there are any.
fn halves(part: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let middle = part.start + part.len() / 2;
    let is_one = part.len() <= 1;
    [part.start..middle, middle..part.end].into_iter().filter(move |half| !is_one && !half.is_empty())
}

/// The vectors of the texts that were embedded last, by the SHA-256 of the text.
#[derive(Default)]
struct Memo {
    /// What came since `old` was set aside. Full, it takes the place of `old`.
    new: HashMap<[u8; 32], UnitVector>,
    old: HashMap<[u8; 32], UnitVector>,
    /// The texts that the embedder has refused, each with the instant from which it may be asked for it again, and how long that
    /// was ahead.
    refused: HashMap<[u8; 32], (Instant, Duration)>,
}

impl Memo {
    /// What is known of a text: its vector, or that it is refused.
    fn get(&self, text: &[u8; 32]) -> Option<Option<UnitVector>> {
        let vector = self.new.get(text).or_else(|| self.old.get(text)).cloned();
        let is_refused = || self.refused.get(text).is_some_and(|(until, _)| Instant::now() < *until);
        vector.map(Some).or_else(|| is_refused().then_some(None))
    }

    fn refuse(&mut self, text: [u8; 32]) {
        let (now, [first, most]) = (Instant::now(), REFUSED_FOR);
        let term = self.refused.get(&text).map_or(first, |(_, before)| (*before * 2).min(most));
        if self.refused.len() >= REFUSED_MAX {
            self.refused.retain(|_, (until, _)| now < *until);
        }
        if self.refused.len() < REFUSED_MAX {
            self.refused.insert(text, (now + term, term));
        }
    }

    fn put(&mut self, text: [u8; 32], vector: UnitVector, dim: usize) {
        if self.new.len() * (dim * 4 + 64) >= MEMO_BYTES / 2 {
            self.old = std::mem::take(&mut self.new);
        }
        self.refused.remove(&text);
        self.new.insert(text, vector);
    }
}

/// How an embedder answers.
struct Health {
    /// Texts that it is given at once.
    batch: usize,
    /// Until when writers and queries do without it.
    rests_until: Option<Instant>,
}

/// An embedder as a handle has it.
#[derive(Clone)]
pub(super) struct AttachedEmbedder {
    embedder: Arc<dyn Embedder>,
    /// Name of the space that its vectors open.
    pub(super) name: Arc<str>,
    /// Whether nobody asked for it.
    pub(super) suggested: bool,
    memo: Arc<Mutex<Memo>>,
    health: Arc<Mutex<Health>>,
}

impl AttachedEmbedder {
    pub(super) fn new(embedder: Arc<dyn Embedder>, suggested: bool) -> Self {
        let name = embedder.id().into();
        let health = Arc::new(Mutex::new(Health { batch: BATCH, rests_until: None }));
        AttachedEmbedder { embedder, name, suggested, memo: Arc::default(), health }
    }

    pub(super) fn dimensions(&self) -> usize {
        self.embedder.dimensions()
    }

    /// The vector of each text, none for a text that has none, or that the embedder has refused a short while ago. A text that
    /// stands among them twice, or was embedded a short while ago, is not given to the embedder again.
    ///
    /// # Errors
    /// Those of the embedder. Writers then store their texts without vectors, whichever is to blame, and the pass `embed` looks.
    pub(super) fn vectors<'t>(
        &self,
        texts: impl Iterator<Item = &'t str>,
    ) -> Result<Vec<Option<UnitVector>>> {
        let given = self.remembering(texts, |batch| {
            let vectors = self.unless_resting(|| vectors(&*self.embedder, batch))?;
            Ok(vectors.into_iter().map(Given::from).collect())
        })?;
        Ok(given.iter().map(|given| given.vector().cloned()).collect())
    }

    /// The vector of the text of a query.
    ///
    /// # Errors
    /// Those of the embedder; `Embedding` for a vector that is none of its space.
    pub(super) fn query(&self, text: &str) -> Result<Vec<f32>> {
        let vector = self.unless_resting(|| self.embedder.embed_query(text))?;
        let is_sound = vector.len() == self.dimensions() && UnitVector::new("vector", &vector).is_ok();
        let why = "no vector of its space for a query";
        if is_sound { Ok(vector) } else { Err(self.failed(why.to_owned())) }
    }

    fn failed(&self, why: String) -> Error {
        Error::Embedding { embedder: self.name.to_string(), why }
    }

    /// Asks for somebody who waits. After a slow failure nobody waits again for as long as it took, so that a server that hangs
    /// holds up a part of the writes and queries only.
    pub(super) fn unless_resting<T>(&self, ask: impl FnOnce() -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        if let Some(until) = self.health.lock().rests_until.filter(|until| begun < *until) {
            let left = (until - begun).as_secs() + 1;
            return Err(self.failed(format!("it failed a short while ago, and is asked again in {left} s")));
        }
        let answer = ask();
        let ended = Instant::now();
        let is_slow = answer.is_err() && ended - begun >= SLOW;
        self.health.lock().rests_until = is_slow.then(|| ended + (ended - begun));
        answer
    }

    /// The vectors of texts, asked for in batches where they are not remembered.
    fn remembering<'t>(
        &self,
        texts: impl Iterator<Item = &'t str>,
        ask: impl Fn(&[&str]) -> Result<Vec<Given>>,
    ) -> Result<Vec<Given>> {
        let texts: Vec<([u8; 32], &str)> =
            texts.map(|text| (Sha256::digest(text.as_bytes()).into(), text)).collect();
        let mut known: HashMap<[u8; 32], Given> = HashMap::new();
        let mut asked = Vec::new();
        for (name, text) in &texts {
            if known.contains_key(name) {
                continue;
            }
            let remembered = self.memo.lock().get(name);
            if remembered.is_none() {
                asked.push((*name, *text));
            }
            known.insert(*name, remembered.map_or(Given::Unasked, Given::from));
        }
        // No lock is held while the model works, which may take seconds. Two threads may embed the same text.
        let size = self.health.lock().batch;
        for batch in asked.chunks(size) {
            let given: Vec<&str> = batch.iter().map(|(_, text)| *text).collect();
            for ((name, _), given) in batch.iter().zip(ask(&given)?) {
                if let Given::Vector(vector) = &given {
                    self.memo.lock().put(*name, vector.clone(), self.dimensions());
                }
                known.insert(*name, given);
            }
        }
        Ok(texts.iter().map(|(name, _)| known.get(name).cloned().unwrap_or(Given::Unasked)).collect())
    }

    /// What is given for a batch. One text that the embedder refuses, such as one that is too long for the model, fails all texts
    /// that it is asked with. So a batch that fails is halved until that text stands alone, if the embedder answers otherwise, and
    /// large parts are asked for before small ones. Past [`SLOW_MAX`] slow failures the rest waits, and so it does at the end of the
    /// call, once the call has come any further.
    fn taken_apart(&self, texts: &[&str], end: &End) -> Result<Vec<Given>> {
        let why = match vectors(&*self.embedder, texts) {
            Ok(vectors) => return Ok(vectors.into_iter().map(Given::from).collect()),
            Err(why) => why,
        };
        self.probe().map_err(|_| why)?;
        let (mut all, mut refused): (Vec<Given>, Vec<&str>) = (vec![Given::Unasked; texts.len()], Vec::new());
        let (mut slow, mut largest) = (0, 0);
        let mut open: VecDeque<Range<usize>> = match texts.len() {
            // What failed once may not be to blame, since the embedder answers.
            1 => std::iter::once(0..1).collect(),
            count => halves(0..count).collect(),
        };
        while slow < SLOW_MAX
            && let Some(part) = open.pop_front()
        {
            let is_further = largest > 0 || !refused.is_empty();
            if end.is_stopped() || (is_further && end.is_there()) {
                open.push_front(part);
                break;
            }
            let (Some(asked), Some(places)) = (texts.get(part.clone()), all.get_mut(part.clone())) else {
                continue;
            };
            let begun = Instant::now();
            match vectors(&*self.embedder, asked) {
                Ok(found) => {
                    largest = largest.max(part.len());
                    places.iter_mut().zip(found).for_each(|(place, vector)| *place = vector.into());
                }
                Err(why) => {
                    slow += usize::from(begun.elapsed() >= SLOW);
                    if part.len() == 1 {
                        tracing::warn!(%why, "the embedder refuses a text");
                        refused.extend(asked);
                        places.fill(Given::Nothing);
                    }
                    open.extend(halves(part));
                }
            }
        }
        if !refused.is_empty() {
            // It may have gone meanwhile.
            self.probe()?;
            let mut memo = self.memo.lock();
            refused.iter().for_each(|text| memo.refuse(Sha256::digest(text.as_bytes()).into()));
        } else if open.is_empty() && texts.len() > largest && vectors(&*self.embedder, texts).is_err() {
            // No text is to blame: there are too many.
            self.health.lock().batch = largest.max(1);
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
        let (name, dim) = (Arc::clone(&self.name), self.dimensions());
        EmbedderSpace { name, dim, suggested: self.suggested }
    }
}

/// The embedder as maintenance asks it: for each text, until the call is to end.
pub(super) struct Asked<'e> {
    pub(super) attached: &'e AttachedEmbedder,
    /// When that is.
    pub(super) end: End,
}

impl Vectorizer for Asked<'_> {
    fn space(&self) -> &str {
        &self.attached.name
    }

    fn vectors_of(&self, texts: &[&str]) -> Result<Vec<Given>> {
        // A call asks for one batch, however little time it has.
        let is_first = Cell::new(true);
        self.attached.remembering(texts.iter().copied(), |batch| {
            if !is_first.replace(false) && self.end.is_there() {
                return Ok(vec![Given::Unasked; batch.len()]);
            }
            self.attached.taken_apart(batch, &self.end)
        })
    }
}
