//! Compaction: a copy of every table in key order into a new file, which then takes the old one's place.
//!
//! redb's own compaction moves pages whole, with their slack: deleted values stay in them. A copy of rows has no
//! slack and nothing deleted. Slots are numbered anew so that blocks have no holes; those of dead nodes are kept where
//! there is a graph that needs them. `compact`, `backup` and `forget --erase` are this one path.

mod graph;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

use redb::Database;

use crate::error::{Error, Result};
use crate::model::MemoryId;
use crate::record::{
    At, DocBlock, DocMeta, SlotBlock, SlotMeta, decode_vitals, encode_vitals, slots_per_block,
    vectors_per_block,
};
use crate::store::control::SlotHead;
use crate::store::draft::{clear_drafts, draft_path, is_overtaken};
use crate::store::keys::{self, IndexId, NsId, Parts};
use crate::store::open::{Store, io, start};
use crate::store::rows::{Rows, bad_key, last_id};
use crate::store::tables::Table;
use crate::store::tx::{Read, Snapshot, Walk, WriteTx, fenced};

use graph::Graph;

/// Rows that one transaction of the copy takes: bounds the memory that dirty pages need.
const ROWS_PER_COMMIT: usize = 50_000;

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompactReport {
    /// Length of the file before, in bytes.
    pub(crate) bytes_before: u64,
    /// Length of the file after, in bytes.
    pub(crate) bytes_after: u64,
    /// Rows copied, of all tables.
    pub(crate) rows: u64,
}

/// New number of each slot that is in use, by index and memory.
type Renumbered = HashMap<(NsId, MemoryId), u32>;

impl Store {
    /// Puts a fresh copy in place of the file. Writers wait; readers stay on the old file until they take a new
    /// snapshot.
    ///
    /// # Errors
    /// `Io` when the disk is full or refuses; the database is then as it was.
    pub(crate) fn compact(&self, unique: &[u8; 32]) -> Result<CompactReport> {
        let _one = self.writer.lock();
        // Of what is forgotten there must be no copy left either.
        clear_drafts(self.disk.as_ref(), self.path())?;
        let bytes_before = self.file_bytes()?;
        let path = self.path().to_owned();
        let draft = draft_path(&path, unique);
        let copied = self.copy_to(&draft, true).and_then(|rows| {
            // The copy is opened, and so locked, before it takes the name: no other process can come between.
            let file = self.disk.open(&draft, true).map_err(|why| io("open", &draft, why))?;
            let database = start(file.backend, &self.options, &draft)?;
            self.disk.rename(&draft, &path).map_err(|why| io("replace", &path, why))?;
            Ok((rows, database, file.id))
        });
        let (rows, database, id) = match copied {
            Ok(copied) => copied,
            Err(why) => return Err(self.clear_away(&draft, why)),
        };
        // Until the folder is synced the power may bring the old file back, so no commit may count before.
        self.name_unsynced.store(true, Ordering::SeqCst);
        self.replace(database, id);
        self.sync_name()?;
        Ok(CompactReport { bytes_before, bytes_after: self.file_bytes()?, rows })
    }

