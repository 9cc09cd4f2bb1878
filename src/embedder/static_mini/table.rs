//! The bytes of a table: which row does a token have?
//!
//! Layout, all numbers little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `oubl-emb` |
//! | 4 | version of the layout: 1 |
//! | 4 | number of rows, one for each token: 1 to 2^20 |
//! | 4 | dimensions: 1 to 4,096 |
//! | 4 | bytes of the vocabulary |
//! | … | the vocabulary, UTF-8, one token on each line in the order of the rows, each line ended by `\n` |
//! | rows | multiplier of each row, 0 to 63: the product of its scale and the weight of its token |
//! | rows × dimensions | the rows, a signed byte for each value |
//! | 32 | SHA-256 of all bytes before it |
//!
//! The vector of a token is its multiplier times its row. Only directions count, so there is no common scale.

use crate::error::{Error, Result};
use crate::limits::DIM_MAX;
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// The largest table that is read.
pub(super) const TABLE_BYTES_MAX: usize = 256 << 20;

const MAGIC: &[u8; 8] = b"oubl-emb";
const VERSION: u32 = 1;
const ROWS_MAX: usize = 1 << 20;
const DIGEST_BYTES: usize = 32;

/// The number of rows that are added at once. Their products with multipliers of at most 63 fit a sum of 16
/// bits.
pub(super) const ROWS_AT_ONCE: usize = 4;
const MULTIPLIER_MAX: u8 = 63;
const _: () = assert!(ROWS_AT_ONCE * 128 * MULTIPLIER_MAX as usize <= i16::MAX as usize);

/// A table whose parts fit each other.
#[derive(Debug)]
pub(super) struct Table {
    bytes: Cow<'static, [u8]>,
    rows: usize,
    dims: usize,
    /// Where the multipliers begin in `bytes`. The rows follow behind them, and the vocabulary ends before
    /// them.
    multipliers: usize,
    vectors: usize,
    /// The first 16 hexadecimal digits of the digest.
    digest: String,
}

/// Bytes before the vocabulary.
pub(super) const HEADER_BYTES: usize = 24;

/// The number of rows of a table that is whole.
pub(super) const fn rows_of(table: &[u8]) -> usize {
    word_at(table, 12)
}

/// The bytes of the vocabulary of a table that is whole.
pub(super) const fn vocabulary_bytes_of(table: &[u8]) -> usize {
    word_at(table, 20)
}

#[expect(clippy::indexing_slicing, reason = "the compiler runs it, on the shipped table")]
const fn word_at(table: &[u8], at: usize) -> usize {
    u32::from_le_bytes([table[at], table[at + 1], table[at + 2], table[at + 3]]) as usize
}

impl Table {
    /// A table of our own. Its digest is not computed again.
    pub(super) fn trusted(bytes: &'static [u8]) -> Result<Self> {
        Self::read(Cow::Borrowed(bytes))
    }

    /// A table from an unknown source, which is checked.
    pub(super) fn checked(bytes: Vec<u8>) -> Result<Self> {
        if bytes.len() > TABLE_BYTES_MAX {
            let why = format!("must have at most {TABLE_BYTES_MAX} bytes");
            return Err(Error::invalid("table", why, bytes.len()));
        }
        let table = Self::read(Cow::Owned(bytes))?;
        let (said, stated) = table.bytes.split_at(table.bytes.len() - DIGEST_BYTES);
        if Sha256::digest(said).as_slice() != stated {
            return Err(Error::invalid("table", "must have the digest that it states", table.digest));
        }
        Ok(table)
    }

