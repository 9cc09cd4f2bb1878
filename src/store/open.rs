//! Creating, opening, writing, and opening again after a failure.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use redb::{ConcurrencyMode, Database, DatabaseError, ReadOnlyDatabase, ReadTransaction, ReadableDatabase};

use crate::error::{Error, Result};
use crate::limits::{FORMAT_VERSION, NORMALIZER};
use crate::store::Durability;
use crate::store::control::{Clock, Identity, Nonce, SizeRow};
use crate::store::disk::{Bytes, Disk, FileId, Medium, OpenFile};
use crate::store::draft::{
    clear_claim, clear_drafts, draft_path, drafts_for, is_claim, is_overtaken, publish,
};
use crate::store::recover::Unsure;
use crate::store::rows::Rows;
use crate::store::tables::Table;
use crate::store::tx::{Snapshot, Staged, WriteTx, fenced};

/// First bytes of a redb file.
const MAGIC: &[u8; 9] = b"redb\x1A\x0A\xA9\x0D\x0A";
/// Name of redb in errors that belong to no table.
pub(super) const FILE: &str = "file";

/// How to open.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The file.
    pub(crate) path: PathBuf,
    /// Cache of redb in bytes.
    pub(crate) cache_bytes: usize,
    /// Let other processes read while this one writes.
    pub(crate) shared: bool,
    /// Only read.
    pub(crate) read_only: bool,
    /// Make the file when there is none.
    pub(crate) create: bool,
    /// Walk the whole file for damage first.
    pub(crate) paranoid: bool,
    /// Secret of a new file.
    pub(crate) secret: [u8; 32],
    /// Random bytes of this opening, which mark its commits.
    pub(crate) opener: [u8; 8],
}

/// The file as it is open.
pub(super) enum Handle {
    Write(Database),
    Read(ReadOnlyDatabase),
    /// The file could not be opened again after a failure.
    Lost,
}

/// The open file.
pub(crate) struct Store {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) options: Options,
    pub(super) handle: RwLock<Option<Handle>>,
    /// Which file the handle has open.
    pub(super) id: Mutex<Option<FileId>>,
    /// How often the handle was replaced; see [`Store::epoch`].
    pub(super) epoch: AtomicU64,
    /// Numbers the attempts to commit.
    pub(super) attempts: AtomicU64,
    /// The mark of the last commit that this handle has made or found.
    pub(super) last: Mutex<Nonce>,
    /// The row `identity` as it was found first; none before.
    identity: OnceLock<Identity>,
    /// One writer at a time; compaction takes the same lock.
    pub(super) writer: Mutex<()>,
    /// The file may be under its name only until the power fails: no commit counts before the folder is synced.
    pub(super) name_unsynced: AtomicBool,
}

/// What a write transaction gave back.
pub(crate) struct Written<R> {
    /// What the closure returned.
    pub(crate) value: R,
    /// The blocks that changed of what readers keep images of.
    pub(crate) staged: Staged,
    /// Bytes of keys and values that came, less those that went.
    pub(super) grown: i64,
}

/// A write transaction that did not end well.
pub(super) struct Failed<R> {
    why: Error,
    /// What it wrote, when only the commit itself failed: the file may hold it.
    unsure: Option<Box<Unsure<R>>>,
}

impl<R> From<Error> for Failed<R> {
    fn from(why: Error) -> Self {
        Failed { why, unsure: None }
    }
}

