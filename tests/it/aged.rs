//! What goes for its age: texts of messages, their events, tombstones (MODEL-26, MODEL-52, LIFE-55).
//!
//! `PROPTEST_CASES=2000 cargo test --test it aged::` for longer.

use std::io::Cursor;

use crate::world::{World, random, text};
use oubliette::embed::Embed;
use oubliette::exchange::{Export, Kept, ParsedLine, VectorsTo, parse_line};
use oubliette::maintain::{MaintainOptions, Pass, PassReport, RetentionReport};
use oubliette::memory::{Aggregate, AuthorKind, Event, EventDecision, EventQuery, Expiry, SupersedeMode};
use oubliette::policy::Syntax;
use oubliette::report::Forgotten;
use oubliette::{Decision, Draft, Filter, Forget, Kind, MemoryId, Query, Scope, State};
use proptest::prelude::*;

fn with(policy: &str) -> World {
    let world = World::new();
    world.db.set_policy(policy, Syntax::Toml).unwrap();
    world
}

fn message(author: AuthorKind, said: &str) -> Draft {
    let mut draft = text(said).kind(Kind::Message);
    draft.fields.author_kind = Some(author).into();
    draft.fields.author_id = Some("ann".to_owned()).into();
    draft.fields.channel = Some("c1".to_owned()).into();
    draft
}

fn bot(said: &str) -> Draft {
    message(AuthorKind::Bot, said)
}

fn human(said: &str) -> Draft {
    message(AuthorKind::Human, said)
}

/// What a run of the pass came to, and what it removed by sort. Nothing is wrong afterwards.
fn retention(world: &World) -> (PassReport, RetentionReport) {
    let mut report = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Retention])).unwrap();
    let report = report.passes.remove(0);
    world.check();
    let sorts = report.report.get::<RetentionReport>().cloned().unwrap_or_default();
    assert_eq!(
        report.changed,
        sorts.journal + sorts.plans + sorts.payloads + sorts.events + sorts.tombstones
    );
    (report, sorts)
}

/// What the journal tells of it, a row a slice.
fn journaled(world: &World) -> Vec<String> {
    let page = world.ns.changes(0, 1_000).unwrap();
    page.changes
        .into_iter()
        .filter(|change| change.op.as_str() == "purge")
        .flat_map(|change| change.fields)
        .collect()
}

fn payloads(count: u64) -> RetentionReport {
    RetentionReport { payloads: count, ..RetentionReport::default() }
}

fn gone(count: u64) -> RetentionReport {
    RetentionReport { events: count, ..RetentionReport::default() }
}

fn events(world: &World) -> Vec<Event> {
    world.ns.events(&EventQuery::default()).unwrap().items
}

fn aggregates(world: &World) -> Vec<Aggregate> {
    world.ns.aggregates(None, 100).unwrap().items
}

/// The journal of a test stays, so that only what the test is about goes.
const JOURNAL: &str = "journal.max_age = \"4000d\"\n";

/// The rows of an export of all states.
fn lines_of(world: &World) -> Vec<Kept> {
    let export = Export { namespaces: vec![world.ns.name().clone()], all_states: true };
    let mut out = Vec::new();
    let lines = VectorsTo::<Cursor<Vec<u8>>>::Lines;
    export.write(&world.db.snapshot().unwrap(), &mut out, "out", lines).unwrap();
    let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let row = |line| match parse_line(line, false).unwrap() {
        ParsedLine::Memory(memory) => Kept::Memory(memory),
        ParsedLine::Kept(line) => line.row,
        ParsedLine::Draft(draft) => panic!("{draft:?}"),
    };
    lines.map(row).collect()
}

/// A store with the rows of another, by an export of all states.
fn copied(world: &World, policy: &str) -> World {
    let other = with(policy);
    other.set(world.now().as_millis());
    other.ns.recreate(lines_of(world)).unwrap();
    other.check();
    other
}

