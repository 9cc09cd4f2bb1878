//! One snapshot of a series in a period stays.

// DEDUP-69, DEDUP-70.

use serde_json::json;

use super::bed::{Bed, NOW, field, go, id, pin, row};
use crate::hygiene::plan::{Action, Plan};
use crate::hygiene::snapshots::{PruneHistoryReport, plan};
use crate::ledger::{Change, NewRow};
use crate::model::{Kind, MemoryId, TombstoneReason};
use crate::policy::Policy;

fn snapshot(n: u8, at: &str) -> NewRow {
    let mut row = row(id(n), &format!("the profile at {at}"));
    row.vitals.kind_code = Kind::Snapshot.code();
    row.content.metadata = json!({ "timestamp": at });
    row
}

fn planned(bed: &Bed, series: Option<&str>, policy: &Policy) -> (Plan, PruneHistoryReport) {
    plan(&bed.snapshot(), &field(), series, policy, &mut go).unwrap().unwrap()
}

/// Those that go, with what stands in their place.
fn gone(plan: &Plan) -> Vec<(MemoryId, Option<MemoryId>)> {
    let of = |action: &Action| match action {
        Action::Retire { id, version: 1, access_seq: None, visible: true, reason, replaced_by } => {
            let replaced = *reason == TombstoneReason::SnapshotReplaced;
            assert_eq!(replaced, replaced_by.is_some());
            (*id, *replaced_by)
        }
        other => panic!("{other:?}"),
    };
    plan.actions.iter().map(of).collect()
}

const DAY: [&str; 4] =
    ["2026-02-25T16:43:35Z", "2026-02-25T17:42:17Z", "2026-02-25T22:49:36Z", "2026-02-25T23:05:49Z"];

#[test]
fn v189_the_last_of_the_day_stays() {
    let bed = Bed::of(DAY.iter().zip([4, 2, 3, 1]).map(|(at, n)| snapshot(n, at)).collect());
    let (plan, report) = planned(&bed, None, &Policy::default());
    assert_eq!(gone(&plan), [(id(4), Some(id(1))), (id(2), Some(id(1))), (id(3), Some(id(1)))]);
    assert_eq!((report.scanned, report.planned, report.series, report.deleted), (4, 3, 1, 0));
    assert_eq!(plan.cost(), 3);
    bed.apply(gone(&plan).into_iter().map(|(id, replaced_by)| Change::Remove {
        id,
        reason: TombstoneReason::SnapshotReplaced,
        replaced_by,
    }));
    let (again, report) = planned(&bed, None, &Policy::default());
    assert_eq!(
        (again, report.scanned, report.planned),
        (Plan::default(), 1, 0),
        "a second run finds nothing"
    );
}

#[test]
fn v190_a_timestamp_that_cannot_be_read_is_counted_and_kept() {
    let mut rows: Vec<_> = DAY.iter().zip(1..).map(|(at, n)| snapshot(n, at)).collect();
    rows[3].content.metadata = json!({ "timestamp": "yesterday" });
    let mut lonely = snapshot(5, "never");
    lonely.content.series = "other".to_owned();
    rows.push(lonely);
    let (plan, report) = planned(&Bed::of(rows), None, &Policy::default());
    assert_eq!(gone(&plan), [(id(1), Some(id(3))), (id(2), Some(id(3)))]);
    assert_eq!((report.scanned, report.skipped, report.planned, report.series), (5, 2, 2, 2));
}

#[test]
fn a_series_a_partition_and_a_period_are_apart() {
    let mut rows: Vec<_> = (1..=6).map(|n| snapshot(n, DAY[0])).collect();
    rows[1].content.series = "other".to_owned();
    rows[2].vitals.place.partition = 1;
    rows[3] = snapshot(4, "2026-02-26T00:00:00Z");
    rows[4].vitals.kind_code = Kind::Knowledge.code();
    let bed = Bed::of(rows);
    let (plan, report) = planned(&bed, None, &Policy::default());
    assert_eq!(gone(&plan), [(id(1), Some(id(6)))], "at one instant the larger id stays (DEDUP-67)");
    assert_eq!((report.series, report.scanned), (3, 5));
    let mut policy = Policy::default();
    policy.snapshot.zone = "+08:00".to_owned();
    let (plan, _) = planned(&bed, None, &policy);
    assert_eq!(gone(&plan), [(id(1), Some(id(4))), (id(6), Some(id(4)))], "one day in that zone");
    let (plan, report) = planned(&bed, Some("other"), &policy);
    assert_eq!((plan.actions.len(), report.scanned), (0, 1));
    policy.snapshot.zone = "Mars/Olympus".to_owned();
    let why = crate::hygiene::snapshots::plan(&bed.snapshot(), &field(), None, &policy, &mut go).unwrap_err();
    assert!(why.to_string().contains("Mars/Olympus"), "{why}");
}

#[test]
fn creation_counts_where_no_timestamp_is_and_expired_rows_do_not() {
    let mut rows = vec![snapshot(1, DAY[0]), snapshot(2, DAY[1]), snapshot(3, DAY[2])];
    rows[1].content.metadata = json!({});
    rows[1].vitals.created_at = DAY[3].parse().unwrap();
    rows[2].vitals.times.expires_at = Some(NOW);
    let (plan, report) = planned(&Bed::of(rows), None, &Policy::default());
    assert_eq!((gone(&plan), report.scanned), (vec![(id(1), Some(id(2)))], 2), "DEDUP-68");
}

#[test]
fn the_last_periods_stay_and_protected_rows_do() {
    let at = |day: u8, hour: u8| format!("2026-02-{day:02}T{hour:02}:00:00Z");
    let mut rows: Vec<_> = (1..=4).map(|day| snapshot(day, &at(day, 9))).collect();
    rows.push(snapshot(5, &at(1, 8)));
    rows.push(snapshot(6, &at(4, 8)));
    pin(&mut rows[1]);
    rows[5].vitals.admin_locked = true;
    let mut policy = Policy::default();
    policy.snapshot.keep_last = 2;
    let (plan, report) = planned(&Bed::of(rows), None, &policy);
    assert_eq!(gone(&plan), [(id(5), None), (id(1), None)], "DEDUP-70: days 3 and 4 stay");
    assert_eq!((report.planned, report.protected_skipped), (2, 2));
}
