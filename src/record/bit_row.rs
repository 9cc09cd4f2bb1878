//! Rows of one-bit codes: the signs of 64 consecutive slots side by side with what decides the visibility of each, so
//! that a search reads these rows and the codes of candidates only.
//!
//! ```text
//! header 4 | count of timed slots u16 | dim u16 | center u32 | open u64 | timed u64 | bytes of signs × 64 × u8
//!   | 64 × factor f32 | 64 × error f32 | 64 × offset f32 | 64 × ones u16 | count × ( from i64 | until i64 ) | crc u32
//! ```
//! Bit n of `open` is set when slot n holds a memory that every live read sees, bit n of `timed` when its memory has a
//! begin or an end, which stand behind the codes in the order of the slots. A slot in neither is zero bytes. The signs
//! of eight dimensions are a byte a slot. These bytes of all slots lie together, as kernels read them. At 384 dimensions
//! a row fills a page of 4 KiB.

use crate::error::Result;
use crate::limits::{DIM_MAX, TIME_MAX_MS, TIME_MIN_MS};
use crate::record::frame::{At, CRC_BYTES, HEADER_BYTES, begin, no_flags, open, seal, tag};

/// Slots of a row.
pub(crate) const BIT_ROW_SLOTS: usize = 64;
/// Count, dim, center, both maps of bits.
const PREFIX_BYTES: usize = 24;
/// Bytes of the begin and the end of a timed slot.
const SPAN_BYTES: usize = 16;
/// The span of a slot that every live read sees.
const ALWAYS: (i64, i64) = (TIME_MIN_MS, TIME_MAX_MS);

/// The one-bit code of a slot.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BitCode {
    /// The signs, eight dimensions a byte.
    pub(crate) signs: Vec<u8>,
    /// The number of positive signs.
    pub(crate) ones: u16,
    /// What the inner product of signs and query is multiplied with.
    pub(crate) factor: f32,
    /// The deviation of the estimate for a query at distance 1 from the center.
    pub(crate) error: f32,
    /// The inner product with the center.
    pub(crate) offset: f32,
}

/// The codes of [`BIT_ROW_SLOTS`] consecutive slots.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BitRow {
    /// The number of the center that the codes were made with.
    pub(crate) center: u32,
    dim: usize,
    open: u64,
    timed: u64,
    spans: Vec<(i64, i64)>,
    /// For each eight dimensions, the signs of all slots.
    pub(crate) signs: Box<[[u8; BIT_ROW_SLOTS]]>,
    /// The number of positive signs of each slot.
    pub(crate) ones: [u16; BIT_ROW_SLOTS],
    /// The factor of each slot.
    pub(crate) factors: [f32; BIT_ROW_SLOTS],
    /// The error of each slot.
    pub(crate) errors: [f32; BIT_ROW_SLOTS],
    /// The offset of each slot.
    pub(crate) offsets: [f32; BIT_ROW_SLOTS],
}

/// Bytes of the signs of a slot: the dimensions are padded to a multiple of 64.
const fn sign_bytes_of(dim: usize) -> usize {
    dim.div_ceil(64) * 8
}

impl BitRow {
    /// A row of vacant slots for codes of `dim` dimensions.
    ///
    /// # Panics
    /// For a dimension that no embedding space can have.
    pub(crate) fn vacant(dim: usize, center: u32) -> Self {
        assert!((1..=DIM_MAX).contains(&dim), "{dim} is no dimension of an embedding");
        BitRow {
            center,
            dim,
            open: 0,
            timed: 0,
            spans: Vec::new(),
            signs: vec![[0; BIT_ROW_SLOTS]; sign_bytes_of(dim)].into(),
            ones: [0; BIT_ROW_SLOTS],
            factors: [0.0; BIT_ROW_SLOTS],
            errors: [0.0; BIT_ROW_SLOTS],
            offsets: [0.0; BIT_ROW_SLOTS],
        }
    }

    /// Bytes in memory of a row in which no memory has a begin or an end.
    pub(crate) const fn bytes_of(dim: usize) -> usize {
        size_of::<BitRow>() + sign_bytes_of(dim) * BIT_ROW_SLOTS
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        BitRow::bytes_of(self.dim) + self.spans.capacity() * SPAN_BYTES
    }

