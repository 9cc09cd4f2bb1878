//! The real file system, with something that happens between two steps, and syncs, openings and renamings that fail.

use std::io;
use std::ops::Bound;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use oubliette::faults::{BackendError, Disk, FileId, OpenFile, StorageBackend};

/// What happens once.
type Hook = Mutex<Option<Box<dyn FnOnce() + Send>>>;

/// What goes wrong, and what happens meanwhile.
#[derive(Default)]
pub struct Seam {
    /// Syncs that fail from now on, behind those that are spared.
    pub syncs: AtomicU32,
    /// Syncs that still work before the first that fails.
    pub spared: AtomicU32,
    /// Writes that end in a panic from now on.
    pub panics: AtomicU32,
    /// Openings that fail from now on.
    pub opens: AtomicU32,
    /// Whether a process is killed before it gives a file another name: nothing that it would do after that is done.
    pub killed: AtomicBool,
    /// Drafts that were met without a lock, which another process would take away.
    pub unlocked: AtomicU32,
    /// Runs before a file gets another name.
    pub before_rename: Hook,
    /// Runs before a file is opened.
    pub before_open: Hook,
    /// Runs after a file was opened, before anybody has locked it.
    pub after_open: Hook,
}

impl std::fmt::Debug for Seam {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seam")
    }
}

impl Seam {
    pub fn set(hook: &Hook, what: impl FnOnce() + Send + 'static) {
        *hook.lock().unwrap() = Some(Box::new(what));
    }
}

/// Runs a hook that is set, which may open files itself.
fn run(hook: &Hook) {
    let hook = hook.lock().unwrap().take();
    if let Some(hook) = hook {
        hook();
    }
}

/// Whether one more is to go wrong.
fn takes(count: &AtomicU32) -> bool {
    count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

/// The disk of a seam.
#[derive(Clone, Debug, Default)]
pub struct SeamDisk(pub Arc<Seam>);

impl SeamDisk {
    /// Counts the drafts beside a file that are no empty files and that nobody has locked.
    fn look_at_drafts(&self, path: &Path) {
        for beside in std::fs::read_dir(path.parent().unwrap()).unwrap() {
            let beside = beside.unwrap().path();
            let is_draft = beside.extension().is_some_and(|ending| ending == "new");
            if !is_draft || beside.metadata().is_ok_and(|about| about.len() == 0) {
                continue;
            }
            let file = std::fs::OpenOptions::new().read(true).write(true).open(beside).unwrap();
            let other = redb::backends::FileBackend::new(file).unwrap();
            if !other.query_lock_range(Bound::Unbounded, Bound::Unbounded).unwrap() {
                self.0.unlocked.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    fn wrap(&self, file: std::fs::File) -> io::Result<OpenFile> {
        let about = file.metadata()?;
        let id = Some(FileId { device: about.dev(), inode: about.ino() });
        let inner = Box::new(redb::backends::FileBackend::new(file).map_err(io::Error::other)?);
        Ok(OpenFile { backend: Box::new(Wrapped { inner, seam: Arc::clone(&self.0) }), id })
    }
}

impl Disk for SeamDisk {
    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(path.symlink_metadata().is_ok())
    }

    fn id(&self, path: &Path) -> io::Result<Option<FileId>> {
        let about = path.metadata()?;
        Ok(Some(FileId { device: about.dev(), inode: about.ino() }))
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<OpenFile> {
        self.look_at_drafts(path);
        run(&self.0.before_open);
        if takes(&self.0.opens) {
            return Err(io::Error::other("too many open files (simulated)"));
        }
        let file = self.wrap(std::fs::OpenOptions::new().read(true).write(write).open(path)?);
        run(&self.0.after_open);
        file
    }

    fn create(&self, path: &Path) -> io::Result<OpenFile> {
        self.look_at_drafts(path);
        self.wrap(std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(path)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        run(&self.0.before_rename);
        match self.0.killed.load(Ordering::SeqCst) {
            false => std::fs::rename(from, to),
            true => Err(io::Error::other("killed (simulated)")),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match self.0.killed.load(Ordering::SeqCst) {
            false => std::fs::remove_file(path),
            true => Err(io::Error::other("killed (simulated)")),
        }
    }

    fn beside(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let all = std::fs::read_dir(path.parent().unwrap())?;
        all.map(|entry| entry.map(|entry| entry.path())).collect()
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.look_at_drafts(path);
        std::fs::File::open(path.parent().unwrap())?.sync_all()
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        self.look_at_drafts(path);
        Ok(path.metadata()?.len())
    }
}

#[derive(Debug)]
struct Wrapped {
    inner: Box<dyn StorageBackend>,
    seam: Arc<Seam>,
}

impl StorageBackend for Wrapped {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        match !takes(&self.seam.spared) && takes(&self.seam.syncs) {
            true => Err(io::Error::other("input/output error (simulated)")),
            false => self.inner.sync_data(),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        assert!(!takes(&self.seam.panics), "a write that ends in a panic (simulated)");
        self.inner.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.query_lock_range(start, end)
    }
}
