//! What an export wrote, put back together: memories with the fields that the engine keeps, and tombstones.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::exchange::line::{DraftLine, typed, typed_within};
use crate::limits::{CONTENT_BYTES_MAX, LINKS_MAX, NAME_BYTES_MAX, TAG_BYTES_MAX};
use crate::model::hex::unhex;
use crate::model::{
    Announced, CheckedDraft, Counted, Draft, Expiry, Fields, Holder, LedLink, Limbo, Memory, MemoryId,
    PINNED_TAG, Partition, Parts, RunId, State, SupersedeMode, Supersession, Time, Times, Tombstone,
    TombstoneReason, check_categories, check_entities, check_key, check_links, check_tags, check_text,
    is_blank,
};

/// The members that the engine keeps, which only a line with `id` and `holders` may carry.
pub(super) const KEPT: [&str; 23] = [
    "id",
    "keys",
    "state",
    "version",
    "recorded_at",
    "expires_by",
    "superseded_at",
    "superseded_by",
    "superseded_via",
    "valid_from_recorded_at",
    "valid_to_before",
    "announced_valid_to",
    "announced_at",
    "overtaken",
    "removed_at",
    "access_seq",
    "deletes_source",
    "also",
    "holders",
    "next_holder",
    "limbo",
    "embedding_space",
    "former_space",
];

/// The kept members of one line.
struct KeptMembers<'a>(&'a [(&'static str, &'a RawValue)]);

impl KeptMembers<'_> {
    fn maybe<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        match self.0.iter().find(|(kept, _)| *kept == name) {
            Some((_, raw)) => typed_within(name, raw),
            None => Ok(None),
        }
    }

    fn must<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        self.maybe(name)?.ok_or_else(|| missing(name))
    }
}

pub(super) fn missing(name: &str) -> Error {
    Error::invalid(name, "is required in a line with id and holders", "nothing")
}

