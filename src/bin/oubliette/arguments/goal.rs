//! The options of `goal`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::number::number;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum GoalCommand {
    /// Set a goal; the same text of the same agent again gets the new weight
    Set(GoalSetOptions),
    /// List the goals
    List,
    /// Drop a goal
    Drop {
        /// The id, as list shows it
        id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct GoalSetOptions {
    /// What the agent is after; - for standard input
    pub(crate) text: String,
    /// The agent, as memories name it in agent_id [default: all agents of the namespace]
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// How much the goal counts beside others, 0 to 10
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true, value_parser = number::<f32>("a number, 0 to 10"))]
    pub(crate) weight: f32,
    /// The vector of the text, as the first row of a NumPy file [default: the embedder makes it]
    #[arg(long, value_name = "F.npy")]
    pub(crate) vector_file: Option<PathBuf>,
}
