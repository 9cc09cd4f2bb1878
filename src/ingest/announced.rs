//! What an undo leaves of supersessions at instants ahead: each text that was announced takes the place again of what its own key
//! says, and of nothing else.

use std::collections::BTreeSet;

use crate::error::{Error, Result, sound};
use crate::ingest::NamespaceWriter;
use crate::ingest::ahead::Step;
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
        plan.extend(self.ahead_on(first.0, None)?.map(|ahead| ahead.to_come()).unwrap_or_default());
        Ok(plan)
    }

    /// How a row that an erased one had superseded comes back where texts were to follow that: it ends for the first of them that its
    /// own key has announced, or which it was to go to before. A caller who let the erased row take its place meant what follows, too.
    pub(super) fn back_to_plan(
        &mut self,
        id: MemoryId,
        (onward, plan): (&Onward, &Plan),
    ) -> Result<Option<Change>> {
        let last = self.last_supersession(id)?;
        let is_said = last.is_some_and(|step| step.rule == RuleId::SUPERSEDE && step.run.is_none());
        for (next, at) in plan {
            if self.ledger.leads_to(self.ns(), *next, id)? {
                continue;
            }
            if is_said || self.was_to_go(id, *next)? {
                let onward = Box::new(onward.replaced_later(*next, *at));
                return Ok(Some(Change::LeadOn { id, onward }));
            }
        }
        Ok(inverse(Op::Supersede, id))
    }

    /// What was announced to take the place of a row, which an erased row has overtaken.
    pub(super) fn overtaken_by(&self, gone: MemoryId, id: MemoryId, times: &Times) -> Result<Option<Step>> {
        let Some(announced) = times.announced.filter(|announced| announced.end > self.now()) else {
            return Ok(None);
        };
        for step in self.ledger.tx.journal_of(self.ns(), id)?.into_iter().rev() {
            let is_said = step.op == Op::Supersede && step.subject == Some(id) && step.led_on().is_none();
            let to = step.evidence.members.first().filter(|to| is_said && **to != gone);
            let there = to.map(|to| sound(self.ledger.tx.vitals(self.ns(), *to))).transpose()?;
            if let Some((to, row)) = to.zip(there.flatten().flatten()) {
                if self.is_called_off(*to, &row.times)? {
                    return Ok(None);
                }
                let since = Some(announced.at);
                return Ok(Some(Step { since, ..Step::new(id, *to, announced.end) }));
            }
        }
        Ok(None)
    }

    /// Lets what was overtaken take the place again of a row that is back, unless that has ended by then or is to come before it.
    pub(super) fn announce_again(&mut self, step: Step) -> Result<()> {
        let row = sound(self.ledger.tx.vitals(self.ns(), step.old))?.flatten().map(|row| row.times);
        if row.is_none_or(|times| !times.is_or_will_be_true(self.now()) || times.superseded.is_some()) {
            return Ok(());
        }
        // Every change takes a number of the journal. What is refused half-way is taken back with all else.
        let untouched = self.ledger.clock.next_seq;
        match self.replace_at(step) {
            Err(Error::Conflict { .. }) if self.ledger.clock.next_seq == untouched => Ok(()),
            done => done,
        }
    }

    /// Parts what only an erased row had joined in a plan: each text goes on to the first later one to which it was to go without
    /// that, if there is one.
    pub(super) fn part_plan(&mut self, plan: &Plan) -> Result<()> {
        for (place, (old, _)) in plan.iter().enumerate().rev() {
            let Some(((next, _), later)) = plan.get(place + 1..).and_then(<[_]>::split_first) else {
                continue;
            };
            let superseded = sound(self.ledger.tx.vitals(self.ns(), *old))?.flatten();
            let superseded = superseded.and_then(|row| row.times.superseded);
            let is_step = superseded.is_some_and(|by| by.by == *next && by.mode == SupersedeMode::Replaced);
            if !is_step || self.was_to_go(*old, *next)? {
                continue;
            }
            self.apply(RuleId::RESTORE, Change::Restore { id: *old, to: RestoreTo::Write })?;
            for (new, at) in later {
                if self.was_to_go(*old, *new)? {
                    self.announce_again(Step::new(*old, *new, *at))?;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether a row was to be superseded by another one, before or after others: a key of the row has announced that, or a caller
    /// has named it. A copy knows no step, and an announced row has the key of what it was to replace.
    pub(super) fn was_to_go(&mut self, id: MemoryId, by: MemoryId) -> Result<bool> {
        if self.is_announced_for(by, &self.ledger.readable_holders(self.ns(), id)?)? {
            return Ok(true);
        }
        // What its own key said in the place of a row goes where the row was to go, and so does what has corrected it.
        let (mut versions, mut seen) = (vec![id], BTreeSet::new());
        while let Some(at) = versions.pop() {
            if !seen.insert(at) {
                continue;
            }
            for step in self.ledger.tx.journal_of(self.ns(), at)? {
                let is_said = step.op == Op::Supersede && step.rule != RuleId::ANNOUNCED;
                let to = step.evidence.members.first().filter(|_| is_said && step.subject == Some(at));
                if let Some(to) = to
                    && self.has_become(*to, by)?
                {
                    return Ok(true);
                }
            }
            for before in self.ledger.tx.superseded_by(self.ns(), at)? {
                let vitals = sound(self.ledger.tx.vitals(self.ns(), before))?.flatten();
                let Some(times) = vitals.map(|row| row.times) else { continue };
                let is_corrected = times.superseded.is_some_and(|by| by.mode == SupersedeMode::Correction);
                if is_corrected || self.says_on(before, at)? {
                    versions.push(before);
                }
            }
        }
        Ok(false)
    }

    /// Whether a key of the first row has written the second.
    fn says_on(&self, before: MemoryId, at: MemoryId) -> Result<bool> {
        let holders = self.ledger.readable_holders(self.ns(), before)?.into_iter();
        let keys: BTreeSet<String> =
            holders.filter(Holder::has_text).filter_map(|holder| holder.key).collect();
        let says = &mut |holder: &Holder| {
            holder.has_text() && holder.key.as_ref().is_some_and(|key| keys.contains(key))
        };
        Ok(sound(self.ledger.any_holder(self.ns(), at, says))? == Some(true))
    }

    /// Whether two rows are one, or what has corrected them or taken them in is one.
    fn has_become(&mut self, id: MemoryId, by: MemoryId) -> Result<bool> {
        let (ns, now) = (self.ns(), self.now());
        let end = self.ledger.successor(ns, id, now)?.map(|(end, _)| end);
        Ok(by == id || (end.is_some() && end == self.ledger.successor(ns, by, now)?.map(|(end, _)| end)))
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
        let step = self.superseding_step(id)?;
        Ok(step.is_some_and(|step| step.rule == RuleId::RESTORE && step.run.is_none()))
    }

    /// The step of the journal by which a row was superseded, before it was led on from rows that have gone.
    pub(super) fn superseding_step(&self, id: MemoryId) -> Result<Option<JournalRow>> {
        let told = self.ledger.tx.journal_of(self.ns(), id)?.into_iter();
        Ok(told.rev().find(|step| step.op == Op::Supersede && step.led_on().is_none()))
    }

    /// The last step of the journal by which another row took the place of this one.
    pub(super) fn last_supersession(&self, id: MemoryId) -> Result<Option<JournalRow>> {
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
