//! The nearest vectors of one index, or of all indexes of a namespace. A graph is walked; without a graph all codes
//! are scanned. In both cases the candidates are ranked on their f32 vectors.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Error, Result, sound};
use crate::hnsw::{Probe, Scratch, Verdict};
use crate::index::adjacency::Linked;
use crate::index::calibrate::ef_for;
use crate::index::chunk::{CHUNK_SLOTS, Chunk, Visible, Window, read_block};
use crate::index::cost::{Cost, FEW_FOR_CODES};
use crate::index::published::Published;
use crate::index::rank::{Accept, Crowd, Ranker, is_worth_a_pass};
use crate::index::source::Source;
use crate::index::stop::Stop;
use crate::index::view::{View, worth_a_view};
use crate::model::{Effort, MemoryId, Ranked, Time};
use crate::record::{At, SlotBlockRef, slots_per_block};
use crate::store::control::SlotHead;
use crate::store::{IndexId, NsId, Rows, Snapshot, SpaceId, Table, Walk, keys};
use crate::vector::{BitBlock, Candidate, Candidates, Codes, Promises, QueryCode, Ranking, UnitVector};

/// More candidates than this many times k are ranked block by block.
const CANDIDATES_PER_HIT_MAX: usize = 64;

/// The number of nodes that a walk takes between two looks at the clock.
const ASKED_AT_ONCE: u32 = 32;

/// Where to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One index.
    Index(IndexId),
    /// Every index of a namespace in one embedding space.
    Namespace(NsId, SpaceId),
}

impl Target {
    /// The namespace.
    pub(crate) fn ns(self) -> NsId {
        match self {
            Target::Index(index) => index.ns,
            Target::Namespace(ns, _) => ns,
        }
    }

    /// The embedding space.
    pub(crate) fn space(self) -> SpaceId {
        match self {
            Target::Index(index) => index.space,
            Target::Namespace(_, space) => space,
        }
    }
}

/// Which slots a search looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slots {
    /// Those that a live read at this instant sees.
    Live(Time),
    /// All that hold a memory: the caller judges which of the memories count.
    Held,
}

impl Slots {
    fn window(self) -> Window {
        match self {
            Slots::Live(now) => Window::live(now),
            Slots::Held => Window::all(),
        }
    }
}

/// The question of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'q> {
    /// The vector to which the results should be near.
    pub(crate) query: &'q UnitVector,
    /// The number of results.
    pub(crate) k: usize,
    /// How many of these results the effort speaks of. Their scores are exact. More results are added as the search
    /// meets them; if no filter is tried, their scores come from their codes.
    pub(crate) sure: usize,
    /// Which slots are looked at.
    pub(crate) slots: Slots,
    /// How much of a large index to search.
    pub(crate) effort: Effort,
    /// When to stop with the results so far.
    pub(crate) stop: Stop<'q>,
}

/// The answer, best first, and how it was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// The nearest memories: higher scores first, equal scores by id.
    pub(crate) hits: Vec<Ranked>,
    /// The number of indexes searched.
    pub(crate) partitions: u64,
    /// The number of visible slots whose codes were scanned.
    pub(crate) scanned: u64,
    /// The number of nodes whose codes were scored on a walk.
    pub(crate) walked: u64,
    /// The length of the list of the widest walk; 0 without a walk.
    pub(crate) ef: u64,
    /// The number of vectors scored exactly.
    pub(crate) ranked: u64,
    /// The number of rows on which a filter was tried.
    pub(crate) tested: u64,
    /// The number of slots that were left out because their codes or vectors can't be read.
    pub(crate) damaged: u64,
    /// `graph` if a graph was walked, otherwise `bits`, `codes` or `blocks`; `rows` for named rows.
    pub(crate) regime: &'static str,
    /// How a filter was applied: `walk`, `rank` or `scan`; empty without a filter.
    pub(crate) filter: &'static str,
}

/// The `k` memories whose vectors are nearest to the query, among those that a live read sees. If all codes are scanned,
/// the answer is that of a full scan of the f32 vectors.
///
/// # Errors
/// `Invalid` for a query of another dimension than the space has; `Corrupted`.
pub(crate) fn nearest(published: &Published, target: Target, ask: Ask<'_>) -> Result<Found> {
    let search = Search::open(published, target, ask)?;
    let walked = search.walk_all(&mut |_, _| Ok(Verdict::Take))?;
    search.by_candidates(walked, None)
}

