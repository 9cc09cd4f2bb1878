//! The nearest vectors of one index or of all indexes of a namespace, exactly.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::index::published::Published;
use crate::index::rank::Ranker;
use crate::index::view::{Chunk, View, read_block, worth_a_view};
use crate::model::{Hit, MemoryId, Time};
use crate::record::{At, SlotBlockRef, slots_per_block};
use crate::store::control::SlotHead;
use crate::store::{IndexId, NsId, Rows, SpaceId, Table, Walk, keys};
use crate::vector::{Candidates, Codes, Promises, QueryCode, Ranking, UnitVector};

/// More candidates than this many times k are ranked block by block.
const CANDIDATES_PER_HIT_MAX: usize = 64;
/// Blocks are walked only if at least one slot in this many is a candidate: a walk reads all that lies between.
const SLOTS_PER_CANDIDATE_MAX: usize = 8;

/// Where to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One index.
    Index(IndexId),
    /// Every index of a namespace in one embedding space.
    Namespace(NsId, SpaceId),
}

/// Says whether a memory passes a filter.
pub(crate) type Accept<'f> = &'f mut dyn FnMut(MemoryId) -> Result<bool>;

/// The answer, best first, and how it came about.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// The nearest memories: higher scores first, equal ones by id.
    pub(crate) hits: Vec<Hit>,
    /// Indexes looked at.
    pub(crate) partitions: u64,
    /// Visible slots whose codes were scanned.
    pub(crate) scanned: u64,
    /// Vectors scored exactly.
    pub(crate) ranked: u64,
    /// `codes` or `blocks`; with a filter `codes`.
    pub(crate) regime: &'static str,
}

/// An index in a search: its slots have the numbers from `base` on.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) base: u32,
    pub(super) index: IndexId,
    len: u32,
    /// None: its blocks are read from the table.
    pub(super) view: Option<Arc<View>>,
}

/// The `k` memories whose vectors are nearest to `query`, among those that a live read at `now` sees and that
/// `accept` lets pass. The answer is that of a full scan of the f32 vectors.
///
/// # Errors
/// `Invalid` for a query of another dimension than the space has; `Corrupted`; those of `accept`.
pub(crate) fn nearest(
    published: &Published,
    target: Target,
    query: &UnitVector,
    k: usize,
    now: Time,
    accept: Option<Accept<'_>>,
) -> Result<Found> {
    let dim = check_dim(published, target, query)?;
    let search = Search { published, dim, sources: sources(published, target, dim)?, now };
    match accept {
        None => search.by_candidates(query, k),
        Some(accept) => search.by_ranking(query, k, accept),
    }
}

/// Ranks given rows, each by its index and slot, and nothing else.
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
    let dim = check_dim(published, target, query)?;
    rows.sort_unstable();
    let mut ranker = Ranker::new(published.snapshot(), &[], dim, query, k);
    for (index, slot, id) in rows.iter() {
        ranker.score_at(*index, *slot, *id)?;
    }
    let count = rows.len() as u64;
    let mut indexes: Vec<_> = rows.iter().map(|(index, _, _)| *index).collect();
    indexes.dedup();
    let partitions = indexes.len() as u64;
    Ok(Found { hits: ranker.into_hits(), partitions, scanned: count, ranked: count, regime: "rows" })
}

fn check_dim(published: &Published, target: Target, query: &UnitVector) -> Result<usize> {
    let dim = published.dim(match target {
        Target::Index(index) => index.space,
        Target::Namespace(_, space) => space,
    })?;
    if query.dim() != dim {
        return Err(Error::invalid("vector", format!("must have {dim} dimensions"), query.dim()));
    }
    Ok(dim)
}

/// The indexes of a target, those that are worth it with their view.
fn sources(published: &Published, target: Target, dim: usize) -> Result<Vec<Source>> {
    let heads: Vec<(IndexId, Option<SlotHead>)> = match target {
        Target::Index(index) => vec![(index, None)],
        Target::Namespace(ns, space) => {
            let heads = published.snapshot().slot_heads(Some(ns))?;
            heads.into_iter().filter(|(index, _)| index.space == space).map(|(i, h)| (i, Some(h))).collect()
        }
    };
    let mut base = 0_u32;
    let mut all = Vec::with_capacity(heads.len());
    for (index, head) in heads {
        let view = match published.loaded(index) {
            None if head.as_ref().is_none_or(worth_a_view) => Some(published.view(index)?),
            loaded => loaded,
        };
        let len = match (&view, head) {
            (Some(view), _) => view.len(),
            (None, head) => head.unwrap_or_default().len,
        };
        // Chunks are a whole number of blocks, so the last one may reach past the length.
        let room = len.checked_next_multiple_of(slots_per_block(dim) as u32);
        all.push(Source { base, index, len, view });
        base = room.and_then(|room| base.checked_add(room)).ok_or_else(|| Error::Conflict {
            what: "search".to_owned(),
            why: "a scope holds at most 4,294,967,295 vectors".to_owned(),
        })?;
    }
    Ok(all)
}

