//! What counts the uses of one memory can't be read: the other memories are maintained and counted as if it were whole, and nobody
//! takes the memory for an unused one.

use super::store::{Rows, overwrite, tables};
use crate::world::{World, text};
use oubliette::gc::{GcOptions, GroupState};
use oubliette::maintain::{MaintainOptions, Pass, PassReport, PruneTarget};
use oubliette::memory::{ContextDraft, Got, Inclusion, Tier};
use oubliette::policy::Syntax;
use oubliette::{Draft, Error, Kind, MemoryId};

/// Turns a bit in the one row of a table with this key.
pub(super) fn damage(world: &mut World, table: &str, rest: &[u8]) {
    world.db.clone().close().unwrap();
    let key = [&[0, 0, 0, 1], rest].concat();
    let rows: Rows = tables(&world.path()).remove(table).unwrap();
    let (key, mut value) = rows.into_iter().find(|(found, _)| *found == key).expect("a row with the key");
    let middle = value.len() / 2;
    value[middle] ^= 1;
    overwrite(&world.path(), table, &key, &value);
    world.reopen();
}

pub(super) fn run(world: &World, pass: Pass, options: MaintainOptions) -> PassReport {
    world.db.maintain_with(&options.passes([pass])).unwrap().passes.remove(0)
}

/// Memories that were used, the uses of the first of which can't be read.
fn used(count: usize) -> (World, Vec<MemoryId>) {
    let mut world = World::new();
    let draft =
        |at| text(&format!("walrus {at}")).kind(Kind::Episode).tier(Tier::Episodic).retrieval_count(1);
    let ids: Vec<MemoryId> = (0..count).map(|at| world.add(draft(at)).id).collect();
    damage(&mut world, "access", ids[0].as_bytes());
    (world, ids)
}

fn is_gone(world: &World, id: MemoryId) -> bool {
    matches!(world.get(id), Ok(Got::Tombstone(_)))
}

#[test]
fn the_cap_holds_past_a_memory_whose_uses_cannot_be_read() {
    let (world, ids) = used(5);
    world.db.set_policy("sweeper.short_term_cap = 2", Syntax::Toml).unwrap();
    let report = run(&world, Pass::Cap, MaintainOptions::live());
    assert_eq!((report.planned, report.changed, report.damaged), (3, 3, 1));
    assert_eq!(ids.iter().filter(|id| world.is_live(**id)).count(), 1);
    assert!(!is_gone(&world, ids[0]), "nobody knows whether it is in use");
    world.forget_id(ids[0]);
}

#[test]
fn memories_are_pruned_past_one_whose_uses_cannot_be_read() {
    let (world, ids) = used(5);
    let prune = Some(PruneTarget::new(Kind::Episode, 1));
    world.advance("10d");
    let report = run(&world, Pass::Prune, MaintainOptions { prune, ..MaintainOptions::live() });
    assert_eq!(report.damaged, 1);
    assert!(report.changed >= 3 && report.changed == report.planned, "{report:?}");
    assert!(!is_gone(&world, ids[0]));
    world.forget_id(ids[0]);
}

#[test]
fn a_context_counts_the_memories_beside_one_whose_uses_cannot_be_read() {
    let (world, ids) = used(3);
    let context = ContextDraft::new("turn", ids.iter().map(|id| Inclusion::new(*id, 10)));
    let report = world.ns.context_log_write(&context).unwrap();
    assert_eq!((report.counted, report.unknown), (2, vec![ids[0].to_string()]));
    assert_eq!(world.row(ids[1]).included_count_total, 1);
    world.forget_id(ids[0]);
}

#[test]
fn a_summary_is_refused_where_the_uses_of_a_source_cannot_be_read() {
    let mut world = World::new();
    let message = |at: usize| {
        let text = format!("Ann: Box {at} went to Ghent, as it was to be, and so it will be for all of us.");
        Draft::new(text).kind(Kind::Message).channel("yard").created_at(world.ago("20d")).retrieval_count(1)
    };
    let ids: Vec<MemoryId> = (0..3).map(|at| world.add(message(at)).id).collect();
    let plan = world.ns.gc_plan(&GcOptions::default()).unwrap();
    damage(&mut world, "access", ids[0].as_bytes());
    let names: Vec<String> = ids.iter().map(MemoryId::to_string).collect();
    let span = serde_json::json!({ "start": 0, "end": 4_000_000_000_000_i64 });
    let answer = serde_json::json!({
        "topic": "boxes", "time_range": span, "summary": ["Boxes went to Ghent"], "source_ids": names
    });
    let refused = world.ns.gc_commit(plan.plan_id, "1", &answer.to_string(), None).unwrap_err();
    assert!(matches!(refused, Error::Refused { code: "source_changed", .. }), "{refused}");
    let group = world.ns.gc_show(plan.plan_id).unwrap().groups.remove(0);
    assert_eq!(group.state, GroupState::Refused, "the refusal stands on the group");
    world.forget_id(ids[0]);
}
