//! Which vectors does a partition hold, and which of them are nearest?
//!
//! On disk an index is a table of slots ([`slots`]). A slot has the code of a vector, its memory, and the instants of
//! its visibility, and is changed in the transaction of the memory. In memory an index is a [`View`](view::View): the
//! image of all its slots at one commit. [`Published`] holds the snapshot of a commit and the views of the same
//! commit. [`Current`] swaps one published state for the next. [`nearest`] answers from views, or straight from the
//! table where a view is not worth its memory.
//!
//! Invariants:
//! - Every view in a `Published` is exactly the state of its commit. So a reader does not look at `born` and `died`,
//!   which the slots on disk keep for a graph that is changed after the commit.
//! - The answer of [`nearest`] is that of a full scan of the f32 vectors, with ties ordered by id, wherever all codes are
//!   scanned. A walk through a graph, and a scan by one-bit codes, find the share of it that the search asks for.
//! - Visibility is decided before the limit. So a dead slot never takes the place of a live one.
//!
//! The room never knows what a memory says, which rule wrote it, or what time it is. Instants come with the question.

mod adjacency;
pub(crate) mod bit_rows;
mod bits;
mod calibrate;
mod chunk;
mod cosines;
mod cost;
mod edit;
mod extract;
mod filter;
mod names;
mod near;
mod published;
mod rank;
mod rebuild;
mod search;
mod sift;
mod sight;
mod sketch;
pub(crate) mod slots;
mod source;
mod staged;
mod stop;
pub(crate) mod text;
pub(crate) mod upkeep;
mod view;

#[cfg(test)]
mod tests;

pub(crate) use adjacency::Linked;
pub(crate) use calibrate::found_by_themselves;
pub(crate) use cosines::{Cosine, Cosines};
pub(crate) use edit::{Edit, Written};
pub(crate) use filter::{Sieve, nearest_listed, nearest_matching};
pub(crate) use names::{
    Answering, Former, Lineage, answering_to_key, holder_among, holder_of_key, leads_ahead,
    visible_holder_of_key,
};
pub(crate) use near::{Nearness, near_many};
pub(crate) use published::{Changes, Current, Images, Published, ViewBudget};
pub(crate) use rebuild::{rebuild, rows_of, without_vector};
pub(crate) use search::{Ask, Found, Slots, Target, nearest, rank_rows};
pub(crate) use staged::Staged;
pub(crate) use stop::Stop;
