//! Vector blocks: a few f32 vectors side by side, as many as fill a page of the key-value store.
//!
//! ```text
//! header 4 | count u16 | dim u16 | count × ( crc u32 | dim × f32 )
//! ```
//! There is no checksum over the whole value: each vector has its own, over the key, its position in the block
//! (u32) and its data, so that reading one vector touches no other. A vacant position is zero bytes throughout.

use crate::error::Result;
use crate::limits::DIM_MAX;
use crate::record::frame::{
    At, CRC_BYTES, HEADER_BYTES, begin, checksum, counted, entries_per_block, no_flags, open_header, tag,
};

/// Header, count and dim.
const OVERHEAD: usize = HEADER_BYTES + 4;

/// Vectors of `dim` dimensions in one block: 5 at 384, 7 at 1,024, 2,048 and 4,096.
pub(crate) const fn vectors_per_block(dim: usize) -> usize {
    entries_per_block(OVERHEAD, vector_bytes(dim))
}

const fn vector_bytes(dim: usize) -> usize {
    CRC_BYTES + 4 * dim
}

/// What stands at a position of a block.
#[derive(Clone, Debug, PartialEq)]
enum Position {
    Vacant,
    Held(Vec<f32>),
    /// Bytes that are no vector, written again as they are: a change of its neighbours must not make them look sound.
    Damaged(Vec<u8>),
}

/// A block that can be changed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VectorBlock {
    dim: usize,
    vectors: Vec<Position>,
}

impl VectorBlock {
    /// An empty block for vectors of `dim` dimensions.
    ///
    /// # Panics
    /// For a dimension that no embedding space can have.
    pub(crate) fn new(dim: usize) -> Self {
        assert!((1..=DIM_MAX).contains(&dim), "{dim} is no dimension of an embedding");
        VectorBlock { dim, vectors: Vec::new() }
    }

    /// Writes a vector at a position, vacant or not.
    ///
    /// # Panics
    /// For a position outside the block, a vector of another length or one of zeros: bugs of ours.
    pub(crate) fn put(&mut self, at: usize, vector: &[f32]) {
        assert!(at < vectors_per_block(self.dim), "position {at} lies outside the block");
        assert_eq!(vector.len(), self.dim, "a vector of another length");
        assert!(vector.iter().any(|x| x.to_bits() != 0), "zeros stand for a vacant position");
        while self.vectors.len() <= at {
            self.vectors.push(Position::Vacant);
        }
        if let Some(place) = self.vectors.get_mut(at) {
            *place = Position::Held(vector.to_vec());
        }
    }

    /// Makes a position vacant; its bytes are zero in the next encoding.
    pub(crate) fn erase(&mut self, at: usize) {
        if let Some(place) = self.vectors.get_mut(at) {
            *place = Position::Vacant;
        }
    }

    /// The vector at a position, none where it is vacant or damaged.
    pub(crate) fn get(&self, at: usize) -> Option<&[f32]> {
        match self.vectors.get(at)? {
            Position::Held(vector) => Some(vector),
            Position::Vacant | Position::Damaged(_) => None,
        }
    }

    /// Whether something stands at a position, sound or not.
    pub(crate) fn is_taken(&self, at: usize) -> bool {
        self.vectors.get(at).is_some_and(|position| *position != Position::Vacant)
    }

    /// Writes the block into `out`, replacing what is there.
    pub(crate) fn encode(&self, key: &[u8], out: &mut Vec<u8>) {
        begin(tag::VECTOR_BLOCK, out);
        out.reserve(OVERHEAD + self.vectors.len() * vector_bytes(self.dim));
        // Both are bounded far below 65,536 by the assertions of `new` and `put`.
        out.extend_from_slice(&(self.vectors.len() as u16).to_le_bytes());
        out.extend_from_slice(&(self.dim as u16).to_le_bytes());
        let mut data = Vec::with_capacity(4 * self.dim);
        for (position, vector) in (0_u32..).zip(&self.vectors) {
            data.clear();
            let crc = match vector {
                Position::Held(vector) => {
                    data.extend(vector.iter().flat_map(|x| x.to_le_bytes()));
                    checksum(&[key, &position.to_le_bytes(), &data])
                }
                Position::Vacant => {
                    data.resize(4 * self.dim, 0);
                    0
                }
                Position::Damaged(bytes) => {
                    out.extend_from_slice(bytes);
                    continue;
                }
            };
            out.extend_from_slice(&crc.to_le_bytes());
            out.extend_from_slice(&data);
        }
    }

