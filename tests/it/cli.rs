//! The command line as its users meet it: documents, exit codes, bad input, pipes.

mod bad;
mod contract;
mod fields;
mod flags;
mod fsck;
mod gc;
mod index;
mod past;
mod recall;
mod sandbox;
