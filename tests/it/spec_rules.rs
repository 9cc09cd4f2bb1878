//! Typed rules, instructions, series of snapshots, repeated reports, by the vectors of the specification (DEDUP-55,
//! DEDUP-59 to DEDUP-69, MODEL-2 to MODEL-6).

use crate::world::{World, axis, text};
use oubliette::memory::{Partition, SupersedeMode, Tier};
use oubliette::policy::{Policy, Syntax};
use oubliette::report::RuleId;
use oubliette::tools::Toolbox;
use oubliette::{
    Builder, Database, Decision, Draft, ErrorKind, Kind, Outcome, Query, Scope, Span, Time, WriteOptions,
};
use serde_json::json;

fn policy(text: &str) -> Policy {
    Policy::parse(text, Syntax::Toml).unwrap()
}

/// A world under a policy of its own.
fn under(document: &str) -> World {
    let world = World::new();
    world.db.set_policy(document, Syntax::Toml).unwrap();
    world
}

fn agent(name: &str) -> Partition {
    Partition::agent(name).unwrap()
}

fn at(time: &str) -> Time {
    time.parse().unwrap()
}

fn routed(outcome: &Outcome) -> (&Partition, &Decision) {
    match &outcome.decision {
        Decision::Routed { partition, inner } => (partition, inner),
        other => panic!("{other:?}"),
    }
}

fn rule(outcome: &Outcome) -> Option<&str> {
    outcome.policy_rule.as_deref()
}

/// DEDUP-62: what a model writes is found by its searches, whatever words it has for tags and kinds.
#[test]
fn dedup_62_no_rule_moves_what_a_tool_writes() {
    let world = World::new();
    let tools = Toolbox::new(world.ns.clone());
    for (said, more) in [
        ("Ann was born in May", json!({ "tags": ["profile-fact"] })),
        ("How far is Ghent", json!({ "kind": "search_history" })),
        ("Ann at a glance", json!({ "kind": "snapshot" })),
    ] {
        let mut args = more.clone();
        args["text"] = json!(said);
        let wrote = tools.call("add_memory", args).unwrap();
        assert_eq!(wrote["decision"], "stored", "{wrote}");
        let found = tools.call("search_memories", json!({ "query": said })).unwrap();
        assert_eq!(found["hits"][0]["id"], wrote["id"], "{found}");
        // The command line and the library follow the rules, and say so.
        let draft = Draft::new(format!("{said}, they say"));
        let draft = match more["kind"].as_str() {
            Some(kind) => draft.kind(kind.parse().unwrap()),
            None => draft.tag("profile-fact"),
        };
        assert!(matches!(world.add(draft).decision, Decision::Routed { .. }));
    }
    world.check();
}

/// A rule ignores a text that was to take the place of another. Nothing has changed, and the answer names the rule.
#[test]
fn a_text_in_the_place_of_another_that_a_rule_ignores_is_refused() {
    let world = under("rules.strict = true");
    world.add(text("plan c").key("k"));
    let why = world.ns.replace(["k"], text("maybe plan d"), SupersedeMode::Replaced, None).unwrap_err();
    assert!(why.kind() == ErrorKind::Conflict && why.to_string().contains("rule R5"), "{why}");
    assert_eq!(world.row("k").text, "plan c");
    world.check();
}

fn skipping() -> WriteOptions {
    WriteOptions { skip_instructions: true, ..WriteOptions::default() }
}

fn add_with(world: &World, draft: Draft, how: &WriteOptions) -> Outcome {
    world.ns.add_all(vec![draft], how).unwrap().remove(0)
}

/// Texts of the snapshots of a series, by their time.
fn series(world: &World, name: &str) -> Vec<String> {
    let scope = Scope::agent("profile-mgr").unwrap();
    let all = world.ns.list_snapshots(&scope, name, None, None).unwrap();
    all.into_iter().map(|row| row.text).collect()
}

fn push(world: &World, text: &str, time: &str) -> Outcome {
    world.ns.push_snapshot(Draft::new(text), at(time)).unwrap()
}

