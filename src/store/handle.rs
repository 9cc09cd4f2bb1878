//! The file as redb has it open: locked, looked at before redb trusts it, and let go of without a panic.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use redb::{ConcurrencyMode, Database, DatabaseError, ReadOnlyDatabase, ReadTransaction, ReadableDatabase};

use crate::error::{Error, FILE_CUT, FILE_MISFIT, Result};
use crate::store::disk::{Disk, FileId, Medium, OpenFile};
use crate::store::draft::is_claim;
use crate::store::raw::fenced;

/// First bytes of a redb file.
const MAGIC: &[u8; 9] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// Name of redb in errors that belong to no table.
pub(super) const FILE: &str = "file";

/// How redb begins what it says of a file that is shorter than its rows need.
const TRUNCATED: &str = "File truncated";

/// How redb begins what it says of a file whose length no header can tell.
const MISFIT: &str = "File length does not correspond";

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
                std::io::ErrorKind::InvalidInput => not_a_database(path, &why.to_string()),
                _ => Error::io("open", path, why),
            })?;
        // redb makes a new database of an empty file, so the file is looked at before redb has it.
        if let Err(why) = check_magic(backend.as_ref(), path) {
            return Err(if is_claim(disk, path)? { Error::Locked { path: path.clone() } } else { why });
        }
        let handle = if options.read_only {
            opened(path, || builder(options).open_read_only_with_backend(Medium::new(backend)))
                .map(Handle::Read)?
        } else {
            start(Medium::new(backend), options, path).map(Handle::Write)?
        };
        // Until the lock was taken, another process may have put a copy in the place of this file.
        match disk.id(path) {
            Ok(named) if named == id => return Ok((handle, id)),
            // Opening it again says what is wrong, or finds what has taken the name.
            Ok(_) => {}
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => {}
            Err(why) => {
                let_go(Some(handle));
                return Err(Error::io("look at", path, why));
            }
        }
        let_go(Some(handle));
    }
    Err(Error::Locked { path: path.clone() })
}

/// Opens a file that this process has just made, or knows to be whole.
pub(super) fn start(backend: Medium, options: &Options, path: &Path) -> Result<Database> {
    opened(path, || builder(options).create_with_backend(backend))
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

/// Whether the file at `path` begins as a database does. A file that is not there, or can't be read, does not.
pub(crate) fn is_database(path: &Path) -> bool {
    let mut magic = [0_u8; MAGIC.len()];
    // A pipe would be waited for, and it gives its bytes only once.
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    is_file && File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && &magic == MAGIC
}

/// redb would make a new database of an empty file, and ends in a panic on some that are no database.
fn check_magic(backend: &dyn redb::StorageBackend, path: &Path) -> Result<()> {
    let failed = |why: std::io::Error| match why.kind() {
        std::io::ErrorKind::IsADirectory => not_a_database(path, "a directory"),
        _ => Error::io("read", path, why),
    };
    let mut magic = [0_u8; MAGIC.len()];
    match backend.len().map_err(failed)? {
        0 => return Err(not_a_database(path, "an empty file")),
        len if len < MAGIC.len() as u64 => return Err(not_a_database(path, "a file of a few bytes")),
        _ => {}
    }
    backend.read(0, &mut magic).map_err(failed)?;
    if &magic != MAGIC { Err(not_a_database(path, "another kind of file")) } else { Ok(()) }
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
            Err(Error::io("open", path, why))
        }
        Ok(Err(DatabaseError::Storage(redb::StorageError::Corrupted(why)))) => {
            let why = match why {
                cut if cut.starts_with(TRUNCATED) => FILE_CUT.to_owned(),
                long if long.starts_with(MISFIT) => FILE_MISFIT.to_owned(),
                other => other,
            };
            Err(Error::corrupted(FILE, &[], why))
        }
        Ok(Err(other)) => Err(not_a_database(path, &other.to_string())),
        Err(_) => Err(Error::corrupted(FILE, &[], "the key-value store could not make sense of the file")),
    }
}

/// Drops a handle. redb works on the file once more then, and ends in a panic where that is damaged.
pub(super) fn let_go(handle: Option<Handle>) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(handle))).is_err() {
        tracing::warn!("the key-value store panicked while it let go of a damaged file");
    }
}

pub(super) fn closing(why: DatabaseError) -> redb::StorageError {
    match why {
        DatabaseError::Storage(why) => why,
        other => redb::StorageError::Corrupted(other.to_string()),
    }
}

/// The error while the file is not open.
pub(super) fn lost() -> Error {
    Error::Unavailable { why: "the file could not be opened again after a failure".to_owned() }
}

fn not_a_database(path: &Path, why: &str) -> Error {
    Error::NotADatabase { path: path.to_owned(), why: why.to_owned() }
}
