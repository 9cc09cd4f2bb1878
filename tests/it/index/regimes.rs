//! Exact, graph, exact again: a partition that grows and shrinks.

use std::collections::BTreeMap;
use std::path::Path;

use oubliette::maintain::{IndexReport, MaintainOptions, Pass};
use oubliette::{Durability, Effort, Query};
use redb::{ReadableDatabase, ReadableTable};
use serde_json::json;

use super::{
    EXACT_MAX, EXACT_MIN, TAIL_MAX, all_passes, asking, crowd, filter, helped, maintained, row, vector,
};
use crate::world::World;

/// The same questions have the same answers, which are those of a full scan.
fn same_answers(world: &World) -> impl PartialEq + std::fmt::Debug + use<> {
    (0..20).map(|at| world.agreed(asking(at).k(5))).collect::<Vec<_>>()
}

#[test]
fn a_partition_gets_a_graph_when_it_grows_and_loses_it_when_it_shrinks() {
    let world = World::with(maintained);
    world.add_rows((0..EXACT_MAX).map(row));
    world.maintain(&all_passes());
    assert_eq!((world.vectors().regime, world.vectors().in_graph), ("exact", 0), "at the bound, not past it");
    world.add(row(EXACT_MAX));
    assert_eq!(world.vectors().regime, "exact", "a graph is not built by a read");
    let before = same_answers(&world);
    let reports = world.maintain(&[Pass::Index]);
    assert_eq!((reports[0].planned, reports[0].changed), (51, 51));
    assert_eq!(reports[0].report.get::<IndexReport>().unwrap().built, 1);
    let vectors = world.vectors();
    assert_eq!((vectors.regime, vectors.in_graph, vectors.tail, vectors.live), ("graph", 51, 0, 51));
    assert_eq!(world.ns.search(asking(0)).unwrap().plan.regime, "graph");
    assert!(same_answers(&world) == before);

    world.add_rows((51..56).map(row));
    assert_eq!((world.vectors().in_graph, world.vectors().tail), (51, 5));
    let before = same_answers(&world);
    assert_eq!(world.maintain(&[Pass::Index])[0].changed, 5);
    assert_eq!((world.vectors().in_graph, world.vectors().tail), (56, 0));
    assert!(same_answers(&world) == before);

    // Between the two bounds it keeps what it has.
    for at in EXACT_MIN..56 {
        world.forget(&[&format!("k{at}")]);
    }
    let before = same_answers(&world);
    world.maintain(&all_passes());
    let vectors = world.vectors();
    assert_eq!((vectors.regime, vectors.live, vectors.dead), ("graph", EXACT_MIN as u64, 0));
    assert!(same_answers(&world) == before);
    world.forget(&["k0"]);
    world.maintain(&all_passes());
    let vectors = world.vectors();
    assert_eq!(
        (vectors.regime, vectors.live, vectors.in_graph, vectors.dead),
        ("exact", EXACT_MIN as u64 - 1, 0, 0)
    );
    same_answers(&world);
    world.add_rows((100..100 + EXACT_MAX - EXACT_MIN + 1).map(row));
    world.maintain(&all_passes());
    assert_eq!((world.vectors().regime, world.vectors().live), ("exact", 50));
    world.add(row(200));
    world.maintain(&all_passes());
    assert_eq!(world.vectors().regime, "graph");
    same_answers(&world);
}

#[test]
fn a_batch_pays_like_any_writer() {
    let world = World::with(helped);
    for part in 0..3 {
        let add = |batch: &mut oubliette::Batch<'_, '_, '_, '_>| {
            (part * 100..(part + 1) * 100).try_for_each(|at| batch.add(world.ns.name(), row(at)).map(drop))
        };
        world.db.batch(add).unwrap();
        let vectors = world.vectors();
        assert_eq!(vectors.regime, "graph");
        assert!(vectors.tail <= TAIL_MAX as u64, "{vectors:?}");
    }
}

