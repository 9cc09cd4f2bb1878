//! Short-term memories in use, distilled by whoever summarizes.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;

use serde::Serialize;

use crate::engine::namespace::Namespace;
use crate::error::{Error, Result};
use crate::hygiene::{Distilled, Field, consolidate, refuse_consolidation, to_consolidate};
use crate::ingest::{Prepared, prepare};
use crate::model::{Draft, Kind, Memory, MemoryId, PROCEDURE_TAG, RunId, Tier};
use crate::policy::Policy;
use crate::recall::Got;
use crate::summary::Summarizer;

/// Characters of the reason for which nothing was distilled.
const REASON_CHARS: usize = 400;

/// What a consolidation came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConsolidateReport {
    /// Short-term memories that were shown to the summarizer.
    pub shown: u64,
    /// Durable memories that came of them.
    pub created: Vec<MemoryId>,
    /// Memories that were shown and stay to be shown again: there was no answer for them, or they changed meanwhile.
    pub left: u64,
    /// Why there was no answer, for each batch without one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// The run, for [`Namespace::undo`]; none where nothing was created.
    pub run: Option<RunId>,
}

impl Namespace {
    /// Distils short-term memories that were used at least `promote.access` times into durable ones: shows them to the
    /// summarizer, those of one partition together, `promote.batch` at a time, and stores each answer with its sources. What was shown is
    /// not shown again, and stays until its own end.
    ///
    /// The answer is of the tier `procedural` if it is a skill or has the tag `procedure`, or if this holds for each of its
    /// sources, and else of `semantic`. No answer within `promote.deadline`, a failure, a panic, and a draft that is out of bounds or names a key or a
    /// vector leave the memories as they are; the journal tells why. A program that consolidates sets `promote.verbatim_max` to
    /// 0, so that the pass `promote` leaves the short texts to it.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use oubliette::gc::{InputPack, Summarizer};
    /// use oubliette::memory::{Field, Tier};
    /// use oubliette::{Database, Draft, Memory, Patch, Result};
    ///
    /// /// Puts one text behind the other.
    /// struct Joining;
    ///
    /// impl Summarizer for Joining {
    ///     fn summarize(&self, _: &InputPack) -> Result<String> {
    ///         unreachable!("only asked to consolidate")
    ///     }
    ///
    ///     fn consolidate(&self, memories: &[Memory]) -> Result<Draft> {
    ///         let texts: Vec<&str> = memories.iter().map(|memory| memory.text.as_str()).collect();
    ///         Ok(Draft::new(texts.join("; ")))
    ///     }
    /// }
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// for text in ["Ann drinks tea", "Ann drinks it green"] {
    ///     let id = team.add(Draft::new(text).tier(Tier::Working))?.id;
    ///     let mut patch = Patch::default();
    ///     patch.fields.retrieval_count = Some(3);
    ///     team.update(id, patch)?;
    /// }
    /// let summarizer: Arc<dyn Summarizer> = Arc::new(Joining);
    /// let report = team.consolidate(&summarizer)?;
    /// assert_eq!((report.shown, report.created.len(), report.left), (2, 1, 0));
    /// assert_eq!(team.consolidate(&summarizer)?.shown, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Closed`, `ReadOnly`, `Retry`, `Corrupted`. What goes wrong with one batch is no error of the others.
    pub fn consolidate(&self, summarizer: &Arc<dyn Summarizer>) -> Result<ConsolidateReport> {
        let inner = &self.db.inner;
        inner.check_outside()?;
        inner.check_open()?;
        self.db.flush_access()?;
        let policy = inner.in_force().policy.clone();
        let mut report = ConsolidateReport::default();
        let Some((_, ns)) = self.db.tenants(Some(&self.name))?.pop() else { return Ok(report) };
        let run = RunId::from_bytes(inner.ids.next(inner.clock.now()));
        let batches = {
            let published = inner.state()?;
            let (now, noted) = (inner.instant(&published), Arc::clone(&inner.accesses));
            let field = Field { ns, parts: None, now, damaged: Cell::new(0), noted };
            to_consolidate(&field, published.snapshot(), &policy)?
        };
        for ids in batches {
            let is_first = report.created.is_empty() && report.failures.is_empty();
            let shown_before = report.shown;
            match self.distil(&ids, summarizer, &policy, run, &mut report) {
                Ok(()) => {}
                Err(why) if is_first => return Err(why),
                // The batches before this one stand, and an error would say that nothing was written.
                Err(why) => {
                    report.left += report.shown - shown_before;
                    report.failures.push(why.to_string());
                    break;
                }
            }
        }
        report.run = (!report.created.is_empty()).then_some(run);
        Ok(report)
    }

