//! The cap on short-term memories: which go, which stay, and what the report says (LIFE-4, LIFE-5, LIFE-68).

use crate::world::{World, axis, text};
use oubliette::maintain::{CapReport, MaintainOptions, Pass, PassReport, RunId};
use oubliette::memory::{Tier, TombstoneReason};
use oubliette::policy::Syntax;
use oubliette::{Draft, MemoryId, State};

fn capped(cap: i64) -> World {
    let world = World::new();
    world.db.set_policy(&format!("sweeper.short_term_cap = {cap}"), Syntax::Toml).unwrap();
    world
}

fn row(words: &str, tier: Tier, importance: f32) -> Draft {
    let mut draft = text(words).tier(tier);
    draft.fields.importance = Some(importance);
    draft
}

/// Four working memories of rising importance, and a durable one of none.
fn four(world: &World, tags: [&str; 4]) -> [MemoryId; 4] {
    world.add(row("durable", Tier::Semantic, 0.0));
    std::array::from_fn(|at| {
        let draft = row(&format!("w{at}"), Tier::Working, (at + 1) as f32 / 10.0);
        let draft = draft.vector(axis(at)).key(format!("k{at}"));
        world.add(if tags[at].is_empty() { draft } else { draft.tag(tags[at]) }).id
    })
}

fn cap(world: &World, options: MaintainOptions) -> (PassReport, CapReport, Option<RunId>) {
    let mut report = world.db.maintain_with(&options.passes([Pass::Cap])).unwrap();
    let pass = report.passes.swap_remove(0);
    let details = pass.report.get::<CapReport>().cloned().unwrap_or_default();
    (pass, details, report.run)
}

fn live(world: &World) -> (PassReport, CapReport, Option<RunId>) {
    cap(world, MaintainOptions::live())
}

fn states(world: &World, rows: &[MemoryId]) -> Vec<State> {
    rows.iter().map(|id| world.row(id).state).collect()
}

/// V-160, and undo: the two least worth keeping go to limbo, a durable memory counts and goes never.
#[test]
fn v160_the_least_worth_keeping_go() {
    let world = capped(2);
    let rows = four(&world, [""; 4]);
    let before = world.live();
    let (dry, details, _) = cap(&world, MaintainOptions::default());
    assert_eq!((dry.planned, dry.changed, details.counted, details.evicted), (2, 0, 4, 0));
    let (report, details, run) = live(&world);
    assert_eq!((report.planned, report.tombstoned, report.left), (2, 2, 0));
    assert_eq!((details.counted, details.evicted, details.cap_held_by_pins), (4, 2, 0));
    assert_eq!(states(&world, &rows), [State::Limbo, State::Limbo, State::Live, State::Live]);
    let stones = world.ns.tombstones(None, 10).unwrap().items;
    assert!(stones.iter().all(|stone| stone.reason == TombstoneReason::CapEvicted && stone.run == run));
    assert_eq!(live(&world).0.planned, 0, "as many as the policy allows");
    assert_eq!(world.ns.undo(run.unwrap()).unwrap().restored, 2);
    assert_eq!((world.live(), world.find(axis(0), 1)), (before, vec![rows[0]]));
    assert_eq!(world.row("k1").id, rows[1]);
}

/// V-161: a pinned memory counts and stays; the next ones go in its place.
#[test]
fn v161_a_pinned_memory_counts_and_stays() {
    let world = capped(2);
    let rows = four(&world, ["pinned", "", "", ""]);
    let (_, details, _) = live(&world);
    assert_eq!((details.evicted, details.protected, details.cap_held_by_pins), (2, 1, 0));
    assert_eq!(states(&world, &rows), [State::Live, State::Limbo, State::Limbo, State::Live]);
}

/// V-162: where the pinned ones alone are too many, the report says so.
#[test]
fn v162_pins_hold_the_cap() {
    let world = capped(2);
    four(&world, ["pinned", "pinned", "", "pinned"]);
    let (report, details, _) = live(&world);
    assert_eq!((report.changed, details.protected, details.cap_held_by_pins), (1, 3, 1));
    let (report, details, _) = live(&world);
    assert_eq!((report.changed, details.cap_held_by_pins), (0, 1), "it says so as long as it is so");
}

/// V-163: 0 and less is off.
#[test]
fn v163_no_cap_evicts_none() {
    for none in [0, -1] {
        let world = capped(none);
        four(&world, [""; 4]);
        let (report, details, run) = live(&world);
        assert_eq!((report.planned, details, run), (0, CapReport::default(), None));
    }
}

/// Only what a live read sees counts: not what expired, was superseded, or waits in limbo. A tier that changes counts anew.
#[test]
fn only_visible_short_term_memories_count() {
    let world = capped(2);
    let rows = four(&world, [""; 4]);
    world.forget(&["k3"]);
    assert_eq!(live(&world).1.evicted, 1);
    let patch = oubliette::Patch { fields: row("", Tier::Episodic, 0.9).fields, ..Default::default() };
    world.ns.update("durable", patch.clone()).unwrap_err();
    let durable = world.live().into_iter().find(|id| world.row(id).tier == Tier::Semantic).unwrap();
    world.ns.update(durable.to_string(), patch).unwrap();
    assert_eq!(live(&world).1.evicted, 1, "of three one is too many");
    assert_eq!(states(&world, &rows[..3]), [State::Limbo, State::Limbo, State::Live]);
    world.advance("73h");
    assert_eq!(live(&world).0.planned, 0, "the last working memory has expired");
}

/// V-302 in a tenth of its size: evictions count in the destruction budget, and the report says how many are left.
#[test]
fn v302_a_large_overflow_takes_several_sweeps() {
    let world = World::new();
    world.db.set_policy("sweeper.short_term_cap = 100\nbudget.floor = 50", Syntax::Toml).unwrap();
    let drafts = (0..1_000).map(|at| row(&format!("w{at}"), Tier::Working, 0.5)).collect();
    world.ns.add_all(drafts, &Default::default()).unwrap();
    let (report, details, _) = live(&world);
    assert_eq!((report.planned, report.changed, report.left), (900, 250, 650));
    assert!(report.budget_exhausted && details.evicted == 250);
    let (next, ..) = live(&world);
    assert_eq!((next.planned, next.changed, next.left), (650, 187, 463));
    let (rest, ..) = cap(&world, MaintainOptions { destroy_max: Some(u64::MAX), ..MaintainOptions::live() });
    assert_eq!((rest.changed, rest.left, rest.budget_exhausted), (463, 0, false));
    assert_eq!(world.live().len(), 100);
}

/// MODEL-33: a key that was taken meanwhile stays where it is, whichever pass had removed the memory.
#[test]
fn model_33_a_key_that_was_written_again_has_one_memory_after_undo() {
    for words in ["w0", "w0 anew"] {
        let world = capped(1);
        let [first, ..] = four(&world, [""; 4]);
        let (.., run) = live(&world);
        assert!(!world.is_live(first));
        world.advance("1h");
        let again = world.add(text(words).key("k0")).id;
        let undone = world.ns.undo(run.unwrap()).unwrap();
        assert!(undone.lost.len() == 1 && undone.lost[0].contains("key k0"), "{words}: {:?}", undone.lost);
        assert_eq!(world.row("k0").id, again, "{words}");
        assert!(!world.is_live(first), "{words}: its writer says something else");
        world.check();
    }
}
