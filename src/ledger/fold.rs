//! Accesses of memories, counted together.

use crate::error::Result;
use crate::ledger::applied::Applied;
use crate::ledger::writer::{Context, Ledger, Why, truth};
use crate::model::{Access, Counted, Delta, MemoryId, Op, Time, Vitals};
use crate::store::Rows;

/// A memory after accesses.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Folded {
    /// The memory.
    pub(crate) id: MemoryId,
    /// Its hot part as it is stored.
    pub(crate) before: Vitals,
    /// The new statistics.
    pub(crate) access: Access,
    /// The new end of life; none if it does not change.
    pub(crate) expires_at: Option<Time>,
    /// The new confidence; none if it does not change.
    pub(crate) confidence: Option<f32>,
}

impl Ledger<'_, '_> {
    /// Notes when a use raised the confidence of a row, if it did.
    pub(super) fn stamp_growth(
        &mut self,
        context: &Context,
        id: MemoryId,
        confidence: Option<f32>,
    ) -> Result<()> {
        if confidence.is_none() {
            return Ok(());
        }
        let mut access = self.tx.access(context.ns, id)?;
        access.confidence_grown_at = Some(context.now);
        truth(self.tx).put_access(context.ns, id, &access)
    }

    /// Writes vitals and statistics of a memory whose content stays.
    pub(super) fn adjust(
        &mut self,
        context: &Context,
        id: MemoryId,
        version: u64,
        (mut vitals, access): (Vitals, Access),
        deltas: Vec<Delta>,
        why: Why,
    ) -> Result<Applied> {
        let (before, content) = self.load_at(context.ns, id, version)?;
        debug_assert_ne!(vitals.version, version, "a change has a version of its own");
        vitals.place = before.place.clone();
        vitals.place.usage = access.usage(vitals.tier);
        self.place_row(context, id, &before, &content, vitals, &content)?;
        truth(self.tx).put_access(context.ns, id, &access)?;
        self.journal(context, Op::Adjust, Some((id, None)), deltas, why)?;
        Ok(Applied::default())
    }

    /// Writes the statistics of memories with one journal row for all. No version changes: nobody who has read one of
    /// these memories has to read it again.
    pub(super) fn fold(&mut self, context: &Context, rows: Vec<Folded>, why: Why) -> Result<Applied> {
        let ns = context.ns;
        for Folded { id, before, access, expires_at, confidence } in &rows {
            let mut vitals = before.clone();
            vitals.place.usage = access.usage(vitals.tier);
            vitals.times.expires_at = expires_at.or(vitals.times.expires_at);
            vitals.confidence = confidence.or(vitals.confidence);
            if vitals != *before {
                self.fold_in(context, *id, before, vitals)?;
            }
            truth(self.tx).put_access(ns, *id, access)?;
        }
        let accessed =
            Delta { field: "accessed".to_owned(), before: serde_json::Value::Null, after: rows.len().into() };
        self.journal(context, Op::Fold, None, vec![accessed], why)?;
        Ok(Applied::default())
    }

    /// Writes what accesses change of the vitals of a row.
    fn fold_in(&mut self, context: &Context, id: MemoryId, before: &Vitals, vitals: Vitals) -> Result<()> {
        let counted = |vitals: &Vitals| Counted::at(&vitals.times, context.now);
        let is_counted_alike = before.place.counted == counted(before) && counted(before) == counted(&vitals);
        if is_counted_alike {
            return self.store_vitals(context.ns, id, before, &vitals);
        }
        let content = self.content_of(context.ns, id)?;
        self.place_row(context, id, before, &content, vitals, &content).map(drop)
    }
}
