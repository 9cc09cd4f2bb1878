//! A transaction that gathers its changes reads and leaves what one that makes each change at once reads and leaves.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;

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
    /// Rows side by side or nearly so, as a removal of many memories takes them away.
    DeleteRun(u16, u8, u8),
    /// The same without a look whether the row is there.
    DeleteUnseen(u16),
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
        2 => (at.clone(), 0_u8..60, 1_u8..9).prop_map(|(at, count, each)| Step::DeleteRun(at, count, each)),
        3 => at.clone().prop_map(Step::DeleteUnseen),
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

/// The longest are put at once.
fn value(at: u16, len: u8) -> Vec<u8> {
    vec![at as u8 ^ len; usize::from(len) * if len > 240 { 10 } else { 1 }]
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
        Step::Delete(at) => read.push((vec![u8::from(tx.delete_there(TABLE, &key(*at))?)], Vec::new())),
        Step::DeleteUnseen(at) => tx.delete(TABLE, &key(*at))?,
        Step::DeleteRun(at, count, each) => {
            let rows = (0..u16::from(*count)).map(|nth| at + nth * u16::from(*each));
            rows.into_iter().try_for_each(|at| tx.delete(TABLE, &key(at)))?;
        }
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

/// The same in a map, which is what a table is to its readers.
fn expected(rows: &mut BTreeMap<Vec<u8>, Vec<u8>>, step: &Step) -> ReadRows {
    let mut read = Vec::new();
    let mut put = |at: u16, len: u8| drop(rows.insert(key(at).to_vec(), value(at, len)));
    match step {
        Step::Put(at, len) => put(*at, *len),
        Step::Run(at, len) => (*at..*at + 40).for_each(|at| put(at, *len)),
        Step::Delete(at) => {
            let there = rows.remove(&*key(*at)).is_some();
            read.push((vec![u8::from(there)], Vec::new()));
        }
        Step::DeleteUnseen(at) => drop(rows.remove(&*key(*at))),
        Step::DeleteRun(at, count, each) => {
            let run = (0..u16::from(*count)).map(|nth| at + nth * u16::from(*each));
            run.for_each(|at| drop(rows.remove(&*key(at))));
        }
        Step::DeleteWalk(from, to, most) => {
            let met = met(rows, *from, *to);
            let gone = met.iter().take(*most).map(|(key, _)| rows.remove(key)).count();
            read.push((vec![gone as u8], Vec::new()));
        }
        Step::Look(at) => read.extend(rows.get(&*key(*at)).map(|value| (key(*at).to_vec(), value.clone()))),
        Step::Walk { from, to, reverse, most } => {
            let mut met = met(rows, *from, *to);
            if *reverse {
                met.reverse();
            }
            met.truncate(*most);
            read = met;
        }
        Step::Full => {}
    }
    read
}

fn met(rows: &BTreeMap<Vec<u8>, Vec<u8>>, from: u16, to: u16) -> ReadRows {
    let (from, to) = (key(from).to_vec(), key(to).to_vec());
    let met = rows.iter().filter(|(key, _)| (&from..&to).contains(key));
    met.map(|(key, value)| (key.clone(), value.clone())).collect()
}

proptest! {
    #[test]
    fn gathered_changes_are_met_and_left_as_those_made_at_once(
        before in prop::collection::vec(step(), 0..40),
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let store = open(options(folder.path().join("a.db"))).unwrap();
        let mut rows = BTreeMap::new();
        let everything = [Step::Walk { from: 0, to: u16::MAX, reverse: false, most: usize::MAX }];
        for steps in [&before[..], &steps[..], &everything] {
            let bytes = |rows: &BTreeMap<Vec<u8>, Vec<u8>>| {
                rows.iter().map(|(key, value)| (key.len() + value.len()) as i64).sum::<i64>()
            };
            let old = bytes(&rows);
            let written: Written<Vec<_>> = store
                .write(Durability::Batch, |tx| steps.iter().map(|step| take(tx, step)).collect())
                .unwrap();
            let expected: Vec<_> = steps.iter().map(|step| expected(&mut rows, step)).collect();
            prop_assert_eq!(written.value, expected);
            prop_assert_eq!(written.grown, bytes(&rows) - old);
        }
    }
}
