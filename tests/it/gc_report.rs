//! What a report tells of summaries and repeated messages (GC-28, GC-29).

use crate::world::World;
use oubliette::gc::{Extractive, GcOptions, GcRunOptions, GcRunReport, SuggestedFilter};
use oubliette::memory::AuthorKind;
use oubliette::{Draft, ErrorKind, Kind, MemoryId, Patch};
use serde_json::json;

fn message(world: &World, text: &str, ago: &str) -> MemoryId {
    // More words than the message says anything with, so that a summary can be shorter.
    let rest = match text.contains("Ann") {
        true => "That is how it was, and so it will be for all of us. Well, when would you do that?",
        false => {
            "Yes, she could get more of it, but they can also do so. About this there is only what he had."
        }
    };
    let draft = Draft::new(format!("{text} {rest}")).kind(Kind::Message).channel("home");
    world.add(draft.created_at(world.ago(ago))).id
}

fn compact(world: &World) -> GcRunReport {
    world.ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap()
}

/// A bot says the same, so many times a minute apart.
fn spam(world: &World, channel: &str, text: &str, times: usize) {
    for _ in 0..times {
        world.add(
            Draft::new(text)
                .kind(Kind::Message)
                .channel(channel)
                .author_kind(AuthorKind::Bot)
                .author_id("ci-bot")
                .created_at(world.now()),
        );
        world.advance("1m");
    }
}

#[test]
fn nothing_is_told_when_nothing_has_changed() {
    let world = World::new();
    let report = world.ns.gc_report(None).unwrap();
    assert!(!report.changed);
    assert_eq!(report.to_string(), format!("{} to {}: nothing has changed", world.ago("1h"), world.now()));
    message(&world, "Ann: The boiler broke.", "20d");
    assert!(!world.ns.gc_report(None).unwrap().changed, "a memory is no summary and no repetition");
    let ahead = world.ns.gc_report(Some(world.ahead("1s"))).unwrap_err();
    assert_eq!((ahead.kind(), ahead.to_string().contains("since")), (ErrorKind::Invalid, true));
}

#[test]
fn summaries_of_the_interval_are_told_once() {
    let world = World::new();
    let ids = [message(&world, "Ann: The boiler broke.", "20d"), message(&world, "Bob: Call Eve.", "20d")];
    compact(&world);
    let summary = world.live()[0];
    let report = world.ns.gc_report(None).unwrap();
    assert_eq!(report, world.ns.gc_report(None).unwrap(), "two reports of one interval are equal");
    assert_eq!((report.summaries_created, report.memories_deleted, report.budget.used), (1, 2, 2));
    let told = &report.compacted[0];
    assert_eq!((told.summary_id, &told.source_ids[..], told.source_count), (summary, &ids[..], 2));
    assert_eq!(
        (told.channel.as_deref(), told.topic.as_deref()),
        (Some("home"), world.row(summary).topic.as_deref())
    );
    assert!(report.to_string().contains(&format!("(2 memories in home): {summary}")), "{report}");
    // The next report begins after this one.
    world.advance("1ms");
    let next = world.ns.gc_report(Some(world.now())).unwrap();
    assert!(!next.changed && next.compacted.is_empty());
    // A summary that was taken back is told no more.
    let done = world.ns.gc_plans().unwrap().remove(0).groups.remove(0);
    world.ns.undo(done.run.unwrap()).unwrap();
    assert!(world.ns.gc_report(None).unwrap().compacted.is_empty());
}

#[test]
fn refusals_and_forgotten_sources_are_told() {
    let world = World::new();
    let ids = [message(&world, "Ann: The boiler broke.", "20d"), message(&world, "Bob: Call Eve.", "20d")];
    let plan = world.ns.gc_plan(&Default::default()).unwrap();
    for answer in ["{}", "[]"] {
        world.ns.gc_commit(plan.plan_id, "1", answer, None).unwrap_err();
    }
    world.ns.gc_abort(plan.plan_id, None, "again").unwrap();
    compact(&world);
    world.forget_id(ids[0]);
    let report = world.ns.gc_report(None).unwrap();
    assert_eq!(report.refusals.get("invalid_summary"), Some(&2));
    assert_eq!(json!(report.derived), json!([{ "summary_id": world.live()[0], "source_forgotten": 1 }]));
    let text = report.to_string();
    assert!(
        text.contains("Refused:\n  2 × invalid_summary") && text.contains("forgotten sources:"),
        "{text}"
    );
}

