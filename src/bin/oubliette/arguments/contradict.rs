//! The arguments of `contradict`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ContradictOptions {
    /// Id or key
    pub(crate) name: String,
    /// Since when it is no longer true [default: now]
    #[arg(long, value_name = "RFC3339", allow_hyphen_values = true)]
    pub(crate) at: Option<String>,
}
