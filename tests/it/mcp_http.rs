//! The server of the Model Context Protocol over HTTP, as a client meets it that writes its requests by hand.

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::raw_http::{Answer, TOKEN, call, head, hear, hello};
use crate::world::World;
use ::tokio::sync::oneshot;
use oubliette::mcp::{Desk, Http, Question, Server, Token};
use oubliette::tools::{Caller, ToolError, Toolbox};
use oubliette::{Draft, WriteOptions};
use serde_json::{Value, json};

/// A server at work.
struct Served {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn new(world: &World) -> Self {
        Served::with(world, |http| http)
    }

    fn with(world: &World, options: impl FnOnce(Http) -> Http) -> Self {
        Served::of(Server::new(Toolbox::new(world.ns.clone())), options)
    }

    fn of(server: Server, options: impl FnOnce(Http) -> Http) -> Self {
        let http = options(Http::bind("127.0.0.1:0".parse().unwrap(), Token::new(TOKEN).unwrap()).unwrap());
        let address =
            http.url().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().parse().unwrap();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = ::tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let until = async { drop(stopped.await) };
            runtime.block_on(server.serve_http(http, until)).unwrap();
        });
        Served { address, stop: Some(stop), thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// The answer to a request with these headers beside the usual ones.
    #[track_caller]
    fn ask(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = self.connect();
        let head = head(self.address, method, headers, Some(body.len()));
        // A server without room answers, and ends the connection, before it has read anything.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        hear(stream)
    }

    /// Asks the server to end.
    fn stop(&mut self) {
        drop(self.stop.take());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}

/// A session in which a client calls tools.
struct Client<'s>(&'s Served, String);

impl<'s> Client<'s> {
    #[track_caller]
    fn new(served: &'s Served) -> Self {
        let answer = served.ask("POST", &[], &hello());
        assert_eq!(answer.message()["result"]["serverInfo"]["name"], "oubliette", "{answer:?}");
        let client = Client(served, answer.session());
        let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(client.ask("POST", note).status, 202);
        client
    }

    #[track_caller]
    fn ask(&self, method: &str, body: &str) -> Answer {
        self.0.ask(method, &[("Mcp-Session-Id", &self.1)], body)
    }

    /// What a tool answers.
    #[track_caller]
    fn done(&self, name: &str, args: Value) -> Value {
        let answer = self.ask("POST", &call(name, args)).message();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["structuredContent"].clone()
    }
}

#[test]
fn two_clients_have_one_memory_and_a_session_each() {
    let world = World::new();
    let served = Served::new(&world);
    let (ann, bob) = (Client::new(&served), Client::new(&served));
    assert_ne!(ann.1, bob.1);
    let tea = ann.done("add_memory", json!({ "text": "Ann prefers tea" }))["id"].clone();
    assert_eq!(bob.done("get_memory", json!({ "id": tea }))["text"], "Ann prefers tea");
    std::thread::scope(|scope| {
        for (name, client) in [("ann", &ann), ("bob", &bob)] {
            scope.spawn(move || {
                for at in 0..20 {
                    client.done("add_memory", json!({ "text": format!("{name} wrote note {at}") }));
                }
            });
        }
    });
    assert_eq!(world.live().len(), 41);
    assert_eq!(ann.ask("DELETE", "").status, 202);
    assert_eq!(ann.ask("POST", &call("memory_stats", json!({}))).status, 404, "its session is over");
    bob.done("memory_stats", json!({}));
}

#[test]
fn whoever_is_not_let_in_reads_and_changes_nothing() {
    let world = World::new();
    let served = Served::new(&world);
    let port = served.address.port();
    let (foreign, other_port) = (format!("evil.example:{port}"), format!("127.0.0.1:{}", port ^ 1));
    let own = format!("http://localhost:{port}");
    let add = call("add_memory", json!({ "text": "Eve was here" }));
    for (headers, status) in [
        (&[("Authorization", "")][..], 401),
        (&[("Authorization", "Bearer 0123456789abcdee")], 401),
        (&[("Authorization", "Basic MDEyMzQ1Njc4OWFiY2RlZg==")], 401),
        (&[("Host", &foreign)], 403),
        (&[("Host", &other_port)], 403),
        (&[("Host", "")], 403),
        (&[("Origin", "http://evil.example")], 403),
        (&[("Origin", "null")], 403),
        (&[("Origin", &own), ("Authorization", "")], 401),
        (&[("path", "/")], 404),
        (&[("path", "/mcp/")], 404),
        (&[("Mcp-Session-Id", "nobody")], 404),
        (&[("Accept", "application/json")], 406),
        (&[("Content-Type", "text/plain")], 415),
        (&[("MCP-Protocol-Version", "1999-01-01")], 400),
    ] {
        let answer = served.ask("POST", headers, &add);
        assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
        assert_eq!(answer.head.contains("www-authenticate: Bearer"), status == 401, "{answer:?}");
        assert!(!answer.body.contains(TOKEN) && !answer.head.contains("access-control"), "{answer:?}");
    }
    for method in ["OPTIONS", "GET", "DELETE", "PUT"] {
        let answer = served.ask(method, &[("Authorization", "")], "");
        assert_eq!(answer.status, 401, "{method}: {answer:?}");
    }
    assert_eq!(served.ask("PUT", &[], "").status, 405);
    assert!(world.live().is_empty());
    let page = served.ask("POST", &[("Origin", &own)], &hello());
    assert_eq!(page.status, 200, "a page of this server: {page:?}");
}

