//! A memory as the caller gives it ([`Draft`]), and the proof that it is within every bound
//! ([`CheckedDraft`]).

use serde_json::Value;

use crate::error::{Error, Result};
use crate::limits::{CONTENT_BYTES_MAX, DIM_MAX, LINKS_MAX};
use crate::model::field::{
    Attachment, Embed, Entity, Field, Fields, Link, TimeRange, check_categories, check_entities, check_links,
    check_supersedes, check_tags, memory_fields,
};
use crate::model::id::MemoryId;
use crate::model::kind::{AuthorKind, Kind, Significance, SupersedeMode, Tier};
use crate::model::name::{Partition, check_key};
use crate::model::payload::Payload;
use crate::model::span::Span;
use crate::model::time::Time;

/// The tag that means the same as `pinned = true`.
pub(crate) const PINNED_TAG: &str = "pinned";
/// What the tags begin with that name the import of a memory: `import:<source>:<date>`.
pub(crate) const IMPORT_TAGS: &str = "import:";
/// The tag whose memories tell how something is done: consolidation makes them procedural.
pub(crate) const PROCEDURE_TAG: &str = "procedure";

/// When a memory ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// After the lifetime of the tier. Durable tiers have none.
    #[default]
    Tier,
    /// Never, as the caller said.
    Never,
    /// At an instant.
    At(Time),
    /// After a time from the creation or the recording of the memory, whichever is later.
    After(Span),
}

impl From<Time> for Expiry {
    fn from(at: Time) -> Self {
        Expiry::At(at)
    }
}

impl From<Span> for Expiry {
    fn from(after: Span) -> Self {
        Expiry::After(after)
    }
}

impl From<std::time::Duration> for Expiry {
    fn from(after: std::time::Duration) -> Self {
        Expiry::After(after.into())
    }
}

/// A memory before it is stored: the text, and everything else that the caller knows.
/// [`exchange::parse_line`](crate::exchange::parse_line) reads a draft from a line of JSON.
///
/// ```
/// use oubliette::Draft;
/// use oubliette::memory::Tier;
/// let draft = Draft::new("Ann prefers tea").key("conv-1:3").tag("preference").tier(Tier::Episodic);
/// assert_eq!(draft.key.as_deref(), Some("conv-1:3"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    /// The name of the record in the caller's world: 1 to 512 bytes, no NUL.
    pub key: Option<String>,
    /// The agent whose partition holds the memory; none for the shared partition.
    pub agent: Option<String>,
    /// The content: 1 byte to 1 MiB, no NUL. Only beside a vector it may be empty, or white space
    /// alone.
    pub text: String,
    /// The embedding, of any positive length in space. The unit vector is stored.
    pub vector: Option<Vec<f32>>,
    /// All other fields, by name.
    pub fields: Fields,
    /// When the memory ends.
    pub expiry: Option<Expiry>,
    /// The tags: at most 64, each 1 to 128 bytes.
    pub tags: Option<Vec<String>>,
    /// The names of categories.
    pub categories: Option<Vec<String>>,
    /// The entities with their roles.
    pub entities: Option<Vec<Entity>>,
    /// The typed links to other memories of the namespace.
    pub links: Option<Vec<Link>>,
    /// The provenance: the memories from which this memory was made.
    pub sources: Option<Vec<MemoryId>>,
    /// What the memory carries beside its text: at most 1 MiB.
    pub payload: Option<Payload>,
    /// The keys or ids of the memories that this memory supersedes.
    pub supersedes: Vec<String>,
    /// How this memory supersedes them, and what its own key says; `replaced` by default.
    pub supersede_mode: Option<SupersedeMode>,
}

impl From<&str> for Draft {
    /// As [`Draft::new`].
    fn from(text: &str) -> Self {
        Draft::new(text)
    }
}

impl From<String> for Draft {
    /// As [`Draft::new`].
    fn from(text: String) -> Self {
        Draft::new(text)
    }
}

