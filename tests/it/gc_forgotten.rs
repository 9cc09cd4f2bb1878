//! A summary whose source is forgotten later may still tell what the source said (GC-42).

use crate::backup::copy_of;
use crate::world::World;
use oubliette::gc::{Extractive, GcRunOptions};
use oubliette::maintain::RunId;
use oubliette::memory::{Got, TombstoneReason};
use oubliette::policy::Syntax;
use oubliette::{Draft, Forget, Kind, MemoryId, Scope, WriteOptions};

/// Four old messages with a summary in their place: their ids, the summary, and the run.
fn summarized(world: &World) -> ([MemoryId; 4], MemoryId, RunId) {
    let messages = ["The boiler broke.", "The plumber asks for 480 euros.", "Call Bob.", "The bill is paid."];
    let old = |text: &str| {
        // More words than the message says anything with, so that a summary can be shorter.
        let rest = match text.split(' ').next() {
            Some("The") if text.contains("480") => "Yes, she could get more of it, but they can also do so.",
            Some("Call") => "Who will be with him then? It would have been so, as they are.",
            _ => "That is how it was, and so it will be for all of us.",
        };
        let draft = Draft::new(format!("{text} {rest}")).kind(Kind::Message).channel("home");
        let draft = draft.created_at(world.ago("20d"));
        world.add(draft.key(format!("k:{text}")).tag(if text.contains("Bob") { "bob" } else { "house" })).id
    };
    let ids = messages.map(old);
    let done = world.ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap();
    let live = world.live();
    assert_eq!((done.sources, live.len()), (4, 1));
    (ids, live[0], done.runs[0])
}

#[test]
fn v_304_a_summary_counts_its_forgotten_sources() {
    let world = World::new();
    let (ids, summary, _) = summarized(&world);
    assert_eq!(world.row(summary).source_forgotten, 0);
    assert_eq!(world.forget_id(ids[0]).derived, [summary]);
    assert_eq!(world.row(summary).source_forgotten, 1);
    // By tag, and by keys; a summary is named once, however many of its sources go.
    assert_eq!(world.forget_tag("bob").derived, [summary]);
    let [second, last] = ["k:The plumber asks for 480 euros.", "k:The bill is paid."];
    assert_eq!(world.forget(&[second, last]).derived, [summary]);
    assert_eq!(world.row(summary).source_forgotten, 4);
    assert_eq!(world.ns.explain(summary.to_string()).unwrap().source_forgotten, 4);
    // What is not there can't be forgotten once more.
    world.forget(&[last]);
    assert_eq!(world.row(summary).source_forgotten, 4);
    world.check();
}

#[test]
fn what_goes_by_itself_is_not_forgotten() {
    let world = World::new();
    let (ids, summary, _) = summarized(&world);
    world.advance("30d");
    world.db.maintain().unwrap();
    let Got::Tombstone(stone) = world.get(ids[0]).unwrap() else { panic!("limbo is erased at its horizon") };
    assert!(stone.erased_at.is_some());
    assert_eq!(world.row(summary).source_forgotten, 0);
}

#[test]
fn a_summary_that_is_forgotten_too_is_not_told() {
    let world = World::new();
    let (ids, summary, _) = summarized(&world);
    let both = world.forget(&[&ids[0].to_string(), &summary.to_string()]);
    assert!(both.derived.is_empty());
    world.check();
}

#[test]
fn a_mark_is_part_of_an_export() {
    let world = World::new();
    let (ids, summary, _) = summarized(&world);
    world.forget_id(ids[1]);
    assert_eq!(copy_of(&world).row(summary).source_forgotten, 1);
}

#[test]
fn a_policy_may_retire_the_summary() {
    let world = World::new();
    world.db.set_policy("gc.on_source_forget = \"retire\"", Syntax::Toml).unwrap();
    let (ids, summary, run) = summarized(&world);
    world.forget_id(ids[1]);
    assert!(world.live().is_empty() && world.ns.search("plumber").unwrap().hits.is_empty());
    assert_eq!(world.row(summary).limbo.map(|limbo| limbo.reason), Some(TombstoneReason::Pruned));
    world.check();
    // The sources that are left come back, and can be summarized again.
    world.ns.undo(run).unwrap();
    assert_eq!(world.live(), [ids[0], ids[2], ids[3]]);
    assert!(world.unknown(summary) || !world.is_live(summary));
    world.check();
}

