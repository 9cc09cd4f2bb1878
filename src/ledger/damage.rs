//! Rows that can't be read. They are removed by what their neighbours say, and settled by what is left of
//! them.
//!
//! A row belongs to one memory. Damage to it prevents no other row from being read or written, and prevents nobody
//! from forgetting it. The content would say where the row stands in the indexes. If the content is lost, a search of
//! the indexes for the id of the row finds the places. The counters of its namespace are counted again, because it is
//! unknown how the row was counted.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use serde_json::Value;

use crate::error::{Result, sound};
use crate::index::slots;
use crate::ledger::applied::{Applied, Left, Onward};
use crate::ledger::change::Change;
use crate::ledger::derived::{IndexRow, index_rows};
use crate::ledger::erase::{Going, erased_late};
use crate::ledger::leave::Departure;
use crate::ledger::writer::{Context, Ledger, Why, truth};
use crate::model::{
    Counted, Delta, Evidence, Holder, Kind, MemoryId, Op, RuleId, Tombstone, TombstoneReason, Vitals,
};
use crate::store::control::CounterSort as Sort;
use crate::store::{IndexId, Junction, NsId, PartId, Read, Rows, Table, TextId, Traces, Walk, keys, last_id};

/// What is lost of a memory, and what becomes of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Loss {
    /// The memory, or some of several writers: the change that lets them go.
    Gone(Change),
    /// Every writer that is known to have written the text, or writers whose rows are not there: the memory is whole otherwise,
    /// and gets them again ([`Ledger::rewrite`]).
    Writers(MemoryId),
    /// What limbo says of a memory that waits there; the memory is whole otherwise ([`Ledger::rewrite_limbo`]).
    Limbo(MemoryId),
}

/// What is lost of the memories of a namespace; without it the namespace has only memories that can be read as a whole.
pub(crate) fn losses(rows: &impl Traces, ns: NsId) -> Result<Vec<Loss>> {
    let mut all = Vec::new();
    let mut ids = BTreeSet::new();
    // A row of any of these tables may be all that is left of a memory.
    for table in [Table::Vitals, Table::Memory, Table::Holder, Table::Limbo] {
        rows.walk(table, &Walk::prefix(&keys::ns(ns)), &mut |key, _| {
            ids.extend(table.address(key).0.id);
            Ok(ControlFlow::Continue(()))
        })?;
    }
    for id in ids {
        all.append(&mut losses_of(rows, ns, id)?);
    }
    Ok(all)
}

/// The memories of a namespace whose payload is lost.
pub(crate) fn lost_payloads(rows: &impl Traces, ns: NsId) -> Result<Vec<MemoryId>> {
    let mut all = Vec::new();
    for id in rows.each_key(Table::Vitals, &Walk::prefix(&keys::ns(ns)), usize::MAX, |key| {
        last_id(Table::Vitals, key)
    })? {
        let vitals = sound(rows.vitals(ns, id))?.flatten();
        let carries = vitals.is_some_and(|vitals| vitals.place.payload);
        if carries && sound(rows.payload(ns, id))?.flatten().is_none() {
            all.push(id);
        }
    }
    Ok(all)
}

/// The keys of the writers that are lost of memories that stay, as far as the rows by key tell them.
pub(crate) fn lost_keys(rows: &impl Traces, ns: NsId, losses: &[Loss]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for loss in losses {
        let Loss::Gone(Change::Detach { id, numbers, .. }) = loss else { continue };
        for number in numbers {
            let places = rows.holder_places(Table::HolderKey, ns, *id, Some(*number))?;
            all.extend(places.into_iter().filter_map(|(_, key)| key).filter(|key| !key.is_empty()));
        }
    }
    all.sort_unstable();
    Ok(all)
}

