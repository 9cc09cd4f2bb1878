//! Scores, and the pass `prune`: what it takes, what it leaves and why, what undo gives back, what a simulation tells.

use crate::world::{World, axis, text};
use oubliette::exchange::{Export, VectorsTo};
use oubliette::maintain::{
    MaintainOptions, MaintainReport, Pass, PassReport, PruneReport, PruneTarget, Scorer, Scores,
};
use oubliette::memory::{Expiry, Goal, GoalDraft, Tier, TombstoneReason};
use oubliette::policy::{Policy, Preset, Syntax};
use oubliette::report::Op;
use oubliette::{Draft, Error, Kind, Memory, MemoryId, Patch, Query, Result};

fn policy(text: &str) -> Policy {
    Policy::parse(text, Syntax::Toml).unwrap()
}

/// A world in which pruning is on, with more of the policy.
fn on(more: &str) -> World {
    let world = World::new();
    world.db.set_policy(&format!("prune.enabled = true\n{more}"), Syntax::Toml).unwrap();
    world
}

fn session(name: &str) -> Draft {
    text(name).kind(Kind::ConsolidatedSummary)
}

fn chapter(name: &str) -> Draft {
    text(name).kind(Kind::ChapterSummary)
}

/// A draft that was made of another memory.
fn of_sources(draft: Draft, source: MemoryId) -> Draft {
    Draft { sources: Some(vec![source]), ..draft }
}

/// A memory that was created so long ago.
fn old(world: &World, draft: Draft, age: &str) -> Draft {
    draft.created_at(world.ago(age))
}

/// With so many retrievals of this mean relevance, the last of them so long ago.
fn found(world: &World, draft: Draft, count: u64, mean: f64, ago: &str) -> Draft {
    draft
        .retrieval_count(count)
        .relevance_score_count(count)
        .relevance_score_sum(mean * count as f64)
        .last_retrieved(world.ago(ago))
}

fn run(world: &World, options: MaintainOptions) -> PassReport {
    let MaintainReport { mut passes, .. } = world.ns.maintain_with(&options.passes([Pass::Prune])).unwrap();
    passes.pop().unwrap()
}

fn prune(world: &World) -> PassReport {
    run(world, MaintainOptions::live())
}

fn told(report: &PassReport) -> PruneReport {
    report.report.get::<PruneReport>().unwrap().clone()
}

fn alive(world: &World, ids: &[MemoryId]) -> Vec<bool> {
    ids.iter().map(|id| world.is_live(*id)).collect()
}

fn scores(world: &World, id: MemoryId) -> Scores {
    world.ns.scores(id).unwrap().unwrap()
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-6, "{found}, not {expected}");
}

/// A vector at this cosine to the first axis, in the plane of another.
fn at(cosine: f32, other: usize) -> [f32; 4] {
    let mut vector = axis(0).map(|part| part * cosine);
    vector[other] = (1.0 - cosine * cosine).sqrt();
    vector
}