#[test]
fn a_source_is_forgotten_by_its_name_when_its_limbo_is_over() {
    let world = World::new();
    let (ids, summary, _) = summarized(&world);
    world.advance("30d");
    world.db.maintain().unwrap();
    // There is nothing left to forget, and the summary still tells it.
    let told = world.forget(&["k:The bill is paid."]);
    assert_eq!((told.missing(), told.forgotten, told.derived), (1, 0, vec![summary]));
    assert_eq!(world.row(summary).source_forgotten, 1);
    let stone = world.tombstone(ids[3]);
    assert_eq!((stone.reason, stone.forgotten_at), (TombstoneReason::Summarized, Some(world.now())));
    assert_eq!(copy_of(&world).tombstone(ids[3]), stone);
    assert_eq!(world.forget_id(ids[0]).derived, [summary]);
    // Whoever asks again is told nothing new, by whatever name.
    assert!(world.forget(&["k:The bill is paid.", &ids[3].to_string()]).derived.is_empty());
    assert_eq!(world.row(summary).source_forgotten, 2);
    assert_eq!(world.tombstone(ids[1]).forgotten_at, None);
    world.check();
    world.db.set_policy("gc.on_source_forget = \"retire\"", Syntax::Toml).unwrap();
    assert_eq!(world.forget_id(ids[1]).derived, [summary]);
    assert!(world.live().is_empty());
    world.check();
}

#[test]
fn a_memory_that_is_forgotten_in_limbo_says_so() {
    let world = World::new();
    let (ids, ..) = summarized(&world);
    world.forget_id(ids[0]);
    let stone = world.tombstone(ids[0]);
    assert_eq!((stone.erased_at, stone.forgotten_at), (Some(world.now()), Some(world.now())));
    world.advance("30d");
    world.db.maintain().unwrap();
    assert_eq!(world.tombstone(ids[1]).forgotten_at, None, "nobody asked");
}

#[test]
fn an_import_that_is_taken_back_forgets_nothing() {
    let world = World::new();
    let run = world.ns.start_import().unwrap();
    let old = |text: &str| {
        let text = format!("{text} That is how it was, and so it will be for all of us, as they say.");
        Draft::new(text).kind(Kind::Message).channel("home").created_at(world.ago("20d"))
    };
    let drafts = ["The boiler broke.", "The plumber asks for 480 euros."].map(old).to_vec();
    let how = WriteOptions { run: Some(run), ..WriteOptions::default() };
    let ids: Vec<_> = world.ns.add_all(drafts, &how).unwrap().into_iter().map(|done| done.id).collect();
    world.ns.finish_import(run).unwrap();
    assert_eq!(world.ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap().sources, 2);
    let [summary] = world.live()[..] else { panic!("one summary") };
    assert_eq!(world.ns.undo(run).unwrap().summaries, [summary]);
    let stone = world.tombstone(ids[0]);
    assert_eq!((stone.erased_at, stone.forgotten_at), (Some(world.now()), None));
    world.check();
}

#[test]
fn a_retired_summary_comes_back_with_its_mark() {
    let world = World::new();
    world.db.set_policy("gc.on_source_forget = \"retire\"", Syntax::Toml).unwrap();
    let (ids, summary, _) = summarized(&world);
    world.forget_id(ids[1]);
    world.ns.restore(summary).unwrap();
    assert_eq!((world.live(), world.row(summary).source_forgotten), (vec![summary], 1));
    world.check();
}

/// Two summaries, of messages of two days, and a summary of both: the ids of the messages, the three summaries, and the last run.
fn summarized_twice(world: &World) -> (Vec<MemoryId>, Vec<MemoryId>, MemoryId, RunId) {
    let nested = "gc.allow_nested = true\ngc.kinds = [\"message\", \"summary\"]";
    world.db.set_policy(nested, Syntax::Toml).unwrap();
    let mut messages = Vec::new();
    for (day, said) in [("22d", "The boiler broke"), ("20d", "The plumber asks for 480 euros")] {
        for rest in [
            "and so it will be for all of us",
            "as they say who were there with him",
            "or so we were told by her",
        ] {
            let text = format!("{said} {rest}, because that is how it was then.");
            let draft = Draft::new(text).kind(Kind::Message).channel("home").created_at(world.ago(day));
            messages.push(world.add(draft).id);
        }
    }
    let run = || world.ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap();
    assert_eq!(run().sources, 6);
    let first = world.live();
    assert_eq!(first.len(), 2);
    world.advance("20d");
    let again = run();
    let live = world.live();
    assert_eq!((again.sources, live.len()), (2, 1));
    (messages, first, live[0], again.runs[0])
}

