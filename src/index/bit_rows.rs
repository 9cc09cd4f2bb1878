//! One-bit codes on disk: written in the transaction of the codes that they are made from, and around one center for
//! each index.
//!
//! The center is the mean of a sample, chosen when the index has [`BITS_SLOTS_MIN`] slots, and chosen anew at each
//! growth by 4 until it has 65,536: by then the mean of a sample stays what it is. All codes are made anew with it.
//! Rows name the number of their center, so that codes of two centers are never mixed.
//!
//! What is damaged is made again from the codes where a write meets it. So damage never keeps a memory from being
//! stored or forgotten.

use std::cell::RefCell;
use std::sync::Arc;

use crate::error::{Error, Result, sound};
use crate::limits::{BITS_DIM_MIN, BITS_SLOTS_MIN};
use crate::record::{BIT_ROW_SLOTS, BitCode, BitRow, SlotBlock, SlotMeta, slots_per_block};
use crate::store::control::BitsHead;
use crate::store::{IndexId, Read, Table, WriteTx, keys};
use crate::vector::{BIT_SLOTS, BitFrame, SlotCode};

/// The number of slots whose mean is the center.
const SAMPLE: u32 = 4_096;
/// When an index has grown by this factor, its codes get a new center. So the work for a slot is constant.
const GROWTH: u32 = 4;
/// An index that had so many slots when its center was chosen keeps that center.
const SETTLED_SLOTS: u32 = 1 << 16;

const _: () = assert!(BIT_ROW_SLOTS == BIT_SLOTS, "a row is a block of the scan");

/// The row and the position of a slot.
fn place(slot: u32) -> (u32, usize) {
    (slot / BIT_ROW_SLOTS as u32, slot as usize % BIT_ROW_SLOTS)
}

thread_local! {
    /// The frame that this thread used last. Its flips are the same for all indexes of a dimension.
    static FRAME: RefCell<Option<Arc<BitFrame>>> = const { RefCell::new(None) };
}

/// The frame of a center.
///
/// # Errors
/// `Corrupted` for a center that is none of an index with these dimensions.
pub(crate) fn frame_of(index: IndexId, head: &BitsHead, dim: usize) -> Result<Arc<BitFrame>> {
    let is_bounded = |value: &f32| value.abs() <= 1.0 + 1e-3;
    if head.values.len() != dim || !head.values.iter().all(is_bounded) {
        let why = format!("{} values of a center of {dim} dimensions", head.values.len());
        return Err(Error::corrupted(Table::BitsHead.name(), &keys::index(index), why));
    }
    FRAME.with_borrow_mut(|kept| match kept {
        Some(frame) if frame.center() == head.values => Ok(Arc::clone(frame)),
        _ => Ok(Arc::clone(kept.insert(Arc::new(BitFrame::around(head.values.as_slice().into()))))),
    })
}

/// Makes codes in one frame, with memory that is used again.
pub(crate) struct Coder {
    frame: Arc<BitFrame>,
    room: Vec<f32>,
}

impl Coder {
    /// A maker of codes in a frame.
    pub(crate) fn new(frame: Arc<BitFrame>) -> Self {
        Coder { frame, room: Vec::new() }
    }

    /// The one-bit code of a vector whose values are `scale · code`.
    pub(crate) fn code(&mut self, code: &[i8], scale: f32) -> BitCode {
        let mut signs = Vec::new();
        let SlotCode { ones, factor, error, offset } =
            self.frame.code(code, scale, &mut self.room, &mut signs);
        // A code has at most 4,096 signs.
        BitCode { signs, ones: ones as u16, factor, error, offset }
    }
}

/// Whether an index with so many slots must have one-bit codes.
pub(crate) fn is_due(len: u32, dim: usize) -> bool {
    len >= BITS_SLOTS_MIN && dim >= BITS_DIM_MIN
}

/// The center of an index, if it is whole.
fn center_of(tx: &WriteTx<'_>, index: IndexId, dim: usize) -> Result<Option<(u32, Arc<BitFrame>)>> {
    let Some(head) = sound(tx.bits_center(index))?.flatten() else { return Ok(None) };
    let frame = sound(frame_of(index, &head, dim))?;
    Ok(frame.map(|frame| (head.center, frame)))
}

/// Whether the codes of an index with `len` slots must be made, or made anew with another center.
fn wants_center(tx: &WriteTx<'_>, index: IndexId, dim: usize, len: u32) -> Result<bool> {
    if !is_due(len, dim) {
        return Ok(false);
    }
    let head = sound(tx.bits_center(index))?.flatten();
    Ok(head.is_none_or(|head| head.made_at < SETTLED_SLOTS && len / GROWTH >= head.made_at))
}

/// Writes the one-bit code of a slot whose code was written, if the index has such codes or must have them now.
pub(super) fn put(
    tx: &mut WriteTx<'_>,
    index: IndexId,
    slot: u32,
    meta: &SlotMeta,
    code: &[i8],
) -> Result<()> {
    let len = tx.slot_head(index)?.len;
    if wants_center(tx, index, code.len(), len)? {
        return make(tx, index, code.len(), len);
    }
    let Some((center, frame)) = center_of(tx, index, code.len())? else { return Ok(()) };
    let (number, at) = place(slot);
    let mut coder = Coder::new(frame);
    // A row that is made anew has the slot already.
    if let Some(row) = staged(tx, index, code.len(), number, center, &mut coder)? {
        row.put(at, (meta.from, meta.until), &coder.code(code, meta.scale));
    }
    Ok(())
}

