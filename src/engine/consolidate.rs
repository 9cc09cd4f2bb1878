//! Short-term memories in use, and clusters, distilled by whoever summarizes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::engine::deadline::answered_within;
use crate::engine::namespace::Namespace;
use crate::error::{Error, Result};
use crate::hygiene::{
    Distilled, Field, Judge, PlanInput, Selection, consolidate, refuse_consolidation, to_consolidate,
    to_unite, unite,
};
use crate::ingest::{Prepared, owner_in, prepare};
use crate::model::{
    Draft, Field as Given, Kind, Memory, MemoryId, PROCEDURE_TAG, Pass, RunId, Tier, is_blank,
};
use crate::policy::Policy;
use crate::recall::Got;
use crate::store::NsId;
use crate::summary::Summarizer;

/// Characters of the reason for which nothing was distilled.
const REASON_CHARS: usize = 400;

/// What a consolidation came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConsolidateReport {
    /// Memories that were shown to the summarizer.
    pub shown: u64,
    /// Memories that came of them.
    pub created: Vec<MemoryId>,
    /// Memories that were shown and stay to be shown again: there was no answer for them, or they changed meanwhile.
    pub left: u64,
    /// Why there was no answer, for each batch without one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// The run, for [`Namespace::undo`]; none where nothing was created.
    pub run: Option<RunId>,
}

/// What becomes of the answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aim {
    /// Durable memories beside the short-term ones that they were made of.
    Lasting,
    /// Memories in the place of the members of clusters.
    United,
}