// MODEL-26: the text goes first, and hashes stay.
#[test]
fn the_text_of_a_message_goes_before_its_event() {
    let world = with(JOURNAL);
    let said = |second: u32| format!("Backup  of db7 done 12:34:{second:02}");
    let mut first = bot(&said(0));
    first.fields.embeds = Some(vec![Embed { url: "https://x.y/z".to_owned(), title: None }]);
    let first = world.add(first);
    for second in 10..16 {
        let mut again = bot(&said(second));
        again.fields.embeds = Some(vec![Embed { url: "https://x.y/z".to_owned(), title: None }]);
        assert!(matches!(world.add(again).decision, Decision::Aggregated { .. }));
    }
    let spoken = world.add(human("the harbour closes early"));
    world.advance("30d");
    assert_eq!(
        retention(&world).1,
        RetentionReport::default(),
        "an event of exactly that age keeps its text"
    );
    let before = (events(&world), aggregates(&world));
    world.advance("1s");
    world.add(human("the harbour opens again"));
    assert_eq!(retention(&world).1, payloads(8));
    assert_eq!(retention(&world).1, RetentionReport::default());
    assert_eq!(journaled(&world), ["payloads"]);
    let after = events(&world);
    assert_eq!(after.len(), 9);
    assert!(after[8].payload.is_some(), "{:?}", after[8]);
    for (was, is) in before.0.iter().zip(&after) {
        let expected = Event { payload: None, normalized: None, embed_sig: None, ..was.clone() };
        assert_eq!((is, is.dup_key.is_some()), (&expected, true));
    }
    assert_eq!(aggregates(&world), before.1, "its numbers and its beginnings are the aggregate's own");
    // A page of the listing goes on in the order of time, whatever has lost its text.
    let mut paged = Vec::new();
    let mut query = EventQuery { limit: 2, ..EventQuery::default() };
    loop {
        let page = world.ns.events(&query).unwrap();
        paged.extend(page.items);
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    assert_eq!(paged, after);
    // Memories say what they said, and what a repeat alone said is nowhere in the file.
    assert_eq!(world.row(spoken.id).text, "the harbour closes early");
    assert!(!world.has_bytes_of(&said(15)));
    assert!(world.has_bytes_of("the harbour closes early"));
    let other = copied(&world, JOURNAL);
    assert_eq!((events(&other), aggregates(&other)), (after, before.1));
    assert_eq!(other.row(first.id).state, State::Superseded);
    other.forget_id(aggregates(&other)[0].memory_id.unwrap());
    other.check();
}

/// A text that is gone makes no near repeat, and an exact one is recognised by its hash.
#[test]
fn repeats_are_recognised_by_their_hash_alone() {
    let policy = format!(
        "{JOURNAL}events.payload_ttl = \"1d\"\nundo.horizon = \"1h\"\nagg.slice = \"300d\"\n\
         msg.exact_window = \"300d\"\nsim.window = \"300d\""
    );
    let world = with(&policy);
    let first = world.add(bot("Build 123 failed on main"));
    let heard = world.add(human("the harbour closes early"));
    let joins =
        |world: &World, said: &str| matches!(world.add(bot(said)).decision, Decision::Aggregated { .. });
    assert!(joins(&world, "Build 456 failed on main"), "a near repeat");
    world.advance("2d");
    assert_eq!(retention(&world).1, payloads(3));
    assert!(!joins(&world, "Build 789 failed on main"));
    world.check();
    assert!(joins(&world, "Build 123 failed on main"), "{first:?}");
    let again = world.add(human("the harbour closes early"));
    assert_eq!((again.id, again.decision), (heard.id, Decision::Reinforced));
    world.check();
}

// MODEL-52: the event goes, and the aggregate counts on.
#[test]
fn an_event_goes_after_its_time_and_stays_counted() {
    let policy = format!("{JOURNAL}agg.slice = \"4000d\"\nmsg.exact_window = \"4000d\"");
    let world = with(&policy);
    let alone = world.add(human("the harbour closes early"));
    world.add(bot("cron finished"));
    for _ in 0..3 {
        world.add(bot("cron finished"));
    }
    world.add(bot("disk checked"));
    let short = world.add(bot("disk checked"));
    world.advance("300d");
    let latest = world.add(bot("cron finished"));
    let memory = latest.id;
    world.advance("65d");
    assert_eq!(retention(&world).1, payloads(8 - 1 + 1));
    assert_eq!(events(&world).len(), 8);
    world.advance("1d");
    // All but the first of a family that goes on and its latest; the one of two that are past goes with its aggregate.
    assert_eq!(retention(&world).1, gone(6));
    let left = events(&world);
    assert_eq!(left.len(), 2);
    let all = aggregates(&world);
    assert_eq!(all.len(), 1, "{all:#?}");
    assert_eq!((all[0].dup_count, all[0].events_ended), (5, 3));
    assert_eq!((all[0].first_event_id, all[0].last_event_id), (left[0].id, left[1].id));
    assert_eq!(all[0].example_event_ids, [left[0].id, left[1].id]);
    // What the memories say stays.
    assert_eq!(world.row(alone.id).text, "the harbour closes early");
    assert_eq!(world.row(short.id).metadata["dup_count"], 2);
    assert_eq!(world.row(memory).metadata["dup_count"], 5);
    let other = copied(&world, &policy);
    assert_eq!((events(&other), aggregates(&other)), (left, all));
    for world in [&world, &other] {
        let more = world.add(bot("cron finished"));
        assert_eq!((more.id, world.row(memory).metadata["dup_count"].as_u64()), (memory, Some(6)));
        let anew = world.add(bot("disk checked"));
        assert_eq!(anew.decision, Decision::Stored, "its family has ended");
        world.check();
        world.advance("400d");
        assert_eq!(retention(world).1.events, 4);
        assert!(events(world).is_empty() && aggregates(world).is_empty());
        // What is forgotten later has no message left to tell of it.
        world.forget_id(memory);
        world.db.reindex().unwrap();
        world.check();
    }
}

/// What an import brought can be taken back as long as the horizon of undo lasts, however old it is, and the rest of it later.
#[test]
fn an_import_of_old_messages_can_be_taken_back() {
    let world = with(JOURNAL);
    let old = world.ago("400d");
    let own = world.add(bot("cron finished").created_at(old));
    let run = world.start_import();
    let drafts = (0..3).map(|_| bot("cron finished").created_at(old)).chain([human("hello").created_at(old)]);
    world.import(run, drafts.collect());
    let (_, sorts) = retention(&world);
    assert_eq!((sorts.payloads, sorts.events), (1, 1), "only what came by itself");
    assert!(events(&world).iter().all(|event| event.payload.is_some()) && events(&world).len() == 4);
    assert_eq!((aggregates(&world)[0].dup_count, aggregates(&world)[0].events_ended), (4, 1));
    copied(&world, JOURNAL);
    world.ns.undo(run).unwrap();
    world.check();
    assert_eq!((events(&world).len(), aggregates(&world).len()), (0, 0));
    assert_eq!(world.live(), [own.id]);

    let run = world.start_import();
    let drafts = (0..3).map(|_| bot("disk checked").created_at(old)).chain([bot("disk checked")]);
    let done = world.import(run, drafts.collect());
    world.advance("8d");
    assert_eq!(retention(&world).1.events, 3, "{:#?}", events(&world));
    assert_eq!(world.row(done[3].id).text, "disk checked");
    world.ns.undo(run).unwrap();
    world.check();
    assert!(events(&world).is_empty());
}

/// An aggregate goes with the last of its events, also where an undo takes that; its memory goes on counting the others.
#[test]
fn an_aggregate_without_an_event_left_goes() {
    let world = with(JOURNAL);
    let said = || bot("cron finished").created_at(world.ago("400d"));
    let memory = [0, 1, 2].map(|_| world.add(said()).id)[2];
    let run = world.start_import();
    world.import(run, vec![said()]);
    assert_eq!(retention(&world).1.events, 3);
    assert_eq!((aggregates(&world)[0].dup_count, aggregates(&world)[0].events_ended), (4, 3));
    world.ns.undo(run).unwrap();
    world.check();
    assert_eq!((events(&world).len(), aggregates(&world).len()), (0, 0));
    assert_eq!(
        (world.live(), &world.row(memory).metadata["dup_count"]),
        (vec![memory], &serde_json::json!(3))
    );
}

/// MODEL-30, LIFE-56: what stood for messages still does when they and their numbers have ended.
#[test]
fn forgetting_reaches_the_first_message_of_an_ended_aggregate() {
    let ended = |until: Option<Expiry>| {
        let world = with(&format!("{JOURNAL}undo.horizon = \"1h\"\nevents.metadata_ttl = \"20d\""));
        let run = world.start_import();
        let said = || bot("the secret word is heliotrope");
        let first = world.import(run, vec![said().tag("x")])[0].id;
        let all = [0, 1, 2].map(|_| world.add(said()).id)[2];
        if let Some(until) = until {
            world.ns.update(all, oubliette::Patch { expiry: Some(until), ..Default::default() }).unwrap();
        }
        world.advance("21d");
        assert_eq!(retention(&world).1.events, 4);
        assert!(aggregates(&world).is_empty() && world.is_live(all));
        (world, run, first, all)
    };
    let key = |world: &World, id| world.row(id).keys[0].clone();
    let ways: [fn(&World, MemoryId, String) -> Forgotten; 3] = [
        |world, id, _| world.forget_id(id),
        |world, _, key| world.forget(&[&key]),
        |world, _, _| {
            let filter = Filter::parse(r#"{"kind": "aggregate"}"#).unwrap();
            world.ns.forget(Forget::filter(filter, Scope::Any)).unwrap()
        },
    ];
    for way in ways {
        let (world, _, first, all) = ended(None);
        let done = way(&world, all, key(&world, all));
        world.check();
        assert_eq!(done.tombstones.len(), 2, "{done:?}");
        assert_eq!((world.tombstone(first).id, world.tombstone(all).id), (first, all));
        assert!(!world.has_bytes_of("heliotrope"));
    }
    // Of the first alone the other one is told; it still says the same.
    for by_tag in [false, true] {
        let (world, _, first, all) = ended(None);
        let done = if by_tag { world.forget_tag("x") } else { world.forget_id(first) };
        world.check();
        assert_eq!(done.derived, [all], "{done:?}");
    }
    let (world, run, first, all) = ended(None);
    let undone = world.ns.undo(run).unwrap();
    world.check();
    assert_eq!((undone.removed, undone.lost.len()), (1, 1), "{undone:?}");
    assert!(undone.lost[0].starts_with(&all.to_string()) && world.is_live(all) && !world.is_live(first));
    // The end that a caller sets is that of all that the memory stands for.
    let (world, _, first, all) = ended(Some(Expiry::After("30d".parse().unwrap())));
    world.advance("20d");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Expire])).unwrap();
    world.check();
    assert_eq!((world.tombstone(first).id, world.tombstone(all).id), (first, all));
    assert!(!world.has_bytes_of("heliotrope"));
}

