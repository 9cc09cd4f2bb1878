//! Which memories become one summary, what its writer is shown, and where the summary then lies (GC-6, GC-7, GC-19, GC-24,
//! GC-43).

use crate::world::World;
use oubliette::gc::{
    Extractive, GcOptions, GcPlan, GcRunOptions, GroupState, InputPack, Summarizer, token_estimate,
};
use oubliette::memory::{AuthorKind, ContextDraft, Inclusion};
use oubliette::policy::Syntax;
use oubliette::{Draft, Error, Kind, MemoryId, Result};
use serde_json::json;

/// An old message of a channel.
fn message(world: &World, text: &str) -> Draft {
    Draft::new(text).kind(Kind::Message).channel("yard").created_at(world.ago("20d"))
}

/// A message with more words than it says anything with, so that a summary can be shorter.
fn long(number: u32, text: &str) -> String {
    let rest = [
        "That is how it was, and so it will be for all of us. Well, when would you do that?",
        "Yes, she could get more of it, but they can also do so. About this there is only what he had.",
        "Who will be with him then? It would have been so, as they are what they were to all of us.",
    ];
    format!("{text} {}", rest[number as usize])
}

/// A bot says the same twice in a channel, so long ago.
fn spam(world: &World, channel: &str, text: &str, ago: &str) {
    for _ in 0..2 {
        let draft = Draft::new(text).kind(Kind::Message).channel(channel).created_at(world.ago(ago));
        world.add(draft.author_kind(AuthorKind::Bot));
    }
}

fn plan(world: &World, options: GcOptions) -> GcPlan {
    world.ns.gc_plan(&options).unwrap()
}

fn summarized(world: &World) -> MemoryId {
    let done = world.ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap();
    assert_eq!((done.committed, done.failures.len()), (1, 0), "{:?}", done.failures);
    let summary = world.live().into_iter().find(|id| world.row(*id).kind == Kind::Summary);
    summary.unwrap()
}

#[test]
fn other_families_of_the_channel_and_day_are_shown_in_numbers() {
    let world = World::new();
    let texts = ["Ann: The boiler broke.", "Bob: Call the plumber."];
    let ids = texts.map(|text| world.add(message(&world, text)).id);
    spam(&world, "yard", "Build failed on main", "20d");
    spam(&world, "yard", "Tests failed on main", "19d");
    spam(&world, "else", "Disk is full on oak", "20d");
    for _ in 0..2 {
        let later = Draft::new("Alarm is due on elm").kind(Kind::Message).channel("yard");
        let later = later.created_at(world.ago("20d")).valid_from(world.ahead("20d"));
        world.add(later.author_kind(AuthorKind::Bot));
    }
    let plan = plan(&world, GcOptions::default());
    assert_eq!(plan.groups[0].source_ids, ids, "a family of its own is no source of the group");
    let pack = world.ns.gc_pack(plan.plan_id, "1").unwrap();
    let told: Vec<(u64, &str)> =
        pack.aggregates.iter().map(|one| (one.dup_count, one.examples[0].as_str())).collect();
    assert_eq!(told, [(2, "Build failed on main")]);
    // Its number was observed, so a summary may say it.
    let summary = summarized_with(&world, &plan, "2 builds failed");
    assert_eq!(summary, Ok(Vec::new()));
}

