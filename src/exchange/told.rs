//! Lines of an export that are no memories: tombstones, runs and their steps, families of messages in numbers, messages.
//! Each is an object of `namespace` and one member that says what it is.

use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::exchange::line::{KeptLine, text, typed, wrong};
use crate::exchange::restore::{missing, tombstone, unhex};
use crate::exchange::write::{Object, delta_json, hex};
use crate::json::Members;
use crate::limits::{CONTENT_BYTES_MAX, FIELD_BYTES_MAX, SNIPPET_BYTES, SNIPPETS_MAX};
use crate::model::{
    Actor, Aggregate, AggregateId, AggregateType, AuthorKind, Delta, Event, EventDecision, EventId, Evidence,
    Family, FamilyFingerprint, JournalRow, Kept, MemoryId, NamespaceName, Partition, RuleId, Run, RunId,
    Time, check_text, widened,
};

/// The members that make a line no memory.
const SORTS: [&str; 5] = ["tombstone", "run", "step", "aggregate", "event"];

/// What a line is that has one of [`SORTS`]; none of a memory, which has a text.
pub(super) fn sort_of(members: &Members<'_>) -> Option<&'static str> {
    if members.0.iter().any(|(name, _)| matches!(name.as_str(), "text" | "content")) {
        return None;
    }
    let named = |sort: &&str| members.0.iter().any(|(name, raw)| name == sort && raw.get().starts_with('{'));
    SORTS.into_iter().find(|sort| named(sort))
}

/// The row that a line of this sort tells of.
pub(super) fn read(members: Members<'_>, sort: &'static str) -> Result<KeptLine> {
    let (mut namespace, mut found) = (None, None);
    for (name, raw) in members.0 {
        let twice = match name.as_str() {
            "namespace" => namespace.replace(text(&name, raw)?).is_some(),
            name if name == sort => found.replace(raw).is_some(),
            _ => return Err(wrong(&name, format!("must not stand beside {sort}"), raw.get())),
        };
        if twice {
            return Err(wrong(&name, "must not stand twice", raw.get()));
        }
    }
    let namespace = namespace.flatten().map(|name| name.parse()).transpose()?;
    let raw = found.ok_or_else(|| missing(sort))?;
    let row = match sort {
        "tombstone" => Kept::Tombstone(tombstone(raw)?),
        "run" => Kept::Run(typed(sort, raw)?),
        "step" => Kept::Step(Box::new(step(typed(sort, raw)?)?)),
        "aggregate" => Kept::Aggregate(Box::new(aggregate(typed(sort, raw)?)?)),
        _ => event(typed(sort, raw)?)?,
    };
    Ok(KeptLine { namespace, row })
}

/// Appends a line of one member, which `write` writes.
fn write_line(namespace: &NamespaceName, sort: &str, out: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
    let mut line = Object::begin(out);
    line.member("namespace", namespace);
    line.name(sort);
    let mut object = Object::begin(line.out);
    write(&mut object);
    object.end();
    line.end();
    out.push(b'\n');
}

/// Appends a run of which something can still be taken back as one JSON line, with its line feed.
pub fn write_run(namespace: &NamespaceName, run: &Run, out: &mut Vec<u8>) {
    write_line(namespace, "run", out, |object| {
        object.member("id", &run.id);
        object.member("what", &run.sort);
        object.member("started_at", &run.started_at);
        object.member("state", &run.state);
        object.member("steps", &run.steps);
    });
}

/// Appends a row of the journal that `undo` of its run asks for as one JSON line, with its line feed. Its number
/// and the policy of the time are not in it.
pub fn write_step(namespace: &NamespaceName, step: &JournalRow, out: &mut Vec<u8>) {
    write_line(namespace, "step", out, |object| {
        let evidence = &step.evidence;
        object.member("run_id", &step.run);
        object.member("at", &step.at);
        object.member("op", &step.op);
        object.member("rule", step.rule.0);
        object.member("subject", &step.subject);
        object.maybe("holder", &step.holder);
        object.list("changes", &step.deltas.iter().map(delta_json).collect::<Vec<_>>());
        object.maybe("score", &evidence.score.map(widened));
        object.maybe("signature", &evidence.signature);
        object.list("members", &evidence.members);
        object.maybe("transferred", &evidence.transferred);
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepJson {
    run_id: RunId,
    at: Time,
    op: String,
    rule: String,
    subject: MemoryId,
    holder: Option<u32>,
    #[serde(default)]
    changes: Vec<DeltaJson>,
    score: Option<f32>,
    signature: Option<String>,
    #[serde(default)]
    members: Vec<MemoryId>,
    transferred: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeltaJson {
    field: String,
    before: Value,
    after: Value,
}

fn step(json: StepJson) -> Result<JournalRow> {
    let op = json.op.parse().ok().filter(|op| JournalRow::UNDONE.contains(op));
    let op = op.ok_or_else(|| Error::invalid("step.op", "must be what undo takes back", &json.op))?;
    let rule = RuleId::ALL.iter().copied().find(|rule| rule.0 == json.rule);
    let rule =
        rule.ok_or_else(|| Error::invalid("step.rule", "must be a rule of the journal", &json.rule))?;
    if json.score.is_some_and(|score| !score.is_finite()) {
        return Err(Error::invalid("step.score", "must be finite", format!("{:?}", json.score)));
    }
    let delta = |delta: DeltaJson| Delta { field: delta.field, before: delta.before, after: delta.after };
    Ok(JournalRow {
        seq: 0,
        at: json.at,
        actor: Actor::Sweeper,
        run: Some(json.run_id),
        op,
        rule,
        subject: Some(json.subject),
        holder: json.holder,
        deltas: json.changes.into_iter().map(delta).collect(),
        evidence: Evidence {
            score: json.score,
            signature: json.signature,
            members: json.members,
            transferred: json.transferred,
        },
        policy_number: 0,
        policy_hash: [0; 8],
    })
}

/// Appends the numbers of a family of messages as one JSON line, with its line feed.
pub fn write_aggregate(namespace: &NamespaceName, aggregate: &Aggregate, out: &mut Vec<u8>) {
    write_line(namespace, "aggregate", out, |object| {
        object.member("aggregate_id", &aggregate.id);
        object.member("type", &aggregate.aggregate_type);
        object.member("agent", &aggregate.partition.agent_name());
        object.member("scope", &aggregate.scope);
        object.member("family_id", &aggregate.family_id);
        object.member("slice", &aggregate.slice);
        object.member("first_event_id", &aggregate.first_event_id);
        object.member("last_event_id", &aggregate.last_event_id);
        object.member("ts_first", &aggregate.ts_first);
        object.member("ts_last", &aggregate.ts_last);
        object.member("dup_count", &aggregate.dup_count);
        object.member("authors_seen", &aggregate.authors_seen);
        object.member("example_event_ids", &aggregate.example_event_ids);
        object.member("example_snippets", &aggregate.example_snippets);
        let print = &aggregate.normalized_fingerprint;
        object.member("exact_hash", &print.exact_hash.map(|hash| hex(&hash)));
        object.member("simhash", &print.simhash.map(|hash| hex(&hash.to_be_bytes())));
        object.member("classification", &aggregate.classification);
        object.member("recognition_signals", &aggregate.recognition_signals);
        object.member("memory_id", &aggregate.memory_id);
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AggregateJson {
    aggregate_id: AggregateId,
    r#type: String,
    agent: Option<String>,
    scope: Option<String>,
    family_id: MemoryId,
    slice: Option<String>,
    first_event_id: EventId,
    last_event_id: EventId,
    ts_first: Time,
    ts_last: Time,
    dup_count: u64,
    authors_seen: Vec<String>,
    example_event_ids: Vec<EventId>,
    example_snippets: Vec<String>,
    exact_hash: Option<String>,
    simhash: Option<String>,
    classification: String,
    recognition_signals: Vec<String>,
    memory_id: Option<MemoryId>,
}

fn aggregate(json: AggregateJson) -> Result<Aggregate> {
    let texts = [("scope", &json.scope), ("slice", &json.slice)];
    texts
        .into_iter()
        .try_for_each(|(name, text)| bound("aggregate", name, text.as_deref(), FIELD_BYTES_MAX))?;
    let each = |name, list: &[String], most| {
        list.iter().try_for_each(|text| bound("aggregate", name, Some(text), most))
    };
    bound("aggregate", "classification", Some(&json.classification), FIELD_BYTES_MAX)?;
    each("authors_seen", &json.authors_seen, FIELD_BYTES_MAX)?;
    each("example_snippets", &json.example_snippets, SNIPPET_BYTES)?;
    each("recognition_signals", &json.recognition_signals, FIELD_BYTES_MAX)?;
    if json.example_snippets.len() > SNIPPETS_MAX {
        let why = format!("must have at most {SNIPPETS_MAX} entries");
        return Err(Error::invalid("aggregate.example_snippets", why, json.example_snippets.len()));
    }
    Ok(Aggregate {
        id: json.aggregate_id,
        aggregate_type: match json.r#type.as_str() {
            "exact" => AggregateType::Exact,
            "near" => AggregateType::Near,
            other => return Err(Error::invalid("aggregate.type", "must be exact or near", other)),
        },
        partition: Partition::of(json.agent.as_deref())?,
        scope: json.scope,
        family_id: json.family_id,
        slice: json.slice,
        first_event_id: json.first_event_id,
        last_event_id: json.last_event_id,
        ts_first: json.ts_first,
        ts_last: json.ts_last,
        dup_count: json.dup_count,
        time_span: json.ts_last.as_millis().abs_diff(json.ts_first.as_millis()),
        authors_seen: json.authors_seen,
        example_event_ids: json.example_event_ids,
        example_snippets: json.example_snippets,
        normalized_fingerprint: FamilyFingerprint {
            exact_hash: json.exact_hash.map(|hash| unhex("aggregate.exact_hash", &hash)).transpose()?,
            simhash: json.simhash.map(|hash| simhash("aggregate.simhash", &hash)).transpose()?,
        },
        classification: json.classification,
        recognition_signals: json.recognition_signals,
        memory_id: json.memory_id,
    })
}

/// Appends a message as one JSON line, with its line feed; `family` is the one that it began.
pub fn write_event(namespace: &NamespaceName, event: &Event, family: Option<&Family>, out: &mut Vec<u8>) {
    write_line(namespace, "event", out, |object| {
        object.member("event_id", &event.id);
        object.member("ts", &event.ts);
        object.member("agent", &event.partition.agent_name());
        object.member("channel", &event.channel);
        object.member("thread", &event.thread);
        object.member("session", &event.session);
        object.member("author_kind", &event.author_kind);
        object.member("author_id", &event.author_id);
        object.member("payload", &event.payload);
        object.member("normalized", &event.normalized);
        object.member("normalizer_id", &event.normalizer_id);
        object.member("attachment_sig", &event.attachment_sig);
        object.member("embed_sig", &event.embed_sig);
        object.member("dup_key", &event.dup_key.map(|key| hex(&key)));
        object.member("simhash", &event.simhash.map(|hash| hex(&hash.to_be_bytes())));
        object.member("aggregate_id", &event.aggregate_id);
        object.member("memory_id", &event.memory_id);
        object.member("run_id", &event.run);
        object.member("decision", &event.decision);
        object.maybe("family", &family);
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventJson {
    event_id: EventId,
    ts: Time,
    agent: Option<String>,
    channel: Option<String>,
    thread: Option<String>,
    session: Option<String>,
    author_kind: AuthorKind,
    author_id: Option<String>,
    payload: Option<String>,
    normalized: Option<String>,
    normalizer_id: String,
    attachment_sig: Option<String>,
    embed_sig: Option<String>,
    dup_key: Option<String>,
    simhash: Option<String>,
    aggregate_id: Option<AggregateId>,
    memory_id: Option<MemoryId>,
    run_id: Option<RunId>,
    decision: String,
    family: Option<Family>,
}

fn event(json: EventJson) -> Result<Kept> {
    for (name, text) in [
        ("channel", &json.channel),
        ("thread", &json.thread),
        ("session", &json.session),
        ("author_id", &json.author_id),
    ] {
        bound("event", name, text.as_deref(), FIELD_BYTES_MAX)?;
    }
    bound("event", "normalizer_id", Some(&json.normalizer_id), FIELD_BYTES_MAX)?;
    bound("event", "payload", json.payload.as_deref(), CONTENT_BYTES_MAX)?;
    if let Some(family) = &json.family {
        bound("event.family", "sim_normalizer", Some(&family.sim_normalizer), FIELD_BYTES_MAX)?;
    }
    let event = Event {
        id: json.event_id,
        ts: json.ts,
        partition: Partition::of(json.agent.as_deref())?,
        channel: json.channel,
        thread: json.thread,
        session: json.session,
        author_kind: json.author_kind,
        author_id: json.author_id,
        payload: json.payload,
        normalized: json.normalized,
        normalizer_id: json.normalizer_id,
        attachment_sig: json.attachment_sig,
        embed_sig: json.embed_sig,
        dup_key: json.dup_key.map(|key| unhex("event.dup_key", &key)).transpose()?,
        simhash: json.simhash.map(|hash| simhash("event.simhash", &hash)).transpose()?,
        aggregate_id: json.aggregate_id,
        memory_id: json.memory_id,
        run: json.run_id,
        decision: match json.decision.as_str() {
            "stored" => EventDecision::Stored,
            "reinforced" => EventDecision::Reinforced,
            "aggregated" => EventDecision::Aggregated,
            other => {
                let why = "must be stored, reinforced or aggregated";
                return Err(Error::invalid("event.decision", why, other));
            }
        },
    };
    Ok(Kept::Event(Box::new(event), json.family.map(Box::new)))
}

/// The bound of a text; an empty one says nothing that could be too long.
fn bound(of: &str, name: &str, text: Option<&str>, most: usize) -> Result<()> {
    match text.filter(|text| !text.is_empty()) {
        Some(text) => check_text(&format!("{of}.{name}"), text, most),
        None => Ok(()),
    }
}

fn simhash(field: &str, text: &str) -> Result<u64> {
    let digits = text.len() == 16 && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    u64::from_str_radix(text, 16)
        .ok()
        .filter(|_| digits)
        .ok_or_else(|| Error::invalid(field, "must be 16 hexadecimal digits", text))
}
