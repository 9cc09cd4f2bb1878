//! The server of the Model Context Protocol, as a client meets it.

mod states;
mod told;

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use crate::world::World;
use ::tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};
use ::tokio::time::timeout;
use oubliette::mcp::{Desk, Question, Server};
use oubliette::memory::Actor;
use oubliette::tools::{Caller, ToolError, Toolbox};
use oubliette::{Draft, Kind, State, WriteOptions};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, GetPromptRequestParams, PaginatedRequestParams,
    ProgressNotificationParam, ReadResourceRequestParams, ResourceContents, Tool,
};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::{Value, json};

/// A client that keeps what it is told of progress.
#[derive(Clone, Default)]
struct Client(Arc<std::sync::Mutex<Vec<f64>>>);

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::default()
    }

    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.lock().unwrap().push(told.progress);
    }
}

type Session = RunningService<RoleClient, Client>;

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = ::tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { timeout(Duration::from_secs(120), test).await.expect("it hangs") })
}

/// A world whose writes are those of a tool.
fn world() -> World {
    World::with(|builder| builder.actor(Actor::Tool))
}

/// The end of a pipe at whose other end a server works.
fn serve(world: &World) -> DuplexStream {
    let (client, server) = duplex(1 << 16);
    let (read, write) = split(server);
    ::tokio::spawn(Server::new(Toolbox::new(world.ns.clone())).serve(read, write));
    client
}

async fn connect(world: &World) -> Session {
    Client::default().serve(serve(world)).await.unwrap()
}

async fn call(client: &Session, name: &'static str, args: Value) -> CallToolResult {
    let Value::Object(args) = args else { panic!("arguments are an object") };
    client.call_tool(CallToolRequestParams::new(name).with_arguments(args)).await.unwrap()
}

/// The answer of a call that is carried out; its text says the same.
async fn done(client: &Session, name: &'static str, args: Value) -> Value {
    let answer = call(client, name, args).await;
    assert_eq!(answer.is_error, Some(false), "{name}: {answer:?}");
    let told = answer.structured_content.clone().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text(&answer)).unwrap(), told);
    told
}

fn text(answer: &CallToolResult) -> String {
    answer.content[0].as_text().unwrap().text.clone()
}

/// Holds what a tool has told to the schema of its answers.
#[track_caller]
fn held(tools: &[Tool], name: &str, told: &Value) {
    let tool = tools.iter().find(|tool| tool.name == name).unwrap();
    let schema = Value::Object(tool.output_schema.as_ref().unwrap().as_ref().clone());
    let schema = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> = schema.iter_errors(told).map(|why| why.to_string()).collect();
    assert!(faults.is_empty(), "{name}: {faults:?} of {told}");
}

/// Code and pointers of a call that is refused.
async fn refused(client: &Session, name: &'static str, args: Value) -> (String, Vec<String>) {
    let answer = call(client, name, args).await;
    assert_eq!(answer.is_error, Some(true), "{name}: {answer:?}");
    let told: Value = serde_json::from_str(&text(&answer)).unwrap();
    let pointers = told["pointers"].as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned());
    (told["code"].as_str().unwrap().to_owned(), pointers.collect())
}

