//! Tools by envelopes, by the rules and vectors of the specification (GC-30 to GC-37).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::world::World;
use oubliette::gc::{Extractive, GcOptions, InputPack, Summarizer};
use oubliette::memory::{Bucket, ContextDraft, Inclusion, SupersedeMode};
use oubliette::policy::Syntax;
use oubliette::tools::{Toolbox, tool_schemas};
use oubliette::{Draft, Kind, MemoryId, PageRequest, Result, State, WriteOptions};
use serde_json::{Value, json};

/// The schemas of the specification, by the name that stands above each.
fn normative() -> BTreeMap<String, Value> {
    let spec = include_str!("../../docs/spec/gc.md");
    let lines: Vec<&str> = spec.lines().collect();
    let schemas = lines.windows(3).filter(|lines| lines[1] == "```json" && lines[2].starts_with("{\"type\""));
    let name = |line: &str| line.split('`').nth(1).unwrap_or("envelope").to_owned();
    schemas.map(|lines| (name(lines[0]), serde_json::from_str(lines[2]).unwrap())).collect()
}

fn toolbox(world: &World) -> Toolbox {
    Toolbox::new(world.ns.clone())
}

fn call(tools: &Toolbox, name: &str, args: Value) -> Value {
    answer(tools, &json!({ "type": "tool_call", "name": name, "args": args }).to_string())
}

fn answer(tools: &Toolbox, envelope: &str) -> Value {
    serde_json::from_str(&tools.answer(envelope)).unwrap()
}

/// The result of a call that is carried out.
fn done(tools: &Toolbox, name: &str, args: Value) -> Value {
    let told = call(tools, name, args);
    assert_eq!((&told["type"], &told["name"]), (&json!("tool_result"), &json!(name)), "{told}");
    told["result"].clone()
}

/// Code and pointers of a call that is refused, and which changes nothing.
fn refused(world: &World, tools: &Toolbox, envelope: &str) -> (String, Vec<String>) {
    let before = everything(world);
    let told = answer(tools, envelope);
    assert_eq!(told["type"], "tool_error", "{told}");
    let names: Vec<&String> = told.as_object().unwrap().keys().collect();
    assert_eq!(names, ["type", "name", "code", "message", "pointers"]);
    assert_ne!(told["message"], "");
    assert_eq!(everything(world), before, "{envelope} changed something");
    let pointers = told["pointers"].as_array().unwrap().iter();
    (
        told["code"].as_str().unwrap().to_owned(),
        pointers.map(|one| one.as_str().unwrap().to_owned()).collect(),
    )
}

/// What a refusal must leave as it is: memories, journal, plans, contexts.
fn everything(world: &World) -> Value {
    let changes = world.ns.changes(0, 1_000).unwrap();
    let rows = world.ns.list(&PageRequest { any_state: true, ..PageRequest::default() }).unwrap();
    let rows: Vec<_> = rows.items.iter().map(|row| (row.id, row.version, row.state)).collect();
    json!([changes.next, rows, world.ns.gc_plans().unwrap(), world.ns.contexts(None, 100).unwrap().items])
}

fn envelope(name: &str, args: Value) -> String {
    json!({ "type": "tool_call", "name": name, "args": args }).to_string()
}

/// A message with more words than it says anything with, so that a summary can be shorter.
fn said(number: usize) -> String {
    let rest = "That is how it was, and so it will be for all of us. Well, when would you do that?";
    format!("Ann: Box {number} went to Ghent{number}. {rest}")
}

/// A world with so many old messages of one channel and day.
fn old(count: usize) -> (World, Vec<MemoryId>) {
    let world = World::new();
    let message = |number: usize| {
        let text = said(number);
        Draft::new(text).kind(Kind::Message).channel("yard").created_at(world.ago("20d"))
    };
    let ids = (0..count).map(|number| world.add(message(number)).id).collect();
    (world, ids)
}

fn summary(sources: &[MemoryId]) -> Value {
    let span = json!({"start": 0, "end": 4_000_000_000_000_i64});
    json!({"topic": "boxes", "time_range": span, "summary": ["boxes went to Ghent"], "source_ids": sources})
}

#[test]
fn gc_36_every_schema_is_the_normative_one() {
    let mut normative = normative();
    assert_eq!(normative.len(), 13, "{:?}", normative.keys());
    let world = World::new();
    let tools = toolbox(&world);
    assert_eq!(Some(tools.envelope_schema()), normative.remove("envelope"));
    normative.remove("json_v1"); // The reader of summaries is held to it.
    let names: Vec<&str> = tool_schemas().iter().map(|tool| tool.name).collect();
    assert!(!names.contains(&"memory.summarize_and_compact"));
    world.db.set_policy("tools.allow_combined = true", Syntax::Toml).unwrap();
    for tool in tools.schemas() {
        assert_eq!(Some(tool.input_schema), normative.remove(tool.name), "{}", tool.name);
    }
    assert!(normative.is_empty(), "{normative:?}");
}

