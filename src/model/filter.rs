//! Filters: conditions on a memory, written as JSON in the style of MongoDB.
//!
//! ```text
//! {"tags": "x", "importance": {"$gte": 0.5},
//!  "$or": [{"kind": "event"}, {"metadata.session": {"$in": ["a", "b"]}}]}
//! ```
//! Operators: `$eq $ne $gt $gte $lt $lte $in $nin $prefix $exists $not` on a field, and `$and $or $not` on filters. A
//! field is the JSON name of any field of a memory, or `metadata.` with a path whose dots descend. Regular expressions
//! are not supported.
//!
//! What a filter means:
//! - Entries of one object must all hold. The filter `{}` matches everything. An empty object anywhere
//!   deeper, an empty `$and` or an empty `$or` is refused, because it is far more often a mistake than a
//!   wish.
//! - A list (tags, keys, an array in the metadata) matches a comparison if any member does. An empty list of
//!   a field counts as missing.
//! - `null` equals a missing value and a null. `$ne`, `$nin` and `$not` negate `$eq`, `$in` and their
//!   operand, so they match a missing value. `$gt`, `$gte`, `$lt` and `$lte` never match a missing value.
//! - `$prefix` matches texts that begin with these bytes, in the same letters. It applies to fields that hold text, keys
//!   among them, and to metadata. The empty prefix is refused: `$exists` says what it would.
//! - Values of different types are never equal and have no order. Text is ordered by bytes, significance and
//!   tier by rank, times as instants, and numbers by value whatever their notation. The bound of a comparison
//!   with a field in single precision (importance, confidence) is first rounded to single precision.
//! - A filter says nothing about states. Visibility is decided by the one predicate, and a listing of other
//!   states names the state.
//!
//! Everything is checked and typed during parsing, so that evaluation can't fail. Depth, number of
//! comparisons and length are bounded before anything is walked.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::json::{self, Refusal, Strict};
use crate::limits::FILTER_BYTES_MAX;
use crate::model::filter::column::{ID, KEYS, Named, TAGS};
use crate::model::filter::datum::Operand;
use crate::model::filter::expr::Expr;
use crate::model::id::MemoryId;

mod column;
mod datum;
mod eval;
mod expr;
mod indexed;
mod parse;
mod row;
mod scalar;

pub(crate) use indexed::{MetaTest, MetaValue, MetaWanted, check_index_key};
pub use row::{Needs, RowView, VitalsView};
pub(crate) use scalar::{Scalar, check_metadata_key};

/// A condition on a memory. It is typed, and within its bounds from the moment in which [`Filter::parse`] or
/// [`Filter::from_json`] makes it.
///
/// ```
/// use oubliette::Filter;
/// let filter = Filter::parse(r#"{"tags": "tea", "created_at": {"$gte": "2026-01-01T00:00:00Z"}}"#)?;
/// assert_eq!(Filter::parse(&filter.to_string())?, filter);
/// assert!(Filter::parse(r#"{"tegs": "tea"}"#).is_err());
/// let of_one_talk = Filter::parse(r#"{"keys": {"$prefix": "conv-1:"}}"#)?;
/// assert!(Filter::parse(r#"{"importance": {"$prefix": "0."}}"#).is_err());
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    root: Expr,
    /// The JSON from which the filter was made, for display.
    json: String,
}

impl Filter {
    /// Reads a filter from JSON text.
    ///
    /// ```
    /// use oubliette::{Draft, Filter, Query};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann prefers tea").tag("people"))?;
    /// let people = Filter::parse(r#"{"tags": "people", "importance": {"$gte": 0.0}}"#)?;
    /// assert_eq!(team.search(Query::text("tea").filter(people))?.hits.len(), 1);
    /// assert!(Filter::parse(r#"{"tags": {"$gt": 3}}"#).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` naming the place (`filter.created_at.$gt`) when the text is longer than 1 MiB, is not JSON, or has a
    /// name twice in one object; when the filter is deeper than 16, or wider than 256 comparisons or than 10,000
    /// values of one `$in`; or when it names an unknown field, an unknown operator, or a value that is not of the
    /// field's type.
    pub fn parse(text: &str) -> Result<Self> {
        check_bytes(text.len())?;
        let Strict(value) =
            json::read(text).map_err(|Refusal { place, why, at, .. }| match place.is_empty() {
                true => {
                    let (line, column) = at;
                    let why = format!("must be a JSON object: {why} at line {line} column {column}");
                    Error::invalid("filter", why, text)
                }
                false => Error::invalid(format!("filter.{place}"), why, text),
            })?;
        Filter::from_json(&value)
    }