/// Commits a summary that says this, and gives the warnings, or the pointers of the refusal.
fn summarized_with(world: &World, plan: &GcPlan, says: &str) -> Result<Vec<String>, Vec<String>> {
    let time = plan.groups[0].time_range;
    let time = json!({ "start": time.start.as_millis(), "end": time.end.as_millis() });
    let answer = json!({ "topic": "yard", "time_range": time, "summary": [says] });
    match world.ns.gc_commit(plan.plan_id, "1", &answer.to_string(), None) {
        Ok(done) => Ok(done.warnings.into_iter().map(|warning| warning.pointer).collect()),
        Err(Error::Refused { code, pointers, .. }) => {
            assert_eq!(code, "invalid_summary");
            Err(pointers)
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_number_that_no_source_has_is_told() {
    for (says, told) in [
        ("The plumber wants 480 euros on 3 March", vec![]),
        ("The plumber wants 700 euros", vec!["/summary/0".to_owned()]),
        ("The house cost 250000, or 250,000", vec![]),
        ("2 messages of 2025", vec![]),
        ("room 007 is free", vec![]),
    ] {
        let world = World::new();
        for text in ["Bob: 480 euros, says the plumber, on 3 March.", "Ann: The house cost 250,000; room 7."]
        {
            world.add(message(&world, text));
        }
        let plan = plan(&world, GcOptions::default());
        assert_eq!(summarized_with(&world, &plan, says), Ok(told), "{says}");
    }
}

#[test]
fn a_summary_is_not_longer_than_its_sources() {
    let world = World::new();
    for number in 0..2 {
        world.add(message(
            &world,
            &format!("Ann: Box {number} {}", "went to Ghent by the slow boat. ".repeat(6)),
        ));
    }
    let plan = plan(&world, GcOptions::default());
    let tokens = plan.groups[0].estimated_tokens as usize;
    let long = "boat ".repeat(tokens * 4 / 5 + 1);
    assert_eq!(summarized_with(&world, &plan, &long), Err(vec!["/summary".to_owned()]));
    assert_eq!(world.live().len(), 2);
    assert_eq!(summarized_with(&world, &plan, "boat ".repeat(tokens * 4 / 5 - 2).trim()), Ok(vec![]));
    // However short the sources are: these have five tokens.
    let world = World::new();
    for text in ["Ann: Yes.", "Bob: No."] {
        world.add(message(&world, text));
    }
    let plan = self::plan(&world, GcOptions::default());
    assert_eq!(summarized_with(&world, &plan, "boat or ferry"), Err(vec!["/summary".to_owned()]));
    assert_eq!(summarized_with(&world, &plan, "boat"), Ok(vec![]));
}

/// The summary of a short group once was longer than the group: 27 tokens in place of 20.
#[test]
fn what_would_not_become_shorter_stays() {
    let world = World::new();
    let short = |world: &World, channel: &str, words: &str| {
        for number in 0..4 {
            let draft = message(world, &format!("msg about boiler {number}{words}")).channel(channel);
            world.add(draft);
        }
    };
    short(&world, "a", "");
    short(&world, "b", ", as it is now, and was");
    for dry_run in [true, false] {
        // The short group comes first, and does not count.
        let options = GcRunOptions { dry_run, max_groups: Some(1), ..GcRunOptions::default() };
        let done = world.ns.gc_run(&Extractive::default(), &options, |_| ()).unwrap();
        assert_eq!(
            (done.groups, done.too_short, done.aborted, done.failures.len()),
            (2, 1, 0, 0),
            "{done:?}"
        );
        assert_eq!(done.committed, 1);
        assert!(done.tokens_after * 2 <= done.tokens_before, "{done:?}");
    }
    assert_eq!(world.live().len(), 5);
    let reasons: Vec<String> =
        world.ns.gc_plans().unwrap()[0].groups.iter().filter_map(|g| g.reason.clone()).collect();
    assert!(reasons[0].starts_with("no_gain: no sentence of the sources fits"), "{reasons:?}");
    assert!(world.ns.gc_report(None).unwrap().refusals.is_empty(), "nothing was refused");
    world.check();
}

#[test]
fn tokens_are_those_of_the_last_context() {
    let world = World::new();
    let ids =
        ["Ann: The boiler broke.", "Bob: Call the plumber."].map(|text| world.add(message(&world, text)).id);
    let estimated = token_estimate("Ann: The boiler broke.") + token_estimate("Bob: Call the plumber.");
    for (context, tokens, ago) in [("turn-2", 500, "200d"), ("turn-1", 7, "201d")] {
        let mut context = ContextDraft::new(context, [Inclusion::new(ids[0], tokens)]);
        context.at = Some(world.ago(ago));
        world.ns.context_log_write(&context).unwrap();
    }
    let second = token_estimate("Bob: Call the plumber.");
    assert_eq!(plan(&world, GcOptions::default()).groups[0].estimated_tokens, 500 + second);
    // As long as the context is kept.
    world.db.set_policy("access.log_ttl = \"90d\"", Syntax::Toml).unwrap();
    world.advance("2d");
    world.db.maintain().unwrap();
    assert_eq!(plan(&world, GcOptions::default()).groups[0].estimated_tokens, estimated);
}

#[test]
fn a_long_group_is_divided_into_parts_of_equal_length() {
    let world = World::new();
    let ids: Vec<MemoryId> =
        (0..10).map(|n| world.add(message(&world, &format!("{n}{}", "x".repeat(39)))).id).collect();
    let sizes = |group_tokens| {
        let found = plan(&world, GcOptions { group_tokens, ..GcOptions::default() });
        world.ns.gc_abort(found.plan_id, None, "again").unwrap();
        let all: Vec<MemoryId> = found.groups.iter().flat_map(|group| group.source_ids.clone()).collect();
        assert_eq!(all, ids, "every memory is in one part, in order");
        found.groups.iter().map(|group| group.source_ids.len()).collect::<Vec<_>>()
    };
    // Ten memories of ten tokens.
    assert_eq!(sizes(None), [10]);
    assert_eq!(sizes(Some(1_000)), [10]);
    assert_eq!(sizes(Some(50)), [5, 5]);
    assert_eq!(sizes(Some(30)), [3, 4, 3]);
    let refused = world.ns.gc_plan(&GcOptions { group_tokens: Some(0), ..GcOptions::default() });
    assert!(refused.unwrap_err().to_string().starts_with("group_tokens"));
    // Of long memories, as many as the least group has make a part, and none is left over.
    assert_eq!(sizes(Some(1)), [2; 5]);
    world.db.set_policy("gc.min_group = 3", Syntax::Toml).unwrap();
    assert_eq!(sizes(Some(1)), [3, 3, 4]);
}

/// GC-6: a group has no more tokens than its plan, and what alone has more keeps no other memory from its summary.
#[test]
fn gc_6_what_is_too_much_for_a_plan_stops_none() {
    let world = World::new();
    let texts = [900, 40, 40, 40, 40].map(|bytes| "x".repeat(bytes));
    let ids: Vec<MemoryId> =
        (0..).zip(texts).map(|(n, text)| world.add(message(&world, &format!("{n}{text}"))).id).collect();
    world.db.set_policy("gc.min_group = 1", Syntax::Toml).unwrap();
    let found = plan(&world, GcOptions { limit_tokens: Some(25), ..GcOptions::default() });
    let sources: Vec<Vec<MemoryId>> = found.groups.into_iter().map(|group| group.source_ids).collect();
    assert_eq!(sources, [ids[1..3].to_vec()]);
}

#[test]
fn a_summary_lies_where_all_its_sources_lay() {
    let world = World::new();
    let metadata = |draft: Draft, day: u32| draft.metadata(json!({ "conversation": "c7", "day": day }));
    for (day, text) in [(1, "Ann: The boiler broke."), (2, "Bob: Call the plumber.")] {
        world.add(
            metadata(message(&world, &long(day, text)).thread("t1").session(format!("s{day}")), day)
                .tag("home"),
        );
    }
    let row = world.row(summarized(&world));
    assert_eq!(
        (row.channel.as_deref(), row.thread.as_deref(), row.session),
        (Some("yard"), Some("t1"), None)
    );
    assert_eq!((row.metadata, row.tags), (json!({ "conversation": "c7" }), vec!["home".to_owned()]));
    // Neighbours in the thread lend it their words.
    world.add(Draft::new("Bob: Who pays the sewer bill?").kind(Kind::Message).channel("yard").thread("t1"));
    let hits = world.ns.search("sewer").unwrap().hits;
    assert_eq!(hits.len(), 2);
    assert!(hits[1].signals.context > Some(0.0));
}

#[test]
fn v_305_a_hit_says_what_it_stands_for() {
    let world = World::new();
    let texts = ["Ann: The boiler broke.", "Bob: The plumber asks for 480 euros.", "Ann: Pay him."];
    let ids = [0, 1, 2].map(|at| world.add(message(&world, &long(at, texts[at as usize]))).id);
    let summary = summarized(&world);
    world.add("Ann prefers tea over what the plumber drinks".into());
    let hits = world.ns.search("who asks for 480 euros, the plumber?").unwrap().hits;
    let stands_for = hits[0].stands_for.unwrap();
    assert_eq!((hits[0].id, stands_for.count, stands_for.source_forgotten), (summary, 3, 0));
    assert_eq!((stands_for.start, stands_for.end), (Some(world.ago("20d")), Some(world.ago("20d"))));
    assert_eq!(hits[1].stands_for, None);
    assert!(world.ns.expand(summary).unwrap().sources.iter().any(|(id, _)| *id == ids[1]));
    world.forget_id(ids[1]);
    assert_eq!(world.ns.search("euros").unwrap().hits[0].stands_for.unwrap().source_forgotten, 1);
}

/// Whoever gives no summary.
struct Silent;

impl Summarizer for Silent {
    fn summarize(&self, _: &InputPack) -> Result<String> {
        Err(Error::Conflict { what: "the summarizer".to_owned(), why: "it sleeps".to_owned() })
    }
}

#[test]
fn a_summarizer_that_fails_is_noted() {
    let world = World::new();
    let ids =
        ["Ann: The boiler broke.", "Bob: Call the plumber."].map(|text| world.add(message(&world, text)).id);
    let done = world.ns.gc_run(&Silent, &GcRunOptions::default(), |_| ()).unwrap();
    assert_eq!((done.aborted, done.committed, world.live()), (1, 0, ids.to_vec()));
    let group = world.ns.gc_plans().unwrap().remove(0).groups.remove(0);
    assert_eq!((group.state, group.refusal.unwrap().as_str()), (GroupState::Aborted, "no_summary"));
    assert!(group.reason.unwrap().contains("it sleeps"));
    assert_eq!(world.ns.gc_report(None).unwrap().refusals.get("no_summary"), Some(&1));
    world.check();
}

/// Names a memory that it was not shown, until it is told.
struct Foreign;

impl Summarizer for Foreign {
    fn summarize(&self, pack: &InputPack) -> Result<String> {
        let ids = [&pack.sources[0].id, "019584a0-0000-7000-8000-000000000001"];
        Ok(json!({ "topic": "a", "time_range": {"start": 0, "end": 0}, "summary": ["b"], "source_ids": ids })
            .to_string())
    }

    fn repair(&self, _: &InputPack, answer: &str, faults: &[oubliette::gc::Fault]) -> Result<Option<String>> {
        assert_eq!(faults[0].pointer, "/source_ids/1");
        Ok(Some(answer.replace(r#","019584a0-0000-7000-8000-000000000001""#, "")))
    }
}

#[test]
fn a_foreign_source_is_a_fault_to_repair() {
    let world = World::new();
    for text in ["Ann: The boiler broke.", "Bob: Call the plumber."] {
        world.add(message(&world, text));
    }
    world.db.set_policy("gc.repair_attempts = 0", Syntax::Toml).unwrap();
    for dry_run in [true, false] {
        let options = GcRunOptions { dry_run, ..GcRunOptions::default() };
        let done = world.ns.gc_run(&Foreign, &options, |_| ()).unwrap();
        assert_eq!((done.refused, done.aborted, world.live().len()), (1, 0, 2), "{:?}", done.failures);
    }
    world.db.set_policy("gc.repair_attempts = 1", Syntax::Toml).unwrap();
    assert_eq!(world.ns.gc_run(&Foreign, &GcRunOptions::default(), |_| ()).unwrap().committed, 1);
}

/// GC-6, LIFE-28: memories of different owners are summarized apart, and a summary is found among those of its owner.
#[test]
fn memories_of_different_owners_are_summarized_apart() {
    let world = World::new();
    let of = |owner: &str, at: u32| {
        let text = long(at, &format!("{owner} keeps the key of house {at} under a stone."));
        world.add(message(&world, &text).metadata(json!({"user_id": owner, "shift": at}))).id
    };
    let mut apart = [Vec::new(), Vec::new()];
    for at in 0..3 {
        apart[0].push(of("u1", at));
        apart[1].push(of("u2", at));
    }
    let planned = plan(&world, GcOptions::default());
    let sources: Vec<Vec<MemoryId>> = planned.groups.iter().map(|group| group.source_ids.clone()).collect();
    assert_eq!(sources, apart);
    world.ns.gc_abort(planned.plan_id, None, "apart").unwrap();
    let done = world.ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap();
    assert_eq!(done.committed, 2, "{:?}", done.failures);
    let summaries = world.live().into_iter().map(|id| world.row(id));
    let owners: Vec<_> = summaries.map(|row| (row.kind, row.metadata)).collect();
    let of = |owner: &str| (Kind::Summary, json!({"user_id": owner}));
    assert_eq!(owners, [of("u1"), of("u2")]);
    world.check();
}
