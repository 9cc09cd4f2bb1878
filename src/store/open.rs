//! Creating, opening, writing, and opening again after a failure.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};
use redb::{ConcurrencyMode, Database, DatabaseError, ReadOnlyDatabase, ReadableDatabase};

use crate::error::{Error, Result};
use crate::limits::{FORMAT_VERSION, NORMALIZER};
use crate::store::Durability;
use crate::store::control::{Clock, Identity};
use crate::store::disk::{Bytes, Disk, Medium};
use crate::store::draft::{clear_drafts, draft_path, drafts_for, is_overtaken};
use crate::store::rows::Rows;
use crate::store::tables::Table;
use crate::store::tx::{Snapshot, Staged, WriteTx, fenced};

/// First bytes of a redb file.
const MAGIC: &[u8; 9] = b"redb\x1A\x0A\xA9\x0D\x0A";
/// Name of redb in errors that belong to no table.
const FILE: &str = "file";

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
}

enum Handle {
    Write(Database),
    Read(ReadOnlyDatabase),
    /// The file could not be opened again after a failure.
    Lost,
}

/// The open file.
pub(crate) struct Store {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) options: Options,
    handle: RwLock<Option<Handle>>,
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
    /// Whether the file had to be opened again meanwhile: snapshots taken before are of no use.
    pub(crate) reopened: bool,
}

