//! Clusters of near memories (LIFE-42 to LIFE-45): what marks them, what goes, what a summarizer makes of them, when a sweeper
//! looks for them. The threshold of 0.92 is 23.07 degrees.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::world::{World, at, near};
use oubliette::exchange::{Export, VectorsTo};
use oubliette::gc::{InputPack, Summarizer};
use oubliette::maintain::{
    ClusterReport, MaintainOptions, Pass, PassReport, RunId, SweepReport, SweeperConfig,
};
use oubliette::memory::{Entity, GoalDraft, Link, Significance, SupersedeMode, Tier, TombstoneReason};
use oubliette::policy::Syntax;
use oubliette::report::{ChainEnd, Op};
use oubliette::{Draft, Kind, Memory, MemoryId, Result, Scope, State};
use serde_json::Value;

fn with(policy: &str) -> World {
    let world = World::new();
    world.db.set_policy(policy, Syntax::Toml).unwrap();
    world
}

fn cluster(world: &World) -> (Option<RunId>, PassReport, ClusterReport) {
    let report = world.ns.maintain_with(&MaintainOptions::live().passes([Pass::Cluster])).unwrap();
    let pass = report.passes.into_iter().next().unwrap();
    let told = pass.report.get::<ClusterReport>().unwrap().clone();
    (report.run, pass, told)
}

/// The memory that stands for the cluster of a memory, and whether the memory is that one.
fn noted(world: &World, id: MemoryId) -> (Option<MemoryId>, bool) {
    let row = world.row(id);
    (row.cluster_id, row.is_representative)
}

/// The memories of an export in every state, without what these tests leave out.
fn exported(world: &World, left_out: &[&str]) -> Vec<Value> {
    let mut lines = Vec::new();
    let export = Export { all_states: true, ..Export::new(["default".parse().unwrap()]) };
    let snapshot = world.db.snapshot().unwrap();
    export.write(&snapshot, &mut lines, "lines", VectorsTo::<std::io::Empty>::Lines).unwrap();
    let text = String::from_utf8(lines).unwrap();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let memories = all.filter(|line| line.get("text").is_some());
    let trimmed = memories.map(|mut line| {
        left_out.iter().for_each(|name| drop(line.as_object_mut().unwrap().remove(*name)));
        line
    });
    trimmed.collect()
}

#[test]
fn life_42_a_cluster_is_marked_and_the_most_important_member_stands_for_it() {
    let world = World::new();
    let tall = world.add(near("a tall tree", 0.0)).id;
    let high = world.add(near("a high tree", 20.0).importance(0.9)).id;
    let boat = world.add(near("a small boat", 90.0)).id;
    let before = exported(&world, &[]);
    // Equal MIS: the RetentionScore decides, in which importance has a part.
    let dry = MaintainOptions::default().passes([Pass::Cluster]);
    assert_eq!(world.ns.maintain_with(&dry).unwrap().passes[0].planned, 2);
    assert_eq!(noted(&world, high), (None, false), "a dry run writes nothing");
    let (run, pass, told) = cluster(&world);
    assert_eq!((told.memories_seen, told.clusters, told.members, told.marked), (3, 1, 2, 2));
    assert_eq!((pass.planned, pass.changed, pass.tombstoned), (2, 2, 0));
    assert_eq!(told.samples[0].representative_id, high);
    assert_eq!(told.samples[0].member_ids, [tall]);
    assert_eq!(noted(&world, high), (Some(high), true));
    assert_eq!(noted(&world, tall), (Some(high), false));
    assert_eq!(noted(&world, boat), (None, false));
    world.check();
    // Nothing is left to do.
    assert_eq!(cluster(&world).1.planned, 0);
    let undone = world.ns.undo(run.unwrap()).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (2, 0));
    assert_eq!(exported(&world, &[]), before);
    // A goal weighs more than what a memory is kept for.
    world.ns.set_goal(GoalDraft::new("grow").vector(at(-40.0))).unwrap();
    cluster(&world);
    assert_eq!(noted(&world, tall), (Some(tall), true));
    assert_eq!(noted(&world, high), (Some(tall), false));
    // A memory that no cluster holds any more loses the note, and a cluster of one is none.
    world.forget_id(tall);
    assert_eq!(cluster(&world).2.marked, 1);
    assert_eq!(noted(&world, high), (None, false));
    world.check();
}

