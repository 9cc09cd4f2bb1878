//! The values of a metadata key: what is asked, and the answer.

use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::limits::DISTINCT_VALUES_MAX;
use crate::model::filter::{Filter, check_metadata_key};
use crate::model::name::Scope;

/// Which values of which metadata key to count.
///
/// ```
/// use oubliette::memory::DistinctQuery;
/// assert!(DistinctQuery::from("session").check().is_ok());
/// assert!(DistinctQuery::from("").check().is_err());
/// assert!(DistinctQuery::from("session").limit(0).check().is_err());
/// ```
#[derive(Clone, Debug)]
pub struct DistinctQuery {
    /// The key as a filter names it after `metadata.`: dots descend into objects.
    pub key: String,
    /// The partitions whose memories count; the shared part by default.
    pub scope: Scope,
    /// Only memories that match this filter.
    pub filter: Option<Filter>,
    /// The largest number of values to give: 1 to 10,000, by default 100.
    pub limit: usize,
}

impl From<&str> for DistinctQuery {
    /// The 100 most frequent values of a key in the shared part.
    fn from(key: &str) -> Self {
        DistinctQuery { key: key.to_owned(), scope: Scope::Shared, filter: None, limit: 100 }
    }
}

impl From<String> for DistinctQuery {
    /// As of a borrowed text.
    fn from(key: String) -> Self {
        DistinctQuery::from(key.as_str())
    }
}

impl DistinctQuery {
    /// With another number of values.
    ///
    /// ```
    /// use oubliette::memory::DistinctQuery;
    /// assert!(DistinctQuery::from("session").limit(5).check().is_ok());
    /// assert!(DistinctQuery::from("session").limit(0).check().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Of other partitions.
    ///
    /// ```
    /// use oubliette::memory::DistinctQuery;
    /// use oubliette::{Draft, Scope};
    /// use serde_json::json;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("The crawler ran").agent("crawler").metadata(json!({"host": "a"})))?;
    /// let query = DistinctQuery::from("host");
    /// assert!(team.distinct(query.clone())?.values.is_empty());
    /// assert_eq!(team.distinct(query.scope(Scope::Any))?.values[0].value, json!("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Of the memories that match a filter.
    ///
    /// ```
    /// use oubliette::memory::DistinctQuery;
    /// use oubliette::{Draft, Filter};
    /// use serde_json::json;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann prefers tea").tag("people").metadata(json!({"talk": 1})))?;
    /// team.add(Draft::new("It rains").metadata(json!({"talk": 2})))?;
    /// let query = DistinctQuery::from("talk").filter(Filter::parse(r#"{"tags": "people"}"#)?);
    /// assert_eq!(team.distinct(query)?.values.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Checks the bounds of the query.
    ///
    /// ```
    /// use oubliette::memory::DistinctQuery;
    /// assert!(DistinctQuery::from("session").check().is_ok());
    /// assert!(DistinctQuery::from("").check().is_err());
    /// ```
    ///
    /// # Errors
    /// `Invalid` when the key is no path below `metadata`, or the limit is not 1 to 10,000.
    pub fn check(&self) -> Result<()> {
        check_metadata_key(&self.key)?;
        if self.limit == 0 || self.limit > DISTINCT_VALUES_MAX {
            return Err(Error::invalid("limit", format!("must be 1 to {DISTINCT_VALUES_MAX}"), self.limit));
        }
        Ok(())
    }
}

/// The values of a metadata key among the memories that a live read sees.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DistinctValues {
    /// The values, the most frequent first. Equally frequent values are in the order of a filter.
    pub values: Vec<DistinctValue>,
    /// How many values were counted and left out because of the limit.
    pub left_out: u64,
    /// Whether every value was counted. Of a key with more than 10,000 values only the first 10,000 in the order of a
    /// filter are: truth values, then numbers, then texts by their bytes.
    pub complete: bool,
    /// The number of memories with a value.
    pub memories: u64,
    /// The number of rows that were left out because they can't be read.
    pub damaged: u64,
}

/// A value of a metadata key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DistinctValue {
    /// A text, a number, or true or false.
    pub value: Value,
    /// The number of memories with the value. A memory with a list counts once for each different member.
    pub count: u64,
}
