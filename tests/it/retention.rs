//! What maintenance erases when its time is over: superseded memories, and how far back reads then reach.

use std::collections::BTreeSet;

use crate::world::{World, axis, ms, text};
use oubliette::gc::{Extractive, GcOptions, GcRunOptions};
use oubliette::maintain::{MaintainOptions, Pass, PassReport};
use oubliette::memory::{PointInTime, SupersedeMode, TombstoneReason};
use oubliette::policy::Syntax;
use oubliette::report::{ChainEnd, Op, PurgeHorizon};
use oubliette::{Draft, Error, ErrorKind, Kind, MemoryId, PageRequest, Patch, Query};

/// A store at 100 with no horizon of undo, which keeps superseded memories for so many milliseconds.
fn keeping(ttl: &str) -> World {
    let world = World::at(100);
    let policy = format!("undo.horizon = \"1ms\"\nsweeper.tombstone_ttl = \"{ttl}\"");
    world.db.set_policy(&policy, Syntax::Toml).unwrap();
    world
}

fn run(world: &World, pass: Pass) -> PassReport {
    let mut report = world.db.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
    report.passes.remove(0)
}

fn pair(world: &World, mode: SupersedeMode, at: Option<i64>) -> [MemoryId; 2] {
    let [old, new] = ["old", "new"].map(|name| {
        let text = text(&format!("harbour {name} at {}, {} there", world.now(), world.live().len()));
        world.add(text.vector(axis(0))).id
    });
    world.supersede(old, new, mode, at).unwrap();
    [old, new]
}

fn counts(report: &PassReport) -> (u64, u64, u64) {
    (report.planned, report.changed, report.skipped)
}

#[test]
fn v171_superseded_at_decides() {
    let world = keeping("1s");
    let [old, new] = pair(&world, SupersedeMode::Correction, None);
    world.set(1_100);
    // Superseded at 100, and older than 100 is what goes.
    assert_eq!(counts(&run(&world, Pass::Superseded)), (0, 0, 0));
    world.set(1_101);
    let report = run(&world, Pass::Superseded);
    assert_eq!((counts(&report), report.tombstoned), ((1, 1, 0), 1));
    let stone = world.tombstone(old);
    assert_eq!((stone.reason, stone.replaced_by), (TombstoneReason::SupersededPurged, Some(new)));
    assert_eq!(stone.deleted_at, ms(1_101));
    assert_eq!(world.live(), [new]);
    assert_eq!(world.ns.resolve(old).unwrap(), ChainEnd::Visible(new));
    assert!(world.ns.restore(old.to_string()).is_err());
    assert_eq!(counts(&run(&world, Pass::Superseded)), (0, 0, 0));
}

#[test]
fn without_a_time_to_keep_nothing_goes() {
    let world = World::at(100);
    let [old, _] = pair(&world, SupersedeMode::Correction, None);
    world.advance("4000d");
    assert_eq!(counts(&run(&world, Pass::Superseded)), (0, 0, 0));
    world.db.set_policy("sweeper.tombstone_ttl = \"1ms\"\nundo.horizon = \"5000d\"", Syntax::Toml).unwrap();
    assert_eq!(counts(&run(&world, Pass::Superseded)), (0, 0, 0), "the undo horizon comes first");
    assert!(world.get(old).is_ok());
}

