//! The tools that write memories: one that is new, one that changes, one in the place of others.

use serde_json::{Map, Value, json};

use crate::engine::{Namespace, WriteOptions};
use crate::error::{Error, Result, sound};
use crate::exchange::{DraftLine, ParsedLine, parse_line};
use crate::limits::{CONTENT_BYTES_MAX, TAG_BYTES_MAX, TAGS_MAX};
use crate::model::{
    Decision, Draft, Expiry, Hint, KeptForOthers, Memory, MemoryId, Outcome, Patch, Span, SupersedeMode, Time,
};
use crate::tools::arguments::arguments;
use crate::tools::host::{Caller, Host};
use crate::tools::reading::{all, name, told, with_beginning};
use crate::tools::shape::{Member, Shape, at_least, bytes, list, text};

/// The ways in which a caller lets one memory take the place of another.
const MODES: [SupersedeMode; 3] =
    [SupersedeMode::Replaced, SupersedeMode::Correction, SupersedeMode::Duplicate];

/// The text of a memory.
fn content() -> Shape {
    bytes(CONTENT_BYTES_MAX)
}

fn tags() -> Member {
    list(bytes(TAG_BYTES_MAX), 0, TAGS_MAX).optional().about("Words to find it by, each a tag.")
}

fn importance() -> Member {
    Shape::Number { min: 0.0, max: Some(1.0) }.optional().about("How much it matters; 0.5 is usual.")
}

fn pinned() -> Member {
    Shape::Flag.optional().about("Whether maintenance must leave it alone.")
}

fn metadata() -> Member {
    Shape::Object.optional().about("More about it, by names of yours.")
}

fn ttl() -> Member {
    text(1, 40).optional().about(
        "After how long it ends, such as 30d or 12h, or never. Counts from valid_from if that is later.",
    )
}

/// The end of a memory by its `ttl`. One that has come would forget what is meant to be kept.
fn end(ttl: Option<&str>) -> Result<Option<Expiry>> {
    let Some(ttl) = ttl else { return Ok(None) };
    if ttl == "never" {
        return Ok(Some(Expiry::Never));
    }
    let refused = |why: &str| Error::invalid("ttl", why, ttl);
    match ttl.parse::<Span>() {
        Ok(span) if span > Span::ZERO => Ok(Some(Expiry::After(span))),
        Ok(_) => Err(refused(
            "must be longer than 0; `never` keeps a memory, and the tool forget_memory forgets one",
        )),
        Err(_) => Err(refused("must be a whole number with ms, s, m, h, d or w, such as 30d, or never")),
    }
}

fn happened_at() -> Member {
    text(1, 40).optional().about("When it happened, as 2026-01-31T12:00:00Z.")
}

arguments! {
    /// The arguments of `add_memory`.
    AddArguments {
        text: String = content().required().about("One fact, in words that can be understood alone.");
        key: Option<String> = name().optional()
            .about("A name of yours. The same key again corrects what it said; the end stays, unless ttl is given.");
        kind: Option<String> = text(1, 64).optional().about("knowledge (the default), event, profile, behavior, skill or message.");
        tags: Option<Vec<String>> = tags();
        pinned: Option<bool> = pinned();
        importance: Option<f64> = importance();
        ttl: Option<String> = ttl();
        happened_at: Option<String> = happened_at();
        metadata: Option<Value> = metadata();
    }
}

/// `add_memory`.
pub(super) fn add(host: &Host, args: AddArguments, _: &dyn Caller) -> Result<Value> {
    let line = line([
        ("text", json!(args.text)),
        ("key", json!(args.key)),
        ("kind", json!(args.kind)),
        ("tags", json!(args.tags)),
        ("pinned", json!(args.pinned)),
        ("importance", json!(args.importance)),
        ("happened_at", json!(args.happened_at)),
        ("metadata", json!(args.metadata)),
    ])?;
    let draft = Draft { expiry: end(args.ttl.as_deref())?, ..line.draft };
    // A server has one part of the namespace: what a model writes must be found by its searches.
    let how = WriteOptions { keep_part: true, ..WriteOptions::default() };
    let outcomes = host.namespace.add_all(vec![draft], &how)?;
    let outcome = outcomes.first().unwrap_or_else(|| unreachable!("each draft has an outcome"));
    written(&host.namespace, outcome)
}

