//! The chapter on summaries: half of the memories, the oldest first, make room for summaries of the built-in summarizer.

use oubliette::gc::{GcOptions, GcRunOptions};
use oubliette::policy::{Policy, Syntax};
use oubliette::{Database, Filter, MemoryId, Namespace, PageRequest, Patch, Result, Span};
use serde_json::{Value, json};

/// Every so many-th memory stays as it is.
const STEP: usize = 2;

/// The memories with keys, each with its keys.
pub(super) fn keyed(namespace: &Namespace) -> Result<Vec<(MemoryId, Vec<String>)>> {
    let request = PageRequest {
        filter: Some(Filter::parse(r#"{"kind":"knowledge"}"#)?),
        limit: 10_000,
        ..PageRequest::default()
    };
    Ok(namespace.list(&request)?.items.into_iter().map(|memory| (memory.id, memory.keys)).collect())
}

/// Puts summaries in the place of half of them.
pub(super) fn tell(
    database: &Database,
    namespace: &Namespace,
    memories: &[(MemoryId, Vec<String>)],
) -> Result<Value> {
    let mut policy = Policy::default();
    policy.gc.kinds = vec!["knowledge".to_owned()];
    database.set_policy(&policy.to_toml()?, Syntax::Toml)?;
    database.batch(|batch| {
        for (id, _) in memories.iter().step_by(STEP) {
            batch.update(namespace.name(), *id, Patch::new().admin_locked(true))?;
        }
        Ok(())
    })?;
    let plan = GcOptions { age_min: Some(Span::ZERO), ..GcOptions::default() };
    let options = GcRunOptions { plan, ..GcRunOptions::default() };
    let done = namespace.gc_run(&namespace.gc_builtin()?, &options, |_| ())?;
    Ok(json!({
        "step": "summarize",
        "memories": done.sources,
        "summaries": done.summaries,
        "refused": done.refused + done.aborted,
        "tokens_before": done.tokens_before,
        "tokens_after": done.tokens_after,
        "recall_guard": done.recall_guard,
    }))
}
