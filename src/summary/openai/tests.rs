//! Against a server that says what each test tells it to.

use super::*;
use crate::error::ErrorKind;
use crate::model::Kind;
use crate::server::fake::{Seen, http, serve};
use crate::summary::{PackLimits, PackSource};
use std::net::TcpListener;
use std::thread::JoinHandle;

const KEY: &str = "sk-very-secret-0123456789";

fn pack() -> InputPack {
    let text = "Ann: The boiler broke on 3 March.".to_owned();
    let (id, kind) = ("1".to_owned(), Kind::Message);
    let source = PackSource { id, ts: 0, channel: None, author_kind: None, kind, text };
    InputPack::new(vec![source], vec![], PackLimits { bullets: 25, patterns: 10 })
}

fn writer(answers: Vec<Vec<u8>>) -> (OpenAiSummarizer, JoinHandle<Vec<Seen>>) {
    let (base_url, server) = serve(answers);
    let mut options = ChatOptions::new(base_url, "tiny");
    (options.api_key, options.timeout) = (Some(KEY.to_owned()), Duration::from_secs(20));
    (OpenAiSummarizer::new(options).unwrap(), server)
}

fn said(content: &str) -> Vec<u8> {
    let choice =
        json!({"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"});
    http("200 OK", &json!({"object": "chat.completion", "choices": [choice], "usage": {}}).to_string())
}

#[test]
fn the_pack_is_asked_and_the_answer_given_back() {
    let (writer, server) = writer(vec![said("{\"topic\": \"boiler\"}")]);
    assert_eq!(writer.summarize(&pack()).unwrap(), "{\"topic\": \"boiler\"}");
    let seen = server.join().unwrap().remove(0);
    assert!(seen.head.starts_with("post /v1/chat/completions HTTP/1.1"), "{}", seen.head);
    assert!(seen.head.contains(&format!("authorization: Bearer {KEY}\r\n")), "{}", seen.head);
    assert_eq!(seen.body["response_format"], json!({"type": "json_object"}));
    let messages = seen.body["messages"].as_array().unwrap();
    assert_eq!((messages.len(), messages[0]["role"].as_str()), (2, Some("system")));
    assert_eq!(messages[0]["content"], pack().instructions);
    let shown: Value = serde_json::from_str(messages[1]["content"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&shown["sources"][0]["text"], shown.get("instructions")),
        (&json!(pack().sources[0].text), None)
    );
}

#[test]
fn a_bad_answer_is_given_back_with_its_faults() {
    let (writer, server) = writer(vec![said("better")]);
    let faults = [Fault::new("/topic", "is missing"), Fault::new("", "must be an object")];
    assert_eq!(writer.repair(&pack(), "bad", &faults).unwrap().unwrap(), "better");
    let seen = server.join().unwrap().remove(0);
    let messages = seen.body["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert_eq!(messages[2]["content"], "bad");
    let told = messages[3]["content"].as_str().unwrap();
    assert!(
        told.contains("- /topic is missing") && told.contains("- the answer must be an object"),
        "{told}"
    );
}

#[test]
fn a_failing_server_is_asked_again() {
    let (writer, server) = writer(vec![http("503 Service Unavailable", "later"), said("now")]);
    assert_eq!(writer.summarize(&pack()).unwrap(), "now");
    assert_eq!(server.join().unwrap().len(), 2);
}

#[test]
fn bad_answers_are_errors_without_the_key() {
    let choice = |choice: Value| http("200 OK", &json!({"choices": [choice]}).to_string());
    let cases = [
        (http("200 OK", "<html>welcome</html>"), "not an answer of a model"),
        (http("200 OK", r#"{"choices":[]}"#), "without a choice"),
        (said(""), "an empty answer"),
        (choice(json!({"message": {"content": null}})), "an empty answer"),
        (choice(json!({"message": {"content": null, "refusal": format!("no, {KEY}")}})), "refuses: no, …"),
        (choice(json!({"message": {"content": "{\"to"}, "finish_reason": "length"})), "cut at the length"),
        (choice(json!({"message": {"content": 7}})), "not an answer of a model"),
        (http("401 Unauthorized", &format!("Incorrect API key: {KEY}")), "HTTP 401: Incorrect API key: …"),
        (http("302 Found\r\nLocation: http://127.0.0.1:1/", ""), "HTTP 302"),
        (said("x")[..60].to_vec(), "openai:tiny"),
        (Vec::new(), "openai:tiny"),
    ];
    for (answer, why) in cases {
        let (writer, server) = writer(vec![answer]);
        let error = writer.summarize(&pack()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(error.to_string().contains(why), "{error} is not of {why}");
        assert!(!format!("{error:?} {writer:?}").contains("secret"), "{error:?}");
        server.join().unwrap();
    }
}

#[test]
fn an_endless_answer_is_cut_off() {
    let mut endless = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
    endless.resize(ANSWER_BYTES_MAX + 10_000, b' ');
    let (writer, server) = writer(vec![endless]);
    assert!(writer.summarize(&pack()).unwrap_err().to_string().contains("broke off"));
    server.join().unwrap();
}

#[test]
fn a_silent_server_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = ChatOptions::new(format!("http://{}", listener.local_addr().unwrap()), "tiny");
    options.timeout = Duration::from_millis(200);
    let error = OpenAiSummarizer::new(options).unwrap().summarize(&pack()).unwrap_err();
    assert!(error.to_string().contains("timeout"), "{error}");
}

#[test]
fn options_have_bounds() {
    let refused = |field: &str, change: fn(&mut ChatOptions)| {
        let mut options = ChatOptions::new("http://localhost/v1", "m");
        change(&mut options);
        assert!(!format!("{options:?}").contains("secret\r\n"), "{options:?}");
        let error = OpenAiSummarizer::new(options).unwrap_err();
        assert!(error.kind() == ErrorKind::Invalid && error.to_string().starts_with(field), "{error}");
    };
    refused("model", |options| options.model.clear());
    refused("timeout", |options| options.timeout = Duration::ZERO);
    refused("retries", |options| options.retries = 11);
    refused("base_url", |options| options.base_url = "http://me:secret@localhost/v1".to_owned());
    refused("api_key", |options| options.api_key = Some("secret\r\nX: y".to_owned()));
}
