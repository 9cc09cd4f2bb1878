//! The keys of the policy in groups: each row of a `group!` is one key with its type, default and bound, and it is the
//! only place where they stand.

mod access;
mod collecting;
mod duplicates;
mod file;
mod moves;
mod prune;
mod scores;
mod storage;
mod utility;

pub use access::*;
pub use collecting::*;
pub use duplicates::*;
pub use file::*;
pub use moves::*;
pub use prune::*;
pub use scores::*;
pub use storage::*;
pub use utility::*;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::bounds::Checked;
use crate::error::{Error, Result};
use crate::json::{self, Refusal};

/// A table of the document.
pub(super) trait Group {
    /// Takes the values that `table` gives, without looking at their bounds; keys that are absent keep their value.
    fn load(&mut self, place: &str, table: Map<String, Value>) -> Result<()>;
    /// Whether every value is within its bound.
    fn check(&self, place: &str) -> Result<()>;
    /// Appends each key with its value, in order of declaration.
    fn list(&self, place: &str, entries: &mut Vec<(String, Value)>);
}

/// Declares a group: `key: type = default, bound;` for each key, then `@group key: type;` for each group inside it.
macro_rules! group {
    (
        $(#[$doc:meta])*
        $name:ident {
            $($(#[$key_doc:meta])* $key:ident: $type:ty = $default:expr, $bound:expr;)*
            $(@group $(#[$inner_doc:meta])* $inner:ident: $inner_type:ty;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        pub struct $name {
            $($(#[$key_doc])* pub $key: $type,)*
            $($(#[$inner_doc])* pub $inner: $inner_type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)* $($inner: Default::default(),)* }
            }
        }

        impl $crate::policy::groups::Group for $name {
            fn load(
                &mut self,
                place: &str,
                table: serde_json::Map<String, serde_json::Value>,
            ) -> $crate::error::Result<()> {
                use $crate::policy::groups;
                for (key, value) in table {
                    let at = groups::join(place, &key);
                    match key.as_str() {
                        $(stringify!($key) => self.$key = groups::read(&at, value)?,)*
                        $(stringify!($inner) => self.$inner.load(&at, groups::table(&at, value)?)?,)*
                        _ => {
                            let known = [$(stringify!($key),)* $(stringify!($inner),)*];
                            return Err(groups::refused(at, format!("unknown key; known are {}", known.join(", "))));
                        }
                    }
                }
                Ok(())
            }

            fn check(&self, place: &str) -> $crate::error::Result<()> {
                use $crate::policy::groups;
                $(groups::hold(place, stringify!($key), &self.$key, $bound)?;)*
                $(self.$inner.check(&groups::join(place, stringify!($inner)))?;)*
                Ok(())
            }

            fn list(&self, place: &str, entries: &mut Vec<(String, serde_json::Value)>) {
                use $crate::policy::groups;
                $(entries.push((groups::join(place, stringify!($key)), groups::value(&self.$key)));)*
                $(self.$inner.list(&groups::join(place, stringify!($inner)), entries);)*
            }
        }
    };
}
pub(super) use group;

pub(super) fn join(place: &str, key: &str) -> String {
    if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") }
}

pub(super) fn refused(place: impl Into<String>, why: impl Into<String>) -> Error {
    Error::Policy { place: place.into(), why: why.into() }
}

pub(super) fn read<T: DeserializeOwned>(place: &str, value: Value) -> Result<T> {
    json::typed(&value).map_err(|Refusal { place: inner, why, .. }| {
        let why = in_words(&why);
        let empty = inner.is_empty() || inner == "?";
        refused(place, if empty { why } else { format!("at {place}.{inner}: {why}") })
    })
}

/// A refusal in the words of the document instead of those of the program.
fn in_words(why: &str) -> String {
    const WORDS: [(&str, &str); 9] = [
        ("unknown variant", "unknown word"),
        ("unknown field", "unknown key"),
        ("missing field", "missing key"),
        ("floating point", "number"),
        ("integer `", "number `"),
        ("an array of length", "a list of length"),
        ("invalid type: sequence", "invalid type: a list"),
        ("invalid type: map", "invalid type: a table"),
        ("expected an object", "expected a table"),
    ];
    WORDS.iter().fold(why.to_owned(), |why, (from, to)| why.replace(from, to))
}

pub(super) fn table(place: &str, value: Value) -> Result<Map<String, Value>> {
    match value {
        Value::Object(table) => Ok(table),
        _ => Err(refused(place, "is a group of keys, not a value")),
    }
}

pub(super) fn hold<T>(place: &str, key: &str, value: &T, bound: impl Fn(&T) -> Checked) -> Result<()> {
    bound(value).map_err(|why| refused(join(place, key), why))
}

#[expect(clippy::expect_used, reason = "numbers, texts and tables with text keys always have a JSON value")]
pub(super) fn value<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("a value of the policy has a JSON form")
}
