//! Dot products of one query with many rows, as fast as this processor can compute them.
//!
//! Two rules make every instruction set give the same bits. Integers are exact. Floats follow one order. Lane *i* of
//! sixteen sums the products of the dimensions *i*, *i* + 16, *i* + 32 …; each product is rounded and then added
//! (never fused). If a row ends inside a group of sixteen, zeros fill the group. Then lane *i* adds lane *i* + 8, *i*
//! + 4, *i* + 2 and *i* + 1 in turn. Lane 0 is the result.

#![allow(
    unsafe_code,
    reason = "calls functions that are compiled for instructions which the processor may lack"
)]

use std::sync::OnceLock;

use super::one_bit::{BIT_SLOTS, QUERY_BITS, SLOTS_SIDE_BY_SIDE};
use crate::limits::DIM_MAX;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

/// Lanes of a float sum.
const LANES: usize = 16;

/// The sums of the widest integer kernel, which adds 128 to one side, stay within an i32.
const _: () = assert!(DIM_MAX * 255 * 128 <= i32::MAX as usize);

/// The functions of one instruction set. A kernel leaves this module through [`available`] only.
pub(super) struct Kernel {
    name: &'static str,
    /// Whether this processor has the instructions.
    supported: fn() -> bool,
    /// Writes the dot product of the query with each row. It is safe to call if `supported` returns true.
    dot_i8: unsafe fn(query: &[i8], rows: &[i8], out: &mut [i32]),
    /// The same for rows that lie apart; see `dot_i8`.
    gather_i8: unsafe fn(query: &[i8], rows: &[&[i8]], out: &mut [i32]),
    /// See `dot_i8`.
    dot_f32: unsafe fn(query: &[f32], rows: &[f32], out: &mut [f32]),
    /// Writes for each slot of a block the sum of the query's values where the slot has a one: the population counts
    /// of what a slot shares with each plane of the query, weighted by 1, 2, 4 and 8. Groups of eight slots none of
    /// which is in `wanted` are left out. It is safe to call if `supported` returns true.
    sign_sums: unsafe fn(planes: &[Planes], words: &[u64], wanted: u64, out: &mut [u32; BIT_SLOTS]),
}

/// The four bits of 64 values of a query.
type Planes = [u64; QUERY_BITS];

impl Kernel {
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn dot_i8_many(&self, query: &[i8], rows: &[i8], out: &mut [i32]) {
        check_shape(query.len(), rows.len(), out.len());
        // SAFETY: `available` has asked the processor whether it has the instructions.
        unsafe { (self.dot_i8)(query, rows, out) }
    }

    pub(super) fn dot_i8_gather(&self, query: &[i8], rows: &[&[i8]], out: &mut [i32]) {
        assert!((1..=DIM_MAX).contains(&query.len()), "a query has 1 to {DIM_MAX} dimensions");
        assert_eq!(rows.len(), out.len(), "each row has a result");
        assert!(rows.iter().all(|row| row.len() == query.len()), "rows have the dimensions of the query");
        // SAFETY: `available` has asked the processor whether it has the instructions.
        unsafe { (self.gather_i8)(query, rows, out) }
    }

    pub(super) fn dot_f32_many(&self, query: &[f32], rows: &[f32], out: &mut [f32]) {
        check_shape(query.len(), rows.len(), out.len());
        // SAFETY: `available` has asked the processor whether it has the instructions.
        unsafe { (self.dot_f32)(query, rows, out) }
    }

