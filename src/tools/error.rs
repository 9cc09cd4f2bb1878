//! Why a call of a tool was refused, as data.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{Error, ErrorKind};
use crate::json::step;
use crate::summary::Fault;
use crate::tools::shape::Shape;

/// Characters of the name of a tool that is not known.
const NAME_CHARS_MAX: usize = 80;

/// Why a call was refused. Nothing has changed, but that a plan notes the refusal of a summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolError {
    /// The tool, if the call said which.
    pub name: Option<String>,
    /// The rule that refused: `invalid_json`, `invalid_envelope`, `unknown_tool`, `invalid_args`, the name of a
    /// [`Refusal`](crate::gc::Refusal), or the kind of the error.
    pub code: String,
    /// What is wrong, in words.
    pub message: String,
    /// JSON pointers to the wrong values of the call.
    pub pointers: Vec<String>,
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ToolError {}

impl ToolError {
    /// The code of a call of a tool that does not exist.
    pub(crate) const UNKNOWN: &str = "unknown_tool";

    /// Of an error that no argument is to blame for; the code is its kind.
    ///
    /// ```
    /// use oubliette::tools::ToolError;
    /// let why = oubliette::Error::Unavailable { why: "the disk is gone".to_owned() };
    /// assert_eq!(ToolError::of_error(&why).code, "unavailable");
    /// ```
    pub fn of_error(error: &Error) -> Self {
        ToolError::new(None, &code_of(error.kind()), error.to_string())
    }

    pub(super) fn new(name: Option<&str>, code: &str, message: impl Into<String>) -> Self {
        ToolError {
            name: name.map(|name| name.chars().take(NAME_CHARS_MAX).collect()),
            code: code.to_owned(),
            message: message.into(),
            pointers: Vec::new(),
        }
    }

    /// Of values that have another shape.
    pub(super) fn of_faults(name: Option<&str>, code: &str, faults: &[Fault]) -> Self {
        // The pointer to the whole call is empty.
        let place = |fault: &Fault| match fault.pointer.as_str() {
            "" => "the call".to_owned(),
            pointer => pointer.to_owned(),
        };
        let told = faults.iter().map(|fault| format!("{} {}", place(fault), fault.what));
        let message = told.collect::<Vec<_>>().join("; ");
        let pointers = faults.iter().map(|fault| fault.pointer.clone()).collect();
        ToolError { pointers, ..ToolError::new(name, code, message) }
    }

    /// Of an error of the database; a field that is an argument becomes a pointer. One in the argument `filter`, whose names may have
    /// dots, is looked for in the `filter` that was given.
    pub(super) fn of(name: &str, (arguments, filter): (&Shape, &Value), error: &Error) -> Self {
        let (code, pointers) = match error {
            Error::Refused { code, pointers, .. } => ((*code).to_owned(), pointers.clone()),
            Error::Invalid { field, .. } => {
                let first = field.split(['/', '.']).next().unwrap_or_default();
                let within = match field.strip_prefix("filter.") {
                    Some(rest) => format!("filter{}", pointer_to(filter, rest)),
                    None => field.replace('.', "/"),
                };
                let pointer = arguments.has(first).then(|| format!("/args/{within}"));
                ("invalid_args".to_owned(), pointer.into_iter().collect())
            }
            Error::NotFound { what, .. } => (format!("{}_not_found", what.replace(' ', "_")), Vec::new()),
            Error::BeforePurgeHorizon { .. } => {
                let pointer = arguments.has("as_of").then(|| "/args/as_of".to_owned());
                (code_of(error.kind()), pointer.into_iter().collect())
            }
            other => (code_of(other.kind()), Vec::new()),
        };
        let message = match error {
            Error::Refused { why, .. } => why.clone(),
            other => other.to_string(),
        };
        ToolError { pointers, ..ToolError::new(Some(name), &code, message) }
    }

    /// The answer to an envelope.
    ///
    /// ```
    /// use oubliette::tools::Toolbox;
    /// use serde_json::json;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let why = Toolbox::new(team).call("memory.gc_plan", json!({ "limit_tokens": "60000" })).unwrap_err();
    /// let told = why.to_json();
    /// assert_eq!((&told["type"], &told["code"]), (&json!("tool_error"), &json!("invalid_args")));
    /// assert_eq!(told["pointers"], json!(["/args/limit_tokens"]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_json(&self) -> Value {
        json!({
            "type": "tool_error", "name": self.name, "code": self.code, "message": self.message,
            "pointers": self.pointers,
        })
    }
}

/// The pointer in a document to what dots and names lead to, as far as they lead to something.
fn pointer_to(document: &Value, mut names: &str) -> String {
    let (mut pointer, mut at) = (String::new(), document);
    while !names.is_empty() {
        let behind =
            |name: &str| names.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('.'));
        let member = match at {
            Value::Object(members) => {
                let longest =
                    members.keys().filter(|name| behind(name).is_some()).max_by_key(|name| name.len());
                longest.and_then(|name| Some((name.clone(), members.get(name)?)))
            }
            Value::Array(items) => {
                let index = names.split('.').next().unwrap_or_default();
                index.parse().ok().and_then(|at: usize| Some((index.to_owned(), items.get(at)?)))
            }
            _ => None,
        };
        let Some((name, value)) = member else { break };
        pointer.push_str(&step(&name));
        names = behind(&name).and_then(|rest| rest.strip_prefix('.')).unwrap_or_default();
        at = value;
    }
    pointer
}

/// Of a line that is no envelope.
impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        ToolError {
            pointers: vec![String::new()],
            ..ToolError::new(None, "invalid_envelope", error.to_string())
        }
    }
}

/// The name of a kind in snake case.
fn code_of(kind: ErrorKind) -> String {
    let mut code = String::new();
    for letter in kind.to_string().chars() {
        if letter.is_ascii_uppercase() && !code.is_empty() {
            code.push('_');
        }
        code.push(letter.to_ascii_lowercase());
    }
    code
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::pointer_to;

    #[test]
    fn a_pointer_follows_the_names_that_were_given() {
        let filter = json!({ "metadata.x": { "$foo": 1 }, "$and": [{ "metadata.a/b.c": 1 }, { "": 2 }] });
        for (names, pointer) in [
            ("metadata.x", "/metadata.x"),
            ("metadata.x.$foo", "/metadata.x/$foo"),
            ("$and.0.metadata.a/b.c", "/$and/0/metadata.a~1b.c"),
            ("$and.1", "/$and/1"),
            ("$and.7.tags", "/$and"),
            ("kind", ""),
            ("", ""),
        ] {
            assert_eq!(pointer_to(&filter, names), pointer, "{names}");
        }
    }
}
