//! How does a client of the Model Context Protocol use the memory?
//!
//! A [`Server`] hands the tools of a [`Toolbox`](crate::tools::Toolbox) to a client, with their dots written as underscores (`memory_gc_plan`). Beside
//! them it has memories as resources (`memory://{id}`), a briefing (`memory://briefing`) and the prompt `recall`.
//!
//! Invariants. The namespace was bound before the first message, and no message widens it. A message that is no message is
//! answered with an error, and changes nothing. The end of the input ends the server, and what a call has done until then stays.
//! Each call runs on a thread that may block; a long one ends with its round when it is cancelled. Over a pair of streams no request
//! for memories is begun before the writes that came before it are over.
//!
//! [`Server::serve`] answers one client over a pair of streams. With the feature `mcp-http`, `Server::serve_http` answers many over HTTP.
//!
//! This room never decides what a tool does: that is the room `tools`.

mod asking;
mod desk;
mod graph;
mod handler;
#[cfg(feature = "mcp-http")]
mod http;
mod lines;
mod message;
#[cfg(feature = "mcp-http")]
mod token;
mod turn;
mod turns;

use std::fmt;
use std::sync::Arc;

use rmcp::{ServerHandler, ServiceExt};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::{Error, Result};
pub use desk::{Desk, Question};
use graph::GraphHandler;
use handler::Handler;
#[cfg(feature = "mcp-http")]
pub use http::Http;
use lines::Lines;
#[cfg(feature = "mcp-http")]
pub use token::Token;

/// A server of the Model Context Protocol.
///
/// ```
/// use oubliette::mcp::Server;
/// use oubliette::tools::Toolbox;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let team = oubliette::Database::open(folder.path().join("memory.oub"))?.namespace("team")?;
/// let server = Server::new(Toolbox::new(team));
/// // A program gives its standard input and output; this client hangs up at once.
/// server.serve(tokio::io::empty(), tokio::io::sink()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Server {
    desk: Arc<dyn Desk>,
    face: Face,
}

/// What a client sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Face {
    /// The tools of a toolbox, and the resources and the prompt beside them.
    Own,
    /// Those of the reference memory server.
    Graph,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("face", &self.face).finish_non_exhaustive()
    }
}

impl Server {
    /// A server of these tools: a [`Toolbox`](crate::tools::Toolbox), or another [`Desk`].
    ///
    /// ```
    /// use oubliette::mcp::Server;
    /// use oubliette::tools::Toolbox;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let server = Server::new(Toolbox::new(team));
    /// # drop(server);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(tools: impl Desk + 'static) -> Self {
        Server { desk: Arc::new(tools), face: Face::Own }
    }

    /// A server in the place of `@modelcontextprotocol/server-memory`: its nine tools and its resource, answered by a
    /// [`KnowledgeGraph`](crate::tools::KnowledgeGraph), or by another desk that knows these tools.
    ///
    /// ```
    /// use oubliette::mcp::Server;
    /// use oubliette::tools::KnowledgeGraph;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let server = Server::server_memory(KnowledgeGraph::new(team));
    /// # drop(server);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn server_memory(graph: impl Desk + 'static) -> Self {
        Server { desk: Arc::new(graph), face: Face::Graph }
    }

    /// Answers the messages of a client, a line of JSON each, until the client hangs up. It runs within a runtime of tokio.
    ///
    /// ```
    /// # use oubliette::{mcp::Server, tools::Toolbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    ///
    /// let (client, server) = tokio::io::duplex(4096);
    /// let (read, write) = tokio::io::split(server);
    /// tokio::spawn(Server::new(Toolbox::new(team)).serve(read, write));
    /// let mut client = BufReader::new(client);
    /// client.write_all(b"no message\n").await?;
    /// let mut answer = String::new();
    /// client.read_line(&mut answer).await?;
    /// assert!(answer.contains(r#""error""#));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Unavailable` where the runtime stops in the middle.
    pub async fn serve(
        self,
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<()> {
        match self.face {
            Face::Own => answer(Handler(self.desk), read, write).await,
            Face::Graph => answer(GraphHandler(self.desk), read, write).await,
        }
    }

    /// Answers clients of this machine over HTTP, until `until` is ready. Calls that have begun then are answered for at most 5 seconds more. It runs
    /// within a runtime of tokio with its drivers of time and network.
    ///
    /// ```
    /// # use oubliette::{mcp::{Http, Server, Token}, tools::Toolbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let http = Http::bind("127.0.0.1:0".parse()?, Token::random()?)?;
    /// println!("clients connect to {}", http.url());
    /// // A program waits for a signal here; this one ends at once.
    /// Server::new(Toolbox::new(team)).serve_http(http, async {}).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Io` where the runtime can't listen.
    #[cfg(feature = "mcp-http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "mcp-http")))]
    pub async fn serve_http(self, http: Http, until: impl Future<Output = ()>) -> Result<()> {
        match self.face {
            Face::Own => http.serve(Handler(self.desk), until).await,
            Face::Graph => http.serve(GraphHandler(self.desk), until).await,
        }
    }
}

/// Answers one client until the client hangs up, and all that was answered is written.
async fn answer(
    handler: impl ServerHandler,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<()> {
    let (lines, last_words) = Lines::new(read, write);
    let ended = match handler.serve(lines).await {
        Ok(running) => running.waiting().await.map(|_| ()),
        Err(why) => {
            tracing::info!(%why, "a client has left before it began");
            Ok(())
        }
    };
    last_words.written().await;
    ended.map_err(|why| Error::Unavailable { why: format!("the runtime stopped: {why}") })
}
