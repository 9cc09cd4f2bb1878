//! One namespace: its reads, of what is published or of a snapshot, and the way to its writes.

use std::fmt;
use std::marker::PhantomData;

use crate::engine::database::Database;
use crate::engine::reads::Snapshot;
use crate::error::{Error, Result};
use crate::hygiene::{Briefing, briefing};
use crate::index::Published;
use crate::model::{
    Aggregate, AggregateId, DistinctQuery, DistinctValues, Event, EventId, EventQuery, Family, JournalRow,
    Memory, MemoryId, Name, NamespaceName, Page, PageRequest, Payload, PointInTime, Query, Run, RunId, Scope,
    State, Time, Tombstone,
};
use crate::recall::{
    Around, Explanation, Got, History, IndexStats, Keyed, MemoryStats, Reader, SearchResult, Sought, Stats,
    StatsContext, Why, index_stats, memory_stats,
};

/// A namespace of a database: the tenant boundary, with everything that is remembered in it. It is made by
/// [`Database::namespace`], costs nothing, and writes nothing until it is written to.
///
/// `Namespace<Snapshot>`, made by [`Snapshot::namespace`], has the same reads, all of them of the instant of the snapshot,
/// and no writes.
///
/// | | |
/// |---|---|
/// | write | [`add`](Self::add) [`add_all`](Self::add_all) [`update`](Self::update) [`supersede`](Self::supersede) [`replace`](Self::replace) [`restore`](Self::restore) [`touch`](Self::touch) |
/// | find | [`search`](Self::search) [`get`](Self::get) [`list`](Self::list) [`briefing`](Self::briefing) [`history`](Self::history) [`explain`](Self::explain) |
/// | forget | [`forget`](Self::forget) [`forget_plan`](Self::forget_plan) [`undo`](Self::undo) |
/// | maintain | [`maintain`](Self::maintain) [`plan`](Self::plan) [`runs`](Self::runs) [`gc_run`](Self::gc_run) [`stats`](Self::stats) |
///
/// ```
/// use oubliette::{Database, Draft};
/// # let folder = tempfile::tempdir()?;
/// let db = Database::open(folder.path().join("memory.oub"))?;
/// let team = db.namespace("team")?;
/// team.add("Ann prefers tea")?;
/// let before = db.snapshot()?.namespace("team")?;
/// team.add(Draft::new("Ann lives in Ghent").key("ann:home"))?;
/// assert_eq!(team.search("Ann")?.hits.len(), 2);
/// assert_eq!(before.search("Ann")?.hits.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Namespace<Of = Database> {
    pub(super) db: Database,
    /// Where it reads; none: what is published at each call.
    held: Option<Snapshot>,
    pub(super) name: NamespaceName,
    of: PhantomData<fn() -> Of>,
}

impl<Of> Clone for Namespace<Of> {
    fn clone(&self) -> Self {
        Namespace { db: self.db.clone(), held: self.held.clone(), name: self.name.clone(), of: PhantomData }
    }
}

impl<Of> fmt::Debug for Namespace<Of> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Namespace").field("name", &self.name.as_str()).finish_non_exhaustive()
    }
}

impl<Of> From<&Namespace<Of>> for NamespaceName {
    fn from(namespace: &Namespace<Of>) -> Self {
        namespace.name.clone()
    }
}

impl Database {
    /// The namespace with a name: a text of 1 to 256 bytes after trimming, without NUL, other than `*`. One that nothing was
    /// written to reads as empty.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// let team = db.namespace("team")?;
    /// assert_eq!(team.name().as_str(), "team");
    /// assert!(db.namespace("*").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a text that is no name.
    pub fn namespace<N>(&self, name: N) -> Result<Namespace>
    where
        N: TryInto<NamespaceName, Error: Into<Error>>,
    {
        let name = name.try_into().map_err(Into::into)?;
        Ok(Namespace { db: self.clone(), held: None, name, of: PhantomData })
    }
}

