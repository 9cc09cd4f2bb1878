//! BM25 over the visible documents of one index, or of all indexes of a namespace as if they were one.
//!
//! S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with k1 1 and b 0.5; the
//! weight of a term is ln(1 + (N - n + 0.5) / (n + 0.5)) for n of N documents that hold it. A phrase and a prefix are
//! terms of their own.
//!
//! Two things are added to it. A function word counts for a part of its weight only: it is rare in short texts for other
//! reasons than what these are about. And the turns of a conversation explain each other: the terms of the documents
//! before and after one in its thread count as terms of its own, the less the farther, in one saturation with these
//! (S. Robertson, H. Zaragoza, M. Taylor, "Simple BM25 Extension to Multiple Weighted Fields", 2004: fields are weighted
//! before they saturate, for a question's words that are spread over three turns say no more together than in one).

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::Result;
use crate::index::published::Published;
use crate::index::text::image::{Seen, TextView};
use crate::index::text::run::Tail;
use crate::model::{MemoryId, Time};
use crate::record::PostingsRef;
use crate::store::{NsId, PartId, Snapshot, TextId, TextRows, Walk, bad_postings, keys};
use crate::text::{Clause, TextQuery};

/// How soon a term that is repeated in a text says no more.
const K1: f32 = 1.0;
/// How much a long text counts for less.
const B: f32 = 0.5;
/// Terms that a prefix stands for, at most; the first ones in the order of their bytes.
const PREFIX_TERMS_MAX: usize = 1_024;
/// A place among the best is fought for among so many times as many.
const SELECT_RATIO: usize = 4;

/// What is asked of the text.
#[derive(Clone, Copy)]
pub(crate) struct TextAsk<'q> {
    /// A namespace.
    pub(crate) ns: NsId,
    /// One of its indexes; all of them otherwise.
    pub(crate) text: Option<TextId>,
    /// The words.
    pub(crate) words: &'q str,
    /// As a live read at this instant sees them.
    pub(crate) now: Time,
    /// What a function word counts for, 0 to 1.
    pub(crate) function_words: f32,
    /// Whether the time is over: the clauses that are left are not looked for then.
    pub(crate) stop: &'q dyn Fn() -> bool,
}

/// How the neighbours of a document in its thread lend their terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    /// Share of the terms of the next one, to each side.
    pub(crate) share: f32,
    /// What is left of that with each step farther.
    pub(crate) decay: f32,
    /// Steps to each side.
    pub(crate) reach: usize,
}

/// One index in a query.
struct Source {
    view: Arc<TextView>,
    tail: Arc<Tail>,
    seen: Seen,
    /// Of each document.
    scores: Vec<f32>,
    /// By clause, the documents that hold it, with how densely.
    found: Vec<Vec<(u32, f32)>>,
}

/// A document of an index in a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DocRef {
    source: u32,
    doc: u32,
}

/// The scores of all documents for one query.
#[derive(Default)]
pub(crate) struct Lexical {
    sources: Vec<Source>,
    /// By clause.
    weights: Vec<f32>,
    /// Mean number of terms.
    mean: f32,
    /// Sum of the weights of all clauses, those that nothing holds too.
    pub(crate) mass: f32,
    /// Visible documents.
    pub(crate) docs: u64,
    /// Documents that hold a clause, summed over all clauses.
    pub(crate) postings: u64,
    /// Whether more was asked for than is kept.
    pub(crate) cut: bool,
}

impl std::fmt::Debug for Lexical {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lexical").field("docs", &self.docs).field("mass", &self.mass).finish_non_exhaustive()
    }
}

