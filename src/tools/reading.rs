//! The tools that read memories: search, one memory, a list. What they answer is bounded by tokens.

use serde_json::{Map, Value, json};

use crate::error::{Error, Result, sound};
use crate::limits::{K_MAX, KEY_BYTES_MAX, TAG_BYTES_MAX};
use crate::model::{
    Filter, Hit, Kind, Memory, PageRequest, Parts, Query, Significance, State, Time, Tombstone, memory_fields,
};
use crate::recall::Got;
use crate::tools::arguments::arguments;
use crate::tools::budget::{Budget, cursor_at, position, rest};
use crate::tools::host::{Caller, Host};
use crate::tools::shape::{Member, Shape, bytes, integer, text};

/// Characters of a memory that an answer tells where it is about another one.
const SAMPLE_CHARS: usize = 120;

/// Bytes of the tags, and bytes of the metadata, that a list of memories tells: as JSON.
const BESIDE_BYTES: usize = 200;

/// What is said of hits that are not near.
const NO_FIT: &str =
    "No memory fits well: the hits are far from the question. Judge by their texts whether one answers it.";
/// What is said of a past of which a part is gone.
const PARTIAL: &str = "Maintenance has erased a part of that past: memories may be missing.";

/// The id or the key of a memory.
pub(super) fn name() -> Shape {
    bytes(KEY_BYTES_MAX)
}

fn cursor() -> Member {
    text(1, 1_024).optional().about("next_cursor of the last answer, to go on with it.")
}

fn tokens(default: u64) -> Member {
    integer(16, 64_000).or(default).about("Room for the texts of the answer; a token is four bytes.")
}

/// The member that says that a text was cut.
fn cut() -> Member {
    Shape::Flag.optional().about("Only the beginning of the text is told; get_memory tells all.").named("cut")
}

/// What is told of another memory, with the beginning of what it says where it can be read.
pub(super) fn with_beginning(mut told: Value, memory: Option<Memory>) -> Value {
    if let (Some(memory), Value::Object(members)) = (memory, &mut told) {
        members.insert("text".to_owned(), json!(memory.text.chars().take(SAMPLE_CHARS).collect::<String>()));
    }
    told
}

/// Adds what tells one memory of a list from another: when, and by which words of its writers. Long lists stay with `get_memory`.
fn tell_beside(members: &mut Map<String, Value>, memory: &Memory) {
    for (name, at) in [("happened_at", memory.happened_at), ("valid_from", memory.valid_from)] {
        members.extend(at.map(|at| (name.to_owned(), json!(at))));
    }
    for (name, value) in [("tags", json!(memory.tags)), ("metadata", memory.metadata.clone())] {
        let is_told = !is_nothing(&value) && value.to_string().len() <= BESIDE_BYTES;
        members.extend(is_told.then(|| (name.to_owned(), value)));
    }
}

/// The members that this adds.
fn beside() -> [Member; 4] {
    let short = "Only where they are short; get_memory tells all.";
    [
        told().optional().about("When it happened.").named("happened_at"),
        told().optional().about("From when on it is true.").named("valid_from"),
        all(told()).optional().about(short).named("tags"),
        Shape::Object.optional().about(short).named("metadata"),
    ]
}

/// A value that says nothing.
fn is_nothing(value: &Value) -> bool {
    value.is_null() || *value == json!([]) || *value == json!({}) || *value == json!(false)
}

/// A member of an answer that is a text of any length.
pub(super) fn told() -> Shape {
    Shape::Text { min: 0, max: None }
}

arguments! {
    /// The arguments of `search_memories`.
    SearchArguments {
        query: String = text(1, 4_000).required().about("What to find, in words: a question or a topic.");
        limit: Option<usize> = integer(1, 50).or(8).about("How many memories at most.");
        max_tokens: Option<usize> = tokens(1_500);
        cursor: Option<String> = cursor();
        kind: Option<String> = text(1, 64).optional().about("Only memories of this kind, such as knowledge or event.");
        tag: Option<String> = bytes(TAG_BYTES_MAX).optional().about("Only memories with this tag.");
        as_of: Option<String> = text(1, 40).optional().about("What was true at this time, as it was known then, as 2026-01-31T12:00:00Z.");
        valid_at: Option<String> = text(1, 40).optional().about("What was true at this time, as it is known now, with all corrections since.");
        allow_partial: Option<bool> = Shape::Flag.or(false)
            .about("With as_of: answer with what is left where maintenance has erased a part of that past.");
    }
}

