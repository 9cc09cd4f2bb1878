//! `serve`: hands the tools to clients of the Model Context Protocol.

use std::sync::Arc;

use oubliette::mcp::Server;
#[cfg(feature = "mcp-http")]
use oubliette::mcp::{Http, Token};
use oubliette::{Error, Result};
use tokio::runtime::Runtime;
#[cfg(feature = "mcp-http")]
use tokio::sync::oneshot;

#[cfg(feature = "mcp-http")]
use crate::arguments::HttpOptions;
use crate::arguments::{Compat, ServeOptions};
use crate::desk::{self, OwnDesk};
use crate::output::{Done, Output};
use crate::place::Place;
#[cfg(feature = "mcp-http")]
use crate::place::{named, read_text};

/// Where the token of a server over HTTP may stand.
#[cfg(feature = "mcp-http")]
const TOKEN: &str = "OUBLIETTE_TOKEN";

/// How clients reach the server.
enum Way {
    /// One, on standard input and output.
    Streams,
    /// Those of this machine, over HTTP.
    #[cfg(feature = "mcp-http")]
    Http(Http),
}

/// `serve`. For another process, which has clients of its own, it answers one question after the other.
pub(crate) fn run(options: &ServeOptions, place: &Arc<Place>, output: Output<'_>) -> Done {
    if !place.caller().is_here() {
        return desk::answer(&options.hand, place);
    }
    #[cfg(feature = "mcp-http")]
    let (way, made) = way(&options.http, place)?;
    #[cfg(not(feature = "mcp-http"))]
    let way = Way::Streams;
    let desk = Arc::new(OwnDesk::new(options.hand.clone(), Arc::clone(place))?);
    // From here on a signal asks for the end, and before anybody connects: whoever reads the address may send one at once.
    #[cfg(feature = "mcp-http")]
    let end = match &way {
        Way::Streams => None,
        Way::Http(http) => {
            let end = first_signal()?;
            announce(http, made.as_ref(), output)?;
            Some(end)
        }
    };
    #[cfg(not(feature = "mcp-http"))]
    let _ = output;
    let runtime = runtime()?;
    let server = match options.hand.compat {
        Some(Compat::ServerMemory) => Server::server_memory(Arc::clone(&desk)),
        None => Server::new(Arc::clone(&desk)),
    };
    let served = runtime.block_on(async {
        match way {
            Way::Streams => server.serve(tokio::io::stdin(), tokio::io::stdout()).await,
            #[cfg(feature = "mcp-http")]
            Way::Http(http) => server.serve_http(http, asked(end)).await,
        }
    });
    // A thread that waits for input of a client that has left is not waited for.
    runtime.shutdown_background();
    served?;
    desk.close()?;
    Ok(())
}

fn runtime() -> Result<Runtime> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|source| Error::Unavailable { why: format!("no runtime can be started: {source}") })
}

/// Hears the signals that ask this process to end, by a thread of its own: the first one is handed to whoever waits for it, and a second one
/// ends the process at once. The first waits for the calls at work, which may be long, and for the file to be closed. What a call has not
/// committed by then is not done, as where the process is killed. A signal that comes after this call is not lost.
///
/// # Errors
/// `Unavailable` where no runtime or no thread can be started, or signals can't be waited for.
#[cfg(feature = "mcp-http")]
fn first_signal() -> Result<oneshot::Receiver<()>> {
    let runtime = runtime()?;
    let mut signals = {
        let _within = runtime.enter();
        Signals::new()?
    };
    let (tell, first) = oneshot::channel();
    let wait = move || {
        runtime.block_on(signals.next());
        // Where nobody waits, the server is about to end.
        let _ = tell.send(());
        runtime.block_on(signals.next());
        std::process::exit(1);
    };
    let started = std::thread::Builder::new().name("signals".to_owned()).spawn(wait);
    started.map_err(|source| Error::Unavailable { why: format!("no thread can be started: {source}") })?;
    Ok(first)
}

/// Is ready once the first signal has come.
#[cfg(feature = "mcp-http")]
async fn asked(first: Option<oneshot::Receiver<()>>) {
    if let Some(first) = first {
        let _ = first.await;
    }
}

/// The way that was asked for, and the token if it was made here.
#[cfg(feature = "mcp-http")]
fn way(options: &HttpOptions, place: &Place) -> Result<(Way, Option<Token>)> {
    let Some(address) = options.http else { return Ok((Way::Streams, None)) };
    let of_variable = || place.caller().variable(TOKEN).filter(|token| !token.is_empty());
    let (token, made) = if let Some(file) = &options.token_file {
        (named("--token-file", Token::new(read_text(file)?.trim_end()))?, None)
    } else if let Some(given) = of_variable() {
        (named(TOKEN, Token::new(given.to_string_lossy()))?, None)
    } else {
        let made = Token::random()?;
        (made.clone(), Some(made))
    };
    Ok((Way::Http(named("--http", Http::bind(address, token))?), made))
}

/// Says where clients connect to, and what token they show if nobody knows it yet.
#[cfg(feature = "mcp-http")]
fn announce(http: &Http, made: Option<&Token>, output: Output<'_>) -> Done {
    if let Some(made) = made {
        // It is said whatever is quiet: nobody could connect without it.
        let told = format!("token: {}\n", made.secret());
        output.caller.error().write_all(told.as_bytes()).map_err(crate::output::unwritable)?;
    }
    match output.json {
        true => output.document(&serde_json::json!({ "url": http.url() })),
        false => output.line(&format!("Clients connect to {}", http.url())),
    }
}

/// The signals that ask this process to end.
#[cfg(feature = "mcp-http")]
struct Signals {
    #[cfg(unix)]
    interrupted: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminated: tokio::signal::unix::Signal,
}

#[cfg(feature = "mcp-http")]
impl Signals {
    /// Begins to hear them, within a runtime.
    ///
    /// # Errors
    /// `Unavailable` where signals can't be waited for.
    fn new() -> Result<Self> {
        #[cfg(unix)]
        let heard = |kind| {
            let failed = |why| Error::Unavailable { why: format!("no signal can be waited for: {why}") };
            tokio::signal::unix::signal(kind).map_err(failed)
        };
        Ok(Signals {
            #[cfg(unix)]
            interrupted: heard(tokio::signal::unix::SignalKind::interrupt())?,
            #[cfg(unix)]
            terminated: heard(tokio::signal::unix::SignalKind::terminate())?,
        })
    }

    /// Is ready once the next one comes.
    async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupted.recv() => {}
            _ = self.terminated.recv() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    }
}
