//! Dot products of one query with many rows, as fast as this processor can compute them.
//!
//! Two rules make every instruction set give the same bits. Integers are exact. Floats follow one order. Lane *i* of
//! sixteen sums the products of the dimensions *i*, *i* + 16, *i* + 32 …; each product is rounded and then added
//! (never fused). If a row ends inside a group of sixteen, zeros fill the group. Then lane *i* adds lane *i* + 8, *i*
//! + 4, *i* + 2 and *i* + 1 in turn. Lane 0 is the result.

use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod instruction_set;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

pub use instruction_set::{BIT_SLOTS, Wanted};
pub(super) use instruction_set::{
    GROUP_BYTES, Kernel, Levels, QUERY_BITS, QuerySigns, ScanBlock, SignBytes, SignLimits, SignQueries,
    SlotNumbers,
};

/// Every kernel of this architecture, fastest first.
static KERNELS: &[&Kernel] = &[
    #[cfg(target_arch = "x86_64")]
    &avx512::KERNEL_BITALG,
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
    KERNELS.iter().copied().filter(|kernel| kernel.is_supported())
}

/// The fastest kernel, looked up once.
fn fastest() -> &'static Kernel {
    static FASTEST: OnceLock<&Kernel> = OnceLock::new();
    FASTEST.get_or_init(|| available().next().unwrap_or(&scalar::KERNEL))
}

/// Name of the instruction set in use: `avx512-bitalg`, `avx512-vnni`, `avx2`, `neon-dotprod`, `neon` or `scalar`.
pub fn instruction_set() -> &'static str {
    fastest().name()
}

/// The dot product of two codes. It is exact for every byte, −128 included.
///
/// # Panics
///
/// When the lengths differ or are not in 1 to [`DIM_MAX`](crate::limits::DIM_MAX); so for all four functions.
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
    avx2::prefetch(list);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = list;
}

/// Returns the wanted slots of a block of one-bit codes that may score enough, a bit for each, and writes for each of them a
/// score that the slot exceeds only by chance if it scores enough.
///
/// # Panics
///
/// When the block or the next one does not have as many signs for each slot as the query has values.
pub(super) fn sign_scores(
    levels: &Levels,
    block: &ScanBlock<'_>,
    wanted: Wanted,
    out: &mut [f32; BIT_SLOTS],
) -> u64 {
    fastest().sign_scores(levels, block, wanted, out)
}

/// Writes for each query the slots of a block that differ from it in no more signs than its limits allow, a bit for each.
///
/// # Panics
///
/// When the queries do not have as many signs as the slots, or not as many limits as these have groups, or when there is
/// not one level and one result for each query.
pub(super) fn sign_marks(queries: SignQueries<'_>, rows: &[SignBytes], out: &mut [u64]) {
    fastest().sign_marks(queries, rows, out);
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
