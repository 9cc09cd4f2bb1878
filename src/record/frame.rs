//! What the values of all records share: the header with version, tag and flags, the checksum, and the place in the file
//! that errors name.

use crate::error::{Error, Result};
use crate::limits::{BLOCK_PAGE_BYTES, BLOCK_PAGE_OVERHEAD, DIM_MAX, TIME_MAX_MS, TIME_MIN_MS};
use crate::model::Time;

/// Tags: the second byte of a value says what sort of record it is. A tag is never given to another sort.
pub(crate) mod tag {
    /// [`Vitals`](crate::model::Vitals).
    pub(crate) const VITALS: u8 = 1;
    /// [`Content`](crate::model::Content).
    pub(crate) const CONTENT: u8 = 2;
    /// [`Access`](crate::model::Access).
    pub(crate) const ACCESS: u8 = 3;
    /// [`Holder`](crate::model::Holder).
    pub(crate) const HOLDER: u8 = 4;
    /// [`JournalRow`](crate::model::JournalRow).
    pub(crate) const JOURNAL: u8 = 5;
    /// [`Tombstone`](crate::model::Tombstone).
    pub(crate) const TOMBSTONE: u8 = 6;
    /// [`SlotBlock`](crate::record::SlotBlock).
    pub(crate) const SLOT_BLOCK: u8 = 7;
    /// [`VectorBlock`](crate::record::VectorBlock).
    pub(crate) const VECTOR_BLOCK: u8 = 8;
    /// [`GraphBlockRef`](crate::record::GraphBlockRef).
    pub(crate) const GRAPH_BLOCK: u8 = 9;

    /// [`DocBlock`](crate::record::DocBlock).
    pub(crate) const DOC_BLOCK: u8 = 10;
    /// [`Postings`](crate::record::Postings).
    pub(crate) const POSTING_BLOCK: u8 = 11;
    /// [`Payload`](crate::model::Payload).
    pub(crate) const PAYLOAD: u8 = 12;
    /// [`BitRow`](crate::record::BitRow).
    pub(crate) const BIT_ROW: u8 = 13;

    /// First tag of the small metadata rows ([`encode_meta`](crate::record::encode_meta)), which the table list of `store`
    /// gives out; below lie the records.
    pub(crate) const META_FIRST: u8 = 16;
}

/// Version of every layout here: the first byte of a value.
const LAYOUT_VERSION: u8 = 1;
/// Version u8, tag u8, flags u16.
pub(super) const HEADER_BYTES: usize = 4;
/// The crc32 at the end.
pub(super) const CRC_BYTES: usize = 4;

/// Where a value lies: for its checksum, and for the error if it is damaged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    /// Name of the table, as in `docs/format.md`.
    pub(crate) table: &'static str,
    /// The key, part of the checksum: a value that was moved to another key is found as well.
    pub(crate) key: &'a [u8],
}

impl<'a> At<'a> {
    pub(crate) fn new(table: &'static str, key: &'a [u8]) -> Self {
        At { table, key }
    }

    #[cold]
    pub(super) fn corrupted(self, why: impl Into<String>) -> Error {
        Error::corrupted(self.table, self.key, why)
    }

    /// An instant inside the years 1 to 9999.
    pub(super) fn time(self, field: &str, millis: i64) -> Result<Time> {
        if !(TIME_MIN_MS..=TIME_MAX_MS).contains(&millis) {
            return Err(self.corrupted(format!("{field} is {millis} ms, outside the years 1 to 9999")));
        }
        Ok(Time::from_millis(millis))
    }

    /// The member of a closed set with a code.
    pub(super) fn member<T>(self, field: &str, code: u8, from_code: impl Fn(u8) -> Option<T>) -> Result<T> {
        from_code(code).ok_or_else(|| self.corrupted(format!("{field} has no member with code {code}")))
    }

    /// A JSON value that is kept as text.
    pub(super) fn json(self, field: &str, text: &str) -> Result<serde_json::Value> {
        serde_json::from_str(text).map_err(|why| self.corrupted(format!("{field} is not JSON: {why}")))
    }
}

