//! A change of a memory in place: what it gives, and where it is written.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::error::{Error, Result, sound};
use crate::index::Lineage;
use crate::ingest::fields::expire_from;
use crate::ingest::{NamespaceWriter, space_of};
use crate::ledger::{Change, given, tags_fit};
use crate::limits::TAGS_MAX;
use crate::model::{
    Decision, Delta, Draft, EXPIRY_CODE, ExpiresBy, Expiry, Field, Fields, Holder, IMPORT_TAGS, MemoryId,
    PINNED_TAG, Parts, Patch, Payload, REPLACES_CODE, RuleId, RunId, Time, Times, Vitals,
};
use crate::store::Rows;
use crate::text::Secret;
use crate::vector::UnitVector;

/// A change that has passed its checks.
pub(super) struct Edit {
    pub(super) patch: Patch,
    pub(super) vector: Option<UnitVector>,
    /// The name of the space of the embedder that made the vector; none for a vector of the caller.
    pub(super) embedder: Option<Arc<str>>,
    /// The codes and HMACs of the fields that the change gives.
    pub(super) given: Vec<(u8, [u8; 8])>,
    /// Whether the change gives the text that its key answers with. The holder has then written that text.
    pub(super) says_text: bool,
    /// The import that the change belongs to, if it makes a row.
    pub(super) run: Option<RunId>,
    /// Since when what the new row tells has been recorded, if that was before.
    pub(super) known_since: Option<Time>,
}

impl Edit {
    /// The change gives the text of a draft, and every field that the draft gives.
    pub(super) fn says(&mut self, draft: &Draft, secret: &Secret) {
        self.patch.text = Some(draft.text.clone());
        self.patch.fields = draft.fields.clone();
        self.patch.expiry = draft.expiry;
        self.given = given(&draft.fields, draft.expiry, draft.sources.as_deref(), secret);
    }

    /// The world has changed, and the text is true from `at` on: what its draft does not give of its validity is not that of the text
    /// before.
    pub(super) fn begins_anew(&mut self, draft: &Draft, at: Time, secret: &Secret) {
        let Fields { valid_from, valid_to, .. } = &mut self.patch.fields;
        let has_ended = valid_to.value().is_some_and(|end| *end <= at);
        if !valid_from.is_given() && !has_ended {
            *valid_from = Field::Value(at);
        }
        if !valid_to.is_given() {
            *valid_to = Field::Null;
        }
        self.given = given(&self.patch.fields, draft.expiry, draft.sources.as_deref(), secret);
    }

    /// What the change of a holder gives that the text keeps which takes its place at an instant; none if it gives nothing of the
    /// kind. A new text, its payload and validity, and an end before the instant are those of the changed one alone. What the
    /// announcement itself gave, stays.
    pub(super) fn kept_by(
        &self,
        next: &Holder,
        had: &Holder,
        at: Time,
        now: Time,
        secret: &Secret,
    ) -> Option<Edit> {
        let mut patch = Patch { text: None, vector: None, payload: None, ..self.patch.clone() };
        let of = |holder: &Holder, code| holder.fields.iter().find(|(at, _)| *at == code).copied();
        patch.fields.leave_out(|code| of(next, code) != of(had, code));
        (patch.fields.valid_from, patch.fields.valid_to) = (Field::Absent, Field::Absent);
        let gave_end = of(next, EXPIRY_CODE).is_some_and(|end| of(had, EXPIRY_CODE) != Some(end));
        patch.expiry = patch.expiry.filter(|expiry| match *expiry {
            _ if gave_end => false,
            Expiry::At(end) => end > at,
            Expiry::After(span) => now.plus(span) > at,
            Expiry::Never | Expiry::Tier => true,
        });
        // The tags that name imports are those of one text.
        let lasting = |tags: &[String]| Vec::from_iter(tags.iter().filter(|tag| !is_of_import(tag)).cloned());
        patch.tags = patch.tags.filter(|_| lasting(&next.tags) == lasting(&had.tags)).map(|tags| {
            let mut tags = lasting(&tags);
            tags.extend(next.import_tags().cloned());
            tags.sort_unstable();
            tags
        });
        patch.categories.take_if(|_| next.categories != had.categories);
        patch.entities.take_if(|_| next.entities != had.entities);
        patch.links.take_if(|_| next.links != had.links);
        let given = given(&patch.fields, patch.expiry, None, secret);
        // A lifetime counts from the change of the one that is true until then.
        if let Some(Expiry::After(span)) = patch.expiry {
            patch.expiry = Some(Expiry::At(now.plus(span)));
        }
        Some(patch).filter(|patch| *patch != Patch::default()).map(|patch| Edit { given, ..Edit::of(patch) })
    }

