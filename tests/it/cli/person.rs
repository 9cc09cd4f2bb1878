//! What a person reads: `-v` adds to it, ids stand whole, instants are local dates, and what is typed wrong is told in words of ours.

use serde_json::{Value, json};

use super::sandbox::{NOW, Sandbox};
use crate::damage::store::{overwrite, tables};

/// What a person reads, standard error included.
#[track_caller]
fn read(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let answer = sandbox.plain(&[&["--db", "m.oub", "--now", NOW], arguments].concat(), b"");
    assert_eq!(answer.code, 0, "{arguments:?}: {answer:?}");
    answer.out + &answer.err
}

/// What a person is told of an error, and the exit code.
#[track_caller]
fn refused(sandbox: &Sandbox, arguments: &[&str]) -> (i32, String) {
    let answer = sandbox.plain(&[&["--db", "m.oub", "--now", NOW], arguments].concat(), b"");
    assert_ne!(answer.code, 0, "{arguments:?}: {answer:?}");
    (answer.code, answer.err)
}

/// A sandbox with a memory of two versions, and two messages of one family.
fn filled() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    for town in ["Ghent", "Bruges"] {
        read(&sandbox, &["add", &format!("Ann lives in {town}"), "--key", "home"]);
    }
    for minute in ["30", "31"] {
        let said = format!("build done 12:{minute}");
        read(&sandbox, &["add", &said, "--kind", "message", "--author-kind", "bot", "--channel", "ci"]);
    }
    let id = sandbox.document(&["get", "home"])["id"].as_str().unwrap().to_owned();
    (sandbox, id)
}

#[test]
fn what_verbose_tells_comes_on_top() {
    let (sandbox, id) = filled();
    for (command, added) in [
        (&["explain", "home"][..], &["rule MODEL-21.revise", "scores.final_score"][..]),
        (&["get", "home"], &["reinforcement_count"]),
        (&["search", "Ann"], &["signals", "vector 0."]),
        (&["list"], &["semantic"]),
        (&["events"], &["decision", "aggregated"]),
    ] {
        let (short, long) = (read(&sandbox, command), read(&sandbox, &[&["-v"], command].concat()));
        assert!(short.split_whitespace().all(|word| word != id), "{command:?}: {short}");
        for part in added {
            assert!(long.contains(part) && !short.contains(part), "{part} of {command:?}: {long}");
        }
        assert!(command[0] == "events" || long.contains(&id), "{command:?}: {long}");
    }
    for story in ["explain", "get"] {
        let (short, long) = (read(&sandbox, &[story, "home"]), read(&sandbox, &["-v", story, "home"]));
        let lines = short.lines().filter(|line| !line.contains(" by "));
        lines.for_each(|line| assert!(long.contains(line), "{line}: {long}"));
        assert!(!long.contains("2026-03-01T"), "{long}");
    }
}