impl Store {
    /// Opens the file, or makes it when there is none and the options say so.
    ///
    /// # Errors
    /// `Locked`, `NotADatabase`, `Format`, `Corrupted`, `NotFound`, `Io`.
    pub(crate) fn open(disk: Arc<dyn Disk>, options: Options) -> Result<Self> {
        // A link may be led elsewhere at any time, and a file that takes the place of a link is not the one behind it.
        let path = disk.resolve(&options.path).map_err(|why| io("find", &options.path, why))?;
        let options = Options { path, ..options };
        let exists = disk.exists(&options.path).map_err(|why| io("open", &options.path, why))?;
        if !exists || is_claim(disk.as_ref(), &options.path)? {
            if !options.create || options.read_only {
                return Err(Error::NotFound { what: "database", name: options.path.display().to_string() });
            }
            clear_claim(disk.as_ref(), &options.path)?;
            create(disk.as_ref(), &options)?;
        }
        let (handle, id) = open_handle(disk.as_ref(), &options)?;
        let name_unsynced = AtomicBool::new(!options.read_only);
        let store = Store {
            disk,
            options,
            handle: RwLock::new(Some(handle)),
            id: Mutex::new(id),
            epoch: AtomicU64::new(0),
            attempts: AtomicU64::new(0),
            last: Mutex::new(Nonce::default()),
            identity: OnceLock::new(),
            writer: Mutex::new(()),
            name_unsynced,
        };
        let snapshot = store.snapshot()?;
        store.check_format(&snapshot)?;
        *store.last.lock() = snapshot.clock()?.nonce;
        drop(snapshot);
        if !store.options.read_only
            && let Err(why) = clear_drafts(store.disk.as_ref(), store.path())
        {
            // The database itself is well. `compact`, which promises that nothing is left, insists.
            tracing::warn!(%why, "what a killed process left beside the file could not be removed");
        }
        // Whoever made the file may have been stopped before it could sync its name.
        store.sync_name()?;
        Ok(store)
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.options.path
    }

    /// Length of the file in bytes.
    pub(crate) fn file_bytes(&self) -> Result<u64> {
        self.disk.len(&self.options.path).map_err(|why| io("measure", &self.options.path, why))
    }

    /// The bytes of the file as they stand on the disk, and those of the drafts for it: each with its path.
    pub(crate) fn bytes(&self) -> Result<Vec<(PathBuf, Bytes)>> {
        let paths = [self.options.path.clone()].into_iter();
        let opened = paths.chain(drafts_for(self.disk.as_ref(), self.path())?).map(|path| {
            let file = self.disk.open(&path, false).map_err(|why| io("open", &path, why))?;
            Ok((path, Bytes::new(file.backend)))
        });
        opened.collect()
    }

    /// Refuses a file of another program, of another format or of another normalizer, and one that is not the database that
    /// was opened first.
    pub(super) fn check_format(&self, snapshot: &Snapshot) -> Result<()> {
        let not_ours =
            |why: &str| Error::NotADatabase { path: self.options.path.clone(), why: why.to_owned() };
        let identity = match snapshot.identity() {
            Ok(Some(identity)) => identity,
            Ok(None) => return Err(not_ours("a redb file without an identity")),
            Err(Error::Corrupted { why, .. }) if why.contains("does not exist") => {
                return Err(not_ours("a redb file of another program"));
            }
            Err(other) => return Err(other),
        };
        if identity.format != FORMAT_VERSION {
            return Err(Error::Format { found: identity.format, expected: FORMAT_VERSION });
        }
        if identity.normalizer != NORMALIZER {
            return Err(not_ours(&format!(
                "fingerprints of the normalizer {}, not {NORMALIZER}",
                identity.normalizer
            )));
        }
        if self.identity.get_or_init(|| identity.clone()) != &identity {
            return Err(not_ours("another database has taken the name of the one that was open"));
        }
        Ok(())
    }