#[test]
fn writers_keep_the_tail_short_without_maintenance() {
    let world = World::with(helped);
    for at in 0..200 {
        world.add(row(at));
        let vectors = world.vectors();
        let graph = if at < EXACT_MAX { "exact" } else { "graph" };
        assert_eq!(vectors.regime, graph, "after row {at}");
        assert!(vectors.tail <= TAIL_MAX as u64 + 1, "after row {at}: {vectors:?}");
        assert_eq!(vectors.live, at as u64 + 1);
        assert_eq!(world.hits(&Query::vector(vector(at)).k(1))[0].id, world.row(format!("k{at}")).id);
    }
    world.add_rows((200..400).map(row));
    assert!(world.vectors().tail <= TAIL_MAX as u64 + 200, "{:?}", world.vectors());
    same_answers(&world);
    // They drop it as well when it has become small.
    let names: Vec<String> = (EXACT_MIN - 1..400).map(|at| format!("k{at}")).collect();
    world.forget(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((world.vectors().regime, world.vectors().dead), ("exact", 0));
    same_answers(&world);
}

#[test]
fn a_pass_can_be_stopped_after_any_number_of_rows_and_goes_on_later() {
    let world = World::with(maintained);
    world.add_rows((0..300).map(row));
    let slice = MaintainOptions { max_rows: Some(70), ..MaintainOptions::live() };
    let mut left = Vec::new();
    for _ in 0..5 {
        left.push(world.db.maintain_with(&slice.clone().passes([Pass::Index])).unwrap().passes[0].left);
        world.check();
        assert!(world.recall(asking, 20) >= 0.99);
    }
    assert_eq!(left, [230, 160, 90, 20, 0]);
    for at in (0..300).step_by(2) {
        world.forget(&[&format!("k{at}")]);
    }
    let plan = world.db.maintain_with(&MaintainOptions::default().passes([Pass::Repair])).unwrap();
    assert_eq!((plan.run, plan.passes[0].planned, plan.passes[0].left), (None, 150, 150), "a dry run");
    let before = world.vectors();
    let mut rounds = 0;
    while world.db.maintain_with(&slice.clone().passes([Pass::Repair])).unwrap().passes[0].left > 0 {
        rounds += 1;
        assert!(rounds < 100, "repair does not come to its end: {:?}", world.vectors());
        world.check();
    }
    assert_eq!((before.dead, world.vectors().dead, world.vectors().free), (150, 0, 150));
    assert!(world.recall(asking, 50) >= 0.99);
}

#[test]
fn filters_lose_nothing_at_any_selectivity() {
    const ROWS: usize = 3_000;
    let world = World::with(|builder| maintained(builder).durability(Durability::Batch));
    let marked = |at: usize| {
        let marks = json!({"all": 0, "half": at % 2, "tenth": at % 10, "hundredth": at % 100,
            "thousandth": at % 1_000, "crowd": crowd(at)});
        row(at).metadata(marks)
    };
    let ids = world.add_rows((0..ROWS).map(marked));
    world.maintain(&[Pass::Index]);
    let place: BTreeMap<_, usize> = ids.into_iter().zip(0..).collect();
    let mut plans = BTreeMap::<_, u64>::new();
    for (name, every) in [("all", 1), ("half", 2), ("tenth", 10), ("hundredth", 100), ("thousandth", 1_000)] {
        let only = filter(json!({ (format!("metadata.{name}")): 0 }));
        let asked = |at: usize| asking(at).filter(only.clone());
        let recall = world.recall(asked, 60);
        assert!(recall >= 0.98, "one in {every}: recall {recall}");
        for at in 0..60 {
            let found = world.ns.search(asked(at)).unwrap();
            assert_eq!(found.hits.len(), 10.min(ROWS / every), "one in {every}: {:?}", found.plan);
            assert!(found.hits.iter().all(|hit| place[&hit.id].is_multiple_of(every)));
            *plans.entry((name, found.plan.filter)).or_default() += 1;
        }
    }
    assert!(
        plans.keys().any(|(_, how)| *how == "walk") && plans.keys().any(|(_, how)| *how == "scan"),
        "{plans:?}"
    );
    // What matches lies where the query does not, and the other way round.
    for other in [0, 7, 29] {
        let only = filter(json!({"metadata.crowd": other}));
        let recall = world.recall(|at| asking(at).filter(only.clone()), 60);
        assert!(recall >= 0.98, "crowd {other}: recall {recall}");
    }
    let none = filter(json!({"metadata.all": 1}));
    assert!(world.hits(&asking(0).filter(none)).is_empty());
}

/// Key and value of every row of a table.
type Rows = Vec<(Vec<u8>, Vec<u8>)>;

fn rows_of(path: &Path, table: &str) -> Rows {
    let db = redb::Database::open(path).unwrap();
    let rows = db.begin_read().unwrap();
    let table = rows.open_table(redb::TableDefinition::<&[u8], &[u8]>::new(table)).unwrap();
    let all = table.iter().unwrap().map(|row| row.unwrap());
    all.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())).collect()
}

