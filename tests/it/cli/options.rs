//! Options that were passed over in silence: each of them is heeded.

use serde_json::{Value, json};

use super::sandbox::{Sandbox, until};

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
    assert_eq!(one["left_out"], 1);
    let none = sandbox.document(&["search", "Ann prefers tea", "--mode", "text", "--max-tokens", "1"]);
    assert_eq!(
        (none["hits"].as_array().unwrap().len(), &none["left_out"]),
        (0, &json!(2)),
        "not an answer of nothing"
    );
    let told = sandbox.plain(&["--db", "m.oub", "search", "Ann prefers tea", "--max-tokens", "5"], b"");
    assert!(told.err.contains("1 more hit is left out: "), "{told:?}");
    let told =
        sandbox.plain(&["--db", "m.oub", "search", "--queries", "q.jsonl", "--max-tokens", "1"], b"").out;
    assert!(told.contains("has more than 1 token"), "{told}");
}

#[test]
fn evidence_is_looked_for_among_as_many_hits_as_are_asked_for() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    sandbox.write("q.jsonl", "{\"query\":\"tea\",\"evidence\":[\"a\"]}\n");
    let eval = ["eval", "--text", "--queries", "q.jsonl", "-k"];
    let told = sandbox.document(&[&eval[..], &["7"]].concat());
    let recall = told["text"]["evidence_recall"].as_object().unwrap();
    assert_eq!(recall.keys().collect::<Vec<_>>(), ["1", "5", "7", "10", "20", "50"]);
    assert_eq!(recall["7"], 1.0);
    let (kind, why) = sandbox.run(&[&eval[..], &["0"]].concat()).error();
    assert!(kind == "Invalid" && why.starts_with("k: "), "{why}");
    sandbox.write("q.jsonl", "");
    let nothing = sandbox.document(&[&eval[..], &["10"]].concat());
    assert_eq!(nothing["text"]["evidence_recall"]["10"], json!(null), "nothing is measured: {nothing}");
}

#[test]
fn a_sweep_writes_its_report_to_the_file() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let sweep = ["--db", "m.oub", "--json", "--no-share", "maintain", "--every", "1h", "--report"];
    let mut child = sandbox.spawn(&[&sweep[..], &["r.json"]].concat());
    until("the report is there", || sandbox.path("r.json").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let report: Value = serde_json::from_slice(&std::fs::read(sandbox.path("r.json")).unwrap()).unwrap();
    assert!(report["passes"].is_array(), "{report}");
    let error = sandbox.run(&["maintain", "--every", "1h", "--report", "no/folder/r.json"]).error();
    assert_eq!(error.0, "Io", "before the first sweep: {error:?}");
}

#[test]
fn a_name_that_is_given_twice_is_superseded_once() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    sandbox.document(&["supersede", "a", "a", "--with", "b"]);
    sandbox.document(&["supersede", "c", "c", "--with-text", "Cy walks the cat"]);
    let live = sandbox.document(&["list"]);
    assert_eq!(live["items"].as_array().unwrap().len(), 2);
    assert_eq!(sandbox.document(&["get", "a"])["text"], "Bob prefers coffee");
    assert_eq!(sandbox.document(&["get", "c"])["text"], "Cy walks the cat");
    assert_eq!(sandbox.run(&["supersede", "a", "--with", "b"]).error().0, "Conflict");
}

#[test]
fn options_that_go_nowhere_together_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let prune = ["maintain", "prune", "--dry-run", "--compare", "preset:redundancy"];
    for arguments in [
        &["search", "tea", "--why", "a", "--explain"][..],
        &["search", "tea", "--why", "a", "--around", "1"],
        &["search", "tea", "--why", "a", "--max-tokens", "9"],
        &[&prune[..], &["--budget", "5s"]].concat(),
        &[&prune[..], &["--max-rows", "5"]].concat(),
        &[&prune[..], &["--destroy-max", "5"]].concat(),
        &[&prune[..], &["--threads", "1"]].concat(),
    ] {
        assert_eq!(sandbox.run(arguments).code, 2, "{arguments:?}");
    }
    for (arguments, option) in [
        (&["add", "It rains", "--supersedes", "a", "--supersede-mode", "aggregate"][..], "--supersede-mode"),
        (&["add", "It rains", "--supersede-mode", "duplicate"], "--supersede-mode"),
        (&["tool", "--timeout", "0s"], "--timeout"),
        (&["tool", "--timeout", "soon"], "--timeout"),
        (&["namespace", "split", "default", "--by", "x,,y"], "--by"),
    ] {
        let (kind, message) = sandbox.run(arguments).error();
        assert!(kind == "Invalid" && message.starts_with(option), "{arguments:?}: {message}");
    }
    let marked = ["\u{feff}", "{\"undo\":{\"horizon\":\"3d\"}}"].concat();
    sandbox.write("policy.json", marked);
    assert_eq!(sandbox.run(&["policy", "set", "policy.json"]).code, 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_variable_that_is_not_utf8_is_refused() {
    use std::os::unix::ffi::OsStrExt;

    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["--db", "m.oub", "add", "Ann prefers tea"]);
    let done = command.env("OUBLIETTE_EMBEDDER", std::ffi::OsStr::from_bytes(b"ha\xffsh")).output().unwrap();
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(!done.status.success() && told.contains("OUBLIETTE_EMBEDDER: must be UTF-8"), "{told}");
    assert!(!sandbox.path("m.oub").exists());
}

