//! A draft stays locked from its making until it has its name, however often redb opens and closes it meanwhile: without the
//! locks another process would take it for what a killed one has left.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::store::disk::{Disk, FileId, Medium, OpenFile, StorageBackend};

/// What keeps a file locked that redb has closed.
#[derive(Debug)]
pub(crate) struct Hold {
    backend: Arc<dyn StorageBackend>,
    id: Option<FileId>,
}

impl Hold {
    /// A file that stays locked when redb has closed it, until the hold is dropped.
    pub(crate) fn of(file: OpenFile) -> (Medium, Hold) {
        let backend: Arc<dyn StorageBackend> = Arc::from(file.backend);
        (Medium::to_hold(Arc::clone(&backend)), Hold { backend, id: file.id })
    }

    /// A disk on which the file of the hold, which has the name `path`, is opened under its locks.
    pub(crate) fn disk(&self, disk: &Arc<dyn Disk>, path: &Path) -> Arc<dyn Disk> {
        let (disk, backend) = (Arc::clone(disk), Arc::clone(&self.backend));
        Arc::new(UnderHold { disk, path: path.to_owned(), backend, id: self.id })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Err(why) = self.backend.close() {
            tracing::debug!(%why, "a file is let go of when its last handle is");
        }
    }
}

/// Another disk, with one file that is open and locked already.
#[derive(Debug)]
struct UnderHold {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    backend: Arc<dyn StorageBackend>,
    id: Option<FileId>,
}

impl UnderHold {
    fn is_held(&self, path: &Path) -> bool {
        self.path == path
    }
}

impl Disk for UnderHold {
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }

    fn id(&self, path: &Path) -> io::Result<Option<FileId>> {
        self.disk.id(path)
    }

    fn witness(&self, path: &Path, id: FileId) -> Option<File> {
        self.disk.witness(path, id)
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<OpenFile> {
        if !self.is_held(path) {
            return self.disk.open(path, write);
        }
        let backend = Box::new(Medium::under_hold(Arc::clone(&self.backend)));
        Ok(OpenFile { backend, id: self.id })
    }

    fn create(&self, path: &Path) -> io::Result<OpenFile> {
        self.disk.create(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_folder(&self, file: &Path) -> io::Result<()> {
        self.disk.sync_folder(file)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        self.disk.len(path)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        // It was made a moment ago, under this name.
        if self.is_held(path) { Ok(path.to_owned()) } else { self.disk.resolve(path) }
    }

    fn beside(&self, file: &Path) -> io::Result<Vec<PathBuf>> {
        self.disk.beside(file)
    }

    fn keep_access(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.keep_access(from, to)
    }
}