/// Scores every document that holds a word of the query.
///
/// # Errors
/// `Corrupted` for damaged blocks.
pub(crate) fn lexical(published: &Published, ask: TextAsk<'_>) -> Result<Lexical> {
    let snapshot = published.snapshot();
    let mut lexical = Lexical::default();
    for view in views(published, ask)? {
        let tail = view.tail(snapshot)?;
        let seen = view.seen(ask.now, &tail);
        let scores = vec![0.0; view.head().len as usize];
        lexical.sources.push(Source { view, tail, seen, scores, found: Vec::new() });
    }
    let Some(first) = lexical.sources.first() else { return Ok(lexical) };
    let TextQuery { clauses, cut } = first.view.analyzer().parse_query(ask.words);
    lexical.cut = cut;
    lexical.docs = lexical.sources.iter().map(|source| source.seen.docs).sum();
    let terms: u64 = lexical.sources.iter().map(|source| source.seen.terms).sum();
    lexical.mean = (terms as f32 / lexical.docs.max(1) as f32).max(1.0);
    for (clause, _) in clauses {
        if (ask.stop)() {
            break;
        }
        let mut holders = 0;
        for source in &mut lexical.sources {
            holders += source.find(snapshot, &clause, lexical.mean)?;
        }
        let mut weight = weight(lexical.docs, holders);
        if let (Clause::Term { term }, Some(source)) = (&clause, lexical.sources.first())
            && source.view.analyzer().is_function_word(term)
        {
            weight *= ask.function_words;
        }
        lexical.mass += weight;
        lexical.postings += holders;
        lexical.weights.push(weight);
        for Source { scores, found, .. } in &mut lexical.sources {
            for (doc, density) in found.last().into_iter().flatten() {
                if let Some(score) = scores.get_mut(*doc as usize) {
                    *score += weight * saturate(*density);
                }
            }
        }
    }
    Ok(lexical)
}

/// What a density is worth: it grows with it, ever less.
#[inline]
fn saturate(density: f32) -> f32 {
    density * (K1 + 1.0) / (density + K1)
}

/// The weight of a term that `holders` of `docs` documents hold.
fn weight(docs: u64, holders: u64) -> f32 {
    let (docs, holders) = (docs as f32, holders as f32);
    (1.0 + (docs - holders + 0.5) / (holders + 0.5)).ln()
}

/// The images of the indexes in question. Those of a whole namespace are not kept for the sake of one query.
fn views(published: &Published, ask: TextAsk<'_>) -> Result<Vec<Arc<TextView>>> {
    if let Some(text) = ask.text {
        return Ok(published.text_view(text)?.into_iter().collect());
    }
    let mut all = Vec::new();
    for (text, _) in published.snapshot().text_heads(Some(ask.ns))? {
        match published.loaded_text(text) {
            Some(view) => all.push(view),
            None => all.extend(TextView::load(published.snapshot(), text)?.map(Arc::new)),
        }
    }
    Ok(all)
}

impl Source {
    /// Notes the visible documents that hold a clause, and how densely. Gives their number.
    fn find(&mut self, snapshot: &Snapshot, clause: &Clause, mean: f32) -> Result<u64> {
        let mut found = Vec::new();
        let slope = B / mean;
        let mut take = |doc: u32, often: u32, length: u32| {
            found.push((doc, often as f32 / (1.0 - B + slope * length as f32)));
        };
        match clause {
            Clause::Term { term } => {
                let Source { view, tail, seen, .. } = &*self;
                self.blocks(snapshot, &keys_of(view.text(), term), &mut |postings| {
                    view.each(seen, None, postings, &mut take)
                })?;
                for postings in tail.runs().iter().filter_map(|run| run.postings(term)) {
                    view.each(seen, Some(tail), postings, &mut take);
                }
            }
            Clause::Prefix { prefix } => {
                for (doc, often) in self.prefix(snapshot, prefix)? {
                    take(doc, often, self.length(doc));
                }
            }
            Clause::Phrase { terms } => {
                for (doc, starts) in self.phrase(snapshot, terms)? {
                    take(doc, starts.len() as u32, self.length(doc));
                }
            }
        }
        let count = found.len() as u64;
        self.found.push(found);
        Ok(count)
    }

