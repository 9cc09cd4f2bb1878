//! Pages of a table whose keys are out of order.

use std::ops::ControlFlow;

use super::{PagePlace, walk_page};
use crate::error::Result;
use crate::store::raw::{Visit, Walk};
use crate::store::tables::Table;
use crate::store::tx::Read;

/// One leaf of a table, in which a walk finds its place by halving, as redb does.
struct Leaf(Vec<Vec<u8>>);

impl Read for Leaf {
    fn look(&self, _: Table, key: &[u8], f: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        self.0.binary_search_by(|row| (**row).cmp(key)).map_or(Ok(false), |_| f(&[]).map(|()| true))
    }

    fn walk(&self, _: Table, walk: &Walk, visit: Visit<'_>) -> Result<()> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let (from, to) = walk.bounds();
        let first = match from {
            Included(key) => self.0.partition_point(|row| **row < *key),
            Excluded(key) => self.0.partition_point(|row| **row <= *key),
            Unbounded => 0,
        };
        let end = match to {
            Included(key) => self.0.partition_point(|row| **row <= *key),
            Excluded(key) => self.0.partition_point(|row| **row < *key),
            Unbounded => self.0.len(),
        };
        for row in self.0.get(first..end).unwrap_or_default() {
            if visit(row, &[])?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[test]
fn pages_have_each_row_once_whatever_key_is_out_of_order() {
    for (len, damaged) in (1..24_u8).flat_map(|len| (0..len).map(move |damaged| (len, damaged))) {
        for (byte, page) in [0, 5, 40, 0xff].into_iter().flat_map(|byte| [(byte, 1), (byte, 2), (byte, 5)]) {
            let mut rows: Vec<Vec<u8>> = (0..len).map(|at| vec![2 * at + 2]).collect();
            rows[usize::from(damaged)] = vec![byte, 1];
            let leaf = Leaf(rows);
            let (mut place, mut read, mut pages) = (PagePlace::Start, Vec::new(), 0);
            while place != PagePlace::End {
                let full = read.len() + page;
                walk_page(&leaf, Table::Vitals, &Walk::all(), &mut place, &mut |key, _| {
                    read.push(key.to_vec());
                    Ok(if read.len() < full { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
                })
                .unwrap();
                pages += 1;
                assert!(pages <= 2 * usize::from(len), "{len} {damaged} {byte} {page}");
            }
            assert_eq!(read, leaf.0, "{len} {damaged} {byte} {page}");
        }
    }
}
