//! What a writer had said before in a row that a pass has united with others, when what it has said since ends for good.
//!
//! An undo would bring such a row back, and nothing would tell any more that its writer has said something else, or has
//! ended its record. So the writer's holders there note it while the row that ends still stands.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::ledger::leave::Departure;
use crate::ledger::writer::{Context, Ledger, Whole, Why, truth};
use crate::model::{Holder, Life, MemoryId, SupersedeMode, Time, Times};
use crate::store::{NsId, Read, Rows, Table, Walk, keys};

/// Earlier versions of a key that are passed over in the look for rows which passes have united. A writer may have joined a row
/// that is older than its own versions. Where a version stands that was written since, it tells by itself what was said.
const VERSIONS_MAX: usize = 32;

/// What has ended for good.
struct Ended<'r> {
    id: MemoryId,
    text: &'r str,
    life: Life,
}

impl Ledger<'_, '_> {
    /// Lets the writers of a row whose promised end has come have ended also where they were before, in rows that passes have united
    /// with others and that an undo may bring back. The text that ends is left to nobody there. A holder that had said another text
    /// notes that its writer has said something since. It looks at the rows of each key that passes have united, and at a bounded
    /// number of others.
    ///
    /// # Errors
    /// `Corrupted`, where more than single rows is damaged.
    pub(super) fn end_writers(
        &mut self,
        context: &Context,
        id: MemoryId,
        whole: &Whole,
        why: &Why,
    ) -> Result<()> {
        for holder in &whole.holders {
            let Some(key) = &holder.key else { continue };
            // What a pass has brought here was said in a row that has an end of its own.
            if let Some(from) = holder.from
                && !self.is_version(context.ns, from)?
            {
                continue;
            }
            let said_at = holder.since.max(whole.vitals.times.recorded_at);
            let text = holder.text.as_ref().unwrap_or(&whole.content.text);
            let ended = Ended { id, text, life: whole.vitals.life() };
            for (at, number) in self.united_before(context.ns, key, (id, said_at))? {
                self.end_writer(context, (at, number), &ended, why)?;
            }
        }
        Ok(())
    }

    /// Whether a row stands that was superseded, and not by a pass that has united it with another.
    fn is_version(&self, ns: NsId, id: MemoryId) -> Result<bool> {
        let row = sound(self.tx.vitals(ns, id))?.flatten();
        let Some(times) = row.map(|row| row.times).filter(|times| times.superseded.is_some()) else {
            return Ok(false);
        };
        Ok(self.united_at(ns, id, &times)?.is_none())
    }

    /// When a pass took a row away, so that its undo may bring the row back; none for a row that stands, or that was superseded before.
    fn united_at(&self, ns: NsId, id: MemoryId, times: &Times) -> Result<Option<Time>> {
        let Some(removed_at) = times.removed_at else {
            let merged = times.superseded.filter(|by| by.mode == SupersedeMode::Duplicate);
            return Ok(merged.map(|by| by.at));
        };
        let replaced = sound(self.tx.limbo(ns, id))?.flatten().is_some_and(|limbo| limbo.replaced);
        Ok((replaced || times.superseded.is_none()).then_some(removed_at))
    }

    /// The holders of a key in rows that passes had taken away when the row `id` was written, or when its writer joined it. What was made
    /// later had not gone then; of one instant, the ids tell what came first.
    fn united_before(
        &self,
        ns: NsId,
        key: &str,
        (id, said_at): (MemoryId, Time),
    ) -> Result<BTreeSet<(MemoryId, u32)>> {
        let (mut all, mut ways, mut versions) = (BTreeSet::new(), BTreeSet::new(), 0);
        let times_of = |other: MemoryId| -> Result<Option<Times>> {
            Ok(sound(self.tx.vitals(ns, other))?.flatten().map(|row| row.times))
        };
        let went = |other: MemoryId, times: &Times| -> Result<bool> {
            Ok(self.united_at(ns, other, times)?.is_some_and(|at| at <= said_at))
        };
        let end = if said_at > id.made_at() { MemoryId::first_after(said_at) } else { id };
        let walk =
            Walk::prefix(&keys::holder_key_prefix(ns, key)).before(&keys::holder_key_row(ns, key, end));
        self.tx.walk(Table::HolderKey, &walk.reversed(), &mut |row, _| {
            let keys::HolderKey { id: other, number, .. } = keys::HolderKey::read(Table::HolderKey, row)?;
            let Some(times) = times_of(other)?.filter(|_| other != id) else {
                return Ok(ControlFlow::Continue(()));
            };
            if went(other, &times)? {
                all.insert((other, number));
                ways.extend(times.merged_into());
            } else {
                versions += 1;
            }
            Ok(if versions < VERSIONS_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        // The rows into which one went after the other have its copies, and may be older than all that was looked at.
        for first in ways {
            for next in self.merged_on(ns, first)? {
                let Some(times) = times_of(next)? else { continue };
                if went(next, &times)? {
                    all.extend(self.tx.id_and_number(
                        Table::HolderKey,
                        &keys::holder_key_row(ns, key, next),
                        1,
                    )?);
                }
            }
        }
        Ok(all)
    }

    /// Lets a writer have ended that had written in a row before. A damaged row, or a holder that can't be read, stays as it is.
    fn end_writer(
        &mut self,
        context: &Context,
        (at, number): (MemoryId, u32),
        ended: &Ended<'_>,
        why: &Why,
    ) -> Result<()> {
        let ns = context.ns;
        let Some((before, content)) = sound(self.load_there(ns, at))?.flatten() else { return Ok(()) };
        let held = sound(self.tx.holder(ns, at, number))?.flatten().filter(Holder::has_text);
        let Some(mut held) = held else { return Ok(()) };
        if held.text.as_ref().unwrap_or(&content.text) == ended.text {
            let is_of_others = &mut |other: &Holder| other.has_text() && other.number != number;
            if sound(self.any_holder(ns, at, is_of_others))? != Some(false) {
                let mut why = why.clone();
                why.evidence.members.push(ended.id);
                return self.detach(context, at, &[number], Departure::Apart, why).map(drop);
            }
            // The row goes at once, as a row of which its own writer has set the end.
            if !before.life().is_promised_end() {
                let mut vitals = before.clone();
                vitals.set_life(ended.life);
                vitals.version += 1;
                self.place_row(context, at, &before, &content, vitals, &content)?;
            }
        }
        if held.note_ended() { truth(self.tx).put_holder(ns, at, &held) } else { Ok(()) }
    }
}
