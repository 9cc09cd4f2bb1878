//! Which documents of an index hold a clause of a query: a list, and for clauses that many hold a table on demand.

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
    /// Beside a table those that do more often than a number of it can tell.
    list: Vec<Entry>,
    /// By document.
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

    /// The documents of the list, each with how often it does.
    pub(super) fn listed(&self) -> impl Iterator<Item = (u32, u32)> {
        self.list.iter().map(|entry| (entry.doc, entry.often))
    }

    /// How often a document does; 0 where it does not.
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
