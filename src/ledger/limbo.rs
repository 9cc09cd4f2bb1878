//! Limbo: a memory that maintenance removed is gone from every index, and can come back until its undo
//! horizon.
//!
//! The vitals, the content and the holders of such a row stay where they stood, with the instant of the removal. So
//! its id and its keys answer with what happened to the memory, and forgetting finds it. Its slot is free, its
//! junction rows and derived rows are gone, and its tombstone is written. Whatever could not be found again otherwise
//! stands in the row of the table `limbo`.

use crate::error::{Error, Result, sound};
use crate::index::slots::{self, Filling};
use crate::ledger::applied::{Applied, Erased, Restored};
use crate::ledger::change::RestoreTo;
use crate::ledger::erase::Going;
use crate::ledger::lifetime::renew;
use crate::ledger::returns::SaidSince;
use crate::ledger::supersede::Beyond;
use crate::ledger::writer::{Context, Ledger, Whole, Why, truth};
use crate::model::{
    Delta, Holder, LedLink, Link, MemoryId, Op, SupersedeMode, Supersession, Times, Tombstone,
    TombstoneReason, Vitals, is_blank,
};
use crate::store::control::{CounterSort as Sort, LimboRow};
use crate::store::{IndexId, Junction, JunctionRow, NsId, PartId, Rows, SpaceId};
use crate::vector::{Coded, UnitVector};

/// Why a row is set aside, and how much reinforcement went from it to which row.
#[derive(Clone, Copy)]
pub(super) struct Aside {
    pub(super) reason: TombstoneReason,
    pub(super) replaced_by: Option<MemoryId>,
    pub(super) transferred: u32,
}

impl Ledger<'_, '_> {
    pub(super) fn retire(
        &mut self,
        context: &Context,
        id: MemoryId,
        Going { reason, replaced_by }: Going,
        why: Why,
    ) -> Result<Applied> {
        let (vitals, content) = self.load(context.ns, id)?;
        let row = Whole { vitals, content, holders: self.tx.holders(context.ns, id)? };
        if row.vitals.times.removed_at.is_some() {
            return Err(Error::Conflict { what: format!("remove {id}"), why: "it is in limbo".to_owned() });
        }
        let aside = Aside { reason, replaced_by, transferred: 0 };
        let mut why = why;
        why.evidence.members.extend(replaced_by);
        let erased = self.set_aside(context, id, row, aside, &why)?;
        // Without limbo the removal is an erasure, which has a journal row of its own.
        if erased.is_empty() {
            self.journal(context, Op::Retire, Some((id, None)), Vec::new(), why)?;
        }
        Ok(Applied { erased, ..Applied::default() })
    }

    /// Whether the vector of a row can be read, if the row has one. Limbo keeps vectors.
    pub(crate) fn has_its_vector(&self, ns: NsId, vitals: &Vitals) -> Result<bool> {
        Ok(vitals.place.slot.is_none() || sound(self.vector_of(ns, vitals))?.flatten().is_some())
    }