impl Draft {
    /// A draft of `text` with every default.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann prefers tea"))?;
    /// assert!(team.add(Draft::new("")).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(text: impl Into<String>) -> Self {
        Draft { text: text.into(), ..Draft::default() }
    }

    /// With a key.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").key("ann:home"))?;
    /// assert!(team.get("ann:home")?.is_some());
    /// assert!(team.add(Draft::new("no name").key("")).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// In the partition of an agent.
    ///
    /// ```
    /// use oubliette::{Draft, Query, Scope};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("The crawler ran").agent("crawler"))?;
    /// assert!(team.search("crawler")?.hits.is_empty());
    /// assert_eq!(team.search(Query::text("crawler").scope(Scope::agent("crawler")?))?.hits.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// With an embedding.
    ///
    /// ```
    /// use oubliette::{Draft, Query};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann prefers tea").vector([0.6, 0.8]))?;
    /// assert_eq!(team.search(Query::vector([0.8, 0.6]))?.hits.len(), 1);
    /// assert!(team.add(Draft::new("nothing").vector([0.0, 0.0])).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn vector(mut self, vector: impl Into<Vec<f32>>) -> Self {
        self.vector = Some(vector.into());
        self
    }

    /// With one more tag.
    ///
    /// ```
    /// use oubliette::{Draft, Forget};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann prefers tea").tag("people").tag("taste"))?;
    /// assert_eq!(team.forget(Forget::tag("taste"))?.forgotten, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.get_or_insert_default().push(tag.into());
        self
    }

    /// With an end of life: an instant (`expires_at` in JSON and on the command line), a lifetime (`ttl`), or never. A lifetime counts
    /// from the write, or from `valid_from` if the text begins later. An instant must lie after `valid_from`.
    ///
    /// ```
    /// use oubliette::Draft;
    /// use oubliette::memory::Expiry;
    /// use std::time::Duration;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let red = team.add(Draft::new("The build is red").expiry(Duration::from_secs(3_600)))?.id;
    /// assert!(team.get(red)?.unwrap().expires_at.is_some());
    /// let rule = team.add(Draft::new("Never deploy on Friday").expiry(Expiry::Never))?.id;
    /// assert!(team.get(rule)?.unwrap().expires_at.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn expiry(mut self, expiry: impl Into<Expiry>) -> Self {
        self.expiry = Some(expiry.into());
        self
    }

    /// With a payload beside the text.
    ///
    /// ```
    /// use oubliette::Draft;
    /// use oubliette::memory::Payload;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let shot = team.add(Draft::new("A screenshot of the login page").payload(vec![0x89, b'P', b'N', b'G']))?.id;
    /// assert_eq!(team.payload(shot)?, Some(Payload::Bytes(vec![0x89, b'P', b'N', b'G'])));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Payload>) -> Self {
        self.payload = Some(payload.into());
        self
    }

    /// Superseding the memory with this key or id.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let ghent = team.add("Ann lives in Ghent")?.id;
    /// team.add(Draft::new("Ann lives in Bruges").supersedes(ghent.to_string()))?;
    /// assert!(!team.is_visible(ghent)?);
    /// assert!(team.add(Draft::new("Ann lives in Bonn").supersedes("no such key")).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn supersedes(mut self, name: impl Into<String>) -> Self {
        self.supersedes.push(name.into());
        self
    }

    /// The bytes that the draft weighs in a group commit.
    pub(crate) fn weight(&self) -> usize {
        let payload = self.payload.as_ref().map_or(0, Payload::size);
        self.text.len() + payload + self.vector.as_ref().map_or(0, |v| v.len() * 4) + 256
    }
}

/// Changes to an existing memory. A given value replaces the stored value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    /// New content. The memory is revised: a new row supersedes the old one.
    pub text: Option<String>,
    /// A new vector for the content, of any positive length in space. The unit vector is stored.
    pub vector: Option<Vec<f32>>,
    /// The fields to change.
    pub fields: Fields,
    /// A new end of life; unchanged if absent.
    pub expiry: Option<Expiry>,
    /// The tags that the holder brings from now on.
    pub tags: Option<Vec<String>>,
    /// The categories that the holder brings from now on.
    pub categories: Option<Vec<String>>,
    /// The entities that the holder brings from now on.
    pub entities: Option<Vec<Entity>>,
    /// The links that the holder brings from now on.
    pub links: Option<Vec<Link>>,
    /// A new payload, or none from now on. With new text the payload is dropped unless the patch gives one.
    pub payload: Option<Option<Payload>>,
}

