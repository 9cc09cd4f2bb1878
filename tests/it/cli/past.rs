//! What was, by the command line: reads of the past.

use serde_json::{Value, json};

use super::sandbox::{NOW, Sandbox};

fn texts(items: &Value) -> Vec<&str> {
    items.as_array().unwrap().iter().map(|item| item["text"].as_str().unwrap()).collect()
}

#[test]
fn search_list_and_get_read_the_past() {
    let sandbox = Sandbox::new();
    let now = |at: &'static str| ["--db", "m.oub", "--json", "--now", at];
    let run = |at, rest: &[&str]| sandbox.plain(&[&now(at)[..], rest].concat(), b"");
    run("2026-02-01T00:00:00Z", &["add", "Ann lives in Ghent", "--key", "home"]).document();
    run("2026-02-20T00:00:00Z", &["add", "Ann lives in Bruges", "--key", "home"]).document();
    let then = "2026-02-10T00:00:00Z";
    let found = run(NOW, &["search", "Ann", "--as-of", then]).document();
    assert_eq!(texts(&found["hits"]), ["Ann lives in Ghent"]);
    let past = json!({ "valid_at": then, "known_at": then, "limbo": 0, "statistics": "now" });
    assert_eq!(found["plan"]["past"], past);
    let listed = run(NOW, &["list", "--known-at", then]).document();
    assert_eq!(texts(&listed["items"]), ["Ann lives in Ghent"]);
    assert_eq!(run(NOW, &["get", "home", "--as-of", then]).document()["text"], "Ann lives in Ghent");
    assert_eq!(texts(&run(NOW, &["list", "--valid-at", then]).document()["items"]), ["Ann lives in Bruges"]);
    assert_eq!(run(NOW, &["search", "Ann"]).document()["plan"]["past"], Value::Null);

    for (arguments, field) in [
        (&["search", "Ann", "--as-of", "2027-01-01T00:00:00Z"][..], "as_of"),
        (&["search", "Ann", "--as-of", "tomorrow"], "--as-of"),
        (&["list", "--allow-partial"], "--allow-partial"),
        (&["list", "--state", "any", "--as-of", then], "state"),
    ] {
        let (kind, message) = run(NOW, arguments).error();
        assert_eq!((kind.as_str(), message.split(':').next()), ("Invalid", Some(field)), "{arguments:?}");
    }
    let before = run(NOW, &["get", "home", "--as-of", "2026-01-01T00:00:00Z"]).error();
    assert_eq!(before.0, "NotFound");
    assert!(
        before.1.starts_with("memory not found: home at 2026-01-01T00:00:00Z; it is there now"),
        "{before:?}"
    );
    assert_eq!(
        run(NOW, &["get", "nobody", "--as-of", then]).error().1,
        format!("memory not found: nobody at {then}")
    );
    assert_eq!(run(NOW, &["list", "--as-of", then, "--known-at", then]).code, 2, "one or the other");
}

#[test]
fn get_names_the_end_of_a_chain() {
    let sandbox = Sandbox::new();
    let id = |answer: &Value| answer["id"].as_str().unwrap().to_owned();
    let first = id(&sandbox.document(&["add", "Ann lives in Ghent", "--key", "home"]));
    sandbox.document(&["add", "Ann lives in Bruges", "--key", "home"]);
    let last = id(&sandbox.document(&["add", "Ann lives in Rome", "--key", "home"]));
    assert_eq!(sandbox.document(&["get", &first])["resolves_to"], last);
    assert_eq!(sandbox.document(&["get", &last])["resolves_to"], Value::Null);
}

