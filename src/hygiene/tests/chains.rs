//! A superseded row that nothing stands for any more is live again.

// LIFE-9.

use super::bed::{Bed, NOW, NS, field, go, id, row};
use crate::hygiene::carry::{Carried, Cursor, carry_out};
use crate::hygiene::chains::{RepairSupersessionReport, plan};
use crate::hygiene::check::{CheckOptions, check};
use crate::hygiene::plan::Action;
use crate::ledger::{Change, Moves};
use crate::model::{
    MemoryId, RuleId, Significance, SupersedeMode, Supersession, Time, TombstoneReason, Vitals,
};
use crate::store::control::CounterSort;
use crate::store::{PartId, Rows, Table, keys};

const MODE: SupersedeMode = SupersedeMode::Correction;

fn bed(rows: u8) -> Bed {
    Bed::of((1..=rows).map(|n| row(id(n), &format!("text {n}"))).collect())
}

fn repaired(bed: &Bed) -> RepairSupersessionReport {
    let (plan, report) = plan(&bed.snapshot(), &field(), &mut go).unwrap().unwrap();
    let told: usize = report.restored.len() + report.repointed.len();
    assert_eq!(plan.actions.len(), told);
    assert_eq!(plan.cost(), 0, "a repair removes nothing");
    report
}

