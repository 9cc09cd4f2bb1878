//! Which stored vectors are nearest to this one, exactly and at the speed of memory?
//!
//! A vector enters as a [`UnitVector`], so a cosine is a dot product. Beside its f32 values it has a *code*:
//! one signed byte for each dimension, a scale, and the norm of the rounding error. A search reads only
//! codes, a quarter of the bytes, and bounds every score by the Cauchy–Schwarz inequality. The few slots
//! whose bound reaches the k-th best are then scored on their f32 values. The answer is that of a full f32
//! scan.
//!
//! Invariants:
//! - A score ([`dot_f32`]) has the same bits on every machine, because its order of operations is fixed.
//! - A code is a function of the vector alone: no training, no state, no drift.
//! - [`Candidates`] holds every slot of the true top k, with ties of the k-th score included (proof in
//!   `scan.rs`).
//! - `unsafe` stands in `kernel/` only, in one file for each instruction set. Each kernel equals `kernel/scalar.rs`
//!   bit for bit.
//!
//! The room never knows of rows, ids of memories, time, disk or a graph. Slots are numbers, and ids are
//! sixteen bytes.

mod candidates;
mod code;
mod kernel;
mod one_bit;
mod scan;
mod sign_limits;
mod signs;
#[cfg(test)]
mod tests;
mod top;
mod unit;

pub use candidates::{Candidate, Candidates, Promises, Ranking};
pub use code::{CodeParams, Coded, encode, unit_scale};
#[cfg(any(feature = "faults", feature = "minilm"))]
pub use kernel::dot_f32_many;
#[cfg(feature = "faults")]
pub use kernel::dot_i8;
pub use kernel::{BIT_SLOTS, Wanted, dot_f32, dot_i8_gather, dot_i8_many, instruction_set, prefetch};
pub use one_bit::{BitBlock, BitBlocks, BitFrame, BitNumbers, BitQuery, SlotCode};
pub use scan::{Codes, QueryCode};
pub use sign_limits::SURE;
pub use signs::SignBatch;
pub use top::TopK;
pub use unit::UnitVector;
