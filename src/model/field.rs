//! The fields of MODEL-9 that a caller may set: one table of names and types, from which parsing, bounds
//! and comparison follow.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::limits::{
    ATTACHMENTS_MAX, FIELD_BYTES_MAX, LINKS_MAX, METADATA_BYTES_MAX, METADATA_DEPTH_MAX, SUMMARY_ITEMS_MAX,
    TAG_BYTES_MAX, TAGS_MAX,
};
use crate::model::id::MemoryId;
use crate::model::kind::{AuthorKind, Kind, Significance, Tier};
use crate::model::name::{check_key, check_text};
use crate::model::time::Time;

/// A nullable field of a draft: not mentioned, cleared, or set.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Field<T> {
    /// Not mentioned: a default on a new memory, no change on an old one.
    #[default]
    Absent,
    /// Cleared.
    Null,
    /// Set.
    Value(T),
}

impl<T> Field<T> {
    /// The value it would leave in place of `old`.
    pub fn over(&self, old: Option<T>) -> Option<T>
    where
        T: Clone,
    {
        match self {
            Field::Absent => old,
            Field::Null => None,
            Field::Value(value) => Some(value.clone()),
        }
    }

    /// The value, if it is set.
    pub fn value(&self) -> Option<&T> {
        match self {
            Field::Value(value) => Some(value),
            Field::Absent | Field::Null => None,
        }
    }

    /// Whether a caller mentioned it.
    pub fn is_given(&self) -> bool {
        !matches!(self, Field::Absent)
    }
}

impl<T> From<Option<T>> for Field<T> {
    /// What is there is set; what is not there is not mentioned.
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
    /// Where the bytes are kept, in the caller's world.
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
    /// Role in the memory; `mentioned` when the caller says nothing.
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

/// What only a summary carries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Topic in a few words.
    pub topic: Option<String>,
    /// World time covered.
    pub time_range: Option<TimeRange>,
    /// JSON arrays as the summarizer wrote them: bullets, decisions, open loops, spam patterns.
    pub bullet_events: Option<Value>,
    /// Decisions taken.
    pub decisions: Option<Value>,
    /// What is still open.
    pub open_loops: Option<Value>,
    /// Patterns of spam seen.
    pub spam_patterns: Option<Value>,
}

/// How a wrapper of the table below is read and shown as JSON.
trait Given: Sized {
    fn read(value: Value) -> Result<Self, serde_json::Error>;
    /// JSON of what was given, none when nothing was.
    fn show(&self) -> Option<Value>;
}

impl<T: for<'de> Deserialize<'de> + Serialize> Given for Option<T> {
    fn read(value: Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(value)
    }

    fn show(&self) -> Option<Value> {
        self.as_ref().and_then(|value| serde_json::to_value(value).ok())
    }
}

impl<T: for<'de> Deserialize<'de> + Serialize> Given for Field<T> {
    fn read(value: Value) -> Result<Self, serde_json::Error> {
        Ok(match serde_json::from_value::<Option<T>>(value)? {
            Some(value) => Field::Value(value),
            None => Field::Null,
        })
    }

    fn show(&self) -> Option<Value> {
        match self {
            Field::Absent => None,
            Field::Null => Some(Value::Null),
            Field::Value(value) => serde_json::to_value(value).ok(),
        }
    }
}

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $wrap:ident<$ty:ty> = $text:literal;)+) => {
        /// The fields that a caller may set besides text, vector, key, tags and links.
        ///
        /// `Option` fields can't be cleared, [`Field`] ones can.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Fields {
            $($(#[$doc])* pub $name: $wrap<$ty>,)+
        }

        impl Fields {
            /// Every name, in order; the position is the field's code on disk.
            pub const NAMES: &'static [&'static str] = &[$($text,)+];

            /// Sets the field called `name` from JSON; false when there is no such field.
            ///
            /// # Errors
            /// `Invalid` when the value is not of the field's type.
            pub fn set_json(&mut self, name: &str, value: Value) -> Result<bool> {
                match name {
                    $($text => self.$name = read(name, value)?,)+
                    _ => return Ok(false),
                }
                Ok(true)
            }

            /// Calls `f` with position and JSON of each field that was given.
            pub fn for_each_given(&self, mut f: impl FnMut(usize, Value)) {
                let mut at = 0;
                $(
                    if let Some(value) = self.$name.show() {
                        f(at, value);
                    }
                    at += 1;
                )+
                debug_assert_eq!(at, Fields::NAMES.len());
            }
        }
    };
}

