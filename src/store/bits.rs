//! One-bit codes on disk: their reads and their writes.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Result, sound};
use crate::record::{At, BitRow};
use crate::store::control::BitsHead;
use crate::store::keys;
use crate::store::part::IndexId;
use crate::store::raw::Walk;
use crate::store::rows::Rows;
use crate::store::tables::Table;
use crate::store::tx::WriteTx;

/// What a walk over rows of one-bit codes calls, with the number of the row; none for a damaged row.
type VisitBits<'f> = &'f mut dyn FnMut(u32, Option<BitRow>) -> Result<ControlFlow<()>>;

/// Reads of one-bit codes.
pub(crate) trait BitRows: Rows {
    /// The center of the one-bit codes of an index; none where it has no such codes.
    fn bits_head(&self, index: IndexId) -> Result<Option<BitsHead>> {
        self.meta(Table::BitsHead, &keys::index(index))
    }

    /// The one-bit codes of 64 slots.
    fn bit_row(&self, index: IndexId, row: u32, dim: usize) -> Result<Option<BitRow>> {
        self.row(Table::Bits, &keys::block(index, row), |at, bytes| BitRow::decode(at, dim, bytes))
    }

    /// The rows of one-bit codes of an index.
    fn bit_rows(&self, index: IndexId, dim: usize, visit: VisitBits<'_>) -> Result<()> {
        self.walk(Table::Bits, &Walk::prefix(&keys::index(index)), &mut |key, bytes| {
            let keys::Bits { block, .. } = keys::Bits::read(Table::Bits, key)?;
            visit(block, sound(BitRow::decode(At::new(Table::Bits.name(), key), dim, bytes))?)
        })
    }
}

impl<R: Rows> BitRows for R {}

impl WriteTx<'_> {
    /// The center of an index, as the transaction sees it. It is read once.
    pub(crate) fn bits_center(&self, index: IndexId) -> Result<Option<Arc<BitsHead>>> {
        if let Some(known) = self.centers.borrow().get(&index) {
            return Ok(known.clone());
        }
        let head = self.bits_head(index)?.map(Arc::new);
        self.centers.borrow_mut().insert(index, head.clone());
        Ok(head)
    }

    /// Names the center of an index. Codes of another center are not read any more, so no image of the index is valid.
    pub(crate) fn put_bits_head(&mut self, index: IndexId, head: BitsHead) -> Result<()> {
        self.put_meta(Table::BitsHead, &keys::index(index), &head)?;
        self.centers.get_mut().insert(index, Some(Arc::new(head)));
        self.spilled.insert(index);
        Ok(())
    }

    /// The one-bit codes of 64 slots, as the transaction sees them.
    pub(crate) fn bit_row_seen(&self, index: IndexId, row: u32, dim: usize) -> Result<Option<BitRow>> {
        match self.bits.get(&(index, row)) {
            Some(staged) => Ok(Some(staged.clone())),
            None => self.bit_row(index, row, dim),
        }
    }

    /// The one-bit codes of 64 slots to change, if the transaction keeps them.
    pub(crate) fn staged_bits(&mut self, index: IndexId, row: u32) -> Option<&mut BitRow> {
        self.bits.get_mut(&(index, row))
    }

    /// Keeps the one-bit codes of 64 slots until the transaction ends.
    pub(crate) fn stage_bits(&mut self, index: IndexId, row: u32, value: BitRow) -> Result<()> {
        self.make_room(value.bytes())?;
        self.bits.insert((index, row), value);
        Ok(())
    }

    /// Writes the one-bit codes of 64 slots at once. Images of the index are void then.
    pub(crate) fn put_bits(&mut self, index: IndexId, row: u32, value: &BitRow) -> Result<()> {
        self.bits.remove(&(index, row));
        self.spilled.insert(index);
        let (key, mut bytes) = (keys::block(index, row), Vec::new());
        value.encode(&key, &mut bytes);
        self.put(Table::Bits, &key, &bytes)
    }

    /// Takes the one-bit codes of 64 slots away, unread. Images of the index are void then.
    pub(crate) fn delete_bits_row(&mut self, index: IndexId, row: u32) -> Result<()> {
        self.bits.remove(&(index, row));
        self.spilled.insert(index);
        self.delete(Table::Bits, &keys::block(index, row))
    }

    /// Takes the one-bit codes of an index and their center away, unread.
    pub(crate) fn delete_bits(&mut self, index: IndexId) -> Result<()> {
        // Staged rows go first, or the end of the transaction would write them again.
        self.bits.retain(|(staged, _), _| *staged != index);
        self.centers.get_mut().remove(&index);
        self.delete_walk(Table::Bits, &Walk::prefix(&keys::index(index)), usize::MAX)?;
        self.delete(Table::BitsHead, &keys::index(index))
    }

    pub(super) fn flush_bits(&mut self) -> Result<BTreeMap<(IndexId, u32), BitRow>> {
        let (rows, mut bytes) = (std::mem::take(&mut self.bits), Vec::new());
        for ((index, row), value) in &rows {
            let key = keys::block(*index, *row);
            bytes.clear();
            value.encode(&key, &mut bytes);
            self.put(Table::Bits, &key, &bytes)?;
        }
        Ok(rows)
    }
}
