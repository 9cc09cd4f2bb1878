//! BM25 over the visible documents of one index, or of all indexes of a namespace as if they were one.
//!
//! S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with k1 1 and b 0.5.
//! A text of more than twice the mean length counts as one of twice that length, because BM25 takes too much from long texts
//! (Y. Lv, C. Zhai, "When Documents Are Very Long, BM25 Fails!", 2011): a summary is long because it says much.
//! The weight of a term is ln(1 + (N - n + 0.5) / (n + 0.5)), where n of N documents hold the term. Phrases and
//! prefixes count as terms of their own.
//!
//! Two things are added. First, a function word counts for only a part of its weight, because the topic of a short
//! text is not the reason why function words are rare in it. Second, the turns of a conversation explain each other.
//! The terms of the documents before and after a document in its thread count as terms of the document, the less the
//! farther away they are, and saturate together with its own terms (S. Robertson, H. Zaragoza, M. Taylor, "Simple BM25
//! Extension to Multiple Weighted Fields", 2004: fields are weighted before they saturate, because the words of a
//! question that are spread over three turns say no more together than in one).

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::error::Result;
use crate::index::published::Published;
use crate::index::stop::Stop;
use crate::index::text::held::Held;
use crate::index::text::image::{Lengths, Seen, TextView};
use crate::index::text::run::Tail;
use crate::model::{MemoryId, Ranked, Time};
use crate::store::{NsId, PartId, Snapshot, TextId, TextRows};
use crate::text::{Analyzer, Clause, TextQuery};

/// How soon repetitions of a term in a text stop counting.
const K1: f32 = 1.0;
/// How much less a long text counts.
const B: f32 = 0.5;
/// The length past which a text counts no less, in means.
const LENGTH_MAX: f32 = 2.0;
/// How many times more documents than places compete for the best places at once.
const SELECT_RATIO: usize = 4;
/// The number of documents whose scores are worked out together. This many fit the first cache of a core, and a query
/// holds no more of them at once, however many documents there are. Tests use few documents.
const BLOCK_DOCS: usize = if cfg!(test) { 3 } else { 4_096 };
/// The number of scores that are compared together.
const SCORES_AT_ONCE: usize = 64;
/// A clause is *broad* if more documents than the first constant hold it, and more than one in the second constant.
/// Broad clauses are set apart, the lightest first, up to the third constant as a share of the mass. They are not
/// added to the score of each document, but looked up for documents that could still be among the best. Tests use few
/// documents.
const BROAD_MIN: u64 = if cfg!(test) { 2 } else { 512 };
const BROAD_SHARE: u64 = 16;
const BROAD_MASS: f32 = 0.125;

/// The question to the text.
#[derive(Clone, Copy)]
pub(crate) struct TextAsk<'q> {
    /// The namespace.
    pub(crate) ns: NsId,
    /// One index of the namespace; none for all of them.
    pub(crate) text: Option<TextId>,
    /// The words of the query.
    pub(crate) words: &'q str,
    /// The instant of the live read. The statistics are those of the documents that it sees.
    pub(crate) now: Time,
    /// Whether every document is searched, whatever its instants. The caller then judges which memories count.
    pub(crate) all: bool,
    /// Whether only the weights of the words are asked for. No document is noted then, and none has a score.
    pub(crate) only_weights: bool,
    /// The weight of a function word, as a share of its full weight: 0 to 1.
    pub(crate) function_words: f32,
    /// When the time is over. The rest of tails and clauses is then not read.
    pub(crate) stop: Stop<'q>,
}

/// How the neighbours of a document in its thread lend their terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    /// The share of the terms of the next neighbour, on each side.
    pub(crate) share: f32,
    /// The factor for each further step.
    pub(crate) decay: f32,
    /// The number of steps on each side.
    pub(crate) reach: usize,
}

/// The number of unseen documents that a step in a thread passes over at most.
const PASSED_MAX: usize = 256;

/// One index in a query.
pub(super) struct Source {
    pub(super) view: Arc<TextView>,
    pub(super) tail: Arc<Tail>,
    /// The documents that are searched.
    pub(super) seen: Seen,
    /// The documents that a live read sees, if these are not the ones that are searched.
    live: Option<Seen>,
    /// For each clause, the documents that hold it.
    found: Vec<Held>,
    /// The terms of the query of which a block of postings can't be read.
    pub(super) lost_terms: RefCell<BTreeSet<String>>,
}

