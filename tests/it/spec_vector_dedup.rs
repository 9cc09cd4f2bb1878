//! Near vectors, in the write ladder and in the pass `vector-duplicates`, by the vectors of the specification (DEDUP-42 to
//! DEDUP-48, DEDUP-54, DEDUP-55 step 6). The default threshold is 10.12 degrees.

use crate::world::{World, holders, near};
use oubliette::maintain::{DedupReport, MaintainOptions, Pass, PassReport};
use oubliette::memory::Tier;
use oubliette::policy::{Linkage, Metric, Policy, VectorMatch};
use oubliette::{Builder, Decision, Kind, MemoryId, Patch, State, WriteOptions};
use serde_json::json;

fn with(builder: Builder, change: impl FnOnce(&mut Policy)) -> Builder {
    let mut policy = Policy::default();
    change(&mut policy);
    builder.policy(policy)
}

fn reinforcing(builder: Builder) -> Builder {
    with(builder, |policy| policy.write.vector_match = VectorMatch::Reinforce)
}

#[test]
fn v244_near_texts_are_stored_with_a_hint_by_default() {
    let world = World::new();
    let first = world.add(near("the gateway answers late", 0.0));
    let second = world.add(near("the gateway responds late", 8.0));
    assert_eq!((first.decision, second.decision), (Decision::Stored, Decision::Stored));
    let [hint] = &second.hints[..] else { panic!("{:?}", second.hints) };
    assert_eq!((hint.id, hint.why, hint.guard), (first.id, "near vector", None));
    assert!((hint.score.unwrap() - 0.990_268).abs() < 1e-5);
    let far = world.add(near("something else", 60.0));
    assert!(far.hints.is_empty(), "below write.hint_cosine");
    assert_eq!(world.live().len(), 3);
}

#[test]
fn near_drafts_of_one_batch_see_each_other() {
    let world = World::new();
    let drafts = (0..6).map(|n| near(&format!("report {n}"), f64::from(n))).collect();
    let all = world.ns.add_all(drafts, &WriteOptions::default()).unwrap();
    for (n, outcome) in all.iter().enumerate() {
        let earlier: Vec<_> = all[..n].iter().rev().map(|other| other.id).collect();
        assert_eq!(
            outcome.hints.iter().map(|hint| hint.id).collect::<Vec<_>>(),
            earlier,
            "the nearest first"
        );
    }
    let world = World::with(reinforcing);
    let drafts = vec![near("the gateway answers late", 0.0), near("the gateway responds late", 8.0)];
    let all = world.ns.add_all(drafts, &WriteOptions::default()).unwrap();
    assert_eq!(all[1].decision, Decision::Reinforced);
    assert_eq!(all[1].id, all[0].id);
}

#[test]
fn a_near_vector_reinforces_where_the_policy_says_so() {
    let world = World::with(reinforcing);
    let first = world.add(near("the gateway answers late", 0.0).key("a").tier(Tier::Episodic));
    let second = world.add(near("the gateway responds late", 8.0).key("b").tag("slow"));
    assert_eq!((second.decision, second.id), (Decision::Reinforced, first.id));
    assert_eq!(second.rule.0, "DEDUP-55.6");
    assert!((second.evidence.score.unwrap() - 0.990_268).abs() < 1e-5);
    let row = world.row(first.id);
    assert_eq!(row.text, "the gateway answers late");
    assert_eq!(holders(&row), [(Some("a"), 1, 1, vec![]), (Some("b"), 1, 1, vec!["slow"])]);
    assert_eq!(row.holders[1].text.as_deref(), Some("the gateway responds late"), "its own raw text");
    assert_eq!(row.tier, Tier::Semantic, "the more durable tier");
    assert_eq!(row.expires_at, None, "the later expiry");
    let far = world.add(near("the gateway reacts late", 11.0));
    assert_eq!((far.decision, far.hints.len()), (Decision::Stored, 1));
}

#[test]
fn a_guard_keeps_near_vectors_apart_and_is_journaled() {
    let world = World::with(reinforcing);
    let first = world.add(near("the port is 80", 0.0));
    let second = world.add(near("the port is 443", 1.0));
    assert_eq!(second.decision, Decision::Stored);
    assert_eq!(second.hints[0].guard, Some("digits"));
    let events = world.ns.history(second.id.to_string()).unwrap().events;
    let evidence = &events.iter().find(|row| row.op == oubliette::report::Op::Insert).unwrap().evidence;
    assert_eq!(evidence.members, [first.id]);
    assert_eq!(evidence.signature.as_deref(), Some("guard digits"));
    assert!(evidence.score.unwrap() > 0.99);
}