#[test]
fn v185_of_two_snapshots_of_a_day_the_later_stays() {
    let world = World::new();
    let first = push(&world, "10 facts", "2026-01-02T10:00:00Z");
    let second = push(&world, "12 facts", "2026-01-02T12:00:00Z");
    assert_eq!((first.decision, second.decision), (Decision::Stored, Decision::Stored));
    assert_eq!(second.partition, agent("profile-mgr"));
    assert_eq!(series(&world, "profile"), ["12 facts"]);
    let gone = world.ns.tombstones(None, 10).unwrap().items;
    let gone: Vec<_> = gone.iter().map(|row| (row.id, row.reason.as_str(), row.replaced_by)).collect();
    assert_eq!(gone, [(first.id, "snapshot_replaced", Some(second.id))]);
    world.check();
}

#[test]
fn v186_a_late_snapshot_is_ignored_and_reported() {
    let world = World::new();
    push(&world, "10 facts", "2026-01-02T10:00:00Z");
    let noon = push(&world, "12 facts", "2026-01-02T12:00:00Z");
    let late = push(&world, "9 facts", "2026-01-02T09:00:00Z");
    assert_eq!((late.decision, late.rule, late.id), (Decision::Ignored, RuleId::SNAPSHOT, noon.id));
    assert_eq!(series(&world, "profile"), ["12 facts"]);
    let told = world.ns.history(noon.id.to_string()).unwrap().events;
    assert!(told.iter().any(|row| row.op == oubliette::report::Op::Ignore && row.rule == RuleId::SNAPSHOT));
    assert_eq!(world.db.stats().unwrap().ignored, 1);
    world.check();
}

#[test]
fn v187_a_day_ends_at_midnight() {
    let world = World::new();
    push(&world, "old day", "2026-01-02T23:59:59Z");
    push(&world, "new day", "2026-01-03T00:00:01Z");
    assert_eq!(series(&world, "profile"), ["old day", "new day"]);
}

#[test]
fn v188_a_day_ends_at_midnight_of_its_zone() {
    let pushes = |world: &World| {
        push(world, "before", "2026-01-02T21:59:00Z");
        push(world, "after", "2026-01-02T22:01:00Z");
        series(world, "profile")
    };
    assert_eq!(pushes(&under("snapshot.zone = \"+02:00\"")), ["before", "after"]);
    assert_eq!(pushes(&under("snapshot.zone = \"UTC\"")), ["after"], "one day without the zone");
}

#[test]
fn a_zone_that_is_not_known_is_an_error_of_the_push_alone() {
    const UNKNOWN: &str = "snapshot.zone = \"Atlantis/Capital\"";
    let refused = World::new().db.set_policy(UNKNOWN, Syntax::Toml).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Policy, "this machine stores no such policy; another may have");
    let world = World::with(|builder| builder.policy(policy(UNKNOWN)));
    let error = world.ns.push_snapshot(Draft::new("x"), world.now()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Policy);
    assert!(error.to_string().contains("Atlantis/Capital"), "{error}");
    assert_eq!(world.add(text("other writes go on")).decision, Decision::Stored);
}

#[test]
fn v255_a_snapshot_without_an_agent_is_handled_as_a_push() {
    let world = World::new();
    let add = |text: &str, time: &str| world.add(Draft::new(text).kind(Kind::Snapshot).created_at(at(time)));
    let (ten, twelve) = (add("10 facts", "2026-01-02T10:00:00Z"), add("12 facts", "2026-01-02T12:00:00Z"));
    for outcome in [&ten, &twelve] {
        assert_eq!(routed(outcome), (&agent("profile-mgr"), &Decision::Stored));
        assert_eq!((rule(outcome), &outcome.partition), (Some("R2"), &agent("profile-mgr")));
    }
    assert_eq!(series(&world, "profile"), ["12 facts"]);
    let nine = add("9 facts", "2026-01-02T09:00:00Z");
    assert_eq!(routed(&nine), (&agent("profile-mgr"), &Decision::Ignored));
    assert_eq!(nine.id, twelve.id);
    assert_eq!(world.ns.memory_stats().unwrap().health.profile_snapshots, 1);
    world.check();
}

