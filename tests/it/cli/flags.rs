//! A flag does what its help says, or it is refused: none is read and then left aside.

use serde_json::{Value, json};

use super::sandbox::{Sandbox, has};

#[test]
fn forget_by_name_keeps_to_the_part_that_is_named() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "seen by all", "--key", "all"]);
    let id = sandbox.document(&["add", "seen by Bob", "--key", "bob", "--agent", "bob"])["id"].clone();
    let forget = |arguments: &[&str]| {
        let done = sandbox.document(&[&["forget", "--yes"], arguments].concat());
        (done["forgotten"].as_u64().unwrap(), done["missing"].as_u64().unwrap())
    };
    assert_eq!(forget(&["all", "--agent", "bob"]), (0, 1), "it is not Bob's");
    assert_eq!(forget(&["bob", id.as_str().unwrap(), "--agent", "eve"]), (0, 2));
    assert_eq!(sandbox.document(&["get", "all"])["state"], "live");
    let plan = sandbox.document(&["forget", "all", "bob", "--agent", "bob", "--dry-run"]);
    assert_eq!((&plan["memories"]["live"], &plan["answer"]["missing"]), (&json!(1), &json!(1)));
    assert_eq!(forget(&["all", "bob", "--agent", "bob"]), (1, 1));
    assert_eq!(forget(&["all", "--any-agent"]), (1, 0));
}

#[test]
fn lines_of_add_take_no_fields_from_flags() {
    let sandbox = Sandbox::new();
    sandbox.npy("v.npy", &[&[1.0, 0.0]]);
    for flags in [
        &["--tag", "t"][..],
        &["--key", "k"],
        &["--agent", "bob"],
        &["--supersedes", "k"],
        &["--supersede-mode", "correction"],
        &["--pinned"],
        &["--vector-file", "v.npy"],
    ] {
        let answer = sandbox.run_with(&[&["add", "-"], flags].concat(), b"{\"text\":\"one\"}\n");
        assert_eq!((answer.code, answer.error().0.as_str()), (2, "Usage"), "{flags:?}");
        assert!(answer.err.contains("in the lines"), "{answer:?}");
    }
    let answer = sandbox.run_with(&["add", "-", "--no-dedup"], b"{\"text\":\"one\",\"tags\":[\"t\"]}\n");
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(sandbox.document(&["list"])["items"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_written_verbatim_is_a_memory_of_its_own() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "said twice"]);
    assert_eq!(sandbox.document(&["add", "said twice", "--verbatim"])["decision"], "stored");
    let lines = b"{\"text\":\"said twice\"}\n{\"text\":\"said twice\",\"verbatim\":false}\n";
    let answer = sandbox.run_with(&["add", "-", "--verbatim"], lines);
    assert!(answer.out.contains("stored") && answer.out.contains("reinforced"), "{answer:?}");
    sandbox.write("twice.jsonl", "{\"text\":\"said twice\"}\n{\"text\":\"said twice\"}\n");
    assert_eq!(sandbox.document(&["import", "twice.jsonl", "--verbatim"])["stored"], 2);
    let items = sandbox.document(&["list", "--filter", r#"{"verbatim":true}"#])["items"].clone();
    assert_eq!(items.as_array().unwrap().len(), 4);
    assert!(items.as_array().unwrap().iter().all(|item| item["verbatim"] == true), "{items}");
}

#[test]
fn a_line_of_add_that_is_no_json_says_so() {
    let sandbox = Sandbox::new();
    let error = sandbox.run_with(&["add", "-", "--jsonl"], b"Ann likes tea\n").error();
    assert!(error.1.starts_with("line 1: line: must be a memory as a JSON object"), "{error:?}");
}

#[test]
fn queries_answer_with_ids_and_a_null_for_a_hit_without_a_key() {
    let sandbox = Sandbox::new();
    let named = sandbox.document(&["add", "Ann drinks tea", "--key", "a"])["id"].clone();
    let nameless = sandbox.document(&["add", "Bob drinks milk"])["id"].clone();
    sandbox.write("q.jsonl", "{\"query\":\"tea\"}\n{\"query\":\"milk\"}\n");
    let answer = sandbox.run(&["search", "--queries", "q.jsonl", "-k", "1", "--mode", "text"]);
    let lines: Vec<Value> = answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.iter().for_each(|line| has(line, &["keys", "ids", "scores", "took_us"]));
    assert_eq!((&lines[0]["keys"], &lines[0]["ids"]), (&json!(["a"]), &json!([named])));
    assert_eq!((&lines[1]["keys"], &lines[1]["ids"]), (&json!([null]), &json!([nameless])));
}

#[test]
fn a_pin_by_key_answers_with_the_key() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Ann drinks tea", "--key", "a"]);
    for command in ["pin", "unpin"] {
        assert_eq!(sandbox.document(&[command, "a"])["key"], "a");
    }
}

#[test]
fn import_goes_into_the_namespace_that_is_named() {
    let sandbox = Sandbox::new();
    sandbox.write("in.jsonl", "{\"key\":\"a\",\"text\":\"one\"}\n");
    assert_eq!(sandbox.document(&["import", "in.jsonl", "--into", "team"])["stored"], 1);
    assert_eq!(sandbox.document(&["get", "a", "--namespace", "team"])["text"], "one");
    assert_eq!(sandbox.run(&["import", "in.jsonl", "--into", "team", "--namespace", "other"]).code, 2);
}

#[test]
fn a_text_that_supersedes_stays_in_the_part_of_what_it_replaces() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Bob is ill", "--key", "b", "--agent", "bob"]);
    let answer = sandbox.document(&["supersede", "b", "--with-text", "Bob is well"]);
    assert_eq!(answer["partition"], "bob");
    assert_eq!(sandbox.document(&["list"])["items"], json!([]), "others still see nothing of it");
    sandbox.document(&["add", "shared", "--key", "s"]);
    let error = sandbox.run(&["supersede", "b", "s", "--with-text", "both"]).error();
    assert_eq!(error.0, "Invalid", "{error:?}");
    assert!(error.1.contains("bob"), "{error:?}");
}