fn losses_of(rows: &impl Traces, ns: NsId, id: MemoryId) -> Result<Vec<Loss>> {
    let vitals = sound(rows.vitals(ns, id))?.flatten();
    let has_content = sound(rows.content(ns, id))?.flatten().is_some();
    let (mut lost, mut left) = (Vec::new(), Vec::new());
    for number in rows.holder_numbers(ns, id)? {
        match sound(rows.holder(ns, id, number))?.flatten() {
            Some(holder) => left.push(holder),
            None => lost.push(number),
        }
    }
    let reason = TombstoneReason::Pruned;
    let Some(vitals) = vitals.filter(|_| has_content) else {
        return Ok(vec![Loss::Gone(Change::Remove { id, reason, replaced_by: None })]);
    };
    let mut all = Vec::new();
    if vitals.times.removed_at.is_some() && sound(rows.limbo(ns, id))?.flatten().is_none() {
        all.push(Loss::Limbo(id));
    }
    // A holder whose row is gone has no number any more, so only the count in the vitals tells of it.
    let all_there = vitals.place.holders as usize == left.len() + lost.len();
    match all_there && left.iter().any(Holder::wrote_row_text) {
        false => all.push(Loss::Writers(id)),
        true if lost.is_empty() => {}
        true => all.push(Loss::Gone(Change::Detach { id, numbers: lost, reason, stone: id })),
    }
    Ok(all)
}

impl Ledger<'_, '_> {
    /// Whether parts of a row exist whose hot part is lost.
    pub(super) fn has_rest(&self, ns: NsId, id: MemoryId) -> Result<bool> {
        let has_content = self.tx.look(Table::Memory, &keys::memory(ns, id), &mut |_| Ok(()))?;
        Ok(has_content
            || !self.tx.holder_numbers(ns, id)?.is_empty()
            || sound(self.tx.limbo(ns, id))? != Some(None))
    }

    /// Brings a row with damaged content to its state at an instant that has come. For a row without vitals the
    /// instant is dropped.
    pub(super) fn settle_damaged(&mut self, context: &Context, id: MemoryId) -> Result<()> {
        let ns = context.ns;
        self.recount.insert(ns);
        let Some(before) = sound(self.tx.vitals(ns, id))?.flatten() else {
            return self.delete_found(ns, id, &[Table::Due]);
        };
        let mut vitals = before.clone();
        vitals.place.counted = Counted::at(&vitals.times, context.now);
        let declared = self.declared(ns)?;
        let (old, new) = (index_rows(&before, None, &declared), index_rows(&vitals, None, &declared));
        for row in old.difference(&new) {
            self.take_index_row(ns, id, row)?;
        }
        for row in new.difference(&old) {
            self.put_index_row(ns, id, row)?;
        }
        if vitals.kind_code == Kind::Snapshot.code() && vitals.place.counted != before.place.counted {
            self.delete_found(ns, id, &[Table::Series])?;
        }
        if !vitals.times.is_current(context.now) {
            self.staged.end(IndexId::of(ns, &vitals), id);
        }
        truth(self.tx).put_vitals(ns, id, &vitals)
    }

