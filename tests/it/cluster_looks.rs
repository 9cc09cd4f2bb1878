//! A sweep looks for clusters only where something has changed since a look that found nothing to do (LIFE-66).

use crate::world::{World, at, near, text};
use oubliette::embed::HashEmbedder;
use oubliette::exchange::{Import, LineReader};
use oubliette::faults::Tally;
use oubliette::maintain::{ClusterReport, MaintainOptions, Pass, RenamespaceOptions};
use oubliette::memory::{Expiry, GoalDraft};
use oubliette::policy::Syntax;
use oubliette::{Durability, Patch, Query};

const STAGE: &str = "cluster.enabled = true\nsweeper.stages = ['fold', 'cluster']\n";

/// What a sweep tells of the pass.
fn sweep(world: &World) -> ClusterReport {
    let report = world.ns.maintain_with(&MaintainOptions::live()).unwrap();
    let pass = report.passes.iter().find(|pass| pass.pass == Pass::Cluster).unwrap();
    assert!(pass.scanned == pass.report.get::<ClusterReport>().unwrap().memories_seen);
    pass.report.get::<ClusterReport>().unwrap().clone()
}

/// Sweeps until nothing is left to do; then a sweep no longer looks.
fn settle(world: &World) {
    for _ in 0..3 {
        if sweep(world).unchanged == 1 {
            return;
        }
    }
    let told = sweep(world);
    assert_eq!((told.unchanged, told.memories_seen), (1, 0), "{told:?}");
}

/// A world of four memories, two of them near, where a sweep finds nothing to do.
fn settled(policy: &str) -> World {
    let world = World::new();
    world.db.set_policy(&format!("{STAGE}{policy}"), Syntax::Toml).unwrap();
    world.add(near("a tall tree", 0.0).key("tall"));
    world.add(near("a high tree", 10.0).key("high"));
    world.add(near("a small boat", 90.0).key("boat"));
    world.add(near("a slow train", 150.0).key("train"));
    settle(&world);
    world
}

type Change = fn(&World);

#[test]
fn life_66_a_sweep_looks_again_after_each_change_that_can_matter() {
    let changes: [(&str, Change); 16] = [
        ("a memory", |world| drop(world.add(near("a big tree", 12.0)))),
        ("a repeat", |world| drop(world.add(near("a tall tree", 0.0)))),
        ("another text", |world| drop(world.ns.update("boat", Patch::new().text("a big boat")).unwrap())),
        ("another vector", |world| {
            let vector = Some(at(80.0));
            drop(world.ns.update("boat", Patch { vector, ..Patch::default() }).unwrap());
        }),
        ("a field", |world| drop(world.ns.update("boat", Patch::new().importance(0.9)).unwrap())),
        ("a pin", |world| drop(world.ns.pin("tall", true).unwrap())),
        ("another end", |world| drop(world.ns.touch(["boat"], Expiry::Never).unwrap())),
        ("a use", |world| {
            assert!(!world.ns.search(Query::vector(at(0.0)).track(true)).unwrap().hits.is_empty());
        }),
        ("a reinforcement", |world| world.ns.reinforce("boat", 1).unwrap()),
        ("one gone", |world| drop(world.forget(&["tall"]))),
        ("a goal", |world| drop(world.ns.set_goal(GoalDraft::new("grow").vector(at(5.0))).unwrap())),
        ("the policy", |world| {
            world.db.set_policy(&format!("{STAGE}cluster.cosine = 0.9"), Syntax::Toml).unwrap();
        }),
        ("an import", |world| {
            let line = &br#"{"text":"a wide tree","vector":[1,0.1,0,0]}"#[..];
            Import::default().run(&world.db, LineReader::new(line, "lines"), &mut ()).unwrap();
        }),
        ("a run undone", |world| {
            let cluster = MaintainOptions::live().passes([Pass::Cluster]);
            world.add(near("a big tree", 12.0));
            let run = world.ns.maintain_with(&cluster).unwrap().run.unwrap();
            settle(world);
            assert!(world.ns.undo(run).unwrap().restored > 0);
        }),
        ("memories of another namespace", |world| {
            let other = world.db.namespace("other").unwrap();
            other.add(near("a wide tree", 3.0)).unwrap();
            let how = RenamespaceOptions { dry_run: false, drop_keys: false };
            assert_eq!(world.db.move_namespace("other", "default", &how).unwrap().moved, 1);
        }),
        ("the file opened again", |world| {
            world.db.compact().unwrap();
        }),
    ];
    for (name, change) in changes {
        let world = settled("");
        change(&world);
        let told = sweep(&world);
        assert_eq!(told.unchanged, 0, "{name}");
        assert!(told.memories_seen >= 3, "{name}: {told:?}");
        settle(&world);
        world.check();
    }
}