/// Takes a chunk: number of its first slot, codes, visible slots.
type VisitChunk<'v> = &'v mut dyn FnMut(u32, Codes<'_>, Option<&[u64]>);

struct Search<'p> {
    published: &'p Published,
    dim: usize,
    sources: Vec<Source>,
    now: Time,
}

impl Search<'_> {
    fn by_candidates(&self, query: &UnitVector, k: usize) -> Result<Found> {
        let code = QueryCode::new(query);
        let mut candidates = Candidates::new(&code, k);
        let scanned = self.scan(&mut |first, codes, visible| candidates.push_chunk(first, codes, visible))?;
        let candidates = candidates.finish();
        let mut ranker = self.ranker(query, k);
        let count = candidates.len();
        let regime = if count > CANDIDATES_PER_HIT_MAX * k
            && count as u64 * SLOTS_PER_CANDIDATE_MAX as u64 >= scanned
        {
            ranker.blocks(&candidates)?;
            "blocks"
        } else {
            for candidate in Ranking::from(candidates) {
                if ranker.is_done_at(candidate.upper) {
                    break;
                }
                ranker.score(candidate.slot, None)?;
            }
            "codes"
        };
        Ok(self.found(ranker, scanned, regime))
    }

    fn by_ranking(&self, query: &UnitVector, k: usize, accept: Accept<'_>) -> Result<Found> {
        let code = QueryCode::new(query);
        let mut promises = Promises::new(&code);
        let scanned = self.scan(&mut |first, codes, visible| promises.push_chunk(first, codes, visible))?;
        let mut ranker = self.ranker(query, k);
        for candidate in promises.finish() {
            if ranker.is_done_at(candidate.upper) {
                break;
            }
            ranker.score(candidate.slot, Some(&mut *accept))?;
        }
        Ok(self.found(ranker, scanned, "codes"))
    }

    fn ranker<'s>(&'s self, query: &'s UnitVector, k: usize) -> Ranker<'s> {
        Ranker::new(self.published.snapshot(), &self.sources, self.dim, query, k)
    }

    fn found(&self, ranker: Ranker<'_>, scanned: u64, regime: &'static str) -> Found {
        let ranked = ranker.ranked();
        Found { hits: ranker.into_hits(), partitions: self.sources.len() as u64, scanned, ranked, regime }
    }

    /// Gives `visit` every chunk that has a visible slot, and says how many such slots there are.
    fn scan(&self, visit: VisitChunk<'_>) -> Result<u64> {
        let mut scanned = 0;
        for run in self.sources.chunk_by(|a, b| a.view.is_none() && b.view.is_none()) {
            match run {
                [Source { base, view: Some(view), .. }] => {
                    for (first, chunk) in view.chunks() {
                        scanned += self.scan_chunk(base + first, chunk, visit);
                    }
                }
                streamed => scanned += self.stream(streamed, visit)?,
            }
        }
        Ok(scanned)
    }

    fn scan_chunk(&self, first: u32, chunk: &Chunk, visit: VisitChunk<'_>) -> u64 {
        let visible = chunk.visible(self.now);
        let count = visible.count(chunk.len());
        if count > 0 {
            visit(first, chunk.codes(self.dim), visible.words());
        }
        count
    }

    /// Reads the blocks of neighbouring indexes in one walk, keeping none of them.
    fn stream(&self, run: &[Source], visit: VisitChunk<'_>) -> Result<u64> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { return Ok(0) };
        let per = slots_per_block(self.dim);
        let mut scanned = 0;
        let mut rest = run;
        let mut next = 0_u32;
        let mut scratch = Chunk::with_room(per, self.dim);
        let walk = Walk::prefix(&keys::ns(first.index.ns)).starting_at(&keys::block(first.index, 0));
        self.published.snapshot().slot_blocks(&walk, &mut |index, block, key, bytes| {
            if index > last.index {
                return Ok(ControlFlow::Break(()));
            }
            while let [source, others @ ..] = rest
                && source.index < index
            {
                source.ends_at(next, per)?;
                (rest, next) = (others, 0);
            }
            let Some(source) = rest.first().filter(|source| source.index == index) else {
                // An index of another embedding space, or one that no search asked for.
                return Ok(ControlFlow::Continue(()));
            };
            if block != next {
                return Err(source.misses(next));
            }
            next += 1;
            scratch.clear();
            read_block(
                &mut scratch,
                0,
                &SlotBlockRef::open(At::new(Table::Slot.name(), key), self.dim, bytes)?,
                self.dim,
            );
            scratch.summarise();
            scanned += self.scan_chunk(source.base + block * per as u32, &scratch, visit);
            Ok(ControlFlow::Continue(()))
        })?;
        for source in rest {
            source.ends_at(std::mem::take(&mut next), per)?;
        }
        Ok(scanned)
    }
}

impl Source {
    /// Checks that an index has as many blocks as its slots need.
    fn ends_at(&self, blocks: u32, per: usize) -> Result<()> {
        if blocks == self.len.div_ceil(per as u32) { Ok(()) } else { Err(self.misses(blocks)) }
    }

    fn misses(&self, block: u32) -> Error {
        let why = format!("block {block} is not where {} slots need it", self.len);
        Error::corrupted(Table::Slot.name(), &keys::block(self.index, block), why)
    }
}