/// A write transaction that did not end well.
pub(super) struct Failed<R> {
    why: Error,
    /// What it wrote, and the number of its commit, when only the commit itself failed: the file may hold it.
    unsure: Option<Box<(Written<R>, u64)>>,
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
        if !exists {
            if !options.create || options.read_only {
                return Err(Error::NotFound { what: "database", name: options.path.display().to_string() });
            }
            create(disk.as_ref(), &options)?;
        }
        let handle = open_handle(disk.as_ref(), &options, &options.path)?;
        let name_unsynced = AtomicBool::new(!options.read_only);
        let store =
            Store { disk, options, handle: RwLock::new(Some(handle)), writer: Mutex::new(()), name_unsynced };
        store.check_format()?;
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
            let backend = self.disk.open(&path, false).map_err(|why| io("open", &path, why))?;
            Ok((path, Bytes::new(backend)))
        });
        opened.collect()
    }

    /// Refuses a file of another program, of another format or of another normalizer.
    fn check_format(&self) -> Result<()> {
        let not_ours =
            |why: &str| Error::NotADatabase { path: self.options.path.clone(), why: why.to_owned() };
        let snapshot = self.snapshot()?;
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
        Ok(())
    }

    /// The store as of the last commit.
    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        let guard = self.handle.read();
        let txn = match guard.as_ref() {
            Some(Handle::Write(db)) => fenced(FILE, &[], || db.begin_read())?,
            Some(Handle::Read(db)) => fenced(FILE, &[], || db.begin_read())?,
            Some(Handle::Lost) => return Err(lost()),
            None => return Err(Error::Closed),
        };
        Ok(Snapshot::new(txn))
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
        if matches!(*self.handle.read(), Some(Handle::Lost)) {
            self.reopen()?;
        }
        self.sync_name()?;
        let result = {
            let guard = self.handle.read();
            match guard.as_ref() {
                Some(Handle::Write(db)) => attempt(db, durability, unit),
                Some(Handle::Read(_)) => return Err(Error::ReadOnly),
                Some(Handle::Lost) => return Err(lost()),
                None => return Err(Error::Closed),
            }
        };
        match result {
            Ok(written) => Ok(written),
            Err(Failed { why: Error::Retry { why }, unsure }) => {
                self.reopen()?;
                let unflushed = if durability == Durability::Batch {
                    "; commits since the last flush are lost"
                } else {
                    ""
                };
                self.settle(unsure)?.ok_or_else(|| Error::Retry { why: why + unflushed })
            }
            Err(Failed { why, .. }) => Err(why),
        }
    }

    /// What a failed commit came to, now that the file is open again: it counts if the file holds it, once that is
    /// synced; it is gone without a trace if not.
    fn settle<R>(&self, unsure: Option<Box<(Written<R>, u64)>>) -> Result<Option<Written<R>>> {
        let Some((written, commit)) = unsure.map(|unsure| *unsure) else { return Ok(None) };
        let unknown =
            |why: Error| Error::Unavailable { why: format!("the last write may be there or not: {why}") };
        let found = self.snapshot().and_then(|snapshot| snapshot.clock()).map_err(unknown)?;
        if found.commit != commit {
            return Ok(None);
        }
        let guard = self.handle.read();
        if let Some(Handle::Write(db)) = guard.as_ref() {
            transact(db, Durability::Safe, |_| Ok(())).map_err(unknown)?;
        }
        Ok(Some(Written { reopened: true, ..written }))
    }

    /// Opens the file again: a failed commit leaves redb's handle unusable. Snapshots taken before fail with
    /// `Retry` from now on.
    fn reopen(&self) -> Result<()> {
        let mut guard = self.handle.write();
        // The file's lock goes with the old handle, so that must go first.
        let old = guard.replace(Handle::Lost);
        let_go(old);
        match open_handle(self.disk.as_ref(), &self.options, &self.options.path) {
            Ok(handle) => {
                *guard = Some(handle);
                Ok(())
            }
            Err(why) => Err(Error::Unavailable { why: why.to_string() }),
        }
    }

    /// Puts an open copy of the file in place of the handle; the caller holds the writer's lock.
    pub(super) fn replace(&self, database: Database) {
        let old = self.handle.write().replace(Handle::Write(database));
        let_go(old);
    }

    /// Makes every commit so far durable, and says whether the file had to be opened again for it.
    pub(crate) fn flush(&self) -> Result<bool> {
        self.write(Durability::Safe, |_| Ok(())).map(|written| written.reopened)
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

/// Drops a handle. redb works on the file once more then, and ends in a panic where that is damaged.
fn let_go(handle: Option<Handle>) {
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
    attempt(db, durability, unit).map_err(|failed| failed.why)
}

fn attempt<R>(
    db: &Database,
    durability: Durability,
    unit: impl FnOnce(&mut WriteTx<'_>) -> Result<R>,
) -> Result<Written<R>, Failed<R>> {
    let mut txn = fenced(FILE, &[], || db.begin_write())?;
    let level = match durability {
        Durability::Safe | Durability::Fast => redb::Durability::Immediate,
        Durability::Batch => redb::Durability::None,
    };
    fenced(FILE, &[], || txn.set_durability(level))?;
    txn.set_two_phase_commit(durability == Durability::Safe);
    txn.set_quick_repair(durability == Durability::Safe);
    let result = {
        let mut tx = WriteTx::new(&txn);
        unit(&mut tx).and_then(|value| {
            let written = Written { value, staged: tx.flush()?, reopened: false };
            Ok((written, tx.clock()?.commit))
        })
    };
    match result {
        Ok((written, commit)) => match fenced(FILE, &[], || txn.commit()) {
            Ok(()) => Ok(written),
            Err(why) => Err(Failed { why, unsure: Some(Box::new((written, commit))) }),
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

/// Makes a whole database under a name of its own, then links it to `path`: whoever is second finds the first one's.
fn create(disk: &dyn Disk, options: &Options) -> Result<()> {
    let draft = draft_path(&options.path, &options.secret);
    let made = disk.create(&draft).map_err(|why| io("create", &draft, why)).and_then(|backend| {
        let database = start(backend, options, &draft)?;
        initialise(&database, options.secret)?;
        fenced(FILE, &[], || database.close().map_err(closing))
    });
    let path = &options.path;
    let linked = made.and_then(|()| disk.link(&draft, path).map_err(|why| io("create", path, why)));
    let linked = linked.or_else(|why| if is_overtaken(disk, path, &why) { Ok(()) } else { Err(why) });
    // The draft has served, or has failed; its name goes in both cases, and the first failure is the one to tell.
    let removed = match disk.remove(&draft) {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(|why| io("remove", &draft, why)),
    };
    linked.and(removed)
}

fn initialise(database: &Database, secret: [u8; 32]) -> Result<()> {
    transact(database, Durability::Safe, |tx| {
        for table in Table::ALL {
            tx.touch(*table)?;
        }
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

fn open_handle(disk: &dyn Disk, options: &Options, path: &Path) -> Result<Handle> {
    let backend = disk.open(path, !options.read_only).map_err(|why| match why.kind() {
        std::io::ErrorKind::IsADirectory => not_a_database(path, "a directory"),
        _ => io("open", path, why),
    })?;
    // redb would make a new database of an empty file, and ends in a panic on some that are no database.
    let mut magic = [0_u8; MAGIC.len()];
    let long_enough = backend.len().map_err(|why| match why.kind() {
        std::io::ErrorKind::IsADirectory => not_a_database(path, "a directory"),
        _ => io("read", path, why),
    })? >= MAGIC.len() as u64;
    if long_enough {
        backend.read(0, &mut magic).map_err(|why| match why.kind() {
            std::io::ErrorKind::IsADirectory => not_a_database(path, "a directory"),
            _ => io("read", path, why),
        })?;
    }
    if &magic != MAGIC {
        return Err(not_a_database(
            path,
            if long_enough { "another kind of file" } else { "an empty or cut file" },
        ));
    }
    if options.read_only {
        opened(path, || builder(options).open_read_only_with_backend(Medium(backend))).map(Handle::Read)
    } else {
        start(backend, options, path).map(Handle::Write)
    }
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