#[test]
fn what_differs_in_kind_validity_or_identity_is_never_absorbed() {
    let world = World::with(reinforcing);
    let first = world.add(near("the gateway answers late", 0.0));
    let say = "the gateway responds late";
    for draft in [
        near(say, 1.0).kind(Kind::Skill),
        {
            let mut dated = near(say, 2.0);
            dated.fields.valid_from = Some(world.ago("1d")).into();
            dated
        },
        near(say, 3.0).metadata(json!({"user_id": "ann"})),
    ] {
        let stored = world.add(draft);
        assert_eq!(stored.decision, Decision::Stored);
        assert!(stored.hints.iter().any(|hint| hint.id == first.id), "a hint");
    }
    let kept = World::with(|builder| {
        with(builder, |policy| {
            policy.write.vector_match = VectorMatch::Reinforce;
            policy.dedup.exempt_kinds = vec!["knowledge".to_owned()];
        })
    });
    kept.add(near("the gateway answers late", 0.0));
    assert_eq!(kept.add(near(say, 1.0)).decision, Decision::Stored, "an exempt kind");
}

#[test]
fn rows_that_are_not_current_and_steps_that_are_off_find_nothing() {
    let world = World::new();
    let old = world.add(near("the gateway answers late", 0.0));
    world.forget(&[&old.id.to_string()]);
    assert!(world.add(near("the gateway responds late", 5.0)).hints.is_empty());
    let off = World::with(|builder| with(builder, |policy| policy.write.vector_match = VectorMatch::Off));
    off.add(near("the gateway answers late", 0.0));
    assert!(off.add(near("the gateway responds late", 5.0)).hints.is_empty());
    let agents = World::new();
    agents.add(near("the gateway answers late", 0.0));
    assert!(
        agents.add(near("the gateway responds late", 5.0).agent("x")).hints.is_empty(),
        "another partition"
    );
}

fn run(world: &World, options: &MaintainOptions) -> (PassReport, DedupReport) {
    let report = world.db.maintain_with(&options.clone().passes([Pass::VectorDuplicates])).unwrap();
    let pass = report.passes.into_iter().find(|pass| pass.pass == Pass::VectorDuplicates).unwrap();
    let dedup = pass.report.get::<DedupReport>().unwrap().clone();
    (pass, dedup)
}

/// Rows a, b and c at 0, 9 and 18 degrees: a-b and b-c reach the threshold, a-c does not.
fn three(world: &World, importance: [f32; 3]) -> [MemoryId; 3] {
    let say = ["the gateway answers late", "the gateway responds late", "the gateway reacts late"];
    [0, 1, 2].map(|n| world.add(near(say[n], 9.0 * n as f64).importance(importance[n])).id)
}

fn superseded(world: &World, ids: &[MemoryId]) -> Vec<bool> {
    ids.iter().map(|id| world.row(*id).state == State::Superseded).collect()
}

#[test]
fn v103_the_middle_row_represents_both() {
    let world = World::new();
    let [a, b, c] = three(&world, [0.5, 0.9, 0.5]);
    let (_, report) = run(&world, &MaintainOptions::default());
    assert_eq!((report.memories_seen, report.clusters_found, report.tombstoned), (3, 1, 2));
    assert!(report.dry_run);
    assert_eq!(report.actions[0].representative_id, b);
    assert_eq!((report.actions[0].tombstoned_ids.as_slice(), report.actions[0].size), ([a, c].as_slice(), 3));
    assert_eq!(superseded(&world, &[a, b, c]), [false; 3], "a dry run");
    assert!(!run(&world, &MaintainOptions::live()).1.dry_run);
    assert_eq!(superseded(&world, &[a, b, c]), [true, false, true]);
    assert_eq!(world.row(a).superseded_by(), Some(b));
    let (_, again) = run(&world, &MaintainOptions::default());
    assert_eq!((again.clusters_found, again.tombstoned), (0, 0));
}