arguments! {
    /// The arguments of `update_memory`.
    UpdateArguments {
        id: String = name().required().about("The id of the memory, or its key.");
        text: Option<String> = content().optional().about("The new text. The old one stays in the history.");
        tags: Option<Vec<String>> = tags();
        pinned: Option<bool> = pinned();
        importance: Option<f64> = importance();
        ttl: Option<String> = ttl();
        happened_at: Option<String> = happened_at();
        metadata: Option<Value> = metadata();
    }
}

/// `update_memory`: what is left out stays as it is.
pub(super) fn update(host: &Host, args: UpdateArguments, _: &dyn Caller) -> Result<Value> {
    let given = [
        ("tags", json!(args.tags)),
        ("pinned", json!(args.pinned)),
        ("importance", json!(args.importance)),
        ("happened_at", json!(args.happened_at)),
        ("metadata", json!(args.metadata)),
    ];
    let expiry = end(args.ttl.as_deref())?;
    if args.text.is_none() && expiry.is_none() && given.iter().all(|(_, value)| value.is_null()) {
        return Err(Error::invalid("text", "must be given, or another field to change", "nothing"));
    }
    // A line must have a text; a patch need not.
    let text = args.text.clone().unwrap_or_else(|| "-".to_owned());
    let draft = line(given.into_iter().chain([("text", json!(text))]))?.draft;
    let patch = Patch { text: args.text, fields: draft.fields, expiry, tags: draft.tags, ..Patch::new() };
    written(&host.namespace, &host.namespace.update(args.id, patch)?)
}

arguments! {
    /// The arguments of `supersede_memory`.
    SupersedeArguments {
        old_ids: Vec<String> = list(name(), 1, 50).required().about("Ids or keys of what is no longer true.");
        text: Option<String> = content().optional().about("What is true instead; it becomes a memory.");
        key: Option<String> = name().optional().about("With text, the name of the new memory [default: the first key of what is no longer true].");
        ttl: Option<String> = text(1, 40).optional()
            .about("With text, after how long it ends, such as 30d, or never [default: under a key, the end of the old text].");
        new_id: Option<String> = name().optional().about("The memory that is true instead.");
        mode: Option<SupersedeMode> = Shape::Word(MODES.iter().map(|mode| mode.as_str()).collect())
            .or(SupersedeMode::default().as_str())
            .about("replaced: it was true until now; correction: it was never true; duplicate: both say the same.");
    }
    one of text new_id;
}

/// `supersede_memory`.
pub(super) fn supersede(host: &Host, args: SupersedeArguments, _: &dyn Caller) -> Result<Value> {
    let mode = args.mode.unwrap_or_default();
    if let Some(new) = args.new_id {
        let refused = |(name, why): (&str, &str), given| {
            Err(Error::invalid(
                name,
                format!("must stand beside text: a memory that is there has its {why}"),
                given,
            ))
        };
        if let Some(key) = args.key {
            return refused(("key", "names"), key);
        }
        if let Some(ttl) = args.ttl {
            return refused(("ttl", "end"), ttl);
        }
        let done = host.namespace.supersede_all(args.old_ids.clone(), new.as_str(), mode, None)?;
        let id = host.namespace.explain(new.as_str())?.id;
        let mut answer = json!({ "id": id, "decision": "superseded", "superseded": args.old_ids });
        tell_others(&mut answer, &done.kept_for_others);
        tell_end(&mut answer, &host.namespace, id)?;
        return Ok(answer);
    }
    let mut draft = Draft::new(args.text.unwrap_or_default());
    draft.key = args.key;
    draft.expiry = end(args.ttl.as_deref())?;
    let outcome = host.namespace.replace(&args.old_ids, draft, mode, None)?;
    let mut answer = written(&host.namespace, &outcome)?;
    if let Value::Object(members) = &mut answer {
        members.insert("superseded".to_owned(), json!(args.old_ids));
    }
    Ok(answer)
}

/// The draft of a line with these members; null is none.
fn line<'m>(members: impl IntoIterator<Item = (&'m str, Value)>) -> Result<DraftLine> {
    let given = members.into_iter().filter(|(_, value)| !value.is_null());
    let line: Map<String, Value> = given.map(|(name, value)| (name.to_owned(), value)).collect();
    match parse_line(Value::Object(line).to_string().as_bytes(), false)? {
        ParsedLine::Draft(line) => Ok(*line),
        ParsedLine::Memory(_) | ParsedLine::Kept(_) => {
            Err(Error::invalid("text", "must be a memory, not a line of an export", "a line"))
        }
    }
}

