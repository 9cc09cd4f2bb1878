//! Which memories wait for a vector? The pass `embed`, and the vectors of memories that a commit has left without one.

use crate::error::{Result, sound};
use crate::hygiene::pass::{Applied, DueInput, Job, MaintenancePass, PlanInput, Planned, Step, StepInput};
use crate::hygiene::plan::Stop;
use crate::hygiene::told::PassReport;
use crate::ingest::meant;
use crate::model::{Kind, MemoryId};
use crate::store::{NsId, Rows, Snapshot};

/// Texts that are given to the embedder at once.
const BATCH: usize = 64;

/// The pass `embed`.
pub(crate) struct Embed;

impl MaintenancePass for Embed {
    fn plan(&self, input: PlanInput<'_>, _: Stop<'_>) -> Result<Option<Planned>> {
        let ns = input.field.ns;
        let waiting = input.published.snapshot().pending_rows(ns)?;
        let job = Embedding { ns, planned: waiting.len() as u64, waiting, tried: 0, filled: 0 };
        Ok(Some(Planned::Jobs(vec![Box::new(job)])))
    }

    fn is_due(&self, input: &DueInput<'_>) -> Result<bool> {
        Ok(input.has_embedder)
    }
}

struct Embedding {
    ns: NsId,
    planned: u64,
    waiting: Vec<MemoryId>,
    tried: u64,
    filled: u64,
}

impl Job for Embedding {
    fn next<'s>(&'s mut self, input: StepInput<'s>) -> Result<Option<Step<'s>>> {
        while input.embedder.is_some() && !self.waiting.is_empty() {
            let batch: Vec<MemoryId> = self.waiting.drain(..self.waiting.len().min(BATCH)).collect();
            self.tried += batch.len() as u64;
            if let Some(step) = fill(input, self.ns, &batch)? {
                return Ok(Some(step));
            }
        }
        Ok(None)
    }

    fn applied(&mut self, applied: Applied) {
        self.filled += applied.count;
    }

    fn tell(&self, _: &Snapshot, report: &mut PassReport) -> Result<()> {
        report.planned += self.planned;
        report.scanned += self.planned;
        report.changed += self.filled;
        report.skipped += self.tried - self.filled;
        report.left += self.waiting.len() as u64;
        Ok(())
    }
}

/// Works out vectors of the current space for memories that have none of it; none where no text asks for one.
///
/// # Errors
/// Those of the embedder; damage.
pub(crate) fn fill<'s>(input: StepInput<'s>, ns: NsId, ids: &[MemoryId]) -> Result<Option<Step<'s>>> {
    let Some(embedder) = input.embedder else { return Ok(None) };
    let (rows, mut texts) = (input.published.snapshot(), Vec::new());
    let space = rows.clock()?.space;
    for id in ids {
        let Some(vitals) = sound(rows.vitals(ns, *id))?.flatten() else { continue };
        let has_it = vitals.place.slot.is_some() && vitals.place.space == space;
        let left_out = vitals.kind_code == Kind::Aggregate.code() && !input.policy.agg.embed;
        if has_it || left_out {
            continue;
        }
        let Some(content) = sound(rows.content(ns, *id))?.flatten() else { continue };
        if !content.text.trim().is_empty() {
            texts.push((*id, meant(&content, vitals.kind_code, input.messages)));
        }
    }
    if texts.is_empty() {
        return Ok(None);
    }
    let vectors = embedder.vectors_of(&texts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>())?;
    Ok(Some(Box::new(move |slice| {
        let mut filled = 0;
        for ((id, _), vector) in texts.iter().zip(&vectors) {
            let Some(vector) = vector else { continue };
            filled += u64::from(slice.ledger.embed(&slice.context, *id, vector, embedder.space())?);
        }
        Ok(Applied::rows(filled))
    })))
}
