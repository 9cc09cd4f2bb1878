//! How sure is a memory? The confidence of durable memories.

use crate::error::Result;
use crate::ingest::NamespaceWriter;
use crate::ledger::seed;
use crate::model::{Fields, MemoryId, Outcome, Patch, Time, Vitals};
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

/// The confidence after a contradiction: the more often a memory was used, the more it loses. At least
/// `confidence.floor`.
///
/// Source: ours. The reference of the maintenance package only says that it shrinks harder with use.
fn contradicted(confidence: f32, uses: u64, policy: &Policy) -> f32 {
    let left = f64::from(confidence) / (2.0 + (uses as f64).ln_1p());
    left.max(policy.confidence.floor) as f32
}

impl NamespaceWriter<'_, '_, '_> {
    /// The confidence of a durable memory that comes without one.
    pub(super) fn seed(&self) -> f32 {
        // Only an import writes in a run.
        seed(&self.policy.confidence, self.context.run.is_some())
    }

    /// Holds a confidence that was given to what a caller may claim.
    pub(super) fn believe(&self, vitals: &mut Vitals, given: &Fields) {
        if let Some(claimed) = given.confidence.value() {
            vitals.confidence = Some(claimed.min(self.policy.confidence.caller_max as f32));
        }
    }

    /// Something contradicts a memory: it is believed less, and is not true any more from an instant on, now by default.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` for a superseded memory; `Invalid` for an instant not after the beginning of the memory.
    pub(crate) fn contradict(&mut self, name: &str, at: Option<Time>) -> Result<Outcome> {
        let (id, _) = self.find(name)?;
        let (vitals, _) = self.ledger.load(self.ns(), id)?;
        let uses = self.ledger.tx.access(self.ns(), id)?.count();
        let at = at.unwrap_or(self.now());
        let mut patch = Patch::default();
        patch.fields.valid_to = Some(vitals.times.valid_to.map_or(at, |end| end.min(at))).into();
        if let Some(confidence) = vitals.confidence {
            patch.fields.confidence = Some(contradicted(confidence, uses, self.policy)).into();
        }
        self.update(name, patch, None)
    }

    /// The confidence of a row after a use now. None if it does not change.
    pub(super) fn grown(&self, id: MemoryId, vitals: &Vitals) -> Result<Option<f32>> {
        if vitals.confidence.is_none() {
            return Ok(None);
        }
        let grown_at = self.ledger.tx.access(self.ns(), id)?.confidence_grown_at;
        Ok(grown(vitals.confidence, grown_at, self.now(), self.policy))
    }
}
