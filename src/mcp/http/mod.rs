//! How does a client of this machine reach the server over HTTP?
//!
//! The transport is the streamable HTTP of the protocol, at the path `/mcp`. `door.rs` looks at the head of each request, `message.rs` of the room
//! above reads its body, and rmcp keeps the session and answers.
//!
//! Invariants. Only addresses of this machine are listened on. Of a request without the token nothing but the head is read. Connections, sessions,
//! bytes of a request and the time that a client may take are bounded. A call that has begun when the server is asked to end is answered first.

mod door;
mod reply;
mod sessions;
mod stream;

use std::convert::Infallible;
use std::future::Future;
use std::net::{SocketAddr, TcpListener as Socket};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use crate::error::{Error, Result};
use crate::limits::LINE_BYTES_MAX;
use crate::mcp::http::door::{Door, Refusal};
use crate::mcp::http::reply::{Reply, empty, refused};
use crate::mcp::http::sessions::Sessions;
use crate::mcp::http::stream::Stream;
use crate::mcp::message;
use crate::mcp::token::Token;

/// Where the server answers.
const PATH: &str = "/mcp";
/// Connections at a time. One more is told to come again.
const CONNECTIONS_MAX: usize = 64;
/// Bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long a client may take for the head of a request, and for its body.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a session stays that nothing is asked in, unless the program says otherwise.
const IDLE: Duration = Duration::from_secs(8 * 3600);
/// How long the last answers may take once the server is asked to end.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long nobody is accepted where the operating system can't give a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// What one connection too many is told.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// A place of this machine where clients of the Model Context Protocol are waited for. [`Server::serve_http`](crate::mcp::Server::serve_http) answers
/// them.
///
/// ```
/// use oubliette::mcp::{Http, Token};
///
/// let http = Http::bind("127.0.0.1:0".parse()?, Token::random()?)?;
/// assert!(http.url().starts_with("http://127.0.0.1:"));
/// // Another machine could reach this one.
/// assert!(Http::bind("0.0.0.0:0".parse()?, Token::random()?).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Http {
    socket: Socket,
    address: SocketAddr,
    token: Token,
    idle: Duration,
}

impl Http {
    /// Listens at an address of this machine (127.0.0.0/8 or ::1) for clients that show the token. The port 0 means any that is free.
    ///
    /// ```
    /// # use oubliette::mcp::{Http, Token};
    /// let one = Http::bind("127.0.0.1:0".parse()?, Token::random()?)?;
    /// let taken = one.url().replace("http://", "").replace("/mcp", "").parse()?;
    /// assert!(Http::bind(taken, Token::random()?).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for an address that other machines could reach: the token and the memories would cross the network in the clear. `Io` where the
    /// operating system refuses.
    pub fn bind(address: SocketAddr, token: Token) -> Result<Self> {
        if !address.ip().is_loopback() {
            let why = "must be an address of this machine, such as 127.0.0.1:8080: the token and the memories would cross a network in the clear";
            return Err(Error::invalid("address", why, address));
        }
        let io = |source| Error::io("listen on", address.to_string(), source);
        let socket = Socket::bind(address).map_err(io)?;
        socket.set_nonblocking(true).map_err(io)?;
        let address = socket.local_addr().map_err(io)?;
        Ok(Http { socket, address, token, idle: IDLE })
    }

    /// How long a session stays that nothing is asked in; 8 hours by default.
    ///
    /// ```
    /// # use oubliette::mcp::{Http, Token};
    /// use std::time::Duration;
    /// let http = Http::bind("127.0.0.1:0".parse()?, Token::random()?)?.session_idle(Duration::from_secs(600));
    /// # drop(http);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn session_idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// Where clients find the server.
    ///
    /// ```
    /// # use oubliette::mcp::{Http, Token};
    /// let http = Http::bind("[::1]:0".parse()?, Token::random()?)?;
    /// assert!(http.url().starts_with("http://[::1]:") && http.url().ends_with("/mcp"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Answers clients until `until` is ready, and then those who have begun to ask.
    ///
    /// # Errors
    /// `Io` where the runtime can't listen.
    pub(super) async fn serve<S>(self, handler: S, until: impl Future<Output = ()>) -> Result<()>
    where
        S: ServerHandler + Clone,
    {
        let io = |source| Error::io("listen on", self.address.to_string(), source);
        let listener = TcpListener::from_std(self.socket).map_err(io)?;
        let config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            .with_max_request_body_bytes(LINE_BYTES_MAX);
        let end = config.cancellation_token.clone();
        let closing = end.child_token();
        let (begun, mut answered) = mpsc::channel(1);
        let sessions = Sessions::new(self.idle);
        let manager = sessions.manager();
        let service = StreamableHttpService::new(move || Ok(handler.clone()), manager, config);
        let door = Door::new(self.address, self.token);
        let office = Arc::new(Office { door, sessions, service, begun: begun.downgrade() });
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut until = pin!(until);
        loop {
            let accepted = tokio::select! {
                () = &mut until => break,
                accepted = listener.accept() => accepted,
            };
            let Ok((client, _)) = accepted else {
                sleep(PAUSE).await;
                continue;
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                // Who can't be told that finds out by itself.
                let _ = client.try_write(FULL);
                continue;
            };
            // An answer is several small writes: held back until the first is acknowledged, it would take 40 ms.
            if let Err(why) = client.set_nodelay(true) {
                tracing::debug!(%why, "answers may be held back");
            }
            let (office, closing) = (Arc::clone(&office), closing.clone());
            tokio::spawn(async move {
                converse(client, office, closing.cancelled()).await;
                drop(place);
            });
        }
        drop((listener, begun));
        closing.cancel();
        let _ = timeout(LAST_WORDS, answered.recv()).await;
        end.cancel();
        let _ = timeout(LAST_WORDS, places.acquire_many(CONNECTIONS_MAX as u32)).await;
        Ok(())
    }
}