#[test]
fn families_signs_and_filters_are_those_of_the_interval() {
    let world = World::new();
    spam(&world, "old", "Disk is full on host seven", 3);
    world.advance("1d");
    let since = world.now();
    spam(&world, "ci", "Build failed on main", 6);
    spam(&world, "alerts", "Disk is full on host seven", 4);
    message(&world, "Ann: Nobody repeats me.", "0s");
    let report = world.ns.gc_report(Some(since)).unwrap();
    let families: Vec<_> =
        report.top_families.iter().map(|family| (family.channel.as_deref(), family.dup_count)).collect();
    assert_eq!(families, [(Some("ci"), 6), (Some("alerts"), 4)]);
    assert_eq!(report.top_families[0].classification, "unclassified");
    assert_eq!(report.new_patterns, ["Build failed on main"], "the other one was there before");
    let filter = |channel: &str, signal: &str, messages_per_day| SuggestedFilter {
        channel: Some(channel.to_owned()),
        signal: signal.to_owned(),
        messages_per_day,
        subscriptions: vec!["ci-bot".to_owned()],
    };
    let expected =
        [filter("ci", "Build failed on main", 6.0), filter("alerts", "Disk is full on host seven", 4.0)];
    assert_eq!(report.suggested_filters, expected);
    assert!(report.to_string().contains("Build failed on main in ci: 6 messages a day, from ci-bot"));
    // What a summary says of spam is a sign as well.
    world.advance("20d");
    compact(&world);
    let later = world.ns.gc_report(None).unwrap();
    assert!(
        later.new_patterns.is_empty() && later.summaries_created == 0,
        "a family in one aggregate is no group"
    );
}

#[test]
fn a_report_has_bounds() {
    let world = World::new();
    for number in 0..8_u32 {
        let channel = format!("c{number}");
        spam(
            &world,
            &channel,
            &format!("{} is down", ["oak", "elm", "ash", "fir", "yew", "box", "bay", "fig"][number as usize]),
            2,
        );
    }
    let report = world.ns.gc_report(None).unwrap();
    assert_eq!(
        (report.top_families.len(), report.new_patterns.len(), report.suggested_filters.len()),
        (5, 5, 5)
    );
    // Of equal families, the one that is older.
    assert_eq!(report.top_families[0].channel.as_deref(), Some("c0"));
}

#[test]
fn a_report_names_the_sources_that_a_summary_has() {
    let world = World::new();
    let ids = ["Ann: The boiler broke.", "Bob: Call Eve.", "Ann: The boiler works."]
        .map(|text| message(&world, text, "20d"));
    let plan = world.ns.gc_plan(&GcOptions::default()).unwrap();
    let answer = json!({
        "topic": "boiler",
        "time_range": { "start": 0, "end": 4_000_000_000_000_i64 },
        "summary": ["The boiler broke"],
        "source_ids": [ids[0].to_string()],
    });
    world.ns.gc_commit(plan.plan_id, "1", &answer.to_string(), Some(&ids[..1])).unwrap();
    let report = world.ns.gc_report(None).unwrap();
    assert_eq!(report.compacted[0].source_ids, ids[..1], "the others stayed");
    assert_eq!((report.compacted[0].source_count, report.memories_deleted), (1, 1));
}

/// Whoever made a summary, a report names the current memory that may tell of what was forgotten, at any time after (GC-42).
#[test]
fn a_summary_that_no_plan_made_is_listed_with_its_forgotten_sources() {
    let world = World::new();
    let source = world.add(Draft::new("Ann owes Bob 30 euros")).id;
    let mut draft = Draft::new("Who owes whom").kind(Kind::Summary).key("debts");
    draft.sources = Some(vec![source]);
    world.add(draft);
    let patch = Patch { text: Some("Who owes whom money".to_owned()), ..Patch::default() };
    world.ns.update("debts", patch).unwrap();
    let summary = world.row("debts").id;
    world.forget_id(source);
    world.advance("3d");
    let report = world.ns.gc_report(None).unwrap();
    let named: Vec<_> = report.derived.iter().map(|one| (one.summary_id, one.source_forgotten)).collect();
    assert_eq!((named, report.changed), (vec![(summary, 1)], false));
    let told = report.to_string();
    assert!(told.contains("nothing has changed\nSummaries with forgotten sources:\n"), "{told}");
}