#[test]
fn every_tool_is_listed_called_and_answers_as_its_schema_says() {
    let world = world();
    run(async {
        let client = connect(&world).await;
        let tools = client.list_all_tools().await.unwrap();
        assert_eq!(tools.len(), 20);
        for tool in &tools {
            assert!(tool.name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase()), "{}", tool.name);
            assert_eq!(tool.input_schema["additionalProperties"], json!(false), "{}", tool.name);
            assert!(tool.description.as_ref().unwrap().len() < 200, "{}", tool.name);
        }
        let old = |n: usize| {
            Draft::new(format!("Ann: Box {n} went to Ghent{n}."))
                .kind(Kind::Message)
                .channel("yard")
                .created_at(world.ago("20d"))
        };
        let sources = [world.add(old(0)).id, world.add(old(1)).id];
        let tea = done(&client, "add_memory", json!({ "text": "Ann prefers tea", "key": "ann:drink" })).await
            ["id"]
            .clone();
        let home = done(&client, "add_memory", json!({ "text": "Ann lives in Ghent" })).await["id"].clone();
        let plan = done(&client, "memory_gc_plan", json!({})).await["plan_id"].clone();
        let summary =
            json!({ "topic": "boxes", "time_range": { "start": 0, "end": 0 }, "summary": ["boxes went"] });
        let commit = json!({ "summary_json": summary, "source_ids": sources, "plan_id": plan });
        let calls = [
            ("search_memories", json!({ "query": "tea" })),
            ("get_memory", json!({ "id": tea })),
            ("list_memories", json!({ "limit": 2 })),
            ("update_memory", json!({ "id": "ann:drink", "tags": ["drink"] })),
            ("supersede_memory", json!({ "old_ids": [home], "text": "Ann lives in Bruges" })),
            ("forget_memory", json!({ "id": tea })),
            ("forget_memories", json!({ "tag": "drink" })),
            ("memory_stats", json!({})),
            ("run_maintenance", json!({})),
            ("run_maintenance", json!({ "passes": ["index", "repair"], "dry_run": false })),
            (
                "memory_context_log_write",
                json!({ "context_id": "c", "memory_ids_with_token_costs": [{ "memory_id": tea, "tokens": 4 }] }),
            ),
            ("memory_summarize", json!({ "source_ids": sources })),
            ("memory_compact_commit", commit),
            ("memory_compact_abort", json!({ "plan_id": plan, "reason": "over" })),
            ("get_memory_stats", json!({})),
            ("memory_hygiene", json!({ "pass": "purge_expired" })),
            ("memory_explain", json!({ "id": tea })),
            ("memory_undo", json!({ "run_id": world.start_import() })),
            ("memory_gc_report", json!({})),
        ];
        let mut called = vec!["add_memory", "memory_gc_plan"];
        for (name, args) in calls {
            let told = done(&client, name, args).await;
            held(&tools, name, &told);
            called.push(name);
        }
        let missed: Vec<_> = tools.iter().filter(|tool| !called.contains(&tool.name.as_ref())).collect();
        assert!(missed.is_empty(), "not called: {missed:?}");
        client.cancel().await.unwrap();
    });
}

#[test]
fn annotations_say_what_a_tool_does() {
    let world = world();
    run(async {
        let tools = connect(&world).await.list_all_tools().await.unwrap();
        let hints = |name: &str| {
            let hints = tools.iter().find(|tool| tool.name == name).unwrap().annotations.clone().unwrap();
            assert_eq!(hints.open_world_hint, Some(false));
            (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint)
        };
        assert_eq!(hints("get_memory"), (Some(true), Some(false), Some(true)));
        assert_eq!(hints("add_memory"), (Some(false), Some(false), Some(false)));
        assert_eq!(hints("forget_memories"), (Some(false), Some(true), Some(true)));
        assert_eq!(hints("memory_compact_commit"), (Some(false), Some(true), Some(true)));
    });
}

