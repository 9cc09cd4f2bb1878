//! Options that were passed over in silence: each of them is heeded.

use serde_json::{Value, json};

use super::sandbox::Sandbox;

#[test]
fn the_bound_of_tokens_holds_for_each_of_many_queries() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    sandbox.write("q.jsonl", "{\"query\":\"Ann prefers tea\",\"mode\":\"text\"}\n");
    let keys = |more: &[&str]| {
        let search = ["search", "--queries", "q.jsonl"];
        let answer = sandbox.run(&[&search[..], more].concat()).out;
        serde_json::from_str::<Value>(answer.trim()).unwrap()["keys"].as_array().unwrap().len()
    };
    let one = sandbox.document(&["search", "Ann prefers tea", "--mode", "text", "--max-tokens", "5"]);
    assert_eq!((keys(&[]), one["hits"].as_array().unwrap().len()), (2, 1));
    assert_eq!((keys(&["--max-tokens", "5"]), keys(&["--max-tokens", "1"])), (1, 0));
    let told =
        sandbox.plain(&["--db", "m.oub", "search", "--queries", "q.jsonl", "--max-tokens", "1"], b"").out;
    assert!(told.contains("has more than 1 token"), "{told}");
}