    /// The store as of the last commit.
    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        let guard = self.handle.read_recursive();
        let txn = guard.as_ref().ok_or(Error::Closed)?.begin_read()?;
        Ok(Snapshot::new(txn, self.epoch()))
    }

    /// Runs `unit` in a write transaction and commits it, or leaves no trace.
    ///
    /// # Errors
    /// Those of `unit`; `Retry` when the storage failed and the handle has recovered; `Unavailable` when it could
    /// not; `ReadOnly`, `Closed`.
    pub(crate) fn write<R>(
        &self,
        durability: Durability,
        unit: impl FnOnce(&mut WriteTx<'_>) -> Result<R>,
    ) -> Result<Written<R>> {
        let _one = self.writer.lock();
        self.write_locked(durability, unit)
    }

    /// Makes the name of the file durable, where that is still to do.
    pub(super) fn sync_name(&self) -> Result<()> {
        if self.name_unsynced.load(Ordering::SeqCst) {
            let path = &self.options.path;
            self.disk.sync_folder(path).map_err(|why| io("sync the folder of", path, why))?;
            self.name_unsynced.store(false, Ordering::SeqCst);
        }
        Ok(())
    }

    /// [`Store::write`] for whoever holds the writer's lock.
    pub(super) fn write_locked<R>(
        &self,
        durability: Durability,
        unit: impl FnOnce(&mut WriteTx<'_>) -> Result<R>,
    ) -> Result<Written<R>> {
        self.recover_locked()?;
        self.sync_name()?;
        let nonce = self.next_nonce();
        // A commit without a sync is no commit for the processes that read beside this one.
        let durability = match durability {
            Durability::Batch if self.options.shared => Durability::Fast,
            other => other,
        };
        let result = {
            let guard = self.handle.read();
            match guard.as_ref() {
                Some(Handle::Write(db)) => attempt(db, durability, (nonce, self.epoch()), unit),
                Some(Handle::Read(_)) => return Err(Error::ReadOnly),
                Some(Handle::Lost) => return Err(lost()),
                None => return Err(Error::Closed),
            }
        };
        match result {
            Ok((written, clock)) => {
                *self.last.lock() = clock.nonce;
                Ok(written)
            }
            // However a commit has ended, by a panic too: the file says whether it counts.
            Err(Failed { why, unsure }) if unsure.is_some() || matches!(why, Error::Retry { .. }) => {
                self.settle(why, unsure.map(|unsure| *unsure))
            }
            Err(Failed { why, .. }) => Err(why),
        }
    }

    /// Puts an open copy of the file in place of the handle; the caller holds the writer's lock.
    pub(super) fn replace(&self, database: Database, id: Option<FileId>) {
        let mut guard = self.handle.write();
        self.epoch.fetch_add(1, Ordering::SeqCst);
        *self.id.lock() = id;
        let old = guard.replace(Handle::Write(database));
        drop(guard);
        let_go(old);
    }

    /// Makes every commit so far durable.
    pub(crate) fn flush(&self) -> Result<()> {
        self.write(Durability::Safe, |_| Ok(())).map(|_| ())
    }

    /// Lets go of the file. Snapshots that are still held fail from now on.
    pub(crate) fn close(&self) -> Result<()> {
        let _one = self.writer.lock();
        match self.handle.write().take() {
            Some(Handle::Write(db)) => fenced(FILE, &[], || db.close().map_err(closing)),
            Some(Handle::Read(db)) => fenced(FILE, &[], || db.close().map_err(closing)),
            Some(Handle::Lost) | None => Ok(()),
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let_go(self.handle.get_mut().take());
    }
}

impl Handle {
    /// Begins to read the last commit.
    pub(super) fn begin_read(&self) -> Result<ReadTransaction> {
        match self {
            Handle::Write(db) => fenced(FILE, &[], || db.begin_read()),
            Handle::Read(db) => fenced(FILE, &[], || db.begin_read()),
            Handle::Lost => Err(lost()),
        }
    }
}

/// Drops a handle. redb works on the file once more then, and ends in a panic where that is damaged.
pub(super) fn let_go(handle: Option<Handle>) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(handle))).is_err() {
        tracing::warn!("the key-value store panicked while it let go of a damaged file");
    }
}

fn lost() -> Error {
    Error::Unavailable { why: "the file could not be opened again after a failure".to_owned() }
}

pub(super) fn closing(why: DatabaseError) -> redb::StorageError {
    match why {
        DatabaseError::Storage(why) => why,
        other => redb::StorageError::Corrupted(other.to_string()),
    }
}

