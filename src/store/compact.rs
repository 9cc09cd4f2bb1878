//! Compaction: a copy of every table in key order into a new file, which then takes the old one's place.
//!
//! redb's own compaction moves pages whole, with their slack: deleted values stay in them. A copy of rows has no
//! slack and nothing deleted. Slots are numbered anew so that blocks have no holes; those of dead nodes are kept where
//! there is a graph that needs them. `compact`, `backup` and `forget --erase` are this one path.
//!
//! Memory: a slice of rows, the cache of the copy, and for each slot of an index a bit and a half. Damage stops nothing: a
//! value that can't be read is copied as it stands, or under the key that fits it; rows behind a damaged page are read from
//! the other end, and what was met is told; a copy that has damage is mended before it gets its name.

mod bits;
mod copy;
mod graph;
mod indexes;
mod numbers;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use redb::ReadableDatabase;

use crate::error::{BACKUP_TO, Error, Result};
use crate::store::disk::Medium;
use crate::store::draft::{clear_claim, clear_drafts, clear_left_drafts, draft_path, is_overtaken, publish};
use crate::store::handle::{Options, closing, is_database, start};
use crate::store::hold::Hold;
use crate::store::open::Store;
use crate::store::raw::{Walk, fenced};
use crate::store::rows::Rows;
use crate::store::tables::Table;
use crate::store::tx::Snapshot;

pub(crate) use copy::Damaged;
use copy::{Copy, torn};

/// Cache of the file that is being written: its pages are not read again.
const CACHE_BYTES: usize = 4 << 20;

/// A file that was copied whole: by a compaction or a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileCopied {
    /// Length of the file before, in bytes.
    pub(crate) bytes_before: u64,
    /// Length of the file after, in bytes.
    pub(crate) bytes_after: u64,
    /// Rows copied, of all tables.
    pub(crate) rows: u64,
    /// What can't be read, in the order of the copy.
    pub(crate) damaged: Vec<Damaged>,
}

/// What a copy took.
struct Copied {
    rows: u64,
    damaged: Vec<Damaged>,
}

/// Makes a whole store of a copy that has damage, and closes it: what can't be read goes, with what leads to it.
pub(crate) type Mend<'m> = &'m mut dyn FnMut(Store, &[Damaged]) -> Result<()>;

/// The error of a backup whose name is given.
fn taken(target: &Path) -> Error {
    Error::Conflict {
        what: format!("{BACKUP_TO} {}", target.display()),
        why: "there is something by this name".to_owned(),
    }
}

impl Store {
    /// Puts a fresh copy in place of the file. Writers wait; readers stay on the old file until they take a new
    /// snapshot. A copy of a file that is known to have damage (`is_damaged`) is mended even where every row can be read.
    ///
    /// # Errors
    /// `Io` or `Retry` when the disk is full or refuses, `Unavailable` when another file has the name; the database is then as it was.
    pub(crate) fn compact(&self, unique: &[u8; 32], is_damaged: bool, mend: Mend<'_>) -> Result<FileCopied> {
        let _one = self.writer.lock();
        self.refuse_replaced()?;
        // Of what is forgotten there must be no copy left either.
        clear_drafts(self.disk.as_ref(), self.path())?;
        clear_left_drafts(self.disk.as_ref(), self.path(), is_database)?;
        let bytes_before = self.file_bytes()?;
        let path = self.path().to_owned();
        let (draft, hold, Copied { rows, damaged }) =
            self.whole_copy(&path, unique, true, is_damaged, mend)?;
        drop(hold);
        let replaced =
            self.disk.open(&draft, true).map_err(|why| Error::io("open", &draft, why)).and_then(|file| {
                // The copy is opened, and so locked, before it takes the name: no other process can come between.
                let database = start(Medium::new(file.backend), &self.options, &draft)?;
                let nonce = Snapshot::new(fenced("file", &[], || database.begin_read())?, 0).clock()?.nonce;
                // Copying takes time, and the name is not to be taken from whoever got it meanwhile.
                self.refuse_replaced()?;
                self.disk.rename(&draft, &path).map_err(|why| Error::io("replace", &path, why))?;
                Ok((database, file.id, nonce))
            });
        let (database, id, nonce) = replaced.map_err(|why| self.clear_away(&draft, why))?;
        *self.last.lock() = nonce;
        // Until the folder is synced the power may bring the old file back, so no commit may count before.
        self.name_unsynced.store(true, Ordering::SeqCst);
        self.replace(database, id);
        self.sync_name()?;
        Ok(FileCopied { bytes_before, bytes_after: self.file_bytes()?, rows, damaged })
    }

    /// Takes away what a killed backup has left of a name, and refuses one that is taken: before all the work of a backup.
    ///
    /// # Errors
    /// `Conflict` when there is something at `target`; `Locked` where another process is about to make it; `Io`.
    pub(crate) fn make_room(&self, target: &Path) -> Result<()> {
        clear_claim(self.disk.as_ref(), target)?;
        clear_drafts(self.disk.as_ref(), target)?;
        let exists = self.disk.exists(target).map_err(|why| Error::io("look at", target, why))?;
        if exists { Err(taken(target)) } else { Ok(()) }
    }

