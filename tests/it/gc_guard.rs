//! Whether what found the sources of a summary finds the summary (GC-26, GC-27, GC-38).

use crate::world::World;
use oubliette::embed::HashEmbedder;
use oubliette::gc::{Extractive, GcCommitted, GcOptions, GcRunOptions, PlanState, RecallGuard};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::policy::Syntax;
use oubliette::{Draft, Error, ErrorKind, Kind, MemoryId, Query};
use serde_json::json;

const FACTS: [&str; 4] = [
    "Ann: The boiler broke on Sunday. That is how it was, and so it will be for all of us.",
    "Bob: The plumber asks for 480 euros. Yes, she could get more of it, but they can also do so.",
    "Ann: Grandmother arrives with the ferry. About this there is only what he would have had from her.",
    "Bob: The bicycle needs new brakes. Who will be with him then? It would have been so, as they are.",
];

/// Four old messages that make one group, and so many young ones.
fn world(policy: &str, young: usize) -> (World, Vec<MemoryId>) {
    home(policy, young, false)
}

fn home(policy: &str, young: usize, embeds: bool) -> (World, Vec<MemoryId>) {
    let world = World::new();
    if embeds {
        world.db.use_embedder(HashEmbedder::new()).unwrap();
    }
    world.db.set_policy(policy, Syntax::Toml).unwrap();
    let message = |text: &str| Draft::new(text).kind(Kind::Message).channel("home");
    let old = FACTS.map(|text| world.add(message(text).created_at(world.ago("20d"))).id);
    for number in 0..young {
        world.add(message(&format!("Bob: Parcel {number} went to shelf {}.", number % 7)).verbatim(true));
    }
    (world, old.to_vec())
}

fn summary(sources: &[MemoryId], says: &str) -> String {
    let ids: Vec<String> = sources.iter().map(MemoryId::to_string).collect();
    let span = json!({"start": 0, "end": 4_000_000_000_000_i64});
    json!({"topic": "home", "time_range": span, "summary": [says], "source_ids": ids}).to_string()
}

fn commit(world: &World, probes: &[&str], answer: &str) -> Result<GcCommitted, Error> {
    let probes = probes.iter().map(|probe| (*probe).to_owned()).collect();
    let plan = world.ns.gc_plan(&GcOptions { probes, ..GcOptions::default() }).unwrap();
    world.ns.gc_commit(plan.plan_id, "1", answer, None)
}

const PROBES: [&str; 4] = ["boiler", "plumber", "ferry", "brakes"];

#[test]
fn v_236_a_summary_that_answers_too_little_is_refused() {
    let (world, ids) = world("gc = { auto_probes = 0, recall_floor = 0.75 }", 0);
    let answer = summary(&ids, "the boiler broke, the plumber came");
    match commit(&world, &PROBES, &answer).unwrap_err() {
        Error::Refused { code, why, .. } => {
            assert_eq!(code, "recall_below_floor");
            assert_eq!(why, "4 questions find a source, and 2 would find the summary");
        }
        other => panic!("{other}"),
    }
    assert_eq!(world.live(), ids, "nothing is written");
    world.check();
}

#[test]
fn v_236_without_a_floor_the_loss_is_told() {
    let (world, ids) = world("gc.auto_probes = 0", 0);
    let answer = summary(&ids, "the boiler broke, the plumber came");
    let done = commit(&world, &PROBES, &answer).unwrap();
    let half = RecallGuard { probes: 4, hit_before: 4, hit_after: 2, ratio: Some(0.5) };
    assert_eq!((done.recall_guard, done.deleted_count), (half, 4));
    let plan = world.ns.gc_plans().unwrap().pop().unwrap();
    let again = world.ns.gc_commit(plan.plan_id, "1", &answer, None).unwrap();
    assert_eq!(again.recall_guard, half, "the same call gives the same answer");
}