    /// Writes a fresh copy under another name, which must be free.
    ///
    /// # Errors
    /// `Conflict` when there is something at `target`; `Io`.
    pub(crate) fn backup(&self, target: &Path, unique: &[u8; 32]) -> Result<CompactReport> {
        let _one = self.writer.lock();
        let bytes_before = self.file_bytes()?;
        clear_drafts(self.disk.as_ref(), target)?;
        let draft = draft_path(target, unique);
        let linked = self.copy_to(&draft, false).and_then(|rows| {
            self.disk.link(&draft, target).map_err(|why| io("create", target, why))?;
            Ok(rows)
        });
        let linked = linked.map_err(|why| match is_overtaken(self.disk.as_ref(), target, &why) {
            true => Error::Conflict {
                what: format!("backup to {}", target.display()),
                why: "there is something by this name".to_owned(),
            },
            false => why,
        });
        let rows = match linked {
            Ok(rows) => rows,
            Err(why) => return Err(self.clear_away(&draft, why)),
        };
        self.disk.remove(&draft).map_err(|why| io("remove", &draft, why))?;
        self.disk.sync_folder(target).map_err(|why| io("sync the folder of", target, why))?;
        let bytes_after = self.disk.len(target).map_err(|why| io("measure", target, why))?;
        Ok(CompactReport { bytes_before, bytes_after, rows })
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

    /// Copies every row into a new file and closes it. Only its owner can read it, unless it is to take the place of this
    /// one.
    fn copy_to(&self, draft: &Path, in_place: bool) -> Result<u64> {
        let snapshot = self.snapshot()?;
        let file = self.disk.create(draft).map_err(|why| io("create", draft, why))?;
        if in_place {
            let path = self.path();
            self.disk.keep_access(path, draft).map_err(|why| io("keep the permissions of", path, why))?;
        }
        let mut database = start(file.backend, &self.options, draft)?;
        let mut copy = Copy { from: &snapshot, to: &database, slots: Renumbered::new(), rows: 0 };
        for table in Table::ALL {
            copy.table(*table)?;
        }
        let rows = copy.rows;
        drop(snapshot);
        // redb doubles a file as it grows. What it moves here are pages of a copy in which nothing was ever deleted.
        fenced("file", &[], || database.compact().map(drop))?;
        fenced("file", &[], || database.close().map_err(super::open::closing))?;
        Ok(rows)
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
    slots: Renumbered,
    rows: u64,
}

impl Copy<'_> {
    fn table(&mut self, table: Table) -> Result<()> {
        match table {
            Table::Slot => self.indexes(),
            // Written by `indexes`; a fresh copy has no free slots.
            Table::SlotHead | Table::Vector | Table::Graph | Table::GraphHead | Table::SlotDead => Ok(()),
            Table::SlotFree => self.commit(|tx| tx.touch(Table::SlotFree)),
            _ => self.plain(table),
        }
    }

    fn commit(&self, unit: impl FnOnce(&mut WriteTx<'_>) -> Result<()>) -> Result<()> {
        super::open::transact(self.to, crate::store::Durability::Safe, unit).map(|_| ())
    }

    /// Copies a table row by row, in slices.
    fn plain(&mut self, table: Table) -> Result<()> {
        let mut walk = Walk::all();
        loop {
            let mut rows = Vec::new();
            self.from.walk(table, &walk, &mut |key, value| {
                rows.push((key.to_vec(), value.to_vec()));
                Ok(if rows.len() < ROWS_PER_COMMIT {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                })
            })?;
            self.rows += rows.len() as u64;
            self.commit(|tx| {
                tx.touch(table)?;
                for (key, value) in &rows {
                    match table {
                        Table::Vitals => tx.put(table, key, &self.vitals(key, value)?)?,
                        Table::TextDoc => tx.put(table, key, &self.docs(key, value)?)?,
                        _ => tx.put(table, key, value)?,
                    }
                }
                Ok(())
            })?;
            match rows.last() {
                Some((last, _)) if rows.len() == ROWS_PER_COMMIT => walk = walk.after(last),
                _ => return Ok(()),
            }
        }
    }

    /// Vitals with the new number of their slot.
    fn vitals(&self, key: &[u8], value: &[u8]) -> Result<Vec<u8>> {
        let at = At::new(Table::Vitals.name(), key);
        let mut vitals = decode_vitals(at, value)?;
        if vitals.place.slot.is_some() {
            let id = last_id(Table::Vitals, key)?;
            let ns = Parts(key).u32().ok_or_else(|| bad_key(Table::Vitals, key))?;
            let slot = self.slots.get(&(NsId(ns), id)).copied();
            vitals.place.slot = Some(slot.ok_or_else(|| {
                Error::corrupted(
                    Table::Slot.name(),
                    key,
                    "a memory says that it has a slot, and no slot knows it",
                )
            })?);
        }
        let mut bytes = Vec::with_capacity(value.len());
        encode_vitals(&vitals, key, &mut bytes);
        Ok(bytes)
    }

    /// Documents with the new numbers of the slots of their memories.
    fn docs(&self, key: &[u8], value: &[u8]) -> Result<Vec<u8>> {
        let mut docs = DocBlock::decode(At::new(Table::TextDoc.name(), key), value)?;
        let ns = Parts(key).u32().ok_or_else(|| bad_key(Table::TextDoc, key))?;
        for at in 0..docs.len() {
            let renumbered = docs
                .get(at)
                .filter(|doc| doc.slot.is_some())
                .map(|doc| DocMeta { slot: self.slots.get(&(NsId(ns), doc.id)).copied(), ..*doc });
            if renumbered.is_some() {
                docs.put(at, renumbered);
            }
        }
        let mut bytes = Vec::with_capacity(value.len());
        docs.encode(key, &mut bytes);
        Ok(bytes)
    }

    /// Copies codes, vectors and graphs, index by index, without the holes.
    fn indexes(&mut self) -> Result<()> {
        self.commit(|tx| {
            let tables = [Table::Slot, Table::SlotHead, Table::Vector];
            let of_graphs = [Table::Graph, Table::GraphHead, Table::SlotDead];
            tables.into_iter().chain(of_graphs).try_for_each(|table| tx.touch(table))
        })?;
        for (index, head) in self.from.slot_heads(None)? {
            let space = self.from.space(index.space)?;
            let dim = space.map(|space| space.dim as usize).ok_or_else(|| {
                Error::corrupted(Table::Space.name(), &keys::space(index.space), "an index lies in no space")
            })?;
            let graph = Graph::of(self.from, index, head.len, dim)?;
            self.index(index, head, dim, graph.is_some())?;
            if let Some(graph) = graph {
                self.graph(index, &graph)?;
            }
        }
        Ok(())
    }

    /// Copies the slots of an index; the dead ones only where the copy has the graph that needs them.
    fn index(&mut self, index: IndexId, head: SlotHead, dim: usize, linked: bool) -> Result<()> {
        let (per, blocks) = (slots_per_block(dim) as u32, head.len.div_ceil(slots_per_block(dim) as u32));
        let mut copied = SlotHead::default();
        let mut block = 0;
        while block < blocks {
            let until = blocks.min(block + (ROWS_PER_COMMIT as u32 / per).max(1));
            let mut kept = Vec::new();
            for number in block..until {
                let Some(codes) = self.from.slot_block(index, number, dim)? else { continue };
                self.kept_slots(index, number * per, &codes, linked, &mut copied, &mut kept);
            }
            self.rows += kept.len() as u64;
            let (from, head) = (self.from, copied);
            self.commit(|tx| {
                let mut vector = Vec::with_capacity(dim);
                for slot in &kept {
                    put_slot(tx, from, index, slot, &mut vector, dim)?;
                }
                tx.put_slot_head(index, &head)
            })?;
            block = until;
        }
        Ok(())
    }

    /// The slots of a block that hold a memory, and with `linked` the dead ones, with their old and new numbers.
    fn kept_slots(
        &mut self,
        index: IndexId,
        first: u32,
        codes: &SlotBlock,
        linked: bool,
        copied: &mut SlotHead,
        kept: &mut Vec<Kept>,
    ) {
        for at in 0..codes.len() {
            let (Some(meta), Some(code)) = (codes.meta(at), codes.code(at)) else { continue };
            if !meta.is_vacant() {
                self.slots.insert((index.ns, meta.id), copied.len);
                copied.used += 1;
            } else if !linked || !meta.is_dead() {
                continue;
            }
            kept.push(Kept { old: first + at as u32, new: copied.len, meta: *meta, code: code.to_vec() });
            copied.len += 1;
        }
    }
}

/// Puts a slot under its new number, with its vector or its row among the dead.
fn put_slot(
    tx: &mut WriteTx<'_>,
    from: &Snapshot,
    index: IndexId,
    slot: &Kept,
    vector: &mut Vec<f32>,
    dim: usize,
) -> Result<()> {
    let per = slots_per_block(dim) as u32;
    let codes = tx.slot_block_mut(index, slot.new / per, dim)?;
    codes.put((slot.new % per) as usize, slot.meta, &slot.code);
    if slot.meta.is_vacant() {
        return tx.put_dead_slot(index, slot.meta.died, slot.new);
    }
    if !from.vector(index, dim, slot.old, vector)? {
        let key = keys::index(index);
        return Err(Error::corrupted(Table::Vector.name(), &key, "a code without its vector"));
    }
    let per = vectors_per_block(dim) as u32;
    tx.vector_block_mut(index, slot.new / per, dim)?.put((slot.new % per) as usize, vector);
    Ok(())
}