#[test]
fn v157_to_v159_scores_of_a_memory() {
    let world = World::new();
    let alone = world.add(text("alone").vector(axis(3)).agent_id("other")).id;
    let none = scores(&world, alone);
    near(none.semantic_uniqueness_score, 1.0);
    near(none.memory_importance_score, 0.3);
    assert_eq!((none.goal_relevance_score, none.memory_utility_score, none.final_score), (0.0, 0.0, 0.0));
    world.forget_id(alone);
    // n 3, sum 2.4, count 3, 4 days ago, and a goal at cosine 0.5.
    let memory = found(&world, text("memory").vector(axis(0)), 3, 0.8, "4d");
    let id = world.add(memory).id;
    world.add(text("neighbour").vector(at(0.75, 1)));
    world.ns.set_goal(GoalDraft::new("goal").vector(at(0.5, 2))).unwrap();
    let of = scores(&world, id);
    near(of.memory_utility_score, 0.914_518);
    near(of.goal_relevance_score, 0.5);
    near(of.final_score, 0.748_711);
    near(of.semantic_uniqueness_score, 0.25);
    world.ns.set_goal(GoalDraft::new("nearer").vector(at(0.8, 2))).unwrap();
    near(scores(&world, id).memory_importance_score, 0.635);
    // A goal of another agent says nothing; one that waits for its vector makes the score uncertain.
    world.ns.set_goal(GoalDraft::new("of another").agent("other").vector(axis(0))).unwrap();
    near(scores(&world, id).goal_relevance_score, 0.8);
    assert!(!scores(&world, id).goal_relevance_stale);
    world.ns.set_goal(GoalDraft::new("waits")).unwrap();
    assert!(scores(&world, id).goal_relevance_stale);
    // A weight counts before the greatest is taken, and the score is held to 1.
    world.ns.set_goal(GoalDraft::new("heavy").weight(10.0).vector(at(0.5, 2))).unwrap();
    near(scores(&world, id).goal_relevance_score, 1.0);
    // Neither a memory that is superseded nor one that is gone is a neighbour, and it has no scores.
    let gone = world.add(text("twin").vector(axis(0))).id;
    near(scores(&world, id).semantic_uniqueness_score, 0.0);
    world.forget_id(gone);
    near(scores(&world, id).semantic_uniqueness_score, 0.25);
    assert_eq!(world.ns.scores(gone).unwrap(), None);
}

#[test]
fn life_30_pruning_is_off_until_the_policy_switches_it_on() {
    let world = World::new();
    let id = world.add(old(&world, chapter("chapter"), "400d")).id;
    assert_eq!((prune(&world).planned, world.is_live(id)), (0, true));
    world.db.set_policy("prune.enabled = true", Syntax::Toml).unwrap();
    let dry = run(&world, MaintainOptions::default());
    assert_eq!((dry.planned, dry.changed, world.is_live(id)), (1, 0, true));
    let report = prune(&world);
    assert_eq!((report.changed, report.tombstoned), (1, 1));
    let of = told(&report);
    assert_eq!((of.by_age, of.by_score, of.bytes, of.pruned), (1, 0, 7, 1));
    assert_eq!(world.tombstone_of(id), TombstoneReason::Pruned);
    assert_eq!(prune(&world).planned, 0, "nothing is left to do");
}

impl World {
    fn tombstone_of(&self, id: MemoryId) -> TombstoneReason {
        self.row(id).limbo.unwrap().reason
    }
}

#[test]
fn v176_the_utility_rule_of_level_1() {
    let world = on("prune.cooldown_days = 0");
    let ids = [
        world.add(old(&world, session("never found"), "8d")).id,
        // Recency alone: 0.2 * 1 is the bound itself.
        world.add(old(&world, session("found just now").last_retrieved(world.now()), "8d")).id,
        world.add(old(&world, session("never found, young"), "6d")).id,
    ];
    near(scores(&world, ids[1]).memory_utility_score, 0.2);
    let report = prune(&world);
    assert_eq!(alive(&world, &ids), [false, true, true]);
    assert_eq!((told(&report).by_score, told(&report).young), (1, 1));
    // The journal tells each row why.
    let story = world.ns.explain(ids[0].to_string()).unwrap();
    let evidence = &story.events.last().unwrap().evidence;
    assert_eq!(evidence.signature.as_deref(), Some("utility 0.000000, below 0.2"));
    assert_eq!(evidence.score, Some(0.0));
}

#[test]
fn v177_the_utility_rule_of_level_2() {
    let world = on("prune.mode = 'mus'");
    let of =
        |name: &str, mean| world.add(old(&world, found(&world, chapter(name), 1, mean, "9000d"), "9000d")).id;
    let ids = [of("a", 0.05), of("b", 0.06)];
    assert!((scores(&world, ids[0]).memory_utility_score - 0.297_259).abs() < 1e-4);
    prune(&world);
    assert_eq!(alive(&world, &ids), [false, true]);
}