/// Empties `out` and begins a value in it.
pub(super) fn begin(tag: u8, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[LAYOUT_VERSION, tag, 0, 0]);
}

/// Ends the value in `out`: sets its flags and appends the checksum over header, body and key.
pub(super) fn seal(flags: u16, key: &[u8], out: &mut Vec<u8>) {
    if let Some(place) = out.get_mut(2..HEADER_BYTES) {
        place.copy_from_slice(&flags.to_le_bytes());
    }
    let crc = checksum(&[out, key]);
    out.extend_from_slice(&crc.to_le_bytes());
}

/// Checks the checksum of a sealed value, whatever record it is; a row without a value has none.
///
/// # Errors
/// `Corrupted` where it does not fit.
pub(crate) fn check_sum(at: At<'_>, bytes: &[u8]) -> Result<()> {
    match bytes.get(1) {
        // A block of vectors has one for each of them.
        Some(&tag::VECTOR_BLOCK) => Ok(()),
        found => open(found.copied().unwrap_or_default(), at, bytes).map(drop),
    }
}

/// Entries of `entry` bytes in a block with `overhead` bytes of its own: as many as fill a page of the key-value store. It is
/// the smallest page, of 8 KiB times a power of two, that entries fill to seven eighths.
pub(super) const fn entries_per_block(overhead: usize, entry: usize) -> usize {
    let mut page = BLOCK_PAGE_BYTES;
    loop {
        let fit = (page - BLOCK_PAGE_OVERHEAD - overhead) / entry;
        if fit * entry * 8 >= page * 7 {
            return fit;
        }
        page *= 2;
    }
}

/// Flags and body of a sealed value.
///
/// # Errors
/// `Corrupted` for another version or tag, or a checksum that does not fit.
pub(super) fn open<'b>(tag: u8, at: At<'_>, bytes: &'b [u8]) -> Result<(u16, &'b [u8])> {
    let Some((value, crc)) = bytes.split_last_chunk::<CRC_BYTES>() else {
        return Err(at.corrupted(format!("{} bytes are no value", bytes.len())));
    };
    let (flags, body) = open_header(tag, at, value)?;
    if checksum(&[value, at.key]) != u32::from_le_bytes(*crc) {
        return Err(at.corrupted("the checksum does not fit"));
    }
    Ok((flags, body))
}

/// Flags and body behind the header alone, for a record with checksums of its own.
pub(super) fn open_header<'b>(tag: u8, at: At<'_>, value: &'b [u8]) -> Result<(u16, &'b [u8])> {
    let Some((&[version, found, low, high], body)) = value.split_first_chunk::<HEADER_BYTES>() else {
        return Err(at.corrupted(format!("{} bytes hold no header", value.len())));
    };
    if version != LAYOUT_VERSION {
        return Err(at.corrupted(format!("layout version {version}, this build reads {LAYOUT_VERSION}")));
    }
    if found != tag {
        return Err(at.corrupted(format!("a record with tag {found} where {tag} belongs")));
    }
    Ok((u16::from_le_bytes([low, high]), body))
}

/// The number of entries of a block of `dim` dimensions, and the bytes of its entries.
///
/// # Errors
/// `Corrupted` for a block of another dimension.
pub(super) fn counted<'b>(at: At<'_>, dim: usize, body: &'b [u8]) -> Result<(usize, &'b [u8])> {
    let Some((&[c0, c1, d0, d1], entries)) = body.split_first_chunk::<4>() else {
        return Err(at.corrupted("a block without count and dimension"));
    };
    let found = usize::from(u16::from_le_bytes([d0, d1]));
    if found != dim || !(1..=DIM_MAX).contains(&dim) {
        return Err(at.corrupted(format!("a block of dimension {found} where {dim} belongs")));
    }
    Ok((usize::from(u16::from_le_bytes([c0, c1])), entries))
}

/// crc32 over `parts`, one after the other.
pub(super) fn checksum(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// Refuses flags in a record that has none.
pub(super) fn no_flags(at: At<'_>, flags: u16) -> Result<()> {
    match flags {
        0 => Ok(()),
        _ => Err(at.corrupted(format!("unknown flags {flags:#06x}"))),
    }
}
