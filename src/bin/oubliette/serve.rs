//! `serve`: hands the tools to a client of the Model Context Protocol.

use std::sync::Arc;

use oubliette::Error;
use oubliette::mcp::Server;

use crate::arguments::ServeOptions;
use crate::desk::{self, OwnDesk};
use crate::output::Done;
use crate::place::Place;

/// `serve`. For another process, which has a client of its own, it answers one question after the other.
pub(crate) fn run(options: &ServeOptions, place: &Arc<Place>) -> Done {
    if !place.caller().is_here() {
        return desk::answer(&options.writer, place);
    }
    let desk = OwnDesk::new(options.writer.clone(), Arc::clone(place))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime
        .map_err(|source| Error::Unavailable { why: format!("no runtime can be started: {source}") })?;
    let desk = Arc::new(desk);
    let server = Server::new(Arc::clone(&desk));
    let served = runtime.block_on(server.serve(tokio::io::stdin(), tokio::io::stdout()));
    // A thread that waits for input of a client that has left is not waited for.
    runtime.shutdown_background();
    served?;
    desk.close()?;
    Ok(())
}