#[test]
fn v178_and_v179_the_age_rules() {
    let world = on("prune.mode = 'age'");
    let part = |name: &str, step: u64| world.add(session(name).consolidated_step(step)).id;
    let [nine, ten] = [part("nine", 91), part("ten", 90)];
    // What a summary of a chapter names as its source is consolidated at the step of the summary.
    let source = world.add(session("source")).id;
    world.add(of_sources(chapter("of the source"), source).step(80));
    let never = world.add(session("never consolidated")).id;
    let day = world.add(old(&world, chapter("30 days"), "30d")).id;
    let more = world.add(old(&world, chapter("30 days and 1 ms"), "2592000001ms")).id;
    run(&world, MaintainOptions { step: Some(100), ..MaintainOptions::live() });
    assert_eq!(
        alive(&world, &[nine, ten, source, never, day, more]),
        [true, false, false, true, true, false]
    );
    // Without steps the time since the consolidation decides.
    let stamped = world.add(session("stamped").last_consolidated_at(world.now())).id;
    world.advance("6d");
    prune(&world);
    assert!(world.is_live(stamped));
    world.advance("1d");
    prune(&world);
    assert_eq!(alive(&world, &[stamped, never]), [false, true]);
}

/// A to E with final scores of 0.1 to 0.5: so many retrievals without relevance, long ago.
fn five(world: &World) -> [MemoryId; 5] {
    // ln(1 + n) * 0.4 * 0.6 rises with n, whatever the day.
    let make = |at: u64| {
        let draft = old(world, session(&format!("row {at}")), "900d");
        let draft = draft.retrieval_count(at + 1).last_retrieved(world.ago("900d"));
        match at {
            1 => world.add(draft.last_retrieved(world.ago("3d"))).id,
            2 => world.add(draft.relevance_max(0.95)).id,
            _ => world.add(draft).id,
        }
    };
    [0, 1, 2, 3, 4].map(make)
}

#[test]
fn v180_to_v182_selection_by_the_final_score() {
    let world = World::new();
    let [a, _, _, d, e] = five(&world);
    let select =
        |count| world.ns.select_prune(&PruneTarget::new(Kind::ConsolidatedSummary, count), None).unwrap();
    assert_eq!(select(3), [a, d]);
    assert!(select(5).is_empty() && select(9).is_empty());
    assert_eq!(select(0), [a, d, e]);
    // The same as a run, which a call asks for: the policy need not switch it on.
    let target = Some(PruneTarget::new(Kind::ConsolidatedSummary, 3));
    let report = run(&world, MaintainOptions { prune: target, ..MaintainOptions::live() });
    assert_eq!((report.changed, alive(&world, &[a, d, e])), (2, vec![false, false, true]));
    // Another kind, one agent alone: no threshold, only the number counts.
    let episode = |name: &str, agent: &str| world.add(text(name).kind(Kind::Episode).agent_id(agent)).id;
    let [x, y, z] = [episode("x", "one"), episode("y", "one"), episode("z", "two")];
    let target = PruneTarget { agent: Some("one".to_owned()), ..PruneTarget::new(Kind::Episode, 1) };
    assert_eq!(world.ns.select_prune(&target, None).unwrap(), [x]);
    assert_eq!(world.ns.select_prune(&PruneTarget::new(Kind::Episode, 1), None).unwrap(), [x, y]);
    assert!(world.is_live(z));
}

#[test]
fn v254_of_equal_scores_the_unique_one_goes_last() {
    let world = on("prune.mode = 'hybrid'\nprune.target_count = 1");
    // A is at cosine 0.4 to its nearest, B at 0.6.
    let a = world.add(old(&world, session("a").vector(at(0.4, 1)), "20d")).id;
    let b = world.add(old(&world, session("b").vector(at(0.6, 2)), "20d")).id;
    world.add(text("neighbour of both").vector(axis(0)));
    near(scores(&world, a).semantic_uniqueness_score, 0.6);
    near(scores(&world, b).semantic_uniqueness_score, 0.4);
    prune(&world);
    assert_eq!(alive(&world, &[a, b]), [true, false]);
}

