//! Searches among the rows that match a filter: the plan, and its reasons.
//!
//! A filter can be tried on rows one by one. It can also be tried on all rows in one pass, which costs a fraction for
//! each row. So there are three ways. The search can walk the graph and try the filter on rows that come near. It can
//! rank all codes and try the filter on rows that come near. Or it can try the filter on all rows and scan the codes
//! of the matching rows. A sample estimates how rare the matching rows are, and which way is the shortest. The first
//! two ways give up when they have tried more rows than the sample promised. So a filter that matches rarely just
//! where the query is costs little more than the third way.

use std::collections::HashMap;

use crate::error::Result;
use crate::hnsw::Verdict;
use crate::index::published::Published;
use crate::index::search::{Ask, Found, Search, Target, Walked};
use crate::model::MemoryId;
use crate::store::IndexId;

/// A filter on memories, as a search uses it.
pub(crate) trait Sieve {
    /// Whether one memory matches.
    fn matches(&mut self, id: MemoryId) -> Result<bool>;

    /// Calls `visit` with the index and the slot of every row that matches, in one pass over all rows that `target`
    /// can mean.
    fn all(&mut self, target: Target, visit: &mut dyn FnMut(IndexId, u32)) -> Result<()>;
}

/// The number of rows in a sample.
const SAMPLE: u64 = 64;
/// The number of codes that are scanned in the time of a look-up by id.
const CODES_PER_ROW: u64 = 32;
/// The cost of trying a filter on one row by a look-up, measured in rows of a pass over all of them.
const LOOKUP_COST: u64 = 4;
/// The number of rows that a walk tries for each entry of its list, if all rows match.
const TRIES_PER_ENTRY: f64 = 2.5;

/// The nearest memories among those that match. Like [`nearest`](super::nearest), but with only the rows that `sieve`
/// accepts.
///
/// # Errors
/// As [`nearest`](super::nearest), and those of the filter.
pub(crate) fn nearest_matching(
    published: &Published,
    target: Target,
    ask: Ask<'_>,
    sieve: &mut dyn Sieve,
) -> Result<Found> {
    let search = Search::open(published, target, ask)?;
    let mut tests = Tests { sieve, known: HashMap::new() };
    let used: u64 = search.sources.iter().map(|source| u64::from(source.used)).sum();
    let share = tests.sample(&search)?;
    // So many look-ups cost half as much as one pass over all rows.
    let tries = used / LOOKUP_COST / 2;
    let walks = search.walks();
    let wanted = if walks { search.ef_max() as f64 * TRIES_PER_ENTRY } else { ask.k as f64 };
    if wanted / share <= tries as f64
        && let Some(found) = tests.near(&search, tries)?
    {
        return Ok(Found { tested: tests.tested(), ..found });
    }
    tests.scan(&search, target, used)
}

/// The same for a sieve that knows the `rows` rows that alone can pass.
///
/// # Errors
/// As [`nearest_matching`].
pub(crate) fn nearest_listed(
    published: &Published,
    target: Target,
    ask: Ask<'_>,
    sieve: &mut dyn Sieve,
    rows: u64,
) -> Result<Found> {
    let search = Search::open(published, target, ask)?;
    let used: u64 = search.sources.iter().map(|source| u64::from(source.used)).sum();
    if rows * CODES_PER_ROW < used {
        return Tests { sieve, known: HashMap::new() }.scan(&search, target, rows);
    }
    nearest_matching(published, target, ask, sieve)
}

/// A filter with its results so far.
struct Tests<'s> {
    sieve: &'s mut dyn Sieve,
    known: HashMap<MemoryId, bool>,
}

impl Tests<'_> {
    fn tested(&self) -> u64 {
        self.known.len() as u64
    }

    fn matches(&mut self, id: MemoryId) -> Result<bool> {
        if let Some(known) = self.known.get(&id) {
            return Ok(*known);
        }
        let matches = self.sieve.matches(id)?;
        self.known.insert(id, matches);
        Ok(matches)
    }

    /// The share of rows that match, by a sample spread over all slots; never 0.
    fn sample(&mut self, search: &Search<'_>) -> Result<f64> {
        let (mut tried, mut matching) = (0, 0);
        for source in search.sources.iter() {
            let Some(view) = &source.view else { continue };
            let step = (view.len() / SAMPLE as u32).max(1);
            for slot in (step / 2..view.len()).step_by(step as usize) {
                if let Some(id) = view.id(slot).filter(|_| view.sees(slot, search.window)) {
                    tried += 1;
                    matching += u64::from(self.matches(id)?);
                }
            }
            if tried >= SAMPLE {
                break;
            }
        }
        // For an unknown share every value is equally likely before the first sample (Laplace's rule of
        // succession).
        Ok((matching as f64 + 1.0) / (tried as f64 + 2.0))
    }

    /// Walks, and ranks the results together with the rows that no walk finds. None if that took too many
    /// tries.
    fn near(&mut self, search: &Search<'_>, tries: u64) -> Result<Option<Found>> {
        let limit = self.tested() + tries;
        let walked = search.walk_all(&mut |source, slot| {
            let Some(id) = source.view.as_ref().and_then(|view| view.id(slot)) else {
                return Ok(Verdict::Pass);
            };
            if self.tested() >= limit {
                return Ok(Verdict::Stop);
            }
            self.matches(id).map(Verdict::from)
        })?;
        if walked.stopped {
            return Ok(None);
        }
        let filter = if walked.ef > 0 { "walk" } else { "rank" };
        let found = search.by_ranking(walked, tries, &mut |id| self.matches(id))?;
        Ok(found.map(|found| Found { filter, ..found }))
    }

    /// Scans the codes of the rows that match, among the `rows` rows that the sieve reads.
    fn scan(mut self, search: &Search<'_>, target: Target, rows: u64) -> Result<Found> {
        let among = self.all(search, target)?;
        let found = search.by_candidates(Walked::default(), Some(&among))?;
        Ok(Found { tested: self.tested() + rows, filter: "scan", ..found })
    }

    /// The rows that match, by source.
    fn all(&mut self, search: &Search<'_>, target: Target) -> Result<Vec<Vec<u64>>> {
        let mut places: HashMap<IndexId, usize> = HashMap::with_capacity(search.sources.len());
        let mut among = Vec::with_capacity(search.sources.len());
        for (at, source) in search.sources.iter().enumerate() {
            places.insert(source.index, at);
            among.push(vec![0; (source.len as usize).div_ceil(64)]);
        }
        self.sieve.all(target, &mut |index, slot| {
            if let Some(at) = places.get(&index)
                && let (Some(words), Some(source)) = (among.get_mut(*at), search.sources.get(*at))
                && let Some(number) = source.number_of(slot)
            {
                set(words, number);
            }
        })?;
        Ok(among)
    }
}

fn set(words: &mut [u64], slot: u32) {
    if let Some(word) = words.get_mut(slot as usize / 64) {
        *word |= 1 << (slot % 64);
    }
}
