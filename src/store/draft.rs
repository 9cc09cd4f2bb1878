//! Drafts: a new file is written under a name of its own and takes its place only when it is whole.
//!
//! A process that is killed leaves its draft behind, with a copy of everything that the file held. Whoever next works on the
//! file under the name that the draft was for takes it away, and so does a compaction of any file beside
//! it. A draft that somebody is still at work on is locked, as every open file is, and stays: it is locked until it has its name,
//! or else the database is that it is to replace. A draft that was just made is not locked yet, but nobody takes an empty file
//! for a database.
//!
//! Not every file system can give a file a name only if that is free, so the name of a new file is claimed first, by an empty
//! file that its maker has locked. An empty file with a draft beside it is such a claim; without a lock it is what a killed
//! process left.

use std::ffi::OsStr;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::store::disk::{BackendError, Disk, OpenFile};
use crate::store::hold::Hold;

/// How the name of a draft ends, behind its tag.
const ENDING: &str = ".new";
/// Digits of the tag.
const TAG_DIGITS: usize = 16;

/// A name beside `path` that nobody else makes at the same time: `unique` is random.
pub(super) fn draft_path(path: &Path, unique: &[u8]) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    let tag = unique
        .iter()
        .take(6)
        .fold(std::process::id() as u64, |tag, byte| tag.wrapping_mul(257) ^ u64::from(*byte));
    name.push(format!(".{tag:0TAG_DIGITS$x}{ENDING}"));
    path.with_file_name(name)
}

/// The name for which a file is a draft; none where it is no draft.
fn meant_by(file: &Path) -> Option<&[u8]> {
    let rest = file.file_name()?.as_encoded_bytes().strip_prefix(b".")?.strip_suffix(ENDING.as_bytes())?;
    let (name, tag) = rest.split_at_checked(rest.len().checked_sub(TAG_DIGITS)?)?;
    tag.iter().all(u8::is_ascii_hexdigit).then(|| name.strip_suffix(b".")).flatten()
}

/// The name with these bytes. A name of a Unix system need not be UTF-8, and what a backup under such a name left goes as well.
#[cfg(unix)]
fn named(bytes: &[u8]) -> Option<&OsStr> {
    Some(std::os::unix::ffi::OsStrExt::from_bytes(bytes))
}

/// The name with these bytes, where it can be made of them.
#[cfg(not(unix))]
fn named(bytes: &[u8]) -> Option<&OsStr> {
    std::str::from_utf8(bytes).ok().map(OsStr::new)
}

/// Whether a file is a draft for `path`.
fn is_draft_for(path: &Path, file: &Path) -> bool {
    path.file_name().is_some_and(|name| meant_by(file) == Some(name.as_encoded_bytes()))
}

/// The drafts for a file, whole or not.
pub(super) fn drafts_for(disk: &dyn Disk, path: &Path) -> Result<Vec<PathBuf>> {
    drafts_beside(disk, path, |file| is_draft_for(path, file))
}

/// The files beside a file that `is_draft` finds to be drafts.
fn drafts_beside(disk: &dyn Disk, path: &Path, is_draft: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let mut all = disk.beside(path).map_err(|why| Error::io("list the folder of", path, why))?;
    all.retain(|file| is_draft(file));
    all.sort_unstable();
    Ok(all)
}

/// Takes the drafts for a file away that nobody is at work on.
///
/// # Errors
/// `Io` for one that can't be removed.
pub(super) fn clear_drafts(disk: &dyn Disk, path: &Path) -> Result<()> {
    clear(disk, drafts_for(disk, path)?)
}

/// Takes the drafts for other files beside a file away that are databases and left by killed processes, such as that of a
/// backup which was cut off and whose name nobody uses again. A name that its maker had claimed is free again. What can't be
/// taken away is another's, and stays.
///
/// # Errors
/// `Io` for a folder that can't be listed.
pub(super) fn clear_left_drafts(
    disk: &dyn Disk,
    path: &Path,
    is_database: impl Fn(&Path) -> bool,
) -> Result<()> {
    for draft in drafts_beside(disk, path, |file| meant_by(file).is_some() && is_database(file))? {
        let Some(name) = meant_by(&draft).and_then(named) else { continue };
        let named = path.with_file_name(name);
        if is_in_use(disk, &named) {
            continue;
        }
        // The claim goes first: an empty file without a draft beside it is none.
        let cleared = clear_claim(disk, &named).and_then(|()| clear(disk, vec![draft.clone()]));
        if let Err(why) = cleared {
            tracing::warn!(draft = %draft.display(), %why, "what a process left beside the file stays");
        }
    }
    Ok(())
}

/// Whether somebody has the file of this name open, who may be at work on a draft for it, and clears it otherwise. Where it can't be
/// told, somebody may.
fn is_in_use(disk: &dyn Disk, path: &Path) -> bool {
    match disk.open(path, true) {
        Ok(file) => file.backend.query_lock_range(Bound::Unbounded, Bound::Unbounded).unwrap_or(true),
        Err(why) => why.kind() != std::io::ErrorKind::NotFound,
    }
}

