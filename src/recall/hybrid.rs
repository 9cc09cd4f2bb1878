//! Search by words, or by words and vector together.
//!
//! Each side brings its best candidates and their neighbours in a thread. All candidates are ranked by both sides. The
//! score is the sum of three parts: the words' share of what the query asks for, the cosine, and the amount by which
//! the cosine stands out among the best. The weights are those of the policy (`recall`); `docs/recall.md` says where
//! they come from.

use std::collections::{HashMap, HashSet};

use crate::error::{Result, sound};
use crate::index::text::{DocRef, Lexical, TextAsk, Window, lexical};
use crate::index::{Ask, Cosine, Cosines, Found, Stop, Target};
use crate::limits::K_MAX;
use crate::model::{Effort, MemoryId, Mode, Query, Ranked, SearchPlan, Signals, Vitals};
use crate::policy;
use crate::recall::around::POOL;
use crate::recall::deadline::Deadline;
use crate::recall::matching::{Matcher, ShortList};
use crate::recall::past::Unindexed;
use crate::recall::prior::{Priors, Spoken};
use crate::recall::search::{Ranking, plan_of};
use crate::recall::{Part, Reader};
use crate::store::{NsId, PartId, Rows, TextId};
use crate::vector::UnitVector;

/// The least number of memories that the words bring.
const BY_TEXT: usize = 100;
/// The least number of memories that the vector brings.
const BY_VECTOR: usize = 50;
/// The same number where a filter names few memories. The words bring a good part of these, and a memory without any
/// of the words ranks behind the nearest.
const BY_VECTOR_OF_FEW: usize = 20;
/// How many steps in a thread to either side the ranked neighbours of these candidates may be away.
const BESIDE: usize = 2;
/// The position of the hit whose cosine is the measure of how far others stand out. That cosine is exact, as are those
/// of the hits before it.
const MARGIN_AT: usize = 10;
/// How many times more of the nearest a walk may miss than the answer may miss hits. The words bring most of what a
/// walk misses, and a memory that neither brings is rarely among the best of both (`docs/benchmarks.md`).
const MISSES: f32 = 5.0;
/// A walk is not asked for a lower recall than this, unless the answer is.
const WALK_RECALL_MIN: f32 = 0.8;
/// The number of documents on which a filter is tried first; each further attempt takes four times as many.
const FILTERED_AT_FIRST: usize = 512;
/// The largest number of rows of a declared index whose documents are looked up one by one.
const NAMED_ROWS_MAX: usize = 1_024;

/// Two sums of the same shares in another order differ by less than this.
const ROUNDING: f32 = 1e-5;

/// A memory that is ranked.
#[derive(Clone, Copy)]
struct Candidate {
    id: MemoryId,
    doc: Option<DocRef>,
    cosine: Option<Cosine>,
    /// The score by words of a memory without a document: one in limbo, or one that is not stored yet.
    alone: Option<f32>,
}

