//! Names that mean another file in each process, such as `/dev/stdin`.

use std::path::{Path, PathBuf};

use oubliette::{Error, Result};

/// Links that lead from one name to the next, as many as Linux follows.
const LINKS_FOLLOWED_MAX: usize = 40;

/// Which process it is, for another one.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Process {
    number: u32,
    /// What the number belongs to: two containers count for themselves. None where the system shows no process to another.
    space: Option<PathBuf>,
}

impl Process {
    /// This one.
    pub(super) fn here() -> Self {
        Process { number: std::process::id(), space: std::fs::read_link("/proc/self/ns/pid").ok() }
    }

    /// A path as it is meant in that process, for this one.
    ///
    /// # Errors
    /// `Invalid` for an open file of that process, where this one can't reach it.
    pub(super) fn meant(&self, path: PathBuf) -> Result<PathBuf> {
        let Some(rest) = within_this(&path) else { return Ok(path) };
        if self.space.is_none() || self.space != Process::here().space {
            let why = "must be a file that the process finds that has the database open; `-` stands for the standard streams";
            return Err(Error::invalid("path", why, path.display()));
        }
        Ok(self.folder().join(rest))
    }

    /// Whether a path, as this process means it, leads to standard output of that process.
    pub(super) fn has_output_at(&self, path: &Path) -> bool {
        let of_this = within_this(path).map(|rest| Process::here().folder().join(rest));
        of_this.as_deref().unwrap_or(path) == self.folder().join("fd/1")
    }

    fn folder(&self) -> PathBuf {
        Path::new("/proc").join(self.number.to_string())
    }
}

/// What a path that leads to something of this very process means there: the rest behind `/proc/self`.
#[cfg(target_os = "linux")]
fn within_this(path: &Path) -> Option<PathBuf> {
    let own = std::fs::canonicalize("/proc/self").ok()?;
    let mut path = path.to_owned();
    for _ in 0..LINKS_FOLLOWED_MAX {
        let folder = std::fs::canonicalize(path.parent()?).ok()?;
        path = folder.join(path.file_name()?);
        if let Ok(rest) = path.strip_prefix(&own) {
            return Some(rest.to_owned());
        }
        path = folder.join(std::fs::read_link(&path).ok()?);
    }
    None
}

/// Elsewhere than on Linux open files have names in their own process alone.
#[cfg(not(target_os = "linux"))]
fn within_this(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_FOLLOWED_MAX {
        if ["/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"].iter().any(|own| path.starts_with(own)) {
            return Some(path);
        }
        let folder = path.parent()?.to_owned();
        path = folder.join(std::fs::read_link(&path).ok()?);
    }
    None
}
