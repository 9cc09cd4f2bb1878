//! Copies: the holders of a row that came from another row.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::ledger::writer::{Copies, Ledger};
use crate::model::{Holder, MemoryId};
use crate::store::{NsId, Rows};

impl Ledger<'_, '_> {
    /// The holders of the row `at` that came from the row `from`, by their numbers.
    pub(crate) fn copies_from(&mut self, ns: NsId, at: MemoryId, from: MemoryId) -> Result<Vec<Holder>> {
        let Some(vitals) = self.tx.vitals(ns, at)? else { return Ok(Vec::new()) };
        let next = vitals.place.next_holder;
        if self.copies.get(&(ns, at)).is_none_or(|known| known.next != next) {
            let mut numbers = BTreeMap::<MemoryId, Vec<u32>>::new();
            for holder in self.tx.holders(ns, at)? {
                if let Some(from) = holder.from {
                    numbers.entry(from).or_default().push(holder.number);
                }
            }
            self.copies.insert((ns, at), Copies { next, numbers });
        }
        let numbers = self.copies.get(&(ns, at)).and_then(|known| known.numbers.get(&from));
        let mut copies = Vec::new();
        for number in numbers.into_iter().flatten() {
            // A holder that has left meanwhile is still among the numbers.
            copies.extend(self.tx.holder(ns, at, *number)?.filter(|copy| copy.from == Some(from)));
        }
        Ok(copies)
    }

    /// Forgets which holders of a row came from where: the row goes, or a holder now counts as coming from another row.
    pub(super) fn forget_copies(&mut self, ns: NsId, at: MemoryId) {
        self.copies.remove(&(ns, at));
    }
}