/// MODEL-18: both horizons rise as far as the erased rows would have been seen, and no farther.
#[test]
fn the_horizons_rise() {
    let world = keeping("1s");
    let [_, new] = pair(&world, SupersedeMode::Correction, None);
    world.set(2_000);
    run(&world, Pass::Superseded);
    let horizon = |world: &World| world.ns.stats().unwrap().purge_horizon["default"];
    assert_eq!(horizon(&world), PurgeHorizon { known: Some(ms(100)), valid: None });
    let asked = |query: Query| world.ns.search(query.allow_partial(false));
    assert_eq!(
        asked(Query::text("harbour").as_of(ms(99))).unwrap_err().kind(),
        ErrorKind::BeforePurgeHorizon
    );
    assert_eq!(asked(Query::text("harbour").as_of(ms(100))).unwrap().hits[0].id, new);

    let [old, _] = pair(&world, SupersedeMode::Replaced, Some(1_500));
    world.set(4_000);
    run(&world, Pass::Superseded);
    assert_eq!(world.tombstone(old).reason, TombstoneReason::SupersededPurged);
    assert_eq!(horizon(&world), PurgeHorizon { known: Some(ms(2_000)), valid: Some(ms(1_500)) });
    let at = |valid: i64| PointInTime { valid_at: Some(ms(valid)), ..PointInTime::default() };
    let list = |at: PointInTime| world.ns.list(&PageRequest { at, ..PageRequest::default() });
    assert_eq!(list(at(1_499)).unwrap_err().kind(), ErrorKind::BeforePurgeHorizon);
    assert_eq!(list(at(1_500)).unwrap().items.len(), 2);
    let thin = list(PointInTime { allow_partial: true, ..at(1_499) }).unwrap();
    assert_eq!((thin.items.len(), thin.horizon), (1, Some(horizon(&world))));
}

#[test]
fn what_is_seen_or_protected_stays() {
    let world = keeping("1s");
    let [ahead, _] = pair(&world, SupersedeMode::Replaced, Some(9_000));
    let pinned = world.add(text("harbour pinned").pinned(true)).id;
    let new = world.add(text("harbour in its place")).id;
    world.supersede(pinned, new, SupersedeMode::Correction, None).unwrap();
    let [gone, _] = pair(&world, SupersedeMode::Duplicate, None);
    world.set(5_000);
    assert!(world.is_live(ahead));
    assert_eq!(counts(&run(&world, Pass::Superseded)), (3, 1, 2));
    assert!(world.is_live(ahead) && world.get(pinned).unwrap().into_memory().is_some());
    assert_eq!(world.tombstone(gone).reason, TombstoneReason::SupersededPurged);
    world.set(9_001);
    assert_eq!(counts(&run(&world, Pass::Superseded)), (2, 1, 1));
    assert_eq!(world.tombstone(ahead).reason, TombstoneReason::SupersededPurged);
}

/// A row that the undo of an import would bring back stays as long as the import is recent, or is being undone.
#[test]
fn what_an_undo_brings_back_stays() {
    let world = World::at(100);
    world.db.set_policy("undo.horizon = \"2s\"\nsweeper.tombstone_ttl = \"1ms\"", Syntax::Toml).unwrap();
    let old = world.add(text("Ann lives in Ghent").key("home")).id;
    let import = world.start_import();
    world.set(1_000);
    world.import(import, vec![text("Ann lives in Bruges").key("home")]);
    world.set(2_900);
    world.import(import, vec![text("It rains").key("rain")]);
    world.set(3_500);
    // Superseded at 1,000, and the import wrote last at 2,900.
    assert_eq!(counts(&run(&world, Pass::Superseded)), (1, 0, 1));
    world.ns.undo(import).unwrap();
    assert!(world.is_live(old));

    let again = world.start_import();
    world.import(again, vec![text("Ann lives in Rome").key("home")]);
    world.set(6_000);
    assert_eq!(counts(&run(&world, Pass::Superseded)), (1, 1, 0));
    let undone = world.ns.undo(again).unwrap();
    assert_eq!((undone.restored, undone.removed), (0, 1));
    assert!(world.unknown("home") || world.get("home").unwrap().into_memory().is_none());
}

#[test]
fn long_chains_end_somewhere() {
    let world = keeping("1s");
    let mut ids = vec![world.add(text("version 0").key("k")).id];
    for version in 1..40 {
        world.clock.advance("10ms".parse().unwrap());
        ids.push(world.add(text(&format!("version {version}")).key("k")).id);
    }
    let last = *ids.last().unwrap();
    for id in &ids {
        assert_eq!(world.ns.resolve(*id).unwrap(), ChainEnd::Visible(last));
    }
    // Half of the chain goes, and still leads to its end.
    world.set(1_300);
    let report = run(&world, Pass::Superseded);
    assert!(report.changed > 10 && report.changed < 39, "{report:?}");
    for id in &ids {
        assert_eq!(world.ns.resolve(*id).unwrap(), ChainEnd::Visible(last));
    }
    world.forget_id(last);
    assert!(matches!(world.ns.resolve(ids[0]).unwrap(), ChainEnd::Gone(stone) if stone.id == last));
    assert!(world.ns.resolve("nobody").is_err());
}

