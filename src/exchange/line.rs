//! What a line says, and how its members are read.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use crate::error::{Error, Result};
use crate::limits::{FIELD_JSON_BYTES_MAX, LINE_FIELDS_MAX};
use crate::model::{Draft, Kept, Memory, NamespaceName};

/// What one line of an import says.
#[derive(Clone, Debug, PartialEq)]
pub enum ParsedLine {
    /// A memory to be.
    Draft(Box<DraftLine>),
    /// A memory of an export, with the fields that the engine keeps: to be put back as it was.
    Memory(Box<Memory>),
    /// What an export wrote besides memories: a tombstone, a run or a step of one, a message or a family of them.
    Kept(Box<KeptLine>),
}

/// A line that says what a caller wants remembered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DraftLine {
    /// The namespace, where the line names one.
    pub namespace: Option<NamespaceName>,
    /// The draft, whose bounds are checked when it is written.
    pub draft: Draft,
    /// What was read otherwise than it stands there: an unknown tier, an unknown significance.
    pub warnings: Vec<String>,
}

/// A line of an export that is no memory.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptLine {
    /// The namespace that it is of, where the line names one.
    pub namespace: Option<NamespaceName>,
    /// The row.
    pub row: Kept,
}

/// The members of the object that a line is, in order, unread.
pub(super) struct Members<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
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
        deserializer.deserialize_map(Object)
    }
}

/// Any JSON value whose objects hold no name twice.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> std::result::Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> std::result::Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(Strict)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let item = map.next_value_seed(Strict)?;
            if members.contains_key(&name) {
                return Err(A::Error::custom(format!("the name {name:?} stands twice")));
            }
            members.insert(name, item);
        }
        Ok(Value::Object(members))
    }
}

/// An error about the value of member `name`.
pub(super) fn wrong(name: &str, why: impl Into<String>, raw: &str) -> Error {
    Error::invalid(name, why, raw.chars().take(100).collect::<String>())
}

fn typed_text<'a, T: Deserialize<'a>>(name: &str, text: &'a str) -> Result<T> {
    serde_json::from_str(text).map_err(|why| mistyped(name, clean(&why), text))
}

/// An error about a value of another type. A type of ours has said a name and the value already.
pub(super) fn mistyped(name: &str, told: String, raw: &str) -> Error {
    let own = told.split_once(": ").and_then(|(_, told)| told.strip_suffix(')')?.rsplit_once(" (got "));
    match own {
        Some((bound, value)) => Error::invalid(name, bound, value),
        None => wrong(name, told, raw),
    }
}

/// The message of a JSON error without its place: within one member it would mislead.
pub(super) fn clean(why: &serde_json::Error) -> String {
    why.to_string().split(" at line ").next().unwrap_or_default().to_owned()
}

/// The value of member `name` as a type.
pub(super) fn typed<'a, T: Deserialize<'a>>(name: &str, raw: &'a RawValue) -> Result<T> {
    typed_text(name, raw.get())
}

/// The value of member `name`, its objects without a name twice.
pub(super) fn strict(name: &str, raw: &RawValue) -> Result<Value> {
    let text = raw.get();
    if text.len() > FIELD_JSON_BYTES_MAX {
        let why = format!("must be at most {FIELD_JSON_BYTES_MAX} bytes of JSON");
        return Err(Error::invalid(name, why, format!("{} bytes", text.len())));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Strict.deserialize(&mut deserializer).map_err(|why| wrong(name, clean(&why), text))
}

/// A text without NUL, none for null.
pub(super) fn text(name: &str, raw: &RawValue) -> Result<Option<String>> {
    let text: Option<String> = typed(name, raw)?;
    match text {
        Some(text) if text.contains('\0') => Err(wrong(name, "must not contain NUL", raw.get())),
        text => Ok(text),
    }
}
