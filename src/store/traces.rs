//! Where a memory stands, found by a search: for rows that can no longer say so themselves.
//!
//! Every walk here reads a table of a namespace as a whole. Nothing but the repair of damage asks for that.

use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::model::{MemoryId, RunId, Time};
use crate::record::{At, SlotBlockRef, slots_per_block};
use crate::store::keys;
use crate::store::part::{IndexId, NsId, PartId, TextId};
use crate::store::raw::Walk;
use crate::store::tables::{Table, last_id_and_number};
use crate::store::text::TextRows;

/// Searches for the traces of a memory.
pub(crate) trait Traces: TextRows {
    /// The first row that does not stand behind the row before it, as far as the pages can be read. No look-up comes to it, and
    /// what is put or deleted by its key, or by the keys beside it, goes astray.
    fn first_out_of_order(&self) -> Result<Option<(Table, Vec<u8>)>> {
        for table in Table::ALL {
            let (mut last, mut found) = (Vec::new(), None);
            let walked = self.walk(*table, &Walk::all(), &mut |key, _| {
                if key <= last.as_slice() {
                    found = Some((*table, key.to_vec()));
                    return Ok(ControlFlow::Break(()));
                }
                last.clear();
                last.extend_from_slice(key);
                Ok(ControlFlow::Continue(()))
            });
            sound(walked)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Looks for the row of a namespace that can't be read. A name that is not found may be that of such a row.
    ///
    /// # Errors
    /// `Corrupted` with the first that there is.
    fn no_namespace_is_damaged(&self) -> Result<()> {
        self.walk(Table::Namespace, &Walk::all(), &mut |key, bytes| {
            keys::Namespace::read(Table::Namespace, key)?;
            Table::Namespace.check_value(key, bytes)?;
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The keys of a namespace in a table that end with these bytes.
    fn keys_ending(&self, table: Table, ns: NsId, end: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        self.walk(table, &Walk::prefix(&keys::ns(ns)), &mut |key, _| {
            if key.ends_with(end) {
                all.push(key.to_vec());
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// The keys of a namespace in a table whose values can't be read.
    fn lost(&self, table: Table, ns: NsId) -> Result<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        self.walk(table, &Walk::prefix(&keys::ns(ns)), &mut |key, bytes| {
            if sound(table.read_value(key, bytes))?.is_none() {
                all.push(key.to_vec());
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// The keys of a namespace in a table whose rows have no value, and have one.
    fn with_value(&self, table: Table, ns: NsId) -> Result<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        self.walk(table, &Walk::prefix(&keys::ns(ns)), &mut |key, bytes| {
            if !bytes.is_empty() {
                all.push(key.to_vec());
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// Whether some holder of a memory has `key`.
    fn holds_key(&self, ns: NsId, key: &str, id: MemoryId) -> Result<bool> {
        Ok(!self.id_and_number(Table::HolderKey, &keys::holder_key_row(ns, key, id), 1)?.is_empty())
    }

    /// Whether a run has brought a holder.
    fn holds_run(&self, ns: NsId, run: RunId, id: MemoryId, number: u32) -> Result<bool> {
        self.look(Table::HolderRun, &keys::holder_run(ns, run, id, number), &mut |_| Ok(()))
    }

    /// Numbers of the holders of a memory, damaged ones too.
    fn holder_numbers(&self, ns: NsId, id: MemoryId) -> Result<Vec<u32>> {
        let number = |key: &[u8]| keys::Holder::read(Table::Holder, key).map(|row| row.number);
        self.each_key(Table::Holder, &Walk::prefix(&keys::memory(ns, id)), usize::MAX, number)
    }

    /// The rows by key, tag or run that lead to a holder of a memory, or to any of it, with the key or tag.
    fn holder_places(
        &self,
        table: Table,
        ns: NsId,
        id: MemoryId,
        number: Option<u32>,
    ) -> Result<Vec<(Vec<u8>, Option<String>)>> {
        let mut all = Vec::new();
        self.walk(table, &Walk::prefix(&keys::ns(ns)), &mut |key, _| {
            let leads = |(of, at)| of == id && number.is_none_or(|number| number == at);
            if last_id_and_number(table, key).is_ok_and(leads) {
                all.push((key.to_vec(), table.address(key).0.name.map(str::to_owned)));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// The partition of a memory: by its vitals, else by its place among those of the time of its creation.
    fn part_of(&self, ns: NsId, id: MemoryId) -> Result<Option<PartId>> {
        if let Some(vitals) = sound(self.vitals(ns, id))?.flatten() {
            return Ok(Some(PartId(vitals.place.partition)));
        }
        let found = self.keys_ending(Table::ByTime, ns, id.as_bytes())?;
        Ok(found.first().and_then(|key| Table::ByTime.address(key).0.part))
    }

    /// The slot that says that it holds a memory.
    fn slot_of(&self, ns: NsId, id: MemoryId) -> Result<Option<(IndexId, u32)>> {
        let mut found = None;
        self.slot_blocks(&Walk::prefix(&keys::ns(ns)), &mut |index, block, key, bytes| {
            let Some(space) = self.space(index.space)? else { return Ok(ControlFlow::Continue(())) };
            let dim = space.dim as usize;
            let slots = SlotBlockRef::open(At::new(Table::Slot.name(), key), dim, bytes)?;
            // The number of a block comes from a key on disk and may be anything, so the product is bounded.
            let first = block.saturating_mul(slots_per_block(dim) as u32);
            let at = (first..).zip(slots.metas()).find(|(_, meta)| meta.id == id);
            found = at.map(|(slot, _)| (index, slot));
            Ok(if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(found)
    }

    /// The document that says that it stands for a memory.
    fn doc_of(&self, text: TextId, id: MemoryId) -> Result<Option<u32>> {
        let mut found = None;
        self.doc_blocks(text, &mut |block, docs| {
            let first = block.saturating_mul(crate::record::DOCS_PER_BLOCK as u32);
            let docs = docs.unwrap_or_default();
            let at = (first..).zip(docs.docs()).find(|(_, doc)| doc.is_some_and(|doc| doc.id == id));
            found = found.or(at.map(|(doc, _)| doc));
            Ok(())
        })?;
        Ok(found)
    }

    /// The thread in which a document stands, with its instant there.
    fn thread_of(&self, text: TextId, doc: u32) -> Result<Option<(String, Time)>> {
        let mut found = None;
        let walk = Walk::prefix(&keys::ns_part(text.ns, text.part));
        self.walk(Table::Thread, &walk, &mut |key, _| {
            let row = keys::Thread::read(Table::Thread, key)?;
            if row.doc != doc {
                return Ok(ControlFlow::Continue(()));
            }
            found = Some((row.thread.0.to_owned(), row.at));
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// The terms whose postings name a document.
    fn terms_of(&self, text: TextId, doc: u32) -> Result<Vec<String>> {
        let mut all: Vec<String> = Vec::new();
        self.postings(&Walk::prefix(&keys::ns_part(text.ns, text.part)), &mut |term, postings| {
            let mut named = false;
            if let Some(postings) = postings {
                postings.docs(|other, _| named |= other == doc);
            }
            if named && all.last().is_none_or(|last| last != term) {
                all.push(term.to_owned());
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }
}

impl<R: TextRows> Traces for R {}
