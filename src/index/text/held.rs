//! Which documents of an index hold a clause of a query: a list while they are few, a table where they are many.

use crate::record::PostingsRef;

/// A list becomes a table when it has more entries than this, and than one for so many documents. Tests have few documents.
const LIST_MAX: usize = if cfg!(test) { 2 } else { 512 };
const LIST_SHARE: usize = 16;

/// A document that holds a clause.
#[derive(Clone, Copy, Debug)]
struct Entry {
    doc: u32,
    often: u32,
}

/// The documents that hold a clause, ascending, with how often they do.
#[derive(Debug, Default)]
pub(super) struct Held {
    list: Vec<Entry>,
    /// In place of the list, by document.
    table: Option<Vec<u32>>,
    /// How many.
    pub(super) count: u64,
}

impl Held {
    /// Gets ready for `more` documents of an index of `docs`.
    pub(super) fn expect(&mut self, more: u32, docs: usize) {
        if self.table.is_some() {
            return;
        }
        let most = LIST_MAX.max(docs / LIST_SHARE);
        if self.list.len() + more as usize <= most {
            self.list.reserve(more as usize);
            return;
        }
        let mut table = vec![0; docs];
        for entry in self.list.drain(..) {
            put(&mut table, entry.doc, entry.often);
        }
        self.table = Some(table);
    }

    /// Takes all of a block, if there is a table; false when its bytes make no sense.
    pub(super) fn take_all(&mut self, postings: PostingsRef<'_>) -> Option<bool> {
        let table = self.table.as_mut()?;
        self.count += u64::from(postings.count());
        Some(postings.docs(|doc, often| put(table, doc, often)))
    }

    /// Takes a document behind the last one.
    #[inline]
    pub(super) fn take(&mut self, doc: u32, often: u32) {
        self.count += 1;
        match &mut self.table {
            Some(table) => put(table, doc, often),
            None => self.list.push(Entry { doc, often }),
        }
    }

    /// Calls `visit` for each document with how often it does.
    #[inline]
    pub(super) fn each(&self, mut visit: impl FnMut(u32, u32)) {
        match &self.table {
            None => self.list.iter().for_each(|entry| visit(entry.doc, entry.often)),
            Some(table) => {
                (0..).zip(table).filter(|(_, often)| **often > 0).for_each(|(doc, often)| visit(doc, *often))
            }
        }
    }

    /// How often a document does; 0 where it does not.
    pub(super) fn often(&self, doc: u32) -> u32 {
        match &self.table {
            Some(table) => table.get(doc as usize).copied().unwrap_or(0),
            None => {
                let at = self.list.binary_search_by_key(&doc, |entry| entry.doc).ok();
                at.and_then(|at| self.list.get(at)).map_or(0, |entry| entry.often)
            }
        }
    }
}

#[inline]
fn put(table: &mut [u32], doc: u32, often: u32) {
    if let Some(place) = table.get_mut(doc as usize) {
        *place = often;
    }
}