/// What has ended since does not come back with an older export, and is no error in it.
#[test]
fn an_older_export_brings_no_ended_message_back() {
    let policy =
        format!("{JOURNAL}undo.horizon = \"1h\"\nevents.metadata_ttl = \"20d\"\nagg.slice = \"300d\"");
    let world = with(&policy);
    for _ in 0..5 {
        world.add(bot("cron finished"));
    }
    world.advance("15d");
    world.add(bot("cron finished"));
    let older = lines_of(&world);
    world.advance("10d");
    assert_eq!(retention(&world).1.events, 4);
    let before = (events(&world), aggregates(&world));
    assert_eq!((before.0.len(), before.1[0].dup_count, before.1[0].events_ended), (2, 6, 4));
    world.ns.recreate(older).unwrap();
    world.check();
    assert_eq!((events(&world), aggregates(&world)), before);
    // Where nothing of it is there, an export with ended messages brings what it has, in any order of its lines.
    copied(&world, &policy);
}

/// A slice of a family may have ended while its memory stands. A late message of that time begins another family.
#[test]
fn a_late_message_of_an_ended_slice_takes_no_key() {
    let policy = "undo.horizon = \"1h\"\nevents.metadata_ttl = \"9d\"\nagg.slice = \"10d\"";
    let world = with(&format!("{JOURNAL}{policy}"));
    world.add(bot("cron finished"));
    let memory = world.add(bot("cron finished")).id;
    world.advance("12d");
    world.add(bot("cron finished"));
    assert_eq!(retention(&world).1.events, 2);
    for _ in 0..2 {
        world.add(bot("cron finished").created_at(world.ago("12d")));
        world.check();
    }
    assert!(world.is_live(memory));
    copied(&world, JOURNAL);
}

