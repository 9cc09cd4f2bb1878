//! Undoes an import: the holders that it brought are removed, and the memories that it superseded are live
//! again.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result, sound};
use crate::ingest::NamespaceWriter;
use crate::ledger::Change;
use crate::model::{Decision, Forgotten, Holder, Kind, MemoryId, RuleId, RunId, TombstoneReason};
use crate::store::control::{RunRow, RunState};
use crate::store::{MessageRows, Rows, Table, keys};

/// The number of messages or holders that one slice removes.
const SLICE: usize = 1_000;

/// The number of supersessions that one slice looks at.
const SLICE_STEPS: usize = 64;

/// What one slice of an undo did.
#[derive(Clone, Debug, Default)]
pub(crate) struct UndoStep {
    /// The rows that went, stayed, or are live again.
    pub(crate) done: Forgotten,
    /// Rows of the import whose keys are out of order, or lead to no write of it.
    pub(crate) astray: u64,
    /// Changes of fields that the import made. No version has the values of before.
    pub(crate) updated: u64,
    /// Messages of others that repeated one of the run, and were told by its memory alone.
    pub(crate) repeats: u64,
    /// Memories that stand for messages of the run which have ended, and for messages that nobody knows any more.
    pub(crate) told_on: Vec<MemoryId>,
    /// What stays superseded although a line of the run had named it, with the reason.
    pub(crate) superseded: Vec<String>,
    /// Supersessions of which the journal tells no more. One by a memory that stays is not taken back.
    pub(crate) untold: u64,
    /// Whether the whole run is undone.
    pub(crate) finished: bool,
}

/// The holders of a run that are in one row.
struct OfRow {
    id: MemoryId,
    /// The first of them.
    numbers: Vec<u32>,
    /// At how many of these it was looked.
    looked: usize,
    /// Whether these are all, or as many as a slice takes.
    is_all: bool,
}

impl OfRow {
    fn new(id: MemoryId) -> Self {
        OfRow { id, numbers: Vec::new(), looked: 0, is_all: false }
    }
}

