//! Several partitions in one question, and maintenance beside those who write.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use oubliette::maintain::MaintainOptions;
use oubliette::{Draft, Effort, Forget, Query, Scope};

use super::{all_passes, asking, everywhere, helped, maintained, question, row, vector};
use crate::world::{World, keeping};

fn of_agent(agent: &str, at: usize) -> Draft {
    row(at).agent(agent)
}

#[test]
fn a_question_to_every_partition_is_answered_by_graphs_and_scans_together() {
    let mut world = World::with(maintained);
    // Two with a graph, one with a graph and a tail, one that is too small for a graph.
    world.add_rows((0..400).map(row));
    world.add_rows((400..700).map(|at| of_agent("ann", at)));
    world.add_rows((700..900).map(|at| of_agent("bob", at)));
    world.add_rows((900..930).map(|at| of_agent("eve", at)));
    world.maintain(&all_passes());
    assert_eq!((world.vectors().regime, world.vectors().in_graph), ("mixed", 900));
    world.add_rows((930..990).map(|at| of_agent("bob", at)));
    for at in (0..990).step_by(5) {
        world.forget(&[&format!("k{at}")]);
    }
    for _ in 0..2 {
        for scope in ["ann", "bob", "eve"].map(|agent| Scope::agent(agent).unwrap()) {
            assert!(world.recall(|at| asking(at).scope(scope.clone()), 40) >= 0.99, "{scope:?}");
        }
        assert!(world.recall(everywhere, 100) >= 0.98);
        for at in (0..990).filter(|at| at % 5 > 0) {
            let hits = world.hits(&Query::vector(vector(at)).k(1).scope(Scope::Any));
            assert_eq!(hits[0].id, world.row(format!("k{at}")).id, "row {at} does not find itself");
        }
        let plan = world.ns.search(everywhere(0)).unwrap().plan;
        assert_eq!((plan.partitions, plan.regime), (4, "graph"));
        world.maintain(&all_passes());
        assert_eq!((world.vectors().dead, world.vectors().tail), (0, 0));
        world.reopen();
    }
}

/// A block of the file has as many slots as fill a page: more than 64 where vectors are short.
#[test]
fn a_search_of_whole_blocks_of_any_length_misses_nothing() {
    for dim in [1, 2, 24, 56, 384] {
        let mut world = World::with(keeping);
        let vector = |at: usize| {
            (0..dim).map(|place| ((at * 31 + place * 17) % 101) as f32 - 49.5).collect::<Vec<_>>()
        };
        let draft = |at: usize| Draft::new(format!("row {at}")).vector(vector(at));
        world.add_rows((0..400).map(|at| if at % 3 == 0 { draft(at).agent("ann") } else { draft(at) }));
        for scope in [Scope::Any, Scope::Shared] {
            world.reopen();
            let plan = world.ns.search(Query::vector(vector(7)).scope(scope.clone())).unwrap().plan;
            assert_eq!(plan.damaged, 0, "{dim} dimensions, {scope:?}");
        }
    }
}

#[test]
fn a_small_budget_of_memory_changes_no_answer() {
    // Room for no image of any partition: blocks are read one by one, and nothing is maintained.
    let mut world = World::with(|builder| maintained(builder).memory_budget_bytes(1 << 20));
    world.add_rows((0..300).map(row));
    world.maintain(&all_passes());
    assert_eq!(world.vectors().in_graph, 300);
    let before: Vec<_> = (0..30).map(|at| world.hits(&asking(at))).collect();
    let path = world.path();
    world.reopen();
    world.db.clone().close().unwrap();
    let poor = world.builder().memory_budget_bytes(0).open(path).unwrap();
    for (at, before) in before.iter().enumerate() {
        let hits = poor.namespace(world.ns.name()).unwrap().search(asking(at)).unwrap().hits;
        let best =
            poor.namespace(world.ns.name()).unwrap().search(asking(at).effort(Effort::Exact)).unwrap().hits;
        assert_eq!(hits, best, "without memory every answer is a scan");
        let better = best.iter().zip(before).filter(|(best, before)| best.score > before.score).count();
        assert!(better <= 1);
    }
    poor.close().unwrap();
}

#[test]
fn maintenance_beside_writers_loses_nothing() {
    const ROWS: usize = 1_200;
    let world = World::with(helped);
    world.add_rows((0..200).map(row));
    let over = AtomicBool::new(false);
    let (rounds, gone) = std::thread::scope(|threads| {
        let (world, over) = (&world, &over);
        let keeper = threads.spawn(move || {
            let mut rounds = 0;
            while !over.load(Ordering::SeqCst) {
                let options =
                    MaintainOptions { max_rows: (rounds % 3 == 0).then_some(64), ..MaintainOptions::live() };
                world.db.maintain_with(&options.passes(all_passes())).unwrap();
                rounds += 1;
            }
            rounds
        });
        let reader = threads.spawn(move || {
            let mut at = 0;
            while !over.load(Ordering::SeqCst) {
                at += 1;
                let snapshot = world.db.snapshot().unwrap();
                let query = Query::vector(question(at)).k(5);
                let hits = snapshot.namespace(world.ns.name()).unwrap().search(&query).unwrap().hits;
                let best = snapshot
                    .namespace(world.ns.name())
                    .unwrap()
                    .search(query.effort(Effort::Exact))
                    .unwrap()
                    .hits;
                assert_eq!(hits.len(), best.len());
                assert!(
                    hits.iter().zip(&best).all(|(hit, best)| hit.score <= best.score),
                    "a dead one among the hits"
                );
            }
        });
        let writer = threads.spawn(move || {
            let mut gone = BTreeSet::new();
            for at in 200..ROWS {
                world.add(row(at));
                if at % 3 == 0 {
                    let victim = at / 2;
                    world.ns.forget(Forget::names([format!("k{victim}")])).unwrap();
                    gone.insert(victim);
                }
            }
            gone
        });
        let gone = writer.join().unwrap();
        over.store(true, Ordering::SeqCst);
        reader.join().unwrap();
        (keeper.join().unwrap(), gone)
    });
    assert!(rounds > 0);
    world.check();
    for _ in 0..2 {
        let live: Vec<usize> = (0..ROWS).filter(|at| !gone.contains(at)).collect();
        assert_eq!(world.vectors().live, live.len() as u64);
        for at in &live {
            let hits = world.hits(&Query::vector(vector(*at)).k(1));
            assert_eq!(hits[0].id, world.row(format!("k{at}")).id, "row {at} does not find itself");
        }
        for at in &gone {
            assert!(world.hits(&Query::vector(vector(*at)).k(1))[0].score < 0.999_9, "row {at} is gone");
        }
        world.maintain(&all_passes());
        assert_eq!((world.vectors().dead, world.vectors().tail), (0, 0));
        world.check();
    }
}
