//! Every operation of many parts has a run that is listed, whether it ended or was cut off (MODEL-65).

use std::collections::BTreeMap;

use oubliette::embed::HashEmbedder;
use oubliette::exchange::{Export, Import, LineReader, VectorsTo};
use oubliette::maintain::{MaintainOptions, Pass, RunId, RunPage, RunReport, RunSort, RunStatus};
use oubliette::memory::{Actor, SupersedeMode};
use oubliette::policy::Syntax;
use oubliette::{Draft, ErrorKind, Kind, Namespace, NamespaceName, Scope, State, WriteOptions};
use serde_json::json;

use crate::world::{World, text};

fn in_run(run: RunId) -> WriteOptions {
    WriteOptions { run: Some(run), ..WriteOptions::default() }
}

fn all(ns: &Namespace) -> Vec<RunReport> {
    let RunPage { items, next, damaged, .. } = ns.runs(None, 10_000).unwrap();
    assert_eq!((next, damaged), (None, Vec::new()));
    items
}

/// The one run of a namespace.
fn only(ns: &Namespace) -> RunReport {
    let mut all = all(ns);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn counts<const N: usize>(counts: [(&str, u64); N]) -> BTreeMap<String, u64> {
    counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Two series of profiles that `collapse` unites: three rows and two.
fn profiles(world: &World) {
    for apps in [4, 7, 9] {
        world.add(text(&format!("Gateway status: {apps} apps pending")).kind(Kind::Profile));
    }
    for disks in [1, 2] {
        world.add(text(&format!("Storage status: {disks} disks failed")).kind(Kind::Profile));
    }
}

#[test]
fn an_import_is_a_run_from_its_first_line_to_its_last() {
    let world = World::new();
    let run = world.start_import();
    let begun = only(&world.ns);
    assert_eq!(
        (begun.id, begun.sort, begun.status, begun.by),
        (run, RunSort::Import, RunStatus::Running, Actor::Caller)
    );
    assert_eq!((begun.counts.len(), begun.can_be_undone, begun.undoable_until), (0, false, None));
    world.advance("5m");
    world.import(run, vec![text("one"), text("two").key("k"), text("one")]);
    let at_work = only(&world.ns);
    assert_eq!(at_work.counts, counts([("reinforced", 1), ("stored", 2)]));
    assert_eq!(at_work.latest_at, begun.started_at.plus(crate::world::span("5m")));
    assert!(at_work.can_be_undone);
    world.import(run, vec![text("three").key("k")]);
    world.ns.finish_import(run).unwrap();
    let ended = world.ns.run(run).unwrap().unwrap();
    assert_eq!(ended.status, RunStatus::Done);
    assert_eq!(ended.counts, counts([("reinforced", 1), ("revised", 1), ("stored", 2)]));
    assert_eq!(
        (ended.can_be_undone, ended.undoable_until),
        (true, None),
        "an import can be taken back at any time"
    );
    world.ns.undo(run).unwrap();
    // What was taken back is not whole again.
    world.ns.finish_import(run).unwrap();
    let undone = only(&world.ns);
    assert_eq!((undone.status, undone.can_be_undone), (RunStatus::Undone, false));
    world.check();
}

#[test]
fn an_import_that_was_cut_off_is_found_and_taken_back() {
    let mut world = World::new();
    let run = world.start_import();
    world.import(run, vec![text("one"), text("two")]);
    world.reopen();
    let left = only(&world.ns);
    assert_eq!((left.id, left.status, left.can_be_undone), (run, RunStatus::CutOff, true));
    assert_eq!(left.counts, counts([("stored", 2)]));
    assert_eq!(world.ns.undo(left.id).unwrap().removed, 2);
    assert_eq!((only(&world.ns).status, world.live().len()), (RunStatus::Undone, 0));
    // A handle that only reads does not know what others do.
    let run = world.start_import();
    world.db.clone().close().unwrap();
    world.open_again(|builder| builder.read_only(true));
    assert_eq!(world.ns.run(run).unwrap().unwrap().status, RunStatus::Open);
    world.reopen();
}

#[test]
fn an_import_that_fails_is_cut_off_at_once() {
    let world = World::new();
    let lines = b"{\"text\":\"one\"}\n{\"text\":\"two\"}\n{\"text\":7}\n";
    let import = Import { batch_rows: 1, ..Import::default() };
    import.run(&world.db, LineReader::new(&lines[..], "lines"), &mut ()).unwrap_err();
    let left = only(&world.ns);
    assert_eq!((left.status, left.counts), (RunStatus::CutOff, counts([("stored", 2)])));
    let whole = import.run(&world.db, LineReader::new(&lines[..30], "lines"), &mut ()).unwrap();
    let newest = all(&world.ns).remove(0);
    assert_eq!((newest.id, newest.status), (whole.runs[0].1, RunStatus::Done));
    assert_eq!(newest.counts, counts([("reinforced", 2)]));
}

#[test]
fn an_import_of_an_export_counts_what_it_puts_back() {
    let world = World::new();
    profiles(&world);
    world.add(text("gone").key("gone"));
    world.forget(&["gone"]);
    let collapsed =
        world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap().run.unwrap();
    let mut lines = Vec::new();
    let export = Export { namespaces: vec![NamespaceName::default()], all_states: true };
    let vectors = VectorsTo::<std::io::Cursor<Vec<u8>>>::Lines;
    export.write(&world.db.snapshot().unwrap(), &mut lines, "out", vectors).unwrap();
    let copy = World::new();
    let report = Import::default().run(&copy.db, LineReader::new(&lines[..], "out"), &mut ()).unwrap();
    let put_back = copy.ns.run(report.runs[0].1).unwrap().unwrap();
    // The run of the collapse and its two steps are told, and the memories keep the runs that first brought them.
    assert_eq!(put_back.counts, counts([("put_back", 5), ("stored", 5), ("told", 3), ("tombstones", 1)]));
    assert_eq!((put_back.status, put_back.can_be_undone), (RunStatus::Done, false));
    let travelled = copy.ns.run(collapsed).unwrap().unwrap();
    let original = world.ns.run(collapsed).unwrap().unwrap();
    assert_eq!(
        (travelled.sort, travelled.status, travelled.can_be_undone),
        (RunSort::Maintain, RunStatus::Done, true)
    );
    assert_eq!(
        (travelled.started_at, travelled.undoable_until),
        (original.started_at, original.undoable_until)
    );
}

#[test]
fn maintenance_is_a_run_that_counts_by_pass() {
    let world = World::new();
    profiles(&world);
    let passes = [Pass::Collapse, Pass::Index, Pass::Repair];
    assert!(world.db.maintain_with(&MaintainOptions::default().passes(passes)).unwrap().run.is_none());
    assert_eq!(all(&world.ns), [], "a dry run is none");
    let run = world.db.maintain_with(&MaintainOptions::live().passes(passes)).unwrap().run.unwrap();
    let report = only(&world.ns);
    assert_eq!((report.id, report.sort, report.status), (run, RunSort::Maintain, RunStatus::Done));
    assert_eq!(report.counts["collapse"], 3);
    assert_eq!(report.undoable_until, Some(report.started_at.plus(world.db.policy().0.undo.horizon)));
    // Nothing more is to be done, and no run tells of that.
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    assert_eq!(all(&world.ns).len(), 1);
    let shown = serde_json::to_value(&report).unwrap();
    assert_eq!(
        (&shown["what"], &shown["state"], &shown["by"]),
        (&json!("maintain"), &json!("done"), &json!("caller"))
    );
    assert_eq!(serde_json::from_value::<RunReport>(shown).unwrap(), report);
    world.advance("1d");
    assert_eq!(world.ns.undo(run).unwrap().restored, 3);
    let undone = only(&world.ns);
    assert_eq!(
        (undone.status, undone.can_be_undone, undone.latest_at),
        (RunStatus::Undone, false, world.now())
    );
}

#[test]
fn maintenance_can_be_taken_back_until_its_horizon() {
    let world = World::new();
    profiles(&world);
    let run = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap().run.unwrap();
    let end = only(&world.ns).undoable_until.unwrap();
    world.set(end.as_millis() - 1);
    assert!(only(&world.ns).can_be_undone);
    world.set(end.as_millis());
    let over = only(&world.ns);
    assert_eq!((over.status, over.can_be_undone, over.undoable_until), (RunStatus::Done, false, None));
    assert_eq!(world.ns.undo(run).unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn each_pass_of_maintenance_has_its_run() {
    for pass in Pass::ALL {
        let mut world = World::new();
        profiles(&world);
        for (at, said) in ["one", "two"].iter().enumerate() {
            world.add(text(said).vector(crate::world::axis(at)));
        }
        let report = world.db.maintain_with(&MaintainOptions::live().passes([*pass])).unwrap();
        let listed = all(&world.ns);
        // The first look at snapshots is noted although it did nothing.
        let told = listed.iter().filter(|run| !run.counts.is_empty()).map(|run| run.id);
        assert_eq!(told.collect::<Vec<_>>(), Vec::from_iter(report.run), "{pass}: {listed:?}");
        for run in &listed {
            assert_eq!(run.status, RunStatus::Done, "{pass}");
            assert!(run.counts.keys().all(|name| name == pass.as_str()), "{pass}: {:?}", run.counts);
        }
        world.reopen();
        assert_eq!(all(&world.ns), listed, "{pass}");
    }
}

#[test]
fn a_pass_that_stops_early_is_cut_off_and_goes_on() {
    let world = World::new();
    profiles(&world);
    let part = MaintainOptions { max_rows: Some(1), ..MaintainOptions::live() };
    let run = world.db.maintain_with(&part.clone().passes([Pass::Collapse])).unwrap().run.unwrap();
    assert_eq!((only(&world.ns).id, only(&world.ns).status), (run, RunStatus::CutOff));
    assert_eq!(only(&world.ns).counts, counts([("collapse", 1)]));
    assert_eq!(
        world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap().run,
        Some(run)
    );
    let whole = only(&world.ns);
    assert_eq!((whole.status, whole.counts), (RunStatus::Done, counts([("collapse", 3)])));
}

/// What a run did last can be taken back for as long as any other work, however long ago the run began.
#[test]
fn a_run_that_went_on_late_can_be_taken_back() {
    let world = World::new();
    profiles(&world);
    let before = world.live().len();
    let part = MaintainOptions { max_rows: Some(1), ..MaintainOptions::live() };
    let run = world.db.maintain_with(&part.passes([Pass::Collapse])).unwrap().run.unwrap();
    let first = world.live().len();
    world.advance("20d");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    assert!(world.live().len() < first && first < before);
    let late = only(&world.ns);
    assert_eq!((late.id, late.undoable_until), (run, Some(world.now().plus("7d".parse().unwrap()))));
    world.advance("1h");
    world.ns.undo(run).unwrap();
    assert_eq!(world.live().len(), before, "what the run had removed at first still stands in limbo");
    world.check();
}

#[test]
fn other_operations_of_many_parts_have_runs_that_nothing_takes_back() {
    let world = World::new();
    let ends = text("soon over").vector(crate::world::axis(0)).expiry(world.ahead("1h"));
    world.add(ends);
    world.add(text("stays").vector(crate::world::axis(1)));
    let sorts = |ns: &Namespace| all(ns).iter().map(|run| run.sort).collect::<Vec<_>>();
    world.ns.declare_index("user").unwrap();
    assert_eq!(world.ns.declare_index("user").unwrap(), 0);
    assert_eq!(sorts(&world.ns), [RunSort::Index], "an index that is there takes no run");
    world.ns.drop_index("user").unwrap();
    world.db.reindex().unwrap();
    world.advance("2h");
    world.db.compact().unwrap();
    world.db.compact().unwrap();
    world.db.reembed(HashEmbedder::new()).unwrap();
    let expected = [RunSort::Reembed, RunSort::Compact, RunSort::Reindex, RunSort::Index, RunSort::Index];
    let listed = all(&world.ns);
    assert_eq!(
        sorts(&world.ns).into_iter().filter(|sort| *sort != RunSort::Maintain).collect::<Vec<_>>(),
        expected
    );
    for run in listed {
        assert_eq!(
            (run.status, run.can_be_undone, run.undoable_until),
            (RunStatus::Done, false, None),
            "{run:?}"
        );
        if run.sort != RunSort::Maintain {
            assert_eq!(world.ns.undo(run.id).unwrap_err().kind(), ErrorKind::Conflict);
        }
    }
    let of = |sort: RunSort| all(&world.ns).into_iter().find(|run| run.sort == sort).unwrap().counts;
    assert_eq!(of(RunSort::Compact), counts([("expired", 1)]));
    assert_eq!(of(RunSort::Reindex)["vectors"], 2);
    assert_eq!(of(RunSort::Reembed), counts([("changed", 1)]));
}

#[test]
fn what_did_nothing_that_can_be_taken_back_is_not_undone() {
    let world = World::new();
    profiles(&world);
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    world.advance("400d");
    let run = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Limbo])).unwrap().run.unwrap();
    assert_eq!(world.ns.run(run).unwrap().unwrap().counts, counts([("limbo", 3)]));
    assert_eq!(world.ns.undo(run).unwrap(), Default::default());
    assert_eq!(world.ns.run(run).unwrap().unwrap().status, RunStatus::Done);
}

#[test]
fn runs_come_in_pages_and_belong_to_one_namespace() {
    let world = World::new();
    let other = world.db.namespace("other").unwrap();
    assert_eq!(other.runs(None, 1).unwrap(), RunPage::default());
    let mut expected = Vec::new();
    for _ in 0..7 {
        expected.insert(0, world.start_import());
        other.finish_import(other.start_import().unwrap()).unwrap();
        world.advance("1s");
    }
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = world.ns.runs(before, 3).unwrap();
        seen.extend(page.items.iter().map(|run| run.id));
        before = page.next;
        if before.is_none() {
            break;
        }
        assert_eq!(before, seen.last().copied());
    }
    assert_eq!(seen, expected);
    assert_eq!(world.ns.runs(None, 7).unwrap().next, None, "no page follows the last run");
    assert_eq!((world.ns.run(all(&other)[0].id).unwrap(), all(&other).len()), (None, 7));
    for limit in [0, 10_001] {
        assert_eq!(world.ns.runs(None, limit).unwrap_err().kind(), ErrorKind::Invalid);
    }
    assert_eq!(world.ns.finish_import(all(&other)[0].id).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn writes_under_an_id_that_nobody_began_are_no_run() {
    let world = World::new();
    let run = RunId::from_bytes([9; 16]);
    world.ns.add_all(vec![Draft::new("one")], &in_run(run)).unwrap();
    world.db.batch(|b| b.add_with(world.ns.name(), "two", &in_run(run))).unwrap();
    assert_eq!(all(&world.ns), []);
    let begun = world.start_import();
    world.db.batch(|b| b.add_with(world.ns.name(), "three", &in_run(begun))).unwrap();
    assert_eq!(only(&world.ns).counts, counts([("stored", 1)]));
}

const OLD: &str = "Ann lives in Ghent";
const NEW: &str = "Ann lives in Bruges";
const TAG: &str = "import:x:2026-01-01";

/// Two memories side by side, and an import with one line, whose text is there already and which names the other memory.
fn named(line: impl Fn(Draft) -> Draft) -> (World, RunId, String) {
    let world = World::new();
    world.add(text(OLD).key("a"));
    world.add(text(NEW).key("b"));
    world.advance("1m");
    let run = world.start_import();
    let outcome = world.import(run, vec![line(text(NEW).supersedes("a"))]).remove(0);
    world.ns.finish_import(run).unwrap();
    assert_eq!(world.row("a").text, NEW);
    let decision = outcome.decision.as_str().to_owned();
    (world, run, decision)
}

/// MODEL-33: the rows that the run superseded are live again, also where the row that took their place was there before.
#[test]
fn model_33_what_a_line_had_named_comes_back_where_its_own_text_stays() {
    type Line = fn(Draft) -> Draft;
    let lines: [(Line, &str, usize); 5] = [
        (|line| line.key("b"), "unchanged", 0),
        (|line| line.key("c"), "reinforced", 0),
        (|line| line, "reinforced", 0),
        (|line| line.key("b").tag("new"), "updated", 1),
        (|line| Draft { supersede_mode: Some(SupersedeMode::Correction), ..line.key("c") }, "reinforced", 0),
    ];
    for (line, decision, lost) in lines {
        let (world, run, decided) = named(line);
        assert_eq!(decided, decision);
        let report = world.ns.run(run).unwrap().unwrap();
        assert!(report.can_be_undone, "{decision}");
        assert_eq!(report.counts["superseded"], 1);
        let undone = world.ns.undo(run).unwrap();
        assert_eq!(
            (undone.restored, undone.removed, undone.lost.len()),
            (1, 0, lost),
            "{decision}: {undone:?}"
        );
        assert_eq!((world.row("a").text.as_str(), world.row("b").text.as_str()), (OLD, NEW));
        assert_eq!(world.live().len(), 2);
        assert!(!world.ns.run(run).unwrap().unwrap().can_be_undone);
        world.check();
    }
}

/// LIFE-26: forgetting the tag of an import leaves what was there before.
#[test]
fn life_26_what_a_line_had_named_comes_back_with_its_tag() {
    for key in [Some("c"), None] {
        let (world, run, _) = named(|line| match key {
            Some(key) => line.tag(TAG).key(key),
            None => line.tag(TAG),
        });
        let forgotten = world.forget_tag(TAG);
        assert_eq!((forgotten.forgotten, forgotten.detached, forgotten.restored), (0, 1, 1));
        assert_eq!((world.row("a").text.as_str(), world.live().len()), (OLD, 2));
        assert_eq!(world.ns.undo(run).unwrap().restored, 0, "nothing is left to undo");
        world.check();
    }
}

/// What somebody else has asked for since stays.
#[test]
fn an_undo_leaves_what_was_superseded_by_others_since() {
    let (world, run, _) = named(|line| line.key("c"));
    let new = world.row("b").id;
    let old = world.list_in(Scope::Any, State::Superseded).remove(0).id;
    world.ns.restore(old.to_string()).unwrap();
    world.advance("1m");
    world.supersede(old, new, SupersedeMode::Replaced, None).unwrap();
    assert_eq!(world.ns.undo(run).unwrap().restored, 0);
    assert!(!world.is_live(old));

    let (world, run, _) = named(|line| line.key("c"));
    let newest = world.add(text("Ann lives in Antwerp").key("d")).id;
    let by = world.row("b").id;
    world.supersede(by, newest, SupersedeMode::Replaced, None).unwrap();
    let undone = world.ns.undo(run).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (0, 1), "{undone:?}");
    assert!(undone.lost[0].contains("has been replaced since"));
    world.check();
}

/// MODEL-33: what a line had named and does not come back is told, and its key leads nowhere any more.
#[test]
fn model_33_an_undo_tells_what_a_line_had_named_and_is_gone() {
    let (world, run, _) = named(|line| line.key("c"));
    let old = world.list_in(Scope::Any, State::Superseded).remove(0).id;
    world.advance("20d");
    world.db.set_policy("sweeper.tombstone_ttl = \"10d\"", Syntax::Toml).unwrap();
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Superseded])).unwrap();
    assert!(world.tombstone(old).replaced_by.is_some() && world.row("a").text == NEW);
    let undone = world.ns.undo(run).unwrap();
    assert_eq!((undone.restored, undone.lost), (0, vec![format!("{old} does not come back: it is gone")]));
    assert!(world.get("a").is_err() || world.tombstone("a").id == old);
    assert_eq!(world.row("b").text, NEW);
    world.check();

    // The key of what is gone leads nowhere where the memory that took its place was merged since, either.
    let (world, run, _) = named(|line| line.key("c"));
    world.advance("20d");
    world.db.set_policy("sweeper.tombstone_ttl = \"10d\"", Syntax::Toml).unwrap();
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Superseded])).unwrap();
    let newest = world.add(text("Ann lives in Antwerp").key("d")).id;
    world.supersede(world.row("b").id, newest, SupersedeMode::Duplicate, None).unwrap();
    assert_eq!(world.row("a").id, newest);
    assert_eq!(world.ns.undo(run).unwrap().lost.len(), 1);
    assert!(world.get("a").is_err() || world.tombstone("a").replaced_by.is_some());
    assert_eq!(world.row("b").id, newest);
    world.check();

    let (world, run, _) = named(|line| line.key("c"));
    let old = world.list_in(Scope::Any, State::Superseded).remove(0).id;
    world.forget_id(old);
    let undone = world.ns.undo(run).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (0, 1), "{undone:?}");
    world.check();

    // A row that came back, and went by itself, is no matter of the run.
    let (world, run, _) = named(|line| line.key("c"));
    let old = world.list_in(Scope::Any, State::Superseded).remove(0).id;
    world.ns.restore(old.to_string()).unwrap();
    world.forget_id(old);
    assert_eq!(world.ns.undo(run).unwrap().lost, Vec::<String>::new());
    world.check();
}