#[test]
fn a_memory_that_nothing_replaced_is_its_own_end() {
    let world = World::at(100);
    let old = world.add(text("a").expiry(oubliette::memory::Expiry::At(ms(500)))).id;
    assert_eq!(world.ns.resolve(old).unwrap(), ChainEnd::Visible(old));
    world.set(600);
    assert_eq!(world.ns.resolve(old).unwrap(), ChainEnd::Hidden(old));
}

/// V-307: the journal as a feed, page by page, without content.
#[test]
fn v307_changes_are_read_in_order() {
    let world = World::at(100);
    let ids: Vec<MemoryId> = [4, 7, 9]
        .map(|apps| {
            let draft = text(&format!("Gateway status: {apps} apps pending")).kind(Kind::Profile);
            world.add(draft.tag("secret").metadata(serde_json::json!({ "who": "ann" }))).id
        })
        .to_vec();
    world.ns.update(ids[0], Patch::new().importance(0.9)).unwrap();
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    world.forget_id(ids[0]);
    let all = world.ns.changes(0, 1_000).unwrap();
    let ops: Vec<Op> = all.changes.iter().map(|change| change.op).collect();
    assert_eq!(ops[..5], [Op::Insert, Op::Insert, Op::Insert, Op::Update, Op::Merge]);
    assert!(ops.contains(&Op::Remove));
    assert_eq!(all.changes[3].fields, ["importance"]);
    assert_eq!(BTreeSet::from_iter(&all.changes[4].members), BTreeSet::from_iter(&ids[1..]));
    assert!(all.changes.is_sorted_by(|a, b| a.seq < b.seq));
    let shown = serde_json::to_string(&all).unwrap();
    for content in ["Gateway", "secret", "ann", "0.9"] {
        assert!(!shown.contains(content), "{content} in {shown}");
    }
    // Page by page they are the same, and the last cursor waits for what comes.
    let (mut paged, mut since) = (Vec::new(), 0);
    loop {
        let page = world.ns.changes(since, 2).unwrap();
        since = page.next;
        if page.changes.is_empty() {
            break;
        }
        paged.extend(page.changes);
    }
    assert_eq!((paged, since), (all.changes, all.next));
    world.db.namespace("other").unwrap().add("elsewhere").unwrap();
    assert!(world.ns.changes(since, 10).unwrap().changes.is_empty());
    let id = world.add(text("one more")).id;
    let more = world.ns.changes(since, 10).unwrap();
    assert_eq!((more.changes.len(), more.changes[0].id), (1, Some(id)));
    for (since, limit) in [(more.next + 1, 10), (u64::MAX, 10), (0, 0), (0, 10_001)] {
        assert_eq!(world.ns.changes(since, limit).unwrap_err().kind(), ErrorKind::Invalid);
    }
    let empty = world.db.namespace("nobody").unwrap().changes(0, 10).unwrap();
    assert_eq!((empty.changes.len(), empty.next), (0, more.next));
}

/// V-307, the rest: what is too old for the journal goes, and a cursor behind it says so.
#[test]
fn v307_a_cursor_behind_the_journal_is_too_old() {
    let world = World::at(100);
    world.db.set_policy("undo.horizon = \"1s\"\njournal.max_age = \"10s\"", Syntax::Toml).unwrap();
    let first = world.add(text("first").key("k")).id;
    world.add(text("second").key("k"));
    assert_eq!(counts(&run(&world, Pass::Retention)), (0, 0, 0));
    world.set(5_000);
    let middle = world.ns.changes(0, 100).unwrap().next;
    let third = world.add(text("third")).id;
    world.set(10_101);
    let report = run(&world, Pass::Retention);
    assert!(report.changed >= 3 && report.changed == report.planned, "{report:?}");
    assert_eq!(counts(&run(&world, Pass::Retention)), (0, 0, 0));
    let why = world.ns.changes(0, 100).unwrap_err();
    assert!(matches!(why, Error::CursorTooOld { oldest } if oldest == middle), "{why:?} and {middle}");
    let left = world.ns.changes(middle, 100).unwrap();
    assert_eq!(left.changes[0].id, Some(third));
    // What the journal told is still told by the rows themselves.
    assert!(world.ns.explain(first).unwrap().replaced_by.is_some());
    assert_eq!(world.ns.history("k").unwrap().versions.len(), 2);
}