/// Ranks the given rows, each by its index and slot, and no others.
///
/// # Errors
/// As [`nearest`].
pub(crate) fn rank_rows(
    published: &Published,
    target: Target,
    rows: &mut [(IndexId, u32, MemoryId)],
    query: &UnitVector,
    k: usize,
) -> Result<Found> {
    check_dim(published, target, query)?;
    rows.sort_unstable();
    let mut ranker = Ranker::new(published.snapshot(), &[], query, k, k);
    for (index, slot, id) in rows.iter() {
        ranker.score_at(*index, *slot, *id)?;
    }
    let count = rows.len() as u64;
    let mut indexes: Vec<_> = rows.iter().map(|(index, _, _)| *index).collect();
    indexes.dedup();
    let partitions = indexes.len() as u64;
    Ok(Found {
        damaged: ranker.lost(),
        hits: ranker.into_hits(),
        partitions,
        scanned: count,
        ranked: count,
        regime: "rows",
        filter: "names",
        ..Found::default()
    })
}

pub(super) fn check_dim(published: &Published, target: Target, query: &UnitVector) -> Result<usize> {
    let dim = published.dim(match target {
        Target::Index(index) => index.space,
        Target::Namespace(_, space) => space,
    })?;
    if query.dim() != dim {
        return Err(Error::invalid("vector", format!("must have {dim} dimensions"), query.dim()));
    }
    Ok(dim)
}

/// The indexes of a target, each with its view if a view is worth its memory.
fn sources(
    published: &Published,
    target: Target,
    dim: usize,
    window: Window,
    effort: Effort,
) -> Result<Vec<Source>> {
    let heads: Vec<(IndexId, SlotHead)> = match target {
        Target::Index(index) => vec![(index, published.snapshot().readable_slot_head(index)?)],
        Target::Namespace(ns, space) => {
            let heads = published.snapshot().slot_heads(Some(ns))?;
            heads.into_iter().filter(|(index, _)| index.space == space).collect()
        }
    };
    let asked_alone = matches!(target, Target::Index(_));
    let mut base = 0_u32;
    let mut all = Vec::with_capacity(heads.len());
    for (index, head) in heads {
        let view = match published.loaded(index) {
            None if (asked_alone || worth_a_view(&head))
                && published.has_room_for(&head, dim)
                && !published.is_first_search(index, &head)? =>
            {
                Some(published.view(index)?)
            }
            loaded => loaded,
        };
        // A search that must be certain reads all codes, and one with a list of a given length has no recall to keep.
        let sketch = match (&view, effort) {
            (None, Effort::Recall(_)) => published.sketch(index, &head)?,
            _ => None,
        };
        // Blocks are whole, so the last block may reach past the length.
        let room = head.len.checked_next_multiple_of(slots_per_block(dim) as u32);
        let extract = view.as_ref().and_then(|view| view.extract(window));
        let view = extract.as_ref().map(|extract| Arc::clone(extract.view())).or(view);
        let seen = view.as_ref().map_or(1.0, |view| view.share_seen(window));
        let len = view.as_ref().map_or(head.len, |view| view.len());
        all.push(Source { base, index, used: head.used, len, view, extract, sketch, seen });
        base = room.and_then(|room| base.checked_add(room)).ok_or_else(|| Error::Conflict {
            what: "search".to_owned(),
            why: "a scope holds at most 4,294,967,295 vectors".to_owned(),
        })?;
    }
    Ok(all)
}

/// A chunk with a visible slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'v> {
    /// The number of its first slot in the search.
    pub(super) first: u32,
    pub(super) codes: Codes<'v>,
    pub(super) visible: &'v Visible,
    /// Its one-bit codes, if its view has some.
    pub(super) bits: Option<BitBlock<'v>>,
}

type VisitChunk<'v> = &'v mut dyn FnMut(Seen<'_>);

/// What a scan reads besides what no walk finds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scope<'s> {
    /// If given, only these slots count, by source, and no graph is walked.
    pub(super) among: Option<&'s [Vec<u64>]>,
    /// The numbers of the first slots of indexes whose walk was given up.
    pub(super) given_up: &'s [u32],
}

/// Decides about a slot that a walk has reached.
pub(super) type Judge<'j> = &'j mut dyn FnMut(&Source, u32) -> Result<Verdict>;