#[test]
fn clusters_follow_the_rules_of_vector_duplicates() {
    let world = with("dedup.min_cluster_size = 3");
    world.add(near("a tall tree", 0.0));
    world.add(near("a high tree", 10.0));
    world.add(near("a big tree", 15.0).kind(Kind::Episode));
    assert_eq!(cluster(&world).2.clusters, 0, "two of a kind are too few");
    world.add(near("a great tree", 12.0));
    let (_, _, told) = cluster(&world);
    assert_eq!((told.clusters, told.members), (1, 3), "one of another kind is none of them");
    // A guard keeps two apart, and the report says which.
    world.db.set_policy("dedup.min_cluster_size = 2", Syntax::Toml).unwrap();
    let ports =
        [("the port is 80", 180.0), ("the port is 443", 185.0)].map(|(say, at)| world.add(near(say, at)).id);
    let (_, _, told) = cluster(&world);
    assert_eq!((told.kept_apart, told.hints.len()), (1, 1));
    assert_eq!(noted(&world, ports[0]), (None, false));
    // A partition of its own has clusters of its own.
    let alone = world.add(near("a tall tree, says the agent", 0.0).agent("a")).id;
    cluster(&world);
    assert_eq!(noted(&world, alone), (None, false));
    world.check();
}

#[test]
fn life_43_redundant_members_go_where_the_policy_says_so_and_come_back() {
    let world = with("cluster.prune = true");
    let first = world.add(near("a tall tree", 0.0).importance(1.0)).id;
    let plain = world.add(near("a high tree", 2.0)).id;
    let pinned = world.add(near("a big tree", 3.0).pinned(true)).id;
    let used = world.add(near("a great tree", 4.0).retrieval_count(9).last_retrieved(world.ago("300d"))).id;
    let cooling = world.add(near("a grand tree", 5.0).retrieval_count(1).last_retrieved(world.ago("1d"))).id;
    let shielded = world.add(near("a huge tree", 6.0).protected_until(world.ahead("1d"))).id;
    let proven = world.add(near("a vast tree", 7.0).relevance_max(0.95)).id;
    let aim = GoalDraft::new("grow").agent("gardener").vector(at(8.0));
    world.ns.set_goal(aim).unwrap();
    let aimed = world.add(near("a tree that grows", 8.0).agent_id("gardener")).id;
    // It stands for the others: it matters to a goal, and they do not.
    let (run, pass, told) = cluster(&world);
    assert_eq!(told.samples[0].representative_id, aimed);
    assert_eq!((told.redundant, told.pruned, pass.tombstoned), (2, 2, 2));
    assert_eq!((told.protected, told.in_use, told.for_goals), (1, 4, 0));
    for (id, is_live) in [
        (first, false),
        (plain, false),
        (pinned, true),
        (used, true),
        (cooling, true),
        (shielded, true),
        (proven, true),
    ] {
        assert_eq!(world.is_live(id), is_live, "{}", world.row(id).text);
    }
    let stone = world.row(plain).limbo.unwrap().tombstone.unwrap();
    assert_eq!((stone.reason, stone.replaced_by), (TombstoneReason::Pruned, Some(aimed)));
    assert_eq!(world.ns.resolve(plain).unwrap(), ChainEnd::Visible(aimed));
    let events = world.ns.history(plain.to_string()).unwrap().events;
    let why = events.iter().find(|event| event.op == Op::Retire).unwrap();
    assert!(why.evidence.signature.as_deref().unwrap().starts_with("cosine 0.99"), "{:?}", why.evidence);
    assert_eq!(noted(&world, pinned), (Some(aimed), false));
    world.check();
    let undone = world.ns.undo(run.unwrap()).unwrap();
    assert_eq!(undone.lost.len(), 0);
    assert!(world.is_live(plain) && world.is_live(first));
    world.check();
}

