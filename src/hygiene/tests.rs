//! A store built by the ledger is clean; each fault, done by hand, is found by its code.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod bed;
mod bits;
mod chains;
mod collapse;
mod cut;
mod damage;
mod erasure;
mod fixture;
mod near;
mod snapshots;
mod texts;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::check::{CheckOptions, check};
use super::report::{CheckReport, Code};
use crate::ledger::Change;
use crate::model::{Actor, RuleId};
use crate::store::control::{CounterRow, CounterSort, TOTAL};
use crate::store::{PartId, Read, Rows, Table, Walk};
use fixture::{D, Fixture, H, NS};

fn report(fixture: &Fixture) -> CheckReport {
    let options = CheckOptions { deep: true, erased: Vec::new() };
    check(&fixture.store.snapshot().unwrap(), &options).unwrap()
}

#[test]
fn a_store_of_the_ledger_is_clean_and_every_row_is_counted() {
    let fixture = Fixture::new();
    let found = report(&fixture);
    assert_eq!(found.findings, vec![], "law 4: derived rows say what the memories do");
    assert!(found.ok && found.more == 0);
    let snapshot = fixture.store.snapshot().unwrap();
    let mut rows = 0;
    for table in Table::ALL {
        let before = rows;
        let count = &mut |_: &[u8], _: &[u8]| {
            rows += 1;
            Ok(ControlFlow::Continue(()))
        };
        snapshot.walk(*table, &Walk::all(), count).unwrap();
        assert!(rows > before, "the fixture has no row in {}", table.name());
    }
    assert_eq!(found.checked, rows);
}

// A row of limbo that lost its tombstone is erased all the same, and leaves one that says what the row knew (MODEL-29).
#[test]
fn limbo_without_a_tombstone_is_erased() {
    let fixture = Fixture::new();
    let stone = |fixture: &Fixture| fixture.store.snapshot().unwrap().tombstone(NS, H).unwrap();
    let before = stone(&fixture).unwrap();
    fixture.write(|tx| {
        tx.delete_tombstone(NS, &before)?;
        for part in [PartId(0), TOTAL] {
            let sort = CounterSort::Tombstones as u8;
            let CounterRow { rows, bytes } = tx.counter(NS, part, sort, "")?;
            tx.put_counter(NS, part, sort, "", CounterRow { rows: rows - 1, bytes })?;
        }
        Ok(())
    });
    assert!(!report(&fixture).ok);
    fixture.apply_as(Actor::Sweeper, vec![(RuleId::LIMBO, Change::Purge { id: H })]);
    assert_eq!(report(&fixture).findings, vec![]);
    let after = stone(&fixture).unwrap();
    assert_eq!((after.reason, after.replaced_by), (before.reason, before.replaced_by));
    assert_eq!((after.deleted_at, after.key_hashes), (before.deleted_at, before.key_hashes));
}

#[test]
fn every_code_is_found_when_its_fault_is_done() {
    let cases = damage::cases();
    for (code, fault) in &cases {
        let fixture = Fixture::new();
        fixture.write(|tx| fault(tx));
        let found = report(&fixture);
        let codes: BTreeSet<&str> = found.findings.iter().map(|finding| finding.code).collect();
        assert!(codes.contains(code.as_str()), "{code:?} was done, found were {:#?}", found.findings);
        assert!(!found.ok);
    }
    for code in Code::ALL {
        // Residues are found in bytes, not in rows: `erasure`; so is the length of the file: `cli::bad`. No walk loses its way among so
        // few nodes: `index::tests`.
        let elsewhere = [Code::Residue, Code::FileLength, Code::GraphRecall].contains(code);
        let tried = cases.iter().any(|(of, _)| of == code) || elsewhere;
        assert!(tried, "{code:?} has no case");
    }
}

