//! The writers of one row, kept from one that leaves to the next: who says the row's text when others have left?
//!
//! A pass may have made one row of thousands, and then they leave one after the other. So the holders of the row, and the
//! ranks of the rows from which they came, are read once and not for each that leaves.

use crate::error::{Result, sound};
use crate::ledger::ranked::{KeptWriters, Writers};
use crate::ledger::writer::{Ledger, truth};
use crate::model::order::Rank;
use crate::model::{Holder, MemoryId, Time};
use crate::store::{NsId, Rows};

impl Ledger<'_, '_> {
    /// These holders of a row with their ranks.
    pub(super) fn ranked(&self, ns: NsId, id: MemoryId, holders: Vec<Holder>) -> Result<Writers> {
        let mut all = Vec::with_capacity(holders.len());
        for holder in holders {
            let rank = holder.from.map(|from| self.rank_of(ns, from)).transpose()?.flatten();
            all.push((holder, rank));
        }
        Ok(Writers::new(id, all))
    }

    fn rank_of(&self, ns: NsId, from: MemoryId) -> Result<Option<Rank>> {
        Ok(sound(self.tx.vitals(ns, from))?.flatten().map(|vitals| vitals.rank(from)))
    }

    /// The writers of a row, if they were kept and no holder of the row has changed since. Those whose own rows have changed are
    /// ranked anew: each that leaves takes its row along, or brings it back.
    pub(super) fn known_writers(&mut self, ns: NsId, id: MemoryId) -> Result<Option<Writers>> {
        let changes = self.tx.watch.changes(ns, id);
        let known = self.writers.take_if(|kept| kept.are_of(ns, id, changes));
        let Some(KeptWriters { mut writers, .. }) = known else { return Ok(None) };
        for from in self.tx.watch.stale() {
            writers.rank_anew(from, self.rank_of(ns, from)?);
        }
        Ok(Some(writers))
    }

    /// Whether a holder of a row is one of these. It looks at no more than it must.
    pub(crate) fn any_holder(
        &self,
        ns: NsId,
        id: MemoryId,
        is_one: &mut dyn FnMut(&Holder) -> bool,
    ) -> Result<bool> {
        let changes = self.tx.watch.changes(ns, id);
        match self.writers.as_ref().filter(|kept| kept.are_of(ns, id, changes)) {
            Some(kept) => Ok(kept.writers.holders().any(is_one)),
            None => self.tx.any_holder(ns, id, is_one),
        }
    }

    /// Since when the holders that were written into a row say this text, which is not that of the row; none if none of them says it.
    pub(super) fn said_here_since(&self, ns: NsId, id: MemoryId, text: &str) -> Result<Option<Time>> {
        let here = |holder: &&Holder| holder.from.is_none() && holder.text.as_deref() == Some(text);
        let changes = self.tx.watch.changes(ns, id);
        Ok(match self.writers.as_ref().filter(|kept| kept.are_of(ns, id, changes)) {
            Some(kept) => kept.writers.with_text(text).filter(here).map(|holder| holder.since).min(),
            None => self.readable_holders(ns, id)?.iter().filter(here).map(|holder| holder.since).min(),
        })
    }

    /// Reads the writers of a row, and watches what they were read from.
    ///
    /// # Errors
    /// `Corrupted` if one of them is damaged.
    pub(super) fn read_writers(&mut self, ns: NsId, id: MemoryId) -> Result<Writers> {
        let holders = self.tx.holders(ns, id)?;
        let writers = self.ranked(ns, id, holders)?;
        self.tx.watch.begin(ns, id, writers.holders().filter_map(|holder| holder.from));
        Ok(writers)
    }

    /// Keeps writers that are what the row has now.
    pub(super) fn keep_writers(&mut self, ns: NsId, writers: Writers) {
        let changes = self.tx.watch.changes(ns, writers.id);
        self.writers = changes.map(|changes| KeptWriters { ns, changes, writers });
    }

    /// Takes the holders that leave away, from the row and from the writers that are kept of it.
    pub(super) fn take_holders(&mut self, ns: NsId, id: MemoryId, leaving: &[Holder]) -> Result<()> {
        let known = self.known_writers(ns, id)?;
        for holder in leaving {
            self.take_holder(ns, id, holder)?;
        }
        if let Some(mut known) = known {
            leaving.iter().for_each(|holder| known.take(holder.number));
            self.keep_writers(ns, known);
        }
        Ok(())
    }

    /// Changes holders of a row that have this text of their own, or no key and only follow it, where `change` says so. Those that can't
    /// be read stay as they are.
    pub(super) fn change_holders(
        &mut self,
        ns: NsId,
        id: MemoryId,
        text: &str,
        change: impl Fn(&mut Holder) -> bool,
    ) -> Result<()> {
        let Some(mut known) = self.known_writers(ns, id)? else {
            for mut holder in self.readable_holders(ns, id)? {
                if change(&mut holder) {
                    truth(self.tx).put_holder(ns, id, &holder)?;
                }
            }
            return Ok(());
        };
        for holder in known.change(text, change) {
            truth(self.tx).put_holder(ns, id, &holder)?;
        }
        self.keep_writers(ns, known);
        Ok(())
    }
}