#[test]
fn an_agent_that_the_caller_names_stays() {
    let world = World::new();
    let snapshot = world.add(Draft::new("a").kind(Kind::Snapshot).agent("mine"));
    assert_eq!((&snapshot.decision, &snapshot.partition), (&Decision::Stored, &agent("mine")));
    let search = world.add(Draft::new("b").kind(Kind::SearchHistory).agent("mine"));
    assert_eq!(
        (&search.decision, rule(&search), &search.partition),
        (&Decision::Stored, None, &agent("mine"))
    );
    let fact = world.add(text("c").tag("profile-fact").agent("mine"));
    assert_eq!((&fact.decision, &fact.partition), (&Decision::Stored, &agent("mine")));
}

#[test]
fn of_equal_instants_the_larger_id_stays() {
    let world = World::new();
    push(&world, "first", "2026-01-02T10:00:00Z");
    push(&world, "second", "2026-01-02T10:00:00Z");
    assert_eq!(series(&world, "profile"), ["second"], "ids of this world ascend");
}

#[test]
fn series_are_apart() {
    let world = World::new();
    let mut other = Draft::new("of another series");
    other.fields.series = Some("goals".to_owned());
    push(&world, "of the profile", "2026-01-02T10:00:00Z");
    world.ns.push_snapshot(other, at("2026-01-02T11:00:00Z")).unwrap();
    assert_eq!(series(&world, "profile"), ["of the profile"]);
    assert_eq!(series(&world, "goals"), ["of another series"]);
    assert!(series(&world, "profil").is_empty(), "a prefix is another series");
}

#[test]
fn the_metadata_say_when_a_snapshot_was_taken() {
    let world = World::new();
    let taken = |text: &str, timestamp: serde_json::Value| {
        let draft = Draft::new(text).kind(Kind::Snapshot).metadata(json!({ "timestamp": timestamp }));
        world.add(draft)
    };
    let (day, millis) = ("2025-12-31T12:00:00Z", at("2025-12-31T13:00:00Z").as_millis());
    taken("as text", json!(day));
    taken("as milliseconds", json!(millis));
    taken("as nothing, so now", json!(null));
    assert_eq!(series(&world, "profile"), ["as milliseconds", "as nothing, so now"]);

    for unreadable in [json!("noon"), json!(1.5), json!(i64::MAX), json!({})] {
        let outcome = taken(&format!("at {unreadable}"), unreadable);
        assert_eq!(routed(&outcome).1, &Decision::Stored, "it belongs to no period and is no repeat");
    }
    assert_eq!(series(&world, "profile").len(), 2, "those are no part of the story");
    assert_eq!(world.ns.memory_stats().unwrap().health.profile_snapshots, 6);
    world.check();
}

#[test]
fn a_series_is_read_between_instants() {
    let world = World::new();
    for day in 1..=5 {
        push(&world, &format!("day {day}"), &format!("2026-01-0{day}T10:00:00Z"));
    }
    let scope = Scope::agent("profile-mgr").unwrap();
    let read = |from: &str, until: &str| {
        let rows = world.ns.list_snapshots(&scope, "profile", Some(at(from)), Some(at(until))).unwrap();
        rows.iter().map(|row| (row.text.clone(), row.snapshot_time())).collect::<Vec<_>>()
    };
    let expected = |day: u32| (format!("day {day}"), Some(at(&format!("2026-01-0{day}T10:00:00Z"))));
    assert_eq!(read("2026-01-02T10:00:00Z", "2026-01-04T10:00:00Z"), [expected(2), expected(3)]);
    assert!(read("2026-01-04T10:00:00Z", "2026-01-02T10:00:00Z").is_empty());
    let any = world.ns.list_snapshots(&Scope::Any, "profile", None, None).unwrap();
    assert_eq!(any.len(), 5);
    let shared = world.ns.list_snapshots(&Scope::Shared, "profile", None, None).unwrap();
    assert!(shared.is_empty());
}