thread_local! {
    /// Buffers that walks of this thread use again.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// The results of walks through graphs.
#[derive(Debug, Default)]
pub(super) struct Walked {
    candidates: Vec<Candidate>,
    /// The numbers of the first slots of indexes whose walk was given up. These indexes are scanned.
    given_up: Vec<u32>,
    scored: u64,
    /// The length of the longest list; 0 without a walk.
    pub(super) ef: u64,
    /// Whether the judge has stopped the walk.
    pub(super) stopped: bool,
}

pub(super) struct Search<'p> {
    published: &'p Published,
    pub(super) dim: usize,
    /// Shared by searches for other vectors in the same place.
    pub(super) sources: Arc<[Source]>,
    pub(super) ask: Ask<'p>,
    pub(super) window: Window,
    pub(super) code: QueryCode,
    /// The number of slots whose codes were wanted and can't be read from the file.
    pub(super) lost: Cell<u64>,
}

impl<'p> Search<'p> {
    pub(super) fn open(published: &'p Published, target: Target, ask: Ask<'p>) -> Result<Self> {
        let dim = check_dim(published, target, ask.query)?;
        let window = ask.slots.window();
        let sources = sources(published, target, dim, window, ask.effort)?.into();
        Ok(Search::over(published, sources, ask, window))
    }

    /// A search of given indexes, which have the dimensions of its query.
    pub(super) fn over(
        published: &'p Published,
        sources: Arc<[Source]>,
        ask: Ask<'p>,
        window: Window,
    ) -> Self {
        let code = QueryCode::new(ask.query);
        Search { published, dim: ask.query.dim(), sources, ask, window, code, lost: Cell::new(0) }
    }