    pub(super) fn sign_sums(
        &self,
        planes: &[Planes],
        words: &[u64],
        wanted: u64,
        out: &mut [u32; BIT_SLOTS],
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

/// Every kernel of this architecture, fastest first.
static KERNELS: &[&Kernel] = &[
    #[cfg(target_arch = "x86_64")]
    &avx512::KERNEL_POPCNT,
    #[cfg(target_arch = "x86_64")]
    &avx512::KERNEL,
    #[cfg(target_arch = "x86_64")]
    &avx2::KERNEL,
    #[cfg(target_arch = "aarch64")]
    &neon::KERNEL_DOTPROD,
    #[cfg(target_arch = "aarch64")]
    &neon::KERNEL,
    &scalar::KERNEL,
];

/// The kernels that this processor can run, fastest first. The scalar kernel is always the last.
pub(super) fn available() -> impl Iterator<Item = &'static Kernel> {
    KERNELS.iter().copied().filter(|kernel| (kernel.supported)())
}

/// The fastest kernel, looked up once.
fn fastest() -> &'static Kernel {
    static FASTEST: OnceLock<&Kernel> = OnceLock::new();
    FASTEST.get_or_init(|| available().next().unwrap_or(&scalar::KERNEL))
}

/// Name of the instruction set in use: `avx512-vpopcnt`, `avx512-vnni`, `avx2`, `neon-dotprod`, `neon` or `scalar`.
pub fn instruction_set() -> &'static str {
    fastest().name()
}

/// The dot product of two codes. It is exact for every byte, −128 included.
///
/// # Panics
///
/// When the lengths differ or are not in 1 to [`DIM_MAX`]; so for all four functions.
pub fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    let mut out = [0];
    dot_i8_many(a, b, &mut out);
    let [dot] = out;
    dot
}

/// Writes the dot product of a query code with each of the contiguous codes `rows` to `out`.
pub fn dot_i8_many(query: &[i8], rows: &[i8], out: &mut [i32]) {
    fastest().dot_i8_many(query, rows, out);
}

/// Writes the dot product of a query code with each of `rows`, wherever they lie, to `out`.
pub fn dot_i8_gather(query: &[i8], rows: &[&[i8]], out: &mut [i32]) {
    fastest().dot_i8_gather(query, rows, out);
}

/// Asks the processor to load a list into its cache soon, if the architecture has such a hint.
#[inline]
pub fn prefetch<T>(list: &[T]) {
    #[cfg(target_arch = "x86_64")]
    avx512::prefetch(list);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = list;
}

/// Writes for each slot of a block of one-bit codes the sum of the query's levels where the slot has a one. Slots
/// that are not `wanted` may get 0.
///
/// # Panics
///
/// When the block does not have as many words for each slot as the query has.
pub fn sign_sums(planes: &[Planes], words: &[u64], wanted: u64, out: &mut [u32; BIT_SLOTS]) {
    fastest().sign_sums(planes, words, wanted, out);
}

/// The groups of eight slots of a block of which one is wanted, with the places of their results.
fn groups<'b>(
    words: &'b [u64],
    wanted: u64,
    out: &'b mut [u32; BIT_SLOTS],
) -> impl Iterator<Item = (&'b [[u64; SLOTS_SIDE_BY_SIDE]], &'b mut [u32; SLOTS_SIDE_BY_SIDE])> {
    let (rows, _) = words.as_chunks::<SLOTS_SIDE_BY_SIDE>();
    let (out, _) = out.as_chunks_mut::<SLOTS_SIDE_BY_SIDE>();
    let groups = rows.chunks_exact((rows.len() / out.len()).max(1)).zip(out).enumerate();
    groups.filter(move |(at, _)| wanted >> (at * SLOTS_SIDE_BY_SIDE) & 0xff != 0).map(|(_, group)| group)
}

/// The dot product of two vectors, with the same bits on every machine.
pub fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    let mut out = [0.0];
    dot_f32_many(a, b, &mut out);
    let [dot] = out;
    dot
}

/// Writes the dot product of a query with each of the contiguous vectors `rows` to `out`, with the bits of
/// [`dot_f32`].
pub fn dot_f32_many(query: &[f32], rows: &[f32], out: &mut [f32]) {
    fastest().dot_f32_many(query, rows, out);
}

/// The end of a row, filled with zeros to a whole group.
fn padded<T: Copy + Default, const N: usize>(tail: &[T]) -> [T; N] {
    let mut group = [T::default(); N];
    for (value, &given) in group.iter_mut().zip(tail) {
        *value = given;
    }
    group
}
