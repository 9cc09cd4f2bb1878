//! The fields of `add` and `update`: a flag that says nothing, or the wrong thing, is refused and changes nothing.

use serde_json::{Value, json};

use super::sandbox::Sandbox;

#[track_caller]
fn refused(sandbox: &Sandbox, arguments: &[&str], why: &str) {
    let answer = sandbox.run(arguments);
    let (kind, message) = answer.error();
    assert_eq!(kind, "Invalid", "{arguments:?}: {message}");
    assert!(message.contains(why), "{arguments:?}: {message}");
}

#[test]
fn an_update_with_an_unknown_word_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "one", "--key", "a", "--tier", "working", "--significance", "core"]);
    let before = sandbox.document(&["get", "a"]);
    refused(&sandbox, &["update", "a", "--significance", "hgh"], "significance: must be routine");
    refused(&sandbox, &["update", "a", "--field", "tier=\"foo\""], "tier: must be working");
    refused(&sandbox, &["update", "a", "--kind", "foo"], "kind: must be");
    assert_eq!(sandbox.document(&["get", "a"]), before);
}

/// A tier that was mistyped was stored as semantic, so what was to be forgotten in a month stayed for good. A line of an import may
/// have any, and gets the default with a warning.
#[test]
fn a_tier_that_was_mistyped_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "one", "--key", "a", "--tier", "EPISODIC"]);
    let before = sandbox.document(&["get", "a"]);
    for command in [&["add", "two", "--key", "b"][..], &["update", "a"]] {
        let typed = [command, &["--tier", "epsodic"]].concat();
        let told = sandbox.plain(&[&["--db", "m.oub"], &typed[..]].concat(), b"");
        assert_eq!((told.code, told.out.as_str()), (2, ""), "{told:?}");
        assert!(told.err.contains("working, episodic, semantic, procedural"), "{told:?}");
        assert!(told.err.contains("'episodic'"), "{told:?}");
        assert_eq!(sandbox.run(&typed).error().0, "Usage");
        refused(&sandbox, &[command, &["--field", "tier=\"epsodic\""]].concat(), "is the nearest");
    }
    assert_eq!(sandbox.document(&["get", "a"]), before);
    assert_eq!(sandbox.run(&["get", "b"]).error().0, "NotFound");
    sandbox.write("lines.jsonl", r#"{"text":"two","key":"b","tier":"epsodic"}"#);
    sandbox.document(&["import", "lines.jsonl"]);
    assert_eq!(sandbox.document(&["get", "b"])["tier"], "semantic");
}

#[test]
fn what_cannot_be_cleared_is_refused_by_name() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "one", "--key", "a", "--metadata", "{\"x\":1}", "--channel", "ops"]);
    let before = sandbox.document(&["get", "a"]);
    for name in
        ["metadata", "scope_label", "series", "importance", "significance", "text", "vector", "pinned", "ttl"]
    {
        refused(&sandbox, &["update", "a", "--clear", name], &format!("--clear: can't clear {name}"));
    }
    refused(&sandbox, &["update", "a", "--clear", "nonsense"], "nonsense: is no field of a memory");
    for (name, flag, value) in [
        ("channel", "--channel", "z"),
        ("expires_at", "--ttl", "1h"),
        ("tags", "--tag", "t"),
        ("thread", "--thread", "u"),
    ] {
        let why = "must not be cleared and given in one call";
        refused(&sandbox, &["update", "a", "--clear", name, flag, value], why);
    }
    assert_eq!(sandbox.document(&["get", "a"]), before);
    sandbox.document(&["update", "a", "--clear", "channel", "--clear", "expires_at", "--clear", "tags"]);
    assert_eq!(sandbox.document(&["get", "a"])["channel"], json!(null));
}

#[test]
fn a_payload_of_null_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("null.json", "null");
    sandbox.write("one.json", "{\"a\":1}");
    refused(&sandbox, &["add", "one", "--payload", "null.json"], "payload: must not be null");
    sandbox.document(&["add", "two", "--key", "b", "--payload", "one.json"]);
    refused(&sandbox, &["update", "b", "--payload", "null.json"], "payload: must not be null");
    refused(&sandbox, &["update", "b", "--field", "payload=null"], "payload: must not be null");
    assert_eq!(sandbox.document(&["get", "b", "--payload"])["payload"], json!({"a": 1}));
}

