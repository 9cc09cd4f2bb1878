//! Summaries that are taken back: nothing is left of them, and nothing is lost with them (GC-39, MODEL-33).

use crate::world::{World, axis, text};
use oubliette::exchange::{Export, Import, LineReader, VectorsTo};
use oubliette::gc::{Extractive, GcRunOptions};
use oubliette::maintain::{MaintainOptions, Pass, RunId};
use oubliette::policy::Syntax;
use oubliette::{Draft, Kind, MemoryId, Query, WriteOptions};

fn messages(world: &World, ago: &str, said: &str) -> [MemoryId; 3] {
    let rests = [
        "and so it will be for all of us",
        "as they say who were there with him",
        "or so we were told by her",
    ];
    rests.map(|rest| {
        let text = format!("{said} {rest}, because that is how it was then.");
        world.add(Draft::new(text).kind(Kind::Message).channel("home").created_at(world.ago(ago))).id
    })
}

/// Summarizes all that may be summarized, and gives the runs.
fn summarize(world: &World) -> Vec<RunId> {
    world.ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap().runs
}

/// Runs are taken back in the order of time: a summary whose own run is taken back does not come back with a later run.
#[test]
fn nested_summaries_leave_nothing_in_whatever_order_they_are_taken_back() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]] {
        let world = World::new();
        let policy = "undo.horizon = \"90d\"
gc.allow_nested = true
gc.kinds = [\"message\", \"summary\"]";
        world.db.set_policy(policy, Syntax::Toml).unwrap();
        let mut sources = messages(&world, "22d", "The boiler broke").to_vec();
        sources.extend(messages(&world, "20d", "The plumber asks for 480 euros"));
        let mut runs = summarize(&world);
        world.advance("20d");
        runs.extend(summarize(&world));
        assert_eq!((runs.len(), world.live().len()), (3, 1));
        for at in order {
            world.ns.undo(runs[at]).unwrap();
        }
        let mut live = world.live();
        live.sort_unstable();
        sources.sort_unstable();
        assert_eq!(live, sources, "{order:?}");
        world.check();
    }
}

/// A summary stays where its sources can't come back, because it is all that is left of them. Forgotten sources were meant to go.
#[test]
fn a_summary_stays_whose_sources_cannot_come_back() {
    for forgotten in [false, true] {
        let world = World::new();
        let sources = messages(&world, "22d", "The boiler broke");
        let run = summarize(&world)[0];
        let summary = world.live()[0];
        world.advance("2d");
        if forgotten {
            sources.iter().for_each(|id| drop(world.forget_id(*id)));
        } else {
            world.db.set_policy("undo.horizon = \"1d\"", Syntax::Toml).unwrap();
            world.db.maintain_with(&MaintainOptions::live().passes([Pass::Limbo])).unwrap();
            world.db.set_policy("undo.horizon = \"7d\"", Syntax::Toml).unwrap();
        }
        let undone = world.ns.undo(run).unwrap();
        assert_eq!((undone.restored, undone.removed), (0, u64::from(forgotten)), "{undone:?}");
        assert_eq!(world.is_live(summary), !forgotten);
        if !forgotten {
            let told = format!("{summary}: it stays, because its sources can't come back");
            assert!(undone.lost.contains(&told), "{undone:?}");
        }
        world.check();
    }
}

/// An export of what is visible does not show the sources, says so, and a copy ranks the summary as the original does.
#[test]
fn a_summary_gains_as_much_in_a_copy_without_its_sources() {
    let world = World::new();
    messages(&world, "22d", "The boiler broke");
    summarize(&world);
    world.add(text("The plumber has mended the boiler"));
    let mut lines = Vec::new();
    let export = Export::new([world.ns.name().clone()]);
    let vectors = VectorsTo::<std::io::Cursor<Vec<u8>>>::Lines;
    let report = export.write(&world.db.snapshot().unwrap(), &mut lines, "out", vectors).unwrap();
    assert_eq!((report.memories, report.provenance_left_out), (2, 1));
    let copy = World::new();
    copy.clock.set(world.now());
    Import::default().run(&copy.db, LineReader::new(&lines[..], "out"), &mut ()).unwrap();
    let scores = |world: &World| {
        let found = world.ns.search(Query::text("who mended the boiler")).unwrap();
        found.hits.iter().map(|hit| (hit.id, hit.score, hit.signals.prior)).collect::<Vec<_>>()
    };
    assert_eq!(scores(&copy), scores(&world));
    assert!(scores(&copy).iter().any(|(_, _, prior)| prior.is_some_and(|gained| gained > 0.19)));
}

/// Two summaries of equal text stand for different sources, so both stay.
#[test]
fn summaries_of_equal_text_are_not_united() {
    let world = World::new();
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let sources = ["one", "two"].map(|what| world.add(text(what)).id);
    let summaries = sources.map(|source| {
        let mut summary = text("Nothing happened.").kind(Kind::Summary).vector(axis(1));
        summary.sources = Some(vec![source]);
        world.ns.add_all(vec![summary], &apart).unwrap()[0].id
    });
    world.db.set_policy("cluster.enabled = true\ncluster.prune = true", Syntax::Toml).unwrap();
    world.advance("60d");
    let passes = [Pass::NearDuplicates, Pass::VectorDuplicates, Pass::Cluster];
    world.db.maintain_with(&MaintainOptions::live().passes(passes)).unwrap();
    for (source, summary) in sources.into_iter().zip(summaries) {
        assert!(world.is_live(summary));
        assert_eq!(world.forget_id(source).derived, [summary]);
        assert_eq!(world.row(summary).source_forgotten, 1);
    }
    world.check();
}
