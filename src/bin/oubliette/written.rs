//! What is told of a memory that was written: what became of it, and of its time.

use oubliette::memory::{ExpiresBy, Expiry, Fields};
use oubliette::report::ChainEnd;
use oubliette::{Decision, Error, Memory, MemoryId, Namespace, Outcome, Result, Time};
use serde_json::{Map, Value, json};

use crate::answers;
use crate::read::called;
use crate::story;

/// What a write has said of the time of its memory; its answer tells the rest.
#[derive(Clone, Copy)]
pub(crate) struct Said {
    /// The end of its life, if the write has said it.
    pub(crate) end: Option<Expiry>,
    /// Whether it has said until when the text is true.
    pub(crate) until: bool,
    /// Whether its answer names the instant from which the text is true.
    pub(crate) from: bool,
}

impl Said {
    /// What a draft or a patch has said.
    pub(crate) fn of(end: Option<Expiry>, fields: &Fields) -> Self {
        Said { end, until: fields.valid_to.is_given(), from: false }
    }
}

/// What is said of a life that was over as it was written.
pub(crate) const GONE: &str = "its life ended at once, and it is gone";

/// The answer to a write. It says when the life of what was written ended at once, when the payload of the earlier version stayed
/// behind, and what could not be read back.
pub(crate) fn written(team: &Namespace, outcome: &Outcome, now: &story::Present) -> Value {
    let mut answer = answers::outcome(team.name(), outcome);
    let Value::Object(members) = &mut answer else { return answer };
    if outcome.expires_at.is_some_and(|end| end <= now.at) {
        let is_there = !matches!(team.get(outcome.id), Ok(None));
        let told = if is_there { "its life ended at once: no search finds it" } else { GONE };
        members.insert("over".to_owned(), json!(told));
    }
    if let Decision::Revised { old } = outcome.decision.settled() {
        let carries = |id| -> Result<bool> { Ok(team.get(id)?.is_some_and(|memory| memory.has_payload)) };
        match carries(*old).and_then(|had| Ok(had && !carries(outcome.id)?)) {
            Ok(true) => drop(members.insert("payload_left_behind".to_owned(), json!(true))),
            Ok(false) => {}
            Err(why) => unreadable(members, &why),
        }
    }
    answer
}

/// The write is done, whatever becomes of what is read of it.
fn unreadable(members: &mut Map<String, Value>, why: &Error) {
    members.insert("unread".to_owned(), json!(why.to_string()));
}

/// The same, with a word where what was written is over already or is not true yet, so that nobody looks for it in vain, and where
/// its time is not the one that the write asked for.
pub(crate) fn told_time(team: &Namespace, mut answer: Value, said: Said, now: &story::Present) -> Value {
    let id = answer.get("id").and_then(Value::as_str).and_then(|id| id.parse::<MemoryId>().ok());
    let memory = id.map(|id| team.get(id)).transpose().map(Option::flatten);
    let Value::Object(members) = &mut answer else { return answer };
    let decision = members.get("decision").and_then(Value::as_str).unwrap_or_default().to_owned();
    match memory {
        Ok(Some(memory)) => {
            let told = time_told(team, &memory, (&decision, said), now);
            members.extend((!told.is_empty()).then(|| ("over".to_owned(), json!(told.join("; ")))));
        }
        Ok(None) => {}
        Err(why) => unreadable(members, &why),
    }
    answer
}

/// What is said of the time of a memory that was written.
fn time_told(
    team: &Namespace,
    memory: &Memory,
    (decision, said): (&str, Said),
    now: &story::Present,
) -> Vec<String> {
    let past = |end: Option<Time>| end.filter(|end| *end <= now.at).map(|end| story::local(end, now));
    if let Some(end) = past(memory.expires_at) {
        return vec![format!("its life ended {end}: no search finds it")];
    }
    if let Some(end) = past(memory.valid_to) {
        return vec![format!("it was true until {end}: only a search with --valid-at or --as-of finds it")];
    }
    let from = memory.valid_from.filter(|begin| *begin > now.at && !said.from).map(|begin| {
        format!("it is true from {} on, and no search finds it before", story::when(begin, now))
    });
    let is_revised = decision == "revised";
    let until = || until_told(team, memory, said, now);
    let until = (is_revised || said.until).then(until).flatten();
    [end_told(memory, (decision, said.end), now), until, from].into_iter().flatten().collect()
}

/// The end of a life that is not the one that the write asked for.
fn end_told(
    memory: &Memory,
    (decision, said): (&str, Option<Expiry>),
    now: &story::Present,
) -> Option<String> {
    match said {
        None => {
            let is_kept = decision == "revised" && memory.expires_by == ExpiresBy::Caller;
            let end = memory.expires_at.filter(|_| is_kept)?;
            let end = story::when(end, now);
            Some(format!("it ends {end}, as the text before (--expires-at never keeps it)"))
        }
        // Of two writes of one text the later end counts, and the text may have gained time by being written again.
        Some(asked) if decision == "reinforced" => {
            let asked = match asked {
                Expiry::At(end) => end,
                Expiry::After(span) => now.at.plus(span),
                Expiry::Tier | Expiry::Never => return None,
            };
            match memory.expires_at {
                None => Some("it never ends, as before".to_owned()),
                Some(end) if end > asked => Some(format!(
                    "it ends {}: of several ends of a text the latest counts",
                    story::when(end, now)
                )),
                Some(_) => None,
            }
        }
        Some(_) => None,
    }
}

/// Until when a memory is true, where the write has not said so: as the text before, or until what was announced takes its place.
fn until_told(team: &Namespace, memory: &Memory, said: Said, now: &story::Present) -> Option<String> {
    let end = memory.valid_to?;
    let name = memory.key().map_or_else(|| memory.id.to_string(), str::to_owned);
    let when = story::when(end, now);
    match next(team, memory) {
        Some(next) if next.valid_from == Some(end) => {
            let next = called(team, &next.id.to_string());
            Some(format!(
                "it is true until {when}, when {next} takes its place (`restore {name}` takes that back)"
            ))
        }
        _ if said.until => None,
        _ => Some(format!(
            "it is true until {when}, as the text before (`update {name} --clear valid_to` keeps it true)"
        )),
    }
}

/// The memory that is to take the place of one that is true still. What can't be read is not told.
fn next(team: &Namespace, memory: &Memory) -> Option<Memory> {
    match team.resolve(memory.superseded_by()?).ok()? {
        ChainEnd::Visible(id) | ChainEnd::Hidden(id) => team.get(id).ok()?,
        ChainEnd::Gone(_) => None,
    }
}
