//! What an export and an import cost: as much for each line, however many there are.

use crate::growth::{constant, cost, exported, fill, linear, world};
use crate::world::{World, text};
use oubliette::exchange::{Import, ImportReport, LineReader};
use oubliette::faults::Tally;
use oubliette::maintain::{MaintainOptions, Pass, RenamespaceOptions, RunId};
use oubliette::memory::Tier;
use oubliette::{Draft, WriteOptions};
use serde_json::json;

/// A vector that no other of a few thousand is near.
fn around(at: usize) -> [f64; 4] {
    [0.37, 0.73, 0.11, 0.53].map(|turn| (at as f64 * turn).cos() + 0.01)
}

/// The cost of an import that leaves out what is bad, in one batch but for that.
fn skipping(lines: &str) -> (Tally, ImportReport) {
    let world = world();
    let import = Import { skip_bad: true, ..Import::default() };
    let mut report = ImportReport::default();
    let cost = cost(|| {
        report = import.run(&world.db, LineReader::new(lines.as_bytes(), "lines"), &mut ()).unwrap();
    });
    world.check();
    (cost, report)
}

/// A bad line makes no more begin anew than was written since the one before.
#[test]
fn every_second_line_is_bad() {
    let of = |n: usize| {
        let line = |at: usize| match at % 2 {
            0 => json!({ "key": format!("k{at}"), "text": format!("line {at}") }),
            _ => json!({ "text": "of nobody", "supersedes": [format!("nobody{at}")] }),
        };
        let lines: String = (0..n).map(|at| format!("{}\n", line(at))).collect();
        let (cost, report) = skipping(&lines);
        assert_eq!((report.stored, report.bad), (n as u64 / 2, n as u64 / 2));
        cost
    };
    linear(of(100), of(400), 4);
}

/// An import is undone at the same cost for each line, in however many slices.
#[test]
fn an_import_that_is_undone() {
    let of = |n: usize| {
        let world = world();
        let line = |at: usize| {
            let (key, text, tags) =
                (format!("k{at}"), format!("line {at} of {}", at * at), [format!("t{}", at % 7)]);
            json!({ "key": key, "text": text, "tags": tags, "categories": ["work"], "vector": around(at) })
        };
        let lines: String = (0..n).map(|at| format!("{}\n", line(at))).collect();
        let report =
            Import::default().run(&world.db, LineReader::new(lines.as_bytes(), "lines"), &mut ()).unwrap();
        assert_eq!(report.stored, n as u64);
        let cost = cost(|| drop(world.ns.undo(report.runs[0].1).unwrap()));
        assert!(world.live().is_empty());
        world.check();
        cost
    };
    linear(of(1_500), of(6_000), 4);
}

/// Each memory of a chain takes over the keys of all before it: to ask who has a key looks at the latest that had it alone.
#[test]
fn a_chain_of_keys_that_supersede_each_other() {
    let of = |n: usize| {
        let line = |at: usize| {
            let supersedes = at.checked_sub(1).map(|before| format!("k{before}"));
            json!({ "key": format!("k{at}"), "text": format!("note {at}"), "supersedes": Vec::from_iter(supersedes) })
        };
        let lines: String = (0..n).map(|at| format!("{}\n", line(at))).collect();
        let (cost, report) = skipping(&lines);
        assert_eq!((report.stored, report.bad), (n as u64, 0));
        cost
    };
    // Twice as many memories have four times as many keys to take over.
    linear(of(50), of(100), 4);
}

/// A run whose line has named many memories, each of which had replaced another one.
fn named(n: usize) -> (World, RunId) {
    let world = world();
    fill(&world, 0, n, |at| text(&format!("first text {at}")).key(format!("a{at}")));
    let second =
        |at: usize| text(&format!("second text {at}")).key(format!("k{at}")).tag(format!("t{}", at % 2));
    fill(&world, 0, n, |at| second(at).supersedes(format!("a{at}")));
    world.add(text("what is true").key("base"));
    let run = world.start_import();
    for from in (0..n).step_by(500) {
        let line = text("what is true").key("base");
        let all = (from..n.min(from + 500)).map(|at| format!("k{at}"));
        world.import(run, vec![Draft { supersedes: all.collect(), ..line }]);
    }
    (world, run)
}

/// Memories that led to one are forgotten by their tag: what they had replaced goes on to that one, whose other writers are not read
/// for each.
#[test]
fn what_leads_on_to_a_memory_of_many_keys() {
    let of = |n: usize| {
        let (world, _) = named(n);
        let forget = cost(|| drop(world.forget_tag("t0")));
        world.check();
        forget
    };
    linear(of(60), of(240), 4);
}