#[test]
fn a_payload_comes_from_standard_input_or_a_file_with_any_spelling_of_json() {
    let sandbox = Sandbox::new();
    let done = sandbox.run_with(&["add", "one", "--key", "a", "--payload", "-"], b"\x01\x02");
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(sandbox.document(&["get", "a", "--payload"])["payload_base64"], "AQI=");
    for (name, key) in [("P.JSON", "b"), ("bom.json", "c")] {
        sandbox.write(name, if key == "c" { "\u{feff}{\"a\":1}" } else { "{\"a\":1}" });
        sandbox.document(&["add", &format!("text of {key}"), "--key", key, "--payload", name]);
        assert_eq!(sandbox.document(&["get", key, "--payload"])["payload"], json!({"a": 1}));
    }
}

#[test]
fn new_text_says_that_the_payload_stays_behind() {
    let sandbox = Sandbox::new();
    sandbox.write("one.json", "{\"a\":1}");
    sandbox.document(&["add", "one", "--key", "a"]);
    for command in [&["update", "a", "--text", "two"][..], &["add", "three", "--key", "a"]] {
        sandbox.document(&["update", "a", "--payload", "one.json"]);
        let answer = sandbox.document(command);
        assert_eq!(answer["payload_left_behind"], true, "{answer}");
        assert_eq!(sandbox.document(&["get", "a", "--payload"])["payload"], json!(null));
    }
    sandbox.document(&["update", "a", "--payload", "one.json"]);
    let told = sandbox.plain(&["--db", "m.oub", "update", "a", "--text", "four"], b"");
    assert!(told.out.contains("its payload stays with the earlier version"), "{told:?}");
    let told = sandbox.plain(&["--db", "m.oub", "update", "a", "--text", "five"], b"");
    assert!(!told.out.contains("payload"), "{told:?}");
}

#[test]
fn the_text_that_supersedes_a_key_is_written_under_it() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "lives in Ghent", "--key", "a", "--valid-from", "2020-01-01T00:00:00Z"]);
    let bruges = sandbox.document(&[
        "supersede",
        "a",
        "--with-text",
        "lives in Bruges",
        "--at",
        "2026-02-01T00:00:00Z",
    ]);
    assert_eq!((&bruges["key"], &bruges["decision"]), (&json!("a"), &json!("revised")));
    let old = sandbox.document(&["get", bruges["old"].as_str().unwrap()]);
    assert_eq!((&old["state"], &old["supersede_mode"]), (&json!("superseded"), &json!("replaced")), "{old}");
    assert_eq!(old["valid_to"], "2026-02-01T00:00:00Z");
    let new = sandbox.document(&["get", "a"]);
    assert_eq!(
        (&new["text"], &new["valid_from"]),
        (&json!("lives in Bruges"), &json!("2026-02-01T00:00:00Z"))
    );
    sandbox.document(&["add", "lives in Rome", "--key", "a"]);
    let found = sandbox.document(&["search", "lives", "--mode", "text"]);
    assert_eq!(found["hits"].as_array().unwrap().len(), 1, "{found}");
    sandbox.document(&["forget", "a", "--yes"]);
    let found = sandbox.document(&["search", "lives", "--mode", "text"]);
    assert_eq!(found["hits"], json!([]));

    // Another key on demand; what has no key is superseded as a whole.
    let id = sandbox.document(&["add", "works in Ghent"])["id"].as_str().unwrap().to_owned();
    sandbox.document(&["add", "works in Lille", "--key", "b"]);
    let new = sandbox.document(&["supersede", &id, "b", "--with-text", "works in Bruges", "--key", "c"]);
    assert_eq!((&new["key"], &new["decision"]), (&json!("c"), &json!("stored")));
    assert_eq!(sandbox.document(&["list"])["items"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.run(&["supersede", "c", "--with", "b", "--key", "d"]).code, 2);
    let error = sandbox.run(&["supersede", "nobody", "--with-text", "x"]).error();
    assert_eq!(error.0, "NotFound");
    let error = sandbox.run(&["supersede", "c", "--with-text", "works in Bruges"]).error();
    assert_eq!(error.0, "Conflict", "{error:?}");
}

