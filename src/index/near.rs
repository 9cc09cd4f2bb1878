//! The neighbours of many vectors at once, for a batch of writes and for the pass over duplicates.
//!
//! A chunk of codes is read from memory once, and compared with every vector of a block while it lies in the nearest
//! cache of the processor. Where there are one-bit codes, those are read, and the codes of slots that are likely. Only vectors that can score `least` are ranked on their f32 values. If there is a graph, it
//! is walked for each vector where a walk costs less than one scan for all vectors together, and its tail is scanned.
//! The first write of a process to a large index, if it brings one vector, loads no codes: it reads the one-bit codes, and
//! from the file the codes of likely slots.

use std::sync::Arc;

use crate::error::Result;
use crate::hnsw::Crew;
use crate::index::chunk::Window;
use crate::index::published::Published;
use crate::index::rank::{Crowd, is_worth_a_pass};
use crate::index::search::{Ask, Scope, Search, Slots, Target, check_dim};
use crate::index::source::Source;
use crate::index::stop::Stop;
use crate::model::{Effort, Ranked, Time};
use crate::store::{IndexId, Rows};
use crate::vector::{Candidate, Candidates, SURE, UnitVector};

/// The number of vectors whose candidates are collected together. Their signs stay in the second cache, and the codes of all
/// slots come from memory once for them.
const QUERIES_PER_BLOCK: usize = 1_024;

/// The number of slots from which on an index gets a view. The blocks of a smaller index are read about as
/// fast.
const VIEW_SLOTS_MIN: u32 = 128;

/// The number of pairs of a query and a slot for which another thread pays: milliseconds of work, where a thread costs some
/// tens of microseconds.
const PAIRS_PER_THREAD: u64 = 1 << 22;

/// For each of `queries`, the `most` memories of an index that are nearest to it among those that score at least
/// `least`; best first, equal scores by id. Only rows that are current at `now` count: a live read sees them, or they
/// are not valid yet.
///
/// No row of an index without a graph is missed, but for the chance that its one-bit code hides one, or the likely interval
/// of its code. A graph is walked for each vector, unless a scan costs less.
///
/// As many of `threads` work on it as pay, the caller's included. The answer does not depend on their number.
///
/// # Errors
/// `Invalid` for a query of another dimension than the space has; `Corrupted`.
pub(crate) fn near_many(
    published: &Published,
    index: IndexId,
    queries: &[&UnitVector],
    Nearness { least, most, now }: Nearness,
    threads: usize,
) -> Result<Vec<Vec<Ranked>>> {
    let mut found = Vec::with_capacity(queries.len());
    let Some(first) = queries.first() else { return Ok(found) };
    let dim = check_dim(published, Target::Index(index), first)?;
    for query in queries {
        check_dim(published, Target::Index(index), query)?;
    }
    let window = Window::current(now);
    let source = source(published, index, dim, window, queries.len() == 1)?;
    if source.used == 0 {
        found.resize_with(queries.len(), Vec::new);
        return Ok(found);
    }
    let (used, is_sketched) = (source.used, source.sketch.is_some());
    let near = Near { published, sources: [source].into(), window, nearness: Nearness { least, most, now } };
    if is_sketched {
        let search = near.search(first, Effort::Recall(SURE));
        let mut candidates = Candidates::at_least(&search.code, most, least);
        let scanned = search.sift(Scope::default(), &mut candidates)?;
        let candidates = candidates.finish();
        return ranked(&[search], vec![candidates], scanned, least);
    }
    // The cost of a walk does not depend on the query, so the first query decides for all.
    let effort = match near.search(first, Effort::default()).scans_as_cheaply() {
        true => Effort::Exact,
        false => Effort::default(),
    };
    let pay = queries.len() as u64 * u64::from(used) / PAIRS_PER_THREAD;
    let threads = threads.min(usize::try_from(pay).unwrap_or(usize::MAX)).max(1);
    let blocks: Vec<_> = queries.chunks(queries.len().div_ceil(threads).min(QUERIES_PER_BLOCK)).collect();
    let of_blocks =
        Crew::new(threads).map(blocks.len(), |at, _| blocks.get(at).map(|block| near.block(block, effort)));
    for of_block in of_blocks.into_iter().flatten() {
        found.extend(of_block?);
    }
    Ok(found)
}

/// Which memories are near enough.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nearness {
    /// The least score.
    pub(crate) least: f32,
    /// The largest number of memories for a query.
    pub(crate) most: usize,
    /// The instant at which they are current.
    pub(crate) now: Time,
}

/// Searches that share an index.
struct Near<'p> {
    published: &'p Published,
    sources: Arc<[Source]>,
    window: Window,
    nearness: Nearness,
}

