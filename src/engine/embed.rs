//! Vectors of texts: of drafts before they are queued, of queries, of rows that wait, and of all rows in another model.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::Serialize;

use crate::embedder::Embedder;
use crate::engine::attached::{Asked, AttachedEmbedder, BATCH};
use crate::engine::database::Database;
use crate::engine::inner::Inner;
use crate::engine::maintain::Sweep;
use crate::engine::options::MaintainOptions;
use crate::engine::pace::End;
use crate::engine::sweep::Noted;
use crate::error::{Error, Result};
use crate::hygiene::{self, StepInput};
use crate::index::Published;
use crate::ingest::{Embedded, Prepared, text_of_update};
use crate::limits::{DIM_MAX, NAME_BYTES_MAX, within};
use crate::model::{MemoryId, Mode, NamespaceName, Pass, Patch, Query, RunId, RunSort};
use crate::store::control::SpaceRow;
use crate::store::{NsId, Rows, SpaceId};

/// Memories that get their vectors in one transaction.
const FILL_ROWS: usize = 512;

/// The embedding space of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddingSpace {
    /// Id of the embedder; `caller` where the vectors are the caller's own.
    pub name: String,
    /// Dimensions of its vectors.
    pub dimensions: usize,
}

/// What changing the model did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reembedded {
    /// Memories that have a vector of the new model now and had one of another before.
    pub changed: u64,
    /// Memories that had waited for a vector and have one now.
    pub filled: u64,
    /// Memories that could not be embedded: without text, or refused by the embedder.
    pub skipped: u64,
}

/// A query after the embedder was asked for the vector of its text.
pub(super) struct EmbeddedQuery<'q> {
    pub(super) query: Cow<'q, Query>,
    /// Why the embedder gave none, so that the query goes by its words alone.
    pub(super) failed: Option<String>,
}

impl Inner {
    /// The embedder of this handle, where the vectors of the database are its own or there are none yet.
    pub(super) fn embedder_for(&self, published: &Published) -> Result<Option<AttachedEmbedder>> {
        let Some(attached) = self.embedder.read().clone() else { return Ok(None) };
        let rows = published.snapshot();
        let space = rows.space(SpaceId(rows.clock()?.space))?;
        Ok(space.is_none_or(|space| space.embedder() == &*attached.name).then_some(attached))
    }