#[test]
fn a_member_stays_whose_representative_is_gone_or_whose_goals_change() {
    let options = MaintainOptions::live().passes([Pass::Cluster]);
    for goal in [false, true] {
        let world = with("cluster.prune = true");
        let first = world.add(near("a tall tree", 0.0).importance(1.0)).id;
        let member = world.add(near("a high tree", 2.0)).id;
        let plan = world.ns.plan(&options).unwrap();
        if goal {
            world.ns.set_goal(GoalDraft::new("grow").vector(at(2.0))).unwrap();
        } else {
            world.forget_id(first);
        }
        let report = world.ns.carry_out(&plan, &options).unwrap();
        assert_eq!((report.tombstoned, world.is_live(member)), (0, true));
        assert!(report.skipped >= 1);
        world.check();
    }
}

/// LIFE-43: the place of a representative does not pass from memory to memory, to one that does not say what the first members
/// said.
#[test]
fn life_43_what_went_has_something_near_however_often_the_scores_change() {
    let world = with("cluster.prune = true");
    let trees = [("oak", 0.0), ("elm", 15.0), ("ash", 30.0), ("fir", 45.0), ("yew", 60.0), ("box", 75.0)];
    let mut all = Vec::new();
    for (name, angle) in trees {
        // A goal ahead makes the newest ones the most important, and keeps none of the others.
        let goal = GoalDraft::new(format!("plant the {name}")).vector(at(angle + 45.0));
        let aim = world.ns.set_goal(goal).unwrap();
        for size in ["tall", "small"] {
            all.push((world.add(near(&format!("a {size} {name}"), angle)).id, angle));
        }
        cluster(&world);
        world.ns.drop_goal(aim.id).unwrap();
        world.advance("1d");
        cluster(&world);
        world.check();
    }
    let live: Vec<f64> = all.iter().filter(|(id, _)| world.is_live(*id)).map(|(_, angle)| *angle).collect();
    assert!(live.len() < all.len(), "some went");
    for (id, angle) in &all {
        // The cosine 0.92 is 23 degrees.
        assert!(live.iter().any(|other| (other - angle).abs() <= 23.0), "{}: {live:?}", world.row(*id).text);
    }
}

type Unite = fn(&[Memory]) -> Result<Draft>;

/// Does with a cluster what a function says.
struct Uniting(Unite);

impl Summarizer for Uniting {
    fn summarize(&self, _: &InputPack) -> Result<String> {
        panic!("asked for a summary")
    }

    fn consolidate(&self, memories: &[Memory]) -> Result<Draft> {
        (self.0)(memories)
    }
}

fn uniting(unite: Unite) -> Arc<dyn Summarizer> {
    Arc::new(Uniting(unite))
}

fn joined(memories: &[Memory]) -> Result<Draft> {
    let texts: Vec<&str> = memories.iter().map(|memory| memory.text.as_str()).collect();
    Ok(Draft::new(texts.join("; ")).tag("joined").kind(Kind::Profile))
}

#[test]
fn life_44_a_summarizer_puts_one_memory_in_the_place_of_a_cluster() {
    let world = World::new();
    let boat = world.add(near("a small boat", 90.0)).id;
    let tall = near("a tall tree", 0.0).key("tall").tag("plant").importance(0.8).reinforcement_count(3);
    let tall = world.add(tall.significance(Significance::Important).kind(Kind::Episode)).id;
    let entity = Entity { name: "oak".to_owned(), role: "mentioned".to_owned() };
    let mut high = near("a high tree", 10.0).kind(Kind::Episode).tag("wood").tier(Tier::Episodic);
    high.entities = Some(vec![entity.clone()]);
    high.links = Some(vec![
        Link { to: boat, relation: "beside".to_owned() },
        Link { to: tall, relation: "like".to_owned() },
    ]);
    let high = world.add(high).id;
    let pinned = world.add(near("a big tree", 5.0).kind(Kind::Episode).pinned(true)).id;
    world.advance("1h");
    let before = exported(&world, &["version"]);
    let report = world.ns.consolidate_clusters(&uniting(joined)).unwrap();
    assert_eq!((report.shown, report.created.len(), report.left), (2, 1, 0), "{:?}", report.failures);
    let row = world.row(report.created[0]);
    assert!(row.text.contains("a tall tree") && row.text.contains("a high tree"));
    assert_eq!(
        (row.kind, row.tier, row.significance),
        (Kind::Episode, Tier::Semantic, Significance::Important)
    );
    assert_eq!((row.importance, row.reinforcement_count), (0.8, 4));
    assert_eq!(row.tags, ["joined", "plant", "wood"]);
    assert_eq!(row.entities, [entity]);
    assert_eq!(row.links, [Link { to: boat, relation: "beside".to_owned() }]);
    let mut from = row.consolidated_from.clone();
    from.sort();
    assert_eq!(from, [tall, high]);
    for id in [tall, high] {
        let member = world.row(id);
        let superseded = member.superseded.unwrap();
        assert_eq!((member.state, superseded.mode), (State::Superseded, SupersedeMode::Aggregate));
        assert_eq!(superseded.by, row.id);
    }
    assert_eq!(world.row("tall").id, tall, "a key stays with what it named");
    assert!(world.is_live(pinned) && world.is_live(boat));
    world.check();
    assert_eq!(world.ns.consolidate_clusters(&uniting(joined)).unwrap().shown, 0);
    let undone = world.ns.undo(report.run.unwrap()).unwrap();
    assert_eq!(undone.lost, Vec::<String>::new());
    assert_eq!(exported(&world, &["version"]), before);
    world.check();
}

