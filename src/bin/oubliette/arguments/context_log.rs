//! The arguments of `context-log`.

use std::path::PathBuf;

use clap::Args;

use crate::number::number;

#[derive(Debug, Args)]
pub(crate) struct ContextLogOptions {
    /// The host's name of the context; a context is counted once
    pub(crate) context: String,
    /// The memories, each as a line of JSON: {"memory": an id or key, "tokens", "bucket"?: persistent, related or recent};
    /// - for standard input
    #[arg(value_name = "FILE.jsonl")]
    pub(crate) file: PathBuf,
    /// The session of the host
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The tokens that the context had room for
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<u32>("a whole number, 0 to 4294967295"))]
    pub(crate) window_tokens: Option<u32>,
    /// When the context was put together [default: now]
    #[arg(long, value_name = "RFC3339", allow_hyphen_values = true)]
    pub(crate) at: Option<String>,
}