/// A broad clause.
#[derive(Clone, Copy)]
struct Broad {
    clause: usize,
    weight: f32,
    /// The most that this clause and the following ones can add to a score.
    rest: f32,
}

/// A document of an index in a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DocRef {
    source: u32,
    doc: u32,
}

/// The documents that hold a word of one query, and the weights of the words.
#[derive(Default)]
pub(crate) struct Lexical {
    sources: Vec<Source>,
    clauses: Vec<Clause>,
    /// The weights of the clauses.
    weights: Vec<f32>,
    /// The broad clauses, the heaviest first.
    broad: Vec<Broad>,
    /// The scores of the best documents, from the first request for them on.
    known: RefCell<HashMap<DocRef, f32>>,
    /// The mean number of terms.
    pub(super) mean: f32,
    /// The sum of the weights of all clauses, including clauses that no document holds.
    pub(crate) mass: f32,
    /// The number of visible documents.
    pub(crate) docs: u64,
    /// The number of documents that hold a clause, summed over all clauses.
    pub(crate) postings: u64,
    /// Whether the query had more than is kept.
    pub(crate) cut: bool,
    /// Memories whose texts can't be read, so nobody knows whether they hold a word. Of texts with postings it is not known.
    unread: Vec<MemoryId>,
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
        let tail = view.tail(snapshot, ask.stop)?;
        let live = view.seen(ask.now, &tail);
        let (seen, live) = if ask.all { (view.held(), Some(live)) } else { (live, None) };
        let (found, lost_terms) = (Vec::new(), RefCell::default());
        lexical.sources.push(Source { view, tail, seen, live, found, lost_terms });
    }
    lexical.unread = lexical.sources.iter().flat_map(Source::unread).collect();
    let Some(first) = lexical.sources.first() else { return Ok(lexical) };
    let TextQuery { clauses, cut } = first.view.analyzer().parse_query(ask.words);
    lexical.cut = cut;
    lexical.docs = lexical.sources.iter().map(|source| source.counted().docs).sum();
    let terms: u64 = lexical.sources.iter().map(|source| source.counted().terms).sum();
    lexical.mean = (terms as f32 / lexical.docs.max(1) as f32).max(1.0);
    let mut many = Vec::new();
    for (clause, _) in clauses {
        if ask.stop.is_over() {
            break;
        }
        let mut holders = 0;
        for source in &mut lexical.sources {
            holders += source.find(snapshot, &clause, ask)?;
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
        lexical.clauses.push(clause);
        if !ask.only_weights && holders > BROAD_MIN && holders.saturating_mul(BROAD_SHARE) > lexical.docs {
            many.push(lexical.weights.len() - 1);
        }
    }
    lexical.set_apart(many);
    Ok(lexical)
}

/// The inputs for the density of a term in a text.
#[derive(Clone, Copy)]
pub(super) struct Norm {
    slope: f32,
}

impl Norm {
    pub(super) fn of(mean: f32) -> Self {
        Norm { slope: B / mean }
    }

    #[inline]
    fn density(self, often: u32, length: u32) -> f32 {
        often as f32 / self.length(length)
    }

    /// How much the length of a text takes from its terms.
    #[inline]
    fn length(self, length: u32) -> f32 {
        1.0 - B + (self.slope * length as f32).min(B * LENGTH_MAX)
    }

    /// The worth of that density, with one division less.
    #[inline]
    pub(super) fn worth(self, often: u32, length: u32) -> f32 {
        let often = often as f32;
        often * (K1 + 1.0) / (often + K1 * self.length(length))
    }
}

/// The worth of a density: it grows with the density, but ever less.
#[inline]
fn saturate(density: f32) -> f32 {
    density * (K1 + 1.0) / (density + K1)
}

/// The weight of a term that `holders` of `docs` documents hold.
fn weight(docs: u64, holders: u64) -> f32 {
    let (docs, holders) = (docs as f32, holders as f32);
    (1.0 + (docs - holders + 0.5) / (holders + 0.5)).ln()
}

/// The images of the indexes to search. Those of a whole namespace are kept as far as there is room. No image that
/// others use is dropped for one query.
fn views(published: &Published, ask: TextAsk<'_>) -> Result<Vec<Arc<TextView>>> {
    if let Some(text) = ask.text {
        return Ok(published.text_view(text)?.into_iter().collect());
    }
    let mut all = Vec::new();
    for (text, head) in published.snapshot().text_heads(Some(ask.ns))? {
        if head.used == 0 && !ask.all {
            continue;
        }
        if ask.stop.is_over() {
            break;
        }
        match published.loaded_text(text) {
            Some(view) => all.push(view),
            None => all.extend(published.text_view_beside(text, ask.stop)?),
        }
    }
    Ok(all)
}

