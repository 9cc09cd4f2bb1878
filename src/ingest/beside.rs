//! The other writers of a row: whether they say what one of them says, and go on to say it when that one has left, as the outcome of
//! the write tells.

use std::collections::BTreeSet;

use crate::error::{Result, sound};
use crate::ingest::NamespaceWriter;
use crate::model::{Decision, Holder, KeptForOthers, MemoryId, Outcome};
use crate::store::Rows;

/// The number of writers of a row of which an answer names the keys.
const NAMED_MAX: usize = 8;

/// The number of holders of a row that are asked whether they are writers. Any number of keys can lead to a row.
const READ_MAX: u64 = 32;

impl NamespaceWriter<'_, '_, '_> {
    /// Whether a row has a text from holders other than this one. Holders that only follow go with the text.
    pub(super) fn has_others(&self, id: MemoryId, number: u32) -> Result<bool> {
        let has_text = &mut |holder: &Holder| holder.number != number && !holder.follows;
        self.ledger.any_holder(self.ns(), id, has_text)
    }

    /// Whether neither another writer of a row nor an earlier row says what this holder says.
    pub(super) fn says_alone(&self, id: MemoryId, holder: &Holder) -> Result<bool> {
        let (_, content) = self.ledger.load(self.ns(), id)?;
        let own = holder.text.as_ref().unwrap_or(&content.text);
        Ok(!holder.follows
            && !self.is_said_beside((id, &content.text), holder)?
            && sound(self.ledger.origin(self.ns(), holder, own))?.flatten().is_none())
    }

    /// Whether another writer of a row, which has this text, says what this holder says.
    fn is_said_beside(&self, (id, of_row): (MemoryId, &str), holder: &Holder) -> Result<bool> {
        let own = holder.text.as_deref().unwrap_or(of_row);
        self.ledger.any_holder(self.ns(), id, &mut |other| {
            let text = other.text.as_deref().unwrap_or(of_row);
            other.number != holder.number && !other.follows && text == own
        })
    }

    /// Gives one of several writers of a text a row of its own, in whose place another text comes.
    pub(super) fn end_apart(&mut self, id: MemoryId, number: u32) -> Result<MemoryId> {
        let holder = self.holder(id, number)?;
        self.leave_to_others(id, &holder)?;
        self.set_apart(id, number)
    }

    /// Notes for the outcome of the write that a holder leaves a row with its text, or ends what it says before the row ends, where others
    /// go on to say it.
    pub(super) fn leave_to_others(&mut self, id: MemoryId, holder: &Holder) -> Result<()> {
        if holder.follows {
            return Ok(());
        }
        let (_, content) = self.ledger.load(self.ns(), id)?;
        if self.is_said_beside((id, &content.text), holder)? {
            self.ledger.left_to_others.insert(id);
        }
        Ok(())
    }

    /// The outcome of a whole write: it says whether the text waits for a vector, when the memory ends, and what others go on to say.
    pub(crate) fn settled(&mut self, outcome: Outcome) -> Result<Outcome> {
        let decision = outcome.decision.settled();
        let row = match decision {
            Decision::Ignored => None,
            _ => self.ledger.tx.vitals(self.ns(), outcome.id)?,
        };
        // An aggregate has no text of its own.
        let pending = !matches!(decision, Decision::Aggregated { .. })
            && row.as_ref().is_some_and(|row| row.waits_for_vector());
        let times = row.map(|row| row.times);
        let (expires_at, valid_to) = times.map_or((None, None), |times| (times.expires_at, times.valid_to));
        let kept_for_others = self.left_to_others(&outcome.kept_for_others)?;
        Ok(Outcome { pending, expires_at, valid_to, kept_for_others, ..outcome })
    }

    /// What others go on to say of what a call has ended, with what is known of that already.
    pub(super) fn left_to_others(&mut self, known: &[KeptForOthers]) -> Result<Vec<KeptForOthers>> {
        let left = std::mem::take(&mut self.ledger.left_to_others);
        let left: BTreeSet<MemoryId> = known.iter().map(|kept| kept.id).chain(left).collect();
        let kept_for_others = left.into_iter().map(|id| self.kept_for_others(id));
        kept_for_others.filter_map(Result::transpose).collect()
    }

    /// What others go on to say in a row that a holder has left; none where the same write has ended it, or it had ended before.
    fn kept_for_others(&self, id: MemoryId) -> Result<Option<KeptForOthers>> {
        let vitals = self.ledger.tx.vitals(self.ns(), id)?.filter(|row| row.times.is_current(self.now()));
        let Some(vitals) = vitals else { return Ok(None) };
        let (mut keys, mut read, mut writers) = (Vec::new(), 0, 0);
        self.ledger.any_holder(self.ns(), id, &mut |holder| {
            read += 1;
            if holder.has_text() {
                writers += 1;
                keys.extend(holder.key.clone().filter(|_| keys.len() < NAMED_MAX));
            }
            read == READ_MAX
        })?;
        let unread = u64::from(vitals.place.holders).saturating_sub(read);
        Ok(Some(KeptForOthers { id, keys, writers: writers + unread }))
    }
}
