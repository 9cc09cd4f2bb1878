//! Erasing a row with everything that hangs on it.

use std::collections::BTreeSet;

use crate::error::{Result, sound};
use crate::index::slots;
use crate::ledger::applied::{Applied, Erased, Onward};
use crate::ledger::writer::{Context, Ledger, Whole, Why, gone, truth};
use crate::model::{
    Content, Evidence, Holder, Life, MemoryId, Op, RuleId, SupersedeMode, Supersession, Time, Tombstone,
    TombstoneReason,
};
use crate::policy::TombstoneHash;
use crate::store::control::{CounterSort as Sort, EventRow};
use crate::store::{IndexId, Junction, NsId, PartId, Rows, Traces};
use crate::text::plain;

/// Why a row is erased, and which row takes its place.
#[derive(Clone, Copy)]
pub(super) struct Going {
    pub(super) reason: TombstoneReason,
    pub(super) replaced_by: Option<MemoryId>,
}

/// What became of a memory that maintenance had erased before somebody asked to forget it.
#[derive(Debug, Default)]
pub(crate) struct ForgottenLate {
    /// What was made from the memory, and may still tell of it.
    pub(crate) derived: Vec<MemoryId>,
    /// Whether messages that the memory had told were erased.
    pub(crate) had_messages: bool,
    /// The first message of the aggregate that the memory had stood for, which is to be forgotten with it.
    pub(crate) first: Option<MemoryId>,
}

impl Going {
    /// What a tombstone says of it.
    pub(super) fn of(stone: &Tombstone) -> Self {
        Going { reason: stone.reason, replaced_by: stone.replaced_by }
    }
}

impl Ledger<'_, '_> {
    /// Removes what a row was tied to. The messages behind the row are erased too, or note that the row had told them, and are handed
    /// on to the row that takes its place. Past queries no longer name it.
    pub(super) fn part_with(
        &mut self,
        context: &Context,
        id: MemoryId,
        Going { reason, replaced_by }: Going,
        life: Option<Life>,
    ) -> Result<Erased> {
        let mut erased = self.kin(context.ns, id)?;
        let superseded =
            sound(self.tx.vitals(context.ns, id))?.flatten().and_then(|row| row.times.superseded);
        let is_version = superseded
            .is_some_and(|by| matches!(by.mode, SupersedeMode::Replaced | SupersedeMode::Correction));
        // An end that a caller set is a promise that nothing of the text is left, as an erasure is. Nothing else would keep the
        // promise of a version that maintenance erases before. Whoever set that of a damaged row is unknown.
        let is_promised = life.is_none_or(Life::is_promised_end)
            && (reason == TombstoneReason::Expired || is_version && !reason.is_asked_for());
        let is_asked_for = reason.is_asked_for() || is_promised;
        self.leave_queries(context.ns, id, is_asked_for)?;
        if is_asked_for {
            erased.derived.append(&mut self.erase_messages(context, id, reason)?);
        }
        if !reason.is_asked_for() {
            let of_aggregate = superseded.filter(|by| by.mode == SupersedeMode::Aggregate).map(|by| by.by);
            self.hand_on_messages(context.ns, id, replaced_by.or(of_aggregate))?;
        }
        Ok(erased)
    }

    /// Removes every junction of a row, in both directions.
    pub(super) fn unjoin_all(&mut self, ns: NsId, id: MemoryId) -> Result<()> {
        for row in self.tx.junctions(ns, id)? {
            self.unjoin(ns, id, &row)?;
        }
        self.unlink_all(ns, id)
    }