#[test]
fn a_key_of_a_snapshot_is_written_again_without_change() {
    let world = World::new();
    let draft =
        || Draft::new("12 facts").key("snap").kind(Kind::Snapshot).created_at(at("2026-01-02T12:00:00Z"));
    let first = world.add(draft());
    let again = world.add(draft());
    assert_eq!((routed(&again).1, again.id), (&Decision::Unchanged, first.id));
    let other = world.add(Draft { text: "13 facts".to_owned(), ..draft() });
    assert_eq!(routed(&other).1, &Decision::Revised { old: first.id });
    assert_eq!(series(&world, "profile"), ["13 facts"]);
    world.check();
}

#[test]
fn a_pinned_snapshot_is_left_alone() {
    let world = World::new();
    let first = push(&world, "pinned", "2026-01-02T10:00:00Z");
    world.ns.pin(first.id.to_string(), true).unwrap();
    push(&world, "later", "2026-01-02T12:00:00Z");
    assert_eq!(series(&world, "profile"), ["pinned", "later"]);
}

#[test]
fn a_push_of_another_kind_is_refused() {
    let world = World::new();
    let error = world.ns.push_snapshot(text("x").kind(Kind::Profile), world.now()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("kind"), "{error}");
}

#[test]
fn v194_search_history_goes_to_its_partition() {
    let world = World::new();
    let outcome = world.add(text("rust hnsw").kind(Kind::SearchHistory).key("q1"));
    assert_eq!(routed(&outcome), (&agent("perplexity"), &Decision::Stored));
    assert_eq!((rule(&outcome), &outcome.partition), (Some("R1"), &agent("perplexity")));
    let again = world.add(text("rust hnsw").kind(Kind::SearchHistory).key("q1"));
    assert_eq!(
        (routed(&again).1, again.id),
        (&Decision::Unchanged, outcome.id),
        "a re-import changes nothing"
    );
    world.check();
}

#[test]
fn v195_hedged_writes_are_ignored_where_rules_are_strict() {
    let strict = under("rules.strict = true");
    let ignored = strict.add(text("maybe uses Rust").kind(Kind::Knowledge));
    assert_eq!(
        (&ignored.decision, ignored.rule, rule(&ignored)),
        (&Decision::Ignored, RuleId::RULE, Some("R5"))
    );
    assert_eq!(strict.add(text("maybe uses Rust").kind(Kind::Message)).decision, Decision::Stored);
    assert_eq!(strict.add(text("Maybes are no maybe-not").kind(Kind::Knowledge)).decision, Decision::Ignored);
    assert_eq!(strict.add(text("Maybes are words").kind(Kind::Knowledge)).decision, Decision::Stored);
    let agents = strict.add(text("possibly uses Go").agent("mine"));
    assert_eq!(agents.decision, Decision::Stored, "instructions are for writes without an agent (DEDUP-64)");
    assert_eq!(add_with(&strict, text("might use Zig"), &skipping()).decision, Decision::Stored);
    assert_eq!(
        World::new().add(text("maybe uses Rust")).decision,
        Decision::Stored,
        "the default is not strict"
    );
}

#[test]
fn an_ignored_write_leaves_a_journal_row_and_a_count() {
    let world = under("rules.strict = true");
    let before = world.ns.stats().unwrap();
    let outcome = world.add(text("secret trace").tag("debug-transient").key("trace").supersedes("nothing"));
    assert_eq!((&outcome.decision, rule(&outcome)), (&Decision::Ignored, Some("R4")));
    assert!(world.unknown("trace") && world.unknown(outcome.id));
    let after = world.ns.stats().unwrap();
    assert_eq!((after.ignored, after.holders, after.memories), (before.ignored + 1, 0, before.memories));
    let told = world.ns.history(outcome.id.to_string()).unwrap();
    assert!(told.versions.is_empty());
    assert_eq!(told.events.iter().map(|row| row.op).collect::<Vec<_>>(), [oubliette::report::Op::Ignore]);
    assert_eq!(told.events[0].evidence.signature.as_deref(), Some("rule R4"));
    assert!(!format!("{:?}", told.events).contains("secret"), "no content");
    let bad = world.ns.add(text("x").tag("debug-transient").vector([0.0; 4])).unwrap_err();
    assert_eq!(bad.kind(), ErrorKind::Invalid, "bad input is an error, whatever would become of it");
    world.check();
}

