//! Several operations in one transaction.

use crate::engine::database::Database;
use crate::engine::inner::Inner;
use crate::engine::series::snapshot_draft;
use crate::engine::session::Session;
use crate::engine::write::WriteOptions;
use crate::error::{Error, Result};
use crate::index::slots;
use crate::ingest::{ForgetNames, Prepared, prepare};
use crate::model::{
    Draft, Expiry, Forgotten, Memory, MemoryId, Name, NamespaceName, Outcome, Page, PageRequest, Patch,
    Payload, Query, RenameReport, RestoreReport, SupersedeMode, SupersedeReport, Time,
};
use crate::recall::{Got, Keyed, SearchResult, Sought, Source};
use crate::store::{IndexId, Rows, WriteTx};

/// A transaction under way: what it does is visible to itself at once, to others when it commits.
pub struct Batch<'b, 's, 'a, 't> {
    pub(super) session: &'b mut Session<'s, 'a, 't>,
    inner: &'b Inner,
    /// Rows that it may have given a vector.
    pub(super) rows: usize,
}

impl Database {
    /// Several operations in one transaction. `unit` may run more than once, if the storage fails.
    ///
    /// An embedder of the handle gives the texts that come without a vector theirs right after the commit, so that no model
    /// works while others wait to write. Until then they are found by their words.
    ///
    /// ```
    /// # use oubliette::{Database, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::open(folder.path().join("m.oub"))?;
    /// let team = db.namespace("team")?;
    /// db.batch(|b| {
    ///     b.add(team.name(), Draft::new("the build is green").key("build"))?;
    ///     b.add(team.name(), Draft::new("the build is red").key("build"))
    /// })?;
    /// assert_eq!(team.history("build")?.versions.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of `unit`; nothing of it is written then.
    pub fn batch<R>(&self, mut unit: impl FnMut(&mut Batch<'_, '_, '_, '_>) -> Result<R>) -> Result<R> {
        self.inner.called();
        let (value, rows, waiting) = self.inner.run_alone(|session| {
            let mut batch = Batch { session, inner: &self.inner, rows: 0 };
            let value = unit(&mut batch)?;
            Ok((value, batch.rows, std::mem::take(&mut batch.session.ledger.waiting)))
        })?;
        self.relieve(rows);
        self.embed_waiting(waiting);
        Ok(value)
    }
}

impl Batch<'_, '_, '_, '_> {
    /// As [`Namespace::add`](crate::Namespace::add).
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// db.batch(|b| {
    ///     b.add(team.name(), "Ann prefers tea")?;
    ///     b.add(team.name(), "Bob prefers coffee")
    /// })?;
    /// // A failure takes the whole batch back.
    /// let failed = db.batch(|b| {
    ///     b.add(team.name(), "It rains")?;
    ///     b.add(team.name(), "")
    /// });
    /// assert!(failed.is_err());
    /// assert_eq!(team.list(&Default::default())?.items.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::add`](crate::Namespace::add); the whole batch is given up if its closure hands the error on.
    pub fn add(&mut self, namespace: &NamespaceName, draft: impl Into<Draft>) -> Result<Outcome> {
        self.add_with(namespace, draft, &WriteOptions::default())
    }

    /// As [`Batch::add`], in a run or without dedup.
    ///
    /// ```
    /// use oubliette::WriteOptions;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// let run = team.start_import()?;
    /// let how = WriteOptions { run: Some(run), ..WriteOptions::default() };
    /// db.batch(|b| b.add_with(team.name(), "Ann prefers tea", &how))?;
    /// assert_eq!(team.undo(run)?.removed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::add`].
    pub fn add_with(
        &mut self,
        namespace: &NamespaceName,
        draft: impl Into<Draft>,
        how: &WriteOptions,
    ) -> Result<Outcome> {
        self.add_prepared(namespace, &prepare(how.applied_to(draft.into()))?, how)
    }

    /// Adds a draft that takes the place of what its key says: at an instant ahead, or at once.
    pub(super) fn add_replacing(
        &mut self,
        namespace: &NamespaceName,
        draft: Draft,
        ahead: Option<Time>,
        how: &WriteOptions,
    ) -> Result<Outcome> {
        self.add_prepared(namespace, &prepare(how.applied_to(draft))?.replacing(ahead), how)
    }

