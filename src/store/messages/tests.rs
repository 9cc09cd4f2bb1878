#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

proptest! {
    // DEDUP-37: what the bands find and the distance confirms is what a look at every pair finds.
    #[test]
    fn bands_find_every_near_pair(
        first in prop::collection::vec(any::<u64>(), 1..12),
        flips in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(0..64_u32, 0..9)), 0..40),
        most in 0..=7_u32,
    ) {
        let mut prints = first.clone();
        for (from, bits) in flips {
            prints.push(bits.iter().fold(*from.get(&first), |print, bit| print ^ (1 << bit)));
        }
        let pairs = || (0..prints.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        let near = |(a, b): &(usize, usize)| (prints[*a] ^ prints[*b]).count_ones() <= most;
        let mut posted: HashMap<[u8; 2], Vec<usize>> = HashMap::new();
        for (at, print) in prints.iter().enumerate() {
            bands(*print).into_iter().for_each(|band| posted.entry(band).or_default().push(at));
        }
        let candidates: BTreeSet<_> = posted
            .values()
            .flat_map(|list| list.iter().flat_map(move |b| list.iter().map(move |a| (*a, *b))))
            .filter(|(a, b)| a < b)
            .collect();
        let found: Vec<_> = pairs().filter(|pair| candidates.contains(pair)).filter(near).collect();
        prop_assert_eq!(found, pairs().filter(near).collect::<Vec<_>>());
    }
}
