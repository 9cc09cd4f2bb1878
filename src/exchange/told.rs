//! Lines of an export that are no memories: tombstones, runs and their steps, families of messages in numbers, messages.
//! Each is an object of `namespace` and one member that says what it is.

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::exchange::line::{KeptLine, text, typed, wrong};
use crate::exchange::restore::{missing, tombstone};
use crate::exchange::write::Object;
use crate::json::Members;
use crate::limits::{
    CONTENT_BYTES_MAX, FIELD_BYTES_MAX, HOLDER_NUMBER_MAX, KEY_BYTES_MAX, SNIPPET_BYTES, SNIPPETS_MAX,
    at_most,
};
use crate::model::{
    Actor, Aggregate, ContextLog, Delta, Event, Evidence, Family, Goal, JournalRow, Kept, MemoryId,
    NamespaceName, RuleId, Run, RunId, Time, check_text, widened,
};

/// The members that make a line no memory.
const SORTS: [&str; 7] = ["tombstone", "run", "step", "aggregate", "event", "context", "goal"];

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
    let (mut namespace, mut found, mut family) = (None, None, None);
    for (name, raw) in members.0 {
        let twice = match name.as_str() {
            "namespace" => namespace.replace(text(&name, raw)?).is_some(),
            "family" if sort == "event" => family.replace(typed(&name, raw)?).is_some(),
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
        "aggregate" => {
            let aggregate = typed(sort, raw)?;
            check_aggregate(&aggregate)?;
            Kept::Aggregate(Box::new(aggregate))
        }
        "context" => Kept::Context(Box::new(typed(sort, raw)?)),
        "goal" => Kept::Goal(Box::new(typed(sort, raw)?)),
        _ => {
            let event = typed(sort, raw)?;
            check_event(&event, family.as_ref())?;
            Kept::Event(Box::new(event), family.map(Box::new))
        }
    };
    Ok(KeptLine { namespace, row })
}

/// Appends a run of which something can still be taken back as one JSON line, with its line feed.
///
/// ```
/// use oubliette::WriteOptions;
/// use oubliette::exchange::write_run;
/// # let folder = tempfile::tempdir()?;
/// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
/// let run = team.start_import()?;
/// team.add_all(vec!["Ann prefers tea".into()], &WriteOptions { run: Some(run), ..WriteOptions::default() })?;
/// let mut line = Vec::new();
/// write_run(team.name(), &team.runs_left()?[0], &mut line);
/// assert!(line.starts_with(br#"{"namespace":"team","run":{"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_run(namespace: &NamespaceName, run: &Run, out: &mut Vec<u8>) {
    let mut line = Object::begin(out);
    line.member("namespace", namespace);
    line.member("run", run);
    line.end_line();
}

/// Appends a context of the inclusion log as one JSON line, with its line feed.
///
/// ```
/// use oubliette::exchange::write_context;
/// use oubliette::memory::{ContextDraft, Inclusion};
/// # let folder = tempfile::tempdir()?;
/// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
/// let tea = team.add("Ann prefers tea")?.id;
/// team.context_log_write(&ContextDraft::new("turn-1", [Inclusion::new(tea, 12)]))?;
/// let mut line = Vec::new();
/// write_context(team.name(), &team.contexts(None, 1)?.items[0], &mut line);
/// assert!(line.starts_with(br#"{"namespace":"team","context":{"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_context(namespace: &NamespaceName, context: &ContextLog, out: &mut Vec<u8>) {
    let mut line = Object::begin(out);
    line.member("namespace", namespace);
    line.member("context", context);
    line.end_line();
}

/// Appends a goal as one JSON line, with its line feed.
///
/// ```
/// use oubliette::exchange::write_goal;
/// use oubliette::memory::GoalDraft;
/// # let folder = tempfile::tempdir()?;
/// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
/// let goal = team.set_goal(GoalDraft::new("Ship the release"))?;
/// let mut line = Vec::new();
/// write_goal(team.name(), &goal, &mut line);
/// assert!(line.starts_with(br#"{"namespace":"team","goal":{"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_goal(namespace: &NamespaceName, goal: &Goal, out: &mut Vec<u8>) {
    let mut line = Object::begin(out);
    line.member("namespace", namespace);
    line.member("goal", goal);
    line.end_line();
}

