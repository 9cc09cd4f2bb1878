//! What a run of summaries costs as a database grows, in rows read and written.

use oubliette::gc::{Extractive, GcRunOptions};
use oubliette::policy::Syntax;
use oubliette::{Draft, Kind};

use crate::growth::{cost, fill, linear, world};
use crate::world::{World, text};

/// A run of summaries reads of what is old about as much for each plan as the plan takes. Each plan read thousands.
#[test]
fn a_run_of_summaries_reads_what_it_takes() {
    let world = world();
    world.db.set_policy("gc.auto_probes = 0", Syntax::Toml).unwrap();
    let say = |at: usize| {
        let rest = "That is how it was, and so it will be for all of us. Well, when would you do that?";
        text(&format!("Ann: Box {at} went to Ghent{at}. {rest}"))
            .kind(Kind::Message)
            .channel(format!("yard-{}", at / 20))
            .created_at(world.now().minus("30d".parse().unwrap()))
    };
    let dry = GcRunOptions { dry_run: true, ..GcRunOptions::default() };
    let run = || {
        let mut done = None;
        let cost = cost(|| done = Some(world.ns.gc_run(&Extractive::default(), &dry, |_| ()).unwrap()));
        (cost, done.unwrap().sources)
    };
    fill(&world, 0, 1_000, say);
    let small = run();
    fill(&world, 1_000, 4_000, say);
    let large = run();
    assert_eq!((small.1, large.1), (1_000, 4_000));
    linear(small.0, large.0, 4);
}

fn say_in_pairs(world: &World) -> impl Fn(usize) -> Draft + '_ {
    let rest = "That is how it was, and so it will be for all of us. Well, when would you do that?";
    move |at: usize| {
        text(&format!("Ann: Box {at} went to Ghent{at}. {rest}"))
            .kind(Kind::Message)
            .channel("yard")
            .thread(format!("box-{}", at / 2))
            .created_at(world.now().minus("30d".parse().unwrap()))
    }
}

/// The plans of one run read what is old once. Each plan read all that the plans before it had left, to know which memories
/// are of one thread.
#[test]
fn the_plans_of_a_run_of_summaries_read_once() {
    let of = |pairs: usize| {
        let world = world();
        world.db.set_policy("gc.auto_probes = 0\ngc.max_groups = 2", Syntax::Toml).unwrap();
        fill(&world, 0, 2 * pairs, say_in_pairs(&world));
        let mut done = None;
        let cost = cost(|| {
            done = Some(world.ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap());
        });
        let done = done.unwrap();
        assert_eq!((done.committed, done.sources), (pairs as u64, 2 * pairs as u64), "{done:?}");
        cost
    };
    linear(of(50), of(200), 4);
}

/// A run ends when nothing is left, however many plans it takes. It ended after a thousand plans, without a word.
#[test]
fn a_run_of_summaries_of_very_many_plans() {
    let world = world();
    world.db.set_policy("gc.auto_probes = 0\ngc.max_groups = 1", Syntax::Toml).unwrap();
    fill(&world, 0, 2_020, say_in_pairs(&world));
    let done = world.ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap();
    assert_eq!((done.plans, done.committed, done.sources), (1_010, 1_010, 2_020));
}