#[test]
fn the_key_of_a_memory_is_the_key_that_was_written_first() {
    let sandbox = Sandbox::new();
    for key in ["z1", "a1"] {
        sandbox.document(&["add", "Ann prefers tea", "--key", key]);
    }
    sandbox.document(&["add", "Ann prefers milk", "--key", "m"]);
    assert_eq!(sandbox.document(&["search", "tea", "--mode", "text"])["hits"][0]["key"], "z1");
    assert_eq!(sandbox.document(&["get", "a1"])["key"], "z1");
    // Both were written at one instant, so either may come first.
    let listed = sandbox.document(&["list"]);
    let keys: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|item| &item["key"]).collect();
    assert!(keys.len() == 2 && keys.contains(&&json!("z1")), "{keys:?}");
    let told = sandbox.plain(&["--db", "m.oub", "supersede", "m", "--with", "a1"], b"");
    assert!(told.out.starts_with("a1 takes the place of 1 memory"), "{told:?}");
    sandbox.document(&["export", "all.jsonl"]);
    let again = sandbox.plain(&["--db", "n.oub", "--json", "import", "all.jsonl"], b"").document();
    assert_eq!(again["stored"], 1, "{again}");
}

#[test]
fn touch_tells_what_it_did_not_reach() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "one", "--key", "a"]);
    sandbox.document(&["add", "two", "--key", "b"]);
    let done = sandbox.document(&["touch", "a", "a", "nobody", "--expires-at", "never"]);
    assert_eq!((&done["touched"], &done["missing"], &done["refused"]), (&json!(1), &json!(1), &json!(0)));
    let answer = sandbox.run(&["touch", "nobody", "--ttl", "1h"]);
    assert_eq!((answer.code, answer.error().0.as_str()), (1, "NotFound"));
    sandbox.document(&["supersede", "a", "--with", "b"]);
    let done = sandbox.document(&["touch", "a", "b", "--ttl", "1h"]);
    assert_eq!((&done["touched"], &done["refused"]), (&json!(1), &json!(1)), "{done}");
    let why = done["answers"][0]["error"]["message"].as_str().unwrap();
    assert!(why.starts_with("touch a: "), "{why}");
    let error = sandbox.run(&["touch", "b", "--expires-at", "soon"]).error();
    assert!(error.1.starts_with("--expires-at: "), "{error:?}");
}