impl Reader<'_> {
    /// Ranks by the words of a query, and by its vector if it has one.
    pub(super) fn rank_by_words(
        &self,
        query: &Query,
        words: &str,
        vector: Option<&UnitVector>,
        weights: &policy::Recall,
    ) -> Result<Option<Ranking>> {
        let Some(ns) = self.ns else { return Ok(None) };
        let part = match self.part(ns, &query.scope)? {
            Part::Nowhere => return Ok(None),
            part => part,
        };
        let text = match part {
            Part::One(part) => Some(TextId { ns, part }),
            _ => None,
        };
        let (now, all, function_words) = (self.now, self.past.is_some(), weights.function_words as f32);
        let over = || self.is_over();
        let ask =
            TextAsk { ns, text, words, now, all, only_weights: false, function_words, stop: Stop(&over) };
        let mut lexical = lexical(self.source, ask)?;
        let filter = query.filter.as_ref();
        let list = self.listed(ns, filter)?;
        let mut matcher = self.matcher(ns, filter, list.as_ref());
        let mut away = self.unindexed(ns, part, filter, Some(&lexical))?;
        let mut candidates = self.by_text(ns, &lexical, query, &mut matcher)?;
        let mut near = match vector {
            Some(vector) if !self.is_over() => {
                let effort = effort_of(query, candidates.len());
                self.near(ns, part, query, effort, vector, &mut matcher)?
            }
            _ => None,
        };
        if let (Some((found, target)), Some(vector)) = (&mut near, vector) {
            self.add_unindexed(&mut away, *target, vector, found, pool_of(query, BY_VECTOR))?;
            self.add_near(ns, &lexical, (found, sure_of(query)), &mut candidates)?;
        }
        add_away(&away, pool_of(query, BY_TEXT), &mut candidates);
        self.add_beside(ns, &mut lexical, &mut matcher, &mut candidates)?;
        let mut codes = near.as_ref().zip(vector).map(|((_, target), vector)| Codes {
            ns: target.ns(),
            cosines: Cosines::of(self.source, target.space(), vector),
        });
        if let Some(codes) = &mut codes {
            self.add_cosines(codes, &lexical, &mut candidates)?;
        }
        let margin = near.as_ref().and_then(|(found, _)| margin_of(found));
        if self.past.is_some() {
            self.beside(ns, &mut lexical, &candidates, weights.window_reach as usize)?;
        }
        let spoken = match Priors::of(words, weights, self, ns)? {
            None => Vec::new(),
            Some(priors) => {
                let each = candidates.iter().map(|candidate| priors.speak(self, ns, candidate.id));
                each.collect::<Result<Vec<_>>>()?
            }
        };
        let scores = Scores { words: words_of(&lexical, &candidates, weights), spoken, margin, weights };
        if let Some(codes) = &codes {
            self.settle(codes, &lexical, &scores, places_of(query), &mut candidates)?;
        }
        let hits = self.cut(ns, scores.rank(&candidates), query)?;
        // However few vectors there are where the filter points.
        let mode = if near.is_some() { Mode::Hybrid } else { Mode::Text };
        let mut plan = near.map_or_else(SearchPlan::default, |(found, _)| plan_of(&found, filter));
        (plan.texts, plan.postings) = (lexical.docs, lexical.postings);
        (plan.candidates, plan.cut) = (candidates.len() as u64, lexical.cut);
        plan.partial = self.deadline.is_some_and(Deadline::was_met);
        plan.partitions = plan.partitions.max(lexical.partitions());
        plan.pending = self.pending(ns, part)? + away.pending;
        plan.damaged +=
            matcher.as_ref().map_or(0, Matcher::damaged) + lexical.unread_beside(&hits) + away.damaged;
        plan.past = self.past_plan(&away, true);
        if filter.is_some() && plan.filter.is_empty() {
            plan.filter = "rank";
        }
        Ok(Some(Ranking { ns, hits, mode, plan }))
    }

    /// The nearest memories, and where they were searched; none in a store without vectors.
    fn near(
        &self,
        ns: NsId,
        part: Part,
        query: &Query,
        effort: Effort,
        vector: &UnitVector,
        matcher: &mut Option<Matcher<'_>>,
    ) -> Result<Option<(Found, Target)>> {
        let Some(target) = self.target(ns, part, vector)? else { return Ok(None) };
        let is_short = |list: &ShortList<'_>| list.ids.len() <= NAMED_ROWS_MAX;
        let named = matcher.as_ref().and_then(Matcher::list).is_some_and(is_short);
        let k = pool_of(query, if named { BY_VECTOR_OF_FEW } else { BY_VECTOR });
        let sure = sure_of(query);
        let over = || self.is_over();
        let (slots, effort) = (self.slots(), self.effort(effort));
        let ask = Ask { query: vector, k, sure, slots, effort, stop: Stop(&over) };
        Ok(Some((self.nearest(ns, part, target, matcher.as_mut(), ask)?, target)))
    }

    /// The memories with the highest scores by their own words that match the filter.
    fn by_text(
        &self,
        ns: NsId,
        lexical: &Lexical,
        query: &Query,
        matcher: &mut Option<Matcher<'_>>,
    ) -> Result<Vec<Candidate>> {
        let most = pool_of(query, BY_TEXT);
        let candidate =
            |at: DocRef| Some(Candidate { id: lexical.id(at)?, doc: Some(at), cosine: None, alone: None });
        let Some(filter) = matcher else {
            return Ok(lexical.top(most).into_iter().filter_map(|(_, at)| candidate(at)).collect());
        };
        // For a long list, a look-up for each of its rows would cost more than checking whether each of the best is in
        // the list.
        if let Some(list) = filter.list()
            && (!list.by_index || list.ids.len() <= NAMED_ROWS_MAX)
        {
            return self.named(ns, lexical, list, filter, most);
        }
        let (mut all, mut tried, mut ask) = (Vec::new(), 0, FILTERED_AT_FIRST);
        loop {
            let mut best = lexical.top(ask);
            best.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            // Fewer documents than asked for are all that there are, so another attempt would bring no more.
            let whole = best.len() < ask;
            for (_, at) in best.into_iter().skip(tried) {
                if self.is_over() {
                    return Ok(all);
                }
                let Some(found) = candidate(at) else { continue };
                if Self::passes(matcher, found.id)? {
                    all.push(found);
                    if all.len() == most {
                        return Ok(all);
                    }
                }
            }
            if whole {
                return Ok(all);
            }
            (tried, ask) = (ask, ask * 4);
        }
    }

    /// The memories that the filter names and that match, best first by their own words.
    fn named(
        &self,
        ns: NsId,
        lexical: &Lexical,
        list: &ShortList<'_>,
        matcher: &mut Matcher<'_>,
        most: usize,
    ) -> Result<Vec<Candidate>> {
        let mut ranked = Vec::new();
        for &id in &list.ids {
            let doc = match lexical.doc_of(id) {
                Some(doc) => Some(doc),
                None => matcher.vitals(id)?.and_then(|vitals| doc_by(ns, lexical, &vitals)),
            };
            let Some(doc) = doc else { continue };
            let share = lexical.share(doc);
            if !list.by_index || share > 0.0 {
                ranked.push((share, doc, id));
            }
        }
        ranked.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut all = Vec::new();
        for (_, doc, id) in ranked {
            if all.len() == most || self.is_over() {
                break;
            }
            let Some(vitals) = matcher.vitals(id)? else { continue };
            if self.sees(id, &vitals)? && matcher.lets_pass(id, &vitals)? {
                all.push(Candidate { id, doc: Some(doc), cosine: None, alone: None });
            }
        }
        Ok(all)
    }

    /// The document of a memory, if the memory is visible and its index takes part.
    fn doc_of(&self, ns: NsId, lexical: &Lexical, id: MemoryId) -> Result<Option<DocRef>> {
        if let Some(doc) = lexical.doc_of(id) {
            return Ok(Some(doc));
        }
        let vitals = sound(self.rows().vitals(ns, id))?.flatten();
        Ok(vitals.and_then(|vitals| doc_by(ns, lexical, &vitals)))
    }

    /// Whether a visible memory matches the filter, if there is one.
    fn passes(matcher: &mut Option<Matcher<'_>>, id: MemoryId) -> Result<bool> {
        matcher.as_mut().map_or(Ok(true), |matcher| matcher.admits(id))
    }

    /// Adds the memories that the vector brings. The cosines of so many of the first are exact.
    fn add_near(
        &self,
        ns: NsId,
        lexical: &Lexical,
        (found, sure): (&Found, usize),
        candidates: &mut Vec<Candidate>,
    ) -> Result<()> {
        let mut places: HashMap<MemoryId, usize> =
            (0..).zip(&*candidates).map(|(at, candidate)| (candidate.id, at)).collect();
        for (at, hit) in found.hits.iter().enumerate() {
            let cosine = (at < sure).then_some(Cosine::exact(hit.score));
            if let Some(candidate) = places.get(&hit.id).and_then(|at| candidates.get_mut(*at)) {
                candidate.cosine = cosine;
                continue;
            }
            let doc = self.doc_of(ns, lexical, hit.id)?;
            places.insert(hit.id, candidates.len());
            candidates.push(Candidate { id: hit.id, doc, cosine, alone: None });
        }
        Ok(())
    }

    /// Adds the neighbours of all candidates in their threads.
    fn add_beside(
        &self,
        ns: NsId,
        lexical: &mut Lexical,
        matcher: &mut Option<Matcher<'_>>,
        candidates: &mut Vec<Candidate>,
    ) -> Result<()> {
        for (at, id) in self.beside(ns, lexical, candidates, BESIDE)? {
            if Self::passes(matcher, id)? {
                candidates.push(Candidate { id, doc: Some(at), cosine: None, alone: None });
            }
        }
        Ok(())
    }

    /// The documents that stand up to `reach` places beside those of the candidates, without the candidates. What a reader of
    /// the past passes over, because it was not visible at its instants, lends no words from then on. What the index holds is
    /// visible to a live search anyway.
    fn beside(
        &self,
        ns: NsId,
        lexical: &mut Lexical,
        candidates: &[Candidate],
        reach: usize,
    ) -> Result<Vec<(DocRef, MemoryId)>> {
        let mut known: HashSet<DocRef> = candidates.iter().filter_map(|candidate| candidate.doc).collect();
        let mut edge: Vec<DocRef> = known.iter().copied().collect();
        // The order of a hash set is chance, and the order of the candidates must not be.
        edge.sort_unstable();
        let (mut found, mut unseen) = (Vec::new(), HashSet::new());
        for _ in 0..reach {
            let mut next = Vec::new();
            for (at, forward) in edge.iter().flat_map(|at| [(*at, false), (*at, true)]) {
                let sees = |doc| {
                    if self.past.is_none() || known.contains(&doc) {
                        return Ok(true);
                    }
                    let sees = lexical.id(doc).map_or(Ok(false), |id| self.saw(ns, id))?;
                    if !sees {
                        unseen.insert(doc);
                    }
                    Ok(sees)
                };
                next.extend(lexical.beside(at, forward, sees)?);
            }
            next.retain(|at| known.insert(*at));
            found.extend(next.iter().filter_map(|at| Some((*at, lexical.id(*at)?))));
            edge = next;
        }
        unseen.into_iter().for_each(|doc| lexical.leave_out(doc));
        Ok(found)
    }

    /// Fills in the cosines that the search by vector did not bring, or not exactly.
    fn add_cosines(
        &self,
        codes: &mut Codes<'_>,
        lexical: &Lexical,
        candidates: &mut [Candidate],
    ) -> Result<()> {
        for candidate in candidates.iter_mut().filter(|candidate| candidate.cosine.is_none()) {
            let Some((part, slot)) = self.slot_of(codes.ns, lexical, candidate)? else { continue };
            candidate.cosine = codes.cosines.cosine(codes.ns, part, slot, candidate.id)?;
        }
        Ok(())
    }

    /// Takes the cosines of all that may be among the first `places` from their vectors. So the score of a hit, and its place
    /// among the same candidates, do not depend on how many hits are asked for. Who asks for more has more candidates.
    fn settle(
        &self,
        codes: &Codes<'_>,
        lexical: &Lexical,
        scores: &Scores<'_>,
        places: usize,
        candidates: &mut [Candidate],
    ) -> Result<()> {
        let mut lowest: Vec<f32> =
            (0..).zip(&*candidates).map(|(at, candidate)| scores.score(at, candidate, -1.0)).collect();
        let floor = match places.checked_sub(1).filter(|last| *last < lowest.len()) {
            Some(last) => *lowest.select_nth_unstable_by(last, |a, b| b.total_cmp(a)).1,
            None => f32::NEG_INFINITY,
        };
        for (at, candidate) in candidates.iter_mut().enumerate() {
            let Some(cosine) = candidate.cosine.filter(|cosine| cosine.error > 0.0) else { continue };
            if scores.score(at, candidate, 1.0) < floor {
                continue;
            }
            let Some((part, slot)) = self.slot_of(codes.ns, lexical, candidate)? else { continue };
            // Of a damaged vector the code is left.
            let exact = codes.cosines.of_vectors(codes.ns, part, slot)?.unwrap_or(cosine.value);
            candidate.cosine = Some(Cosine::exact(exact));
        }
        Ok(())
    }

    /// The place of a candidate's vector.
    fn slot_of(&self, ns: NsId, lexical: &Lexical, candidate: &Candidate) -> Result<Option<(PartId, u32)>> {
        if let Some(doc) = candidate.doc {
            return Ok(lexical.slot(doc));
        }
        let vitals = sound(self.rows().vitals(ns, candidate.id))?.flatten();
        Ok(vitals.and_then(|vitals| Some((PartId(vitals.place.partition), vitals.place.slot?))))
    }
}

