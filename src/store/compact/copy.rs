//! A copy under way, and the rows that it takes one by one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use redb::{Database, ReadableDatabase};

use crate::error::{Error, FILE_CUT, Result};
use crate::record::{At, DocBlock, DocMeta, decode_vitals, encode_meta, encode_vitals};
use crate::store::compact::numbers::Numbers;
use crate::store::control::SizeRow;
use crate::store::keys;
use crate::store::part::{IndexId, NsId, PartId, SpaceId};
use crate::store::raw::{Walk, fenced};
use crate::store::rows::Rows;
use crate::store::size::OWN_BYTES;
use crate::store::tables::{SIZE, Table, space_of};
use crate::store::transact::transact;
use crate::store::tx::{Read, Snapshot, WriteTx};

/// Rows that one transaction of the copy takes.
pub(super) const SLICE_ROWS: usize = 50_000;
/// Bytes of keys and values that one transaction of the copy takes, and the row that passes them: bounds the memory that a
/// slice needs.
pub(super) const SLICE_BYTES: usize = 4 << 20;

/// What is told of a row whose key is damaged, and not its value.
pub(super) const RESTORED: &str = "one byte of the key was damaged, and the row has its key again";

/// The same of a damaged value.
const MENDED: &str = "one byte of the value was damaged, and the row has its value again";

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

/// Rows of a slice of the copy, with their keys.
#[derive(Default)]
pub(super) struct Slice {
    pub(super) rows: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) bytes: usize,
}

impl Slice {
    pub(super) fn take(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        self.bytes += key.len() + value.len();
        self.rows.push((key.to_vec(), value.to_vec()));
        if self.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= SLICE_ROWS || self.bytes >= SLICE_BYTES
    }
}

/// A copy under way. Tables come in the order of [`Table::ALL`]: slots before the vitals that name them.
pub(super) struct Copy<'c> {
    pub(super) from: &'c Snapshot,
    to: &'c Database,
    /// New numbers of the slots of each index.
    pub(super) slots: BTreeMap<IndexId, Numbers>,
    pub(super) rows: u64,
    /// Bytes of keys and values that the copy has so far.
    live: i64,
    pub(super) damaged: Vec<Damaged>,
}

/// What is damaged, where something is; what else went wrong is an error.
pub(super) fn torn<T>(read: Result<T>) -> Result<Result<T, String>> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(error) => match error.innermost() {
            // Of a file that was cut nothing more can be read.
            Error::Corrupted { why, .. } if why != FILE_CUT => Ok(Err(why.clone())),
            _ => Err(error),
        },
    }
}

/// The value that a row had before one byte of it was damaged, where the whole file hangs on the row.
fn mended(table: Table, key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    let row = (table == Table::Space).then(|| space_of(key, value).ok()).flatten()?;
    let mut bytes = Vec::with_capacity(value.len());
    encode_meta(table.tag(), key, &row, &mut bytes);
    Some(bytes)
}

impl<'c> Copy<'c> {
    /// A copy that has no rows yet.
    pub(super) fn new(from: &'c Snapshot, to: &'c Database) -> Self {
        Copy { from, to, slots: BTreeMap::new(), rows: 0, live: 0, damaged: Vec::new() }
    }