#[test]
fn what_removes_looks_first() {
    let world = world();
    let gone = world.add(Draft::new("Lunch is at noon").tag("lunch").expiry(world.ahead("1h"))).id;
    let tea = world.add(Draft::new("Ann prefers tea").key("tea").tag("drink")).id;
    run(async {
        let client = connect(&world).await;
        let told = done(&client, "forget_memory", json!({ "id": "tea" })).await;
        assert_eq!(
            (&told["dry_run"], &told["memories"], &told["sample"][0]["id"]),
            (&json!(true), &json!(1), &json!(tea))
        );
        let told = done(&client, "forget_memories", json!({ "filter": { "tags": "drink" } })).await;
        assert_eq!((&told["dry_run"], &told["memories"]), (&json!(true), &json!(1)));
        assert!(world.is_live(tea));
        let told =
            done(&client, "forget_memories", json!({ "ids": [tea, "nobody"], "dry_run": false })).await;
        assert_eq!((&told["memories"], &told["missing"]), (&json!(1), &json!(1)));
        assert_eq!(world.ns.state(tea).unwrap(), Some(State::Tombstoned));
        let everything = refused(&client, "forget_memories", json!({ "filter": {}, "dry_run": false })).await;
        assert_eq!(everything, ("invalid_args".to_owned(), vec!["/filter".to_owned()]));
        let later = json!({ "query": "tea", "as_of": "2999-01-01T00:00:00Z" });
        let later = refused(&client, "search_memories", later).await;
        assert_eq!(later, ("invalid_args".to_owned(), vec!["/as_of".to_owned()]));

        world.advance("2h");
        let told = done(&client, "run_maintenance", json!({ "passes": ["expire"] })).await;
        assert_eq!((&told["dry_run"], &told["passes"][0]["planned"]), (&json!(true), &json!(1)));
        assert_eq!(world.ns.state(gone).unwrap(), Some(State::Expired));
        let told = done(&client, "run_maintenance", json!({ "passes": ["expire"], "dry_run": false })).await;
        assert_eq!((&told["passes"][0]["removed"], &told["passes"][0]["left"]), (&json!(1), &json!(0)));
        let run = told["passes"][0]["run"].clone();
        assert_eq!(world.ns.state(gone).unwrap(), Some(State::Tombstoned), "{run}");
    });
}

/// Servers of language models refuse a schema with alternatives at its top.
#[test]
fn no_schema_has_alternatives_at_its_top() {
    let world = world();
    run(async {
        let client = connect(&world).await;
        for tool in client.list_all_tools().await.unwrap() {
            for word in ["oneOf", "anyOf", "allOf"] {
                assert!(!tool.input_schema.contains_key(word), "{}: {word}", tool.name);
            }
            if tool.name == "supersede_memory" {
                assert!(tool.description.unwrap().ends_with("Give exactly one of text, new_id."));
            }
        }
        let both = json!({ "old_ids": ["a"], "text": "b", "new_id": "c" });
        let answer = call(&client, "supersede_memory", both).await;
        let told: Value = serde_json::from_str(&text(&answer)).unwrap();
        assert_eq!(told["code"], "invalid_args");
        assert_eq!(told["message"], "the arguments must have exactly one of text and new_id");
    });
}

#[test]
fn no_argument_widens_the_namespace() {
    let world = world();
    let other =
        world.db.namespace("other").unwrap().add(Draft::new("Bob prefers coffee").key("bob")).unwrap().id;
    run(async {
        let client = connect(&world).await;
        done(&client, "add_memory", json!({ "text": "Cy walks the dog" })).await;
        for tool in client.list_all_tools().await.unwrap() {
            let name: &'static str = Box::leak(tool.name.to_string().into_boxed_str());
            let (code, pointers) = refused(&client, name, json!({ "namespace": "other" })).await;
            assert!(code == "invalid_args" && pointers.contains(&"/namespace".to_owned()), "{name}");
        }
        let id = other.to_string();
        for name in [id.as_str(), "bob"] {
            assert_eq!(refused(&client, "get_memory", json!({ "id": name })).await.0, "memory_not_found");
            assert_eq!(
                refused(&client, "update_memory", json!({ "id": name, "text": "x" })).await.0,
                "memory_not_found"
            );
            let told = done(&client, "forget_memories", json!({ "ids": [name], "dry_run": false })).await;
            assert_eq!((&told["memories"], &told["missing"]), (&json!(0), &json!(1)));
        }
        assert_eq!(done(&client, "search_memories", json!({ "query": "coffee" })).await["hits"], json!([]));
        let why =
            client.read_resource(ReadResourceRequestParams::new(format!("memory://{id}"))).await.unwrap_err();
        assert!(why.to_string().contains("not found"), "{why}");
        assert_eq!(world.db.namespace("other").unwrap().get(other).unwrap().unwrap().version, 1);
    });
}

