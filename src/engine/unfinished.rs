//! Files that lie beside their place until they are whole, and what killed processes have left of such files.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::store::disk::folder_of;

/// How the name ends of a file that is not whole. No other program calls its files so.
const ENDING: &str = ".oubliette-part";
/// The name beside `path` that the file of this process with this number has until it is whole.
pub(crate) fn unfinished_name(path: &Path, number: u64) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{number}{ENDING}", std::process::id()))
}

/// Removes what killed processes have left in the folder of `path`, whatever it was for: nobody holds their locks, and they are
/// full of memories. A file that was written less than `after` ago stays: it may belong to a process that is about to lock it.
pub(crate) fn clear_unfinished(path: &Path, after: Duration) {
    let now = SystemTime::now();
    for entry in std::fs::read_dir(folder_of(path)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // A pipe would be waited for.
        let found = entry.metadata().ok().filter(|found| found.is_file());
        let last = found.and_then(|found| found.modified().ok());
        let is_old = last.is_some_and(|last| now.duration_since(last).unwrap_or_default() >= after);
        if !is_old || !name.starts_with('.') || !name.ends_with(ENDING) {
            continue;
        }
        // What can't be opened, locked or removed is another's.
        let nobodys =
            OpenOptions::new().write(true).open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if nobodys {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