impl Source {
    /// The memories that are searched and whose texts can't be read.
    fn unread(&self) -> impl Iterator<Item = MemoryId> {
        let docs = self.tail.unread().iter().filter(|doc| self.seen.holds(**doc));
        docs.filter_map(|doc| Some(self.view.doc(*doc)?.id))
    }

    /// The visible documents before or after a document in its thread, the nearest first. Those in between are no steps, as if
    /// they were gone already; where more than [`PASSED_MAX`] follow each other, the thread ends.
    fn beside(&self, doc: u32, forward: bool) -> impl Iterator<Item = u32> {
        let mut passed = 0;
        let near = self.view.thread(doc, forward).map(|(doc, _)| (doc, self.seen.holds(doc)));
        let near = near.take_while(move |(_, seen)| {
            passed = if *seen { 0 } else { passed + 1 };
            passed <= PASSED_MAX
        });
        near.filter(|(_, seen)| *seen).map(|(doc, _)| doc)
    }

    /// The documents over which the statistics are counted.
    fn counted(&self) -> &Seen {
        self.live.as_ref().unwrap_or(&self.seen)
    }

    /// Notes the documents that hold a clause, of those that are searched. Returns the number that is counted.
    fn find(&mut self, snapshot: &Snapshot, clause: &Clause, ask: TextAsk<'_>) -> Result<u64> {
        let TextAsk { stop, only_weights, .. } = ask;
        let mut held = if only_weights { Held::counting() } else { Held::default() };
        match clause {
            Clause::Term { term } => {
                let Source { view, tail, seen, .. } = &*self;
                self.blocks(snapshot, term, stop, &mut |postings| {
                    if seen.all_posted {
                        return held.take_all(postings);
                    }
                    view.each(seen, false, postings, |doc, often| held.take(doc, often))
                })?;
                for postings in tail.runs().iter().filter_map(|run| run.postings(term)) {
                    view.each(seen, true, postings, |doc, often| held.take(doc, often));
                }
            }
            Clause::Prefix { prefix, word } => {
                for (doc, often) in self.prefix(snapshot, prefix, word.as_deref(), stop)? {
                    held.take(doc, often);
                }
            }
            Clause::Phrase { terms } => {
                for (doc, starts) in self.phrase(snapshot, terms, stop)? {
                    held.take(doc, starts.len() as u32);
                }
            }
        }
        let count = match &self.live {
            Some(live) => held.listed().filter(|(doc, _)| live.holds(*doc)).count() as u64,
            None => held.count,
        };
        self.found.push(held);
        Ok(count)
    }

    /// The density of a clause in a visible document; 0 if the document does not hold the clause.
    fn density(&self, clause: usize, doc: u32, norm: Norm) -> f32 {
        match self.found.get(clause).map_or(0, |held| held.often(doc)) {
            0 => 0.0,
            often => norm.density(often, self.length(doc)),
        }
    }

    /// The worth of that density.
    fn worth(&self, clause: usize, doc: u32, norm: Norm) -> f32 {
        match self.found.get(clause).map_or(0, |held| held.often(doc)) {
            0 => 0.0,
            often => norm.worth(often, self.length(doc)),
        }
    }

    fn length(&self, doc: u32) -> u32 {
        Lengths::of(&self.view, &self.tail).get(doc)
    }
}

impl Lexical {
    /// The number of memories whose texts can't be read, without those of the hits: these are counted when their texts are read.
    /// The memories of a lost block of documents count, hits or not, because nobody knows which they are. A term of which a
    /// block of postings is lost counts as one.
    pub(crate) fn unread_beside(&self, hits: &[Ranked]) -> u64 {
        let unread = self.unread.iter().filter(|id| hits.iter().all(|hit| hit.id != **id)).count();
        let lost = |source: &Source| u64::from(source.view.lost()) + source.lost_terms.borrow().len() as u64;
        unread as u64 + self.sources.iter().map(lost).sum::<u64>()
    }

