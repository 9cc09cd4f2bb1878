//! The slots that a walk has visited, with one bit for each.

/// A set of slots below a bound.
#[derive(Debug, Default)]
pub(super) struct VisitedSet(Vec<u64>);

impl VisitedSet {
    /// An empty set for slots below `slots`.
    pub(super) fn below(slots: u32) -> Self {
        let mut visited = VisitedSet::default();
        visited.begin(slots);
        visited
    }

    /// Empties the set, for slots below `slots`.
    pub(super) fn begin(&mut self, slots: u32) {
        self.0.clear();
        self.0.resize((slots as usize).div_ceil(64), 0);
    }

    /// Whether a slot was visited.
    pub(super) fn contains(&self, slot: u32) -> bool {
        self.0.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    /// Notes a slot, and says whether it is visited for the first time. The code has no branch, because a
    /// processor could not predict it.
    #[inline]
    pub(super) fn insert(&mut self, slot: u32) -> bool {
        let Some(word) = self.0.get_mut(slot as usize / 64) else { return false };
        let is_new = *word >> (slot % 64) & 1 == 0;
        *word |= 1 << (slot % 64);
        is_new
    }
}
