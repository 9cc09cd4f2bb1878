//! Who are the near neighbours, without looking at everything?
//!
//! A hierarchical navigable small world (Malkov and Yashunin, *Efficient and robust approximate nearest neighbor
//! search using Hierarchical Navigable Small World graphs*, 2016) over int8 codes. [`Graph`] holds the links,
//! [`Points`] the codes, and every function takes both. Nodes are inserted in batches ([`Graph::insert_batch`]). Nodes
//! that are gone are forgotten for good: walks pass through them until [`Graph::repair_batch`] has given their
//! neighbours other links. Then [`Graph::remove`] removes them, and [`Graph::reconnect`] links back what is cut off.
//!
//! Invariants:
//! - A node has at most [`GRAPH_M0`](crate::limits::GRAPH_M0) links on the bottom level and [`GRAPH_M`] on
//!   each other level. All links lead to nodes of the graph on that level. No link leads to the node itself,
//!   and no two links lead to the same node.
//! - The level of a node is a function of its id ([`level_of`]), unless the node is a *twin*. A twin has exactly the
//!   code of another node, its host. It has no links, and is found with its host.
//! - From the entry a path leads to every living node, or to its host.
//! - The arguments of a function decide its result, and not the number of threads, time or chance.
//! - A node that is not alive is never among the results of a search, and is given no new link.
//!
//! The room never knows a disk, a clock, a memory or an instant. Slots are numbers, and the caller says which nodes
//! are alive.

mod crew;
mod graph;
mod insert;
mod near;
mod reach;
mod repair;
mod search;
mod select;
mod visited;

#[cfg(test)]
mod tests;

pub use crew::Crew;
pub use graph::Graph;
pub use insert::Changed;
pub use near::{Near, Points, Probe};
pub use search::{Scratch, Verdict};

use crate::limits::{GRAPH_LEVEL_MAX, GRAPH_M};

/// The level of the node with an id: at least *l* with probability `GRAPH_M`⁻ˡ, at most [`GRAPH_LEVEL_MAX`].
///
/// The finalizer of SplitMix64 (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*,
/// 2014) mixes both halves of the id, so that ids of one millisecond have independent levels.
pub fn level_of(id: &[u8; 16]) -> u8 {
    const BITS_PER_LEVEL: u32 = GRAPH_M.ilog2();
    const _: () = assert!(GRAPH_M.is_power_of_two() && GRAPH_LEVEL_MAX as u32 * BITS_PER_LEVEL < u64::BITS);
    let both = u128::from_be_bytes(*id);
    let mixed = mix(mix((both >> 64) as u64) ^ both as u64);
    (mixed.leading_zeros() / BITS_PER_LEVEL).min(GRAPH_LEVEL_MAX as u32) as u8
}

fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}