#[test]
fn gc_33_every_example_of_the_specification_is_valid() {
    let schemas = normative();
    let valid =
        |name: &str, value: &Value| jsonschema::validator_for(&schemas[name]).unwrap().is_valid(value);
    let spec = include_str!("../../docs/spec/gc.md");
    // GC-34: an envelope.
    let (_, text) = spec.split_once("Example: `").unwrap();
    let example: Value = serde_json::from_str(text.split_once('`').unwrap().0).unwrap();
    assert!(valid("envelope", &example) && valid("memory.compact_abort", &example["args"]));
    // GC-37: a summary, which a commit takes as it is.
    let (_, text) = spec.split_once("Valid example of json_v1:").unwrap();
    let example: Value =
        serde_json::from_str(text.split("```").nth(1).unwrap().trim_start_matches("json")).unwrap();
    assert!(valid("json_v1", &example));
    let args = json!({ "summary_json": example, "source_ids": example["source_ids"] });
    assert!(valid("memory.compact_commit", &args));
    let world = World::new();
    let (code, pointers) = refused(&world, &toolbox(&world), &envelope("memory.compact_commit", args));
    assert_eq!((code.as_str(), pointers.len()), ("plan_not_found", 0), "it was read, and there is no plan");
}

#[test]
fn v_239_a_number_in_a_string_is_refused_with_its_pointer() {
    let world = World::new();
    let told =
        refused(&world, &toolbox(&world), &envelope("memory.gc_plan", json!({ "limit_tokens": "60000" })));
    assert_eq!(told, ("invalid_args".to_owned(), vec!["/args/limit_tokens".to_owned()]));
}

#[test]
fn v_240_no_argument_names_another_namespace() {
    let world = World::new();
    world.db.namespace("other").unwrap().add("Bob prefers coffee").unwrap();
    let tools = toolbox(&world);
    for tool in tool_schemas() {
        let (code, pointers) = refused(&world, &tools, &envelope(tool.name, json!({ "namespace": "other" })));
        assert_eq!(code, "invalid_args", "{}", tool.name);
        assert!(pointers.contains(&"/args/namespace".to_owned()), "{}: {pointers:?}", tool.name);
    }
}