/// Answers the requests of a connection, until the client ends it, or `closing` does between two requests.
async fn converse<S: ServerHandler>(
    client: TcpStream,
    office: Arc<Office<S>>,
    closing: impl Future<Output = ()>,
) {
    let answer = service_fn(move |request| {
        let office = Arc::clone(&office);
        async move { Ok::<_, Infallible>(office.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Stream::new(client)), answer);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = closing => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(why) = ended {
        tracing::debug!(%why, "a connection has ended in the middle");
    }
}

/// Where requests are answered.
struct Office<S> {
    door: Door,
    sessions: Sessions,
    service: StreamableHttpService<S, LocalSessionManager>,
    /// Held by each message that is answered; none can be had once the server ends.
    begun: mpsc::WeakSender<Infallible>,
}

impl<S: ServerHandler> Office<S> {
    async fn answer(&self, request: Request<Incoming>) -> Reply {
        if let Err(Refusal { status, why }) = self.door.check(request.uri(), request.headers()) {
            return refused(status, message::refused(why));
        }
        if request.uri().path() != PATH {
            return refused(StatusCode::NOT_FOUND, message::refused("the server answers at /mcp"));
        }
        let in_use = self.sessions.note_use(request.headers());
        if request.method() != Method::POST {
            return self.service.handle(request).await;
        }
        let Some(begun) = self.begun.upgrade() else {
            return refused(StatusCode::SERVICE_UNAVAILABLE, message::refused("the server ends"));
        };
        let (head, body) = request.into_parts();
        let bytes = match read(body).await {
            Ok(bytes) => bytes,
            Err(refusal) => return refusal,
        };
        match message::read(&bytes) {
            Ok(Some(_)) => {}
            Ok(None) if bytes.trim_ascii().is_empty() => {
                return refused(StatusCode::BAD_REQUEST, message::refused("a request has a message"));
            }
            Ok(None) => return empty(StatusCode::ACCEPTED),
            Err(answer) => return refused(StatusCode::BAD_REQUEST, answer),
        }
        let reply = self.service.handle(Request::from_parts(head, Full::new(bytes))).await;
        self.sessions.note_begin(reply.headers()).await;
        reply.map(|body| {
            let body = body.map_frame(move |frame| {
                let _held = (&begun, &in_use);
                frame
            });
            body.boxed()
        })
    }
}

/// The body of a request, of a bounded length and in a bounded time.
///
/// # Errors
/// The refusal.
async fn read(body: Incoming) -> std::result::Result<Bytes, Reply> {
    let too_long = || {
        let why = format!("a message has at most {LINE_BYTES_MAX} bytes");
        refused(StatusCode::PAYLOAD_TOO_LARGE, message::refused(&why))
    };
    if body.size_hint().lower() > LINE_BYTES_MAX as u64 {
        return Err(too_long());
    }
    match timeout(PATIENCE, Limited::new(body, LINE_BYTES_MAX).collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(why)) if why.is::<LengthLimitError>() => Err(too_long()),
        Ok(Err(_)) => {
            Err(refused(StatusCode::BAD_REQUEST, message::refused("the message has ended in the middle")))
        }
        Err(_) => {
            let why = format!("a message must come within {} s", PATIENCE.as_secs());
            Err(refused(StatusCode::REQUEST_TIMEOUT, message::refused(&why)))
        }
    }
}
