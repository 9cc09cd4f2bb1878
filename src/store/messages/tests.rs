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
        let named = posted
            .values()
            .flat_map(|list| list.iter().flat_map(move |b| list.iter().map(move |a| (*a, *b))))
            .filter(|(a, b)| a < b);
        let candidates: BTreeSet<_> = in_enough_bands(named.collect(), most).into_iter().collect();
        let found: Vec<_> = pairs().filter(|pair| candidates.contains(pair)).filter(near).collect();
        prop_assert_eq!(found, pairs().filter(near).collect::<Vec<_>>());
    }
}

/// Each of so many different messages once had every family read that shared one band with it, a thirty-second of all.
#[test]
fn a_burst_of_different_messages_reads_few_families() {
    const FAMILIES: u64 = 20_000;
    let print = |at: u64| {
        let mixed = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let mut posted: HashMap<[u8; 2], Vec<u64>> = HashMap::new();
    for at in 0..FAMILIES {
        bands(print(at)).into_iter().for_each(|band| posted.entry(band).or_default().push(at));
    }
    let (mut named, mut read) = (0, 0);
    for at in FAMILIES..FAMILIES + 100 {
        let ids: Vec<u64> =
            bands(print(at)).iter().filter_map(|band| posted.get(band)).flatten().copied().collect();
        named += ids.len();
        read += in_enough_bands(ids, 6).len();
    }
    // 625 and 8 each are to be expected.
    assert!(named > 50_000, "{named}");
    assert!(read < 1_500, "{read} rows for 100 messages");
}
