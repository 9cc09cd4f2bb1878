//! `goal`: its documents and its refusals.

use super::sandbox::{Sandbox, has};

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
    for bad in [
        &["goal", "set", &"goal ".repeat(20_000)][..],
        &["goal", "set", "x", "--weight", "-1"],
        &["goal", "set", "x", "--weight", "NaN"],
        &["goal", "drop", "nonsense"],
    ] {
        let answer = sandbox.run(bad);
        assert_eq!((answer.code, answer.error().0.as_str()), (1, "Invalid"), "{bad:?}");
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