    /// A bit for each slot that holds a memory.
    pub(crate) fn occupied(&self) -> u64 {
        self.open | self.timed
    }

    /// A bit for each slot that every live read sees.
    pub(crate) fn open(&self) -> u64 {
        self.open
    }

    /// The slots whose memories have a begin or an end, each with both.
    pub(crate) fn timed(&self) -> impl Iterator<Item = (usize, (i64, i64))> {
        (0..BIT_ROW_SLOTS).filter(|at| self.timed >> at & 1 == 1).zip(self.spans.iter().copied())
    }

    /// From when until when a live read sees a slot; none for a slot without a memory.
    pub(crate) fn span(&self, at: usize) -> Option<(i64, i64)> {
        match bit(at) {
            bit if self.open & bit != 0 => Some(ALWAYS),
            bit if self.timed & bit != 0 => self.spans.get(self.rank(bit)).copied(),
            _ => None,
        }
    }

    /// The code of a slot; that of a slot without a memory is zeros.
    pub(crate) fn code(&self, at: usize) -> BitCode {
        let number = |list: &[f32]| list.get(at).copied().unwrap_or_default();
        BitCode {
            signs: self.signs.iter().map(|row| row.get(at).copied().unwrap_or_default()).collect(),
            ones: self.ones.get(at).copied().unwrap_or_default(),
            factor: number(&self.factors),
            error: number(&self.errors),
            offset: number(&self.offsets),
        }
    }

    /// Writes a slot.
    ///
    /// # Panics
    /// For a slot outside the row, a code of another length and instants out of bounds: bugs of ours.
    pub(crate) fn put(&mut self, at: usize, span: (i64, i64), code: &BitCode) {
        assert_eq!(code.signs.len(), self.signs.len(), "a code of another length");
        self.write(at, code);
        self.forget_span(at);
        self.keep_span(at, span);
    }

    /// Sets the instants of a live read that see a slot with a memory.
    pub(crate) fn set_span(&mut self, at: usize, span: (i64, i64)) {
        if self.occupied() & bit(at) != 0 {
            self.forget_span(at);
            self.keep_span(at, span);
        }
    }

    /// Makes a slot vacant: nothing of it is left in the next encoding.
    pub(crate) fn erase(&mut self, at: usize) {
        let zeros = BitCode { signs: vec![0; self.signs.len()], ..BitCode::default() };
        self.write(at, &zeros);
        self.forget_span(at);
    }

    fn write(&mut self, at: usize, code: &BitCode) {
        assert!(at < BIT_ROW_SLOTS, "slot {at} lies outside the row");
        for (row, byte) in self.signs.iter_mut().zip(&code.signs) {
            put(row, at, *byte);
        }
        put(&mut self.ones, at, code.ones);
        put(&mut self.factors, at, code.factor);
        put(&mut self.errors, at, code.error);
        put(&mut self.offsets, at, code.offset);
    }

    fn keep_span(&mut self, at: usize, span: (i64, i64)) {
        let bounds = TIME_MIN_MS..=TIME_MAX_MS;
        assert!(bounds.contains(&span.0) && bounds.contains(&span.1), "an instant out of bounds: {span:?}");
        if span == ALWAYS {
            self.open |= bit(at);
        } else {
            self.spans.insert(self.rank(bit(at)), span);
            self.timed |= bit(at);
        }
    }

    fn forget_span(&mut self, at: usize) {
        if self.timed & bit(at) != 0 {
            self.spans.remove(self.rank(bit(at)));
        }
        self.open &= !bit(at);
        self.timed &= !bit(at);
    }

    /// The number of timed slots before that of a bit.
    fn rank(&self, bit: u64) -> usize {
        (self.timed & (bit - 1)).count_ones() as usize
    }

