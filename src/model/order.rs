//! The canonical order of equal memories: which of them stands for all.

use std::cmp::Ordering;

use crate::model::id::MemoryId;
use crate::model::kind::Significance;
use crate::model::time::Time;

/// What the canonical order compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// The higher one comes first.
    pub significance: Significance,
    /// The higher one comes first.
    pub reinforcement_count: u32,
    /// The earlier one comes first, so that the first observation is kept.
    pub created_at: Time,
    /// The smaller one comes first, in byte order.
    pub id: MemoryId,
}

/// `Less` when `a` comes before `b`. `Equal` only for the same id.
pub fn canonical(a: &Rank, b: &Rank) -> Ordering {
    b.significance
        .cmp(&a.significance)
        .then(b.reinforcement_count.cmp(&a.reinforcement_count))
        .then(a.created_at.cmp(&b.created_at))
        .then(a.id.cmp(&b.id))
}

/// The order of `collapse.canonical = "reinforcement_first"`: reinforcement, significance, newest, then the
/// smaller id.
pub fn reinforcement_first(a: &Rank, b: &Rank) -> Ordering {
    b.reinforcement_count
        .cmp(&a.reinforcement_count)
        .then(b.significance.cmp(&a.significance))
        .then(b.created_at.cmp(&a.created_at))
        .then(a.id.cmp(&b.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(significance: Significance, count: u32, created: i64, id: u8) -> Rank {
        let (created_at, id) = (Time::from_millis(created), MemoryId::from_bytes([id; 16]));
        Rank { significance, reinforcement_count: count, created_at, id }
    }

    #[test]
    fn v41_to_v44_canonical_order() {
        use Significance::{Core, Important, Routine};
        let first =
            |a: Rank, b: Rank| canonical(&a, &b) == Ordering::Less && canonical(&b, &a) == Ordering::Greater;
        assert!(first(rank(Core, 1, 99, 2), rank(Important, 9, 1, 1)), "V-41");
        assert!(first(rank(Routine, 5, 10, 2), rank(Routine, 2, 1, 1)), "V-42");
        assert!(first(rank(Routine, 2, 10, 2), rank(Routine, 2, 20, 1)), "V-43");
        assert!(first(rank(Routine, 2, 10, 1), rank(Routine, 2, 10, 2)), "V-44");
    }

    #[test]
    fn reinforcement_can_come_first_and_then_the_newest_stands() {
        // DEDUP-16.
        use Significance::{Core, Important, Routine};
        let first = |a: Rank, b: Rank| {
            reinforcement_first(&a, &b) == Ordering::Less && reinforcement_first(&b, &a) == Ordering::Greater
        };
        assert!(first(rank(Routine, 9, 1, 2), rank(Core, 1, 99, 1)));
        assert!(first(rank(Core, 9, 1, 2), rank(Important, 9, 99, 1)));
        assert!(first(rank(Core, 9, 20, 2), rank(Core, 9, 10, 1)));
        assert!(first(rank(Core, 9, 20, 1), rank(Core, 9, 20, 2)));
    }
}
