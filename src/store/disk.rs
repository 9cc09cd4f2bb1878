//! Where files are: the seam between the store and the file system.
//!
//! Production uses [`Folder`]; the crash simulator puts its own [`Disk`] here, which forgets unsynced writes, tears
//! sectors and fails on demand. Unix-only steps (owner-only permissions, syncing a folder) stand in this file alone.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::backends::FileBackend;
pub use redb::{BackendError, StorageBackend};

use crate::store::layout::is_cut;

/// Which file a name or a handle stands for, by numbers of the file system: another file has others as long as this
/// one is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    /// Number of the device.
    pub device: u64,
    /// Number of the file on it.
    pub inode: u64,
}

/// A file that is open.
#[derive(Debug)]
pub struct OpenFile {
    /// Its bytes and locks.
    pub backend: Box<dyn StorageBackend>,
    /// Which file it is; none where the system does not say.
    pub id: Option<FileId>,
}

/// The operations on files that the store needs besides reading and writing them.
pub trait Disk: Debug + Send + Sync {
    /// Whether there is something by this name.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Which file has this name now, as [`OpenFile::id`] says it.
    fn id(&self, path: &Path) -> io::Result<Option<FileId>>;
    /// The file with this name once more, if it is the file `id`: it tells whether the file has a name left. A disk that does not say
    /// so has none.
    fn witness(&self, _path: &Path, _id: FileId) -> Option<File> {
        None
    }
    /// Opens a file that exists; `write` opens it for writing as well.
    fn open(&self, path: &Path, write: bool) -> io::Result<OpenFile>;
    /// Creates an empty file that only its owner can read; fails when there is one.
    fn create(&self, path: &Path) -> io::Result<OpenFile>;
    /// Gives the file another name, in place of whatever had that.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Takes a name away.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names of a folder durable.
    fn sync_folder(&self, file: &Path) -> io::Result<()>;
    /// Length of a file in bytes.
    fn len(&self, path: &Path) -> io::Result<u64>;
    /// The name of a file without links, also of one that is yet to be made. A disk without links has nothing to follow.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }
    /// The files in the folder of `file`. A disk that keeps none but those it is asked for finds nothing.
    fn beside(&self, _file: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }
    /// Lets those use `to` who may use `from`, as far as this process can: where the owner or the group can't be kept, nobody
    /// gains by it. A disk without permissions has nothing to do.
    fn keep_access(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// The file system.
#[derive(Debug, Default)]
pub(crate) struct Folder;

impl Disk for Folder {
    fn exists(&self, path: &Path) -> io::Result<bool> {
        match fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(why) => Err(why),
        }
    }

    fn id(&self, path: &Path) -> io::Result<Option<FileId>> {
        Ok(file_id(&fs::metadata(path)?))
    }

    /// Elsewhere closing such a file could take the locks away that the database has.
    #[cfg(target_os = "linux")]
    fn witness(&self, path: &Path, id: FileId) -> Option<File> {
        let file = File::open(path).ok()?;
        let found = file_id(&file.metadata().ok()?);
        (found == Some(id)).then_some(file)
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<OpenFile> {
        // Whoever opens a pipe waits for its other end. A directory has an error of its own.
        let found = fs::metadata(path)?;
        if !found.is_file() && !found.is_dir() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a pipe, a socket or a device"));
        }
        open_file(OpenOptions::new().read(true).write(write).open(path)?)
    }

    fn create(&self, path: &Path) -> io::Result<OpenFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        open_file(options.open(path)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    #[cfg(unix)]
    fn sync_folder(&self, file: &Path) -> io::Result<()> {
        File::open(folder_of(file))?.sync_all()
    }

    /// Elsewhere than on Unix a folder can't be synced; the file system's own journal has to do.
    #[cfg(not(unix))]
    fn sync_folder(&self, _file: &Path) -> io::Result<()> {
        Ok(())
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let mut path = path.to_owned();
        for _ in 0..LINKS_FOLLOWED_MAX {
            match fs::canonicalize(&path) {
                Err(why) if why.kind() == io::ErrorKind::NotFound => {}
                found => return found,
            }
            // There is no such file yet. Its folder is there, or whoever makes the file says that it is not.
            let folder = match fs::canonicalize(folder_of(&path)) {
                Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(path),
                found => found?,
            };
            match (fs::read_link(&path), path.file_name()) {
                (Ok(target), _) => path = folder.join(target),
                (Err(_), Some(name)) => return Ok(folder.join(name)),
                (Err(_), None) => return Ok(path),
            }
        }
        Err(io::Error::other("too many links on the way to the file"))
    }

    fn beside(&self, file: &Path) -> io::Result<Vec<PathBuf>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(folder_of(file))? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                all.push(entry.path());
            }
        }
        Ok(all)
    }

    #[cfg(unix)]
    fn keep_access(&self, from: &Path, to: &Path) -> io::Result<()> {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
        /// Bits of the rest of the world, and of the owner.
        const OTHERS: u32 = 0o007;
        const OWNER: u32 = 0o700;
        let (like, own) = (fs::metadata(from)?, fs::metadata(to)?);
        if like.uid() != own.uid() && chown(to, Some(like.uid()), None).is_err() {
            tracing::debug!(file = %to.display(), "the owner can't be kept: only the superuser gives files away");
        }
        if like.gid() != own.gid() && chown(to, None, Some(like.gid())).is_err() {
            tracing::debug!(file = %to.display(), "the group can't be kept");
        }
        let mut mode = like.mode() & 0o777;
        if fs::metadata(to)?.gid() != like.gid() {
            // Another group may do nothing, and the one that was is now a part of the rest.
            mode &= OWNER | (mode >> 3 & OTHERS);
        }
        fs::set_permissions(to, fs::Permissions::from_mode(mode))
    }
}

