//! What a person reads has words in place of names of the database, and says what is left and what to do.

use serde_json::{Value, json};

use super::sandbox::{NOW, Sandbox};
use crate::damage::store::{overwrite, tables};

/// What a person reads, standard error included, and the exit code.
fn typed(sandbox: &Sandbox, arguments: &[&str]) -> (i32, String) {
    let answer = sandbox.plain(&[&["--db", "m.oub", "--now", NOW], arguments].concat(), b"");
    (answer.code, answer.out + &answer.err)
}

#[track_caller]
fn read(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let (code, told) = typed(sandbox, arguments);
    assert_eq!(code, 0, "{arguments:?}: {told}");
    told
}

#[track_caller]
fn refused(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let (code, told) = typed(sandbox, arguments);
    assert_ne!(code, 0, "{arguments:?}: {told}");
    told
}

/// Three memories of equal text, which a pass can unite.
fn equal() -> Sandbox {
    let sandbox = Sandbox::new();
    let line = |key: &str| json!({ "key": key, "text": "Ann moved to Ghent", "channel": key }).to_string();
    sandbox.write("equal.jsonl", ["a", "b", "c"].map(line).join("\n"));
    sandbox.document(&["import", "equal.jsonl", "--no-dedup"]);
    sandbox
}

/// Old messages of one channel, imported in one run.
fn old() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    let line = |number: usize| {
        let rest = "That is how it was, and so it will be for all of us. Well, when would you do that?";
        let text = format!("Ann: Box {number} went to Ghent{number}. {rest}");
        json!({
            "key": format!("n{number}"), "text": text, "kind": "message", "channel": "yard",
            "created_at": "2001-01-02T10:00:00Z",
        })
        .to_string()
    };
    sandbox.write("old.jsonl", (0..3).map(line).collect::<Vec<_>>().join("\n"));
    let run = sandbox.document(&["import", "old.jsonl"])["run"].as_str().unwrap().to_owned();
    (sandbox, run)
}

