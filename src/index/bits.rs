//! The one-bit codes of a view, as the rows on disk have them.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Result, sound};
use crate::index::bit_rows::frame_of;
use crate::index::chunk::CHUNK_SLOTS;
use crate::limits::BITS_SLOTS_MIN;
use crate::record::{BIT_ROW_SLOTS, BitRow};
use crate::store::{BitRows, IndexId, Snapshot};
use crate::vector::{BIT_SLOTS, BitBlock, BitBlocks, BitFrame, BitNumbers, BitQuery, SignBatch};

/// The blocks that lie side by side in memory. A scan reads them in one sweep, and a write copies them.
const RUN_BLOCKS: usize = 16;

const _: () = assert!(BIT_SLOTS == CHUNK_SLOTS, "a block of one-bit codes is that of a chunk");

/// Calls `visit` with each row of one-bit codes of an index with `len` slots, in their order. Returns their frame and the
/// number of their center; none if the index has no such codes, and if a row is damaged, missing or of another center.
pub(super) fn read_rows(
    snapshot: &Snapshot,
    index: IndexId,
    dim: usize,
    len: u32,
    mut visit: impl FnMut(&Arc<BitFrame>, BitRow),
) -> Result<Option<(Arc<BitFrame>, u32)>> {
    let Some(head) = sound(snapshot.bits_head(index))? else { return Ok(unsound(index, "their center")) };
    let Some(head) = head else { return Ok(None) };
    let Some(frame) = sound(frame_of(index, &head, dim))? else { return Ok(unsound(index, "their center")) };
    let (mut next, mut is_sound) = (0, true);
    snapshot.bit_rows(index, dim, &mut |number, row| {
        match row.filter(|row| number == next && row.center == head.center) {
            Some(row) => visit(&frame, row),
            None => is_sound = false,
        }
        next += 1;
        Ok(if is_sound { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    match is_sound && next == len.div_ceil(BIT_ROW_SLOTS as u32) {
        true => Ok(Some((frame, head.center))),
        false => Ok(unsound(index, "a row")),
    }
}

/// Logs that one-bit codes can't be used; none.
fn unsound<T>(index: IndexId, what: &str) -> Option<T> {
    tracing::warn!(
        ?index,
        what,
        "one-bit codes are damaged: all codes are scanned until a write or `reindex` mends them"
    );
    None
}

/// The one-bit codes of all slots, chunk by chunk.
#[derive(Clone, Debug)]
pub(super) struct Bits {
    frame: Arc<BitFrame>,
    /// The number of the center.
    center: u32,
    runs: Vec<Arc<BitBlocks>>,
}

impl Bits {
    /// Bytes in memory for this many slots.
    pub(super) fn bytes_of(slots: usize, dim: usize) -> usize {
        match slots < BITS_SLOTS_MIN as usize {
            true => 0,
            false => {
                let run = BitBlocks::bytes(dim, RUN_BLOCKS) + size_of::<Arc<BitBlocks>>();
                slots.div_ceil(BIT_SLOTS * RUN_BLOCKS).saturating_mul(run)
            }
        }
    }

    /// The codes of all slots of an index; none for an index without such codes, or with damaged ones.
    pub(super) fn load(snapshot: &Snapshot, index: IndexId, dim: usize, len: u32) -> Result<Option<Self>> {
        let mut runs: Vec<BitBlocks> = Vec::new();
        let mut number = 0;
        let read = read_rows(snapshot, index, dim, len, |frame, row| {
            if number % RUN_BLOCKS == 0 {
                runs.push(BitBlocks::vacant(frame, RUN_BLOCKS));
            }
            runs.last_mut().into_iter().for_each(|run| put(run, number % RUN_BLOCKS, &row));
            number += 1;
        })?;
        Ok(read.map(|(frame, center)| Bits { frame, center, runs: runs.into_iter().map(Arc::new).collect() }))
    }

    /// The codes after a commit that wrote these rows; none if they are of another center.
    pub(super) fn with(&self, written: &[(u32, &BitRow)]) -> Option<Self> {
        let mut next = self.clone();
        for (number, row) in written {
            let (run, at) = (*number as usize / RUN_BLOCKS, *number as usize % RUN_BLOCKS);
            let vacant = || Arc::new(BitBlocks::vacant(&self.frame, RUN_BLOCKS));
            if next.runs.len() <= run {
                next.runs.resize_with(run + 1, vacant);
            }
            if row.center != self.center {
                return None;
            }
            // Readers of the earlier state keep their run, because a shared run is copied before its first change.
            next.runs.get_mut(run).into_iter().for_each(|run| put(Arc::make_mut(run), at, row));
        }
        Some(next)
    }

    /// The codes of these slots alone, in this order.
    pub(super) fn of_slots(&self, slots: &[u32]) -> Self {
        let runs = slots.chunks(BIT_SLOTS * RUN_BLOCKS).map(|slots| {
            let mut run = BitBlocks::vacant(&self.frame, RUN_BLOCKS);
            for (at, slot) in slots.iter().enumerate() {
                let (chunk, of) = (*slot as usize / BIT_SLOTS, *slot as usize % BIT_SLOTS);
                self.block(chunk).into_iter().for_each(|from| run.copy(at, from, of));
            }
            Arc::new(run)
        });
        Bits { frame: Arc::clone(&self.frame), center: self.center, runs: runs.collect() }
    }

    /// A query in the frame of these codes.
    pub(super) fn query(&self, query: &[f32], recall: f32) -> BitQuery {
        BitQuery::new(&self.frame, query, recall)
    }

    /// Many queries in the frame of these codes.
    pub(super) fn signs<'q>(&self, queries: impl IntoIterator<Item = &'q [f32]>) -> SignBatch<'_> {
        SignBatch::new(&self.frame, queries)
    }

    /// The codes of a chunk.
    pub(super) fn block(&self, chunk: usize) -> Option<BitBlock<'_>> {
        self.runs.get(chunk / RUN_BLOCKS)?.block(chunk % RUN_BLOCKS)
    }
}

/// The numbers of a row, as the scan takes them.
pub(super) fn numbers_of(row: &BitRow) -> BitNumbers {
    BitNumbers::new(8 * row.signs.len(), &row.ones, &row.factors, &row.errors, &row.offsets)
}

fn put(run: &mut BitBlocks, at: usize, row: &BitRow) {
    run.put(at, &row.signs, &numbers_of(row));
}