/// A float would keep 17 digits of such a number, and say nothing.
#[test]
fn metadata_whose_numbers_would_change_are_refused_wherever_they_come_in() {
    let sandbox = Sandbox::new();
    let big = "{\"n\": [1, 123456789012345678901234567890]}";
    let why = "metadata: must have whole numbers of at most 64 bits";
    refused(&sandbox, &["add", "one", "--metadata", big], why);
    sandbox.document(&["add", "one", "--key", "k", "--metadata", "{\"n\": 18446744073709551615}"]);
    refused(&sandbox, &["update", "k", "--metadata", big], why);
    sandbox.write("in.jsonl", format!("{{\"text\":\"two\",\"metadata\":{big}}}\n"));
    refused(&sandbox, &["import", "in.jsonl"], why);
    sandbox.write("more.jsonl", format!("{{\"text\":\"two\",\"other\":{big}}}\n"));
    refused(&sandbox, &["import", "more.jsonl", "--lenient"], "other: must have whole numbers");
    let mem0 = format!(
        "{{\"results\":[{{\"id\":\"1\",\"memory\":\"a\"}},{{\"id\":\"2\",\"memory\":\"b\",\"metadata\":{big}}}]}}"
    );
    sandbox.write("mem0.json", mem0);
    let import = ["import", "mem0.json", "--format", "mem0"];
    refused(&sandbox, &import, "item 2: results: must have whole numbers of at most 64 bits");
    let done = sandbox.document(&[&import[..], &["--skip-bad"]].concat());
    assert_eq!((&done["stored"], &done["bad"]), (&json!(1), &json!(1)));
    let envelope =
        "{\"type\":\"tool_call\",\"name\":\"memory.gc_report\",\"args\":{\"since\":123456789012345678901}}\n";
    let told = sandbox.run_with(&["tool"], envelope.as_bytes()).out;
    assert!(told.contains("invalid_json") && told.contains("at most 64 bits"), "{told}");
    assert_eq!(sandbox.document(&["get", "k"])["metadata"]["n"], json!(u64::MAX));
    assert_eq!(sandbox.document(&["list"])["items"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_payload_whose_numbers_would_change_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("big.json", "{\"n\": [1, -12345678901234567890123]}");
    refused(
        &sandbox,
        &["add", "one", "--payload", "big.json"],
        "payload: must have whole numbers of at most 64 bits",
    );
    sandbox.write("in.jsonl", "{\"text\":\"one\",\"payload\":18446744073709551616}\n");
    refused(&sandbox, &["import", "in.jsonl"], "payload: must have whole numbers of at most 64 bits");
    sandbox.write(
        "ok.json",
        "{\"12345678901234567890123\": \"\\\"12345678901234567890123\", \"n\": 18446744073709551615}",
    );
    sandbox.document(&["add", "two", "--key", "k", "--payload", "ok.json"]);
    assert_eq!(sandbox.document(&["get", "k", "--payload"])["payload"]["n"], json!(u64::MAX));
}

#[test]
fn what_a_memory_carries_and_what_an_export_wrote_is_told() {
    let sandbox = Sandbox::new();
    let message = ["add", "Build done 12:34", "--kind", "message", "--author-kind", "bot", "--channel", "ci"];
    sandbox.document(&message);
    sandbox.document(&message);
    let told = sandbox.plain(&["--db", "m.oub", "export", "all.jsonl", "--all-states"], b"");
    assert!(told.out.contains(", 2 messages, 1 aggregate to all.jsonl"), "{told:?}");
    sandbox.write("one.json", "{\"a\":1}");
    sandbox.document(&["add", "one", "--key", "a", "--payload", "one.json"]);
    let told = sandbox.plain(&["--db", "m.oub", "get", "a"], b"");
    assert!(told.out.contains("yes; --payload shows it"), "{told:?}");
}

/// LIFE-6: the text is a memory of its own, whoever else wrote it, and its instant is its own.
#[test]
fn a_text_in_the_place_of_another_changes_no_equal_text() {
    for flags in [&["--at", "2030-01-01T00:00:00Z"][..], &["--key", "nb"], &[]] {
        let sandbox = Sandbox::new();
        sandbox.document(&["add", "Rome is home", "--key", "other"]);
        sandbox.document(&["add", "Bern is home", "--key", "bob"]);
        let before = sandbox.document(&["get", "other"]);
        let supersede = [&["supersede", "bob", "--with-text", "Rome is home"][..], flags].concat();
        assert_ne!(sandbox.document(&supersede)["id"], before["id"]);
        let after = sandbox.document(&["get", "other"]);
        assert_eq!(
            (&after["keys"], &after["valid_from"]),
            (&before["keys"], &before["valid_from"]),
            "{flags:?}"
        );
        assert_eq!(sandbox.document(&["check", "--deep"])["ok"], true);
    }
}

/// LIFE-6: the key of the old text, named or by default, is one way to write the new text.
#[test]
fn the_own_key_of_an_old_text_keeps_mode_and_instant() {
    let history = |flags: &[&str]| {
        let sandbox = Sandbox::new();
        sandbox.document(&["add", "Bob lives in Bern", "--key", "bob"]);
        let supersede =
            ["supersede", "bob", "--with-text", "Bob lives in Rome", "--at", "2020-01-01T00:00:00Z"];
        let new = sandbox.document(&[&supersede[..], flags].concat());
        assert_eq!((&new["key"], &new["decision"]), (&json!("bob"), &json!("revised")));
        sandbox.document(&["get", "bob"])["valid_from"].clone()
    };
    assert_eq!(history(&["--key", "bob"]), history(&[]));
    assert!(history(&["--key", "bob"]).is_string());

    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Bob lives in Bern", "--key", "bob"]);
    let ahead = ["supersede", "bob", "--with-text", "Rome", "--key", "bob", "--at", "2090-01-01T00:00:00Z"];
    assert_eq!(sandbox.document(&ahead)["key"], "bob");
    assert_eq!(sandbox.document(&["get", "bob"])["text"], "Bob lives in Bern");
    sandbox.document(&["forget", "bob", "--yes"]);
    assert_eq!(sandbox.document(&["list"])["items"].as_array().unwrap().len(), 0);
}

#[test]
fn a_field_by_its_name_is_no_second_way_to_give_a_text_or_a_key() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "A", "--key", "a"]);
    let refused: [&[&str]; 4] = [
        &["update", "a", "--field", "text=\"changed\""],
        &["update", "a", "--text", "q", "--field", "text=\"r\""],
        &["add", "A2", "--key", "a2", "--field", "text=\"other\""],
        &["add", "A2", "--key", "a2", "--field", "key=\"zz\""],
    ];
    for arguments in refused {
        assert_eq!(sandbox.run(arguments).error().0, "Invalid", "{arguments:?}");
    }
    assert_eq!(sandbox.document(&["get", "a"])["text"], "A");
    assert_eq!(sandbox.document(&["list"])["items"].as_array().unwrap().len(), 1);
}