/// The memory of the first message may have gone before its family does.
#[test]
fn a_family_keeps_the_tombstone_of_its_first_memory() {
    let policy = "tombstone.retention = \"5d\"\nsweeper.tombstone_ttl = \"4d\"\nundo.horizon = \"2d\"\n\
        agg.slice = \"100d\"\n";
    let world = with(&format!("{JOURNAL}{policy}"));
    let first = world.add(bot("cron finished")).id;
    world.add(bot("cron finished"));
    for (days, passes) in [("5d", [Pass::Superseded, Pass::Limbo]), ("3d", [Pass::Limbo, Pass::Retention])] {
        world.advance(days);
        world.db.maintain_with(&MaintainOptions::live().passes(passes)).unwrap();
        world.check();
    }
    world.advance("3d");
    assert_eq!(retention(&world).1.tombstones, 0);
    assert_eq!(world.tombstone(first).id, first);
    copied(&world, JOURNAL);
}

#[test]
fn a_number_of_events_is_kept() {
    let world = with(&format!("{JOURNAL}events.max_rows = 4\nundo.horizon = \"1s\""));
    for number in 0..10 {
        world.add(human(&format!("the harbour master called {number} times")));
    }
    assert_eq!(retention(&world).1, RetentionReport::default(), "they are younger than the undo horizon");
    world.advance("2s");
    // All ten are of one instant, and the ids decide.
    let latest = events(&world).split_off(6);
    assert_eq!(retention(&world).1, gone(6));
    assert_eq!(events(&world), latest);
    let dry = MaintainOptions::default().passes([Pass::Retention]);
    assert_eq!(world.db.maintain_with(&dry).unwrap().passes[0].planned, 0);
    world.add(human("the pilot boat left"));
    world.advance("2s");
    assert_eq!(world.db.maintain_with(&dry).unwrap().passes[0].planned, 1);
    assert_eq!((retention(&world).1, events(&world).len()), (gone(1), 4));
    assert_eq!(world.live().len(), 11, "memories stay");
}

