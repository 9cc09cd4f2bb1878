//! How sure is a memory? The confidence of durable memories.

use crate::error::Result;
use crate::ingest::NamespaceWriter;
use crate::model::{MemoryId, Time, Vitals};
use crate::policy::Policy;
use crate::store::Rows;

/// The confidence after a use at `now`: nearer to 1 by a share of what is missing, unless a use raised it (at `grown_at`)
/// less than a while ago. None if it does not change, as that of a short-term memory, which has none.
///
/// Source: the reference of the maintenance package gives growth and its gap.
pub(crate) fn grown(
    confidence: Option<f32>,
    grown_at: Option<Time>,
    now: Time,
    policy: &Policy,
) -> Option<f32> {
    let gap = policy.confidence.growth_gap.as_millis();
    let rested = grown_at.is_none_or(|at| now.as_millis() - at.as_millis() >= gap);
    let growth = policy.confidence.growth as f32;
    confidence.filter(|_| rested).map(|old| old + growth * (1.0 - old))
}

impl NamespaceWriter<'_, '_, '_> {
    /// The confidence of a row after a use now. None if it does not change.
    pub(super) fn grown(&self, id: MemoryId, vitals: &Vitals) -> Result<Option<f32>> {
        if vitals.confidence.is_none() {
            return Ok(None);
        }
        let grown_at = self.ledger.tx.access(self.ns(), id)?.confidence_grown_at;
        Ok(grown(vitals.confidence, grown_at, self.now(), self.policy))
    }
}
