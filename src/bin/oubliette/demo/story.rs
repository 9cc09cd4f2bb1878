//! The steps of the story, each measured.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use oubliette::clock::{IdSource, ManualClock};
use oubliette::embed::{Embedder, StaticMini};
use oubliette::exchange::Import;
use oubliette::report::{CheckOptions, ErasedProbe};
use oubliette::{
    Database, Decision, Draft, Durability, Forget, MemoryId, Namespace, Query, Result, Scope, Snapshot, Span,
    Time, WriteOptions,
};
use serde_json::{Value, json};

use crate::answers;
use crate::demo::data::{self, Question};
use crate::demo::{facts, reports, summaries};
use crate::evaluate::Exact;
use crate::latency::{micros, percentile};

/// 2026-04-01T00:00:00Z: after all that is told.
const NOW: Time = Time::from_millis(1_775_001_600_000);
/// Hits of a question.
const K: usize = 10;
/// The tag that is forgotten: documentation packages, the nearest neighbours of what they document.
const TAG: &str = "section:doc";
/// Of the other memories each so many-th is forgotten by its key.
const STEP: usize = 5;

/// Ids in ascending order.
struct Ids(AtomicU64);

impl IdSource for Ids {
    fn next(&self, now: Time) -> Result<[u8; 16]> {
        // Time, version 7, variant and a number, as in a UUIDv7.
        let millis = u128::from(now.as_millis().unsigned_abs()) << 80;
        let number = u128::from(self.0.fetch_add(1, Ordering::SeqCst));
        Ok((millis | 0x7 << 76 | 0x2 << 62 | number).to_be_bytes())
    }
}

/// The database and what is known of it.
struct Story {
    database: Database,
    namespace: Namespace,
    drafts: Vec<Draft>,
    questions: Vec<Question>,
    clock: ManualClock,
    /// Keys that were forgotten together with their memories.
    gone: BTreeSet<String>,
    /// The keys of memories that may have made room for summaries.
    sources: BTreeMap<MemoryId, Vec<String>>,
}

/// Tells it in a new database at `path`.
pub(super) fn tell(path: &Path) -> Result<Value> {
    let begun = Instant::now();
    let clock = ManualClock::at(NOW);
    let builder = Database::builder().clock(clock.clone()).ids(Ids(AtomicU64::new(1))).secret([7; 32]);
    let database = builder.durability(Durability::Fast).embedder(StaticMini::new()).open(path)?;
    let mut story = Story {
        namespace: database.namespace("demo")?,
        database,
        drafts: data::drafts()?,
        questions: data::questions()?,
        clock,
        gone: BTreeSet::new(),
        sources: BTreeMap::new(),
    };
    let mut steps = vec![story.import()?, story.repeat()?];
    steps.extend(reports::tell(&story.database, &story.namespace)?);
    let (before, before_us) = story.ask()?;
    steps.push(story.forget_tag()?);
    steps.push(story.forget_keys()?);
    let (between, _) = story.ask()?;
    steps.push(story.compact()?);
    let (after, after_us) = story.ask()?;
    steps.push(story.check()?);
    steps.extend(facts::tell(&story.database, &story.clock)?);
    steps.push(story.summarize()?);
    steps.push(story.compact()?);
    let (summarized, _) = story.ask()?;
    story.database.close()?;
    let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(json!({
        "before": before,
        "forgotten": between,
        "after": after,
        "summarized": summarized,
        "steps": steps,
        "timing": { "total_ms": ms, "before_p50_us": before_us, "after_p50_us": after_us },
    }))
}

impl Story {
    fn import(&self) -> Result<Value> {
        let import = Import { namespace: self.namespace.name().clone(), ..Import::default() };
        let report = import.run(&self.database, data::lines(), &mut ())?;
        Ok(json!({ "step": "import", "read": report.read, "stored": report.stored }))
    }