impl NamespaceWriter<'_, '_, '_> {
    /// One slice of undoing an import. A run that was undone is left alone, so undoing twice has no effect.
    ///
    /// # Errors
    /// `NotFound` for a run that was never started.
    pub(crate) fn undo_import(&mut self, run: RunId) -> Result<UndoStep> {
        let ns = self.ns();
        let Some(mut row) = self.ledger.tx.run(ns, run)? else {
            return Err(Error::NotFound { what: "run", name: run.to_string() });
        };
        if row.state == RunState::Undone {
            return Ok(UndoStep { finished: true, ..UndoStep::default() });
        }
        let (mut done, mut told_on, mut repeats) = (Forgotten::default(), Vec::new(), 0);
        let events = self.ledger.tx.events_of(ns, run.as_bytes(), SLICE)?;
        let (mut doomed, mut superseded) = (Vec::new(), Vec::new());
        // Asked before the first step is taken back.
        let untold = if row.state == RunState::Undoing { 0 } else { self.untold(run, &row)? };
        if events.is_empty() {
            doomed = self.next_holders(run)?;
            let repeated = self.repeated(&doomed)?;
            let goes = |holder: &Holder| holder.run == Some(run);
            self.ledger.undoing = Some((run, doomed.iter().copied().collect()));
            done = self.take_holders(&doomed, &goes, RuleId::UNDO, TombstoneReason::Undone)?;
            self.ledger.undoing = None;
            let last = doomed.last().map(|(last, _)| keys::holder_run_row(ns, run, *last));
            let rest =
                last.map(|last| self.ledger.tx.id_and_number(Table::HolderRun, &last, 1)).transpose()?;
            if rest.is_some_and(|rest| !rest.is_empty()) {
                // What becomes of a row of so many holders is known with the last of them.
                (done.forgotten, done.detached) = (0, 0);
            }
            for (id, count) in repeated {
                repeats += if self.ledger.tx.has_row(ns, id)? { 0 } else { count };
            }
            for id in &done.derived {
                let vitals = sound(self.ledger.tx.vitals(ns, *id))?.flatten();
                told_on.extend(vitals.filter(|row| row.kind_code == Kind::Aggregate.code()).map(|_| *id));
            }
            if doomed.is_empty() {
                // What rows had superseded that went is back. The rest hangs on rows that stay.
                (done.restored, superseded) = self.restore_named(run, SLICE_STEPS)?;
            }
        } else {
            // Messages come first. A message with a memory leaves its family, and is removed with its holder
            // afterwards.
            let applied = self.apply(RuleId::UNDO, Change::Withdraw { events: events.clone() })?;
            done.forgotten = applied.withdrawn;
            done.note(&applied);
        }
        // What a step has left where it was, the next one would begin with, for ever.
        let astray = self.ledger.strike_of_run(ns, run, &doomed, &events)? as u64;
        // The run says how far it is in the same transaction, so an undo that is cut off goes on with the next slice.
        let tx = &*self.ledger.tx;
        let finished = tx.events_of(ns, run.as_bytes(), 1)?.is_empty()
            && tx.holders_of_run(ns, run, 1)?.is_empty()
            && tx.journal_of_run(ns, run, 1)?.is_empty();
        let changed = [Decision::Updated.as_str(), RunRow::CHANGED_APART];
        // The counts of a run from elsewhere are whatever its line says.
        let updated = changed.iter().filter_map(|name| row.counts.get(*name));
        let updated = updated.fold(0_u64, |all, count| all.saturating_add(*count));
        row.latest_ms = self.context.now.as_millis();
        row.state = if finished { RunState::Undone } else { RunState::Undoing };
        self.ledger.tx.put_run(ns, run, &row)?;
        Ok(UndoStep { done, astray, updated, repeats, told_on, superseded, untold, finished })
    }

    /// The holders of a run that the next slice takes: of whole rows, unless one row alone has too many. A key that was led on from a row
    /// of the run leads on from what comes back in the place of that row, which goes first.
    fn next_holders(&self, run: RunId) -> Result<Vec<(MemoryId, u32)>> {
        let (mut next, mut met) = (Vec::new(), BTreeSet::new());
        for (id, number) in self.ledger.tx.holders_of_run(self.ns(), run, SLICE)? {
            let mut way = Vec::from_iter(met.insert(id).then(|| OfRow::new(id)));
            while let Some(row) = way.last_mut() {
                if let Some(before) = self.waits_for(run, row)? {
                    way.extend(met.insert(before).then(|| OfRow::new(before)));
                    continue;
                }
                if !next.is_empty() && next.len() + row.numbers.len() > SLICE {
                    return Ok(next);
                }
                if row.numbers.is_empty() && row.id == id {
                    // A key that is out of order is met on the way alone.
                    next.push((id, number));
                }
                next.extend(row.numbers.iter().map(|number| (row.id, *number)));
                way.pop();
            }
        }
        Ok(next)
    }

    /// The row from which the next holder of a row was led there, if one of the rest was. Of a row that waits, no more is read than that.
    fn waits_for(&self, run: RunId, row: &mut OfRow) -> Result<Option<MemoryId>> {
        loop {
            while let Some(number) = row.numbers.get(row.looked) {
                row.looked += 1;
                if let Some((before, _)) = self.led_from(run, row.id, *number)? {
                    return Ok(Some(before));
                }
            }
            if row.is_all {
                return Ok(None);
            }
            let most = SLICE.min(2 * row.looked + 4);
            let there = keys::holder_run_row(self.ns(), run, row.id);
            let numbers = self.ledger.tx.id_and_number(Table::HolderRun, &there, most)?;
            row.is_all = numbers.len() < most || most == SLICE;
            row.numbers = numbers.into_iter().map(|(_, number)| number).collect();
        }
    }

    /// The holder of the same run from whose row the key of a holder was led to its row, and only leads there.
    fn led_from(&self, run: RunId, id: MemoryId, number: u32) -> Result<Option<(MemoryId, u32)>> {
        let holder = sound(self.ledger.tx.holder(self.ns(), id, number))?.flatten();
        let led = holder.filter(|holder| holder.follows);
        let Some((from, key)) = led.and_then(|led| Some((led.from?, led.key?))) else { return Ok(None) };
        let there = keys::holder_key_row(self.ns(), &key, from);
        let Some((_, number)) = self.ledger.tx.id_and_number(Table::HolderKey, &there, 1)?.pop() else {
            return Ok(None);
        };
        let before = sound(self.ledger.tx.holder(self.ns(), from, number))?.flatten();
        Ok(before.filter(|before| before.run == Some(run)).map(|_| (from, number)))
    }

    /// How many supersessions of a run are neither in its journal any more nor in another namespace.
    fn untold(&self, run: RunId, row: &RunRow) -> Result<u64> {
        let count = |name: &str| row.counts.get(name).copied().unwrap_or(0);
        let superseded = count(RunRow::SUPERSEDED);
        if superseded == 0 {
            return Ok(0);
        }
        let told = self.ledger.tx.journal_of_run(self.ns(), run, usize::MAX)?.len() as u64;
        Ok(superseded.saturating_sub(told + count(RunRow::MOVED)))
    }

    /// For each memory, how many messages have repeated it. Those of the run itself are gone before its memories go.
    fn repeated(&self, doomed: &[(MemoryId, u32)]) -> Result<BTreeMap<MemoryId, u64>> {
        let mut repeated = BTreeMap::new();
        for (id, _) in doomed {
            if !repeated.contains_key(id) {
                let mut events = 0;
                for event in self.ledger.tx.events_of(self.ns(), id.as_bytes(), usize::MAX)? {
                    let row = sound(self.ledger.tx.event(self.ns(), &event))?.flatten();
                    let goes = |row| self.ledger.is_undone_with(self.ns(), *id, &row);
                    events += u64::from(row.map(goes).transpose()?.unwrap_or(true));
                }
                repeated.insert(*id, events);
            }
        }
        Ok(repeated)
    }
}
