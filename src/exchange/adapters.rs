//! Files of other memory tools, read as drafts.
//!
//! Keys are made from what the other tool holds fast, so that importing the same file twice stores nothing new.
//! The tag `import:<tool>:<date>` is the caller's to add.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::exchange::graph::Element;
use crate::exchange::line::wrong;
use crate::json::{self, WHOLE_NUMBERS};
use crate::limits::TAG_BYTES_MAX;
use crate::model::{Draft, Expiry, Time, check_text};

/// Reads one line of the file of the knowledge-graph server `server-memory`, of one of two sorts:
/// `{"type":"entity","name","entityType","observations":[…]}` gives a memory of the name of the entity, and one for each
/// observation, all in the category `entityType` and about the entity as subject.
/// `{"type":"relation","from","to","relationType"}` gives one about both.
///
/// An observation is written behind the name of its entity unless it contains it: alone it would not tell of
/// whom it speaks, and equal observations of two entities would be one memory.
///
/// # Errors
/// `Invalid` that names the member which is missing or of another type, or has no name of an entity within the bounds. Other bounds
/// are checked on writing.
///
/// ```
/// let line = br#"{"type":"entity","name":"Ann","entityType":"person","observations":["prefers tea"]}"#;
/// let drafts = oubliette::exchange::adapters::server_memory(line)?;
/// let texts: Vec<&str> = drafts.iter().map(|draft| draft.text.as_str()).collect();
/// assert_eq!(texts, ["Ann (person)", "Ann: prefers tea"]);
/// # Ok::<(), oubliette::Error>(())
/// ```
pub fn server_memory(line: &[u8]) -> Result<Vec<Draft>> {
    let value = document(line)?;
    match string(&value, "type")? {
        "entity" => entity(&value),
        "relation" => {
            let [from, to, relation] =
                [name(&value, "from")?, name(&value, "to")?, string(&value, "relationType")?];
            Ok(vec![Element::Relation { from, relation, to }.draft()])
        }
        other => Err(Error::invalid("type", "must be entity or relation", other)),
    }
}

fn entity(value: &Value) -> Result<Vec<Draft>> {
    let name = name(value, "name")?;
    let sort = string(value, "entityType")?;
    let list = value.get("observations").and_then(Value::as_array);
    let list =
        list.ok_or_else(|| Error::invalid("observations", "must be a list of texts", "something else"))?;
    // The entity stays when the last that was observed of it goes, in whatever way.
    let itself = Ok(Element::Entity { name, sort }.draft());
    let observation = |item: &Value| {
        let text = item.as_str().ok_or_else(|| Error::invalid("observations", "must be texts", item))?;
        Ok(Element::Observation { entity: name, sort, text }.draft())
    };
    std::iter::once(itself).chain(list.iter().map(observation)).collect()
}

/// Reads the answer of mem0's `get_all`, `{"results":[…],"relations":[…]}` or the bare list of results.
///
/// A result `{"id","memory","created_at","updated_at","categories","expiration_date","metadata",…}` gives a memory
/// with the key `mem0:<id>`; `user_id`, `agent_id`, `run_id` and whatever else it holds go into the metadata,
/// but not `hash` and `score`, which mem0 makes itself. A relation gives one about both its ends. An item of another form
/// is `Invalid` in its place, with the member which is missing or of another type. Bounds are checked on writing.
///
/// # Errors
/// `Invalid` for what is no answer.
///
/// ```
/// let answer = br#"{"results":[{"id":"7","memory":"Prefers tea","user_id":"ann"}]}"#;
/// let drafts = oubliette::exchange::adapters::mem0(answer)?;
/// assert_eq!(drafts[0].as_ref().unwrap().key.as_deref(), Some("mem0:7"));
/// # Ok::<(), oubliette::Error>(())
/// ```
pub fn mem0(document_text: &[u8]) -> Result<Vec<Result<Draft>>> {
    let (results, relations) = match document(document_text)? {
        Value::Array(results) => (results, Vec::new()),
        Value::Object(mut members) => match (members.remove("results"), members.remove("relations")) {
            (Some(Value::Array(results)), None | Some(Value::Null)) => (results, Vec::new()),
            (Some(Value::Array(results)), Some(Value::Array(relations))) => (results, relations),
            _ => {
                return Err(Error::invalid("results", "must be a list, and relations too", "something else"));
            }
        },
        other => return Err(Error::invalid("results", "must be an object with results, or a list", other)),
    };
    let relation = |item: &Value| {
        let [from, relation, to] =
            [string(item, "source")?, string(item, "relationship")?, string(item, "target")?];
        Ok(Element::Relation { from, relation, to }.draft())
    };
    let relations = relations.iter().map(relation);
    let results = results.into_iter().zip(raw_results(document_text)?);
    let result = |(item, raw): (Value, &RawValue)| match json::long_number(raw.get()) {
        Some(digits) => Err(wrong("results", WHOLE_NUMBERS, digits)),
        None => mem0_result(item),
    };
    Ok(results.map(result).chain(relations).collect())
}