#[test]
fn a_message_that_is_none_is_answered_and_changes_nothing() {
    let world = World::new();
    let served = Served::new(&world);
    let client = Client::new(&served);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let twice =
        call("add_memory", json!({ "text": "a" })).replace(r#""text":"a""#, r#""text":"a","text":"b""#);
    for (body, code, id) in [
        ("", -32_600, json!(null)),
        ("{", -32_700, json!(null)),
        (deep.as_str(), -32_600, json!(null)),
        ("[]", -32_600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":7}"#, -32_600, json!(7)),
        (twice.as_str(), -32_600, json!(1)),
    ] {
        let answer = client.ask("POST", body);
        let told = answer.message();
        assert_eq!(answer.status, 400, "{told}");
        assert_eq!((&told["id"], told["error"]["code"].as_i64()), (&id, Some(code)), "{told}");
    }
    let other_form = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": 7 } });
    assert_eq!(client.ask("POST", &other_form.to_string()).message()["error"]["code"], -32_602);
    assert_eq!(client.ask("POST", r#"{"jsonrpc":"2.0","method":"notifications/news"}"#).status, 202);
    assert!(world.live().is_empty());
    client.done("memory_stats", json!({}));
}

#[test]
fn a_gigabyte_is_refused_before_it_is_kept() {
    let world = World::new();
    let served = Served::new(&world);
    let client = Client::new(&served);
    let mut announced = served.connect();
    announced.write_all(head(served.address, "POST", &[], Some(1 << 30)).as_bytes()).unwrap();
    assert_eq!(hear(announced).status, 413);
    let mut stranger = served.connect();
    let no_token = head(served.address, "POST", &[("Authorization", "")], Some(1 << 30));
    stranger.write_all(no_token.as_bytes()).unwrap();
    assert_eq!(hear(stranger).status, 401);
    // One that does not say how long it is, and sends on.
    let mut flood = served.connect();
    flood.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    let chunked = head(served.address, "POST", &[("Transfer-Encoding", "chunked")], None);
    flood.write_all(chunked.as_bytes()).unwrap();
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
    let sent = (0..1024).take_while(|_| flood.write_all(chunk.as_bytes()).is_ok()).count();
    assert!(sent < 64, "{sent} MiB were taken");
    let mut endless = served.connect();
    let _ = endless.write_all(format!("POST /mcp HTTP/1.1\r\nX: {}", "x".repeat(1 << 20)).as_bytes());
    assert!([0, 431].contains(&hear(endless).status));
    client.done("add_memory", json!({ "text": "x".repeat(1 << 20) }));
}

#[test]
fn whoever_hangs_up_or_reads_nothing_harms_nobody() {
    let world = World::new();
    let served = Served::new(&world);
    let client = Client::new(&served);
    let add = call("add_memory", json!({ "text": "Ann prefers tea" }));
    let whole =
        format!("{}{add}", head(served.address, "POST", &[("Mcp-Session-Id", &client.1)], Some(add.len())));
    for cut in [0, 10, 60, whole.len() - 20, whole.len() - 1] {
        let mut stream = served.connect();
        stream.write_all(&whole.as_bytes()[..cut]).unwrap();
        drop(stream);
    }
    assert!(world.live().is_empty());
    // Asks on and on, and reads nothing.
    let mut deaf = served.connect();
    deaf.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let headers = [("Connection", ""), ("Mcp-Session-Id", client.1.as_str())];
    let list = format!("{}{list}", head(served.address, "POST", &headers, Some(list.len())));
    while deaf.write_all(list.as_bytes()).is_ok() {}
    let _late = [served.connect(), served.connect()];
    Client::new(&served).done("add_memory", json!({ "text": "Bob prefers coffee" }));
    // Leaves in the middle of a call: what was asked is done, and told to nobody.
    let mut hasty = served.connect();
    hasty.write_all(whole.as_bytes()).unwrap();
    hasty.shutdown(Shutdown::Both).unwrap();
    Client::new(&served).done("memory_stats", json!({}));
}

#[test]
fn whoever_begins_and_says_no_more_is_let_go() {
    let world = World::new();
    let served = Served::new(&world);
    let client = Client::new(&served);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let whole = head(served.address, "POST", &[("Mcp-Session-Id", &client.1)], Some(list.len()));
    let half = &whole[..whole.len() / 2];
    // Nothing, half a line, half a head, and half a message: each keeps one of the few places.
    let begun = Instant::now();
    let silent: Vec<_> = ["", "POST", half, &format!("{whole}{}", &list[..10])]
        .into_iter()
        .map(|said| {
            let mut stream = served.connect();
            stream.write_all(said.as_bytes()).unwrap();
            stream
        })
        .collect();
    for (stream, said) in silent.into_iter().zip(["nothing", "half a line", "half a head", "half a message"])
    {
        let status = hear(stream).status;
        let waited = begun.elapsed();
        assert!([0, 408].contains(&status), "{said}: {status}");
        let due = Duration::from_secs(25)..Duration::from_secs(50);
        assert!(due.contains(&waited), "{said}: {waited:?}");
    }
    client.done("memory_stats", json!({}));
}

#[test]
fn connections_are_bounded_and_one_more_is_told() {
    let world = World::new();
    let served = Served::new(&world);
    let client = Client::new(&served);
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut idle: Vec<TcpStream> = (0..64).map(|_| served.connect()).collect();
    while served.ask("POST", &[], &hello()).status != 503 {
        assert!(Instant::now() < deadline);
    }
    idle.clear();
    while client.ask("POST", &call("memory_stats", json!({}))).status != 200 {
        assert!(Instant::now() < deadline);
    }
}

#[test]
fn sessions_are_bounded_and_the_least_used_ends() {
    let world = World::new();
    let served = Served::new(&world);
    let (first, second) = (Client::new(&served), Client::new(&served));
    let mut others: Vec<_> = (0..62).map(|_| Client::new(&served)).collect();
    first.done("memory_stats", json!({}));
    others.push(Client::new(&served));
    first.done("memory_stats", json!({}));
    let stats = call("memory_stats", json!({}));
    assert_eq!(second.ask("POST", &stats).status, 404, "it was used the longest ago");
    // Those that have ended make room.
    for gone in others.drain(..10) {
        assert_eq!(gone.ask("DELETE", "").status, 202);
    }
    let _more: Vec<_> = (0..10).map(|_| Client::new(&served)).collect();
    assert_eq!(others[0].ask("POST", &stats).status, 200);
}

/// A desk that answers when it is told to.
struct Patient(std::sync::Mutex<std::sync::mpsc::Receiver<()>>);

impl Desk for Patient {
    fn respond(&self, question: Question, _: &dyn Caller) -> Result<Value, ToolError> {
        if question == Question::Instructions {
            return Ok(json!(""));
        }
        self.0.lock().unwrap().recv().unwrap();
        Ok(json!({ "hits": [] }))
    }
}

#[test]
fn a_session_with_a_call_at_work_makes_room_for_no_other() {
    let (tell, told) = std::sync::mpsc::channel();
    let served = Served::of(Server::new(Patient(std::sync::Mutex::new(told))), |http| http);
    let asking = Client::new(&served);
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| asking.done("search_memories", json!({ "query": "tea" })));
        std::thread::sleep(Duration::from_millis(300));
        let others: Vec<_> = (0..70).map(|_| Client::new(&served)).collect();
        tell.send(()).unwrap();
        assert_eq!(answer.join().unwrap(), json!({ "hits": [] }));
        let gone = call("search_memories", json!({ "query": "tea" }));
        assert_eq!(others[0].ask("POST", &gone).status, 404, "one that nothing was asked in");
    });
}

#[test]
fn a_session_that_nothing_is_asked_in_ends() {
    let world = World::new();
    let served = Served::with(&world, |http| http.session_idle(Duration::from_millis(300)));
    let client = Client::new(&served);
    client.done("memory_stats", json!({}));
    let deadline = Instant::now() + Duration::from_secs(60);
    std::thread::sleep(Duration::from_millis(600));
    while client.ask("POST", &call("memory_stats", json!({}))).status != 404 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(600));
    }
    Client::new(&served).done("memory_stats", json!({}));
}

#[test]
fn what_was_asked_before_the_end_is_answered() {
    let world = World::new();
    let end = world.ahead("1h");
    let drafts = (0..1_000).map(|n| Draft::new(format!("Note {n}")).expiry(end)).collect();
    world.ns.add_all(drafts, &WriteOptions::default()).unwrap();
    world.advance("2h");
    let mut served = Served::new(&world);
    let client = Client::new(&served);
    let session = client.1;
    let expire =
        call("run_maintenance", json!({ "passes": ["expire"], "dry_run": false, "max_seconds": 60 }));
    // A stream that stays open, and a client that has begun to ask.
    let mut open = served.connect();
    open.write_all(head(served.address, "GET", &[("Mcp-Session-Id", &session)], None).as_bytes()).unwrap();
    let mut asking = served.connect();
    let head = head(served.address, "POST", &[("Mcp-Session-Id", &session)], Some(expire.len()));
    asking.write_all(format!("{head}{expire}").as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    served.stop();
    let answer = hear(asking).message();
    assert_eq!(answer["result"]["structuredContent"]["passes"][0]["removed"], 1_000, "{answer}");
    assert_eq!(hear(open).status, 200, "the stream ends with the server");
    drop(served);
}
