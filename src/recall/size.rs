//! What the file takes, and for what: by the sum that every commit keeps, or page by page.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::store::{OWN_BYTES, Rows, Snapshot};

/// The bytes of the file, whatever namespace the other numbers are of: `live + overhead + free = file`.
///
/// In [`Stats`](crate::report::Stats) `live` is exact and `overhead` an estimate: exact right after a copy (`compact`, `backup`), then
/// growing and shrinking with `live` by the share of that copy. A new file has 88 KiB, and the share of a file or a copy of less
/// than 256 KiB of rows is taken for 30 %. In [`FileStats`] both are counted. Where the sum of the rows is damaged (`health.size_warning`) the whole file is `overhead`, since nothing is
/// known to be free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BytesStats {
    /// Length of the file.
    pub file: u64,
    /// Keys and values of every row, which a copy takes along. What a compaction drops, such as free slots in blocks of
    /// vectors, is a part of them until then.
    pub live: u64,
    /// What pages take beyond that: the keys that lead to rows, room within pages, and 40 KiB for the key-value store's own
    /// lists.
    pub overhead: u64,
    /// The rest: pages that can be used again.
    pub free: u64,
}

impl BytesStats {
    /// The bytes of a file; rows and pages that it has no room for are not believed.
    fn of(file: u64, live: u64, overhead: u64) -> Self {
        let live = live.min(file);
        let overhead = overhead.min(file - live);
        BytesStats { file, live, overhead, free: file - live - overhead }
    }
}

/// The bytes of the file, walked page by page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileStats {
    /// Of the whole file.
    #[serde(flatten)]
    pub bytes: BytesStats,
    /// Of each table, by its name in `docs/format.md`.
    pub by_table: BTreeMap<&'static str, TableStats>,
}

/// What a table of the file takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableStats {
    /// Rows.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub live: u64,
    /// Bytes that their pages take beyond that.
    pub overhead: u64,
}

/// The bytes of a file by the sum that its commits keep, and a warning where that is of no use.
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
/// `Corrupted` where a page is damaged.
pub(crate) fn file_stats(rows: &Snapshot, file: u64) -> Result<FileStats> {
    let (mut live, mut overhead, mut by_table) = (0, OWN_BYTES, BTreeMap::new());
    for (table, size) in rows.sizes()? {
        live += size.live;
        overhead += size.overhead;
        let stats = TableStats { rows: size.rows, live: size.live, overhead: size.overhead };
        by_table.insert(table.name(), stats);
    }
    Ok(FileStats { bytes: BytesStats::of(file, live, overhead), by_table })
}