#[test]
fn an_id_stands_whole_in_every_table() {
    let (sandbox, id) = filled();
    let events = sandbox.document(&["events"]);
    let aggregate = events["items"][0]["aggregate_id"].as_str().unwrap().to_owned();
    let key = sandbox.document(&["list", "--filter", r#"{"kind":"aggregate"}"#])["items"][0]["key"].clone();
    for (command, whole) in [
        (&["events"][..], aggregate.as_str()),
        (&["-v", "events"], aggregate.as_str()),
        (&["aggregates"], aggregate.as_str()),
        (&["-v", "list"], key.as_str().unwrap()),
        (&["-v", "search", "build"], key.as_str().unwrap()),
        (&["-v", "history", "home"], id.as_str()),
        (&["-v", "explain", "home"], id.as_str()),
    ] {
        let shown = read(&sandbox, command);
        assert!(shown.contains(whole), "{command:?}: {shown}");
    }
    assert!(read(&sandbox, &["events", "--aggregate", &aggregate]).contains("12:31"));
}

#[test]
fn many_lines_are_told_as_one_is() {
    let sandbox = Sandbox::new();
    let add = ["--db", "m.oub", "--now", NOW, "add", "-"];
    let told =
        sandbox.plain(&add, b"Ann prefers tea\n{\"text\":\"Bob walks\",\"key\":\"bob\",\"tier\":\"x\"}\n");
    assert_eq!((told.code, told.out.lines().count()), (0, 2), "{told:?}");
    assert!(told.out.starts_with("Stored ") && told.out.ends_with("Stored bob in default\n"), "{told:?}");
    assert!(told.err.contains("line 2: tier: \"x\" is unknown"), "{told:?}");
    sandbox
        .write("q.jsonl", "{\"query\":\"tea\",\"mode\":\"text\"}\n{\"query\":\"zebra\",\"mode\":\"text\"}\n");
    let told = read(&sandbox, &["search", "--queries", "q.jsonl"]);
    assert!(told.contains("Query 1: tea") && told.contains("Ann prefers tea"), "{told}");
    assert!(told.contains("Query 2: zebra\nNothing was found") && !told.contains('{'), "{told}");
}

#[test]
fn an_instant_is_a_local_date_with_its_distance() {
    let sandbox = Sandbox::new();
    for number in 0..3 {
        let text = format!(
            "Ann: Box {number} went to Ghent{number}. That is how it was, and so it will be for all."
        );
        let message = ["add", &text, "--kind", "message", "--channel", "yard"];
        read(&sandbox, &[&message[..], &["--created-at", "2001-01-02T10:00:00Z"]].concat());
    }
    read(&sandbox, &["goal", "set", "learn French"]);
    let goals = read(&sandbox, &["goal", "list"]);
    assert!(goals.contains("2026-03-01 00:00Z") && !goals.contains("T00:"), "{goals}");
    let plan = sandbox.document(&["gc", "plan"])["plan_id"].as_str().unwrap().to_owned();
    let shown = read(&sandbox, &["gc", "show", &plan]);
    assert!(shown.contains("The plan is open; it ends 2026-03-0") && shown.contains("(in "), "{shown}");
    assert!(!shown.contains("T00:"), "{shown}");
    let report = read(&sandbox, &["gc", "report"]);
    assert!(report.contains("to 2026-03-01 00:00Z (just now)") && !report.contains("00:00:00"), "{report}");
    // The open plan has what another plan would take.
    let none = read(&sandbox, &["gc", "plan"]);
    assert!(none.contains("but what the open plan") && none.contains(&plan), "{none}");
    let made = read(&sandbox, &["gc", "show"]);
    assert!(made.contains("nothing to do") && !made.contains("committed"), "{made}");
    assert!(read(&sandbox, &["gc", "abort", &plan, "--reason", "later"]).contains("Gave up the plan"));
}

#[test]
fn a_number_that_is_none_is_told_with_its_bound() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann prefers tea"]);
    for (command, option, bound) in [
        (&["list", "--limit"][..], "--limit", "a whole number, 1 to 10000"),
        (&["search", "tea", "--k"], "-k", "a whole number, 1 to 1000"),
        (&["search", "tea", "--recall"], "--recall", "a number above 0 and below 1"),
        (&["maintain", "collapse", "--batch-size"], "--batch-size", "a whole number, 1 to 1000000"),
        (&["gc", "plan", "--max-groups"], "--max-groups", "a whole number, 1 to 50"),
        (&["changes", "--since"], "--since", "a whole number, 0 or more"),
    ] {
        let values: &[&str] = if option == "--recall" { &["abc", ""] } else { &["-1", "abc", "", "1.5"] };
        for value in values {
            let (code, told) = refused(&sandbox, &[command, &[value]].concat());
            assert_eq!(code, 2, "{command:?} {value}: {told}");
            for part in [option, bound, &format!("'{value}'")] {
                assert!(told.contains(part), "{part} of {command:?} {value}: {told}");
            }
            assert!(!told.contains("digit") && !told.contains("unexpected"), "{told}");
        }
    }
    for option in [&["search", "tea", "--deadline", "-1"][..], &["list", "--wait", "-1s"]] {
        let (code, told) = refused(&sandbox, option);
        assert!(code == 2 && told.contains("not negative (got -1"), "{option:?}: {told}");
    }
}

#[test]
fn no_word_of_a_parser_reaches_a_person() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann prefers tea", "--key", "tea"]);
    sandbox.write("word.jsonl", "nix\n");
    sandbox.write("tokens.jsonl", "{\"memory\":\"tea\",\"tokens\":\"x\"}\n");
    sandbox.write("k.jsonl", "{\"query\":\"tea\",\"k\":\"x\"}\n");
    for (code, command, told) in [
        (1, &["context-log", "c", "word.jsonl"][..], "line 1: line: must be an object {\"memory\""),
        (1, &["context-log", "c", "tokens.jsonl"], "line 1: tokens: must be a whole number"),
        (1, &["search", "--queries", "word.jsonl"], "line 1: line: must be a query"),
        (1, &["search", "--queries", "k.jsonl"], "line 1: k: must be a whole number"),
        (1, &["search", "--vector-file", "k.jsonl"], "must be a NumPy file (got a file that starts with"),
        (2, &["add", "x", "--metadata", "nix"], "must be JSON"),
    ] {
        let (ended, found) = refused(&sandbox, command);
        assert!(ended == code && found.contains(told), "{command:?}: {found}");
        for word in ["expected u", "expected ident", "expected value", "column", "invalid type"] {
            assert!(!found.contains(word), "{word} of {command:?}: {found}");
        }
    }
    let calls = sandbox.run_with(&["tool"], b"[]\nnix\n").out;
    assert!(calls.contains("the call must be an object (got [])"), "{calls}");
    assert!(calls.contains("a value is not JSON") && !calls.contains("ident"), "{calls}");
    sandbox.write("oubliette.toml", "wait = \"soon\"\n");
    let (_, told) = refused(&sandbox, &["list"]);
    assert!(told.contains("wait in oubliette.toml") && !told.contains("--wait:"), "{told}");
}