    /// Sets the lightest broad clauses apart.
    fn set_apart(&mut self, mut many: Vec<usize>) {
        let weight = |clause: &usize| self.weights.get(*clause).copied().unwrap_or(0.0);
        many.sort_by(|a, b| weight(a).total_cmp(&weight(b)));
        let (mut sum, mut rest) = (0.0, 0.0);
        for clause in many {
            let weight = weight(&clause);
            sum += weight;
            if sum > self.mass * BROAD_MASS {
                break;
            }
            let mut most = 0;
            for source in &mut self.sources {
                if let Some(held) = source.found.get_mut(clause) {
                    most = most.max(held.tabulate(source.view.end() as usize));
                }
            }
            // The bound assumes a text of length 0, the shortest possible. The factor leaves room for
            // rounding.
            rest += weight * saturate(most as f32 / (1.0 - B)) * 1.001;
            self.broad.push(Broad { clause, weight, rest });
        }
        self.broad.reverse();
    }

    /// The clauses that are not set apart, with their weights.
    fn narrow(&self) -> impl Iterator<Item = (usize, f32)> {
        let apart = |clause: usize| self.broad.iter().any(|broad| broad.clause == clause);
        self.weights.iter().copied().enumerate().filter(move |(clause, _)| !apart(*clause))
    }

    /// The analyzer of the query; none without an index.
    pub(super) fn analyzer(&self) -> Option<&Analyzer> {
        self.sources.first().map(|source| source.view.analyzer())
    }

    /// The clauses, each with its weight.
    pub(super) fn weighted(&self) -> impl Iterator<Item = (&Clause, f32)> {
        self.clauses.iter().zip(self.weights.iter().copied())
    }

    /// Leaves a document out from now on: it lends no more words to its neighbours.
    pub(crate) fn leave_out(&mut self, at: DocRef) {
        if let Some(source) = self.sources.get_mut(at.source as usize) {
            source.seen.leave_out(at.doc);
        }
    }

    /// The score of a document by its own words, as a share of the mass of the query: 0 to 2.
    pub(crate) fn share(&self, at: DocRef) -> f32 {
        if self.mass > 0.0 { self.score(at) / self.mass } else { 0.0 }
    }

    /// The score of a visible document by all clauses. The scores of the best documents are known already.
    fn score(&self, at: DocRef) -> f32 {
        if let Some(score) = self.known.borrow().get(&at) {
            return *score;
        }
        let Some(source) = self.sources.get(at.source as usize) else { return 0.0 };
        let norm = Norm::of(self.mean);
        let narrow = self
            .narrow()
            .fold(0.0, |score, (clause, weight)| score + weight * source.worth(clause, at.doc, norm));
        self.whole(narrow, at, f32::NEG_INFINITY).unwrap_or(narrow)
    }

    /// Adds the broad clauses to a score by the other clauses. None once the sum can be no higher than `least`.
    fn whole(&self, narrow: f32, at: DocRef, least: f32) -> Option<f32> {
        let source = self.sources.get(at.source as usize)?;
        let (mut score, norm) = (narrow, Norm::of(self.mean));
        for Broad { clause, weight, rest } in &self.broad {
            if score + rest <= least {
                return None;
            }
            score += weight * source.worth(*clause, at.doc, norm);
        }
        Some(score)
    }

    /// The number of indexes that take part.
    pub(crate) fn partitions(&self) -> u64 {
        self.sources.len() as u64
    }

    /// The slot of a document's vector, with its partition.
    pub(crate) fn slot(&self, at: DocRef) -> Option<(PartId, u32)> {
        let view = &self.sources.get(at.source as usize)?.view;
        Some((view.text().part, view.doc(at.doc)?.slot?))
    }

    /// The memory of a document.
    pub(crate) fn id(&self, at: DocRef) -> Option<MemoryId> {
        self.sources.get(at.source as usize)?.view.id(at.doc)
    }

    /// The document of a memory, if a single index takes part, the order of ids tells the document, and it is visible.
    pub(crate) fn doc_of(&self, id: MemoryId) -> Option<DocRef> {
        let [source] = self.sources.as_slice() else { return None };
        let doc = source.view.doc_in_order(id).filter(|doc| source.seen.holds(*doc))?;
        Some(DocRef { source: 0, doc })
    }

    /// A document of an index that takes part, if it is visible.
    pub(crate) fn doc(&self, text: TextId, doc: u32) -> Option<DocRef> {
        let source = self.sources.iter().position(|source| source.view.text() == text)?;
        self.sources.get(source).filter(|source| source.seen.holds(doc))?;
        Some(DocRef { source: source as u32, doc })
    }