    /// A query with a vector, if its text needs one and there is an embedder. One that fails leaves the words to go by.
    pub(super) fn with_vector<'q>(
        &self,
        published: &Published,
        query: &'q Query,
    ) -> Result<EmbeddedQuery<'q>> {
        let as_it_is = |failed| EmbeddedQuery { query: Cow::Borrowed(query), failed };
        query.check()?;
        let text = query.text.as_deref().filter(|text| !text.trim().is_empty());
        let Some(text) = text.filter(|_| query.vector.is_none() && query.mode != Mode::Text) else {
            return Ok(as_it_is(None));
        };
        let Some(attached) = self.embedder_for(published)? else { return Ok(as_it_is(None)) };
        match attached.query(text) {
            Ok(vector) => {
                let query = Cow::Owned(Query { vector: Some(vector), ..query.clone() });
                Ok(EmbeddedQuery { query, failed: None })
            }
            Err(why) if query.mode == Mode::Vector => Err(why),
            Err(why) => {
                tracing::warn!(%why, "a query is answered by its words alone");
                Ok(as_it_is(Some(why.to_string())))
            }
        }
    }

    /// Gives vectors to drafts that bring none, but for those that the published state would absorb. A batch at which the embedder
    /// fails is stored without vectors. False where there is one.
    pub(super) fn embed_drafts(
        &self,
        namespace: &NamespaceName,
        drafts: &mut [Prepared],
        no_dedup: bool,
    ) -> Result<bool> {
        self.while_open(|| self.embed_unknown(namespace, drafts, no_dedup))
    }

    fn embed_unknown(
        &self,
        namespace: &NamespaceName,
        drafts: &mut [Prepared],
        no_dedup: bool,
    ) -> Result<bool> {
        let published = self.state()?;
        let Some(attached) = self.embedder_for(&published)? else { return Ok(true) };
        let rows = published.snapshot();
        // An embedder that nobody asked for leaves it to the vectors of a caller what the space of the database is.
        if attached.suggested
            && drafts.iter().any(Prepared::brings_vector)
            && rows.space(SpaceId(rows.clock()?.space))?.is_none()
        {
            return Ok(true);
        }
        let ns = rows.namespace(namespace.as_str())?.map(|row| NsId(row.number));
        let now = self.instant(&published);
        let is_known = |draft: &Prepared| match ns {
            Some(ns) => draft.is_known_to(&**rows, ns, now, no_dedup),
            None => Ok(false),
        };
        let in_force = self.in_force();
        let mut wanted = Vec::new();
        for (at, draft) in drafts.iter().enumerate() {
            if draft.wants_vector() && !is_known(draft)? {
                wanted.push((at, draft.meant(&in_force.messages)));
            }
        }
        let mut works = true;
        for batch in wanted.chunks(BATCH) {
            match attached.vectors(batch.iter().map(|(_, text)| text.as_str())) {
                Ok(vectors) => {
                    for ((at, _), vector) in batch.iter().zip(vectors) {
                        if let (Some(draft), Some(vector)) = (drafts.get_mut(*at), vector) {
                            draft.embedded(Embedded { vector, space: Arc::clone(&attached.name) });
                        }
                    }
                }
                Err(why) => {
                    tracing::warn!(%why, "memories are stored without a vector");
                    works = false;
                }
            }
        }
        Ok(works)
    }

    /// The vector of the new text that a patch gives a memory; none where it brings one, the text stays, or there is no
    /// embedder. False beside it where the embedder has failed.
    pub(super) fn embed_update(
        &self,
        namespace: &NamespaceName,
        name: &str,
        patch: &Patch,
    ) -> Result<(Option<Embedded>, bool)> {
        self.while_open(|| self.embed_new_text(namespace, name, patch))
    }

    fn embed_new_text(
        &self,
        namespace: &NamespaceName,
        name: &str,
        patch: &Patch,
    ) -> Result<(Option<Embedded>, bool)> {
        let published = self.state()?;
        let Some(attached) = self.embedder_for(&published)? else { return Ok((None, true)) };
        let rows = published.snapshot();
        let Some(ns) = rows.namespace(namespace.as_str())?.map(|row| NsId(row.number)) else {
            return Ok((None, true));
        };
        let messages = &self.in_force().messages;
        let text = text_of_update(&**rows, ns, name, patch, self.instant(&published), messages)?;
        let Some(text) = text else { return Ok((None, true)) };
        match attached.vectors([text.as_str()].into_iter()) {
            Ok(mut vectors) => {
                let vector = vectors.pop().flatten();
                Ok((vector.map(|vector| Embedded { vector, space: Arc::clone(&attached.name) }), true))
            }
            Err(why) => {
                tracing::warn!(%why, "a memory is changed without a vector");
                Ok((None, false))
            }
        }
    }
}

