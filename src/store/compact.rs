//! Compaction: a copy of every table in key order into a new file, which then takes the old one's place.
//!
//! redb's own compaction moves pages whole, with their slack: deleted values stay in them. A copy of rows has no
//! slack and nothing deleted. Slots are numbered anew so that blocks have no holes; those of dead nodes are kept where
//! there is a graph that needs them. `compact`, `backup` and `forget --erase` are this one path.
//!
//! Memory: a slice of rows, the cache of the copy, and for each slot of an index a bit and a half. Damage stops nothing: a
//! value that can't be read is copied as it stands, rows behind a damaged page are read from the other end, and
//! what was met is told; a copy that has damage is mended before it gets its name.

mod graph;
mod numbers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use redb::{Database, ReadableDatabase};

use crate::error::{Error, FILE_CUT, Result};
use crate::record::{
    At, DocBlock, DocMeta, SlotMeta, decode_vitals, encode_vitals, slots_per_block, vectors_per_block,
};
use crate::store::control::{SizeRow, SlotHead};
use crate::store::draft::{clear_claim, clear_drafts, draft_path, is_overtaken, publish};
use crate::store::keys;
use crate::store::open::{Options, Store, io, start};
use crate::store::part::{IndexId, NsId, PartId, SpaceId};
use crate::store::rows::Rows;
use crate::store::size::OWN_BYTES;
use crate::store::tables::{SIZE, Table};
use crate::store::tx::{Read, Snapshot, Walk, WriteTx, fenced};

use graph::Graph;
use numbers::Numbers;

/// Rows that one transaction of the copy takes.
const SLICE_ROWS: usize = 50_000;
/// Bytes of keys and values that one transaction of the copy takes, and the row that passes them: bounds the memory that a
/// slice needs.
const SLICE_BYTES: usize = 4 << 20;
/// Cache of the file that is being written: its pages are not read again.
const CACHE_BYTES: usize = 4 << 20;

/// What a compaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompactReport {
    /// Length of the file before, in bytes.
    pub(crate) bytes_before: u64,
    /// Length of the file after, in bytes.
    pub(crate) bytes_after: u64,
    /// Rows copied, of all tables.
    pub(crate) rows: u64,
    /// What can't be read, in the order of the copy.
    pub(crate) damaged: Vec<Damaged>,
}

/// A row that a copy could not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damaged {
    /// Its table.
    pub(crate) table: Table,
    /// Its key; of rows of a damaged page the last key that was read before them.
    pub(crate) key: Vec<u8>,
    /// What is wrong with it.
    pub(crate) why: String,
}

/// What a copy took.
struct Copied {
    rows: u64,
    damaged: Vec<Damaged>,
}

/// Makes a whole store of a copy that has damage, and closes it: what can't be read goes, with what leads to it.
pub(crate) type Mend<'m> = &'m mut dyn FnMut(Store, &[Damaged]) -> Result<()>;

impl Store {
    /// Puts a fresh copy in place of the file. Writers wait; readers stay on the old file until they take a new
    /// snapshot.
    ///
    /// # Errors
    /// `Io` when the disk is full or refuses; the database is then as it was.
    pub(crate) fn compact(&self, unique: &[u8; 32], mend: Mend<'_>) -> Result<CompactReport> {
        let _one = self.writer.lock();
        // Of what is forgotten there must be no copy left either.
        clear_drafts(self.disk.as_ref(), self.path())?;
        let bytes_before = self.file_bytes()?;
        let path = self.path().to_owned();
        let (draft, Copied { rows, damaged }) = self.whole_copy(&path, unique, true, mend)?;
        let replaced = self.disk.open(&draft, true).map_err(|why| io("open", &draft, why)).and_then(|file| {
            // The copy is opened, and so locked, before it takes the name: no other process can come between.
            let database = start(file.backend, &self.options, &draft)?;
            let nonce = Snapshot::new(fenced("file", &[], || database.begin_read())?, 0).clock()?.nonce;
            self.disk.rename(&draft, &path).map_err(|why| io("replace", &path, why))?;
            Ok((database, file.id, nonce))
        });
        let (database, id, nonce) = replaced.map_err(|why| self.clear_away(&draft, why))?;
        *self.last.lock() = nonce;
        // Until the folder is synced the power may bring the old file back, so no commit may count before.
        self.name_unsynced.store(true, Ordering::SeqCst);
        self.replace(database, id);
        self.sync_name()?;
        Ok(CompactReport { bytes_before, bytes_after: self.file_bytes()?, rows, damaged })
    }