#[test]
fn what_a_summary_of_summaries_tells_is_marked_too() {
    let world = World::new();
    let (messages, first, last, run) = summarized_twice(&world);
    let told = world.forget_id(messages[0]);
    assert_eq!(told.derived.len(), 2, "the summary that waits in limbo, and the one of it");
    assert!(told.derived.contains(&last));
    assert_eq!(world.row(last).source_forgotten, 1);
    world.check();
    world.ns.undo(run).unwrap();
    let marks = first.iter().map(|summary| world.row(*summary).source_forgotten);
    assert_eq!(marks.sum::<u64>(), 1);
    world.check();

    let world = World::new();
    let (messages, _, last, _) = summarized_twice(&world);
    world.advance("30d");
    world.db.maintain().unwrap();
    assert_eq!(world.forget_id(messages[5]).derived, [last], "through tombstones alone");
    world.check();
}

#[test]
fn a_source_of_two_writers_is_forgotten_with_the_last_of_them() {
    let world = World::new();
    let old = |text: &str, key: &str| {
        let text = format!("{text} That is how it was, and so it will be for all of us, as they say.");
        let draft = Draft::new(text).kind(Kind::Message).channel("home");
        world.add(draft.created_at(world.ago("20d")).key(key)).id
    };
    let shared = old("The boiler broke.", "m");
    assert_eq!(old("The boiler broke.", "n"), shared);
    old("The plumber asks for 480 euros.", "o");
    world.ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap();
    let [summary] = world.live()[..] else { panic!("one summary") };
    world.advance("30d");
    world.db.maintain().unwrap();
    // The text is the other writer's as well.
    assert!(world.forget(&["n"]).derived.is_empty());
    assert!(world.forget(&["n"]).derived.is_empty(), "asked once more");
    assert_eq!((world.row(summary).source_forgotten, world.tombstone(shared).forgotten_at), (0, None));
    world.check();
    assert_eq!(world.forget(&["m"]).derived, [summary]);
    assert_eq!(world.row(summary).source_forgotten, 1);
    world.check();
}

#[test]
fn names_lead_no_further_than_the_part_of_an_agent() {
    let world = World::new();
    let shared = world.add(Draft::new("Ann lives in Ghent").key("home")).id;
    let own = world.add(Draft::new("Bob lives in Bruges").key("bob").agent("a")).id;
    let within = |names: &[&str], agent: &str| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let scope = Scope::agent(agent).unwrap();
        let (keep_history, also_merged, with_history) = (false, true, false);
        world.ns.forget(Forget::Names { names, scope, keep_history, also_merged, with_history }).unwrap()
    };
    for (agent, names) in
        [("a", vec!["home".to_owned(), shared.to_string()]), ("b", vec!["bob".to_owned(), own.to_string()])]
    {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!((within(&names, agent).missing(), within(&names, agent).forgotten), (2, 0), "{agent}");
    }
    assert_eq!(within(&["bob"], "a").forgotten, 1);
    assert_eq!(world.forget(&["home"]).forgotten, 1);

    // What was made of a memory that is gone lies where the memory lay.
    let (ids, summary, _) = summarized(&world);
    world.advance("30d");
    world.db.maintain().unwrap();
    let taken = Draft::new("Another bill").key("k:The bill is paid.").agent("a");
    world.add(taken);
    let done = within(&["k:The bill is paid.", &ids[0].to_string()], "a");
    assert_eq!((done.forgotten, done.missing(), done.derived), (1, 1, vec![]));
    assert_eq!(world.row(summary).source_forgotten, 0);
    assert_eq!(world.forget(&["k:The bill is paid."]).derived, [summary]);
    world.check();
}