/// An undo is in slices: what has led on to the memory that stays is looked up as often for each, however many have.
#[test]
fn an_undo_of_lines_that_have_named_many() {
    let of = |n: usize| {
        let (world, run) = named(n);
        world.forget_tag("t0");
        let mut restored = 0;
        let undo = cost(|| restored = world.ns.undo(run).unwrap().restored);
        assert_eq!(restored, n as u64);
        world.check();
        undo
    };
    linear(of(1_000), of(4_000), 4);
}

/// A few bad lines between many good ones: these are written together.
#[test]
fn a_bad_line_among_many_costs_little() {
    let of = |bad: [usize; 2]| {
        let line = |at: usize| match bad.contains(&at) {
            false => json!({ "key": format!("k{at}"), "text": format!("line {at}") }),
            true => json!({ "text": "of nobody", "supersedes": ["nobody"] }),
        };
        let lines: String = (0..400).map(|at| format!("{}\n", line(at))).collect();
        let (cost, report) = skipping(&lines);
        let left = bad.into_iter().filter(|at| *at < 400).count() as u64;
        assert_eq!((report.stored, report.bad), (400 - left, left));
        cost
    };
    linear(of([400, 400]), of([150, 300]), 4);
}

/// Of a backup that was cut in the steps of a run neither the run nor its steps come in, each of them looked at twice.
#[test]
fn a_run_without_all_of_its_steps() {
    let of = |n: usize| {
        let world = world();
        let say = |at: usize| text(&format!("note {at}")).tier(Tier::Working).key(format!("k{at}"));
        world.ns.add_all((0..n).map(say).collect(), &Default::default()).unwrap();
        world.advance("30d");
        world.ns.maintain_with(&MaintainOptions::live().passes([Pass::Expire])).unwrap();
        let lines = String::from_utf8(exported(&world)).unwrap();
        let of_runs = lines.lines().filter(|line| line.contains("\"run\":{") || line.contains("\"step\":{"));
        let cut: String = of_runs.take(n / 2 + 1).map(|line| format!("{line}\n")).collect();
        let (cost, report) = skipping(&cut);
        assert_eq!((report.read, report.bad), (n as u64 / 2 + 1, n as u64 / 2 + 1));
        cost
    };
    linear(of(100), of(400), 4);
}

/// Rows whose superseders take turns ask for each superseder once.
#[test]
fn an_export_of_unions_that_take_turns() {
    let of = |n: usize| {
        let world = world();
        let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        let say = |at: usize| {
            let said =
                if at.is_multiple_of(2) { "a walk along the river" } else { "tea with milk and sugar" };
            text(said).key(format!("k{at}"))
        };
        world.ns.add_all((0..n).map(say).collect(), &apart).unwrap();
        world.ns.maintain_with(&MaintainOptions::live().passes([Pass::NearDuplicates])).unwrap();
        assert_eq!(world.live().len(), 2);
        cost(|| drop(exported(&world)))
    };
    linear(of(60), of(240), 4);
}

/// The steps of a run are read from where the last page of them ended.
#[test]
fn an_export_of_a_run_of_many_steps() {
    let world = world();
    let say = |at: usize| text(&format!("note {at}")).tier(Tier::Working);
    fill(&world, 0, 1_000, say);
    world.advance("30d");
    let report = world.ns.maintain_with(&MaintainOptions::live().passes([Pass::Expire])).unwrap();
    let run = report.run.unwrap();
    let page = |after| world.ns.steps_left(run, after, 10).unwrap();
    let all = world.ns.steps_left(run, None, usize::MAX).unwrap();
    assert_eq!(all.len(), 1_000);
    let (first, last) = (cost(|| drop(page(None))), cost(|| drop(page(Some(all[900].seq)))));
    constant(first, last);
    assert!(first.read < 50, "{first:?}");
    assert_eq!(page(Some(all[9].seq)), all[10..20]);
}

/// A split looks at the names of all namespaces once, however many it makes.
#[test]
fn a_split_into_many_namespaces() {
    let of = |n: usize| {
        let world = world();
        let say = |at: usize| text(&format!("note {at}")).metadata(json!({ "project": format!("p{at}") }));
        world.ns.add_all((0..n).map(say).collect(), &WriteOptions::default()).unwrap();
        cost(|| {
            let done = world.db.split_namespace("default", &[], &RenamespaceOptions::default()).unwrap();
            assert_eq!(done.targets.len(), n);
        })
    };
    linear(of(100), of(400), 4);
}
