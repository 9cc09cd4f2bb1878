//! What a write and a row must have in common besides their text before the row stands for the write. A pass
//! that merges stored rows asks the same of both.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::error::Result;
use crate::model::{Content, Draft, Holder, Kind, MemoryId, RunId, Time, Vitals};
use crate::store::{NsId, Rows};
use crate::text::{LIKENESS_BYTES, likeness};

/// The metadata keys that name the owner of a memory. Rows that differ in one of them are never merged.
pub(crate) const IDENTITY_KEYS: [&str; 5] =
    ["import_source_namespace", "user_id", "agent_id", "run_id", "project"];

/// Kind, validity and metadata. Step 2 requires that they are equal. If the metadata are equal as a whole, they are
/// also equal in the keys of the owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Likeness<'a> {
    kind: Kind,
    valid_from: Option<Time>,
    valid_to: Option<Time>,
    metadata: Cow<'a, Value>,
    /// What carries a payload stands for itself alone.
    payload: bool,
}

impl<'a> Likeness<'a> {
    pub(crate) fn of_draft(draft: &'a Draft) -> Self {
        let fields = &draft.fields;
        let none = || Cow::Owned(Value::Object(Map::new()));
        Likeness {
            kind: fields.kind.clone().unwrap_or_default(),
            valid_from: fields.valid_from.value().copied(),
            valid_to: fields.valid_to.value().copied(),
            metadata: fields.metadata.as_ref().map_or_else(none, Cow::Borrowed),
            payload: draft.payload.is_some(),
        }
    }

    pub(crate) fn of_row(vitals: &Vitals, content: &'a Content) -> Self {
        Likeness {
            kind: content.kind(vitals.kind_code),
            valid_from: vitals.times.valid_from,
            valid_to: vitals.times.valid_to,
            metadata: Cow::Borrowed(&content.metadata),
            payload: vitals.place.payload,
        }
    }

    /// The same of what begins at another instant.
    pub(super) fn beginning(self, valid_from: Option<Time>) -> Self {
        Likeness { valid_from, ..self }
    }

    /// The key under which rows with the same likeness and text are found.
    pub(super) fn key(&self, text: &str) -> [u8; LIKENESS_BYTES] {
        likeness(&self.kind, self.valid_from, self.valid_to, &self.metadata, text)
    }

    pub(crate) fn into_owned(self) -> Likeness<'static> {
        let Likeness { metadata, .. } = self;
        Likeness { metadata: Cow::Owned(metadata.into_owned()), ..self }
    }

    /// Whether kind, validity and owner are equal, as steps 3, 4 and 6 require.
    pub(super) fn is_near(&self, other: &Likeness<'_>) -> bool {
        self.kind == other.kind
            && self.payload == other.payload
            && self.valid_from == other.valid_from
            && self.valid_to == other.valid_to
            && IDENTITY_KEYS.iter().all(|key| self.metadata.get(key) == other.metadata.get(key))
    }
}

/// What the metadata of a memory name as its owner.
pub(crate) fn owner_in(metadata: &Value) -> Map<String, Value> {
    IDENTITY_KEYS.iter().filter_map(|key| Some(((*key).to_owned(), metadata.get(key)?.clone()))).collect()
}

/// The same as text: empty where they name none. Rows of different owners are
/// never merged.
pub(crate) fn owner_of(metadata: &Value) -> String {
    let named = IDENTITY_KEYS.map(|key| metadata.get(key));
    if named.iter().all(Option::is_none) {
        return String::new();
    }
    Value::Array(named.into_iter().map(|value| value.cloned().unwrap_or_default()).collect()).to_string()
}

/// Whether steps 2, 3, 4 and 6 skip a write. Messages with an author and without a key belong to the message
/// rules, and snapshots are a series.
pub(crate) fn stands_apart(kind: &Kind, has_author: bool, has_key: bool) -> bool {
    *kind == Kind::Snapshot || (kind.is_message() && has_author && !has_key)
}

/// The same of a draft.
pub(super) fn skips_content(draft: &Draft) -> bool {
    let kind = draft.fields.kind.clone().unwrap_or_default();
    draft.payload.is_some()
        || is_verbatim(draft)
        || stands_apart(&kind, draft.fields.author_kind.value().is_some(), draft.key.is_some())
}

/// Whether a row stands for the writes of one writer alone, and a draft is one more of them: no key, the same tags and the
/// same run.
pub(super) fn is_of_one_writer(
    rows: &impl Rows,
    ns: NsId,
    id: MemoryId,
    draft: &Draft,
    run: Option<RunId>,
) -> Result<bool> {
    let tags = draft.tags.as_deref().unwrap_or_default();
    let mut is_other = |holder: &Holder| !holder.takes_keyless(tags, run, holder.text.as_deref());
    Ok(draft.key.is_none() && !rows.any_holder(ns, id, &mut is_other)?)
}

/// Whether a row is a record of its own, with which no pass unites another row: it carries a payload, or its writer asked
/// for it.
pub(crate) fn is_record_of_its_own(vitals: &Vitals, content: &Content) -> bool {
    vitals.place.payload || content.verbatim
}

/// Whether the writer of a draft asks for a row of its own, whatever is near or equal.
pub(super) fn is_verbatim(draft: &Draft) -> bool {
    draft.fields.verbatim == Some(true)
}