/// Writes the instants of a memory beside its one-bit code.
pub(super) fn set_times(
    tx: &mut WriteTx<'_>,
    index: IndexId,
    dim: usize,
    slot: u32,
    span: (i64, i64),
) -> Result<()> {
    let Some((center, frame)) = center_of(tx, index, dim)? else { return Ok(()) };
    let (number, at) = place(slot);
    if let Some(row) = staged(tx, index, dim, number, center, &mut Coder::new(frame))? {
        row.set_span(at, span);
    }
    Ok(())
}

/// Makes the one-bit code of a slot zeros. No walk reads it, so that of a node goes at once too.
pub(super) fn erase(tx: &mut WriteTx<'_>, index: IndexId, dim: usize, slot: u32) -> Result<()> {
    let (number, at) = place(slot);
    let Some((center, frame)) = center_of(tx, index, dim)? else {
        // No reader uses the row, but the code must not stay.
        return match sound(tx.bit_row_seen(index, number, dim))? {
            Some(None) => Ok(()),
            _ => tx.delete_bits_row(index, number),
        };
    };
    if let Some(row) = staged(tx, index, dim, number, center, &mut Coder::new(frame))? {
        row.erase(at);
    }
    Ok(())
}

/// The row with this number, to change. A row that is missing, damaged or of another center is made anew from the codes, and
/// then there is nothing left to change.
fn staged<'x>(
    tx: &'x mut WriteTx<'_>,
    index: IndexId,
    dim: usize,
    number: u32,
    center: u32,
    coder: &mut Coder,
) -> Result<Option<&'x mut BitRow>> {
    if tx.staged_bits(index, number).is_none() {
        let found = sound(tx.bit_row_seen(index, number, dim))?.flatten();
        match found.filter(|row| row.center == center) {
            Some(row) => tx.stage_bits(index, number, row)?,
            None => {
                let row = row_of_codes(tx, index, dim, number, center, coder)?;
                tx.stage_bits(index, number, row)?;
                return Ok(None);
            }
        }
    }
    Ok(tx.staged_bits(index, number))
}

/// The row that the codes of its slots give. Codes that can't be read give none.
fn row_of_codes(
    tx: &WriteTx<'_>,
    index: IndexId,
    dim: usize,
    number: u32,
    center: u32,
    coder: &mut Coder,
) -> Result<BitRow> {
    let mut row = BitRow::vacant(dim, center);
    let first = number * BIT_ROW_SLOTS as u32;
    let per = slots_per_block(dim) as u32;
    let last = first + BIT_ROW_SLOTS as u32 - 1;
    for block in first / per..=last / per {
        let Some(codes) = sound(tx.slot_block(index, block, dim))?.flatten() else { continue };
        each_slot(block * per, &codes, |slot, meta, code| {
            if (first..=last).contains(&slot) {
                let at = (slot - first) as usize;
                row.put(at, (meta.from, meta.until), &coder.code(code, meta.scale));
            }
        });
    }
    Ok(row)
}

/// Calls `visit` with each slot of a block that holds a memory.
fn each_slot(first: u32, codes: &SlotBlock, mut visit: impl FnMut(u32, &SlotMeta, &[i8])) {
    for at in 0..codes.len() {
        if let (Some(meta), Some(code)) = (codes.meta(at), codes.code(at))
            && !meta.is_vacant()
        {
            visit(first + at as u32, meta, code);
        }
    }
}

/// Makes the one-bit codes of an index with `len` slots, around a new center.
pub(crate) fn make(tx: &mut WriteTx<'_>, index: IndexId, dim: usize, len: u32) -> Result<()> {
    // A damaged head has a number too, which no row may have with another center.
    let before =
        sound(tx.bits_center(index))?.flatten().map_or_else(|| len.rotate_left(16), |head| head.center);
    let center = before.wrapping_add(1);
    let values = mean(tx, index, dim, len)?;
    tx.delete_bits(index)?;
    let head = BitsHead { center, made_at: len, values };
    let mut coder = Coder::new(frame_of(index, &head, dim)?);
    tx.put_bits_head(index, head)?;
    for number in 0..len.div_ceil(BIT_ROW_SLOTS as u32) {
        let row = row_of_codes(tx, index, dim, number, center, &mut coder)?;
        tx.put_bits(index, number, &row)?;
    }
    Ok(())
}

/// The mean of a sample that is spread over all slots.
fn mean(tx: &WriteTx<'_>, index: IndexId, dim: usize, len: u32) -> Result<Vec<f32>> {
    let per = slots_per_block(dim) as u32;
    let step = len.div_ceil(SAMPLE).max(1);
    let (mut sums, mut count) = (vec![0.0_f64; dim], 0_u32);
    for block in 0..len.div_ceil(per) {
        let Some(codes) = sound(tx.slot_block(index, block, dim))?.flatten() else { continue };
        each_slot(block * per, &codes, |slot, meta, code| {
            if slot.is_multiple_of(step) {
                count += 1;
                for (sum, value) in sums.iter_mut().zip(code) {
                    *sum += f64::from(meta.scale * f32::from(*value));
                }
            }
        });
    }
    Ok(sums.into_iter().map(|sum| (sum / f64::from(count.max(1))) as f32).collect())
}