    /// The graph of a source, if this search walks it.
    fn graph_of<'s>(&self, source: &'s Source) -> Option<(&'s View, &'s Linked)> {
        let view = source.view.as_deref().filter(|_| self.ask.effort != Effort::Exact)?;
        let linked = view.linked()?;
        self.cost(source).walks(self.ef(linked, source.used)).then_some((view, linked))
    }

    /// What the search of a source costs.
    fn cost(&self, source: &Source) -> Cost {
        Cost { slots: source.len, seen: source.seen, by_bits: self.recall_by_bits(source).is_some() }
    }

    /// Whether a scan of every source costs no more than the walks of this search. The walks could then only
    /// find less.
    pub(super) fn scans_as_cheaply(&self) -> bool {
        self.sources.iter().all(|source| {
            let (graph, cost) = (self.graph_of(source), self.cost(source));
            graph.is_none_or(|(_, linked)| cost.scan() <= cost.walk(self.ef(linked, source.used)))
        })
    }

    /// Whether any source is walked.
    pub(super) fn walks(&self) -> bool {
        self.sources.iter().any(|source| self.graph_of(source).is_some())
    }

    /// The length of the list of a walk.
    fn ef(&self, linked: &Linked, live: u32) -> usize {
        match self.ask.effort {
            Effort::Ef(ef) => ef.max(self.ask.k),
            Effort::Recall(recall) => ef_for(linked, live, recall, self.ask.sure).max(self.ask.k),
            Effort::Exact => self.ask.k,
        }
    }

    /// The longest list of the walks of this search.
    pub(super) fn ef_max(&self) -> usize {
        let graphs = self.sources.iter().filter_map(|source| Some((self.graph_of(source)?.1, source.used)));
        graphs.map(|(linked, live)| self.ef(linked, live)).max().unwrap_or(0)
    }

    /// Walks every graph. `judge` decides about slots that a live read sees. A walk that meets too many other slots is
    /// given up.
    pub(super) fn walk_all(&self, judge: Judge<'_>) -> Result<Walked> {
        self.walk_each(judge, |source, ef| self.cost(source).passes(ef))
    }

    /// The same, but no walk is given up.
    pub(super) fn walk_through(&self) -> Result<Walked> {
        self.walk_each(&mut |_, _| Ok(Verdict::Take), |_, _| usize::MAX)
    }

    fn walk_each(&self, judge: Judge<'_>, passes: impl Fn(&Source, usize) -> usize) -> Result<Walked> {
        let mut walked = Walked::default();
        for source in self.sources.iter() {
            if let Some((view, linked)) = self.graph_of(source).filter(|_| !walked.stopped) {
                let ef = self.ef(linked, source.used);
                let bounds = WalkBounds { ef, passes: passes(source, ef) };
                self.walk(source, view, linked, bounds, judge, &mut walked)?;
            }
        }
        Ok(walked)
    }

    fn walk(
        &self,
        source: &Source,
        view: &View,
        linked: &Linked,
        bounds: WalkBounds,
        judge: Judge<'_>,
        walked: &mut Walked,
    ) -> Result<()> {
        let WalkBounds { ef, passes } = bounds;
        let probe = Probe { code: self.code.code(), scale: self.code.unit_scale() };
        let (window, stop) = (self.window, self.ask.stop);
        let (mut failed, mut asked, mut passed, mut ended) = (None, 0_u32, 0, false);
        SCRATCH.with_borrow_mut(|scratch| {
            linked.graph.search(view, probe, ef, scratch, |slot| {
                // The count only spaces the looks at the clock, so an overflow does no harm.
                asked = asked.wrapping_add(1);
                // After the stop the walk asks once more about each result, with its twins, and must not be
                // stopped then.
                if !ended && asked.is_multiple_of(ASKED_AT_ONCE) && stop.is_over() {
                    ended = true;
                    return Verdict::Stop;
                }
                if !view.sees(slot, window) {
                    passed += 1;
                    return if passed > passes { Verdict::Stop } else { Verdict::Pass };
                }
                let verdict = judge(source, slot).unwrap_or_else(|why| {
                    failed = Some(why);
                    Verdict::Stop
                });
                walked.stopped |= verdict == Verdict::Stop;
                verdict
            });
            walked.scored += scratch.scored() as u64;
            if passed > passes {
                walked.given_up.push(source.base);
                return;
            }
            walked.candidates.extend(scratch.found().iter().map(|near| {
                let upper = self.code.likely_upper(near.score(), view.step(near.slot()));
                Candidate { slot: source.base + near.slot(), upper }
            }));
        });
        walked.ef = walked.ef.max(ef as u64);
        failed.map_or(Ok(()), Err)
    }

    /// Ranks the results of walks, and the results of scanning everything else. If `among` is given, only these slots
    /// count, by source.
    pub(super) fn by_candidates(&self, walked: Walked, among: Option<&[Vec<u64>]>) -> Result<Found> {
        let mut candidates = Candidates::new(&self.code, self.ask.k);
        let scope = Scope { among, given_up: &walked.given_up };
        // What the one-bit codes find lets the scan of other codes drop more.
        let sifted = self.sift(scope, &mut candidates)?;
        let scanned =
            self.scan(scope, &|source| self.recall_by_bits(source).is_none(), &mut |seen| match seen
                .visible
                .words()
            {
                Some(&[word]) if word.count_ones() <= FEW_FOR_CODES => {
                    candidates.push_rows(seen.codes.rows(seen.first, word));
                }
                words => candidates.push_chunk(seen.first, seen.codes, words),
            })?;
        let found = self.rank(candidates.finish(), sifted + scanned, walked, f32::NEG_INFINITY)?;
        let regime = if sifted > 0 && found.regime == "codes" { "bits" } else { found.regime };
        Ok(Found { regime, ..found })
    }

    /// Ranks candidates from a scan of so many slots and from walks, until no other slot can be among the best or
    /// score `least`.
    pub(super) fn rank(
        &self,
        mut candidates: Vec<Candidate>,
        scanned: u64,
        walked: Walked,
        least: f32,
    ) -> Result<Found> {
        if self.is_crowded(&candidates, &walked) && is_worth_a_pass(candidates.len(), scanned) {
            let mut crowd = [self.crowd(candidates)];
            Crowd::score(&mut crowd)?;
            let [crowd] = crowd;
            return Ok(self.found(crowd.into_ranker(), scanned, "blocks"));
        }
        let mut ranker = self.ranker();
        candidates.extend(&walked.candidates);
        for candidate in Ranking::from(candidates) {
            // Even after the stop `k` candidates are ranked, so that a late answer has hits.
            let over = ranker.ranked() >= self.ask.k as u64 && self.ask.stop.is_over();
            if candidate.upper < least || ranker.is_done_at(candidate.upper) || over {
                break;
            }
            if !ranker.is_sure_at(candidate.upper) || !ranker.estimate(candidate.slot, &self.code) {
                ranker.score(candidate.slot, None)?;
            }
        }
        let found = self.found(ranker, scanned, if walked.ef > 0 { "graph" } else { "codes" });
        Ok(Found { walked: walked.scored, ef: walked.ef, ..found })
    }

    /// Whether so many candidates of a scan may be worth a pass over the blocks of vectors.
    pub(super) fn is_crowded(&self, candidates: &[Candidate], walked: &Walked) -> bool {
        candidates.len() > CANDIDATES_PER_HIT_MAX * self.ask.k && walked.candidates.is_empty()
    }

    /// The candidates with what ranks them block by block.
    pub(super) fn crowd(&self, candidates: Vec<Candidate>) -> Crowd<'_> {
        Crowd::new(self.ranker(), candidates)
    }

    /// Ranks the results of walks, and all slots that walks can't find, in the order of their codes. Tries a filter on
    /// each until no other slot can be among the best. None if more than `tries` were tried.
    pub(super) fn by_ranking(&self, walked: Walked, tries: u64, accept: Accept<'_>) -> Result<Option<Found>> {
        let mut promises = Promises::new(&self.code);
        promises.extend(&walked.candidates);
        let scope = Scope { among: None, given_up: &walked.given_up };
        let scanned = self.scan(scope, &|_| true, &mut |seen| {
            promises.push_chunk(seen.first, seen.codes, seen.visible.words());
        })?;
        let mut ranker = self.ranker();
        for (tested, candidate) in (0..).zip(promises.finish()) {
            if ranker.is_done_at(candidate.upper) {
                break;
            }
            if tested == tries {
                return Ok(None);
            }
            ranker.score(candidate.slot, Some(&mut *accept))?;
        }
        let regime = if walked.ef > 0 { "graph" } else { "codes" };
        Ok(Some(Found { walked: walked.scored, ef: walked.ef, ..self.found(ranker, scanned, regime) }))
    }

    /// The rows of the commit that is searched.
    pub(super) fn snapshot(&self) -> &Snapshot {
        self.published.snapshot()
    }

    fn ranker(&self) -> Ranker<'_> {
        let Ask { query, k, sure, .. } = self.ask;
        Ranker::new(self.published.snapshot(), &self.sources, query, k, sure)
    }

    fn found(&self, ranker: Ranker<'_>, scanned: u64, regime: &'static str) -> Found {
        let (ranked, partitions) = (ranker.ranked(), self.sources.len() as u64);
        let views = self.sources.iter().filter_map(|source| source.view.as_ref());
        let damaged = views.map(|view| u64::from(view.lost())).sum::<u64>() + self.lost.get() + ranker.lost();
        Found { hits: ranker.into_hits(), partitions, scanned, ranked, regime, damaged, ..Found::default() }
    }

    /// Whether a walk has found what it can of a source, so that only the tail is left.
    pub(super) fn is_walked(&self, source: &Source, scope: Scope<'_>) -> bool {
        scope.among.is_none() && !scope.given_up.contains(&source.base) && self.graph_of(source).is_some()
    }

    /// Calls `visit` with every chunk that has a visible slot which no walk finds: there is no walk, or it was given
    /// up. Of the indexes that are scanned as a whole, only those that are `wanted` count. Returns the number of such
    /// slots.
    pub(super) fn scan(
        &self,
        scope: Scope<'_>,
        wanted: &dyn Fn(&Source) -> bool,
        visit: VisitChunk<'_>,
    ) -> Result<u64> {
        let mut scanned = 0;
        let mut at = 0;
        let is_streamed = |source: &Source| source.view.is_none() && wanted(source);
        for run in self.sources.chunk_by(|a, b| is_streamed(a) && is_streamed(b)) {
            let among = scope.among.and_then(|among| among.get(at..at + run.len()));
            at += run.len();
            match run {
                [source @ Source { base, view: Some(view), .. }] => {
                    let sight = view.sight(self.window);
                    let seen = |number: usize, mask: u64| {
                        let (chunk, word) = (view.chunk(number)?, sight.words().get(number)? & mask);
                        Some((chunk, Visible::of_word(word, chunk.len())?))
                    };
                    if self.is_walked(source, scope) {
                        for (number, mask) in view.tail() {
                            let Some((chunk, visible)) = seen(number, mask) else { continue };
                            let first = base + (number * CHUNK_SLOTS) as u32;
                            scanned += self.scan_chunk(first, chunk, None, &visible, visit);
                        }
                    } else if wanted(source) {
                        let words = among.and_then(|among| among.first());
                        for number in 0..sight.words().len() {
                            let mask =
                                words.map_or(u64::MAX, |words| words.get(number).copied().unwrap_or(0));
                            let Some((chunk, visible)) = seen(number, mask) else { continue };
                            let bits = view.bits().and_then(|bits| bits.block(number));
                            let first = base + (number * CHUNK_SLOTS) as u32;
                            scanned += self.scan_chunk(first, chunk, bits, &visible, visit);
                        }
                    }
                }
                [source] if !wanted(source) => {}
                streamed => scanned += self.stream(streamed, among, visit)?,
            }
        }
        Ok(scanned)
    }

    /// Calls `visit` with a chunk of which something is visible. Returns the number of its visible slots.
    fn scan_chunk(
        &self,
        first: u32,
        chunk: &Chunk,
        bits: Option<BitBlock<'_>>,
        visible: &Visible,
        visit: VisitChunk<'_>,
    ) -> u64 {
        if self.ask.stop.is_over() {
            return 0;
        }
        visit(Seen { first, codes: chunk.codes(self.dim), visible, bits });
        visible.count(chunk.len())
    }

    /// Reads the blocks of neighbouring indexes in one pass and keeps none of them.
    fn stream(&self, run: &[Source], among: Option<&[Vec<u64>]>, visit: VisitChunk<'_>) -> Result<u64> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { return Ok(0) };
        let per = slots_per_block(self.dim);
        let mut scanned = 0;
        let mut rest = run;
        let (mut next, mut stopped, mut read) = (0_u32, false, 0_u32);
        let ended = |source: &Source, next: u32, read: u32| {
            source.ends_at(next, per);
            self.lost.set(self.lost.get() + u64::from(source.used.saturating_sub(read)));
        };
        let mut scratch = Chunk::with_room(per, self.dim);
        let walk = Walk::prefix(&keys::ns(first.index.ns)).starting_at(&keys::block(first.index, 0));
        self.published.snapshot().slot_blocks(&walk, &mut |index, block, key, bytes| {
            stopped = self.ask.stop.is_over();
            if index > last.index || stopped {
                return Ok(ControlFlow::Break(()));
            }
            // Keys are ordered by index, so no more blocks of these indexes can come.
            while let [source, others @ ..] = rest
                && source.index < index
            {
                ended(source, next, read);
                (rest, next, read) = (others, 0, 0);
            }
            let Some(source) = rest.first().filter(|source| source.index == index) else {
                // The index belongs to another embedding space, or no search asked for it.
                return Ok(ControlFlow::Continue(()));
            };
            if block != next {
                source.misses(next);
            }
            next = block + 1;
            scratch.clear();
            let opened = sound(SlotBlockRef::open(At::new(Table::Slot.name(), key), self.dim, bytes))?;
            let Some(slots) = opened else { return Ok(ControlFlow::Continue(())) };
            read_block(&mut scratch, &slots, self.dim);
            read += scratch.used() as u32;
            scratch.summarise();
            let first = block * per as u32;
            let words = among.and_then(|among| among.get(run.len() - rest.len()));
            let mask = words.map(|words| bits_from(words, first as usize, per));
            let visible = scratch.visible(self.window);
            let visible = mask.map_or(visible.clone(), |mask| visible.within(&mask));
            if visible.count(scratch.len()) > 0 {
                scanned += self.scan_chunk(source.base + first, &scratch, None, &visible, visit);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for source in rest.iter().filter(|_| !stopped) {
            ended(source, std::mem::take(&mut next), std::mem::take(&mut read));
        }
        Ok(scanned)
    }
}

/// How far a walk goes.
#[derive(Clone, Copy)]
struct WalkBounds {
    /// The length of the list.
    ef: usize,
    /// The number of slots which the search does not see that the walk may meet before it is given up.
    passes: usize,
}

/// The `count` bits from bit `first` on, as words of their own.
fn bits_from(words: &[u64], first: usize, count: usize) -> Vec<u64> {
    let bit = |at: usize| words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1);
    let word = |start: usize| {
        (0..64.min(count - start)).fold(0, |word, at| word | (u64::from(bit(first + start + at)) << at))
    };
    (0..count).step_by(64).map(word).collect()
}