/// `search_memories`. Its hits count as retrieved.
pub(super) fn search(host: &Host, args: SearchArguments, _: &dyn Caller) -> Result<Value> {
    let offset = args.cursor.as_deref().map_or(Ok(0), position)?;
    let room = K_MAX.checked_sub(offset).filter(|room| *room > 0).ok_or_else(|| {
        Error::invalid("cursor", format!("must be below {K_MAX}: nobody reads so many hits"), offset)
    })?;
    let limit = args.limit.unwrap_or(8).min(room);
    let mut query = Query::text(args.query).k(limit).offset(offset).track(true);
    query.filter = filter(args.kind.as_deref(), args.tag.as_deref())?;
    if let Some(at) = &args.as_of {
        query = query.as_of(time("as_of", at)?).allow_partial(args.allow_partial.unwrap_or(false));
    }
    if let Some(at) = &args.valid_at {
        query = query.valid_at(time("valid_at", at)?);
    }
    let tokens = args.max_tokens.unwrap_or(1_500);
    let given = |hits: &[Hit]| {
        let mut budget = Budget::new(tokens);
        hits.iter().take_while(|hit| budget.take(&hit.text).is_some()).count()
    };
    let (found, left_out) = host.namespace.search_given(query, given).map_err(|error| match error {
        Error::Invalid { field, value, .. } if field == "as_of" => {
            Error::invalid("as_of", "must not lie ahead", value)
        }
        error => error,
    })?;
    let is_partial = found.plan.past.as_ref().is_some_and(|past| past.horizon.is_some());
    let found = found.hits;
    let fits = found.first().is_none_or(Hit::is_relevant) || offset > 0;
    let mut budget = Budget::new(tokens);
    let mut hits = Vec::new();
    for hit in &found {
        let Some((text, is_whole)) = budget.take(&hit.text) else { break };
        // A damaged holder keeps nobody from being told the text.
        let memory = sound(host.namespace.get(hit.id))?.flatten();
        // Three digits say all that a reader makes of a score.
        let score = (f64::from(hit.score) * 1e3).round() / 1e3;
        let relevance = (f64::from(hit.relevance) * 1e3).round() / 1e3;
        let mut one = json!({ "id": hit.id, "text": text, "score": score, "relevance": relevance });
        if let Value::Object(members) = &mut one {
            members.extend(hit.key.clone().map(|key| ("key".to_owned(), json!(key))));
            members.extend((!is_whole).then(|| ("cut".to_owned(), json!(true))));
            if let Some(memory) = memory {
                members.insert("kind".to_owned(), json!(memory.kind));
                members.insert("created_at".to_owned(), json!(memory.created_at));
                let stands_for = (memory.kind == Kind::Summary).then_some(memory.sources.len());
                members.extend(stands_for.map(|count| ("stands_for".to_owned(), json!(count))));
                tell_beside(members, &memory);
            }
        }
        hits.push(one);
    }
    let is_last = left_out == 0 && found.len() < limit || offset + hits.len() >= K_MAX;
    let next = (!is_last).then(|| (offset + hits.len()).to_string());
    let mut answer = json!({ "hits": hits });
    let notes: Vec<&str> =
        [(!fits).then_some(NO_FIT), is_partial.then_some(PARTIAL)].into_iter().flatten().collect();
    if let (Value::Object(members), false) = (&mut answer, notes.is_empty()) {
        members.insert("note".to_owned(), json!(notes.join(" ")));
    }
    Ok(with_next(answer, next))
}

/// What `search_memories` answers.
pub(super) fn search_answer() -> Shape {
    let mut hit = vec![
        told().required().named("id"),
        told().required().named("text"),
        Shape::Any.required().named("score"),
        Shape::Any.required().about("How likely it answers the question, 0 to 1.").named("relevance"),
        told().optional().named("key"),
        cut(),
        told().optional().named("kind"),
        told().optional().named("created_at"),
        integer(0, u64::MAX)
            .optional()
            .about("Of a summary: the number of memories in its place.")
            .named("stands_for"),
    ];
    hit.extend(beside());
    Shape::Open(vec![
        all(Shape::Open(hit)).required().named("hits"),
        told().optional().about("Says so where no memory fits well, or some may be missing.").named("note"),
        told().optional().named("next_cursor"),
    ])
}

/// A list of any length.
pub(super) fn all(of: Shape) -> Shape {
    Shape::List { of: Box::new(of), min: None, max: None, unique: false }
}

