//! What an undo leaves of supersessions at instants ahead: each text that was announced takes the place again of what its own key
//! says, and of nothing else.

use std::collections::BTreeSet;

use crate::error::{Result, sound};
use crate::ingest::NamespaceWriter;
use crate::ledger::{Change, Onward, RestoreTo, inverse};
use crate::model::{Holder, JournalRow, MemoryId, Op, RuleId, SupersedeMode, Time, Times};
use crate::store::{Rows, Traces};

/// Texts that are to come one after the other, each with its instant.
pub(super) type Plan = [(MemoryId, Time)];

impl NamespaceWriter<'_, '_, '_> {
    /// What was to follow an erased row at instants ahead.
    pub(super) fn plan_after(&mut self, onward: Option<&Onward>) -> Result<Vec<(MemoryId, Time)>> {
        let now = self.now();
        let Some(first) = onward.and_then(|onward| onward.replaced_ahead(now)) else { return Ok(Vec::new()) };
        let mut plan = vec![first];
        plan.extend(self.ahead_of(first.0)?.map(|ahead| ahead.to_come()).unwrap_or_default());
        Ok(plan)
    }

    /// How a row that an erased one had superseded comes back where texts were to follow that: it ends for the first of them that its
    /// own key has announced, or which it was to go to before. A caller who let the erased row take its place meant what follows, too.
    pub(super) fn back_to_plan(
        &self,
        id: MemoryId,
        (onward, plan): (&Onward, &Plan),
    ) -> Result<Option<Change>> {
        let last = self.last_step(id)?;
        let is_said = last.is_some_and(|step| step.rule == RuleId::SUPERSEDE && step.run.is_none());
        for (next, at) in plan {
            if is_said || self.was_to_go(id, *next)? {
                let onward = Box::new(onward.replaced_later(*next, *at));
                return Ok(Some(Change::LeadOn { id, onward }));
            }
        }
        Ok(inverse(Op::Supersede, id))
    }

    /// Lets go of steps of a plan that only an erased row had joined: the key that has announced the later text leads to the earlier
    /// one no more.
    pub(super) fn part_plan(&mut self, plan: &Plan) -> Result<()> {
        for pair in plan.windows(2).rev() {
            let [(old, _), (new, _)] = pair else { continue };
            let superseded = sound(self.ledger.tx.vitals(self.ns(), *old))?.flatten();
            let superseded = superseded.and_then(|row| row.times.superseded);
            let is_step = superseded.is_some_and(|by| by.by == *new && by.mode == SupersedeMode::Replaced);
            if is_step && !self.was_to_go(*old, *new)? {
                self.apply(RuleId::RESTORE, Change::Restore { id: *old, to: RestoreTo::Write })?;
            }
        }
        Ok(())
    }

    /// Whether a row was to be superseded by another one, before or after others: a key of the row has announced that, or a caller
    /// has named it. A copy knows no step, and an announced row has the key of what it was to replace.
    pub(super) fn was_to_go(&self, id: MemoryId, by: MemoryId) -> Result<bool> {
        if self.is_announced_for(by, &self.ledger.readable_holders(self.ns(), id)?)? {
            return Ok(true);
        }
        let is_by = |step: &JournalRow| {
            let is_said = step.op == Op::Supersede && step.rule != RuleId::ANNOUNCED;
            is_said && step.evidence.members.first() == Some(&by)
        };
        // What has corrected a row goes where the row was to go.
        let (mut versions, mut seen) = (vec![id], BTreeSet::new());
        while let Some(at) = versions.pop() {
            if !seen.insert(at) {
                continue;
            }
            if self.ledger.tx.journal_of(self.ns(), at)?.iter().any(is_by) {
                return Ok(true);
            }
            for before in self.ledger.tx.superseded_by(self.ns(), at)? {
                let vitals = sound(self.ledger.tx.vitals(self.ns(), before))?.flatten();
                let by = vitals.and_then(|row| row.times.superseded);
                versions.extend(by.filter(|by| by.mode == SupersedeMode::Correction).map(|_| before));
            }
        }
        Ok(false)
    }

    /// Whether a row was written to take the place of what one of these keys says, at an instant that lay ahead.
    pub(super) fn is_announced_for(&self, id: MemoryId, holders: &[Holder]) -> Result<bool> {
        for holder in holders.iter().filter(|holder| holder.key.is_some()) {
            // What can't be read announces nothing.
            if sound(self.own_ahead(id, holder))?.flatten().is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a caller has called a text off, which was to come, by a restoration of what the key had said before.
    pub(super) fn is_called_off(&self, id: MemoryId, times: &Times) -> Result<bool> {
        if times.from() <= self.now() {
            return Ok(false);
        }
        let last = self.last_step(id)?;
        Ok(last.is_some_and(|step| step.rule == RuleId::RESTORE && step.run.is_none()))
    }

    /// The last step of the journal by which another row took the place of this one.
    fn last_step(&self, id: MemoryId) -> Result<Option<JournalRow>> {
        let told = self.ledger.tx.journal_of(self.ns(), id)?;
        Ok(told.into_iter().rfind(|step| step.op == Op::Supersede))
    }

    /// What a caller's restoration had called off for erased rows is replaced by the rows with the same key that are back in
    /// their place.
    pub(super) fn keep_called_off(
        &mut self,
        gone: MemoryId,
        called_off: &[MemoryId],
        back: &BTreeSet<MemoryId>,
    ) -> Result<()> {
        for id in called_off {
            let holders = self.ledger.readable_holders(self.ns(), *id)?.into_iter();
            let keys: Vec<_> = holders.filter_map(|holder| holder.key).collect();
            let mut new = None;
            for row in back {
                for key in &keys {
                    new = new.or(self.ledger.tx.holds_key(self.ns(), key, *row)?.then_some(*row));
                }
            }
            match new {
                Some(new) => {
                    let onward = Box::new(Onward::apart(gone, new, self.now()));
                    self.apply(RuleId::RESTORE, Change::LeadOn { id: *id, onward })?;
                }
                None => drop(self.is_back(Change::Restore { id: *id, to: RestoreTo::Undo })?),
            }
        }
        Ok(())
    }
}