/// A config file says in which namespace a person works. What is done to the whole file is done to the whole file.
#[test]
fn a_namespace_of_the_config_file_narrows_no_command_for_the_whole_file() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Ann prefers tea"]);
    sandbox.document(&["--namespace", "team", "add", "Bob prefers coffee"]);
    sandbox.write("oubliette.toml", "namespace = \"team\"\n");
    assert_eq!(sandbox.document(&["list"])["items"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.document(&["stats"])["memories"]["live"], 2);
    assert_eq!(sandbox.document(&["--namespace", "team", "stats"])["memories"]["live"], 1);
    let sweep = ["--db", "m.oub", "--json", "--no-share", "maintain", "--every", "1h", "--report", "r.json"];
    let mut child = sandbox.spawn(&sweep);
    until("the report is there", || sandbox.path("r.json").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let typed = sandbox.run(&["--namespace", "team", "maintain", "--every", "1h"]).error();
    assert!(typed.1.contains("must not stand beside --every"), "{typed:?}");
}

/// A preset is for the pass that it is made for, and a file that was typed must be there.
#[test]
fn a_preset_and_a_file_of_instructions_are_what_they_are_for() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    sandbox.document(&["maintain", "cluster", "--preset", "redundancy", "--dry-run"]);
    let refused = sandbox.run(&["maintain", "prune", "--preset", "redundancy", "--dry-run"]);
    assert!(refused.code == 2 && refused.err.contains("cluster"), "{refused:?}");
    let refused = sandbox.run(&["policy", "instructions", "--instructions", "nowhere.txt"]);
    assert!(refused.code == 1 && refused.err.contains("nowhere.txt"), "{refused:?}");
}

/// A person hears what of a write its memory does not say, and why it was taken in.
#[test]
fn a_person_hears_what_a_write_gave_in_vain() {
    let sandbox = Sandbox::new();
    let add = |arguments: &[&str]| {
        let all: Vec<&str> = ["--db", "m.oub", "add"].iter().chain(arguments).copied().collect();
        sandbox.plain(&all, b"").out
    };
    add(&["Thanks!", "--key", "a", "--session", "s1"]);
    let told = add(&["Thanks!", "--key", "b", "--session", "s2"]);
    assert!(told.contains("the same content was there; its session is that of an earlier write"), "{told}");
    sandbox.write("p.toml", "write.on_key = \"reinforce\"");
    let told = add(&["Not at all", "--key", "a", "--policy", "p.toml"]);
    assert!(told.contains("its key has another text, which stays"), "{told}");
    sandbox.write("in.jsonl", "{\"text\":\"Thanks!\",\"key\":\"c\",\"session\":\"s3\"}\n");
    assert_eq!(sandbox.document(&["import", "in.jsonl"])["not_taken"], 1);
    let message = ["Good night", "--kind", "message", "--author-kind", "human", "--session", "s1"];
    add(&message);
    let told = add(&[&message[..5], &["--session", "s2", "--tag", "chat"]].concat());
    assert!(told.contains("its session and tags are those of an earlier write"), "{told}");
    let told = add(&[&message[..], &["--tag", "chat"]].concat());
    assert!(told.contains("its tags are those of an earlier write"), "{told}");
    let line = |session: &str| {
        let author = serde_json::json!({ "kind": "human", "id": session });
        let line =
            serde_json::json!({ "text": "Yes", "kind": "message", "session": session, "author": author });
        format!("{line}\n")
    };
    sandbox.write("chat.jsonl", [line("s1"), line("s2")].concat());
    let report = sandbox.document(&["import", "chat.jsonl"]);
    assert_eq!((&report["reinforced"], &report["not_taken"]), (&1.into(), &1.into()));
}

/// A value that breaks a bound ends with 2, whichever way it was typed; what is not there ends with 1.
#[test]
fn a_call_that_makes_no_sense_ends_with_2() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    for arguments in [
        &["init", "--dim", "0"][..],
        &["add", "x", "--importance", "2"],
        &["add", "x", "--field", "importance=2"],
        &["add", "x", "--field", "nosuch=1"],
        &["add", ""],
        &["update", "a"],
        &["update", "a", "--field", "importance=2"],
        &["undo", "x"],
        &["gc", "show", "x"],
        &["list", "--cursor", "x"],
    ] {
        assert_eq!(sandbox.run(arguments).code, 2, "{arguments:?}");
    }
    let run = "019b76da-a800-7084-a9cf-11282fec0c88";
    for arguments in
        [&["get", "nobody"][..], &["undo", run], &["gc", "show", run], &["update", "nobody", "--pinned"]]
    {
        assert_eq!(sandbox.run(arguments).code, 1, "{arguments:?}");
    }
    let line = sandbox.run_with(&["import", "-"], b"{\"text\":\"x\",\"importance\":2}\n");
    assert_eq!(line.code, 1, "a line is data: {line:?}");
}
