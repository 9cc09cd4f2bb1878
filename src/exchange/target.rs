//! A file that is there whole or not at all: written beside its place, synced, then renamed.
//!
//! On Unix it is made readable for its owner alone, for memories are private; elsewhere with what the folder gives.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::engine::{clear_unfinished, folder_of, is_database, place_of, unfinished_name};
use crate::error::{Error, Result};

/// Links that lead from one name to the next, as many as Linux follows.
const LINKS_FOLLOWED_MAX: usize = 40;
/// Names that are tried for a file until it is whole: a killed process of the same number may have left some.
const NAMES_TRIED_MAX: usize = 1 << 10;
/// Numbers the files of this process.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A file under construction. Dropped without [`Target::finish`] it leaves nothing. What killed processes have left in the
/// folder goes when a file is begun there, and when a database there is compacted: it is full of memories.
///
/// A link stays, and the file that it leads to is made or replaced. What is there and is no regular file, such as a pipe, and
/// an open file of a process, such as `/dev/stdout`, is written to directly, behind what is in it.
#[derive(Debug)]
pub struct Target {
    writer: Option<BufWriter<File>>,
    path: PathBuf,
    /// The name it has until it is whole, and the name that it gets; none for what is written to directly.
    names: Option<(PathBuf, PathBuf)>,
    /// Whether all bytes go to the end of a file.
    appends: bool,
}

impl Target {
    /// Begins the file at `path`.
    ///
    /// ```
    /// use oubliette::exchange::Target;
    /// use std::io::Write;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let mut target = Target::create(&path)?;
    /// target.write_all(b"half a file")?;
    /// drop(target); // It was not finished.
    /// assert!(!path.exists());
    /// assert!(Target::create(path.join("no/such/folder")).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Io`, of the kind `AlreadyExists` if there is a database: a slip in a name must not take its memories.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        spare_databases(&path)?;
        let Some(meant) = followed(&path).map_err(|source| Error::io("find", &path, source))? else {
            let file = OpenOptions::new().append(true).open(&path);
            let file = file.map_err(|source| Error::io("open", &path, source))?;
            let appends = file.metadata().map_err(|source| Error::io("look at", &path, source))?.is_file();
            return Ok(Target { writer: Some(BufWriter::new(file)), path, names: None, appends });
        };
        let (file, temporary) = create_beside(&meant)?;
        clear_unfinished(&meant);
        let names = Some((temporary, meant));
        Ok(Target { writer: Some(BufWriter::new(file)), path, names, appends: false })
    }

    /// Where it will lie.
    ///
    /// ```
    /// use oubliette::exchange::Target;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// assert_eq!(Target::create(&path)?.path(), path);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where a file of this name lies, or will lie, behind every link: two spellings of a name have one place. The name itself where
    /// the file system does not tell.
    ///
    /// ```
    /// use oubliette::exchange::Target;
    /// # let folder = tempfile::tempdir()?;
    /// let (plain, other) = (folder.path().join("m.jsonl"), folder.path().join("./m.jsonl"));
    /// assert_eq!(Target::place_of(plain), Target::place_of(other));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn place_of(path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        place_of(path).unwrap_or_else(|_| path.to_owned())
    }

    /// Whether nobody sees the file before it is finished: then it can be given up and begun anew.
    ///
    /// ```
    /// use oubliette::exchange::Target;
    /// # let folder = tempfile::tempdir()?;
    /// assert!(Target::create(folder.path().join("m.jsonl"))?.is_aside());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_aside(&self) -> bool {
        self.names.is_some()
    }

    /// Whether a file with something in it would lose its name to this one.
    ///
    /// ```
    /// use oubliette::exchange::Target;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.jsonl");
    /// assert!(!Target::create(&path)?.takes_a_place());
    /// std::fs::write(&path, "of yesterday")?;
    /// assert!(Target::create(&path)?.takes_a_place());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn takes_a_place(&self) -> bool {
        let there = self.names.as_ref().and_then(|(_, meant)| std::fs::metadata(meant).ok());
        there.is_some_and(|found| found.len() > 0)
    }

    /// Brings all its bytes to the disk, so that nothing is left to do but to give it its name. Of files that belong together each is
    /// synced before the first is finished: then they are there together, or none is, but for a process that is killed between two
    /// names.
    ///
    /// ```
    /// use oubliette::exchange::Target;
    /// use std::io::Write;
    /// # let folder = tempfile::tempdir()?;
    /// let (mut one, mut other) = (Target::create(folder.path().join("one"))?, Target::create(folder.path().join("other"))?);
    /// one.write_all(b"of one")?;
    /// other.write_all(b"of the other")?;
    /// for target in [&mut one, &mut other] {
    ///     target.sync()?;
    /// }
    /// one.finish()?;
    /// other.finish()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Io`, as of [`Target::create`] also where a database has come to be there meanwhile.
    pub fn sync(&mut self) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.flush().map_err(|source| Error::io("write", &self.path, source))?;
        let Some((temporary, meant)) = &self.names else { return Ok(()) };
        writer.get_ref().sync_all().map_err(|source| Error::io("sync", temporary, source))?;
        spare_databases(meant)
    }

    /// Syncs it and gives it its name, in place of what was there.
    ///
    /// ```
    /// use oubliette::exchange::Target;
    /// use std::io::Write;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let mut target = Target::create(&path)?;
    /// target.write_all(b"a whole file")?;
    /// target.finish()?;
    /// assert_eq!(std::fs::read(&path)?, b"a whole file");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As of [`Target::sync`], and `Io` where it can't get its name: what was there before is still there then. `Io` of the folder,
    /// where that can't be synced: the file has its name, but may lose it when the power fails.
    pub fn finish(mut self) -> Result<()> {
        self.sync()?;
        let (Some(writer), Some((temporary, meant))) = (self.writer.take(), self.names.clone()) else {
            return Ok(());
        };
        // Locked until it has its name, so that nobody takes it for what a killed process has left.
        std::fs::rename(&temporary, &meant).map_err(|source| Error::io("rename", &meant, source))?;
        drop(writer);
        self.names = None;
        #[cfg(unix)]
        {
            let folder = folder_of(&meant);
            let synced = File::open(folder).and_then(|folder| folder.sync_all());
            synced.map_err(|source| Error::io("sync", folder, source))?;
        }
        Ok(())
    }

    fn writer(&mut self) -> std::io::Result<&mut BufWriter<File>> {
        self.writer.as_mut().ok_or_else(|| std::io::Error::other("the file is finished"))
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.writer()?.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.writer()?.flush()
    }
}

