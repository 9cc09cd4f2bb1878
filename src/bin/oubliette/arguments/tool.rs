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

// Who writes summaries.
#[derive(Clone, Debug, Args)]
pub(crate) struct WriterOptions {
    /// Who writes the summaries that memory.summarize asks for: builtin, or a command as for gc run [default: whoever calls]
    #[arg(long, value_name = "builtin|CMD")]
    pub(crate) summarizer: Option<String>,
    /// How long a command may take for one summary
    #[arg(long, value_name = "DURATION", default_value = "2m", allow_hyphen_values = true)]
    pub(crate) timeout: String,
}

#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    /// Speak the Model Context Protocol, on standard input and output
    #[cfg_attr(feature = "mcp-http", arg(long, required_unless_present = "http"))]
    #[cfg_attr(not(feature = "mcp-http"), arg(long, required = true))]
    pub(crate) mcp: bool,
    #[cfg(feature = "mcp-http")]
    #[command(flatten)]
    pub(crate) http: HttpOptions,
    #[command(flatten)]
    pub(crate) hand: HandOptions,
}

// What a server hands out.
#[cfg(feature = "mcp")]
#[derive(Clone, Debug, Args)]
pub(crate) struct HandOptions {
    /// Hand out the tools of another memory server instead: server-memory (@modelcontextprotocol/server-memory), the nine tools of a knowledge
    /// graph, which is kept as memories
    #[arg(long, value_enum, value_name = "SERVER")]
    pub(crate) compat: Option<Compat>,
    #[command(flatten)]
    pub(crate) writer: WriterOptions,
}

/// A server whose tools are handed out.
#[cfg(feature = "mcp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Compat {
    ServerMemory,
}

// Whether the server is reached over HTTP, and by whom.
#[cfg(feature = "mcp-http")]
#[derive(Debug, Args)]
pub(crate) struct HttpOptions {
    /// Speak it over HTTP, at an address of this machine such as 127.0.0.1:8080; port 0 takes one that is free. Clients show the token
    /// in OUBLIETTE_TOKEN; without one, a token is made and shown once
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) http: Option<std::net::SocketAddr>,
    /// The token that clients show, in a file
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<std::path::PathBuf>,
}

#[cfg(feature = "mcp-http")]
fn address(text: &str) -> Result<std::net::SocketAddr, &'static str> {
    text.parse().map_err(|_| "must be an address of this machine and a port, such as 127.0.0.1:8080")
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