fields! {
    /// What sort of memory; `knowledge`.
    kind: Option<Kind> = "kind";
    /// How long it is meant to live; `semantic`.
    tier: Option<Tier> = "tier";
    /// How much it matters; `routine`.
    significance: Option<Significance> = "significance";
    /// 0 to 1; 0.5.
    importance: Option<f32> = "importance";
    /// 0 to 1.
    confidence: Field<f32> = "confidence";
    /// At least 1; a smaller imported number counts as 1 (DEDUP-17).
    reinforcement_count: Option<i64> = "reinforcement_count";
    /// When it was last reinforced.
    last_reinforced_at: Field<Time> = "last_reinforced_at";
    /// Protected from automatic actors; the same as the tag `pinned`.
    pinned: Option<bool> = "pinned";
    /// Protected by an administrator.
    admin_locked: Option<bool> = "admin_locked";
    /// Protected by the host.
    system_locked: Option<bool> = "system_locked";
    /// A JSON object, at most 64 KiB.
    metadata: Option<Value> = "metadata";
    /// Label for statistics; `global`.
    scope_label: Option<String> = "scope_label";
    /// Channel of a message.
    channel: Field<String> = "channel";
    /// Thread of a message.
    thread: Field<String> = "thread";
    /// Session.
    session: Field<String> = "session";
    /// The message that it answers.
    reply_to: Field<MemoryId> = "reply_to";
    /// Who wrote it.
    author_kind: Field<AuthorKind> = "author_kind";
    /// Whose it is; never part of a dedup key.
    author_id: Field<String> = "author_id";
    /// Type of an event.
    event_type: Field<String> = "event_type";
    /// Logical time of the caller.
    step: Field<u64> = "step";
    /// Agent in the sense of the pruning rules.
    agent_id: Field<String> = "agent_id";
    /// At most 64.
    attachments: Option<Vec<Attachment>> = "attachments";
    /// At most 64.
    embeds: Option<Vec<Embed>> = "embeds";
    /// Spam family.
    family_id: Field<MemoryId> = "family_id";
    /// Aggregate of its family.
    aggregate_id: Field<MemoryId> = "aggregate_id";
    /// Of a summary: its topic.
    topic: Field<String> = "topic";
    /// Of a summary: the time covered.
    time_range: Field<TimeRange> = "time_range";
    /// Of a summary: a JSON array.
    bullet_events: Field<Value> = "bullet_events";
    /// Of a summary: a JSON array.
    decisions: Field<Value> = "decisions";
    /// Of a summary: a JSON array.
    open_loops: Field<Value> = "open_loops";
    /// Of a summary: a JSON array.
    spam_patterns: Field<Value> = "spam_patterns";
    /// Series of a snapshot; `profile`.
    series: Option<String> = "series";
    /// Source object in the caller's world.
    resource: Field<String> = "resource";
    /// Memories that it was made from, for merges.
    consolidated_from: Option<Vec<MemoryId>> = "consolidated_from";
    /// How often a search returned it.
    retrieval_count: Option<u64> = "retrieval_count";
    /// When a search last returned it.
    last_retrieved: Field<Time> = "last_retrieved";
    /// Sum of the relevances recorded.
    relevance_score_sum: Option<f64> = "relevance_score_sum";
    /// How many relevances were recorded.
    relevance_score_count: Option<u64> = "relevance_score_count";
    /// Highest relevance recorded.
    relevance_max: Option<f32> = "relevance_max";
    /// How often it stood in a context.
    included_count_total: Option<u64> = "included_count_total";
    /// The same, decayed (GC-2).
    included_count_decay: Option<f64> = "included_count_decay";
    /// When it last stood in a context.
    last_included_at: Field<Time> = "last_included_at";
    /// Until when pruning leaves it alone.
    protected_until: Field<Time> = "protected_until";
    /// Stamp of the last summary that covered it.
    summarized_at: Field<Time> = "summarized_at";
    /// Stamp of its promotion.
    promoted_at: Field<Time> = "promoted_at";
    /// Stamp of its last consolidation.
    last_consolidated_at: Field<Time> = "last_consolidated_at";
    /// When it came to be; the transaction time by default.
    created_at: Option<Time> = "created_at";
    /// When a caller last wrote it.
    updated_at: Option<Time> = "updated_at";
    /// When what it tells happened.
    happened_at: Field<Time> = "happened_at";
    /// World time from which it holds.
    valid_from: Field<Time> = "valid_from";
    /// World time until which it holds, exclusive.
    valid_to: Field<Time> = "valid_to";
}