    /// The vector of a row in its slot, if the row has one.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(super) fn vector_of(&self, ns: NsId, vitals: &Vitals) -> Result<Option<UnitVector>> {
        let Some(slot) = vitals.place.slot else { return Ok(None) };
        slots::vector_at(&*self.tx, IndexId::of(ns, vitals), self.dim_of(vitals)?, slot)
    }

    /// Takes a row out of every index and leaves its tombstone. If the policy keeps no limbo, erases the row at once, and
    /// raises the purge horizons as the end of limbo would.
    pub(super) fn set_aside(
        &mut self,
        context: &Context,
        id: MemoryId,
        row: Whole,
        aside: Aside,
        why: &Why,
    ) -> Result<Vec<Erased>> {
        let Whole { vitals: before, content, holders } = row;
        let ns = context.ns;
        if !context.keeps_limbo {
            // The links are led on before the removal, which would cut them.
            self.lead_links_on(ns, id, aside.replaced_by)?;
            let gone = Going { reason: aside.reason, replaced_by: aside.replaced_by };
            self.raise_horizons(ns, &Times { removed_at: Some(context.now), ..before.times })?;
            return Ok(self.remove(context, id, gone, why.clone())?.erased);
        }
        let erased = self.kin(ns, id)?;
        let mut row = LimboRow {
            run: context.run,
            reason: aside.reason,
            replaced_by: aside.replaced_by,
            replaced: aside.replaced_by.is_some() && before.times.superseded.is_none(),
            transferred: aside.transferred,
            ..LimboRow::default()
        };
        let mut vitals = before.clone();
        // Another row may get the slot later, so the vector moves into the limbo row.
        if let Some(slot) = vitals.place.slot.take() {
            let (index, dim) = (IndexId::of(ns, &before), self.dim_of(&before)?);
            let vector = slots::vector_at(self.tx, index, dim, slot)?;
            row.vector = vector.map(|vector| vector.as_slice().to_vec()).unwrap_or_default();
            slots::release(self.tx, index, dim, self.clock.commit, slot)?;
        }
        for joined in self.tx.junctions(ns, id)? {
            if let (Junction::Source, Ok(source)) = (joined.sort, joined.target.as_slice().try_into()) {
                row.sources.push(MemoryId::from_bytes(source));
            }
            self.unjoin(ns, id, &joined)?;
        }
        row.links = self.lead_links_on(ns, id, aside.replaced_by)?;
        vitals.times.removed_at = Some(context.now);
        if let Some(by) = aside.replaced_by.filter(|_| row.replaced) {
            let mode = SupersedeMode::Duplicate;
            vitals.times.superseded = Some(Supersession { at: context.now, by, mode, via: None });
        }
        vitals.version += 1;
        self.store_row(context, id, Some((&before, &content)), vitals, &content)?;
        let gone = Going { reason: aside.reason, replaced_by: aside.replaced_by };
        let tombstone = self.tombstone_of(context, &erased, &holders, Some(&content), gone);
        truth(self.tx).put_tombstone(ns, &tombstone)?;
        self.counters.add(ns, PartId(before.place.partition), Sort::Tombstones, "", 1, 0);
        truth(self.tx).put_limbo(ns, id, context.now, &row)?;
        Ok(Vec::new())
    }

    /// Raises the purge horizons of a namespace for a row that is erased without limbo. Only the rows of all namespaces
    /// say how one with this number is called, so the transaction looks once.
    fn raise_horizons(&mut self, ns: NsId, erased: &Times) -> Result<()> {
        if self.purging.as_ref().is_none_or(|(known, _)| *known != ns) {
            let named = self.tx.namespaces()?.into_iter().find(|(_, row)| row.number == ns.0);
            self.purging = named.map(|(name, _)| (ns, name));
        }
        let Some((_, name)) = &self.purging else { return Ok(()) };
        // A namespace whose row is damaged has no horizon to raise.
        let Some(before) = sound(self.tx.namespace(name))?.flatten() else { return Ok(()) };
        let mut row = before.clone();
        row.raise_horizons(erased);
        if row == before { Ok(()) } else { self.tx.put_namespace(name, &row) }
    }

    /// Leads the links of other memories to a removed row on to the row that takes its place, or ends them.
    pub(super) fn lead_links_on(
        &mut self,
        ns: NsId,
        gone: MemoryId,
        on: Option<MemoryId>,
    ) -> Result<Vec<LedLink>> {
        let mut all = Vec::new();
        for (from, relation) in self.tx.joined_to(ns, Junction::Link, gone.as_bytes())? {
            // A damaged holder of another memory must not keep this memory from going.
            for mut holder in self.holders_with_link(ns, from, gone)? {
                let link = Link { to: gone, relation: relation.clone() };
                if !holder.links.contains(&link) {
                    continue;
                }
                holder.links.retain(|other| *other != link);
                let next = on.filter(|on| *on != from).map(|to| Link { to, relation: relation.clone() });
                let next = next.filter(|next| !holder.links.contains(next));
                all.push(LedLink {
                    from,
                    number: holder.number,
                    relation: relation.clone(),
                    led_on: next.is_some(),
                });
                holder.links.extend(next);
                // Links stay sorted, because other changes look for a link by binary search.
                holder.links.sort_unstable();
                let known = self.links.remove(&(ns, from));
                self.put_holder(ns, from, &holder)?;
                if let Some(mut linking) = known {
                    if let Some(on) = on {
                        linking.entry(on).or_default().insert(holder.number);
                    }
                    self.links.insert((ns, from), linking);
                }
            }
            let row = JunctionRow { sort: Junction::Link, target: gone.as_bytes().to_vec(), role: relation };
            truth(self.tx).delete_junction(ns, from, &row)?;
        }
        Ok(all)
    }

    pub(super) fn return_from_limbo(
        &mut self,
        context: &Context,
        id: MemoryId,
        to: RestoreTo,
        why: Why,
    ) -> Result<Applied> {
        let ns = context.ns;
        let (before, mut content) = self.load(ns, id)?;
        let (Some(removed_at), Some(limbo)) = (before.times.removed_at, self.tx.limbo(ns, id)?) else {
            return Err(Error::Conflict {
                what: format!("return {id}"),
                why: "it is not in limbo".to_owned(),
            });
        };
        if to == RestoreTo::Undo
            && let Some(stays) = self.stays_ended(context, id)?
        {
            return Ok(Applied { restored: Some(stays), ..Applied::default() });
        }
        let mut applied = Applied::default();
        let mut vitals = before.clone();
        let (mut said, mut keys_taken) = (SaidSince::default(), Vec::new());
        let superseder = before.times.superseded_by().filter(|_| limbo.replaced);
        if let Some(by) = superseder {
            self.take_transfer(context, (id, by), limbo.transferred, &why)?;
            // Copies come back before `said_since` asks who holds the keys, because a copy is no later
            // statement.
            applied.erased = self.give_back(context, by, id, (Beyond::Merges, false), &why)?;
            (vitals.times.superseded, vitals.times.announced) = (None, None);
        }
        if vitals.times.superseded.is_none() {
            said = self.said_since(context, id, to)?;
            let superseders = superseder.into_iter().collect();
            keys_taken = self.reclaim_keys(context, id, &superseders, &said, RestoreTo::Undo)?.keys_taken;
        }
        vitals.times.removed_at = None;
        if limbo.reason == TombstoneReason::Expired || !vitals.life().is_promised_end() {
            renew(&mut vitals, context.now, &context.ttl);
        }
        vitals.version += 1;
        let was_left = vitals.place.space != self.clock.space && !is_blank(&content.text);
        if was_left && !limbo.vector.is_empty() {
            // The model was changed meanwhile. A vector of the old model would never be found.
            vitals.place.space = SpaceId::NONE.0;
            self.waiting.push((ns, id));
        } else if let Some(vector) = UnitVector::from_stored(limbo.vector.clone()) {
            let index = IndexId::of(ns, &vitals);
            let (commit, times) = (self.clock.commit, &vitals.times);
            let filling = Filling { commit, id, times, coded: &Coded::of(&vector) };
            vitals.place.slot = Some(slots::claim(self.tx, index, filling)?);
        }
        // The junction rows were removed with the row, so every holder brings its own again.
        for mut holder in self.tx.holders(ns, id)? {
            if to != RestoreTo::Undo {
                holder.forget_ended();
            }
            self.drop_dead_links(ns, &mut holder)?;
            self.put_holder(ns, id, &holder)?;
        }
        for source in limbo.sources.iter().copied() {
            // Provenance never leads to nothing (MODEL-24), whatever a line of an export said.
            if self.has_been(ns, source)? {
                self.join_sources(ns, id, &[source])?;
            }
        }
        self.lead_back(ns, id, superseder, &limbo.links)?;
        self.unbury(ns, id, PartId(before.place.partition))?;
        truth(self.tx).delete_limbo(ns, id, removed_at)?;
        let old = content.clone();
        self.retag(ns, id, &mut vitals, &mut content)?;
        self.store_row(context, id, Some((&before, &old)), vitals, &content)?;
        let mut told = why.clone();
        told.evidence.members.extend(superseder);
        self.journal(context, Op::Return, Some((id, None)), Vec::new(), told)?;
        let keys_ended = said.keys_ended();
        let superseded_by = self.follow_writers(context, (id, to), said, why)?;
        applied.restored = Some(Restored { keys_taken, superseded_by, keys_ended, ..Restored::default() });
        Ok(applied)
    }

    /// Removes the tombstone of a row that returns, also a damaged one.
    fn unbury(&mut self, ns: NsId, id: MemoryId, part: PartId) -> Result<()> {
        let tombstone = sound(self.tx.tombstone(ns, id))?;
        if tombstone == Some(None) {
            return Ok(());
        }
        match tombstone.flatten() {
            Some(tombstone) => truth(self.tx).delete_tombstone(ns, &tombstone)?,
            None => self.take_damaged_tombstone(ns, id)?,
        }
        self.counters.add(ns, part, Sort::Tombstones, "", -1, 0);
        Ok(())
    }

    /// Takes back the reinforcement that the row `id` had brought to the row `from`, also from the rows into which that row has gone
    /// since, and journals it of each. Writes that have left meanwhile took their shares along.
    fn take_transfer(
        &mut self,
        context: &Context,
        (id, from): (MemoryId, MemoryId),
        transferred: u32,
        why: &Why,
    ) -> Result<()> {
        let ns = context.ns;
        let shares = |holders: &[Holder]| holders.iter().map(|h| h.share).fold(0_u32, u32::saturating_add);
        let mut brought = self.tx.holders(ns, id)?;
        let count = self.tx.vitals(ns, id)?.map_or(0, |row| row.reinforcement_count);
        let beside = count.saturating_sub(shares(&brought));
        let (mut came, mut at) = (id, Some(from));
        // Damaged rows could lead in a circle, so no row is visited twice.
        let mut seen = std::collections::BTreeSet::new();
        while let Some(id) = at.filter(|id| transferred > 0 && seen.insert(*id)) {
            let there = sound(self.load_there(ns, id))?.flatten();
            let mut copies = self.copies_from(ns, id, came)?;
            let Some((before, content)) = there else { return Ok(()) };
            copies.retain(|copy| brought.iter().any(|one| copy.is_copy_of(one)));
            let there = transferred.min(beside.saturating_add(shares(&copies)));
            let mut vitals = before.clone();
            // A row that stands counts as one observation at least, whatever was taken from it.
            vitals.reinforcement_count = vitals.reinforcement_count.saturating_sub(there).max(1);
            vitals.version += 1;
            // Only a row that was merged again has handed the count on. One that was pruned beside another has not.
            let limbo = sound(self.tx.limbo(ns, id))?.flatten();
            at = before.times.superseded_by().filter(|_| limbo.is_some_and(|limbo| limbo.transferred > 0));
            (came, brought) = (id, copies);
            let delta = Delta {
                field: "reinforcement_count".to_owned(),
                before: before.reinforcement_count.into(),
                after: vitals.reinforcement_count.into(),
            };
            self.place_row(context, id, &before, &content, vitals, &content)?;
            // Who follows this row would not hear of it from the row that comes back.
            if delta.before != delta.after {
                self.journal(context, Op::Adjust, Some((id, None)), vec![delta], why.clone())?;
            }
        }
        Ok(())
    }

    /// Drops links whose other end has gone while the row was away. Both ends of a link must exist.
    fn drop_dead_links(&self, ns: NsId, holder: &mut Holder) -> Result<()> {
        let mut kept = Vec::with_capacity(holder.links.len());
        for link in holder.links.drain(..) {
            let there = sound(self.tx.vitals(ns, link.to))?.flatten();
            if there.is_some_and(|row| row.times.removed_at.is_none()) {
                kept.push(link);
            }
        }
        holder.links = kept;
        Ok(())
    }

    /// Lets links that had led to a row lead to it again, if their holders still exist.
    fn lead_back(
        &mut self,
        ns: NsId,
        id: MemoryId,
        meanwhile: Option<MemoryId>,
        links: &[LedLink],
    ) -> Result<()> {
        for LedLink { from, number, relation, led_on } in links {
            let from = *from;
            let Some(mut holder) = sound(self.tx.holder(ns, from, *number))?.flatten() else { continue };
            if *led_on {
                holder.links.retain(|link| Some(link.to) != meanwhile || link.relation != *relation);
            }
            let link = Link { to: id, relation: relation.clone() };
            if !holder.links.contains(&link) {
                holder.links.push(link);
                holder.links.sort_unstable();
            }
            let row = sound(self.tx.vitals(ns, from))?.flatten();
            self.rewrite_holder(ns, from, &holder, row.is_none_or(|row| row.times.removed_at.is_some()))?;
        }
        Ok(())
    }

    /// Erases a row of limbo whose horizon is over. Its tombstone stays as it is. If the tombstone is lost, the row
    /// gets one that says what the row itself knows of its removal.
    pub(super) fn purge(&mut self, context: &Context, id: MemoryId, why: Why) -> Result<Applied> {
        let ns = context.ns;
        let stone = sound(self.tx.tombstone(ns, id))?;
        let Some(row) = sound(self.tx.limbo(ns, id))? else {
            // Lost parts keep a row from coming back, but not from being erased.
            let unknown = Going { reason: TombstoneReason::Retention, replaced_by: None };
            let gone = stone.flatten().map_or(unknown, |stone| Going::of(&stone));
            return self.remove(context, id, gone, why);
        };
        let Some(row) = row else {
            return Err(Error::Conflict {
                what: format!("erase {id}"),
                why: "it is not in limbo".to_owned(),
            });
        };
        let gone = match stone {
            Some(Some(stone)) => Going::of(&stone),
            Some(None) if self.is_whole(ns, id)? => Going::of(&self.bury_in_limbo(context, id, &row)?),
            _ => Going { reason: row.reason, replaced_by: row.replaced_by },
        };
        self.remove(context, id, gone, why)
    }

    /// Gives a row in limbo the tombstone that its removal would have left.
    pub(super) fn bury_in_limbo(
        &mut self,
        context: &Context,
        id: MemoryId,
        row: &LimboRow,
    ) -> Result<Tombstone> {
        let ns = context.ns;
        let (vitals, content) = self.load(ns, id)?;
        let holders = self.tx.holders(ns, id)?;
        let gone = Going { reason: row.reason, replaced_by: row.replaced_by };
        // The tombstone names the run that removed the row, and not the present run.
        let then = Context { run: row.run, ..context.clone() };
        let tombstone = self.tombstone_of(&then, &self.kin(ns, id)?, &holders, Some(&content), gone);
        let deleted_at = vitals.times.removed_at.unwrap_or(context.now);
        let tombstone = Tombstone { deleted_at, ..tombstone };
        truth(self.tx).put_tombstone(ns, &tombstone)?;
        self.counters.add(ns, PartId(vitals.place.partition), Sort::Tombstones, "", 1, 0);
        Ok(tombstone)
    }
}
