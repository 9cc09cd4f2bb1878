//! The command line as its users meet it: documents, exit codes, bad input, pipes.

mod answers;
mod bad;
mod clock;
mod contract;
mod damaged;
mod erased;
mod fields;
mod flags;
mod fsck;
mod gc;
mod goal;
#[cfg(unix)]
mod guests;
#[cfg(all(unix, feature = "mcp-http"))]
mod http;
mod index;
mod lines;
mod options;
mod past;
mod person;
mod prune;
#[cfg(unix)]
mod quota;
mod recall;
mod sandbox;
#[cfg(unix)]
mod sharing;
mod shown;
mod story;
mod talk;
mod tool;
mod words;
