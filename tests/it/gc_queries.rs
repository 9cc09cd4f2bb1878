//! Past queries as questions for summaries (GC-26, GC-38): what is kept of a search, what goes with what it had found, and
//! what a plan makes of it.

use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::damage::store::{change, overwrite, tables};
use crate::world::{World, axis, text};
use oubliette::embed::embedder_fn;
use oubliette::exchange::{Export, VectorsTo};
use oubliette::gc::{GcOptions, GcPlan, GcProbe, ProbeSource, RecallGuard};
use oubliette::maintain::{MaintainOptions, Pass, RenamespaceOptions};
use oubliette::memory::{Expiry, PointInTime, SupersedeMode, Tier};
use oubliette::policy::Syntax;
use oubliette::report::{CheckOptions, ErasedProbe};
use oubliette::{Draft, Filter, Forget, Kind, MemoryId, Query, Scope};
use serde_json::json;

const KEEPS: &str = "gc.keep_queries = true";

fn keeping(policy: &str) -> World {
    let world = World::new();
    world.db.set_policy(&format!("{KEEPS}\n{policy}"), Syntax::Toml).unwrap();
    world
}

/// Asks as whoever uses the answer.
fn ask(world: &World, words: &str) -> Vec<MemoryId> {
    let found = world.ns.search(Query::text(words).track(true)).unwrap();
    found.hits.iter().map(|hit| hit.id).collect()
}

/// Asks, and lets the query be kept.
fn asked(world: &World, words: &str) -> Vec<MemoryId> {
    let found = ask(world, words);
    world.db.flush_access().unwrap();
    found
}

fn kept(world: &World) -> u64 {
    world.db.stats().unwrap().kept_queries
}

#[test]
fn nothing_is_kept_unless_the_policy_wants_it() {
    let world = World::new();
    world.add(text("Ann drinks tea"));
    assert_eq!(asked(&world, "who drinks tea").len(), 1);
    assert_eq!(kept(&world), 0);
    assert!(!world.has_bytes_of("who drinks tea"));
    world.check();
}

#[test]
fn a_search_notes_its_query_and_a_write_keeps_it() {
    let mut world = keeping("");
    world.add(text("Ann drinks tea"));
    let commit = world.db.stats().unwrap().commit;
    ask(&world, "who drinks tea");
    assert_eq!((world.db.stats().unwrap().commit, kept(&world)), (commit, 0), "a search writes nothing");
    world.add(text("Bob walks"));
    assert_eq!(kept(&world), 1);
    ask(&world, "what does Bob do, who walks");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Fold])).unwrap();
    assert_eq!(kept(&world), 2, "so does a pass");
    ask(&world, "tea for Ann");
    world.db.flush_access().unwrap();
    assert_eq!(kept(&world), 3, "and a flush");
    ask(&world, "walks of Bob");
    world.reopen();
    assert_eq!(kept(&world), 4, "and the end of the handle");
    world
        .db
        .batch(|batch| batch.search(world.ns.name(), Query::text("Ann drinks").track(true)).map(drop))
        .unwrap();
    world.db.flush_access().unwrap();
    assert_eq!(kept(&world), 5, "as a search of a batch is noted");
    world.check();
}

#[test]
fn only_what_asks_for_a_memory_is_kept() {
    let world = keeping("");
    world.add(text("Ann drinks tea").vector(axis(0)));
    let tracked = |query: Query| {
        world.ns.search(query.track(true)).unwrap();
        world.db.flush_access().unwrap();
        kept(&world)
    };
    world.ns.search("tea").unwrap();
    assert_eq!(tracked(Query::text("elephants")), 0, "it has found nothing, and the other is not tracked");
    assert_eq!(tracked(Query::vector(axis(0))), 0, "a query has words");
    let past = PointInTime { known_at: Some(world.now()), ..PointInTime::default() };
    assert_eq!(tracked(Query { at: past, ..Query::text("tea") }), 0, "a look at the past is no use");
    assert_eq!(tracked(Query::text(format!("tea {}", "x".repeat(397)))), 0, "401 characters");
    assert_eq!(tracked(Query::text(format!("tea {}", "x".repeat(396)))), 1);
    for number in 0..120 {
        world.add(text(&format!("Parcel {number}")));
    }
    assert_eq!(tracked(Query::text("parcel").k(101)), 1, "101 hits");
    assert_eq!(tracked(Query::text("parcel").k(100)), 2);
    world.check();
}

