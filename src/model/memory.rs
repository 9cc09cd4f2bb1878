//! A stored memory: its hot part, its cold part, its statistics and its holders.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::draft::IMPORT_TAGS;
use crate::model::field::{Attachment, Embed, Entity, Fields, Link, TimeRange, memory_fields, stored};
use crate::model::id::{MemoryId, RunId};
use crate::model::kind::{AuthorKind, ExpiresBy, Kind, Significance, State, Tier};
use crate::model::limbo::Limbo;
use crate::model::name::{NamespaceName, Partition};
use crate::model::parts::Parts;
use crate::model::payload::Payload;
use crate::model::time::Time;
use crate::model::visible::{Announced, Overtaken, Supersession, Times};

/// One write that a row stands for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    /// The number in the row.
    pub number: u32,
    /// The key that was written. Keyless writes with equal tags and run share a holder.
    pub key: Option<String>,
    /// The number of writes that the holder stands for; more than 1 only without a key.
    pub count: u32,
    /// The share of the row's reinforcement count.
    pub share: u32,
    /// The transaction time since which the row has the holder: that of its write, or that at which it came from another row.
    #[serde(default)]
    pub since: Time,
    /// The tags that the write brought, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The categories that the write brought, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// The entities that the write brought, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<Entity>,
    /// The links that the write brought, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// The code of each other field that the write gave, with the first 8 bytes of the HMAC of its value, by
    /// code. In JSON the names of the fields, because the HMACs depend on the database; behind a `!` each of which the memory
    /// has another value than the write gave, or none.
    #[serde(default, with = "names_of_fields", skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(u8, [u8; 8])>,
    /// The import that brought the write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The holder's own text, where it differs from that of the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The row from which the holder came when that row was superseded or merged. A restore brings the holder
    /// back there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<MemoryId>,
    /// Whether the holder wrote a text other than the row's and keeps none of its own. Such a holder came with a
    /// supersession, as a way to the newest text, or was merged without a key. It does not keep the text of the row
    /// alive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follows: bool,
}

/// The code, among the fields of a holder, of its text having been there before the first of its tags that name an import. Such a tag
/// goes without the holder.
const SAID_BEFORE_CODE: u8 = 249;
/// The code of the expiry among the fields of a holder. The codes of the fields of the table are their numbers.
pub(crate) const EXPIRY_CODE: u8 = 250;
/// The code of the sources among the fields of a holder.
pub(crate) const SOURCES_CODE: u8 = 251;
/// The code, among the fields of a holder, of the instant at which its text takes the place of what its key says.
pub(crate) const REPLACES_CODE: u8 = 252;
/// The code, among the fields of a holder, of the vector that came with a text of its own.
pub(crate) const VECTOR_CODE: u8 = 253;
/// The code, among the fields of a holder, of its writer having said something since that has ended for good. Only a holder of a row
/// has it that a pass has united with another: an undo that brings the row back does not bring that writer back.
const ENDED_CODE: u8 = 254;
/// The code, among the fields of a holder, of its writer having written what took the place of the memory and was forgotten since.
/// Other keys only led there, and answer with nothing any more.
const WROTE_NEXT_CODE: u8 = 255;
/// What stands in the place of an HMAC where an export names a field of a holder alone.
pub(crate) const NOT_TOLD: [u8; 8] = [0; 8];
/// What stands in the place of the HMAC of a field of which the memory has another value than the holder gave, or none.
const OTHERWISE: [u8; 8] = [u8::MAX; 8];
/// The codes of what a caller gives beside the fields of the table, with their names in an export.
const BESIDE_THE_TABLE: [(u8, &str); 7] = [
    (SAID_BEFORE_CODE, "said_before"),
    (EXPIRY_CODE, "expires_at"),
    (SOURCES_CODE, "sources"),
    (REPLACES_CODE, "replaces_at"),
    (VECTOR_CODE, "vector"),
    (ENDED_CODE, "ended_since"),
    (WROTE_NEXT_CODE, "wrote_next"),
];

/// For `serde(with)`: the fields of a holder by their names, or `#` and the number for a field that nobody knows any more.
mod names_of_fields {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::error::{Error, Result};
    use crate::model::field::Fields;
    use crate::model::memory::{BESIDE_THE_TABLE, NOT_TOLD, OTHERWISE};

    /// What stands before the name of a field of which the memory has another value.
    const ANOTHER: char = '!';

