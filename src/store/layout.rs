//! How long a file of redb is by its own header, against what is there of it.
//!
//! ```text
//! 12  u32  bytes of a page          20  u32  data pages of a full region
//! 16  u32  header pages of a region 24  u32  full regions
//!                                   28  u32  data pages of the last region, where that is not full
//! ```
//!
//! Numbers are little-endian; one page with this header stands before the first region. redb writes a greater length only
//! when the file has it, and makes the file shorter only when the smaller length is written.

use std::io;

use redb::StorageBackend;

use crate::error::{FILE_CUT, FILE_MISFIT};

/// Whether the end of the file is missing: a file that has not even the header has lost it too.
pub(super) fn is_cut(backend: &dyn StorageBackend) -> bool {
    !matches!((backend.len(), told_len(backend)), (Ok(len), Ok(told)) if told <= len)
}

/// Why no write can open the file, as far as its length tells: none where that fits. A file that grows is longer than its header tells
/// for an instant, but always by whole pages.
pub(super) fn misfit(backend: &dyn StorageBackend) -> Option<&'static str> {
    if is_cut(backend) {
        return Some(FILE_CUT);
    }
    let (len, page) = (backend.len().ok()?, number(backend, PAGE_BYTES_AT).ok()?);
    (len.checked_rem(page) != Some(0)).then_some(FILE_MISFIT)
}

/// Where the header tells the bytes of a page.
const PAGE_BYTES_AT: u64 = 12;

fn number(backend: &dyn StorageBackend, at: u64) -> io::Result<u64> {
    let mut bytes = [0_u8; 4];
    backend.read(at, &mut bytes).map(|()| u64::from(u32::from_le_bytes(bytes)))
}

/// The length that the header tells.
fn told_len(backend: &dyn StorageBackend) -> io::Result<u64> {
    let number = |at| number(backend, at);
    let (page, header) = (number(PAGE_BYTES_AT)?, number(16)?);
    // The bytes may be damaged: what can't be counted is more than any file has.
    let region = |pages: u64| (header + pages).saturating_mul(page);
    let full = region(number(20)?).saturating_mul(number(24)?);
    let last = match number(28)? {
        0 => 0,
        pages => region(pages),
    };
    Ok(page.saturating_add(full).saturating_add(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_is_as_long_as_its_header_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        drop(redb::Database::create(&path).unwrap());
        let len = std::fs::metadata(&path).unwrap().len();
        let is_cut_at = |len: u64| {
            let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
            file.set_len(len).unwrap();
            is_cut(&redb::backends::FileBackend::new(file).unwrap())
        };
        assert!(!is_cut_at(len) && is_cut_at(len - 1) && is_cut_at(4096) && is_cut_at(9), "{len}");
    }
}