    /// The same change without its text, and what belongs to the text; none if it gives nothing else.
    pub(super) fn beside_the_text(&self) -> Option<Edit> {
        let patch = Patch { text: None, vector: None, payload: None, ..self.patch.clone() };
        let given = self.given.clone();
        Some(patch).filter(|patch| *patch != Patch::default()).map(|patch| Edit { given, ..Edit::of(patch) })
    }

    /// A change that nothing else is known of.
    pub(super) fn of(patch: Patch) -> Edit {
        Edit {
            patch,
            vector: None,
            embedder: None,
            given: Vec::new(),
            says_text: false,
            run: None,
            known_since: None,
        }
    }

    /// Whether the change touches only what a single holder carries: tags and links.
    pub(super) fn is_of_holder(&self) -> bool {
        self.given.is_empty() && self.vector.is_none() && self.patch.payload.is_none()
    }
}

impl NamespaceWriter<'_, '_, '_> {
    /// Changes a row in place, through these of its holders.
    pub(super) fn edit_in_place(
        &mut self,
        id: MemoryId,
        mut parts: Parts,
        mut edit: Edit,
        mut holders: Vec<Holder>,
    ) -> Result<(MemoryId, Decision, RuleId)> {
        let before = parts.clone();
        self.patch_parts(&mut parts, &edit);
        self.check_ends(&parts, &edit)?;
        if !before.vitals.times.is_current(self.now()) && parts.vitals.times.is_current(self.now()) {
            self.check_keys_free(id)?;
        }
        if let Some(vector) = &edit.vector {
            let name = space_of(edit.embedder.as_ref());
            parts.vitals.place.space = self.open_space_of(vector.dim(), name)?.0;
        }
        // A key that only led here says another text now than in the memories from which it came.
        let says_the_same = |holder: &&Holder| !(holder.follows && edit.says_text);
        let before_united = self.before_united(holders.iter().filter(says_the_same))?;
        // The journal of one holder tells what that holder brought, and nothing of the others (MODEL-32).
        let tags = match holders.as_slice() {
            [one] => one.tags.clone(),
            _ => before.content.tags.clone(),
        };
        for holder in &mut holders {
            patch_holder(holder, &edit);
        }
        let deltas = deltas(&before, &parts, &edit, tags);
        let times = parts.vitals.times;
        let change = Change::Update {
            id,
            version: before.vitals.version,
            vitals: Box::new(parts.vitals),
            content: Box::new(parts.content),
            access: Box::new(parts.access),
            holders,
            vector: edit.vector.take(),
            payload: edit.patch.payload.take(),
            deltas,
        };
        self.apply(RuleId::UPDATE, change)?;
        self.change_before_united(before_united, &edit, &times)?;
        Ok((id, Decision::Updated, RuleId::UPDATE))
    }

    /// A row that comes back holds its keys against others again, so none of them may have been taken since.
    fn check_keys_free(&self, id: MemoryId) -> Result<()> {
        for key in self.ledger.tx.holders(self.ns(), id)?.into_iter().filter_map(|holder| holder.key) {
            if let Some((other, _)) = self.current_holder(&key)? {
                let what = format!("change {id}");
                return Err(Error::Conflict { what, why: format!("memory {other} has taken its key {key}") });
            }
        }
        Ok(())
    }

    /// The rows in which these writers of a row were, before passes united the rows, with the writers as each row has them.
    pub(super) fn before_united<'h>(
        &self,
        writers: impl IntoIterator<Item = &'h Holder>,
    ) -> Result<BTreeMap<MemoryId, Vec<Holder>>> {
        let mut rows: BTreeMap<MemoryId, Vec<Holder>> = BTreeMap::new();
        let mut lineage = Lineage::new(&*self.ledger.tx, self.ns());
        for writer in writers {
            for former in lineage.of(writer)? {
                if former.vitals.times.merged_into().is_some() {
                    rows.entry(former.id).or_default().push(former.holder);
                }
            }
        }
        Ok(rows)
    }

    /// Changes the rows in which the writers of a row were before as well, since what a writer has said last is asked of the row
    /// in which it wrote: by an undo, which brings that row back, by a filter, and when the writer leaves. A text
    /// and its vector are those of one row.
    pub(super) fn change_before_united(
        &mut self,
        rows: BTreeMap<MemoryId, Vec<Holder>>,
        edit: &Edit,
        times: &Times,
    ) -> Result<()> {
        for (id, mut writers) in rows {
            // A damaged row keeps nothing from being changed.
            let Some(before) = sound(self.parts_of_row(id))? else { continue };
            let mut parts = before.clone();
            // A row from which writers only went on tells what others had written there.
            if writers.iter().any(|writer| writer.from.is_none()) {
                let fields = &edit.patch.fields;
                if fields.valid_from.is_given() || fields.valid_to.is_given() {
                    // The other end may lie elsewhere in each row; these two were found to fit.
                    parts.vitals.times.valid_from = times.valid_from;
                    parts.vitals.times.valid_from_recorded_at = times.valid_from_recorded_at;
                    parts.vitals.times.valid_to = times.valid_to;
                }
                self.patch_parts(&mut parts, edit);
                parts.vitals.reinforcement_count = before.vitals.reinforcement_count;
            }
            let beside = self.ledger.tags_beside(self.ns(), id, &before.content.tags, &writers)?;
            for writer in &mut writers {
                let tags = writer.tags.clone();
                patch_holder(writer, edit);
                if !tags_fit(&beside, &writer.tags) {
                    writer.tags = tags;
                }
                // A memory is not linked to itself (MODEL-24).
                writer.links.retain(|link| link.to != id);
            }
            let change = Change::Update {
                id,
                version: before.vitals.version,
                deltas: deltas(&before, &parts, edit, before.content.tags.clone()),
                vitals: Box::new(parts.vitals),
                content: Box::new(parts.content),
                access: Box::new(parts.access),
                holders: writers,
                vector: None,
                payload: None,
            };
            self.apply(RuleId::UPDATE, change)?;
        }
        Ok(())
    }

    pub(super) fn parts_of_row(&self, id: MemoryId) -> Result<Parts> {
        let (vitals, content) = self.ledger.load(self.ns(), id)?;
        let access = self.ledger.tx.access(self.ns(), id)?;
        Ok(Parts { vitals, content, access })
    }

    /// # Errors
    /// `Invalid` for a validity that would end before it begins, and for a life that would, together with what the row keeps of its own.
    pub(super) fn check_ends(&self, parts: &Parts, edit: &Edit) -> Result<()> {
        let (fields, times) = (&edit.patch.fields, &parts.vitals.times);
        let Some(from) = times.valid_from else { return Ok(()) };
        let begins = fields.valid_from.value().is_some();
        if let Some(to) = times.valid_to.filter(|to| from >= *to)
            && (begins || fields.valid_to.value().is_some())
        {
            return Err(Error::invalid("valid_to", format!("must lie after valid_from, {from}"), to));
        }
        // What is announced would never be true.
        match times.expires_at.filter(|end| from >= *end && from > self.now()) {
            Some(end) if edit.patch.expiry.is_some() => {
                Err(Error::invalid("expires_at", format!("must lie after valid_from, {from}"), end))
            }
            Some(end) if begins => {
                Err(Error::invalid("valid_from", format!("must lie before expires_at, {end}"), from))
            }
            _ => Ok(()),
        }
    }

    /// Changes the parts of a row.
    pub(super) fn patch_parts(&self, parts: &mut Parts, edit: &Edit) {
        let tier = parts.vitals.tier;
        parts.vitals.updated_at = self.now();
        parts.apply(&edit.patch.fields);
        if edit.patch.fields.valid_from.is_given() {
            // A write says since when it is true, and no supersession.
            parts.vitals.times.valid_from_recorded_at = None;
        }
        if edit.patch.fields.valid_to.is_given() {
            parts.vitals.times.announced = None;
        }
        self.believe(&mut parts.vitals, &edit.patch.fields);
        let lasts_now = tier.is_short_term() && !parts.vitals.tier.is_short_term();
        if lasts_now && parts.vitals.confidence.is_none() {
            parts.vitals.confidence = Some(self.policy.confidence.fresh as f32);
        }
        // An end that the former tier gave is not the end of the new tier, and a life counts from its beginning. An end that a caller
        // gave stays.
        let begins = edit.patch.fields.valid_from.value().is_some_and(|from| *from > self.now());
        let moved = (parts.vitals.tier != tier || begins) && parts.vitals.expires_by == ExpiresBy::Tier;
        if let Some(expiry) = edit.patch.expiry.or(moved.then_some(Expiry::Tier)) {
            expire_from(self.lives_from(&parts.vitals), &mut parts.vitals, expiry, self.policy);
        }
    }

    /// From when on the life counts that a change gives a row: from the change, or from when the row begins if that is later.
    pub(super) fn lives_from(&self, vitals: &Vitals) -> Time {
        vitals.created_at.max(vitals.times.from()).max(self.now())
    }
}