/// Appends a row of the journal that `undo` of its run asks for as one JSON line, with its line feed. Its number
/// and the policy of the time are not in it.
///
/// ```
/// use oubliette::exchange::write_step;
/// # let folder = tempfile::tempdir()?;
/// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
/// let ghent = team.add("Ann lives in Ghent")?.id;
/// let mut line = Vec::new();
/// write_step(team.name(), &team.history(ghent)?.events[0], &mut line);
/// assert!(line.starts_with(br#"{"namespace":"team","step":{"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_step(namespace: &NamespaceName, step: &JournalRow, out: &mut Vec<u8>) {
    let mut line = Object::begin(out);
    line.member("namespace", namespace);
    line.name("step");
    let mut object = Object::begin(line.out);
    let evidence = &step.evidence;
    object.member("run_id", &step.run);
    object.member("at", &step.at);
    object.member("op", &step.op);
    object.member("rule", step.rule.0);
    object.member("subject", &step.subject);
    object.maybe("holder", &step.holder);
    object.list("changes", &step.deltas);
    object.maybe("score", &evidence.score.map(widened));
    object.maybe("signature", &evidence.signature);
    object.list("members", &evidence.members);
    object.maybe("transferred", &evidence.transferred);
    object.end();
    line.end_line();
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
    changes: Vec<Delta>,
    score: Option<f32>,
    signature: Option<String>,
    #[serde(default)]
    members: Vec<MemoryId>,
    transferred: Option<u32>,
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
    if let Some(holder) = json.holder {
        at_most("step.holder", holder, HOLDER_NUMBER_MAX)?;
    }
    Ok(JournalRow {
        seq: 0,
        at: json.at,
        actor: Actor::Sweeper,
        run: Some(json.run_id),
        op,
        rule,
        subject: Some(json.subject),
        holder: json.holder,
        deltas: json.changes,
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
///
/// ```
/// use oubliette::exchange::write_aggregate;
/// use oubliette::memory::AuthorKind;
/// use oubliette::{Draft, Kind};
/// # let folder = tempfile::tempdir()?;
/// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
/// for n in 1..=8 {
///     let text = format!("Deploy of api number {n} done");
///     team.add(Draft::new(text).kind(Kind::Message).author_kind(AuthorKind::Bot))?;
/// }
/// let mut line = Vec::new();
/// write_aggregate(team.name(), &team.aggregates(None, 1)?.items[0], &mut line);
/// assert!(line.starts_with(br#"{"namespace":"team","aggregate":{"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_aggregate(namespace: &NamespaceName, aggregate: &Aggregate, out: &mut Vec<u8>) {
    let mut line = Object::begin(out);
    line.member("namespace", namespace);
    line.member("aggregate", aggregate);
    line.end_line();
}

/// Holds the numbers of a family to the bounds that the engine keeps.
fn check_aggregate(aggregate: &Aggregate) -> Result<()> {
    for (name, text) in [("scope", &aggregate.scope), ("slice", &aggregate.slice)] {
        bound("aggregate", name, text.as_deref(), FIELD_BYTES_MAX)?;
    }
    let each = |name, list: &[String], most| {
        list.iter().try_for_each(|text| bound("aggregate", name, Some(text), most))
    };
    bound("aggregate", "classification", Some(&aggregate.classification), FIELD_BYTES_MAX)?;
    each("authors_seen", &aggregate.authors_seen, FIELD_BYTES_MAX)?;
    each("example_snippets", &aggregate.example_snippets, SNIPPET_BYTES)?;
    each("recognition_signals", &aggregate.recognition_signals, FIELD_BYTES_MAX)?;
    if aggregate.example_snippets.len() > SNIPPETS_MAX {
        let why = format!("must have at most {SNIPPETS_MAX} entries");
        return Err(Error::invalid("aggregate.example_snippets", why, aggregate.example_snippets.len()));
    }
    let span = aggregate.ts_last.as_millis().abs_diff(aggregate.ts_first.as_millis());
    if aggregate.time_span != span {
        let why = format!("must be the time from ts_first to ts_last, {span}");
        return Err(Error::invalid("aggregate.time_span", why, aggregate.time_span));
    }
    Ok(())
}

/// Appends a message as one JSON line, with its line feed; `family` is the one that it began.
///
/// ```
/// use oubliette::exchange::write_event;
/// use oubliette::memory::{AuthorKind, EventQuery};
/// use oubliette::{Draft, Kind};
/// # let folder = tempfile::tempdir()?;
/// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
/// team.add(Draft::new("Deploy of api done").kind(Kind::Message).author_kind(AuthorKind::Bot))?;
/// let event = team.events(&EventQuery::default())?.items.remove(0);
/// let mut line = Vec::new();
/// write_event(team.name(), &event, team.family(event.id)?.as_ref(), &mut line);
/// assert!(line.starts_with(br#"{"namespace":"team","event":{"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_event(namespace: &NamespaceName, event: &Event, family: Option<&Family>, out: &mut Vec<u8>) {
    let mut line = Object::begin(out);
    line.member("namespace", namespace);
    line.member("event", event);
    line.maybe("family", &family);
    line.end_line();
}

/// Holds a message, and the family that it began, to the bounds that the engine keeps.
fn check_event(event: &Event, family: Option<&Family>) -> Result<()> {
    for (name, text) in [
        ("channel", &event.channel),
        ("thread", &event.thread),
        ("session", &event.session),
        ("author_id", &event.author_id),
    ] {
        bound("event", name, text.as_deref(), FIELD_BYTES_MAX)?;
    }
    bound("event", "key", event.key.as_deref(), KEY_BYTES_MAX)?;
    bound("event", "normalizer_id", Some(&event.normalizer_id), FIELD_BYTES_MAX)?;
    bound("event", "payload", event.payload.as_deref(), CONTENT_BYTES_MAX)?;
    let normalizer = family.map(|family| family.sim_normalizer.as_str());
    bound("family", "sim_normalizer", normalizer, FIELD_BYTES_MAX)
}

/// The bound of a text; an empty one says nothing that could be too long.
fn bound(of: &str, name: &str, text: Option<&str>, most: usize) -> Result<()> {
    match text.filter(|text| !text.is_empty()) {
        Some(text) => check_text(&format!("{of}.{name}"), text, most),
        None => Ok(()),
    }
}
