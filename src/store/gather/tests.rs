//! A transaction that gathers its rows reads and leaves what one that puts each row at once reads and leaves.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use proptest::prelude::*;

use crate::error::Result;
use crate::store::part::Key;
use crate::store::raw::Walk;
use crate::store::tables::Table;
use crate::store::tests::{open, options};
use crate::store::tx::{Read, WriteTx};
use crate::store::{Durability, NsId, Written, keys};

/// A table whose rows nothing else writes.
const TABLE: Table = Table::Vitals;

/// Keys and values.
type ReadRows = Vec<(Vec<u8>, Vec<u8>)>;

#[derive(Clone, Debug)]
enum Step {
    Put(u16, u8),
    Delete(u16),
    DeleteSorted(BTreeSet<u16>),
    DeleteWalk(u16, u16, usize),
    Look(u16),
    Walk {
        from: u16,
        to: u16,
        reverse: bool,
        most: usize,
    },
    /// Rows side by side, as many as make a run.
    Run(u16, u8),
    /// What is gathered goes to the table.
    Full,
}

fn step() -> impl Strategy<Value = Step> {
    // Few keys, so that rows are replaced and met again.
    let at = 0_u16..400;
    prop_oneof![
        8 => (at.clone(), any::<u8>()).prop_map(|(at, len)| Step::Put(at, len)),
        3 => at.clone().prop_map(Step::Delete),
        2 => prop::collection::btree_set(at.clone(), 0..60).prop_map(Step::DeleteSorted),
        1 => (at.clone(), at.clone(), 0_usize..20).prop_map(|(from, to, most)| Step::DeleteWalk(from, to, most)),
        4 => at.clone().prop_map(Step::Look),
        4 => (at.clone(), at.clone(), any::<bool>(), 1_usize..50)
            .prop_map(|(from, to, reverse, most)| Step::Walk { from, to, reverse, most }),
        3 => (at, any::<u8>()).prop_map(|(at, len)| Step::Run(at, len)),
        1 => Just(Step::Full),
    ]
}

fn key(at: u16) -> Key {
    keys::ns(NsId(u32::from(at)))
}

fn value(at: u16, len: u8) -> Vec<u8> {
    vec![at as u8 ^ len; usize::from(len)]
}

fn range(from: u16, to: u16) -> Walk {
    Walk::all().starting_at(&key(from)).before(&key(to))
}

/// What a step has read.
fn take(tx: &mut WriteTx<'_>, step: &Step) -> Result<ReadRows> {
    let mut read = Vec::new();
    match step {
        Step::Put(at, len) => tx.put(TABLE, &key(*at), &value(*at, *len))?,
        Step::Run(at, len) => (*at..*at + 40).try_for_each(|at| tx.put(TABLE, &key(at), &value(at, *len)))?,
        Step::Delete(at) => read.push((vec![u8::from(tx.delete(TABLE, &key(*at))?)], Vec::new())),
        Step::DeleteSorted(all) => tx.delete_sorted(TABLE, &all.iter().map(|at| key(*at)).collect())?,
        Step::DeleteWalk(from, to, most) => {
            let gone = tx.delete_walk(TABLE, &range(*from, *to), *most)?;
            read.push((vec![gone as u8], Vec::new()));
        }
        Step::Look(at) => drop(tx.look(TABLE, &key(*at), &mut |value| {
            read.push((key(*at).to_vec(), value.to_vec()));
            Ok(())
        })?),
        Step::Walk { from, to, reverse, most } => {
            let walk = range(*from, *to);
            let walk = if *reverse { walk.reversed() } else { walk };
            tx.walk(TABLE, &walk, &mut |key, value| {
                read.push((key.to_vec(), value.to_vec()));
                Ok(if read.len() < *most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            })?;
        }
        Step::Full => tx.put_gathered()?,
    }
    Ok(read)
}

/// What the steps have read, what they have left, and by how much they have made the rows longer.
fn run(path: &Path, before: &[Step], steps: &[Step], gathers: bool) -> (Vec<ReadRows>, i64) {
    let store = open(options(path.to_owned())).unwrap();
    let all = |steps: &[Step], gathers: bool| {
        let written: Written<Vec<_>> = store
            .write(Durability::Batch, |tx| {
                if gathers {
                    tx.gather();
                }
                steps.iter().map(|step| take(tx, step)).collect::<Result<Vec<_>>>()
            })
            .unwrap();
        written
    };
    all(before, false);
    let Written { value: mut read, grown, .. } = all(steps, gathers);
    read.extend(all(&[Step::Walk { from: 0, to: u16::MAX, reverse: false, most: usize::MAX }], false).value);
    (read, grown)
}

proptest! {
    #[test]
    fn gathered_rows_are_met_and_left_as_those_put_at_once(
        before in prop::collection::vec(step(), 0..40),
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let at_once = run(&folder.path().join("a.db"), &before, &steps, false);
        let gathered = run(&folder.path().join("b.db"), &before, &steps, true);
        prop_assert_eq!(at_once, gathered);
    }
}