    fn read(bytes: Cow<'static, [u8]>) -> Result<Self> {
        let damaged = |why: &str| Error::invalid("table", why, format!("{} bytes", bytes.len()));
        let mut header = bytes.get(..HEADER_BYTES).unwrap_or_default().chunks_exact(4);
        if bytes.get(..MAGIC.len()) != Some(MAGIC) {
            return Err(damaged("must begin with `oubl-emb`"));
        }
        let mut word = || header.next().and_then(|word| Some(u32::from_le_bytes(word.try_into().ok()?)));
        let (_, _) = (word(), word());
        let (Some(version), Some(rows), Some(dims), Some(vocabulary)) = (word(), word(), word(), word())
        else {
            return Err(damaged("must have a header of 24 bytes"));
        };
        if version != VERSION {
            return Err(Error::invalid("table", "must be of version 1", version));
        }
        let (rows, dims, vocabulary) = (rows as usize, dims as usize, vocabulary as usize);
        if !(1..=ROWS_MAX).contains(&rows) || !(1..=DIM_MAX).contains(&dims) {
            let value = format!("{rows} × {dims}");
            return Err(Error::invalid("table", "must have 1 to 2^20 rows of 1 to 4096 dimensions", value));
        }
        let length = HEADER_BYTES as u64 + vocabulary as u64 + rows as u64 * (1 + dims as u64);
        if bytes.len() as u64 != length + DIGEST_BYTES as u64 {
            return Err(damaged("must be as long as its header says"));
        }
        let multipliers = HEADER_BYTES + vocabulary;
        if bytes.get(HEADER_BYTES..multipliers).is_none_or(|text| std::str::from_utf8(text).is_err()) {
            return Err(damaged("must have a vocabulary in UTF-8"));
        }
        let scales = bytes.get(multipliers..multipliers + rows).unwrap_or_default();
        if let Some(large) = scales.iter().find(|multiplier| **multiplier > MULTIPLIER_MAX) {
            return Err(Error::invalid("table", "must have multipliers of at most 63", large));
        }
        let digest = bytes.iter().skip(bytes.len() - DIGEST_BYTES).take(8);
        let digest = digest.map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { rows, dims, multipliers, vectors: multipliers + rows, digest, bytes })
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn dims(&self) -> usize {
        self.dims
    }

    /// The first 16 hexadecimal digits of the SHA-256.
    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// The tokens, one on each line.
    pub(super) fn vocabulary(&self) -> &str {
        self.bytes
            .get(HEADER_BYTES..self.multipliers)
            .and_then(|text| std::str::from_utf8(text).ok())
            .unwrap_or_default()
    }

    /// The multiplier and the values of a row; none for a row that does not exist.
    fn row(&self, row: u32) -> (i16, &[u8]) {
        let row = row as usize;
        let start = self.vectors + row * self.dims;
        let values = self.bytes.get(start..start + self.dims);
        let multiplier = self.bytes.get(self.multipliers + row);
        debug_assert!(row < self.rows, "row {row} of {}", self.rows);
        match (multiplier, values) {
            (Some(multiplier), Some(values)) => (i16::from(*multiplier), values),
            _ => (0, &[]),
        }
    }

    /// Whether a row adds nothing.
    pub(super) fn is_zero(&self, row: u32) -> bool {
        let (multiplier, values) = self.row(row);
        multiplier == 0 || values.iter().all(|value| *value == 0)
    }

    /// Adds the vectors of rows to `sums`, four at a time. The sum of four products fits 16 bits. So the widening,
    /// which is most of the work, is done once for four rows.
    pub(super) fn add(&self, rows: &[u32], sums: &mut [i32]) {
        let (fours, rest) = rows.as_chunks::<ROWS_AT_ONCE>();
        for four in fours {
            let [(m0, a), (m1, b), (m2, c), (m3, d)] = four.map(|row| self.row(row));
            let values = a.iter().zip(b).zip(c.iter().zip(d));
            for (sum, ((a, b), (c, d))) in sums.iter_mut().zip(values) {
                let low = times(*a, m0).wrapping_add(times(*b, m1));
                let high = times(*c, m2).wrapping_add(times(*d, m3));
                *sum += i32::from(low.wrapping_add(high));
            }
        }
        for row in rest {
            let (multiplier, values) = self.row(*row);
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += i32::from(times(*value, multiplier));
            }
        }
    }
}

/// `multiplier` times the signed byte `value`.
fn times(value: u8, multiplier: i16) -> i16 {
    i16::from(value.cast_signed()).wrapping_mul(multiplier)
}
