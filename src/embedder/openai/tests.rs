//! Against a server that says what each test tells it to.

use super::*;
use crate::error::ErrorKind;
use crate::server::fake::{self, Seen, http};
use std::net::TcpListener;
use std::thread::JoinHandle;

const KEY: &str = "sk-very-secret-0123456789";

fn serve(answers: Vec<Vec<u8>>) -> (OpenAiOptions, JoinHandle<Vec<Seen>>) {
    let (base_url, server) = fake::serve(answers);
    let mut options = OpenAiOptions::new(base_url, "tiny", 2);
    options.api_key = Some(KEY.to_owned());
    options.timeout = Duration::from_secs(20);
    (options, server)
}

fn ok(vectors: &[(usize, &str)]) -> Vec<u8> {
    let items: Vec<String> = vectors
        .iter()
        .map(|(index, vector)| format!(r#"{{"object":"embedding","index":{index},"embedding":{vector}}}"#))
        .collect();
    http("200 OK", &format!(r#"{{"object":"list","data":[{}],"usage":{{}}}}"#, items.join(",")))
}

#[test]
fn vectors_come_in_the_order_of_their_texts() {
    let (mut options, server) = serve(vec![ok(&[(1, "[3,4]"), (0, "[1,2.5]")]), ok(&[(0, "[5,6]")])]);
    options.batch_size = 2;
    options.send_dimensions = true;
    let embedder = OpenAiEmbedder::new(options).unwrap();
    assert_eq!((embedder.id(), embedder.dimensions()), ("openai:tiny@2", 2));
    assert_eq!(embedder.embed(&["a", "b\n\"", "c"]).unwrap(), [[1.0, 2.5], [3.0, 4.0], [5.0, 6.0]]);
    let seen = server.join().unwrap();
    assert!(seen[0].head.starts_with("post /v1/embeddings HTTP/1.1"), "{}", seen[0].head);
    assert!(seen[0].head.contains(&format!("authorization: Bearer {KEY}\r\n")), "{}", seen[0].head);
    let asked = serde_json::json!({"model": "tiny", "input": ["a", "b\n\""], "encoding_format": "float", "dimensions": 2});
    assert_eq!(seen[0].body, asked);
    assert_eq!(seen[1].body["input"], serde_json::json!(["c"]));
}

#[test]
fn no_text_is_no_request() {
    let embedder = OpenAiEmbedder::new(OpenAiOptions::new("http://127.0.0.1:1/v1", "tiny", 2)).unwrap();
    assert!(embedder.embed(&[]).unwrap().is_empty());
    assert_eq!(embedder.embed(&["a"]).unwrap_err().kind(), ErrorKind::Embedding);
}

#[test]
fn a_failing_server_is_asked_again() {
    let late = http("503 Service Unavailable", "later");
    let busy = http("429 Too Many Requests", "slow down");
    let (options, server) = serve(vec![late, busy, ok(&[(0, "[1,2]")])]);
    assert_eq!(OpenAiEmbedder::new(options).unwrap().embed_query("a").unwrap(), [1.0, 2.0]);
    assert_eq!(server.join().unwrap().len(), 3);
}

#[test]
fn retries_end() {
    let (mut options, server) = serve(vec![http("500 Oops", "first"), http("500 Oops", "second")]);
    options.retries = 1;
    let error = OpenAiEmbedder::new(options).unwrap().embed_query("a").unwrap_err();
    assert_eq!(error.to_string(), "embedder openai:tiny@2: HTTP 500: second");
    assert_eq!(server.join().unwrap().len(), 2);
}

#[test]
fn the_key_is_shown_nowhere() {
    let (options, server) = serve(vec![http("401 Unauthorized", &format!("Incorrect API key:\n {KEY}"))]);
    assert!(!format!("{options:?}").contains("secret"));
    let embedder = OpenAiEmbedder::new(options).unwrap();
    assert!(!format!("{embedder:?}").contains("secret"));
    let error = embedder.embed_query("a").unwrap_err();
    assert_eq!(error.to_string(), "embedder openai:tiny@2: HTTP 401: Incorrect API key: …");
    assert!(!format!("{error:?}").contains("secret"));
    assert_eq!(server.join().unwrap().len(), 1, "a refusal is not asked again");
}

#[test]
fn bad_answers_are_errors() {
    let whole = ok(&[(0, "[1,2]")]);
    let cases = [
        (ok(&[]), "0 vectors for 1 texts"),
        (ok(&[(0, "[1,2]"), (1, "[1,2]")]), "2 vectors for 1 texts"),
        (ok(&[(0, "[1,2,3]")]), "3 dimensions instead of 2"),
        (ok(&[(0, "[]")]), "0 dimensions instead of 2"),
        (ok(&[(1, "[1,2]")]), "index 1"),
        (ok(&[(0, "[0,0]")]), "not finite, or zero"),
        (ok(&[(0, "[1e39,0]")]), "number out of range"),
        (ok(&[(0, "\"AACAPwAAAEA=\"")]), "not an answer with embeddings"),
        (http("200 OK", "<html>welcome</html>"), "not an answer with embeddings"),
        (http("200 OK", r#"{"error":"no such model"}"#), "not an answer with embeddings"),
        (http("302 Found\r\nLocation: http://127.0.0.1:1/", ""), "HTTP 302"),
        (whole[..whole.len() - 5].to_vec(), "broke off"),
        (b"not http at all".to_vec(), "embedder openai:tiny@2"),
        (Vec::new(), "embedder openai:tiny@2"),
    ];
    for (answer, why) in cases {
        let (options, server) = serve(vec![answer]);
        let error = OpenAiEmbedder::new(options).unwrap().embed_query("a").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Embedding, "{error}");
        assert!(error.to_string().contains(why), "{error} is not of {why}");
        server.join().unwrap();
    }
}

#[test]
fn two_vectors_of_one_text_are_refused() {
    let (options, server) = serve(vec![ok(&[(0, "[1,2]"), (0, "[3,4]")])]);
    let error = OpenAiEmbedder::new(options).unwrap().embed(&["a", "b"]).unwrap_err();
    assert!(error.to_string().contains("index 0 stands twice"), "{error}");
    server.join().unwrap();
}

#[test]
fn an_endless_answer_is_cut_off() {
    let mut endless = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
    endless.resize(ANSWER_BYTES_MAX + 10_000, b' ');
    let (options, server) = serve(vec![endless]);
    let error = OpenAiEmbedder::new(options).unwrap().embed_query("a").unwrap_err();
    assert!(error.to_string().contains("broke off"), "{error}");
    server.join().unwrap();
}

#[test]
fn a_silent_server_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let mut options = OpenAiOptions::new(base_url, "tiny", 2);
    options.timeout = Duration::from_millis(200);
    let error = OpenAiEmbedder::new(options).unwrap().embed_query("a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Embedding);
    assert!(error.to_string().contains("timeout"), "{error}");
}

#[test]
fn options_have_bounds() {
    let good = || OpenAiOptions::new("http://localhost/v1", "m", 2);
    OpenAiEmbedder::new(good()).unwrap();
    let refused = |field: &str, change: fn(&mut OpenAiOptions)| {
        let mut options = good();
        change(&mut options);
        let error = OpenAiEmbedder::new(options).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Invalid && error.to_string().starts_with(field),
            "{field}: {error}"
        );
        assert!(!format!("{error:?}").contains("secret"), "{error}");
    };
    refused("dimensions", |options| options.dimensions = 0);
    refused("dimensions", |options| options.dimensions = 4097);
    refused("model", |options| options.model.clear());
    refused("model", |options| options.model = "m".repeat(201));
    refused("batch_size", |options| options.batch_size = 0);
    refused("batch_size", |options| options.batch_size = 2049);
    refused("timeout", |options| options.timeout = Duration::ZERO);
    refused("timeout", |options| options.timeout = Duration::from_secs(3601));
    refused("retries", |options| options.retries = 11);
    refused("base_url", |options| options.base_url = "localhost/v1".to_owned());
    refused("base_url", |options| options.base_url = "file:///etc/passwd".to_owned());
    refused("base_url", |options| options.base_url = "http://me:secret@localhost/v1".to_owned());
    refused("api_key", |options| options.api_key = Some("secret\r\nX: y".to_owned()));
}