#[test]
fn habits_lead_to_what_was_meant_and_a_tip_fits_its_command() {
    let sandbox = Sandbox::new();
    for (command, tip) in [
        (&["list", "--tag", "x"][..], "--filter '{\"tags\":\"X\"}'"),
        (&["search", "tea", "--kind", "event"], "--filter '{\"kind\":\"X\"}'"),
        (&["list", "--all"], "--state any"),
        (&["add", "x", "--id", "5"], "--key"),
        (&["edit", "x"], "'update'"),
        (&["clear"], "'forget'"),
        (&["search", "where", "is", "it"], "stands in quotes"),
        (&["add", "-5 degrees"], "stands behind --"),
        (&["search", "- milk"], "stands behind --"),
        (&["backup", "-"], "export -"),
    ] {
        let (code, told) = refused(&sandbox, command);
        assert!(code == 2 && told.contains(tip), "{command:?}: {told}");
        assert!(!told.contains("allow-partial") && !told.contains("valid-to"), "{told}");
    }
    read(&sandbox, &["add", "it rains", "--tag", "weather", "--kind", "event"]);
    for filter in [r#"{"tags":"weather"}"#, r#"{"kind":"event"}"#] {
        assert!(read(&sandbox, &["list", "--filter", filter]).contains("it rains"));
    }
    for command in [&["check", "x"][..], &["memory-stats", "x"], &["namespace", "split", "x", "y"]] {
        assert!(!refused(&sandbox, command).1.contains("quotes"), "{command:?}");
    }
}

/// MODEL-33: what a pass has erased for good is named among what is lost.
#[test]
fn an_undo_says_what_does_not_come_back() {
    let sandbox = Sandbox::new();
    for number in 0..3 {
        read(&sandbox, &["add", &format!("text {number}"), "--key", "k"]);
    }
    sandbox.write("p.toml", "[sweeper]\ntombstone_ttl = \"1d\"\n");
    let later = |arguments: &[&str]| {
        let at = ["--db", "m.oub", "--now", "2026-06-01T00:00:00Z", "--policy", "p.toml"];
        sandbox.plain(&[&at, arguments].concat(), b"")
    };
    let done = later(&["--json", "maintain", "superseded"]).document();
    let undone = later(&["--json", "undo", done["run"].as_str().unwrap()]).document();
    assert_eq!(undone["lost"], json!(["what superseded erased does not come back: 2 memories"]));
    let told = later(&["undo", done["run"].as_str().unwrap()]).out;
    assert!(told.contains("lost: what superseded erased does not come back: 2 memories"), "{told}");
}

#[test]
fn a_refusal_names_what_allows_it() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "one", "--key", "k"]);
    read(&sandbox, &["add", "two", "--key", "k", "--namespace", "team"]);
    assert!(refused(&sandbox, &["namespace", "move", "team", "default"]).1.contains("(--drop-keys)"));
    assert!(refused(&sandbox, &["forget", "--filter", "{}", "--yes"]).1.contains("--all"));
    sandbox.write("b.oub", "");
    let (_, told) = refused(&sandbox, &["backup", "b.oub"]);
    assert!(told.contains("name a file that is not there yet") && !told.contains("memory"), "{told}");
    let (_, told) = refused(&sandbox, &["maintain", "--summarizer", "builtin"]);
    assert!(told.contains("(got no pass by name)"), "{told}");
    read(&sandbox, &["add", "three", "--key", "a", "--agent", "bob"]);
    let (_, told) = refused(&sandbox, &["add", "four", "--key", "a"]);
    assert!(told.contains("is held in the part of bob"), "{told}");
}

#[test]
fn what_is_gone_is_told_in_words() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann lives in Ghent", "--key", "home"]);
    read(&sandbox, &["add", "Ann lives in Bruges", "--key", "other", "--ttl", "1h"]);
    let old = sandbox.document(&["get", "home"])["id"].as_str().unwrap().to_owned();
    read(&sandbox, &["supersede", "home", "--with", "other"]);
    let later = |arguments: &[&str]| {
        let answer =
            sandbox.plain(&[&["--db", "m.oub", "--now", "2026-03-02T00:00:00Z"], arguments].concat(), b"");
        assert_eq!(answer.code, 0, "{answer:?}");
        answer.out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let gone = sandbox.document(&["add", "gone", "--key", "gone"])["id"].as_str().unwrap().to_owned();
    read(&sandbox, &["forget", "gone", "--yes"]);
    later(&["maintain", "expire"]);
    for command in ["get", "explain"] {
        let told = later(&[command, &old]);
        assert!(
            told.contains(". A memory that is gone by now (") && told.contains(": its life was over) took"),
            "{told}"
        );
    }
    for command in ["get", "explain"] {
        let told = later(&[command, &gone]);
        assert!(told.contains("Removed 2026-03-01 00:00Z (1 day ago): it was forgotten."), "{told}");
    }
}

/// All vectors of a file hang on one small row: one damaged byte of it takes nothing along.
#[test]
fn a_damaged_byte_of_an_embedding_space_is_found_out() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let whole = sandbox.run(&["export", "-"]).out;
    let path = sandbox.path("m.oub");
    let (key, value) = tables(&path)["space"][0].clone();
    for at in 0..value.len() {
        let mut damaged = value.clone();
        damaged[at] ^= 0x21;
        overwrite(&path, "space", &key, &damaged);
        if at % 7 != 0 {
            continue;
        }
        let run = |arguments: &[&str]| sandbox.run(arguments);
        let check: Value = serde_json::from_str(&run(&["check"]).out).unwrap();
        assert_eq!((&check["findings"][0]["table"], check["findings"][1].is_null()), (&json!("space"), true));
        let exported = run(&["export", "-"]);
        assert_eq!((exported.code, exported.out), (3, whole.clone()), "byte {at}");
        assert_eq!(run(&["explain", "a"]).code, 0, "byte {at}");
        assert_eq!(run(&["add", "x", "--vector", "[1,1]", "--key", "x"]).code, 0, "byte {at}");
        assert_eq!(run(&["forget", "x", "--yes"]).code, 0, "byte {at}");
        let healed = if at % 2 == 0 { "reindex" } else { "compact" };
        assert_eq!(run(&[healed]).code, if healed == "compact" { 3 } else { 0 }, "byte {at}");
        assert_eq!(run(&["check", "--deep"]).code, 0, "byte {at}");
        assert_eq!(run(&["export", "-"]).out, whole, "byte {at}");
    }
}

