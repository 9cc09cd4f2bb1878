//! Repairs of a summary that are certain: they change no statement of it.

use serde_json::{Map, Value, json};

use crate::model::Time;
use crate::text::canonical;

use super::document::{Fault, MEMBERS, PATTERN_MEMBERS, SPAN_MEMBERS, below, value_of};

/// The members that are lists of texts.
const LISTS: [&str; 5] = ["summary", "decisions", "open_loops", "entities", "source_ids"];

/// The value of an answer, repaired, and what was repaired.
///
/// # Errors
/// There is no object in the answer, or it is no JSON.
pub(super) fn repaired(text: &str, committing: &[String]) -> Result<(Value, Vec<Fault>), Vec<Fault>> {
    let mut repairs = Vec::new();
    let mut value = outermost(text, &mut repairs)?;
    if let Value::Object(members) = &mut value {
        keep_known("", members, MEMBERS, &mut repairs);
        if let Some(Value::Object(span)) = members.get_mut("time_range") {
            keep_known("/time_range", span, SPAN_MEMBERS, &mut repairs);
            for name in ["start", "end"] {
                milliseconds(span, name, &mut repairs);
            }
        }
        for list in LISTS {
            wrap("", members, list, &mut repairs);
        }
        if let Some(Value::Array(patterns)) = members.get_mut("spam_patterns") {
            for (number, pattern) in patterns.iter_mut().enumerate() {
                if let Value::Object(pattern) = pattern {
                    let at = format!("/spam_patterns/{number}");
                    keep_known(&at, pattern, PATTERN_MEMBERS, &mut repairs);
                    wrap(&at, pattern, "signals", &mut repairs);
                }
            }
        }
        if !members.contains_key("source_ids") {
            members.insert("source_ids".to_owned(), json!(committing));
            repairs.push(Fault::new("/source_ids", "was absent, and is now the memories to be summarized"));
        }
    }
    Ok((value, repairs))
}

/// The first object of a text that is JSON.
fn outermost(text: &str, repairs: &mut Vec<Fault>) -> Result<Value, Vec<Fault>> {
    let whole = value_of(text);
    if !matches!(&whole, Err(faults) if faults.iter().all(|fault| fault.pointer.is_empty())) {
        return whole;
    }
    let mut from = 0;
    while let Some(range) = next_object(text, from) {
        from = range.end;
        if let Some(Ok(value)) = text.get(range).map(value_of) {
            repairs.push(Fault::new("", "the text around the object was left out"));
            return Ok(value);
        }
    }
    whole
}

/// The next stretch from an opening brace to the one that closes it, both outside of strings.
fn next_object(text: &str, from: usize) -> Option<std::ops::Range<usize>> {
    let start = from + text.get(from..)?.find('{')?;
    let (mut depth, mut inside, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate().skip(start) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b'{' if !inside => depth += 1,
            b'}' if !inside => {
                depth -= 1;
                if depth == 0 {
                    return Some(start..at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn keep_known(at: &str, members: &mut Map<String, Value>, known: &[(&str, bool)], repairs: &mut Vec<Fault>) {
    members.retain(|name, _| {
        let keep = known.iter().any(|(known, _)| known == name);
        if !keep {
            repairs.push(Fault::new(below(at, name), "is not a member of a summary, and was left out"));
        }
        keep
    });
}

/// An instant as other answers tell it, such as `2026-01-31T12:00:00Z`, in place of milliseconds.
fn milliseconds(span: &mut Map<String, Value>, name: &str, repairs: &mut Vec<Fault>) {
    let Some(value) = span.get_mut(name) else { return };
    if let Some(at) = value.as_str().and_then(|text| text.parse::<Time>().ok()) {
        *value = json!(at.as_millis());
        repairs
            .push(Fault::new(below("/time_range", name), "was a time as text, and is now in milliseconds"));
    }
}

fn wrap(at: &str, members: &mut Map<String, Value>, name: &str, repairs: &mut Vec<Fault>) {
    if let Some(value @ Value::String(_)) = members.get_mut(name) {
        *value = Value::Array(vec![value.take()]);
        repairs.push(Fault::new(below(at, name), "was a single text, and is now a list of it"));
    }
}

/// The bytes by which an answer is recognised when it comes again: those of its JSON value, whatever the order of its
/// members; of an answer that is no JSON, its own.
pub(crate) fn canonical_json(answer: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    match value_of(answer) {
        Ok(value) => canonical(&value, &mut bytes),
        Err(_) => bytes.extend_from_slice(answer.as_bytes()),
    }
    bytes
}