#[test]
fn life_66_what_can_not_matter_makes_no_sweep_look() {
    let others: [(&str, Change); 6] = [
        ("nothing", |_| {}),
        ("a read", |world| drop(world.ns.search(Query::vector(at(0.0))).unwrap())),
        ("time", |world| world.advance("30d")),
        ("a dry run", |world| {
            let dry = MaintainOptions::default().passes([Pass::Cluster]);
            world.ns.maintain_with(&dry).unwrap();
        }),
        ("another namespace", |world| {
            let other = world.db.namespace("other").unwrap();
            other.add(near("a wide tree", 3.0)).unwrap();
        }),
        ("another key", |world| assert_eq!(world.ns.rename_key("boat", "ship").unwrap().rows, 1)),
    ];
    for (name, other) in others {
        let world = settled("");
        other(&world);
        assert_eq!(sweep(&world).unchanged, 1, "{name}");
    }
    // A call that names the pass always looks.
    let world = settled("");
    let named = MaintainOptions::live().passes([Pass::Cluster]);
    let report = world.ns.maintain_with(&named).unwrap();
    let told = report.passes[0].report.get::<ClusterReport>().unwrap();
    assert_eq!((told.unchanged, told.memories_seen, told.clusters), (0, 4, 1));
}

/// Near to others, the memory is marked when it begins. Far from all, nothing is written then, and its end is not in the order
/// of instants yet.
#[test]
fn life_66_a_memory_that_begins_or_ends_with_time_makes_a_sweep_look() {
    for degrees in [12.0, 220.0] {
        let world = settled("");
        let (begins, ends) = (world.ahead("2h"), world.ahead("5h"));
        let mut draft = near("a big tree", degrees).expiry(Expiry::At(ends));
        draft.fields.valid_from = Some(begins).into();
        let tree = world.add(draft).id;
        settle(&world);
        for (wait, seen) in [("1h", None), ("1h", Some(5)), ("1h", None), ("2h", Some(4)), ("1h", None)] {
            world.advance(wait);
            let told = sweep(&world);
            assert_eq!(told.unchanged, u64::from(seen.is_none()), "{degrees}, {wait}: {told:?}");
            assert_eq!(told.memories_seen, seen.unwrap_or(0));
            assert_eq!(world.is_live(tree), (begins..ends).contains(&world.now()));
            settle(&world);
        }
        world.check();
    }
}

/// With `cluster.prune` a use that fades frees a member without a change: a sweep looks once a day for it.
#[test]
fn life_66_members_that_stay_for_their_use_are_looked_at_once_a_day() {
    let world = settled("cluster.prune = true\nprune.cooldown_days = 3\n");
    let gone = || ["tall", "high"].into_iter().filter(|key| !world.is_live(world.row(key).id)).count();
    world.add(near("a low house", 200.0).key("low"));
    world.add(near("a flat house", 205.0).key("flat"));
    // Found by its words alone, a memory has no relevance that lasts.
    let found = world.ns.search(Query::text("house").k(2).track(true)).unwrap();
    assert_eq!(found.hits.len(), 2);
    settle(&world);
    assert_eq!(gone(), 1, "the first two were never used");
    let live = world.live().len();
    for _ in 0..3 {
        world.advance("20h");
        assert_eq!(sweep(&world).unchanged, 1);
        world.advance("4h");
        assert_eq!(sweep(&world).unchanged, 0);
    }
    for _ in 0..10 {
        world.advance("24h");
        sweep(&world);
    }
    assert_eq!(world.live().len(), live - 1, "its use has faded");
    settle(&world);
    world.advance("30d");
    assert_eq!(sweep(&world).unchanged, 1, "nothing is left that time could free");
}

/// A sweep with nothing to do reads as much of two thousand memories as of a hundred.
#[test]
fn life_66_a_sweep_with_nothing_to_do_costs_the_same_at_any_size() {
    let world = World::with(|builder| builder.durability(Durability::Batch));
    world.db.set_policy(STAGE, Syntax::Toml).unwrap();
    let mut random = 1_u64;
    let mut fill = |from: usize, to: usize| {
        for from in (from..to).step_by(100) {
            let drafts = (from..from + 100).map(|at| {
                let values = (0..32).map(|_| {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    (random >> 40) as f32 / 8_388_608.0 - 1.0
                });
                text(&format!("memory number {at}")).vector(values.collect::<Vec<f32>>())
            });
            world.ns.add_all(drafts.collect(), &Default::default()).unwrap();
        }
        settle(&world);
    };
    let cost = || {
        let before = Tally::of_thread();
        assert_eq!(sweep(&world).unchanged, 1);
        let after = Tally::of_thread();
        (after.read - before.read, after.written - before.written)
    };
    fill(0, 100);
    let small = cost();
    fill(100, 2_000);
    let large = cost();
    assert!(large.0 <= small.0 + 8 && large.1 == 0, "{small:?}, then {large:?}");
}

/// A goal that gets its vector says something else of memories, and no journal tells of it.
#[test]
fn life_66_a_goal_that_gets_its_vector_makes_a_sweep_look() {
    let mut world = World::new();
    world.db.set_policy(STAGE, Syntax::Toml).unwrap();
    world.db.use_embedder(HashEmbedder::new()).unwrap();
    for say in ["a tall tree", "a small boat", "a slow train"] {
        world.add(text(say));
    }
    world.reopen();
    world.ns.set_goal(GoalDraft::new("trees grow tall")).unwrap();
    settle(&world);
    world.db.use_embedder(HashEmbedder::new()).unwrap();
    // `embed` runs behind `cluster`, so the next sweep looks.
    sweep(&world);
    assert!(world.ns.goals().unwrap()[0].vector.is_some());
    let told = sweep(&world);
    assert_eq!((told.unchanged, told.memories_seen), (0, 3));
    settle(&world);
}