#[test]
fn answers_fit_their_tokens_and_go_on_with_a_cursor() {
    let world = world();
    for number in 0..30 {
        world.add(Draft::new(format!(
            "Note {number}: Ann counted {number} boxes in the yard{}",
            " of Ghent".repeat(20)
        )));
    }
    let long = world.add(Draft::new("Äß€".repeat(5_000)).key("long")).id;
    run(async {
        let client = connect(&world).await;
        for (name, items, mut args) in [
            (
                "search_memories",
                "hits",
                json!({ "query": "boxes in the yard", "limit": 50, "max_tokens": 300 }),
            ),
            ("list_memories", "items", json!({ "limit": 100, "max_tokens": 300, "tag": null })),
        ] {
            args.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            let mut seen = std::collections::BTreeSet::new();
            loop {
                let told = done(&client, name, args.clone()).await;
                let page = told[items].as_array().unwrap();
                let bytes: usize = page.iter().map(|one| one["text"].as_str().unwrap().len()).sum();
                assert!(bytes <= 1_200, "{name}: {bytes} bytes");
                for one in page {
                    assert!(seen.insert(one["id"].to_string()), "{name} tells {one} twice");
                }
                let Some(next) = told.get("next_cursor") else { break };
                args["cursor"] = next.clone();
            }
            assert!(seen.len() >= 30, "{name}: {}", seen.len());
        }
        let mut told = done(&client, "get_memory", json!({ "id": "long", "max_tokens": 100 })).await;
        let mut whole = told["text"].as_str().unwrap().to_owned();
        while let Some(next) = told.get("next_cursor").cloned() {
            told = done(&client, "get_memory", json!({ "id": "long", "max_tokens": 5_000, "cursor": next }))
                .await;
            whole.push_str(told["text"].as_str().unwrap());
        }
        assert_eq!(Some(whole), world.ns.text(long).unwrap());
        for (name, cursor) in [("get_memory", "1"), ("get_memory", "x"), ("get_memory", "999999")] {
            let told = refused(&client, name, json!({ "id": "long", "cursor": cursor })).await;
            assert_eq!(told, ("invalid_args".to_owned(), vec!["/cursor".to_owned()]), "{name} {cursor}");
        }
        assert_eq!(
            refused(&client, "search_memories", json!({ "query": "x", "cursor": "5000" })).await.1,
            ["/cursor"]
        );
    });
}

#[test]
fn a_search_counts_as_a_retrieval() {
    let world = world();
    let tea = world.add(Draft::new("Ann prefers tea")).id;
    run(async {
        done(&connect(&world).await, "search_memories", json!({ "query": "tea" })).await;
    });
    world.db.flush_access().unwrap();
    assert_eq!(world.row(tea).retrieval_count, 1);
}

/// Hits for which an answer has no room count on the page that has them.
#[test]
fn a_hit_counts_as_retrieved_where_it_is_given() {
    let world = world();
    let text = |at: usize| Draft::new(format!("Note {at}: Ann counted boxes{}", " in the yard".repeat(20)));
    let ids: Vec<_> = (0..12).map(|at| world.add(text(at)).id).collect();
    run(async {
        let client = connect(&world).await;
        let mut args = json!({ "query": "boxes in the yard", "limit": 50, "max_tokens": 200 });
        let mut pages = 0;
        while let Some(next) = done(&client, "search_memories", args.clone()).await.get("next_cursor") {
            args["cursor"] = next.clone();
            pages += 1;
        }
        assert!(pages > 2, "{pages}");
    });
    world.db.flush_access().unwrap();
    for id in ids {
        assert_eq!(world.row(id).retrieval_count, 1);
    }
}

