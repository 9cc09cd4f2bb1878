//! Every tool, called by the name of a memory in each state, answers as its schema says.

use std::collections::BTreeSet;

use super::{call, connect, done, held, run, world};
use oubliette::{Draft, Kind, State};
use serde_json::{Value, json};

/// What each tool is called with, where `NAME` is the memory.
const CALLS: [(&str, &str); 22] = [
    ("search_memories", r#"{ "query": "NAME" }"#),
    ("get_memory", r#"{ "id": "NAME" }"#),
    ("list_memories", r#"{ "limit": 2 }"#),
    ("memory_stats", "{}"),
    ("get_memory_stats", "{}"),
    ("memory_explain", r#"{ "id": "NAME" }"#),
    ("memory_summarize", r#"{ "source_ids": ["NAME"] }"#),
    ("memory_gc_plan", "{}"),
    (
        "memory_compact_commit",
        r#"{ "summary_json": { "topic": "x", "time_range": { "start": 0, "end": 0 }, "summary": ["x"] }, "source_ids": ["NAME"], "plan_id": "x" }"#,
    ),
    ("memory_compact_abort", r#"{ "plan_id": "NAME", "reason": "over" }"#),
    ("memory_gc_report", "{}"),
    ("memory_hygiene", r#"{ "pass": "purge_expired" }"#),
    ("memory_undo", r#"{ "run_id": "NAME" }"#),
    ("run_maintenance", "{}"),
    (
        "memory_context_log_write",
        r#"{ "context_id": "NAME", "memory_ids_with_token_costs": [{ "memory_id": "NAME", "tokens": 4 }] }"#,
    ),
    ("add_memory", r#"{ "text": "said of NAME", "key": "NAME" }"#),
    ("update_memory", r#"{ "id": "NAME", "importance": 0.9 }"#),
    ("supersede_memory", r#"{ "old_ids": ["NAME"], "text": "Ann lives in Bruges" }"#),
    ("forget_memory", r#"{ "id": "NAME" }"#),
    ("forget_memories", r#"{ "ids": ["NAME"] }"#),
    ("forget_memory", r#"{ "id": "NAME", "with_history": true, "dry_run": false }"#),
    ("get_memory", r#"{ "id": "NAME" }"#),
];

/// A strict client throws away an answer that its schema does not allow, so it heard of no memory that was gone without a successor.
#[test]
fn what_became_of_a_memory_is_told_as_the_schema_says() {
    let world = world();
    let old = |n: usize| {
        let draft = Draft::new(format!("Ann: Box {n} went to Ghent{n}.")).kind(Kind::Message).channel("yard");
        world.add(draft.created_at(world.ago("20d"))).id
    };
    let (replaced, waiting) = ([old(0), old(1)], [old(2), old(3)]);
    run(async {
        let client = connect(&world).await;
        let summarize = async |sources: [_; 2]| {
            let plan = done(&client, "memory_gc_plan", json!({})).await["plan_id"].clone();
            let summary = json!({ "topic": "boxes", "time_range": { "start": 0, "end": 0 }, "summary": ["boxes went"] });
            let commit = json!({ "summary_json": summary, "source_ids": sources, "plan_id": plan });
            done(&client, "memory_compact_commit", commit).await;
        };
        summarize([replaced[0], replaced[1]]).await;
        world.advance("60d");
        done(&client, "run_maintenance", json!({ "passes": ["limbo"], "dry_run": false })).await;
        summarize([waiting[0], waiting[1]]).await;
        let forgotten = world.add(Draft::new("Ann likes rain").key("rain")).id;
        done(&client, "forget_memory", json!({ "id": forgotten, "dry_run": false })).await;
        let corrected = world.add(Draft::new("Ann lives in Ghent").key("home")).id;
        world.add(Draft::new("Ann lives in Lille").key("home"));
        let live = world.add(Draft::new("Ann prefers tea").key("tea").tag("drink")).id;
        // It goes with the next write.
        let over = world.add(Draft::new("Lunch is at noon").expiry(world.ahead("1h"))).id;
        world.advance("2h");
        let states = [
            (State::Expired, over),
            (State::Live, live),
            (State::Superseded, corrected),
            (State::Limbo, waiting[0]),
            (State::Tombstoned, replaced[0]),
            (State::Tombstoned, forgotten),
        ];
        for (state, id) in states {
            assert_eq!(world.ns.state(id).unwrap(), Some(state), "{id}");
        }
        let told = done(&client, "get_memory", json!({ "id": replaced[0] })).await;
        assert!(told["replaced_by"].is_string(), "{told}");
        let told = done(&client, "get_memory", json!({ "id": forgotten })).await;
        assert_eq!((&told["reason"], told.get("replaced_by")), (&json!("forget"), None));
        let tools = client.list_all_tools().await.unwrap();
        let called: BTreeSet<&str> = CALLS.iter().map(|(name, _)| *name).collect();
        assert_eq!(called.len(), tools.len(), "each tool is called");
        let names = states.map(|(state, id)| (state.as_str(), id.to_string()));
        for (state, name) in names.into_iter().chain([("unknown", "nobody".to_owned())]) {
            for (tool, args) in CALLS {
                let args: Value = serde_json::from_str(&args.replace("NAME", &name)).unwrap();
                let answer = call(&client, tool, args).await;
                let Some(told) = answer.structured_content else {
                    assert_eq!(answer.is_error, Some(true), "{tool} of {state}");
                    continue;
                };
                held(&tools, tool, &told);
            }
        }
        client.cancel().await.unwrap();
    });
}
