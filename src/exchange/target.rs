//! A file that is there whole or not at all: written beside its place, synced, then renamed.
//!
//! On Unix it is made readable for its owner alone, for memories are private; elsewhere with what the folder gives.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A file under construction. Dropped without [`Target::finish`] it leaves nothing.
///
/// What is there and is no regular file, such as a pipe, is written to directly.
#[derive(Debug)]
pub struct Target {
    writer: Option<BufWriter<File>>,
    path: PathBuf,
    /// The name it has until it is whole; none for what is no regular file.
    temporary: Option<PathBuf>,
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
    /// `Io`.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let special = std::fs::metadata(&path).is_ok_and(|found| !found.is_file());
        if special {
            let file = OpenOptions::new().write(true).open(&path);
            let file = file.map_err(|source| io("open", &path, source))?;
            return Ok(Target { writer: Some(BufWriter::new(file)), path, temporary: None });
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&temporary).map_err(|source| io("create", &temporary, source))?;
        Ok(Target { writer: Some(BufWriter::new(file)), path, temporary: Some(temporary) })
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
    /// `Io`; what was there before is still there then.
    pub fn finish(mut self) -> Result<()> {
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        writer.flush().map_err(|source| io("write", &self.path, source))?;
        let Some(temporary) = &self.temporary else { return Ok(()) };
        writer.get_ref().sync_all().map_err(|source| io("sync", temporary, source))?;
        drop(writer);
        std::fs::rename(temporary, &self.path).map_err(|source| io("rename", &self.path, source))?;
        self.temporary = None;
        #[cfg(unix)]
        if let Some(folder) = self.path.parent() {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let synced = File::open(folder).and_then(|folder| folder.sync_all());
            synced.map_err(|source| io("sync", folder, source))?;
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
        self.writer()?.seek(to)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            self.writer = None;
            // Nothing more can be done where even this is refused.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

fn io(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Io { action, path: path.to_owned(), source }
}