/// The argument of a builder, and the value made from it.
macro_rules! argument {
    (name, $ty:ty) => { impl Into<String> };
    ($bound:ident, $ty:ty) => { $ty };
}

macro_rules! argued {
    (name, $value:ident) => {
        $value.into()
    };
    ($bound:ident, $value:ident) => {
        $value
    };
}

macro_rules! wrapped {
    (Option, $value:expr) => {
        Some($value)
    };
    (Field, $value:expr) => {
        Field::Value($value)
    };
}

/// The line of an example that shows how a bound refuses a value; a hidden empty line for fields without one.
macro_rules! refused {
    (unit, $($call:expr),+) => {
        refused!(@ "7.0", $($call),+)
    };
    (amount, $($call:expr),+) => {
        refused!(@ "-1.0", $($call),+)
    };
    (name, $($call:expr),+) => {
        refused!(@ r#""x".repeat(1_025)"#, $($call),+)
    };
    (metadata, $($call:expr),+) => {
        refused!(@ r#"json!("no object")"#, $($call),+)
    };
    (array, $($call:expr),+) => {
        refused!(@ r#"json!("no array")"#, $($call),+)
    };
    (@ $value:literal, $($call:expr),+) => {
        concat!("assert!(", $($call),+, "(", $value, ")).is_err());")
    };
    ($bound:ident, $($call:expr),+) => {
        "#"
    };
}

macro_rules! builders {
    ($($part:ident { $(
        $(#[$doc:meta])*
        $number:literal $name:ident: $wrap:ident<$ty:ty> = $default:expr, $($place:ident).+, $bound:ident, $json:ident,
        $journal:ident, $merge:ident, $sample:literal;
    )+ })+) => {
        /// A builder for each field of the table.
        impl Draft {
            $($(
                $(#[$doc])*
                ///
                /// ```
                /// # use oubliette::memory::{Attachment, AuthorKind, Significance, Tier, TimeRange};
                /// # use oubliette::{Database, Draft, Kind, MemoryId, embed::Embed};
                /// # use serde_json::json;
                /// # let folder = tempfile::tempdir()?;
                /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
                #[doc = concat!("team.add(Draft::new(\"Ann prefers tea\").", stringify!($name), "(", $sample, "))?;")]
                #[doc = refused!($bound, "team.add(Draft::new(\"Ann prefers tea\").", stringify!($name))]
                /// # Ok::<(), Box<dyn std::error::Error>>(())
                /// ```
                #[must_use]
                pub fn $name(mut self, $name: argument!($bound, $ty)) -> Self {
                    self.fields.$name = wrapped!($wrap, argued!($bound, $name));
                    self
                }
            )+)+
        }

        /// A builder for each field of the table. A [`Field`] is cleared by setting it to [`Field::Null`].
        impl Patch {
            $($(
                $(#[$doc])*
                ///
                /// ```
                /// # use oubliette::memory::{Attachment, AuthorKind, Significance, Tier, TimeRange};
                /// # use oubliette::{Database, Draft, Kind, MemoryId, Patch, embed::Embed};
                /// # use serde_json::json;
                /// # let folder = tempfile::tempdir()?;
                /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
                /// team.add(Draft::new("Ann prefers tea").key("drink"))?;
                #[doc = concat!("team.update(\"drink\", Patch::new().", stringify!($name), "(", $sample, "))?;")]
                #[doc = refused!($bound, "team.update(\"drink\", Patch::new().", stringify!($name))]
                /// # Ok::<(), Box<dyn std::error::Error>>(())
                /// ```
                #[must_use]
                pub fn $name(mut self, $name: argument!($bound, $ty)) -> Self {
                    self.fields.$name = wrapped!($wrap, argued!($bound, $name));
                    self
                }
            )+)+
        }
    };
}

memory_fields!(builders);

impl Patch {
    /// A patch that changes nothing.
    ///
    /// ```
    /// use oubliette::Patch;
    ///
    /// let patch = Patch::new().text("Ann lives in Bruges").importance(0.8).tags(["people"]);
    /// assert_eq!(patch.text.as_deref(), Some("Ann lives in Bruges"));
    /// assert_eq!(Patch::new(), Patch::default());
    /// ```
    pub fn new() -> Self {
        Patch::default()
    }

    /// Sets the new content.
    ///
    /// ```
    /// use oubliette::{Draft, Patch};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").key("home"))?;
    /// team.update("home", Patch::new().text("Ann lives in Bruges"))?;
    /// assert_eq!(team.get("home")?.unwrap().text, "Ann lives in Bruges");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Sets the new vector, of any positive length in space.
    ///
    /// ```
    /// use oubliette::{Draft, Patch, Query};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann prefers tea").key("drink").vector([1.0, 0.0]))?;
    /// team.update("drink", Patch::new().vector([0.0, 1.0]))?;
    /// assert!(team.search(Query::vector([0.0, 1.0]))?.hits[0].score > 0.99);
    /// assert!(team.update("drink", Patch::new().vector([1.0])).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn vector(mut self, vector: impl Into<Vec<f32>>) -> Self {
        self.vector = Some(vector.into());
        self
    }

    /// Sets the end of life: an instant (`expires_at` in JSON and on the command line), a lifetime (`ttl`), or never. A lifetime counts
    /// from the change, or from when the text begins to be true if that is later. An instant must lie after that beginning.
    ///
    /// ```
    /// use oubliette::memory::Expiry;
    /// use oubliette::{Draft, Patch};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("The build is red").key("build"))?;
    /// team.update("build", Patch::new().expiry(std::time::Duration::from_secs(60)))?;
    /// assert!(team.get("build")?.unwrap().expires_at.is_some());
    /// team.update("build", Patch::new().expiry(Expiry::Never))?;
    /// assert!(team.get("build")?.unwrap().expires_at.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn expiry(mut self, expiry: impl Into<Expiry>) -> Self {
        self.expiry = Some(expiry.into());
        self
    }

    /// Sets the tags that the holder brings from now on. No tag of before stays.
    ///
    /// ```
    /// use oubliette::{Draft, Patch};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann prefers tea").key("drink").tag("old"))?;
    /// team.update("drink", Patch::new().tags(["people", "taste"]))?;
    /// assert_eq!(team.get("drink")?.unwrap().tags, ["people", "taste"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }
}

/// A draft within every bound, with its sets sorted. Only [`CheckedDraft::new`] makes one.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedDraft {
    draft: Draft,
    partition: Partition,
}

impl CheckedDraft {
    /// Checks every bound; the tag `pinned` and the flag are set together.
    ///
    /// # Errors
    /// `Invalid` naming the first field that breaks its bound. Only the length of a vector is checked here.
    /// Its numbers are checked where the vector becomes a unit vector.
    pub fn new(mut draft: Draft) -> Result<Self> {
        let partition = Partition::of(draft.agent.as_deref())?;
        draft.key.as_deref().map_or(Ok(()), check_key)?;
        check_content(&draft.text, draft.vector.is_some())?;
        draft.vector.as_deref().map_or(Ok(()), check_vector_length)?;
        draft.fields.check()?;
        check_life(draft.expiry, draft.fields.valid_from.value())?;
        draft.payload.as_ref().map_or(Ok(()), Payload::check)?;
        draft.tags = draft.tags.map(|tags| check_tags(&tags)).transpose()?;
        draft.categories = draft.categories.map(|names| check_categories(&names)).transpose()?;
        draft.entities = draft.entities.map(|entities| check_entities(&entities)).transpose()?;
        draft.links = draft.links.map(|links| check_links(&links)).transpose()?;
        check_supersedes(&draft.supersedes)?;
        if let Some(sources) = draft.sources.as_ref().filter(|s| s.len() > LINKS_MAX) {
            return Err(Error::invalid(
                "sources",
                format!("must have at most {LINKS_MAX} entries"),
                sources.len(),
            ));
        }
        pin_both(&mut draft.tags, &mut draft.fields.pinned)?;
        Ok(CheckedDraft { draft, partition })
    }

    /// The checked draft.
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// The partition of the memory.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// The key.
    pub fn key(&self) -> Option<&str> {
        self.draft.key.as_deref()
    }

    /// The same draft in another partition.
    pub(crate) fn moved(mut self, partition: Partition) -> Self {
        self.draft.agent = partition.agent_name().map(str::to_owned);
        self.partition = partition;
        self
    }

    /// The same draft under a key of the policy, which was checked with the policy.
    pub(crate) fn keyed(mut self, key: &str) -> Self {
        self.draft.key = Some(key.to_owned());
        self
    }

    /// What this draft and a later one with the same key and text say together, one written after the other.
    pub(crate) fn followed_by(mut self, later: &Draft) -> Self {
        let Draft { fields, expiry, tags, categories, entities, links, sources, payload, .. } = later.clone();
        let draft = &mut self.draft;
        draft.fields.take_given(&fields);
        draft.expiry = expiry.or(draft.expiry);
        draft.tags = tags.or(draft.tags.take());
        draft.categories = categories.or(draft.categories.take());
        draft.entities = entities.or(draft.entities.take());
        draft.links = links.or(draft.links.take());
        draft.sources = sources.or(draft.sources.take());
        draft.payload = payload.or(draft.payload.take());
        self
    }

    /// Takes the vector out. From then on the unit vector stands for it.
    pub(crate) fn take_vector(&mut self) -> Option<Vec<f32>> {
        self.draft.vector.take()
    }
}

/// Checks the bounds of a patch, which are those of a draft.
///
/// # Errors
/// `Invalid` naming the first field that breaks its bound.
pub(crate) fn check_patch(mut patch: Patch) -> Result<Patch> {
    patch.text.as_deref().map_or(Ok(()), |text| check_content(text, patch.vector.is_some()))?;
    patch.vector.as_deref().map_or(Ok(()), check_vector_length)?;
    patch.fields.check()?;
    check_life(patch.expiry, patch.fields.valid_from.value())?;
    patch.payload.iter().flatten().try_for_each(Payload::check)?;
    patch.tags = patch.tags.map(|tags| check_tags(&tags)).transpose()?;
    patch.categories = patch.categories.map(|names| check_categories(&names)).transpose()?;
    patch.entities = patch.entities.map(|entities| check_entities(&entities)).transpose()?;
    patch.links = patch.links.map(|links| check_links(&links)).transpose()?;
    Ok(patch)
}

/// An end of life before the text begins would leave nothing to be true.
fn check_life(expiry: Option<Expiry>, from: Option<&Time>) -> Result<()> {
    match (expiry, from) {
        (Some(Expiry::At(end)), Some(from)) if end <= *from => {
            Err(Error::invalid("expires_at", format!("must lie after valid_from, {from}"), end))
        }
        _ => Ok(()),
    }
}

/// Lets the tag `pinned` set the flag, and the flag set the tag.
pub(crate) fn pin_both(tags: &mut Option<Vec<String>>, pinned: &mut Option<bool>) -> Result<()> {
    let tagged = tags.as_ref().is_some_and(|tags| tags.iter().any(|tag| tag == PINNED_TAG));
    if tagged {
        *pinned = Some(true);
    } else if *pinned == Some(true) {
        let mut all = tags.take().unwrap_or_default();
        all.push(PINNED_TAG.to_owned());
        *tags = Some(check_tags(&all)?);
    }
    Ok(())
}

/// Whether a text says nothing: it is empty, or white space alone. No search finds it by words, and no embedder is asked
/// for its vector.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Checks the bounds of content: 1 byte to 1 MiB, no NUL; blank only beside a vector.
pub(crate) fn check_content(text: &str, has_vector: bool) -> Result<()> {
    if !has_vector && is_blank(text) {
        let given = if text.is_empty() { "an empty text" } else { "only white space" };
        return Err(Error::invalid("text", "must not be empty without a vector", given));
    }
    if text.len() > CONTENT_BYTES_MAX {
        let why = format!("must be at most {CONTENT_BYTES_MAX} bytes");
        return Err(Error::invalid("text", why, format!("{} bytes", text.len())));
    }
    if text.contains('\0') {
        return Err(Error::invalid(
            "text",
            "must not contain NUL",
            text.chars().take(40).collect::<String>().escape_default(),
        ));
    }
    Ok(())
}

fn check_vector_length(vector: &[f32]) -> Result<()> {
    if vector.is_empty() || vector.len() > DIM_MAX {
        return Err(Error::invalid("vector", format!("must have 1 to {DIM_MAX} dimensions"), vector.len()));
    }
    Ok(())
}
