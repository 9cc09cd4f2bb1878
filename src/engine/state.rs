//! The state that reads and writes begin with: published by whoever commits, or looked up in the file before each call.

use std::sync::Arc;

use crate::engine::in_force::in_force;
use crate::engine::inner::{Inner, Watched};
use crate::engine::session::CommitEffects;
use crate::error::Result;
use crate::index::{Changes, Current, Published};
use crate::model::Time;
use crate::store::control::Clock as ClockRow;
use crate::store::{Rows, StagedBlocks, Written};

impl Inner {
    /// The state that reads and units begin with: what was published last or, where the file was opened again or replaced
    /// since, what it holds now. Images of before are never joined with rows of after.
    ///
    /// # Errors
    /// `Locked` and `Unavailable` while the file can't be opened again, `Corrupted`, `Closed`.
    pub(super) fn state(&self) -> Result<Arc<Published>> {
        let Some(current) = &self.current else { return self.look() };
        if let Some(published) = self.valid_state(current) {
            return Ok(published);
        }
        self.store.recover()?;
        let _one = self.publishing.lock();
        if let Some(published) = self.valid_state(current) {
            return Ok(published);
        }
        let snapshot = self.store.snapshot()?;
        let row = snapshot.clock()?;
        if self.own_policy.is_none() {
            *self.in_force.write() = Arc::new(in_force(&snapshot, &row, None)?);
        }
        current.publish(current.read().afresh(Arc::new(snapshot), &row));
        Ok(current.read())
    }

    /// The state of a handle that only reads: of the last commit of whatever process, in the file that has the name now. It
    /// lasts as long as the call.
    fn look(&self) -> Result<Arc<Published>> {
        self.end_leases();
        self.store.follow()?;
        let snapshot = self.store.snapshot()?;
        let row = snapshot.clock()?;
        let mut watched = self.watched.lock();
        if (watched.epoch, watched.row) != (snapshot.epoch(), row) {
            let is_replaced = watched.epoch != snapshot.epoch();
            if self.own_policy.is_none() && (is_replaced || row.policy != self.in_force().number) {
                *self.in_force.write() = Arc::new(in_force(&snapshot, &row, None)?);
            }
            let images = Arc::new(watched.images.void());
            *watched = Watched { epoch: snapshot.epoch(), row, images };
        }
        Ok(Arc::new(Published::with(Arc::new(snapshot), &row, Arc::clone(&watched.images))))
    }

    /// The instant of a read or a write that begins with `published`: transaction time, which never runs backwards, whatever
    /// the clock does.
    pub(super) fn instant(&self, published: &Published) -> Time {
        self.clock.now().max(published.committed_at())
    }

    fn valid_state(&self, current: &Current) -> Option<Arc<Published>> {
        let published = current.read();
        (published.snapshot().epoch() == self.store.epoch()).then_some(published)
    }

    /// Publishes what the file holds, where that was opened again or replaced: what it was before takes room until then.
    pub(super) fn catch_up(&self) {
        if let Err(why) = self.state() {
            tracing::warn!(%why, "the file can't be read; whoever comes next tries again");
        }
    }

    /// Makes a commit visible. Its caller leads the queue, so commits are published in their order. The commit stands
    /// already: what goes wrong here is no error of it, and whoever reads next begins afresh.
    pub(super) fn publish(&self, written: &Written<ClockRow>, effects: &CommitEffects) {
        if let Err(why) = self.publish_next(written, effects) {
            tracing::warn!(%why, "a commit could not be published");
            self.store.outdate();
        }
        self.catch_up();
        let StagedBlocks { spilled, slots, docs, bits: _ } = &written.staged;
        let mut indexes = spilled.clone();
        indexes.extend(slots.keys().map(|(index, _)| *index));
        indexes.extend(docs.keys().map(|(text, _)| text.index()));
        self.note_pressed(indexes);
        self.end_leases();
    }

    fn publish_next(&self, written: &Written<ClockRow>, effects: &CommitEffects) -> Result<()> {
        let _one = self.publishing.lock();
        let row = &written.value;
        // Whoever published afresh since has this commit already.
        let Some(current) = &self.current else { return Ok(()) };
        let before = self.valid_state(current).filter(|before| before.commit() < row.commit);
        let Some(before) = before else { return Ok(()) };
        let snapshot = self.store.snapshot()?;
        if row.policy != self.in_force().number && self.own_policy.is_none() {
            *self.in_force.write() = Arc::new(in_force(&snapshot, row, None)?);
        }
        let changes = Changes {
            blocks: &written.staged,
            dropped: &effects.dropped,
            linked: &effects.linked,
            reset: &effects.reset,
        };
        current.publish(before.next(Arc::new(snapshot), row, &changes));
        Ok(())
    }

    /// Lets go of snapshots whose lease is over.
    fn end_leases(&self) {
        let now = self.clock.now();
        self.leases.lock().retain(|lease| lease.holds(now));
    }
}