#[test]
fn damage_does_not_end_the_walk() {
    let fixture = Fixture::new();
    fixture.write(|tx| {
        for id in [fixture::A, fixture::B] {
            tx.put(Table::Memory, &crate::store::keys::memory(NS, id), b"rubbish")?;
        }
        tx.put(Table::Counter, b"short", b"")
    });
    let found = report(&fixture);
    let codes: Vec<_> = found.findings.iter().map(|finding| (finding.code, finding.table)).collect();
    assert_eq!(
        codes,
        [("corrupted", "memory"), ("corrupted", "memory"), ("key_shape", "counter")],
        "a damaged value is one finding, and nothing is concluded from what could not be read"
    );
}

#[test]
fn a_damaged_graph_is_one_finding() {
    let block = crate::store::keys::block(fixture::SHARED, 0);
    let head = crate::store::keys::index(fixture::SHARED);
    for (table, key) in [(Table::Graph, &block), (Table::GraphHead, &head), (Table::Slot, &block)] {
        let fixture = Fixture::new();
        fixture.write(|tx| tx.put(table, key, b"rubbish"));
        let found = report(&fixture);
        let codes: Vec<_> = found.findings.iter().map(|finding| (finding.code, finding.table)).collect();
        assert_eq!(codes, [("corrupted", table.name())], "nothing is concluded from what could not be read");
    }
}

#[test]
fn links_are_followed_by_a_deep_check_alone() {
    let fixture = Fixture::new();
    fixture.write(|tx| fixture::put_links(tx, &[(0, &[3]), (1, &[3]), (3, &[0])], &[vec![]]));
    let shallow = check(&fixture.store.snapshot().unwrap(), &CheckOptions::default()).unwrap();
    assert_eq!(shallow.findings, vec![]);
    let codes: Vec<_> = report(&fixture).findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["graph_unreachable"], "slot 1, and of the dead slot nothing is asked");
}

#[test]
fn a_compacted_store_is_clean_and_has_its_graph_still() {
    let fixture = Fixture::new();
    assert_eq!(fixture.store.compact(&[9; 32], false, &mut |_, _| Ok(())).unwrap().damaged, vec![]);
    assert_eq!(report(&fixture).findings, vec![]);
    let rows = fixture.store.snapshot().unwrap();
    let head = crate::store::Rows::graph_head(&rows, fixture::SHARED).unwrap().unwrap();
    assert_eq!(head, crate::store::control::GraphHead { version: 6, ..fixture::graph_head() });
    assert!(crate::store::Rows::has_dead_slots(&rows).unwrap());
}

#[test]
fn findings_past_a_thousand_are_counted() {
    let fixture = Fixture::new();
    fixture.write(|tx| (0..1_200_u32).try_for_each(|n| tx.put(Table::Due, &n.to_be_bytes(), &[])));
    let found = report(&fixture);
    assert_eq!((found.findings.len(), found.more), (1_000, 200));
}

#[test]
fn an_instant_that_is_still_due_is_no_fault() {
    // MODEL-42: counters hold at a watermark; what is due since is applied by the next write.
    let fixture = Fixture::new();
    fixture.write(|tx| {
        let mut clock = tx.clock()?;
        let due = tx.vitals(NS, D)?.unwrap().times.expires_at.unwrap();
        clock.at_ms = due.as_millis() + 1;
        tx.put_clock(&clock)
    });
    assert_eq!(report(&fixture).findings, vec![]);
}

#[test]
fn a_namespace_that_is_being_dropped_is_left_out() {
    let fixture = Fixture::new();
    fixture.write(|tx| {
        let mut row = tx.namespace(fixture::NAME)?.unwrap();
        row.dropping = true;
        tx.delete_namespace(fixture::NAME)?;
        tx.put_namespace(&crate::store::control::dropped_name(NS), &row)?;
        let keys = tx.each_key(Table::Vitals, &Walk::all(), 3, |key| Ok(key.to_vec()))?;
        keys.iter().try_for_each(|key| tx.delete(Table::Vitals, key))
    });
    assert_eq!(report(&fixture).findings, vec![]);
}
