//! What a host asks for beside adding, finding and forgetting: pages of hits, the newest first, the values of a key,
//! another name, another end.

use std::collections::BTreeMap;

use oubliette::embed::{Embedder, embedder_fn};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{DistinctQuery, Expiry, Field, Got, SupersedeMode, Tier};
use oubliette::report::{CheckOptions, ErasedProbe, Op, RuleId};
use oubliette::{
    Decision, Draft, Error, Filter, Forget, Kind, Memory, MemoryId, Mode, NamespaceName, Page, PageRequest,
    Patch, Query, Scope, State, Time, WriteOptions,
};
use serde_json::{Value, json};

use crate::world::{START, World, text};

/// A vector that is nearer to the first axis the smaller `at` is.
fn near(at: usize) -> [f32; 4] {
    [1.0, at as f32 / 10.0, 0.0, 0.0]
}

fn ids(world: &World, query: Query) -> Vec<MemoryId> {
    world.ns.search(query).unwrap().hits.into_iter().map(|hit| hit.id).collect()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, Error>, field: &str) {
    match answer.unwrap_err() {
        Error::Invalid { field: found, .. } => assert_eq!(found, field),
        other => panic!("{other}"),
    }
}

/// Twenty memories with words and vectors, the nearest and wordiest first.
fn ranked() -> World {
    let world = World::new();
    for at in 0..20 {
        world.add(text(&format!("tea {}", "and more ".repeat(at))).vector(near(at)));
    }
    world
}