    /// The next visible document that `sees` wants, before or after a document in its thread.
    ///
    /// # Errors
    /// Those of `sees`.
    pub(crate) fn beside(
        &self,
        at: DocRef,
        forward: bool,
        mut sees: impl FnMut(DocRef) -> Result<bool>,
    ) -> Result<Option<DocRef>> {
        let Some(source) = self.sources.get(at.source as usize) else { return Ok(None) };
        let steps = source.beside(at.doc, forward).map(|doc| DocRef { source: at.source, doc });
        for next in steps {
            if sees(next)? {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }

    /// The `most` documents with the highest scores above 0, in no order. Of equal scores, the first
    /// documents.
    pub(crate) fn top(&self, most: usize) -> Vec<(f32, DocRef)> {
        let best = self.best(most);
        self.known.borrow_mut().extend(best.iter().map(|(score, at)| (*at, *score)));
        best
    }

    fn best(&self, most: usize) -> Vec<(f32, DocRef)> {
        let mut best = Best::new(most);
        self.above(0.0, |score, at| best.offer(score, at));
        if self.broad.is_empty() {
            return best.finish();
        }
        // The lowest full score of this many documents is a lower bound for the best.
        let mut whole = Best::new(most);
        for (narrow, at) in best.finish() {
            whole.offer(self.whole(narrow, at, f32::NEG_INFINITY).unwrap_or(narrow), at);
        }
        let least = whole.least();
        let mut best = Best::new(most);
        best.least = if least > 0.0 { least.next_down() } else { 0.0 };
        let most_more = self.broad.first().map_or(0.0, |broad| broad.rest);
        let offer = |best: &mut Best, narrow, at| match self.whole(narrow, at, best.least) {
            Some(score) => best.offer(score, at),
            None => best.least,
        };
        if best.least > most_more {
            self.above(best.least - most_more, |narrow, at| offer(&mut best, narrow, at) - most_more);
        } else {
            self.blocks(|number, source, first, scores| {
                for (doc, narrow) in (first..).zip(scores.iter().copied()) {
                    if narrow + most_more >= best.least && source.seen.holds(doc) {
                        offer(&mut best, narrow, DocRef { source: number, doc });
                    }
                }
            });
        }
        best.finish()
    }

    /// Calls `visit` for each document whose score by the narrow clauses is above 0 and at least `least`. `visit`
    /// returns the new least score.
    fn above(&self, least: f32, mut visit: impl FnMut(f32, DocRef) -> f32) {
        let mut least = least.max(f32::MIN_POSITIVE);
        self.blocks(|number, _, first, scores| {
            for (first, scores) in (first..).step_by(SCORES_AT_ONCE).zip(scores.chunks(SCORES_AT_ONCE)) {
                if scores.iter().fold(false, |any, score| any | (*score >= least)) {
                    for (doc, &score) in (first..).zip(scores) {
                        if score >= least {
                            least = visit(score, DocRef { source: number, doc }).max(least);
                        }
                    }
                }
            }
        });
    }

    /// Works out the scores of all documents by the narrow clauses, block by block. `visit` gets the number of an
    /// index, the index, the first document of the block, and the scores.
    fn blocks(&self, mut visit: impl FnMut(u32, &Source, u32, &[f32])) {
        let (norm, mut block) = (Norm::of(self.mean), vec![0.0_f32; BLOCK_DOCS]);
        for (number, source) in (0..).zip(&self.sources) {
            let mut clauses: Vec<_> = self
                .narrow()
                .filter_map(|(clause, weight)| Some((weight, source.found.get(clause)?.listed().peekable())))
                .collect();
            let mut lengths = Lengths::of(&source.view, &source.tail);
            let end = source.view.end();
            for first in (0..end).step_by(BLOCK_DOCS) {
                let past = end.min(first.saturating_add(BLOCK_DOCS as u32));
                let scores = block.get_mut(..(past - first) as usize).unwrap_or_default();
                scores.fill(0.0);
                // The sum is made clause by clause, so its bits are the same as for a document scored alone.
                for (weight, held) in &mut clauses {
                    while let Some((doc, often)) = held.next_if(|(doc, _)| *doc < past) {
                        if let Some(score) = scores.get_mut(doc.wrapping_sub(first) as usize) {
                            *score += *weight * norm.worth(often, lengths.get(doc));
                        }
                    }
                }
                visit(number, source, first, scores);
            }
        }
    }

    /// The scores of documents with the terms of their neighbours, each as a share of the mass of the query: 0 to 2.
    pub(crate) fn evidence(&self, docs: &[DocRef], window: Window) -> Vec<f32> {
        let mut all = vec![0.0; docs.len()];
        if self.mass <= 0.0 {
            return all;
        }
        for (number, source) in (0..).zip(&self.sources) {
            let mut own = Vec::new();
            for (place, at) in docs.iter().enumerate().filter(|(_, at)| at.source == number) {
                let meta = source.view.doc(at.doc);
                if meta.is_some_and(|meta| meta.before.is_some() || meta.after.is_some()) {
                    own.push((place, at.doc));
                } else if let Some(score) = all.get_mut(place) {
                    // A document in no thread has its own words only.
                    *score = self.share(*at);
                }
            }
            let lent = Lent::around(source, &own, self.mean, window);
            for (clause, weight) in self.weights.iter().enumerate() {
                for (place, density) in lent.densities(source, clause, Norm::of(self.mean)) {
                    if let Some(score) = all.get_mut(place) {
                        *score += weight * saturate(density) / self.mass;
                    }
                }
            }
        }
        all
    }
}

/// The best documents so far.
struct Best {
    all: Vec<(f32, DocRef)>,
    most: usize,
    /// A score must be above this value to enter.
    least: f32,
}

impl Best {
    fn new(most: usize) -> Self {
        Best { all: Vec::new(), most, least: 0.0 }
    }

    /// Takes a document, if it is one of the best so far. Returns the score that others must exceed.
    #[inline]
    fn offer(&mut self, score: f32, at: DocRef) -> f32 {
        if score > self.least {
            self.all.push((score, at));
            if self.all.len() >= (self.most * SELECT_RATIO).max(64) {
                self.cut();
                self.least = self.all.iter().map(|(score, _)| *score).fold(f32::INFINITY, f32::min);
            }
        }
        self.least
    }

    fn cut(&mut self) {
        if self.all.len() > self.most {
            self.all.select_nth_unstable_by(self.most, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            self.all.truncate(self.most);
        }
    }

    /// The lowest of the best scores; 0 while there is room for more.
    fn least(&mut self) -> f32 {
        self.cut();
        let full = self.all.len() == self.most;
        let least = self.all.iter().map(|(score, _)| *score).fold(f32::INFINITY, f32::min);
        if full { least } else { 0.0 }
    }

    fn finish(mut self) -> Vec<(f32, DocRef)> {
        self.cut();
        self.all
    }
}

/// Which documents lend their terms to which, and how much.
struct Lent {
    /// The lender, the borrower and the share, ordered by lender.
    shares: Vec<(u32, u32, f32)>,
    /// For each borrower, its place in the answer.
    answers: Vec<usize>,
}

impl Lent {
    fn around(source: &Source, docs: &[(usize, u32)], mean: f32, window: Window) -> Self {
        let mut shares = Vec::new();
        for (borrower, (_, doc)) in (0..).zip(docs) {
            shares.push((*doc, borrower, 1.0));
            let ratio = source.length(*doc) as f32 / mean;
            // A short turn, such as a mere "Thanks!", says less about the topic.
            let gate = 2.0 * ratio / (1.0 + ratio);
            for forward in [false, true] {
                let mut share = window.share * gate;
                for lender in source.beside(*doc, forward).take(window.reach) {
                    shares.push((lender, borrower, share));
                    share *= window.decay;
                }
            }
        }
        // The sort is stable and sums go by document, so the bits are the same whatever the order of the
        // candidates.
        shares.sort_by_key(|(lender, borrower, _)| (*lender, *borrower));
        Lent { shares, answers: docs.iter().map(|(place, _)| *place).collect() }
    }

    /// The density of a clause for each borrower, by its place in the answer.
    fn densities(&self, source: &Source, clause: usize, norm: Norm) -> impl Iterator<Item = (usize, f32)> {
        let mut all = vec![0.0; self.answers.len()];
        let (mut at, mut density) = (u32::MAX, 0.0);
        for (lender, borrower, share) in &self.shares {
            if *lender != at {
                (at, density) = (*lender, source.density(clause, *lender, norm));
            }
            if let Some(sum) = all.get_mut(*borrower as usize) {
                *sum += share * density;
            }
        }
        self.answers.iter().copied().zip(all).filter(|(_, density)| *density > 0.0)
    }
}