impl Snapshot {
    /// The namespace with a name, as it was at the instant of the snapshot.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// team.add("before")?;
    /// let snapshot = db.snapshot()?;
    /// team.add("after")?;
    /// assert_eq!(snapshot.namespace("team")?.list(&Default::default())?.items.len(), 1);
    /// assert!(snapshot.namespace("*").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a text that is no name.
    pub fn namespace<N>(&self, name: N) -> Result<Namespace<Snapshot>>
    where
        N: TryInto<NamespaceName, Error: Into<Error>>,
    {
        let name = name.try_into().map_err(Into::into)?;
        let db = Database::from_inner(self.inner.clone());
        Ok(Namespace { db, held: Some(self.clone()), name, of: PhantomData })
    }
}

impl<Of> Namespace<Of> {
    /// The database that it is of.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// assert!(team.database().backup(folder.path().join("copy.oub"))?.whole);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// Its name.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// assert_eq!(db.namespace(" team ")?.name().as_str(), "team");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(&self) -> &NamespaceName {
        &self.name
    }

    pub(super) fn read<R>(&self, read: impl Fn(&Published, Time) -> Result<R>) -> Result<R> {
        match &self.held {
            Some(held) => held.read(read),
            None => self.db.read(read),
        }
    }

    /// Reads what belongs to the namespace.
    pub(super) fn ask<R>(&self, ask: impl Fn(&Reader<'_>) -> Result<R>) -> Result<R> {
        self.read(|published, now| ask(&Reader::open(published, &self.name, &self.db.inner.secret, now)?))
    }

    /// The memories that answer a query best: by vector, by words, or by both, as its mode and what it has allow. A
    /// text is given its vector by the embedder of the database, if there is one. Cosines are those of the f32
    /// vectors; small partitions are scanned as a whole, and in large ones a walk through a graph finds as much as
    /// the effort of the query asks for.
    ///
    /// ```
    /// use oubliette::{Database, Query};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add("Ann lives in Ghent")?;
    /// assert_eq!(team.search("where does Ann live?")?.hits.len(), 1);
    /// assert!(team.search(Query::text("Ann").k(0)).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - `NoEmbedder` for a query of text alone in the mode [`Mode::Vector`](crate::Mode::Vector), and `Embedding` where the embedder fails
    ///   on it;
    /// - `Invalid` for another dimension, a vector that is zero or not finite, or a `k` outside 1 to 1,000.
    pub fn search(&self, query: impl Into<Query>) -> Result<SearchResult> {
        Ok(self.search_given(query, |hits| hits.len())?.0)
    }

    /// Why a query finds a memory by id or key, or why it does not: what its score is made of and what the last hit has,
    /// or what keeps it from being one.
    ///
    /// ```
    /// use oubliette::{Draft, Query};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann prefers tea").key("drink"))?;
    /// team.add(Draft::new("It rains").key("weather"))?;
    /// assert_eq!(team.why(Query::text("tea").k(1), "drink")?.rank, Some(1));
    /// assert!(team.why("tea", "food").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for a memory that nothing is known of, and those of `search`.
    pub fn why(&self, query: impl Into<Query>, name: impl Into<Name>) -> Result<Why> {
        let (query, name) = (query.into(), name.into());
        let weights = self.db.inner.in_force().policy.recall.clone();
        self.read(|published, now| {
            let query = self.db.inner.with_vector(published, &query)?.query;
            let reader = Reader::open(published, &self.name, &self.db.inner.secret, now)?;
            reader.why(&query, name.as_str(), &weights)
        })
    }

    /// What a session should know before anything is asked: every visible pinned memory, the most important first, then
    /// those with the highest RetentionScore, as far as `tokens` go, a token for 4 bytes. The budget never cuts pinned
    /// memories. It counts as no retrieval.
    ///
    /// ```
    /// use oubliette::{Draft, Scope};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann is allergic to nuts").pinned(true))?;
    /// team.add("Ann prefers tea")?;
    /// let briefed = team.briefing(&Scope::Shared, 100)?;
    /// assert_eq!(briefed.items[0].memory.text, "Ann is allergic to nuts");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn briefing(&self, scope: &Scope, tokens: usize) -> Result<Briefing> {
        let policy = self.db.inner.in_force().policy.clone();
        self.read(|published, now| {
            let reader = Reader::open(published, &self.name, &self.db.inner.secret, now)?;
            briefing(&reader, scope, tokens, now, &policy)
        })
    }

    /// The memory with an id or a key, in whatever state: a key prefers the memory that is current, else the one that held
    /// the key last. None where nothing is known of it, or it was forgotten; [`Namespace::look_up`] tells these apart.
    ///
    /// ```
    /// use oubliette::{Database, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").key("ann:home"))?;
    /// assert_eq!(team.get("ann:home")?.unwrap().text, "Ann lives in Ghent");
    /// assert!(team.get("bob:home")?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn get(&self, name: impl Into<Name>) -> Result<Option<Memory>> {
        match self.look_up(name, false) {
            Ok(got) => Ok(got.into_memory()),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// A memory by id or key in any state, with its unit vector on request, or the tombstone of one that is gone.
    ///
    /// ```
    /// use oubliette::memory::Got;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// assert!(matches!(team.look_up(tea, true)?, Got::Memory(_)));
    /// team.forget(tea)?;
    /// assert!(matches!(team.look_up(tea, false)?, Got::Tombstone(_)));
    /// assert!(team.look_up("nobody", false).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `Corrupted`, `Closed`.
    pub fn look_up(&self, name: impl Into<Name>, with_vector: bool) -> Result<Got> {
        let name = name.into();
        self.ask(|reader| reader.get(name.as_str(), with_vector))
    }

    /// The text of a memory.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// assert_eq!(team.text(tea)?.as_deref(), Some("Ann prefers tea"));
    /// team.forget(tea)?;
    /// assert_eq!(team.text(tea)?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn text(&self, id: MemoryId) -> Result<Option<String>> {
        self.ask(|reader| reader.text(id))
    }

    /// What a memory by id or key carries beside its text, in any state; none for a memory without a payload, or one that
    /// is gone.
    ///
    /// ```
    /// use oubliette::memory::Payload;
    /// use oubliette::{Database, Draft};
    /// use serde_json::json;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("The gateway answered").key("call:7").payload(json!({"status": 200})))?;
    /// assert_eq!(team.payload("call:7")?, Some(Payload::Json(json!({"status": 200}))));
    /// assert!(team.payload("call:8").is_err());
    /// assert!(team.add(Draft::new("too long").payload(vec![0; (1 << 20) + 1])).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `Corrupted`, `Closed`.
    pub fn payload(&self, name: impl Into<Name>) -> Result<Option<Payload>> {
        let name = name.into();
        self.ask(|reader| reader.payload(name.as_str()))
    }

    /// The keys of a memory, sorted.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann prefers tea").key("b"))?;
    /// let tea = team.add(Draft::new("Ann prefers tea").key("a"))?.id;
    /// assert_eq!(team.keys_of(tea)?, ["a", "b"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn keys_of(&self, id: MemoryId) -> Result<Vec<String>> {
        self.ask(|reader| reader.keys_of(id))
    }

    /// The visible neighbours of a memory in its thread, or its session: at most `steps` before and after it.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let mut ids = Vec::new();
    /// for text in ["Shall we meet?", "Yes, at noon", "See you then"] {
    ///     ids.push(team.add(Draft::new(text).thread("t1"))?.id);
    /// }
    /// let around = team.around(ids[1], 5)?;
    /// assert_eq!((around.before.len(), around.after.len()), (1, 1));
    /// assert!(team.around(ids[1], 1_001).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for more than 1,000 steps.
    pub fn around(&self, id: MemoryId, steps: usize) -> Result<Around> {
        self.around_at(id, steps, &PointInTime::default())
    }

    /// A page of memories, by partition and creation.
    ///
    /// ```
    /// use oubliette::PageRequest;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// for text in ["Ann prefers tea", "Bob prefers coffee"] {
    ///     team.add(text)?;
    /// }
    /// let mut request = PageRequest { limit: 1, ..PageRequest::default() };
    /// let page = team.list(&request)?;
    /// request.cursor = page.next;
    /// assert_eq!(team.list(&request)?.items[0].text, "Bob prefers coffee");
    /// assert!(team.list(&PageRequest { limit: 0, ..PageRequest::default() }).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a limit outside 1 to 10,000 or a cursor of another listing.
    pub fn list(&self, request: &PageRequest) -> Result<Page<Memory>> {
        self.ask(|reader| reader.list(request))
    }

    /// As [`Namespace::list`], for a caller who can give on only the first memories of a page ([`Reader::list_given`]).
    pub(crate) fn list_given(
        &self,
        request: &PageRequest,
        given: impl Fn(&[Memory]) -> usize,
    ) -> Result<Page<Memory>> {
        self.ask(|reader| reader.list_given(request, &given))
    }

    /// All memories that have a key with one of these beginnings ([`Reader::keyed`]).
    pub(crate) fn keyed(&self, beginnings: &[&str]) -> Result<Keyed> {
        self.ask(|reader| reader.keyed(beginnings))
    }

    /// The memories that are sought ([`Reader::sought`]).
    pub(crate) fn sought(&self, sought: &Sought<'_>) -> Result<Keyed> {
        self.ask(|reader| reader.sought(sought))
    }

    /// The values of a metadata key, each with the number of visible memories that have it, the most frequent first. It
    /// reads every memory of the scope that the filter does not rule out by an index.
    ///
    /// ```
    /// use oubliette::memory::DistinctQuery;
    /// use oubliette::{Database, Draft};
    /// use serde_json::json;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// for (text, session) in [("Ann prefers tea", "s1"), ("Bob walks", "s1"), ("It rains", "s2")] {
    ///     team.add(Draft::new(text).metadata(json!({"session": session})))?;
    /// }
    /// let sessions = team.distinct("session")?;
    /// assert_eq!((sessions.values[0].value.clone(), sessions.values[0].count), (json!("s1"), 2));
    /// assert_eq!((sessions.values.len(), sessions.left_out), (2, 0));
    ///
    /// let one = team.distinct(DistinctQuery::from("session").limit(1))?;
    /// assert_eq!((one.values.len(), one.left_out), (1, 1));
    /// assert!(team.distinct("").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a key that is no path below `metadata`, and for a limit outside 1 to 10,000.
    pub fn distinct(&self, query: impl Into<DistinctQuery>) -> Result<DistinctValues> {
        let query = query.into();
        self.ask(|reader| reader.distinct(&query))
    }

    /// The visible snapshots of a series that were taken from one instant on and before another, by their time;
    /// those whose time can't be read are left out. With [`Scope::Any`] of all partitions.
    ///
    /// ```
    /// use oubliette::Scope;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.push_snapshot("12 facts", "2026-01-03T12:00:00Z".parse()?)?;
    /// team.push_snapshot("14 facts", "2026-01-04T12:00:00Z".parse()?)?;
    /// let from = Some("2026-01-04T00:00:00Z".parse()?);
    /// let later = team.list_snapshots(&Scope::Any, "profile", from, None)?;
    /// assert_eq!((later.len(), later[0].text.as_str()), (1, "14 facts"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn list_snapshots(
        &self,
        scope: &Scope,
        series: &str,
        from: Option<Time>,
        until: Option<Time>,
    ) -> Result<Vec<Memory>> {
        self.ask(|reader| reader.list_snapshots(scope, series, from, until))
    }

    /// A page of tombstones, by id.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// team.forget(tea)?;
    /// assert_eq!(team.tombstones(None, 10)?.items[0].id, tea);
    /// assert!(team.tombstones(None, 0).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid`, as for `list`.
    pub fn tombstones(&self, cursor: Option<&str>, limit: usize) -> Result<Page<Tombstone>> {
        self.ask(|reader| reader.tombstones(cursor, limit))
    }

    /// A page of messages as they came: one, those of an aggregate or a memory, or those of a time.
    ///
    /// ```
    /// use oubliette::memory::{AuthorKind, EventQuery};
    /// use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let message = Draft::new("Deploy of api done").kind(Kind::Message).author_kind(AuthorKind::Bot);
    /// team.add(message)?;
    /// assert_eq!(team.events(&EventQuery::default())?.items.len(), 1);
    /// assert!(team.events(&EventQuery { limit: 0, ..EventQuery::default() }).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid`, as for `list`.
    pub fn events(&self, query: &EventQuery) -> Result<Page<Event>> {
        self.ask(|reader| reader.events(query))
    }

    /// A page of families of repeated messages in numbers, by id.
    ///
    /// ```
    /// use oubliette::memory::AuthorKind;
    /// use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// for n in 1..=8 {
    ///     let text = format!("Deploy of api number {n} done");
    ///     team.add(Draft::new(text).kind(Kind::Message).author_kind(AuthorKind::Bot))?;
    /// }
    /// let page = team.aggregates(None, 10)?;
    /// assert_eq!(page.items.len(), 1);
    /// assert!(team.aggregates(None, 0).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid`, as for `list`.
    pub fn aggregates(&self, cursor: Option<&str>, limit: usize) -> Result<Page<Aggregate>> {
        self.ask(|reader| reader.aggregates(cursor, limit))
    }

    /// A family of repeated messages in numbers.
    ///
    /// ```
    /// use oubliette::memory::{AggregateId, AuthorKind};
    /// use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// for n in 1..=8 {
    ///     let text = format!("Deploy of api number {n} done");
    ///     team.add(Draft::new(text).kind(Kind::Message).author_kind(AuthorKind::Bot))?;
    /// }
    /// let first = team.aggregates(None, 1)?.items.remove(0);
    /// assert_eq!(team.aggregate(first.id)?, first);
    /// assert!(team.aggregate(AggregateId::from_bytes([0; 16])).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`.
    pub fn aggregate(&self, id: AggregateId) -> Result<Aggregate> {
        self.ask(|reader| reader.aggregate(id))
    }

    /// Names of the agents whose partitions the namespace has, sorted.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("The crawler ran").agent("crawler"))?;
    /// assert_eq!(team.agents()?, ["crawler"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn agents(&self) -> Result<Vec<String>> {
        self.ask(|reader| reader.agents())
    }

    /// The memories that one took the place of, by id.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let ghent = team.add("Ann lives in Ghent")?.id;
    /// let bruges = team.supersede(ghent, "Ann lives in Bruges")?.id;
    /// assert_eq!(team.replaces(bruges)?, [ghent]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn replaces(&self, id: MemoryId) -> Result<Vec<MemoryId>> {
        self.ask(|reader| reader.replaces(id))
    }

    /// The memories behind one by id that a live read sees, or those of all states, whatever has become of the indexes.
    pub(crate) fn ids_after(
        &self,
        after: Option<MemoryId>,
        all_states: bool,
        most: usize,
    ) -> Result<Vec<MemoryId>> {
        self.ask(|reader| reader.ids_after(after, all_states, most))
    }

    /// The state of an id; none for one that nothing is known of.
    ///
    /// ```
    /// use oubliette::{MemoryId, State};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// assert_eq!(team.state(tea)?, Some(State::Live));
    /// team.forget(tea)?;
    /// assert_eq!(team.state(tea)?, Some(State::Tombstoned));
    /// assert_eq!(team.state(MemoryId::from_bytes([0; 16]))?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn state(&self, id: MemoryId) -> Result<Option<State>> {
        self.ask(|reader| reader.state(id))
    }

    /// Whether a live read sees the memory with an id.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let ghent = team.add("Ann lives in Ghent")?.id;
    /// assert!(team.is_visible(ghent)?);
    /// team.supersede(ghent, "Ann lives in Bruges")?;
    /// assert!(!team.is_visible(ghent)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn is_visible(&self, id: MemoryId) -> Result<bool> {
        self.ask(|reader| reader.is_visible(id))
    }

    /// Of the memories that a live read sees the one that answers to a key.
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub(crate) fn visible_holder(&self, key: &str) -> Result<Option<MemoryId>> {
        self.ask(|reader| reader.visible_holder(key))
    }

    /// The runs of which something is left that can be taken back, by id. Those that can't be read are left out; `check` tells
    /// of them.
    ///
    /// ```
    /// use oubliette::WriteOptions;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let run = team.start_import()?;
    /// team.add_all(vec!["Ann prefers tea".into()], &WriteOptions { run: Some(run), ..WriteOptions::default() })?;
    /// assert_eq!(team.runs_left()?[0].id, run);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn runs_left(&self) -> Result<Vec<Run>> {
        self.ask(|reader| reader.runs_left())
    }

    /// What taking a run of maintenance back would still look at, in the order in which it was done: at most `most` rows of
    /// the journal, behind the row with the number `after`. Rows that can't be read are left out; `check` tells of them.
    ///
    /// ```
    /// use oubliette::maintain::{MaintainOptions, Pass};
    /// use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// for apps in [4, 7] {
    ///     team.add(Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile))?;
    /// }
    /// let report = team.maintain_with(&MaintainOptions::live().passes([Pass::Collapse]))?;
    /// let steps = team.steps_left(report.run.ok_or("nothing was done")?, None, 100)?;
    /// assert!(steps.iter().all(|step| step.can_be_undone()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn steps_left(&self, run: RunId, after: Option<u64>, most: usize) -> Result<Vec<JournalRow>> {
        self.ask(|reader| reader.steps_left(run, after, most))
    }

    /// The slice of a family that a message began; none where it began none.
    ///
    /// ```
    /// use oubliette::memory::{AuthorKind, EventQuery};
    /// use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let message = Draft::new("Deploy of api done").kind(Kind::Message).author_kind(AuthorKind::Bot);
    /// team.add(message)?;
    /// let event = team.events(&EventQuery::default())?.items.remove(0);
    /// assert!(team.family(event.id)?.is_some()); // It began one.
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn family(&self, event: EventId) -> Result<Option<Family>> {
        self.ask(|reader| reader.family(event))
    }

    /// The versions of a memory by id or key, and what the journal tells of them, oldest first.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").key("home"))?;
    /// team.add(Draft::new("Ann lives in Bruges").key("home"))?;
    /// let history = team.history("home")?;
    /// assert_eq!(history.versions.len(), 2);
    /// assert_eq!(team.text(history.versions[0].id)?.as_deref(), Some("Ann lives in Ghent"));
    /// assert!(team.history("work").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`.
    pub fn history(&self, name: impl Into<Name>) -> Result<History> {
        let name = name.into();
        self.ask(|reader| reader.history(name.as_str()))
    }

    /// The story of a memory by id, key or content: made by, merged from, replaced by, why it is gone.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let ghent = team.add(Draft::new("Ann lives in Ghent").key("home"))?.id;
    /// team.add(Draft::new("Ann lives in Bruges").key("home"))?;
    /// assert!(team.explain(ghent)?.replaced_by.is_some());
    /// assert!(team.explain("work").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` when nothing is known of it.
    pub fn explain(&self, name: impl Into<Name>) -> Result<Explanation> {
        let name = name.into();
        self.ask(|reader| reader.explain(name.as_str()))
    }
}

