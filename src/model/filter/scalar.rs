//! The single values of a metadata key, as a filter compares them.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::Result;
use crate::model::filter::datum::{Datum, Number, Operand};
use crate::model::filter::eval::any_at;
use crate::model::filter::parse;

/// A text, a number or a truth value. Two are equal if a filter takes them for equal, such as 1 and 1.0.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scalar(Operand);

impl Eq for Scalar {}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.datum().cmp(&other.0.datum())
    }
}

impl Scalar {
    /// The values at a path below `metadata`, each once: the members of a list, but nothing of an object or a null.
    pub(crate) fn all_at(metadata: &Value, path: &str) -> BTreeSet<Scalar> {
        let names: Vec<String> = path.split('.').map(str::to_owned).collect();
        let mut all = BTreeSet::new();
        any_at(metadata, &names, &mut |datum| {
            all.extend(Scalar::of(datum));
            false
        });
        all
    }

    fn of(datum: Datum<'_>) -> Option<Scalar> {
        match datum {
            Datum::Bool(value) => Some(Scalar(Operand::Bool(value))),
            Datum::Number(number) => Some(Scalar(Operand::Number(number))),
            Datum::Text(text) => Some(Scalar(Operand::Text(text.to_owned()))),
            _ => None,
        }
    }

    /// The value in JSON.
    pub(crate) fn json(&self) -> Value {
        match &self.0 {
            Operand::Bool(value) => Value::from(*value),
            Operand::Text(text) => Value::from(text.as_str()),
            Operand::Number(Number::Broken(broken)) => Value::from(*broken),
            Operand::Number(Number::Whole(whole)) => match (i64::try_from(*whole), u64::try_from(*whole)) {
                (Ok(whole), _) => Value::from(whole),
                (_, Ok(whole)) => Value::from(whole),
                _ => Value::from(*whole as f64),
            },
            _ => Value::Null,
        }
    }
}

/// Checks a path below `metadata` that is given as a key: 1 to 1,024 bytes, at most 32 names.
///
/// # Errors
/// `Invalid` naming `key`.
pub(crate) fn check_metadata_key(key: &str) -> Result<()> {
    parse::metadata_path("key", key, key).map(|_| ())
}