impl Aim {
    /// The pass that does the same without a summarizer.
    const fn pass(self) -> Pass {
        match self {
            Aim::Lasting => Pass::Promote,
            Aim::United => Pass::Cluster,
        }
    }
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
        self.distil_all(summarizer, Aim::Lasting)
    }

    /// Puts one memory in the place of each cluster of near memories (`cluster.cosine`): shows its members to the summarizer, at most
    /// `promote.batch` at a time, and stores the answer, which supersedes them. Pinned and locked members are not shown, and a
    /// cluster of fewer than two others stays as it is.
    ///
    /// The answer is of the kind of the members, has their tags, categories, entities and links, the greatest of their significance, importance and
    /// confidence, the most durable of their tiers, and the sum of their reinforcement; `consolidated_from` names them. Keys stay with what they
    /// named. What [`Namespace::consolidate`] says of late, failing and absurd answers holds here too.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use oubliette::gc::{InputPack, Summarizer};
    /// use oubliette::report::ChainEnd;
    /// use oubliette::{Database, Draft, Memory, Result};
    ///
    /// /// Says what the first memory says.
    /// struct First;
    ///
    /// impl Summarizer for First {
    ///     fn summarize(&self, _: &InputPack) -> Result<String> {
    ///         unreachable!("only asked to consolidate")
    ///     }
    ///
    ///     fn consolidate(&self, memories: &[Memory]) -> Result<Draft> {
    ///         Ok(Draft::new(format!("{}, as {} say", memories[0].text, memories.len())))
    ///     }
    /// }
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let old = team.add(Draft::new("Ann drinks tea").vector([0.6, 0.8]))?.id;
    /// team.add(Draft::new("Ann likes tea").vector([0.8, 0.6]))?;
    /// let summarizer: Arc<dyn Summarizer> = Arc::new(First);
    /// let report = team.consolidate_clusters(&summarizer)?;
    /// assert_eq!((report.shown, report.created.len()), (2, 1));
    /// assert_eq!(team.resolve(old)?, ChainEnd::Visible(report.created[0]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::consolidate`].
    pub fn consolidate_clusters(&self, summarizer: &Arc<dyn Summarizer>) -> Result<ConsolidateReport> {
        self.distil_all(summarizer, Aim::United)
    }

    fn distil_all(&self, summarizer: &Arc<dyn Summarizer>, aim: Aim) -> Result<ConsolidateReport> {
        let inner = &self.db.inner;
        inner.check_outside()?;
        inner.check_open()?;
        self.db.flush_access()?;
        let policy = inner.in_force().policy.clone();
        let mut report = ConsolidateReport::default();
        let Some((_, ns)) = self.db.tenants(Some(&self.name))?.pop() else { return Ok(report) };
        let run = inner.new_run()?;
        for ids in self.to_distil(ns, &policy, aim)? {
            let is_first = report.created.is_empty() && report.failures.is_empty();
            let shown_before = report.shown;
            match self.distil(&ids, summarizer, &policy, (run, aim), &mut report) {
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

    /// The batches of memories that are shown together.
    fn to_distil(&self, ns: NsId, policy: &Policy, aim: Aim) -> Result<Vec<Vec<MemoryId>>> {
        let (inner, published) = (&self.db.inner, self.db.inner.state()?);
        let (now, noted) = (inner.instant(&published), Arc::clone(&inner.accesses));
        let field = Field::new(ns, now, noted);
        if aim == Aim::Lasting {
            return to_consolidate(&field, published.snapshot(), policy);
        }
        let (selection, asking) = (Selection::default(), inner.asking(&published, &self.name, now)?);
        to_unite(PlanInput {
            published: &published,
            namespace: &self.name,
            field: &field,
            secret: &inner.secret,
            policy,
            selection: &selection,
            is_named: true,
            judge: asking.as_ref().map(|asking| asking as &dyn Judge),
            looks: &inner.looks,
        })
    }

    /// One batch, in one transaction.
    fn distil(
        &self,
        ids: &[MemoryId],
        summarizer: &Arc<dyn Summarizer>,
        policy: &Policy,
        (run, aim): (RunId, Aim),
        report: &mut ConsolidateReport,
    ) -> Result<()> {
        let memories = self.shown(ids)?;
        let sources: Vec<(MemoryId, u64)> =
            memories.iter().map(|memory| (memory.id, memory.version)).collect();
        report.shown += sources.len() as u64;
        let created = match asked(summarizer, memories, policy, aim) {
            Ok(draft) => self.store_distilled(&sources, draft, run, aim)?,
            Err(why) => {
                let why: String = why.chars().take(REASON_CHARS).collect();
                self.refuse(&sources, &why, aim.pass())?;
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
        aim: Aim,
    ) -> Result<Option<MemoryId>> {
        let mut drafts = [draft];
        self.db.inner.embed_drafts(&self.name, &mut drafts, true)?;
        let [draft] = &drafts;
        self.db.inner.run_alone(|session| {
            let mut writer = session.writer(&self.name, Some(run), true)?;
            let (ns, distilled) = (writer.ns(), Distilled { sources, draft, run });
            let created = match aim {
                Aim::Lasting => consolidate(&mut writer, &distilled)?,
                Aim::United => unite(&mut writer, &distilled)?,
            };
            if created.is_some() {
                // Each batch may be the last one.
                session.ledger.end_run(ns, run, session.ledger.now())?;
            }
            Ok(created)
        })
    }

    fn refuse(&self, sources: &[(MemoryId, u64)], why: &str, pass: Pass) -> Result<()> {
        let members: Vec<MemoryId> = sources.iter().map(|(id, _)| *id).collect();
        self.db.inner.run_alone(|session| {
            let mut writer = session.writer(&self.name, None, true)?;
            refuse_consolidation(&mut writer, pass, &members, why)
        })
    }
}

/// What the summarizer makes of memories, on a thread of its own, which is left to itself when its time is over.
fn asked(
    summarizer: &Arc<dyn Summarizer>,
    memories: Vec<Memory>,
    policy: &Policy,
    aim: Aim,
) -> Result<Prepared, String> {
    let (summarizer, memories) = (Arc::clone(summarizer), Arc::new(memories));
    let shown = Arc::clone(&memories);
    let never = AtomicBool::new(false);
    let draft = answered_within(policy.promote.deadline, &never, move || summarizer.consolidate(&shown))?;
    accepted(draft, &memories, policy, aim).map_err(|why| why.to_string())
}

/// The answer as a memory.
fn accepted(draft: Draft, memories: &[Memory], policy: &Policy, aim: Aim) -> Result<Prepared> {
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
    if is_blank(&draft.text) {
        return Err(Error::invalid("text", "must say something", "nothing"));
    }
    let draft = owned(draft, memories);
    prepare(match aim {
        Aim::Lasting => lasting(draft, memories, policy),
        Aim::United => united(draft, memories),
    })
}

/// The answer as a memory of the owner that all the memories name, so that it goes where they go. It is true no longer than the
/// memories are, which are all true at the same times.
fn owned(mut draft: Draft, memories: &[Memory]) -> Draft {
    let Some((first, others)) = memories.split_first() else { return draft };
    for (given, of_all) in
        [(&mut draft.fields.valid_from, first.valid_from), (&mut draft.fields.valid_to, first.valid_to)]
    {
        if !given.is_given() {
            *given = Given::from(of_all);
        }
    }
    let mut owner = owner_in(&first.metadata);
    owner.retain(|key, value| others.iter().all(|memory| memory.metadata.get(key) == Some(value)));
    if !owner.is_empty()
        && let Value::Object(metadata) =
            draft.fields.metadata.get_or_insert_with(|| Value::Object(Map::new()))
    {
        metadata.extend(owner);
    }
    draft
}

/// The answer as a durable memory.
fn lasting(mut draft: Draft, memories: &[Memory], policy: &Policy) -> Draft {
    let every_procedure = memories.iter().all(|memory| is_procedure(&memory.kind, &memory.tags));
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
    draft
}

/// The answer as the memory that stands for all of these: with all that they have, and the most of what they have.
fn united(mut draft: Draft, memories: &[Memory]) -> Draft {
    let fields = &mut draft.fields;
    fields.kind = memories.first().map(|memory| memory.kind.clone());
    fields.tier = memories.iter().map(|memory| memory.tier).max();
    fields.significance = memories.iter().map(|memory| memory.significance).max();
    fields.importance = memories.iter().map(|memory| memory.importance).max_by(f32::total_cmp);
    fields.confidence = memories.iter().filter_map(|memory| memory.confidence).max_by(f32::total_cmp).into();
    let reinforcement: i64 = memories.iter().map(|memory| i64::from(memory.reinforcement_count)).sum();
    fields.reinforcement_count = Some(reinforcement);
    let ids: Vec<MemoryId> = memories.iter().map(|memory| memory.id).collect();
    draft.tags = union(draft.tags, memories.iter().flat_map(|memory| &memory.tags));
    draft.categories = union(draft.categories, memories.iter().flat_map(|memory| &memory.categories));
    draft.entities = union(draft.entities, memories.iter().flat_map(|memory| &memory.entities));
    let links = memories.iter().flat_map(|memory| &memory.links).filter(|link| !ids.contains(&link.to));
    draft.links = union(draft.links, links);
    draft.fields.consolidated_from = Some(ids);
    draft
}

/// What was given and what else there is, each once.
fn union<'m, T: Ord + Clone + 'm>(
    given: Option<Vec<T>>,
    more: impl Iterator<Item = &'m T>,
) -> Option<Vec<T>> {
    let all: BTreeSet<T> = given.into_iter().flatten().chain(more.cloned()).collect();
    Some(all.into_iter().collect())
}

fn is_procedure(kind: &Kind, tags: &[String]) -> bool {
    *kind == Kind::Skill || tags.iter().any(|tag| tag == PROCEDURE_TAG)
}