/// Adds the memories without a place in an index that the words bring, and says of each such candidate what its own words
/// and its vector are worth.
fn add_away(away: &Unindexed<'_>, most: usize, candidates: &mut Vec<Candidate>) {
    for id in away.best_by_words(most) {
        if candidates.iter().all(|candidate| candidate.id != id) {
            candidates.push(Candidate { id, doc: None, cosine: None, alone: None });
        }
    }
    for candidate in candidates {
        if let Some((share, cosine)) = away.scores(candidate.id) {
            (candidate.alone, candidate.cosine) = (share, cosine.map(Cosine::exact));
        }
    }
}

/// The document of a memory by its hot part, if the memory is visible and its index takes part.
fn doc_by(ns: NsId, lexical: &Lexical, vitals: &Vitals) -> Option<DocRef> {
    let text = TextId { ns, part: PartId(vitals.place.partition) };
    lexical.doc(text, vitals.place.doc?)
}

/// How many candidates one side of a search brings. Pages of one query are cut from the same candidates, up to the depth of
/// `least` and behind it.
fn pool_of(query: &Query, least: usize) -> usize {
    match query.depth() {
        depth if depth <= BY_VECTOR.min(least) => least,
        _ if query.offset > 0 => K_MAX,
        depth => depth.max(least),
    }
}