/// Tags that take the place of those that a holder has. Where nothing is said of the pin, the tag `pinned` stays.
pub(super) fn keeping_pin(
    tags: Option<Vec<String>>,
    pinned: Option<bool>,
    had: &[String],
) -> Option<Vec<String>> {
    let is_pin = |tag: &String| tag == PINNED_TAG;
    let mut tags = tags?;
    if pinned.is_none() && had.iter().any(is_pin) && !tags.iter().any(is_pin) {
        tags.push(PINNED_TAG.to_owned());
        tags.sort_unstable();
    }
    Some(tags)
}

/// Whether a tag names an import.
fn is_of_import(tag: &str) -> bool {
    tag.starts_with(IMPORT_TAGS)
}

/// Notes whether somebody has said the text of a holder before the imports that its tags name, which were `imports` until now. A tag
/// that a caller gives in a change of the memory names the memory.
fn note_before(holder: &mut Holder, imports: &[String], says_again: bool) {
    let now = Vec::from_iter(holder.import_tags());
    let goes = imports.iter().any(|tag| !now.contains(&tag));
    let comes = now.iter().any(|tag| !imports.contains(tag));
    let said = match says_again {
        true => holder.said_before() || imports.is_empty() || goes,
        false => holder.said_before() && !comes,
    };
    let said = said && !now.is_empty();
    holder.note_before(said);
}