    /// Removes holders from a damaged row. The row goes with its last holder.
    ///
    /// Where holders are to be forgotten and no other that can be read wrote their text, the text goes: what can't be
    /// read keeps nothing alive. Another holder gives the row its own text then, and without one the row goes. If
    /// the content of the row is damaged, a row whose other holders have texts stays as it is.
    pub(super) fn detach_damaged(
        &mut self,
        context: &Context,
        id: MemoryId,
        numbers: &[u32],
        departure: Departure,
        why: Why,
    ) -> Result<Applied> {
        let ns = context.ns;
        let stay: Vec<u32> =
            self.tx.holder_numbers(ns, id)?.into_iter().filter(|other| !numbers.contains(other)).collect();
        let reason = match departure {
            Departure::Forgotten(reason, _) => Some(reason),
            Departure::Apart | Departure::Back(_) => None,
        };
        let mut left = self.readable_holders(ns, id)?;
        let gone: Vec<Holder> = left.extract_if(.., |holder| numbers.contains(&holder.number)).collect();
        let lost_keys = self.lost_keys(ns, id, numbers, &gone)?;
        let may_have_written = gone.len() < numbers.len() || gone.iter().any(Holder::wrote_row_text);
        let text_goes = reason.is_some_and(TombstoneReason::is_asked_for)
            && may_have_written
            && !left.iter().any(Holder::wrote_row_text);
        let has_teller = left.iter().any(|holder| holder.text.is_some());
        if let Some(reason) = reason.filter(|_| stay.is_empty() || text_goes && !has_teller) {
            let gone = self.remove_damaged(context, id, Going { reason, replaced_by: None }, why)?;
            return Ok(Applied { lost_keys, ..gone });
        }
        if let Departure::Back(to) = departure
            && stay.is_empty()
        {
            let gone = Going { reason: TombstoneReason::Forget, replaced_by: Some(to) };
            return self.remove_damaged(context, id, gone, why);
        }
        self.recount.insert(ns);
        // The share of a damaged holder is lost, so the holder counts as one write.
        let lost = numbers.len() - gone.len();
        let share = gone
            .iter()
            .fold(u32::try_from(lost).unwrap_or(u32::MAX), |all, holder| all.saturating_add(holder.share));
        for number in numbers {
            self.take_holder_rows(ns, id, Some(*number))?;
        }
        let whole = left.len() == stay.len();
        // A junction goes only if it is known what every remaining holder brings.
        if whole {
            self.keep_junctions(ns, id, &left)?;
        }
        let before = sound(self.tx.vitals(ns, id))?.flatten();
        if let Some(before) = &before {
            let mut vitals = before.clone();
            vitals.place.holders = u32::try_from(stay.len()).unwrap_or(u32::MAX);
            vitals.reinforcement_count = vitals.reinforcement_count.saturating_sub(share).max(1);
            vitals.version += 1;
            truth(self.tx).put_vitals(ns, id, &vitals)?;
        }
        let content = sound(self.tx.content(ns, id))?.flatten();
        if let Some(mut content) = content.clone().filter(|_| whole) {
            content.tags = self.tags_of(ns, id)?;
            truth(self.tx).put_content(ns, id, &content)?;
        }
        let retold = text_goes && before.is_some() && content.is_some();
        let marked = match retold {
            true => self.retell_from(context, id, (gone.clone(), left), departure, &why)?,
            false => None,
        };
        let derived = match reason.is_some_and(TombstoneReason::is_forgotten) {
            true => self.erase_messages_of(context, id, (&gone, &lost_keys), retold)?,
            false => Vec::new(),
        };
        for number in numbers {
            if reason.is_some() {
                self.redact_wholly(ns, &keys::journal_holder(ns, id, Some(*number)))?;
            }
            self.journal(context, Op::Detach, Some((id, Some(*number))), Vec::new(), why.clone())?;
        }
        // What a damaged holder wrote is unknown, and may be the text that stays.
        let text_held = !retold && may_have_written;
        let left = Some(Left { text_held, said_anew: retold });
        let erased = marked.into_iter().collect();
        Ok(Applied { left, derived, erased, lost_keys, ..Applied::default() })
    }

    /// The keys of those of some holders that can't be read. The rows by key name them still.
    fn lost_keys(&self, ns: NsId, id: MemoryId, numbers: &[u32], readable: &[Holder]) -> Result<Vec<String>> {
        let mut keys = Vec::new();
        for number in numbers.iter().filter(|number| readable.iter().all(|one| one.number != **number)) {
            let places = self.tx.holder_places(Table::HolderKey, ns, id, Some(*number))?;
            keys.extend(places.into_iter().filter_map(|(_, name)| name).filter(|name| !name.is_empty()));
        }
        Ok(keys)
    }

    /// Leaves of the junctions of a row those that its holders bring.
    fn keep_junctions(&mut self, ns: NsId, id: MemoryId, holders: &[Holder]) -> Result<()> {
        let mut kept = BTreeSet::new();
        for holder in holders {
            kept.extend(self.junctions_of(ns, holder)?);
        }
        for row in self.tx.junctions(ns, id)? {
            if row.sort != Junction::Source && !kept.contains(&row) {
                self.unjoin(ns, id, &row)?;
            }
        }
        Ok(())
    }