/// The effort of a walk whose results are ranked together with `by_text` memories that the words have
/// brought.
fn effort_of(query: &Query, by_text: usize) -> Effort {
    match query.effort {
        Effort::Recall(recall) if by_text >= query.k.max(MARGIN_AT) => {
            Effort::Recall((1.0 - (1.0 - recall) * MISSES).max(recall.min(WALK_RECALL_MIN)))
        }
        effort => effort,
    }
}

/// The cosine above which others stand out.
fn margin_of(found: &Found) -> Option<f32> {
    let hits = &found.hits;
    hits.get(MARGIN_AT - 1).or(hits.last()).map(|hit| hit.score)
}

/// How many of the nearest have exact cosines. Not by the depth: a memory has one cosine on every page.
fn sure_of(query: &Query) -> usize {
    query.k.max(MARGIN_AT)
}

/// How many of the best decide what a query answers.
fn places_of(query: &Query) -> usize {
    if query.diversity > 0.0 { query.depth().saturating_mul(POOL) } else { query.depth() }
}

/// The share of the words that each candidate has with its neighbours, and the share of its own words.
fn words_of(
    lexical: &Lexical,
    candidates: &[Candidate],
    weights: &policy::Recall,
) -> Vec<(Option<f32>, Option<f32>)> {
    let window = Window {
        share: weights.window as f32,
        decay: weights.window_decay as f32,
        reach: weights.window_reach as usize,
    };
    let docs: Vec<DocRef> = candidates.iter().filter_map(|candidate| candidate.doc).collect();
    let mut evidence = lexical.evidence(&docs, window).into_iter();
    let both = |candidate: &Candidate| {
        let whole = candidate.doc.and_then(|_| evidence.next()).or(candidate.alone);
        (whole, candidate.doc.map(|doc| lexical.share(doc)).or(candidate.alone))
    };
    candidates.iter().map(both).collect()
}