/// What became of a write.
fn written(namespace: &Namespace, outcome: &Outcome) -> Result<Value> {
    let decision = outcome.decision.settled();
    let mut answer = json!({ "id": outcome.id, "decision": decision.as_str() });
    if let Value::Object(members) = &mut answer {
        members.extend(outcome.key.clone().map(|key| ("key".to_owned(), json!(key))));
        members.extend(outcome.policy_rule.clone().map(|rule| ("rule".to_owned(), json!(rule))));
        if let Decision::Revised { old } = decision {
            members.insert("old_id".to_owned(), json!(old));
        }
        let left = &outcome.not_taken;
        members.extend((!left.is_empty()).then(|| ("not_taken".to_owned(), json!(left))));
        let near = outcome.hints.iter().map(|hint| near(namespace, hint)).collect::<Result<Vec<Value>>>()?;
        members.extend((!near.is_empty()).then(|| ("near".to_owned(), json!(near))));
    }
    tell_others(&mut answer, &outcome.kept_for_others);
    tell_end(&mut answer, namespace, outcome.id)?;
    Ok(answer)
}

/// Adds to an answer which memories others keep.
fn tell_others(answer: &mut Value, kept: &[KeptForOthers]) {
    if let (Value::Object(members), false) = (answer, kept.is_empty()) {
        members.insert("kept_for_others".to_owned(), json!(kept));
    }
}

/// Adds to an answer when the memory that now says it ends: a text can have the end of the text before.
fn tell_end(answer: &mut Value, namespace: &Namespace, id: MemoryId) -> Result<()> {
    let Value::Object(members) = answer else { return Ok(()) };
    // The write has been done, whatever can be read of it.
    let Some(memory) = sound(namespace.get(id))?.flatten() else { return Ok(()) };
    for (name, end) in [("expires_at", memory.expires_at), ("valid_to", memory.valid_to)] {
        members.extend(end.map(|end| (name.to_owned(), json!(end))));
    }
    if let Some(end) = ended(&memory) {
        let note =
            format!("It was true until {end}: no search finds it. supersede_memory says what is true now.");
        members.insert("note".to_owned(), json!(note));
    }
    Ok(())
}

/// When a memory stopped to be true, if that was before it was written.
fn ended(memory: &Memory) -> Option<Time> {
    memory.valid_to.filter(|end| *end <= memory.updated_at.max(memory.recorded_at))
}

/// A memory that says nearly the same, with the beginning of what it says.
fn near(namespace: &Namespace, hint: &Hint) -> Result<Value> {
    let found = sound(namespace.get(hint.id))?.flatten();
    Ok(with_beginning(json!({ "id": hint.id, "why": hint.why }), found))
}

/// What a tool answers that writes.
pub(super) fn written_answer() -> Shape {
    let near = Shape::Open(vec![
        told().required().named("id"),
        told().required().named("why"),
        told().optional().about("The beginning of what it says.").named("text"),
    ]);
    let kept = Shape::Open(vec![
        told().required().named("id"),
        all(told()).required().about("The first of their keys.").named("keys"),
        at_least(0).required().about("How many they are, with and without a key.").named("writers"),
    ]);
    Shape::Open(vec![
        told().required().about("The memory that now says it.").named("id"),
        told().required().about("stored, unchanged, updated, reinforced, revised, aggregated, ignored, consolidated or superseded.").named("decision"),
        told().optional().named("key"),
        told().optional().about("The rule of the policy that decided.").named("rule"),
        told().optional().named("old_id"),
        told()
            .optional()
            .about("When it is forgotten; update_memory with another ttl, or never, changes that.")
            .named("expires_at"),
        told().optional().about("Until when it is true.").named("valid_to"),
        all(near).optional().about("Memories that say nearly the same.").named("near"),
        all(told())
            .optional()
            .about("What was given and the memory does not say: it stands for an earlier write as well.")
            .named("not_taken"),
        all(kept)
            .optional()
            .about("Memories that still say what was said before, for others who wrote it: update_memory or supersede_memory by this id is for all of them.")
            .named("kept_for_others"),
        all(told()).optional().named("superseded"),
        told().optional().about("Says so where no search finds it.").named("note"),
    ])
}
