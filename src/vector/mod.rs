//! Which stored vectors are nearest to this one, exactly and at the speed of memory?
//!
//! A vector enters as a [`UnitVector`], so cosine is a dot product. Beside its f32 values it has a *code*: one
//! signed byte a dimension, a scale, and the norm of what rounding took away. A search reads only codes, a
//! quarter of the bytes, and bounds every score by the Cauchy–Schwarz inequality; the few slots whose bound
//! reaches the k-th best are then scored on their f32 values. The answer is that of a full f32 scan.
//!
//! Invariants:
//! - a score ([`dot_f32`]) has the same bits on every machine: its order of operations is fixed;
//! - a code is a function of the vector alone: no training, no state, no drift;
//! - [`Candidates`] holds every slot of the true top k, ties of the k-th score included (proof in `scan.rs`);
//! - `unsafe` stands in `kernel/` only, one file an instruction set, each equal to `kernel/scalar.rs` bit for bit.
//!
//! It never knows of rows, ids of memories, time, disk or a graph: slots are numbers, ids are sixteen bytes.

mod candidates;
mod code;
mod kernel;
mod scan;
#[cfg(test)]
mod tests;
mod top;
mod unit;

pub use candidates::{Candidate, Candidates, Promises, Ranking};
pub use code::{CodeParams, encode, unit_scale};
#[cfg(any(feature = "faults", feature = "minilm"))]
pub use kernel::dot_f32_many;
#[cfg(feature = "faults")]
pub use kernel::dot_i8;
pub use kernel::{dot_f32, dot_i8_gather, dot_i8_many, instruction_set, prefetch};
pub use scan::{Codes, QueryCode};
pub use top::TopK;
pub use unit::UnitVector;