#[test]
fn gc_30_an_envelope_has_exactly_its_three_properties() {
    let world = World::new();
    let tools = toolbox(&world);
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let cases: [(&str, &str, &[&str]); 17] = [
        ("", "invalid_json", &[""]),
        ("{", "invalid_json", &[""]),
        ("null", "invalid_envelope", &[""]),
        ("[]", "invalid_envelope", &[""]),
        (r#"{"type":"tool_call","name":"get_memory_stats","args":{}"#, "invalid_json", &[""]),
        (r#"{"type":"tool_call","name":"get_memory_stats","args":{}} {}"#, "invalid_json", &[""]),
        (&deep, "invalid_json", &[""]),
        (r#"{"name":"get_memory_stats","args":{}}"#, "invalid_envelope", &["/type"]),
        (r#"{"type":"tool_call","args":{}}"#, "invalid_envelope", &["/name"]),
        (r#"{"type":"tool_call","name":"get_memory_stats"}"#, "invalid_envelope", &["/args"]),
        (r#"{"type":"call","name":7,"args":[]}"#, "invalid_envelope", &["/type", "/name", "/args"]),
        (
            r#"{"type":"tool_call","name":"get_memory_stats","args":{},"namespace":"other"}"#,
            "invalid_envelope",
            &["/namespace"],
        ),
        (r#"{"type":"tool_call","name":"memory.forget","args":{}}"#, "unknown_tool", &["/name"]),
        (
            r#"{"type":"tool_call","name":"memory.summarize_and_compact","args":{}}"#,
            "unknown_tool",
            &["/name"],
        ),
        (r#"{"type":"tool_call","name":"get_memory_stats","args":{},"args":{}}"#, "invalid_json", &[""]),
        (
            r#"{"type":"tool_call","name":"memory.undo","args":{"run_id":"a","run_id":"b"}}"#,
            "invalid_json",
            &["/args"],
        ),
        (
            r#"{"type":"tool_call","name":"memory.undo","args":{"a/b~c":1}}"#,
            "invalid_args",
            &["/args/a~1b~0c", "/args/run_id"],
        ),
    ];
    for (text, code, pointers) in cases {
        assert_eq!(
            refused(&world, &tools, text),
            (code.to_owned(), pointers.iter().map(|one| (*one).to_owned()).collect()),
            "{text}"
        );
    }
    let flood = envelope("memory.explain", json!({ "query": "x".repeat(17 << 20) }));
    assert_eq!(refused(&world, &tools, &flood).0, "invalid_envelope");
    let many: serde_json::Map<String, Value> = (0..1_000).map(|n| (format!("a{n}"), json!(n))).collect();
    assert_eq!(refused(&world, &tools, &envelope("memory.gc_plan", many.into())).1.len(), 20);
}

/// Each of these calls is refused with these pointers, and changes nothing.
fn refuses(cases: &[(&str, Value, &[&str])]) {
    let world = World::new();
    world.add(Draft::new("Cy walks the dog"));
    let tools = toolbox(&world);
    for (name, args, pointers) in cases {
        let (code, told) = refused(&world, &tools, &envelope(name, args.clone()));
        assert_eq!(
            (code.as_str(), told.iter().map(String::as_str).collect()),
            ("invalid_args", pointers.to_vec()),
            "{name} {args}"
        );
    }
}

#[test]
fn gc_31_arguments_of_another_type_or_bound_are_refused_with_each_pointer() {
    let id = "019584a0-0000-7000-8000-000000000001";
    refuses(&[
        ("memory.summarize", json!({ "source_ids": [id, id] }), &["/args/source_ids/1"]),
        ("memory.summarize", json!({ "source_ids": ["ann:drink"] }), &["/args/source_ids/0"]),
        ("memory.summarize", json!({ "source_ids": [id], "format": "json_v2" }), &["/args/format"]),
        ("memory.compact_commit", json!({ "summary_json": [], "source_ids": [id] }), &["/args/summary_json"]),
        (
            "memory.compact_commit",
            json!({ "summary_json": "x" }),
            &["/args/summary_json", "/args/source_ids"],
        ),
        ("memory.compact_abort", json!({ "plan_id": "7", "reason": "no" }), &["/args/plan_id"]),
        ("memory.compact_abort", json!({ "plan_id": id, "reason": "" }), &["/args/reason"]),
        ("memory.hygiene", json!({ "pass": "all", "dry_run": 0 }), &["/args/pass", "/args/dry_run"]),
        ("memory.hygiene", json!({ "pass": "profile_collapse", "batch_size": 0 }), &["/args/batch_size"]),
        ("memory.explain", json!({}), &["/args"]),
        ("memory.explain", json!({ "id": "a", "query": "b" }), &["/args"]),
        ("memory.undo", json!({ "run_id": 7 }), &["/args/run_id"]),
        ("memory.gc_report", json!({ "since": -1 }), &["/args/since"]),
        ("memory.gc_report", json!({ "since": 9_000_000_000_000_000_000_u64 }), &["/args/since"]),
        ("get_memory_stats", json!({ "deep": true }), &["/args/deep"]),
    ]);
}

#[test]
fn gc_31_numbers_and_lists_are_held_to_their_bounds() {
    let id = "019584a0-0000-7000-8000-000000000001";
    let item = |tokens: Value| json!({ "memory_id": id, "tokens": tokens });
    let log = |items: Value| json!({ "context_id": "c", "memory_ids_with_token_costs": items });
    refuses(&[
        (
            "memory.gc_plan",
            json!({ "max_groups": 51, "age_min_days": -1 }),
            &["/args/age_min_days", "/args/max_groups"],
        ),
        (
            "memory.gc_plan",
            json!({ "max_groups": 1.5, "access_threshold": "0.8" }),
            &["/args/access_threshold", "/args/max_groups"],
        ),
        (
            "memory.gc_plan",
            json!({ "probes": ["", "x".repeat(401), 7] }),
            &["/args/probes/0", "/args/probes/1", "/args/probes/2"],
        ),
        ("memory.gc_plan", json!({ "limit_tokens": null }), &["/args/limit_tokens"]),
        ("memory.gc_plan", json!({ "age_min_days": 1e300 }), &["/args/age_min_days"]),
        ("memory.context_log_write", log(json!([])), &["/args/memory_ids_with_token_costs"]),
        (
            "memory.context_log_write",
            log(json!([item(json!("9")), item(json!(-1)), { "tokens": 1, "bucket": "often" }])),
            &[
                "/args/memory_ids_with_token_costs/0/tokens",
                "/args/memory_ids_with_token_costs/1/tokens",
                "/args/memory_ids_with_token_costs/2/memory_id",
                "/args/memory_ids_with_token_costs/2/bucket",
            ],
        ),
        (
            "memory.context_log_write",
            log(json!([item(json!(5_000_000_000_u64))])),
            &["/args/memory_ids_with_token_costs/0/tokens"],
        ),
    ]);
}

/// GC-30: a list with one name many times had a fault for each, past the bound of all others, and none said which name.
#[test]
fn gc_30_a_name_that_stands_many_times_is_told_twenty_times() {
    let tools = toolbox(&World::new());
    let told = call(&tools, "memory.summarize", json!({ "source_ids": vec!["nobody"; 200] }));
    assert_eq!(told["pointers"].as_array().unwrap().len(), 20);
    assert!(told["message"].as_str().unwrap().contains("twice in the list (got \"nobody\")"), "{told}");
}

#[test]
fn names_of_nothing_and_of_another_namespace_lead_nowhere() {
    let world = World::new();
    world.add(Draft::new("Cy walks the dog"));
    let tools = toolbox(&world);
    let id = "019584a0-0000-7000-8000-000000000001";
    let other = world.db.namespace("other").unwrap().add("Bob prefers coffee").unwrap().id;
    for (name, args, code) in [
        ("memory.summarize", json!({ "source_ids": [other] }), "memory_not_found"),
        ("memory.explain", json!({ "id": other }), "memory_not_found"),
        ("memory.explain", json!({ "query": "Bob prefers coffee" }), "memory_not_found"),
        ("memory.undo", json!({ "run_id": id }), "run_not_found"),
        ("memory.undo", json!({ "run_id": id, "dry_run": false }), "run_not_found"),
        ("memory.compact_abort", json!({ "plan_id": id, "reason": "no" }), "plan_not_found"),
    ] {
        assert_eq!(
            refused(&world, &tools, &envelope(name, args.clone())),
            (code.to_owned(), vec![]),
            "{name} {args}"
        );
    }
}

/// The parser and the schema agree: what one of them refuses the other refuses.
#[test]
fn gc_33_what_the_schema_allows_is_read() {
    let world = World::new();
    let tools = toolbox(&world);
    let id = "019584a0-0000-7000-8000-000000000001";
    let values = [
        json!(0),
        json!(1),
        json!(-1),
        json!(50),
        json!(51),
        json!(1.0),
        json!(1.5),
        json!("x"),
        json!(""),
        json!("60000"),
        json!(id),
        json!([]),
        json!([id]),
        json!([id, id]),
        json!(["", 7]),
        json!({}),
        json!(true),
        json!(null),
        json!("json_v1"),
        json!("profile_collapse"),
        json!([{ "memory_id": "a", "tokens": 1 }]),
        json!({ "topic": "t" }),
    ];
    for tool in tool_schemas() {
        let validator = jsonschema::validator_for(&tool.input_schema).unwrap();
        let names: Vec<String> =
            tool.input_schema["properties"].as_object().unwrap().keys().cloned().collect();
        for name in names.iter().map(String::as_str).chain(["other"]) {
            for value in &values {
                // The least arguments that are valid, with this one in their place.
                let mut args = least(tool.name);
                args.insert(name.to_owned(), value.clone());
                let args = Value::Object(args);
                let told = call(&tools, tool.name, args.clone());
                let is_read = told["type"] == "tool_result" || told["code"] != "invalid_args";
                // What the schema can not say: ids, instants and names of another form.
                let beyond = told["message"]
                    .as_str()
                    .is_some_and(|why| why.contains("UUID") || why.contains("number of a group"));
                assert_eq!(is_read || beyond, validator.is_valid(&args), "{} {args}: {told}", tool.name);
            }
        }
    }
}

fn least(name: &str) -> serde_json::Map<String, Value> {
    let id = "019584a0-0000-7000-8000-000000000002";
    let args = match name {
        "memory.context_log_write" => {
            json!({ "context_id": "c", "memory_ids_with_token_costs": [{ "memory_id": id, "tokens": 1 }] })
        }
        "memory.summarize" => json!({ "source_ids": [id] }),
        "memory.compact_commit" => json!({ "summary_json": {}, "source_ids": [id] }),
        "memory.compact_abort" => json!({ "plan_id": id, "reason": "no" }),
        "memory.hygiene" => json!({ "pass": "purge_expired" }),
        "memory.explain" => json!({ "id": id }),
        "memory.undo" => json!({ "run_id": id }),
        _ => json!({}),
    };
    args.as_object().unwrap().clone()
}

#[test]
fn gc_32_a_group_is_planned_summarized_committed_explained_and_taken_back() {
    let (world, ids) = old(3);
    let tools = toolbox(&world);
    let plan = done(&tools, "memory.gc_plan", json!({}));
    assert_eq!(plan["groups"][0]["source_ids"], json!(ids));
    let pack = done(&tools, "memory.summarize", json!({ "source_ids": ids }));
    assert_eq!(
        pack,
        json!(world.ns.gc_pack(plan["plan_id"].as_str().unwrap().parse().unwrap(), "1").unwrap())
    );
    let before = everything(&world);
    done(&tools, "memory.summarize", json!({ "source_ids": ids, "format": "json_v1" }));
    assert_eq!(everything(&world), before, "it only reads");

    let args = json!({ "summary_json": summary(&ids), "source_ids": ids });
    let committed = done(&tools, "memory.compact_commit", args.clone());
    assert_eq!(committed["deleted_count"], 3);
    assert_eq!(committed["recall_guard"]["probes"], 3);
    assert_eq!(
        done(&tools, "memory.compact_commit", args)["summary_memory_id"],
        committed["summary_memory_id"]
    );
    let story = done(&tools, "memory.explain", json!({ "query": said(1) }));
    assert_eq!(story["stories"][0]["removed"]["reason"], "summarized");
    assert_eq!(story["stories"][0]["replaced_by"], committed["summary_memory_id"]);
    let story = done(&tools, "memory.explain", json!({ "query": "which boxes went to ghent" }));
    assert_eq!(story["stories"][0]["id"], committed["summary_memory_id"]);
    let report = done(&tools, "memory.gc_report", json!({}));
    assert_eq!((&report["memories_deleted"], report["text"].is_string()), (&json!(3), true));

    let told = done(&tools, "memory.undo", json!({ "run_id": committed["run"] }));
    assert_eq!((&told["dry_run"], &told["run"]["can_be_undone"]), (&json!(true), &json!(true)));
    assert_eq!(world.live().len(), 1, "nothing was taken back yet");
    let told = done(&tools, "memory.undo", json!({ "run_id": committed["run"], "dry_run": false }));
    assert_eq!(told["dry_run"], false);
    assert_eq!(world.live(), ids);
}

#[test]
fn gc_12_a_commit_finds_its_group_by_the_sources() {
    let (world, ids) = old(3);
    let tools = toolbox(&world);
    let plan = done(&tools, "memory.gc_plan", json!({}))["plan_id"].clone();
    let refusal = |args: Value| refused(&world, &tools, &envelope("memory.compact_commit", args)).0;
    let stranger = json!(["019584a0-0000-7000-8000-000000000001"]);
    assert_eq!(refusal(json!({ "summary_json": {}, "source_ids": stranger })), "plan_not_found");
    // With a string, as a model may answer; the pointers lead into the summary. The refusal is noted in the plan.
    let told = call(
        &tools,
        "memory.compact_commit",
        json!({ "summary_json": "{}", "source_ids": ids, "plan_id": plan }),
    );
    assert_eq!(told["code"], "invalid_summary");
    assert!(told["pointers"].as_array().unwrap().contains(&json!("/args/summary_json/topic")), "{told}");
    assert_eq!(world.live().len(), 3);
    let some = json!([ids[0], ids[1]]);
    let answer = summary(&ids[..2]).to_string();
    let told = done(
        &tools,
        "memory.compact_commit",
        json!({ "summary_json": answer, "source_ids": some, "plan_id": plan }),
    );
    assert_eq!((&told["deleted_count"], world.live().len()), (&json!(2), 2), "the third source stays");
    let told = call(
        &tools,
        "memory.compact_commit",
        json!({ "summary_json": summary(&ids), "source_ids": ids, "plan_id": plan, "group_id": "1" }),
    );
    assert_eq!(told["code"], "already_committed");
}

#[test]
fn gc_15_an_abort_frees_the_sources() {
    let (world, ids) = old(2);
    let tools = toolbox(&world);
    let plan = done(&tools, "memory.gc_plan", json!({ "probes": ["Ghent1"] }))["plan_id"].clone();
    assert_eq!(
        done(&tools, "memory.gc_plan", json!({}))["groups"],
        json!([]),
        "a source is in one open plan only"
    );
    let told = done(&tools, "memory.compact_abort", json!({ "plan_id": plan, "reason": "invalid json" }));
    assert_eq!((&told["state"], &told["reason"]), (&json!("aborted"), &json!("invalid json")));
    let args = json!({ "summary_json": summary(&ids), "source_ids": ids, "plan_id": plan, "group_id": "1" });
    assert_eq!(call(&tools, "memory.compact_commit", args)["code"], "plan_closed");
    assert_eq!(done(&tools, "memory.gc_plan", json!({}))["groups"][0]["source_ids"], json!(ids));
}

#[test]
fn gc_1_a_context_is_counted_once() {
    let world = World::new();
    let tea = world.add(Draft::new("Ann prefers tea").key("tea")).id;
    let tools = toolbox(&world);
    let items = json!([{ "memory_id": tea, "tokens": 4, "bucket": "related" }, { "memory_id": "nobody", "tokens": 1 }]);
    let args = json!({ "context_id": "turn-1", "memory_ids_with_token_costs": items, "session_id": "s", "window_tokens": 8000 });
    let told = done(&tools, "memory.context_log_write", args.clone());
    assert_eq!(told, json!({ "counted": 1, "already": false, "unknown": ["nobody"] }));
    assert_eq!(done(&tools, "memory.context_log_write", args)["already"], true);
    let other = json!({ "context_id": "turn-1", "memory_ids_with_token_costs": [{ "memory_id": "tea", "tokens": 5 }] });
    let (code, _) = refused(&world, &tools, &envelope("memory.context_log_write", other));
    assert_eq!(code, "conflict");
    // The same through the library is the same context.
    let same = [Inclusion::new(tea, 4).bucket(Bucket::Related), Inclusion::new("nobody", 1)];
    let mut same = ContextDraft::new("turn-1", same);
    (same.session, same.window_tokens) = (Some("s".to_owned()), Some(8_000));
    assert!(world.ns.context_log_write(&same).unwrap().already);
}

#[test]
fn gc_32_hygiene_looks_first_and_then_does() {
    let world = World::new();
    for apps in [4, 7, 9] {
        world.add(Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile));
    }
    let gone = world.add(Draft::new("Lunch is at noon").expiry(world.ahead("1h"))).id;
    world.advance("2h");
    let tools = toolbox(&world);
    for pass in ["profile_collapse", "vector_dedup", "snapshot_prune", "purge_expired"] {
        let before = everything(&world);
        let told = done(&tools, "memory.hygiene", json!({ "pass": pass }));
        assert_eq!((&told["dry_run"], &told["run"]), (&json!(true), &json!(null)));
        assert!(!told["passes"].as_array().unwrap().is_empty());
        assert_eq!(everything(&world), before, "{pass}");
    }
    let told = done(
        &tools,
        "memory.hygiene",
        json!({ "pass": "profile_collapse", "dry_run": false, "max_sample_groups": 1 }),
    );
    assert_eq!(told["passes"][0]["tombstoned"], 2, "{told}");
    assert!(told["run"].is_string());
    done(&tools, "memory.hygiene", json!({ "pass": "purge_expired", "dry_run": false }));
    assert_eq!(world.ns.state(gone).unwrap(), Some(State::Tombstoned));
    assert_eq!(done(&tools, "get_memory_stats", json!({}))["local"]["total"], 1);
}

/// A model that looks after a large namespace was told every id of every cluster, 40,000 characters of them.
#[test]
fn an_answer_about_many_groups_has_a_bound() {
    let world = World::new();
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let near = |at: usize, member: usize| {
        let vector: Vec<f32> =
            (0..32).map(|axis| f32::from(u8::from(axis == at)) + 0.001 * member as f32).collect();
        Draft::new(format!("tree {at}")).vector(vector)
    };
    let drafts = (0..30).flat_map(|at| (0..if at == 0 { 25 } else { 2 }).map(move |member| near(at, member)));
    world.ns.add_all(drafts.collect(), &apart).unwrap();
    world.db.set_policy("dedup.neighbours = 100", Syntax::Toml).unwrap();
    let tools = toolbox(&world);
    let told = done(&tools, "memory.hygiene", json!({ "pass": "vector_dedup" }));
    let report = &told["passes"][0]["report"];
    assert_eq!(
        (&report["clusters_found"], &report["tombstoned"], &report["more"]),
        (&json!(30), &json!(53), &json!(10))
    );
    let actions = report["actions"].as_array().unwrap();
    assert_eq!(actions.len(), 20);
    let large = actions.iter().find(|action| action["size"] == 25).unwrap();
    assert_eq!((large["tombstoned_ids"].as_array().unwrap().len(), &large["more"]), (20, &json!(4)));
    assert!(told.to_string().len() < 6_000, "{}", told.to_string().len());
    let told = done(&tools, "memory.hygiene", json!({ "pass": "vector_dedup", "max_sample_groups": 100 }));
    assert!(told["passes"][0]["report"].get("more").is_none());
    let told = done(&tools, "memory.hygiene", json!({ "pass": "fsck", "max_sample_groups": 3 }));
    assert_eq!(told["audit"]["duplicate_groups"].as_array().unwrap().len(), 3);
    assert_eq!(told["audit"]["more"], 27);
}

/// A summarizer that knows one answer.
struct Says(&'static str);

impl Summarizer for Says {
    fn summarize(&self, _: &InputPack) -> Result<String> {
        Ok(self.0.to_owned())
    }
}

#[test]
fn gc_35_the_combined_tool_is_off_until_the_policy_allows_it() {
    let (world, ids) = old(2);
    let name = "memory.summarize_and_compact";
    let tools = toolbox(&world).summarizer(Arc::new(Extractive::default()));
    assert_eq!(call(&tools, name, json!({}))["code"], "unknown_tool");
    world.db.set_policy("tools.allow_combined = true", Syntax::Toml).unwrap();
    assert_eq!(refused(&world, &toolbox(&world), &envelope(name, json!({}))).0, "no_summarizer");
    assert_eq!(refused(&world, &tools, &envelope(name, json!({}))).0, "plan_not_found");
    let plan = world.ns.gc_plan(&GcOptions::default()).unwrap().plan_id;

    // A group that nobody can summarize is given up, and its memories stay.
    let told = done(&toolbox(&world).summarizer(Arc::new(Says("no idea"))), name, json!({ "plan_id": plan }));
    assert_eq!((&told["refused"], &told["committed"]), (&json!(1), &json!(0)), "{told}");
    assert_eq!(world.live(), ids);
    let told = done(&tools, name, json!({}));
    assert_eq!((&told["committed"], &told["sources"]), (&json!(1), &json!(2)), "{told}");
    assert_eq!(refused(&world, &tools, &envelope(name, json!({ "plan_id": plan }))).0, "plan_closed");
}

/// Closes the database at the second summary.
struct Closes(oubliette::Database, AtomicU32);

impl Summarizer for Closes {
    fn summarize(&self, pack: &InputPack) -> Result<String> {
        if self.1.fetch_add(1, Ordering::SeqCst) > 0 {
            self.0.clone().close()?;
        }
        Extractive::default().summarize(pack)
    }
}

/// What was committed before a failure stands, and the answer says so; the failure stands beside it.
#[test]
fn gc_35_a_call_that_fails_half_way_tells_what_stands() {
    let (world, _) = old(4);
    world.db.set_policy("tools.allow_combined = true\ngc.max_sources = 2", Syntax::Toml).unwrap();
    let plan = world.ns.gc_plan(&GcOptions::default()).unwrap();
    assert_eq!(plan.groups.len(), 2);
    let tools = toolbox(&world).summarizer(Arc::new(Closes(world.db.clone(), AtomicU32::new(0))));
    let told = done(&tools, "memory.summarize_and_compact", json!({}));
    assert_eq!((&told["committed"], &told["stopped"]["code"]), (&json!(1), &json!("closed")), "{told}");
    assert_eq!(told["runs"].as_array().unwrap().len(), 1, "{told}");
}

#[test]
fn gc_11_with_a_summarizer_the_answer_is_a_valid_summary() {
    let (world, ids) = old(2);
    let tools = toolbox(&world).summarizer(Arc::new(Extractive::default()));
    let told = done(&tools, "memory.summarize", json!({ "source_ids": ids }));
    assert!(jsonschema::validator_for(&normative()["json_v1"]).unwrap().is_valid(&told), "{told}");
    let tools = toolbox(&world).summarizer(Arc::new(Says("no idea")));
    let (code, pointers) =
        refused(&world, &tools, &envelope("memory.summarize", json!({ "source_ids": ids })));
    assert_eq!((code.as_str(), pointers.len()), ("invalid_summary", 1));
}

#[test]
fn gc_32_fsck_audits_its_own_namespace_alone() {
    let world = World::new();
    let other = world.db.namespace("other").unwrap();
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let drafts =
        || vec![Draft::new("Ann prefers tea"), Draft::new("ann  prefers TEA"), Draft::new("Cy walks")];
    let ids: Vec<MemoryId> =
        world.ns.add_all(drafts(), &apart).unwrap().iter().map(|outcome| outcome.id).collect();
    other.add_all(drafts(), &apart).unwrap();
    for namespace in [&world.ns, &other] {
        namespace.add(Draft::new("Lunch is at noon").expiry(world.ahead("1h"))).unwrap();
    }
    world.advance("2h");
    let tools = toolbox(&world);
    let before = everything(&world);
    let wanted = json!({ "expired_purged": 1, "short_term_evicted": 0, "namespaces": 1, "duplicate_groups": [[ids[0], ids[1]]] });
    let told = done(&tools, "memory.hygiene", json!({ "pass": "fsck" }));
    assert_eq!((&told["audit"], everything(&world)), (&wanted, before), "a dry run removes nothing");
    assert_eq!(done(&tools, "memory.hygiene", json!({ "pass": "fsck", "dry_run": false }))["audit"], wanted);
    let told = done(&tools, "memory.hygiene", json!({ "pass": "fsck" }));
    assert_eq!(told["audit"]["expired_purged"], 0);
    assert_eq!(other.stats().unwrap().memories.expired, 1, "what is of another namespace stays");
}

/// LIFE-6, MODEL-59: the key that a model knows is the one that says and forgets what is true now.
#[test]
fn a_fact_that_is_superseded_by_a_text_keeps_its_key() {
    let world = World::new();
    let tools = toolbox(&world);
    let call = |name: &str, args: Value| tools.call(name, args).unwrap();
    call("add_memory", json!({ "text": "Bob lives in Ghent", "key": "bob" }));
    let bruges = call("supersede_memory", json!({ "old_ids": ["bob"], "text": "Bob lives in Bruges" }));
    assert_eq!((&bruges["key"], &bruges["superseded"]), (&json!("bob"), &json!(["bob"])));
    let rome = call("add_memory", json!({ "text": "Bob lives in Rome", "key": "bob", "importance": 0.46 }));
    assert_eq!(rome["decision"], "revised", "the same key again replaces what it said");
    assert_eq!(call("get_memory", json!({ "id": "bob" }))["importance"], json!(0.46));
    assert_eq!(call("search_memories", json!({ "query": "Bob lives" }))["hits"].as_array().unwrap().len(), 1);
    call("forget_memory", json!({ "id": "bob", "dry_run": false }));
    assert_eq!(call("search_memories", json!({ "query": "Bob lives" }))["hits"], json!([]));

    call("add_memory", json!({ "text": "Ann is here", "key": "ann" }));
    let gone = json!({ "old_ids": ["ann"], "text": "Ann is gone", "key": "ann:now" });
    assert_eq!(call("supersede_memory", gone)["key"], "ann:now");
    let error =
        tools.call("supersede_memory", json!({ "old_ids": ["ann"], "new_id": "ann:now", "key": "k" }));
    assert_eq!(error.unwrap_err().pointers, ["/args/key"]);
    let error = tools.call("search_memories", json!({ "query": "Ann", "kind": "nosuch" }));
    assert_eq!(error.unwrap_err().pointers, ["/args/kind"]);
    world.check();
}

#[test]
fn a_search_says_so_where_no_memory_fits() {
    let world = World::new();
    world.ns.add("Ann prefers tea").unwrap();
    let answer = toolbox(&world).call("search_memories", json!({ "query": "Ann prefers" })).unwrap();
    assert!(answer["note"].is_null() && answer["hits"][0]["relevance"].as_f64() > Some(0.05), "{answer}");
    world.db.use_embedder(oubliette::embed::HashEmbedder::new()).unwrap();
    world.ns.maintain().unwrap();
    let answer = toolbox(&world).call("search_memories", json!({ "query": "zebra quantum" })).unwrap();
    assert!(answer["note"].as_str().is_some_and(|note| note.contains("No memory fits well")), "{answer}");
}

/// A dry run counts as the call does, and shows what would go.
#[test]
fn a_forget_by_a_tool_counts_the_same_before_and_after() {
    let world = World::new();
    for text in ["Ann lives in Ghent", "Ann lives in Bruges", "Ann lives in Mons"] {
        world.ns.add(Draft::new(text).key("home")).unwrap();
    }
    let tools = toolbox(&world);
    let plan = tools.call("forget_memory", json!({ "id": "home" })).unwrap();
    let done = tools.call("forget_memory", json!({ "id": "home", "dry_run": false })).unwrap();
    for answer in [&plan, &done] {
        assert_eq!((&answer["memories"], &answer["versions"]), (&json!(1), &json!(2)), "{answer}");
    }
    let texts: Vec<_> = plan["sample"].as_array().unwrap().iter().map(|one| one["text"].clone()).collect();
    assert!(texts.contains(&json!("Ann lives in Mons")), "{plan}");
    // What is gone is named, and so is what was not there.
    let sample = plan["sample"].as_array().unwrap().iter().map(|one| one["id"].clone());
    let (shown, gone): (BTreeSet<_>, BTreeSet<_>) = (
        sample.map(|id| id.to_string()).collect(),
        done["ids"].as_array().unwrap().iter().map(Value::to_string).collect(),
    );
    assert_eq!(shown, gone, "{done}");
    let again = tools.call("forget_memory", json!({ "id": "home", "dry_run": false })).unwrap();
    assert_eq!((&again["missing_names"], &again["ids"]), (&json!(["home"]), &json!([])), "{again}");
}

/// MODEL-61: a model that forgets a first text by its id hears which texts stay, and which of them is not true yet.
#[test]
fn a_tool_tells_the_later_versions_apart_from_those_to_come() {
    let world = World::new();
    let first = world.ns.add(Draft::new("Ann lives in Ghent")).unwrap().id;
    let replace = |old, text: &str, at| {
        world.ns.replace([old], Draft::new(text), SupersedeMode::Replaced, at).unwrap().id
    };
    let second = replace(first, "Ann lives in Bruges", None);
    let third = replace(second, "Ann lives in Mons", Some(world.ahead("30d")));
    let tools = toolbox(&world);
    for dry_run in [true, false] {
        let answer =
            tools.call("forget_memory", json!({ "id": first.to_string(), "dry_run": dry_run })).unwrap();
        assert_eq!(answer["later_versions"], json!([second]), "{answer}");
        assert_eq!(answer["versions_to_come"], json!([third]), "{answer}");
        assert_eq!(answer["versions_left"], 2, "{answer}");
    }
}

/// MODEL-61: what a text has replaced is still there when it is forgotten by its id, and the answer says so.
#[test]
fn a_tool_counts_the_versions_that_stay() {
    let world = World::new();
    world.add(Draft::new("Ann lives in Paris").key("home"));
    let rome = world.add(Draft::new("Ann lives in Rome").key("home")).id;
    for dry_run in [true, false] {
        let args = json!({ "id": rome, "dry_run": dry_run });
        let answer = toolbox(&world).call("forget_memory", args).unwrap();
        assert_eq!((&answer["versions"], &answer["versions_left"]), (&json!(0), &json!(1)), "{answer}");
    }
}

/// A model that wants a memory to stay says `never`, or 0: the first is done, and the second does not forget.
#[test]
fn no_ttl_of_a_tool_forgets_a_memory() {
    let world = World::new();
    world.ns.add(Draft::new("Ann prefers tea").key("tea")).unwrap();
    let tools = toolbox(&world);
    for (tool, args) in [
        ("update_memory", json!({ "id": "tea", "ttl": "0" })),
        ("add_memory", json!({ "text": "Bob walks", "ttl": "0d" })),
        ("update_memory", json!({ "id": "tea", "ttl": "for ever" })),
    ] {
        let error = tools.call(tool, args).unwrap_err();
        assert!(error.pointers == ["/args/ttl"] && error.message.contains("never"), "{error:?}");
    }
    let end = || world.row("tea").expires_at;
    tools.call("update_memory", json!({ "id": "tea", "ttl": "2d" })).unwrap();
    assert!(end().is_some());
    tools.call("update_memory", json!({ "id": "tea", "ttl": "never" })).unwrap();
    assert_eq!(end(), None);
    world.check();
}

/// Nobody joins the beginning of one text and the end of another.
#[test]
fn a_cursor_goes_on_in_its_own_text_only() {
    let (world, tools) = (World::new(), |world: &World| toolbox(world));
    world.add(Draft::new("old ".repeat(1_000)).key("doc"));
    let args = |cursor: &Value| json!({ "id": "doc", "max_tokens": 500, "cursor": cursor });
    let first = tools(&world).call("get_memory", json!({ "id": "doc", "max_tokens": 500 })).unwrap();
    let second = tools(&world).call("get_memory", args(&first["next_cursor"])).unwrap();
    assert_eq!(second.get("next_cursor"), None, "{second}");
    let both = [&first, &second].map(|page| page["text"].as_str().unwrap());
    assert_eq!(both.concat(), "old ".repeat(1_000));
    tools(&world).call("update_memory", json!({ "id": "doc", "text": "new ".repeat(1_000) })).unwrap();
    let refused = tools(&world).call("get_memory", args(&first["next_cursor"])).unwrap_err();
    assert_eq!(refused.pointers, ["/args/cursor"], "{refused}");
}

/// A model acts on what it reads, not on ids.
#[test]
fn tools_tell_the_texts_of_the_memories_that_they_name() {
    let world = World::new();
    let tea = world.add(Draft::new("Ann prefers green tea in the morning").key("tea")).id;
    let tools = toolbox(&world);
    let again = json!({ "text": "Ann prefers green tea in the morning", "ttl": "2d" });
    let near = tools.call("add_memory", again).unwrap();
    assert_eq!(near["near"][0]["text"], "Ann prefers green tea in the morning", "{near}");
    let story = tools.call("memory.explain", json!({ "id": tea })).unwrap();
    assert_eq!(story["stories"][0]["text"], "Ann prefers green tea in the morning", "{story}");
    assert_eq!(story["stories"][0]["keys"], json!(["tea"]));
    world.ns.contradict("tea", None).unwrap();
    let answer = tools.call("update_memory", json!({ "id": "tea", "text": "Ann preferred tea" })).unwrap();
    assert!(answer["note"].as_str().is_some_and(|note| note.contains("no search finds it")), "{answer}");
}