#[test]
fn the_first_rule_that_matches_decides() {
    let world = under(
        r#"
        [[rules.typed]]
        id = "keep"
        match = { keyword = ["c++", "rust"], kind = ["knowledge", "custom:note"] }
        action = "store"
        [[rules.typed]]
        id = "noise"
        match = { regex = "(?i)^debug:" }
        action = "ignore"
        [[rules.typed]]
        id = "notes"
        match = { kind = ["custom:note"], partition = "shared" }
        action = { route = { agent = "notes" } }
        [[rules.typed]]
        id = "rest"
        match = { tag = ["drop", "junk"], not_kind = ["message"] }
        action = "ignore"
        "#,
    );
    let note = || Kind::Custom("note".to_owned());
    let decided = |draft: Draft| {
        let outcome = world.add(draft);
        (
            outcome.decision.settled().clone(),
            outcome.policy_rule.unwrap_or_default(),
            outcome.partition.to_string(),
        )
    };
    let stored = |rule: &str, place: &str| (Decision::Stored, rule.to_owned(), place.to_owned());
    let ignored = |rule: &str| (Decision::Ignored, rule.to_owned(), "shared".to_owned());
    assert_eq!(decided(text("Learning C++ now").kind(note()).tag("drop")), stored("", "shared"));
    assert_eq!(decided(text("learning c").kind(note())), stored("notes", "notes"));
    assert_eq!(decided(text("Trusty").kind(note())), stored("notes", "notes"), "a word is a whole word");
    assert_eq!(decided(text("DEBUG: rust").kind(Kind::Event)), ignored("noise"));
    assert_eq!(decided(text("a").tag("junk").kind(Kind::Event)), ignored("rest"));
    assert_eq!(decided(text("a").tag("junk").kind(Kind::Message)), stored("", "shared"));
    assert_eq!(decided(text("learning c").kind(note()).agent("mine")), stored("", "mine"));
}

#[test]
fn a_rule_may_ask_what_is_stored() {
    let world = under(
        r#"
        [[rules.typed]]
        id = "exact"
        match = { exact_dup = true }
        action = "ignore"
        [[rules.typed]]
        id = "near"
        match = { near_dup = 0.9 }
        action = "ignore"
        "#,
    );
    let first = world.add(text("tea").key("a").vector(axis(0)));
    assert_eq!(first.decision, Decision::Stored);
    let equal = world.add(text("tea").key("b"));
    assert_eq!((&equal.decision, rule(&equal)), (&Decision::Ignored, Some("exact")));
    let near = world.add(text("green tea").vector([0.95, 0.05, 0.0, 0.0]));
    assert_eq!((&near.decision, rule(&near)), (&Decision::Ignored, Some("near")));
    assert_eq!(world.add(text("coffee").vector(axis(1))).decision, Decision::Stored);
    let again = world.add(text("tea").key("a").vector(axis(0)));
    assert_eq!(
        (again.decision, again.id),
        (Decision::Unchanged, first.id),
        "a write is no duplicate of itself"
    );
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    assert_eq!(add_with(&world, text("tea").vector(axis(0)), &apart).decision, Decision::Stored);
    world.forget_id(first.id);
    assert_eq!(world.add(text("tea").agent("mine").vector(axis(0))).decision, Decision::Stored);
}

