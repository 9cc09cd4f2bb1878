//! How a database is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::embedder::Embedder;
use crate::engine::clock::{BeforeTheEnd, Clock, SystemClock};
use crate::engine::database::Database;
use crate::engine::inner::{Inner, Opening};
use crate::engine::series::read_instructions;
use crate::error::{Error, Result};
use crate::limits::{DIM_MAX, within};
use crate::model::{Actor, IdSource, RandomIds, Span, random};
use crate::policy::Policy;
use crate::store::disk::{Disk, Folder};
use crate::store::rehearsal::Rehearsal;
use crate::store::{Durability, Options, Store};

/// Cache of the key-value store, unless the caller says otherwise.
const CACHE_BYTES: usize = 64 << 20;
/// Memory for images of partitions, unless the caller says otherwise: about 1.9 million vectors of 384 dimensions have
/// their graph in it. It is taken as it is needed.
pub(super) const BUDGET_BYTES: usize = 1 << 30;
/// Least cache that the key-value store works with.
const CACHE_BYTES_MIN: usize = 1 << 20;

/// Options of a database that is about to be opened.
///
/// ```
/// use oubliette::{Database, Durability};
/// let folder = tempfile::tempdir()?;
/// let db = Database::builder().durability(Durability::Fast).dimensions(384).open(folder.path().join("m.oub"))?;
/// assert_eq!(db.dimensions()?, Some(384));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct Builder {
    durability: Durability,
    cache_bytes: usize,
    budget_bytes: usize,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    secret: Option<[u8; 32]>,
    dimensions: Option<usize>,
    create: bool,
    read_only: bool,
    rehearsal: bool,
    shared: bool,
    wait: Option<Span>,
    paranoid: bool,
    policy: Option<Policy>,
    instructions: Option<PathBuf>,
    lease: Span,
    embedder: Option<Arc<dyn Embedder>>,
    /// Whether the embedder that ships with the crate is taken for a file without vectors.
    suggest_shipped: bool,
    actor: Actor,
    track: bool,
    disk: Arc<dyn Disk>,
}

impl Default for Builder {
    fn default() -> Self {
        Builder {
            durability: Durability::default(),
            cache_bytes: CACHE_BYTES,
            budget_bytes: BUDGET_BYTES,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds::default()),
            secret: None,
            dimensions: None,
            create: true,
            read_only: false,
            rehearsal: false,
            shared: false,
            wait: None,
            paranoid: false,
            policy: None,
            instructions: None,
            lease: Span::from_mins(1),
            embedder: None,
            suggest_shipped: false,
            actor: Actor::Caller,
            track: false,
            disk: Arc::new(Folder),
        }
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("durability", &self.durability).finish_non_exhaustive()
    }
}

