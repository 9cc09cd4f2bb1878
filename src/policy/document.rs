//! The document as text: TOML or JSON in, TOML out.

use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::de;
use serde_json::Map;
use serde_json::Number;
use serde_json::Value;

use super::groups::refused;
use crate::error::Error;
use crate::error::Result;
use crate::limits::POLICY_BYTES_MAX;
use crate::limits::POLICY_ITEMS_MAX;

/// Version of the document that this build reads and writes, as its key `format`.
pub const POLICY_FORMAT: u64 = 1;

/// Width that a written list keeps to.
const WIDTH: usize = 100;

/// How the text of a policy document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// TOML; `[ttl]` with `working = "72h"` and `ttl.working = "72h"` say the same.
    Toml,
    /// JSON; one object with an object for each group.
    Json,
}

/// The groups that the text gives, without the key `format`.
pub(super) fn parse(text: &str, syntax: Syntax) -> Result<Map<String, Value>> {
    if text.len() > POLICY_BYTES_MAX {
        let why = format!("must be at most {POLICY_BYTES_MAX} bytes (got {})", text.len());
        return Err(refused("document", why));
    }
    let Strict(document) = match syntax {
        Syntax::Toml => toml::from_str(text).map_err(|error| toml_error(text, &error))?,
        Syntax::Json => serde_json::from_str(text).map_err(|error| json_error(&error))?,
    };
    let Value::Object(mut groups) = document else {
        return Err(refused("document", "must be an object of groups"));
    };
    if let Some(format) = groups.shift_remove("format")
        && format.as_u64() != Some(POLICY_FORMAT)
    {
        return Err(refused("format", format!("must be {POLICY_FORMAT} (got {format})")));
    }
    Ok(groups)
}

fn toml_error(text: &str, error: &toml::de::Error) -> Error {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    refused(format!("line {}", before.matches('\n').count() + 1), error.message())
}

fn json_error(error: &serde_json::Error) -> Error {
    refused(format!("line {}", error.line()), error.to_string())
}

/// A value of which no table names a key twice, no list is too long and no number is infinite or NaN.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> de::Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of a policy document")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        // Adding 0.0 makes 0.0 of -0.0: equal documents are then written, and hashed, alike.
        Number::from_f64(value + 0.0).map(Value::Number).ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = list.next_element()? {
            if items.len() == POLICY_ITEMS_MAX {
                return Err(de::Error::custom(format!("a list has more than {POLICY_ITEMS_MAX} items")));
            }
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut table: A) -> Result<Value, A::Error> {
        let mut entries = Map::new();
        while let Some((key, Strict(value))) = table.next_entry::<String, Strict>()? {
            if entries.len() == POLICY_ITEMS_MAX {
                return Err(de::Error::custom(format!("a table has more than {POLICY_ITEMS_MAX} keys")));
            }
            if entries.contains_key(&key) {
                return Err(de::Error::custom(format!("the key {key:?} stands twice")));
            }
            entries.insert(key, value);
        }
        Ok(Value::Object(entries))
    }
}

/// All keys as a TOML document, a table for each group.
pub(super) fn write(entries: &[(String, Value)]) -> String {
    let mut text = format!("format = {POLICY_FORMAT}\n");
    let mut open = "";
    for (place, value) in entries {
        let (group, key) = place.rsplit_once('.').unwrap_or(("", place));
        if group != open {
            text.push_str(&format!("\n[{group}]\n"));
            open = group;
        }
        text.push_str(&format!("{key} = {}\n", written(key, value)));
    }
    text
}

/// A value; a list that is too wide for one line is broken into lines.
fn written(key: &str, value: &Value) -> String {
    let line = inline(value);
    let Value::Array(items) = value else { return line };
    if key.len() + 3 + line.len() <= WIDTH {
        return line;
    }
    let mut text = "[".to_owned();
    let mut column = WIDTH;
    for item in items {
        let item = inline(item);
        if column + item.len() + 2 > WIDTH {
            text.push_str("\n   ");
            column = 3;
        }
        text.push_str(&format!(" {item},"));
        column += item.len() + 2;
    }
    text + "\n]"
}

fn inline(value: &Value) -> String {
    match value {
        Value::Null => unreachable!("a checked policy has no empty value"),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(value) => quoted(value),
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Object(table) if table.is_empty() => "{}".to_owned(),
        Value::Object(table) => {
            let pairs = table.iter().map(|(key, value)| format!("{} = {}", bare(key), inline(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A key, without quotes where TOML allows it.
fn bare(key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if plain { key.to_owned() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