#[test]
fn v196_the_specific_wins_over_the_general() {
    let world = under(
        r#"rules.typed = [{ id = "lang", match = { keyword = ["typescript"] }, action = { consolidate = "lang" } }]"#,
    );
    let first = world.add(text("uses TypeScript"));
    assert_eq!((&first.decision, rule(&first)), (&Decision::Stored, Some("lang")));
    let more = world.add(text("uses TypeScript 5.3"));
    assert_eq!(
        (&more.decision, more.rule, rule(&more)),
        (&Decision::Consolidated, RuleId::CONSOLIDATE, Some("lang"))
    );
    assert_eq!(more.evidence.members, [first.id]);
    assert_eq!(world.row("lang").text, "uses TypeScript 5.3");
    let fewer = world.add(text("uses TypeScript"));
    assert_eq!((&fewer.decision, fewer.id), (&Decision::Consolidated, more.id));
    let row = world.row("lang");
    assert_eq!((row.text.as_str(), row.reinforcement_count), ("uses TypeScript 5.3", 2));
    let other = world.add(text("left \"TypeScript\" behind"));
    assert_eq!(other.decision, Decision::Consolidated, "a changed fact updates its memory");
    assert_eq!(world.row("lang").text, "left \"TypeScript\" behind");
    let again = world.add(text("left \"TypeScript\" behind"));
    assert_eq!((&again.decision, again.id), (&Decision::Unchanged, other.id));
    let own = world.add(text("uses TypeScript at home").key("home"));
    assert_eq!(
        (&own.decision, rule(&own)),
        (&Decision::Stored, None),
        "a key of one's own names another record"
    );
    world.check();

    let plain = World::new();
    let add = |words: &str| plain.add(text(words).key("lang")).decision;
    assert_eq!(add("uses TypeScript"), Decision::Stored);
    assert!(matches!(add("uses TypeScript 5.3"), Decision::Revised { .. }));
    assert!(matches!(add("uses TypeScript"), Decision::Revised { .. }));
    assert_eq!(plain.row("lang").text, "uses TypeScript");
}