    /// Erases a damaged row, and every row that leads to it.
    pub(super) fn remove_damaged(
        &mut self,
        context: &Context,
        id: MemoryId,
        gone: Going,
        why: Why,
    ) -> Result<Applied> {
        let ns = context.ns;
        self.recount.insert(ns);
        let vitals = sound(self.tx.vitals(ns, id))?.flatten();
        let superseded = vitals.as_ref().and_then(|vitals| vitals.times.superseded);
        let content = sound(self.tx.content(ns, id))?.flatten();
        // The partition is asked before the index rows go, which may be the last rows that know it.
        let part = self.tx.part_of(ns, id)?.unwrap_or(PartId(0));
        let mut erased = self.part_with(context, id, gone, vitals.as_ref().map(Vitals::life))?;
        if let Some(vitals) = &vitals {
            let holders = self.readable_holders(ns, id)?;
            erased.onward = Onward::of(id, vitals, &holders);
        }
        self.take_vector(ns, id, vitals.as_ref())?;
        self.take_document(TextId { ns, part }, id)?;
        let holders: Vec<Holder> = self.readable_holders(ns, id)?;
        let names = self.take_holder_rows(ns, id, None)?;
        self.unjoin_all(ns, id)?;
        self.delete_found(ns, id, &IndexRow::TABLES)?;
        self.delete_found(ns, id, &[Table::LimboTime])?;
        truth(self.tx).delete_memory(ns, id)?;
        truth(self.tx).delete(Table::Limbo, &keys::memory(ns, id))?;
        let stone = sound(self.tx.tombstone(ns, id))?;
        // A damaged tombstone was counted.
        let was_there = stone.as_ref().is_none_or(Option::is_some);
        let made = self.tombstone_of(context, &erased, &holders, content.as_ref(), gone);
        // A key that a supersession brought still belongs to the row from which it came.
        let mut own = BTreeSet::from_iter(names);
        for key in holders.iter().filter(|holder| holder.follows).filter_map(|holder| holder.key.as_ref()) {
            own.remove(key);
        }
        let tombstone = match stone.flatten() {
            Some(kept) => erased_late(kept, gone.reason, context.now),
            None => {
                let removed_at = vitals.and_then(|vitals| vitals.times.removed_at);
                let key_hashes = own.iter().map(|key| self.hash_key(key)).collect();
                Tombstone { deleted_at: removed_at.unwrap_or(context.now), key_hashes, ..made }
            }
        };
        if !was_there {
            self.keep_merged(ns, id, superseded)?;
            self.counters.add(ns, part, Sort::Tombstones, "", 1, 0);
        }
        truth(self.tx).put_tombstone(ns, &tombstone)?;
        if tombstone.leaves_nothing() {
            self.note_writers_of(ns, &erased, &own)?;
        }
        self.redact(ns, id)?;
        self.journal(context, Op::Remove, Some((id, None)), Vec::new(), why)?;
        Ok(Applied { erased: vec![erased], ..Applied::default() })
    }

    /// Lets a row whose vector can't be read wait for a new vector. Rebuilding the texts corrects its
    /// document.
    pub(super) fn lose_vector(&mut self, context: &Context, id: MemoryId) -> Result<()> {
        let ns = context.ns;
        let Some(mut vitals) = self.tx.vitals(ns, id)? else { return Ok(()) };
        self.recount.insert(ns);
        vitals.place.slot = None;
        vitals.version += 1;
        let (table, key) = IndexRow::Pending(PartId(vitals.place.partition)).place(ns, id);
        truth(self.tx).put(table, &key, &[])?;
        truth(self.tx).put_vitals(ns, id, &vitals)?;
        let delta = Delta { field: "vector".to_owned(), before: "damaged".into(), after: Value::Null };
        let why = Why { rule: RuleId::REINDEX, evidence: Evidence::default() };
        self.journal(context, Op::Update, Some((id, None)), vec![delta], why)
    }