    pub(super) fn remove(
        &mut self,
        context: &Context,
        id: MemoryId,
        going: Going,
        why: Why,
    ) -> Result<Applied> {
        let ns = context.ns;
        let Some(whole) = sound(self.whole(ns, id))?.flatten() else {
            if !self.tx.has_row(ns, id)? && !self.has_rest(ns, id)? {
                return Err(gone(id));
            }
            return self.remove_damaged(context, id, going, why);
        };
        // Messages are settled while the content still stands, because the content names the aggregate of the
        // memory.
        let mut erased = self.part_with(context, id, going, Some(whole.vitals.life()))?;
        if going.reason == TombstoneReason::Expired && whole.vitals.life().is_promised_end() {
            self.end_writers(context, id, &whole, &why)?;
        }
        let Whole { vitals, content, holders } = &whole;
        erased.onward = Onward::of(id, vitals, holders);
        if !going.reason.is_taken_back() {
            self.hand_on_overtaken(context, vitals)?;
        }
        self.take_out(context, id, &whole)?;
        let fresh = self.tombstone_of(context, &erased, holders, Some(content), going);
        let tombstone = match vitals.times.removed_at {
            // The tombstone was fixed when the row was removed (MODEL-49).
            Some(removed_at) => {
                truth(self.tx).delete_limbo(ns, id, removed_at)?;
                let kept = sound(self.tx.tombstone(ns, id))?.flatten().unwrap_or(fresh);
                erased_late(kept, going.reason, context.now)
            }
            None => {
                self.counters.add(ns, PartId(vitals.place.partition), Sort::Tombstones, "", 1, 0);
                self.keep_merged(ns, id, vitals.times.superseded)?;
                fresh
            }
        };
        truth(self.tx).put_tombstone(ns, &tombstone)?;
        if tombstone.leaves_nothing() {
            let own = holders.iter().filter(|holder| !holder.follows);
            let wrote = own.filter_map(|holder| holder.key.clone()).collect();
            self.note_writers_of(ns, &erased, &wrote)?;
        }
        // The journal row of this removal comes after the redaction, so its own evidence stays readable.
        self.redact(ns, id)?;
        self.journal(context, Op::Remove, Some((id, None)), Vec::new(), why)?;
        Ok(Applied { erased: vec![erased], ..Applied::default() })
    }

    /// Takes a row and all that is derived from it out of its namespace. What tells of the row elsewhere stays: messages,
    /// the journal, tombstones and the place in limbo.
    pub(super) fn take_out(&mut self, context: &Context, id: MemoryId, whole: &Whole) -> Result<()> {
        let (ns, Whole { vitals, content, holders }) = (context.ns, whole);
        if let Some(slot) = vitals.place.slot {
            let (dim, index) = (self.dim_of(vitals)?, IndexId::of(ns, vitals));
            // Without this, a later write of the same transaction could still find the row as a neighbour.
            self.staged.end(index, id);
            slots::release(self.tx, index, dim, self.clock.commit, slot)?;
        }
        if let Some(doc) = vitals.place.doc {
            self.forget_text(Self::text_of(ns, vitals), doc, id, vitals, content)?;
        }
        for holder in holders {
            truth(self.tx).delete_holder(ns, id, holder)?;
        }
        self.forget_copies(ns, id);
        self.unjoin_all(ns, id)?;
        self.rederive(ns, id, Some((vitals, content)), None)?;
        truth(self.tx).delete_memory(ns, id)
    }

    /// Notes on the holders of what a forgotten row had superseded which of their keys wrote that row, and did not only lead there.
    pub(super) fn note_writers_of(
        &mut self,
        ns: NsId,
        erased: &Erased,
        wrote: &BTreeSet<String>,
    ) -> Result<()> {
        for (old, _) in erased.predecessors.iter().filter(|(_, mode)| *mode != SupersedeMode::Aggregate) {
            self.note_next(ns, *old, wrote)?;
        }
        Ok(())
    }

    /// Notes on each holder of a row whether its key is one of those that wrote what took the place of the row.
    pub(super) fn note_next(&mut self, ns: NsId, id: MemoryId, wrote: &BTreeSet<String>) -> Result<()> {
        for mut holder in self.readable_holders(ns, id)? {
            let wrote = holder.key.as_ref().is_some_and(|key| wrote.contains(key));
            if holder.note_next(wrote) {
                truth(self.tx).put_holder(ns, id, &holder)?;
            }
        }
        Ok(())
    }

    /// Erases a row that was superseded as a duplicate. The row that stands for it keeps its id.
    pub(super) fn keep_merged(
        &mut self,
        ns: NsId,
        id: MemoryId,
        superseded: Option<Supersession>,
    ) -> Result<()> {
        let merged = superseded.filter(|superseded| superseded.mode == SupersedeMode::Duplicate);
        let Some(by) = merged.map(|superseded| superseded.by) else { return Ok(()) };
        let Some(mut content) = sound(self.tx.content(ns, by))?.flatten() else { return Ok(()) };
        if !content.consolidated_from.contains(&id) {
            content.consolidated_from.push(id);
            truth(self.tx).put_content(ns, by, &content)?;
        }
        Ok(())
    }