    pub(super) fn commit(&mut self, unit: impl FnOnce(&mut WriteTx<'_>) -> Result<()>) -> Result<()> {
        // A copy that is not whole is not used, so a slice need not outlive a crash in any way but the cheapest.
        let written = transact(self.to, crate::store::Durability::Fast, unit)?;
        self.live += written.grown;
        Ok(())
    }

    /// Tells how much the rows of the copy take, and the pages under them.
    pub(super) fn size(&mut self) -> Result<()> {
        let pages = Snapshot::new(fenced("file", &[], || self.to.begin_read())?, 0).sizes()?;
        let overhead = OWN_BYTES + pages.iter().map(|(_, table)| table.overhead).sum::<u64>();
        let copied = u64::try_from(self.live).unwrap_or_default();
        self.rows += 1;
        // The transaction adds the row itself.
        self.commit(|tx| tx.put_size(&SizeRow { live: copied, copied, overhead }))
    }

    pub(super) fn note(&mut self, table: Table, key: &[u8], why: impl Into<String>) {
        self.damaged.push(Damaged { table, key: key.to_vec(), why: why.into() });
    }

    /// Copies the rows of a walk one by one, in slices. Where a page is damaged, those behind it are read from the end.
    pub(super) fn plain(&mut self, table: Table, walk: &Walk) -> Result<()> {
        let (last, why) = self.rows(table, walk, None)?;
        let Some(why) = why else { return Ok(()) };
        self.note(table, last.as_deref().unwrap_or_default(), why);
        self.rows(table, &walk.clone().reversed(), last.as_deref()).map(drop)
    }

    /// Copies the rows of a walk as far as they can be read, or up to the row under the key `end`: the last key, and why the
    /// walk ended before its end.
    ///
    /// The walk stays open from slice to slice. Begun anew behind a damaged key, it would pass over all rows that this key seems
    /// to stand behind.
    fn rows(
        &mut self,
        table: Table,
        walk: &Walk,
        end: Option<&[u8]>,
    ) -> Result<(Option<Vec<u8>>, Option<String>)> {
        let (from, mut slice, mut last, mut put) = (self.from, Slice::default(), None, Ok(()));
        let walked = torn(from.walk(table, walk, &mut |key, value| {
            if end == Some(key) {
                return Ok(ControlFlow::Break(()));
            }
            let is_full = slice.take(key, value).is_break();
            if is_full {
                last = Some(key.to_vec());
                put = self.put(table, std::mem::take(&mut slice));
            }
            Ok(if put.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        }))?;
        put?;
        let last = slice.rows.last().map(|(key, _)| key.clone()).or(last);
        // The rows before a damaged page are copied even if the walk ended there.
        self.put(table, slice)?;
        Ok((last, walked.err()))
    }

    fn put(&mut self, table: Table, slice: Slice) -> Result<()> {
        let mut rows = Vec::with_capacity(slice.rows.len());
        for (key, value) in slice.rows {
            // A copy has one of its own.
            if table == Table::Meta && key == SIZE {
                continue;
            }
            let (key, changed) = match torn(self.read(table, &key, &value))? {
                Ok(changed) => (key, changed),
                Err(why) => {
                    let mended = mended(table, &key, &value);
                    let restored = match mended {
                        Some(_) => None,
                        None => self.restored(table, &key, &value)?,
                    };
                    let why = restored.as_ref().map_or(why, |_| RESTORED.to_owned());
                    self.note(table, &key, mended.as_ref().map_or(why, |_| MENDED.to_owned()));
                    let key = restored.unwrap_or(key);
                    let changed = torn(self.read(table, &key, &value))?.unwrap_or_default();
                    (key, changed.or(mended))
                }
            };
            rows.push((key, changed.unwrap_or(value)));
        }
        self.rows += rows.len() as u64;
        self.commit(|tx| {
            tx.touch(table)?;
            rows.iter().try_for_each(|(key, value)| tx.put(table, key, value))
        })
    }

    /// The value of a row as the copy has it; none where it stays as it is.
    fn read(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>> {
        match table {
            Table::Vitals => self.vitals(key, value),
            Table::TextDoc => self.docs(key, value),
            _ => table.check_value(key, value).map(|()| None),
        }
    }

    /// The key that a row had before one byte of the key was damaged: the checksum of a value covers the key, so the value
    /// tells which key fits. Another key of 40 bytes fits by chance once in half a million damaged values.
    pub(super) fn restored(&self, table: Table, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>> {
        if table.is_all_key() {
            return Ok(None);
        }
        let mut tried = key.to_vec();
        for (at, was) in key.iter().enumerate() {
            for other in 0..=u8::MAX {
                if let Some(byte) = tried.get_mut(at) {
                    *byte = other;
                }
                let fits =
                    other != *was && table.address(&tried).1 && table.check_value(&tried, value).is_ok();
                // A row that stands there already is the better witness.
                if fits && !self.from.look(table, &tried, &mut |_| Ok(()))? {
                    return Ok(Some(tried));
                }
            }
            if let Some(byte) = tried.get_mut(at) {
                *byte = *was;
            }
        }
        Ok(None)
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
        // Mostly a partition has one index, and the vitals need not be read.
        if let (Some(only), None) = (indexes.next(), indexes.next()) {
            return Ok(Some(only));
        }
        let vitals = torn(self.from.vitals(ns, doc.id))?.unwrap_or_default();
        Ok(vitals.and_then(|vitals| self.slots.get(&of_space(vitals.place.space))))
    }
}