#[test]
fn statistics_tell_the_most_frequent_tags() {
    let world = world();
    for at in 0..70 {
        world.add(Draft::new(format!("note {at}")).tag(format!("tag-{at:02}")).tag("all"));
    }
    run(async {
        let told = done(&connect(&world).await, "memory_stats", json!({})).await;
        let tags = told["local"]["by_tag"].as_object().unwrap();
        assert_eq!((tags.len(), &tags["all"], &told["local"]["tags_left_out"]), (50, &json!(70), &json!(21)));
        assert!(told["mem0"].get("agents_left_out").is_none(), "{told}");
    });
}

#[test]
fn resources_and_the_prompt_tell_what_is_remembered() {
    let world = world();
    let tea = world.add(Draft::new("Ann prefers tea \u{1b}[31m \u{202e} \u{7} <b>").pinned(true)).id;
    run(async {
        let client = connect(&world).await;
        assert_eq!(client.list_all_resources().await.unwrap()[0].uri, "memory://briefing");
        assert_eq!(client.list_all_resource_templates().await.unwrap()[0].uri_template, "memory://{id}");
        let read = |uri: String| client.read_resource(ReadResourceRequestParams::new(uri));
        let contents = |found: Vec<ResourceContents>| match &found[0] {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            other => panic!("{other:?}"),
        };
        // Control characters stand in JSON, where no terminal reads them.
        assert_eq!(
            contents(read("memory://briefing".to_owned()).await.unwrap().contents),
            format!("- {}\n", world.row(tea).text)
        );
        let memory: Value =
            serde_json::from_str(&contents(read(format!("memory://{tea}")).await.unwrap().contents)).unwrap();
        assert_eq!(memory["text"], json!(world.row(tea).text));
        for uri in ["memory://nobody", "memory://", "file:///etc/passwd", ""] {
            assert!(read(uri.to_owned()).await.is_err(), "{uri}");
        }
        assert_eq!(client.list_all_prompts().await.unwrap()[0].name, "recall");
        let ask = |topic: Value| {
            let args = json!({ "topic": topic }).as_object().unwrap().clone();
            client.get_prompt(GetPromptRequestParams::new("recall").with_arguments(args))
        };
        let told = ask(json!("tea")).await.unwrap();
        assert!(told.messages[0].content.as_text().unwrap().text.contains("Ann prefers tea"));
        assert!(ask(json!("")).await.is_err() && ask(json!(7)).await.is_err());
        assert!(client.get_prompt(GetPromptRequestParams::new("other")).await.is_err());
        assert!(client.call_tool(CallToolRequestParams::new("memory_forget_all")).await.is_err());
    });
}

/// A client that writes lines itself.
struct Raw(BufReader<DuplexStream>);

impl Raw {
    async fn new(world: &World) -> Self {
        Self::greet(serve(world)).await
    }

    async fn greet(server: DuplexStream) -> Self {
        let mut raw = Raw(BufReader::new(server));
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "raw", "version": "1" },
        });
        raw.say(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello }).to_string())
            .await;
        assert_eq!(raw.hear().await["result"]["serverInfo"]["name"], "oubliette");
        raw.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        raw
    }

    async fn say(&mut self, line: &str) {
        self.0.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{line:?}: {why}"))
    }
}

fn request(id: u64, name: &str, args: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{args}}}}}"#
    )
}

