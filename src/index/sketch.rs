//! A sketch: the one-bit codes of an index at one commit, in memory without its codes.
//!
//! It takes about a seventh of the memory of a view, and is read from about a seventh of the bytes. A search scans it
//! and reads from the file the codes of slots that are likely among the best. So it serves the first search of a process, and
//! an index whose view does not fit into memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;
use crate::index::bits::{numbers_of, read_rows};
use crate::index::chunk::Window;
use crate::record::{BIT_ROW_SLOTS, BitRow};
use crate::store::{IndexId, Snapshot};
use crate::vector::{BIT_SLOTS, BitBlock, BitFrame, BitQuery, Wanted};

/// The one-bit codes of one index at one commit.
#[derive(Debug)]
pub(crate) struct Sketch {
    frame: Arc<BitFrame>,
    /// The number of the center.
    center: u32,
    rows: Vec<Arc<BitRow>>,
    bytes: usize,
    /// When the sketch was last used, in ticks of the budget.
    pub(super) used: AtomicU64,
}

impl Sketch {
    /// Bytes of a sketch of so many slots in which no memory has a begin or an end.
    pub(super) fn bytes_of(slots: usize, dim: usize) -> usize {
        slots.div_ceil(BIT_ROW_SLOTS).saturating_mul(BitRow::bytes_of(dim) + ROW_OVERHEAD)
    }

    /// Reads the one-bit codes of an index with `len` slots; none if it has none, or damaged ones.
    pub(super) fn load(snapshot: &Snapshot, index: IndexId, dim: usize, len: u32) -> Result<Option<Self>> {
        let mut rows = Vec::new();
        let read = read_rows(snapshot, index, dim, len, |_, row| rows.push(Arc::new(row)))?;
        Ok(read.map(|(frame, center)| Sketch::of(frame, center, rows, 0)))
    }

    fn of(frame: Arc<BitFrame>, center: u32, rows: Vec<Arc<BitRow>>, used: u64) -> Self {
        let bytes = rows.iter().map(|row| row.bytes() + ROW_OVERHEAD).sum::<usize>() + size_of::<Sketch>();
        Sketch { frame, center, rows, bytes, used: AtomicU64::new(used) }
    }

    /// The sketch after a commit that wrote these rows; none if they are of another center.
    pub(super) fn with(&self, written: &[(u32, &BitRow)]) -> Option<Self> {
        let mut rows = self.rows.clone();
        for (number, row) in written {
            let at = *number as usize;
            if row.center != self.center || at > rows.len() {
                return None;
            }
            let row = Arc::new((*row).clone());
            match rows.get_mut(at) {
                Some(place) => *place = row,
                None => rows.push(row),
            }
        }
        Some(Sketch::of(Arc::clone(&self.frame), self.center, rows, self.used.load(Ordering::Relaxed)))
    }

    /// The bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A query in the frame of these codes.
    pub(super) fn query(&self, query: &[f32], recall: f32) -> BitQuery {
        BitQuery::new(&self.frame, query, recall)
    }

    /// The slots of each row that lie in a window, a bit for each.
    pub(super) fn visible(&self, window: Window) -> impl Iterator<Item = u64> {
        self.rows.iter().map(move |row| {
            let timed = row.timed().filter(|(_, (from, until))| window.holds(*from, *until));
            row.open() | timed.fold(0, |bits, (at, _)| bits | 1 << at)
        })
    }

    /// The wanted slots of a row that may score enough, a bit for each, and for each of them a score that the slot exceeds only
    /// by chance if it scores enough; none past the last row.
    pub(super) fn likely_uppers(
        &self,
        query: &BitQuery,
        row: usize,
        wanted: Wanted,
        out: &mut [f32; BIT_SLOTS],
    ) -> Option<u64> {
        let row = self.rows.get(row)?;
        let numbers = numbers_of(row);
        Some(query.likely_uppers(BitBlock::new(&row.signs, &numbers), None, wanted, out))
    }
}

/// Bytes of a row in memory beside the row: its pointer, and the counts of who shares it.
const ROW_OVERHEAD: usize = size_of::<Arc<BitRow>>() + 2 * size_of::<usize>();