/// With more damage the vectors are out of reach, and what the memories say is not.
#[test]
fn texts_come_out_of_a_file_whose_embedding_space_is_lost() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let (path, run) = (sandbox.path("m.oub"), |arguments: &[&str]| sandbox.run(arguments));
    let (key, mut value) = tables(&path)["space"][0].clone();
    value.iter_mut().skip(5).take(4).for_each(|byte| *byte ^= 0x21);
    overwrite(&path, "space", &key, &value);
    for command in [&["get", "a"][..], &["list"], &["history", "a"], &["search", "tea", "--mode", "text"]] {
        assert_eq!(run(command).code, 0, "{command:?}");
    }
    let explained: Value = serde_json::from_str(&run(&["explain", "a"]).out).unwrap();
    assert_eq!((&explained["state"], run(&["explain", "a"]).code), (&json!("live"), 3), "{explained}");
    assert_eq!(run(&["check"]).code, 3);
    let exported = run(&["export", "-"]);
    assert_eq!((exported.code, exported.out.lines().count()), (3, 3), "{exported:?}");
    assert!(exported.out.contains("Ann prefers tea") && !exported.out.contains("0.6"), "{exported:?}");
    sandbox.write("saved.jsonl", &exported.out);
    let back = sandbox.plain(&["--db", "back.oub", "--json", "import", "saved.jsonl"], b"").document();
    assert_eq!(back["stored"], 3, "{back}");
}

