//! How do several processes use one file?
//!
//! The process that has the file open for writing owns it, and listens on a socket beside it (`<file>.sock`). Another process of the same
//! user hands its command over ([`Sharing::ask`]): words, surroundings and streams. The owner runs the command on the handle that is open, and
//! streams the answer back.
//!
//! Invariants. The lock of the file says who owns it; a socket says nothing, and whoever has the lock puts its own in the place of one
//! that was left behind. The owner ends in this order: it answers whoever comes as long as a long command holds the file, accepts nobody more, answers
//! whom it has begun with, takes the socket away, and closes the file. A command that may have written is never run twice. What another process sends is bounded, and costs the owner a thread at most.

#[cfg(unix)]
mod address;
#[cfg(all(unix, feature = "mcp"))]
mod desk;
#[cfg(unix)]
mod frames;
#[cfg(unix)]
mod guest;
mod host;
mod order;
#[cfg(unix)]
mod owner;
mod sharing;

#[cfg(all(unix, feature = "mcp"))]
pub(crate) use self::desk::{FarDesk, Unanswered};
pub(crate) use self::host::{Extra, Host, Terms};
#[cfg(feature = "mcp")]
pub(crate) use self::order::Told;
pub(crate) use self::order::{Asked, Ended, Work};
pub(crate) use self::sharing::Sharing;
