//! Full-text indexes: documents, threads, postings, and the memories that they belong to.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;

use crate::error::Result;
use crate::hygiene::check::state::{Check, seen};
use crate::hygiene::check::tallies::{LastInThread, TextTally};
use crate::hygiene::report::Code;
use crate::index::text::analyzer_of;
use crate::model::{Content, MemoryId, Vitals, thread_place};
use crate::record::{At, DOCS_PER_BLOCK, DocBlock, DocMeta, PostingsRef};
use crate::store::control::TextHead;
use crate::store::keys;
use crate::store::{
    NsId, PartId, Read, Snapshot, Table, TextId, Walk, bad_postings, doc_place, meta_of, posting_key,
};

impl Check<'_> {
    /// Reads the heads, as far as they can be read.
    pub(super) fn learn_texts(&mut self) -> Result<()> {
        self.snapshot.walk(Table::TextHead, &Walk::all(), &mut |key, value| {
            let head = seen(meta_of(Table::TextHead, key, value))?;
            if let Some(keys::TextHead { ns, part }) = keys::TextHead::parse(key) {
                let text = TextId { ns, part };
                let blind = head.is_none();
                let head = head.unwrap_or_default();
                self.texts.insert(text, TextTally { head, blind, ..TextTally::default() });
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The document that a memory says it has, and the terms of its text.
    pub(super) fn doc_of(
        &mut self,
        ns: NsId,
        id: MemoryId,
        key: &[u8],
        vitals: &Vitals,
        content: &Content,
    ) -> Result<()> {
        let text = TextId { ns, part: PartId(vitals.place.partition) };
        if vitals.times.removed_at.is_some() != vitals.place.doc.is_none() {
            let what = format!("document {:?}, removed at {:?}", vitals.place.doc, vitals.times.removed_at);
            self.find(Code::TextDoc, Table::Vitals, key, what);
        }
        let Some(doc) = vitals.place.doc else { return Ok(()) };
        let Some(found) = self.doc_meta(text, doc)? else { return Ok(()) };
        let Some(meta) = found.filter(|meta| meta.id == id) else {
            self.find(Code::TextDoc, Table::Vitals, key, format!("document {doc} is that of another"));
            return Ok(());
        };
        let times = &vitals.times;
        if (meta.from, meta.until) != (times.from().as_millis(), times.until().as_millis()) {
            let what = format!("document {doc} has other instants than its memory");
            self.find(Code::TextTimes, Table::Vitals, key, what);
        }
        if meta.slot != vitals.place.slot {
            let what =
                format!("document {doc} says slot {:?}, its memory {:?}", meta.slot, vitals.place.slot);
            self.find(Code::TextDoc, Table::Vitals, key, what);
        }
        match thread_place(vitals, content) {
            None if (meta.before, meta.after) == (None, None) => {}
            None => self.find(Code::Thread, Table::Vitals, key, format!("document {doc} lies in a thread")),
            Some((thread, at)) => {
                let row = keys::thread(ns, text.part, &thread, at, doc);
                if self.lacks(Table::Thread, &row)? {
                    self.find(Code::Thread, Table::Thread, &row, format!("memory {id} is not found here"));
                } else if let Some(tally) = self.texts.get_mut(&text) {
                    tally.threads -= 1;
                }
            }
        }
        if self.deep {
            self.expect_terms(text, doc, &meta, key, &content.text);
        }
        Ok(())
    }

    fn expect_terms(&mut self, text: TextId, doc: u32, meta: &DocMeta, key: &[u8], words: &str) {
        let Some(tally) = self.texts.get_mut(&text) else { return };
        let Ok(analyzer) = analyzer_of(text, &tally.head.analyzer) else { return };
        if doc >= tally.head.posted {
            return;
        }
        let mut terms: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        analyzer.analyze(words, &mut |term, position| {
            terms.entry(term.to_owned()).or_default().push(position);
        });
        let mut count = 0;
        for (term, positions) in &mut terms {
            positions.sort_unstable();
            positions.dedup();
            count += positions.len();
            tally.expected = tally.expected.wrapping_add(print_of(term, doc, positions));
        }
        if meta.terms.map(|terms| terms as usize) != Some(count) {
            let what = format!("document {doc} says {:?} terms, its text has {count}", meta.terms);
            self.find(Code::TextPosting, Table::Vitals, key, what);
        }
    }

    /// A document; none where the block is damaged, some(none) for one that stands for nothing.
    fn doc_meta(&self, text: TextId, doc: u32) -> Result<Option<Option<DocMeta>>> {
        let (block, at) = doc_place(doc);
        let found = seen(self.snapshot.doc_block(text, block))?;
        Ok(found.map(|block| block.and_then(|block| block.get(at).copied())))
    }

    pub(super) fn text_head(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let head: TextHead = meta_of(Table::TextHead, key, value)?;
        let keys::TextHead { ns, part } = keys::TextHead::read(Table::TextHead, key)?;
        let text = TextId { ns, part };
        if head.posted > head.len || head.used > head.len {
            self.find(Code::TextHead, Table::TextHead, key, format!("{head:?} contradicts itself"));
        }
        if let Some(term) = &head.merging
            && self.lacks_any(Table::TextPosting, &keys::posting_term(text.ns, text.part, term))?
        {
            self.find(Code::TextHead, Table::TextHead, key, "joining goes on at a term that no text has");
        }
        analyzer_of(text, &head.analyzer).map(|_| ())
    }

    pub(super) fn text_docs(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let keys::TextDoc { ns, part, block } = keys::TextDoc::read(Table::TextDoc, key)?;
        let text = TextId { ns, part };
        let read = DocBlock::decode(At::new(Table::TextDoc.name(), key), value);
        let tally = self.texts.entry(text).or_default();
        tally.blind |= read.is_err();
        let (docs, blind) = (read?, tally.blind);
        let first = u64::from(block) * DOCS_PER_BLOCK as u64;
        if !blind && first + docs.len() as u64 > u64::from(tally.head.len) {
            let what = format!("{} documents from {first} on, of {}", docs.len(), tally.head.len);
            self.find(Code::TextHead, Table::TextDoc, key, what);
            return Ok(());
        }
        if docs.is_vacant() {
            self.find(Code::TextDoc, Table::TextDoc, key, "a block of which nothing is left");
        }
        for (doc, meta) in (first as u32..).zip(docs.docs()) {
            let Some(meta) = meta else { continue };
            let tally = self.texts.entry(text).or_default();
            tally.used += 1;
            *tally.present.entry(block).or_default() |= 1 << doc_place(doc).1;
            let posted = doc < tally.head.posted;
            let known = self.vitals_of(text.ns, meta.id)?;
            let fits = |vitals: Option<Vitals>| {
                vitals.is_some_and(|v| v.place.doc == Some(doc) && v.place.partition == text.part.0)
            };
            if known.is_some_and(|vitals| !fits(vitals)) {
                let what = format!("memory {} does not have document {doc}", meta.id);
                self.find(Code::TextDoc, Table::TextDoc, key, what);
            }
            if !blind && meta.terms.is_some() != posted {
                let what = format!("document {doc} counts {:?} terms, posted: {posted}", meta.terms);
                self.find(Code::TextPosting, Table::TextDoc, key, what);
            }
        }
        Ok(())
    }

    /// The documents of a thread come in their order, and each knows the ones beside it.
    pub(super) fn thread(&mut self, key: &[u8]) -> Result<()> {
        let keys::Thread { ns, part, thread, doc, .. } = keys::Thread::read(Table::Thread, key)?;
        let text = TextId { ns, part };
        self.texts.entry(text).or_default().threads += 1;
        let thread = keys::thread_prefix(ns, part, thread.0).to_vec();
        let last = self.thread_at.take();
        let before = last.as_ref().filter(|(same, ..)| *same == thread).map(|(_, doc, _)| *doc);
        if before.is_none() {
            self.end_of_thread(last.as_ref());
        }
        let found = self.doc_meta(text, doc)?;
        let meta = found.flatten();
        if found.is_some() && meta.is_none() {
            self.find(Code::Thread, Table::Thread, key, format!("document {doc} is not there"));
        }
        let promised = last.filter(|_| before.is_some()).and_then(|(.., after)| after);
        let broken =
            |meta: &DocMeta| meta.before != before || promised.is_some_and(|after| after != Some(doc));
        if meta.as_ref().is_some_and(broken) {
            let what = format!("document {doc} is not linked with the one before it, {before:?}");
            self.find(Code::Thread, Table::Thread, key, what);
        }
        self.thread_at = Some((thread, doc, meta.map(|meta| meta.after)));
        Ok(())
    }

    fn end_of_thread(&mut self, last: Option<&LastInThread>) {
        if let Some((thread, doc, Some(Some(after)))) = last {
            let what = format!("document {doc} ends its thread and is linked with {after}");
            self.find(Code::Thread, Table::Thread, thread, what);
        }
    }

    pub(super) fn text_posting(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let Some((text, term, first)) = posting_key(key) else { return Ok(()) };
        let tally = self.texts.entry(text).or_default();
        let (mut strange, mut print) = (None, 0_u64);
        let (mut before, posted, blind) = (None, tally.head.posted, tally.blind);
        let sound =
            PostingsRef::open(At::new(Table::TextPosting.name(), key), first, value).and_then(|block| {
                let sound = block.positions(|doc, positions| {
                    let (number, at) = doc_place(doc);
                    let present = tally.present.get(&number).is_some_and(|mask| mask >> at & 1 == 1);
                    if !blind && (doc >= posted || !present) {
                        strange = Some(doc);
                    }
                    before = before.max(Some(doc));
                    print = print.wrapping_add(print_of(term, doc, positions));
                });
                if sound { Ok(()) } else { Err(bad_postings(text, term)) }
            });
        tally.blind |= sound.is_err();
        tally.found = tally.found.wrapping_add(print);
        sound?;
        let overlaps = next_block(self.snapshot, text, key)?
            .is_some_and(|(other, next)| other == term && before.is_some_and(|last| last >= next));
        if overlaps {
            self.find(Code::TextPosting, Table::TextPosting, key, "it reaches into the next block");
        }
        if let Some(doc) = strange {
            let what = format!("document {doc} has no memory, or no postings yet");
            self.find(Code::TextPosting, Table::TextPosting, key, what);
        }
        Ok(())
    }

    /// Every document is counted, and with `deep` the postings are those of the texts.
    pub(super) fn finish_texts(&mut self) {
        let last = self.thread_at.take();
        self.end_of_thread(last.as_ref());
        for (text, tally) in std::mem::take(&mut self.texts) {
            let gone = self.tenants.get(&text.ns).is_none_or(|tenant| tenant.dropping);
            if gone || tally.blind || self.counts.blind.contains(&text.ns) {
                continue;
            }
            let key = keys::ns_part(text.ns, text.part);
            if tally.used != tally.head.used {
                let what = format!("{} documents counted, {} there", tally.head.used, tally.used);
                self.find(Code::TextHead, Table::TextHead, &key, what);
            }
            if tally.threads != 0 {
                let what = format!("{} rows of threads that no memory has", tally.threads);
                self.find(Code::Thread, Table::TextHead, &key, what);
            }
            if self.deep && tally.found != tally.expected {
                self.find(
                    Code::TextPosting,
                    Table::TextHead,
                    &key,
                    "the postings are not those of the texts",
                );
            }
        }
    }
}

/// Term and first document of the block of postings behind a key.
fn next_block(snapshot: &Snapshot, text: TextId, key: &[u8]) -> Result<Option<(String, u32)>> {
    let mut next = None;
    let walk = Walk::prefix(&keys::ns_part(text.ns, text.part)).after(key);
    seen(snapshot.walk(Table::TextPosting, &walk, &mut |key, _| {
        next = posting_key(key).map(|(_, term, first)| (term.to_owned(), first));
        Ok(ControlFlow::Break(()))
    }))?;
    Ok(next)
}

/// What a posting says, as a number; the sum over many does not depend on their order.
fn print_of(term: &str, doc: u32, positions: &[u32]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (term, doc, positions).hash(&mut hasher);
    hasher.finish()
}