pub(super) fn transact<R>(
    db: &Database,
    durability: Durability,
    unit: impl FnOnce(&mut WriteTx<'_>) -> Result<R>,
) -> Result<Written<R>> {
    let done = attempt(db, durability, (Nonce::default(), 0), unit);
    done.map(|(written, _)| written).map_err(|failed| failed.why)
}

/// Runs `unit` in a transaction and commits it with a mark, at an epoch of the store. Gives the clock row of the commit too.
fn attempt<R>(
    db: &Database,
    durability: Durability,
    mark: (Nonce, u64),
    unit: impl FnOnce(&mut WriteTx<'_>) -> Result<R>,
) -> Result<(Written<R>, Clock), Failed<R>> {
    let mut txn = fenced(FILE, &[], || db.begin_write())?;
    let level = match durability {
        Durability::Safe | Durability::Fast => redb::Durability::Immediate,
        Durability::Batch => redb::Durability::None,
    };
    fenced(FILE, &[], || txn.set_durability(level))?;
    txn.set_two_phase_commit(durability == Durability::Safe);
    txn.set_quick_repair(durability == Durability::Safe);
    let result = {
        let mut tx = WriteTx::new(&txn, mark);
        unit(&mut tx).and_then(|value| {
            let staged = tx.flush()?;
            let grown = tx.keep_size()?;
            Ok((Written { value, staged, grown }, tx.clock()?))
        })
    };
    match result {
        Ok((written, clock)) => match fenced(FILE, &[], || txn.commit()) {
            Ok(()) => Ok((written, clock)),
            Err(why) => Err(Failed { why, unsure: Some(Box::new(Unsure { written, clock })) }),
        },
        Err(why) => {
            // A failing disk can fail the abort as well; the transaction is gone either way, and the handle is
            // opened again where the storage was to blame.
            let aborted = fenced(FILE, &[], || txn.abort());
            Err(match aborted {
                Ok(()) => why.into(),
                Err(fault) => fault.into(),
            })
        }
    }
}

/// An error of the file system.
pub(super) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Io { action, path: path.to_owned(), source }
}

/// Makes a whole database under a name of its own, then gives it that of `path`: whoever is second finds the first one's.
fn create(disk: &dyn Disk, options: &Options) -> Result<()> {
    let draft = draft_path(&options.path, &options.opener);
    let made = disk.create(&draft).map_err(|why| io("create", &draft, why)).and_then(|file| {
        let database = start(file.backend, options, &draft)?;
        initialise(&database, options.secret)?;
        fenced(FILE, &[], || database.close().map_err(closing))
    });
    let path = &options.path;
    let named = made.and_then(|()| publish(disk, &draft, path));
    let named = named.or_else(|why| if is_overtaken(disk, path, &why) { Ok(()) } else { Err(why) });
    // Where the draft has failed its name goes, and the first failure is the one to tell.
    let removed = match disk.remove(&draft) {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(|why| io("remove", &draft, why)),
    };
    named.and(removed)
}

fn initialise(database: &Database, secret: [u8; 32]) -> Result<()> {
    transact(database, Durability::Safe, |tx| {
        for table in Table::ALL {
            tx.touch(*table)?;
        }
        tx.put_size(&SizeRow::new())?;
        tx.put_identity(&Identity { format: FORMAT_VERSION, normalizer: NORMALIZER.to_owned(), secret })?;
        tx.put_clock(&Clock { next_ns: 1, next_space: 1, next_seq: 1, at_ms: i64::MIN, ..Clock::default() })
    })
    .map(|_| ())
}

fn builder(options: &Options) -> redb::Builder {
    let mut builder = redb::Builder::new();
    builder.set_cache_size(options.cache_bytes);
    builder.set_check_integrity_on_open(options.paranoid);
    let shared = options.shared || options.read_only;
    builder.set_concurrency_mode(if shared {
        ConcurrencyMode::SingleWriter
    } else {
        ConcurrencyMode::ExclusiveWriter
    });
    builder
}

/// Opens a file that this process has just made, or knows to be whole.
pub(super) fn start(
    backend: Box<dyn redb::StorageBackend>,
    options: &Options,
    path: &Path,
) -> Result<Database> {
    opened(path, || builder(options).create_with_backend(Medium(backend)))
}

/// How often the file may be replaced while it is being opened.
const REPLACED_MAX: usize = 16;

/// Opens and locks the file that has the name of the options, and says which it is.
///
/// Between the opening and the lock another process may have put a compacted copy in its place: the lock is then that of a
/// file without a name, in which every commit would be lost. So the two are compared once the lock is there.
pub(super) fn open_handle(disk: &dyn Disk, options: &Options) -> Result<(Handle, Option<FileId>)> {
    let path = &options.path;
    for _ in 0..REPLACED_MAX {
        let OpenFile { backend, id } =
            disk.open(path, !options.read_only).map_err(|why| match why.kind() {
                std::io::ErrorKind::IsADirectory => not_a_database(path, "a directory"),
                _ => io("open", path, why),
            })?;
        if let Err(why) = check_magic(backend.as_ref(), path) {
            return Err(if is_claim(disk, path)? { Error::Locked { path: path.clone() } } else { why });
        }
        let handle = if options.read_only {
            opened(path, || builder(options).open_read_only_with_backend(Medium(backend)))
                .map(Handle::Read)?
        } else {
            start(backend, options, path).map(Handle::Write)?
        };
        match disk.id(path) {
            Ok(named) if named == id => return Ok((handle, id)),
            // Opening it again says what is wrong, or finds what has taken the name.
            Ok(_) => {}
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => {}
            Err(why) => {
                let_go(Some(handle));
                return Err(io("look at", path, why));
            }
        }
        let_go(Some(handle));
    }
    Err(Error::Locked { path: path.clone() })
}

/// redb would make a new database of an empty file, and ends in a panic on some that are no database.
fn check_magic(backend: &dyn redb::StorageBackend, path: &Path) -> Result<()> {
    let failed = |why: std::io::Error| match why.kind() {
        std::io::ErrorKind::IsADirectory => not_a_database(path, "a directory"),
        _ => io("read", path, why),
    };
    let mut magic = [0_u8; MAGIC.len()];
    if backend.len().map_err(failed)? < MAGIC.len() as u64 {
        return Err(not_a_database(path, "an empty or cut file"));
    }
    backend.read(0, &mut magic).map_err(failed)?;
    if &magic != MAGIC { Err(not_a_database(path, "another kind of file")) } else { Ok(()) }
}

fn not_a_database(path: &Path, why: &str) -> Error {
    Error::NotADatabase { path: path.to_owned(), why: why.to_owned() }
}

fn opened<T>(path: &Path, open: impl FnOnce() -> Result<T, DatabaseError>) -> Result<T> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(open)) {
        Ok(Ok(database)) => Ok(database),
        Ok(Err(DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch)) => {
            Err(Error::Locked { path: path.to_owned() })
        }
        Ok(Err(DatabaseError::RepairAborted)) => Err(Error::Unavailable {
            why: "the file needs recovery after a crash: open it for writing once".to_owned(),
        }),
        Ok(Err(DatabaseError::Storage(redb::StorageError::Io(why))))
            if why.kind() != std::io::ErrorKind::InvalidData =>
        {
            Err(io("open", path, why))
        }
        Ok(Err(DatabaseError::Storage(redb::StorageError::Corrupted(why)))) => {
            Err(Error::corrupted(FILE, &[], why))
        }
        Ok(Err(other)) => Err(not_a_database(path, &other.to_string())),
        Err(_) => Err(Error::corrupted(FILE, &[], "the key-value store could not make sense of the file")),
    }
}
