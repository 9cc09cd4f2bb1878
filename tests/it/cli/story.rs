//! What a person is told of one memory: whether it holds, what ended it, what stands in its place.

use super::sandbox::Sandbox;

/// What a call at an instant tells on both streams.
fn at(sandbox: &Sandbox, now: &str, arguments: &[&str]) -> String {
    let answer = sandbox.plain(&[&["--db", "m.oub", "--now", now], arguments].concat(), b"");
    assert_eq!(answer.code, 0, "{arguments:?}: {answer:?}");
    answer.out + &answer.err
}

const EARLY: &str = "2026-03-01T10:00:00Z";
const LATER: &str = "2026-03-03T10:00:00Z";

#[test]
fn an_explanation_says_whether_a_memory_still_holds() {
    let sandbox = Sandbox::new();
    at(&sandbox, EARLY, &["add", "Ann sees the dentist", "--key", "dentist", "--ttl", "1d"]);
    at(&sandbox, EARLY, &["add", "Ann weighs 60 kg", "--key", "weight"]);
    at(&sandbox, EARLY, &["add", "Bob moves in", "--key", "bob", "--valid-from", "2026-04-01"]);
    at(&sandbox, "2026-03-01T12:00:00Z", &["contradict", "weight"]);
    for (key, parts) in [
        ("dentist", ["dentist is expired.", "Ended 2026-03-02 10:00Z (1 day ago)."]),
        ("weight", ["weight is no longer true.", "True until 2026-03-01 12:00Z (1 day ago)."]),
        ("bob", ["bob is not true yet.", "True from 2026-04-01 00:00Z (in 29 days)."]),
    ] {
        let told = at(&sandbox, LATER, &["explain", key]);
        assert!(parts.iter().all(|part| told.contains(part)), "{parts:?}: {told}");
    }
}

#[test]
fn a_story_names_memories_by_what_they_say() {
    let sandbox = Sandbox::new();
    at(&sandbox, EARLY, &["add", "Ann lives in Ghent", "--key", "home"]);
    let old = sandbox.document(&["get", "home"])["id"].as_str().unwrap().to_owned();
    at(&sandbox, LATER, &["supersede", "home", "--with-text", "Ann lives in Bruges"]);
    let told = at(&sandbox, LATER, &["explain", "home"]);
    assert!(told.contains("It took the place of: “Ann lives in Ghent” (home)."), "{told}");
    assert!(!told.contains(&old) && !told.contains("embedding_space"), "{told}");
    let told = at(&sandbox, LATER, &["get", &old]);
    assert!(told.contains("“Ann lives in Bruges” (home) took its place 2026-03-03"), "{told}");
}

/// When the journal has gone back no further, the memory still says when it was stored.
#[test]
fn a_story_without_its_journal_invents_nobody() {
    let sandbox = Sandbox::new();
    at(&sandbox, EARLY, &["add", "Ann prefers tea", "--key", "tea"]);
    at(&sandbox, "2026-06-01T10:00:00Z", &["maintain", "retention"]);
    let told = at(&sandbox, "2026-06-01T10:00:00Z", &["explain", "tea"]);
    assert!(told.contains("Stored 2026-03-01 10:00Z (3 months ago).\n"), "{told}");
}

#[test]
fn a_write_that_nothing_will_find_says_so() {
    let sandbox = Sandbox::new();
    at(&sandbox, EARLY, &["add", "Ann lives in Ghent", "--key", "home"]);
    at(&sandbox, EARLY, &["contradict", "home"]);
    let told = at(&sandbox, LATER, &["update", "home", "--text", "Ann lived in Ghent"]);
    assert!(told.contains("Revised home in default; it was true until 2026-03-01 10:00"), "{told}");
    assert!(at(&sandbox, LATER, &["search", "Ghent"]).contains("Nothing"), "no search finds it");
    let told = at(&sandbox, LATER, &["add", "over at once", "--ttl", "0"]);
    assert!(told.contains("its life ended"), "{told}");
    assert_eq!(
        at(&sandbox, LATER, &["add", "Ann lives in Mons", "--key", "home"]),
        "Stored home in default\n"
    );
}

#[test]
fn a_row_of_a_table_names_a_few_of_many_keys() {
    let sandbox = Sandbox::new();
    for at_key in 0..9 {
        at(&sandbox, EARLY, &["add", "all systems run", "--key", &format!("log:{at_key}")]);
    }
    let told = at(&sandbox, EARLY, &["list"]);
    assert!(told.contains("log:0, log:1, log:2, and 6 more") && !told.contains("log:3"), "{told}");
}

/// Past its horizon a run is undone no more, and was offered all the same.
#[test]
fn undo_is_offered_as_long_as_it_works() {
    let sandbox = Sandbox::new();
    for number in 0..2 {
        sandbox.document(&["add", "Ann prefers tea", "--key", &format!("tea-{number}"), "--no-dedup"]);
    }
    let line = r#"{"key":"short","text":"Ann is on the train","tier":"working","ttl":"1h"}"#;
    sandbox.write("line.jsonl", line);
    sandbox.document(&["import", "line.jsonl"]);
    sandbox.document(&["maintain", "collapse", "near-duplicates"]);
    let gone = sandbox.document(&["list", "--state", "limbo"])["items"][0]["id"].as_str().unwrap().to_owned();
    let told = |at: &str, command: &str| {
        let answer = sandbox.plain(&["--db", "m.oub", "--now", at, command, &gone], b"");
        assert_eq!(answer.code, 0, "{answer:?}");
        answer.out
    };
    for command in ["get", "explain"] {
        let soon = told("2026-03-02T00:00:00Z", command);
        assert!(soon.contains("`undo ") && soon.contains("`restore "), "{soon}");
        let late = told("2027-03-02T00:00:00Z", command);
        assert!(!late.contains("`undo ") && late.contains("`restore "), "{late}");
    }
}