/// The codes of the space in which the nearest were searched.
struct Codes<'q> {
    ns: NsId,
    cosines: Cosines<'q>,
}

/// What makes the scores of the candidates, beside their cosines.
struct Scores<'q> {
    /// The shares of the words of each candidate: with its neighbours, and of its own.
    words: Vec<(Option<f32>, Option<f32>)>,
    /// Of each candidate, if the query or the policy speaks of time or rank.
    spoken: Vec<Spoken>,
    /// The cosine above which others stand out; none in a search by words alone.
    margin: Option<f32>,
    weights: &'q policy::Recall,
}

impl Scores<'_> {
    /// What the words and the vector of a candidate are worth, if its cosine is off by so many errors.
    fn found(&self, at: usize, candidate: &Candidate, errors: f32) -> f32 {
        let whole = self.words.get(at).and_then(|(whole, _)| *whole);
        let near = candidate.cosine.map_or(0.0, |Cosine { value, error }| {
            let cosine = value + errors * error;
            let above = self.margin.map_or(0.0, |margin| (cosine - margin).max(0.0));
            self.weights.vector as f32 * cosine + self.weights.margin as f32 * above
        });
        whole.unwrap_or(0.0) + near
    }

    /// The score of a candidate, if its cosine is off by so many errors.
    fn score(&self, at: usize, candidate: &Candidate, errors: f32) -> f32 {
        let Spoken { time, prior } = self.spoken.get(at).copied().unwrap_or_default();
        self.found(at, candidate, errors) + time.unwrap_or(0.0) + prior.unwrap_or(0.0)
    }

    /// The candidates with the parts of their scores, best first; equal scores by id.
    fn rank(&self, candidates: &[Candidate]) -> Vec<Ranked> {
        let mut hits: Vec<Ranked> = Vec::with_capacity(candidates.len());
        for (at, candidate) in candidates.iter().enumerate() {
            // In a search by words alone, a memory is no answer if neither it nor its neighbours hold a word of
            // the query.
            if self.margin.is_none() && self.found(at, candidate, 0.0) <= 0.0 {
                continue;
            }
            let (whole, own) = self.words.get(at).copied().unwrap_or_default();
            let Spoken { time, prior } = self.spoken.get(at).copied().unwrap_or_default();
            let signals = Signals {
                vector: candidate.cosine.map(|cosine| cosine.value),
                text: own,
                // A difference that comes only from the order of a sum is not evidence.
                context: whole
                    .zip(own)
                    .map(|(whole, own)| whole - own)
                    .map(|more| if more > ROUNDING { more } else { 0.0 }),
                time,
                prior,
            };
            hits.push(Ranked { id: candidate.id, score: self.score(at, candidate, 0.0), signals });
        }
        hits.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        hits
    }
}
