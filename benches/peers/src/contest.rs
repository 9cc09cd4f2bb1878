//! How long does a search take, and how good is it, with every library measured under the same noise?

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::dataset::{Dataset, K};
use crate::peers::Peer;

/// Queries that one library answers before it is the next one's turn.
const TURN: usize = 100;
/// Queries of a library that looks at every row.
const EXACT_QUERIES: usize = 100;

/// One library and the `ef` that it searches with.
pub struct Entry<'a> {
    pub peer: &'a mut dyn Peer,
    pub ef: usize,
}

/// The middle one, of an odd number.
pub fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap());
    values[values.len() / 2]
}

/// p50 of each entry's latency on this thread: libraries take turns of 100 queries, in another order each round; of
/// the rounds' p50 the middle one. What was searched before is warm.
pub fn race(entries: &mut [Entry<'_>], data: &Dataset, rounds: usize) -> Vec<Duration> {
    let mut p50s: Vec<Vec<Duration>> = vec![Vec::new(); entries.len()];
    for round in 0..rounds {
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); entries.len()];
        for (turn, queries) in data.queries.chunks(TURN).enumerate() {
            for place in 0..entries.len() {
                let at = (place + round + turn) % entries.len();
                let entry = &mut entries[at];
                if !entry.peer.is_approximate() && turn * TURN >= EXACT_QUERIES {
                    continue;
                }
                for query in queries {
                    let start = Instant::now();
                    entry.peer.search(black_box(query), entry.ef);
                    times[at].push(start.elapsed());
                }
            }
        }
        times.into_iter().zip(&mut p50s).for_each(|(times, p50s)| p50s.push(median(times)));
    }
    p50s.into_iter().map(median).collect()
}

/// Share of the true neighbours, by distance, that a library finds.
pub fn recall(peer: &mut dyn Peer, ef: usize, data: &Dataset) -> f64 {
    let asked =
        if peer.is_approximate() { data.queries.len() } else { EXACT_QUERIES.min(data.queries.len()) };
    let right: usize = (0..asked)
        .map(|at| {
            peer.search(&data.queries[at], ef);
            data.right(at, &peer.found())
        })
        .sum();
    right as f64 / (asked * K) as f64
}

/// The smallest `ef` of `low..=high` at which recall reaches `target`, as if recall only grew with it, and the recall
/// there; none when it does not at `high`.
pub fn smallest_ef(
    peer: &mut dyn Peer,
    target: f64,
    (mut low, mut high): (usize, usize),
    data: &Dataset,
) -> Option<(usize, f64)> {
    let mut reached = recall(peer, high, data);
    if reached < target {
        return None;
    }
    while low < high {
        let middle = (low + high) / 2;
        let recall = recall(peer, middle, data);
        if recall >= target {
            (high, reached) = (middle, recall);
        } else {
            low = middle + 1;
        }
    }
    Some((high, reached))
}
