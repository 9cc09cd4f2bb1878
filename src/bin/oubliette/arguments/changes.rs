//! The arguments of `changes`.

use clap::Args;

use crate::number::number;

#[derive(Debug, Args)]
pub(crate) struct ChangesOptions {
    /// Where the page before ended: its `next` [default: the first change that is kept]
    #[arg(long, value_name = "SEQ", allow_negative_numbers = true, value_parser = number::<u64>("a whole number, 0 or more"))]
    pub(crate) since: Option<u64>,
    /// Changes of a page, 1 to 10000
    #[arg(long, default_value_t = 100, allow_negative_numbers = true, value_parser = number::<usize>("a whole number, 1 to 10000"))]
    pub(crate) limit: usize,
}