#[test]
fn an_instant_of_a_change_belongs_to_the_mode_replaced() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let at = ["supersede", "a", "--with", "b", "--at", "2026-01-01T00:00:00Z", "--mode"];
    let error = sandbox.run(&[&at[..], &["correction"]].concat()).error();
    assert!(error.1.starts_with("--at: "), "{error:?}");
    assert_eq!(sandbox.document(&["get", "a"])["state"], "live");
    sandbox.document(&[&at[..], &["replaced"]].concat());
}

#[test]
fn a_warning_about_a_field_is_in_the_answer() {
    let sandbox = Sandbox::new();
    let answer = sandbox.document(&["add", "x", "--significance", "huge"]);
    assert_eq!(answer["warnings"], json!(["significance: \"huge\" is unknown, read as routine"]));
    let answer = sandbox.run_with(&["add", "-"], b"{\"text\":\"y\",\"tier\":\"long\"}\n").document();
    assert_eq!(answer["warnings"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.document(&["add", "z"]).get("warnings"), None);
}

/// MODEL-9: a slip of the shift key had made a durable memory of a short-lived one.
#[test]
fn names_of_closed_sets_are_read_in_any_letters() {
    let sandbox = Sandbox::new();
    let add = ["add", "w", "--key", "w", "--tier", "WORKING", "--significance", "Core", "--kind", "Event"];
    assert_eq!(sandbox.document(&add).get("warnings"), None);
    let line = b"{\"key\":\"v\",\"text\":\"v\",\"tier\":\"Working\",\"author\":{\"kind\":\"Bot\"}}\n";
    assert_eq!(sandbox.run_with(&["add", "-"], line).document().get("warnings"), None);
    for key in ["w", "v"] {
        assert_eq!(sandbox.document(&["get", key])["tier"], "working");
    }
    let w = sandbox.document(&["get", "w"]);
    assert_eq!((w["significance"].clone(), w["kind"].clone()), (json!("core"), json!("event")));
    assert_eq!(
        sandbox.document(&["list", "--filter", r#"{"tier":"WORKING"}"#])["items"].as_array().unwrap().len(),
        2
    );
    assert_eq!(sandbox.document(&["update", "w", "--tier", "Episodic"])["decision"], "updated");
    assert_eq!(sandbox.document(&["search", "w", "--mode", "Text"])["hits"].as_array().unwrap().len(), 1);
    let slip = sandbox.run_with(&["add", "-"], b"{\"text\":\"s\",\"tier\":\"WORKNG\"}\n").document();
    assert_eq!(
        slip["warnings"],
        json!(["tier: \"WORKNG\" is unknown, read as semantic; working is the nearest"])
    );
}

#[test]
fn help_names_every_pass_and_every_state() {
    let sandbox = Sandbox::new();
    let help =
        sandbox.plain(&["maintain", "--help"], b"").out.split_whitespace().collect::<Vec<_>>().join(" ");
    for pass in oubliette::maintain::Pass::ALL {
        assert!(help.contains(pass.as_str()), "{pass:?} is not in the help of maintain");
    }
    assert!(!help.contains("both with none named"));
    let lines = sandbox.plain(&["maintain", "--help"], b"").out;
    let passes = lines.split("Passes:\n").nth(1).unwrap();
    let of_column =
        |line: &str| line.starts_with(&" ".repeat(21)) || line.get(2..3).is_some_and(|c| c != " ");
    let strays: Vec<&str> = passes.lines().filter(|line| !of_column(line) || line.len() > 100).collect();
    assert_eq!(strays, Vec::<&str>::new());
    assert!(!sandbox.plain(&["update", "--help"], b"").out.contains("[default: semantic]"));
    let parts: Vec<&str> = lines.split("Options of every command:\n").collect();
    assert!(parts.len() == 2 && parts[0].contains("--dry-run") && !parts[0].contains("--db"), "{lines}");
    let help = sandbox.plain(&["list", "--help"], b"").out;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("live, superseded, expired, limbo, tombstoned or any"), "{help}");
    let error = sandbox.run(&["list", "--state", "gone"]).error();
    assert!(error.1.contains("live, superseded, expired, limbo, tombstoned or any"), "{error:?}");
    assert!(sandbox.plain(&["undo", "--help"], b"").out.contains("maintenance"));
}

/// What a person is told beside the answer: a run that can't be taken back is not offered, and a name that means nothing is
/// said.
#[test]
fn remarks_promise_nothing_that_does_not_hold() {
    let sandbox = Sandbox::new();
    let told = |arguments: &[&str]| {
        let answer =
            sandbox.plain(&[&["--db", "m.oub", "--now", "2026-01-02T10:00:00Z"], arguments].concat(), b"");
        assert_eq!(answer.code, 0, "{answer:?}");
        answer.err
    };
    for apps in ["4", "7"] {
        told(&["add", &format!("Gateway status: {apps} apps pending"), "--kind", "profile"]);
    }
    assert!(told(&["maintain", "collapse"]).contains("takes this run back"));
    let late = sandbox.plain(&["--db", "m.oub", "--now", "2027-01-02T10:00:00Z", "maintain", "limbo"], b"");
    assert_eq!(late.code, 0, "{late:?}");
    assert!(!late.err.contains("takes this run back"), "{late:?}");
    assert!(told(&["--namespace", "tyop", "export", "-"]).contains("There is no namespace tyop"));
    assert!(!told(&["--namespace", "default", "export", "-"]).contains("There is no namespace"));
}

#[test]
fn pages_of_hits_and_the_newest_first() {
    let sandbox = Sandbox::new();
    for (at, text) in ["tea", "tea and milk", "tea and milk and sugar"].iter().enumerate() {
        let at = format!("2026-01-0{}T00:00:00Z", at + 1);
        sandbox.document(&["add", text, "--key", text, "--created-at", &at]);
    }
    let keys = |arguments: &[&str], list: &str| -> Vec<String> {
        let document = sandbox.document(arguments);
        let items = document[list].as_array().unwrap();
        items.iter().map(|item| item["key"].as_str().unwrap().to_owned()).collect()
    };
    let search = ["search", "tea", "--mode", "text"];
    let whole = keys(&search, "hits");
    assert_eq!(whole.len(), 3);
    assert_eq!(keys(&[&search[..], &["-k", "1", "--offset", "1"]].concat(), "hits"), whole[1..2]);
    let least = sandbox.document(&search)["hits"][1]["score"].to_string();
    assert_eq!(keys(&[&search[..], &["--min-score", &least]].concat(), "hits"), whole[..2]);
    sandbox.write("q.jsonl", "{\"query\":\"tea\",\"mode\":\"text\",\"offset\":2}\n");
    let line = sandbox.document(&["search", "--queries", "q.jsonl"]);
    assert_eq!(line["keys"], json!([whole[2]]));
    assert_eq!(keys(&["list", "--newest"], "items"), ["tea and milk and sugar", "tea and milk", "tea"]);
    assert_eq!(sandbox.run(&[&search[..], &["--offset", "1000"]].concat()).error().0, "Invalid");
    assert_eq!(sandbox.run(&[&search[..], &["--min-score", "NaN"]].concat()).error().0, "Invalid");
}

#[test]
fn distinct_counts_the_values_of_a_key() {
    let sandbox = Sandbox::new();
    for (text, session) in [("one", "a"), ("two", "b"), ("three", "b")] {
        sandbox.document(&["add", text, "--metadata", &json!({ "session": session }).to_string()]);
    }
    let document = sandbox.document(&["distinct", "session", "--limit", "1"]);
    assert_eq!(document["values"], json!([{ "value": "b", "count": 2 }]));
    assert_eq!((&document["left_out"], &document["complete"]), (&json!(1), &json!(true)));
    assert_eq!((&document["memories"], &document["damaged"]), (&json!(3), &json!(0)));
    let none = sandbox.document(&["distinct", "gone", "--filter", "{\"kind\": \"event\"}"]);
    assert_eq!(none["values"], json!([]));
    assert_eq!(sandbox.run(&["distinct", ""]).error().0, "Invalid");
    assert_eq!(sandbox.run(&["distinct", "s", "--limit", "0"]).error().0, "Invalid");
}

#[test]
fn rename_and_touch_say_what_they_did() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Ann lives in Ghent", "--key", "ann"]);
    sandbox.document(&["add", "Ann lives in Bruges", "--key", "ann"]);
    sandbox.document(&["add", "Bob walks", "--key", "bob"]);
    let renamed = sandbox.document(&["rename", "ann", "ann:home"]);
    assert_eq!((&renamed["rows"], &renamed["new"]), (&json!(2), &json!("ann:home")));
    assert_eq!(sandbox.run(&["get", "ann"]).error().0, "NotFound");
    assert_eq!(sandbox.run(&["rename", "bob", "ann:home"]).error().0, "Conflict");
    assert_eq!(sandbox.run(&["rename", "nobody", "x"]).error().0, "NotFound");
    let touched = sandbox.document(&["touch", "bob", "nobody", "--expires-at", "2026-04-01T00:00:00Z"]);
    assert_eq!((&touched["touched"], &touched["missing"]), (&json!(1), &json!(1)));
    assert_eq!(touched["answers"][0]["expires_at"], "2026-04-01T00:00:00Z");
    assert_eq!(touched["answers"][1]["error"]["kind"], "NotFound");
    assert_eq!(sandbox.document(&["touch", "bob", "--ttl", "30d"])["touched"], 1);
    assert_eq!(sandbox.document(&["get", "bob"])["expires_at"], "2026-03-31T00:00:00Z");
    sandbox.document(&["touch", "bob", "--never"]);
    assert_eq!(sandbox.document(&["get", "bob"])["expires_at"], Value::Null);
    assert_eq!(sandbox.run(&["touch", "bob"]).code, 2);
    assert_eq!(sandbox.run(&["touch", "bob", "--never", "--ttl", "1d"]).code, 2);
    assert_eq!(sandbox.run(&["touch", "bob", "--ttl", "soon"]).error().0, "Invalid");
}

#[test]
fn a_payload_comes_from_a_file_and_is_shown_on_request() {
    let sandbox = Sandbox::new();
    sandbox.write("answer.json", "{ \"status\" : 200 }");
    sandbox.write("image.png", [0, 159, 146, 150]);
    sandbox.write("broken.json", "{");
    sandbox.write("twice.json", "{\"a\": 1, \"a\": 2}");
    sandbox.write("long.bin", vec![0; (1 << 20) + 1]);
    sandbox.document(&["add", "the gateway answered", "--key", "call", "--payload", "answer.json"]);
    assert_eq!(sandbox.document(&["get", "call", "--payload"])["payload"], json!({ "status": 200 }));
    assert_eq!(sandbox.document(&["get", "call"])["payload"], Value::Null);
    assert_eq!(sandbox.document(&["update", "call", "--payload", "image.png"])["decision"], "updated");
    assert_eq!(sandbox.document(&["get", "call", "--payload"])["payload_base64"], "AJ+Slg==");
    sandbox.document(&["export", "all.jsonl"]);
    assert_eq!(sandbox.document(&["update", "call", "--clear", "payload"])["decision"], "updated");
    assert_eq!(sandbox.document(&["get", "call", "--payload"])["payload_base64"], Value::Null);
    sandbox.document(&["import", "all.jsonl", "--into", "copy"]);
    for file in ["broken.json", "twice.json", "long.bin"] {
        let (kind, message) = sandbox.run(&["add", "x", "--payload", file]).error();
        assert_eq!(kind, "Invalid");
        assert!(message.starts_with("payload: "), "{message}");
    }
    assert_eq!(sandbox.run(&["add", "x", "--payload", "nowhere"]).error().0, "Io");
    assert_eq!(sandbox.run_with(&["add", "-", "--payload", "answer.json"], b"{\"text\":\"x\"}\n").code, 2);
    sandbox.write("lines.jsonl", "{\"text\":\"one\",\"key\":\"one\",\"payload\":[1]}\n{\"text\":\"two\",\"payload_base64\":\"AA==\"}\n");
    assert_eq!(sandbox.document(&["import", "lines.jsonl"])["stored"], 2);
    assert_eq!(sandbox.document(&["get", "one", "--payload"])["payload"], json!([1]));
    for bad in
        ["\"payload_base64\":\"A\"", "\"payload\":1,\"payload_base64\":\"AA==\"", "\"payload_base64\":7"]
    {
        sandbox.write("bad.jsonl", format!("{{\"text\":\"x\",{bad}}}\n"));
        let (kind, message) = sandbox.run(&["import", "bad.jsonl"]).error();
        assert_eq!(kind, "Invalid", "{message}");
        assert!(message.contains("payload"), "{message}");
    }
}

#[test]
fn an_option_of_a_pass_stands_beside_that_pass() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Ann prefers tea"]);
    for (pass, option, value) in [
        ("expire", "--series", "weather"),
        ("superseded", "--preset", "steps_early"),
        ("prune", "--samples", "3"),
        ("limbo", "--batch-size", "10"),
        ("retention", "--step", "4"),
    ] {
        let answer = sandbox.run(&["maintain", pass, "--dry-run", option, value]);
        let (kind, message) = answer.error();
        assert_eq!((answer.code, kind.as_str()), (2, "Invalid"), "{option}: {answer:?}");
        assert!(message.contains(option) && message.contains(pass), "{message}");
    }
    let bound = ["maintain", "expire", "--kind", "event", "--target", "3"];
    assert!(sandbox.run(&bound).error().1.contains("prune"));
    for value in ["NaN", "-1s", "5s"] {
        let answer = sandbox.run(&["maintain", "expire", "--dry-run", "--timeout", value]);
        assert_eq!(answer.code, 2, "{value}: {answer:?}");
    }
    sandbox.document(&["maintain", "expire", "prune", "--step", "4"]);
    // None of the passes that the policy enables reads them.
    for option in
        [&["--step", "4"][..], &["--samples", "3"], &["--kind", "event", "--target", "3"], &["--fuzzy"]]
    {
        let answer = sandbox.run(&[&["maintain", "--dry-run"], option].concat());
        assert_eq!((answer.code, answer.error().0.as_str()), (2, "Invalid"), "{option:?}: {answer:?}");
    }
    sandbox.write("p.toml", "[sweeper]\nstages = [\"prune\", \"collapse\"]\n");
    let enabled = ["--policy", "p.toml", "maintain", "--step", "4", "--samples", "3", "--fuzzy", "--dry-run"];
    sandbox.document(&enabled);
}

