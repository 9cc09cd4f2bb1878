//! The one-bit codes of an index in a copy, under the new numbers of their slots.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::limits::BITS_SLOTS_MIN;
use crate::record::{BIT_ROW_SLOTS, BitRow};
use crate::store::bits::BitRows;
use crate::store::compact::copy::{Copy, torn};
use crate::store::compact::numbers::Numbers;
use crate::store::control::{BitsHead, SlotHead};
use crate::store::keys;
use crate::store::part::IndexId;
use crate::store::tables::Table;
use crate::store::tx::{Snapshot, WriteTx};

/// One-bit codes that are being copied.
pub(super) struct CopiedBits {
    center: u32,
    dim: usize,
    /// The row that was read last, with its number.
    from: Option<(u32, BitRow)>,
}

/// The row and the position of a slot.
fn place(slot: u32) -> (u32, usize) {
    (slot / BIT_ROW_SLOTS as u32, slot as usize % BIT_ROW_SLOTS)
}

impl Copy<'_> {
    /// Begins the copy of the one-bit codes of an index. None where there are none, or damaged ones, which can be made
    /// again, and where the copy has too few slots to need them.
    pub(super) fn bits(
        &mut self,
        index: IndexId,
        head: SlotHead,
        dim: usize,
        numbers: &Numbers,
    ) -> Result<Option<CopiedBits>> {
        let kept = numbers.kept(head.len);
        let found = match torn(self.from.bits_head(index))? {
            Ok(None) => return Ok(None),
            _ if kept < BITS_SLOTS_MIN => return Ok(None),
            Ok(Some(found)) => found,
            Err(why) => {
                self.note(Table::BitsHead, &keys::index(index), why);
                return Ok(None);
            }
        };
        let (center, mut next) = (found.center, 0);
        self.from.bit_rows(index, dim, &mut |number, row| {
            let fits = number == next && row.is_some_and(|row| row.center == center);
            next += u32::from(fits);
            Ok(if fits { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        if next != head.len.div_ceil(BIT_ROW_SLOTS as u32) {
            self.note(Table::Bits, &keys::block(index, next), "a row of one-bit codes can't be read");
            return Ok(None);
        }
        self.rows += 1;
        self.commit(|tx| tx.put_bits_head(index, BitsHead { made_at: found.made_at.min(kept), ..found }))?;
        Ok(Some(CopiedBits { center, dim, from: None }))
    }
}

impl CopiedBits {
    /// Puts the code of a slot under its new number. A dead slot has none.
    pub(super) fn put(
        &mut self,
        tx: &mut WriteTx<'_>,
        from: &Snapshot,
        index: IndexId,
        old_slot: u32,
        new_slot: u32,
    ) -> Result<()> {
        let (number, at) = place(new_slot);
        if tx.staged_bits(index, number).is_none() {
            let row = tx.bit_row_seen(index, number, self.dim)?;
            let row = row.unwrap_or_else(|| BitRow::vacant(self.dim, self.center));
            tx.stage_bits(index, number, row)?;
        }
        let (old, old_at) = place(old_slot);
        if self.from.as_ref().is_none_or(|(number, _)| *number != old) {
            self.from = from.bit_row(index, old, self.dim)?.map(|row| (old, row));
        }
        if let (Some((_, old)), Some(new)) = (&self.from, tx.staged_bits(index, number))
            && let Some(span) = old.span(old_at)
        {
            new.put(at, span, &old.code(old_at));
        }
        Ok(())
    }
}
