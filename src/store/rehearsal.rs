//! A disk whose files are read and never written: what a handle writes stays in memory, and goes when the handle does.
//!
//! So a dry run can do its work on a file that can't be written, and leaves no trace on one that can. Memory: the pages that
//! the work writes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::store::disk::{BackendError, Disk, FileId, OpenFile, StorageBackend};

/// Bytes of a block, which is written as a whole: those of a page of redb.
const BLOCK_BYTES: u64 = 4096;

/// Another disk, of which every file stays as it is.
#[derive(Debug)]
pub(crate) struct Rehearsal(pub(crate) Arc<dyn Disk>);

impl Disk for Rehearsal {
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.exists(path)
    }

    fn id(&self, path: &Path) -> io::Result<Option<FileId>> {
        self.0.id(path)
    }

    fn witness(&self, path: &Path, id: FileId) -> Option<File> {
        self.0.witness(path, id)
    }

    fn open(&self, path: &Path, _write: bool) -> io::Result<OpenFile> {
        let OpenFile { backend, id } = self.0.open(path, false)?;
        let len = backend.len()?;
        let above = Mutex::new(Above { len, whole: len, blocks: BTreeMap::new() });
        Ok(OpenFile { backend: Box::new(Layered { below: backend, above }), id })
    }

    fn create(&self, _path: &Path) -> io::Result<OpenFile> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn remove(&self, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_folder(&self, _file: &Path) -> io::Result<()> {
        Ok(())
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        self.0.len(path)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.0.resolve(path)
    }
}

/// What was written above a file.
#[derive(Debug)]
struct Above {
    len: u64,
    /// Bytes of the file below that count: none that were cut off meanwhile.
    whole: u64,
    /// The blocks that were written, by their numbers.
    blocks: BTreeMap<u64, Vec<u8>>,
}

/// A file, and above it what was written.
#[derive(Debug)]
struct Layered {
    below: Box<dyn StorageBackend>,
    above: Mutex<Above>,
}

impl Layered {
    /// The bytes of the file below from `offset` on, and zeros behind its end.
    fn below(&self, whole: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = usize::try_from(whole.saturating_sub(offset)).unwrap_or(usize::MAX).min(out.len());
        let (head, rest) = out.split_at_mut(there);
        rest.fill(0);
        if head.is_empty() { Ok(()) } else { self.below.read(offset, head) }
    }
}

/// The parts of a range that lie in one block each: the number of the block, and where the part begins in it.
fn parts(offset: u64, bytes: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + bytes as u64;
    std::iter::successors(Some(offset), |at| Some((at / BLOCK_BYTES + 1) * BLOCK_BYTES))
        .take_while(move |at| *at < end)
        .map(move |at| {
            let next = ((at / BLOCK_BYTES + 1) * BLOCK_BYTES).min(end);
            // Both are at most a block.
            (at / BLOCK_BYTES, (at % BLOCK_BYTES) as usize, (next - at) as usize)
        })
}

impl StorageBackend for Layered {
    fn len(&self) -> io::Result<u64> {
        Ok(self.above.lock().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let above = self.above.lock();
        if above.len < offset.saturating_add(out.len() as u64) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.below(above.whole, offset, out)?;
        let mut rest = out;
        for (number, from, bytes) in parts(offset, rest.len()) {
            let (part, behind) = rest.split_at_mut(bytes);
            if let Some(written) = above.blocks.get(&number).and_then(|block| block.get(from..from + bytes)) {
                part.copy_from_slice(written);
            }
            rest = behind;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut above = self.above.lock();
        // A length is one of whole blocks.
        above.blocks.split_off(&len.div_ceil(BLOCK_BYTES));
        (above.len, above.whole) = (len, above.whole.min(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut above = self.above.lock();
        let Above { len, whole, blocks } = &mut *above;
        *len = (*len).max(offset + data.len() as u64);
        let mut rest = data;
        for (number, from, bytes) in parts(offset, data.len()) {
            let (part, behind) = rest.split_at(bytes);
            let block = match blocks.entry(number) {
                std::collections::btree_map::Entry::Occupied(there) => there.into_mut(),
                std::collections::btree_map::Entry::Vacant(free) => {
                    let mut block = vec![0; BLOCK_BYTES as usize];
                    self.below(*whole, number * BLOCK_BYTES, &mut block)?;
                    free.insert(block)
                }
            };
            if let Some(place) = block.get_mut(from..from + bytes) {
                place.copy_from_slice(part);
            }
            rest = behind;
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.below.close()
    }

    /// Nobody may write the file meanwhile. It is open for reading, so it can be locked as a reader locks it, and no other way.
    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.below.try_lock_shared_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.below.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.below.lock_shared_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.below.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.below.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.below.query_lock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::disk::Folder;

    #[test]
    fn what_is_written_is_read_again_and_leaves_the_file_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut told: Vec<u8> = (0..3 * 4096_u32).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &told).unwrap();
        let disk = Rehearsal(Arc::new(Folder));
        let file = disk.open(&path, true).unwrap().backend;
        for (offset, bytes) in [(4090_usize, 20_usize), (0, 4096), (8191, 2), (3 * 4096, 4096), (5000, 0)] {
            told.resize(told.len().max(offset + bytes), 0);
            told[offset..offset + bytes].fill(7);
            file.write(offset as u64, &vec![7; bytes]).unwrap();
        }
        let read = |from: usize, to: usize| {
            let mut out = vec![1; to - from];
            file.read(from as u64, &mut out).map(|()| out)
        };
        for (from, to) in [(0, told.len()), (4089, 4112), (8000, 9000), (12_288, 16_384)] {
            assert_eq!(read(from, to).unwrap(), told[from..to]);
        }
        assert_eq!(read(0, told.len() + 1).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        // What was cut off does not come back.
        file.set_len(4096).unwrap();
        file.set_len(3 * 4096).unwrap();
        assert_eq!(read(4096, 3 * 4096).unwrap(), vec![0; 2 * 4096]);
        assert_eq!(read(0, 4096).unwrap(), vec![7; 4096]);
        assert!(disk.create(&folder.path().join("other")).is_err() && disk.remove(&path).is_err());
        assert_eq!(
            std::fs::read(&path).unwrap(),
            (0..3 * 4096_u32).map(|at| (at % 251) as u8).collect::<Vec<_>>()
        );
    }
}