#[test]
fn a_name_that_is_given_twice_is_found_once() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Ann prefers tea", "--key", "a"]);
    sandbox.write("keys.txt", "a\na\nb\n");
    let done = sandbox.document(&["forget", "--keys", "keys.txt", "--yes"]);
    assert_eq!((&done["forgotten"], &done["missing"]), (&json!(1), &json!(1)));
}

/// A key may begin and end with white space, and another memory may have the key without.
#[test]
fn a_file_of_keys_names_them_as_they_stand() {
    let sandbox = Sandbox::new();
    for key in ["k", " k ", "\tk"] {
        sandbox.document(&["add", &format!("Ann prefers tea under {key:?}"), "--key", key]);
    }
    sandbox.write("keys.txt", " k \r\n\n\tk");
    let done = sandbox.document(&["forget", "--keys", "keys.txt", "--yes"]);
    assert_eq!((&done["forgotten"], &done["missing"]), (&json!(2), &json!(0)));
    assert_eq!(sandbox.document(&["get", "k"])["keys"], json!(["k"]));
}

#[test]
fn shares_and_budgets_that_cannot_be_measured_are_refused_for_each_summarizer() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    sandbox.write("q.jsonl", "{\"query\":\"tea\",\"evidence\":[\"a\"]}\n");
    for (option, value) in
        [("--budget", "0"), ("--budget", "nan"), ("--budget", "1.5"), ("--share", "-1"), ("--share", "nan")]
    {
        for summarizer in ["builtin", "first", "random"] {
            let arguments =
                ["eval", "--gc", "--queries", "q.jsonl", option, value, "--summarizer", summarizer];
            let answer = sandbox.run(&arguments);
            assert_eq!((answer.code, answer.error().0.as_str()), (2, "Invalid"), "{arguments:?}: {answer:?}");
            assert!(answer.error().1.contains(option), "{answer:?}");
        }
    }
}