fn clear(disk: &dyn Disk, drafts: Vec<PathBuf>) -> Result<()> {
    let gone = |why: &std::io::Error| why.kind() == std::io::ErrorKind::NotFound;
    for draft in drafts {
        let backend = match disk.open(&draft, true) {
            Err(why) if gone(&why) => continue,
            opened => opened.map_err(|why| Error::io("open", &draft, why))?.backend,
        };
        match backend.try_lock_range(Bound::Unbounded, Bound::Unbounded) {
            Ok(true) => match disk.remove(&draft) {
                Err(why) if !gone(&why) => return Err(Error::io("remove", &draft, why)),
                _ => tracing::info!(draft = %draft.display(), "what a killed process left was removed"),
            },
            Err(BackendError::Io(why)) => return Err(Error::io("lock", &draft, why)),
            // Somebody is at work on it, or there is no way to tell.
            Ok(false) | Err(_) => {}
        }
        backend.close().map_err(|why| Error::io("close", &draft, why))?;
    }
    Ok(())
}

/// How often a claim may be taken away before it is locked.
const CLAIMS_MAX: usize = 16;

/// Gives a draft that is whole and closed the name that it is for. The draft is held until it has the name.
///
/// # Errors
/// `Io` with the kind `AlreadyExists` for a name that is given, `Locked` where another process is about to give it; `Io`.
pub(super) fn publish(disk: &dyn Disk, draft: &Path, hold: Hold, path: &Path) -> Result<()> {
    // No claim outlives its draft when the power fails: it would be an empty file of which nobody knows.
    disk.sync_folder(path).map_err(|why| Error::io("sync the folder of", path, why))?;
    for _ in 0..CLAIMS_MAX {
        let claim = disk.create(path).map_err(|why| Error::io("create", path, why))?;
        let held = match holds_claim(disk, path, &claim) {
            Ok(false) => continue,
            // Whoever has locked it takes it away.
            Err(why @ Error::Locked { .. }) => return Err(why),
            held => held,
        };
        let rename = || disk.rename(draft, path).map_err(|why| Error::io("create", path, why));
        let named = held.and_then(|_| rename());
        drop(hold);
        if named.is_err()
            && let Err(why) = disk.remove(path)
        {
            tracing::warn!(file = %path.display(), %why, "an empty file could not be removed");
        }
        claim.backend.close().map_err(|why| Error::io("close", path, why))?;
        return named;
    }
    Err(Error::Locked { path: path.to_owned() })
}

/// Whether what has the name is a claim, of somebody who is at work or was killed.
pub(super) fn is_claim(disk: &dyn Disk, path: &Path) -> Result<bool> {
    match disk.len(path) {
        Ok(0) => Ok(!drafts_for(disk, path)?.is_empty()),
        _ => Ok(false),
    }
}

/// Takes the claim of a killed process away.
///
/// # Errors
/// `Locked` where its maker is at work; `Io`.
pub(super) fn clear_claim(disk: &dyn Disk, path: &Path) -> Result<()> {
    if !is_claim(disk, path)? {
        return Ok(());
    }
    let claim = match disk.open(path, true) {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(|why| Error::io("open", path, why))?,
    };
    let cleared = match holds_claim(disk, path, &claim) {
        Ok(true) => disk.remove(path).map_err(|why| Error::io("remove", path, why)),
        Ok(false) => Ok(()),
        Err(why) => Err(why),
    };
    claim.backend.close().map_err(|why| Error::io("close", path, why))?;
    cleared
}

/// Locks a claim; false where the name has gone to another file meanwhile.
fn holds_claim(disk: &dyn Disk, path: &Path, claim: &OpenFile) -> Result<bool> {
    match claim.backend.try_lock_range(Bound::Unbounded, Bound::Unbounded) {
        Ok(true) | Err(BackendError::Unsupported) => {}
        Ok(false) => return Err(Error::Locked { path: path.to_owned() }),
        Err(BackendError::Io(why)) => return Err(Error::io("lock", path, why)),
        Err(why) => return Err(Error::io("lock", path, std::io::Error::other(why.to_string()))),
    }
    // The name may have gone to another file before this one was locked.
    match disk.id(path) {
        Ok(named) => Ok(named == claim.id && disk.len(path).is_ok_and(|len| len == 0)),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(why) => Err(Error::io("look at", path, why)),
    }
}

/// Whether the making of a draft for `path` failed because somebody else was faster: the name is given.
pub(super) fn is_overtaken(disk: &dyn Disk, path: &Path, why: &Error) -> bool {
    let kind = match why {
        Error::Locked { .. } => std::io::ErrorKind::NotFound,
        Error::Io { source, .. } => source.kind(),
        _ => return false,
    };
    let taken = matches!(kind, std::io::ErrorKind::NotFound | std::io::ErrorKind::AlreadyExists);
    taken && disk.exists(path).unwrap_or(false)
}
