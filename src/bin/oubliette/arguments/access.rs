//! The arguments of `access`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum AccessCommand {
    /// Write the use of each visible memory as a line of JSON, without its text, to try thresholds on
    Export {
        /// File, or - for standard output
        file: PathBuf,
    },
}
