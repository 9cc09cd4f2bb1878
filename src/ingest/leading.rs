//! Where keys lead once a row to which they led, or the writer that they followed, is gone.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::ingest::NamespaceWriter;
use crate::ledger::{Change, Onward};
use crate::model::{Holder, MemoryId, RuleId, RunId, Times, TombstoneReason};
use crate::store::Rows;

impl NamespaceWriter<'_, '_, '_> {
    /// Lets a row be superseded by another one that says for it what a row that is gone has said. Its keys lead there, but for those
    /// that say something else by now.
    pub(super) fn lead_apart(&mut self, id: MemoryId, gone: MemoryId, by: MemoryId) -> Result<()> {
        let (ns, now) = (self.ns(), self.now());
        let onward = Box::new(Onward::apart(gone, by, now));
        self.apply(RuleId::RESTORE, Change::LeadOn { id, onward })?;
        self.ledger.begin_for(&self.context, by, id, RuleId::RESTORE)?;
        for writer in self.ledger.readable_holders(ns, id)? {
            let Some(key) = &writer.key else { continue };
            if self.says_nothing(key)? {
                self.apply(RuleId::RESTORE, Change::LeadAgain { id, number: writer.number })?;
            }
        }
        Ok(())
    }

    /// Whether a key says nothing by now, but for what it is about to leave. What the key is to say at an instant ahead leaves it until
    /// then. A key that can't be read may say something.
    pub(super) fn says_nothing(&self, key: &str) -> Result<bool> {
        let now = self.now();
        let found = sound(self.ledger.staying_holder_of_key(self.ns(), key, now))?;
        let says = |times: &Times| times.is_or_will_be_true(now) && times.from() <= now;
        Ok(found.is_some_and(|found| !found.is_some_and(|row| says(&row.vitals.times))))
    }

    /// Lets the keys of a superseded row lead on to what has taken its place, or is to take it, where they do not.
    pub(super) fn lead_on_again(&mut self, id: MemoryId) -> Result<()> {
        let writers = self.ledger.readable_holders(self.ns(), id)?;
        for writer in writers.iter().filter(|writer| writer.key.is_some()) {
            self.apply(RuleId::RESTORE, Change::LeadAgain { id, number: writer.number })?;
        }
        Ok(())
    }

    /// The keys of a row that is gone do not go on to lead to the row that had taken its place, nor on from there.
    pub(super) fn take_keys_of_gone(&mut self, id: MemoryId, by: MemoryId) -> Result<()> {
        let keys = self.take_led(id, by)?;
        self.lead_back_to(by, &keys)
    }

    /// The keys of a row lead no more to the row that has taken its place, nor on from there. Returns these keys.
    pub(super) fn take_led(&mut self, id: MemoryId, by: MemoryId) -> Result<Vec<String>> {
        let led = self.led_along(id, by)?;
        let numbers = Vec::from_iter(led.iter().map(|(at, holder)| (*at, holder.number)));
        self.take_holders(&numbers, &|_| true, RuleId::UNDO, TombstoneReason::Undone)?;
        Ok(led.into_iter().filter(|(at, _)| *at == by).filter_map(|(_, holder)| holder.key).collect())
    }

    /// The holders by which the keys of a row lead to the row that has taken its place, and on from there.
    pub(super) fn led_along(&mut self, id: MemoryId, by: MemoryId) -> Result<Vec<(MemoryId, Holder)>> {
        let (mut came, mut writers, mut led) = (id, None::<Vec<Holder>>, Vec::new());
        let (mut next, mut seen) = (Some(by), BTreeSet::new());
        // Damaged rows could lead in a circle, so no row is visited twice.
        while let Some(at) = next.filter(|at| seen.insert(*at)) {
            let mut copies = match &writers {
                Some(writers) => self.ledger.copies_of(self.ns(), at, came, writers)?,
                None => self.ledger.copies_from(self.ns(), at, came)?,
            };
            copies.retain(|copy| {
                let is_its = |writers: &Vec<Holder>| writers.iter().any(|one| copy.is_copy_of(one));
                copy.follows && writers.as_ref().is_none_or(is_its)
            });
            if copies.is_empty() {
                break;
            }
            led.extend(copies.iter().map(|copy| (at, copy.clone())));
            (came, writers) = (at, Some(copies));
            let row = sound(self.ledger.tx.vitals(self.ns(), at))?.flatten();
            next = row.and_then(|row| row.times.superseded_by());
        }
        Ok(led)
    }

    /// A row that came back before leads its keys to what takes its place, from which they had come by way of a row that is gone.
    fn lead_back_to(&mut self, next: MemoryId, keys: &[String]) -> Result<()> {
        let ns = self.ns();
        for key in keys {
            let mut from = None;
            self.ledger.tx.latest_holders_of_key(ns, key, &mut |id, number| {
                let Some(row) = sound(self.ledger.tx.vitals(ns, id))?.flatten() else {
                    return Ok(ControlFlow::Continue(()));
                };
                from = row.times.told().filter(|told| told.by == next).map(|_| (id, number));
                // What took its place is gone as well, so the key is to come back there.
                let waits = match row.times.superseded_by() {
                    Some(by) => !self.ledger.tx.has_row(ns, by)?,
                    None => false,
                };
                Ok(if from.is_some() || waits { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
            if let Some((id, number)) = from {
                self.apply(RuleId::RESTORE, Change::LeadAgain { id, number })?;
            }
        }
        Ok(())
    }

    /// The row by which another one was superseded before a writer left it, in one of these imports, for the row that is gone.
    pub(super) fn led_before(
        &self,
        id: MemoryId,
        gone: MemoryId,
        runs: &BTreeSet<RunId>,
    ) -> Result<Option<MemoryId>> {
        let last = self.last_supersession(id)?.filter(|step| step.rule == RuleId::DETACH);
        let last = last.filter(|step| step.run.is_some_and(|run| runs.contains(&run)));
        let left = last.and_then(|step| step.led_on()).filter(|(by, _)| *by == gone).map(|(_, left)| left);
        Ok(match left {
            Some(left) if self.ledger.tx.has_row(self.ns(), left)? => Some(left),
            _ => None,
        })
    }

    /// Lets what a writer had replaced through its key follow the writer, which has left a row for a row of its own with the same
    /// text.
    pub(super) fn lead_versions(&mut self, from: MemoryId, leaver: &Holder, to: MemoryId) -> Result<()> {
        for (id, _) in self.replaced_by_leavers(from, std::slice::from_ref(leaver))? {
            let onward = Box::new(Onward::apart(from, to, self.now()));
            self.apply(RuleId::DETACH, Change::LeadOn { id, onward })?;
        }
        Ok(())
    }
}