    /// The records of the coding agents say how often each text was written: the repeats come again here.
    fn repeat(&self) -> Result<Value> {
        let (mut repeats, mut written, mut reinforced) = (Vec::new(), 0, 0);
        for draft in &self.drafts {
            for number in 2..=adds(draft) {
                let key = draft.key.as_deref().unwrap_or_default();
                repeats.push(Draft { key: Some(format!("{key}#{number}")), ..draft.clone() });
            }
        }
        for batch in repeats.chunks(100) {
            let outcomes = self.namespace.add_all(batch.to_vec(), &WriteOptions::default())?;
            written += outcomes.len();
            reinforced += outcomes.iter().filter(|done| done.decision == Decision::Reinforced).count();
        }
        Ok(
            json!({ "step": "repeat", "written": written, "reinforced": reinforced, "stored": written - reinforced }),
        )
    }

    /// Asks every question in words; gives what was found, and the median time. What the vector index finds of the nearest
    /// is measured beside it.
    fn ask(&self) -> Result<(Value, u64)> {
        let snapshot = self.database.snapshot()?.namespace(&self.namespace)?;
        let exact = Exact::load(&snapshot, &Scope::Shared, None)?;
        let embedder = StaticMini::new();
        let (mut answers, mut found, mut dead, mut recall, mut took) = (0, 0, 0, 0.0, Vec::new());
        for question in &self.questions {
            let query = Query::text(question.query.as_str()).k(K);
            let begun = Instant::now();
            let hits = snapshot.search(&query)?.hits;
            took.push(micros(begun));
            let mut keys = BTreeSet::new();
            let mut told = BTreeSet::new();
            for hit in &hits {
                keys.extend(snapshot.keys_of(hit.id)?);
                if hit.stands_for.is_some() {
                    let sources = snapshot.get(hit.id)?.map(|summary| summary.sources).unwrap_or_default();
                    told.extend(sources.iter().filter_map(|id| self.sources.get(id)).flatten());
                }
            }
            dead += keys.intersection(&self.gone).count();
            let left: Vec<&String> =
                question.answers.iter().filter(|key| !self.gone.contains(*key)).collect();
            answers += left.len();
            found += left.iter().filter(|key| keys.contains(**key) || told.contains(*key)).count();
            let vector = embedder.embed_query(&question.query)?;
            let near = snapshot.search(Query::vector(vector.clone()).k(K))?.hits;
            for hit in &near {
                dead += usize::from(self.is_gone(&snapshot, hit.id)?);
            }
            let near: Vec<MemoryId> = near.iter().map(|hit| hit.id).collect();
            recall += exact.recall(&vector, K, &near).0;
        }
        took.sort_unstable();
        let stats = self.database.stats()?;
        let document = json!({
            "memories": stats.memories.live,
            "writes_held": stats.holders,
            "questions": self.questions.len(),
            "answers": answers,
            "answers_found": found,
            "answer_recall_at_10": found as f64 / (answers as f64).max(1.0),
            "recall_at_10_of_exact_scan": recall / (self.questions.len() as f64).max(1.0),
            "dead_returned": dead,
            "scanned": exact.len(),
            "bytes": stats.bytes.file,
        });
        Ok((document, percentile(&took, 50)))
    }

    /// Whether a memory was forgotten.
    fn is_gone(&self, snapshot: &Namespace<Snapshot>, id: MemoryId) -> Result<bool> {
        Ok(snapshot.keys_of(id)?.iter().any(|key| self.gone.contains(key)))
    }

    fn forget_tag(&mut self) -> Result<Value> {
        let tag = Forget::Tag { tag: TAG.to_owned(), scope: Scope::Any, keep_pinned: false };
        let done = self.namespace.forget(tag)?;
        let tagged = |draft: &&Draft| draft.tags.iter().flatten().any(|tag| tag == TAG);
        self.gone.extend(self.drafts.iter().filter(tagged).filter_map(|draft| draft.key.clone()));
        let mut document = answers::forgotten(&done);
        add(&mut document, json!({ "step": "forget", "by": format!("tag {TAG}") }));
        Ok(document)
    }

