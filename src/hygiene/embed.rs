//! Which memories and goals wait for a vector? The pass `embed`, and the vectors of memories that a commit has left without one.

use crate::error::{Result, sound};
use crate::hygiene::pass::{
    Applied, DueInput, Given, Job, MaintenancePass, PlanInput, Planned, Step, StepInput,
};
use crate::hygiene::plan::Stop;
use crate::hygiene::told::PassReport;
use crate::ingest::meant;
use crate::model::{GoalId, Kind, MemoryId, is_blank};
use crate::store::{GoalRows, NsId, Rows, Snapshot};

/// Texts that are given to the embedder at once.
const BATCH: usize = 64;

/// The pass `embed`.
pub(crate) struct Embed;

impl MaintenancePass for Embed {
    fn plan(&self, input: PlanInput<'_>, _: Stop<'_>) -> Result<Option<Planned>> {
        let ns = input.field.ns;
        let rows = input.published.snapshot();
        let (waiting, goals) = (rows.pending_rows(ns)?, waiting_goals(rows, ns)?);
        let planned = (waiting.len() + goals.len()) as u64;
        let job = Embedding { ns, planned, goals, waiting, tried: 0, unasked: 0, filled: 0 };
        Ok(Some(Planned::Jobs(vec![Box::new(job)])))
    }

    fn is_due(&self, input: &DueInput<'_>) -> Result<bool> {
        Ok(input.has_embedder)
    }
}

struct Embedding {
    ns: NsId,
    planned: u64,
    goals: Vec<(GoalId, String)>,
    waiting: Vec<MemoryId>,
    tried: u64,
    /// Of those tried, what the embedder was not asked for any more.
    unasked: u64,
    filled: u64,
}

/// Vectors that were worked out, to be written.
#[derive(Default)]
pub(crate) struct Filling<'s> {
    /// Writes them; none where no text asks for one.
    pub(crate) step: Option<Step<'s>>,
    /// Texts that the embedder was not asked for any more.
    unasked: u64,
}

impl Job for Embedding {
    fn next<'s>(&'s mut self, input: StepInput<'s>) -> Result<Option<Step<'s>>> {
        if input.embedder.is_some() && !self.goals.is_empty() {
            let batch: Vec<_> = self.goals.iter().take(BATCH).cloned().collect();
            let size = batch.len();
            let filling = fill_goals(input, self.ns, batch)?;
            self.goals.drain(..size);
            self.tried += size as u64;
            self.unasked += filling.unasked;
            return Ok(filling.step);
        }
        // What the embedder failed at is still left.
        while input.embedder.is_some() && !self.waiting.is_empty() {
            let batch: Vec<MemoryId> = self.waiting.iter().take(BATCH).copied().collect();
            let Filling { step, unasked } = fill(input, self.ns, &batch)?;
            self.waiting.drain(..batch.len());
            self.tried += batch.len() as u64;
            self.unasked += unasked;
            if let Some(step) = step {
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
        report.skipped += self.tried - self.filled - self.unasked;
        report.left += (self.goals.len() + self.waiting.len()) as u64 + self.unasked;
        Ok(())
    }
}

/// The goals of a namespace without a vector of the current space, with their texts.
fn waiting_goals(rows: &Snapshot, ns: NsId) -> Result<Vec<(GoalId, String)>> {
    let space = rows.clock()?.space;
    let (goals, _) = rows.goals(ns)?;
    let waiting = goals.into_iter().filter(|(_, row)| !row.is_embedded(space));
    Ok(waiting.map(|(id, row)| (id, row.text)).collect())
}

/// Works out vectors of the current space for goals.
fn fill_goals(input: StepInput<'_>, ns: NsId, goals: Vec<(GoalId, String)>) -> Result<Filling<'_>> {
    let Some(embedder) = input.embedder else { return Ok(Filling::default()) };
    let given = embedder.vectors_of(&goals.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>())?;
    let unasked = unasked(&given);
    let step: Step<'_> = Box::new(move |slice| {
        let mut filled = 0;
        for ((id, text), given) in goals.iter().zip(&given) {
            let Some(vector) = given.vector() else { continue };
            filled += u64::from(slice.ledger.embed_goal(ns, *id, text, vector, embedder.space())?);
        }
        Ok(Applied::rows(filled))
    });
    Ok(Filling { step: Some(step), unasked })
}

/// Works out vectors of the current space for memories that have none of it; none where no text asks for one.
///
/// # Errors
/// Those of the embedder; damage.
pub(crate) fn fill<'s>(input: StepInput<'s>, ns: NsId, ids: &[MemoryId]) -> Result<Filling<'s>> {
    let Some(embedder) = input.embedder else { return Ok(Filling::default()) };
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
        if !is_blank(&content.text) {
            let meant = meant(&content, vitals.kind_code, input.messages);
            texts.push((*id, content.text, meant));
        }
    }
    if texts.is_empty() {
        return Ok(Filling::default());
    }
    let given = embedder.vectors_of(&texts.iter().map(|(.., meant)| meant.as_str()).collect::<Vec<_>>())?;
    let unasked = unasked(&given);
    let step: Step<'_> = Box::new(move |slice| {
        let mut filled = 0;
        for ((id, text, _), given) in texts.iter().zip(&given) {
            let Some(vector) = given.vector() else { continue };
            let of_text = (text.as_str(), vector);
            filled += u64::from(slice.ledger.embed(&slice.context, *id, of_text, embedder.space())?);
        }
        Ok(Applied::rows(filled))
    });
    Ok(Filling { step: Some(step), unasked })
}

fn unasked(given: &[Given]) -> u64 {
    given.iter().filter(|one| matches!(one, Given::Unasked)).count() as u64
}