/// A memory that loses what others had brought is told of it, in its story and in the feed.
#[test]
fn a_merge_that_was_taken_back_is_told_of_the_memory_that_stays() {
    let sandbox = Sandbox::new();
    for apps in [4, 7] {
        sandbox.document(&["add", &format!("Gateway status: {apps} apps pending"), "--kind", "profile"]);
    }
    let run = sandbox.document(&["maintain", "collapse"])["run"].as_str().unwrap().to_owned();
    let items = sandbox.document(&["list"])["items"].clone();
    let stays = items[0]["id"].as_str().unwrap();
    let next = sandbox.document(&["changes"])["next"].as_u64().unwrap();
    sandbox.document(&["undo", &run]);
    let told = at(&sandbox, EARLY, &["explain", stays]);
    assert!(told.trim_end().ends_with("changed (observations) by caller"), "{told}");
    let feed = sandbox.document(&["changes", "--since", &next.to_string()]);
    let ids = feed["changes"].as_array().unwrap().iter().map(|change| change["id"].as_str().unwrap());
    assert!(ids.clone().any(|id| id == stays) && ids.count() == 2, "{feed}");
}

/// What a write says of the time of its memory is what becomes of it: an end that was announced is told by what takes the place, and
/// an end that was not taken is told.
#[test]
fn a_write_tells_the_end_that_its_memory_has() {
    let sandbox = Sandbox::new();
    at(&sandbox, EARLY, &["add", "Ann lives in Ghent", "--key", "home"]);
    let plan = ["supersede", "home", "--with-text", "Ann lives in Bruges", "--at", "2026-06-01"];
    at(&sandbox, EARLY, &plan);
    for arguments in [
        &["add", "Ann lives in Ghent, by the river", "--key", "home"][..],
        &["update", "home", "--clear", "valid_to"],
        &["update", "home", "--valid-to", "2027-01-01"],
        &["add", "Ann lives in Ghent, on the Lys", "--key", "home", "--valid-to", "2027-01-01"],
    ] {
        let told = at(&sandbox, LATER, arguments);
        let until = "it is true until 2026-06-01 00:00Z (in 3 months), when “Ann lives in Bruges” (";
        assert!(told.contains(until) && told.contains("(`restore home` takes that back)"), "{told}");
        assert!(!told.contains("--clear"), "{told}");
    }
    at(&sandbox, LATER, &["restore", "home"]);
    let told = at(&sandbox, LATER, &["get", "home"]);
    assert!(told.contains("on the Lys") && told.contains("True until 2027-01-01"), "{told}");
    at(&sandbox, EARLY, &["add", "the door code is 1234"]);
    for (end, more) in [
        (["--ttl", "1h"], "; it never ends, as before"),
        (["--expires-at", "2020-01-01"], "; it never ends, as before"),
        (["--expires-at", "never"], ""),
    ] {
        let told = at(&sandbox, LATER, &[&["add", "the door code is 1234"], &end[..]].concat());
        assert!(told.starts_with("Reinforced ") && told.trim_end().ends_with(more), "{told}");
        assert_eq!(told.contains("it never ends"), !more.is_empty(), "{told}");
    }
    at(&sandbox, EARLY, &["add", "the alarm code is 99", "--ttl", "30d"]);
    let told = at(&sandbox, LATER, &["add", "the alarm code is 99", "--ttl", "1h"]);
    assert!(
        told.contains(
            "; it ends 2026-04-02 10:00Z (in 1 month): of several ends of a text the latest counts"
        ),
        "{told}"
    );
    let told = at(&sandbox, LATER, &["add", "the alarm code is 99", "--ttl", "60d"]);
    assert!(told.starts_with("Reinforced ") && !told.contains("it ends"), "{told}");
}

/// A text that was announced and then overtaken was never true, and the name in brackets is one that means the memory by now.
#[test]
fn what_is_announced_is_named_by_what_means_it() {
    let sandbox = Sandbox::new();
    at(&sandbox, EARLY, &["add", "Ann rents a flat", "--key", "flat"]);
    let house =
        ["supersede", "flat", "--with-text", "Ann owns a house", "--key", "house", "--at", "2026-06-01"];
    at(&sandbox, EARLY, &house);
    let told = at(&sandbox, LATER, &["get", "flat"]);
    assert!(told.contains("“Ann owns a house” (house) takes its place"), "{told}");
    at(&sandbox, EARLY, &["add", "Ann lives in Ghent", "--key", "home"]);
    for (text, day) in [("Ann lives in Bruges", "2026-06-01"), ("Ann lives in Antwerp", "2026-06-01")] {
        at(&sandbox, LATER, &["supersede", "home", "--with-text", text, "--at", day]);
    }
    let told = at(&sandbox, LATER, &["history", "home"]);
    let line = |text: &str| told.lines().find(|line| line.contains(text)).unwrap_or(&told);
    assert!(line("Bruges").contains("never true") && !line("Bruges").contains(" live "), "{told}");
    assert!(line("Ghent").contains(" live ") && line("Antwerp").contains("not true yet"), "{told}");
}
