//! One row of the inclusion log can't be read: memories move past it, and it goes when it is old.

use super::uses::{damage, run};
use crate::world::{World, text};
use oubliette::MemoryId;
use oubliette::maintain::{MaintainOptions, Pass, RenamespaceOptions};
use oubliette::memory::{ContextDraft, Inclusion};
use oubliette::report::CheckOptions;

/// Two contexts of two memories, of which the first can't be read.
fn logged() -> (World, [MemoryId; 2]) {
    let mut world = World::new();
    let ids = ["a", "b"].map(|user| {
        world.add(text(&format!("of {user}")).metadata(serde_json::json!({ "user_id": user }))).id
    });
    for name in ["turn", "whole"] {
        let context = ContextDraft::new(name, ids.map(|id| Inclusion::new(id, 10)));
        world.ns.context_log_write(&context).unwrap();
    }
    damage(&mut world, "context", b"turn");
    (world, ids)
}

fn findings(world: &World) -> usize {
    world.db.check(&CheckOptions::default()).unwrap().findings.len()
}

#[test]
fn a_damaged_context_goes_when_it_is_old_and_leaves_nothing() {
    let (world, _) = logged();
    assert_eq!(findings(&world), 1);
    world.advance("200d");
    assert_eq!(run(&world, Pass::Fold, MaintainOptions::live()).changed, 2);
    assert_eq!(findings(&world), 0);
    assert_eq!(run(&world, Pass::Fold, MaintainOptions::live()).changed, 0, "nothing is left to do");
}

#[test]
fn memories_move_past_a_damaged_context() {
    let (world, ids) = logged();
    let how = RenamespaceOptions { dry_run: false, drop_keys: false };
    let report = world.db.split_namespace("default", &[], &how).unwrap();
    assert_eq!(report.moved, 2, "{report:?}");
    for (user, id) in ["a", "b"].into_iter().zip(ids) {
        let there = world.db.namespace(user).unwrap();
        assert_eq!(there.contexts_of(id, None, 10).unwrap().items.len(), 1, "the context that is whole");
    }
    world.advance("200d");
    run(&world, Pass::Fold, MaintainOptions::live());
    assert_eq!(findings(&world), 0, "what stayed behind has gone for its age");
}

#[test]
fn a_namespace_moves_past_a_damaged_context() {
    let (world, ids) = logged();
    world.db.namespace("other").unwrap().add(text("was there before")).unwrap();
    let how = RenamespaceOptions { dry_run: false, drop_keys: false };
    let report = world.db.move_namespace("default", "other", &how).unwrap();
    assert_eq!(report.moved, 2, "{report:?}");
    let there = world.db.namespace("other").unwrap();
    assert_eq!(there.contexts_of(ids[0], None, 10).unwrap().items.len(), 1);
    assert_eq!(findings(&world), 0, "the log of the old name has gone with the namespace");
}