/// MODEL-67: what comes back superseded by what its writers have said since, or without a key, is told with the key.
#[test]
fn model_67_an_undo_tells_the_keys_of_what_a_line_had_named() {
    for others in [false, true] {
        let world = World::new();
        let old = world.add(text(OLD).key("a")).id;
        if others {
            world.add(text(OLD).key("a2"));
        }
        world.add(text(NEW).key("b"));
        world.advance("1m");
        let run = world.start_import();
        world.import(run, vec![text(NEW).supersedes(old.to_string())]);
        world.ns.finish_import(run).unwrap();
        world.advance("1m");
        world.add(text("Ann lives in Antwerp").key("a"));
        let undone = world.ns.undo(run).unwrap();
        assert_eq!((undone.restored, undone.lost.len()), (u64::from(others), 1), "{undone:?}");
        assert!(undone.lost[0].starts_with(&format!("key a of {old}: ")), "{undone:?}");
        assert_eq!((world.is_live(old), world.row("a").text.as_str()), (others, "Ann lives in Antwerp"));
        world.check();
    }
}

/// A copy of the database takes back as much.
#[test]
fn a_copy_takes_back_what_a_line_had_named() {
    let (world, run, _) = named(|line| line.key("c"));
    let mut lines = Vec::new();
    let export = Export { namespaces: vec![NamespaceName::default()], all_states: true };
    let vectors = VectorsTo::<std::io::Cursor<Vec<u8>>>::Lines;
    export.write(&world.db.snapshot().unwrap(), &mut lines, "out", vectors).unwrap();
    let copy = World::new();
    copy.clock.set(world.now());
    Import::default().run(&copy.db, LineReader::new(&lines[..], "out"), &mut ()).unwrap();
    assert_eq!(copy.ns.undo(run).unwrap().restored, 1);
    assert_eq!(copy.row("a").text, OLD);
    copy.check();
}