impl Seek for Target {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        if self.appends {
            let why = "what is written behind other bytes can't be gone back in";
            return Err(std::io::Error::new(std::io::ErrorKind::NotSeekable, why));
        }
        self.writer()?.seek(to)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some((temporary, _)) = self.names.take() {
            self.writer = None;
            // Nothing more can be done where even this is refused.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// A slip in a name must not take the memories of a database.
fn spare_databases(path: &Path) -> Result<()> {
    if !is_database(path) {
        return Ok(());
    }
    let why = "a database is there, and nothing is written in its place";
    Err(Error::io("write", path, std::io::Error::new(std::io::ErrorKind::AlreadyExists, why)))
}

/// The file that a name means, behind every link; none for what is written to directly. An open file of a process has no name that could
/// be given to another: its place among the open files looks like a link.
fn followed(path: &Path) -> std::io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_FOLLOWED_MAX {
        // The folder is there, or whoever makes the file says that it is not.
        if std::fs::canonicalize(folder_of(&path)).is_ok_and(|folder| folder.starts_with("/proc")) {
            return Ok(None);
        }
        match std::fs::read_link(&path) {
            Ok(target) => path = folder_of(&path).join(target),
            Err(_) if std::fs::metadata(&path).is_ok_and(|found| !found.is_file()) => return Ok(None),
            Err(_) => return Ok(Some(path)),
        }
    }
    Err(std::io::Error::other("too many links on the way to the file"))
}

/// An empty file with a name of its own, which only its owner can read. It is locked, so that nobody takes it for what a killed
/// process has left; where the file system knows no locks, that stays.
fn create_beside(path: &Path) -> Result<(File, PathBuf)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut tried = 0;
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = unfinished_name(path, number);
        tried += 1;
        match options.open(&temporary) {
            Ok(file) => {
                // Somebody may take it away before it is locked.
                let is_lost = matches!(file.try_lock(), Err(TryLockError::WouldBlock)) || !temporary.exists();
                if !is_lost || tried == NAMES_TRIED_MAX {
                    return Ok((file, temporary));
                }
            }
            Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists && tried < NAMES_TRIED_MAX => {}
            // The name of the file that was asked for: whoever reads the error knows no other.
            Err(why) => return Err(Error::io("create", path, why)),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

    use super::Target;
    use std::io::{Read, Seek, SeekFrom, Write};
    use std::os::fd::AsRawFd;
    use std::path::Path;

    fn written(path: &Path, bytes: &[u8]) {
        let mut target = Target::create(path).unwrap();
        target.write_all(bytes).unwrap();
        target.finish().unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_link_stays_and_the_file_behind_it_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("below")).unwrap();
        std::fs::write(at("below/file"), "old").unwrap();
        std::os::unix::fs::symlink("below/next", at("link")).unwrap();
        std::os::unix::fs::symlink("file", at("below/next")).unwrap();
        written(&at("link"), b"new");
        assert!(at("link").is_symlink() && at("below/next").is_symlink());
        assert_eq!(std::fs::read(at("below/file")).unwrap(), b"new");
        // A link to a file that is yet to be made.
        std::os::unix::fs::symlink("below/made", at("dangling")).unwrap();
        written(&at("dangling"), b"made");
        assert_eq!(std::fs::read(at("below/made")).unwrap(), b"made");
        std::os::unix::fs::symlink("round", at("round")).unwrap();
        assert!(Target::create(at("round")).unwrap_err().to_string().contains("too many links"));
        assert_eq!(names(folder.path()), ["below", "dangling", "link", "round"]);
        assert_eq!(names(&at("below")), ["file", "made", "next"]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_open_file_is_written_to_behind_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut out = std::fs::File::create(&path).unwrap();
        out.write_all(b"before ").unwrap();
        for name in [format!("/dev/fd/{}", out.as_raw_fd()), format!("/proc/self/fd/{}", out.as_raw_fd())] {
            written(name.as_ref(), b"written ");
        }
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(format!("/dev/fd/{}", out.as_raw_fd()), &link).unwrap();
        written(&link, b"linked");
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&path).unwrap(), b"before written written linked");
        let mut target = Target::create(&link).unwrap();
        assert!(target.seek(SeekFrom::Start(0)).is_err(), "it would overwrite what was there");
        let (mut reader, writer) = std::io::pipe().unwrap();
        written(format!("/dev/fd/{}", writer.as_raw_fd()).as_ref(), b"piped");
        drop(writer);
        let mut piped = String::new();
        reader.read_to_string(&mut piped).unwrap();
        assert_eq!(piped, "piped");
        assert_eq!(names(folder.path()), ["link", "out"]);
    }

    #[test]
    fn several_files_of_one_name_are_made_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut first = Target::create(&path).unwrap();
        let mut second = Target::create(&path).unwrap();
        first.write_all(b"first").unwrap();
        second.write_all(b"second").unwrap();
        first.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        second.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn what_a_killed_process_left_goes_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let ends = [".x.12.0.", ".x.13.7.", ".x.14.0.", ".y.12.0.", "x.12.0.", ".x.12.0.tmp."];
        let names = ends.map(|name| match name.strip_suffix(".tmp.") {
            Some(name) => format!("{name}.tmp"),
            None => format!("{name}oubliette-part"),
        });
        let files = names.each_ref().map(|name| std::fs::File::create(at(name)).unwrap());
        files[1].lock().unwrap();
        let mut under_way = Target::create(at("x")).unwrap();
        under_way.write_all(b"half").unwrap();
        let left = names.each_ref().map(|name| at(name).exists());
        assert_eq!(left, [false, true, false, false, true, true], "locked and other names stay");
        Target::create(at("x")).unwrap().finish().unwrap();
        under_way.finish().unwrap();
        assert_eq!(std::fs::read(at("x")).unwrap(), b"half");
    }
}
