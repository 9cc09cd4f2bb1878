//! How does a client of the Model Context Protocol use the memory?
//!
//! A [`Server`] hands the tools of a [`Toolbox`](crate::tools::Toolbox) to one client, with their dots written as underscores (`memory_gc_plan`). Beside
//! them it has memories as resources (`memory://{id}`), a briefing (`memory://briefing`) and the prompt `recall`.
//!
//! Invariants. The namespace was bound before the first message, and no message widens it. A message that is no message is
//! answered with an error, and changes nothing. The end of the input ends the server, and what a call has done until then stays.
//! Each call runs on a thread that may block; a long one ends with its round when it is cancelled.
//!
//! This room never decides what a tool does: that is the room `tools`.

mod desk;
mod handler;
mod lines;

use std::fmt;
use std::sync::Arc;

use rmcp::ServiceExt;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::{Error, Result};
pub use desk::{Desk, Question};
use handler::Handler;
use lines::Lines;

/// A server of the Model Context Protocol for one client.
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
pub struct Server(Arc<dyn Desk>);

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").finish_non_exhaustive()
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
        Server(Arc::new(tools))
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
        let running = match Handler(self.0).serve(Lines::new(read, write)).await {
            Ok(running) => running,
            Err(why) => {
                tracing::info!(%why, "a client has left before it began");
                return Ok(());
            }
        };
        let ended = running.waiting().await;
        ended.map(|_| ()).map_err(|why| Error::Unavailable { why: format!("the runtime stopped: {why}") })
    }
}