// MODEL-52: what nothing names goes.
#[test]
fn a_tombstone_goes_unless_something_names_it() {
    let world = with(&format!("{JOURNAL}tombstone.retention = \"1d\"\nundo.horizon = \"10d\""));
    let [alone, source, newer, old] = ["one", "two", "three", "four"].map(|name| world.add(text(name)).id);
    let mut summary = text("a summary");
    summary.sources = Some(vec![source]);
    let summary = world.add(summary).id;
    world.supersede(old, newer, SupersedeMode::Correction, None).unwrap();
    let spoken = world.add(human("the harbour closes early")).id;
    let repeated = [0, 1].map(|_| world.add(bot("cron finished")).id)[1];
    for id in [alone, source, newer, spoken, repeated] {
        world.forget_id(id);
    }
    world.check();
    world.advance("10d");
    assert_eq!(retention(&world).1, RetentionReport::default(), "the undo horizon comes first");
    world.advance("1s");
    assert_eq!(retention(&world).1, RetentionReport { tombstones: 1, ..Default::default() });
    assert!(world.unknown(alone));
    for id in [source, newer, spoken, repeated] {
        assert_eq!(world.tombstone(id).id, id);
    }
    assert_eq!(retention(&world).1, RetentionReport::default());
    copied(&world, JOURNAL);
    world.db.reindex().unwrap();
    world.check();
    // What named them goes, and they follow.
    world.forget_id(summary);
    world.forget_id(old);
    world.advance("11d");
    assert_eq!(retention(&world).1.tombstones, 4, "source and summary, newer and old");
    let stats = world.ns.stats().unwrap();
    assert_eq!(stats.memories.tombstoned, 3, "{stats:#?}");
    world.advance("400d");
    assert_eq!(retention(&world).1, gone(3));
    assert_eq!(retention(&world).1.tombstones, 3, "the messages named them");
    assert_eq!(world.ns.stats().unwrap().memories.tombstoned, 0);
    assert!(world.ns.tombstones(None, 10).unwrap().items.is_empty());
}

