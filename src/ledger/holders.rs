//! Holders: the writes that a row stands for, and what each of them brought.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::ledger::insert::unite;
use crate::ledger::writer::{Brought, Context, Ledger, truth};
use crate::model::{Content, Holder, MemoryId};
use crate::store::{Junction, JunctionRow, NsId, Read, Rows, Table, Walk, keys};

impl Ledger<'_, '_> {
    /// Writes a holder and its junction rows. Junction rows of an earlier form of the holder stay.
    pub(super) fn put_holder(&mut self, ns: NsId, id: MemoryId, holder: &Holder) -> Result<()> {
        for row in self.junctions_for(ns, holder)? {
            truth(self.tx).put_junction(ns, id, &row)?;
        }
        if !holder.links.is_empty() {
            self.links.remove(&(ns, id));
        }
        truth(self.tx).put_holder(ns, id, holder)
    }

    /// Writes a holder in place of its earlier form. Junction rows that only the earlier form brought are
    /// removed.
    pub(super) fn replace_holder(&mut self, ns: NsId, id: MemoryId, holder: &Holder) -> Result<()> {
        if let Some(old) = self.tx.holder(ns, id, holder.number)? {
            self.take_holder(ns, id, &old)?;
        }
        let known = self.known_brought(ns, id);
        self.put_holder(ns, id, holder)?;
        if let Some(mut known) = known {
            for row in self.junctions_of(ns, holder)? {
                *known.counts.entry(row).or_insert(0) += 1;
            }
            self.keep_brought(ns, id, known.counts);
        }
        Ok(())
    }

    /// What the holders of a row bring, if this was kept and nothing has changed since.
    fn known_brought(&mut self, ns: NsId, id: MemoryId) -> Option<Brought> {
        let changes = self.tx.watch.changes(ns, id);
        self.brought.take().filter(|known| known.of == (ns, id) && Some(known.changes) == changes)
    }

    /// Keeps what the holders of a row bring now.
    fn keep_brought(&mut self, ns: NsId, id: MemoryId, counts: BTreeMap<JunctionRow, u32>) {
        let changes = self.tx.watch.changes(ns, id);
        self.brought = changes.map(|changes| Brought { of: (ns, id), changes, counts });
    }

    /// The same, also where the row `is_away` in limbo: its junction rows are written when it comes back.
    pub(super) fn rewrite_holder(
        &mut self,
        ns: NsId,
        id: MemoryId,
        holder: &Holder,
        is_away: bool,
    ) -> Result<()> {
        if !is_away {
            return self.replace_holder(ns, id, holder);
        }
        // The rows by tag follow from the old form, so that form is deleted and not overwritten.
        if let Some(old) = self.tx.holder(ns, id, holder.number)? {
            truth(self.tx).delete_holder(ns, id, &old)?;
        }
        truth(self.tx).put_holder(ns, id, holder)
    }

    /// Removes a holder, and the junction rows that no other holder brings.
    pub(super) fn take_holder(&mut self, ns: NsId, id: MemoryId, holder: &Holder) -> Result<()> {
        // Such a holder brings no junction rows, so the other holders need not be counted.
        if holder.categories.is_empty() && holder.entities.is_empty() && holder.links.is_empty() {
            return truth(self.tx).delete_holder(ns, id, holder);
        }
        // After a change of any holder of the row in between, the kept counts are no longer used.
        let known = self.known_brought(ns, id);
        if self.tx.watch.changes(ns, id).is_none() {
            self.tx.watch.begin(ns, id, []);
        }
        let counts = match known {
            Some(known) => Some(known.counts),
            // It is unknown what a damaged holder brings. In this case all junction rows stay until the row
            // goes.
            None => {
                sound(self.tx.holders(ns, id))?.map(|holders| self.count_brought(ns, &holders)).transpose()?
            }
        };
        truth(self.tx).delete_holder(ns, id, holder)?;
        let Some(mut counts) = counts else { return Ok(()) };
        for row in self.junctions_of(ns, holder)? {
            // A count that reaches 0 is removed below, so a stored count is at least 1 and does not underflow.
            let left = counts.get(&row).map_or(0, |count| count - 1);
            if left == 0 {
                counts.remove(&row);
                self.unjoin(ns, id, &row)?;
            } else {
                counts.insert(row, left);
            }
        }
        // The number of changes is read after the deletion above, so the next holder that leaves can use these
        // counts.
        self.keep_brought(ns, id, counts);
        Ok(())
    }

