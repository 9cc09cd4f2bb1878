//! The arguments of `changes`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ChangesOptions {
    /// Where the page before ended: its `next` [default: the first change that is kept]
    #[arg(long, value_name = "SEQ")]
    pub(crate) since: Option<u64>,
    /// Changes of a page, 1 to 10000
    #[arg(long, default_value_t = 100)]
    pub(crate) limit: usize,
}
