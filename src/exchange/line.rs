//! What a line says, and how its members are read.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::json::{self, Refusal, Strict, WHOLE_NUMBERS};
use crate::limits::FIELD_JSON_BYTES_MAX;
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

/// An error about the value of member `name`.
pub(super) fn wrong(name: &str, why: impl Into<String>, raw: &str) -> Error {
    Error::invalid(name, why, raw.chars().take(100).collect::<String>())
}

/// The error about a member that was refused. A type of ours has said a name and the value already.
pub(super) fn mistyped(name: &str, refusal: Refusal, raw: &str) -> Error {
    let Refusal { place, why, .. } = refusal;
    let at = if place.is_empty() { place } else { format!(", at {name}.{place}") };
    let own = why.split_once(": ").and_then(|(_, told)| told.strip_suffix(')')?.rsplit_once(" (got "));
    match own {
        Some((bound, value)) => Error::invalid(name, format!("{bound}{at}"), value),
        None => wrong(name, format!("{why}{at}"), raw),
    }
}

/// The value of member `name` as a type.
pub(super) fn typed<'a, T: Deserialize<'a>>(name: &str, raw: &'a RawValue) -> Result<T> {
    json::read(raw.get()).map_err(|refusal| mistyped(name, refusal, raw.get()))
}

/// As [`typed`] for what the engine keeps: the error names the value within the member, as `holders.fields`.
pub(super) fn typed_within<'a, T: Deserialize<'a>>(name: &str, raw: &'a RawValue) -> Result<T> {
    json::read(raw.get()).map_err(|Refusal { place, why, .. }| {
        let names = place.split('.').filter(|step| !step.bytes().all(|digit| digit.is_ascii_digit()));
        let field: Vec<&str> = std::iter::once(name).chain(names).collect();
        mistyped(&field.join("."), Refusal::whole(why), raw.get())
    })
}

/// The value of member `name`, its objects without a name twice, and with every digit of its whole numbers.
pub(super) fn strict(name: &str, raw: &RawValue) -> Result<Value> {
    let text = raw.get();
    if text.len() > FIELD_JSON_BYTES_MAX {
        let why = format!("must be at most {FIELD_JSON_BYTES_MAX} bytes of JSON");
        return Err(Error::invalid(name, why, format!("{} bytes", text.len())));
    }
    let Strict(value) = json::read(text).map_err(|refusal| mistyped(name, refusal, text))?;
    match json::long_number(text) {
        Some(digits) => Err(wrong(name, WHOLE_NUMBERS, digits)),
        None => Ok(value),
    }
}

/// A text without NUL, none for null.
pub(super) fn text(name: &str, raw: &RawValue) -> Result<Option<String>> {
    let text: Option<String> = typed(name, raw)?;
    match text {
        Some(text) if text.contains('\0') => Err(wrong(name, "must not contain NUL", raw.get())),
        text => Ok(text),
    }
}