#[test]
fn v183_and_life_36_what_protects_a_row_from_its_score() {
    let world = on("");
    let of = |name: &str| old(&world, session(name), "20d");
    let relevant = world.add(of("relevant").relevance_max(0.95)).id;
    let at_the_bound = world.add(of("at the bound").relevance_max(0.9)).id;
    let cooling = world.add(of("cooling").last_retrieved(world.ago("6d"))).id;
    let cooled = world.add(of("cooled").last_retrieved(world.ago("7d"))).id;
    let shielded = world.add(of("shielded").protected_until(world.ahead("1h"))).id;
    let pinned = world.add(of("pinned").pinned(true)).id;
    // The shield does not hold against age; the cooldown does.
    let aged = |name: &str| old(&world, chapter(name), "40d");
    let shielded_old = world.add(aged("shielded and old").protected_until(world.ahead("1h"))).id;
    let cooling_old = world.add(aged("cooling and old").last_retrieved(world.ago("1d"))).id;
    let report = told(&prune(&world));
    let ids = [relevant, at_the_bound, cooling, cooled, shielded, pinned, shielded_old, cooling_old];
    assert_eq!(alive(&world, &ids), [true, false, true, false, true, true, false, true]);
    assert_eq!((report.earned, report.cooling, report.protected), (2, 2, 1));
}

#[test]
fn life_37_a_very_good_answer_and_many_retrievals_protect_for_a_while() {
    let world = World::new();
    world.db.set_policy("protect.retrievals = 3", Syntax::Toml).unwrap();
    let good = world.add(text("good").vector(axis(0))).id;
    let often = world.add(text("often").vector(axis(1))).id;
    let until = |id: MemoryId| {
        world.db.flush_access().unwrap();
        world.row(id).protected_until
    };
    let find = |vector| world.ns.search(Query::vector(vector).k(1).track(true).step(7)).unwrap().hits[0].id;
    assert_eq!((find(axis(0)), until(good)), (good, Some(world.ahead("30d"))));
    assert_eq!(world.row(good).last_retrieved_step, Some(7));
    for count in 1..=3 {
        assert_eq!(find([0.0, 0.8, 0.6, 0.0]), often);
        assert_eq!(until(often), (count == 3).then(|| world.ahead("30d")));
    }
}

/// Nothing but that instant is kept of goals that are dropped.
#[test]
fn life_38_a_drop_is_a_change_of_the_goals_of_its_agent() {
    let mut world = on("prune.cooldown_days = 0\nprune.stability_gain = 1.0");
    let drop = |world: &World, agent: &str| {
        let goal = world.ns.set_goal(GoalDraft::new("goal").agent(agent)).unwrap();
        world.ns.drop_goal(goal.id).unwrap();
    };
    drop(&world, "one");
    drop(&world, "two");
    world.advance("30d");
    drop(&world, "two");
    world.db.compact().unwrap();
    world.reopen();
    // Their scores are the bound itself, which stable goals double.
    let ids = ["one", "two", "three"].map(|agent| {
        let draft = session(&format!("of {agent}")).agent_id(agent).last_retrieved(world.now());
        world.add(old(&world, draft, "8d")).id
    });
    prune(&world);
    assert_eq!(alive(&world, &ids), [false, true, true]);
}