    /// Writes the row into `out`, replacing what is there.
    pub(crate) fn encode(&self, key: &[u8], out: &mut Vec<u8>) {
        begin(tag::BIT_ROW, out);
        out.reserve(PREFIX_BYTES + BitRow::bytes_of(self.dim) + self.spans.len() * SPAN_BYTES);
        // Both are bounded far below 65,536: by the slots of a row, and by the assertion of `vacant`.
        out.extend_from_slice(&(self.spans.len() as u16).to_le_bytes());
        out.extend_from_slice(&(self.dim as u16).to_le_bytes());
        out.extend_from_slice(&self.center.to_le_bytes());
        out.extend_from_slice(&self.open.to_le_bytes());
        out.extend_from_slice(&self.timed.to_le_bytes());
        out.extend_from_slice(self.signs.as_flattened());
        for list in [&self.factors, &self.errors, &self.offsets] {
            list.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        }
        self.ones.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        for (from, until) in &self.spans {
            out.extend_from_slice(&from.to_le_bytes());
            out.extend_from_slice(&until.to_le_bytes());
        }
        seal(0, key, out);
    }

    /// The row that [`BitRow::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupted` for other bytes, or a row of another dimension.
    pub(crate) fn decode(at: At<'_>, dim: usize, bytes: &[u8]) -> Result<Self> {
        let (flags, body) = open(tag::BIT_ROW, at, bytes)?;
        no_flags(at, flags)?;
        let short = || at.corrupted(format!("a row of codes in {} bytes", bytes.len()));
        let mut rest = Reader(body);
        let (count, found) = (rest.u16().ok_or_else(short)?, rest.u16().ok_or_else(short)?);
        if usize::from(found) != dim || !(1..=DIM_MAX).contains(&dim) {
            return Err(at.corrupted(format!("a row of dimension {found} where {dim} belongs")));
        }
        let center = rest.u32().ok_or_else(short)?;
        let (open, timed) = (rest.u64().ok_or_else(short)?, rest.u64().ok_or_else(short)?);
        if open & timed != 0 || timed.count_ones() != u32::from(count) {
            return Err(at.corrupted(format!("{count} spans, {timed:#x} of them, and {open:#x} without")));
        }
        let mut row = BitRow { open, timed, ..BitRow::vacant(dim, center) };
        for signs in &mut row.signs {
            *signs = rest.take().ok_or_else(short)?;
        }
        for list in [&mut row.factors, &mut row.errors, &mut row.offsets] {
            for value in list {
                *value = rest.u32().map(f32::from_bits).ok_or_else(short)?;
            }
        }
        for value in &mut row.ones {
            *value = rest.u16().ok_or_else(short)?;
        }
        for _ in 0..count {
            let from = rest.u64().ok_or_else(short)?.cast_signed();
            row.spans.push((from, rest.u64().ok_or_else(short)?.cast_signed()));
        }
        match rest.0.is_empty() && row.is_sound() {
            true => Ok(row),
            false => Err(at.corrupted("a row of codes with a number or an instant out of bounds")),
        }
    }

    /// Whether every number is finite, and every span in bounds and one of a timed slot.
    fn is_sound(&self) -> bool {
        let finite = |list: &[f32]| list.iter().fold(true, |all, value| all & value.is_finite());
        let bounds = TIME_MIN_MS..=TIME_MAX_MS;
        let is_span =
            |span: &(i64, i64)| bounds.contains(&span.0) && bounds.contains(&span.1) && *span != ALWAYS;
        let signs = (self.signs.len() * 8) as u16;
        finite(&self.factors)
            && finite(&self.errors)
            && finite(&self.offsets)
            && self.ones.iter().all(|ones| *ones <= signs)
            && self.spans.iter().all(is_span)
    }
}

/// The bit of a slot.
fn bit(at: usize) -> u64 {
    1 << at
}

fn put<T: Copy>(list: &mut [T], at: usize, value: T) {
    list.get_mut(at).into_iter().for_each(|place| *place = value);
}

/// Bytes that are read from the front.
struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

const _: () = assert!(
    HEADER_BYTES + PREFIX_BYTES + 62 * BIT_ROW_SLOTS + CRC_BYTES + 40 <= 4 << 10,
    "a row of 384 dimensions fits a page of 4 KiB"
);
const _: () = assert!(sign_bytes_of(DIM_MAX) * 8 <= u16::MAX as usize);