#[test]
fn a_handle_that_only_reads_notes_nothing() {
    let mut world = keeping("");
    world.add(text("Ann drinks tea"));
    world.db.clone().close().unwrap();
    world.open_again(|builder| builder.read_only(true));
    assert_eq!(ask(&world, "who drinks tea").len(), 1);
    assert!(world.db.flush_access().is_err());
    world.reopen();
    assert_eq!(kept(&world), 0);
}

#[test]
fn each_partition_keeps_its_latest_queries() {
    let world = keeping("gc.query_log = 3");
    world.add(text("Ann drinks tea"));
    world.add(text("Scout saw a harbour").agent("scout"));
    for number in 0..5 {
        asked(&world, &format!("tea {number}"));
        let query = Query::text(format!("harbour {number}")).scope(Scope::agent("scout").unwrap());
        world.ns.search(query.track(true)).unwrap();
        world.db.flush_access().unwrap();
    }
    assert_eq!(kept(&world), 6);
    for (words, stays) in [("tea 1", false), ("tea 2", true), ("harbour 1", false), ("harbour 4", true)] {
        assert_eq!(world.has_bytes_of(words), stays, "{words}");
    }
    // A smaller ring is in force with the policy, and compaction had kept the bound.
    world.db.set_policy(&format!("{KEEPS}\ngc.query_log = 1"), Syntax::Toml).unwrap();
    assert_eq!(kept(&world), 2);
    assert!(world.has_bytes_of("tea 4") && !world.has_bytes_of("tea 3"));
    for (key, value) in [("gc.query_log", "0"), ("gc.query_log", "10_001"), ("gc.keep_queries", "1")] {
        let why = world.db.set_policy(&format!("{key} = {value}"), Syntax::Toml).unwrap_err();
        assert!(why.to_string().contains(key), "{why}");
    }
    world.check();
}

#[test]
fn switching_it_off_clears_what_was_kept() {
    let mut world = keeping("");
    world.add(text("Ann drinks tea"));
    asked(&world, "who drinks tea");
    assert!(world.has_bytes_of("who drinks tea"));
    world.db.set_policy("", Syntax::Toml).unwrap();
    assert_eq!(kept(&world), 0);
    assert!(!world.has_bytes_of("who drinks tea"));
    // A handle with a policy of its own notes nothing, and its pass clears what is there.
    world.db.set_policy(KEEPS, Syntax::Toml).unwrap();
    asked(&world, "tea for two");
    world.db.clone().close().unwrap();
    world.open_again(|builder| builder.policy(Default::default()));
    asked(&world, "and for three");
    assert_eq!(kept(&world), 1);
    let fold = MaintainOptions::live().passes([Pass::Fold]);
    let report = world.db.maintain_with(&fold).unwrap();
    assert_eq!((report.passes[0].changed, kept(&world)), (1, 0));
    world.check();
}

