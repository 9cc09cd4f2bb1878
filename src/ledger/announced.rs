//! What was said of the end of a row that another memory is to replace at an instant ahead.

use std::collections::BTreeSet;

use crate::error::{Result, sound};
use crate::ledger::applied::Erased;
use crate::ledger::change::RestoreTo;
use crate::ledger::writer::{Context, Ledger, Why};
use crate::model::{Announced, Holder, MemoryId, SupersedeMode};
use crate::store::Rows;

/// Rows whose replacements at instants ahead are taken back.
#[derive(Default)]
pub(super) struct CalledOff {
    /// The rows, with the ends that they had by that.
    pub(super) ends: Vec<(MemoryId, Announced)>,
    /// What went with that.
    pub(super) erased: Vec<Erased>,
}

impl Ledger<'_, '_> {
    /// A caller brings back an earlier text of keys that have announced a later one since. What the keys have said meanwhile is to
    /// become an earlier text itself, so that nothing takes its place at an instant ahead any more. What others wrote as well stays
    /// as it is.
    pub(super) fn call_off(
        &mut self,
        context: &Context,
        (id, by, to): (MemoryId, MemoryId, RestoreTo),
        superseders: &BTreeSet<MemoryId>,
        why: &Why,
    ) -> Result<CalledOff> {
        let (ns, now, mut called_off) = (context.ns, context.now, CalledOff::default());
        // A pass brings a row back without asking what its keys are to say.
        if to != RestoreTo::Live || context.run.is_some() {
            return Ok(called_off);
        }
        let (mut ahead, mut left, mut at) = (Vec::new(), superseders.clone(), Some(by));
        while let Some(row) = at.filter(|row| left.remove(row)) {
            let Some(vitals) = sound(self.tx.vitals(ns, row))?.flatten() else { break };
            let times = vitals.times;
            let superseded = times.superseded.filter(|by| by.mode == SupersedeMode::Replaced);
            let announced = superseded.zip(times.valid_to).filter(|_| times.is_or_will_be_true(now));
            let announced = announced.map(|(next, end)| (row, next.by, Announced { end, at: next.at }));
            ahead.extend(announced);
            at = times.superseded_by();
        }
        // Mostly nothing is announced, and the writers need no look.
        let writers = if ahead.is_empty() { Vec::new() } else { self.readable_holders(ns, id)? };
        let keys: BTreeSet<String> = writers.into_iter().filter_map(|holder| holder.key).collect();
        let is_of_others = &mut |holder: &Holder| {
            holder.has_text() && holder.key.as_ref().is_none_or(|key| !keys.contains(key))
        };
        // From the last on, so that a key goes back the way that it went.
        for (row, next, announced) in ahead.into_iter().rev() {
            // Who else wrote a row of which a writer is damaged is unknown.
            if sound(self.any_holder(ns, row, is_of_others))? != Some(false) {
                continue;
            }
            let mut back = self.restore(context, row, RestoreTo::Write, why.clone())?;
            self.unbegin_for_gone(context, next, row, why.rule)?;
            called_off.erased.append(&mut back.erased);
            called_off.ends.push((row, announced));
        }
        Ok(called_off)
    }

    /// Keeps of a row that was to end at an instant ahead, and now is superseded in another way, what was known of that end until
    /// then. A damaged row stays as it is.
    pub(crate) fn keep_announced(
        &mut self,
        context: &Context,
        id: MemoryId,
        announced: Announced,
    ) -> Result<()> {
        let Some((before, content)) = sound(self.load_there(context.ns, id))?.flatten() else {
            return Ok(());
        };
        // Where a write has only interrupted the supersession, it is known since the same instant.
        let is_other = before.times.superseded.is_some_and(|by| announced.at < by.at);
        if !is_other || before.times.own_end() == Some(announced.end) {
            return Ok(());
        }
        let mut vitals = before.clone();
        vitals.times.announced = Some(announced);
        self.place_row(context, id, &before, &content, vitals, &content)?;
        Ok(())
    }
}