#[test]
fn v104_an_end_represents_the_middle_alone_or_by_a_chain_all() {
    let world = World::new();
    let [a, b, c] = three(&world, [0.9, 0.5, 0.5]);
    run(&world, &MaintainOptions::live());
    assert_eq!(superseded(&world, &[a, b, c]), [false, true, false]);
    let chain = World::with(|builder| with(builder, |policy| policy.dedup.linkage = Linkage::Chain));
    let [a, b, c] = three(&chain, [0.9, 0.5, 0.5]);
    run(&chain, &MaintainOptions::live());
    assert_eq!(superseded(&chain, &[a, b, c]), [false, true, true]);
    assert_eq!(chain.row(c).superseded_by(), Some(a));
}

fn importance(importance: f32) -> Patch {
    let mut patch = Patch::default();
    patch.fields.importance = Some(importance);
    patch
}

#[test]
fn equal_scores_are_ordered_by_newest_update_newest_creation_smallest_id() {
    let world = World::new();
    let old = world.add(near("the gateway answers late", 0.0)).id;
    world.advance("1h");
    let new = world.add(near("the gateway responds late", 5.0)).id;
    assert_eq!(run(&world, &MaintainOptions::default()).1.actions[0].representative_id, new);
    world.advance("1h");
    world.ns.update(old.to_string(), importance(0.4)).unwrap();
    world.ns.update(old.to_string(), importance(0.5)).unwrap();
    assert_eq!(run(&world, &MaintainOptions::default()).1.actions[0].representative_id, old);
}

#[test]
fn protected_exempt_guarded_and_distant_rows_stay() {
    let world = World::new();
    let [a, b, c] = three(&world, [0.9, 0.5, 0.5]);
    world.ns.pin(b.to_string(), true).unwrap();
    world.add(near("the port is 80", 90.0));
    world.add(near("the port is 443", 91.0));
    world.add(near("we decided late", 0.5).kind(Kind::Skill));
    let (_, report) = run(&world, &MaintainOptions::default());
    assert_eq!((report.memories_seen, report.clusters_found, report.tombstoned), (6, 0, 0));
    assert!(report.actions.is_empty());
    run(&world, &MaintainOptions::live());
    assert_eq!(superseded(&world, &[a, b, c]), [false; 3]);
}

#[test]
fn v102_similarity_below_0_is_an_empty_report_and_0_the_default() {
    let off = World::with(|builder| with(builder, |policy| policy.dedup.similarity = -1.0));
    three(&off, [0.5; 3]);
    assert_eq!(
        run(&off, &MaintainOptions::default()).1,
        DedupReport { dry_run: true, ..DedupReport::default() }
    );
    let l2 = World::with(|builder| {
        with(builder, |policy| {
            (policy.dedup.metric, policy.dedup.similarity) = (Metric::L2Score, 0.0);
        })
    });
    three(&l2, [0.5, 0.9, 0.5]);
    assert_eq!(run(&l2, &MaintainOptions::default()).1.tombstoned, 2, "0.85 is the same pair");
    let large = World::with(|builder| with(builder, |policy| policy.dedup.min_cluster_size = 4));
    three(&large, [0.5, 0.9, 0.5]);
    assert_eq!(
        run(&large, &MaintainOptions::default()).1,
        DedupReport { dry_run: true, ..DedupReport::default() }
    );
}

/// MODEL-35: the report names what goes within the budget, in a dry run as in a live one.
#[test]
fn model_35_the_report_of_a_cut_plan_names_what_goes() {
    let world =
        World::with(|builder| with(builder, |policy| (policy.budget.floor, policy.budget.share) = (3, 0.0)));
    for cluster in 0..3 {
        for member in 0..3 {
            let degrees = f64::from(cluster) * 30.0 + f64::from(member);
            let say = ["a tall tree", "a high tree", "a great tree"][member as usize];
            world
                .add(near(&format!("{say} by {}", ["rivers", "roads", "houses"][cluster as usize]), degrees));
        }
    }
    let run = |options: MaintainOptions| {
        let report = world.db.maintain_with(&options.passes([Pass::VectorDuplicates])).unwrap();
        let told = report.passes[0].report.get::<DedupReport>().unwrap().clone();
        let ids: usize = told.actions.iter().map(|action| action.tombstoned_ids.len()).sum();
        assert_eq!(told.tombstoned, ids as u64);
        ((report.passes[0].planned, report.passes[0].cut), (told.clusters_found, told.tombstoned))
    };
    let dry = run(MaintainOptions::default());
    assert_eq!(dry, ((6, 3), (2, 3)));
    assert_eq!(run(MaintainOptions::live()), dry);
    assert_eq!(world.live().len(), 6);
}
