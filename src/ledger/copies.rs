//! Copies: the holders of a row that came from another row.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Result, sound};
use crate::ledger::given::note_vector;
use crate::ledger::writer::{Copies, Ledger};
use crate::model::{Content, Holder, MemoryId, Vitals};
use crate::store::{NsId, Rows, Table, Traces, keys};
use crate::vector::UnitVector;

impl Ledger<'_, '_> {
    /// The vector of a row that is merged into a row with the text `kept`, where the copies of its holders keep a text of their own.
    /// A damaged vector is as good as none.
    pub(super) fn brought_vector(
        &self,
        ns: NsId,
        (vitals, content): (&Vitals, &Content),
        kept: &str,
    ) -> Result<Option<UnitVector>> {
        if content.text == kept { Ok(None) } else { Ok(sound(self.vector_of(ns, vitals))?.flatten()) }
    }

    /// A holder of a row with the text `old` as it is in a row with the text `kept` into which its own is merged. If it takes the
    /// text of its row along, it notes the vector of that, so that the same write is known again where the row is gone.
    pub(super) fn merged_copy(
        &self,
        holder: Holder,
        (old, kept): (&str, &str),
        brought: Option<&UnitVector>,
    ) -> Holder {
        let wrote = holder.wrote_row_text();
        let mut copy = holder.merged(old, kept);
        if wrote && copy.text.is_some() {
            note_vector(&mut copy, brought, self.secret);
        }
        copy
    }

    /// The holders of the row `at` that came from the row `from`, by their numbers. Those that can't be read are left out, and
    /// a row whose hot part is damaged gets no others.
    pub(crate) fn copies_from(&mut self, ns: NsId, at: MemoryId, from: MemoryId) -> Result<Vec<Holder>> {
        let next = match sound(self.tx.vitals(ns, at))? {
            Some(None) => return Ok(Vec::new()),
            Some(Some(vitals)) => vitals.place.next_holder,
            None => 0,
        };
        if self.copies.get(&(ns, at)).is_none_or(|known| known.next != next) {
            let mut numbers = BTreeMap::<MemoryId, Vec<u32>>::new();
            let mut damaged = BTreeSet::new();
            for number in self.tx.holder_numbers(ns, at)? {
                match sound(self.tx.holder(ns, at, number))? {
                    Some(holder) => {
                        let from = holder.and_then(|holder| holder.from);
                        from.into_iter().for_each(|from| numbers.entry(from).or_default().push(number));
                    }
                    // The first holder of a row made the row, and is no copy.
                    None if number == 0 => {}
                    None => drop(damaged.insert(number)),
                }
            }
            self.copies.insert((ns, at), Copies { next, numbers, damaged });
        }
        let mut copies = Vec::new();
        let known = self.copies.get_mut(&(ns, at));
        let Some(numbers) = known.and_then(|known| known.numbers.get_mut(&from)) else { return Ok(copies) };
        for number in &*numbers {
            // A holder that has left meanwhile is still among the numbers.
            let copy = sound(self.tx.holder(ns, at, *number))?.flatten();
            copies.extend(copy.filter(|copy| copy.from == Some(from)));
        }
        *numbers = copies.iter().map(|copy| copy.number).collect();
        Ok(copies)
    }

    /// The holders of the row `at` that can't be read and have a key of the row `old`: what brought the key there was a copy.
    /// The copies were asked for before.
    pub(super) fn damaged_copies(&self, ns: NsId, at: MemoryId, old: MemoryId) -> Result<Vec<u32>> {
        let mut all = Vec::new();
        let known = self.copies.get(&(ns, at)).filter(|known| !known.damaged.is_empty());
        let Some(Copies { damaged, .. }) = known else { return Ok(all) };
        for key in self.tx.holders(ns, old)?.into_iter().filter_map(|holder| holder.key) {
            let held = self.tx.holders_of_key(ns, &key)?;
            let there = held.into_iter().filter(|(id, number)| *id == at && damaged.contains(number));
            all.extend(there.map(|(_, number)| number));
        }
        Ok(all)
    }

    /// Those of them that can be copies of certain holders of the row `from`.
    pub(crate) fn copies_of(
        &mut self,
        ns: NsId,
        at: MemoryId,
        from: MemoryId,
        holders: &[Holder],
    ) -> Result<Vec<Holder>> {
        let mut copies = Vec::new();
        for holder in holders {
            // Only a key is found without a look at all holders.
            let Some(key) = &holder.key else { return self.copies_from(ns, at, from) };
            let row = keys::holder_key_row(ns, key, at);
            for (_, number) in self.tx.id_and_number(Table::HolderKey, &row, usize::MAX)? {
                let Some(copy) = sound(self.tx.holder(ns, at, number))? else {
                    return self.copies_from(ns, at, from);
                };
                copies.extend(copy.filter(|copy| copy.from == Some(from)));
            }
        }
        Ok(copies)
    }

    /// A copy has come to the row `at`.
    pub(super) fn note_copy(&mut self, ns: NsId, at: MemoryId, copy: &Holder) {
        let known = self.copies.get_mut(&(ns, at)).filter(|known| known.next == copy.number);
        let Some((known, from)) = known.zip(copy.from) else { return };
        known.next = known.next.saturating_add(1);
        known.numbers.entry(from).or_default().push(copy.number);
    }

    /// A copy at the row `at` now counts as coming from another row than `before`.
    pub(super) fn note_came_from(&mut self, ns: NsId, at: MemoryId, copy: &Holder, before: MemoryId) {
        let Some(known) = self.copies.get_mut(&(ns, at)) else { return };
        if let Some(numbers) = known.numbers.get_mut(&before) {
            numbers.retain(|number| *number != copy.number);
        }
        if let Some(from) = copy.from {
            let numbers = known.numbers.entry(from).or_default();
            if let Err(place) = numbers.binary_search(&copy.number) {
                numbers.insert(place, copy.number);
            }
        }
    }

    /// Forgets which holders of a row came from where: the row goes.
    pub(super) fn forget_copies(&mut self, ns: NsId, at: MemoryId) {
        self.copies.remove(&(ns, at));
    }
}