    /// The memories that are related to an erased memory.
    pub(super) fn kin(&self, ns: NsId, id: MemoryId) -> Result<Erased> {
        let mut predecessors = Vec::new();
        for old in self.tx.superseded_by(ns, id)? {
            let vitals = sound(self.tx.vitals(ns, old))?.flatten();
            if let Some(Supersession { mode, .. }) = vitals.and_then(|vitals| vitals.times.superseded) {
                predecessors.push((old, mode));
            }
        }
        Ok(Erased { id, predecessors, onward: None, derived: self.made_from(ns, id)? })
    }

    /// The summaries and consolidated rows that were made from a memory, as far as they are there. What maintenance removed
    /// since may tell of the memory in what was made of it.
    pub(super) fn made_from(&self, ns: NsId, id: MemoryId) -> Result<Vec<MemoryId>> {
        let (mut all, mut open, mut seen) = (Vec::new(), vec![id], BTreeSet::from([id]));
        while let Some(next) = open.pop() {
            let made = self.tx.joined_to(ns, Junction::Source, next.as_bytes())?;
            // A summary that is gone tells its sources no more, but they tell which it was.
            let stone = sound(self.tx.tombstone(ns, next))?.flatten();
            let stone = stone.filter(|stone| stone.reason == TombstoneReason::Summarized);
            let into = stone.and_then(|stone| stone.replaced_by);
            for summary in made.into_iter().map(|(summary, _)| summary).chain(into) {
                if !seen.insert(summary) {
                    continue;
                }
                let is_there = self.tx.has_row(ns, summary)?;
                all.extend(is_there.then_some(summary));
                let vitals = sound(self.tx.vitals(ns, summary))?.flatten();
                let is_live = vitals.is_some_and(|row| row.times.removed_at.is_none());
                open.extend((!is_live).then_some(summary));
            }
        }
        Ok(all)
    }

    /// Somebody asks to forget a memory that maintenance or an undo has erased before, by its id or by one of its keys. The messages that the
    /// memory had told in a partition, or anywhere, are erased. Nothing happens if the memory was forgotten already, or as long as
    /// other keys have not asked: the memory was theirs, too.
    pub(crate) fn forget_gone(
        &mut self,
        context: &Context,
        (id, key): (MemoryId, Option<&str>),
        rule: RuleId,
        part: Option<PartId>,
    ) -> Result<ForgottenLate> {
        let ns = context.ns;
        let stone = sound(self.tx.tombstone(ns, id))?.flatten();
        let stone = stone.filter(|stone| !stone.reason.is_forgotten() && stone.forgotten_at.is_none());
        let Some(before) = stone else { return Ok(ForgottenLate::default()) };
        let mut made = Vec::new();
        for from in self.made_from(ns, id)? {
            // A memory and what is made of it lie in one partition, and its tombstone does not name that.
            let there = self.tx.part_of(ns, from)?;
            made.extend((part.is_none() || there == part).then_some(from));
        }
        let told = self.members(ns, id.as_bytes())?;
        let is_there = |row: &EventRow| part.is_none_or(|part| part.0 == row.part) && !row.is_erased();
        let had_messages = told.values().any(is_there);
        if made.is_empty() && !had_messages {
            return Ok(ForgottenLate::default());
        }
        let mut stone = before.clone();
        if let Some(key) = key {
            let names = self.secret.names_of_key(key);
            stone.key_hashes.retain(|hash| !names.contains(hash));
        }
        if key.is_some() && !stone.key_hashes.is_empty() {
            truth(self.tx).delete_tombstone(ns, &before)?;
            truth(self.tx).put_tombstone(ns, &stone)?;
            return Ok(ForgottenLate::default());
        }
        truth(self.tx).put_tombstone(ns, &Tombstone { forgotten_at: Some(context.now), ..before })?;
        let why = Why { rule, evidence: Evidence::default() };
        let mut first = None;
        if had_messages {
            if self.aggregate_of_memory(ns, id)?.is_some() {
                let of_aggregate = |(_, mode): &&(MemoryId, SupersedeMode)| *mode == SupersedeMode::Aggregate;
                first = self.kin(ns, id)?.predecessors.iter().find(of_aggregate).map(|(id, _)| *id);
            }
            made.append(&mut self.erase_messages(context, id, TombstoneReason::Forget)?);
        }
        self.journal(context, Op::Remove, Some((id, None)), Vec::new(), why)?;
        Ok(ForgottenLate { derived: made, had_messages, first })
    }