impl Namespace {
    /// Counters, sizes and health of the namespace. What came due is settled first, as by [`Database::stats`].
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// db.namespace("others")?.add("It rains")?;
    /// let team = db.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// assert_eq!(team.stats()?.memories.live, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn stats(&self) -> Result<Stats> {
        self.db.stats_in(Some(&self.name))
    }

    /// Every vector index of the namespace, as [`Database::index_stats`] tells those of all.
    ///
    /// ```
    /// use oubliette::{Database, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// assert!(team.index_stats()?.is_empty());
    /// team.add(Draft::new("Ann prefers tea").vector([0.6, 0.8]))?;
    /// assert_eq!(team.index_stats()?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn index_stats(&self) -> Result<Vec<IndexStats>> {
        self.read(|published, _| index_stats(published, Some(&self.name)))
    }

    /// The small document of `get_memory_stats`. What came due is settled first, as by [`Database::stats`].
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// assert_eq!(team.memory_stats()?.local.total, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn memory_stats(&self) -> Result<MemoryStats> {
        self.db.settle(Some(&self.name))?;
        let in_force = self.db.inner.in_force();
        self.read(|published, now| {
            let clock = self.db.inner.clock.now();
            let unsettled = self.db.unsettled(published, now, Some(&self.name))?;
            let policy = &in_force.policy.stats;
            let context = StatsContext { now, clock, file_bytes: 0, policy, unsettled: &unsettled };
            memory_stats(published, &self.name, &self.db.inner.secret, context)
        })
    }
}
