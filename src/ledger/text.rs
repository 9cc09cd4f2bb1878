//! The document of a memory in the full-text index of its partition.

use std::collections::BTreeSet;

use crate::error::{Result, sound};
use crate::index::text::erase_postings;
use crate::index::text::upkeep::{TextEdit, join};
use crate::ledger::rederive::Seen;
use crate::ledger::writer::{Context, Ledger, truth};
use crate::limits::SLICE_ROWS_MAX;
use crate::model::{Content, MemoryId, RuleId, Vitals, thread_place};
use crate::store::{NsId, PartId, Read, Rows, TextId, TextRows};

impl Ledger<'_, '_> {
    /// The index in which a row has its document.
    pub(super) fn text_of(ns: NsId, vitals: &Vitals) -> TextId {
        TextId { ns, part: PartId(vitals.place.partition) }
    }

    /// Updates the document of a row to the present row, and returns its number. A row in limbo has no
    /// document.
    pub(super) fn index_text(
        &mut self,
        ns: NsId,
        id: MemoryId,
        before: Seen<'_>,
        vitals: &Vitals,
        content: &Content,
    ) -> Result<Option<u32>> {
        let text = Self::text_of(ns, vitals);
        let stays = vitals.times.removed_at.is_none();
        let Some((doc, (old, before))) = vitals.place.doc.zip(before) else {
            if !stays {
                return Ok(None);
            }
            let thread = thread_place(vitals, content);
            let doc = self.tx.claim_doc(text, id, vitals, thread, &self.analyzer)?;
            self.tx.add_waiting(text, vitals.content_bytes as usize)?;
            return Ok(Some(doc));
        };
        if !stays {
            self.forget_text(text, doc, id, old, before)?;
            return Ok(None);
        }
        if (old.times, old.place.slot) != (vitals.times, vitals.place.slot) {
            self.tx.refresh_doc(text, doc, vitals)?;
        }
        let (from, to) = (thread_place(old, before), thread_place(vitals, content));
        if from != to {
            from.iter().try_for_each(|(thread, at)| self.tx.leave_thread(text, doc, thread, *at))?;
            to.iter().try_for_each(|(thread, at)| self.tx.join_thread(text, doc, thread, *at))?;
        }
        Ok(Some(doc))
    }

    /// Removes a row from its index: its document, its place in its thread and its postings.
    pub(super) fn forget_text(
        &mut self,
        text: TextId,
        doc: u32,
        id: MemoryId,
        vitals: &Vitals,
        content: &Content,
    ) -> Result<()> {
        // The document knows its neighbours in the thread, so it leaves the thread before it is released.
        if let Some((thread, at)) = thread_place(vitals, content) {
            self.tx.leave_thread(text, doc, &thread, at)?;
        }
        if self.tx.release_doc(text, doc, id)? {
            erase_postings(self.tx, text, doc, &content.text)?;
        }
        Ok(())
    }

    /// Gives every memory of a namespace a new document in the index of its partition, with the analyzer for new
    /// indexes; with `only`, the memories of that index alone. The rows before may be damaged. The pass writes the postings
    /// later. Returns the indexes and the number of rows.
    pub(crate) fn rebuild_texts(
        &mut self,
        context: &Context,
        only: Option<TextId>,
    ) -> Result<(Vec<TextId>, u32)> {
        let ns = context.ns;
        // This includes empty indexes, because images of them must be dropped.
        let mut texts = only.map_or_else(|| self.tx.text_ids(ns), |only| Ok(BTreeSet::from([only])))?;
        self.tx.delete_text_rows(ns, only)?;
        let (mut last, mut count) = (None, 0_u32);
        loop {
            // A page bounds the memory, and its walk is over before the rows that it read are written again.
            let page = self.tx.vitals_page(ns, last, SLICE_ROWS_MAX)?;
            let Some((end, _)) = page.last() else { break };
            last = Some(*end);
            for (id, mut vitals) in page.into_iter().filter(|(_, vitals)| vitals.times.removed_at.is_none()) {
                let text = Self::text_of(ns, &vitals);
                if only.is_some_and(|only| only != text) {
                    continue;
                }
                texts.insert(text);
                // A memory with a damaged text has a document without a thread, and will have no postings.
                let content = sound(self.content_of(ns, id))?;
                let thread = content.and_then(|content| thread_place(&vitals, &content));
                vitals.place.doc = Some(self.tx.claim_doc(text, id, &vitals, thread, &self.analyzer)?);
                self.tx.add_waiting(text, vitals.content_bytes as usize)?;
                truth(self.tx).put_vitals(ns, id, &vitals)?;
                count = count.saturating_add(1);
            }
        }
        self.journal_derived(context, RuleId::REINDEX, format!("{count} texts"))?;
        Ok((texts.into_iter().collect(), count))
    }

    /// Writes the postings of a tail, with one journal row. Returns false if the tail has changed.
    pub(crate) fn post(&mut self, context: &Context, edit: &TextEdit) -> Result<bool> {
        if !edit.write(self.tx)? {
            return Ok(false);
        }
        let what = format!("{} texts of partition {}", edit.rows(), edit.text.part.0);
        self.journal_derived(context, RuleId::INDEX, what)?;
        Ok(true)
    }

    /// Joins blocks of postings, with one journal row. Returns the number of blocks; an index that is gone
    /// has none.
    pub(crate) fn join_postings(&mut self, context: &Context, text: TextId, most: usize) -> Result<u64> {
        if self.tx.text_head(text)?.is_none() {
            return Ok(0);
        }
        let joined = join(self.tx, text, most)?;
        let what = format!("{joined} blocks of postings of partition {}", text.part.0);
        self.journal_derived(context, RuleId::INDEX, what)?;
        Ok(joined)
    }
}