    fn known() -> impl Iterator<Item = &'static (u8, &'static str)> {
        Fields::NAMES.iter().chain(&BESIDE_THE_TABLE)
    }

    pub(super) fn serialize<S: Serializer>(fields: &[(u8, [u8; 8])], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(fields.iter().map(|(number, hmac)| match *hmac {
            OTHERWISE => format!("{ANOTHER}{}", name_of(*number)),
            _ => name_of(*number),
        }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(u8, [u8; 8])>, D::Error> {
        let names: Vec<String> = Deserialize::deserialize(from)?;
        let fields = names.iter().map(|name| match name.strip_prefix(ANOTHER) {
            Some(name) => Ok((number_of(name)?, OTHERWISE)),
            None => Ok((number_of(name)?, NOT_TOLD)),
        });
        let mut fields = fields.collect::<Result<Vec<_>>>().map_err(D::Error::custom)?;
        fields.sort_unstable();
        fields.dedup_by_key(|(number, _)| *number);
        Ok(fields)
    }

    fn name_of(number: u8) -> String {
        let known = known().find(|(known, _)| *known == number);
        known.map_or_else(|| format!("#{number}"), |(_, name)| (*name).to_owned())
    }

    fn number_of(name: &str) -> Result<u8> {
        let named = known().find(|(_, known)| *known == name).map(|(number, _)| *number);
        let numbered = || name.strip_prefix('#')?.parse().ok().filter(|number| name_of(*number) == name);
        let number = named.or_else(numbered);
        number.ok_or_else(|| Error::invalid("fields", "must name fields of a memory", name))
    }
}

impl Holder {
    /// Whether the holder wrote the text of its row. The text lives as long as such a holder exists.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// assert!(team.get(tea)?.unwrap().holders[0].wrote_row_text());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wrote_row_text(&self) -> bool {
        self.text.is_none() && !self.follows
    }

    /// Whether the instant since which a memory has the holder lies before the memory was there. A memory that says now what another of
    /// its writers said is recorded later than it was made, and one that was known before it was made earlier.
    pub(crate) fn came_before(&self, id: MemoryId, recorded_at: Time) -> bool {
        self.since < recorded_at.min(id.made_at())
    }

    /// Whether the write of the holder gave an end of life.
    pub(crate) fn gave_expiry(&self) -> bool {
        self.fields.iter().any(|(code, _)| *code == EXPIRY_CODE)
    }

    /// Whether the holder was written to take the place of what its key says, at an instant that lay ahead.
    pub(crate) fn replaces_ahead(&self) -> bool {
        !self.follows && self.fields.iter().any(|(code, _)| *code == REPLACES_CODE)
    }

    /// Whether the writer has said something since that has ended for good, or has ended its record.
    pub(crate) fn has_ended(&self) -> bool {
        self.fields.iter().any(|(code, _)| *code == ENDED_CODE)
    }

    /// Notes that the writer has said something since that ends for good. Returns whether that was not noted yet.
    pub(crate) fn note_ended(&mut self) -> bool {
        let is_new = !self.has_ended();
        if is_new {
            self.fields.push((ENDED_CODE, NOT_TOLD));
            self.fields.sort_unstable();
        }
        is_new
    }

    /// Forgets what [`Self::note_ended`] has noted: a caller has brought the row back. Returns whether that was noted.
    pub(crate) fn forget_ended(&mut self) -> bool {
        let noted = self.has_ended();
        self.fields.retain(|(code, _)| *code != ENDED_CODE);
        noted
    }

    /// Whether its writer wrote what took the place of the memory and was forgotten since, so that the key keeps its history.
    pub(crate) fn wrote_next(&self) -> bool {
        self.fields.iter().any(|(code, _)| *code == WROTE_NEXT_CODE)
    }

    /// Notes whether its writer wrote what took the place of the memory. Returns whether that was noted otherwise before.
    pub(crate) fn note_next(&mut self, wrote: bool) -> bool {
        let is_new = wrote != self.wrote_next();
        self.fields.retain(|(code, _)| *code != WROTE_NEXT_CODE);
        self.fields.extend(wrote.then_some((WROTE_NEXT_CODE, NOT_TOLD)));
        self.fields.sort_unstable();
        is_new
    }

    /// The tags that name imports.
    pub(crate) fn import_tags(&self) -> impl Iterator<Item = &String> {
        self.tags.iter().filter(|tag| tag.starts_with(IMPORT_TAGS))
    }

    /// Whether the text was there before the first of its tags that name an import.
    pub(crate) fn said_before(&self) -> bool {
        self.fields.iter().any(|(code, _)| *code == SAID_BEFORE_CODE)
    }

    /// Notes whether the text was there before the first of its tags that name an import.
    pub(crate) fn note_before(&mut self, said: bool) {
        self.fields.retain(|(code, _)| *code != SAID_BEFORE_CODE);
        self.fields.extend(said.then_some((SAID_BEFORE_CODE, NOT_TOLD)));
        self.fields.sort_unstable();
    }

    /// Whether a key says its text beside the import that this tag names: the text was there before, or another import says it as
    /// well.
    pub(crate) fn is_said_beside(&self, tag: &str) -> bool {
        let says_more = self.said_before() || self.import_tags().any(|other| other != tag);
        self.key.is_some() && tag.starts_with(IMPORT_TAGS) && says_more
    }

    /// Takes off what names the imports of a text that the key says no more.
    pub(crate) fn leave_imports(&mut self) {
        self.tags.retain(|tag| !tag.starts_with(IMPORT_TAGS));
        self.note_before(false);
    }

    /// Whether a holder of an export gave the value that its memory has of a field.
    pub(crate) fn gave_value(&self, field: &str) -> bool {
        self.given(field) == Some(NOT_TOLD)
    }

    /// Whether the write of the holder gave a value of a field.
    pub(crate) fn gave(&self, field: &str) -> bool {
        self.given(field).is_some()
    }

    fn given(&self, field: &str) -> Option<[u8; 8]> {
        let code = Fields::NAMES.iter().find(|(_, name)| *name == field).map(|(code, _)| *code);
        self.fields.iter().find(|(of, _)| Some(*of) == code).map(|(_, hmac)| *hmac)
    }

    /// Marks each field of which the memory, with the HMACs of its own values, says another value than the holder gave, or none.
    pub(crate) fn mark_otherwise(&mut self, said: &[(u8, [u8; 8])]) {
        for field in &mut self.fields {
            let is_of_table = Fields::NAMES.iter().any(|(code, _)| *code == field.0);
            if is_of_table && !said.contains(field) {
                field.1 = OTHERWISE;
            }
        }
    }

    /// Whether the holder has written a text in its row: that of the row, or one of its own.
    pub(crate) fn has_text(&self) -> bool {
        !self.follows
    }

    /// Whether this holder is the copy of `other` that was taken along to another row. A key is on a row once; writes without a
    /// key are told apart by what they brought.
    pub(crate) fn is_copy_of(&self, other: &Holder) -> bool {
        match &self.key {
            Some(_) => self.key == other.key,
            None => {
                other.key.is_none()
                    && (&self.tags, self.run, self.count) == (&other.tags, other.run, other.count)
            }
        }
    }

    /// The holder after its row, with the text `old`, was merged into a row with the text `new`. A key keeps the text
    /// that it answers with. A write without a key keeps no text.
    pub(crate) fn merged(mut self, old: &str, new: &str) -> Self {
        if !self.follows {
            let text = self.text.take().unwrap_or_else(|| old.to_owned());
            let differs = text != new;
            self.follows = differs && self.key.is_none();
            self.text = Some(text).filter(|_| differs && !self.follows);
        }
        self
    }

    /// The holder after its row, with the text `old`, was superseded by a row with the text `new`: its key leads to the newest text.
    /// The holder has written that text only if it wrote the same text.
    pub(crate) fn led_on(self, old: &str, new: &str) -> Self {
        let same = self.text.as_deref().unwrap_or(old) == new;
        Holder { text: None, follows: self.follows || !same, ..self }
    }

    /// Whether a keyless write with these tags, this run and this text of its own is a repeat of this
    /// holder's write.
    pub(crate) fn takes_keyless(&self, tags: &[String], run: Option<RunId>, text: Option<&str>) -> bool {
        let is_like = self.key.is_none() && self.from.is_none() && !self.follows;
        is_like && self.run == run && self.tags == tags && self.text.as_deref() == text
    }
}

macro_rules! memory {
    (own { $($own:tt)+ } $($part:ident { $(
        $(#[$doc:meta])*
        $number:literal $name:ident: $wrap:ident<$ty:ty> = $default:expr, $($place:ident).+, $bound:ident, $json:ident,
        $journal:ident, $merge:ident, $sample:literal;
    )+ })+) => {
        /// A memory as it is shown, with everything that is stored of it.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct Memory {
            /// The id.
            pub id: MemoryId,
            /// The namespace.
            pub namespace: NamespaceName,
            /// The partition.
            pub partition: Partition,
            /// The state at the instant of the read.
            pub state: State,
            /// All keys that the memory answers to, sorted.
            pub keys: Vec<String>,
            /// The text as the caller asked for it. A key whose holder wrote other bytes answers with these
            /// bytes.
            pub text: String,
            /// The text of the row, which is that of most holders.
            pub row_text: String,
            /// The kind.
            pub kind: Kind,
            /// The number of observations that the memory stands for, at least 1.
            pub reinforcement_count: u32,
            /// The union of the tags of all holders, sorted.
            pub tags: Vec<String>,
            /// The union of the categories of all holders.
            pub categories: Vec<String>,
            /// The union of the entities of all holders.
            pub entities: Vec<Entity>,
            /// The union of the links of all holders.
            pub links: Vec<Link>,
            /// The provenance.
            pub sources: Vec<MemoryId>,
            /// When the database learned of the memory: transaction time.
            pub recorded_at: Time,
            /// When a supersession gave `valid_from` to the memory, which was there before; none if a write gave it.
            pub valid_from_recorded_at: Option<Time>,
            /// What `valid_to` was before the memory was replaced.
            pub valid_to_before: Option<Time>,
            /// An end that was announced, and that the supersession of the memory has overtaken before it came.
            pub announced: Option<Announced>,
            /// The supersessions at instants ahead that another one has come before, in the order of their instants.
            pub overtaken: Vec<Overtaken>,
            /// The end of life, exclusive; none means never.
            pub expires_at: Option<Time>,
            /// Who set the end of life.
            pub expires_by: ExpiresBy,
            /// The supersession of the memory: by which memory, when and how.
            pub superseded: Option<Supersession>,
            /// When maintenance removed the memory; only for a memory in limbo.
            pub removed_at: Option<Time>,
            /// How the memory was removed; only for a memory in limbo.
            pub limbo: Option<Box<Limbo>>,
            /// The other side of a supersession that lies ahead. For a memory that is still visible, the memory that
            /// will take its place. For the memory to come, the memory that is visible until then.
            pub also: Option<MemoryId>,
            /// The version: 1 at first, and one more with every change except the counts of use.
            pub version: u64,
            /// A count that grows with each counted use.
            pub access_seq: u64,
            /// Whether the memory is a summary whose sources were removed.
            pub deletes_source: bool,
            /// Whether the memory waits for a vector.
            pub pending: bool,
            /// The writes that the memory stands for.
            pub holders: Vec<Holder>,
            /// The number for the next holder.
            pub next_holder: u32,
            /// The unit vector, if the caller asked for it.
            pub vector: Option<Vec<f32>>,
            /// The embedding space of `vector`: the id of the embedder, or `caller`; only beside a vector.
            pub embedding_space: Option<String>,
            /// Whether searches look in another space by now: the embedder of the database was changed since.
            pub is_of_former_space: bool,
            /// Whether the memory carries a payload.
            pub has_payload: bool,
            /// The payload. Only an export reads it with the memory; others ask
            /// [`Namespace::payload`](crate::Namespace::payload).
            pub payload: Option<Payload>,
            $($($(#[$doc])* pub $name: stored!($wrap, $ty),)+)+
        }

        impl Memory {
            /// The memory with these parts. Its namespace, its partition, what it is joined to and its vector are
            /// still empty.
            pub(crate) fn of(id: MemoryId, parts: Parts) -> Self {
                let kind = parts.kind();
                let times = parts.vitals.times;
                Memory {
                    id,
                    namespace: NamespaceName::default(),
                    partition: Partition::Shared,
                    state: State::Live,
                    keys: Vec::new(),
                    text: parts.content.text.clone(),
                    row_text: parts.content.text,
                    kind,
                    reinforcement_count: parts.vitals.reinforcement_count,
                    tags: parts.content.tags,
                    categories: Vec::new(),
                    entities: Vec::new(),
                    links: Vec::new(),
                    sources: Vec::new(),
                    recorded_at: times.recorded_at,
                    valid_from_recorded_at: times.valid_from_recorded_at,
                    valid_to_before: times.valid_to_before,
                    announced: times.announced,
                    overtaken: parts.vitals.overtaken,
                    expires_at: times.expires_at,
                    expires_by: parts.vitals.expires_by,
                    superseded: times.superseded,
                    removed_at: times.removed_at,
                    limbo: None,
                    also: None,
                    version: parts.vitals.version,
                    access_seq: parts.access.access_seq,
                    deletes_source: parts.vitals.deletes_source,
                    pending: parts.vitals.place.slot.is_none(),
                    holders: Vec::new(),
                    next_holder: parts.vitals.place.next_holder,
                    vector: None,
                    embedding_space: None,
                    is_of_former_space: false,
                    has_payload: parts.vitals.place.payload,
                    payload: None,
                    $($($name: parts.$part.$($place).+,)+)+
                }
            }

            /// What the rows of the memory itself store. Only the engine knows where they lie.
            pub(crate) fn parts(&self) -> Parts {
                let mut parts = Parts::new(&self.row_text, self.recorded_at);
                $($(parts.$part.$($place).+.clone_from(&self.$name);)+)+
                let Parts { vitals, content, access } = &mut parts;
                vitals.times.valid_from_recorded_at = self.valid_from_recorded_at;
                vitals.times.valid_to_before = self.valid_to_before;
                vitals.times.announced = self.announced;
                vitals.overtaken.clone_from(&self.overtaken);
                vitals.times.expires_at = self.expires_at;
                vitals.times.superseded = self.superseded;
                vitals.times.removed_at = self.removed_at;
                vitals.expires_by = self.expires_by;
                vitals.kind_code = self.kind.code();
                vitals.reinforcement_count = self.reinforcement_count;
                vitals.deletes_source = self.deletes_source;
                vitals.version = self.version;
                vitals.place.next_holder = self.next_holder;
                vitals.place.holders = u32::try_from(self.holders.len()).unwrap_or(u32::MAX);
                content.custom_kind = self.kind.custom_name().map(str::to_owned);
                content.tags.clone_from(&self.tags);
                access.access_seq = self.access_seq;
                parts
            }
        }
    };
}

memory_fields!(memory);

impl Memory {
    /// The key that was written first: hits, listings and lines name the memory by it.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let zoo = team.add(Draft::new("The zoo opens at nine").key("zoo"))?.id;
    /// assert_eq!(team.add(Draft::new("The zoo opens at nine").key("animals"))?.id, zoo);
    /// assert_eq!(team.get(zoo)?.unwrap().key(), Some("zoo"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn key(&self) -> Option<&str> {
        self.holders.iter().find_map(|holder| holder.key.as_deref())
    }

    /// The instants that decide when the memory is visible.
    pub(crate) fn times(&self) -> Times {
        Times {
            recorded_at: self.recorded_at,
            valid_from: self.valid_from,
            valid_from_recorded_at: self.valid_from_recorded_at,
            valid_to: self.valid_to,
            valid_to_before: self.valid_to_before,
            announced: self.announced,
            expires_at: self.expires_at,
            superseded: self.superseded,
            removed_at: self.removed_at,
        }
    }

    /// The memory that took its place.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let ghent = team.add("Ann lives in Ghent")?.id;
    /// let bruges = team.supersede(ghent, "Ann lives in Bruges")?.id;
    /// assert_eq!(team.get(ghent)?.unwrap().superseded_by(), Some(bruges));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn superseded_by(&self) -> Option<MemoryId> {
        self.superseded.map(|superseded| superseded.by)
    }

    /// Whether automatic actors must leave the memory alone.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let nuts = team.add("Ann is allergic to nuts")?.id;
    /// assert!(!team.get(nuts)?.unwrap().is_protected());
    /// team.pin(nuts, true)?;
    /// assert!(team.get(nuts)?.unwrap().is_protected());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_protected(&self) -> bool {
        self.pinned || self.admin_locked || self.system_locked
    }

    /// When anyone last touched the memory.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.get(team.add("Ann prefers tea")?.id)?.unwrap();
    /// assert_eq!(tea.last_accessed(), tea.created_at);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn last_accessed(&self) -> Time {
        [self.last_retrieved, self.last_included_at, self.last_reinforced_at]
            .into_iter()
            .flatten()
            .fold(self.created_at, Time::max)
    }

    /// How often the memory was used.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add(Draft::new("Ann prefers tea").retrieval_count(3))?.id;
    /// assert_eq!(team.get(tea)?.unwrap().access_count(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn access_count(&self) -> u64 {
        self.retrieval_count.max(self.included_count_total)
    }
}
