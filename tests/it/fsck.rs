//! The audit of a file: what goes, what is only told, and what a dry run says of both.

use crate::world::{DIM, World, axis, span, text};
use oubliette::maintain::FsckReport;
use oubliette::memory::Tier;
use oubliette::policy::Syntax;
use oubliette::{Draft, Kind, MemoryId, NamespaceName, Outcome, WriteOptions};
use serde_json::json;

fn apart(world: &World, namespace: &str, drafts: Vec<Draft>) -> Vec<MemoryId> {
    let namespace: NamespaceName = namespace.parse().unwrap();
    let options = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let written: Vec<Outcome> = world.db.namespace(&namespace).unwrap().add_all(drafts, &options).unwrap();
    written.into_iter().map(|outcome| outcome.id).collect()
}

fn counts(report: &FsckReport) -> (u64, u64, u64) {
    (report.expired_purged, report.short_term_evicted, report.namespaces)
}

#[test]
fn what_is_over_and_what_is_too_much_goes() {
    let world = World::new();
    world
        .db
        .set_policy("sweeper.short_term_cap = 2\nbudget.floor = 1\npurge.per_write = 0", Syntax::Toml)
        .unwrap();
    for at in 0..3 {
        world.add(text(&format!("over {at}")).expiry(span("1h")));
    }
    world.add(text("over and pinned").expiry(span("1h")).tag("pinned"));
    for at in 0..5 {
        world.add(text(&format!("short {at}")).tier(Tier::Working));
    }
    apart(&world, "other", vec![text("elsewhere")]);
    world.advance("2h");
    let before = world.live();
    let dry = world.db.fsck(true).unwrap();
    assert_eq!(counts(&dry), (3, 3, 2));
    assert_eq!(world.live(), before);
    let done = world.db.fsck(false).unwrap();
    assert_eq!(counts(&done), (3, 3, 2), "the cap is held, whatever a sweep may remove");
    assert!(done.check.ok && done.failed.is_empty());
    assert_eq!(world.live().len(), before.len() - 3);
    assert_eq!(counts(&world.db.fsck(false).unwrap()), (0, 0, 2), "an audit without work is an audit");
}

#[test]
fn repeats_are_told_and_stay() {
    let world = World::new();
    let [a, b, c] = apart(
        &world,
        "default",
        vec![text("Ann  prefers\ttea"), text("ann prefers TEA").agent("crawler"), text("Ann prefers tea!")],
    )[..] else {
        panic!()
    };
    let other = apart(&world, "other", vec![text("Ann prefers tea"), text("Twice"), text("twice ")]);
    let stamp = |at: u32| json!({ "timestamp": format!("2026-01-0{at}") });
    for at in [1, 2] {
        world.add(text("{}").kind(Kind::Snapshot).metadata(stamp(at)));
    }
    let gone = apart(&world, "default", vec![text("Ann prefers tea!")]);
    world.forget_id(gone[0]);
    let report = world.db.fsck(false).unwrap();
    let mut expected = vec![vec![a.min(b), a.max(b)], vec![other[1].min(other[2]), other[1].max(other[2])]];
    expected.sort();
    assert_eq!(report.duplicate_groups, expected);
    assert!(world.is_live(a) && world.is_live(b) && world.is_live(c));
    let document = json!(report);
    assert_eq!(document["duplicate_groups"].as_array().unwrap().len(), 2);
}

/// V-266, its part about the audit.
#[test]
fn v266_texts_without_a_normal_form_are_no_repeats() {
    let world = World::new();
    let empty = (0..3).map(|at| text("").vector(axis(at)));
    let blank = (0..2).map(|_| text("   ").vector([0.5; DIM]));
    apart(&world, "default", empty.chain(blank).collect());
    let report = world.db.fsck(true).unwrap();
    assert!(report.duplicate_groups.is_empty());
    assert!(json!(report).get("duplicate_groups").is_none(), "absent when empty");
}

/// A pass that fails half-way has removed what it has removed, and the audit counts that.
#[cfg(all(unix, feature = "faults"))]
#[test]
fn what_a_failed_pass_has_removed_is_counted() {
    use std::sync::{Arc, atomic::Ordering};

    let mut halves = 0;
    for spared in 0..8 {
        let mut world = World::new();
        world.db.set_policy("purge.per_write = 0\npurge.batch = 2", Syntax::Toml).unwrap();
        for at in 0..6 {
            world.add(text(&format!("over {at}")).expiry(span("1h")));
        }
        world.advance("2h");
        world.db.clone().close().unwrap();
        let disk = crate::seam::SeamDisk::default();
        let cut = world.builder().durability(oubliette::Durability::Safe).disk(Arc::new(disk.clone()));
        let cut = cut.open(world.path()).unwrap();
        disk.0.spared.store(spared, Ordering::SeqCst);
        disk.0.syncs.store(1, Ordering::SeqCst);
        let report = cut.fsck(false).unwrap();
        assert!(report.check.ok, "{report:?}");
        drop(cut);
        world.reopen();
        let left = world.ns.stats().unwrap().memories.expired;
        assert_eq!(report.expired_purged, 6 - left, "{spared} syncs: {report:?}");
        halves += u32::from(!report.failed.is_empty() && 0 < left && left < 6);
    }
    assert!(halves > 0, "no pass failed half-way");
}