// LIFE-55.
#[test]
fn a_copy_carries_over_nothing_that_is_too_old() {
    let world = with("tombstone.retention = \"10d\"");
    let gone = world.add(text("a secret")).id;
    world.forget_id(gone);
    world.add(bot("Backup of db7 done 12:34:56"));
    world.advance("366d");
    let report = world.db.compact().unwrap();
    let RetentionReport { journal, payloads, events, tombstones, plans } = report.retention;
    assert!(journal > 0 && report.whole, "{report:?}");
    assert_eq!((payloads, events, tombstones, plans), (1, 1, 1, 0));
    world.check();
    assert_eq!(world.db.compact().unwrap().retention, RetentionReport::default());
    let query = Query::text("backup of db7");
    assert_eq!(world.ns.search(&query).unwrap().hits.len(), 1);
}

/// What can happen to messages.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// A message of a person or a program, with one of a few texts, so many days ago.
    Say {
        is_bot: bool,
        text: u8,
        days: u8,
    },
    /// An import of as many.
    Import {
        text: u8,
        days: u8,
    },
    Undo(u8),
    Forget(u8),
    Supersede(u8, u8),
    Advance(u8),
    Retention(Option<u64>),
    Limbo,
    Compact,
    Reindex,
}

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (any::<bool>(), 0..5_u8, 0..12_u8).prop_map(|(is_bot, text, days)| Op::Say { is_bot, text, days }),
        2 => (0..5_u8, 0..12_u8).prop_map(|(text, days)| Op::Import { text, days }),
        1 => any::<u8>().prop_map(Op::Undo),
        2 => any::<u8>().prop_map(Op::Forget),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(old, new)| Op::Supersede(old, new)),
        3 => (1..8_u8).prop_map(Op::Advance),
        4 => prop_oneof![Just(None), (1..6_u64).prop_map(Some)].prop_map(Op::Retention),
        1 => Just(Op::Limbo),
        1 => Just(Op::Compact),
        1 => Just(Op::Reindex),
    ]
}

/// One of some ids, if there are any.
fn one<T: Copy>(all: &[T], at: u8) -> Option<T> {
    all.get(usize::from(at) % all.len().max(1)).copied()
}