    /// One batch, in one transaction.
    fn distil(
        &self,
        ids: &[MemoryId],
        summarizer: &Arc<dyn Summarizer>,
        policy: &Policy,
        run: RunId,
        report: &mut ConsolidateReport,
    ) -> Result<()> {
        let memories = self.shown(ids)?;
        let sources: Vec<(MemoryId, u64)> =
            memories.iter().map(|memory| (memory.id, memory.version)).collect();
        report.shown += sources.len() as u64;
        let created = match asked(summarizer, memories, policy) {
            Ok(draft) => self.store_distilled(&sources, draft, run)?,
            Err(why) => {
                let why: String = why.chars().take(REASON_CHARS).collect();
                self.refuse(&sources, &why)?;
                report.failures.push(why);
                None
            }
        };
        report.left += if created.is_some() { 0 } else { sources.len() as u64 };
        report.created.extend(created);
        Ok(())
    }

    /// The memories of a batch that are still there.
    fn shown(&self, ids: &[MemoryId]) -> Result<Vec<Memory>> {
        let mut memories = Vec::with_capacity(ids.len());
        for id in ids {
            match self.look_up(*id, false) {
                Ok(Got::Memory(memory)) => memories.push(*memory),
                Ok(Got::Tombstone(_)) | Err(Error::NotFound { .. }) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(memories)
    }

    fn store_distilled(
        &self,
        sources: &[(MemoryId, u64)],
        draft: Prepared,
        run: RunId,
    ) -> Result<Option<MemoryId>> {
        let mut drafts = [draft];
        self.db.inner.embed_drafts(&self.name, &mut drafts, true)?;
        let [draft] = &drafts;
        self.db.inner.run_alone(|session| {
            let mut writer = session.writer(&self.name, Some(run), true)?;
            let (ns, created) = (writer.ns(), consolidate(&mut writer, &Distilled { sources, draft, run })?);
            if created.is_some() {
                // Each batch may be the last one.
                session.ledger.end_run(ns, run, session.ledger.now())?;
            }
            Ok(created)
        })
    }

    fn refuse(&self, sources: &[(MemoryId, u64)], why: &str) -> Result<()> {
        let members: Vec<MemoryId> = sources.iter().map(|(id, _)| *id).collect();
        self.db.inner.run_alone(|session| {
            let mut writer = session.writer(&self.name, None, true)?;
            refuse_consolidation(&mut writer, &members, why)
        })
    }
}

/// What the summarizer makes of memories, on a thread of its own, which is left to itself when its time is over.
fn asked(
    summarizer: &Arc<dyn Summarizer>,
    memories: Vec<Memory>,
    policy: &Policy,
) -> Result<Prepared, String> {
    let every_procedure = memories.iter().all(|memory| is_procedure(&memory.kind, &memory.tags));
    let (tell, told) = sync_channel(1);
    let summarizer = Arc::clone(summarizer);
    let work = move || {
        // Nobody listens any more to an answer that comes too late.
        drop(tell.send(summarizer.consolidate(&memories)));
    };
    let thread = thread::Builder::new().name("oubliette-consolidate".to_owned()).spawn(work);
    thread.map_err(|why| why.to_string())?;
    let draft = match told.recv_timeout(policy.promote.deadline.into()) {
        Ok(answer) => answer.map_err(|why| why.to_string())?,
        Err(RecvTimeoutError::Timeout) => {
            return Err(format!("no answer within {}", policy.promote.deadline));
        }
        Err(RecvTimeoutError::Disconnected) => return Err("the summarizer panicked".to_owned()),
    };
    accepted(draft, every_procedure, policy).map_err(|why| why.to_string())
}

/// The answer as a durable memory.
fn accepted(mut draft: Draft, every_procedure: bool, policy: &Policy) -> Result<Prepared> {
    if let Some(key) = &draft.key {
        return Err(Error::invalid("key", "must not be given: it names a record of a caller", key));
    }
    if draft.vector.is_some() {
        return Err(Error::invalid(
            "vector",
            "must not be given: the embedder of the database makes it",
            "one",
        ));
    }
    if draft.text.trim().is_empty() {
        return Err(Error::invalid("text", "must say something", "nothing"));
    }
    let (kind, tags) =
        (draft.fields.kind.clone().unwrap_or_default(), draft.tags.as_deref().unwrap_or_default());
    let lasts = draft.fields.tier.filter(|tier| !tier.is_short_term());
    let by_content =
        if every_procedure || is_procedure(&kind, tags) { Tier::Procedural } else { Tier::Semantic };
    draft.fields.tier = Some(lasts.unwrap_or(by_content));
    // It is as sure as what a caller writes, and not as what an import brings.
    if draft.fields.confidence.value().is_none() {
        draft = draft.confidence(policy.confidence.fresh as f32);
    }
    prepare(draft)
}

fn is_procedure(kind: &Kind, tags: &[String]) -> bool {
    *kind == Kind::Skill || tags.iter().any(|tag| tag == PROCEDURE_TAG)
}
