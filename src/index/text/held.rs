//! Which documents of an index hold a clause of a query: a list, and for clauses that many hold a table, if it is asked for.

use crate::record::PostingsRef;

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
    /// In place of the list, by document; what is more often than a number here can tell changes no score.
    table: Option<Vec<u16>>,
    /// How many.
    pub(super) count: u64,
}

impl Held {
    /// Takes all of a block; false when its bytes make no sense.
    pub(super) fn take_all(&mut self, postings: PostingsRef<'_>) -> bool {
        self.count += u64::from(postings.count());
        self.list.reserve(postings.count() as usize);
        postings.docs(|doc, often| self.list.push(Entry { doc, often }))
    }

    /// Takes a document behind the last one.
    #[inline]
    pub(super) fn take(&mut self, doc: u32, often: u32) {
        self.count += 1;
        self.list.push(Entry { doc, often });
    }

    /// Makes a table of the list, of an index of so many documents: it is asked for single ones from now on. Gives how
    /// often one does at the most.
    pub(super) fn tabulate(&mut self, docs: usize) -> u32 {
        let (mut table, mut most) = (vec![0; docs], 0);
        for Entry { doc, often } in std::mem::take(&mut self.list) {
            most = most.max(often);
            if let Some(place) = table.get_mut(doc as usize) {
                *place = u16::try_from(often).unwrap_or(u16::MAX);
            }
        }
        self.table = Some(table);
        most
    }

    /// The documents of the list, each with how often it does.
    pub(super) fn listed(&self) -> impl Iterator<Item = (u32, u32)> {
        self.list.iter().map(|entry| (entry.doc, entry.often))
    }

    /// How often a document does; 0 where it does not.
    pub(super) fn often(&self, doc: u32) -> u32 {
        match &self.table {
            Some(table) => table.get(doc as usize).copied().map_or(0, u32::from),
            None => {
                let at = self.list.binary_search_by_key(&doc, |entry| entry.doc).ok();
                at.and_then(|at| self.list.get(at)).map_or(0, |entry| entry.often)
            }
        }
    }
}