/// Whoever asks for a memory to be forgotten takes the queries with it, by whatever way, and whatever else they had found.
#[test]
fn a_forgotten_memory_takes_its_queries_with_it() {
    let ways: [fn(&World, MemoryId); 5] = [
        |world, id| drop(world.forget_id(id)),
        |world, _| drop(world.forget(&["ann"])),
        |world, _| drop(world.forget_tag("drink")),
        |world, _| {
            let filter = Filter::parse(r#"{"tags": "drink"}"#).unwrap();
            world.ns.forget(Forget::filter(filter, Scope::Any)).unwrap();
        },
        |world, id| {
            world.advance("1h");
            let run = world.row(id).holders[0].run.unwrap();
            world.ns.undo(run).unwrap();
        },
    ];
    for (number, way) in ways.into_iter().enumerate() {
        let world = keeping("");
        let run = world.start_import();
        let ann = Draft::new("Ann drinks tea with honey").key("ann").tag("drink");
        let id = world.import(run, vec![ann])[0].id;
        world.add(text("Bob drinks coffee"));
        assert_eq!(asked(&world, "who drinks tea, was it Ann-Quetzal").len(), 2);
        // More than one commit counts, so that some are still noted.
        for number in 0..20 {
            ask(&world, &format!("who drinks, Quetzal {number}"));
        }
        way(&world, id);
        world.db.flush_access().unwrap();
        assert_eq!(kept(&world), 0, "way {number}");
        assert!(!world.has_bytes_of("Quetzal"), "way {number}");
        assert_eq!(asked(&world, "who drinks coffee").len(), 1);
        assert_eq!(kept(&world), 1);
        world.check();
    }
}

/// The vector of a query goes too, and `check --erased` looks at what is kept.
#[test]
fn an_erasure_leaves_no_byte_of_a_query() {
    let world = keeping("");
    let vector: Vec<f32> = vec![0.31, -0.57, 0.73, 0.19];
    let id = world.add(text("Ann drinks tea with honey").vector(axis(0))).id;
    world.add(text("Bob drinks coffee").vector(axis(1)));
    let query = Query::text("Ann drinks tea with honey, does she").track(true);
    world.ns.search(Query { vector: Some(vector.clone()), ..query }).unwrap();
    world.db.flush_access().unwrap();
    let residue = || {
        world.db.compact().unwrap();
        let text = "Ann drinks tea with honey".to_owned();
        let erased = vec![
            ErasedProbe { texts: vec![text], vector: None, keys: Vec::new() },
            ErasedProbe { texts: Vec::new(), vector: Some(vector.clone()), keys: Vec::new() },
        ];
        let options = CheckOptions { deep: false, erased };
        world.db.check(&options).unwrap().findings.len()
    };
    assert_eq!(residue(), 1, "the memory says what the query says, and the vector is the query's alone");
    world.forget_id(id);
    assert_eq!((residue(), kept(&world)), (0, 0));
}

/// A text that goes while its row stays, with another text, is forgotten as well.
#[test]
fn a_text_that_goes_takes_its_queries_with_it() {
    for noted in [false, true] {
        let world = keeping("");
        let first = world.add(Draft::new("Ann's Quetzal drinks tea").key("a")).id;
        let second = world.add(Draft::new("Ann's bird drinks tea").key("b")).id;
        world.supersede(second, first, SupersedeMode::Duplicate, None).unwrap();
        match noted {
            false => assert!(asked(&world, "what does the Quetzal drink").contains(&first)),
            true => (0..20).for_each(|n| drop(ask(&world, &format!("what does the Quetzal drink, {n}")))),
        }
        world.forget(&["a"]);
        world.db.flush_access().unwrap();
        assert!(!world.has_bytes_of("Quetzal"), "noted {noted}");
        world.check();
    }
}

#[test]
fn what_maintenance_removes_loses_its_id_alone() {
    let world = keeping("undo.horizon = \"0s\"");
    let soon = world.add(text("Ann drinks tea today").tier(Tier::Working)).id;
    world.add(text("Bob drinks coffee"));
    assert_eq!(asked(&world, "who drinks").len(), 2);
    assert_eq!(asked(&world, "tea today"), [soon]);
    world.advance("73h");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Expire, Pass::Limbo])).unwrap();
    world.check();
    assert_eq!(kept(&world), 1);
    assert!(world.has_bytes_of("who drinks") && !world.has_bytes_of("tea today"));
}

#[test]
fn a_query_goes_with_the_last_hit_of_its_partition() {
    let world = keeping("undo.horizon = \"0s\"");
    let short = text("The harbour is in Ghent").expiry(Expiry::After("1h".parse().unwrap()));
    world.add(short);
    world.add(text("A scout saw boats, sails, masts and, once, a harbour").agent("scout"));
    let query = Query::text("where is the harbour").scope(Scope::Any);
    assert_eq!(world.ns.search(query.track(true)).unwrap().hits.len(), 2);
    world.db.flush_access().unwrap();
    assert_eq!(kept(&world), 1);
    world.advance("2h");
    world.add(text("written later"));
    assert_eq!(kept(&world), 0, "it was in the ring of its best hit");
    world.check();
}

#[test]
fn a_namespace_takes_its_ring_along_only_under_a_new_name() {
    let world = keeping("");
    let how = RenamespaceOptions { dry_run: false, drop_keys: false };
    let of = |name: &str| world.db.namespace(name).unwrap().stats().unwrap().kept_queries;
    world.add(text("Ann drinks tea").metadata(json!({ "user_id": "u1" })));
    world.add(text("Bob drinks coffee"));
    asked(&world, "who drinks");
    asked(&world, "Ann and tea");
    world.db.move_namespace("default", "team", &how).unwrap();
    world.check();
    assert_eq!((of("default"), of("team")), (0, 2), "a new name");
    world.db.split_namespace("team", &[], &how).unwrap();
    world.check();
    assert_eq!((of("team"), of("u1")), (0, 0), "what had found a memory goes when it leaves");
    world.db.namespace("other").unwrap().add("there before").unwrap();
    world.db.move_namespace("team", "other", &how).unwrap();
    world.check();
    assert_eq!((of("other"), kept(&world)), (0, 0));
    let other = world.db.namespace("other").unwrap();
    other.search(Query::text("Quetzal coffee").track(true)).unwrap();
    world.db.flush_access().unwrap();
    assert_eq!(of("other"), 1);
    // One that is noted while its namespace goes is not kept.
    other.search(Query::text("Quetzal and Bob").track(true)).unwrap();
    world.db.drop_namespace("other").unwrap();
    world.db.flush_access().unwrap();
    assert!(!world.has_bytes_of("Quetzal"));
    world.check();
}

