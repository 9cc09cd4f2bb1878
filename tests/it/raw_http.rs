//! Requests of a client of the Model Context Protocol over HTTP, written by hand.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

pub(crate) const TOKEN: &str = "0123456789abcdef";

/// The head of a request. A header that is named takes the place of the usual one; an empty value leaves it out.
pub(crate) fn head(
    address: SocketAddr,
    method: &str,
    headers: &[(&str, &str)],
    length: Option<usize>,
) -> String {
    let (host, token) = (address.to_string(), format!("Bearer {TOKEN}"));
    let usual = [
        ("Host", host.as_str()),
        ("Authorization", token.as_str()),
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        ("Connection", "close"),
    ];
    let path = headers.iter().find(|(name, _)| *name == "path").map_or("/mcp", |(_, path)| path);
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    let others = usual.iter().filter(|(name, _)| !headers.iter().any(|(given, _)| given == name));
    for (name, value) in others.chain(headers).filter(|(name, value)| *name != "path" && !value.is_empty()) {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(length) = length {
        text.push_str(&format!("Content-Length: {length}\r\n"));
    }
    text + "\r\n"
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// The whole answer; status 0 where the connection has ended without one.
#[track_caller]
pub(crate) fn hear(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // A server that does not read a body to its end may end the connection before its answer is read.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return Answer { status: 0, head: text, body: String::new() };
    };
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { unchunked(body) } else { body.to_owned() };
    Answer { status, head: head.to_owned(), body }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        whole.push_str(&rest[..length]);
        body = rest[length..].trim_start_matches("\r\n");
    }
    whole
}

impl Answer {
    /// The message of an answer, which may be the last event of a stream.
    #[track_caller]
    pub(crate) fn message(&self) -> Value {
        let mut events =
            self.body.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty());
        let text = events.next_back().unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    pub(crate) fn session(&self) -> String {
        let line = self.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        line.unwrap_or_else(|| panic!("no session: {self:?}")).to_owned()
    }
}

pub(crate) fn hello() -> String {
    let client = json!({ "name": "raw", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string()
}

pub(crate) fn call(name: &str, args: Value) -> String {
    let params = json!({ "name": name, "arguments": args });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}
