//! A summary whose source is forgotten later may still tell what the source said (GC-42).

use crate::backup::copy_of;
use crate::world::World;
use oubliette::gc::{Extractive, GcRunOptions};
use oubliette::maintain::RunId;
use oubliette::memory::{Got, TombstoneReason};
use oubliette::policy::Syntax;
use oubliette::{Draft, Kind, MemoryId};

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