arguments! {
    /// The arguments of `get_memory`.
    GetArguments {
        id: String = name().required().about("The id of the memory, or its key.");
        max_tokens: Option<usize> = tokens(4_000);
        cursor: Option<String> = cursor();
    }
}

/// `get_memory`: in any state; of one that is gone, what is left of it.
pub(super) fn get(host: &Host, args: GetArguments, _: &dyn Caller) -> Result<Value> {
    match host.namespace.look_up(args.id, false)? {
        Got::Memory(memory) => {
            let (at, text) = rest(&memory.text, args.cursor.as_deref())?;
            let taken = Budget::new(args.max_tokens.unwrap_or(4_000)).take(text);
            let (text, is_whole) = taken.unwrap_or_default();
            let next = (!is_whole).then(|| cursor_at(&memory.text, at + text.len()));
            Ok(with_next(one(&memory, text), next))
        }
        Got::Tombstone(gone) => Ok(left_of(&gone)),
    }
}

/// As [`get`], with the whole text: of one instant, which the parts of several answers are not.
#[cfg(feature = "mcp")]
pub(super) fn get_whole(host: &Host, name: String) -> Result<Value> {
    Ok(match host.namespace.look_up(name, false)? {
        Got::Memory(memory) => one(&memory, &memory.text),
        Got::Tombstone(gone) => left_of(&gone),
    })
}

/// What is left of a memory that is gone.
fn left_of(gone: &Tombstone) -> Value {
    let mut answer = json!({
        "id": gone.id, "state": "tombstoned", "text": "", "reason": gone.reason, "removed_at": gone.deleted_at,
    });
    if let Value::Object(members) = &mut answer {
        members.extend(gone.replaced_by.map(|by| ("replaced_by".to_owned(), json!(by))));
    }
    answer
}

/// What `get_memory` answers.
pub(super) fn get_answer() -> Shape {
    Shape::Open(vec![
        told().required().named("id"),
        told().required().named("state"),
        told().required().named("text"),
        told().optional().about("From when on it is true.").named("valid_from"),
        told().optional().about("Until when it is true.").named("valid_to"),
        told().optional().about("What takes its place: at valid_to, while it is live.").named("replaced_by"),
        told().optional().about("Of one that is gone: why.").named("reason"),
        told().optional().about("Of one that is gone: since when.").named("removed_at"),
        Shape::Flag.optional().about("Whether it carries a payload, which no tool tells.").named("payload"),
        told().optional().named("next_cursor"),
    ])
}

/// A number with the digits that it was given.
fn figure(number: Option<f32>) -> Value {
    json!(number.and_then(|number| number.to_string().parse::<f64>().ok()))
}

/// Tells a field of the table, if it stands in the content of a memory and its value is not that of a new memory.
macro_rules! told_of {
    (content, apart, $tell:ident, $name:ident, $value:expr) => {};
    (content, $json:ident, $tell:ident, $name:ident, $value:expr) => {
        if $value != Parts::defaults().content.$name {
            $tell(stringify!($name), json!($value));
        }
    };
    ($part:ident, $json:ident, $tell:ident, $name:ident, $value:expr) => {};
}