#[test]
fn pages_of_hits_follow_each_other_in_every_mode() {
    let world = ranked();
    for query in [
        Query::vector(near(0)),
        Query::text("tea").mode(Mode::Text),
        Query { vector: Some(near(0).to_vec()), ..Query::text("tea") },
        Query::vector(near(0)).filter(Filter::parse(r#"{"text": {"$gte": "tea"}}"#).unwrap()),
    ] {
        let whole = ids(&world, query.clone().k(20));
        assert_eq!(whole.len(), 20);
        let pages = (0..5).flat_map(|page| ids(&world, query.clone().k(4).offset(4 * page)));
        assert_eq!(pages.collect::<Vec<_>>(), whole);
        assert!(ids(&world, query.offset(20)).is_empty());
    }
}

#[test]
fn pages_of_diverse_hits_are_cut_from_one_choice() {
    let world = ranked();
    let query = Query::vector(near(0)).diversity(0.5);
    let whole = ids(&world, query.clone().k(8));
    assert_eq!(ids(&world, query.k(4).offset(4)), whole[4..]);
}

#[test]
fn a_least_score_leaves_out_what_scores_lower() {
    let world = ranked();
    for query in [
        Query::vector(near(0)),
        Query::text("tea").mode(Mode::Text),
        Query { vector: Some(near(0).to_vec()), ..Query::text("tea") },
    ] {
        let hits = world.ns.search(query.clone().k(20)).unwrap().hits;
        let least = hits[6].score;
        let high = ids(&world, query.clone().k(20).min_score(least));
        assert_eq!(high.len(), 7, "the score itself is enough");
        assert_eq!(ids(&world, query.clone().k(5).offset(5).min_score(least)), high[5..]);
        let above = hits[0].score + 1.0;
        assert!(ids(&world, query.clone().min_score(above)).is_empty());
        let why = world.ns.why(query.clone().min_score(above), hits[3].id).unwrap();
        assert_eq!((why.reason, why.rank, why.score), ("below_min_score", None, Some(hits[3].score)));
        let why = world.ns.why(query.offset(5), hits[3].id).unwrap();
        assert_eq!((why.reason, why.rank), ("skipped", None));
    }
}

#[test]
fn offset_and_least_score_have_bounds() {
    let world = ranked();
    let query = || Query::vector(near(0));
    assert!(world.ns.search(query().k(10).offset(990)).unwrap().hits.is_empty());
    refused(world.ns.search(query().k(10).offset(991)), "offset");
    refused(world.ns.search(query().k(1).offset(usize::MAX)), "offset");
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        refused(world.ns.search(query().min_score(bad)), "min_score");
    }
    assert_eq!(ids(&world, query().k(20).min_score(-1.0)).len(), 20);
}

fn pages(world: &World, request: &PageRequest) -> Vec<String> {
    let (mut request, mut all) = (request.clone(), Vec::new());
    loop {
        let page = world.ns.list(&request).unwrap();
        assert!(page.items.len() <= request.limit);
        all.extend(page.items.into_iter().map(|memory| memory.text));
        match page.next {
            Some(next) => request.cursor = Some(next),
            None => return all,
        }
    }
}

#[test]
fn listings_turn_around_and_merge_the_partitions() {
    let world = World::new();
    let agents = [None, Some("b"), Some("a")];
    for at in 0..12 {
        // Two at each instant, so that ids decide.
        world.advance(if at % 2 == 0 { "1h" } else { "0s" });
        let draft = text(&format!("{at:02}")).tag(if at % 3 == 0 { "third" } else { "other" });
        world.add(match agents[at % 3] {
            Some(agent) => draft.agent(agent),
            None => draft,
        });
    }
    for limit in [1, 5, 100] {
        let newest = PageRequest { newest_first: true, scope: Scope::Any, limit, ..PageRequest::default() };
        let down: Vec<String> = (0..12).rev().map(|at| format!("{at:02}")).collect();
        assert_eq!(pages(&world, &newest), down, "limit {limit}");
        let shared = PageRequest { scope: Scope::Shared, ..newest.clone() };
        assert_eq!(pages(&world, &shared), ["09", "06", "03", "00"]);
        let filter = Filter::parse(r#"{"tags": "third"}"#).unwrap();
        let tagged = PageRequest { filter: Some(filter), ..newest.clone() };
        assert_eq!(pages(&world, &tagged), ["09", "06", "03", "00"]);
        let filter = Filter::parse(r#"{"text": {"$lt": "07"}}"#).unwrap();
        let early = PageRequest { filter: Some(filter), ..newest.clone() };
        assert_eq!(pages(&world, &early), ["06", "05", "04", "03", "02", "01", "00"]);
    }
}

#[test]
fn a_cursor_belongs_to_its_direction() {
    let world = World::new();
    for at in 0..3 {
        world.add(Draft::new(format!("note {at}")).vector(near(at)));
    }
    let up = PageRequest { limit: 1, ..PageRequest::default() };
    let down = PageRequest { newest_first: true, ..up.clone() };
    let cursor = |request: &PageRequest| world.ns.list(request).unwrap().next;
    let (of_up, of_down) = (cursor(&up), cursor(&down));
    refused(world.ns.list(&PageRequest { cursor: of_up, ..down.clone() }), "cursor");
    refused(world.ns.list(&PageRequest { cursor: of_down, ..up.clone() }), "cursor");
    refused(world.ns.list(&PageRequest { cursor: Some("newest-".to_owned()), ..down }), "cursor");
}

#[test]
fn values_of_a_key_are_counted_by_memory() {
    let world = World::new();
    let metas = [
        json!({"s": "a"}),
        json!({"s": ["a", "b", "a", null]}),
        json!({"s": 1}),
        json!({"s": 1.0}),
        json!({"s": u64::MAX}),
        json!({"s": -0.5}),
        json!({"s": true}),
        json!({"s": {"t": "deep"}}),
        json!({"s": null}),
        json!({"other": "a"}),
    ];
    for (at, metadata) in metas.into_iter().enumerate() {
        world.add(text(&format!("note {at}")).metadata(metadata).tag(if at < 2 { "early" } else { "late" }));
    }
    world.add(text("of an agent").metadata(json!({"s": "a"})).agent("b"));
    let gone = world.add(text("gone").metadata(json!({"s": "gone"})).key("k"));
    world.add(text("here").metadata(json!({"s": "b"})).key("k"));
    assert!(world.ns.get(gone.id).unwrap().is_some(), "superseded");
    let counted = |query: DistinctQuery| {
        let found = world.ns.distinct(query).unwrap();
        assert!(found.complete && found.damaged == 0);
        let pairs: Vec<(Value, u64)> = found.values.into_iter().map(|one| (one.value, one.count)).collect();
        (pairs, found.left_out, found.memories)
    };
    let whole = vec![
        (json!(1), 2),
        (json!("a"), 2),
        (json!("b"), 2),
        (json!(true), 1),
        (json!(-0.5), 1),
        (json!(u64::MAX), 1),
    ];
    assert_eq!(counted("s".into()), (whole.clone(), 0, 8));
    assert_eq!(counted(DistinctQuery::from("s").limit(2)), (whole[..2].to_vec(), 4, 8));
    assert_eq!(counted(DistinctQuery::from("s").scope(Scope::Any)).0[0], (json!("a"), 3));
    assert_eq!(
        counted(DistinctQuery::from("s").scope(Scope::agent("b").unwrap())),
        (vec![(json!("a"), 1)], 0, 1)
    );
    assert_eq!(counted("s.t".into()), (vec![(json!("deep"), 1)], 0, 1));
    assert_eq!(counted("nobody".into()), (vec![], 0, 0));
    for filter in [r#"{"tags": "early"}"#, r#"{"text": {"$lt": "note 2"}, "keys": {"$exists": false}}"#] {
        let query = DistinctQuery::from("s").filter(Filter::parse(filter).unwrap());
        assert_eq!(counted(query), (vec![(json!("a"), 2), (json!("b"), 1)], 0, 2), "{filter}");
    }
}

#[test]
fn a_key_with_more_values_than_are_counted_says_so() {
    let world = World::new();
    let draft = |at: u32| {
        let values: Vec<u32> = (at * 501..(at + 1) * 501).collect();
        text(&format!("note {at}")).metadata(json!({"n": values, "m": at}))
    };
    world.ns.add_all((0..21).rev().map(draft).collect(), &WriteOptions::default()).unwrap();
    let found = world.ns.distinct(DistinctQuery::from("n").limit(3)).unwrap();
    let values: Vec<Value> = found.values.iter().map(|one| one.value.clone()).collect();
    assert_eq!(values, [json!(0), json!(1), json!(2)]);
    assert_eq!((found.left_out, found.complete, found.memories), (9_997, false, 21));
    assert!(world.ns.distinct("m").unwrap().complete);
}

#[test]
fn a_key_of_distinct_has_bounds() {
    let world = World::new();
    assert_eq!(world.ns.distinct("s").unwrap().values, [], "no namespace yet");
    for bad in ["", ".", "a..b", &"x".repeat(1_025), &"a.".repeat(40)] {
        refused(world.ns.distinct(bad), "key");
    }
    for bad in [0, 10_001, usize::MAX] {
        refused(world.ns.distinct(DistinctQuery::from("s").limit(bad)), "limit");
    }
}

/// Everything that a key leads to: history, explanation, rows of an export.
fn versions(world: &World, key: &str) -> usize {
    world.ns.history(key).map_or(0, |history| history.versions.len())
}

#[test]
fn a_renamed_record_keeps_its_history_and_leaves_the_old_key() {
    let world = World::new();
    for at in 0..3 {
        world.add(text(&format!("Ann lives in town {at}")).key("ann").vector(near(at)));
    }
    let other = world.add(text("Ann lives in town 2").key("meeting").vector(near(2)));
    assert_eq!(other.decision, Decision::Reinforced);
    let now = world.ns.get("ann").unwrap().unwrap();
    let report = world.ns.rename_key("ann", "ann:home").unwrap();
    assert_eq!((report.id, report.rows), (now.id, 3));
    world.check();
    assert!(world.ns.get("ann").unwrap().is_none());
    assert!(matches!(world.ns.look_up("ann", false), Err(Error::NotFound { .. })));
    assert!(matches!(world.ns.history("ann"), Err(Error::NotFound { .. })));
    assert_eq!(versions(&world, "ann:home"), 3);
    assert_eq!(world.ns.keys_of(now.id).unwrap(), ["ann:home", "meeting"]);
    let after = world.ns.get("ann:home").unwrap().unwrap();
    assert_eq!((after.id, &after.text, after.version), (now.id, &now.text, now.version + 1));
    let told = world.ns.history("ann:home").unwrap().events;
    let told = told.iter().rfind(|row| row.op == Op::Rename).unwrap();
    assert_eq!((told.rule, told.deltas[0].field.as_str()), (RuleId::RENAME, "key"));
    assert_eq!((&told.deltas[0].before, &told.deltas[0].after), (&json!("ann"), &json!("ann:home")));

    // The old key is free, the new one is the record's.
    world.ns.forget("meeting").unwrap();
    assert_eq!(world.add(text("someone else").key("ann")).decision, Decision::Stored);
    assert_eq!(world.add(text("Ann lives in Bruges").key("ann:home")).decision.as_str(), "revised");
    assert_eq!((versions(&world, "ann"), versions(&world, "ann:home")), (1, 4));
    world.check();
}

#[test]
fn a_key_that_is_held_is_not_given_again() {
    let world = World::new();
    world.add(text("one").key("a"));
    world.add(text("two").key("b"));
    world.add(text("two").key("c"));
    for taken in ["b", "c"] {
        let why = world.ns.rename_key("a", taken).unwrap_err();
        assert!(matches!(why, Error::Conflict { .. }), "{why}");
    }
    assert!(matches!(world.ns.rename_key("nobody", "d"), Err(Error::NotFound { .. })));
    assert!(matches!(world.ns.rename_key("", "d"), Err(Error::NotFound { .. })));
    for bad in ["", "a\0b", &"k".repeat(513)] {
        refused(world.ns.rename_key("a", bad), "key");
    }
    assert_eq!(world.ns.rename_key("a", "a").unwrap().rows, 0);
    assert_eq!(world.ns.rename_key("a", "k".repeat(512)).unwrap().rows, 1);
    // What held the key and is gone does not keep it.
    world.ns.forget("b").unwrap();
    assert_eq!(world.ns.rename_key("c", "b").unwrap().rows, 1);
    assert_eq!(world.ns.get("b").unwrap().unwrap().text, "two");
    world.check();
}

#[test]
fn rows_in_limbo_and_tombstones_are_renamed_with_their_record() {
    let world = World::new();
    for apps in [4, 7] {
        let draft = text(&format!("Gateway status: {apps} apps pending")).kind(Kind::Profile);
        world.add(draft.key(format!("status:{apps}")));
        world.advance("1h");
    }
    let run = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap().run.unwrap();
    let gone = world.ns.look_up("status:4", false).unwrap().into_memory().unwrap();
    assert_eq!(world.ns.rename_key("status:4", "first").unwrap().id, gone.id);
    assert!(matches!(world.ns.look_up("status:4", false), Err(Error::NotFound { .. })));
    world.check();
    world.ns.undo(run).unwrap();
    assert_eq!(world.ns.get("first").unwrap().unwrap().text, "Gateway status: 4 apps pending");
    world.check();

    world.ns.forget("first").unwrap();
    assert!(matches!(world.ns.look_up("first", false).unwrap(), Got::Tombstone(_)));
    world.add(text("again").key("first"));
    world.ns.rename_key("first", "second").unwrap();
    assert!(matches!(world.ns.look_up("first", false), Err(Error::NotFound { .. })));
    world.ns.forget("second").unwrap();
    world.check();
    let probe = ErasedProbe { keys: vec!["status:4".into(), "second".into()], ..ErasedProbe::default() };
    world.db.compact().unwrap();
    let report = world.db.check(&CheckOptions { erased: vec![probe], ..CheckOptions::default() }).unwrap();
    assert!(report.ok, "{:?}", report.findings);
}

#[test]
fn a_batch_renames_what_it_has_written() {
    let world = World::new();
    let name = world.ns.name().clone();
    let failed: Result<(), Error> = world.db.batch(|batch| {
        batch.add(&name, text("one").key("a"))?;
        batch.rename_key(&name, "a", "b")?;
        batch.rename_key(&name, "a", "c").map(drop)
    });
    assert!(matches!(failed, Err(Error::NotFound { .. })));
    assert!(world.live().is_empty(), "a batch is given up as a whole");
    world
        .db
        .batch(|batch| {
            batch.add(&name, text("one").key("a"))?;
            batch.rename_key(&name, "a", "b")
        })
        .unwrap();
    assert_eq!(world.ns.get("b").unwrap().unwrap().text, "one");
    world.check();
}

#[test]
fn touching_gives_an_end_and_changes_nothing_else() {
    let world = World::new();
    let tea = text("Ann prefers tea").key("tea").tag("t").importance(0.7).vector(near(0));
    world.add(tea.metadata(json!({"a": 1})));
    world.add(text("Bob walks").key("bob"));
    world.add(text("Bob runs").key("bob"));
    let old = world.ns.history("bob").unwrap().versions[0].id;
    let before = world.ns.get("tea").unwrap().unwrap();
    let end: Time = "2027-01-01T00:00:00Z".parse().unwrap();
    let answers = world.ns.touch(["tea", "nobody", "bob", &old.to_string()], end).unwrap();
    assert!(matches!(answers[1], Err(Error::NotFound { .. })));
    assert!(matches!(answers[3], Err(Error::Conflict { .. })));
    let told = answers[0].as_ref().unwrap();
    assert_eq!((told.decision.clone(), told.rule), (Decision::Updated, RuleId::UPDATE));
    assert!(answers[2].is_ok());
    let after = world.ns.get("tea").unwrap().unwrap();
    assert_eq!((after.expires_at, after.version), (Some(end), before.version + 1));
    let shown = |memory: &Memory| {
        format!(
            "{:?}",
            (memory.id, &memory.text, &memory.tags, &memory.metadata, memory.importance, &memory.keys)
        )
    };
    assert_eq!(shown(&after), shown(&before));
    // As an update of the expiry alone.
    let other = World::new();
    other.add(text("Ann prefers tea").key("tea"));
    other.add(text("Ann prefers tea").key("drink"));
    other.ns.update("tea", Patch { expiry: Some(Expiry::At(end)), ..Patch::default() }).unwrap();
    let world = World::new();
    world.add(text("Ann prefers tea").key("tea"));
    world.add(text("Ann prefers tea").key("drink"));
    world.ns.touch(["tea"], end).unwrap();
    let ends = |world: &World| ["tea", "drink"].map(|key| world.ns.get(key).unwrap().unwrap().expires_at);
    assert_eq!(ends(&world), ends(&other));
    world.ns.touch(["tea", "drink"], Expiry::Never).unwrap();
    assert_eq!(ends(&world), [None, None]);
    world.check();
}

#[test]
fn touching_takes_as_many_names_as_a_batch_has_rows() {
    let world = World::new();
    world.add(text("one").key("a"));
    let many = std::iter::repeat_n("a", 100_001);
    refused(world.ns.touch(many, Expiry::Never), "names");
    assert!(world.ns.touch([""; 0], Expiry::Never).unwrap().is_empty());
}

/// An embedder that fails as long as its text says so.
fn fickle() -> impl Embedder {
    embedder_fn("fickle", 4, |texts| match texts.iter().any(|text| text.contains("no vector")) {
        true => Err(Error::Embedding { embedder: "fickle".into(), why: "it does not want to".into() }),
        false => Ok(texts.iter().map(|_| vec![1.0, 0.0, 0.0, 0.0]).collect()),
    })
    .unwrap()
}

#[test]
fn a_write_says_whether_its_text_waits_for_a_vector() {
    let world = World::new();
    assert!(world.add(text("by words").key("w")).pending, "no embedder");
    assert!(world.add(text("by words").key("w")).pending, "unchanged, and waiting still");
    assert!(!world.add(text("near").key("v").vector(near(0))).pending);
    assert!(!world.ns.pin("v", true).unwrap().pending);
    assert!(world.ns.update("v", Patch { text: Some("other".into()), ..Patch::default() }).unwrap().pending);
    let given = Patch { vector: Some(near(1).to_vec()), ..Patch::default() };
    assert!(!world.ns.update("w", given).unwrap().pending);

    let world = World::with(|builder| builder.embedder(fickle()));
    assert!(!world.add(text("with a vector")).pending);
    assert!(world.add(text("with no vector")).pending, "the embedder failed");
    let name = world.ns.name().clone();
    let within = world.db.batch(|batch| batch.add(&name, text("of a batch").key("b"))).unwrap();
    assert!(within.pending, "the embedder comes after the commit");
    assert!(!world.add(text("of a batch").key("b")).pending, "and has come");
    let snapshot = world.ns.push_snapshot("12 facts", START.parse().unwrap()).unwrap();
    assert!(!snapshot.pending);
}

#[test]
fn a_batch_reads_what_it_has_written() {
    let world = World::new();
    world.ns.declare_index("room").unwrap();
    let old = world.add(text("before").key("a").metadata(json!({"room": "hall"})).vector(near(3)));
    let name = world.ns.name().clone();
    let empty: NamespaceName = "new".parse().unwrap();
    let texts = |page: Page<Memory>| page.items.into_iter().map(|memory| memory.text).collect::<Vec<_>>();
    let filtered = |filter: &str| PageRequest {
        filter: Some(Filter::parse(filter).unwrap()),
        scope: Scope::Any,
        ..PageRequest::default()
    };
    world
        .db
        .batch(|batch| {
            assert!(matches!(batch.look_up(&empty, "a", false), Err(Error::NotFound { .. })));
            assert!(batch.list(&empty, &PageRequest::default())?.items.is_empty());
            let new = batch.add(
                &name,
                text("after").key("a").tag("t").metadata(json!({"room": "hall"})).vector(near(0)),
            )?;
            let other =
                batch.add(&name, text("of an agent").agent("b").metadata(json!({"room": "attic"})))?;
            let got = batch.get(&name, "a")?.unwrap();
            assert_eq!((got.id, got.text.as_str(), &got.tags), (new.id, "after", &vec!["t".to_owned()]));
            assert_eq!(batch.get(&name, old.id)?.unwrap().state, State::Superseded);
            assert!(batch.get(&name, "nobody")?.is_none());
            let Got::Memory(with) = batch.look_up(&name, new.id, true)? else { panic!("a memory") };
            let vector = with.vector.unwrap();
            assert!((vector[0] - 1.0).abs() < 1e-6, "{vector:?}");
            assert_eq!(texts(batch.list(&name, &PageRequest::default())?), ["after"]);
            assert_eq!(texts(batch.list(&name, &filtered(r#"{"metadata.room": "hall"}"#))?), ["after"]);
            assert_eq!(
                texts(batch.list(&name, &filtered(r#"{"metadata.room": {"$prefix": "at"}}"#))?),
                ["of an agent"]
            );
            assert_eq!(texts(batch.list(&name, &filtered(r#"{"tags": "t"}"#))?), ["after"]);
            assert_eq!(texts(batch.list(&name, &filtered(r#"{"keys": {"$prefix": "a"}}"#))?), ["after"]);
            let newest =
                PageRequest { newest_first: true, limit: 1, scope: Scope::Any, ..PageRequest::default() };
            let page = batch.list(&name, &newest)?;
            assert_eq!(page.items[0].id, other.id);
            assert_eq!(texts(batch.list(&name, &PageRequest { cursor: page.next, ..newest })?), ["after"]);
            batch.forget(&name, ["a"])?;
            assert!(batch.get(&name, "a")?.is_none());
            assert!(matches!(batch.look_up(&name, "a", false)?, Got::Tombstone(_)));
            // Others see nothing of it yet.
            assert_eq!(world.ns.get("a").unwrap().unwrap().text, "before");
            Ok(())
        })
        .unwrap();
    assert!(world.ns.get("a").unwrap().is_none());
    world.check();
}

#[test]
fn a_batch_searches_until_it_writes() {
    let world = World::new();
    let tea = world.add(text("Ann prefers tea").vector(near(0)));
    let name = world.ns.name().clone();
    let other: NamespaceName = "other".parse().unwrap();
    world
        .db
        .batch(|batch| {
            let found = batch.search(&name, Query::vector(near(0)))?;
            assert_eq!(found, world.ns.search(Query::vector(near(0))).unwrap());
            assert_eq!(batch.search(&name, "tea")?.hits[0].id, tea.id);
            assert!(batch.search(&other, "tea")?.hits.is_empty());
            batch.add(&other, "tea elsewhere")?;
            assert_eq!(batch.search(&name, "tea")?.hits.len(), 1, "another namespace");
            assert!(matches!(batch.search(&other, "tea"), Err(Error::Conflict { .. })));
            refused(batch.search(&name, Query::text("tea").k(0)), "k");
            batch.reinforce(&name, tea.id, 1)?;
            assert!(matches!(batch.search(&name, "tea"), Err(Error::Conflict { .. })));
            Ok(())
        })
        .unwrap();
}

/// An end that the tier gave belongs to that tier. An end that a caller gave stays.
#[test]
fn another_tier_gives_another_end() {
    let world = World::new();
    let promise = world.ahead("5s");
    let to = |tier| {
        let mut patch = Patch::default();
        patch.fields.tier = Some(tier);
        patch
    };
    world.add(text("short").key("s").tier(Tier::Working));
    world.add(text("long").key("l"));
    world.add(text("promised").key("p").tier(Tier::Working).expiry(Expiry::At(promise)));
    world.ns.update("s", to(Tier::Semantic)).unwrap();
    assert_eq!(world.row("s").expires_at, None);
    world.ns.update("l", to(Tier::Working)).unwrap();
    let end = world.row("l").expires_at.unwrap();
    assert_eq!(end, world.ahead("72h"));
    world.ns.update("l", to(Tier::Episodic)).unwrap();
    assert!(world.row("l").expires_at.unwrap() > end);
    world.ns.update("p", to(Tier::Semantic)).unwrap();
    assert_eq!(world.row("p").expires_at, Some(promise));
    world.check();
}

/// A name in the form of an id means the memory with that id, so a key of that form would reach nothing.
#[test]
fn a_key_is_never_the_id_of_a_memory() {
    let world = World::new();
    let id = world.add(text("one").key("x")).id.to_string();
    world.add(text("two").key("y"));
    refused(world.ns.rename_key("y", id.as_str()), "key");
    refused(world.ns.add(text("three").key(id.as_str())), "key");
    world.ns.forget("x").unwrap();
    refused(world.ns.add(text("three").key(id.as_str())), "key");
    world.ns.add(text("three").key("01a2b3c4-0000-7000-8000-000000000000")).unwrap();
    world.check();
}

/// A memory has one score on every page, so pages neither lose nor repeat a hit.
#[test]
fn pages_of_a_hybrid_search_are_cut_from_one_ranking() {
    let world = World::new();
    for at in 0..600_usize {
        let words = ["tea", "milk", "cup", "pot", "leaf"];
        // The words of most are alike, so the cosine decides.
        let line: Vec<&str> = (0..4).map(|step| words[(at / 200 + step) % 5]).collect();
        let spread = |by: usize| ((at * by) % 601) as f32 / 601.0;
        world.add(text(&format!("{} {at}", line.join(" "))).vector([
            1.0,
            spread(13),
            spread(29),
            spread(61),
        ]));
    }
    let page = |offset: usize| {
        let mut query = Query::text("tea in a pot").k(5).offset(offset);
        query.vector = Some(vec![0.9, 0.4, 0.3, 0.2]);
        world.ns.search(query).unwrap().hits
    };
    let mut scores = BTreeMap::new();
    let mut places = Vec::new();
    for offset in 0..=45 {
        for (at, hit) in page(offset).into_iter().enumerate() {
            assert_eq!(*scores.entry(hit.id).or_insert(hit.score), hit.score, "page {offset}");
            match places.get(offset + at) {
                Some(id) => assert_eq!(*id, hit.id, "page {offset}"),
                None => places.push(hit.id),
            }
        }
    }
    assert_eq!(scores.len(), 50, "no hit stands on two pages");
}

/// A superseded version may hold a key that its successor has given up: it is never on a row twice.
#[test]
fn a_key_is_on_a_row_once_whatever_is_renamed() {
    let world = World::new();
    let old = world.add(text("shared text").key("a")).id;
    assert_eq!(world.add(text("shared text").key("b")).id, old);
    let newer = world.add(text("newer").key("c")).id;
    world.supersede(old, newer, SupersedeMode::Correction, None).unwrap();
    let (names, scope) = (vec!["b".into()], Scope::Shared);
    let (keep_history, also_merged, with_history) = (true, false, false);
    world.ns.forget(Forget::Names { names, scope, keep_history, also_merged, with_history }).unwrap();
    let why = world.ns.rename_key("a", "b").unwrap_err();
    assert!(matches!(&why, Error::Conflict { why, .. } if why.contains(&old.to_string())), "{why}");
    world.ns.forget("b").unwrap();
    assert_eq!(world.ns.rename_key("a", "b").unwrap().rows, 2);
    world.ns.restore(old.to_string()).unwrap();
    world.add(text("shared text v2").key("b"));
    world.check();
}

/// LIFE-6: keys that say one memory by an instant ahead are replaced by one text then, as one of them alone would be.
#[test]
fn life_6_two_keys_of_a_memory_that_is_to_be_replaced_are_replaced_together() {
    let world = World::new();
    let old = world.add(text("same").key("c")).id;
    world.add(text("same").key("d"));
    let (may, june) = (world.ahead("30d"), world.ahead("60d"));
    let replaced = SupersedeMode::Replaced;
    let later = world.ns.replace([old.to_string()], text("later"), replaced, Some(may)).unwrap().id;
    let newest = world.ns.replace(["c", "d"], text("newest"), replaced, Some(june)).unwrap().id;
    let at = Some(world.ahead("90d"));
    let why = world.ns.supersede_all(["d"], newest.to_string(), replaced, at).unwrap_err();
    assert!(matches!(&why, Error::Conflict { why, .. } if why.contains("an earlier instant")), "{why}");
    for (instant, says) in [(world.now(), old), (may, later), (june, newest)] {
        world.clock.set(instant);
        assert_eq!(["c", "d"].map(|key| world.row(key).id), [says; 2], "{instant}");
        world.check();
    }
}

/// LIFE-6: so are keys that lead to one memory, by whatever call, now or ahead.
#[test]
fn life_6_two_keys_that_lead_to_one_memory_are_replaced_together() {
    type Call = fn(&World, [&str; 2], Option<Time>);
    let calls: [Call; 4] = [
        |world, old, at| drop(world.ns.replace(old, text("all"), SupersedeMode::Replaced, at).unwrap()),
        |world, old, at| {
            world.ns.replace(old, text("all").key("q"), SupersedeMode::Replaced, at).unwrap();
        },
        |world, old, at| {
            let all = world.add(text("all").key("q")).id;
            world.ns.supersede_all(old, all.to_string(), SupersedeMode::Replaced, at).unwrap();
        },
        |world, old, at| {
            let draft = text("all").key("q").supersedes(old[0]).supersedes(old[1]);
            world.add(at.map_or(draft.clone(), |at| draft.valid_from(at)));
        },
    ];
    for (way, call) in calls.into_iter().enumerate() {
        for (names, ahead) in [["a", "b"], ["b", "a"], ["a", "c"], ["c", "b"], ["a", "id"], ["id", "a"]]
            .into_iter()
            .flat_map(|names| [(names, None), (names, Some("10d"))])
        {
            let world = World::new();
            world.add(text("of a").key("a"));
            world.add(text("of b").key("b"));
            let side = world.add(text("side").key("c").supersedes("a").supersedes("b")).id.to_string();
            world.advance("1h");
            call(
                &world,
                names.map(|name| if name == "id" { &side } else { name }),
                ahead.map(|ahead| world.ahead(ahead)),
            );
            world.check();
            if ahead.is_some() {
                assert_eq!(["a", "b", "c"].map(|key| world.row(key).text), ["side"; 3], "{way} {names:?}");
                world.advance("11d");
            }
            assert_eq!(
                ["a", "b", "c"].map(|key| world.row(key).text),
                ["all"; 3],
                "{way} {names:?} {ahead:?}"
            );
            assert_eq!(world.live().len(), 1, "{way} {names:?} {ahead:?}");
            world.check();
        }
    }
}

/// MODEL-33: what the first of several keys has done for all is one supersession of an import.
#[test]
fn model_33_an_import_that_names_two_keys_of_one_memory_is_taken_back_whole() {
    let world = World::new();
    let old = world.add(text("same").key("c")).id;
    world.add(text("same").key("d"));
    let (may, june) = (world.ahead("30d"), world.ahead("60d"));
    let replaced = SupersedeMode::Replaced;
    let later = world.ns.replace([old.to_string()], text("later"), replaced, Some(may)).unwrap().id;
    world.advance("1h");
    let run = world.start_import();
    let mut line = text("newest").key("e").supersedes("c").supersedes("d");
    line.fields.valid_from = Field::Value(june);
    world.import(run, vec![line]);
    world.advance("1h");
    let undone = world.ns.undo(run).unwrap();
    assert_eq!((undone.removed, undone.lost), (1, Vec::<String>::new()));
    for (instant, says) in [(world.now(), old), (may, later), (june, later)] {
        world.clock.set(instant);
        assert_eq!(["c", "d"].map(|key| world.row(key).id), [says; 2], "{instant}");
    }
    world.check();
}
