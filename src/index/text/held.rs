//! Which documents of an index hold a clause of a query? A list, and on demand a table for clauses that many documents
//! hold.

use crate::record::PostingsRef;

/// A document that holds a clause.
#[derive(Clone, Copy, Debug)]
struct Entry {
    doc: u32,
    often: u32,
}

/// The documents that hold a clause, ascending, each with the number of its occurrences.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Beside a table, the list has only documents whose number of occurrences does not fit an entry of the
    /// table.
    list: Vec<Entry>,
    /// The occurrences, by document.
    table: Option<Vec<u16>>,
    /// The number of documents.
    pub(super) count: u64,
    /// Whether documents are counted and not noted.
    only_counts: bool,
}

impl Held {
    /// Of a clause whose documents are counted and not noted.
    pub(super) fn counting() -> Self {
        Held { only_counts: true, ..Held::default() }
    }

    /// Takes all documents of a block. Returns false if the bytes make no sense.
    pub(super) fn take_all(&mut self, postings: PostingsRef<'_>) -> bool {
        self.count += u64::from(postings.count());
        if self.only_counts {
            return true;
        }
        self.list.reserve(postings.count() as usize);
        postings.docs(|doc, often| self.list.push(Entry { doc, often }))
    }

    /// Takes a document behind the last one.
    #[inline]
    pub(super) fn take(&mut self, doc: u32, often: u32) {
        self.count += 1;
        if !self.only_counts {
            self.list.push(Entry { doc, often });
        }
    }

    /// Turns the list into a table, for an index of so many documents. From then on single documents are looked up.
    /// Returns the largest number of occurrences.
    pub(super) fn tabulate(&mut self, docs: usize) -> u32 {
        let (mut table, mut most) = (vec![0; docs], 0);
        self.list.retain(|Entry { doc, often }| {
            most = most.max(*often);
            if let Some(place) = table.get_mut(*doc as usize) {
                *place = u16::try_from(*often).unwrap_or(u16::MAX);
            }
            *often >= u32::from(u16::MAX)
        });
        self.list.shrink_to_fit();
        self.table = Some(table);
        most
    }

    /// The documents of the list, each with its number of occurrences.
    pub(super) fn listed(&self) -> impl Iterator<Item = (u32, u32)> {
        self.list.iter().map(|entry| (entry.doc, entry.often))
    }

    /// The number of occurrences in a document; 0 if it does not hold the clause.
    pub(super) fn often(&self, doc: u32) -> u32 {
        let told = self.table.as_ref().map(|table| table.get(doc as usize).copied().unwrap_or(0));
        if let Some(often) = told.filter(|often| *often < u16::MAX) {
            return u32::from(often);
        }
        let at = self.list.binary_search_by_key(&doc, |entry| entry.doc).ok();
        at.and_then(|at| self.list.get(at)).map_or(0, |entry| entry.often)
    }
}

#[cfg(test)]
mod tests {
    use super::Held;

    #[test]
    fn a_table_says_what_the_list_said() {
        let entries = [(0, 1), (3, 65_534), (4, 65_535), (7, 65_536), (9, 1_000_000)];
        let mut held = Held::default();
        entries.iter().for_each(|(doc, often)| held.take(*doc, *often));
        let said = |held: &Held| (0..12).map(|doc| held.often(doc)).collect::<Vec<_>>();
        let before = said(&held);
        assert!(entries.iter().all(|(doc, often)| before[*doc as usize] == *often) && before[1] == 0);
        assert_eq!((held.tabulate(10), held.count), (1_000_000, 5));
        assert_eq!(said(&held), before);
    }
}