impl Database {
    /// Opens the database at `path` with the options that [`Builder`] begins with, and makes it when there is none. With the
    /// feature `static-mini` texts are given vectors by the embedder that ships with the crate, unless a caller brings
    /// vectors of its own; without an embedder texts are found by their words.
    ///
    /// ```
    /// use oubliette::{Database, ErrorKind};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let db = Database::open(&path)?;
    /// db.namespace("team")?.add("Ann prefers tea")?;
    /// // While a handle has the file, no other opens it.
    /// assert_eq!(Database::open(&path).unwrap_err().kind(), ErrorKind::Locked);
    /// db.close()?;
    /// assert_eq!(Database::open(&path)?.stats()?.memories.live, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Builder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Builder::default().suggest_shipped().open(path)
    }

    /// Options to choose before opening.
    ///
    /// ```
    /// use oubliette::Database;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let db = Database::builder().dimensions(384).open(&path)?;
    /// assert_eq!(db.dimensions()?, Some(384));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    pub(super) fn suggest_shipped(mut self) -> Self {
        self.suggest_shipped = true;
        self
    }

    /// When a commit counts as done; [`Durability::Safe`] by default.
    ///
    /// ```
    /// use oubliette::{Database, Durability};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let db = Database::builder().durability(Durability::Batch).open(&path)?;
    /// db.namespace("team")?.add("Ann prefers tea")?;
    /// db.flush()?; // Until then a crash may take the write.
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Cache of the key-value store in bytes; 64 MiB by default, at least 1 MiB.
    ///
    /// ```
    /// use oubliette::Database;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// assert!(Database::builder().cache_bytes(1_000).open(&path).is_err());
    /// let db = Database::builder().cache_bytes(8 << 20).open(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Memory for images of partitions in bytes; 1 GiB by default. A partition that does not fit has no graph. Its one-bit codes
    /// are kept, a seventh of the memory, and the codes of candidates are read from the file.
    ///
    /// ```
    /// use oubliette::Database;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let db = Database::builder().memory_budget_bytes(64 << 20).open(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn memory_budget_bytes(mut self, bytes: usize) -> Self {
        self.budget_bytes = bytes;
        self
    }

    /// Where the time comes from; the machine's clock by default. The last instant of all stands for never, so the database reads
    /// it as the one before.
    ///
    /// ```
    /// use oubliette::Database;
    /// use oubliette::clock::ManualClock;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let clock = ManualClock::at("2026-01-01T00:00:00Z".parse()?);
    /// let db = Database::builder().clock(clock.clone()).open(&path)?;
    /// let team = db.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// assert_eq!(team.get(tea)?.unwrap().created_at.to_string(), "2026-01-01T00:00:00Z");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(BeforeTheEnd(clock));
        self
    }

    /// Where ids come from; random UUIDv7 by default.
    ///
    /// ```
    /// use oubliette::clock::{IdSource, RandomIds};
    /// use oubliette::{Database, Time};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// /// Ids for a test that repeats.
    /// struct Counted(std::sync::atomic::AtomicU8);
    /// impl IdSource for Counted {
    ///     fn next(&self, _now: Time) -> oubliette::Result<[u8; 16]> {
    ///         Ok([self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst); 16])
    ///     }
    /// }
    /// let db = Database::builder().ids(Counted(1.into())).open(&path)?;
    /// let id = db.namespace("team")?.add("Ann prefers tea")?.id;
    /// assert_eq!(id.as_bytes()[0], id.as_bytes()[15]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ids(mut self, ids: impl IdSource + 'static) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// Secret of the HMACs of a new file; random by default. For repeatable tests.
    ///
    /// ```
    /// use oubliette::Database;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let db = Database::builder().secret([7; 32]).open(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn secret(mut self, secret: [u8; 32]) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Dimensions of the vectors: 1 to 4,096. Without it the first vector decides.
    ///
    /// ```
    /// use oubliette::{Database, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let db = Database::builder().dimensions(2).open(&path)?;
    /// let team = db.namespace("team")?;
    /// team.add(Draft::new("Ann prefers tea").vector([0.6, 0.8]))?;
    /// assert!(team.add(Draft::new("Bob walks").vector([1.0, 0.0, 0.0])).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dimensions(mut self, dimensions: usize) -> Self {
        self.dimensions = Some(dimensions);
        self
    }

    /// Whether to make the file when there is none; true by default.
    ///
    /// ```
    /// use oubliette::{Database, ErrorKind};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let why = Database::builder().create(false).open(&path).unwrap_err();
    /// assert_eq!(why.kind(), ErrorKind::NotFound);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Only read. The file must exist. Beside a process that writes it works if that one is [`Builder::shared`].
    ///
    /// ```
    /// use oubliette::{Database, ErrorKind};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// Database::open(&path)?.close()?;
    /// let reader = Database::builder().read_only(true).open(&path)?;
    /// let why = reader.namespace("team")?.add("Ann prefers tea").unwrap_err();
    /// assert_eq!(why.kind(), ErrorKind::ReadOnly);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Only rehearse: the file is read and never written, and what the handle writes stays in memory and goes with the handle. So
    /// [`Namespace::forget_plan`](crate::Namespace::forget_plan) and the dry runs of other calls do their work on a file that can't be
    /// written. They need memory for the pages that the work would write. The file must exist, and nobody may write it meanwhile.
    ///
    /// ```
    /// use oubliette::{Database, Forget};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let db = Database::open(&path)?;
    /// db.namespace("team")?.add("Ann prefers tea")?;
    /// db.close()?;
    /// let rehearsal = Database::builder().rehearsal(true).open(&path)?;
    /// let team = rehearsal.namespace("team")?;
    /// let id = team.list(&Default::default())?.items[0].id;
    /// assert_eq!(team.forget_plan(Forget::names([id.to_string()]))?.live, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rehearsal(mut self, rehearsal: bool) -> Self {
        self.rehearsal = rehearsal;
        self
    }

    /// Let other processes read while this one writes. Every commit then takes two syncs, and
    /// [`Durability::Batch`] is refused. Off by default.
    ///
    /// ```
    /// use oubliette::{Database, Durability};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let writer = Database::builder().shared(true).open(&path)?;
    /// let reader = Database::builder().shared(true).read_only(true).open(&path)?;
    /// writer.namespace("team")?.add("Ann prefers tea")?;
    /// assert_eq!(reader.namespace("team")?.search("tea")?.hits.len(), 1);
    /// assert!(Database::builder().shared(true).durability(Durability::Batch).open(&path).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shared(mut self, shared: bool) -> Self {
        self.shared = shared;
        self
    }

    /// How long to wait for a file that another process has open, up to 36,525 days; not at all by default.
    ///
    /// ```
    /// use oubliette::{Database, ErrorKind};
    /// use std::time::Duration;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let db = Database::open(&path)?;
    /// let other = Database::builder().wait(Duration::from_millis(30));
    /// assert_eq!(other.open(&path).unwrap_err().kind(), ErrorKind::Locked);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait(mut self, wait: impl Into<Span>) -> Self {
        self.wait = Some(wait.into());
        self
    }

    /// Walk the whole file for damage before anything else. Takes about 1 s per GiB.
    ///
    /// ```
    /// use oubliette::Database;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// Database::open(&path)?.close()?;
    /// let db = Database::builder().paranoid(true).open(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn paranoid(mut self, paranoid: bool) -> Self {
        self.paranoid = paranoid;
        self
    }

    /// A policy in place of the stored one, for this handle.
    ///
    /// ```
    /// use oubliette::Database;
    /// use oubliette::policy::{Policy, Syntax};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let policy = Policy::parse("sweeper.stages = [\"limbo\", \"collapse\"]", Syntax::Toml)?;
    /// let db = Database::builder().policy(policy.clone()).open(&path)?;
    /// assert_eq!(db.policy().0, policy);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// A file whose text, trimmed, takes the place of the policy's instructions for this handle: UTF-8, at
    /// most 1 MiB. An empty file gives empty instructions; where there is no file, the policy's stand.
    ///
    /// ```
    /// use oubliette::Database;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let file = path.with_extension("txt");
    /// std::fs::write(&file, "Keep it short.\n")?;
    /// let db = Database::builder().instructions_file(&file).open(&path)?;
    /// assert_eq!(db.instructions(), "Keep it short.");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn instructions_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.instructions = Some(path.into());
        self
    }

    /// How long a [`Snapshot`](crate::Snapshot) may be held, up to 36,525 days; 60 s by default. Past it the space that it pins is
    /// given back, and its reads fail with `SnapshotExpired`.
    ///
    /// ```
    /// use oubliette::clock::ManualClock;
    /// use oubliette::{Database, ErrorKind};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let clock = ManualClock::at("2026-01-01T00:00:00Z".parse()?);
    /// let db = Database::builder().clock(clock.clone()).lease("10s".parse::<oubliette::Span>()?).open(&path)?;
    /// let team = db.snapshot()?.namespace("team")?;
    /// assert!(team.search("tea").is_ok());
    /// clock.advance("11s".parse()?);
    /// assert_eq!(team.search("tea").unwrap_err().kind(), ErrorKind::SnapshotExpired);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lease(mut self, lease: impl Into<Span>) -> Self {
        self.lease = lease.into();
        self
    }

    /// Gives texts and queries their vectors ([`Database::use_embedder`]).
    ///
    /// ```
    /// use oubliette::Database;
    /// use oubliette::embed::HashEmbedder;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let db = Database::builder().embedder(HashEmbedder::new()).open(&path)?;
    /// let team = db.namespace("team")?;
    /// team.add("Ann lives in Ghent")?;
    /// assert!(team.search("where does Ann live?")?.hits[0].signals.vector.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn embedder(mut self, embedder: impl Embedder + 'static) -> Self {
        self.embedder = Some(Arc::new(embedder));
        self
    }

    /// Who the journal says it was; the caller by default.
    ///
    /// ```
    /// use oubliette::Database;
    /// use oubliette::memory::Actor;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let db = Database::builder().actor(Actor::Tool).open(&path)?;
    /// let team = db.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// assert_eq!(team.history(tea)?.events[0].actor, Actor::Tool);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn actor(mut self, actor: Actor) -> Self {
        self.actor = actor;
        self
    }

    /// Whether searches note which memories they find, for statistics of use, where [`Query::track`](crate::Query::track)
    /// does not say; false by default. The next writes count what was noted, each a few memories,
    /// and [`Database::flush_access`] counts all.
    ///
    /// ```
    /// use oubliette::Database;
    /// # let folder = tempfile::tempdir()?;
    /// let db = Database::builder().track(true).open(folder.path().join("m.oub"))?;
    /// let team = db.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// team.search("tea")?;
    /// team.add("It rains")?;
    /// assert_eq!(team.get(tea)?.unwrap().retrieval_count, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn track(mut self, track: bool) -> Self {
        self.track = track;
        self
    }

    /// Another place for files than the file system, for tests of faults.
    #[cfg(feature = "faults")]
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = disk;
        self
    }

    /// Opens the database.
    ///
    /// ```
    /// use oubliette::{Database, Durability, ErrorKind};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// std::fs::write(path.with_extension("txt"), "no database")?;
    /// let why = Database::builder().open(path.with_extension("txt")).unwrap_err();
    /// assert_eq!(why.kind(), ErrorKind::NotADatabase);
    /// let db = Database::builder().durability(Durability::Fast).open(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - `Locked` when another process has it open, after the waiting time;
    /// - `NotADatabase` for a folder, an empty file or a file of another sort, `Format` for another version;
    /// - `NotFound` when there is none and it is not to be made;
    /// - `Invalid` when the options contradict each other or the file's dimensions, and for a file of instructions that is
    ///   too long or not UTF-8;
    /// - `OtherSpace` when the file holds vectors of another space than that of the embedder;
    /// - `Corrupted`, `Io`.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Database> {
        self.check()?;
        let instructions = self.instructions.as_deref().map(read_instructions).transpose()?.flatten();
        let secret = self.secret.map_or_else(random, Ok)?;
        let options = Options {
            path: path.as_ref().to_owned(),
            cache_bytes: self.cache_bytes,
            shared: self.shared,
            read_only: self.read_only,
            create: self.create && !self.rehearsal,
            paranoid: self.paranoid,
            secret,
            opener: random()?,
        };
        let disk: Arc<dyn Disk> = match self.rehearsal {
            true => Arc::new(Rehearsal(self.disk)),
            false => self.disk,
        };
        let store = open_waiting(&disk, &options, self.wait)?;
        let opening = Opening {
            store,
            durability: self.durability,
            budget_bytes: self.budget_bytes,
            clock: self.clock,
            ids: self.ids,
            policy: self.policy,
            instructions,
            lease: self.lease,
            actor: self.actor,
            read_only: self.read_only,
            track: self.track,
        };
        let database = Database::from_inner(Inner::open(opening)?);
        database.resume_drops()?;
        database.fix_dimensions(self.dimensions)?;
        match self.embedder {
            Some(embedder) => database.use_shared_embedder(embedder, false)?,
            None => database.attach_shipped(self.suggest_shipped)?,
        }
        Ok(database)
    }

    fn check(&self) -> Result<()> {
        self.dimensions.map_or(Ok(()), |dim| within("dimensions", dim, 1..=DIM_MAX))?;
        if self.cache_bytes < CACHE_BYTES_MIN {
            return Err(Error::invalid(
                "cache_bytes",
                format!("must be at least {CACHE_BYTES_MIN}"),
                self.cache_bytes,
            ));
        }
        self.wait.map_or(Ok(()), |wait| wait.check("wait"))?;
        self.lease.check("lease")?;
        if self.shared && self.durability == Durability::Batch {
            return Err(Error::invalid("durability", "must not be batch for a shared file", "batch"));
        }
        self.policy.as_ref().map_or(Ok(()), Policy::validate)
    }
}

/// Opens, and tries again while another process has the file, until the waiting time is over.
fn open_waiting(disk: &Arc<dyn Disk>, options: &Options, wait: Option<Span>) -> Result<Store> {
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
    let deadline = std::time::Instant::now() + wait.unwrap_or_default().into();
    loop {
        match Store::open(Arc::clone(disk), options.clone()) {
            Err(Error::Locked { .. }) if std::time::Instant::now() < deadline => std::thread::sleep(PAUSE),
            other => return other,
        }
    }
}
