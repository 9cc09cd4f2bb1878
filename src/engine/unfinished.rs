//! Files that lie beside their place until they are whole, and what killed processes have left of such files.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use crate::store::disk::folder_of;

/// How the name ends of a file that is not whole. No other program calls its files so.
const ENDING: &str = ".oubliette-part";
/// The name beside `path` that the file of this process with this number has until it is whole.
pub(crate) fn unfinished_name(path: &Path, number: u64) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{number}{ENDING}", std::process::id()))
}

/// Removes what killed processes have left in the folder of `path`, whatever it was for: nobody holds their locks, and they are
/// full of memories. Whoever makes one looks whether it is still there once it is locked.
pub(crate) fn clear_unfinished(path: &Path) {
    for entry in std::fs::read_dir(folder_of(path)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // A pipe would be waited for.
        let is_file = entry.metadata().is_ok_and(|found| found.is_file());
        if !is_file || !name.starts_with('.') || !name.ends_with(ENDING) {
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