#[test]
fn questions_are_made_of_the_sources_unless_the_policy_wants_none() {
    let (world, ids) = world("gc.recall_floor = 1.0", 30);
    match commit(&world, &[], &summary(&ids, "nothing of it")).unwrap_err() {
        Error::Refused { code, .. } => assert_eq!(code, "recall_below_floor"),
        other => panic!("{other}"),
    }
    let plan = world.ns.gc_plans().unwrap().pop().unwrap();
    let done = world
        .ns
        .gc_commit(
            plan.plan_id,
            "1",
            &summary(&ids, &FACTS.map(|fact| &fact[..fact.find('.').unwrap()]).join(", ")),
            None,
        )
        .unwrap();
    assert_eq!(done.recall_guard, RecallGuard { probes: 3, hit_before: 3, hit_after: 3, ratio: Some(1.0) });
    world.check();
}

#[test]
fn without_a_question_there_is_nothing_to_lose() {
    let (world, ids) = world("gc = { auto_probes = 0, recall_floor = 1.0 }", 0);
    // A question that had found no source says nothing either.
    let done = commit(&world, &["elephants"], &summary(&ids, "nothing of it")).unwrap();
    assert_eq!(done.recall_guard, RecallGuard { probes: 1, hit_before: 0, hit_after: 0, ratio: None });
}

/// What the guard says before the commit is what a search says after it.
#[test]
fn the_guard_asks_what_a_search_will_find() {
    for (k, embeds) in [(1, false), (3, false), (10, false), (1, true), (3, true), (10, true)] {
        let (world, _) = home(&format!("gc = {{ auto_probes = 0, probe_k = {k} }}"), 40, embeds);
        let probes = ["what broke on Sunday", "euros", "who asks for new brakes", "parcel shelf ferry"];
        let probes: Vec<String> = probes.iter().map(|probe| (*probe).to_owned()).collect();
        let plan = GcOptions { probes: probes.clone(), ..GcOptions::default() };
        let dry = GcRunOptions { plan: plan.clone(), dry_run: true, ..GcRunOptions::default() };
        let told = world.ns.gc_run(&Extractive::new(0.4).unwrap(), &dry, |_| ()).unwrap().recall_guard;
        let options = GcRunOptions { plan, ..GcRunOptions::default() };
        let done = world.ns.gc_run(&Extractive::new(0.4).unwrap(), &options, |_| ()).unwrap();
        assert_eq!(done.recall_guard, told, "a dry run says what the run will say, k {k}");
        let found = |probe: &String| {
            let hits = world.ns.search(Query::text(probe.as_str()).k(k)).unwrap().hits;
            hits.iter().any(|hit| world.row(hit.id).kind == Kind::Summary)
        };
        let found = probes.iter().filter(|probe| found(probe)).count();
        assert_eq!(done.recall_guard.hit_after as usize, found, "k {k}, embeds {embeds}");
    }
}

#[test]
fn questions_have_bounds_and_go_with_their_plan() {
    let (world, _) = world("", 0);
    for probes in [vec![String::new()], vec!["x".repeat(401)], vec!["x".to_owned(); 11]] {
        let refused = world.ns.gc_plan(&GcOptions { probes, ..GcOptions::default() }).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert!(refused.to_string().contains("probes"), "{refused}");
    }
    let asked = || GcOptions { probes: vec!["Quetzalcoatlus".to_owned()], ..GcOptions::default() };
    let plan = world.ns.gc_plan(&asked()).unwrap();
    let holds = || {
        world.db.compact().unwrap();
        let file = std::fs::read(world.path()).unwrap();
        file.windows(14).any(|bytes| bytes == b"Quetzalcoatlus")
    };
    assert!(holds());
    assert_eq!(world.ns.gc_abort(plan.plan_id, None, "enough").unwrap().state, PlanState::Aborted);
    assert!(!holds());
    // A plan is over as well when its time is, and a copy or the pass `fold` ends it.
    for by_pass in [true, false] {
        let plan = world.ns.gc_plan(&asked()).unwrap();
        assert!(holds());
        world.advance("25h");
        if by_pass {
            let passes = MaintainOptions::live().passes([Pass::Fold]);
            assert_eq!(world.ns.maintain_with(&passes).unwrap().passes[0].changed, 1);
        }
        assert!(!holds(), "{by_pass}");
        assert_eq!(world.ns.gc_show(plan.plan_id).unwrap().state, PlanState::Expired);
        world.check();
    }
}
