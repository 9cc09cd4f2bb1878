//! `access`: what is known of the use of memories.

use std::io::Write;
use std::path::Path;

use oubliette::exchange::Target;
use oubliette::maintain::utility;
use oubliette::policy::Policy;
use oubliette::{Error, Memory, MemoryId, Namespace, PageRequest, Scope, Snapshot, Time};
use serde_json::{Value, json};

use crate::arguments::AccessCommand;
use crate::maintain::{LEFT_OUT, empty, tell_damaged};
use crate::output::{Done, Failure, Output};
use crate::place::{Access, Place};
use crate::told;

/// `access`.
pub(crate) fn run(command: &AccessCommand, place: &Place, output: Output<'_>) -> Done {
    let AccessCommand::Export { file } = command;
    let database = place.open(Access::Read)?;
    let unknown = place.unknown_namespace(&database.namespaces()?, output)?;
    let namespace = database.snapshot()?.namespace(place.namespace()?)?;
    let (policy, _) = database.policy();
    let at = At { now: place.now(), policy: &policy };
    if file == Path::new("-") {
        let name = Path::new("standard output");
        let mut out = std::io::BufWriter::new(place.caller().output());
        let (_, damaged) = export(&namespace, at, &mut out, name)?;
        return tell_damaged(LEFT_OUT, shown(&damaged), output);
    }
    let mut target = Target::create(file)?;
    let (memories, damaged) = export(&namespace, at, &mut target, file)?;
    if let Some(named) = unknown.filter(|_| target.takes_a_place()) {
        return Err(empty(&named, place.caller().shown(file)));
    }
    target.finish()?;
    let mut document = json!({ "exported": memories });
    if let (false, Value::Object(members)) = (damaged.is_empty(), &mut document) {
        members.insert("damaged".to_owned(), json!(damaged));
    }
    output.done(&document, |_| {
        format!(
            "Wrote the use of {} to {}",
            told::of(memories, "memory", "memories"),
            place.caller().shown(file).display()
        )
    })?;
    tell_damaged(LEFT_OUT, shown(&damaged), output)
}

fn shown(damaged: &[MemoryId]) -> Vec<String> {
    damaged.iter().map(MemoryId::to_string).collect()
}

/// Writes a line for each memory, and says how many there are and which can't be read.
fn export(
    namespace: &Namespace<Snapshot>,
    at: At<'_>,
    out: &mut dyn Write,
    path: &Path,
) -> Result<(u64, Vec<MemoryId>), Failure> {
    let io = |source| Error::Io { action: "write", path: path.to_owned(), source };
    let mut request = PageRequest { scope: Scope::Any, limit: 1_000, ..PageRequest::default() };
    let (mut memories, mut damaged) = (0, Vec::new());
    loop {
        let page = namespace.list(&request)?;
        for memory in &page.items {
            writeln!(out, "{}", line(memory, at)).map_err(io)?;
            memories += 1;
        }
        damaged.extend(page.damaged);
        request.cursor = page.next;
        if request.cursor.is_none() {
            out.flush().map_err(io)?;
            return Ok((memories, damaged));
        }
    }
}

/// The instant of the export, and the policy that weighs.
#[derive(Clone, Copy)]
struct At<'p> {
    now: Time,
    policy: &'p Policy,
}

fn line(memory: &Memory, at: At<'_>) -> Value {
    json!({
        "id": memory.id,
        "key": memory.key(),
        "agent": memory.partition.agent_name(),
        "kind": memory.kind.to_string(),
        "tier": memory.tier,
        "bytes": memory.row_text.len(),
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
        "importance": memory.importance,
        "confidence": memory.confidence,
        "protected": memory.pinned || memory.admin_locked || memory.system_locked,
        "last_accessed": memory.last_accessed(),
        "access_count": memory.access_count(),
        "retrieval_count": memory.retrieval_count,
        "last_retrieved": memory.last_retrieved,
        "relevance_score_sum": memory.relevance_score_sum,
        "relevance_score_count": memory.relevance_score_count,
        "relevance_max": memory.relevance_max,
        "included_count_total": memory.included_count_total,
        "included_count_decay": memory.included_count_decay,
        "included_count_now": memory.included_count_at(at.now, at.policy.access.tau_days),
        "memory_utility_score": utility(memory, at.now, at.policy),
        "last_included_at": memory.last_included_at,
    })
}
