//! The tools that look after a namespace: statistics, hygiene, stories of memories, taking runs back.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::engine::{MaintainOptions, Namespace};
use crate::error::{Error, Result};
use crate::exchange::journal_json;
use crate::model::{Pass, Query};
use crate::recall::{Explanation, Got};
use crate::tools::arguments::arguments;
use crate::tools::host::{Caller, Host};
use crate::tools::shape::{Shape, at_least, text};
use crate::tools::summaries::{id, run};

/// Groups of memories in an answer, unless the call names another number.
const SAMPLE_GROUPS: u32 = 20;
/// Memories that go of one group in an answer.
const GROUP_IDS_MAX: usize = 20;
/// Tags, scopes and agents that `memory_stats` tells, of each so many.
const NAMES_MAX: usize = 50;
/// Memories that a question leads to at most.
const STORIES_MAX: usize = 3;

arguments! {
    /// The arguments of a tool that takes none.
    NoArguments {}
}

/// `get_memory_stats`.
pub(super) fn stats(host: &Host, _: NoArguments, _: &dyn Caller) -> Result<Value> {
    Ok(json!(host.namespace.memory_stats()?))
}

/// `memory_stats`: as much as a language model needs to read. Of very many tags, scopes or agents the most frequent are told.
pub(super) fn brief_stats(host: &Host, _: NoArguments, _: &dyn Caller) -> Result<Value> {
    let mut stats = host.namespace.memory_stats()?;
    let left_out = [
        ("local", "scopes_left_out", keep_frequent(&mut stats.local.by_scope)),
        ("local", "tags_left_out", keep_frequent(&mut stats.local.by_tag)),
        ("mem0", "agents_left_out", keep_frequent(&mut stats.mem0.by_agent)),
    ];
    let mut answer = json!(stats);
    for (group, name, count) in left_out.into_iter().filter(|(.., count)| *count > 0) {
        if let Some(Value::Object(members)) = answer.get_mut(group) {
            members.insert(name.to_owned(), json!(count));
        }
    }
    Ok(answer)
}

/// Keeps the most frequent names, of equally frequent ones the first, and says how many were left out.
fn keep_frequent(counts: &mut BTreeMap<String, u64>) -> usize {
    let mut all: Vec<(String, u64)> = std::mem::take(counts).into_iter().collect();
    // Stable: equally frequent names stay in their order.
    all.sort_by_key(|(_, count)| Reverse(*count));
    let left_out = all.len().saturating_sub(NAMES_MAX);
    counts.extend(all.into_iter().take(NAMES_MAX));
    left_out
}

/// A pass by the name that the tool gives it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HygienePass {
    ProfileCollapse,
    VectorDedup,
    SnapshotPrune,
    PurgeExpired,
    Fsck,
}

arguments! {
    /// The arguments of `memory.hygiene`.
    HygieneArguments {
        pass: HygienePass = Shape::Word(vec![
            "profile_collapse", "vector_dedup", "snapshot_prune", "purge_expired", "fsck",
        ]).required().about(
            "purge_expired removes what is over (the pass expire); profile_collapse unites reports that differ only in numbers (collapse), \
             vector_dedup memories of nearly equal vectors (vector-duplicates); snapshot_prune keeps the latest snapshot of each period \
             (snapshots); fsck audits the namespace, and removes what has expired or is above the cap.",
        );
        dry_run: Option<bool> = Shape::Flag.or(true).about("true tells what it would do; false does it.");
        enable_fuzzy: Option<bool> = Shape::Flag.or(false).about("Of profile_collapse: unite similar reports, too.");
        max_sample_groups: Option<u32> = at_least(0).or(SAMPLE_GROUPS).about("How many groups the answer tells at most.");
        batch_size: Option<u32> = at_least(1).or(500).about("Of profile_collapse: how many memories are read at a time.");
    }
}

/// `memory.hygiene`: one pass, by default to see what it would do. What is left out is as the policy says.
pub(super) fn hygiene(host: &Host, args: HygieneArguments, _: &dyn Caller) -> Result<Value> {
    let dry_run = args.dry_run.unwrap_or(true);
    let most = args.max_sample_groups.unwrap_or(SAMPLE_GROUPS) as usize;
    let pass = match args.pass {
        HygienePass::ProfileCollapse => Pass::Collapse,
        HygienePass::VectorDedup => Pass::VectorDuplicates,
        HygienePass::SnapshotPrune => Pass::Snapshots,
        HygienePass::PurgeExpired => Pass::Expire,
        HygienePass::Fsck => {
            let mut audit = json!(host.namespace.audit(dry_run)?);
            shorten(&mut audit, "duplicate_groups", most);
            return Ok(json!({ "dry_run": dry_run, "audit": audit }));
        }
    };
    let options = MaintainOptions {
        dry_run,
        fuzzy: args.enable_fuzzy,
        max_samples: args.max_sample_groups,
        batch_size: args.batch_size,
        ..MaintainOptions::default().passes([pass])
    };
    let report = host.namespace.maintain_with(&options)?;
    let mut passes = json!(report.passes);
    for pass in passes.as_array_mut().into_iter().flatten() {
        if let Some(details) = pass.get_mut("report") {
            shorten(details, "actions", most);
        }
    }
    let mut answer = json!({ "dry_run": dry_run, "run": report.run, "passes": passes });
    // The pass that follows may fail.
    if let (Value::Object(members), false) = (&mut answer, report.failed.is_empty()) {
        members.insert("failed".to_owned(), json!(report.failed));
    }
    Ok(answer)
}

