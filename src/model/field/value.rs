//! The types of the fields that are no plain numbers and texts.

use serde::{Deserialize, Serialize};

use crate::model::id::MemoryId;
use crate::model::time::Time;

/// A nullable field of a draft: absent, cleared, or set.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Field<T> {
    /// Absent: the default on a new memory, no change on an existing memory.
    #[default]
    Absent,
    /// Cleared.
    Null,
    /// Set.
    Value(T),
}

impl<T> Field<T> {
    /// The value, if one is set.
    ///
    /// ```
    /// use oubliette::memory::Field;
    /// assert_eq!(Field::Value(7).value(), Some(&7));
    /// assert_eq!(Field::<i64>::Null.value(), None);
    /// ```
    pub fn value(&self) -> Option<&T> {
        match self {
            Field::Value(value) => Some(value),
            Field::Absent | Field::Null => None,
        }
    }

    /// Whether the caller gave the field, as a value or as null.
    ///
    /// ```
    /// use oubliette::memory::Field;
    /// assert!(Field::<i64>::Null.is_given()); // It clears what was there.
    /// assert!(!Field::<i64>::Absent.is_given());
    /// ```
    pub fn is_given(&self) -> bool {
        !matches!(self, Field::Absent)
    }
}

impl<T> From<Option<T>> for Field<T> {
    /// A present value is set. An absent value is not given.
    fn from(value: Option<T>) -> Self {
        value.map_or(Field::Absent, Field::Value)
    }
}

/// An attachment of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// Media type, such as `image/png`.
    #[serde(rename = "type")]
    pub media_type: String,
    /// Size in bytes.
    #[serde(default)]
    pub size: u64,
    /// Where the bytes are kept in the caller's world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob_id: Option<String>,
}

/// A link preview of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embed {
    /// Address.
    pub url: String,
    /// Title, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// An entity that a memory is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entity {
    /// Name, 1 to 128 bytes.
    pub name: String,
    /// The role in the memory; `mentioned` by default.
    #[serde(default = "Entity::default_role")]
    pub role: String,
}

impl Entity {
    fn default_role() -> String {
        "mentioned".to_owned()
    }
}

/// A typed link to another memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Id of the other memory.
    pub to: MemoryId,
    /// What the link means, 1 to 128 bytes.
    pub relation: String,
}

/// The span of world time that a summary covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeRange {
    /// First instant.
    pub start: Time,
    /// Last instant, not before `start`.
    pub end: Time,
}
