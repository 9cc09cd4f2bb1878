//! The confidence of durable memories: where it begins, how it falls, and what fills it in.

use crate::world::{World, text};
use oubliette::exchange::{Export, VectorsTo};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{Field, SupersedeMode, Tier};
use oubliette::{Database, Decision, Draft, MemoryId, Patch, Query, State, WriteOptions};

fn confidence(world: &World, id: MemoryId) -> Option<f32> {
    world.ns.get(id).unwrap().unwrap().confidence
}

fn near(found: Option<f32>, expected: f32) {
    assert!((found.unwrap() - expected).abs() <= 5e-7, "{found:?}, not {expected}");
}

/// Takes the confidence of a memory away.
fn without(world: &World, draft: Draft) -> MemoryId {
    let id = world.add(draft).id;
    let mut patch = Patch::default();
    patch.fields.confidence = Field::Null;
    world.ns.update(id, patch).unwrap();
    assert_eq!(confidence(world, id), None);
    id
}

#[test]
fn v142_a_confidence_begins_where_its_writer_stands() {
    let world = World::new();
    near(confidence(&world, world.add(text("caller").confidence(0.9)).id), 0.7);
    near(confidence(&world, world.add(text("caller, less sure").confidence(0.1)).id), 0.1);
    near(confidence(&world, world.add(text("fresh")).id), 0.4);
    let run = world.start_import();
    near(confidence(&world, world.import(run, vec![text("imported")])[0].id), 0.25);
    assert_eq!(confidence(&world, world.add(text("episodic").tier(Tier::Episodic)).id), None);
    // What a caller changes later has the same bound.
    let id = world.add(text("changed")).id;
    world.ns.update(id, Patch::new().confidence(0.95)).unwrap();
    near(confidence(&world, id), 0.7);
    // A memory that becomes durable gets what a fresh one has.
    let id = world.add(text("working").tier(Tier::Working)).id;
    world.ns.update(id, Patch::new().tier(Tier::Semantic)).unwrap();
    near(confidence(&world, id), 0.4);
    // The same write again is the same write.
    let same = || text("keyed").key("k").confidence(0.9);
    world.add(same());
    assert_eq!(world.add(same()).decision, Decision::Unchanged);
    let again = world.ns.add_all(vec![same()], &WriteOptions::default()).unwrap();
    assert_eq!(again[0].decision, Decision::Unchanged);
}

#[test]
fn v144_and_v145_a_contradiction_shrinks_the_confidence_and_ends_the_truth() {
    let world = World::new();
    let unused = world.add(text("Ann lives in Ghent").confidence(0.6)).id;
    world.advance("1h");
    world.ns.contradict(unused, None).unwrap();
    near(confidence(&world, unused), 0.3);
    let row = world.row(unused);
    assert_eq!((row.valid_to, row.updated_at), (Some(world.now()), world.now()));
    assert!(!world.is_live(unused));

    let used = world.add(text("Bob lives in Bonn").confidence(0.6)).id;
    let mut patch = Patch::default();
    patch.fields.retrieval_count = Some(3);
    world.ns.update(used, patch).unwrap();
    world.ns.contradict(used, Some(world.ahead("1d"))).unwrap();
    near(confidence(&world, used), 0.177_185);
    assert!(world.is_live(used), "until that instant");
    world.advance("1d");
    assert!(!world.is_live(used));
}

#[test]
fn a_superseded_memory_is_not_contradicted_and_the_floor_holds() {
    let world = World::new();
    let id = world.add(text("Eve lives in Essen").confidence(0.06)).id;
    world.ns.contradict(id, None).unwrap();
    near(confidence(&world, id), 0.05);
    let (old, new) = (world.add(text("old")).id, world.add(text("new")).id);
    world.supersede(old, new, SupersedeMode::Correction, None).unwrap();
    assert_eq!(world.row(old).state, State::Superseded);
    assert!(world.ns.contradict(old, None).is_err());
    assert!(world.ns.contradict("nobody", None).is_err());
    assert!(world.ns.search(Query::text("Essen")).unwrap().hits.is_empty());
}

fn exported(db: &Database) -> String {
    let mut lines = Vec::new();
    let export = Export::new(["default".parse().unwrap()]);
    export.write(&db.snapshot().unwrap(), &mut lines, "lines", VectorsTo::<std::io::Empty>::Lines).unwrap();
    String::from_utf8(lines).unwrap()
}

#[test]
fn v170_and_v300_backfill_previews_seeds_and_is_taken_back() {
    let world = World::new();
    let null: Vec<MemoryId> = (0..3).map(|number| without(&world, text(&format!("null {number}")))).collect();
    world.add(text("first"));
    world.add(text("second"));
    world.add(text("episodic").tier(Tier::Episodic));
    world.advance("1h");
    let before = exported(&world.db);
    let preview = world.ns.backfill_confidence_preview().unwrap();
    assert_eq!((preview.inspected, preview.seeded, preview.skipped), (6, 3, 3));
    assert!(preview.dry_run && preview.run_id.is_none());
    assert_eq!(exported(&world.db), before);
    let done = world.ns.backfill_confidence().unwrap();
    assert_eq!((done.inspected, done.seeded, done.skipped, done.dry_run), (6, 3, 3, false));
    for id in &null {
        near(confidence(&world, *id), 0.25);
        assert_eq!((world.row(*id).updated_at, world.row(*id).version), (world.now(), 3));
    }
    let again = world.ns.backfill_confidence().unwrap();
    assert_eq!((again.inspected, again.seeded, again.skipped), (6, 0, 6));
    let undone = world.ns.undo(done.run_id.unwrap()).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (3, 0));
    assert_eq!(exported(&world.db), before);
    world.check();
}

#[test]
fn what_a_caller_changed_since_is_not_taken_back() {
    let world = World::new();
    let (kept, changed) = (without(&world, text("kept")), without(&world, text("changed")));
    let options = MaintainOptions::live().passes([Pass::Backfill]);
    let run = world.ns.maintain_with(&options).unwrap().run.unwrap();
    world.ns.update(changed, Patch::new().importance(0.9)).unwrap();
    let undone = world.ns.undo(run).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (1, 1));
    assert_eq!(confidence(&world, kept), None);
    near(confidence(&world, changed), 0.25);
    // A plan leaves a memory alone that got a confidence meanwhile.
    let plan = world.ns.plan(&options).unwrap();
    world.ns.update(kept, Patch::new().confidence(0.5)).unwrap();
    let report = world.ns.carry_out(&plan, &options).unwrap();
    assert_eq!((report.planned, report.changed, report.skipped), (1, 0, 1));
    near(confidence(&world, kept), 0.5);
    world.check();
}
