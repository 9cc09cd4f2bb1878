//! Answers of the database as JSON.

use oubliette::exchange::{write_memory, write_tombstone};
use oubliette::memory::{Got, Tombstone};
use oubliette::report::{ForgetPlan, Forgotten};
use oubliette::{Decision, Effort, Memory, NamespaceName, Outcome, State};
use serde_json::{Value, json};

/// What became of a write.
pub(crate) fn outcome(namespace: &NamespaceName, outcome: &Outcome) -> Value {
    let mut document = json!({
        "id": outcome.id,
        "key": outcome.key,
        "decision": outcome.decision.as_str(),
        "into": into(outcome.decision.settled()).then_some(outcome.id),
        "rule": outcome.policy_rule.as_deref().unwrap_or(outcome.rule.0),
        "step": outcome.rule.0,
        "evidence": outcome.evidence,
        "hints": outcome.hints.iter().map(|hint| json!({ "id": hint.id, "why": hint.why })).collect::<Vec<_>>(),
        "not_taken": outcome.not_taken,
        "kept_for_others": outcome.kept_for_others,
        "expires_at": outcome.expires_at,
        "valid_to": outcome.valid_to,
        "pending": outcome.pending,
        "namespace": namespace,
        "partition": outcome.partition.to_string(),
        "policy": outcome.policy_number,
    });
    let Value::Object(members) = &mut document else { return document };
    if let Decision::Routed { inner, .. } = &outcome.decision {
        members.insert("inner".to_owned(), json!(inner.as_str()));
    }
    if let Decision::Revised { old } = outcome.decision.settled() {
        members.insert("old".to_owned(), json!(old));
    }
    if let Decision::Aggregated { aggregate, .. } = outcome.decision.settled() {
        members.insert("aggregate".to_owned(), json!(aggregate));
    }
    if let Some(event) = outcome.event {
        members.insert("event".to_owned(), json!(event));
    }
    document
}

/// Whether a write went into a memory that was there.
fn into(decision: &Decision) -> bool {
    matches!(decision, Decision::Reinforced | Decision::Consolidated | Decision::Aggregated { .. })
}

/// A memory as a line of an export, without its line feed.
pub(crate) fn memory_text(memory: &Memory, vector: bool) -> String {
    let mut line = Vec::new();
    write_memory(memory, vector, &mut line);
    String::from_utf8_lossy(&line).trim_end().to_owned()
}

/// A memory, or what stays of it, as a line of an export.
pub(crate) fn got_text(namespace: &NamespaceName, got: &Got, vector: bool) -> String {
    match got {
        Got::Memory(memory) => memory_text(memory, vector),
        Got::Tombstone(tombstone) => tombstone_text(namespace, tombstone, State::Tombstoned),
    }
}

/// What stays of a memory as a line of an export, with the id and the state where a memory has them.
pub(crate) fn tombstone_text(namespace: &NamespaceName, tombstone: &Tombstone, state: State) -> String {
    let mut line = Vec::new();
    write_tombstone(namespace, tombstone, &mut line);
    let mut text = String::from_utf8_lossy(&line).trim_end().to_owned();
    // What it is told in is one object.
    text.insert_str(text.len() - 1, &format!(",\"id\":\"{}\",\"state\":\"{state}\"", tombstone.id));
    text
}

/// How much of an index a search looks at, as query lines say it.
pub(crate) fn effort(effort: Effort) -> Value {
    match effort {
        // As it was typed, not as the nearest number of 64 bits.
        Effort::Recall(recall) => json!({ "recall": recall.to_string().parse::<f64>().ok() }),
        Effort::Ef(ef) => json!({ "ef": ef }),
        Effort::Exact => json!({ "exact": true }),
    }
}

/// What a forget did; `tombstones` is a count.
pub(crate) fn forgotten(done: &Forgotten) -> Value {
    let mut document = json!(done);
    if let Value::Object(members) = &mut document {
        members.insert("missing".to_owned(), json!(done.missing()));
        members.insert("tombstones".to_owned(), json!(done.tombstones.len()));
    }
    document
}

/// What a forget would do, and answer.
pub(crate) fn forget_plan(plan: &ForgetPlan, answer: Value) -> Value {
    let sample = plan.sample.iter();
    let sample = sample.map(|one| json!({ "id": one.id, "state": one.state.as_str(), "keys": one.keys }));
    json!({
        "dry_run": true,
        "memories": {
            "live": plan.live,
            "superseded": plan.superseded,
            "expired": plan.expired,
            "limbo": plan.limbo,
            "damaged": plan.damaged,
            "texts": plan.texts,
        },
        "sample": sample.collect::<Vec<_>>(),
        "answer": answer,
    })
}
