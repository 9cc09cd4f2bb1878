//! What is forgotten is in no answer from its commit on, whatever the graph still holds.

use std::collections::BTreeSet;

use oubliette::maintain::Pass;
use oubliette::memory::Expiry;
use oubliette::memory::SupersedeMode;
use oubliette::{Effort, Forget, MemoryId, Patch, Query, Scope};

use super::{Chance, all_passes, asking, maintained, question, row, vector};
use crate::world::{World, assert_clean};

/// A partition of 300 rows in its graph.
fn linked() -> (World, Vec<MemoryId>) {
    let world = World::with(maintained);
    let ids = world.add_rows((0..300).map(row));
    world.maintain(&[Pass::Index]);
    (world, ids)
}

/// In no answer to any question, whatever the effort; and what is given is that of a full scan.
fn assert_unseen(world: &World, gone: &BTreeSet<MemoryId>) {
    for at in 0..30 {
        for effort in [Effort::default(), Effort::Ef(10), Effort::Ef(400), Effort::Exact] {
            let hits = world.hits(&asking(at).effort(effort));
            assert_eq!(hits.len(), 10);
            assert!(hits.iter().all(|hit| !gone.contains(&hit.id)), "{effort:?} gives what is gone");
        }
    }
    assert!(world.recall(asking, 30) >= 0.99);
}

#[test]
fn what_is_forgotten_is_in_no_answer_before_repair_and_after_it() {
    let (mut world, ids) = linked();
    let gone: BTreeSet<MemoryId> = (0..300).filter(|at| at % 3 == 0).map(|at| ids[at]).collect();
    for id in &gone {
        world.forget_id(*id);
        assert!(!world.hits(&Query::vector(vector_of(&ids, *id)).k(20)).iter().any(|hit| hit.id == *id));
    }
    let vectors = world.vectors();
    assert_eq!((vectors.live, vectors.dead, vectors.in_graph, vectors.free), (200, 100, 200, 0));
    assert_unseen(&world, &gone);
    world.reopen();
    assert_unseen(&world, &gone);
    world.check();
    // A slot is not given out again before its node is out of the graph.
    world.add_rows((300..310).map(row));
    let vectors = world.vectors();
    assert_eq!((vectors.live, vectors.dead, vectors.tail, vectors.free), (210, 100, 10, 0));
    let repaired = world.maintain(&[Pass::Repair]);
    assert_eq!((repaired[0].planned, repaired[0].changed), (100, 100));
    let vectors = world.vectors();
    assert_eq!((vectors.live, vectors.dead, vectors.in_graph, vectors.free), (210, 0, 200, 100));
    assert_unseen(&world, &gone);
    world.check();
    world.add_rows((310..330).map(row));
    assert_eq!((world.vectors().free, world.vectors().tail), (80, 30));
    world.maintain(&all_passes());
    assert_unseen(&world, &gone);
    world.reopen();
    assert_unseen(&world, &gone);
    for at in (0..330).filter(|at| *at >= 300 || at % 3 != 0) {
        let id = world.row(format!("k{at}")).id;
        assert_eq!(world.hits(&Query::vector(vector(at)).k(1))[0].id, id, "row {at} does not find itself");
    }
}

fn vector_of(ids: &[MemoryId], id: MemoryId) -> Vec<f32> {
    vector(ids.iter().position(|other| *other == id).unwrap())
}

#[test]
fn all_but_a_few_are_forgotten_and_the_rest_is_found() {
    let world = World::with(maintained);
    let ids = world.add_rows((0..1_000).map(row));
    world.maintain(&[Pass::Index]);
    let mut chance = Chance(5);
    let (gone, left): (Vec<usize>, Vec<usize>) = (0..1_000).partition(|_| chance.below(20) > 0);
    for at in &gone {
        world.forget_id(ids[*at]);
    }
    let gone: BTreeSet<MemoryId> = gone.iter().map(|at| ids[*at]).collect();
    for _ in 0..2 {
        assert_eq!(world.vectors().regime, "graph");
        assert_unseen(&world, &gone);
        for at in &left {
            assert_eq!(world.hits(&Query::vector(vector(*at)).k(1).effort(Effort::Ef(32)))[0].id, ids[*at]);
        }
        world.maintain(&[Pass::Repair]);
    }
    assert_eq!((world.vectors().dead, world.vectors().in_graph), (0, left.len() as u64));
    let compacted = world.db.compact().unwrap();
    assert!(compacted.bytes_after <= compacted.bytes_before);
    assert_unseen(&world, &gone);
}

#[test]
fn a_graph_of_which_everything_is_forgotten_is_filled_again() {
    let world = World::with(maintained);
    for round in 0..3 {
        let rows = round * 1_000..round * 1_000 + 200;
        world.add_rows(rows.clone().map(row));
        world.maintain(&[Pass::Index]);
        assert!(world.recall(asking, 20) >= 0.99);
        let names: Vec<String> = rows.map(|at| format!("k{at}")).collect();
        world.ns.forget(Forget::names(names)).unwrap();
        assert!(world.hits(&asking(0)).is_empty());
        world.maintain(&all_passes());
        assert_eq!((world.vectors().live, world.vectors().dead, world.vectors().in_graph), (0, 0, 0));
        world.check();
    }
}