#[test]
fn changes_pages_through_the_journal() {
    let sandbox = Sandbox::new();
    for text in ["Ann lives in Ghent", "It rains"] {
        sandbox.document(&["add", text]);
    }
    let page = sandbox.document(&["changes", "--limit", "1"]);
    let change = &page["changes"][0];
    assert_eq!(
        (&change["op"], &change["actor"], &change["at"]),
        (&json!("insert"), &json!("caller"), &json!(NOW))
    );
    assert!(change["id"].is_string() && change["seq"].is_u64() && page["next"].is_u64());
    assert!(!page.to_string().contains("Ghent"));
    let next = page["next"].to_string();
    let rest = sandbox.document(&["changes", "--since", &next]);
    assert_eq!(rest["changes"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.run(&["changes", "--since", "99999"]).error().0, "Invalid");
}

/// A memory that will be true, or was, is told of as such in its history. It read `live`.
#[test]
fn history_tells_what_is_true_later_and_what_has_ended() {
    let sandbox = Sandbox::new();
    let told = |name: &str| {
        let answer = sandbox.plain(&["--db", "m.oub", "--now", NOW, "history", name], b"");
        assert_eq!(answer.code, 0, "{answer:?}");
        // A cell breaks between its words.
        answer
            .out
            .split(|c: char| c.is_whitespace() || c == '│')
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    };
    sandbox.document(&["add", "Ann moves to Rome", "--key", "rome", "--valid-from", "2026-06-01T00:00:00Z"]);
    sandbox.document(&["add", "Ann lives in Ghent", "--key", "ghent", "--valid-to", "2026-02-01T00:00:00Z"]);
    sandbox.document(&["add", "Ann has a dog", "--key", "dog"]);
    let (rome, ghent, dog) = (told("rome"), told("ghent"), told("dog"));
    assert!(rome.contains("not true yet: valid from 2026-06-01"), "{rome}");
    assert!(ghent.contains("no longer true: ended 2026-02-01"), "{ghent}");
    assert!(dog.contains("live"), "{dog}");
    assert_eq!(sandbox.document(&["history", "rome"])["versions"][0]["state"], "live");
}

/// The state of a memory in a search of the past is the one that it had then.
#[test]
fn why_tells_the_state_of_then() {
    let sandbox = Sandbox::new();
    let now = |at: &'static str| ["--db", "m.oub", "--json", "--now", at];
    let run = |at, rest: &[&str]| sandbox.plain(&[&now(at)[..], rest].concat(), b"").document();
    let first = run("2026-02-01T00:00:00Z", &["add", "Ann lives in Ghent", "--key", "home"])["id"].clone();
    run("2026-02-20T00:00:00Z", &["add", "Ann lives in Bruges", "--key", "home"]);
    let first = first.as_str().unwrap();
    let then = run(NOW, &["search", "Ann", "--as-of", "2026-02-10T00:00:00Z", "--why", first]);
    assert_eq!((&then["state"], &then["reason"]), (&json!("live"), &json!("hit")));
    let today = run(NOW, &["search", "Ann", "--why", first]);
    assert_eq!((&today["state"], &today["reason"]), (&json!("superseded"), &json!("not_visible")));
}

/// Of what is gone nothing is kept that these options could ask for.
#[test]
fn a_list_of_what_is_gone_refuses_what_it_can_not_do() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Ann lives in Ghent", "--key", "home"]);
    sandbox.document(&["forget", "home", "--yes"]);
    let list = ["list", "--state", "tombstoned"];
    assert_eq!(sandbox.document(&list)["items"].as_array().unwrap().len(), 1);
    for more in [&["--filter", r#"{"key":"x"}"#][..], &["--agent", "a"], &["--newest"], &["--as-of", NOW]] {
        let refused = sandbox.run(&[&list[..], more].concat());
        assert_eq!(refused.code, 2, "{more:?}: {}", refused.out);
        assert!(refused.err.contains("--state tombstoned goes without"), "{more:?}: {}", refused.err);
    }
}

#[test]
fn hits_that_are_not_shown_are_not_counted() {
    let sandbox = Sandbox::new();
    for at in 0..4 {
        sandbox.document(&["add", &format!("apple number {at} is in the yard"), "--key", &format!("k{at}")]);
    }
    let found = sandbox.document(&["search", "apple", "--track", "--max-tokens", "12"]);
    assert_eq!(found["hits"].as_array().unwrap().len(), 1);
    let count = |at| sandbox.document(&["get", &format!("k{at}")])["retrieval_count"].as_u64().unwrap();
    assert_eq!((0..4).map(count).sum::<u64>(), 1);
}