#[test]
fn life_39_goals_keep_a_row_in_the_hybrid_mode_and_stale_ones_block_it() {
    let world = on("prune.mode = 'hybrid'");
    let of = |name: &str, vector| world.add(old(&world, chapter(name).vector(vector), "90d")).id;
    let (near_goal, far) = (of("near the goal", axis(0)), of("far", axis(1)));
    let goal = world.ns.set_goal(GoalDraft::new("goal").vector(at(0.8, 2))).unwrap();
    let waits = world.ns.set_goal(GoalDraft::new("without a vector")).unwrap();
    assert_eq!((prune(&world).planned, told(&run(&world, MaintainOptions::default())).stale_goals), (0, 2));
    world.ns.drop_goal(waits.id).unwrap();
    let options = MaintainOptions::live().passes([Pass::Prune]);
    let plan = world.ns.plan(&options).unwrap();
    assert_eq!(told(&plan.report()).for_goals, 1);
    // A goal that was set since the plan was made keeps what the plan would remove.
    let late = world.ns.set_goal(GoalDraft::new("late").vector(axis(1))).unwrap();
    let report = world.ns.carry_out(&plan, &options).unwrap();
    assert_eq!((report.skipped, alive(&world, &[near_goal, far])), (1, vec![true, true]));
    world.ns.drop_goal(late.id).unwrap();
    // The same of the first goal of an agent at all.
    let of_agent = old(&world, chapter("of an agent").agent_id("builder").vector(axis(3)), "90d");
    let of_agent = world.add(of_agent).id;
    let target =
        PruneTarget { agent: Some("builder".to_owned()), ..PruneTarget::new(Kind::ChapterSummary, 0) };
    let targeted = MaintainOptions { prune: Some(target), ..options.clone() };
    let plan = world.ns.plan(&targeted).unwrap();
    let first = world.ns.set_goal(GoalDraft::new("first").agent("builder").vector(axis(3))).unwrap();
    assert_eq!(world.ns.carry_out(&plan, &targeted).unwrap().skipped, 1);
    world.ns.drop_goal(first.id).unwrap();
    assert_eq!(world.ns.carry_out(&world.ns.plan(&targeted).unwrap(), &targeted).unwrap().changed, 1);
    assert!(!world.is_live(of_agent));
    // A goal of another agent changes nothing for these rows.
    let plan = world.ns.plan(&options).unwrap();
    world.ns.set_goal(GoalDraft::new("of another").agent("other").vector(axis(1))).unwrap();
    assert_eq!(world.ns.carry_out(&plan, &options).unwrap().changed, 1);
    assert_eq!(alive(&world, &[near_goal, far]), [true, false]);
    world.ns.drop_goal(goal.id).unwrap();
    prune(&world);
    assert!(!world.is_live(near_goal));
}

#[test]
fn life_59_a_use_or_a_change_since_the_plan_keeps_a_row() {
    let world = on("");
    let of = |name: &str, vector| world.add(old(&world, session(name).vector(vector), "20d")).id;
    let ids = [of("used", axis(0)), of("changed", axis(1)), of("neither", axis(2))];
    let options = MaintainOptions::live().passes([Pass::Prune]);
    let plan = world.ns.plan(&options).unwrap();
    world.ns.search(Query::vector(axis(0)).k(1).track(true)).unwrap();
    world.db.flush_access().unwrap();
    world.ns.update(ids[1], Patch::new().importance(0.9)).unwrap();
    let report = world.ns.carry_out(&plan, &options).unwrap();
    assert_eq!((report.changed, report.skipped), (1, 2));
    assert_eq!(alive(&world, &ids), [true, true, false]);
}

#[test]
fn life_35_scores_decide_only_from_a_size_on_and_leave_the_target() {
    let world = on("prune.max_rows = 4\nprune.target_count = 2");
    let make = |number: u64| world.add(old(&world, session(&format!("row {number}")), "20d")).id;
    let ids = [1, 2, 3].map(make);
    assert_eq!(prune(&world).planned, 0, "three rows are too few");
    let good = world.add(old(&world, found(&world, session("good"), 9, 0.5, "10d"), "20d")).id;
    // Four rows: the lowest two go, and one above its threshold is never among them.
    prune(&world);
    assert_eq!(alive(&world, &ids), [false, false, true]);
    assert!(world.is_live(good));
    let world = on("prune.max_bytes = 12");
    let id = world.add(old(&world, session("eleven byte"), "20d")).id;
    assert_eq!(prune(&world).planned, 0);
    world.add(old(&world, session("x"), "1d"));
    prune(&world);
    assert!(!world.is_live(id));
}

#[test]
fn life_32_a_level_is_looked_at_only_every_so_many_steps() {
    let world = on("prune.l1.every_steps = 10\nprune.mode = 'age'");
    let part = |name: &str| world.add(session(name).consolidated_step(1)).id;
    let at_step = |step| run(&world, MaintainOptions { step: Some(step), ..MaintainOptions::live() }).changed;
    part("a");
    assert_eq!(at_step(100), 1);
    part("b");
    assert_eq!((at_step(105), at_step(109)), (0, 0));
    assert_eq!(at_step(110), 1);
    part("c");
    assert_eq!(at_step(5), 0, "step 5 is 4 after the consolidation");
    assert_eq!(prune(&world).changed, 0, "without a step nothing says how long ago it was");
    assert_eq!(at_step(130), 1);
}

