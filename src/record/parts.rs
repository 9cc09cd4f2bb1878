//! Rows of parts: most fields of a holder, a journal row, a tombstone or an access row are empty, so a bit of
//! the frame's flags says of each whether it is there, and only those that are follow, in postcard.
//!
//! Each optional part takes the next bit, in the order of the calls; reader and writer make the same calls.
//! Measured for a plain insert, a journal row is 46 bytes so.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Result;
use crate::record::frame::{At, begin, open, seal};

/// Writes parts into a value.
pub(super) struct PartWriter<'o> {
    out: &'o mut Vec<u8>,
    flags: u16,
    bit: u16,
}

impl<'o> PartWriter<'o> {
    pub(super) fn begin(tag: u8, out: &'o mut Vec<u8>) -> Self {
        begin(tag, out);
        PartWriter { out, flags: 0, bit: 1 }
    }

    /// A part that every row has.
    #[expect(clippy::expect_used, reason = "writing to memory cannot fail, and every type here has a length")]
    pub(super) fn always<T: Serialize + ?Sized>(&mut self, value: &T) {
        postcard::to_io(value, &mut *self.out).expect("a part is serialized into memory");
    }

    /// A part that may be missing.
    pub(super) fn maybe<T: Serialize>(&mut self, value: Option<T>) {
        assert_ne!(self.bit, 0, "a row has at most 16 optional parts");
        if let Some(value) = value {
            self.flags |= self.bit;
            self.always(&value);
        }
        // After 16 parts the bit has left the number, which the assertion above notices.
        self.bit <<= 1;
    }

    /// A list, missing when it is empty.
    pub(super) fn list<T: Serialize>(&mut self, items: &[T]) {
        self.maybe((!items.is_empty()).then_some(items));
    }

    pub(super) fn seal(self, key: &[u8]) {
        seal(self.flags, key, self.out);
    }
}

/// Reads the parts of a value.
pub(super) struct PartReader<'b> {
    at: At<'b>,
    rest: &'b [u8],
    /// Flags of the parts that are not read yet, the next one lowest.
    flags: u16,
}

impl<'b> PartReader<'b> {
    pub(super) fn open(tag: u8, at: At<'b>, bytes: &'b [u8]) -> Result<Self> {
        let (flags, rest) = open(tag, at, bytes)?;
        Ok(PartReader { at, rest, flags })
    }

    /// A part that every row has.
    pub(super) fn always<T: DeserializeOwned>(&mut self, field: &str) -> Result<T> {
        let (value, rest) = postcard::take_from_bytes(self.rest)
            .map_err(|why| self.at.corrupted(format!("{field} cannot be read: {why}")))?;
        self.rest = rest;
        Ok(value)
    }

    /// A part that may be missing.
    pub(super) fn maybe<T: DeserializeOwned>(&mut self, field: &str) -> Result<Option<T>> {
        let there = self.flags & 1 == 1;
        self.flags >>= 1;
        there.then(|| self.always(field)).transpose()
    }

    /// A list, empty when it is missing.
    pub(super) fn list<T: DeserializeOwned>(&mut self, field: &str) -> Result<Vec<T>> {
        Ok(self.maybe(field)?.unwrap_or_default())
    }

    /// That every part was read.
    pub(super) fn finish(self) -> Result<()> {
        if self.flags != 0 {
            return Err(self.at.corrupted("flags of parts that this build does not know"));
        }
        if !self.rest.is_empty() {
            return Err(self.at.corrupted(format!("{} bytes after the last part", self.rest.len())));
        }
        Ok(())
    }
}
