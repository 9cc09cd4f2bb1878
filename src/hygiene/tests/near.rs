//! Equal rows are those that the write ladder would have made one.

// DEDUP-55.

use serde_json::{Value, json};

use super::bed::{Bed, NOW, field, go, id, row};
use crate::hygiene::near::{NearDuplicateReport, plan};
use crate::hygiene::plan::{Action, Phase, Plan};
use crate::ledger::NewRow;
use crate::model::{AuthorKind, Kind, MemoryId, Significance, Tier, Time};
use crate::policy::{NormalizedMatch, Policy};

fn planned(bed: &Bed, policy: &Policy) -> (Plan, NearDuplicateReport) {
    plan(&bed.snapshot(), &field(), policy, &mut go).unwrap().unwrap()
}

/// Each group as canonical row and losers.
fn groups(plan: &Plan) -> Vec<Vec<MemoryId>> {
    let of = |action: &Action| match action {
        Action::Merge(group) => {
            assert_eq!(group.phase, Phase::Content);
            std::iter::once(group.canonical).chain(group.losers.iter().map(|loser| loser.id)).collect()
        }
        other => panic!("{other:?}"),
    };
    plan.actions.iter().map(of).collect()
}

fn pair(text: &str, change: impl Fn(&mut NewRow)) -> Bed {
    let mut rows = vec![row(id(1), "likes tea"), row(id(2), text)];
    change(&mut rows[1]);
    Bed::of(rows)
}

/// Whether a row with `text`, changed, is one with "likes tea".
fn is_one(text: &str, change: impl Fn(&mut NewRow)) -> bool {
    let (plan, report) = planned(&pair(text, change), &Policy::default());
    assert_eq!(report.duplicate_groups, plan.actions.len() as u64);
    plan.actions.len() == 1
}

#[test]
fn only_byte_equal_rows_that_are_alike_are_one() {
    assert!(is_one("likes tea", |_| ()));
    assert!(!is_one("Likes tea", |_| ()), "an equal fingerprint finds, it does not decide (DEDUP-4)");
    assert!(!is_one("likes coffee", |_| ()));
    let apart: [fn(&mut NewRow); 9] = [
        |row| row.vitals.kind_code = Kind::Skill.code(),
        |row| row.vitals.tier = Tier::Episodic,
        |row| row.vitals.place.partition = 1,
        |row| row.vitals.times.valid_from = Some(Time::EPOCH),
        |row| row.vitals.times.valid_to = Some(Time::MAX),
        |row| row.content.metadata = json!({ "project": "a" }),
        |row| row.content.metadata = json!({ "colour": "red" }),
        |row| row.vitals.times.expires_at = Some(NOW),
        |row| row.vitals.system_locked = true,
    ];
    for (at, change) in apart.into_iter().enumerate() {
        assert!(!is_one("likes tea", change), "case {at}");
    }
    let same: [fn(&mut NewRow); 5] = [
        |row| row.vitals.significance = Significance::Core,
        |row| row.holder.key = Some("a key".to_owned()),
        |row| row.holder.tags = vec!["tag".to_owned()],
        |row| row.content.scope_label = "elsewhere".to_owned(),
        |row| row.vitals.times.valid_from = None,
    ];
    for (at, change) in same.into_iter().enumerate() {
        assert!(is_one("likes tea", change), "case {at}");
    }
}

#[test]
fn the_order_of_metadata_is_nothing() {
    let with = |metadata: Value| {
        let mut row = row(id(metadata["n"].as_u64().unwrap() as u8), "likes tea");
        row.content.metadata = metadata;
        row.content.metadata.as_object_mut().unwrap().shift_remove("n");
        row
    };
    let rows = vec![
        with(json!({ "n": 1, "a": 1, "b": { "x": 1, "y": 2 } })),
        with(json!({ "n": 2, "b": { "y": 2, "x": 1 }, "a": 1 })),
        with(json!({ "n": 3, "b": { "y": 2, "x": 1 }, "a": 1.0 })),
    ];
    assert_eq!(groups(&planned(&Bed::of(rows), &Policy::default()).0), [[id(1), id(2)]]);
}

#[test]
fn spacing_and_case_may_differ_by_policy() {
    let texts = ["uses the lamp", "uses  THE lamp", "USES the lamp", "uses\nthe lamp", "uses the Lamp"];
    let rows = texts.iter().zip(1..).map(|(text, n)| row(id(n), text)).collect();
    let bed = Bed::of(rows);
    assert_eq!(planned(&bed, &Policy::default()).0.actions, []);
    let mut policy = Policy::default();
    policy.write.normalized_match = NormalizedMatch::Absorb;
    let found = groups(&planned(&bed, &policy).0);
    assert_eq!(found, [[id(1), id(2), id(4)]], "USES and Lamp may be names (DEDUP-52)");
}

#[test]
fn snapshots_and_keyless_messages_of_an_author_are_left_out() {
    let rows = |change: &dyn Fn(usize, &mut NewRow)| {
        let mut rows = vec![row(id(1), "likes tea"), row(id(2), "likes tea")];
        rows.iter_mut().enumerate().for_each(|(at, row)| change(at, row));
        groups(&planned(&Bed::of(rows), &Policy::default()).0).len()
    };
    assert_eq!(rows(&|_, row| row.vitals.kind_code = Kind::Snapshot.code()), 0);
    let message = |row: &mut NewRow| row.vitals.kind_code = Kind::Message.code();
    assert_eq!(rows(&|_, row| message(row)), 1, "without an author");
    let authored = |row: &mut NewRow| {
        message(row);
        row.content.author_kind = Some(AuthorKind::Bot);
    };
    assert_eq!(rows(&|_, row| authored(row)), 0);
    let keyed = |at: usize, row: &mut NewRow| {
        authored(row);
        row.holder.key = Some(format!("key {at}"));
    };
    assert_eq!(rows(&keyed), 1, "with a key");
}

#[test]
fn a_group_has_its_report() {
    let mut rows: Vec<_> = (1..=5).map(|n| row(id(n), "likes tea")).collect();
    rows.extend((6..=8).map(|n| row(id(n), "likes coffee")));
    rows[1].vitals.reinforcement_count = 4;
    rows[3].vitals.admin_locked = true;
    rows[7].content.metadata = json!({ "project": "b" });
    let bed = Bed::of(rows);
    let (plan, report) = planned(&bed, &Policy::default());
    assert_eq!(groups(&plan), [vec![id(2), id(1), id(3), id(5)], vec![id(6), id(7)]]);
    assert_eq!((report.scanned, report.duplicate_groups, report.duplicates_found), (8, 2, 4));
    assert_eq!((report.protected_skipped, plan.cost()), (1, 4));
    let sample = &report.samples[0];
    assert!(sample.signature.starts_with("content:"), "{}", sample.signature);
    assert_eq!((sample.canonical_summary.as_str(), sample.group_size), ("likes tea", 5));
    let mut stop = |_| true;
    assert!(
        crate::hygiene::near::plan(&bed.snapshot(), &field(), &Policy::default(), &mut stop)
            .unwrap()
            .is_none()
    );
}
