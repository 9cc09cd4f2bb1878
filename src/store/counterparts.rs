//! What a damaged row said, as far as other rows say it too.

use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::record::{At, SlotBlockRef, slots_per_block};
use crate::store::control::SlotHead;
use crate::store::keys;
use crate::store::part::IndexId;
use crate::store::raw::Walk;
use crate::store::tables::{Table, meta_of};
use crate::store::tx::Read;

/// The number at the end of the key under which `name` stands in a table of names.
pub(super) fn number_named(
    rows: &(impl Read + ?Sized),
    table: Table,
    prefix: &[u8],
    name: &str,
) -> Result<Option<u32>> {
    let mut number = None;
    rows.walk(table, &Walk::prefix(prefix), &mut |key, bytes| {
        if sound(meta_of::<String>(table, key, bytes))?.as_deref() != Some(name) {
            return Ok(ControlFlow::Continue(()));
        }
        number = key.last_chunk().map(|number| u32::from_be_bytes(*number));
        Ok(ControlFlow::Break(()))
    })?;
    Ok(number)
}

/// The name at the end of the key under which `number` stands in a table of numbers.
pub(super) fn name_numbered(
    rows: &(impl Read + ?Sized),
    table: Table,
    prefix: &[u8],
    number: u32,
) -> Result<Option<String>> {
    let mut name = None;
    rows.walk(table, &Walk::prefix(prefix), &mut |key, bytes| {
        if sound(meta_of::<u32>(table, key, bytes))? != Some(number) {
            return Ok(ControlFlow::Continue(()));
        }
        let rest = key.get(prefix.len()..).and_then(|rest| std::str::from_utf8(rest).ok());
        name = rest.map(str::to_owned);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(name)
}

/// What the head of an index must say, as far as its blocks can be read.
pub(super) fn counted_slots(rows: &(impl Read + ?Sized), index: IndexId, dim: usize) -> Result<SlotHead> {
    let mut head = SlotHead::default();
    rows.walk(Table::Slot, &Walk::prefix(&keys::index(index)), &mut |key, bytes| {
        let keys::Slot { block, .. } = keys::Slot::read(Table::Slot, key)?;
        // A damaged block counts for nothing, and a later block that can be read still raises the length.
        let opened = sound(SlotBlockRef::open(At::new(Table::Slot.name(), key), dim, bytes))?;
        let first = block.saturating_mul(slots_per_block(dim.max(1)) as u32);
        for (slot, meta) in (first..).zip(opened.iter().flat_map(|block| block.metas())) {
            head.len = slot.saturating_add(1);
            head.used += u32::from(!meta.is_vacant());
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(head)
}
