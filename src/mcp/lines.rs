//! Messages as lines of JSON, read strictly and written in turn.
//!
//! A line that is too long, or no message, is answered with an error of JSON-RPC, and the next line is read. So is a request of a
//! client that has not begun. A request for memories that comes after a write waits for it.

use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::limits::LINE_BYTES_MAX;
use crate::mcp::message;
use crate::mcp::turns::Turns;

/// Lines that wait to be written. While there are so many, no message is read.
const WAITING: usize = 256;
/// How long the last answers may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The task that writes the lines of a client.
pub(super) struct LastWords(JoinHandle<()>);

impl LastWords {
    /// Waits until all that was answered is written, as long as somebody reads.
    pub(super) async fn written(self) {
        let _ = timeout(LAST_WORDS, self.0).await;
    }
}

/// Messages from a reader, and to a writer.
pub(super) struct Lines<R> {
    read: BufReader<R>,
    /// What was read of the next line. It stays here when a read is given up half-way.
    line: Vec<u8>,
    /// Whether the line is past its bound, and only its end is looked for.
    too_long: bool,
    /// Whether the client has begun.
    has_greeted: bool,
    /// Whether the last line was read.
    has_ended: bool,
    /// Requests that wait for the answer to an earlier one.
    turns: Turns,
    /// None once it is closed.
    write: Option<mpsc::Sender<String>>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Begins to write; lines are written one after the other, by a task of the runtime.
    pub(super) fn new(read: R, mut write: impl AsyncWrite + Send + Unpin + 'static) -> (Self, LastWords) {
        let (sender, mut lines) = mpsc::channel::<String>(WAITING);
        let writer = tokio::spawn(async move {
            while let Some(mut line) = lines.recv().await {
                line.push('\n');
                // Nobody reads any more where it fails: the channel closes, and with it the transport.
                if write.write_all(line.as_bytes()).await.is_err() || write.flush().await.is_err() {
                    return;
                }
            }
        });
        let lines = Lines {
            read: BufReader::new(read),
            line: Vec::new(),
            too_long: false,
            has_greeted: false,
            has_ended: false,
            turns: Turns::default(),
            write: Some(sender),
        };
        (lines, LastWords(writer))
    }

    /// The next line, an error in its place where it is too long; none at the end. A read that is given up loses nothing.
    async fn next(&mut self) -> Option<std::result::Result<Vec<u8>, String>> {
        loop {
            // A read that fails is the end: nothing more can be read.
            let bytes = self.read.fill_buf().await.ok()?;
            if bytes.is_empty() {
                // The last line may have no line feed. Of one that was cut nobody knows what it asks.
                let last = std::mem::take(&mut self.line);
                let is_whole = serde_json::from_slice::<IgnoredAny>(&last).is_ok();
                return is_whole.then_some(Ok(last));
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(bytes.len(), |end| end + 1);
            if self.line.len() + taken > LINE_BYTES_MAX {
                self.too_long = true;
                self.line.clear();
            }
            if !self.too_long {
                self.line.extend_from_slice(bytes.get(..taken).unwrap_or_default());
            }
            self.read.consume(taken);
            if end.is_none() {
                continue;
            }
            if std::mem::take(&mut self.too_long) {
                self.line.clear();
                return Some(Err(format!("a message has at most {LINE_BYTES_MAX} bytes")));
            }
            return Some(Ok(std::mem::take(&mut self.line)));
        }
    }
}

/// Whether a client begins: it asks to, or a request says all that the protocol without `initialize` wants to know of it. Requests that ask
/// who answers, or whether anybody does, begin nothing.
fn begins(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    let JsonRpcMessage::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => {
            let about = request.get_meta();
            let is_known = |version| ProtocolVersion::KNOWN_VERSIONS.contains(&version);
            about.protocol_version().is_some_and(is_known)
                && about.missing_required_keys(&ProtocolVersion::NO_INITIALIZE).is_empty()
        }
    }
}

/// The answer to a request of a client that has not begun, and which lacks what the protocol without `initialize` asks of it. rmcp answers
/// the others.
fn not_begun(message: &RxJsonRpcMessage<RoleServer>) -> Option<String> {
    let JsonRpcMessage::Request(request) = message else { return None };
    if matches!(
        request.request,
        ClientRequest::InitializeRequest(_)
            | ClientRequest::PingRequest(_)
            | ClientRequest::DiscoverRequest(_)
    ) {
        return None;
    }
    let missing = request.request.get_meta().missing_required_keys(&ProtocolVersion::NO_INITIALIZE);
    (!missing.is_empty()).then(|| message::not_begun(&json!(request.id), &missing))
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Lines<R> {
    type Error = Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<()>> + Send + 'static {
        self.turns.answered(&item);
        let sender = self.write.clone();
        async move {
            let line = serde_json::to_string(&item)?;
            let gone = || Error::new(ErrorKind::BrokenPipe, "nobody reads the answers");
            sender.ok_or_else(gone)?.send(line).await.map_err(|_| gone())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let sender = self.write.clone()?;
        let over = self.turns.over();
        loop {
            if let Some(message) = self.turns.next() {
                return Some(message);
            }
            if self.turns.is_full() || (self.has_ended && !self.turns.is_empty()) {
                // The answer that is waited for ends this read, and the next one finds what has its turn.
                over.notified().await;
                continue;
            }
            // Room for an answer, before there is anything to answer.
            let room = sender.reserve().await.ok()?;
            let line = tokio::select! {
                line = self.next() => line,
                () = over.notified() => continue,
            };
            let Some(line) = line else {
                if self.turns.is_empty() {
                    return None;
                }
                self.has_ended = true;
                continue;
            };
            let answer = match line {
                Ok(line) => match message::read(&line) {
                    Ok(Some(message)) => {
                        self.has_greeted |= begins(&message);
                        if let Some(answer) = not_begun(&message).filter(|_| !self.has_greeted) {
                            room.send(answer);
                            continue;
                        }
                        // Before that a notification tells of nothing, and a response answers nothing.
                        let counts = self.has_greeted || matches!(message, JsonRpcMessage::Request(_));
                        match self.turns.arrived(message).filter(|_| counts) {
                            Some(message) => return Some(message),
                            None => continue,
                        }
                    }
                    Ok(None) => continue,
                    Err(answer) => answer,
                },
                Err(why) => message::refused(&why),
            };
            room.send(answer);
        }
    }

    async fn close(&mut self) -> Result<()> {
        self.write = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The methods of the messages that a server hears of these.
    fn heard(said: &[Value]) -> Vec<String> {
        let said: String = said.iter().map(|one| format!("{one}\n")).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut lines, _) = Lines::new(said.as_bytes(), tokio::io::sink());
            let mut heard = Vec::new();
            while let Some(message) = lines.receive().await {
                heard.push(json!(message)["method"].as_str().unwrap().to_owned());
            }
            heard
        })
    }

    /// A client of the protocol without `initialize` says with each request who it is. Its cancellations count like those of any other.
    #[test]
    fn what_a_client_notifies_counts_once_it_has_begun() {
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
        let ask = |method: &str, about: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "_meta": about } });
        let about = |version: &str| {
            json!({
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": {},
            })
        };
        let counts = |first: Value| heard(&[first, cancel.clone()]).len() == 2;
        assert!(counts(ask("tools/list", about("2026-07-28"))));
        assert!(!counts(ask("tools/list", about("1999-01-01"))), "a version that no server knows");
        assert!(!counts(ask("tools/list", json!({}))));
        assert!(!counts(ask("ping", about("2026-07-28"))));
        assert!(!counts(ask("server/discover", about("2026-07-28"))));
    }
}