    /// Writes a fresh copy under another name, which must be free.
    ///
    /// # Errors
    /// `Conflict` when there is something at `target`; `Io`.
    pub(crate) fn backup(&self, target: &Path, unique: &[u8; 32], mend: Mend<'_>) -> Result<CompactReport> {
        let _one = self.writer.lock();
        let bytes_before = self.file_bytes()?;
        clear_claim(self.disk.as_ref(), target)?;
        clear_drafts(self.disk.as_ref(), target)?;
        let taken = |why: Error| match is_overtaken(self.disk.as_ref(), target, &why) {
            true => Error::Conflict {
                what: format!("backup to {}", target.display()),
                why: "there is something by this name".to_owned(),
            },
            false => why,
        };
        let (draft, Copied { rows, damaged }) =
            self.whole_copy(target, unique, false, mend).map_err(taken)?;
        publish(self.disk.as_ref(), &draft, target).map_err(|why| self.clear_away(&draft, taken(why)))?;
        self.disk.sync_folder(target).map_err(|why| io("sync the folder of", target, why))?;
        let bytes_after = self.disk.len(target).map_err(|why| io("measure", target, why))?;
        Ok(CompactReport { bytes_before, bytes_after, rows, damaged })
    }

    /// A draft that is not to be takes no room; if even that fails, the first failure is the one to tell.
    fn clear_away(&self, draft: &Path, why: Error) -> Error {
        match self.disk.remove(draft) {
            Ok(()) => why,
            Err(removing) if removing.kind() == std::io::ErrorKind::NotFound => why,
            Err(removing) => {
                tracing::warn!(draft = %draft.display(), %removing, "a half copy could not be removed");
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
        mend: Mend<'_>,
    ) -> Result<(PathBuf, Copied)> {
        let (rough, whole) = (draft_path(target, unique), draft_path(target, &unique.map(|byte| !byte)));
        let copied = self.copy_to(&rough, in_place).map_err(|why| self.clear_away(&rough, why))?;
        if copied.damaged.is_empty() {
            return Ok((rough, copied));
        }
        let mended = self.open_draft(&rough, unique).and_then(|store| mend(store, &copied.damaged));
        match torn(mended) {
            // What a whole store needs is lost: then a copy with damage is better than none.
            Ok(Err(_)) => return Ok((rough, copied)),
            Ok(Ok(())) => {}
            Err(why) => return Err(self.clear_away(&rough, why)),
        }
        let again = self.open_draft(&rough, unique).and_then(|store| store.copy_to(&whole, in_place));
        let again = again.map_err(|why| self.clear_away(&rough, self.clear_away(&whole, why)))?;
        self.disk.remove(&rough).map_err(|why| self.clear_away(&whole, io("remove", &rough, why)))?;
        Ok((whole, Copied { rows: again.rows, damaged: copied.damaged }))
    }

    fn open_draft(&self, draft: &Path, unique: &[u8; 32]) -> Result<Store> {
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
        Store::open(Arc::clone(&self.disk), options)
    }

    /// Copies every row into a new file and closes it. Only its owner can read it, unless it is to take the place of this
    /// one.
    fn copy_to(&self, draft: &Path, in_place: bool) -> Result<Copied> {
        let snapshot = self.snapshot()?;
        let file = self.disk.create(draft).map_err(|why| io("create", draft, why))?;
        if in_place {
            let path = self.path();
            self.disk.keep_access(path, draft).map_err(|why| io("keep the permissions of", path, why))?;
        }
        let options =
            Options { cache_bytes: self.options.cache_bytes.min(CACHE_BYTES), ..self.options.clone() };
        let mut database = start(file.backend, &options, draft)?;
        let mut copy = Copy {
            from: &snapshot,
            to: &database,
            slots: BTreeMap::new(),
            rows: 0,
            live: 0,
            damaged: Vec::new(),
        };
        for table in Table::ALL {
            copy.table(*table)?;
        }
        copy.size()?;
        let copied = Copied { rows: copy.rows, damaged: copy.damaged };
        drop(snapshot);
        // redb doubles a file as it grows. What it moves here are pages of a copy in which nothing was ever deleted.
        fenced("file", &[], || database.compact().map(drop))?;
        fenced("file", &[], || database.close().map_err(super::open::closing))?;
        Ok(copied)
    }
}

/// Rows of a slice of the copy, with their keys.
#[derive(Default)]
struct Slice {
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
}

impl Slice {
    fn take(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        self.bytes += key.len() + value.len();
        self.rows.push((key.to_vec(), value.to_vec()));
        if self.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= SLICE_ROWS || self.bytes >= SLICE_BYTES
    }
}

/// A slot that a copy keeps.
struct Kept {
    old: u32,
    new: u32,
    meta: SlotMeta,
    code: Vec<i8>,
}

/// A copy under way. Tables come in the order of [`Table::ALL`]: slots before the vitals that name them.
struct Copy<'c> {
    from: &'c Snapshot,
    to: &'c Database,
    /// New numbers of the slots of each index.
    slots: BTreeMap<IndexId, Numbers>,
    rows: u64,
    /// Bytes of keys and values that the copy has so far.
    live: i64,
    damaged: Vec<Damaged>,
}

/// What is damaged, where something is; what else went wrong is an error.
fn torn<T>(read: Result<T>) -> Result<Result<T, String>> {
    match read {
        Ok(read) => Ok(Ok(read)),
        // Of a file that was cut nothing more can be read.
        Err(Error::Corrupted { why, .. }) if why != FILE_CUT => Ok(Err(why)),
        Err(other) => Err(other),
    }
}

impl Copy<'_> {
    fn table(&mut self, table: Table) -> Result<()> {
        match table {
            Table::Slot => self.indexes(),
            // Written by `indexes`; a fresh copy has no free slots.
            Table::SlotHead | Table::Vector | Table::Graph | Table::GraphHead | Table::SlotDead => Ok(()),
            Table::SlotFree => Ok(()),
            _ => self.plain(table, &Walk::all()),
        }
    }

