//! What the published state knows of a write before it is queued. A write that will be absorbed needs no
//! vector.

use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::index::answering_to_key;
use crate::ingest::add::EQUALS_MAX;
use crate::ingest::likeness::{Likeness, is_of_one_writer, skips_content};
use crate::ingest::{Prepared, meant};
use crate::limits::CONTENT_BYTES_MAX;
use crate::model::{Expiry, MemoryId, Partition, Parts, Patch, Time, is_blank};
use crate::store::{NsId, PartId, Rows};
use crate::text::Messages;

/// The text to embed when a patch gives a memory new text; none if the text stays or comes with a vector.
///
/// # Errors
/// `Corrupted`.
pub(crate) fn text_of_update(
    rows: &impl Rows,
    ns: NsId,
    name: &str,
    patch: &Patch,
    now: Time,
    messages: &Messages,
) -> Result<Option<String>> {
    let wanted =
        |text: &&String| patch.vector.is_none() && !is_blank(text) && text.len() <= CONTENT_BYTES_MAX;
    let Some(text) = patch.text.as_ref().filter(wanted) else { return Ok(None) };
    let by_id = name.parse::<MemoryId>().ok();
    let by_id = by_id.map(|id| rows.vitals(ns, id)).transpose()?.flatten().and(by_id);
    let (id, number) = match by_id {
        Some(id) => (id, None),
        None => match answering_to_key(rows, ns, name, now)? {
            Some(held) => (held.id, Some(held.number)),
            None => return Ok(None),
        },
    };
    let (Some(vitals), Some(content)) = (rows.vitals(ns, id)?, rows.content(ns, id)?) else {
        return Ok(None);
    };
    let own = number.map(|number| rows.holder(ns, id, number)).transpose()?.flatten();
    if own.and_then(|holder| holder.text).as_ref().unwrap_or(&content.text) == text {
        return Ok(None);
    }
    let mut parts = Parts { vitals, content, access: Default::default() };
    parts.apply(&patch.fields);
    parts.content.text.clone_from(text);
    Ok(Some(meant(&parts.content, parts.vitals.kind_code, messages)))
}

impl Prepared {
    /// Whether a published row would take the write in without a new row: a current row holds its key and has its
    /// text, or stands for its content. The ladder decides for good. If it stores the write all the same, the row
    /// waits for a vector.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn is_known_to(&self, rows: &impl Rows, ns: NsId, now: Time, no_dedup: bool) -> Result<bool> {
        let draft = self.checked.draft();
        if let Some(key) = self.checked.key() {
            let held = sound(answering_to_key(rows, ns, key, now))?.flatten();
            if let Some(held) = held.filter(|held| held.vitals.times.is_or_will_be_true(now)) {
                // What a key says of its own comes before what its row says.
                let own = sound(rows.holder(ns, held.id, held.number))?.flatten().and_then(|own| own.text);
                let text = if own.is_some() { own } else { sound(rows.text(ns, held.id))?.flatten() };
                return Ok(text.is_some_and(|text| text == draft.text));
            }
        }
        if no_dedup || skips_content(draft) || self.takes_place_ahead(rows, ns, now)? {
            return Ok(false);
        }
        let part = match self.checked.partition() {
            Partition::Shared => Some(PartId(0)),
            Partition::Agent(agent) => rows.partition(ns, agent.as_str())?,
        };
        let (Some(part), Some(fingerprint)) = (part, self.normal.prefix()) else { return Ok(false) };
        let tier = draft.fields.tier.unwrap_or_default();
        let likeness = Likeness::of_draft(draft).key(&draft.text);
        // As many rows as the ladder reads, from the same ends of the index. The ladder decides for good.
        let (mut known, mut left) = (false, EQUALS_MAX);
        let look = |id, known: &mut bool, left: &mut usize| {
            let is_like = self.is_like(rows, ns, now, id)?;
            *known |= is_like == Some(true);
            *left -= usize::from(is_like.is_some());
            Ok(if *known || *left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        rows.by_fingerprint(ns, part, tier, &fingerprint, &likeness, &mut |id| {
            look(id, &mut known, &mut left)
        })?;
        if !known && left == 0 {
            left = EQUALS_MAX;
            let look = &mut |id| look(id, &mut known, &mut left);
            rows.latest_by_fingerprint(ns, part, tier, &fingerprint, &likeness, look)?;
        }
        Ok(known)
    }

    /// Whether the write names a memory for which another text is announced, so that it gets a row of its own.
    fn takes_place_ahead(&self, rows: &impl Rows, ns: NsId, now: Time) -> Result<bool> {
        for name in &self.checked.draft().supersedes {
            let held = sound(answering_to_key(rows, ns, name, now))?.flatten();
            if held.is_some_and(|held| held.vitals.times.replaced_ahead(now).is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a row is equal to the write in text and in everything else that step 2 compares; none if it is not current.
    fn is_like(&self, rows: &impl Rows, ns: NsId, now: Time, id: MemoryId) -> Result<Option<bool>> {
        let draft = self.checked.draft();
        let vitals = sound(rows.vitals(ns, id))?.flatten();
        let Some(vitals) = vitals.filter(|vitals| vitals.times.is_current(now)) else {
            return Ok(None);
        };
        // Where a caller sets an end, a row stands for the writes of one writer. The run of a write is not known here.
        let gives_end = matches!(draft.expiry, Some(Expiry::At(_) | Expiry::After(_)));
        let (ends, names) =
            (vitals.life().is_promised_end(), draft.expiry.is_some_and(|end| end != Expiry::Tier));
        if (ends && !names) || ((ends || gives_end) && !is_of_one_writer(rows, ns, id, draft, None)?) {
            return Ok(Some(false));
        }
        let content = sound(rows.content(ns, id))?.flatten().filter(|content| content.text == draft.text);
        let is_like = |content| Likeness::of_draft(draft) == Likeness::of_row(&vitals, &content);
        Ok(Some(content.is_some_and(is_like)))
    }
}