#[test]
fn a_vector_that_is_changed_is_found_where_it_is_and_not_where_it_was() {
    let (world, ids) = linked();
    for (at, id) in ids.iter().enumerate().take(40) {
        let (old, new) = (vector(at), question(500 + at));
        let patch = Patch { vector: Some(new.clone()), ..Patch::default() };
        world.ns.update(format!("k{at}"), patch).unwrap();
        for effort in [Effort::default(), Effort::Exact] {
            let nearest = &world.hits(&Query::vector(new.clone()).k(1).effort(effort))[0];
            assert!(nearest.id == *id && nearest.score > 0.999, "{nearest:?}");
            let hits = world.hits(&Query::vector(old.clone()).k(300).effort(effort));
            let own: Vec<_> = hits.iter().filter(|hit| hit.id == *id).collect();
            assert!(own.len() == 1 && own[0].score < 0.999, "at its old place: {own:?}");
        }
    }
    let vectors = world.vectors();
    assert_eq!((vectors.live, vectors.dead, vectors.tail, vectors.in_graph), (300, 40, 40, 260));
    // One that is not in the graph changes in its place.
    let patch = Patch { vector: Some(question(900)), ..Patch::default() };
    world.ns.update("k3", patch).unwrap();
    assert_eq!((world.vectors().dead, world.vectors().tail), (40, 40));
    world.check();
    world.maintain(&all_passes());
    assert_eq!((world.vectors().dead, world.vectors().free, world.vectors().in_graph), (0, 40, 300));
    assert_eq!(world.hits(&Query::vector(question(900)).k(1))[0].id, ids[3]);
}

#[test]
fn superseded_and_expired_rows_are_not_seen_and_come_back() {
    let (world, ids) = linked();
    let mut unseen = BTreeSet::new();
    for at in (0..200).step_by(2) {
        world.supersede(ids[at], ids[at + 1], SupersedeMode::Correction, None).unwrap();
        unseen.insert(ids[at]);
    }
    assert_unseen(&world, &unseen);
    for at in 200..280 {
        let patch = Patch { expiry: Some(Expiry::After("1h".parse().unwrap())), ..Patch::default() };
        world.ns.update(format!("k{at}"), patch).unwrap();
    }
    assert_unseen(&world, &unseen);
    world.advance("2h");
    unseen.extend(&ids[200..280]);
    assert_unseen(&world, &unseen);
    // They are nodes all the same: nothing is to be repaired.
    assert_eq!((world.vectors().in_graph, world.vectors().dead), (300, 0));
    assert_eq!(world.maintain(&[Pass::Repair])[0].changed, 0);
    world.check();
    for at in (0..200).step_by(2) {
        world.ns.restore(ids[at].to_string()).unwrap();
        assert_eq!(world.hits(&Query::vector(vector(at)).k(1))[0].id, ids[at], "restored and not found");
        unseen.remove(&ids[at]);
    }
    assert_unseen(&world, &unseen);
}

#[test]
fn few_visible_rows_among_many_are_all_found() {
    let (world, ids) = linked();
    for at in 0..288 {
        world.supersede(ids[at], ids[299], SupersedeMode::Correction, None).unwrap();
    }
    for at in 0..20 {
        let hits = world.agreed(asking(at).k(12));
        assert_eq!(BTreeSet::from_iter(hits), ids[288..].iter().copied().collect());
    }
}

#[test]
fn a_namespace_that_is_dropped_takes_its_graph_with_it_and_no_other() {
    let (world, _) = linked();
    let other = world.db.namespace("other").unwrap();
    world
        .db
        .namespace(other.name())
        .unwrap()
        .add_all((0..200).map(row).collect(), &oubliette::WriteOptions::default())
        .unwrap();
    world.maintain(&[Pass::Index]);
    assert_eq!(world.db.stats().unwrap().vectors.in_graph, 500);
    world.db.drop_namespace(other.name()).unwrap();
    assert_eq!(world.db.stats().unwrap().vectors.in_graph, 300);
    assert!(other.search(asking(0).scope(Scope::Any)).unwrap().hits.is_empty());
    assert!(world.recall(asking, 30) >= 0.99);
    assert_clean(&world.db);
    // Its numbers are not those of the next one of that name.
    world
        .db
        .namespace(other.name())
        .unwrap()
        .add_all((0..100).map(row).collect(), &oubliette::WriteOptions::default())
        .unwrap();
    assert_eq!(other.stats().unwrap().vectors.regime, "exact");
    world.maintain(&all_passes());
    assert_eq!(other.stats().unwrap().vectors.in_graph, 100);
}