impl Database {
    /// The space in which the vectors of this database lie; none before the first.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// assert_eq!(db.embedding_space()?, None);
    /// team.add(Draft::new("Ann prefers tea").vector([0.6, 0.8]))?;
    /// assert_eq!(db.embedding_space()?.unwrap().name, "caller");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn embedding_space(&self) -> Result<Option<EmbeddingSpace>> {
        self.read(|published, _| {
            let rows = published.snapshot();
            let space = rows.space(SpaceId(rows.clock()?.space))?;
            let found = |row: SpaceRow| EmbeddingSpace {
                name: row.embedder().to_owned(),
                dimensions: row.dim as usize,
            };
            Ok(space.map(found))
        })
    }

    /// Lets an embedder give vectors to texts and queries of this handle and its clones from now on.
    ///
    /// ```
    /// use oubliette::Database;
    /// use oubliette::embed::HashEmbedder;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let db = Database::open(&path)?;
    /// db.use_embedder(HashEmbedder::new())?;
    /// let team = db.namespace("team")?;
    /// let ann = team.add("Ann lives in Ghent")?;
    /// let found = team.search("where does Ann live?")?;
    /// assert_eq!(found.hits[0].id, ann.id);
    /// assert!(found.hits[0].signals.vector.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `OtherSpace` when the vectors of the database are those of another embedder or the caller's own, with
    /// [`Database::reembed`] as the way out; `Invalid` for an id or a dimension out of bounds.
    pub fn use_embedder(&self, embedder: impl Embedder + 'static) -> Result<()> {
        self.use_shared_embedder(Arc::new(embedder), false)
    }

    /// As [`Database::use_embedder`], for an embedder that nobody asked for: where the first vector of the file is one that a
    /// caller brings, the vectors of the file are the caller's, and texts are found by their words alone.
    ///
    /// ```
    /// use oubliette::Draft;
    /// use oubliette::embed::HashEmbedder;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// db.suggest_embedder(HashEmbedder::new())?;
    /// // Vectors of the caller come first: the embedder gives way.
    /// team.add(Draft::new("Ann prefers tea").vector([0.6, 0.8]))?;
    /// assert_eq!(db.dimensions()?, Some(2));
    /// assert!(db.suggest_embedder(HashEmbedder::new()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::use_embedder`].
    pub fn suggest_embedder(&self, embedder: impl Embedder + 'static) -> Result<()> {
        self.use_shared_embedder(Arc::new(embedder), true)
    }

    /// Leaves the handle without an embedder: texts are written without vectors and found by their words.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// db.detach_embedder();
    /// team.add("Ann lives in Ghent")?;
    /// assert!(team.search("Ann")?.hits[0].signals.vector.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn detach_embedder(&self) {
        *self.inner.embedder.write() = None;
    }

    /// Attaches the embedder that ships with the crate, where the vectors of the database are its own; where there are none
    /// yet, if it may be suggested.
    #[cfg(feature = "static-mini")]
    pub(super) fn attach_shipped(&self, suggest: bool) -> Result<()> {
        let shipped = crate::embedder::StaticMini::new();
        // Where the row of the space is damaged no vector can be read, and nothing is attached.
        let is_its = match crate::error::sound(self.embedding_space())? {
            Some(Some(space)) => space.name == shipped.id() && space.dimensions == shipped.dimensions(),
            Some(None) => suggest,
            None => false,
        };
        if is_its { self.suggest_embedder(shipped) } else { Ok(()) }
    }

    /// Without the feature `static-mini` no embedder ships with the crate.
    #[cfg(not(feature = "static-mini"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the same call with the feature")]
    pub(super) fn attach_shipped(&self, _suggest: bool) -> Result<()> {
        Ok(())
    }

    pub(super) fn use_shared_embedder(&self, embedder: Arc<dyn Embedder>, suggested: bool) -> Result<()> {
        check(&*embedder)?;
        match self.embedding_space()? {
            Some(space) if space.name != embedder.id() => {
                return Err(Error::OtherSpace { stored: space.name, given: embedder.id().to_owned() });
            }
            Some(space) if space.dimensions != embedder.dimensions() => {
                let why = format!("must be {}, as in the file", space.dimensions);
                return Err(Error::invalid("dimensions", why, embedder.dimensions()));
            }
            _ => {}
        }
        *self.inner.embedder.write() = Some(AttachedEmbedder::new(embedder, suggested));
        Ok(())
    }

    /// Makes the vectors of an embedder those of the database before the first memory is written.
    ///
    /// ```
    /// use oubliette::embed::HashEmbedder;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// db.fix_embedder(HashEmbedder::new())?;
    /// assert_eq!(db.embedding_space()?.unwrap().name, "hash-1@256");
    /// assert!(db.fix_embedder(HashEmbedder::with_dimensions(64)?).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::use_embedder`]; `Retry`, `Unavailable`, `ReadOnly`.
    pub fn fix_embedder(&self, embedder: impl Embedder + 'static) -> Result<()> {
        let embedder: Arc<dyn Embedder> = Arc::new(embedder);
        self.use_shared_embedder(Arc::clone(&embedder), false)?;
        if self.embedding_space()?.is_none() {
            self.open_space_of(embedder.id(), embedder.dimensions())?;
        }
        Ok(())
    }

    /// Makes the space of an embedder the current one.
    fn open_space_of(&self, name: &str, dim: usize) -> Result<()> {
        self.inner.run_alone(|session| session.ledger.open_space(name, dim).map(|_| ()))
    }

    /// Changes the model: every memory gets a vector of `embedder`, in slices. Until a memory has its new vector a search
    /// finds it by its words alone. A run that was cut off goes on when it is called again.
    ///
    /// ```
    /// use oubliette::embed::{HashEmbedder, embedder_fn};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// db.use_embedder(HashEmbedder::new())?;
    /// team.add("Ann lives in Ghent")?;
    /// let done = db.reembed(HashEmbedder::with_dimensions(64)?)?;
    /// assert_eq!((done.changed, db.dimensions()?), (1, Some(64)));
    /// let broken = embedder_fn("broken", 2, |_: &[&str]| Ok(Vec::new()))?;
    /// assert!(db.reembed(broken).is_err());
    /// assert_eq!(db.dimensions()?, Some(64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Embedding` when the embedder does not answer any more: at its first text nothing is changed, later what was done before is kept. `Invalid` for
    /// an id or a dimension out of bounds; `Corrupted`, `Retry`, `Unavailable`, `ReadOnly`, `Closed`.
    pub fn reembed(&self, embedder: impl Embedder + 'static) -> Result<Reembedded> {
        self.inner.check_open()?;
        let embedder: Arc<dyn Embedder> = Arc::new(embedder);
        check(&*embedder)?;
        let attached = AttachedEmbedder::new(embedder, false);
        let _one = self.inner.upkeep.lock();
        if self.embedding_space()?.is_none_or(|space| space.name != *attached.name) {
            // A database becomes one of its vectors only once it answers.
            attached.probe()?;
            self.open_space_of(&attached.name, attached.dimensions())?;
        }
        *self.inner.embedder.write() = Some(attached.clone());
        let run = self.inner.new_run()?;
        let options = MaintainOptions::live();
        let mut sweep = Sweep::new(run, RunSort::Reembed, None, &options);
        let mut done = Reembedded::default();
        for (namespace, ns) in self.tenants(None)? {
            let mut after = None;
            loop {
                let stale = self.stale(ns, after)?;
                let Some(last) = stale.last().copied() else { break };
                sweep.enter(&self.inner, &namespace, ns, run);
                let filled = self.fill(ns, &stale, &attached, Some(run))?;
                done.changed += filled;
                done.skipped += stale.len() as u64 - filled;
                after = Some(last);
            }
        }
        let report = self.run_pass(Pass::Embed, &options, &mut sweep)?;
        self.end_runs(&sweep);
        done.filled = report.changed;
        done.skipped += report.skipped;
        Ok(done)
    }

    /// The next memories whose vector is not of the current space.
    fn stale(&self, ns: NsId, after: Option<MemoryId>) -> Result<Vec<MemoryId>> {
        self.read(|published, _| {
            let rows = published.snapshot();
            let space = rows.clock()?.space;
            let mut all = Vec::new();
            rows.vitals_after(ns, after, &mut |id, vitals| {
                if vitals.is_some_and(|vitals| vitals.place.slot.is_some() && vitals.place.space != space) {
                    all.push(id);
                }
                Ok(if all.len() < BATCH { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            })?;
            Ok(all)
        })
    }

    /// Gives vectors to memories that a commit has left without one: what a batch wrote, what was to be absorbed and was not
    /// any more, what the write path itself has made. What can't be done now is left to the pass `embed`.
    pub(super) fn embed_waiting(&self, waiting: Vec<(NsId, MemoryId)>) {
        let done = || -> Result<()> {
            if waiting.is_empty() {
                return Ok(());
            }
            let Some(attached) = self.inner.embedder_for(&*self.inner.state()?)? else { return Ok(()) };
            let waiting: BTreeSet<(NsId, MemoryId)> = waiting.into_iter().collect();
            let waiting: Vec<(NsId, MemoryId)> = waiting.into_iter().collect();
            for slice in
                waiting.chunk_by(|(one, _), (other, _)| one == other).flat_map(|all| all.chunks(FILL_ROWS))
            {
                let Some((ns, _)) = slice.first() else { continue };
                let ids: Vec<MemoryId> = slice.iter().map(|(_, id)| *id).collect();
                attached.unless_resting(|| self.fill(*ns, &ids, &attached, None))?;
            }
            Ok(())
        };
        if let Err(why) = done() {
            tracing::warn!(%why, "memories that were written wait for their vectors");
        }
    }

    /// Gives memories a vector of the current space, in one transaction. Gives how many got one. The run, if there is one, is
    /// that of a change of the embedder.
    fn fill(
        &self,
        ns: NsId,
        ids: &[MemoryId],
        attached: &AttachedEmbedder,
        run: Option<RunId>,
    ) -> Result<u64> {
        let (in_force, published) = (self.inner.in_force(), self.inner.state()?);
        let asked = Asked { attached, end: End::default() };
        let input = StepInput {
            published: &published,
            policy: &in_force.policy,
            messages: &in_force.messages,
            embedder: Some(&asked),
            run,
            threads: 1,
            rows: ids.len(),
            rows_left: ids.len(),
        };
        let Some(step) = hygiene::fill(input, ns, ids)?.step else { return Ok(0) };
        let noted = Noted { sort: RunSort::Reembed, name: "changed", even_if_idle: false };
        Ok(self.apply(ns, run, run.map(|_| noted), step)?.count)
    }
}

/// Whether an embedder keeps its promises, as far as that can be seen.
fn check(embedder: &dyn Embedder) -> Result<()> {
    let (id, dim) = (embedder.id(), embedder.dimensions());
    if id.is_empty() || id.len() > NAME_BYTES_MAX || id.contains('\0') || id == SpaceRow::CALLER {
        let why = format!("must have 1 to {NAME_BYTES_MAX} bytes, no NUL, and not be `{}`", SpaceRow::CALLER);
        return Err(Error::invalid("embedder", why, id));
    }
    within("dimensions", dim, 1..=DIM_MAX)
}