#[test]
fn a_rule_does_not_reach_into_another_partition() {
    let world = under(r#"rules.typed = [{ id = "one", action = { consolidate = "k" } }]"#);
    world.add(text("there").key("k").agent("mine"));
    let error = world.ns.add(text("here")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::KeyInOtherPartition);

    let world = World::new();
    world.add(text("x").key("k"));
    let error = world.ns.add(text("y").key("k").kind(Kind::SearchHistory)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::KeyInOtherPartition);
}

#[test]
fn v251_a_repeated_report_is_absorbed_where_the_policy_says_so() {
    let report = |text: &str| Draft::new(text).kind(Kind::Profile);
    let both = |world: &World| {
        let first = world.add(report("Gateway status: 4 apps"));
        (first, world.add(report("Gateway status: 7 apps").tag("t").tier(Tier::Procedural).key("k")))
    };
    let (first, second) = both(&World::new());
    assert_eq!((first.decision, second.decision), (Decision::Stored, Decision::Stored));

    let world = under("write.op_match = true");
    let (first, second) = both(&world);
    assert_eq!(
        (&first.decision, &second.decision, second.id),
        (&Decision::Stored, &Decision::Reinforced, first.id)
    );
    assert_eq!(
        (second.rule, second.evidence.signature.as_deref()),
        (RuleId::OPERATIONAL, Some("op-1 gateway status <num> apps"))
    );
    let row = world.row(first.id);
    assert_eq!(row.text, "Gateway status: 4 apps");
    assert_eq!((row.tier, row.reinforcement_count), (Tier::Procedural, 2), "the more durable tier");
    assert_eq!(row.tags, ["t"]);
    assert_eq!(world.row("k").text, "Gateway status: 7 apps", "a key answers with its own text");
    world.check();
}

#[test]
fn an_absorbed_report_asks_for_kind_validity_and_identity() {
    let world = under("write.op_match = true\nwrite.op_window = 2");
    let report = |apps: u32| Draft::new(format!("Gateway status: {apps} apps")).kind(Kind::Profile);
    let first = world.add(report(1));
    assert_eq!(world.add(report(2).kind(Kind::Knowledge)).decision, Decision::Stored, "another kind");
    let user = world.add(report(3).metadata(json!({ "user_id": "u" })));
    assert_eq!(user.decision, Decision::Stored, "another user");
    let note = world.add(report(4).metadata(json!({ "note": 1 })));
    assert_eq!((note.decision, note.id), (Decision::Reinforced, first.id), "a note is no identity");
    let mut later = report(5);
    later.fields.valid_from = Some(world.now().plus(Span::from_millis(1))).into();
    assert_eq!(world.add(later).decision, Decision::Stored, "valid at another time");
    let beyond = world.add(report(6));
    assert_eq!(beyond.decision, Decision::Stored, "two newer rows of the kind fill the window");
    assert_eq!(world.add(Draft::new("Ann likes 4 apps").kind(Kind::Profile)).decision, Decision::Stored);
    assert_eq!(world.add(Draft::new("Ann likes 7 apps").kind(Kind::Profile)).decision, Decision::Stored);
    world.check();
}

#[test]
fn an_equal_token_key_absorbs_where_the_policy_says_so() {
    let lines = ["Gateway status: 4 apps online", "Apps online, 7: the gateway status"];
    let report = |at: usize| Draft::new(lines[at]).kind(Kind::Profile);
    let off = under("write.op_match = true");
    off.add(report(0));
    assert_eq!(off.add(report(1)).decision, Decision::Stored, "another order of words is another signature");
    let on = under("write.token_match = true");
    let first = on.add(report(0));
    let second = on.add(report(1));
    assert_eq!(
        (&second.decision, second.id, second.rule),
        (&Decision::Reinforced, first.id, RuleId::TOKEN_KEY)
    );
    assert_eq!(second.evidence.signature.as_deref(), Some("op-1 tokens:apps gateway online status"));
}

#[test]
fn v256_the_instructions_are_these_bytes() {
    let text = World::new().db.instructions();
    let dashes = |part: &str| part.lines().filter(|line| line.starts_with("- ")).count();
    let parts: Vec<_> = text.split("\n\n").collect();
    assert_eq!(parts.iter().map(|part| dashes(part)).collect::<Vec<_>>(), [5, 5, 2]);
    let spec = include_str!("../../docs/spec/dedup.md");
    let block = spec.split("```").find(|block| block.trim_start().starts_with("STORE:")).unwrap();
    assert_eq!(text, block.trim_matches('\n'), "byte for byte as DEDUP-60 has them");
    assert!(!text.ends_with('\n'));
}

fn open_with(folder: &tempfile::TempDir, instructions: &str) -> Result<Database, oubliette::Error> {
    let builder: Builder = Database::builder();
    builder.instructions_file(folder.path().join(instructions)).open(folder.path().join("m.oub"))
}

#[test]
fn v197_a_file_of_spaces_gives_empty_instructions() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("spaces"), "  \n\t \n").unwrap();
    std::fs::write(folder.path().join("own"), "\n  keep everything\n").unwrap();
    std::fs::write(folder.path().join("latin"), [0xE4]).unwrap();
    assert_eq!(open_with(&folder, "spaces").unwrap().instructions(), "");
    assert_eq!(open_with(&folder, "own").unwrap().instructions(), "keep everything");
    assert!(open_with(&folder, "none").unwrap().instructions().starts_with("STORE:"));
    assert_eq!(open_with(&folder, "latin").unwrap_err().kind(), ErrorKind::Invalid);
    let db =
        Database::builder().policy(policy("rules.text = \"by policy\"")).open(folder.path().join("m.oub"));
    assert_eq!(db.unwrap().instructions(), "by policy");
}

