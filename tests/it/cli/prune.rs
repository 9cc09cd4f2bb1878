//! `maintain prune` and the scores in `explain`: their documents and refusals.

use serde_json::json;

use super::sandbox::{Sandbox, has};

/// A sandbox with two old summaries.
fn old() -> Sandbox {
    let sandbox = Sandbox::new();
    for (text, kind) in [("Ann moved to Ghent", "chapter_summary"), ("Bob married", "consolidated_summary")] {
        sandbox.document(&[
            "add",
            text,
            "--kind",
            kind,
            "--created-at",
            "2020-01-01T00:00:00Z",
            "--key",
            text,
        ]);
    }
    sandbox
}

#[test]
fn prune_tells_what_it_did_and_undo_takes_it_back() {
    let sandbox = old();
    let off = sandbox.document(&["maintain", "prune"]);
    assert_eq!(off["passes"][0]["planned"], 0);
    sandbox.write("on.toml", "prune.enabled = true");
    sandbox.document(&["policy", "set", "on.toml"]);
    let done = sandbox.document(&["maintain", "prune", "--step", "7"]);
    let report = &done["passes"][0]["report"];
    has(report, &["by_age", "by_score", "bytes", "pruned"]);
    assert_eq!((report["by_age"].as_u64(), report["by_score"].as_u64()), (Some(1), Some(1)));
    let undone = sandbox.document(&["undo", done["run"].as_str().unwrap()]);
    assert_eq!(undone["restored"], 2);
}

/// A pass that is enabled is no stage yet, and would never run.
#[test]
fn a_policy_that_enables_a_pass_and_names_no_stage_is_told() {
    let sandbox = Sandbox::new();
    for (document, told) in [
        (
            "prune.enabled = true",
            "prune.enabled is true, but sweeper.stages has no prune: only `maintain prune`",
        ),
        ("cluster.enabled = true", "cluster.enabled is true, but sweeper.stages has no cluster"),
        ("prune.enabled = true\nsweeper.stages = ['prune']", ""),
        ("undo.horizon = '7d'", ""),
    ] {
        sandbox.write("p.toml", document);
        let answer = sandbox.plain(&["--db", "m.oub", "policy", "set", "p.toml"], b"");
        assert_eq!(answer.code, 0, "{answer:?}");
        assert!(answer.err.starts_with(told) && (told.is_empty() == answer.err.is_empty()), "{answer:?}");
    }
}

#[test]
fn statistics_of_use_have_no_table_without_rows() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Ann prefers tea"]);
    let told = sandbox.plain(&["--db", "m.oub", "stats", "--access"], b"").out;
    assert!(told.contains("utility from"), "{told}");
    assert!(!told.contains("mean relevance from") && !told.contains("most retrieved"), "{told}");
}

#[test]
fn policies_are_compared_in_one_call() {
    let sandbox = old();
    sandbox.write("age.toml", "prune.mode = 'age'");
    sandbox.write("both.toml", "prune.mode = 'both'");
    sandbox.write("q.jsonl", "{\"query\": \"Where does Ann live?\"}\n{\"query\": \"Bob\"}\n");
    let compare =
        ["maintain", "prune", "--dry-run", "--compare", "age.toml", "both.toml", "--queries", "q.jsonl"];
    let all = sandbox.document(&compare);
    let rows: Vec<_> = all["policies"].as_array().unwrap().iter().map(|one| one["rows"].as_u64()).collect();
    assert_eq!(rows, [Some(1), Some(2)]);
    has(&all["policies"][0], &["policy", "rows", "bytes", "by_age", "by_score", "probes", "recall"]);
    assert_eq!(all["policies"][1]["recall"], 0.0);
    assert_eq!(sandbox.document(&["list"])["items"].as_array().unwrap().len(), 2);
    // It is a dry run of this pass alone.
    assert_eq!(sandbox.run(&["maintain", "prune", "--compare", "age.toml"]).code, 2);
    assert_eq!(sandbox.run(&["maintain", "cap", "--dry-run", "--compare", "age.toml"]).error().0, "Invalid");
    sandbox.write("bad.toml", "prune.mode = 'never'");
    assert_eq!(sandbox.run(&["maintain", "prune", "--dry-run", "--compare", "bad.toml"]).error().0, "Policy");
}

#[test]
fn presets_prune_and_are_compared_by_name() {
    let sandbox = old();
    let compare =
        ["maintain", "prune", "--dry-run", "--compare", "preset:l1_low_l2_medium", "preset:steps_late"];
    let all = sandbox.document(&compare);
    let told = |at: usize| (all["policies"][at]["policy"].as_str(), all["policies"][at]["rows"].as_u64());
    assert_eq!(told(0), (Some("preset:l1_low_l2_medium"), Some(2)));
    assert_eq!(told(1), (Some("preset:steps_late"), Some(0)));
    let unknown = ["maintain", "prune", "--dry-run", "--compare", "preset:nonsense"];
    assert_eq!(sandbox.run(&unknown).error().0, "Invalid");
    assert_eq!(sandbox.run(&["maintain", "prune", "--preset", "nonsense"]).code, 2);
    let done = sandbox.document(&["maintain", "prune", "--preset", "l1_low_l2_medium"]);
    assert_eq!(done["passes"][0]["tombstoned"], 2);
}

#[test]
fn stats_tell_how_memories_are_used() {
    let sandbox = old();
    sandbox.write("cy.jsonl", r#"{"text":"Cy sails","kind":"episode","retrieval_count":4}"#);
    sandbox.document(&["import", "cy.jsonl"]);
    assert!(sandbox.document(&["stats"]).get("access").is_none());
    let used = sandbox.document(&["stats", "--access"])["access"].clone();
    has(
        &used,
        &[
            "memories",
            "never_retrieved_share",
            "retrievals",
            "mean_relevance",
            "utility",
            "thresholds",
            "most_retrieved",
        ],
    );
    assert_eq!((used["memories"].clone(), used["never_retrieved"].clone()), (json!(3), json!(2)));
    assert_eq!(used["most_retrieved"][0]["retrieval_count"], 4);
    assert_eq!(
        (used["thresholds"][0]["l1"].clone(), used["thresholds"][0]["l2"].clone()),
        (json!(1), json!(1))
    );
    let told = sandbox.plain(&["--db", "m.oub", "stats", "--access"], b"");
    assert!(told.out.starts_with("3 memories, 2 of them never found"), "{}", told.out);
    assert!(told.out.contains("unprotected") && told.out.contains("most retrieved"));
}

#[test]
fn a_target_prunes_a_kind_and_explain_shows_scores() {
    let sandbox = old();
    let story = sandbox.document(&["explain", "Bob married"]);
    has(
        &story["scores"],
        &["retention_score", "memory_utility_score", "goal_relevance_score", "final_score"],
    );
    let target = ["maintain", "prune", "--kind", "consolidated_summary", "--target", "0"];
    assert_eq!(sandbox.document(&target)["passes"][0]["changed"], 1);
    assert!(sandbox.document(&["explain", "Bob married"]).get("scores").is_none());
    assert_eq!(
        sandbox.run(&["maintain", "prune", "--kind", "nonsense", "--target", "0"]).error().0,
        "Invalid"
    );
    assert_eq!(sandbox.run(&["maintain", "prune", "--kind", "episode"]).code, 2);
}
