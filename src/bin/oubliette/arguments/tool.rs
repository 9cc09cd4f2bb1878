//! The arguments of `tool` and `serve`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ToolOptions {
    /// Print the JSON Schemas of an envelope and of the arguments of each tool, and answer no call
    #[arg(long)]
    pub(crate) schemas: bool,
    #[command(flatten)]
    pub(crate) writer: WriterOptions,
}

/// Who writes summaries.
#[derive(Clone, Debug, Args)]
pub(crate) struct WriterOptions {
    /// Who writes the summaries that memory.summarize asks for: builtin, or a command as for gc run [default: whoever calls]
    #[arg(long, value_name = "builtin|CMD")]
    pub(crate) summarizer: Option<String>,
    /// How long a command may take for one summary
    #[arg(long, value_name = "DURATION", default_value = "2m")]
    pub(crate) timeout: String,
}

#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    /// Speak the Model Context Protocol
    #[arg(long, required = true)]
    pub(crate) mcp: bool,
    #[command(flatten)]
    pub(crate) writer: WriterOptions,
}

#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
pub(crate) struct SetupOptions {
    /// The client
    #[arg(value_enum)]
    pub(crate) client: McpClient,
}

/// A client of the Model Context Protocol.
#[cfg(feature = "mcp")]
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum McpClient {
    Claude,
    Cursor,
    Codex,
}