#[test]
fn the_graph_is_the_same_whatever_the_number_of_threads() {
    let told = [1, 2, 4].map(|threads| {
        let mut world = World::with(maintained);
        let options = MaintainOptions { threads: Some(threads), ..MaintainOptions::live() };
        world.add_rows((0..1_500).map(row));
        world.db.maintain_with(&options.clone().passes(all_passes())).unwrap();
        for at in (0..1_500).step_by(3) {
            world.forget(&[&format!("k{at}")]);
        }
        world.add_rows((2_000..2_300).map(row));
        world.db.maintain_with(&options.passes(all_passes())).unwrap();
        let hits: Vec<_> = (0..200).map(|at| world.hits(&asking(at).effort(Effort::Ef(16)))).collect();
        let vectors = world.vectors();
        assert_eq!((vectors.in_graph, vectors.tail, vectors.dead), (1_300, 0, 0));
        world.reopen();
        let again: Vec<_> = (0..200).map(|at| world.hits(&asking(at).effort(Effort::Ef(16)))).collect();
        assert!(hits == again, "read from the file the graph is another");
        world.db.clone().close().unwrap();
        let graph: Vec<Rows> =
            ["graph", "graph_head"].into_iter().map(|table| rows_of(&world.path(), table)).collect();
        assert!(graph[0].len() >= 1_300 / 16 && graph[1].len() == 1);
        (hits, vectors, graph)
    });
    assert!(told[0] == told[1], "two threads make another graph than one");
    assert!(told[0] == told[2], "four threads make another graph than one");
}

#[test]
fn a_walk_beside_words_is_as_thorough_as_the_answer_needs() {
    let world = World::with(maintained);
    world.add_rows((0..2_000).map(row));
    world.maintain(&all_passes());
    let beside = |at: usize, words: &str| Query { text: Some(words.to_owned()), ..asking(at) };
    let ef = |query: &Query| world.ns.search(query).unwrap().plan.ef;
    let ids = |query: &Query| -> Vec<_> { world.hits(query).iter().map(|hit| hit.id).collect() };
    let (mut found, mut wanted) = (0, 0);
    for at in 0..50 {
        // Fifty of the nearest are ranked beside words, so that is the shortest list.
        let alone = ef(&asking(at)).max(50);
        let words = beside(at, &format!("row {at}"));
        assert!(ef(&words) <= alone);
        assert_eq!(ef(&beside(at, "zebra")), alone, "words that bring nothing are no help");
        assert_eq!(ef(&words.clone().effort(Effort::Ef(77))), 77, "what is said holds");
        let best = ids(&words.clone().effort(Effort::Exact));
        found += ids(&words).iter().filter(|id| best.contains(id)).count();
        wanted += best.len();
    }
    assert!(found as f64 >= 0.99 * wanted as f64, "{found} of {wanted}");
}
