//! What does a JSON document say, if nothing of it may get lost?
//!
//! The usual reader keeps the last of two equal names. In a filter that would silently drop a condition, and forgetting by
//! that filter would remove memories that the caller meant to keep. So a [`Strict`] value refuses a name that stands twice,
//! and a refusal says where in the document it stands. Lines of an import, filters and policy documents are read here.
//!
//! The depth of a value is bounded by serde_json (128) and by toml. The caller bounds the bytes before it reads.

use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};
use serde_path_to_error::{Path, Segment};

use crate::limits::LINE_FIELDS_MAX;

/// Reads a value of a type, and nothing behind it.
///
/// # Errors
/// In words: what is wrong and, for a value of another type or bound, where it stands, as `links.0.to`.
pub(crate) fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Refusal> {
    serde_json::from_str(text).map_err(|error| {
        // Only a refusal pays for the place: noting it takes a copy of each name.
        let again = &mut serde_json::Deserializer::from_str(text);
        let told = error.is_data().then(|| serde_path_to_error::deserialize::<_, T>(again).err()).flatten();
        let pointer = told.as_ref().map(|told| pointer(told.path())).unwrap_or_default();
        let place = told.map(|told| place(told.path())).unwrap_or_default();
        Refusal { place, pointer, why: clean(&error), at: (error.line(), error.column()) }
    })
}

/// The value of a type in a value that was read already.
///
/// # Errors
/// As [`read`].
pub(crate) fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, Refusal> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let (place, pointer) = (place(error.path()), pointer(error.path()));
        Refusal { place, pointer, why: clean(&error.into_inner()), at: (0, 0) }
    })
}

/// Why a document was refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The value that is wrong, as names and positions between dots; empty for the document as a whole.
    pub(crate) place: String,
    /// The same value as a JSON pointer (RFC 6901).
    pub(crate) pointer: String,
    /// What is wrong with the value.
    pub(crate) why: String,
    /// Line and column of the place; zeros where they say nothing.
    pub(crate) at: (usize, usize),
}

impl Refusal {
    /// The refusal of the document as a whole.
    pub(crate) fn whole(why: String) -> Self {
        Refusal { place: String::new(), pointer: String::new(), why, at: (0, 0) }
    }
}

/// Reads a value in which nothing is lost: as [`Strict`], and with whole numbers that an integer holds.
///
/// # Errors
/// As [`read`], and for a whole number of more than 64 bits, without its place.
pub(crate) fn read_exact(text: &str) -> Result<Value, Refusal> {
    let Strict(value) = read(text)?;
    match long_number(text) {
        Some(digits) => {
            let digits: String = digits.chars().take(40).collect();
            Err(Refusal::whole(format!("{WHOLE_NUMBERS} (got {digits})")))
        }
        None => Ok(value),
    }
}

/// What a whole number must be that is kept with all of its digits.
pub(crate) const WHOLE_NUMBERS: &str =
    "must have whole numbers of at most 64 bits; a text keeps the digits of others";

/// A whole number of a JSON text that no integer of 64 bits holds: read as a float, it would lose digits.
pub(crate) fn long_number(json: &str) -> Option<&str> {
    let (mut rest, mut in_text) = (json, false);
    while let Some(at) =
        rest.find(|c: char| c == '"' || (!in_text && (c == '-' || c.is_ascii_digit())) || c == '\\')
    {
        let from = rest.get(at..)?;
        let taken = match from.as_bytes().first()? {
            b'"' => {
                in_text = !in_text;
                1
            }
            // What is escaped ends no text.
            b'\\' => 1 + from.chars().nth(1).map_or(0, char::len_utf8),
            _ => {
                let end =
                    from.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c)).unwrap_or(from.len());
                let number = from.get(..end)?;
                let whole = !number.contains(['.', 'e', 'E']);
                if whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return Some(number);
                }
                end
            }
        };
        rest = from.get(taken..)?;
    }
    None
}

fn place(path: &Path) -> String {
    let steps = path.iter().map(|segment| match segment {
        Segment::Seq { index } => index.to_string(),
        Segment::Map { key } => key.chars().take(40).collect(),
        Segment::Enum { variant } => variant.clone(),
        Segment::Unknown => "?".to_owned(),
    });
    steps.collect::<Vec<_>>().join(".")
}

fn pointer(path: &Path) -> String {
    let steps = path.iter().map(|segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => step(key),
        Segment::Enum { variant } => step(variant),
        Segment::Unknown => String::new(),
    });
    steps.collect()
}

/// One step of a JSON pointer: the name of a member, at most 40 characters of it.
pub(crate) fn step(name: &str) -> String {
    let name: String = name.chars().take(40).collect();
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The message of an error without line and column, because the document is often one value of a line, and without the words of the
/// reader.
pub(crate) fn clean(why: &serde_json::Error) -> String {
    const WORDS: [(&str, &str); 15] = [
        ("expected ident", "a value is not JSON"),
        ("expected value", "a value is not JSON"),
        ("EOF while parsing a value", "the JSON ends too early"),
        ("EOF while parsing", "the JSON ends too early, in"),
        ("trailing characters", "more follows behind the JSON"),
        ("expected f32", "expected a number"),
        ("expected f64", "expected a number"),
        ("expected i64", "expected a whole number of 64 bits"),
        ("expected u8", "expected a whole number, 0 or more"),
        ("expected u32", "expected a whole number, 0 or more"),
        ("expected u64", "expected a whole number, 0 or more"),
        ("expected usize", "expected a whole number, 0 or more"),
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected an object"),
        ("expected a string", "expected a text"),
    ];
    let mut told = why.to_string().split(" at line ").next().unwrap_or_default().to_owned();
    // The name of a type of ours means nothing to a caller.
    if let Some((before, after)) = told.split_once("expected struct ") {
        let after = after.trim_start_matches(char::is_alphanumeric);
        told = format!("{before}expected an object{after}");
    }
    WORDS.iter().fold(told, |told, (from, to)| told.replace(from, to))
}

/// Any value whose objects hold no name twice, and whose numbers are finite.
pub(crate) struct Strict(pub(crate) Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some((name, Strict(value))) = map.next_entry::<String, Strict>()? {
            if members.contains_key(&name) {
                let name: String = name.chars().take(40).collect();
                return Err(A::Error::custom(format!("the name {name:?} stands twice in one object")));
            }
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

/// The members of an object, in order, unread: a reader of each may then take its digits as they are.
pub(crate) struct Members<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            if members.len() == LINE_FIELDS_MAX {
                return Err(A::Error::custom(format!("more than {LINE_FIELDS_MAX} members")));
            }
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests;
