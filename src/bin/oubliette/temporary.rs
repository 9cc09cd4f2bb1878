//! Folders for copies of memories that a command needs for a while.

use std::fs::File;
use std::path::{Path, PathBuf};

use oubliette::{Error, Result};

/// How the names of these folders begin.
const PREFIX: &str = "oubliette-";
/// The file in each of them that is locked as long as somebody works there.
const IN_USE: &str = "in-use";
/// Its name until it is locked.
const UNNAMED: &str = "to-be-in-use";

/// A folder that is gone when it is dropped. What a killed process has left goes when the next one is made, and when a file is
/// compacted.
pub(crate) struct TemporaryFolder {
    folder: tempfile::TempDir,
    /// Locked until the folder is gone.
    _in_use: File,
}

impl TemporaryFolder {
    /// # Errors
    /// `Io`.
    pub(crate) fn new() -> Result<Self> {
        let all = std::env::temp_dir();
        clear_left_in(&all);
        let failed = |source| Error::Io { action: "create a folder in", path: all.clone(), source };
        let mut builder = tempfile::Builder::new();
        // Copies of memories lie there, which are nobody else's business.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.prefix(PREFIX).tempdir().map_err(failed)?;
        // Locked before it has its name, so that nobody takes the folder for what a killed process has left. Where the file
        // system knows no locks, that stays.
        let unnamed = folder.path().join(UNNAMED);
        let in_use = File::create_new(&unnamed).map_err(failed)?;
        let _ = in_use.try_lock();
        std::fs::rename(unnamed, folder.path().join(IN_USE)).map_err(failed)?;
        Ok(TemporaryFolder { folder, _in_use: in_use })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes what killed processes have left.
pub(crate) fn clear_left() {
    clear_left_in(&std::env::temp_dir());
}

/// Removes the folders in which nobody works any more. What can't be opened, locked or removed is another's.
fn clear_left_in(all: &Path) {
    let folders = std::fs::read_dir(all).into_iter().flatten().flatten();
    let ours = folders.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    let ours: Vec<PathBuf> = ours.map(|entry| entry.path()).collect();
    for folder in ours {
        let in_use = folder.join(IN_USE);
        // A pipe would be waited for.
        if !std::fs::symlink_metadata(&in_use).is_ok_and(|found| found.is_file()) {
            continue;
        }
        let in_use = File::options().write(true).open(in_use);
        if in_use.is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn what_a_killed_process_left_goes_and_nothing_else() {
        let all = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let folder = all.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("copy.oub"), "memories").unwrap();
            folder
        };
        let names = ["oubliette-left", "oubliette-used", "oubliette-foreign", "other"];
        let folders = names.map(make);
        let [left, used, foreign, other] = &folders;
        let _left = File::create(left.join(IN_USE)).unwrap();
        let at_work = File::create(used.join(IN_USE)).unwrap();
        at_work.lock().unwrap();
        drop(File::create(other.join(IN_USE)).unwrap());
        clear_left_in(all.path());
        assert_eq!([left, used, foreign, other].map(|folder| folder.exists()), [false, true, true, true]);
    }
}