    fn add_prepared(
        &mut self,
        namespace: &NamespaceName,
        prepared: &Prepared,
        how: &WriteOptions,
    ) -> Result<Outcome> {
        self.rows += 1;
        let mut writer = self.session.writer(namespace, how.run, how.no_dedup)?;
        writer.skip_instructions = how.skip_instructions;
        writer.keep_part = how.keep_part;
        let outcome = writer.add(prepared)?;
        writer.note_in_run(std::slice::from_ref(&outcome))?;
        Ok(outcome)
    }

    /// As [`Namespace::get`](crate::Namespace::get), with what the batch has written.
    ///
    /// ```
    /// use oubliette::{Database, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::open(folder.path().join("m.oub"))?;
    /// let team = db.namespace("team")?;
    /// db.batch(|b| {
    ///     b.add(team.name(), Draft::new("Ann lives in Ghent").key("ann:home"))?;
    ///     assert!(b.get(team.name(), "ann:home")?.is_some());
    ///     assert!(team.get("ann:home")?.is_none()); // Others see it when it is committed.
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::get`](crate::Namespace::get).
    pub fn get(&self, namespace: &NamespaceName, name: impl Into<Name>) -> Result<Option<Memory>> {
        match self.look_up(namespace, name, false) {
            Ok(got) => Ok(got.into_memory()),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// As [`Namespace::look_up`](crate::Namespace::look_up), with what the batch has written.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// db.batch(|b| {
    ///     b.add(team.name(), Draft::new("Ann prefers tea").key("drink").vector([0.6, 0.8]))?;
    ///     let got = b.look_up(team.name(), "drink", true)?.into_memory();
    ///     assert!(got.is_some_and(|memory| memory.vector.is_some()));
    ///     assert!(b.look_up(team.name(), "food", false).is_err());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::look_up`](crate::Namespace::look_up).
    pub fn look_up(
        &self,
        namespace: &NamespaceName,
        name: impl Into<Name>,
        with_vector: bool,
    ) -> Result<Got> {
        self.session.reader(namespace)?.get(name.into().as_str(), with_vector)
    }

    /// As [`Namespace::payload`](crate::Namespace::payload), with what the batch has written.
    ///
    /// ```
    /// use oubliette::Draft;
    /// use serde_json::json;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// db.batch(|b| {
    ///     b.add(team.name(), Draft::new("The gateway answered").key("call").payload(json!({"status": 200})))?;
    ///     assert!(b.payload(team.name(), "call")?.is_some());
    ///     assert!(b.payload(team.name(), "no call").is_err());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::payload`](crate::Namespace::payload).
    pub fn payload(&self, namespace: &NamespaceName, name: impl Into<Name>) -> Result<Option<Payload>> {
        self.session.reader(namespace)?.payload(name.into().as_str())
    }

    /// As [`Namespace::list`](crate::Namespace::list), with what the batch has written.
    ///
    /// ```
    /// use oubliette::PageRequest;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// db.batch(|b| {
    ///     b.add(team.name(), "Bob prefers coffee")?;
    ///     assert_eq!(b.list(team.name(), &PageRequest::default())?.items.len(), 2);
    ///     assert!(b.list(team.name(), &PageRequest { limit: 0, ..PageRequest::default() }).is_err());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::list`](crate::Namespace::list).
    pub fn list(&self, namespace: &NamespaceName, request: &PageRequest) -> Result<Page<Memory>> {
        self.session.reader(namespace)?.list(request)
    }

    /// As [`Namespace::sought`](crate::Namespace::sought).
    pub(crate) fn sought(&self, namespace: &NamespaceName, sought: &Sought<'_>) -> Result<Keyed> {
        self.session.reader(namespace)?.sought(sought)
    }

    /// As [`Namespace::search`](crate::Namespace::search), as long as the batch has written nothing to the namespace. The
    /// images that a search ranks by are those of the last commit, so afterwards a search would miss what the batch has
    /// written, and find what it has forgotten. The text of a query is not embedded here, so that no model works while
    /// others wait to write: a query brings its vector, or goes by its words.
    ///
    /// ```
    /// use oubliette::{Database, Query};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::open(folder.path().join("m.oub"))?;
    /// let team = db.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// db.batch(|b| {
    ///     if b.search(team.name(), "coffee")?.hits.is_empty() {
    ///         b.add(team.name(), "Ann prefers coffee")?;
    ///     }
    ///     assert!(b.search(team.name(), "coffee").is_err());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::search`](crate::Namespace::search), and `Conflict` where the batch has written to the namespace.
    pub fn search(&self, namespace: &NamespaceName, query: impl Into<Query>) -> Result<SearchResult> {
        let query = query.into();
        let (found, ns) = self.session.search(namespace, &query)?;
        self.inner.note_hits(self.session.published, ns, &query, &found.hits)?;
        Ok(found)
    }

    /// As [`Namespace::push_snapshot`](crate::Namespace::push_snapshot).
    ///
    /// ```
    /// use oubliette::Time;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// let (noon, nine): (Time, Time) = ("2026-01-03T12:00:00Z".parse()?, "2026-01-03T09:00:00Z".parse()?);
    /// let (first, late) = db.batch(|b| {
    ///     Ok((b.push_snapshot(team.name(), "12 facts", noon)?, b.push_snapshot(team.name(), "11 facts", nine)?))
    /// })?;
    /// assert_eq!(late.id, first.id); // Of a day the latest stays.
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::push_snapshot`](crate::Namespace::push_snapshot).
    pub fn push_snapshot(
        &mut self,
        namespace: &NamespaceName,
        draft: impl Into<Draft>,
        at: Time,
    ) -> Result<Outcome> {
        let prepared =
            prepare(snapshot_draft(draft.into(), at, &self.session.in_force.policy.snapshot.agent)?)?;
        self.rows += 1;
        self.session.writer(namespace, None, false)?.push_snapshot(&prepared)
    }

    /// As [`Namespace::update`](crate::Namespace::update).
    ///
    /// ```
    /// use oubliette::{Draft, Patch};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").key("home"))?;
    /// db.batch(|b| b.update(team.name(), "home", Patch::new().text("Ann lives in Bruges")))?;
    /// assert_eq!(team.get("home")?.unwrap().text, "Ann lives in Bruges");
    /// assert!(db.batch(|b| b.update(team.name(), "work", Patch::new().importance(0.9))).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::update`](crate::Namespace::update).
    pub fn update(
        &mut self,
        namespace: &NamespaceName,
        name: impl Into<Name>,
        patch: Patch,
    ) -> Result<Outcome> {
        self.rows += 1;
        self.session.known_writer(namespace)?.update(name.into().as_str(), patch, None)
    }

    /// As [`Namespace::rename_key`](crate::Namespace::rename_key).
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").key("ann"))?;
    /// assert_eq!(db.batch(|b| b.rename_key(team.name(), "ann", "ann:home"))?.rows, 1);
    /// assert!(db.batch(|b| b.rename_key(team.name(), "ann", "ann:work")).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::rename_key`](crate::Namespace::rename_key).
    pub fn rename_key(
        &mut self,
        namespace: &NamespaceName,
        old: impl Into<Name>,
        new: impl Into<Name>,
    ) -> Result<RenameReport> {
        self.session.known_writer(namespace)?.rename_key(old.into().as_str(), new.into().as_str())
    }

    /// As [`Namespace::touch`](crate::Namespace::touch).
    ///
    /// ```
    /// use oubliette::Draft;
    /// use std::time::Duration;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// team.add(Draft::new("The build is red").key("build"))?;
    /// let answers = db.batch(|b| b.touch(team.name(), ["build", "gone"], Duration::from_secs(60)))?;
    /// assert!(answers[0].is_ok() && answers[1].is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::touch`](crate::Namespace::touch).
    pub fn touch(
        &mut self,
        namespace: &NamespaceName,
        names: impl IntoIterator<Item = impl Into<Name>>,
        expiry: impl Into<Expiry>,
    ) -> Result<Vec<Result<Outcome>>> {
        let names: Vec<Name> = names.into_iter().map(Into::into).collect();
        self.rows += names.len();
        self.session.known_writer(namespace)?.touch(&names, expiry.into())
    }

    /// As [`Namespace::supersede_all`](crate::Namespace::supersede_all).
    ///
    /// ```
    /// use oubliette::Draft;
    /// use oubliette::memory::SupersedeMode;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// let old = team.add("Ann lives in Ghent")?.id;
    /// db.batch(|b| {
    ///     let new = b.add(team.name(), "Ann lives in Bruges")?.id;
    ///     b.supersede(team.name(), [old], new, SupersedeMode::Replaced, None)
    /// })?;
    /// assert!(!team.is_visible(old)?);
    /// assert!(db.batch(|b| b.supersede(team.name(), [old], old, SupersedeMode::Correction, None)).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::supersede_all`](crate::Namespace::supersede_all).
    pub fn supersede(
        &mut self,
        namespace: &NamespaceName,
        old: impl IntoIterator<Item = impl Into<Name>>,
        new: impl Into<Name>,
        mode: SupersedeMode,
        at: Option<Time>,
    ) -> Result<SupersedeReport> {
        let old: Vec<Name> = old.into_iter().map(Into::into).collect();
        self.session.known_writer(namespace)?.supersede_names(&old, new.into().as_str(), mode, at)
    }

    /// The memory that a name means, and the number of the holder of a key if the key stands for its own write alone. One of
    /// several writers of a text gets a memory of its own first. The key of a memory that is replaced at an instant ahead
    /// stays a key.
    pub(super) fn set_apart(
        &mut self,
        namespace: &NamespaceName,
        name: &str,
    ) -> Result<(MemoryId, Option<u32>)> {
        self.session.known_writer(namespace)?.named_alone(name)
    }

    /// The same for the key that a replacement at an instant ahead is to have: until then it says another memory, which may have been
    /// one with a memory that was found by its own key. None where it says a memory that was found, or what is replaced already.
    pub(super) fn set_apart_beside(
        &mut self,
        namespace: &NamespaceName,
        key: &str,
        found: &[(MemoryId, Option<u32>)],
    ) -> Result<Option<(MemoryId, Option<u32>)>> {
        let mut writer = self.session.known_writer(namespace)?;
        let (id, _) = writer.find(key)?;
        if found.iter().any(|(other, _)| *other == id) || writer.is_replaced_ahead(id)? {
            return Ok(None);
        }
        self.set_apart(namespace, key).map(Some)
    }

    /// The outcome of a write with what else has been done for it.
    pub(super) fn settled(&mut self, namespace: &NamespaceName, outcome: Outcome) -> Result<Outcome> {
        self.session.known_writer(namespace)?.settled(outcome)
    }

    /// As [`Batch::supersede`], for memories that were found by their names already.
    pub(super) fn supersede_found(
        &mut self,
        namespace: &NamespaceName,
        old: impl IntoIterator<Item = (MemoryId, Option<u32>)>,
        new: MemoryId,
        mode: SupersedeMode,
        at: Option<Time>,
    ) -> Result<()> {
        self.session.known_writer(namespace)?.supersede_each(old, new, mode, at).map(drop)
    }

    /// As [`Namespace::restore`](crate::Namespace::restore).
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// let ghent = team.add("Ann lives in Ghent")?.id;
    /// team.supersede(ghent, "Ann lives in Bruges")?;
    /// assert_eq!(db.batch(|b| b.restore(team.name(), ghent))?.id, ghent);
    /// assert!(db.batch(|b| b.restore(team.name(), ghent)).is_err()); // It is live already.
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::restore`](crate::Namespace::restore).
    pub fn restore(&mut self, namespace: &NamespaceName, name: impl Into<Name>) -> Result<RestoreReport> {
        self.session.known_writer(namespace)?.restore(name.into().as_str())
    }

    /// Forgets ids or keys, with all their versions.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").key("home"))?;
    /// let done = db.batch(|b| b.forget(team.name(), ["home", "work"]))?;
    /// assert_eq!((done.forgotten, done.missing()), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`.
    pub fn forget(
        &mut self,
        namespace: &NamespaceName,
        names: impl IntoIterator<Item = impl Into<Name>>,
    ) -> Result<Forgotten> {
        let names: Vec<String> = names.into_iter().map(|name| name.into().into_string()).collect();
        let how = ForgetNames { part: None, keep_history: false, also_merged: true, with_history: false };
        self.session.known_writer(namespace)?.forget_names(&names, how)
    }

    /// Counts uses of a memory.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// db.batch(|b| b.reinforce(team.name(), tea, 2))?;
    /// assert_eq!(team.get(tea)?.unwrap().reinforcement_count, 3); // The write was the first use.
    /// assert!(db.batch(|b| b.reinforce(team.name(), "coffee", 1)).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`.
    pub fn reinforce(&mut self, namespace: &NamespaceName, name: impl Into<Name>, by: u32) -> Result<()> {
        self.session.known_writer(namespace)?.reinforce(name.into().as_str(), by)
    }
}

/// What a transaction has written so far. It keeps blocks of vectors that it has changed until its end.
impl Source for WriteTx<'_> {
    type Rows = Self;

    fn rows(&self) -> &Self {
        self
    }

    fn vector(&self, index: IndexId, slot: u32) -> Result<Option<Vec<f32>>> {
        let Some(space) = self.space(index.space)? else { return Ok(None) };
        let vector = slots::vector_at(self, index, space.dim as usize, slot)?;
        Ok(vector.map(|vector| vector.as_slice().to_vec()))
    }
}