/// Links that lead from one name to the next, as many as Linux follows.
const LINKS_FOLLOWED_MAX: usize = 40;

/// The folder that a file lies in.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Where a file lies, or will lie, behind every link.
///
/// # Errors
/// Those of the file system.
pub(crate) fn place_of(path: &Path) -> io::Result<PathBuf> {
    Folder.resolve(path)
}

fn open_file(file: File) -> io::Result<OpenFile> {
    let id = file_id(&file.metadata()?);
    match FileBackend::new(file) {
        Ok(backend) => Ok(OpenFile { backend: Box::new(backend), id }),
        Err(why) => Err(io::Error::other(why)),
    }
}

/// The file that is open.
#[derive(Debug)]
pub(super) struct Which {
    pub(super) id: Option<FileId>,
    witness: Option<File>,
}

impl Which {
    /// The file `id`, which has the name `path`.
    pub(super) fn of(disk: &dyn Disk, path: &Path, id: Option<FileId>) -> Self {
        Which { id, witness: id.and_then(|id| disk.witness(path, id)) }
    }

    /// Whether the file is known to have no name any more.
    #[cfg(unix)]
    pub(super) fn is_deleted(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let about = self.witness.as_ref().and_then(|file| file.metadata().ok());
        about.is_some_and(|about| about.nlink() == 0)
    }

    #[cfg(not(unix))]
    pub(super) fn is_deleted(&self) -> bool {
        false
    }
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems say nothing")]
fn file_id(file: &fs::Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    Some(FileId { device: file.dev(), inode: file.ino() })
}

/// Elsewhere than on Unix the standard library does not tell which file it is.
#[cfg(not(unix))]
fn file_id(_file: &fs::Metadata) -> Option<FileId> {
    None
}

/// The bytes of a file in order, without the eyes of the key-value store.
#[derive(Debug)]
pub(crate) struct Bytes {
    backend: Box<dyn StorageBackend>,
    at: u64,
}

impl Bytes {
    /// From the first byte on.
    pub(crate) fn new(backend: Box<dyn StorageBackend>) -> Self {
        Bytes { backend, at: 0 }
    }
}

impl io::Read for Bytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.backend.len()?.saturating_sub(self.at);
        let want = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
        let (head, _) = out.split_at_mut(want);
        self.backend.read(self.at, head)?;
        self.at += want as u64;
        Ok(want)
    }
}

/// First byte of what is neither a leaf nor a branch of redb.
const NO_PAGE: u8 = 0;

/// A backend as redb takes it. Every method is passed on: one that is not would lose the file lock silently.
#[derive(Debug)]
pub(crate) struct Medium {
    backend: Arc<dyn StorageBackend>,
    /// Whether the locks outlast the closing, until a `Hold` is dropped.
    is_held: bool,
    /// Whether a `Hold` has the locks already. Not every system lets one handle lock a file twice.
    is_locked: bool,
}

impl Medium {
    /// A file that is let go of when redb closes it.
    pub(crate) fn new(backend: Box<dyn StorageBackend>) -> Self {
        Medium { backend: Arc::from(backend), is_held: false, is_locked: false }
    }

    /// A file that redb locks, and that stays locked when redb has closed it.
    pub(crate) fn to_hold(backend: Arc<dyn StorageBackend>) -> Self {
        Medium { backend, is_held: true, is_locked: false }
    }

    /// The same file once more, under the locks that it has.
    pub(crate) fn under_hold(backend: Arc<dyn StorageBackend>) -> Self {
        Medium { backend, is_held: true, is_locked: true }
    }
}

impl StorageBackend for Medium {
    fn len(&self) -> Result<u64, io::Error> {
        self.backend.len()
    }

    /// A page beyond the end of a whole file is one that a damaged page leads to, and is given as a page of no type: after an
    /// error of a read redb takes no other call.
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        match self.backend.read(offset, out) {
            Err(why) if why.kind() == io::ErrorKind::UnexpectedEof && !is_cut(self.backend.as_ref()) => {
                if let Some(first) = out.first_mut() {
                    *first = NO_PAGE;
                }
                Ok(())
            }
            other => other,
        }
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        self.backend.set_len(len)
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        self.backend.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.backend.write(offset, data)
    }

    fn close(&self) -> Result<(), io::Error> {
        if self.is_held { Ok(()) } else { self.backend.close() }
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        if self.is_locked { Ok(true) } else { self.backend.try_lock_range(start, end) }
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        if self.is_locked { Ok(true) } else { self.backend.try_lock_shared_range(start, end) }
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        if self.is_locked { Ok(()) } else { self.backend.lock_range(start, end) }
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        if self.is_locked { Ok(()) } else { self.backend.lock_shared_range(start, end) }
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        if self.is_locked { Ok(()) } else { self.backend.unlock_range(start, end) }
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        if self.is_locked { Ok(false) } else { self.backend.query_lock_range(start, end) }
    }
}
