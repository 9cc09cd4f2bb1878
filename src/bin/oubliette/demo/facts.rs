//! The chapter on facts that change and facts that end: what patrols said of the agents at work.

use oubliette::clock::ManualClock;
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::SupersedeMode;
use oubliette::{Database, Draft, Error, Namespace, Query, Result, Span, Time};
use serde_json::{Value, json};

use crate::demo::data;

/// Where these facts lie.
const NAMESPACE: &str = "rounds";
/// A report of an agent at work, and the report after it, by which that is no longer true.
const AT_WORK: &str = "furiosa tracer bullet on gt-oiv0";
/// What is asked of both.
const QUESTION: &str = "What does furiosa work on?";
/// A report that tells of the moment alone, and what is asked of it.
const PASSING: &str = "5 polecats now active (Batch 2)";
const PASSING_QUESTION: &str = "How many polecats are active?";
/// How long it is true.
const LIFE: Span = Span::from_hours(1);

/// Lets a report take the place of an earlier one, and another one end.
pub(super) fn tell(database: &Database, clock: &ManualClock) -> Result<[Value; 2]> {
    let (namespace, reports) = (database.namespace(NAMESPACE)?, data::reports()?);
    Ok([supersede(&namespace, &reports)?, expire(&namespace, &reports, clock)?])
}

fn supersede(namespace: &Namespace, reports: &[Draft]) -> Result<Value> {
    let mut pair = reports.iter().skip_while(|report| !report.text.contains(AT_WORK)).cloned();
    let (Some(earlier), Some(later)) = (pair.next(), pair.next()) else { return Err(missing(AT_WORK)) };
    let (Some(from), Some(changed)) = (earlier.fields.created_at, later.fields.created_at) else {
        return Err(missing("created_at"));
    };
    let old = namespace.add(earlier)?.id;
    let new = namespace.add(later)?.id;
    namespace.supersede_all([old], new, SupersedeMode::Replaced, Some(changed))?;
    // The one was true until the other was written.
    let answers = [from, changed].map(|at| Ok(json!({ "at": at, "text": answer(namespace, Some(at))? })));
    let answers = answers.into_iter().collect::<Result<Vec<Value>>>()?;
    let now = answer(namespace, None)?;
    Ok(json!({ "step": "supersede", "asked": QUESTION, "answers": answers, "now": now }))
}

/// The first answer to the question, of what was true at an instant.
fn answer(namespace: &Namespace, at: Option<Time>) -> Result<String> {
    let query = Query::text(QUESTION).k(1);
    let query = at.into_iter().fold(query, Query::valid_at);
    Ok(namespace.search(query)?.hits.into_iter().next().map(|hit| hit.text).unwrap_or_default())
}

fn expire(namespace: &Namespace, reports: &[Draft], clock: &ManualClock) -> Result<Value> {
    let report = reports.iter().find(|report| report.text.contains(PASSING));
    let report = report.cloned().ok_or_else(|| missing(PASSING))?;
    let (text, id) = (report.text.clone(), namespace.add(report.expiry(LIFE))?.id);
    let finds = || -> Result<bool> {
        Ok(namespace.search(Query::text(PASSING_QUESTION))?.hits.iter().any(|hit| hit.id == id))
    };
    let before = finds()?;
    clock.advance(LIFE);
    let after = finds()?;
    let done = namespace.maintain_with(&MaintainOptions::live().passes([Pass::Expire]))?;
    let removed = done.passes.iter().map(|pass| pass.tombstoned).sum::<u64>();
    Ok(
        json!({ "step": "expire", "text": text, "life": LIFE, "found_before": before, "found_after": after, "removed": removed }),
    )
}

fn missing(what: &str) -> Error {
    Error::invalid("reports.jsonl", "must have the report that the demo tells of", what)
}