    /// Whether a holder of a row brings a junction row. One that can't be read counts as if it did.
    pub(super) fn is_brought(&mut self, ns: NsId, id: MemoryId, row: &JunctionRow) -> Result<bool> {
        let known = self.known_brought(ns, id).map(|known| known.counts);
        if self.tx.watch.changes(ns, id).is_none() {
            self.tx.watch.begin(ns, id, []);
        }
        let counts = match known {
            Some(counts) => counts,
            None => match sound(self.tx.holders(ns, id))? {
                Some(holders) => self.count_brought(ns, &holders)?,
                None => return Ok(true),
            },
        };
        let is_brought = counts.contains_key(row);
        self.keep_brought(ns, id, counts);
        Ok(is_brought)
    }

    fn count_brought(&self, ns: NsId, holders: &[Holder]) -> Result<BTreeMap<JunctionRow, u32>> {
        let mut counts = BTreeMap::new();
        for holder in holders {
            for row in self.junctions_of(ns, holder)? {
                *counts.entry(row).or_insert(0) += 1;
            }
        }
        Ok(counts)
    }

    /// The keyless holder that a keyless write repeats.
    pub(super) fn shared_holder(&self, ns: NsId, id: MemoryId, write: &Holder) -> Result<Option<Holder>> {
        if write.key.is_some() {
            return Ok(None);
        }
        for number in self.tx.keyless_holders(ns, id)? {
            let Some(holder) = sound(self.tx.holder(ns, id, number))?.flatten() else { continue };
            if holder.takes_keyless(&write.tags, write.run, write.text.as_deref()) {
                return Ok(Some(holder));
            }
        }
        Ok(None)
    }

    /// Unites the links of equal keyless writes.
    pub(crate) fn unite_links(&self, shared: &mut Holder, write: &Holder) {
        unite(&mut shared.categories, &write.categories);
        unite(&mut shared.entities, &write.entities);
        unite(&mut shared.links, &write.links);
    }

    /// The union of the tags of a row's holders, sorted.
    pub(super) fn tags_of(&self, ns: NsId, id: MemoryId) -> Result<Vec<String>> {
        let mut tags = Vec::new();
        for holder in self.tx.holders(ns, id)? {
            unite(&mut tags, &holder.tags);
        }
        Ok(tags)
    }

    /// Takes the tags out of a row that these of its holders brought, as they were before they left or changed, and that no holder brings
    /// any more.
    pub(super) fn leave_tags(
        &self,
        ns: NsId,
        id: MemoryId,
        content: &mut Content,
        left: &[Holder],
    ) -> Result<()> {
        let tags: BTreeSet<&String> = left.iter().flat_map(|holder| &holder.tags).collect();
        let none = BTreeSet::new();
        for tag in tags {
            if !self.brings_tag(ns, id, tag, &none)? {
                content.tags.retain(|kept| kept != tag);
            }
        }
        Ok(())
    }

    /// Whether a holder of a row brings a tag, other than those with these numbers.
    fn brings_tag(&self, ns: NsId, id: MemoryId, tag: &str, but: &BTreeSet<u32>) -> Result<bool> {
        let row = keys::holder_key_row(ns, tag, id);
        let all = self.tx.id_and_number(Table::HolderTag, &row, but.len().saturating_add(1))?;
        Ok(all.iter().any(|(_, number)| !but.contains(number)))
    }

    /// Those of the tags of a row that holders other than these bring. It looks at the tags of these alone, however many others there
    /// are.
    pub(crate) fn tags_beside(
        &self,
        ns: NsId,
        id: MemoryId,
        tags: &[String],
        holders: &[Holder],
    ) -> Result<Vec<String>> {
        let numbers: BTreeSet<u32> = holders.iter().map(|holder| holder.number).collect();
        let own: BTreeSet<&String> = holders.iter().flat_map(|holder| &holder.tags).collect();
        let mut beside = Vec::with_capacity(tags.len());
        for tag in tags {
            if !own.contains(tag) || self.brings_tag(ns, id, tag, &numbers)? {
                beside.push(tag.clone());
            }
        }
        Ok(beside)
    }

    /// The readable holders of a row with a link to a memory. The links of a row are read once for all memories that leave one
    /// after the other, until one of its holders gets another.
    pub(super) fn holders_with_link(
        &mut self,
        ns: NsId,
        from: MemoryId,
        to: MemoryId,
    ) -> Result<Vec<Holder>> {
        if !self.links.contains_key(&(ns, from)) {
            let mut linking = BTreeMap::<MemoryId, BTreeSet<u32>>::new();
            for holder in self.readable_holders(ns, from)? {
                for link in &holder.links {
                    linking.entry(link.to).or_default().insert(holder.number);
                }
            }
            self.links.insert((ns, from), linking);
        }
        let numbers = self.links.get(&(ns, from)).and_then(|linking| linking.get(&to)).cloned();
        let mut all = Vec::new();
        for number in numbers.into_iter().flatten() {
            let holder = sound(self.tx.holder(ns, from, number))?.flatten();
            all.extend(holder.filter(|holder| holder.links.iter().any(|link| link.to == to)));
        }
        Ok(all)
    }