    /// Walks through blocks of postings in the file.
    fn blocks(
        &self,
        snapshot: &Snapshot,
        walk: &Walk,
        visit: &mut dyn FnMut(PostingsRef<'_>) -> bool,
    ) -> Result<()> {
        snapshot.postings(walk, &mut |term, postings| match visit(postings) {
            true => Ok(ControlFlow::Continue(())),
            false => Err(bad_postings(self.view.text(), term)),
        })
    }

    fn length(&self, doc: u32) -> u32 {
        let counted = self.view.doc(doc).and_then(|meta| meta.terms);
        counted.or_else(|| self.tail.length(doc)).unwrap_or(0)
    }

    /// How often terms that begin so occur in each document.
    fn prefix(&self, snapshot: &Snapshot, prefix: &str) -> Result<BTreeMap<u32, u32>> {
        let (view, seen) = (&self.view, &self.seen);
        let mut found = BTreeMap::new();
        let mut add = |doc, often, _| {
            let all = found.entry(doc).or_insert(0_u32);
            *all = all.saturating_add(often);
        };
        let text = view.text();
        let walk = Walk::prefix(&keys::posting_prefix(text.ns, text.part, prefix));
        let (mut terms, mut last) = (0, String::new());
        snapshot.postings(&walk, &mut |term, postings| {
            if term != last {
                (terms, last) = (terms + 1, term.to_owned());
            }
            if terms > PREFIX_TERMS_MAX {
                return Ok(ControlFlow::Break(()));
            }
            match view.each(seen, None, postings, &mut add) {
                true => Ok(ControlFlow::Continue(())),
                false => Err(bad_postings(text, term)),
            }
        })?;
        for run in self.tail.runs() {
            for (_, postings) in run.from(prefix).take(PREFIX_TERMS_MAX) {
                view.each(seen, Some(&self.tail), postings, &mut add);
            }
        }
        Ok(found)
    }

    /// Where a phrase begins in each document that has it.
    fn phrase(&self, snapshot: &Snapshot, terms: &[(String, u32)]) -> Result<BTreeMap<u32, Vec<u32>>> {
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
            self.blocks(snapshot, &keys_of(self.view.text(), term), &mut |postings| {
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

/// The blocks of a term.
fn keys_of(text: TextId, term: &str) -> Walk {
    Walk::prefix(&keys::posting_term(text.ns, text.part, term))
}

impl Lexical {
    /// The score of a document by its own words, as a share of the mass of the query: 0 to 2.
    pub(crate) fn share(&self, at: DocRef) -> f32 {
        let source = self.sources.get(at.source as usize);
        let score = source.and_then(|source| source.scores.get(at.doc as usize)).copied().unwrap_or(0.0);
        if self.mass > 0.0 { score / self.mass } else { 0.0 }
    }

    /// Indexes that take part.
    pub(crate) fn partitions(&self) -> u64 {
        self.sources.len() as u64
    }

    /// The slot of the vector of a document, with the partition that it lies in.
    pub(crate) fn slot(&self, at: DocRef) -> Option<(PartId, u32)> {
        let view = &self.sources.get(at.source as usize)?.view;
        Some((view.text().part, view.doc(at.doc)?.slot?))
    }

    /// The memory of a document.
    pub(crate) fn id(&self, at: DocRef) -> Option<MemoryId> {
        self.sources.get(at.source as usize)?.view.id(at.doc)
    }

    /// A document of an index that takes part, if it is visible.
    pub(crate) fn doc(&self, text: TextId, doc: u32) -> Option<DocRef> {
        let source = self.sources.iter().position(|source| source.view.text() == text)?;
        self.sources.get(source).filter(|source| source.seen.holds(doc))?;
        Some(DocRef { source: source as u32, doc })
    }

    /// The documents before and after one in its thread, if they are visible.
    pub(crate) fn beside(&self, at: DocRef) -> [Option<DocRef>; 2] {
        let Some(source) = self.sources.get(at.source as usize) else { return [None; 2] };
        let Some(meta) = source.view.doc(at.doc) else { return [None; 2] };
        let seen = |doc: &u32| source.seen.holds(*doc);
        [meta.before, meta.after].map(|doc| doc.filter(seen).map(|doc| DocRef { source: at.source, doc }))
    }

    /// The `most` documents with the highest scores above 0, in no order; of equal ones those that come first.
    pub(crate) fn top(&self, most: usize) -> Vec<(f32, DocRef)> {
        let mut best: Vec<(f32, DocRef)> = Vec::new();
        let mut least = 0.0;
        let cut = |best: &mut Vec<(f32, DocRef)>| {
            if best.len() > most {
                best.select_nth_unstable_by(most, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                best.truncate(most);
            }
        };
        for (number, source) in (0..).zip(&self.sources) {
            for (doc, &score) in (0..).zip(&source.scores) {
                if score > least {
                    best.push((score, DocRef { source: number, doc }));
                    if best.len() >= (most * SELECT_RATIO).max(64) {
                        cut(&mut best);
                        least = best.iter().map(|(score, _)| *score).fold(f32::INFINITY, f32::min);
                    }
                }
            }
        }
        cut(&mut best);
        best
    }

    /// The scores of documents with the terms of their neighbours, each as a share of the mass of the query: 0 to 2.
    pub(crate) fn evidence(&self, docs: &[DocRef], window: Window) -> Vec<f32> {
        let mut all = vec![0.0; docs.len()];
        if self.mass <= 0.0 {
            return all;
        }
        for (number, source) in (0..).zip(&self.sources) {
            let own: Vec<(usize, u32)> = (0..)
                .zip(docs)
                .filter(|(_, at)| at.source == number)
                .map(|(place, at)| (place, at.doc))
                .collect();
            if own.is_empty() {
                continue;
            }
            let lent = Lent::around(source, &own, self.mean, window);
            for (weight, found) in self.weights.iter().zip(&source.found) {
                for (place, density) in lent.densities(found) {
                    if let Some(score) = all.get_mut(place) {
                        *score += weight * saturate(density) / self.mass;
                    }
                }
            }
        }
        all
    }
}

/// Which documents lend their terms to which, and how much of them.
struct Lent {
    /// By document, the place of its borrowers; `NONE` for a document that lends to nobody.
    places: Vec<u32>,
    /// For each document that lends, who borrows which share.
    borrowers: Vec<Vec<(u32, f32)>>,
    /// By borrower, its place in the answer.
    answers: Vec<usize>,
}

impl Lent {
    const NONE: u32 = u32::MAX;

    fn around(source: &Source, docs: &[(usize, u32)], mean: f32, window: Window) -> Self {
        let mut lent = Lent {
            places: vec![Self::NONE; source.scores.len()],
            borrowers: Vec::new(),
            answers: docs.iter().map(|(place, _)| *place).collect(),
        };
        for (borrower, (_, doc)) in (0..).zip(docs) {
            lent.lend(*doc, borrower, 1.0);
            let Some(meta) = source.view.doc(*doc) else { continue };
            let ratio = source.length(*doc) as f32 / mean;
            // A short turn, a mere "Thanks!", says less of what was talked about.
            let gate = 2.0 * ratio / (1.0 + ratio);
            for (mut next, forward) in [(meta.before, false), (meta.after, true)] {
                let mut share = window.share * gate;
                for _ in 0..window.reach {
                    let Some(lender) = next else { break };
                    if source.seen.holds(lender) {
                        lent.lend(lender, borrower, share);
                    }
                    share *= window.decay;
                    let beside = source.view.doc(lender);
                    next = beside.and_then(|meta| if forward { meta.after } else { meta.before });
                }
            }
        }
        lent
    }

    fn lend(&mut self, lender: u32, borrower: u32, share: f32) {
        let Some(place) = self.places.get_mut(lender as usize) else { return };
        if *place == Self::NONE {
            *place = self.borrowers.len() as u32;
            self.borrowers.push(Vec::new());
        }
        if let Some(borrowers) = self.borrowers.get_mut(*place as usize) {
            borrowers.push((borrower, share));
        }
    }

    /// How densely each borrower holds a clause, by its place in the answer.
    fn densities(&self, found: &[(u32, f32)]) -> impl Iterator<Item = (usize, f32)> {
        let mut all = vec![0.0; self.answers.len()];
        for (doc, density) in found {
            let place = self.places.get(*doc as usize).copied().unwrap_or(Self::NONE);
            for (borrower, share) in self.borrowers.get(place as usize).into_iter().flatten() {
                if let Some(sum) = all.get_mut(*borrower as usize) {
                    *sum += share * density;
                }
            }
        }
        self.answers.iter().copied().zip(all).filter(|(_, density)| *density > 0.0)
    }
}
