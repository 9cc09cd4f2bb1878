//! What a host asks for beside adding, finding and forgetting: pages of hits, the newest first, the values of a key,
//! another name, another end.

use oubliette::memory::DistinctQuery;
use oubliette::{Draft, Error, Filter, MemoryId, Mode, PageRequest, Query, Scope, WriteOptions};
use serde_json::{Value, json};

use crate::world::{World, text};

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