    /// A key whose text was written under other keys as well is detached: the text stays for those.
    fn forget_keys(&mut self) -> Result<Value> {
        let rest =
            self.drafts.iter().filter(|draft| !draft.key.as_ref().is_some_and(|key| self.gone.contains(key)));
        let chosen: Vec<&Draft> = rest.step_by(STEP).collect();
        let names: Vec<String> = chosen.iter().filter_map(|draft| draft.key.clone()).collect();
        let alone: Vec<String> =
            chosen.iter().filter(|draft| adds(draft) <= 1).filter_map(|draft| draft.key.clone()).collect();
        let done = self.namespace.forget(Forget::names(names))?;
        self.gone.extend(alone);
        let mut document = answers::forgotten(&done);
        add(&mut document, json!({ "step": "forget", "by": "keys" }));
        Ok(document)
    }

    /// Half of the memories make room for summaries. When they can't be taken back any more, they are erased.
    fn summarize(&mut self) -> Result<Value> {
        let horizon = self.database.policy().0.undo.horizon;
        self.clock.advance(Span::from_days(1));
        let memories = summaries::keyed(&self.namespace)?;
        let told = summaries::tell(&self.database, &self.namespace, &memories)?;
        self.sources = memories.into_iter().collect();
        self.clock.advance(horizon);
        self.clock.advance(Span::from_days(1));
        Ok(told)
    }

    fn compact(&self) -> Result<Value> {
        let mut document = json!(self.database.compact()?);
        add(&mut document, json!({ "step": "compact" }));
        Ok(document)
    }

    /// Every invariant, and that no byte of what was forgotten is left.
    fn check(&self) -> Result<Value> {
        let gone =
            self.drafts.iter().filter(|draft| draft.key.as_ref().is_some_and(|key| self.gone.contains(key)));
        let embedder = StaticMini::new();
        let vector = |draft: &Draft| -> Result<Vec<f32>> {
            Ok(embedder.embed(&[&draft.text])?.pop().unwrap_or_default())
        };
        let bits = |vector: &[f32]| vector.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
        // Equal texts that stay, as memories, as reports or in limbo, and those of the same words in another order have
        // the same vector.
        let stays = |draft: &&Draft| draft.key.as_ref().is_none_or(|key| !self.gone.contains(key));
        let reports = data::reports()?;
        let others = self.drafts.iter().filter(stays).chain(&reports);
        let kept: BTreeSet<Vec<u32>> =
            others.map(|draft| Ok(bits(&vector(draft)?))).collect::<Result<_>>()?;
        let probe = |draft: &Draft| -> Result<ErasedProbe> {
            let vector = Some(vector(draft)?).filter(|vector| !kept.contains(&bits(vector)));
            let (texts, keys) = (vec![draft.text.clone()], draft.key.iter().cloned().collect());
            Ok(ErasedProbe { texts, vector, keys })
        };
        let erased = gone.map(probe).collect::<Result<Vec<_>>>()?;
        let probes = erased.len();
        let report = self.database.check(&CheckOptions { deep: true, erased })?;
        Ok(json!({
            "step": "check",
            "ok": report.ok,
            "rows": report.checked,
            "findings": report.findings,
            "erased_memories_searched_for": probes,
        }))
    }
}

/// How often the text of a memory was written.
fn adds(draft: &Draft) -> u64 {
    let metadata = draft.fields.metadata.as_ref();
    metadata.and_then(|metadata| metadata.get("adds")).and_then(Value::as_u64).unwrap_or(1)
}

fn add(document: &mut Value, more: Value) {
    if let (Value::Object(members), Value::Object(more)) = (document, more) {
        members.extend(more);
    }
}
