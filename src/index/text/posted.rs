//! Which documents of an index hold a term, a prefix or a phrase: by the postings in the file and by the tail.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::error::Result;
use crate::index::stop::Stop;
use crate::index::text::score::Source;
use crate::record::PostingsRef;
use crate::store::{Snapshot, TextRows, Walk, bad_postings, keys};

/// The largest number of terms that a prefix stands for, among the posted texts and in each run of the tail: the first ones in the
/// order of their bytes.
const PREFIX_TERMS_MAX: usize = 1_024;

impl Source {
    /// Reads the blocks of postings in the file.
    pub(super) fn blocks(
        &self,
        snapshot: &Snapshot,
        term: &str,
        stop: Stop<'_>,
        visit: &mut dyn FnMut(PostingsRef<'_>) -> bool,
    ) -> Result<()> {
        // All documents are in the tail. Any blocks belong to a damaged head.
        if self.view.head().posted == 0 {
            return Ok(());
        }
        let text = self.view.text();
        let walk = Walk::prefix(&keys::posting_term(text.ns, text.part, term));
        snapshot.postings(&walk, &mut |_, postings| match postings.map(&mut *visit) {
            Some(false) => Err(bad_postings(text, term)),
            sound => {
                if sound.is_none() {
                    self.note_lost(term);
                }
                Ok(if stop.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            }
        })
    }

    /// Notes a term of which a block of postings can't be read.
    fn note_lost(&self, term: &str) {
        self.lost_terms.borrow_mut().insert(term.to_owned());
    }

    /// The number of occurrences in each document of terms with a prefix, and of the term of the prefix as a word.
    pub(super) fn prefix(
        &self,
        snapshot: &Snapshot,
        prefix: &str,
        word: Option<&str>,
        stop: Stop<'_>,
    ) -> Result<BTreeMap<u32, u32>> {
        let (view, seen) = (&self.view, &self.seen);
        let mut found = BTreeMap::new();
        let mut add = |doc, often| {
            let all = found.entry(doc).or_insert(0_u32);
            *all = all.saturating_add(often);
        };
        let text = view.text();
        let walk = Walk::prefix(&keys::posting_prefix(text.ns, text.part, prefix));
        let (mut terms, mut last) = (0, String::new());
        snapshot.postings(&walk, &mut |term, postings| {
            if view.head().posted == 0 {
                return Ok(ControlFlow::Break(()));
            }
            if term != last {
                (terms, last) = (terms + 1, term.to_owned());
            }
            if terms > PREFIX_TERMS_MAX || stop.is_over() {
                return Ok(ControlFlow::Break(()));
            }
            match postings.map(|postings| view.each(seen, false, postings, &mut add)) {
                Some(false) => return Err(bad_postings(text, term)),
                Some(true) => {}
                None => self.note_lost(term),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for run in self.tail.runs() {
            for (_, postings) in run.from(prefix).take(PREFIX_TERMS_MAX) {
                view.each(seen, true, postings, &mut add);
            }
            if let Some(postings) = word.and_then(|word| run.postings(word)) {
                view.each(seen, true, postings, &mut add);
            }
        }
        if let Some(word) = word {
            self.blocks(snapshot, word, stop, &mut |postings| view.each(seen, false, postings, &mut add))?;
        }
        Ok(found)
    }

    /// The places where a phrase begins, for each document that holds it.
    pub(super) fn phrase(
        &self,
        snapshot: &Snapshot,
        terms: &[(String, u32)],
        stop: Stop<'_>,
    ) -> Result<BTreeMap<u32, Vec<u32>>> {
        let mut begun: Option<BTreeMap<u32, Vec<u32>>> = None;
        for (term, behind) in terms {
            let mut next = BTreeMap::new();
            let mut take = |doc: u32, positions: &[u32]| {
                let starts = positions.iter().filter_map(|position| position.checked_sub(*behind));
                let starts: Vec<u32> = match &begun {
                    None => starts.collect(),
                    Some(begun) => {
                        let before = begun.get(&doc).map(Vec::as_slice).unwrap_or_default();
                        starts.filter(|start| before.binary_search(start).is_ok()).collect()
                    }
                };
                if !starts.is_empty() {
                    next.insert(doc, starts);
                }
            };
            self.blocks(snapshot, term, stop, &mut |postings| {
                postings.positions(|doc, positions| {
                    if self.seen.holds(doc) {
                        take(doc, positions);
                    }
                })
            })?;
            let posted = self.view.head().posted;
            for postings in self.tail.runs().iter().filter_map(|run| run.postings(term)) {
                postings.positions(|doc, positions| {
                    if doc >= posted && self.seen.holds(doc) {
                        take(doc, positions);
                    }
                });
            }
            begun = Some(next);
        }
        Ok(begun.unwrap_or_default())
    }
}