    /// Removes the links to an erased memory from the holders that brought them.
    pub(super) fn unlink_all(&mut self, ns: NsId, gone: MemoryId) -> Result<()> {
        for (id, relation) in self.tx.joined_to(ns, Junction::Link, gone.as_bytes())? {
            // A damaged holder of another memory must not stop the erasure.
            for mut holder in self.holders_with_link(ns, id, gone)? {
                holder.links.retain(|link| link.to != gone);
                truth(self.tx).put_holder(ns, id, &holder)?;
            }
            let row = JunctionRow { sort: Junction::Link, target: gone.as_bytes().to_vec(), role: relation };
            truth(self.tx).delete_junction(ns, id, &row)?;
        }
        Ok(())
    }

    /// The holder of a row that has a key. One that can't be read is left out.
    pub(crate) fn holder_of_key(&self, ns: NsId, id: MemoryId, key: Option<&str>) -> Result<Option<Holder>> {
        let Some(key) = key else { return Ok(None) };
        let row = keys::holder_key_row(ns, key, id);
        for (_, number) in self.tx.id_and_number(Table::HolderKey, &row, usize::MAX)? {
            if let Some(holder) = sound(self.tx.holder(ns, id, number))?.flatten() {
                return Ok(Some(holder));
            }
        }
        Ok(None)
    }

    /// The rows of a key whose place `by` has taken, the one with the highest id first, until `visit` breaks off. Other versions of the
    /// key, and other rows that `by` has superseded, are passed over however many they are.
    pub(crate) fn versions_superseded_by(
        &self,
        ns: NsId,
        key: &str,
        by: MemoryId,
        visit: &mut dyn FnMut(MemoryId) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let last = |table, walk: &Walk, read: fn(&[u8]) -> Result<MemoryId>| -> Result<Option<MemoryId>> {
            let mut last = None;
            self.tx.walk(table, walk, &mut |row, _| {
                last = Some(read(row)?);
                Ok(ControlFlow::Break(()))
            })?;
            Ok(last)
        };
        let mut versions = Walk::prefix(&keys::holder_key_prefix(ns, key)).reversed();
        loop {
            let version = |row: &[u8]| keys::HolderKey::read(Table::HolderKey, row).map(|row| row.id);
            let Some(id) = last(Table::HolderKey, &versions, version)? else { return Ok(()) };
            let after = keys::end_of(&keys::superseded(ns, by, id)).unwrap_or_default();
            let places = Walk::prefix(&keys::memory(ns, by)).before(&after).reversed();
            let superseded = |row: &[u8]| keys::Superseded::read(Table::Superseded, row).map(|row| row.id);
            let Some(old) = last(Table::Superseded, &places, superseded)? else { return Ok(()) };
            let row = keys::holder_key_row(ns, key, old);
            versions = match old == id {
                true if visit(id)?.is_break() => return Ok(()),
                true => versions.before(&row),
                false => versions.before(&keys::end_of(&row).unwrap_or_default()),
            };
        }
    }

    /// Whether a key is to say the text of a row, or leads there from another row of which it is to say the text before.
    pub(super) fn says_ahead(&self, context: &Context, id: MemoryId, key: &str) -> Result<bool> {
        let (ns, mut next, mut seen) = (context.ns, Some(id), BTreeSet::new());
        // Damaged rows could lead in a circle, so no row is visited twice.
        while let Some(at) = next.take().filter(|at| seen.insert(*at)) {
            let times = sound(self.tx.vitals(ns, at))?.flatten().map(|vitals| vitals.times);
            if times.is_none_or(|times| times.from() <= context.now) {
                return Ok(false);
            }
            let holder = self.holder_of_key(ns, at, Some(key))?;
            if holder.as_ref().is_some_and(Holder::has_text) {
                return Ok(true);
            }
            next = holder.and_then(|holder| holder.from);
        }
        Ok(false)
    }

    /// Whether a holder says the text of its row, or one of its own, and does not only lead there.
    pub(super) fn says(&self, ns: NsId, id: MemoryId, number: u32) -> Result<bool> {
        Ok(sound(self.tx.holder(ns, id, number))?.flatten().is_some_and(|holder| holder.has_text()))
    }
}