    /// Reads a filter from a JSON value, which may be of any depth.
    ///
    /// ```
    /// use oubliette::Filter;
    /// use serde_json::json;
    /// assert!(Filter::from_json(&json!({"$not": {"tags": "people"}})).is_ok());
    /// assert!(Filter::from_json(&json!({"tegs": "people"})).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Filter::parse`].
    pub fn from_json(value: &Value) -> Result<Self> {
        let root = parse::root(value)?;
        let json = value.to_string();
        check_bytes(json.len())?;
        Ok(Filter { root, json })
    }

    /// Whether a row matches, as far as the hot part can tell; none when the other parts decide.
    pub(crate) fn on_vitals(&self, row: &VitalsView<'_>) -> Option<bool> {
        self.root.on_vitals(row)
    }

    /// Whether a row matches.
    pub(crate) fn matches(&self, row: &RowView<'_>) -> bool {
        self.root.matches(row)
    }

    /// Which parts of a row [`Filter::matches`] reads.
    pub(crate) fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        self.root.add_needs(&mut needs);
        needs
    }

    /// A tag that every matching row has, for a look-up by tag.
    pub(crate) fn required_tag(&self) -> Option<&str> {
        let sets = self.demanded(&TAGS);
        sets.into_iter().find_map(|set| match set {
            [Operand::Text(tag)] => Some(tag.as_str()),
            _ => None,
        })
    }

    /// A list of ids, ascending, one of which every matching row has: the shortest list that the filter
    /// demands. If the list is empty, no row matches.
    pub(crate) fn required_ids(&self) -> Option<Vec<MemoryId>> {
        let shortest = self.demanded(&ID).into_iter().min_by_key(|set| set.len())?;
        Some(shortest.iter().filter_map(Operand::id).collect())
    }

    /// A list of keys, ascending, one of which every matching row has: the shortest list that the filter
    /// demands.
    pub(crate) fn required_keys(&self) -> Option<Vec<&str>> {
        let shortest = self.demanded(&KEYS).into_iter().min_by_key(|set| set.len())?;
        Some(shortest.iter().filter_map(Operand::text).collect())
    }

    /// What a key of every matching row begins with: the longest beginning that the filter demands.
    pub(crate) fn required_key_prefix(&self) -> Option<&str> {
        let mut longest = None;
        self.root.add_key_prefix(&mut longest);
        longest
    }

    /// The sets that the whole filter demands of `column`, without the sets that contain null.
    fn demanded(&self, column: &Named) -> Vec<&[Operand]> {
        let mut sets = Vec::new();
        self.root.add_demanded(column, &mut sets);
        sets
    }
}

impl FromStr for Filter {
    type Err = Error;

    /// As [`Filter::parse`].
    fn from_str(json: &str) -> Result<Self> {
        Filter::parse(json)
    }
}

impl TryFrom<&str> for Filter {
    type Error = Error;

    /// As [`Filter::parse`].
    fn try_from(json: &str) -> Result<Self> {
        Filter::parse(json)
    }
}

impl fmt::Display for Filter {
    /// The JSON from which the filter was made, without blanks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.json)
    }
}

fn check_bytes(bytes: usize) -> Result<()> {
    if bytes > FILTER_BYTES_MAX {
        let why = format!("must be at most {FILTER_BYTES_MAX} bytes of JSON");
        return Err(Error::invalid("filter", why, format!("{bytes} bytes")));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