/// A dry run does its work on a file that is only read as well, and leaves it as it was.
#[test]
fn a_dry_run_needs_no_file_that_can_be_written() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    sandbox.document(&["add", "Dee drinks mate", "--metadata", r#"{"project": "tea"}"#]);
    let before = std::fs::read(sandbox.path("m.oub")).unwrap();
    for arguments in [
        &["forget", "a", "--dry-run"][..],
        &["forget", "--filter", r#"{"kind": "knowledge"}"#, "--dry-run"],
        &["namespace", "move", "default", "other", "--dry-run"],
        &["namespace", "split", "default", "--by", "project", "--dry-run"],
    ] {
        let told = sandbox.document(&[arguments, &["--read-only"]].concat());
        assert_eq!(std::fs::read(sandbox.path("m.oub")).unwrap(), before, "{arguments:?}");
        assert_eq!(told, sandbox.document(arguments), "{arguments:?}");
        sandbox.write("m.oub", &before);
    }
}

/// What `prune` has removed tells the rule and its numbers.
#[test]
fn explain_tells_by_what_a_memory_was_pruned() {
    let sandbox = Sandbox::new();
    sandbox.write("p.toml", "prune.enabled = true\n");
    let run = |arguments: &[&str]| {
        let always = ["--db", "m.oub", "--now", NOW, "--policy", "p.toml"];
        let answer = sandbox.plain(&[&always, arguments].concat(), b"");
        assert_eq!(answer.code, 0, "{answer:?}");
        answer.out
    };
    let written = ["--kind", "consolidated_summary", "--created-at", "2026-01-01T00:00:00Z"];
    run(&[&["add", "what the session said", "--key", "s"], &written[..]].concat());
    run(&["maintain", "prune"]);
    let told = run(&["explain", "s"]);
    assert!(told.contains("it was pruned for utility 0.000000, below 0.2."), "{told}");
}

#[test]
fn a_cut_file_has_a_hint_of_its_own() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let whole = std::fs::read(sandbox.path("m.oub")).unwrap();
    let answers = |file: &str, command: &[&str]| sandbox.plain(&[&["--db", file], command].concat(), b"");
    let sound = [&["check"][..], &["export", "-"]].map(|command| answers("m.oub", command).out);
    let mut told = 0;
    for part in 2..8 {
        sandbox.write("cut.oub", &whole[..whole.len() * part / 8]);
        for command in [&["check"][..], &["export", "-"], &["add", "x"]] {
            let answer = answers("cut.oub", command);
            // A file may have been cut where nothing stood.
            assert!(answer.code != 0 || command == ["add", "x"] || sound.contains(&answer.out), "{answer:?}");
            if answer.err.contains("the file ends before this page") {
                assert!(
                    answer.err.contains("put an earlier backup there") && !answer.err.contains("run `check`"),
                    "{answer:?}"
                );
                told += 1;
            }
        }
    }
    assert!(told > 0);
}

/// LIFE-56: a text that takes the place of another keeps the end that a caller had set, which nobody expects who has not said so.
#[test]
fn a_text_that_ends_as_the_one_before_says_so() {
    let sandbox = Sandbox::new();
    let add = |words: &[&str]| {
        let told = sandbox.plain(&[&["--db", "m.oub", "--now", NOW, "add"], words].concat(), b"");
        assert_eq!(told.code, 0, "{told:?}");
        told.out
    };
    assert!(!add(&["Ann is on holiday", "--key", "ann", "--ttl", "7d"]).contains("as the text before"));
    assert!(add(&["Ann is back for good", "--key", "ann"]).contains("(in 7 days), as the text before"));
    assert!(!add(&["Ann is ill", "--key", "ann", "--expires-at", "never"]).contains("as the text before"));
    assert!(!add(&["Ann is back", "--key", "ann"]).contains("as the text before"));
    add(&["Ben is on holiday", "--key", "ben", "--ttl", "7d"]);
    let supersede = |words: &[&str]| {
        let all = [&["--db", "m.oub", "--now", NOW, "supersede", "ben"], words].concat();
        sandbox.plain(&all, b"")
    };
    let kept = supersede(&["--with-text", "Ben is back"]).out;
    assert!(kept.contains("(in 7 days), as the text before (--expires-at never keeps it)"), "{kept}");
    // The new text can have an end of its own, or none.
    let end = || {
        let told = sandbox.plain(&["--db", "m.oub", "--json", "get", "ben"], b"").out;
        serde_json::from_str::<serde_json::Value>(&told).unwrap()["expires_at"].clone()
    };
    for (given, ends) in [
        (["--ttl", "30d"], true),
        (["--expires-at", "2099-01-01T00:00:00Z"], true),
        (["--expires-at", "never"], false),
    ] {
        let told = supersede(&[&["--with-text", &format!("Ben is away {given:?}")], &given[..]].concat());
        assert_eq!((told.code, end().is_string()), (0, ends), "{told:?}");
        assert!(!told.out.contains("as the text before"), "{told:?}");
    }
    assert_eq!(supersede(&["--with-text", "x", "--ttl", "soon"]).code, 2);
    assert_eq!(supersede(&["--with", "ann", "--ttl", "7d"]).code, 2);
}

/// MODEL-21: a text that corrects another keeps until when that was true, and what is not true yet is found by no search.
#[test]
fn a_text_says_until_when_and_from_when_it_is_true() {
    let sandbox = Sandbox::new();
    let told = |words: &[&str]| {
        let told = sandbox.plain(&[&["--db", "m.oub", "--now", NOW], words].concat(), b"");
        assert_eq!(told.code, 0, "{told:?}");
        told.out
    };
    let end = "2099-01-01T00:00:00Z";
    assert!(
        !told(&["add", "Ann lives in Gent", "--key", "ann", "--valid-to", end])
            .contains("as the text before")
    );
    let ghent = told(&["add", "Ann lives in Ghent", "--key", "ann"]);
    assert!(ghent.contains("it is true until 2099-01-01 00:00Z (in 7"), "{ghent}");
    assert!(ghent.contains("as the text before (`update ann --clear valid_to` keeps it true)"), "{ghent}");
    assert!(!told(&["update", "ann", "--clear", "valid_to"]).contains("is true until"));
    assert!(!told(&["add", "Ann stays in Ghent", "--key", "ann"]).contains("is true until"));
    let add = ["add", "Ben lives in Lille", "--key", "ben", "--valid-from", end];
    for words in [&add[..], &add[..4], &["update", "ben", "--text", "Ben lives in Bruges"]] {
        let ben = told(words);
        assert!(ben.contains("it is true from 2099-01-01 00:00Z (in 7"), "{words:?}: {ben}");
        assert!(ben.contains("on, and no search finds it before"), "{words:?}: {ben}");
    }
    let cy = told(&["add", "Cy lives in Ghent", "--key", "cy"]);
    assert!(!cy.contains("true"), "{cy}");
    let cy = told(&["supersede", "cy", "--with-text", "Cy lives in Lille", "--at", end]);
    assert!(cy.contains("from 2099-01-01 00:00Z on") && !cy.contains("is true from"), "{cy}");
}

/// Other programs take a list behind one option.
#[test]
fn a_name_with_a_comma_is_told_as_one() {
    let sandbox = Sandbox::new();
    let add = |words: &[&str]| sandbox.plain(&[&["--db", "m.oub", "add"], words].concat(), b"").err;
    assert_eq!(
        add(&["a", "--key", "k", "--tag", "a,b"]),
        "`a,b` is one tag; --tag can be given several times\n"
    );
    assert!(add(&["b", "--category", "a,b"]).contains("is one category; --category can be"));
    assert!(add(&["c", "--entity", "Ann,Bob"]).contains("`Ann,Bob` is one entity; --entity can be"));
    assert_eq!(add(&["d", "--tag", "a", "--tag", "b"]), "");
    let told = sandbox.plain(&["--db", "m.oub", "update", "k", "--tag", "c,d"], b"");
    assert!(told.code == 0 && told.err.starts_with("`c,d` is one tag"), "{told:?}");
}

/// MODEL-38: a write never counts as of an instant before the last one, and nothing said so.
#[test]
fn a_clock_behind_the_last_write_is_told() {
    let sandbox = Sandbox::new();
    let add = |now: &str, text: &str| sandbox.plain(&["--db", "m.oub", "--now", now, "add", text], b"").err;
    assert_eq!(add("2026-03-02T10:00:00Z", "one"), "");
    assert_eq!(add("2026-03-02T10:00:00Z", "two"), "");
    let told = add("2026-03-01T10:00:00Z", "three");
    assert!(told.contains("--now says 2026-03-01 10:00") && told.contains("at 2026-03-02 10:00"), "{told}");
    let read = sandbox.plain(&["--db", "m.oub", "--now", "2026-03-01T10:00:00Z", "get", "x"], b"");
    assert!(!read.err.contains("--now says"), "{read:?}");
    // By the clock of the machine the file comes from the future.
    let told = add("2998-01-01T00:00:00Z", "four");
    assert!(told.contains("--now says 2998-01-01 00:00") && told.contains("ahead of the clock"), "{told}");
    let told = sandbox.plain(&["--db", "m.oub", "add", "five"], b"").err;
    assert!(
        told.contains("the clock of this machine says 20") && told.contains("2998-01-01 00:00"),
        "{told}"
    );
}

/// MODEL-38: a command that was to write and wrote nothing told of a clock all the same, as if something counted as of then.
#[test]
fn a_clock_behind_is_told_only_where_something_was_written() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Ann prefers tea", "--key", "tea"]);
    let early = |rest: &[&str]| {
        let mut arguments = vec!["--db", "m.oub", "--now", "2026-02-01T00:00:00Z"];
        arguments.extend(rest);
        sandbox.plain(&arguments, b"{}\n").err
    };
    sandbox.write("log.jsonl", "{\"memory\":\"tea\",\"tokens\":3}\n");
    sandbox.write("none.jsonl", "");
    for silent in [
        &["forget", "nobody", "--yes"][..],
        &["forget", "tea", "--dry-run"],
        &["update", "nobody", "--text", "x"],
        &["add", "Ann prefers tea", "--key", "tea"],
        &["import", "none.jsonl"],
        &["undo", "00000000-0000-7000-8000-000000000000"],
        &["goal", "drop", "00000000-0000-7000-8000-000000000000"],
        &["index", "drop", "nothing"],
        &["add", "-"],
    ] {
        let told = early(silent);
        assert!(!told.contains("--now says"), "{silent:?}: {told}");
    }
    for told in [
        &["update", "tea", "--text", "Ann prefers coffee"][..],
        &["context-log", "c1", "log.jsonl"],
        &["goal", "set", "fewer cups"],
        &["gc", "plan"],
        &["forget", "tea", "--yes"],
    ] {
        let err = early(told);
        assert!(err.contains("--now says 2026-02-01"), "{told:?}: {err}");
    }
}

