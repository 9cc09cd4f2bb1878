//! What an instruction set has to offer: the functions of a kernel, and what all kernels share.

#![allow(
    unsafe_code,
    reason = "calls functions that are compiled for instructions which the processor may lack"
)]

use crate::limits::DIM_MAX;

/// Lanes of a float sum.
pub(super) const LANES: usize = 16;

/// Slots of a block of one-bit codes.
pub const BIT_SLOTS: usize = 64;
/// Slots whose words of signs lie side by side.
pub(in crate::vector) const SLOTS_SIDE_BY_SIDE: usize = 8;
/// Bits of a value of a query.
pub(in crate::vector) const QUERY_BITS: usize = 4;

/// The four bits of 64 values of a query.
pub(in crate::vector) type Planes = [u64; QUERY_BITS];

/// The sums of the widest integer kernel, which adds 128 to one side, stay within an i32.
const _: () = assert!(DIM_MAX * 255 * 128 <= i32::MAX as usize);

/// The functions of one instruction set. A kernel leaves this module through [`available`](super::available) only.
pub(in crate::vector) struct Kernel {
    pub(super) name: &'static str,
    /// Whether this processor has the instructions.
    pub(super) supported: fn() -> bool,
    /// Writes the dot product of the query with each row. It is safe to call if `supported` returns true.
    pub(super) dot_i8: unsafe fn(query: &[i8], rows: &[i8], out: &mut [i32]),
    /// The same for rows that lie apart; see `dot_i8`.
    pub(super) gather_i8: unsafe fn(query: &[i8], rows: &[&[i8]], out: &mut [i32]),
    /// See `dot_i8`.
    pub(super) dot_f32: unsafe fn(query: &[f32], rows: &[f32], out: &mut [f32]),
    /// Writes for each slot of a block the sum of the query's values where the slot has a one: the population counts
    /// of what a slot shares with each plane of the query, weighted by 1, 2, 4 and 8. Groups of eight slots none of
    /// which is in `wanted` are left out. It is safe to call if `supported` returns true.
    pub(super) sign_sums:
        unsafe fn(planes: &[Planes], words: &[u64], wanted: u64, out: &mut [i32; BIT_SLOTS]),
}

impl Kernel {
    pub(in crate::vector) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn is_supported(&self) -> bool {
        (self.supported)()
    }

    pub(in crate::vector) fn dot_i8_many(&self, query: &[i8], rows: &[i8], out: &mut [i32]) {
        check_shape(query.len(), rows.len(), out.len());
        // SAFETY: `available` has asked the processor whether it has the instructions.
        unsafe { (self.dot_i8)(query, rows, out) }
    }

    pub(in crate::vector) fn dot_i8_gather(&self, query: &[i8], rows: &[&[i8]], out: &mut [i32]) {
        assert!((1..=DIM_MAX).contains(&query.len()), "a query has 1 to {DIM_MAX} dimensions");
        assert_eq!(rows.len(), out.len(), "each row has a result");
        assert!(rows.iter().all(|row| row.len() == query.len()), "rows have the dimensions of the query");
        // SAFETY: `available` has asked the processor whether it has the instructions.
        unsafe { (self.gather_i8)(query, rows, out) }
    }

    pub(in crate::vector) fn dot_f32_many(&self, query: &[f32], rows: &[f32], out: &mut [f32]) {
        check_shape(query.len(), rows.len(), out.len());
        // SAFETY: `available` has asked the processor whether it has the instructions.
        unsafe { (self.dot_f32)(query, rows, out) }
    }

    pub(in crate::vector) fn sign_sums(
        &self,
        planes: &[Planes],
        words: &[u64],
        wanted: u64,
        out: &mut [i32; BIT_SLOTS],
    ) {
        assert_eq!(words.len(), planes.len() * BIT_SLOTS, "a block has the words of its slots");
        // SAFETY: `available` has asked the processor whether it has the instructions.
        unsafe { (self.sign_sums)(planes, words, wanted, out) }
    }
}

fn check_shape(dim: usize, row_values: usize, rows: usize) {
    assert!((1..=DIM_MAX).contains(&dim), "a query has 1 to {DIM_MAX} dimensions");
    assert_eq!(row_values, dim * rows, "rows are contiguous, with as many dimensions as the query");
}

/// The end of a row, filled with zeros to a whole group.
pub(super) fn padded<T: Copy + Default, const N: usize>(tail: &[T]) -> [T; N] {
    let mut group = [T::default(); N];
    for (value, &given) in group.iter_mut().zip(tail) {
        *value = given;
    }
    group
}

/// The groups of eight slots of a block of which one is wanted, with the places of their results.
pub(super) fn groups<'b>(
    words: &'b [u64],
    wanted: u64,
    out: &'b mut [i32; BIT_SLOTS],
) -> impl Iterator<Item = (&'b [[u64; SLOTS_SIDE_BY_SIDE]], &'b mut [i32; SLOTS_SIDE_BY_SIDE])> {
    let (rows, _) = words.as_chunks::<SLOTS_SIDE_BY_SIDE>();
    let (out, _) = out.as_chunks_mut::<SLOTS_SIDE_BY_SIDE>();
    let groups = rows.chunks_exact((rows.len() / out.len()).max(1)).zip(out).enumerate();
    groups.filter(move |(at, _)| wanted >> (at * SLOTS_SIDE_BY_SIDE) & 0xff != 0).map(|(_, group)| group)
}