    /// The block that [`VectorBlock::encode`] wrote, all its vectors checked.
    ///
    /// # Errors
    /// `Corrupted` for other bytes, another dimension, a float that is not finite.
    pub(crate) fn decode(at: At<'_>, dim: usize, bytes: &[u8]) -> Result<Self> {
        let vectors = positions(at, dim, bytes)?.enumerate().map(|(position, bytes)| {
            let mut vector = Vec::with_capacity(dim);
            let held = read_position(at, position, bytes, &mut vector)?;
            Ok(if held { Position::Held(vector) } else { Position::Vacant })
        });
        Ok(VectorBlock { dim, vectors: vectors.collect::<Result<_>>()? })
    }

    /// The same of a block that may be damaged: every vector that can be read, none of a block without a sound frame.
    pub(crate) fn salvage(at: At<'_>, dim: usize, bytes: &[u8]) -> Self {
        let Ok(positions) = positions(at, dim, bytes) else {
            // These are no numbers, so every position reads as damaged, whatever its checksum.
            let lost = vec![u8::MAX; vector_bytes(dim)];
            return VectorBlock { dim, vectors: vec![Position::Damaged(lost); vectors_per_block(dim)] };
        };
        let vectors = positions.enumerate().map(|(position, bytes)| {
            let mut vector = Vec::with_capacity(dim);
            match read_position(at, position, bytes, &mut vector) {
                Ok(true) => Position::Held(vector),
                Ok(false) => Position::Vacant,
                Err(_) => Position::Damaged(bytes.to_vec()),
            }
        });
        VectorBlock { dim, vectors: vectors.collect() }
    }
}

/// Reads one vector into `out`, replacing what is there; false for a vacant position or one past the end. Only
/// its own checksum is computed.
///
/// # Errors
/// `Corrupted` for a block of another dimension or length, or when the vector is not what was written.
pub(crate) fn read_vector(
    at: At<'_>,
    bytes: &[u8],
    dim: usize,
    position: usize,
    out: &mut Vec<f32>,
) -> Result<bool> {
    out.clear();
    match positions(at, dim, bytes)?.nth(position) {
        Some(bytes) => read_position(at, position, bytes, out),
        None => Ok(false),
    }
}

/// The bytes of each position, after the header was checked.
fn positions<'b>(at: At<'_>, dim: usize, bytes: &'b [u8]) -> Result<std::slice::ChunksExact<'b, u8>> {
    let (flags, body) = open_header(tag::VECTOR_BLOCK, at, bytes)?;
    no_flags(at, flags)?;
    let (count, data) = counted(at, dim, body)?;
    if count > vectors_per_block(dim) || data.len() != count * vector_bytes(dim) {
        return Err(at.corrupted(format!("{count} vectors in {} bytes", data.len())));
    }
    Ok(data.chunks_exact(vector_bytes(dim)))
}

fn read_position(at: At<'_>, position: usize, bytes: &[u8], out: &mut Vec<f32>) -> Result<bool> {
    let Some((crc, data)) = bytes.split_first_chunk::<CRC_BYTES>() else {
        return Err(at.corrupted(format!("no vector at {position}")));
    };
    let crc = u32::from_le_bytes(*crc);
    if crc == 0 && data.iter().all(|byte| *byte == 0) {
        return Ok(false);
    }
    let index = u32::try_from(position).unwrap_or(u32::MAX);
    if checksum(&[at.key, &index.to_le_bytes(), data]) != crc {
        return Err(at.corrupted(format!("the checksum of vector {position} does not fit")));
    }
    let (floats, _) = data.as_chunks::<4>();
    out.extend(floats.iter().map(|float| f32::from_le_bytes(*float)));
    // No early exit, so that the loop is vectorised.
    if !out.iter().fold(true, |finite, x| finite & x.is_finite()) {
        return Err(at.corrupted(format!("vector {position} is not finite")));
    }
    Ok(true)
}

const _: () = assert!(vectors_per_block(384) == 5 && vectors_per_block(DIM_MAX) == 7);
const _: () = assert!(DIM_MAX <= u16::MAX as usize);
const _: () = assert!(vectors_per_block(1) <= u16::MAX as usize);