    /// Writes a fresh copy under another name, for which there is room; `is_damaged` as there.
    ///
    /// # Errors
    /// `Conflict` when somebody else was faster; `Io` or `Retry` when the disk is full or refuses.
    pub(crate) fn backup(
        &self,
        target: &Path,
        unique: &[u8; 32],
        is_damaged: bool,
        mend: Mend<'_>,
    ) -> Result<FileCopied> {
        let _one = self.writer.lock();
        let bytes_before = self.file_bytes()?;
        let overtaken =
            |why: Error| if is_overtaken(self.disk.as_ref(), target, &why) { taken(target) } else { why };
        let (draft, hold, Copied { rows, damaged }) =
            self.whole_copy(target, unique, false, is_damaged, mend).map_err(overtaken)?;
        publish(self.disk.as_ref(), &draft, hold, target)
            .map_err(|why| self.clear_away(&draft, overtaken(why)))?;
        // A copy whose name may not last is no backup, and would stand in the way of the next try.
        let synced = self.disk.sync_folder(target);
        synced.map_err(|why| self.clear_away(target, Error::io("sync the folder of", target, why)))?;
        let bytes_after = self.disk.len(target).map_err(|why| Error::io("measure", target, why))?;
        Ok(FileCopied { bytes_before, bytes_after, rows, damaged })
    }

    /// A copy that is not to be takes no room; if even that fails, the first failure is the one to tell.
    fn clear_away(&self, copy: &Path, why: Error) -> Error {
        match self.disk.remove(copy) {
            Ok(()) => why,
            Err(removing) if removing.kind() == std::io::ErrorKind::NotFound => why,
            Err(removing) => {
                tracing::warn!(copy = %copy.display(), %removing, "a half copy could not be removed");
                why
            }
        }
    }

    /// Copies every row to a draft for `target`, which is given with what was copied. Where something is damaged the copy is
    /// mended, and copied once more: what goes with the mending leaves no byte behind.
    fn whole_copy(
        &self,
        target: &Path,
        unique: &[u8; 32],
        in_place: bool,
        is_damaged: bool,
        mend: Mend<'_>,
    ) -> Result<(PathBuf, Hold, Copied)> {
        // The inverted bytes give the second draft a name of its own.
        let (rough, whole) = (draft_path(target, unique), draft_path(target, &unique.map(|byte| !byte)));
        let (hold, copied) = self.copy_to(&rough, in_place).map_err(|why| self.clear_away(&rough, why))?;
        if copied.damaged.is_empty() && !is_damaged {
            return Ok((rough, hold, copied));
        }
        let mended = self.open_draft(&rough, &hold, unique).and_then(|store| mend(store, &copied.damaged));
        match torn(mended) {
            // What a whole store needs is lost: then a copy with damage is better than none.
            Ok(Err(why)) => {
                tracing::error!(%why, "a copy could not be mended");
                return Ok((rough, hold, copied));
            }
            Ok(Ok(())) => {}
            Err(why) => return Err(self.clear_away(&rough, why)),
        }
        let again = self.open_draft(&rough, &hold, unique).and_then(|store| store.copy_to(&whole, in_place));
        let (again_hold, again) =
            again.map_err(|why| self.clear_away(&rough, self.clear_away(&whole, why)))?;
        self.disk.remove(&rough).map_err(|why| self.clear_away(&whole, Error::io("remove", &rough, why)))?;
        Ok((whole, again_hold, Copied { rows: again.rows, damaged: copied.damaged }))
    }

    /// Opens a draft under the locks that it has: without them, another process would take it for what a killed one left.
    fn open_draft(&self, draft: &Path, hold: &Hold, unique: &[u8; 32]) -> Result<Store> {
        let [.., a, b, c, d, e, f, g, h] = *unique;
        let options = Options {
            path: draft.to_owned(),
            shared: false,
            read_only: false,
            create: false,
            paranoid: false,
            opener: [a, b, c, d, e, f, g, h],
            ..self.options.clone()
        };
        Store::open(hold.disk(&self.disk, draft), options)
    }

    /// Copies every row into a new file and closes it, but holds it. Only its owner can read it, unless it is to take the place of
    /// this one.
    fn copy_to(&self, draft: &Path, in_place: bool) -> Result<(Hold, Copied)> {
        let snapshot = self.snapshot()?;
        let file = self.disk.create(draft).map_err(|why| Error::io("create", draft, why))?;
        if in_place {
            let path = self.path();
            self.disk
                .keep_access(path, draft)
                .map_err(|why| Error::io("keep the permissions of", path, why))?;
        }
        let options =
            Options { cache_bytes: self.options.cache_bytes.min(CACHE_BYTES), ..self.options.clone() };
        let (backend, hold) = Hold::of(file);
        let mut database = start(backend, &options, draft)?;
        let mut copy = Copy::new(&snapshot, &database);
        // Slots come before the vitals that name them.
        for table in Table::ALL {
            match table {
                Table::Slot => copy.indexes()?,
                // Written by `indexes`; a fresh copy has no free slots.
                Table::SlotHead | Table::Vector | Table::Graph | Table::GraphHead | Table::SlotDead => {}
                Table::SlotFree | Table::Bits | Table::BitsHead => {}
                _ => copy.plain(*table, &Walk::all())?,
            }
        }
        copy.size()?;
        let copied = Copied { rows: copy.rows, damaged: copy.damaged };
        drop(snapshot);
        // redb doubles a file as it grows. What it moves here are pages of a copy in which nothing was ever deleted.
        fenced("file", &[], || database.compact().map(drop))?;
        fenced("file", &[], || database.close().map_err(closing))?;
        Ok((hold, copied))
    }
}
