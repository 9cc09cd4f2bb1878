//! What the published state knows of a draft before it is queued: what it would absorb needs no vector (DEDUP-71).

use crate::error::Result;
use crate::index::holder_of_key;
use crate::ingest::Prepared;
use crate::ingest::likeness::{Likeness, skips_content};
use crate::model::{MemoryId, Partition, Time};
use crate::store::{NsId, PartId, Rows};

impl Prepared {
    /// Whether the published rows would take it in without making a row of it: a current one holds its key and has its text,
    /// or stands for its content. The ladder has the last word: what it stores all the same waits for a vector.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn is_known_to(&self, rows: &impl Rows, ns: NsId, now: Time, no_dedup: bool) -> Result<bool> {
        let draft = self.checked.draft();
        if let Some(key) = self.checked.key() {
            let held = holder_of_key(rows, ns, key, now)?;
            if let Some(held) = held.filter(|held| held.vitals.times.is_current(now)) {
                return Ok(rows.text(ns, held.id)?.is_some_and(|text| text == draft.text));
            }
        }
        if no_dedup || skips_content(draft) {
            return Ok(false);
        }
        let part = match self.checked.partition() {
            Partition::Shared => Some(PartId(0)),
            Partition::Agent(agent) => rows.partition(ns, agent.as_str())?,
        };
        let (Some(part), Some(fingerprint)) = (part, self.normal.prefix()) else { return Ok(false) };
        let tier = draft.fields.tier.unwrap_or_default();
        for id in rows.by_fingerprint(ns, part, tier, &fingerprint, usize::MAX)? {
            if self.is_like(rows, ns, now, id)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a row is current and equal to it in text and in all that step 2 asks (DEDUP-55).
    fn is_like(&self, rows: &impl Rows, ns: NsId, now: Time, id: MemoryId) -> Result<bool> {
        let draft = self.checked.draft();
        let Some(vitals) = rows.vitals(ns, id)?.filter(|vitals| vitals.times.is_current(now)) else {
            return Ok(false);
        };
        let content = rows.content(ns, id)?.filter(|content| content.text == draft.text);
        Ok(content.is_some_and(|content| Likeness::of_draft(draft) == Likeness::of_row(&vitals, &content)))
    }
}
