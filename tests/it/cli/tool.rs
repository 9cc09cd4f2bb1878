//! `tool` and `serve`: calls of language models on standard input.

use serde_json::{Value, json};

use super::sandbox::{Answer, Sandbox, has};

fn call(name: &str, args: Value) -> String {
    json!({ "type": "tool_call", "name": name, "args": args }).to_string()
}

/// The lines of an answer, each a document.
fn lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.code, 0, "{}", answer.err);
    answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_envelope_is_answered_with_a_line() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Ann prefers tea"]);
    let mut input =
        [call("get_memory_stats", json!({})), String::new(), "{".to_owned()].join("\n").into_bytes();
    input.extend(b"\n\xff\xfe\n");
    input.extend(vec![b'x'; (16 << 20) + 1]);
    input.extend(format!("\n{}", call("memory.gc_report", json!({}))).bytes());
    let told = lines(&sandbox.run_with(&["tool"], &input));
    let kinds: Vec<(&str, &str)> = told
        .iter()
        .map(|one| (one["type"].as_str().unwrap(), one["code"].as_str().unwrap_or_default()))
        .collect();
    let result = ("tool_result", "");
    let wrong = |code| ("tool_error", code);
    assert_eq!(
        kinds,
        [result, wrong("invalid_json"), wrong("invalid_envelope"), wrong("invalid_envelope"), result]
    );
    assert_eq!(told[0]["result"]["local"]["total"], 1);
}

#[test]
fn the_tools_reach_the_namespace_of_the_command() {
    let sandbox = Sandbox::new();
    sandbox.document(&["--namespace", "other", "add", "Bob prefers coffee"]);
    sandbox.document(&["add", "Ann prefers tea"]);
    let stats = call("get_memory_stats", json!({}));
    let total = |namespace: &str| {
        lines(&sandbox.run_with(&["--namespace", namespace, "tool"], stats.as_bytes()))[0]["result"]["mem0"]["by_agent"]
            .clone()
    };
    assert_eq!(total("other"), json!({ "shared-memory": 1 }));
    assert_eq!(total("nobody"), json!({ "shared-memory": 0 }));
}

#[test]
fn schemas_are_printed_for_whoever_registers_them() {
    let sandbox = Sandbox::new();
    let told = sandbox.document(&["tool", "--schemas"]);
    assert!(!sandbox.path("m.oub").exists(), "whoever only asks makes no file");
    let combined = sandbox.write("combined.toml", "tools.allow_combined = true");
    let more = sandbox.document(&["--policy", &combined, "tool", "--schemas"]);
    assert_eq!(more["tools"].as_array().unwrap().len(), 11);
    // The first call makes the file, as any first write does.
    let called = lines(&sandbox.run_with(&["tool"], call("memory.gc_report", json!({})).as_bytes()));
    assert_eq!(called[0]["type"], "tool_result");
    assert_eq!(sandbox.document(&["--read-only", "tool", "--schemas"]), told);
    has(&told["envelope"], &["type", "properties", "required", "additionalProperties"]);
    assert_eq!(told["tools"].as_array().unwrap().len(), 10);
    has(&told["tools"][0], &["name", "description", "inputSchema", "outputSchema", "annotations"]);
}

#[test]
fn a_summarizer_writes_for_whoever_calls() {
    let sandbox = Sandbox::new();
    // More words than the memory says anything with, so that a summary can be shorter.
    let text = "Ann prefers tea with milk. That is how it was, and so it will be for all of us. Well, when would you do that?";
    let id = sandbox.document(&["add", text])["id"].clone();
    let asked = call("memory.summarize", json!({ "source_ids": [id] }));
    let told = |arguments: &[&str]| lines(&sandbox.run_with(arguments, asked.as_bytes()))[0].clone();
    has(&told(&["tool"])["result"], &["format", "instructions", "sources", "aggregates", "limits"]);
    has(&told(&["tool", "--summarizer", "builtin"])["result"], &["topic", "summary", "source_ids"]);
    assert_eq!(told(&["tool", "--summarizer", "false"])["type"], "tool_error");
}

#[cfg(feature = "mcp")]
#[test]
fn serve_answers_until_its_input_ends() {
    let sandbox = Sandbox::new();
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let add = json!({ "name": "add_memory", "arguments": { "text": "Ann prefers tea" } });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": add }),
    ];
    let input: String = messages.iter().map(|message| format!("{message}\n")).collect();
    let told = lines(&sandbox.run_with(&["serve", "--mcp"], input.as_bytes()));
    assert_eq!(told[1]["result"]["structuredContent"]["decision"], "stored", "{told:?}");
    let cut = &input[..input.len() - 9];
    assert_eq!(
        lines(&sandbox.run_with(&["serve", "--mcp"], cut.as_bytes())).len(),
        1,
        "half a message is none"
    );
    assert_eq!(sandbox.document(&["list"])["items"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.run(&["serve"]).code, 2, "it says what to speak");
}

#[cfg(feature = "mcp")]
#[test]
fn setup_shows_what_a_client_must_be_told() {
    let sandbox = Sandbox::new();
    for client in ["claude", "cursor", "codex"] {
        let told = sandbox.document(&["--namespace", "team", "setup", client]);
        let lines = told["lines"].as_str().unwrap();
        for word in ["m.oub", "team", "serve", "--mcp"] {
            assert!(lines.contains(word), "{lines}");
        }
    }
    // The server is asked for what this call was asked for, from whatever folder the client starts it.
    let asked = ["--embedder", "minilm:models", "--durability", "fast", "--policy", "p.toml", "--read-only"];
    std::fs::write(sandbox.path("p.toml"), "").unwrap();
    let told = sandbox.document(&[&asked[..], &["setup", "codex"]].concat());
    let table: toml::Table = told["lines"].as_str().unwrap().parse().unwrap();
    let args = table["mcp_servers"]["oubliette"]["args"].as_array().unwrap();
    let args: Vec<&str> = args.iter().map(|word| word.as_str().unwrap()).collect();
    let value = |option: &str| args[args.iter().position(|word| *word == option).unwrap() + 1];
    assert!(value("--embedder").starts_with("minilm:/") && value("--embedder").ends_with("/models"));
    assert!(value("--policy").starts_with('/') && value("--policy").ends_with("/p.toml"));
    assert!(value("--durability") == "fast" && args.contains(&"--read-only"), "{args:?}");
    assert!(!sandbox.path("m.oub").exists(), "nothing is written");
    assert_eq!(sandbox.run(&["setup", "nobody"]).code, 2);
}

/// As for every other command that reads lines, the last one may end without a line feed.
#[cfg(feature = "mcp")]
#[test]
fn the_last_message_to_a_server_needs_no_line_feed() {
    let sandbox = Sandbox::new();
    let client = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let add = json!({ "name": "add_memory", "arguments": { "text": "Ann prefers tea" } });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": add }),
    ];
    let input = messages.map(|message| message.to_string()).join("\n");
    let answer = sandbox.run_with(&["serve", "--mcp"], input.as_bytes());
    assert_eq!((answer.code, answer.out.lines().count()), (0, 2), "{answer:?}");
    assert_eq!(sandbox.document(&["list"])["items"].as_array().unwrap().len(), 1);
}
