//! Crowds of equal vectors: one of a crowd has the links, the others hang on it, and it can go.

use oubliette::maintain::Pass;
use oubliette::{Draft, Effort, Forget, Query, WriteOptions};

use super::{Chance, helped, maintained, question, vector};
use crate::world::World;

/// Different vectors.
const DISTINCT: usize = 400;

/// The vector of each of many rows: few are repeated often, most are not.
fn repeated(rows: usize) -> Vec<usize> {
    let mut chance = Chance(31);
    (0..rows)
        .map(|_| {
            let (a, b) = (chance.below(DISTINCT), chance.below(DISTINCT));
            if chance.below(3) > 0 { a * b / DISTINCT / 4 } else { a }
        })
        .collect()
}

fn rows(of: &[usize], first: usize) -> Vec<Draft> {
    let row = |(at, which): (usize, &usize)| {
        Draft::new(format!("row {which}")).key(format!("r{at}")).vector(vector(*which))
    };
    (first..).zip(of).map(row).collect()
}

fn import(world: &World, drafts: Vec<Draft>) {
    let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    world.ns.add_all(drafts, &how).unwrap();
}

/// What a row of a crowd asks, and what lies between crowds.
fn asked(at: usize) -> Query {
    Query::vector(if at.is_multiple_of(2) { vector(at * 7 % DISTINCT) } else { question(at) })
}

/// MODEL-56, and V-293 on made-up rows: writers link rows of which most repeat a vector. After every import the deep check
/// is clean and nothing near is missed, whether a pass ran or not.
#[test]
fn writers_link_crowds_of_equal_vectors_and_lose_none() {
    let world = World::with(helped);
    let all = repeated(2_400);
    for (part, of) in all.chunks(300).enumerate() {
        import(&world, rows(of, part * 300));
        world.check();
        assert!(world.recall(asked, 60) >= 0.99, "after import {part}");
    }
    assert_eq!(world.vectors().regime, "graph");
}

/// A29: crowds of equal vectors do not close themselves off, after a pass and after a rebuild.
#[test]
fn crowds_hide_nothing_after_a_rebuild_and_after_a_repair() {
    let world = World::with(maintained);
    import(&world, rows(&repeated(3_000), 0));
    world.maintain(&[Pass::Index]);
    assert!(world.recall(asked, 100) >= 0.99);
    world.db.reindex().unwrap();
    assert!(world.recall(asked, 100) >= 0.99);
    // The oldest of each crowd is the one with the links.
    let all = repeated(3_000);
    let mut met = std::collections::BTreeSet::new();
    let oldest: Vec<String> =
        (0..).zip(&all).filter(|(_, which)| met.insert(**which)).map(|(at, _)| format!("r{at}")).collect();
    assert!(oldest.len() > 200);
    world.ns.forget(Forget::names(oldest)).unwrap();
    world.check();
    assert!(world.recall(asked, 100) >= 0.99, "while they are dead");
    let slices = oubliette::maintain::MaintainOptions {
        max_rows: Some(40),
        ..oubliette::maintain::MaintainOptions::live()
    };
    for _ in 0..4 {
        world.db.maintain_with(&slices.clone().passes([Pass::Repair])).unwrap();
        world.check();
        assert!(world.recall(asked, 40) >= 0.99, "in the midst of the repair");
    }
    world.maintain(&[Pass::Repair]);
    assert_eq!(world.vectors().dead, 0);
    assert!(world.recall(asked, 100) >= 0.99, "after the repair");
    let whole: Vec<String> =
        (0..3_000).zip(&all).filter(|(_, which)| **which % 3 == 0).map(|(at, _)| format!("r{at}")).collect();
    world.ns.forget(Forget::names(whole)).unwrap();
    world.maintain(&[Pass::Repair]);
    assert!(world.recall(asked, 100) >= 0.99, "whole crowds are gone");
    import(&world, rows(&all[..600], 5_000));
    world.maintain(&[Pass::Index]);
    assert!(world.recall(asked, 100) >= 0.99, "and some come again");
    world.db.compact().unwrap();
    assert!(world.recall(asked, 40) >= 0.99, "in a copy");
}

/// All members of a crowd are found, not its host alone, and the length of the list counts different vectors.
#[test]
fn a_search_gives_every_member_of_a_crowd() {
    let world = World::with(maintained);
    let mut of: Vec<usize> = (0..200).collect();
    of.extend([7; 90]);
    import(&world, rows(&of, 0));
    world.maintain(&[Pass::Index]);
    let found = world.hits(&Query::vector(vector(7)).k(91).effort(Effort::Ef(100)));
    let best = found[0].score;
    assert_eq!(found.iter().filter(|hit| hit.score >= best - 1e-6).count(), 91);
    let near = world.hits(&Query::vector(vector(7)).k(95).effort(Effort::Ef(95)));
    let exact = world.hits(&Query::vector(vector(7)).k(95).effort(Effort::Exact));
    assert_eq!(near.len(), 95);
    assert!((near[94].score - exact[94].score).abs() < 1e-6);
}
