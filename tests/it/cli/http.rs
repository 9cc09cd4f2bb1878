//! `serve --http`: the server of a file for the clients of this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::sandbox::{NOW, Sandbox};
use crate::raw_http::{Answer, TOKEN, call, head, hear, hello};
use serde_json::{Value, json};

/// A server at work, and a session in it.
struct Server {
    child: Child,
    address: SocketAddr,
    token: String,
    session: String,
}

impl Server {
    /// A server on `m.oub` that is started with these variables and words.
    #[track_caller]
    fn new(sandbox: &Sandbox, variables: &[(&str, &str)], words: &[&str]) -> Self {
        let mut all = vec!["--db", "m.oub", "--json", "--now", NOW, "serve", "--http", "127.0.0.1:0"];
        all.extend(words);
        let mut command = sandbox.command(&all);
        command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|why| {
            let mut complaint = String::new();
            child.stderr.as_mut().unwrap().read_to_string(&mut complaint).unwrap();
            panic!("{why}: {line:?} {complaint}")
        });
        let address = told["url"].as_str().unwrap().strip_prefix("http://").unwrap();
        let address = address.strip_suffix("/mcp").unwrap().parse().unwrap();
        Server { child, address, token: TOKEN.to_owned(), session: String::new() }
    }

    #[track_caller]
    fn ask(&self, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let token = format!("Bearer {}", self.token);
        let headers = [("Authorization", token.as_str()), ("Mcp-Session-Id", &self.session)];
        let head = head(self.address, "POST", &headers, Some(body.len()));
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        hear(stream)
    }

    /// Shakes hands.
    #[track_caller]
    fn greet(mut self) -> Self {
        self.session = self.ask(&hello()).session();
        assert_eq!(self.ask(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).status, 202);
        self
    }

    #[track_caller]
    fn done(&self, name: &str, args: Value) -> Value {
        let answer = self.ask(&call(name, args)).message();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["structuredContent"].clone()
    }

    /// Asks it to end, by a signal; what it has said on standard error meanwhile.
    #[track_caller]
    fn end(mut self, signal: &str) -> String {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let mut told = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert!(self.child.wait().unwrap().success(), "{told}");
        told
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended can't be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_token_is_made_and_shown_where_none_is_given() {
    let sandbox = Sandbox::new();
    let mut server = Server::new(&sandbox, &[], &[]);
    let mut line = String::new();
    BufReader::new(server.child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(server.ask(&hello()).status, 401, "the token is another each time");
    server.token = line.strip_prefix("token: ").unwrap().trim_end().to_owned();
    let server = server.greet();
    let tea = server.done("add_memory", json!({ "text": "Ann prefers tea" }));
    // The command line asks the process that has the file.
    assert_eq!(sandbox.document(&["get", tea["id"].as_str().unwrap()])["text"], "Ann prefers tea");
    server.end("-TERM");
    assert!(!sandbox.path("m.oub.sock").exists());
    assert_eq!(sandbox.document(&["check", "--deep"])["ok"], true);
}

#[test]
fn a_token_is_taken_from_the_environment_or_a_file() {
    let sandbox = Sandbox::new();
    sandbox.write("token", format!("{TOKEN}\n"));
    let other = [("OUBLIETTE_TOKEN", "another-token-than-this")];
    let told = Server::new(&sandbox, &[("OUBLIETTE_TOKEN", TOKEN)], &[]).greet().end("-INT");
    assert!(!told.contains("token"), "{told}");
    Server::new(&sandbox, &other, &["--token-file", "token"]).greet().end("-TERM");
}

/// Whoever can't wait for a call that takes long asks a second time.
#[test]
fn a_second_signal_ends_a_server_that_waits_for_a_call() {
    let sandbox = Sandbox::new();
    let token = [("OUBLIETTE_TOKEN", TOKEN)];
    let mut server = Server::new(&sandbox, &token, &["--summarizer", "touch begun; sleep 10"]).greet();
    let tea = server.done("add_memory", json!({ "text": "Ann prefers tea" }))["id"].clone();
    let mut asking = TcpStream::connect(server.address).unwrap();
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("Authorization", bearer.as_str()), ("Mcp-Session-Id", &server.session)];
    let body = call("memory_summarize", json!({ "source_ids": [tea] }));
    let head = head(server.address, "POST", &headers, Some(body.len()));
    asking.write_all(format!("{head}{body}").as_bytes()).unwrap();
    while !sandbox.path("begun").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let begun = std::time::Instant::now();
    let id = server.child.id().to_string();
    let ask = || Command::new("kill").args(["-TERM", &id]).status().unwrap().success();
    assert!(ask());
    std::thread::sleep(Duration::from_millis(300));
    assert!(server.child.try_wait().unwrap().is_none(), "the first one waits for the call");
    assert!(ask());
    assert_eq!(server.child.wait().unwrap().code(), Some(1));
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(sandbox.document(&["check", "--deep"])["ok"], true);
}

#[test]
fn what_nobody_should_listen_to_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("short", "0123");
    for (words, kind, why) in [
        (&["--http", "0.0.0.0:0"][..], "Invalid", "--http: must be an address of this machine"),
        (&["--http", "192.0.2.1:80"], "Invalid", "--http: must be an address of this machine"),
        (&["--http", "[::]:0"], "Invalid", "--http: must be an address of this machine"),
        (&["--http", "127.0.0.1:0", "--token-file", "short"], "Invalid", "--token-file: must have 16 to 512"),
        (&["--http", "127.0.0.1:0", "--token-file", "nowhere"], "Io", "nowhere"),
    ] {
        let (found, message) = sandbox.run(&[&["serve"], words].concat()).error();
        assert!(found == kind && message.contains(why) && !message.contains("0123 "), "{message}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let (kind, message) = sandbox.run(&["serve", "--http", &taken]).error();
    assert!(kind == "Io" && message.contains(&taken), "{message}");
    assert_eq!(sandbox.run(&["serve"]).code, 2);
    assert_eq!(sandbox.run(&["serve", "--mcp", "--token-file", "short"]).code, 2);
    assert!(!sandbox.path("m.oub").exists(), "nothing was begun");
}

#[test]
fn two_servers_share_a_file_and_the_second_takes_over() {
    let sandbox = Sandbox::new();
    let token = [("OUBLIETTE_TOKEN", TOKEN)];
    let mut first = Server::new(&sandbox, &token, &[]).greet();
    let second = Server::new(&sandbox, &token, &[]).greet();
    let tea = first.done("add_memory", json!({ "text": "Ann prefers tea" }))["id"].clone();
    assert_eq!(second.done("get_memory", json!({ "id": tea }))["text"], "Ann prefers tea");
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    assert_eq!(second.done("get_memory", json!({ "id": tea }))["text"], "Ann prefers tea");
    second.done("add_memory", json!({ "text": "Bob prefers coffee" }));
    second.end("-TERM");
    assert_eq!(sandbox.document(&["stats"])["memories"]["live"], 2);
}
