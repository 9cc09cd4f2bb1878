//! The handle that applications hold.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use crate::engine::inner::Inner;
use crate::engine::queue::{ONE, Weight};
use crate::engine::session::{Session, Work};
use crate::error::{Error, Result};
use crate::limits::FORMAT_VERSION;
use crate::model::{Periods, Span, Time};
use crate::policy::{Policy, PolicyVersion, Syntax};
use crate::store::control::SpaceRow;
use crate::store::{Durability, NsId, Rows, SpaceId};

/// An open database: cheap to clone, safe to share between threads, blocking.
///
/// ```
/// use oubliette::{Database, Decision, Draft, Query};
/// let folder = tempfile::tempdir()?;
/// let db = Database::open(folder.path().join("memory.oub"))?;
/// let team = db.namespace("team")?;
/// let tea = team.add(Draft::new("Ann prefers tea").key("ann:drink").vector([0.6, 0.8]))?;
/// assert_eq!(tea.decision, Decision::Stored);
/// // The same content again is one more holder of the memory, not one more memory.
/// let again = team.add(Draft::new("Ann prefers tea").vector([0.6, 0.8]))?;
/// assert_eq!((again.decision, again.id), (Decision::Reinforced, tea.id));
/// let found = team.search(Query::vector([0.8, 0.6]))?;
/// assert_eq!(found.hits[0].id, tea.id);
/// db.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Database {
    pub(super) inner: Arc<Inner>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Database {
    pub(super) fn from_inner(inner: Arc<Inner>) -> Self {
        Database { inner }
    }

    /// The file.
    ///
    /// ```
    /// use oubliette::Database;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// assert_eq!(Database::open(&path)?.path(), path);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn path(&self) -> &Path {
        self.inner.store.path()
    }

    /// Whether another file has taken the name of the one that is open, or the file has been deleted. Writes are refused then as `Unavailable`;
    /// a handle that is opened now finds what has the name. False for a file that was moved and whose name is free, and where the system does not
    /// tell files apart. Only Linux tells of a deletion.
    ///
    /// ```
    /// use oubliette::{Database, ErrorKind};
    /// # let folder = tempfile::tempdir()?;
    /// # let [path, copy] = ["m.oub", "copy.oub"].map(|name| folder.path().join(name));
    /// let db = Database::open(&path)?;
    /// db.backup(&copy)?;
    /// assert!(!db.is_replaced()?);
    /// # #[cfg(unix)] {
    /// std::fs::rename(&copy, &path)?;
    /// assert!(db.is_replaced()?);
    /// assert_eq!(db.namespace("team")?.add("It rains").unwrap_err().kind(), ErrorKind::Unavailable);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Io` when the name can't be looked at.
    pub fn is_replaced(&self) -> Result<bool> {
        self.inner.store.is_replaced()
    }

    /// Version of the file format.
    ///
    /// ```
    /// use oubliette::Database;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// assert_eq!(Database::open(&path)?.format(), oubliette::limits::FORMAT_VERSION);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn format(&self) -> u32 {
        FORMAT_VERSION
    }

    /// Dimensions of the vectors; none before the first.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// assert_eq!(db.dimensions()?, None);
    /// team.add(Draft::new("Ann prefers tea").vector([0.6, 0.8]))?;
    /// assert_eq!(db.dimensions()?, Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn dimensions(&self) -> Result<Option<usize>> {
        self.read(|published, _| {
            let rows = published.snapshot();
            let space = rows.space(SpaceId(rows.clock()?.space))?;
            Ok(space.map(|space| space.dim as usize))
        })
    }

    /// By how much the clock is behind the last commit; zero where it is not. Transaction time never runs backwards, so a write counts
    /// as of the last commit until the clock is past it.
    ///
    /// ```
    /// use oubliette::clock::ManualClock;
    /// use oubliette::{Database, Span};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let clock = ManualClock::at("2026-01-02T00:00:00Z".parse()?);
    /// let db = Database::builder().clock(clock.clone()).open(&path)?;
    /// db.namespace("team")?.add("Ann prefers tea")?;
    /// assert_eq!(db.behind()?, Span::ZERO);
    /// clock.set("2026-01-01T23:00:00Z".parse()?);
    /// assert_eq!(db.behind()?, Span::from_hours(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn behind(&self) -> Result<Span> {
        let now = self.inner.clock.now();
        self.read(|published, _| {
            Ok(Span::from_millis(published.committed_at().as_millis().saturating_sub(now.as_millis())))
        })
    }

    /// When the file was last written, as its writes count: an instant ahead of the clock where the clock was ahead then.
    ///
    /// ```
    /// use oubliette::clock::ManualClock;
    /// use oubliette::Database;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let clock = ManualClock::at("2026-01-02T00:00:00Z".parse()?);
    /// let db = Database::builder().clock(clock.clone()).open(&path)?;
    /// db.namespace("team")?.add("Ann prefers tea")?;
    /// clock.set("2026-01-01T23:00:00Z".parse()?);
    /// assert_eq!(db.last_write()?, "2026-01-02T00:00:00Z".parse()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn last_write(&self) -> Result<Time> {
        self.read(|published, _| Ok(published.committed_at()))
    }

    /// How many commits of this handle and its clones have changed anything. A write that found nothing to do is none.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// let before = db.writes();
    /// team.forget("nobody")?;
    /// assert_eq!(db.writes(), before);
    /// team.add("Bob prefers coffee")?;
    /// assert_eq!(db.writes(), before + 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn writes(&self) -> u64 {
        self.inner.writes.load(Ordering::Relaxed)
    }

    pub(super) fn fix_dimensions(&self, dimensions: Option<usize>) -> Result<()> {
        let Some(dim) = dimensions else { return Ok(()) };
        match self.dimensions()? {
            Some(found) if found == dim => Ok(()),
            Some(found) => Err(Error::invalid("dimensions", format!("must be {found}, as in the file"), dim)),
            None => {
                self.inner.run_alone(|session| session.ledger.open_space(SpaceRow::CALLER, dim).map(|_| ()))
            }
        }
    }

    /// Ends the handle: accesses that searches have noted are counted, what is unsynced is synced, the file is let go. Other clones then answer `Closed`.
    /// If more than the share `storage.shrink` of the file is free, the file becomes shorter.
    ///
    /// ```
    /// use oubliette::ErrorKind;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// db.close()?;
    /// assert_eq!(team.add("Ann prefers tea").unwrap_err().kind(), ErrorKind::Closed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Retry` or `Unavailable` when the last sync failed; `Io` where the file was not closed in order. Then all that was written is
    /// there, and the next opening looks through the file.
    pub fn close(self) -> Result<()> {
        self.inner.check_outside()?;
        // What other handles of the file have noted is counted, whichever of them ends it.
        let counted = self.writer().flush_access_at_end();
        let closed = self.inner.queue.alone(|| {
            if self.inner.closed.swap(true, Ordering::SeqCst) {
                return Ok(());
            }
            let flushed = match self.inner.durability {
                Durability::Batch if self.inner.current.is_some() => self.inner.store.flush().map(|_| ()),
                _ => Ok(()),
            };
            let most_free = self.inner.in_force().policy.storage.shrink;
            flushed.and(self.inner.store.close_and_shrink(most_free))
        });
        closed.and(counted)
    }

    /// Queues a unit and waits for its answer; what it leaves without a vector gets one after its commit.
    pub(super) fn submit<R: Send + 'static>(
        &self,
        weight: Weight,
        unit: impl FnMut(&mut Session<'_, '_, '_>) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.submit_embedded(weight, true, unit)
    }

    /// As [`Database::submit`], of a unit whose texts were given to the embedder: one that did not work is not asked again.
    pub(super) fn submit_embedded<R: Send + 'static>(
        &self,
        weight: Weight,
        works: bool,
        mut unit: impl FnMut(&mut Session<'_, '_, '_>) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.inner.check_open()?;
        self.inner.called();
        let value = Arc::new(Mutex::new(None));
        let answer = Arc::clone(&value);
        let actor = self.inner.actor;
        let work: Work = Box::new(move |session| {
            // Units of several handles share a transaction.
            session.actor = actor;
            let value = unit(session)?;
            *answer.lock() = Some((value, std::mem::take(&mut session.ledger.waiting)));
            Ok(())
        });
        self.inner.queue.submit(&self.inner, work, weight)?;
        self.relieve(weight.rows);
        let (value, waiting) = value.lock().take().ok_or(Error::Closed)?;
        if works {
            self.embed_waiting(waiting);
        }
        Ok(value)
    }

    /// The policy in force, and its version.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// let (policy, version) = db.policy();
    /// assert_eq!((policy, version.number), (oubliette::policy::Policy::default(), 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn policy(&self) -> (Policy, PolicyVersion) {
        self.inner.catch_up();
        let in_force = self.inner.in_force();
        let version =
            PolicyVersion { number: in_force.number, hash: crate::policy::PolicyHash(in_force.hash) };
        (in_force.policy.clone(), version)
    }

    /// Stores another policy document, which is in force from this commit on. Past queries that it no longer keeps go with
    /// this commit (`gc.keep_queries`, `gc.query_log`).
    ///
    /// ```
    /// use oubliette::policy::Syntax;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// let version = db.set_policy("undo.horizon = \"7d\"", Syntax::Toml)?;
    /// assert_eq!(version.number, 1);
    /// let why = db.set_policy("undo.horizont = \"7d\"", Syntax::Toml).unwrap_err();
    /// assert!(why.to_string().contains("undo.horizont"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Policy` naming the key of the document that is refused; the stored one stays.
    pub fn set_policy(&self, text: &str, syntax: Syntax) -> Result<PolicyVersion> {
        let policy = Policy::parse(text, syntax)?;
        // A stored document must load on a machine that does not know its zone. Such a machine stores no new one.
        Periods::new(&policy.snapshot.zone, policy.snapshot.period).map_err(|why| match why {
            Error::Invalid { why, value, .. } => {
                Error::Policy { place: "snapshot.zone".to_owned(), why: format!("{why} (got {value})") }
            }
            why => why,
        })?;
        let (text, hash) = (policy.to_toml()?, policy.hash());
        let kept = if policy.gc.keep_queries { policy.gc.query_log } else { 0 };
        let number = self.submit(ONE, move |session| {
            let number = session.ledger.clock.policy + 1;
            session.ledger.clock.policy = number;
            session.ledger.tx.put_policy(number, &text)?;
            for (_, row) in session.ledger.tx.namespaces()? {
                session.ledger.trim_queries(NsId(row.number), kept)?;
            }
            Ok(number)
        })?;
        Ok(PolicyVersion { number, hash })
    }

    /// Makes every commit so far durable; needed with [`Durability::Batch`] alone.
    ///
    /// ```
    /// use oubliette::{Database, Durability};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let db = Database::builder().durability(Durability::Batch).open(&path)?;
    /// db.namespace("team")?.add("Ann prefers tea")?;
    /// db.flush()?;
    /// db.clone().close()?;
    /// assert!(db.flush().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Retry`, `Unavailable`.
    pub fn flush(&self) -> Result<()> {
        self.inner.check_open()?;
        self.inner.sync()
    }
}
