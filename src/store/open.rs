//! The store: creating the file, opening it, reading it and closing it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use redb::Database;

use crate::error::{Error, Result};
use crate::limits::{FORMAT_VERSION, NORMALIZER};
use crate::store::Durability;
use crate::store::control::{Clock, Identity, Nonce, SizeRow};
use crate::store::disk::{Bytes, Disk, FileId, Which};
use crate::store::draft::{
    clear_claim, clear_drafts, draft_path, drafts_for, is_claim, is_overtaken, publish,
};
use crate::store::handle::{FILE, Handle, Options, closing, let_go, open_handle, start};
use crate::store::hold::Hold;
use crate::store::layout::misfit;
use crate::store::raw::fenced;
use crate::store::rows::Rows;
use crate::store::tables::Table;
use crate::store::transact::transact;
use crate::store::tx::Snapshot;

/// The open file.
pub(crate) struct Store {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) options: Options,
    pub(super) handle: RwLock<Option<Handle>>,
    /// Which file the handle has open.
    pub(super) which: Mutex<Which>,
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
    /// Bytes of keys and values that this handle has put or taken away.
    pub(super) moved: AtomicU64,
}

impl Store {
    /// Opens the file, or makes it when there is none and the options say so.
    ///
    /// # Errors
    /// `Locked`, `NotADatabase`, `Format`, `Corrupted`, `NotFound`, `Io`.
    pub(crate) fn open(disk: Arc<dyn Disk>, options: Options) -> Result<Self> {
        // A link may be led elsewhere at any time, and a file that takes the place of a link is not the one behind it.
        let path = disk.resolve(&options.path).map_err(|why| Error::io("find", &options.path, why))?;
        let options = Options { path, ..options };
        let exists = disk.exists(&options.path).map_err(|why| Error::io("open", &options.path, why))?;
        if !exists || is_claim(disk.as_ref(), &options.path)? {
            if !options.create || options.read_only {
                return Err(Error::NotFound { what: "database", name: options.path.display().to_string() });
            }
            clear_claim(disk.as_ref(), &options.path)?;
            create(disk.as_ref(), &options)?;
        }
        let (handle, id) = open_handle(disk.as_ref(), &options)?;
        let name_unsynced = AtomicBool::new(!options.read_only);
        let which = Which::of(disk.as_ref(), &options.path, id);
        let store = Store {
            disk,
            options,
            handle: RwLock::new(Some(handle)),
            which: Mutex::new(which),
            epoch: AtomicU64::new(0),
            attempts: AtomicU64::new(0),
            last: Mutex::new(Nonce::default()),
            identity: OnceLock::new(),
            writer: Mutex::new(()),
            name_unsynced,
            moved: AtomicU64::new(0),
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
        self.disk.len(&self.options.path).map_err(|why| Error::io("measure", &self.options.path, why))
    }

    /// Why no write can open the file, though its rows can be read; none where its length fits, or nothing has its name.
    pub(crate) fn misfit(&self) -> Option<&'static str> {
        self.disk.open(self.path(), false).ok().and_then(|file| misfit(file.backend.as_ref()))
    }

    /// The bytes of the file as they stand on the disk, and those of the drafts for it: each with its path.
    pub(crate) fn bytes(&self) -> Result<Vec<(PathBuf, Bytes)>> {
        let paths = [self.options.path.clone()].into_iter();
        let opened = paths.chain(drafts_for(self.disk.as_ref(), self.path())?).map(|path| {
            let file = self.disk.open(&path, false).map_err(|why| Error::io("open", &path, why))?;
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
            // A table that is missing comes out as damage. Without the first table the file was never ours.
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

    /// How often the file was opened again or replaced: what was read at another epoch counts no more.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// The store as of the last commit.
    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        // A thread that already reads must not wait here behind a writer that waits for it.
        let guard = self.handle.read_recursive();
        let txn = guard.as_ref().ok_or(Error::Closed)?.begin_read()?;
        Ok(Snapshot::new(txn, self.epoch()))
    }

    /// Makes the name of the file durable, where that is still to do.
    pub(super) fn sync_name(&self) -> Result<()> {
        if self.name_unsynced.load(Ordering::SeqCst) {
            let path = &self.options.path;
            self.disk.sync_folder(path).map_err(|why| Error::io("sync the folder of", path, why))?;
            self.name_unsynced.store(false, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Puts an open copy of the file in place of the handle; the caller holds the writer's lock.
    pub(super) fn replace(&self, database: Database, id: Option<FileId>) {
        let mut guard = self.handle.write();
        // The epoch moves under the lock, so no snapshot has the number of one file and the rows of another.
        self.epoch.fetch_add(1, Ordering::SeqCst);
        *self.which.lock() = Which::of(self.disk.as_ref(), self.path(), id);
        let old = guard.replace(Handle::Write(database));
        // The lock is free before the old file is closed, so that readers do not wait for the disk.
        drop(guard);
        let_go(old);
    }

    /// Lets go of the file. Snapshots that are still held fail from now on.
    ///
    /// # Errors
    /// `Io` where the file was not closed in order. All commits are there, and the next opening looks through the file.
    pub(crate) fn close(&self) -> Result<()> {
        // The writer's lock comes before that of the handle, as in every write.
        let _one = self.writer.lock();
        let closed = match self.handle.write().take() {
            Some(Handle::Write(db)) => fenced(FILE, &[], || db.close().map_err(closing)),
            Some(Handle::Read(db)) => fenced(FILE, &[], || db.close().map_err(closing)),
            Some(Handle::Lost) | None => Ok(()),
        };
        closed.map_err(|error| match error {
            Error::Retry { why } => Error::io("close", &self.options.path, std::io::Error::other(why)),
            error => error,
        })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let_go(self.handle.get_mut().take());
    }
}

/// Makes a whole database under a name of its own, then gives it that of `path`: whoever is second finds the first one's.
fn create(disk: &dyn Disk, options: &Options) -> Result<()> {
    let draft = draft_path(&options.path, &options.opener);
    let made = disk.create(&draft).map_err(|why| Error::io("create", &draft, why)).and_then(|file| {
        let (backend, hold) = Hold::of(file);
        let database = start(backend, options, &draft)?;
        initialise(&database, options.secret)?;
        fenced(FILE, &[], || database.close().map_err(closing))?;
        Ok(hold)
    });
    let path = &options.path;
    let named = made.and_then(|hold| publish(disk, &draft, hold, path));
    let named = named.or_else(|why| if is_overtaken(disk, path, &why) { Ok(()) } else { Err(why) });
    // Where the draft has failed its name goes, and the first failure is the one to tell.
    let removed = match disk.remove(&draft) {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(|why| Error::io("remove", &draft, why)),
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