/// The memory that an exported line tells of. An empty text is judged where the vector is known.
pub(super) fn memory(line: DraftLine, kept: &[(&'static str, &RawValue)]) -> Result<Memory> {
    let kept = KeptMembers(kept);
    if let Some(warning) = line.warnings.into_iter().next() {
        return Err(Error::invalid("line", "must be as it was exported", warning));
    }
    let mode = line.draft.supersede_mode;
    let mut draft = line.draft;
    let mut unions = Draft {
        tags: draft.tags.take(),
        categories: draft.categories.take(),
        entities: draft.entities.take(),
        links: draft.links.take(),
        sources: draft.sources.take(),
        ..Draft::default()
    };
    let fields = &mut draft.fields;
    // A supersession may have cut world time off before it begins (LIFE-6).
    let (valid_from, valid_to) =
        (std::mem::take(&mut fields.valid_from), std::mem::take(&mut fields.valid_to));
    let (draft, partition) = check(draft)?;
    let (superseded, announced) = (superseded(&kept, mode)?, announced(&kept)?);
    let (embedding_space, is_of_former_space) = space(&kept)?;
    let recorded_at = kept.must("recorded_at")?;
    let holders = holders(&kept, recorded_at)?;
    let keys: Vec<String> = kept.must("keys")?;
    keys.iter().try_for_each(|key| check_key(key))?;
    if !holders.is_empty() && draft.key.as_ref() != holders.iter().find_map(|holder| holder.key.as_ref()) {
        let shown = draft.key.unwrap_or_default();
        return Err(Error::invalid("key", "must be the key of the first holder that has one", shown));
    }
    let fields = &draft.fields;
    let times = Times {
        recorded_at,
        valid_from: valid_from.value().copied(),
        valid_from_recorded_at: kept.maybe("valid_from_recorded_at")?,
        valid_to: valid_to.value().copied(),
        valid_to_before: kept.maybe("valid_to_before")?,
        announced,
        expires_at: expires_at(draft.expiry)?,
        superseded,
        removed_at: kept.maybe("removed_at")?,
    };
    let mut parts = parts(fields, &draft.text, times, &kept, &holders)?;
    let sorted = |names: Option<Vec<String>>| sorted(names.unwrap_or_default());
    parts.content.tags = sorted(unions.tags.take());
    Ok(Memory {
        namespace: line.namespace.unwrap_or_default(),
        partition,
        state: kept.must::<State>("state")?,
        keys,
        categories: sorted(unions.categories.take()),
        entities: self::sorted(unions.entities.take().unwrap_or_default()),
        links: self::sorted(unions.links.take().unwrap_or_default()),
        sources: unions.sources.take().unwrap_or_default(),
        holders,
        vector: draft.vector,
        embedding_space,
        is_of_former_space,
        has_payload: draft.payload.is_some(),
        payload: draft.payload,
        limbo: kept.maybe::<LimboJson>("limbo")?.map(limbo).transpose()?.map(Box::new),
        also: kept.maybe("also")?,
        overtaken: kept.maybe("overtaken")?.unwrap_or_default(),
        ..Memory::of(kept.must("id")?, parts)
    })
}

fn superseded(kept: &KeptMembers<'_>, mode: Option<SupersedeMode>) -> Result<Option<Supersession>> {
    let via: Option<MemoryId> = kept.maybe("superseded_via")?;
    match (kept.maybe("superseded_at")?, kept.maybe("superseded_by")?, mode) {
        (Some(at), Some(by), Some(mode)) => Ok(Some(Supersession { at, by, mode, via })),
        (None, None, None) => match via {
            None => Ok(None),
            Some(via) => Err(Error::invalid("superseded_via", "is allowed only beside superseded_by", via)),
        },
        _ => {
            let why = "must stand together with superseded_at and supersede_mode";
            Err(Error::invalid("superseded_by", why, "only some of the three"))
        }
    }
}

fn announced(kept: &KeptMembers<'_>) -> Result<Option<Announced>> {
    match (kept.maybe("announced_valid_to")?, kept.maybe("announced_at")?) {
        (Some(end), Some(at)) => Ok(Some(Announced { end, at })),
        (None, None) => Ok(None),
        _ => {
            let why = "must stand together with announced_at";
            Err(Error::invalid("announced_valid_to", why, "only one of the two"))
        }
    }
}

/// The embedding space of the vector, and whether it is a former one. The vector itself may stand in a NumPy file.
fn space(kept: &KeptMembers<'_>) -> Result<(Option<String>, bool)> {
    let present: Option<String> = kept.maybe("embedding_space")?;
    let former: Option<String> = kept.maybe("former_space")?;
    if let (Some(_), Some(former)) = (&present, &former) {
        return Err(Error::invalid("former_space", "must not stand beside embedding_space", former));
    }
    let is_former = former.is_some();
    let space = present.or(former);
    if let Some(name) = &space {
        let field = if is_former { "former_space" } else { "embedding_space" };
        check_text(field, name, NAME_BYTES_MAX)?;
    }
    Ok((space, is_former))
}

/// The parts of a row with these fields, and with what the engine keeps beside them.
fn parts(
    fields: &Fields,
    text: &str,
    times: Times,
    kept: &KeptMembers<'_>,
    holders: &[Holder],
) -> Result<Parts> {
    if fields.created_at.is_none() {
        return Err(missing("created_at"));
    }
    if fields.updated_at.is_none() {
        return Err(missing("updated_at"));
    }
    let mut parts = Parts::new(text, times.recorded_at);
    parts.apply(fields);
    let last = holders.iter().map(|holder| holder.number).max();
    let vitals = &mut parts.vitals;
    vitals.times = times;
    vitals.deletes_source = kept.maybe("deletes_source")?.unwrap_or_default();
    vitals.expires_by = kept.maybe("expires_by")?.unwrap_or_default();
    vitals.version = kept.must("version")?;
    vitals.place.counted = Counted::at(&times, times.recorded_at);
    vitals.place.next_holder = match kept.maybe("next_holder")? {
        Some(next) => next,
        None => last.map_or(0, |last| last.saturating_add(1)),
    };
    vitals.place.holders = u32::try_from(holders.len()).unwrap_or(u32::MAX);
    parts.access.access_seq = kept.maybe("access_seq")?.unwrap_or_default();
    Ok(parts)
}

fn sorted<T: Ord>(mut set: Vec<T>) -> Vec<T> {
    set.sort_unstable();
    set
}

/// Holds the fields that a caller might have set to their bounds.
fn check(mut draft: Draft) -> Result<(Draft, Partition)> {
    if let Some(name) = draft.supersedes.first() {
        return Err(Error::invalid("supersedes", "must not stand in a line with id and holders", name));
    }
    let vector = draft.vector.clone();
    if is_blank(&draft.text) && vector.is_none() {
        // Stands for the row of a NumPy file, which comes later.
        draft.vector = Some(vec![1.0]);
    }
    let checked = CheckedDraft::new(draft)?;
    let mut draft = checked.draft().clone();
    draft.vector = vector;
    Ok((draft, checked.partition().clone()))
}

fn expires_at(expiry: Option<Expiry>) -> Result<Option<Time>> {
    match expiry {
        None | Some(Expiry::Never | Expiry::Tier) => Ok(None),
        Some(Expiry::At(at)) => Ok(Some(at)),
        Some(Expiry::After(ttl)) => {
            Err(Error::invalid("ttl", "must not stand in a line with id and holders", ttl))
        }
    }
}

/// Whether a holder of a line says since when the memory has it.
#[derive(Deserialize)]
struct SaidSince {
    since: Option<Time>,
}

/// The holders of a line. One that does not say since when the memory has it is as old as the memory.
fn holders(kept: &KeptMembers<'_>, recorded_at: Time) -> Result<Vec<Holder>> {
    let mut holders: Vec<Holder> = kept.must("holders")?;
    let said: Vec<SaidSince> = kept.must("holders")?;
    holders.iter_mut().zip(said).for_each(|(holder, said)| holder.since = said.since.unwrap_or(recorded_at));
    let holders: Vec<Holder> = holders.into_iter().map(checked).collect::<Result<_>>()?;
    let numbers = holders.iter().zip(holders.iter().skip(1));
    if let Some((_, after)) = numbers.into_iter().find(|(a, b)| a.number >= b.number) {
        return Err(Error::invalid("holders.number", "must ascend", after.number));
    }
    if let Some(holder) = holders.iter().find(|holder| holder.follows && holder.text.is_some()) {
        return Err(Error::invalid("holders.follows", "must not stand beside a text", holder.number));
    }
    if !holders.is_empty() && !holders.iter().any(Holder::wrote_row_text) {
        return Err(Error::invalid("holders", "must name one that wrote the text of the memory", "none"));
    }
    Ok(holders)
}

/// A holder whose values are within their bounds.
fn checked(holder: Holder) -> Result<Holder> {
    if let Some(text) = holder.text.as_deref().filter(|text| !text.is_empty()) {
        check_text("holders.text", text, CONTENT_BYTES_MAX)?;
    }
    holder.key.as_deref().map_or(Ok(()), check_key)?;
    // The bounds of what a holder brought are those of a draft, but for the tag that pins. Of equal writes without a key
    // the links are united, by whose number no draft was bound.
    let (pins, tags): (Vec<_>, Vec<_>) = holder.tags.into_iter().partition(|tag| tag == PINNED_TAG);
    let mut tags = check_tags(&tags)?;
    tags.extend(pins);
    let many = if holder.count > 1 { usize::MAX } else { LINKS_MAX };
    Ok(Holder {
        tags: sorted(tags),
        categories: each(holder.categories, many, check_categories)?,
        entities: each(holder.entities, many, check_entities)?,
        links: each(holder.links, many, check_links)?,
        ..holder
    })
}

/// A set whose entries are within their bounds, at most `most` of them.
fn each<T: Ord + Clone>(set: Vec<T>, most: usize, check: fn(&[T]) -> Result<Vec<T>>) -> Result<Vec<T>> {
    if set.len() <= LINKS_MAX || most <= LINKS_MAX {
        return check(&set);
    }
    set.chunks(LINKS_MAX).try_for_each(|some| check(some).map(|_| ()))?;
    let mut set = sorted(set);
    set.dedup();
    Ok(set)
}

/// What is kept of a memory that is gone, as a line tells of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TombstoneJson {
    id: MemoryId,
    deleted_at: Time,
    reason: String,
    run_id: Option<RunId>,
    replaced_by: Option<MemoryId>,
    replaced_by_summary_id: Option<MemoryId>,
    made_by: Option<RunId>,
    merged_from: Vec<MemoryId>,
    key_hashes: Vec<String>,
    content_hash: String,
    rows: u64,
    erased_at: Option<Time>,
    forgotten_at: Option<Time>,
}

/// How a memory in limbo was removed, as a line tells of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimboJson {
    reason: String,
    run_id: Option<RunId>,
    replaced_by: Option<MemoryId>,
    #[serde(default)]
    replaced: bool,
    #[serde(default)]
    transferred: u32,
    #[serde(default)]
    links: Vec<LedLink>,
    tombstone: Option<TombstoneJson>,
}