    /// Memories of a key that are erased, by their tombstones.
    pub(crate) fn gone_of_key(&self, ns: NsId, key: &str) -> Result<BTreeSet<MemoryId>> {
        let mut all = BTreeSet::new();
        for hash in self.secret.names_of_key(key) {
            for id in self.tx.tombstones_of_hash(ns, &hash)? {
                // A plain hash can be that of a content.
                let stone = sound(self.tx.tombstone(ns, id))?.flatten();
                let is_key = stone.is_some_and(|stone| stone.key_hashes.contains(&hash));
                all.extend((is_key && !self.tx.has_row(ns, id)?).then_some(id));
            }
        }
        Ok(all)
    }

    pub(super) fn tombstone_of(
        &self,
        context: &Context,
        erased: &Erased,
        holders: &[Holder],
        content: Option<&Content>,
        Going { reason, replaced_by }: Going,
    ) -> Tombstone {
        let mut merged_from = content.map(|content| content.consolidated_from.clone()).unwrap_or_default();
        let known: BTreeSet<MemoryId> = merged_from.iter().copied().collect();
        let merged = erased.predecessors.iter().filter(|(_, mode)| *mode == SupersedeMode::Duplicate);
        merged_from.extend(merged.map(|(id, _)| *id).filter(|id| !known.contains(id)));
        Tombstone {
            id: erased.id,
            deleted_at: context.now,
            reason,
            run: context.run,
            replaced_by,
            made_by: holders.first().and_then(|holder| holder.run),
            merged_from,
            key_hashes: holders
                .iter()
                // A key that a supersession brought still belongs to the row from which it came.
                .filter(|holder| !holder.follows)
                .filter_map(|holder| holder.key.as_deref())
                .map(|key| self.hash_key(key))
                .collect(),
            // A lost text has no known hash.
            content_hash: content.map(|content| self.hash_content(&content.text)).unwrap_or_default(),
            rows: 1,
            erased_at: None,
            forgotten_at: None,
        }
    }

    /// Leaves one tombstone for all rows of a dropped namespace.
    pub(crate) fn bury_namespace(
        &mut self,
        context: &Context,
        id: MemoryId,
        name: &str,
        rows: u64,
    ) -> Result<()> {
        let tombstone = Tombstone {
            run: context.run,
            content_hash: self.secret.of_namespace(name),
            rows,
            ..Tombstone::bare(id, context.now, TombstoneReason::NamespaceDropped)
        };
        truth(self.tx).put_tombstone(context.ns, &tombstone)?;
        let why = Why { rule: RuleId::DROP_NAMESPACE, evidence: Evidence::default() };
        self.journal(context, Op::DropNamespace, Some((id, None)), Vec::new(), why)
    }

    /// Puts a tombstone of an export back. Returns false if it exists already.
    pub(crate) fn keep_tombstone(&mut self, context: &Context, tombstone: &Tombstone) -> Result<bool> {
        if self.tx.tombstone(context.ns, tombstone.id)?.is_some() {
            return Ok(false);
        }
        truth(self.tx).put_tombstone(context.ns, tombstone)?;
        self.counters.add(context.ns, PartId(0), Sort::Tombstones, "", 1, 0);
        // A step of a run may tell of the memory, and came before the tombstone.
        self.redact(context.ns, tombstone.id)?;
        Ok(true)
    }

    /// The hash by which a key is found in a tombstone.
    pub(super) fn hash_key(&self, key: &str) -> [u8; 32] {
        match self.tombstone_hash {
            TombstoneHash::Hmac => self.secret.of_key(key),
            TombstoneHash::Sha256 => plain(key),
        }
    }

    /// The hash by which a content is found in a tombstone.
    fn hash_content(&self, text: &str) -> [u8; 32] {
        match self.tombstone_hash {
            TombstoneHash::Hmac => self.secret.of_content(text),
            TombstoneHash::Sha256 => plain(text),
        }
    }
}

/// The tombstone of a memory that maintenance had removed before, when the memory is erased.
pub(super) fn erased_late(stone: Tombstone, reason: TombstoneReason, now: Time) -> Tombstone {
    let is_forgotten = matches!(reason, TombstoneReason::Forget | TombstoneReason::ForgetByTag);
    let forgotten_at = stone.forgotten_at.or(is_forgotten.then_some(now));
    Tombstone { erased_at: Some(now), forgotten_at, ..stone }
}