/// Tags of a write that says again what a holder has said. Those that name an import stand beside those that are there; the others take
/// the place of the others, if there are any.
pub(super) fn keeping_imports(tags: Option<Vec<String>>, holder: &Holder) -> Option<Vec<String>> {
    let tags = tags?;
    if !holder.has_text() || !tags.iter().any(|tag| is_of_import(tag)) {
        return Some(tags);
    }
    let replaces = tags.iter().any(|tag| !is_of_import(tag) && tag != PINNED_TAG);
    let mut all = tags.clone();
    all.extend(holder.tags.iter().filter(|tag| !replaces || is_of_import(tag)).cloned());
    all.sort_unstable();
    all.dedup();
    // Where there is no room for all, those of the write are enough.
    Some(if all.len() > TAGS_MAX { tags } else { all })
}

/// Replaces what a holder carries by what an edit gives.
pub(super) fn patch_holder(holder: &mut Holder, edit: &Edit) {
    let patch = &edit.patch;
    let says_again = edit.says_text && !holder.follows;
    if holder.follows && edit.says_text {
        // What the key only led to is said by this write, and goes with the run of this write.
        (holder.follows, holder.run) = (false, edit.run);
        holder.leave_imports();
    }
    let imports = Vec::from_iter(holder.import_tags().cloned());
    // Of several holders each keeps its own pin.
    let tags = keeping_pin(patch.tags.clone(), patch.fields.pinned, &holder.tags);
    holder.tags = tags.unwrap_or_else(|| std::mem::take(&mut holder.tags));
    holder.categories = patch.categories.clone().unwrap_or_else(|| std::mem::take(&mut holder.categories));
    holder.entities = patch.entities.clone().unwrap_or_else(|| std::mem::take(&mut holder.entities));
    holder.links = patch.links.clone().unwrap_or_else(|| std::mem::take(&mut holder.links));
    if let Some(pinned) = patch.fields.pinned {
        holder.tags.retain(|tag| tag != PINNED_TAG);
        if pinned {
            holder.tags.push(PINNED_TAG.to_owned());
            holder.tags.sort_unstable();
        }
    }
    note_before(holder, &imports, says_again);
    patch.fields.for_each_given(|code, value| {
        if value.is_null() {
            holder.fields.retain(|(at, _)| *at != code);
        }
    });
    for field in &edit.given {
        holder.fields.retain(|(code, _)| *code != field.0);
        holder.fields.push(*field);
    }
    if patch.fields.valid_from.is_given() {
        // The write itself says when it begins.
        holder.fields.retain(|(code, _)| *code != REPLACES_CODE);
    }
    holder.fields.sort_unstable();
}

/// What the journal tells of a change in place: every given field with its new value, and its old value where the row
/// keeps it under the same name.
fn deltas(before: &Parts, after: &Parts, edit: &Edit, had: Vec<String>) -> Vec<Delta> {
    let mut all = Vec::new();
    let (old, new) = (before.journaled(), after.journaled());
    for (name, after) in &new {
        let was = old.iter().find(|(at, _)| at == name).map(|(_, value)| value.clone()).unwrap_or_default();
        if was != *after {
            all.push(Delta { field: (*name).to_owned(), before: was, after: after.clone() });
        }
    }
    if let Some(payload) = &edit.patch.payload {
        // The journal tells of content in numbers alone.
        let size = |payload: &Payload| Value::from(payload.size());
        let before = Value::from(before.vitals.place.payload);
        let after = payload.as_ref().map(size).unwrap_or_default();
        all.push(Delta { field: "payload".to_owned(), before, after });
    }
    if let Some(tags) = &edit.patch.tags {
        let (before, after) = (had.into(), tags.clone().into());
        all.push(Delta { field: "tags".to_owned(), before, after });
    }
    all
}