    fn commit(&mut self, unit: impl FnOnce(&mut WriteTx<'_>) -> Result<()>) -> Result<()> {
        // A copy that is not whole is not used, so a slice need not outlive a crash in any way but the cheapest.
        let written = super::open::transact(self.to, crate::store::Durability::Fast, unit)?;
        self.live += written.grown;
        Ok(())
    }

    /// Tells how much the rows of the copy take, and the pages under them.
    fn size(&mut self) -> Result<()> {
        let pages = Snapshot::new(fenced("file", &[], || self.to.begin_read())?, 0).sizes()?;
        let overhead = OWN_BYTES + pages.iter().map(|(_, table)| table.overhead).sum::<u64>();
        let copied = u64::try_from(self.live).unwrap_or_default();
        self.rows += 1;
        // The transaction adds the row itself.
        self.commit(|tx| tx.put_size(&SizeRow { live: copied, copied, overhead }))
    }

    fn note(&mut self, table: Table, key: &[u8], why: impl Into<String>) {
        self.damaged.push(Damaged { table, key: key.to_vec(), why: why.into() });
    }

    /// Copies the rows of a walk one by one, in slices. Where a page is damaged, those behind it are read from the end.
    fn plain(&mut self, table: Table, walk: &Walk) -> Result<()> {
        let (last, why) = self.rows(table, walk.clone(), false)?;
        let Some(why) = why else { return Ok(()) };
        self.note(table, last.as_deref().unwrap_or_default(), why);
        let rest = last.map_or_else(|| walk.clone(), |last| walk.clone().after(&last));
        self.rows(table, rest.reversed(), true).map(|_| ())
    }

    /// Copies the rows of a walk as far as they can be read: the last key, and why the walk ended before its end.
    fn rows(
        &mut self,
        table: Table,
        mut walk: Walk,
        reversed: bool,
    ) -> Result<(Option<Vec<u8>>, Option<String>)> {
        let mut last = None;
        loop {
            let mut slice = Slice::default();
            let from = self.from;
            let walked = torn(from.walk(table, &walk, &mut |key, value| Ok(slice.take(key, value))))?;
            let full = slice.is_full();
            last = slice.rows.last().map(|(key, _)| key.clone()).or(last);
            self.put(table, slice)?;
            match (walked, &last) {
                (Err(why), _) => return Ok((last, Some(why))),
                (Ok(()), Some(at)) if full => walk = if reversed { walk.before(at) } else { walk.after(at) },
                (Ok(()), _) => return Ok((last, None)),
            }
        }
    }

    fn put(&mut self, table: Table, slice: Slice) -> Result<()> {
        let mut rows = Vec::with_capacity(slice.rows.len());
        for (key, value) in slice.rows {
            // A copy has one of its own.
            if table == Table::Meta && key == SIZE {
                continue;
            }
            let read = match table {
                Table::Vitals => self.vitals(&key, &value),
                Table::TextDoc => self.docs(&key, &value),
                _ => table.check_value(&key, &value).map(|()| None),
            };
            let changed = torn(read)?.unwrap_or_else(|why| {
                self.note(table, &key, why);
                None
            });
            rows.push((key, changed.unwrap_or(value)));
        }
        self.rows += rows.len() as u64;
        self.commit(|tx| {
            tx.touch(table)?;
            rows.iter().try_for_each(|(key, value)| tx.put(table, key, value))
        })
    }

    /// Vitals with the new number of their slot; none where they are to stay as they are.
    fn vitals(&mut self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>> {
        let at = At::new(Table::Vitals.name(), key);
        let mut vitals = decode_vitals(at, value)?;
        let Some(slot) = vitals.place.slot else { return Ok(None) };
        let keys::Vitals { ns, .. } = keys::Vitals::read(Table::Vitals, key)?;
        let (part, space) = (PartId(vitals.place.partition), SpaceId(vitals.place.space));
        let numbers = self.slots.get(&IndexId { ns, part, space });
        vitals.place.slot = numbers.and_then(|numbers| numbers.of(slot));
        if vitals.place.slot.is_none() {
            self.note(Table::Vitals, key, "the memory says that it has a slot, and there is no such slot");
        }
        let mut bytes = Vec::with_capacity(value.len());
        encode_vitals(&vitals, key, &mut bytes);
        Ok(Some(bytes))
    }

    /// Documents with the new numbers of the slots of their memories.
    fn docs(&self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut docs = DocBlock::decode(At::new(Table::TextDoc.name(), key), value)?;
        let keys::TextDoc { ns, part, .. } = keys::TextDoc::read(Table::TextDoc, key)?;
        for at in 0..docs.len() {
            let Some(doc) = docs.get(at).copied() else { continue };
            let Some(slot) = doc.slot else { continue };
            let numbers = self.numbers_of(ns, part, &doc)?;
            let slot = numbers.and_then(|numbers| numbers.of(slot));
            docs.put(at, Some(DocMeta { slot, ..doc }));
        }
        let mut bytes = Vec::with_capacity(value.len());
        docs.encode(key, &mut bytes);
        Ok(Some(bytes))
    }

    /// The numbers of the index in which the memory of a document has its slot.
    fn numbers_of(&self, ns: NsId, part: PartId, doc: &DocMeta) -> Result<Option<&Numbers>> {
        let of_space = |space| IndexId { ns, part, space: SpaceId(space) };
        let mut indexes = self.slots.range(of_space(0)..=of_space(u16::MAX)).map(|(_, numbers)| numbers);
        if let (Some(only), None) = (indexes.next(), indexes.next()) {
            return Ok(Some(only));
        }
        let vitals = torn(self.from.vitals(ns, doc.id))?.unwrap_or_default();
        Ok(vitals.and_then(|vitals| self.slots.get(&of_space(vitals.place.space))))
    }

    /// Copies codes, vectors and graphs, index by index, without the holes.
    fn indexes(&mut self) -> Result<()> {
        self.commit(|tx| OF_INDEXES.into_iter().try_for_each(|table| tx.touch(table)))?;
        let mut indexes = Vec::new();
        let walked = self.from.walk(Table::SlotHead, &Walk::all(), &mut |key, _| {
            indexes.push(keys::SlotHead::read(Table::SlotHead, key)?.index);
            Ok(ControlFlow::Continue(()))
        });
        if let Err(why) = torn(walked)? {
            self.note(Table::SlotHead, &[], why);
        }
        for index in indexes {
            if let Err(why) = torn(self.index(index))? {
                // Codes can be made again from the vectors, so these keep their places. A graph is left out.
                self.note(Table::Slot, &keys::index(index), why);
                let rows = Walk::prefix(&keys::index(index));
                for table in OF_INDEXES {
                    self.commit(|tx| tx.delete_walk(table, &rows, usize::MAX).map(drop))?;
                }
                for table in [Table::Slot, Table::SlotHead, Table::SlotFree, Table::Vector] {
                    self.plain(table, &rows)?;
                }
                self.slots.insert(index, Numbers::Same);
            }
        }
        Ok(())
    }

    fn index(&mut self, index: IndexId) -> Result<()> {
        let head = self.from.slot_head(index)?;
        let space = self.from.space(index.space)?;
        let dim = space.map(|space| space.dim as usize).ok_or_else(|| {
            Error::corrupted(Table::Space.name(), &keys::space(index.space), "an index lies in no space")
        })?;
        let linked = self.from.look(Table::GraphHead, &keys::index(index), &mut |_| Ok(()))?;
        let mut numbers = Numbers::without_holes(self.from, index, head.len, dim, linked)?;
        let graph = Graph::of(self.from, index, &numbers)?;
        if linked && graph.is_none() {
            self.note(Table::Graph, &keys::index(index), "the graph can't be read");
            numbers = Numbers::without_holes(self.from, index, head.len, dim, false)?;
        }
        self.codes(index, head, dim, &numbers)?;
        if let Some(graph) = graph {
            self.graph(index, &graph, &numbers)?;
        }
        self.slots.insert(index, numbers);
        Ok(())
    }

    /// Copies the codes and vectors of an index; the dead slots only where the copy has the graph that needs them.
    fn codes(&mut self, index: IndexId, head: SlotHead, dim: usize, numbers: &Numbers) -> Result<()> {
        let per = slots_per_block(dim) as u32;
        let (mut copied, mut kept) = (SlotHead::default(), Vec::new());
        let most = SLICE_BYTES / (SLOT_BYTES + 2 * 5 * dim);
        for block in 0..head.len.div_ceil(per) {
            let codes = self.from.slot_block(index, block, dim)?;
            for (at, slot) in (0..per as usize).zip(block * per..) {
                let (Some(codes), Some(new)) = (&codes, numbers.of(slot)) else { continue };
                let (Some(meta), Some(code)) = (codes.meta(at), codes.code(at)) else { continue };
                copied.len = new + 1;
                copied.used += u32::from(!meta.is_vacant());
                kept.push(Kept { old: slot, new, meta: *meta, code: code.to_vec() });
            }
            if kept.len() >= most || block + 1 == head.len.div_ceil(per) {
                self.put_slots(index, dim, &kept, &copied)?;
                kept.clear();
            }
        }
        Ok(())
    }

    fn put_slots(&mut self, index: IndexId, dim: usize, kept: &[Kept], head: &SlotHead) -> Result<()> {
        let mut lost = Vec::new();
        let from = self.from;
        self.commit(|tx| {
            let mut vector = Vec::with_capacity(dim);
            for slot in kept {
                if let Err(why) = put_slot(tx, from, index, slot, &mut vector, dim)? {
                    lost.push((keys::memory(index.ns, slot.meta.id), why));
                }
            }
            tx.put_slot_head(index, head)
        })?;
        self.rows += kept.len() as u64;
        lost.into_iter().for_each(|(key, why)| self.note(Table::Vector, &key, why));
        Ok(())
    }
}

/// The tables of an index of vectors.
const OF_INDEXES: [Table; 7] = [
    Table::Slot,
    Table::SlotHead,
    Table::SlotFree,
    Table::SlotDead,
    Table::Vector,
    Table::Graph,
    Table::GraphHead,
];
/// Bytes of a slot that is being copied, beside its code and its vector, which lie in memory twice.
const SLOT_BYTES: usize = 256;

/// Puts a slot under its new number, with its vector or its row among the dead. A vector that can't be read leaves its
/// place vacant.
fn put_slot(
    tx: &mut WriteTx<'_>,
    from: &Snapshot,
    index: IndexId,
    slot: &Kept,
    vector: &mut Vec<f32>,
    dim: usize,
) -> Result<Result<(), String>> {
    let per = slots_per_block(dim) as u32;
    let codes = tx.slot_block_mut(index, slot.new / per, dim)?;
    codes.put((slot.new % per) as usize, slot.meta, &slot.code);
    if slot.meta.is_vacant() {
        return tx.put_dead_slot(index, slot.meta.died, slot.new).map(Ok);
    }
    match torn(from.vector(index, dim, slot.old, vector))? {
        Ok(true) => {}
        Ok(false) => return Ok(Err("a code without its vector".to_owned())),
        Err(why) => return Ok(Err(why)),
    }
    let per = vectors_per_block(dim) as u32;
    tx.vector_block_mut(index, slot.new / per, dim)?.put((slot.new % per) as usize, vector);
    Ok(Ok(()))
}