    /// Frees the slot of a row: the slot that the vitals name, or the slot that names the row.
    fn take_vector(&mut self, ns: NsId, id: MemoryId, vitals: Option<&Vitals>) -> Result<()> {
        let place = match vitals {
            Some(vitals) => vitals.place.slot.map(|slot| (IndexId::of(ns, vitals), slot)),
            None => self.tx.slot_of(ns, id)?,
        };
        let Some((index, slot)) = place else { return Ok(()) };
        let Some(space) = self.tx.space(index.space)? else { return Ok(()) };
        self.staged.end(index, id);
        slots::release(self.tx, index, space.dim as usize, self.clock.commit, slot)
    }

    /// Removes the document of a row from its index and from all postings that name the document.
    fn take_document(&mut self, text: TextId, id: MemoryId) -> Result<()> {
        let Some(doc) = self.tx.doc_of(text, id)? else { return Ok(()) };
        if let Some((thread, at)) = self.tx.thread_of(text, doc)? {
            self.tx.leave_thread(text, doc, &thread, at)?;
        }
        if self.tx.release_doc(text, doc, id)? {
            for term in self.tx.terms_of(text, doc)? {
                self.tx.remove_posting(text, &term, doc)?;
            }
        }
        Ok(())
    }

    /// Removes one holder of a row, or all holders, with the rows by which they are found. Returns the keys of these
    /// holders.
    fn take_holder_rows(&mut self, ns: NsId, id: MemoryId, number: Option<u32>) -> Result<Vec<String>> {
        for found in self.tx.holder_numbers(ns, id)? {
            if number.is_none_or(|number| number == found) {
                truth(self.tx).delete(Table::Holder, &keys::holder(ns, id, found))?;
            }
        }
        // The rows by key still name the keys of holders that can't be read.
        let mut names = Vec::new();
        for table in [Table::HolderKey, Table::HolderTag, Table::HolderRun] {
            for (key, name) in self.tx.holder_places(table, ns, id, number)? {
                truth(self.tx).delete(table, &key)?;
                names.extend(name.filter(|name| table == Table::HolderKey && !name.is_empty()));
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Takes the key from a holder that can't be read: nothing finds it by the key any more.
    pub(super) fn drop_damaged_key(&mut self, ns: NsId, key: &str, id: MemoryId, number: u32) -> Result<()> {
        truth(self.tx).delete(Table::HolderKey, &keys::holder_key(ns, key, id, number))
    }

    /// Takes a tombstone away that can't be read, with all that leads to it.
    pub(super) fn take_damaged_tombstone(&mut self, ns: NsId, id: MemoryId) -> Result<()> {
        self.delete_found(ns, id, &[Table::TombstoneHash, Table::TombstoneTime])?;
        truth(self.tx).delete(Table::Tombstone, &keys::memory(ns, id))
    }

    /// The readable holders of a row.
    pub(crate) fn readable_holders(&self, ns: NsId, id: MemoryId) -> Result<Vec<Holder>> {
        let mut all = Vec::new();
        for number in self.tx.holder_numbers(ns, id)? {
            all.extend(sound(self.tx.holder(ns, id, number))?.flatten());
        }
        Ok(all)
    }

    /// Removes the rows of some tables that end with the id of a memory.
    pub(super) fn delete_found(&mut self, ns: NsId, id: MemoryId, tables: &[Table]) -> Result<()> {
        for table in tables {
            for key in self.tx.keys_ending(*table, ns, id.as_bytes())? {
                truth(self.tx).delete(*table, &key)?;
            }
        }
        Ok(())
    }

    /// Removes a journal row and everything that leads to it.
    pub(super) fn drop_journal_row(&mut self, ns: NsId, seq: u64) -> Result<()> {
        for table in [Table::JournalSubject, Table::JournalRun] {
            for key in self.tx.keys_ending(table, ns, &seq.to_be_bytes())? {
                truth(self.tx).delete(table, &key)?;
            }
        }
        truth(self.tx).delete(Table::Journal, &keys::journal(ns, seq))
    }
}