fn carry_out(world: &World, runs: &mut Vec<oubliette::maintain::RunId>, op: Op) {
    let said = |is_bot: bool, text: u8, days: u8| {
        let author = if is_bot { AuthorKind::Bot } else { AuthorKind::Human };
        let text = [
            "cron finished",
            "Build 123 failed on main",
            "Build 456 failed on main",
            "hello",
            "disk checked",
        ][usize::from(text)];
        message(author, text).created_at(world.ago(&format!("{days}d")))
    };
    match op {
        Op::Say { is_bot, text, days } => drop(world.add(said(is_bot, text, days))),
        Op::Import { text, days } => {
            runs.push(world.start_import());
            let drafts = (0..3).map(|at| said(at != 1, text, days)).collect();
            world.import(*runs.last().unwrap(), drafts);
        }
        Op::Undo(at) => {
            if let Some(run) = one(runs, at) {
                // A run of which an undo has begun or ended can't be taken back again.
                let _ = world.ns.undo(run);
            }
        }
        Op::Forget(at) => {
            if let Some(id) = one(&world.live(), at) {
                world.forget_id(id);
            }
        }
        Op::Supersede(old, new) => {
            let live = world.live();
            if let (Some(old), Some(new)) = (one(&live, old), one(&live, new))
                && old != new
            {
                world.supersede(old, new, SupersedeMode::Correction, None).unwrap();
            }
        }
        Op::Advance(days) => world.advance(&format!("{days}d")),
        Op::Retention(max_rows) => {
            let options = MaintainOptions { max_rows, ..MaintainOptions::live() };
            world.db.maintain_with(&options.passes([Pass::Retention])).unwrap();
        }
        Op::Limbo => {
            world.db.maintain_with(&MaintainOptions::live().passes([Pass::Superseded, Pass::Limbo])).unwrap();
        }
        Op::Compact => assert!(world.db.compact().unwrap().whole),
        Op::Reindex => assert_eq!(world.db.reindex().unwrap(), 0),
    }
}

/// The ages of a random story: small, so that everything goes.
const AGES: &str = "undo.horizon = \"2d\"\nevents.payload_ttl = \"3d\"\nevents.metadata_ttl = \"9d\"\n\
    tombstone.retention = \"5d\"\nagg.slice = \"15d\"\nmsg.exact_window = \"15d\"\nsim.window = \"15d\"\n\
    sweeper.tombstone_ttl = \"4d\"\njournal.max_age = \"6d\"\n";

proptest! {
    #![proptest_config(random(16, 400))]

    /// Whatever messages go through, nothing is wrong with the file; the pass leaves nothing that is too old, and changes no memory.
    #[test]
    fn messages_grow_old_in_any_order(
        max_rows in prop_oneof![Just(0_u64), 1..12_u64],
        ops in prop::collection::vec(ops(), 1..50),
    ) {
        let policy = format!("{AGES}events.max_rows = {max_rows}");
        let world = with(&policy);
        let mut runs = Vec::new();
        for op in ops {
            carry_out(&world, &mut runs, op);
            world.check();
        }
        let before = world.live().into_iter().map(|id| world.row(id)).collect::<Vec<_>>();
        retention(&world);
        prop_assert_eq!(world.live().into_iter().map(|id| world.row(id)).collect::<Vec<_>>(), before);
        let [undoable, old, over] = ["2d", "3d", "9d"].map(|age| world.ago(age));
        for event in events(&world) {
            let is_young = event.run.is_some_and(|run| world.ns.run(run).unwrap().unwrap().started_at >= undoable);
            prop_assert!(is_young || event.ts >= old || event.payload.is_none(), "{event:?}");
            // The first of a family that goes on may be older.
            let stays = is_young || event.ts >= over || event.decision == EventDecision::Stored;
            prop_assert!(stays, "{event:?}");
        }
        for aggregate in aggregates(&world) {
            let members = world.ns.events(&EventQuery::of_aggregate(aggregate.id)).unwrap().items;
            prop_assert_eq!(aggregate.dup_count, members.len() as u64 + aggregate.events_ended);
            prop_assert!(!members.is_empty());
        }
        copied(&world, &policy);
    }
}
