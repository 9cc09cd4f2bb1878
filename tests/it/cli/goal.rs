//! `goal`: its documents and its refusals.

use serde_json::json;

use super::sandbox::{Sandbox, has};
use crate::damage::store::{damaged, overwrite, tables};

#[test]
fn a_goal_is_set_listed_and_dropped() {
    let sandbox = Sandbox::new();
    let goal =
        sandbox.document(&["goal", "set", "Ship the release", "--agent", "builder", "--weight", "0.5"]);
    has(&goal, &["goal_id", "agent", "text", "weight", "set_at", "pending"]);
    assert_eq!((goal["agent"].as_str(), goal["weight"].as_f64()), (Some("builder"), Some(0.5)));
    let list = sandbox.document(&["goal", "list"]);
    assert_eq!(list["goals"].as_array().unwrap(), std::slice::from_ref(&goal));
    let id = goal["goal_id"].as_str().unwrap();
    assert_eq!(sandbox.document(&["goal", "drop", id])["text"], "Ship the release");
    assert!(sandbox.document(&["goal", "list"])["goals"].as_array().unwrap().is_empty());
    let again = sandbox.run(&["goal", "drop", id]);
    assert_eq!((again.code, again.error().0.as_str()), (1, "NotFound"));
    for (code, bad) in [
        (1, &["goal", "set", &"goal ".repeat(20_000)][..]),
        (2, &["goal", "set", "x", "--weight", "-1"]),
        (2, &["goal", "set", "x", "--weight", "NaN"]),
        (1, &["goal", "drop", "nonsense"]),
    ] {
        let answer = sandbox.run(bad);
        assert_eq!((answer.code, answer.error().0.as_str()), (code, "Invalid"), "{bad:?}");
    }
}

#[test]
fn the_lines_of_an_export_with_goals_prove_that_a_dropped_one_is_gone() {
    let sandbox = Sandbox::new();
    let goal = sandbox.document(&["goal", "set", "Ship the release before the winter holidays"]);
    assert_eq!(sandbox.document(&["export", "all.jsonl", "--all-states"])["goals"], 1);
    sandbox.document(&["goal", "drop", goal["goal_id"].as_str().unwrap()]);
    sandbox.document(&["compact"]);
    assert_eq!(sandbox.document(&["check", "--erased", "all.jsonl"])["ok"], true);
}

/// A damaged goal was left out without a word, and could not be dropped, so every score by goals stayed stale for good.
#[test]
fn a_damaged_goal_is_told_of_and_can_be_dropped() {
    let sandbox = Sandbox::new();
    let id = |text: &str| sandbox.document(&["goal", "set", text])["goal_id"].as_str().unwrap().to_owned();
    let (first, second) = (id("Ship the release"), id("Learn French"));
    sandbox.document(&["add", "Ann prefers tea", "--key", "tea"]);
    let path = sandbox.path("m.oub");
    let rows = tables(&path)["goal"].clone();
    overwrite(&path, "goal", &rows[0].0, &damaged("a bit", 0, &rows));
    let lost = if rows[0].0.ends_with(first.parse::<oubliette::MemoryId>().unwrap().as_bytes()) {
        first
    } else {
        second
    };
    let list = sandbox.document(&["goal", "list"]);
    assert_eq!((list["goals"].as_array().unwrap().len(), &list["damaged"]), (1, &json!([lost])));
    let told = sandbox.plain(&["--db", "m.oub", "goal", "list"], b"");
    assert!(told.code == 0 && told.err.contains("1 goal is damaged and left out"), "{told:?}");
    let explained = sandbox.document(&["explain", "tea"]);
    assert_eq!(explained["scores"]["damaged_goals"], 1, "{explained}");
    let pruned = sandbox.document(&["maintain", "prune", "--dry-run"]);
    assert_eq!(pruned["passes"][0]["damaged"], 1, "{pruned}");
    assert_eq!(sandbox.document(&["goal", "drop", &lost]), json!({"goal_id": lost, "damaged": true}));
    assert_eq!(sandbox.run(&["goal", "drop", &lost]).error().0, "NotFound");
    let list = sandbox.document(&["goal", "list"]);
    assert!(list["goals"].as_array().unwrap().len() == 1 && list.get("damaged").is_none(), "{list}");
    assert_eq!(sandbox.document(&["check"])["ok"], true);
}