/// cli.md: a tombstone is an answer, whatever named what is gone. A name of nothing is an error.
#[test]
fn what_was_forgotten_is_answered_by_its_tombstone() {
    let sandbox = Sandbox::new();
    let id = |key: &str| sandbox.document(&["get", key])["id"].as_str().unwrap().to_owned();
    sandbox.document(&["add", "Ann prefers tea", "--key", "tea"]);
    sandbox.document(&["add", "Ann lives in Ghent", "--key", "home"]);
    let (tea, home) = (id("tea"), id("home"));
    sandbox.document(&["forget", "tea", "--yes"]);
    sandbox.document(&["forget", &home, "--yes"]);
    for (name, id) in [("tea", &tea), (&tea, &tea), ("home", &home), (&home, &home)] {
        for more in [&[][..], &["--vector"], &["--payload"]] {
            let get = [&["get", name], more].concat();
            assert_eq!(sandbox.document(&get)["tombstone"]["id"], id.as_str(), "{get:?}");
            let told = read(&sandbox, &get);
            assert!(told.contains("is gone from default") && told.contains("it was forgotten"), "{told}");
        }
        assert!(read(&sandbox, &["-v", "get", name]).contains("tombstone.reason"));
        assert_eq!(sandbox.document(&["explain", name])["state"], "tombstoned");
        assert_eq!(sandbox.document(&["history", name])["versions"][0]["state"], "tombstoned");
    }
    for command in ["get", "explain", "history"] {
        let answer = sandbox.run(&[command, "nobody"]);
        assert_eq!((answer.code, answer.error().0.as_str()), (1, "NotFound"), "{command}");
    }
}

#[test]
fn a_history_has_the_texts_of_its_versions() {
    let sandbox = Sandbox::new();
    for text in ["Ann lives in Ghent", "Ann lives in Bruges", "Ann lives in Lier"] {
        sandbox.document(&["add", text, "--key", "home"]);
    }
    let versions = sandbox.document(&["history", "home"])["versions"].clone();
    let said = |text: &str| versions.as_array().unwrap().iter().find(|one| one["text"] == text).unwrap();
    assert_eq!(said("Ann lives in Ghent")["state"], "superseded");
    assert_eq!(
        said("Ann lives in Lier")["state"],
        "live",
        "the word of the contract, not that of a sentence"
    );
    let second = said("Ann lives in Bruges")["id"].as_str().unwrap().to_owned();
    sandbox.document(&["forget", &second, "--yes"]);
    let versions = sandbox.document(&["history", "home"])["versions"].clone();
    for version in versions.as_array().unwrap() {
        assert_eq!(version.get("text").is_none(), version["id"] == second.as_str(), "{version}");
    }
    sandbox.document(&["forget", "home", "--yes"]);
    assert!(!sandbox.run(&["history", "home"]).out.contains("Ann lives"));
}

