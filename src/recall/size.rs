//! What takes up the bytes of the file: by the sum that every commit keeps, or page by page.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::{Error, Result};
pub use crate::store::TableStats;
use crate::store::{OWN_BYTES, Rows, Snapshot};

/// The bytes of the file, whichever namespace the other numbers belong to: `live + overhead + free = file`.
///
/// In [`Stats`](crate::report::Stats) `live` is exact and `overhead` is an estimate. The estimate is exact right after a copy
/// (`compact`, `backup`), and then grows and shrinks with `live` by the share of that copy. A new file has 88 KiB. The
/// share of a new file, or of a copy of less than 256 KiB of rows, is taken as 30 %. In [`FileStats`] both are
/// counted. If the sum of the rows is damaged (`health.size_warning`), the whole file is `overhead`, because nothing
/// is known to be free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BytesStats {
    /// The length of the file.
    pub file: u64,
    /// The keys and values of every row, which a copy takes along. They include parts that a compaction drops, such as
    /// free slots in blocks of vectors.
    pub live: u64,
    /// The bytes of pages beyond that: the keys that lead to rows, unused room within pages, and 40 KiB for the
    /// key-value store's own lists.
    pub overhead: u64,
    /// The rest: pages that can be used again.
    pub free: u64,
}

impl BytesStats {
    /// The bytes of a file. Rows and pages beyond the length of the file are not believed.
    fn of(file: u64, live: u64, overhead: u64) -> Self {
        let live = live.min(file);
        let overhead = overhead.min(file - live);
        BytesStats { file, live, overhead, free: file - live - overhead }
    }
}

/// The bytes of the file, walked page by page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileStats {
    /// The bytes of the whole file.
    #[serde(flatten)]
    pub bytes: BytesStats,
    /// The bytes of each table, by its name in `docs/format.md`.
    pub by_table: BTreeMap<&'static str, TableStats>,
}

/// The bytes of a file by the sum that its commits keep, and a warning if the sum is unusable.
pub(super) fn bytes(rows: &Snapshot, file: u64) -> Result<(BytesStats, Option<String>)> {
    let why = match rows.size() {
        Ok(Some(size)) => return Ok((BytesStats::of(file, size.live, size.overhead()), None)),
        Ok(None) => "the row is missing".to_owned(),
        Err(Error::Corrupted { why, .. }) => why,
        Err(other) => return Err(other),
    };
    let warning = format!("the bytes of the rows are not known; `reindex` or `compact` counts them: {why}");
    Ok((BytesStats::of(file, 0, file), Some(warning)))
}

/// The bytes of a file, page by page.
///
/// # Errors
/// `Corrupted` if a page is damaged.
pub(crate) fn file_stats(rows: &Snapshot, file: u64) -> Result<FileStats> {
    let (mut live, mut overhead, mut by_table) = (0, OWN_BYTES, BTreeMap::new());
    for (table, size) in rows.sizes()? {
        live += size.live;
        overhead += size.overhead;
        by_table.insert(table.name(), size);
    }
    Ok(FileStats { bytes: BytesStats::of(file, live, overhead), by_table })
}
