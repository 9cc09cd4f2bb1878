//! Chains in which each row has one next: do they end?

use std::collections::BTreeSet;

use crate::error::Result;

/// The rows of a namespace from which a chain is known to go on to its end, or into a circle that was told.
#[derive(Debug)]
pub(super) struct Settled<I>(BTreeSet<I>);

impl<I> Default for Settled<I> {
    fn default() -> Self {
        Settled(BTreeSet::new())
    }
}

impl<I: Ord + Copy> Settled<I> {
    /// Walks a chain from `first` as far as nothing is known of it. Returns the row to which it comes back, if it closes a circle
    /// that was not told before.
    pub(super) fn walk(
        &mut self,
        first: I,
        mut next: impl FnMut(I) -> Result<Option<I>>,
    ) -> Result<Option<I>> {
        // A set, because a key that was revised often makes one long chain.
        let (mut path, mut circle) = (BTreeSet::new(), None);
        let mut at = Some(first);
        while let Some(id) = at.filter(|id| !self.0.contains(id)) {
            if !path.insert(id) {
                circle = Some(id);
                break;
            }
            at = next(id)?;
        }
        self.0.extend(path);
        Ok(circle)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use super::*;

    thread_local! {
        static COMPARED: Cell<u64> = const { Cell::new(0) };
    }

    /// A row that counts how often it is compared.
    #[derive(Clone, Copy, Debug)]
    struct Row(u64);

    impl Ord for Row {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARED.set(COMPARED.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Row {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl PartialEq for Row {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other).is_eq()
        }
    }

    impl Eq for Row {}

    /// Comparisons of a check of one chain of so many rows, from each of them, and the rows that it asks for their next.
    fn cost(rows: u64) -> (u64, u64) {
        let (before, mut asked) = (COMPARED.get(), 0);
        let mut settled = Settled::default();
        for first in 0..rows {
            let circle = settled.walk(Row(first), |Row(at)| {
                asked += 1;
                Ok(Some(Row(at + 1)).filter(|next| next.0 < rows))
            });
            assert_eq!(circle.unwrap(), None);
        }
        (COMPARED.get() - before, asked)
    }

    /// A key that was revised n times is a chain of n rows. Each row was compared with all rows before it.
    #[test]
    fn a_long_chain_is_walked_once() {
        let (small, large) = (cost(1_000), cost(4_000));
        assert_eq!((small.1, large.1), (1_000, 4_000));
        assert!(large.0 <= small.0 * 6, "{} comparisons, then {}", small.0, large.0);
    }

    #[test]
    fn a_circle_is_told_once() {
        let mut settled = Settled::default();
        // 0 leads to 1, and 1, 2 and 3 are a circle.
        let told: Vec<_> =
            (0_u64..4).map(|first| settled.walk(first, |at| Ok(Some(at % 3 + 1))).unwrap()).collect();
        assert_eq!(told, [Some(1), None, None, None]);
    }
}
