//! The terms of documents that have no postings in the file yet, inverted in memory.

use std::collections::HashMap;
use std::sync::Arc;

use crate::record::{Postings, PostingsRef};
use crate::text::Analyzer;

/// Two runs of a tail are joined if the first is at most this many times as long as the second.
const JOIN_RATIO: usize = 2;

/// The terms of a range of documents, with their postings.
#[derive(Debug, Default)]
pub(super) struct Run {
    terms: Vec<(Box<str>, Postings)>,
    /// The number of documents.
    docs: usize,
    bytes: usize,
}

/// Documents that are being added to a run, in ascending order.
#[derive(Default)]
pub(super) struct RunBuilder {
    numbers: HashMap<Box<str>, usize>,
    lists: Vec<Postings>,
    docs: usize,
    /// For the present document: the number and the position of each term.
    met: Vec<(usize, u32)>,
}

impl RunBuilder {
    /// Adds a document. Returns the number of its terms; repeated terms count as often as they occur.
    pub(super) fn push(&mut self, analyzer: &Analyzer, doc: u32, words: &str) -> u32 {
        self.met.clear();
        let (numbers, lists, met) = (&mut self.numbers, &mut self.lists, &mut self.met);
        analyzer.analyze(words, &mut |term, position| {
            let number = match numbers.get(term) {
                Some(number) => *number,
                None => {
                    lists.push(Postings::default());
                    numbers.insert(term.into(), lists.len() - 1);
                    lists.len() - 1
                }
            };
            met.push((number, position));
        });
        // In this order each term is one group, and the positions in a group ascend.
        met.sort_unstable();
        met.dedup();
        for group in met.chunk_by(|a, b| a.0 == b.0) {
            let list = group.first().and_then(|(number, _)| lists.get_mut(*number));
            if let Some(list) = list {
                list.push(doc, group.iter().map(|(_, position)| *position));
            }
        }
        self.docs += 1;
        u32::try_from(met.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn finish(self) -> Run {
        let RunBuilder { numbers, lists, docs, .. } = self;
        let mut lists: Vec<Option<Postings>> = lists.into_iter().map(Some).collect();
        // A list that grew while it was filled would hold twice the room, and half of a run is this list.
        let mut terms = Vec::with_capacity(numbers.len());
        terms.extend(
            numbers.into_iter().filter_map(|(term, number)| Some((term, lists.get_mut(number)?.take()?))),
        );
        terms.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Run::new(terms, docs)
    }
}

impl Run {
    fn new(terms: Vec<(Box<str>, Postings)>, docs: usize) -> Self {
        let bytes = terms.iter().map(|(term, list)| term.len() + list.bytes()).sum::<usize>();
        let bytes = bytes + terms.capacity() * size_of::<(Box<str>, Postings)>();
        Run { terms, docs, bytes }
    }

    /// Joins two runs into one. `later` has the higher documents.
    fn join(&self, later: &Run) -> Run {
        let mut terms = Vec::with_capacity(self.terms.len().max(later.terms.len()));
        let (mut a, mut b) = (self.terms.iter().peekable(), later.terms.iter().peekable());
        loop {
            let order = match (a.peek(), b.peek()) {
                (Some(a), Some(b)) => a.0.cmp(&b.0),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => break,
            };
            let first = if order.is_le() { a.next() } else { b.next() };
            let Some((term, list)) = first else { break };
            let mut list = list.clone();
            if order.is_eq()
                && let Some((_, more)) = b.next()
            {
                list.extend(more.as_ref(), more.last());
            }
            terms.push((term.clone(), list));
        }
        Run::new(terms, self.docs + later.docs)
    }

    pub(super) fn postings(&self, term: &str) -> Option<PostingsRef<'_>> {
        let at = self.terms.binary_search_by(|(found, _)| (**found).cmp(term)).ok()?;
        self.terms.get(at).map(|(_, list)| list.as_ref())
    }

    /// The terms that begin with `prefix`, in order.
    pub(super) fn from(&self, prefix: &str) -> impl Iterator<Item = (&str, PostingsRef<'_>)> {
        let at = self.terms.partition_point(|(term, _)| **term < *prefix);
        let rest = self.terms.get(at..).unwrap_or_default().iter();
        rest.take_while(move |(term, _)| term.starts_with(prefix))
            .map(|(term, list)| (&**term, list.as_ref()))
    }

    /// All terms in order.
    pub(super) fn into_terms(self) -> Vec<(Box<str>, Postings)> {
        self.terms
    }
}

/// The documents without postings in the file, as far as a search has read them.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail {
    /// First document.
    first: u32,
    /// The number of terms of each document, from the first on; 0 for a missing document.
    lengths: Vec<u32>,
    /// The documents whose texts can't be read.
    unread: Vec<u32>,
    runs: Vec<Arc<Run>>,
}

impl Tail {
    /// An empty tail that begins with a document.
    pub(super) fn at(first: u32) -> Self {
        Tail { first, ..Tail::default() }
    }

    /// The number behind the last document.
    pub(super) fn end(&self) -> u32 {
        self.first + self.lengths.len() as u32
    }

    /// Whether the tail is useless for an index whose tail begins with `posted`.
    pub(super) fn is_behind(&self, posted: u32) -> bool {
        self.end() <= posted
    }

    /// The length of a document.
    pub(super) fn length(&self, doc: u32) -> Option<u32> {
        self.lengths.get(doc.checked_sub(self.first)? as usize).copied()
    }

    /// Adds documents with these lengths at the end. Short runs are joined.
    pub(super) fn push(&mut self, run: Run, lengths: &[u32]) {
        self.lengths.extend_from_slice(lengths);
        self.runs.push(Arc::new(run));
        while let [.., before, last] = self.runs.as_slice() {
            if before.docs > JOIN_RATIO * last.docs.max(1) {
                break;
            }
            let joined = Arc::new(before.join(last));
            self.runs.truncate(self.runs.len() - 2);
            self.runs.push(joined);
        }
    }

    pub(super) fn runs(&self) -> &[Arc<Run>] {
        &self.runs
    }

    /// Notes a document whose text can't be read.
    pub(super) fn note_unread(&mut self, doc: u32) {
        self.unread.push(doc);
    }

    /// The documents whose texts can't be read.
    pub(super) fn unread(&self) -> &[u32] {
        &self.unread
    }

    pub(super) fn bytes(&self) -> usize {
        (self.lengths.capacity() + self.unread.capacity()) * size_of::<u32>()
            + self.runs.iter().map(|run| run.bytes).sum::<usize>()
    }
}
