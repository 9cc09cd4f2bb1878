//! The one-bit codes of a view, made from its codes.

use std::sync::Arc;

use crate::index::chunk::{CHUNK_SLOTS, Chunk};
use crate::vector::{BIT_SLOTS, BitBlock, BitBlocks, BitFrame, BitQuery, SignBatch};

/// The number of slots from which on a view has one-bit codes. A scan of the codes of fewer slots is as fast, and
/// certain.
pub(super) const BITS_SLOTS_MIN: usize = 4_096;
/// The number of dimensions from which on a view has one-bit codes. Errors of fewer dimensions are few, so that their sum is
/// not normal, and codes of so few bytes are soon read.
const BITS_DIM_MIN: usize = 64;
/// The number of slots whose mean is the center.
const SAMPLE: usize = 4_096;
/// When a view has grown by this factor, its codes get a new center. So the work for a slot is constant.
const GROWTH: usize = 4;

/// The blocks that lie side by side in memory. A scan reads them in one sweep, and a write copies them.
const RUN_BLOCKS: usize = 16;

const _: () = assert!(BIT_SLOTS == CHUNK_SLOTS, "a block of one-bit codes is that of a chunk");

/// The one-bit codes of all slots, chunk by chunk.
#[derive(Clone, Debug)]
pub(super) struct Bits {
    frame: Arc<BitFrame>,
    runs: Vec<Arc<BitBlocks>>,
    /// The number of chunks when the center was chosen.
    centered_on: usize,
}

impl Bits {
    /// Bytes in memory for this many slots.
    pub(super) fn bytes_of(slots: usize, dim: usize) -> usize {
        match slots < BITS_SLOTS_MIN {
            true => 0,
            false => {
                let run = BitBlocks::bytes(dim, RUN_BLOCKS) + size_of::<Arc<BitBlocks>>();
                slots.div_ceil(BIT_SLOTS * RUN_BLOCKS).saturating_mul(run)
            }
        }
    }

    /// The codes of all slots; none for a small view, and for few dimensions.
    pub(super) fn new(chunks: &[Arc<Chunk>], dim: usize) -> Option<Self> {
        if !has_bits(chunks.len() * CHUNK_SLOTS, dim) {
            return None;
        }
        let frame = Arc::new(BitFrame::around(center(chunks, dim)));
        let mut room = Vec::new();
        let runs = chunks.chunks(RUN_BLOCKS).map(|chunks| {
            let mut run = BitBlocks::vacant(&frame, RUN_BLOCKS);
            for (number, chunk) in chunks.iter().enumerate() {
                (0..chunk.len()).for_each(|at| write(&mut run, &frame, chunk, number, at, &mut room));
            }
            Arc::new(run)
        });
        let runs = runs.collect();
        Some(Bits { frame, runs, centered_on: chunks.len() })
    }

    /// The codes after these slots, each by its chunk and its place there, were written.
    pub(super) fn with(&self, chunks: &[Arc<Chunk>], dim: usize, written: &[(usize, usize)]) -> Option<Self> {
        if chunks.len() >= GROWTH * self.centered_on {
            return Bits::new(chunks, dim);
        }
        let mut next = self.clone();
        let vacant = || Arc::new(BitBlocks::vacant(&self.frame, RUN_BLOCKS));
        next.runs.resize_with(chunks.len().div_ceil(RUN_BLOCKS), vacant);
        let mut room = Vec::new();
        for (number, at) in written {
            if let (Some(run), Some(chunk)) = (next.runs.get_mut(number / RUN_BLOCKS), chunks.get(*number)) {
                // Readers of the earlier state keep their run, because a shared run is copied before its first change.
                write(Arc::make_mut(run), &next.frame, chunk, number % RUN_BLOCKS, *at, &mut room);
            }
        }
        Some(next)
    }

    /// A query in the frame of these codes.
    pub(super) fn query(&self, query: &[f32], recall: f32) -> BitQuery {
        BitQuery::new(&self.frame, query, recall)
    }

    /// Many queries in the frame of these codes.
    pub(super) fn signs<'q>(&self, queries: impl IntoIterator<Item = &'q [f32]>, recall: f32) -> SignBatch {
        SignBatch::new(&self.frame, queries, recall)
    }

    /// The codes of a chunk.
    pub(super) fn block(&self, chunk: usize) -> Option<BitBlock<'_>> {
        self.runs.get(chunk / RUN_BLOCKS)?.block(chunk % RUN_BLOCKS)
    }
}

fn has_bits(slots: usize, dim: usize) -> bool {
    slots >= BITS_SLOTS_MIN && dim >= BITS_DIM_MIN
}

/// Writes a slot of the chunk with this number in the run.
fn write(
    run: &mut BitBlocks,
    frame: &BitFrame,
    chunk: &Chunk,
    number: usize,
    at: usize,
    room: &mut Vec<f32>,
) {
    if let Some((code, scale)) = chunk.code(at, frame.dim()) {
        run.set(number * BIT_SLOTS + at, frame, code, scale, room);
    }
}

/// The mean of a sample that is spread over all slots.
fn center(chunks: &[Arc<Chunk>], dim: usize) -> Box<[f32]> {
    let step = (chunks.len() * CHUNK_SLOTS).div_ceil(SAMPLE);
    let mut sums = vec![0.0_f64; dim];
    let mut count = 0_u32;
    for slot in (0..chunks.len() * CHUNK_SLOTS).step_by(step) {
        let chunk = chunks.get(slot / CHUNK_SLOTS);
        let Some((code, scale)) = chunk.and_then(|chunk| chunk.code(slot % CHUNK_SLOTS, dim)) else {
            continue;
        };
        count += 1;
        for (sum, value) in sums.iter_mut().zip(code) {
            *sum += f64::from(scale * f32::from(*value));
        }
    }
    sums.into_iter().map(|sum| (sum / f64::from(count.max(1))) as f32).collect()
}