/// Leaves the first groups in a list of groups of memories, and the first of those that go in each; `more` says how many are
/// left out.
fn shorten(document: &mut Value, list: &str, most: usize) {
    let Some(Value::Array(groups)) = document.get_mut(list) else { return };
    let more = groups.len().saturating_sub(most);
    groups.truncate(most);
    for group in groups.iter_mut() {
        let Some(Value::Array(ids)) = group.get_mut("tombstoned_ids") else { continue };
        let more = ids.len().saturating_sub(GROUP_IDS_MAX);
        ids.truncate(GROUP_IDS_MAX);
        tell_more(group, more);
    }
    tell_more(document, more);
}

fn tell_more(document: &mut Value, more: usize) {
    if let Value::Object(members) = document
        && more > 0
    {
        members.insert("more".to_owned(), json!(more));
    }
}

arguments! {
    /// The arguments of `memory.explain`.
    ExplainArguments {
        id: Option<String> = id().optional().about("The id of the memory, or its key.");
        query: Option<String> = text(1, 4_000).optional().about("A question, or the text of the memory word for word.");
    }
    one of id query;
}

/// `memory.explain`: the story of a memory, or of those that a question leads to. A text that was remembered word for word leads
/// to its memory even when that memory is gone.
pub(super) fn explain(host: &Host, args: ExplainArguments, _: &dyn Caller) -> Result<Value> {
    let stories = match (args.id, args.query) {
        (Some(id), _) => vec![host.namespace.explain(id)?],
        (None, query) => stories(&host.namespace, &query.unwrap_or_default())?,
    };
    let told =
        stories.iter().map(|story| with_text(&host.namespace, story)).collect::<Result<Vec<Value>>>()?;
    Ok(json!({ "stories": told }))
}

/// A story with what the memory says and is called, as long as there is something of it.
fn with_text(namespace: &Namespace, story: &Explanation) -> Result<Value> {
    let mut told = explanation_json(story);
    match (namespace.look_up(story.id, false), &mut told) {
        (Ok(Got::Memory(memory)), Value::Object(members)) => {
            members.insert("text".to_owned(), json!(memory.row_text));
            members.insert("keys".to_owned(), json!(memory.keys));
        }
        (Ok(_) | Err(Error::NotFound { .. }), _) => {}
        // The story of a damaged memory is worth as much as any other.
        (Err(why), _) if why.is_damage() => {}
        (Err(why), _) => return Err(why),
    }
    Ok(told)
}

fn stories(namespace: &Namespace, query: &str) -> Result<Vec<Explanation>> {
    match namespace.explain(query) {
        Ok(story) => return Ok(vec![story]),
        Err(Error::NotFound { .. }) => {}
        Err(other) => return Err(other),
    }
    let hits = namespace.search(Query::text(query).k(STORIES_MAX).track(false))?.hits;
    if hits.is_empty() {
        return Err(Error::NotFound { what: "memory", name: query.chars().take(80).collect() });
    }
    hits.iter().map(|hit| namespace.explain(hit.id)).collect()
}

arguments! {
    /// The arguments of `memory.undo`.
    UndoArguments {
        run_id: String = id().required().about("A run of run_maintenance, of memory_compact_commit or of an import.");
        dry_run: Option<bool> = Shape::Flag.or(true).about("true tells what is known of the run; false takes it back.");
    }
}

/// `memory.undo`; by default what is known of the run, and whether it can be taken back.
pub(super) fn undo(host: &Host, args: UndoArguments, _: &dyn Caller) -> Result<Value> {
    let id = run("run_id", &args.run_id)?;
    if args.dry_run.unwrap_or(true) {
        let report = host.namespace.run(id)?;
        let report = report.ok_or_else(|| Error::NotFound { what: "run", name: id.to_string() })?;
        return Ok(json!({ "dry_run": true, "run": report }));
    }
    let mut told = json!(host.namespace.undo(id)?);
    if let Value::Object(members) = &mut told {
        members.insert("dry_run".to_owned(), json!(false));
    }
    Ok(told)
}

/// What is known of a memory, as one JSON object.
///
/// ```
/// use oubliette::tools::explanation_json;
/// # let folder = tempfile::tempdir()?;
/// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
/// let tea = team.add("Ann prefers tea")?.id;
/// assert_eq!(explanation_json(&team.explain(tea)?)["state"], "live");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn explanation_json(story: &Explanation) -> Value {
    let mut told = json!({
        "id": story.id,
        "state": story.state,
        "created": story.created,
        "merged_from": story.merged_from,
        "replaces": story.replaces,
        "replaced_by": story.replaced_by,
        "family": story.family,
        "removed": story.removed,
        "source_forgotten": story.source_forgotten,
        "contexts": story.contexts.items,
        "events": story.events.iter().map(journal_json).collect::<Vec<_>>(),
    });
    if let (Value::Object(members), false) = (&mut told, story.damaged.is_empty()) {
        members.insert("damaged".to_owned(), json!(story.damaged));
    }
    told
}