#[test]
fn copies_carry_the_ring_and_an_export_does_not() {
    let world = keeping("");
    world.add(text("Ann drinks tea"));
    asked(&world, "who drinks tea, Quetzal");
    assert!(world.has_bytes_of("Quetzal"), "compaction");
    let copy = world.beside("copy.oub");
    world.db.backup(&copy).unwrap();
    assert_eq!((kept(&world), tables(&copy)["query"].len()), (1, 1), "backup");
    let mut out = Vec::new();
    let export = Export { namespaces: world.db.namespaces().unwrap(), all_states: true };
    let lines = VectorsTo::<Cursor<Vec<u8>>>::Lines;
    export.write(&world.db.snapshot().unwrap(), &mut out, "out", lines).unwrap();
    assert!(!String::from_utf8(out).unwrap().contains("Quetzal"));
}

const FACTS: [&str; 4] = [
    "Ann: The boiler broke on Sunday. That is how it was, and so it will be for all of us.",
    "Bob: The plumber asks for 480 euros. Yes, she could get more of it, but they can also do so.",
    "Ann: Grandmother arrives with the ferry. About this there is only what he would have had from her.",
    "Bob: The bicycle needs new brakes. Who will be with him then? It would have been so, as they are.",
];

/// Four messages that will be old enough for one group.
fn home(world: &World) -> Vec<MemoryId> {
    let message = |text: &str| Draft::new(text).kind(Kind::Message).channel("home");
    FACTS.map(|text| world.add(message(text).created_at(world.ago("20d"))).id).to_vec()
}

fn summary(sources: &[MemoryId], says: &str) -> String {
    let ids: Vec<String> = sources.iter().map(MemoryId::to_string).collect();
    let span = json!({"start": 0, "end": 4_000_000_000_000_i64});
    json!({"topic": "home", "time_range": span, "summary": [says], "source_ids": ids}).to_string()
}

fn plan(world: &World, probes: &[&str]) -> GcPlan {
    let probes = probes.iter().map(|probe| (*probe).to_owned()).collect();
    world.ns.gc_plan(&GcOptions { probes, ..GcOptions::default() }).unwrap()
}

fn probes(plan: &GcPlan) -> Vec<(&str, ProbeSource)> {
    plan.groups[0].probes.iter().map(|GcProbe { text, from }| (text.as_str(), *from)).collect()
}

#[test]
fn a_plan_asks_the_latest_queries_that_had_found_a_source() {
    let world = keeping("gc.auto_probes = 3");
    home(&world);
    world.add(text("Cy has a dog"));
    for words in ["boiler Sunday", "plumber euros", "dog Cy", "ferry", "boiler Sunday"] {
        world.advance("1m");
        assert!(!asked(&world, words).is_empty(), "{words}");
    }
    // Retrievals are no inclusions, so the group stands. The same words again are asked once.
    let told = plan(&world, &["brakes"]);
    let query = |text| (text, ProbeSource::Query);
    assert_eq!(
        probes(&told),
        [("brakes", ProbeSource::Caller), query("boiler Sunday"), query("ferry"), query("plumber euros")]
    );
    let sources = told.groups[0].source_ids.clone();
    let answer = summary(&sources, "the boiler broke, the plumber came");
    let done = world.ns.gc_commit(told.plan_id, "1", &answer, None).unwrap();
    let guard = RecallGuard { probes: 4, hit_before: 4, hit_after: 2, ratio: Some(0.5) };
    assert_eq!(done.recall_guard, guard, "three of the past and one of the caller");
    let over = world.ns.gc_show(told.plan_id).unwrap();
    assert!(over.groups[0].probes.is_empty());
    // What the summary stands for is in limbo and may come back, and its queries wait with it.
    assert_eq!(kept(&world), 5);
    world.check();
    world.advance("30d");
    world.db.maintain().unwrap();
    assert_eq!(kept(&world), 1, "at the end of limbo they go: the dog is left");
    world.check();
}

