//! What an operation on one namespace costs as a database gets more of them, in rows read and written: always the same. And
//! what agents of one namespace share.

use oubliette::WriteOptions;
use oubliette::maintain::{IndexReport, MaintainOptions, Pass};

use crate::growth::{constant, cost, fill, world};
use crate::world::{World, text};

/// Gives the database one more namespace for each number, with one memory in each.
fn people(world: &World, from: usize, to: usize) {
    for at in from..to {
        world.db.namespace(format!("person-{at}").as_str()).unwrap().add("Ann prefers tea").unwrap();
    }
}

/// Whoever takes a run back in many namespaces asks each for it. Each asked for all of them.
#[test]
fn taking_back_a_run_of_one_namespace_among_many() {
    let world = world();
    let undo = || {
        let run = world.ns.start_import().unwrap();
        let how = WriteOptions { run: Some(run), ..WriteOptions::default() };
        world.ns.add_all(vec![text("Bob prefers coffee")], &how).unwrap();
        let first = cost(|| assert_eq!(world.ns.undo(run).unwrap().removed, 1));
        (first, cost(|| assert!(world.ns.undo(run).unwrap().already)))
    };
    people(&world, 0, 5);
    let small = undo();
    people(&world, 5, 200);
    let large = undo();
    constant(small.0, large.0);
    constant(small.1, large.1);
}

/// The passes of one namespace look at no other.
#[test]
fn maintaining_one_namespace_among_many() {
    let world = world();
    let options = MaintainOptions::live().passes([Pass::Expire, Pass::Limbo]);
    let maintain = || cost(|| drop(world.ns.maintain_with(&options).unwrap()));
    world.add(text("Bob prefers coffee"));
    people(&world, 0, 5);
    let small = maintain();
    people(&world, 5, 200);
    constant(small, maintain());
}

/// A few texts of each of many agents get their postings in a few commits. It took two for each agent.
#[test]
fn the_short_texts_of_many_agents_share_a_commit() {
    const AGENTS: usize = 300;
    let world = world();
    let index = MaintainOptions::live().passes([Pass::Index]);
    let say = |round: usize| {
        fill(&world, 0, AGENTS, |at| {
            text(&format!("note {round} of the crew"))
                .key(format!("{at}-{round}"))
                .agent(format!("agent-{at}"))
        });
        let before = world.db.writes();
        let report = world.ns.maintain_with(&index).unwrap();
        let details = report.passes[0].report.get::<IndexReport>().unwrap().clone();
        assert_eq!((details.posted, details.unposted), (AGENTS as u64, 0));
        world.check();
        (world.db.writes() - before, details.joined)
    };
    let (first, joined) = say(0);
    assert!(first <= 4 && joined == 0, "{first} commits, {joined} blocks joined");
    let (then, joined) = say(1);
    assert!(then <= 6 && joined > 0, "{then} commits, {joined} blocks joined");
}