macro_rules! tell_content {
    (own { $($own:tt)+ } $($part:ident { $(
        $(#[$doc:meta])*
        $number:literal $name:ident: $wrap:ident<$ty:ty> = $default:expr, $($place:ident).+, $bound:ident, $json:ident,
        $journal:ident, $merge:ident, $sample:literal;
    )+ })+) => {
        /// The fields of the content that say something.
        fn tell_content(memory: &Memory, tell: &mut dyn FnMut(&str, Value)) {
            $($(told_of!($part, $json, tell, $name, memory.$name);)+)+
        }
    };
}

memory_fields!(tell_content);

/// A memory with the fields that are set, but for counts of its use.
fn one(memory: &Memory, text: &str) -> Value {
    let mut members = Map::new();
    let mut tell = |name: &str, value: Value| {
        if !is_nothing(&value) {
            members.insert(name.to_owned(), value);
        }
    };
    tell("id", json!(memory.id));
    // What another memory is to replace at an instant ahead is true until then.
    tell("state", json!(if memory.also.is_some() { State::Live } else { memory.state }));
    tell("text", json!(text));
    tell("keys", json!(memory.keys));
    tell("agent", json!(memory.partition.agent_name()));
    tell("kind", json!(memory.kind));
    tell("tier", json!(memory.tier));
    tell("tags", json!(memory.tags));
    tell("pinned", json!(memory.pinned));
    tell("importance", figure(Some(memory.importance)));
    tell("confidence", figure(memory.confidence));
    tell("significance", json!(Some(memory.significance).filter(|given| *given != Significance::default())));
    tell_content(memory, &mut tell);
    let author = (memory.author_kind.is_some() || memory.author_id.is_some())
        .then(|| json!({ "kind": memory.author_kind, "id": memory.author_id }));
    tell("author", json!(author));
    tell("categories", json!(memory.categories));
    tell("entities", json!(memory.entities));
    tell("links", json!(memory.links));
    tell("payload", json!(memory.has_payload));
    tell("created_at", json!(memory.created_at));
    tell("happened_at", json!(memory.happened_at));
    tell("expires_at", json!(memory.expires_at));
    tell("valid_from", json!(memory.valid_from));
    tell("valid_to", json!(memory.valid_to));
    tell("replaced_by", json!(memory.superseded.as_ref().map(|superseded| superseded.by)));
    tell("sources", json!(memory.sources));
    tell("source_forgotten", json!(Some(memory.source_forgotten).filter(|count| *count > 0)));
    Value::Object(members)
}

arguments! {
    /// The arguments of `list_memories`.
    ListArguments {
        limit: Option<usize> = integer(1, 100).or(20).about("How many memories at most.");
        max_tokens: Option<usize> = tokens(1_500);
        cursor: Option<String> = cursor();
        kind: Option<String> = text(1, 64).optional().about("Only memories of this kind.");
        tag: Option<String> = bytes(TAG_BYTES_MAX).optional().about("Only memories with this tag.");
        oldest_first: Option<bool> = Shape::Flag.or(false).about("true begins with the oldest.");
    }
}

/// `list_memories`, the newest first.
pub(super) fn list(host: &Host, args: ListArguments, _: &dyn Caller) -> Result<Value> {
    let request = PageRequest {
        filter: filter(args.kind.as_deref(), args.tag.as_deref())?,
        newest_first: !args.oldest_first.unwrap_or(false),
        limit: args.limit.unwrap_or(20),
        cursor: args.cursor,
        ..PageRequest::default()
    };
    let tokens = args.max_tokens.unwrap_or(1_500);
    let fits = |memories: &[Memory]| {
        let mut budget = Budget::new(tokens);
        memories.iter().take_while(|memory| budget.take(&memory.text).is_some()).count()
    };
    let page = host.namespace.list_given(&request, fits)?;
    let mut budget = Budget::new(tokens);
    let mut items = Vec::new();
    for memory in &page.items {
        let Some((text, is_whole)) = budget.take(&memory.text) else { break };
        let mut item = json!({
            "id": memory.id, "text": text, "kind": memory.kind, "created_at": memory.created_at,
        });
        if let Value::Object(members) = &mut item {
            members.extend(memory.key().map(|key| ("key".to_owned(), json!(key))));
            members.extend((!is_whole).then(|| ("cut".to_owned(), json!(true))));
            tell_beside(members, memory);
        }
        items.push(item);
    }
    Ok(with_next(json!({ "items": items }), page.next))
}

/// What `list_memories` answers.
pub(super) fn list_answer() -> Shape {
    let mut item = vec![
        told().required().named("id"),
        told().required().named("text"),
        told().required().named("kind"),
        told().required().named("created_at"),
        told().optional().named("key"),
        cut(),
    ];
    item.extend(beside());
    Shape::Open(vec![
        all(Shape::Open(item)).required().named("items"),
        told().optional().named("next_cursor"),
    ])
}

fn with_next(mut answer: Value, next: Option<String>) -> Value {
    if let Value::Object(members) = &mut answer {
        members.extend(next.map(|next| ("next_cursor".to_owned(), json!(next))));
    }
    answer
}

/// Memories of a kind and with a tag.
fn filter(kind: Option<&str>, tag: Option<&str>) -> Result<Option<Filter>> {
    let wanted: Map<String, Value> = [("kind", kind), ("tags", tag)]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), json!(value?))))
        .collect();
    if wanted.is_empty() {
        return Ok(None);
    }
    // The filter is not what the caller wrote.
    let filter = Filter::from_json(&Value::Object(wanted)).map_err(|error| match error {
        Error::Invalid { field, why, value } => {
            let name = if field.ends_with("tags") { "tag" } else { "kind" };
            Error::Invalid { field: name.to_owned(), why, value }
        }
        error => error,
    });
    filter.map(Some)
}

/// An instant.
fn time(field: &str, text: &str) -> Result<Time> {
    text.parse().map_err(|_| Error::invalid(field, "must be a time such as 2026-01-31T12:00:00Z", text))
}