#[test]
fn figures_have_words_and_verbose_has_their_names() {
    let sandbox = equal();
    for (command, word, path) in [
        (&["stats"][..], "say the same as another", "vectors.regime"),
        (&["search", "Ghent", "--explain"], "Searched by", "plan.regime"),
        (&["search", "Ghent", "--why", "a"], "a is hit number", "signals."),
    ] {
        let (short, long) = (read(&sandbox, command), read(&sandbox, &[&["-v"], command].concat()));
        assert!(short.contains(word) && !short.contains(path), "{command:?}: {short}");
        assert!(long.contains(word) && long.contains(path), "{command:?}: {long}");
    }
    let told = read(&sandbox, &["search", "Ghent", "--filter", r#"{"kind":"event"}"#, "--why", "a"]);
    assert!(told.contains("a is no hit: the filter leaves it out."), "{told}");
    let told = read(&sandbox, &["stats", "--deep"]);
    assert!(told.contains("rows were counted again: 0 findings") && told.contains("holder_key"), "{told}");
}

#[test]
fn a_story_names_no_field_of_the_database() {
    let sandbox = equal();
    let told = read(&sandbox, &["maintain", "near-duplicates"]);
    assert!(told.contains("the same text") && !told.contains("content:"), "{told}");
    let told = read(&sandbox, &["explain", "a"]);
    assert!(told.contains("united with duplicates (observations)") && !told.contains("merged,"), "{told}");
    let nested = r#"{"a":{"b":[1,2,{"c":"d"}]},"n":1.5}"#;
    read(&sandbox, &["add", "Bob walks", "--key", "bob", "--metadata", nested]);
    let told = read(&sandbox, &["get", "bob"]);
    assert!(told.contains("Metadata: a.b 1, 2, (c d), n 1.5\n"), "{told}");
}

#[test]
fn a_namespace_that_is_not_there_is_told_in_every_command_that_reads() {
    let sandbox = equal();
    for command in [
        &["events"][..],
        &["aggregates"],
        &["goal", "list"],
        &["gc", "show"],
        &["gc", "report"],
        &["runs"],
        &["memory-stats"],
        &["distinct", "x"],
        &["changes"],
        &["forget", "x", "--yes"],
        &["stats"],
        &["list", "--state", "tombstoned"],
    ] {
        let told = read(&sandbox, &[&["--namespace", "nope"], command].concat());
        assert!(told.contains("There is no namespace nope"), "{command:?}: {told}");
    }
}

#[test]
fn an_undo_names_the_summaries_that_stay() {
    let (sandbox, import) = old();
    let none = refused(&sandbox, &["gc", "run", "--summarizer", "false"]);
    assert!(none.starts_with("error: gc run: no summary"), "{none}");
    let told = read(&sandbox, &["gc", "run"]);
    let runs = read(&sandbox, &["runs"]);
    assert!(runs.contains("stored 3; can be undone") && runs.contains("until 2026-03-08"), "{runs}");
    let runs = sandbox.document(&["runs"])["items"].as_array().unwrap().clone();
    let undo = |run: &Value| format!("`undo {}` takes it back", run["id"].as_str().unwrap());
    assert!(runs.iter().any(|run| told.contains(&undo(run))), "{told}");
    let list = sandbox.document(&["list"]);
    let summary = list["items"][0]["id"].as_str().unwrap().to_owned();
    let told = read(&sandbox, &["get", &summary]);
    assert!(told.contains("Made of 3 memories; `expand` lists them."), "{told}");
    let source = list["items"][0]["source_memory_ids"][0].as_str().unwrap().to_owned();
    let told = read(&sandbox, &["forget", &source, "--dry-run"]);
    assert!(told.contains(&format!("1 summary may still tell of it: {summary}; nothing is")), "{told}");
    let since = refused(&sandbox, &["gc", "report", "--since", "yesterday"]);
    assert!(
        since.contains("--since: must be an instant, such as ") && since.contains(" such as 7d "),
        "{since}"
    );
    let told = read(&sandbox, &["undo", &import]);
    assert!(told.contains("Took the run back: 3 records that it wrote are gone;"), "{told}");
    assert!(told.contains(&format!("1 summary may still tell of it: {summary}")), "{told}");
    // Of a run that wrote summaries one that was said anew stays.
    let (sandbox, _) = old();
    let run = sandbox.document(&["gc", "run"])["runs"][0].as_str().unwrap().to_owned();
    let summary = sandbox.document(&["list"])["items"][0]["id"].as_str().unwrap().to_owned();
    let anew = sandbox.document(&["update", &summary, "--text", "boxes went to Ghent"])["id"].clone();
    let undone = sandbox.document(&["undo", &run]);
    assert_eq!((&undone["restored"], &undone["summaries"]), (&json!(3), &json!([anew])), "{undone}");
}

#[test]
fn what_comes_back_without_being_true_is_told_so() {
    let sandbox = Sandbox::new();
    for key in ["p", "q"] {
        read(&sandbox, &["add", &format!("Ann is {key}"), "--key", key]);
    }
    let id = sandbox.document(&["get", "p"])["id"].as_str().unwrap().to_owned();
    read(&sandbox, &["contradict", "p"]);
    read(&sandbox, &["supersede", "p", "--with", "q", "--mode", "correction"]);
    let told = read(&sandbox, &["restore", &id]);
    assert!(told.contains("p is back, and no longer true"), "{told}");
    // What was forgotten in limbo had been removed before.
    let (sandbox, _) = old();
    let id = sandbox.document(&["get", "n0"])["id"].as_str().unwrap().to_owned();
    read(&sandbox, &["gc", "run"]);
    let told = read(&sandbox, &["get", &id]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains(&format!("`restore {id}` brings it back")), "{told}");
    let later = ["--db", "m.oub", "--now", "2026-03-02T00:00:00Z"];
    sandbox.plain(&[&later[..], &["forget", &id, "--yes"]].concat(), b"");
    let told = sandbox.plain(&[&later[..], &["get", &id]].concat(), b"").out;
    assert!(told.contains("What it said was erased 2026-03-02"), "{told}");
}

#[test]
fn what_a_briefing_and_a_history_leave_out_is_told() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let path = sandbox.path("m.oub");
    let (key, value) = tables(&path)["memory"][0].clone();
    overwrite(&path, "memory", &key, &value.iter().map(|byte| byte ^ 0x5a).collect::<Vec<u8>>());
    for command in [&["briefing"][..], &["history", "a"]] {
        let told = read(&sandbox, command);
        assert!(told.contains("is damaged; `check` tells more"), "{command:?}: {told}");
    }
    assert_eq!(sandbox.document(&["briefing"])["damaged"].as_array().unwrap().len(), 1);
    sandbox.npy("q.npy", &[&[1.0, 0.0]]);
    // A text that can't be read may hold the words, too, and the memory may be a hit by its vector.
    for more in [&["--mode", "text"][..], &["--mode", "text", "-k", "1"], &["--vector-file", "q.npy"]] {
        let found = sandbox.document(&[&["search", "prefers", "--explain"], more].concat());
        assert_eq!(found["plan"]["damaged"], 1, "{more:?}: {found}");
    }
    assert!(read(&sandbox, &["search", "coffee"]).contains("could not be read"));
}

#[test]
fn verbose_adds_to_lists_of_changes_messages_and_plans() {
    let (sandbox, _) = old();
    for minute in ["30", "31"] {
        let said = format!("build done 12:{minute}");
        let by = ["--author-kind", "bot", "--author-id", "builder", "--channel", "ci"];
        read(&sandbox, &[&["add", &said, "--kind", "message"], &by[..]].concat());
    }
    assert!(read(&sandbox, &["events"]).contains("bot builder"));
    let plan = sandbox.document(&["gc", "plan"]);
    let source = plan["groups"][0]["source_ids"][0].as_str().unwrap();
    for (command, added) in [
        (&["changes"][..], "caller"),
        (&["aggregates"], "first message"),
        (&["gc", "show", plan["plan_id"].as_str().unwrap()], source),
    ] {
        let (short, long) = (read(&sandbox, command), read(&sandbox, &[&["-v"], command].concat()));
        assert!(long.contains(added) && !short.contains(added), "{command:?}: {long}");
    }
    let told = read(&sandbox, &["goal", "set", "learn French"]);
    let id = sandbox.document(&["goal", "list"])["goals"][0]["goal_id"].as_str().unwrap().to_owned();
    assert!(told.contains(&format!("`goal drop {id}` ends it")), "{told}");
    assert!(!read(&sandbox, &["-v", "goal", "set", "learn Dutch"]).contains("T00:00"));
    assert!(read(&sandbox, &["gc", "report", "--since", "7d"]).contains("2026-02-22"));
    sandbox.write("bare.jsonl", "{\"query\":\"build\"}\n");
    let told = read(&sandbox, &["eval", "--text", "--queries", "bare.jsonl"]);
    assert!(told.contains("nothing is measured") && !told.contains("hybrid"), "{told}");
    sandbox.write("none.jsonl", "");
    assert!(read(&sandbox, &["search", "--queries", "none.jsonl"]).contains("no query to answer"));
}

#[test]
fn a_refusal_says_what_was_meant_before_anything_runs() {
    let (sandbox, _) = old();
    sandbox.write("c.jsonl", "{\"memory\":\"n0\",\"tokens\":-1}\n");
    for (command, told) in [
        (&["maintain", "cluster", "--summarizer", "builtin"][..], "builtin only summarizes"),
        (&["events", "--aggregate", "nix"], "such as those that `aggregates` lists"),
        (&["events", "--from", "2026-02-02", "--to", "2026-01-01"], "must not lie before --from"),
        (&["context-log", "c", "c.jsonl"], "(got -1)"),
        (&["export", "nix/x.jsonl"], "create nix/x.jsonl:"),
        (&["namespace", "drop", "nope"], "namespace not found: nope"),
        (&["goal", "add", "x"], "'set'"),
        (&["goal", "remove", "x"], "'drop'"),
        (&["policy", "get"], "'show'"),
        (&["index", "rm", "x"], "'drop'"),
        (&["namespace", "rename", "x", "y"], "'move'"),
        (&["info"], "'stats'"),
        (&["maintain", "gc"], "`gc run`"),
        (&["maintain", "expire,cap"], "stand apart"),
        (&["forget", "x", "-y"], "--yes"),
        (&["undo", "--last"], "`runs` lists"),
        (&["undo"], "`runs` lists"),
        (&["search", "x", "--top-k", "3"], "-k tells how many"),
        (&["namespace", "split", "--by", "team", "default"], "FROM stands before --by"),
    ] {
        let found = refused(&sandbox, command);
        assert!(found.contains(told), "{command:?}: {found}");
        assert!(!found.contains(".tmp") && !found.contains("as a value"), "{command:?}: {found}");
    }
    let gone = sandbox.document(&["get", "n0"])["id"].as_str().unwrap().to_owned();
    read(&sandbox, &["gc", "run"]);
    for command in [&["pin", &gone][..], &["contradict", &gone], &["touch", &gone, "--ttl", "1d"]] {
        let found = refused(&sandbox, command);
        assert!(found.contains("maintenance removed it; `restore`") && !found.contains("update"), "{found}");
        assert_eq!(found.matches("maintenance removed it").count(), 1, "{found}");
    }
}

/// MODEL-33: an import in place has no version to go back to, and says so before and after.
#[test]
fn an_undo_of_an_import_tells_what_stays_changed() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann is here", "--key", "a"]);
    let change = r#"{"key":"a","text":"Ann is here","importance":0.9}"#;
    sandbox.write("change.jsonl", change);
    let told = read(&sandbox, &["import", "change.jsonl"]);
    assert!(told.contains("1 updated") && !told.contains("undo"), "{told}");
    sandbox.write("both.jsonl", [&change.replace("0.9", "0.8"), r#"{"text":"Bob is there"}"#].join("\n"));
    let told = read(&sandbox, &["import", "both.jsonl"]);
    assert!(told.contains("takes it back, but for what was updated"), "{told}");
    let (_, named) = told.split_once("`undo ").unwrap();
    let undone = sandbox.document(&["undo", named.split('`').next().unwrap()]);
    assert_eq!((&undone["removed"], &undone["lost"].as_array().unwrap().len()), (&1.into(), &1), "{undone}");
    assert!(undone["lost"][0].as_str().unwrap().contains("changes of fields in place"), "{undone}");
    assert_eq!(sandbox.document(&["get", "a"])["importance"], 0.8);
}

/// A forget names what it did not find. It gave only the number.
#[test]
fn a_forget_names_what_is_missing() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let missing = ["--dry-run", "a", "nobody", "nothing"];
    let plan = sandbox.document(&[&["forget"], &missing[..]].concat());
    assert_eq!(plan["answer"]["missing_names"], json!(["nobody", "nothing"]));
    assert!(read(&sandbox, &[&["forget"], &missing[..]].concat()).contains("2 not found: nobody, nothing"));
    let done = sandbox.document(&["forget", "a", "nobody", "--yes"]);
    assert_eq!((&done["missing"], &done["missing_names"]), (&json!(1), &json!(["nobody"])));
    let told = read(&sandbox, &["forget", "b", "nobody", "--yes"]);
    assert!(told.contains("Forgot 1 memory; 1 not found: nobody"), "{told}");
    let many: Vec<String> = (0..7).map(|at| format!("no-{at}")).collect();
    let mut arguments = vec!["forget", "c", "--yes"];
    arguments.extend(many.iter().map(String::as_str));
    assert!(read(&sandbox, &arguments).contains("7 not found: no-0, no-1, no-2, no-3, no-4 and 2 more"));
}

/// MODEL-33: memories of an export keep the run that first brought them, so no undo of their import is promised.
#[test]
fn an_import_of_an_export_promises_no_undo() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann is here", "--key", "a"]);
    read(&sandbox, &["export", "all.jsonl", "--all-states"]);
    let copy = Sandbox::new();
    let all = sandbox.path("all.jsonl").display().to_string();
    let told = read(&copy, &["import", &all]);
    assert!(
        told.contains("1 stored") && told.contains("can't be undone") && !told.contains("`undo"),
        "{told}"
    );
    copy.write("new.jsonl", r#"{"text":"Bob is there"}"#);
    let told = read(&copy, &["import", "new.jsonl"]);
    assert!(told.contains("takes it back"), "{told}");
}

/// A name that led to a memory is no typing mistake.
#[test]
fn a_write_to_what_is_gone_says_when_it_went_and_why() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann prefers tea", "--key", "tea"]);
    read(&sandbox, &["forget", "tea", "--yes"]);
    for command in [
        &["restore", "tea"][..],
        &["update", "tea", "--text", "Ann prefers milk"],
        &["pin", "tea"],
        &["contradict", "tea"],
        &["rename", "tea", "drink"],
        &["touch", "tea", "--never"],
        &["supersede", "tea", "--with-text", "Ann prefers milk"],
    ] {
        let told = refused(&sandbox, command);
        assert!(told.contains("tea is gone since 2026-03-01") && told.contains("it was forgotten"), "{told}");
    }
    assert!(read(&sandbox, &["get", "tea"]).contains("tea is gone from default."));
}

#[test]
fn a_run_is_told_in_sentences() {
    let sandbox = Sandbox::new();
    sandbox.write("in.jsonl", "{\"text\":\"Ann prefers tea\"}\n");
    let run = sandbox.document(&["import", "in.jsonl"])["run"].as_str().unwrap().to_owned();
    let told = read(&sandbox, &["runs", &run]);
    assert!(told.contains(&format!("Run {run}: import by caller, done.")), "{told}");
    assert!(told.contains(&format!("`undo {run}` takes it back")) && !told.contains("_at"), "{told}");
}

/// What is gone leaves its number in the index, and no words.
#[test]
fn no_words_wait_of_texts_that_are_gone() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann prefers tea", "--key", "tea"]);
    assert!(read(&sandbox, &["maintain", "index", "--dry-run"]).contains("the words of 1 text are"));
    read(&sandbox, &["forget", "tea", "--yes"]);
    let told = read(&sandbox, &["maintain", "index", "--dry-run"]);
    assert!(told.contains("Nothing to do for index"), "{told}");
}