impl<'p> Near<'p> {
    fn search(&self, query: &'p UnitVector, effort: Effort) -> Search<'p> {
        let Nearness { most, now, .. } = self.nearness;
        let slots = Slots::Live(now);
        let ask = Ask { query, k: most, sure: most, slots, effort, stop: Stop::NEVER };
        Search::over(self.published, Arc::clone(&self.sources), ask, self.window)
    }

    /// The neighbours of some of the vectors. Each block of codes is read once for them.
    fn block(&self, block: &[&'p UnitVector], effort: Effort) -> Result<Vec<Vec<Ranked>>> {
        let Nearness { least, most, .. } = self.nearness;
        let searches: Vec<_> = block.iter().map(|query| self.search(query, effort)).collect();
        let mut candidates: Vec<_> =
            searches.iter().map(|search| Candidates::at_least(&search.code, most, least)).collect();
        // The searches of a block share sources, window and effort, so one of them scans for all.
        let Some(scan) = searches.first() else { return Ok(Vec::new()) };
        let bits = self.sources.first().and_then(|source| source.view.as_ref()?.bits());
        let mut signs = bits.map(|bits| bits.signs(block.iter().map(|query| query.as_slice())));
        if let Some(signs) = &mut signs {
            (0..block.len()).for_each(|at| signs.set_floor(at, least));
        }
        let mut likely = vec![0; block.len()];
        let scanned = scan.scan(Scope::default(), &|_| true, &mut |seen| match (&mut signs, seen.bits) {
            (Some(signs), Some(codes)) => {
                let visible = seen.visible.first_word(seen.codes.slots());
                signs.likely(codes, &mut likely);
                for (at, (of_one, likely)) in candidates.iter_mut().zip(&likely).enumerate() {
                    if likely & visible != 0 {
                        of_one.push_likely(seen.codes.rows(seen.first, likely & visible));
                        signs.set_floor(at, of_one.floor());
                    }
                }
            }
            _ => candidates
                .iter_mut()
                .for_each(|of_one| of_one.push_chunk(seen.first, seen.codes, seen.visible.words())),
        })?;
        let candidates = candidates.into_iter().map(Candidates::finish).collect();
        ranked(&searches, candidates, scanned, least)
    }
}

/// Ranks the candidates of searches that share their sources, with what their walks find; best first. Where many searches
/// have many candidates, a vector is read once for all of them.
fn ranked(
    searches: &[Search<'_>],
    candidates: Vec<Vec<Candidate>>,
    scanned: u64,
    least: f32,
) -> Result<Vec<Vec<Ranked>>> {
    let walks = searches.iter().map(Search::walk_through).collect::<Result<Vec<_>>>()?;
    let with = searches.iter().zip(&candidates).zip(&walks);
    let crowded: Vec<bool> = with.map(|((search, of), walked)| search.is_crowded(of, walked)).collect();
    let of_crowds = candidates.iter().zip(&crowded).filter(|(_, crowded)| **crowded);
    let together = is_worth_a_pass(of_crowds.map(|(of, _)| of.len()).sum(), scanned);
    let (mut found, mut crowds) = (Vec::with_capacity(searches.len()), Vec::new());
    let with = searches.iter().zip(candidates).zip(walks).zip(crowded);
    for (at, (((search, of), walked), crowded)) in with.enumerate() {
        if crowded && together {
            crowds.push((at, search.crowd(of)));
            found.push(Vec::new());
        } else {
            found.push(search.rank(of, scanned, walked, least)?.hits);
        }
    }
    let (places, mut crowds): (Vec<_>, Vec<_>) = crowds.into_iter().unzip();
    Crowd::score(&mut crowds)?;
    for (at, crowd) in places.into_iter().zip(crowds) {
        if let Some(place) = found.get_mut(at) {
            *place = crowd.into_ranker().into_hits();
        }
    }
    found.iter_mut().for_each(|hits| hits.retain(|hit| hit.score >= least));
    Ok(found)
}

/// An index as searches take it. A process that writes `once` needs no view of a large one: its one-bit codes and the codes of
/// likely slots are a seventh of the bytes.
fn source(published: &Published, index: IndexId, dim: usize, window: Window, once: bool) -> Result<Source> {
    let head = published.snapshot().readable_slot_head(index)?;
    let view = match published.loaded(index) {
        None if head.used >= VIEW_SLOTS_MIN
            && published.has_room_for(&head, dim)
            && !(once && published.is_first_search(index, &head)?) =>
        {
            Some(published.view(index)?)
        }
        loaded => loaded,
    };
    let sketch = if once && view.is_none() { published.sketch(index, &head)? } else { None };
    let seen = view.as_ref().map_or(1.0, |view| view.share_seen(window));
    Ok(Source { base: 0, index, used: head.used, len: head.len, view, extract: None, sketch, seen })
}