fn limbo(json: LimboJson) -> Result<Limbo> {
    for link in &json.links {
        check_text("limbo.links.relation", &link.relation, TAG_BYTES_MAX)?;
    }
    Ok(Limbo {
        reason: reason_of("limbo.reason", &json.reason)?,
        run: json.run_id,
        replaced_by: json.replaced_by,
        replaced: json.replaced,
        transferred: json.transferred,
        links: json.links,
        tombstone: json.tombstone.map(stone).transpose()?,
    })
}

fn reason_of(field: &str, name: &str) -> Result<TombstoneReason> {
    name.parse().map_err(|_| {
        Error::invalid(field, "must be a reason of a tombstone, such as forget or collapsed", name)
    })
}

/// The tombstone that a line tells of.
pub(super) fn tombstone(raw: &RawValue) -> Result<Tombstone> {
    stone(typed("tombstone", raw)?)
}

fn stone(json: TombstoneJson) -> Result<Tombstone> {
    let reason = reason_of("tombstone.reason", &json.reason)?;
    let (replaced_by, other) = match reason {
        TombstoneReason::Summarized => (json.replaced_by_summary_id, json.replaced_by),
        _ => (json.replaced_by, json.replaced_by_summary_id),
    };
    if let Some(other) = other {
        let why = "must be replaced_by_summary_id for the reason summarized, and only there";
        return Err(Error::invalid("tombstone.replaced_by", why, other));
    }
    Ok(Tombstone {
        id: json.id,
        deleted_at: json.deleted_at,
        reason,
        run: json.run_id,
        replaced_by,
        made_by: json.made_by,
        merged_from: json.merged_from,
        key_hashes: json
            .key_hashes
            .iter()
            .map(|hash| unhex("tombstone.key_hashes", hash))
            .collect::<Result<_>>()?,
        content_hash: unhex("tombstone.content_hash", &json.content_hash)?,
        rows: json.rows,
        erased_at: json.erased_at,
        forgotten_at: json.forgotten_at,
    })
}