fn exported(world: &World) -> String {
    let mut lines = Vec::new();
    let export = Export::new([world.ns.name().clone()]);
    let snapshot = world.db.snapshot().unwrap();
    export.write(&snapshot, &mut lines, "lines", VectorsTo::<std::io::Empty>::Lines).unwrap();
    // A memory that comes back has changed twice, and is as it was otherwise.
    let without_version = |line: &str| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("version");
        line.to_string()
    };
    String::from_utf8(lines).unwrap().lines().map(without_version).collect::<Vec<_>>().join("\n")
}

#[test]
fn life_63_undo_gives_back_what_was_pruned() {
    let world = on("");
    let source = world.add(old(&world, session("session").key("s").tag("t").vector(axis(0)), "90d")).id;
    world.add(old(&world, of_sources(chapter("chapter"), source).vector(axis(1)), "90d"));
    world.add(text("another"));
    let before = exported(&world);
    let report = prune(&world);
    assert_eq!(report.changed, 2);
    assert_ne!(exported(&world), before);
    world.check();
    let undone = world.ns.undo(report.run.unwrap()).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (2, 0));
    assert_eq!(exported(&world), before);
    world.check();
}

#[test]
fn the_destruction_budget_takes_several_runs() {
    let world = on("budget.floor = 2\nbudget.share = 0");
    for number in 0..5 {
        world.add(old(&world, chapter(&format!("chapter {number}")), "90d"));
    }
    let report = prune(&world);
    assert_eq!((report.planned, report.changed, report.left, report.budget_exhausted), (5, 2, 3, true));
    assert_eq!([prune(&world).changed, prune(&world).changed, prune(&world).changed], [2, 1, 0]);
}

#[test]
fn life_52_several_policies_are_compared_without_a_write() {
    let world = World::new();
    let of = |name: &str, vector, age| world.add(old(&world, chapter(name).vector(vector), age)).id;
    of("long ago", axis(0), "90d");
    of("lately", axis(1), "20d");
    let pinned = world.add(old(&world, chapter("pinned").vector(axis(2)).pinned(true), "90d")).id;
    let probes = [axis(0), axis(1), axis(2)].map(|vector| Query::vector(vector).k(1));
    let commit = world.db.stats().unwrap().commit;
    let policies = [
        policy("prune.mode = 'age'"),
        policy("prune.mode = 'both'"),
        policy("prune.l2.mus = 0\nprune.mode = 'mus'"),
    ];
    let all = world.ns.compare_pruning(&policies, &probes, None).unwrap();
    let told: Vec<_> =
        all.iter().map(|one| (one.rows, one.bytes, one.by_age, one.by_score, one.hits_after)).collect();
    assert_eq!(told, [(1, 8, 1, 0, 2), (2, 14, 1, 1, 1), (0, 0, 0, 0, 3)]);
    assert_eq!((all[0].probes, all[0].hits_before, all[2].recall), (3, 3, Some(1.0)));
    near(all[0].recall.unwrap(), 2.0 / 3.0);
    assert_eq!(world.db.stats().unwrap().commit, commit, "nothing is written");
    // The same that the pass would do.
    world.db.set_policy("prune.enabled = true", Syntax::Toml).unwrap();
    assert_eq!((prune(&world).changed, world.live()), (2, vec![pinned]));
    let none = world.ns.compare_pruning(&[Policy::default()], &[], None).unwrap();
    assert_eq!((none[0].recall, none[0].probes), (None, 0));
    let mut broken = Policy::default();
    broken.prune.protect_goal = 2.0;
    assert!(world.ns.compare_pruning(&[broken], &[], None).is_err());
}

#[test]
fn the_table_of_levels_follows_kind_and_visibility() {
    let world = on("");
    let kept = world.add(old(&world, session("session"), "20d").expiry(Expiry::At(world.ahead("1d")))).id;
    world.check();
    world.advance("2d");
    assert_eq!(prune(&world).planned, 0, "what has ended is no matter of pruning");
    assert!(!world.is_live(kept));
    let id = world.add(old(&world, chapter("chapter"), "90d")).id;
    world.ns.update(id, Patch::new().kind(Kind::Knowledge)).unwrap();
    assert_eq!((prune(&world).planned, world.is_live(id)), (0, true));
    world.db.compact().unwrap();
    world.db.reindex().unwrap();
    world.check();
}