#[test]
fn a_bad_rule_is_refused_where_it_stands() {
    let world = World::new();
    let refused = |document: &str, told: &str| {
        let error = world.db.set_policy(document, Syntax::Toml).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Policy, "{document}");
        let shown = error.to_string();
        assert!(shown.contains("rules.typed") && shown.contains(told), "{document}: {shown}");
    };
    let rule = |body: &str| format!("rules.typed = [{{ id = \"mine\", {body} }}]");
    refused(&rule("match = { regex = \"(\" }, action = \"ignore\""), "mine");
    refused(&rule("match = { near_dup = 1.5 }, action = \"ignore\""), "near_dup");
    refused(&rule("match = { kind = [\"kinds\"] }, action = \"ignore\""), "kind");
    refused(&rule("match = { colour = [\"red\"] }, action = \"ignore\""), "colour");
    refused(&rule("action = { route = { agent = \"\" } }"), "agent");
    refused(&rule("action = { consolidate = \"\" }"), "consolidate");
    refused(&rule("action = { ladder = 9 }"), "ladder");
    refused(&rule("match = { keyword = [\"Two Words\"] }, action = \"ignore\""), "keyword");
    assert_eq!(world.db.policy().1.number, 0, "the policy in force is as it was");
}

/// MODEL-2 (a), (d), (f), with MODEL-5: V-191.
#[test]
fn v191_a_default_search_sees_no_snapshot_no_search_and_no_profile_fact() {
    let world = World::new();
    for at in 0..3 {
        world.add(Draft::new(format!("memory {at}")).vector(axis(0)));
    }
    world.add(text("a snapshot").kind(Kind::Snapshot).vector(axis(0)));
    let fact = world.add(text("likes tea").tag("profile-fact").vector(axis(0)));
    assert_eq!((routed(&fact), rule(&fact)), ((&agent("profile-mgr"), &Decision::Stored), Some("R3")));
    world.add(text("a search").kind(Kind::SearchHistory).vector(axis(0)));
    let count = |scope: Scope| {
        let query = Query { scope, ..Query::vector(axis(0)) };
        world.ns.search(&query).unwrap().hits.len()
    };
    let counts = [
        Scope::Shared,
        Scope::agent("profile-mgr").unwrap(),
        Scope::agent("perplexity").unwrap(),
        Scope::Any,
    ];
    assert_eq!(counts.map(count), [3, 2, 1, 6]);
    let stays = add_with(&world, text("likes coffee").tag("profile-fact"), &skipping());
    assert_eq!((stays.decision, stays.partition), (Decision::Stored, Partition::Shared));
    let profile = world.add(text("Gateway status: 4 apps").kind(Kind::Profile));
    assert_eq!(profile.partition, Partition::Shared, "kind profile is not routed (DEDUP-62)");
}

/// MODEL-2 (b): whatever the order of the pushes, each day has its latest alone.
#[test]
fn at_most_one_snapshot_of_a_series_and_day() {
    let world = World::new();
    let hour = |n: i64| at("2026-01-01T00:00:00Z").plus(Span::from_millis(n * 3_600_000));
    for n in (0..96).map(|n| n * 41 % 96) {
        world.ns.push_snapshot(Draft::new(format!("hour {n}")), hour(n)).unwrap();
    }
    assert_eq!(series(&world, "profile"), ["hour 23", "hour 47", "hour 71", "hour 95"]);
    let stats = world.ns.memory_stats().unwrap();
    assert_eq!((stats.health.profile_snapshots, stats.health.duplicates_detected), (4, 0));
    let pushed = 96 - 4;
    let all = world.db.stats().unwrap();
    assert_eq!(all.memories.limbo + all.ignored, pushed, "each of the others went or was ignored");
    world.check();
}

#[test]
fn rules_and_snapshots_work_in_a_batch() {
    let world = World::new();
    let ns = world.db.namespace("other").unwrap();
    world
        .db
        .batch(|batch| {
            batch.push_snapshot(ns.name(), Draft::new("one"), at("2026-01-02T10:00:00Z"))?;
            batch.push_snapshot(ns.name(), Draft::new("two"), at("2026-01-02T11:00:00Z"))?;
            batch.add_with(ns.name(), text("kept").tag("profile-fact"), &skipping())
        })
        .unwrap();
    let scope = Scope::agent("profile-mgr").unwrap();
    let all = ns.list_snapshots(&scope, "profile", None, None).unwrap();
    assert_eq!(all.iter().map(|row| row.text.as_str()).collect::<Vec<_>>(), ["two"]);
    assert_eq!(ns.memory_stats().unwrap().local.total, 1);
}
