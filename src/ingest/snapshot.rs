//! Series of snapshots: at most one live snapshot in each period.

use serde_json::Value;

use crate::error::{Result, sound};
use crate::ingest::{NamespaceWriter, Prepared};
use crate::ledger::{Change, Why};
use crate::model::{
    Content, Decision, Draft, Evidence, MemoryId, Outcome, Parts, RuleId, Span, Time, TombstoneReason,
    Vitals, series_place, snapshot_time,
};
use crate::store::{PartId, Rows};

/// How much longer than its length a period can be if clocks are set back, as they once were by a whole day.
const SET_BACK_MAX: Span = Span::from_hours(26);

impl NamespaceWriter<'_, '_, '_> {
    /// Adds a snapshot to its series. The latest snapshot of a period stays, by time and then by id. Steps 2 to 6 are
    /// skipped. A snapshot that is not the latest is ignored, and the answer names the snapshot that stays.
    ///
    /// A snapshot whose time can't be read belongs to no period. It is stored, and replaces nothing.
    pub(super) fn snapshot_step(&mut self, prepared: &Prepared) -> Result<Outcome> {
        let part = self.open_partition(prepared.checked.partition())?;
        let draft = prepared.checked.draft();
        let held = prepared.checked.key().map(|key| self.held_in(key, part)).transpose()?.flatten();
        let held = held.map(|(id, _)| id);
        let named = self.named_before(draft)?;
        let is_said = self.is_said_already(draft)?;
        let id = self.next_id()?;
        let mut others = match self.time_of(draft) {
            Some(at) if !self.is_again(held, draft)? => {
                let mut others = self.of_period(part, series_of(draft), at)?;
                others.retain(|(_, other)| Some(*other) != held);
                if let Some((_, newer)) = others.last().filter(|latest| **latest > (at, id)) {
                    return self.late(prepared, *newer);
                }
                others
            }
            _ => Vec::new(),
        };
        let outcome = match self.key_step(prepared, part)? {
            None => self.store(prepared, id, part, Vec::new())?,
            Some(outcome) => {
                // The row may have kept values of its own that put the snapshot elsewhere.
                if outcome.decision != Decision::Unchanged {
                    self.settle_period(outcome.id)?;
                }
                others.clear();
                outcome
            }
        };
        for (_, older) in others {
            self.replace_snapshot(older, outcome.id)?;
        }
        self.supersede_named(draft, (&named, is_said), outcome)
    }

    /// The instant at which the snapshot of a draft was taken.
    fn time_of(&self, draft: &Draft) -> Option<Time> {
        let created_at = draft.fields.created_at.unwrap_or(self.now());
        snapshot_time(draft.fields.metadata.as_ref().unwrap_or(&Value::Null), created_at)
    }

    /// Whether a draft repeats what the memory of its key says.
    fn is_again(&self, held: Option<MemoryId>, draft: &Draft) -> Result<bool> {
        let Some(id) = held else { return Ok(false) };
        let (_, content) = self.ledger.load(self.ns(), id)?;
        Ok(content.text == draft.text)
    }

    /// The current snapshots of a series in the period of an instant, by time and id, without verbatim snapshots.
    fn of_period(&self, part: PartId, series: &str, at: Time) -> Result<Vec<(Time, MemoryId)>> {
        let periods = self.rules.periods()?;
        let (length, tx) = (self.policy.snapshot.period, &*self.ledger.tx);
        let from = at.minus(length).minus(SET_BACK_MAX).max(first_readable());
        let until = at.plus(length).plus(SET_BACK_MAX);
        let mut all = tx.series(self.ns(), part, series, from, Some(until))?;
        all.retain(|(other, _)| periods.of(*other) == periods.of(at));
        let mut current = Vec::with_capacity(all.len());
        for (other, id) in all {
            let row = sound(self.ledger.load_there(self.ns(), id))?.flatten();
            let takes_part = |(vitals, content): (Vitals, Content)| {
                vitals.times.is_current(self.now()) && !content.verbatim
            };
            if row.is_some_and(takes_part) {
                current.push((other, id));
            }
        }
        Ok(current)
    }

    /// Of the snapshots in the period of a given one, keeps the latest.
    fn settle_period(&mut self, id: MemoryId) -> Result<()> {
        let (vitals, content) = self.ledger.load(self.ns(), id)?;
        if content.verbatim {
            return Ok(());
        }
        let Some((series, at)) = series_place(&vitals, &content).filter(|(_, at)| *at > Time::MIN) else {
            return Ok(());
        };
        let mut all = self.of_period(PartId(vitals.place.partition), series, at)?;
        let Some((_, latest)) = all.pop() else { return Ok(()) };
        for (_, older) in all {
            self.replace_snapshot(older, latest)?;
        }
        Ok(())
    }

    /// Sends an earlier snapshot of the period to limbo. A protected snapshot stays.
    fn replace_snapshot(&mut self, older: MemoryId, by: MemoryId) -> Result<()> {
        // A damaged snapshot stays where it is.
        if self.ledger.whole_vitals(self.ns(), older)?.is_none_or(|vitals| vitals.is_protected()) {
            return Ok(());
        }
        let reason = TombstoneReason::SnapshotReplaced;
        self.apply(RuleId::SNAPSHOT, Change::Retire { id: older, reason, replaced_by: Some(by) }).map(|_| ())
    }

    /// Handles a late arrival: the later snapshot stays, and its journal tells of the late one.
    fn late(&mut self, prepared: &Prepared, newer: MemoryId) -> Result<Outcome> {
        let evidence = Evidence { members: vec![newer], ..Evidence::default() };
        let why = Why { rule: RuleId::SNAPSHOT, evidence: evidence.clone() };
        self.ledger.ignore(&self.context, newer, why)?;
        Ok(self.outcome(prepared, newer, Decision::Ignored, RuleId::SNAPSHOT, evidence, Vec::new()))
    }
}

/// The first instant that a snapshot can have. Unreadable times stand before it.
fn first_readable() -> Time {
    Time::MIN.plus(Span::from_millis(1))
}

fn series_of(draft: &Draft) -> &str {
    draft.fields.series.as_deref().unwrap_or(&Parts::defaults().content.series)
}
