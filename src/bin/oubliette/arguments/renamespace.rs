//! What is done to whole namespaces.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum NamespaceCommand {
    /// List all namespaces
    List,
    /// Drop a namespace with everything in it
    Drop {
        /// The namespace
        name: String,
        /// Do not ask first. Needed where there is no terminal to ask at; with --json nobody is asked
        #[arg(long)]
        yes: bool,
    },
    /// Give a namespace another name, or move all its memories into another namespace
    Move(MoveOptions),
    /// Move each memory to the namespace that its metadata names
    Split(SplitOptions),
}

#[derive(Debug, Args)]
pub(crate) struct MoveOptions {
    /// The namespace that goes
    pub(crate) from: String,
    /// Its new name, or the namespace into which its memories go
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) how: RenamespaceOptions,
}

#[derive(Debug, Args)]
pub(crate) struct SplitOptions {
    /// The namespace to take apart
    pub(crate) from: String,
    /// Keys of the metadata that name a namespace; the first one with a text decides [default: import_source_namespace, user_id, agent_id,
    /// run_id, project]
    #[arg(long = "by", value_name = "KEY", num_args = 1.., value_delimiter = ',')]
    pub(crate) by: Vec<String>,
    #[command(flatten)]
    pub(crate) how: RenamespaceOptions,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct RenamespaceOptions {
    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Take a key from a memory that comes, where a current memory of the other namespace holds the key
    #[arg(long)]
    pub(crate) drop_keys: bool,
}