/// Instants were shown in the zone of the reader without a word of it, and what is typed is read as UTC.
#[test]
fn an_instant_that_is_shown_can_be_typed_again() {
    let sandbox = Sandbox::new();
    for (zone, shown) in [
        ("UTC", "2026-03-01 00:00Z"),
        ("Asia/Tokyo", "2026-03-01 09:00+09:00"),
        ("XYZ3:30", "2026-02-28 20:30-03:30"),
    ] {
        let key = format!("in {zone}");
        let run = |arguments: &[&str]| {
            let mut command = sandbox.command(&[&["--db", "m.oub", "--now", NOW], arguments].concat());
            let out = command.env("TZ", zone).output().unwrap();
            assert!(out.status.success(), "{arguments:?}: {out:?}");
            String::from_utf8(out.stdout).unwrap()
        };
        run(&["add", &format!("said {key}"), "--key", &key]);
        let told = run(&["get", &key]);
        assert!(told.contains(&format!("{shown} (just now)")), "{zone}: {told}");
        run(&["update", &key, "--valid-from", shown]);
        assert_eq!(sandbox.document(&["get", &key])["valid_from"], NOW, "{zone}");
    }
}

#[test]
fn a_file_of_another_form_leads_to_its_format() {
    let sandbox = Sandbox::new();
    for (text, why) in [
        (r#"[{"text":"x"}]"#, "must be a memory as a JSON object"),
        ("[\n{\"text\":\"x\"}\n]", "must be a memory as a JSON object"),
        (r#"{"results":[{"id":"1","memory":"Ann likes tea"}]}"#, "results: is no field of a memory"),
        (
            r#"{"type":"entity","name":"Ann","entityType":"person","observations":[]}"#,
            "is no field of a memory",
        ),
        ("hello", "must be a memory as a JSON object"),
    ] {
        sandbox.write("file", text);
        let told = sandbox.plain(&["--db", "m.oub", "import", "file"], b"");
        let (hint, code) =
            (told.err.lines().find(|line| line.starts_with("hint: ")).unwrap_or_default(), told.code);
        assert!(told.err.contains(why) && code == 1, "{told:?}");
        assert!(hint.contains("no memory was written"), "{told:?}");
        for format in oubliette::exchange::Format::ALL {
            let names =
                format.as_str() == "oubliette" || hint.contains(&format!("--format {}", format.as_str()));
            assert!(names, "{format}: {told:?}");
        }
    }
    let hint = |file: &str| {
        sandbox.write("file", file);
        sandbox.plain(&["--db", "m.oub", "import", "file"], b"").err
    };
    assert!(hint("[]").contains("one JSON object a line") && hint("{\"a\":1}").contains("--lenient"));
    // What is wrong in a line of ours leads nowhere else.
    assert!(!hint("{\"text\":\"x\",\"kind\":7}").contains("--format"));
}

/// A plain `add` makes memories that no summary takes, and `gc` said nothing of that.
#[test]
fn a_plan_of_nothing_says_what_would_be_summarized() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Ann prefers tea"]);
    for command in [&["gc", "plan"][..], &["gc", "run"], &["gc", "run", "--dry-run"]] {
        let told = read(&sandbox, command);
        for words in [
            "message, assistant_message, tool_result and aggregate (gc.kinds)",
            "2 or more",
            "14d",
            "a plain `add` makes knowledge, which stays as it is",
        ] {
            assert!(told.contains(words), "{command:?}: {told}");
        }
    }
    sandbox.write("p.toml", "[gc]\nkinds = [\"knowledge\"]\nage_min = \"3d\"\n");
    let told = read(&sandbox, &["--policy", "p.toml", "gc", "plan"]);
    assert!(
        told.contains("knowledge (gc.kinds)") && told.contains("3d") && !told.contains("plain `add`"),
        "{told}"
    );
}

/// The file of the user's memories is named by a variable, and the demo filled it.
#[test]
fn the_demo_leaves_the_file_of_the_user_alone() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let before = std::fs::read(sandbox.path("m.oub")).unwrap();
    let demo = sandbox.command(&["demo"]).env("OUBLIETTE_DB", "m.oub").output().unwrap();
    assert!(demo.status.success(), "{demo:?}");
    assert_eq!(std::fs::read(sandbox.path("m.oub")).unwrap(), before);
}