/// A hook that gives what it is told to, or does what it should not.
#[derive(Clone, Copy)]
enum Hook {
    Gives(f64),
    Fails,
    Panics,
    Hangs,
}

impl Hook {
    fn answer(self) -> Result<f64> {
        match self {
            Hook::Gives(score) => Ok(score),
            Hook::Fails => Err(Error::Embedding { embedder: "hook".to_owned(), why: "no".to_owned() }),
            Hook::Panics => panic!("the hook panics"),
            Hook::Hangs => {
                std::thread::sleep(std::time::Duration::from_secs(20));
                Ok(0.5)
            }
        }
    }
}

impl Scorer for Hook {
    fn importance(&self, _: &Memory) -> Result<f64> {
        self.answer()
    }

    fn relevance(&self, memory: &Memory, goals: &[Goal]) -> Result<f64> {
        assert!(!goals.is_empty() && !memory.text.is_empty());
        self.answer()
    }
}

/// A world in the hybrid mode with two old chapters and a goal that is near to the first.
fn with_goal() -> (World, [MemoryId; 2]) {
    let world = on("prune.mode = 'hybrid'");
    let of = |name: &str, vector| world.add(old(&world, chapter(name).vector(vector), "20d")).id;
    let ids = [of("near the goal", axis(0)), of("far from it", axis(1))];
    world.ns.set_goal(GoalDraft::new("goal").vector(axis(0))).unwrap();
    (world, ids)
}

/// What the journal tells of answers that did not count.
fn unscored(world: &World, ids: &[MemoryId]) -> Vec<String> {
    let events = |id: &MemoryId| world.ns.history(id.to_string()).unwrap().events;
    let rows = ids.iter().flat_map(events).filter(|row| row.op == Op::Unscored);
    rows.map(|row| row.evidence.signature.unwrap()).collect()
}

#[test]
fn life_70_a_hook_takes_the_place_of_the_cosine() {
    let (world, ids) = with_goal();
    world.db.use_scorer(Hook::Gives(0.1), "5s".parse().unwrap()).unwrap();
    assert_eq!(scores(&world, ids[0]).goal_relevance_score, 0.1);
    let report = prune(&world);
    assert_eq!((report.changed, unscored(&world, &ids).len()), (2, 0), "the built-in formula would keep one");
    let story = world.ns.explain(ids[0].to_string()).unwrap();
    let told = story.events.last().unwrap().evidence.signature.clone().unwrap();
    assert_eq!(told, "final score 0.040000 (0.400000 by the built-in formula), below 0.3");
    world.ns.undo(report.run.unwrap()).unwrap();
    world.db.detach_scorer();
    assert_eq!((prune(&world).changed, alive(&world, &ids)), (1, vec![true, false]));
}

#[test]
fn life_70_a_hook_that_fails_panics_hangs_or_answers_nonsense_is_journaled_and_changes_nothing() {
    for (hook, why, rows) in [
        (Hook::Gives(f64::NAN), "out of range", 2),
        (Hook::Gives(1.5), "out of range", 2),
        (Hook::Gives(-0.1), "out of range", 2),
        (Hook::Gives(f64::INFINITY), "out of range", 2),
        (Hook::Fails, "failed", 2),
        (Hook::Panics, "panicked", 2),
        // One that hangs is asked once.
        (Hook::Hangs, "late", 1),
    ] {
        let (world, ids) = with_goal();
        // Only the one that hangs is to be late, however busy the machine is.
        let deadline = if why == "late" { "50ms" } else { "14s" };
        world.db.use_scorer(hook, deadline.parse().unwrap()).unwrap();
        let begun = std::time::Instant::now();
        let report = prune(&world);
        assert_eq!((report.changed, alive(&world, &ids)), (1, vec![true, false]), "{why}");
        assert!(begun.elapsed().as_secs() < 15, "nobody waits for a hook that hangs");
        assert_eq!(unscored(&world, &ids), vec![format!("relevance: {why}"); rows]);
        assert_eq!(scores(&world, ids[0]).goal_relevance_score, 1.0);
        world.check();
    }
}