/// Plans and carries the plan out, after which the file is whole: ids that are live, ascending.
fn mended(bed: &Bed) -> Vec<MemoryId> {
    let (plan, _) = plan(&bed.snapshot(), &field(), &mut go).unwrap().unwrap();
    let rows = plan.actions.len() as u64;
    bed.ledger(|ledger, context| {
        let rule = RuleId::REPAIR_SUPERSESSION;
        let carried = Carried { plan: &plan, rule, latest_happened_at: false, counted: None };
        let (cursor, done) =
            carry_out(ledger, context, carried, Cursor::default(), usize::MAX, &mut || false)?;
        assert!(cursor.is_done(&plan));
        assert_eq!((done.rows, done.mended, done.skipped), (rows, rows, 0));
        Ok(())
    });
    let snapshot = bed.snapshot();
    assert_eq!(repaired(bed).restored, [], "one repair is enough");
    let report = check(&snapshot, &CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
    assert!(report.ok, "{:#?}", report.findings);
    let live =
        |n: &u8| snapshot.vitals(NS, id(*n)).unwrap().is_some_and(|row| row.times.superseded.is_none());
    (1..=9).filter(live).map(id).collect()
}

/// Writes into the file what no call of the ledger writes.
fn point(bed: &Bed, from: u8, to: u8, change: impl Fn(&mut Vitals)) {
    bed.write(|tx| {
        let mut vitals = tx.vitals(NS, id(from))?.unwrap();
        if let Some(by) = vitals.times.superseded_by() {
            tx.delete(Table::Superseded, &keys::superseded(NS, by, id(from)))?;
        }
        vitals.times.superseded = Some(Supersession { at: NOW, by: id(to), mode: MODE, via: None });
        change(&mut vitals);
        tx.put_vitals(NS, id(from), &vitals)?;
        tx.put(Table::Superseded, &keys::superseded(NS, id(to), id(from)), &[])
    });
}

fn ids(all: &[u8]) -> Vec<MemoryId> {
    all.iter().map(|n| id(*n)).collect()
}

/// A circle of the rows 1, 2 and 3, of which the ledger counted each as superseded.
fn circle() -> Bed {
    let bed = bed(4);
    for (old, new) in [(1, 2), (2, 3), (3, 4)] {
        let (old, new) = (id(old), id(new));
        bed.apply([Change::Supersede {
            old,
            new,
            mode: MODE,
            at: NOW,
            moves: Moves::None,
            since: None,
            via: None,
        }]);
    }
    point(&bed, 3, 1, |_| ());
    bed
}

#[test]
fn v172_a_row_whose_superseder_is_lost_is_live_again() {
    let bed = bed(3);
    bed.supersede(1, 2, MODE);
    bed.remove(2, TombstoneReason::Expired, None);
    assert_eq!(mended(&bed), ids(&[3]), "a purged one was meant to go");
    bed.ledger(|ledger, _| {
        let tombstone = ledger.tx.tombstone(NS, id(2))?.unwrap();
        ledger.tx.forged().delete_tombstone(NS, &tombstone)?;
        ledger.counters.add(NS, PartId(0), CounterSort::Tombstones, "", -1, 0);
        Ok(())
    });
    assert_eq!(mended(&bed), ids(&[1, 3]));
}

#[test]
fn v173_one_row_of_a_circle_is_live_again() {
    let bed = circle();
    assert_eq!(mended(&bed), ids(&[1, 4]));
    let by = |n| bed.snapshot().vitals(NS, id(n)).unwrap().unwrap().times.superseded_by();
    assert_eq!((by(2), by(3)), (Some(id(1)), Some(id(1))), "the others point to it");
}

#[test]
fn v174_a_row_whose_superseder_went_with_its_tag_is_live_again() {
    for (reason, live) in [(TombstoneReason::Forget, ids(&[3])), (TombstoneReason::ForgetByTag, ids(&[1, 3]))]
    {
        let bed = bed(3);
        bed.supersede(1, 2, MODE);
        bed.remove(2, reason, None);
        assert_eq!(mended(&bed), live, "{reason:?}");
    }
}

#[test]
fn v172_a_missing_end_restores_and_a_purged_one_does_not() {
    let bed = bed(3);
    bed.supersede(1, 2, MODE);
    assert_eq!(repaired(&bed).restored, [], "2 stands for it");
    let purged = self::bed(2);
    purged.supersede(1, 2, MODE);
    purged.remove(2, TombstoneReason::Expired, None);
    assert_eq!(repaired(&purged).restored, []);
    bed.write(|tx| tx.delete(Table::Vitals, &keys::memory(NS, id(2))));
    let report = repaired(&bed);
    assert_eq!((report.restored, report.scanned, report.dry_run), (ids(&[1]), 1, true));
}

#[test]
fn only_the_last_row_of_a_chain_is_restored() {
    let bed = bed(4);
    bed.supersede(1, 2, MODE);
    bed.supersede(2, 4, MODE);
    bed.supersede(3, 4, MODE);
    bed.write(|tx| tx.delete(Table::Vitals, &keys::memory(NS, id(4))));
    assert_eq!(repaired(&bed).restored, ids(&[2, 3]), "1 has 2 again, and old facts stay where they are");
}

#[test]
fn v173_a_circle_is_opened_at_its_canonical_row() {
    let bed = bed(2);
    point(&bed, 1, 2, |_| ());
    point(&bed, 2, 1, |vitals| vitals.significance = Significance::Core);
    let report = repaired(&bed);
    assert_eq!((report.restored, report.repointed, report.cycles), (ids(&[2]), ids(&[]), 1), "1 points to 2");
}

#[test]
fn the_others_of_a_circle_point_to_the_canonical_row() {
    let bed = bed(6);
    point(&bed, 1, 2, |vitals| vitals.created_at = Time::from_millis(1));
    point(&bed, 2, 3, |_| ());
    point(&bed, 3, 4, |_| ());
    point(&bed, 4, 1, |_| ());
    point(&bed, 5, 2, |_| ());
    point(&bed, 6, 6, |_| ());
    let report = repaired(&bed);
    assert_eq!(report.restored, ids(&[1, 6]), "5 leads to the circle and is not of it");
    assert_eq!((report.repointed, report.cycles), (ids(&[2, 3]), 2), "4 points to 1 already");
    let (plan, _) = plan(&bed.snapshot(), &field(), &mut go).unwrap().unwrap();
    assert_eq!(plan.actions[0], Action::Restore { id: id(1), version: 1 });
    assert_eq!(plan.actions[2], Action::Repoint { id: id(2), version: 1, to: id(1) });
}

#[test]
fn v174_a_forgotten_tag_restores_and_a_forgotten_row_does_not() {
    for (reason, restored) in [
        (TombstoneReason::Forget, ids(&[])),
        (TombstoneReason::ForgetByTag, ids(&[1])),
        (TombstoneReason::Undone, ids(&[1])),
        (TombstoneReason::CapEvicted, ids(&[])),
        (TombstoneReason::Pruned, ids(&[])),
    ] {
        let bed = bed(2);
        bed.supersede(1, 2, MODE);
        bed.remove(2, reason, None);
        assert_eq!(repaired(&bed).restored, restored, "{reason:?}");
    }
}

#[test]
fn a_tombstone_leads_on_to_what_stands_in_its_place() {
    let merged = || {
        let bed = bed(3);
        bed.supersede(1, 2, MODE);
        bed.remove(2, TombstoneReason::Collapsed, Some(3));
        bed
    };
    let bed = merged();
    assert_eq!(repaired(&bed).restored, []);
    bed.remove(3, TombstoneReason::ForgetByTag, None);
    assert_eq!(repaired(&bed).restored, ids(&[1]));
    let circle = merged();
    point(&circle, 3, 1, |_| ());
    let report = repaired(&circle);
    assert_eq!((report.restored, report.cycles), (ids(&[1]), 1), "a circle through a tombstone is one");
}

#[test]
fn a_row_in_limbo_was_meant_to_go() {
    let bed = bed(2);
    bed.supersede(1, 2, MODE);
    bed.write(|tx| {
        tx.delete(Table::Vitals, &keys::memory(NS, id(2)))?;
        tx.put(Table::Limbo, &keys::memory(NS, id(2)), b"it")
    });
    assert_eq!(repaired(&bed).restored, []);
}
