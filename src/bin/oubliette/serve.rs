//! `serve`: hands the tools to a client of the Model Context Protocol.

use oubliette::Error;
use oubliette::mcp::Server;
use oubliette::memory::Actor;

use crate::arguments::ServeOptions;
use crate::output::Done;
use crate::place::{Access, Place};
use crate::tool;

/// `serve`.
pub(crate) fn run(options: &ServeOptions, place: &Place) -> Done {
    let database = place.open_with(Access::Create, |builder| builder.actor(Actor::Tool).track(true))?;
    let tools = tool::toolbox(&options.writer, database.namespace(place.namespace()?)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime
        .map_err(|source| Error::Unavailable { why: format!("no runtime can be started: {source}") })?;
    let served = runtime.block_on(Server::new(tools).serve(tokio::io::stdin(), tokio::io::stdout()));
    // A thread that waits for input of a client that has left is not waited for.
    runtime.shutdown_background();
    served?;
    database.close()?;
    Ok(())
}
