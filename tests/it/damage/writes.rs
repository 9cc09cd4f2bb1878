//! A write that meets damage to an index has this index written anew, and leaves the others alone.

use std::collections::BTreeSet;

use oubliette::maintain::{IndexReport, MaintainOptions, Pass};
use oubliette::report::CheckOptions;
use oubliette::{Draft, Forget};

use super::store::{overwrite, tables};
use crate::growth::cost;
use crate::world::{World, axis};

const AGENTS: usize = 9;

/// A memory of each of some agents and a second one that stays, with so many blocks of these tables
/// damaged, one for each agent at most.
fn damaged(agents: usize, damaged: &[&str], blocks: usize) -> World {
    let mut world = World::new();
    for agent in 0..agents {
        for key in ["goes", "stays"] {
            let text = format!("{key} with agent {agent}");
            world.add(
                Draft::new(text)
                    .key(format!("{key}{agent}"))
                    .agent(format!("a{agent}"))
                    .vector(axis(agent % 3)),
            );
        }
    }
    world.db.clone().close().unwrap();
    let rows = tables(&world.path());
    for table in damaged {
        assert_eq!(rows[*table].len(), agents, "a block for each agent");
        for (key, value) in rows[*table].iter().take(blocks) {
            let mut value = value.clone();
            let middle = value.len() / 2;
            value[middle] ^= 16;
            overwrite(&world.path(), table, key, &value);
        }
    }
    world.open_again(|builder| builder);
    world
}

/// The damaged tables, and how many findings they have.
fn found(world: &World) -> (BTreeSet<String>, usize) {
    let report = world.db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
    let tables: Vec<_> = report.findings.iter().map(|finding| finding.table.to_string()).collect();
    (tables.iter().cloned().collect(), tables.len())
}

#[test]
fn a_write_that_meets_damage_mends_the_index_that_it_met() {
    for table in ["slot", "text_doc", "slot_head"] {
        let world = damaged(AGENTS, &[table], AGENTS);
        let (_, before) = found(&world);
        world.forget(&["goes0"]);
        let (tables, after) = found(&world);
        assert!(tables.contains(table), "{table}: nobody else has written to the others");
        assert!(after >= before * (AGENTS - 1) / AGENTS, "{table}: {after} of {before} findings are left");
        world.forget(&["goes1"]);
        world.db.reindex().unwrap();
        world.check();
    }
}

/// Where one index after the other is damaged, those of the namespace are written anew at once.
#[test]
fn a_write_that_meets_much_damage_mends_all_of_it() {
    let world = damaged(AGENTS, &["slot", "text_doc"], AGENTS);
    let names = (0..AGENTS).map(|agent| format!("goes{agent}"));
    world.ns.forget(Forget::names(names)).unwrap();
    world.check();
}

/// Small indexes share the steps of the pass `index`: the others of a damaged one get their postings all the same.
#[test]
fn a_damaged_index_of_words_keeps_no_other_from_being_posted() {
    for table in ["text_doc", "text_head"] {
        let world = damaged(AGENTS, &[table], 1);
        let index = MaintainOptions::live().passes([Pass::Index]);
        let report = world.ns.maintain_with(&index).unwrap().passes.remove(0);
        let posted = report.report.get::<IndexReport>().unwrap().posted;
        let others = 2 * (AGENTS as u64 - 1);
        assert!(posted >= others, "{table}: {posted} of {others} were posted, {} skipped", report.skipped);
        world.db.reindex().unwrap();
        world.check();
    }
}

/// How many other agents there are does not matter, but for the one look at each memory that tells whose it is.
#[test]
fn what_a_write_costs_that_meets_damage() {
    let of = |agents: usize| {
        let world = damaged(agents, &["slot"], agents);
        let cost = cost(|| drop(world.forget(&["goes0"])));
        world.db.reindex().unwrap();
        cost
    };
    let (small, large) = (of(10), of(40));
    let more = large.read - small.read;
    assert!(more <= 2 * 30 + 30 && large.written <= small.written + 8, "{small:?}, then {large:?}");
}
