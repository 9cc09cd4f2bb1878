//! What is compared: each library behind the same few calls, each as its own documentation says to use it.

mod flat;
mod graph;
mod hnsw;
mod sqlite;
mod usearch;

pub use self::usearch::{Codes, Usearch};
pub use flat::Flat;
pub use graph::OwnGraph;
pub use hnsw::HnswRs;
pub use sqlite::Sqlite;

use crate::dataset::Dataset;

/// Neighbours of a node (twice as many on the lowest layer) and candidates of an insertion, the same for all graphs.
pub const M: usize = 16;
pub const EF_CONSTRUCTION: usize = 200;

/// A library with an index of some rows.
pub trait Peer {
    fn name(&self) -> String;

    /// Whether `ef` means anything to it; without, its answer is exact.
    fn is_approximate(&self) -> bool {
        true
    }

    /// Takes the rows `from..to` into the index, in their order, on this thread.
    fn insert(&mut self, data: &Dataset, from: usize, to: usize);

    /// Finds the nearest rows to a query, on this thread, and keeps the answer; `ef` candidates are followed.
    fn search(&mut self, query: &[f32], ef: usize);

    /// Numbers of the rows that the last search found.
    fn found(&self) -> Vec<u32>;

    /// Bytes that the index takes by the library's own account; none where Rust's allocator sees them.
    fn own_account_bytes(&self) -> Option<usize> {
        None
    }
}
