//! Where the socket of a file is.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What is put behind the name of the file.
const ENDING: &str = ".sock";

/// The socket of a file; none where there is no file yet, so that nobody can have it open. A link leads to the socket of its file.
pub(super) fn socket_of(file: &Path) -> Option<PathBuf> {
    let mut name = std::fs::canonicalize(file).ok()?.into_os_string();
    name.push(ENDING);
    Some(name.into())
}

/// Whether a file has names beside this one. Whoever has it open listens beside the name that it was opened by.
pub(super) fn has_other_names(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.nlink() > 1)
}