#[test]
fn a_cluster_without_a_good_answer_stays_as_it_is() {
    let world = with("promote.deadline = '2s'");
    let members = [("a tall tree", 0.0), ("a high tree", 10.0)].map(|(say, at)| world.add(near(say, at)).id);
    let before = exported(&world, &[]);
    let cases: [(Unite, &str); 4] = [
        (|_| panic!("out of words"), "panicked"),
        (|_| Ok(Draft::new(" ")), "must say something"),
        (|_| Ok(Draft::new("said").key("mine")), "names a record"),
        (
            |_| {
                std::thread::sleep(Duration::from_secs(60));
                Ok(Draft::new("late"))
            },
            "no answer within 2s",
        ),
    ];
    for (unite, why) in cases {
        let report = world.ns.consolidate_clusters(&uniting(unite)).unwrap();
        assert_eq!((report.created.len(), report.left, report.run), (0, 2, None), "{why}");
        assert!(report.failures[0].contains(why), "{:?}", report.failures);
    }
    assert_eq!(exported(&world, &[]), before);
    let told = world.ns.history(members[0].to_string()).unwrap().events;
    assert!(told.iter().all(|event| event.op != Op::Supersede));
    world.check();
}

#[test]
fn a_sweeper_looks_for_clusters_only_while_nobody_calls() {
    let world = with("cluster.enabled = true\nsweeper.stages = ['cluster']");
    world.add(near("a tall tree", 0.0));
    world.add(near("a high tree", 10.0));
    let (told, reports) = mpsc::channel();
    let on_sweep = Box::new(move |report: &SweepReport| drop(told.send(report.clone())));
    let interval = Some("1ms".parse().unwrap());
    let config = SweeperConfig { interval, on_sweep: Some(on_sweep), ..SweeperConfig::default() };
    let sweeper = world.db.sweeper(config).unwrap();
    let looked = |report: &SweepReport| report.passes.iter().any(|pass| pass.pass == Pass::Cluster);
    let next = || reports.recv_timeout(Duration::from_secs(60)).unwrap();
    for _ in 0..3 {
        assert!(!looked(&next()), "the handle was used at this very instant");
    }
    world.clock.advance("10m".parse().unwrap());
    while !looked(&next()) {}
    sweeper.stop();
    // Whoever maintains by a call does not wait, but only where the policy enables it.
    let stages = || world.ns.maintain().unwrap().passes.iter().map(|pass| pass.pass).collect::<Vec<_>>();
    assert!(stages().contains(&Pass::Cluster));
    let live = world.list_in(Scope::Shared, State::Live);
    let marked = live.iter().filter(|row| row.cluster_id.is_some());
    assert_eq!(marked.count(), 2);
    let off = with("sweeper.stages = ['cluster']");
    off.add(near("a tall tree", 0.0));
    off.add(near("a high tree", 10.0));
    let report = off.ns.maintain().unwrap();
    assert_eq!(report.passes.iter().find(|pass| pass.pass == Pass::Cluster).unwrap().planned, 0);
}
