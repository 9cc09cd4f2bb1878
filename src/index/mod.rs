//! Which vectors does a partition hold, and which of them are nearest?
//!
//! On disk an index is a table of slots ([`slots`]): the code of a vector, its memory and the instants of its
//! visibility, changed in the transaction of the memory. In memory it is a [`View`](view::View): the image of all its slots at
//! one commit. [`Published`] holds the snapshot of a commit and the views of the same commit; [`Current`] swaps one
//! for the next. [`nearest`] answers from views, or straight from the table where a view does not pay.
//!
//! Invariants:
//! - every view in a `Published` is exactly the state of its commit: a reader needs no look at `born` and `died`,
//!   which the slots on disk keep for a graph that is changed after the commit;
//! - the answer of [`nearest`] is that of a full scan of the f32 vectors, ties by id, and does not depend on which
//!   views are in memory;
//! - visibility is decided before the limit: a dead slot never takes the place of a live one.
//!
//! It never knows what a memory says, which rule wrote it, or what time it is: instants come with the question.

mod adjacency;
mod calibrate;
mod cosines;
mod edit;
mod filter;
mod names;
mod near;
mod published;
mod rank;
mod rebuild;
mod search;
pub(crate) mod slots;
mod staged;
pub(crate) mod text;
pub(crate) mod upkeep;
mod view;

#[cfg(test)]
mod tests;

pub(crate) use calibrate::found_by_themselves;
pub(crate) use cosines::Cosines;
pub(crate) use edit::{Edit, Written};
pub(crate) use filter::{Sieve, nearest_listed, nearest_matching};
pub(crate) use names::{Answering, holder_of_key, visible_holder_of_key};
pub(crate) use near::near_many;
pub(crate) use published::{Changes, Current, Images, Published, ViewBudget};
pub(crate) use rebuild::{rebuild, without_vector};
pub(crate) use search::{Ask, Found, Stop, Target, nearest, rank_rows};
pub(crate) use staged::Staged;
pub(crate) use view::Linked;
