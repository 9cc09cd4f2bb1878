//! A memory that another one replaces at an instant ahead. Until then its key means the old text: a write through the key
//! changes that text, and what it leaves is replaced at the same instant.

use crate::error::{Result, sound};
use crate::index::{Answering, holder_among, holder_of_key};
use crate::ingest::NamespaceWriter;
use crate::ledger::{Change, Moves};
use crate::model::{MemoryId, RuleId, SupersedeMode, Time, Vitals};
use crate::store::Rows;

/// What takes the place of a memory at an instant ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// The memory that is true until then.
    old: MemoryId,
    /// The memory that is true from then on.
    pub(super) new: MemoryId,
    /// The instant.
    pub(super) at: Time,
}

impl NamespaceWriter<'_, '_, '_> {
    /// The row that a key means to a writer: what is true now under the key, or else the current row, or the row that
    /// held the key last.
    pub(super) fn meant_by_key(&self, key: &str) -> Result<Option<Answering>> {
        let (ns, tx, now) = (self.ns(), &*self.ledger.tx, self.now());
        let is_true_now = |vitals: &Vitals| {
            let times = &vitals.times;
            Ok(times.visible_live(now) && (times.is_current(now) || self.replacement(vitals)?.is_some()))
        };
        match holder_among(tx, ns, key, now, is_true_now)? {
            Some(found) => Ok(Some(found)),
            None => holder_of_key(tx, ns, key, now),
        }
    }

    /// The row that a write under a key changes, and the number of the holder.
    pub(super) fn holder_to_change(&self, key: &str) -> Result<Option<(MemoryId, u32)>> {
        let Some(found) = self.meant_by_key(key)? else { return Ok(None) };
        let is_true = found.vitals.times.is_current(self.now()) || self.replacement(&found.vitals)?.is_some();
        Ok(is_true.then_some((found.id, found.number)))
    }

    /// What takes the place of a memory that is true now, if a caller said so and nothing has changed it since.
    pub(super) fn ahead_of(&self, old: MemoryId) -> Result<Option<Ahead>> {
        let vitals = sound(self.ledger.tx.vitals(self.ns(), old))?.flatten();
        let replaced = vitals.map(|vitals| self.replacement(&vitals)).transpose()?.flatten();
        Ok(replaced.map(|(new, at)| Ahead { old, new, at }))
    }

    /// Whether another memory takes the place of this one at an instant ahead.
    pub(crate) fn is_replaced_ahead(&self, id: MemoryId) -> Result<bool> {
        Ok(self.ahead_of(id)?.is_some())
    }

    /// The memory that replaces a row, and when, as long as the row is seen and that memory is current. A damaged row
    /// takes nobody's place.
    fn replacement(&self, vitals: &Vitals) -> Result<Option<(MemoryId, Time)>> {
        let (times, now) = (&vitals.times, self.now());
        let superseded = times.superseded.filter(|by| by.mode == SupersedeMode::Replaced);
        let end = times.valid_to.filter(|_| times.visible_live(now));
        let Some((superseded, end)) = superseded.zip(end) else { return Ok(None) };
        let new = sound(self.ledger.whole_vitals(self.ns(), superseded.by))?.flatten();
        let Some(new) = new.filter(|new| new.times.is_current(now)) else { return Ok(None) };
        // An end of the row's own may come first. Then the other memory says when it begins.
        let ends_itself = times.valid_to_before.is_some_and(|own| own <= end);
        let begins = new.times.valid_from.filter(|_| ends_itself);
        Ok(Some((superseded.by, begins.map_or(end, |from| from.max(end)))))
    }

    /// Makes the memory that is true now one that can be changed: its keys come back to it.
    pub(super) fn bring_back(&mut self, ahead: Ahead) -> Result<()> {
        self.apply(RuleId::RESTORE, Change::Restore { id: ahead.old, asked: true }).map(|_| ())
    }

    /// Lets what a change has left of the memory, and the row that the change made, be replaced at the instant ahead.
    pub(super) fn replace_ahead(&mut self, ahead: Ahead, made: MemoryId) -> Result<()> {
        let Ahead { old, new, at } = ahead;
        for id in [Some(old), Some(made).filter(|made| *made != old)].into_iter().flatten() {
            let (vitals, _) = self.ledger.load(self.ns(), id)?;
            let times = &vitals.times;
            let is_over = times.superseded.is_some() || times.is_expired(self.now());
            if id != new && !is_over {
                let (mode, moves) = (SupersedeMode::Replaced, Moves::All);
                self.apply(RuleId::SUPERSEDE, Change::Supersede { old: id, new, mode, at, moves })?;
            }
        }
        Ok(())
    }
}