fn read<T: Given>(name: &str, value: Value) -> Result<T> {
    let shown = value.to_string();
    T::read(value).map_err(|why| Error::invalid(name, clean(&why), shown))
}

/// The message of a JSON error without its place, which means nothing for a single value; an error of our own
/// inside it already says what must be.
fn clean(why: &serde_json::Error) -> String {
    let text = why.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

impl Fields {
    /// Whether nothing was given.
    pub fn is_empty(&self) -> bool {
        let mut any = false;
        self.for_each_given(|_, _| any = true);
        !any
    }

    /// Bounds of every field.
    ///
    /// # Errors
    /// `Invalid` naming the first field that breaks its bound.
    pub fn check(&self) -> Result<()> {
        self.check_numbers()?;
        self.check_names()?;
        self.check_lists()?;
        if let (Some(from), Some(to)) = (self.valid_from.value(), self.valid_to.value())
            && from >= to
        {
            return Err(Error::invalid("valid_to", "must lie after valid_from", to));
        }
        if let Some(range) = self.time_range.value()
            && range.end < range.start
        {
            return Err(Error::invalid("time_range", "must not end before it starts", range.end));
        }
        self.metadata.as_ref().map_or(Ok(()), check_metadata)
    }

    fn check_numbers(&self) -> Result<()> {
        let unit = [
            ("importance", self.importance),
            ("confidence", self.confidence.value().copied()),
            ("relevance_max", self.relevance_max),
        ];
        for (name, value) in unit {
            if let Some(value) = value.filter(|v| !(0.0..=1.0).contains(v)) {
                return Err(Error::invalid(name, "must be from 0 to 1", value));
            }
        }
        for (name, value) in [
            ("relevance_score_sum", self.relevance_score_sum),
            ("included_count_decay", self.included_count_decay),
        ] {
            if let Some(value) = value.filter(|v| !v.is_finite() || *v < 0.0) {
                return Err(Error::invalid(name, "must be finite and not negative", value));
            }
        }
        Ok(())
    }

    fn check_names(&self) -> Result<()> {
        let names = [
            ("scope_label", self.scope_label.as_ref()),
            ("channel", self.channel.value()),
            ("thread", self.thread.value()),
            ("session", self.session.value()),
            ("author_id", self.author_id.value()),
            ("event_type", self.event_type.value()),
            ("agent_id", self.agent_id.value()),
            ("topic", self.topic.value()),
            ("series", self.series.as_ref()),
            ("resource", self.resource.value()),
        ];
        names.into_iter().try_for_each(|(field, text)| {
            text.map_or(Ok(()), |text| check_text(field, text, FIELD_BYTES_MAX))
        })
    }

    fn check_lists(&self) -> Result<()> {
        if let Some(list) = &self.attachments {
            check_count("attachments", list.len(), ATTACHMENTS_MAX)?;
            for item in list {
                check_text("attachments.type", &item.media_type, FIELD_BYTES_MAX)?;
                item.blob_id
                    .as_ref()
                    .map_or(Ok(()), |id| check_text("attachments.blob_id", id, FIELD_BYTES_MAX))?;
            }
        }
        if let Some(list) = &self.embeds {
            check_count("embeds", list.len(), ATTACHMENTS_MAX)?;
            for item in list {
                check_text("embeds.url", &item.url, FIELD_BYTES_MAX)?;
                item.title
                    .as_ref()
                    .map_or(Ok(()), |title| check_text("embeds.title", title, FIELD_BYTES_MAX))?;
            }
        }
        if let Some(list) = &self.consolidated_from {
            check_count("consolidated_from", list.len(), LINKS_MAX)?;
        }
        let arrays = [
            ("bullet_events", &self.bullet_events),
            ("decisions", &self.decisions),
            ("open_loops", &self.open_loops),
            ("spam_patterns", &self.spam_patterns),
        ];
        for (name, array) in arrays {
            let Some(value) = array.value() else { continue };
            let Value::Array(items) = value else {
                return Err(Error::invalid(name, "must be a JSON array", value));
            };
            check_count(name, items.len(), SUMMARY_ITEMS_MAX)?;
            check_json(name, value)?;
        }
        Ok(())
    }
}

fn check_count(field: &str, count: usize, max: usize) -> Result<()> {
    if count > max {
        return Err(Error::invalid(field, format!("must have at most {max} entries"), count));
    }
    Ok(())
}

fn check_metadata(value: &Value) -> Result<()> {
    if !value.is_object() {
        return Err(Error::invalid("metadata", "must be a JSON object", value));
    }
    check_json("metadata", value)
}

/// Depth, size and NUL of a JSON value that is kept as it is.
fn check_json(field: &str, value: &Value) -> Result<()> {
    fn walk(field: &str, value: &Value, depth: usize) -> Result<()> {
        if depth > METADATA_DEPTH_MAX {
            return Err(Error::invalid(
                field,
                format!("must nest at most {METADATA_DEPTH_MAX} deep"),
                "deeper",
            ));
        }
        let text = |text: &str| match text.contains('\0') {
            true => Err(Error::invalid(field, "must not contain NUL", text.escape_default())),
            false => Ok(()),
        };
        match value {
            Value::String(s) => text(s),
            Value::Array(items) => items.iter().try_for_each(|item| walk(field, item, depth + 1)),
            Value::Object(map) => map.iter().try_for_each(|(name, item)| {
                text(name)?;
                walk(field, item, depth + 1)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }
    walk(field, value, 0)?;
    let bytes = value.to_string().len();
    if bytes > METADATA_BYTES_MAX {
        return Err(Error::invalid(
            field,
            format!("must be at most {METADATA_BYTES_MAX} bytes of JSON"),
            bytes,
        ));
    }
    Ok(())
}

/// Changes to a memory that exists: what is given replaces what was there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    /// New content: the memory is revised, a new row supersedes the old one.
    pub text: Option<String>,
    /// New vector for the content; of any positive length in space, the unit vector is stored.
    pub vector: Option<Vec<f32>>,
    /// The fields to change.
    pub fields: Fields,
    /// New end of life; absent: unchanged.
    pub expiry: Option<crate::model::draft::Expiry>,
    /// The tags that the holder brings from now on.
    pub tags: Option<Vec<String>>,
    /// The categories that the holder brings from now on.
    pub categories: Option<Vec<String>>,
    /// The entities that the holder brings from now on.
    pub entities: Option<Vec<Entity>>,
    /// The links that the holder brings from now on.
    pub links: Option<Vec<Link>>,
}

/// Tags as a set in byte order, within their bounds.
///
/// # Errors
/// `Invalid` for more than 64 tags, or one that is empty, longer than 128 bytes or holds a NUL.
pub(crate) fn check_tags(tags: &[String]) -> Result<Vec<String>> {
    let set = check_set("tags", tags, TAGS_MAX)?;
    Ok(set)
}

/// Names of categories as a set in byte order.
pub(crate) fn check_categories(names: &[String]) -> Result<Vec<String>> {
    check_set("categories", names, LINKS_MAX)
}

fn check_set(field: &str, names: &[String], max: usize) -> Result<Vec<String>> {
    for name in names {
        check_text(field, name, TAG_BYTES_MAX)?;
    }
    let mut set = names.to_vec();
    set.sort_unstable();
    set.dedup();
    check_count(field, set.len(), max)?;
    Ok(set)
}

/// Entities as a set, names and roles within their bounds.
pub(crate) fn check_entities(entities: &[Entity]) -> Result<Vec<Entity>> {
    for entity in entities {
        check_text("entities.name", &entity.name, TAG_BYTES_MAX)?;
        check_text("entities.role", &entity.role, TAG_BYTES_MAX)?;
    }
    let mut set = entities.to_vec();
    set.sort_unstable();
    set.dedup();
    check_count("entities", set.len(), LINKS_MAX)?;
    Ok(set)
}

/// Links as a set, relations within their bounds.
pub(crate) fn check_links(links: &[Link]) -> Result<Vec<Link>> {
    for link in links {
        check_text("links.relation", &link.relation, TAG_BYTES_MAX)?;
    }
    let mut set = links.to_vec();
    set.sort_unstable();
    set.dedup();
    check_count("links", set.len(), LINKS_MAX)?;
    Ok(set)
}

/// Keys or ids that a draft supersedes.
pub(crate) fn check_supersedes(names: &[String]) -> Result<()> {
    check_count("supersedes", names.len(), LINKS_MAX)?;
    names.iter().try_for_each(|name| check_key(name))
}
