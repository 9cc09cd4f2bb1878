//! What an export needs besides memories: who took whose place, what waits beside a row in limbo, runs that can be
//! undone, and the families of messages.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::index::visible_holder_of_key;
use crate::model::{
    AggregateId, EventId, Family, JournalRow, Limbo, MemoryId, Run, RunId, State, Time, Vitals,
};
use crate::recall::{Reader, Source};
use crate::store::control::LimboRow;
use crate::store::{MessageRows, NsId, Read, Rows, Table, Walk, keys};

impl<S: Source> Reader<'_, S> {
    /// The names of the agents whose partitions the namespace has, sorted.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn agents(&self) -> Result<Vec<String>> {
        let Some(ns) = self.ns else { return Ok(Vec::new()) };
        let mut names: Vec<String> = self.rows().partitions(ns)?.into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The memories whose place this memory took, by id.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn replaces(&self, id: MemoryId) -> Result<Vec<MemoryId>> {
        self.ns.map_or(Ok(Vec::new()), |ns| self.rows().superseded_by(ns, id))
    }

    /// The state of an id; none if nothing is known of the id or the row is damaged.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn state(&self, id: MemoryId) -> Result<Option<State>> {
        let Some(ns) = self.ns else { return Ok(None) };
        let Some(vitals) = sound(self.rows().vitals(ns, id))? else { return Ok(None) };
        if let Some(vitals) = vitals {
            return Ok(Some(vitals.times.state(self.now)));
        }
        Ok(sound(self.rows().tombstone(ns, id))?.flatten().map(|_| State::Tombstoned))
    }

    /// The memories behind one by id that a live read sees, or those of all states, at most `most`. They are read from their own
    /// rows, and those of which the rows are damaged are left out.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn ids_after(
        &self,
        after: Option<MemoryId>,
        all_states: bool,
        most: usize,
    ) -> Result<Vec<MemoryId>> {
        let Some(ns) = self.ns else { return Ok(Vec::new()) };
        let mut ids = Vec::new();
        self.rows().vitals_after(ns, after, &mut |id, vitals| {
            if let Some(vitals) = vitals
                && (all_states || self.sees(id, vitals)?)
            {
                ids.push(id);
            }
            Ok(if ids.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(ids)
    }

    /// Whether a live read sees the memory with this id.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn is_visible(&self, id: MemoryId) -> Result<bool> {
        let Some(ns) = self.ns else { return Ok(false) };
        let vitals = sound(self.rows().vitals(ns, id))?.flatten();
        vitals.map_or(Ok(false), |vitals| self.sees(id, &vitals))
    }

    /// Whether a memory waits for a vector.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn waits_for_vector(&self, id: MemoryId) -> Result<bool> {
        let Some(ns) = self.ns else { return Ok(false) };
        Ok(self.rows().vitals(ns, id)?.is_some_and(|row| row.waits_for_vector()))
    }

    /// The memory that answers to a key, among those that a live read sees; none if the rows that hold the key are
    /// damaged.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn visible_holder(&self, key: &str) -> Result<Option<MemoryId>> {
        let Some(ns) = self.ns else { return Ok(None) };
        let held = sound(visible_holder_of_key(self.rows(), ns, key, self.now))?.flatten();
        Ok(held.map(|held| held.id))
    }

    /// The runs of which something can still be undone, by id. Those behind a page of the file that can't be read are left
    /// out.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn runs_left(&self) -> Result<Vec<Run>> {
        let Some(ns) = self.ns else { return Ok(Vec::new()) };
        let mut ids = BTreeSet::new();
        sound(self.rows().walk(Table::Run, &Walk::prefix(&keys::ns(ns)), &mut |key, _| {
            ids.insert(keys::Run::read(Table::Run, key)?.run);
            Ok(ControlFlow::Continue(()))
        }))?;
        let mut all = Vec::new();
        for id in ids {
            let Some(row) = sound(self.rows().run(ns, id))?.flatten() else { continue };
            let steps = sound(self.rows().journal_of_run(ns, id, usize::MAX))?.map_or(0, |steps| steps.len());
            let started_at = Time::from_millis(row.started_ms);
            let (steps, counts) = (steps as u64, row.counts);
            let run = Run { id, sort: row.sort, started_at, state: row.state, steps, counts };
            // Where it can't be told, something may be left.
            let has_left = sound(self.has_left(ns, id))?.unwrap_or(true);
            all.extend(has_left.then_some(run));
        }
        Ok(all)
    }

    /// The journal rows that `undo` of a run would still look at, in the order in which they were written: at most
    /// `most` rows behind the number `after`. A row that is damaged or lost is none of them, nor is one behind a page of the file that
    /// can't be read.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn steps_left(&self, run: RunId, after: Option<u64>, most: usize) -> Result<Vec<JournalRow>> {
        let Some(ns) = self.ns else { return Ok(Vec::new()) };
        let mut walk = Walk::prefix(&keys::run(ns, run));
        if let Some(after) = after {
            walk = walk.after(&keys::journal_run(ns, run, after));
        }
        let mut all = Vec::new();
        sound(self.rows().walk(Table::JournalRun, &walk, &mut |key, _| {
            if all.len() == most {
                return Ok(ControlFlow::Break(()));
            }
            let keys::JournalRun { seq, .. } = keys::JournalRun::read(Table::JournalRun, key)?;
            all.extend(sound(self.rows().journal_row(ns, seq))?.flatten());
            Ok(ControlFlow::Continue(()))
        }))?;
        Ok(all)
    }

    /// The slice of a family that a message began; none if the message began no slice.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn family(&self, event: EventId) -> Result<Option<Family>> {
        let Some(ns) = self.ns else { return Ok(None) };
        Ok(sound(self.rows().family(ns, event.as_bytes()))?.flatten().map(|row| Family {
            id: MemoryId::from_bytes(row.family),
            first_memory: MemoryId::from_bytes(row.first_memory),
            ts_first: Time::from_millis(row.first_ts),
            ts_last: Time::from_millis(row.latest_ts),
            count: row.count,
            tokens: row.tokens,
            sim_normalizer: row.sim_normalizer,
            aggregate_id: row.aggregate.map(AggregateId::from_bytes),
        }))
    }

    /// What is known of the removal of a row; none for a row that is not in limbo.
    pub(super) fn limbo_of(&self, ns: NsId, id: MemoryId, vitals: &Vitals) -> Result<Option<Box<Limbo>>> {
        if vitals.times.removed_at.is_none() {
            return Ok(None);
        }
        let row = self.rows().limbo(ns, id)?.unwrap_or_default();
        let LimboRow { reason, run, replaced_by, replaced, transferred, links, .. } = row;
        Ok(Some(Box::new(Limbo {
            reason,
            run,
            replaced_by,
            replaced,
            transferred,
            links,
            tombstone: self.rows().tombstone(ns, id)?,
        })))
    }
}
