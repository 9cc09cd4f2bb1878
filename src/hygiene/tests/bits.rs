//! Faults in the one-bit codes of the fixture: slots 0 and 1 hold memories, 2 is free and 3 dead.

use super::damage::{Fault, case};
use super::fixture::{DIM, Fixture, SHARED};
use crate::hygiene::check::{CheckOptions, check};
use crate::hygiene::report::Code;
use crate::index::{rebuild, rows_of};
use crate::record::BitRow;
use crate::store::{BitRows, Table, keys};

/// Changes the row of one-bit codes.
fn row(change: impl Fn(&mut BitRow) + 'static) -> (Code, Fault) {
    case(Code::Bits, move |tx| {
        let mut row = tx.bit_row(SHARED, 0, DIM)?.unwrap();
        change(&mut row);
        tx.put_bits(SHARED, 0, &row)
    })
}

pub(super) fn cases() -> Vec<(Code, Fault)> {
    vec![
        case(Code::Corrupted, |tx| tx.put(Table::Bits, &keys::block(SHARED, 0), b"rubbish")),
        case(Code::Corrupted, |tx| tx.put(Table::BitsHead, &keys::index(SHARED), b"rubbish")),
        case(Code::Corrupted, |tx| {
            let mut head = tx.bits_head(SHARED)?.unwrap();
            head.values.pop();
            tx.put_bits_head(SHARED, head)
        }),
        case(Code::Bits, |tx| {
            tx.delete_there(Table::Bits, &keys::block(SHARED, 0)).map(|gone| assert!(gone))
        }),
        case(Code::Bits, |tx| {
            tx.delete_there(Table::BitsHead, &keys::index(SHARED)).map(|gone| assert!(gone))
        }),
        case(Code::Bits, |tx| {
            let row = tx.bit_row(SHARED, 0, DIM)?.unwrap();
            tx.put_bits(SHARED, 1, &BitRow::vacant(DIM, row.center))
        }),
        // Another center, a center that changed under its codes, another code, one of nobody, none, other instants.
        row(|row| row.center += 1),
        case(Code::Bits, |tx| {
            let mut head = tx.bits_head(SHARED)?.unwrap();
            head.values[0] += 0.25;
            tx.put_bits_head(SHARED, head)
        }),
        row(|row| row.signs[0][1] ^= 1),
        row(|row| row.factors[0] *= 1.5),
        row(|row| {
            let code = row.code(0);
            row.put(2, (0, 1), &code);
        }),
        row(|row| {
            let code = row.code(0);
            row.put(3, (0, 1), &code);
        }),
        row(|row| row.errors[63] = 0.5),
        row(|row| row.erase(1)),
        row(|row| row.set_span(0, (5, 6))),
    ]
}

#[test]
fn damaged_one_bit_codes_are_one_finding() {
    for (table, key) in [(Table::Bits, keys::block(SHARED, 0)), (Table::BitsHead, keys::index(SHARED))] {
        let fixture = Fixture::new();
        fixture.write(|tx| tx.put(table, &key, b"rubbish"));
        let snapshot = fixture.store.snapshot().unwrap();
        let found = check(&snapshot, &CheckOptions { deep: true, erased: Vec::new() }).unwrap();
        let tables: Vec<_> = found.findings.iter().map(|finding| finding.table).collect();
        assert!(
            tables.contains(&table.name()) && tables.iter().all(|table| table.starts_with("bits")),
            "{tables:?}"
        );
    }
}

#[test]
fn a_shallow_check_compares_no_code_and_all_instants() {
    let fixture = Fixture::new();
    let change = |change: &dyn Fn(&mut BitRow)| {
        fixture.write(|tx| {
            let mut row = tx.bit_row(SHARED, 0, DIM)?.unwrap();
            change(&mut row);
            tx.put_bits(SHARED, 0, &row)
        });
        check(&fixture.store.snapshot().unwrap(), &CheckOptions::default()).unwrap().findings.len()
    };
    assert_eq!(change(&|row| row.signs[0][0] ^= 1), 0);
    assert_eq!(change(&|row| row.set_span(0, (5, 6))), 1);
}

#[test]
fn a_rebuild_of_few_slots_leaves_no_one_bit_code() {
    let fixture = Fixture::new();
    fixture.write(|tx| {
        let of_index = rows_of(tx, SHARED.ns, &[SHARED].into())?.remove(&SHARED).unwrap_or_default();
        rebuild(tx, SHARED, &of_index, 9).map(drop)
    });
    let rows = fixture.store.snapshot().unwrap();
    assert!(rows.bits_head(SHARED).unwrap().is_none() && rows.bit_row(SHARED, 0, DIM).unwrap().is_none());
}