#[test]
fn life_70_a_hook_says_what_the_cap_takes() {
    struct ByLength;
    impl Scorer for ByLength {
        fn importance(&self, memory: &Memory) -> Result<f64> {
            Ok(if memory.text.len() > 4 { 1.0 } else { 0.0 })
        }

        fn relevance(&self, _: &Memory, _: &[Goal]) -> Result<f64> {
            Ok(0.0)
        }
    }
    let world = World::new();
    world.db.set_policy("sweeper.short_term_cap = 1", Syntax::Toml).unwrap();
    let of = |name: &str, importance| world.add(text(name).tier(Tier::Working).importance(importance)).id;
    let ids = [of("long text", 0.1), of("text", 0.9)];
    world.db.use_scorer(ByLength, "5s".parse().unwrap()).unwrap();
    world.ns.maintain_with(&MaintainOptions::live().passes([Pass::Cap])).unwrap();
    assert_eq!(alive(&world, &ids), [true, false]);
}

fn preset(preset: Preset, step: Option<u64>) -> MaintainOptions {
    MaintainOptions { preset: Some(preset), step, ..MaintainOptions::live() }
}

#[test]
fn life_41_the_lowest_share_of_a_level_goes() {
    let world = World::new();
    let at = |name: &str, retrievals: u64| {
        let draft = old(&world, session(name), "30d");
        world.add(found(&world, draft, retrievals, 0.5, "20d")).id
    };
    let ids: Vec<MemoryId> = (1..=10).map(|n| at(&format!("session {n}"), n)).collect();
    let pinned = world.add(old(&world, session("pinned"), "30d").tag("pinned")).id;
    assert_eq!(prune(&world).planned, 0, "the policy has it off");
    let report = run(&world, preset(Preset::BottomShare, None));
    // 30 % of eleven are three, however high their scores are.
    assert_eq!((report.tombstoned, told(&report).by_score), (3, 3));
    assert_eq!(alive(&world, &ids[..4]), [false, false, false, true]);
    assert!(world.is_live(pinned));
    world.check();
}

#[test]
fn life_41_steps_of_the_host_end_summaries() {
    let world = World::new();
    let born = |draft: Draft| world.add(draft.step(100)).id;
    let (part, whole) = (born(session("session")), born(chapter("chapter")));
    // A long time does not matter where steps decide alone, and neither does a score.
    let unstepped = world.add(old(&world, chapter("without a step"), "400d")).id;
    let early = |step| run(&world, preset(Preset::StepsEarly, Some(step))).tombstoned;
    assert_eq!([early(149), early(200)], [0, 1]);
    assert_eq!(alive(&world, &[part, whole, unstepped]), [false, true, true]);
    assert_eq!(run(&world, preset(Preset::StepsLate, Some(1_099))).tombstoned, 0);
    assert_eq!(run(&world, preset(Preset::StepsLate, Some(1_300))).tombstoned, 1);
    assert_eq!(alive(&world, &[whole, unstepped]), [false, true]);
    world.check();
}

#[test]
fn life_41_presets_are_compared_like_any_policy() {
    let world = World::new();
    for n in 0..10 {
        let draft = old(&world, chapter(&format!("chapter {n}")), "20d");
        world.add(found(&world, draft, 3, 0.9, "15d"));
    }
    let of = |preset| Policy::default().with_preset(preset).unwrap();
    let all: Vec<Policy> = Preset::ALL.iter().map(|preset| of(*preset)).collect();
    let rows = world.ns.compare_pruning(&all, &[], None).unwrap();
    let by_name: Vec<(&str, u64)> =
        Preset::ALL.iter().map(|preset| preset.as_str()).zip(rows.iter().map(|told| told.rows)).collect();
    let expected = [
        ("l1_low_l2_medium", 0),
        ("steps_early", 0),
        ("steps_late", 0),
        ("bottom_share", 1),
        ("redundancy", 0),
    ];
    assert_eq!(by_name, expected);
}
