//! The document as text: TOML or JSON in, TOML out.

use serde_json::{Map, Value};

use super::groups::refused;
use crate::error::{Error, Result};
use crate::json::Strict;
use crate::limits::{POLICY_BYTES_MAX, POLICY_KEY_STEPS_MAX};

/// Version of the document that this build reads and writes, as its key `format`.
pub const POLICY_FORMAT: u64 = 1;

/// Characters of a key that is too long, as the refusal shows them.
const PLACE_CHARS: usize = 40;
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
    let Strict(mut document) = match syntax {
        Syntax::Toml => toml::from_str(text).map_err(|error| toml_error(text, &error))?,
        Syntax::Json => serde_json::from_str(text).map_err(|error| json_error(&error))?,
    };
    without_negative_zero(&mut document);
    let Value::Object(mut groups) = document else {
        return Err(refused("document", "must be an object of groups"));
    };
    if let Some(format) = groups.shift_remove("format")
        && format.as_u64() != Some(POLICY_FORMAT)
    {
        return Err(refused("format", format!("must be {POLICY_FORMAT} (got {format})")));
    }
    if syntax == Syntax::Toml {
        // TOML has dotted keys of its own.
        return Ok(groups);
    }
    let mut nested = Map::new();
    for (key, value) in groups {
        let steps = key.split('.').count();
        if steps > POLICY_KEY_STEPS_MAX {
            let place: String = key.chars().take(PLACE_CHARS).collect();
            let why = format!("must be a key of at most {POLICY_KEY_STEPS_MAX} steps (got {steps})");
            return Err(refused(place, why));
        }
        nest(&mut nested, &key, &key, value)?;
    }
    Ok(nested)
}

/// Puts the value of a key into its group: `policy show --json` writes keys with dots.
fn nest(group: &mut Map<String, Value>, place: &str, key: &str, value: Value) -> Result<()> {
    match key.split_once('.') {
        None if group.contains_key(key) => Err(refused(place, "stands in the document twice")),
        None => {
            group.insert(key.to_owned(), value);
            Ok(())
        }
        Some((inner, rest)) => {
            let inner = group.entry(inner).or_insert_with(|| Value::Object(Map::new()));
            match inner {
                Value::Object(inner) => nest(inner, place, rest, value),
                _ => Err(refused(place, "is a key of a group that has a value itself")),
            }
        }
    }
}

fn toml_error(text: &str, error: &toml::de::Error) -> Error {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    refused(format!("line {}", before.matches('\n').count() + 1), error.message())
}

fn json_error(error: &serde_json::Error) -> Error {
    refused(format!("line {}", error.line()), error.to_string())
}

/// Makes 0.0 of every -0.0: equal documents are then written, and hashed, alike.
fn without_negative_zero(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() && number.as_f64() == Some(0.0) => *value = 0.0.into(),
        Value::Array(items) => items.iter_mut().for_each(without_negative_zero),
        Value::Object(table) => table.values_mut().for_each(without_negative_zero),
        _ => {}
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
