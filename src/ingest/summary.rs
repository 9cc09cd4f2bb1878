//! Storing a summary in the place of its sources.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::ingest::fields::expire;
use crate::ingest::{NamespaceWriter, Prepared};
use crate::ledger::{Change, NewRow};
use crate::model::{Holder, MemoryId, RuleId};

impl NamespaceWriter<'_, '_, '_> {
    /// Stores what was made from memories as a row of its own, whatever is near or equal: what it stands for decides, not what it
    /// says. `by` is the rule, and whether the sources go with it.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(crate) fn store_made(
        &mut self,
        prepared: &Prepared,
        part: u32,
        sources: &[MemoryId],
        tags: &[String],
        (rule, deletes_source): (RuleId, bool),
    ) -> Result<MemoryId> {
        let draft = prepared.checked.draft();
        let mut parts = self.parts_of(draft);
        expire(&mut parts.vitals, draft.expiry.unwrap_or_default(), self.policy);
        parts.vitals.deletes_source = deletes_source;
        parts.vitals.place.partition = part;
        parts.vitals.place.fingerprint = prepared.normal.prefix();
        // The vectors of the file may have come to belong to another space while the text had its vector made. Then the memory
        // waits for one of that space.
        let is_strange = prepared.embedder.as_deref().map(|name| self.is_stranger(name)).transpose()?;
        let vector = prepared.vector.as_ref().filter(|_| is_strange != Some(true));
        if let Some(vector) = vector {
            parts.vitals.place.space = self.open_space_of(vector.dim(), prepared.space())?.0;
        }
        let share = parts.vitals.reinforcement_count;
        let holder = self.holder_of(draft);
        let all: BTreeSet<String> = holder.tags.iter().chain(tags).cloned().collect();
        let holder = Holder { share, tags: all.into_iter().collect(), ..holder };
        let id = self.next_id()?;
        let row = NewRow {
            id,
            vitals: parts.vitals,
            content: parts.content,
            access: parts.access,
            holder,
            vector: vector.cloned(),
            sources: sources.to_vec(),
            payload: None,
        };
        self.apply(rule, Change::Insert(Box::new(row)))?;
        Ok(id)
    }
}