#[test]
fn a_message_that_is_none_is_answered_and_changes_nothing() {
    let world = world();
    run(async {
        let mut raw = Raw::new(&world).await;
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for (line, code, id) in [
            ("{", -32_700, json!(null)),
            (deep.as_str(), -32_600, json!(null)),
            // JSON that nobody can hold; whoever waits for the answer gets it.
            (&request(41, "add_memory", r#"{"text":"half a character \ud83d"}"#), -32_600, json!(41)),
            (
                &request(42, "add_memory", &format!(r#"{{"text":"a","metadata":{{"deep":{deep}}}}}"#)),
                -32_600,
                json!(42),
            ),
            (&request(43, "add_memory", r#"{"text":"a","importance":1e999}"#), -32_600, json!(43)),
            ("[]", -32_600, json!(null)),
            (r#"{"jsonrpc":"2.0","id":7}"#, -32_600, json!(7)),
            (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, -32_600, json!("a")),
            (&request(8, "add_memory", r#"{"text":"a","text":"b"}"#), -32_600, json!(8)),
            (
                r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":["add_memory"]}}"#,
                -32_602,
                json!(9),
            ),
        ] {
            raw.say(line).await;
            let told = raw.hear().await;
            let shown: String = line.chars().take(60).collect();
            assert_eq!((&told["id"], told["error"]["code"].as_i64()), (&id, Some(code)), "{shown}: {told}");
        }
        // A flood on one line, of which nothing is kept.
        let flood = "x".repeat(1 << 20);
        for _ in 0..17 {
            raw.0.write_all(flood.as_bytes()).await.unwrap();
        }
        raw.say("").await;
        assert_eq!(raw.hear().await["error"]["code"], -32_600);
        raw.say(&request(10, "add_memory", r#"{"text":7}"#)).await;
        assert_eq!(raw.hear().await["result"]["isError"], true);
        raw.say(r#"{"jsonrpc":"2.0","id":11,"method":"tools/list"}"#).await;
        assert_eq!(raw.hear().await["result"]["tools"].as_array().map(Vec::len), Some(20), "it goes on");
    });
    assert!(world.live().is_empty());
}

/// Each list is one page, so no answer names a cursor.
#[test]
fn a_list_refuses_a_cursor_that_no_answer_has_named() {
    let world = world();
    run(async {
        let client = connect(&world).await;
        let page = || Some(PaginatedRequestParams::default().with_cursor(Some("2".to_owned())));
        let why = client.list_tools(page()).await.unwrap_err().to_string();
        assert!(why.contains("cursor: must be that of an earlier answer"), "{why}");
        assert!(client.list_resources(page()).await.is_err());
        assert!(client.list_resource_templates(page()).await.is_err());
        assert!(client.list_prompts(page()).await.is_err());
        assert!(client.list_tools(None).await.unwrap().next_cursor.is_none());
    });
}

#[test]
fn a_client_that_hangs_up_ends_the_server() {
    let world = world();
    run(async {
        for goodbye in
            ["", "{\"jsonrpc\":\"2.0\",", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\""]
        {
            let (client, server) = duplex(1 << 16);
            let (read, write) = split(server);
            let server = ::tokio::spawn(Server::new(Toolbox::new(world.ns.clone())).serve(read, write));
            let (mut answers, mut client) = split(client);
            client.write_all(goodbye.as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            let mut rest = Vec::new();
            answers.read_to_end(&mut rest).await.unwrap();
            server.await.unwrap().unwrap();
        }
    });
}

#[test]
fn what_was_asked_before_the_end_is_answered() {
    let world = world();
    run(async {
        let (client, server) = duplex(1 << 16);
        let (read, write) = split(server);
        let server = ::tokio::spawn(Server::new(Toolbox::new(world.ns.clone())).serve(read, write));
        let (mut answers, mut client) = split(client);
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;
        let last = request(1, "add_memory", r#"{"text":"Ann prefers tea"}"#);
        let lines =
            format!("{hello}\n{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}}\n{last}\n");
        client.write_all(lines.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let mut rest = String::new();
        answers.read_to_string(&mut rest).await.unwrap();
        assert!(rest.lines().last().unwrap().contains(r#""decision":"stored""#), "{rest}");
        server.await.unwrap().unwrap();
    });
    assert_eq!(world.live().len(), 1);
}

/// A client may send a correction before the first text is answered, and search for what it has just written.
#[test]
fn what_is_sent_without_waiting_is_done_in_its_order() {
    for round in 0..10 {
        let world = world();
        run(async {
            let mut raw = Raw::new(&world).await;
            let texts = (1..=8).map(|n| format!(r#"{{"key":"port","text":"The port is {n}"}}"#));
            let mut lines: Vec<String> =
                (1..).zip(texts).map(|(id, text)| request(id, "add_memory", &text)).collect();
            lines.push(request(9, "search_memories", r#"{"query":"port"}"#));
            lines.push(request(10, "no_such_tool", "{}"));
            lines.push(request(11, "update_memory", r#"{"id":"port","text":7}"#));
            lines.push(request(12, "forget_memory", r#"{"id":"port","dry_run":false}"#));
            lines.push(r#"{"jsonrpc":"2.0","id":13,"method":"ping"}"#.to_owned());
            lines.push(request(14, "list_memories", "{}"));
            raw.say(&lines.join("\n")).await;
            let mut told = std::collections::BTreeMap::new();
            while told.len() < lines.len() {
                let answer = raw.hear().await;
                told.insert(answer["id"].as_u64().unwrap(), answer);
            }
            let hits = &told[&9]["result"]["structuredContent"];
            assert!(hits.to_string().contains("The port is 8"), "{round}: {hits}");
            assert!(!told[&14].to_string().contains("The port is"), "{round}: {}", told[&14]);
        });
    }
}

/// A desk that takes its time, and notes when a call begins and ends.
#[derive(Clone, Default)]
struct Slow(Arc<std::sync::Mutex<Vec<String>>>);

impl Slow {
    fn noted(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Desk for Slow {
    fn respond(&self, question: Question, _: &dyn Caller) -> Result<Value, ToolError> {
        let Question::Call { args, .. } = question else { return Ok(json!([])) };
        self.0.lock().unwrap().push(format!("begin {}", args["text"]));
        std::thread::sleep(Duration::from_millis(200));
        self.0.lock().unwrap().push(format!("end {}", args["text"]));
        Ok(json!({}))
    }
}

/// A write that is cancelled can't be called back once it has begun. What comes after it would be overtaken by it, so it waits for
/// its end; whoever only asks whether the server is there does not.
#[test]
fn what_comes_after_a_cancelled_write_waits_for_its_end() {
    run(async {
        let slow = Slow::default();
        let (client, server) = duplex(1 << 16);
        let (read, write) = split(server);
        ::tokio::spawn(Server::new(slow.clone()).serve(read, write));
        let mut raw = Raw::greet(client).await;
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"no"}}"#;
        let add = |id: u64| request(id, "add_memory", &format!(r#"{{"text":"{id}"}}"#));
        raw.say(&add(1)).await;
        while slow.noted().is_empty() {
            ::tokio::time::sleep(Duration::from_millis(1)).await;
        }
        raw.say(&[cancel, &add(2), r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#].join("\n")).await;
        assert_eq!(raw.hear().await["id"], 3);
        assert_eq!(slow.noted().len(), 1, "the pong came while the first write was at work");
        assert_eq!(raw.hear().await["id"], 2);
        let notes = [r#"begin "1""#, r#"end "1""#, r#"begin "2""#, r#"end "2""#];
        assert_eq!(slow.noted(), notes);
    });
}

/// A desk whose file is in other hands.
struct Shut;

impl Desk for Shut {
    fn respond(&self, _: Question, _: &dyn Caller) -> Result<Value, ToolError> {
        let why = "the file is in other hands".to_owned();
        Err(ToolError::of_error(&oubliette::Error::Unavailable { why }))
    }
}

/// A client drops a memory that is not found. One at which nobody could look is not such a memory.
#[test]
fn a_memory_at_which_nobody_could_look_is_not_told_as_missing() {
    run(async {
        let (client, server) = duplex(1 << 16);
        let (read, write) = split(server);
        ::tokio::spawn(Server::new(Shut).serve(read, write));
        let mut raw = Raw::greet(client).await;
        raw.say(r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"memory://a"}}"#).await;
        let answer = raw.hear().await;
        assert_eq!(answer["error"]["code"], -32_603, "{answer}");
    });
}

/// A resource has no second page, so it is the whole memory. What a client says before it greets is let be.
#[test]
fn a_resource_is_the_whole_memory() {
    let world = world();
    let text = "tea ".repeat(100_000);
    world.add(Draft::new(&text).key("tea"));
    run(async {
        let mut client = serve(&world);
        client.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").await.unwrap();
        let mut raw = Raw::greet(client).await;
        raw.say(r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"memory://tea"}}"#)
            .await;
        let answer = raw.hear().await;
        let told = answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        let memory: Value = serde_json::from_str(told).unwrap();
        assert!(memory["text"] == *text && memory.get("next_cursor").is_none(), "{}", told.len());
    });
}

/// The prompt has one argument, and a refusal names it.
#[test]
fn a_topic_that_is_too_long_is_refused_by_its_name() {
    let world = world();
    run(async {
        let mut raw = Raw::new(&world).await;
        let params = json!({ "name": "recall", "arguments": { "topic": "a".repeat(70_000) } });
        raw.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": params }).to_string())
            .await;
        let error = raw.hear().await["error"].clone();
        assert_eq!(error["code"], -32_602, "{error}");
        assert!(error["message"].as_str().unwrap().starts_with("topic: "), "{error}");
    });
}

/// A world with so many memories whose life is over.
fn over(count: usize) -> World {
    let world = world();
    let end = world.ahead("1h");
    let drafts = (0..count).map(|n| Draft::new(format!("Note {n}")).expiry(end)).collect();
    world.ns.add_all(drafts, &WriteOptions::default()).unwrap();
    world.advance("2h");
    world
}

fn expire() -> Value {
    json!({ "passes": ["expire"], "dry_run": false, "max_seconds": 60 })
}

#[test]
fn long_work_tells_how_far_it_is() {
    let world = over(200);
    run(async {
        let client = connect(&world).await;
        let told = done(&client, "run_maintenance", expire()).await;
        assert_eq!(told["passes"][0]["removed"], 200);
        assert!(!client.service().0.lock().unwrap().is_empty(), "no progress was told");
    });
}

/// A caller who leaves before the first part is done.
#[derive(Default)]
struct Hasty(Cell<u64>);

impl Caller for Hasty {
    fn progress(&self, _: u64, _: Option<u64>) {
        self.0.set(self.0.get() + 1);
    }

    fn is_gone(&self) -> bool {
        true
    }
}

#[test]
fn a_caller_who_leaves_is_not_worked_for_to_the_end() {
    let world = over(4_000);
    let (tools, hasty) = (Toolbox::new(world.ns.clone()), Hasty::default());
    let told = tools.call_for("run_maintenance", expire(), &hasty).unwrap();
    assert_eq!(hasty.0.get(), 1, "one part, then it ends: {told}");
    let first = told["passes"][0]["removed"].as_u64().unwrap();
    let rest = tools.call("run_maintenance", expire()).unwrap()["passes"][0]["removed"].as_u64().unwrap();
    assert_eq!(first + rest, 4_000, "the next call goes on with the rest");
}

#[test]
fn a_call_that_is_cancelled_gets_no_answer() {
    let world = over(4_000);
    run(async {
        let mut raw = Raw::new(&world).await;
        let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,"reason":"enough"}}"#;
        let call = request(5, "run_maintenance", &expire().to_string());
        raw.say(&format!("{call}\n{cancel}")).await;
        ::tokio::time::sleep(Duration::from_millis(600)).await;
        raw.say(&request(6, "memory_stats", "{}")).await;
        assert_eq!(raw.hear().await["id"], 6);
    });
}