#[test]
fn what_is_missing_is_made_of_the_sources() {
    for (auto, past, all) in [(3, 1, 3), (1, 1, 1), (0, 0, 0)] {
        let world = keeping(&format!("gc.auto_probes = {auto}"));
        home(&world);
        world.advance("1m");
        asked(&world, "boiler");
        asked(&world, "elephants");
        let told = plan(&world, &[]);
        assert_eq!(probes(&told).len(), past, "auto_probes {auto}");
        let answer = summary(&told.groups[0].source_ids, "the boiler broke on Sunday");
        let done = world.ns.gc_commit(told.plan_id, "1", &answer, None).unwrap();
        assert_eq!(done.recall_guard.probes, all, "auto_probes {auto}");
    }
}

/// A query keeps the vector that it was asked with, and nobody is asked for it again.
#[test]
fn a_past_query_is_asked_with_its_vector() {
    let world = keeping("gc.auto_probes = 1");
    let count = Arc::new(AtomicUsize::new(0));
    let asks = Arc::clone(&count);
    let embedder = embedder_fn("words-1", 4, move |texts: &[&str]| {
        asks.fetch_add(texts.iter().filter(|text| **text == "boiler Sunday").count(), Ordering::SeqCst);
        Ok(texts.iter().map(|text| vec![1.0, text.len() as f32 / 100.0, 0.0, 0.5]).collect())
    });
    world.db.use_embedder(embedder.unwrap()).unwrap();
    home(&world);
    world.advance("1m");
    asked(&world, "boiler Sunday");
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let told = plan(&world, &[]);
    let answer = summary(&told.groups[0].source_ids, "the boiler broke on Sunday");
    let done = world.ns.gc_commit(told.plan_id, "1", &answer, None).unwrap();
    assert_eq!((done.recall_guard.probes, done.recall_guard.hit_after), (1, 1));
    assert_eq!(count.load(Ordering::SeqCst), 1);
    world.check();
}

/// A query that can't be read is left out of plans, keeps nothing from being forgotten, and goes with a repair.
#[test]
fn a_damaged_query_is_in_nobodys_way() {
    let forget: fn(&World, MemoryId) = |world, id| drop(world.forget_id(id));
    let mend: fn(&World, MemoryId) = |world, _| {
        world.db.reindex().unwrap();
    };
    let off: fn(&World, MemoryId) = |world, _| {
        world.db.set_policy("", Syntax::Toml).unwrap();
    };
    for (number, way) in [forget, mend, off].into_iter().enumerate() {
        let mut world = keeping("gc.auto_probes = 3");
        let ids = home(&world);
        world.advance("1m");
        assert_eq!(asked(&world, "boiler Sunday")[0], ids[0]);
        world.advance("1m");
        asked(&world, "ferry");
        world.db.clone().close().unwrap();
        let (key, mut value) = tables(&world.path())["query"][0].clone();
        let middle = value.len() / 2;
        value[middle] ^= 1;
        overwrite(&world.path(), "query", &key, &value);
        world.open_again(|builder| builder);
        let found = world.db.check(&CheckOptions::default()).unwrap();
        assert!(
            found.findings.iter().any(|one| (one.code, one.table) == ("corrupted", "query")),
            "{found:?}"
        );
        let told = plan(&world, &[]);
        assert_eq!(probes(&told), [("ferry", ProbeSource::Query)]);
        world.ns.gc_abort(told.plan_id, None, "enough").unwrap();
        way(&world, ids[0]);
        assert_eq!(kept(&world), [1, 1, 0][number], "way {number}");
        world.check();
    }
}

/// A row that leads to a query and is missing, or one too many, is restored.
#[test]
fn rows_that_lead_to_queries_are_restored() {
    let mut world = keeping("");
    let id = world.add(text("Ann drinks tea")).id;
    asked(&world, "who drinks tea");
    world.db.clone().close().unwrap();
    let (key, _) = tables(&world.path())["query_of"][0].clone();
    change(&world.path(), "query_of", |rows| {
        rows.remove(key.as_slice()).unwrap();
        let mut extra = key.clone();
        *extra.last_mut().unwrap() += 1;
        rows.insert(extra.as_slice(), [].as_slice()).unwrap();
    });
    world.open_again(|builder| builder);
    let found = world.db.check(&CheckOptions::default()).unwrap();
    let codes: Vec<&str> = found.findings.iter().map(|one| one.code).filter(|code| *code != "size").collect();
    assert_eq!(codes, ["index_missing", "index_extra"], "{found:?}");
    world.db.reindex().unwrap();
    world.check();
    world.forget_id(id);
    assert_eq!(kept(&world), 0);
}