#[test]
fn the_journal_keeps_a_number_of_rows() {
    let world = World::at(100);
    world.db.set_policy("undo.horizon = \"1s\"\njournal.max_rows = 4", Syntax::Toml).unwrap();
    for number in 0..10 {
        world.add(text(&format!("number {number}")));
    }
    assert_eq!(counts(&run(&world, Pass::Retention)), (0, 0, 0), "they are younger than the undo horizon");
    world.set(1_101);
    let report = run(&world, Pass::Retention);
    assert!(report.changed >= 6, "{report:?}");
    let oldest = match world.ns.changes(0, 100).unwrap_err() {
        Error::CursorTooOld { oldest } => oldest,
        other => panic!("{other:?}"),
    };
    assert_eq!(world.ns.changes(oldest, 100).unwrap().changes.len(), 4);
    // A file of few rows loses nothing, and a copy keeps where the journal begins.
    world.db.compact().unwrap();
    assert!(world.ns.changes(oldest - 1, 100).is_err() && world.ns.changes(oldest, 100).is_ok());
}

/// An undo that was stopped half-way can go on, however late.
#[test]
fn a_run_in_time_keeps_its_journal() {
    let world = World::at(100);
    world.db.set_policy("undo.horizon = \"20s\"\njournal.max_age = \"1s\"", Syntax::Toml).unwrap();
    for apps in [4, 7] {
        world.add(text(&format!("Gateway status: {apps} apps pending")).kind(Kind::Profile));
    }
    let collapse = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    world.set(19_000);
    assert_eq!(run(&world, Pass::Retention).changed, 0, "the undo horizon comes first");
    assert_eq!(world.ns.undo(collapse.run.unwrap()).unwrap().restored, 1);
}

/// Plans of summaries are kept as long as the journal (GC-40, MODEL-52). What they made stays, and says from what it was made.
#[test]
fn plans_of_summaries_that_are_over_go() {
    let world = World::new();
    world.db.set_policy("undo.horizon = \"1d\"\njournal.max_age = \"10d\"", Syntax::Toml).unwrap();
    let ids = ["Ann: The boiler broke.", "Bob: The plumber asks for 480 euros."].map(|said| {
        let text = format!("{said} That is how it was, and so it will be for all of us. What should we do?");
        world.add(text_of(&text).created_at(world.ago("20d"))).id
    });
    let done = world.ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap();
    assert_eq!(done.sources, 2);
    let summary = world.live()[0];
    let made = world.ns.gc_plans().unwrap().len();
    world.advance("9d");
    run(&world, Pass::Retention);
    assert_eq!(world.ns.gc_plans().unwrap().len(), made);
    world.advance("3d");
    let last = world.ns.gc_plan(&GcOptions::default()).unwrap().plan_id;
    run(&world, Pass::Retention);
    let left: Vec<_> = world.ns.gc_plans().unwrap().into_iter().map(|plan| plan.plan_id).collect();
    assert_eq!(left, [last]);
    let sources: BTreeSet<MemoryId> =
        world.ns.expand(summary).unwrap().sources.into_iter().map(|(id, _)| id).collect();
    assert_eq!(sources, BTreeSet::from(ids));
    world.advance("90d");
    run(&world, Pass::Retention);
    assert_eq!(world.ns.gc_plans().unwrap().len(), 1, "the last one tells a sweeper when it planned");
    world.check();
}

fn text_of(said: &str) -> Draft {
    Draft::new(said).kind(Kind::Message).channel("home")
}