/// The results as they stand in the document, with every digit of their numbers.
fn raw_results(text: &[u8]) -> Result<Vec<&RawValue>> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        results: Vec<&'a RawValue>,
    }
    let list = serde_json::from_slice(text);
    let list = list.or_else(|_| serde_json::from_slice(text).map(|Answer { results }| results));
    list.map_err(|why| Error::invalid("document", json::clean(&why), "results"))
}

fn mem0_result(item: Value) -> Result<Draft> {
    let id = string(&item, "id")?.to_owned();
    let mut draft = Draft::new(string(&item, "memory")?).key(format!("mem0:{id}"));
    let Value::Object(mut members) = item else {
        return Err(Error::invalid("results", "must be objects", item));
    };
    for made in ["id", "memory", "hash", "score"] {
        members.remove(made);
    }
    members.retain(|_, value| !value.is_null());
    for name in ["created_at", "updated_at"] {
        if let Some(value) = members.remove(name) {
            draft.fields.set_json(name, value)?;
        }
    }
    if let Some(end) = members.remove("expiration_date") {
        draft.expiry = Some(Expiry::At(instant("expiration_date", &end)?));
    }
    if let Some(categories) = members.remove("categories") {
        let names = serde_json::from_value(categories.clone());
        draft.categories =
            Some(names.map_err(|_| Error::invalid("categories", "must be a list of texts", categories))?);
    }
    let mut metadata = match members.remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        None => Map::new(),
        Some(other) => return Err(Error::invalid("metadata", "must be a JSON object", other)),
    };
    for (name, value) in members {
        metadata.entry(name).or_insert(value);
    }
    if !metadata.is_empty() {
        draft.fields.metadata = Some(Value::Object(metadata));
    }
    Ok(draft)
}

/// The instant of a member.
fn instant(name: &str, value: &Value) -> Result<Time> {
    let text = value.as_str().ok_or_else(|| Error::invalid(name, "must be a text", value))?;
    text.parse().map_err(|why| match why {
        Error::Invalid { why, value, .. } => Error::Invalid { field: name.to_owned(), why, value },
        why => why,
    })
}

fn document(text: &[u8]) -> Result<Value> {
    serde_json::from_slice(text).map_err(|why| {
        let shown: String = String::from_utf8_lossy(text).chars().take(80).collect();
        Error::invalid("document", why.to_string(), shown)
    })
}

/// The text of member `name`.
fn string<'a>(value: &'a Value, name: &str) -> Result<&'a str> {
    let member = value.get(name);
    let text = member.and_then(Value::as_str);
    text.ok_or_else(|| Error::invalid(name, "must be a text", member.unwrap_or(&Value::Null)))
}

/// The name of an entity, refused by its own member: the memory to be knows it as one of its entities.
fn name<'a>(value: &'a Value, member: &str) -> Result<&'a str> {
    let name = string(value, member)?;
    check_text(member, name, TAG_BYTES_MAX)?;
    Ok(name)
}

#[cfg(test)]
mod tests;