#[test]
fn runs_of_other_namespaces_are_found() {
    let sandbox = Sandbox::new();
    sandbox.write("lines.jsonl", r#"{"namespace": "team", "text": "Ann prefers tea"}"#);
    let report = sandbox.document(&["import", "lines.jsonl"]);
    let run = report["runs"][0]["run"].as_str().or(report["run"].as_str()).unwrap();
    let told = sandbox.plain(&["--db", "m.oub", "runs"], b"").out;
    assert!(told.contains("No run in default, but in team (--namespace team)"), "{told}");
    assert_eq!(sandbox.document(&["runs", run])["id"], run);
    assert_eq!(sandbox.run(&["--namespace", "default", "runs", run]).error().0, "NotFound");
}

/// An import whose namespace was split is taken back in each part, and `runs RUN` says so.
#[test]
fn a_run_of_several_namespaces_is_told_as_a_whole() {
    let sandbox = Sandbox::new();
    let lines = ["u0", "u1"].map(|user| {
        json!({ "text": format!("fact of {user}"), "metadata": { "user_id": user } }).to_string()
    });
    sandbox.write("lines.jsonl", lines.join("\n"));
    let run = sandbox.document(&["import", "lines.jsonl"])["run"].as_str().unwrap().to_owned();
    sandbox.document(&["namespace", "split", "default", "--by", "user_id"]);
    let told = read(&sandbox, &["runs", &run]);
    for words in
        ["What it did in default", "What it did in u1: stored 2", &format!("`undo {run}` takes it back.")]
    {
        assert!(told.contains(words), "{told}");
    }
    let document = sandbox.document(&["runs", &run]);
    assert_eq!(
        (&document["can_be_undone"], document["namespaces"].as_array().unwrap().len()),
        (&json!(true), 3)
    );
    sandbox.document(&["--namespace", "u0", "undo", &run]);
    assert_eq!(sandbox.document(&["runs", &run])["can_be_undone"], true, "the rest is in u1");
    sandbox.document(&["undo", &run]);
    assert!(read(&sandbox, &["runs", &run]).contains("It can't be taken back."));
}

#[test]
fn forgetting_a_text_names_the_one_that_took_its_place() {
    let sandbox = Sandbox::new();
    let first = sandbox.document(&["add", "My PIN is 1234"])["id"].as_str().unwrap().to_owned();
    let second = sandbox.document(&["update", &first, "--text", "My PIN is 9876"])["id"].clone();
    let told = sandbox.plain(&["--db", "m.oub", "forget", &first, "--yes"], b"").out;
    let place = format!("the text that took its place is still there: {} ", second.as_str().unwrap());
    assert!(told.contains(&place) && told.contains("(with an id, --with-history takes it too)"), "{told}");
}

#[test]
fn forgetting_a_text_names_the_one_that_is_to_take_its_place() {
    let sandbox = Sandbox::new();
    let first = sandbox.document(&["add", "Ann lives in Ghent"])["id"].as_str().unwrap().to_owned();
    let ahead = ["supersede", &first, "--with-text", "Ann lives in Bruges", "--at", "2027-01-01T00:00:00Z"];
    sandbox.document(&ahead);
    let second =
        sandbox.document(&["search", "Bruges", "--valid-at", "2027-02-01T00:00:00Z"])["hits"][0]["id"]
            .clone();
    let forget = ["--db", "m.oub", "forget", &first, "--yes"];
    let told = sandbox.plain(&forget, b"").out;
    let place = format!("the text that is to take its place is still there: {} ", second.as_str().unwrap());
    assert!(told.contains(&place) && told.contains("(with an id, --with-history takes it too)"), "{told}");
}

#[test]
fn what_a_list_leaves_out_is_told() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let path = sandbox.path("m.oub");
    let (key, value) = tables(&path)["memory"][0].clone();
    let damaged: Vec<u8> = value.iter().map(|byte| byte ^ 0x5a).collect();
    overwrite(&path, "memory", &key, &damaged);
    let told = sandbox.plain(&["--db", "m.oub", "--now", NOW, "list"], b"");
    assert!(told.code == 0 && told.err.contains("is damaged; `check` tells more"), "{told:?}");
}

#[test]
fn an_end_is_told_as_it_was_given() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann is away", "--key", "away", "--ttl", "5d"]);
    // Seconds later there are not five whole days left.
    let later = sandbox.plain(&["--db", "m.oub", "--now", "2026-03-01T00:00:07Z", "get", "away"], b"").out;
    assert!(later.contains("(in 5 days)"), "{later}");
}

#[test]
fn a_name_moves_no_cursor_and_an_empty_briefing_says_what_to_try() {
    let (sandbox, _) = filled();
    let told = read(&sandbox, &["--namespace", "n\u{1b}[31m", "list"]);
    assert!(told.contains("There is no namespace n [31m") && !told.contains('\u{1b}'), "{told:?}");
    let told = read(&sandbox, &["--namespace", "empty", "briefing"]);
    assert!(told.contains("There is no namespace empty"), "{told}");
    let told = read(&sandbox, &["briefing", "--agent", "nobody"]);
    assert!(told.contains("Nothing to tell; try --any-agent"), "{told}");
}

#[test]
fn an_option_that_a_search_does_not_read_is_refused() {
    let (sandbox, _) = filled();
    for arguments in
        [&["search", "tea", "--vectors", "v.npy"][..], &["search", "--queries", "q", "--explain"]]
    {
        assert_eq!(refused(&sandbox, arguments).0, 2, "{arguments:?}");
    }
}

#[test]
fn what_a_pass_has_united_is_found_where_the_answer_says() {
    let sandbox = Sandbox::new();
    let line = |key: &str| json!({ "key": key, "text": "Ann moved", "vector": [1, 0] }).to_string();
    sandbox.write("equal.jsonl", ["a", "b"].map(line).join("\n"));
    sandbox.document(&["import", "equal.jsonl", "--no-dedup"]);
    let told = read(&sandbox, &["maintain", "near-duplicates"]);
    assert!(
        told.contains("1 memory is in limbo: another says the same; `list --state limbo` shows them"),
        "{told}"
    );
    assert_eq!(sandbox.document(&["list", "--state", "limbo"])["items"].as_array().unwrap().len(), 1);
}
