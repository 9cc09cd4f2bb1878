//! The index over rare tokens finds what a look at every pair finds.

// DEDUP-14.

use proptest::prelude::*;

use super::*;

const BOUNDS: Bounds = Bounds { min_shared: 4, jaccard: 0.78 };

fn item(text: &str) -> Item {
    let mut tokens: Vec<String> = text.split(' ').filter(|word| *word != "not").map(str::to_owned).collect();
    tokens.sort_unstable();
    tokens.dedup();
    Item { tokens, negations: text.split(' ').filter(|word| *word == "not").count() }
}

fn clusters(texts: &[&str]) -> Clusters {
    cluster(texts.iter().map(|text| item(text)).collect(), BOUNDS, &mut |_| false).unwrap()
}

/// Tokens in both, and their share of those in either.
fn overlap(a: &Item, b: &Item) -> (usize, f64) {
    let shared = a.tokens.iter().filter(|token| b.tokens.contains(token)).count();
    let either = a.tokens.len() + b.tokens.len() - shared;
    (shared, shared as f64 / either.max(1) as f64)
}

// DEDUP-14, word for word.
fn naive(items: &[Item], bounds: Bounds) -> Clusters {
    let mut found = Clusters::default();
    for (at, item) in items.iter().enumerate() {
        let mut best: Option<(f64, usize)> = None;
        let mut wished: Option<(f64, usize)> = None;
        for (cluster, members) in found.clusters.iter().enumerate() {
            let first = &items[members[0]];
            let (shared, jaccard) = overlap(item, first);
            if shared < bounds.min_shared || jaccard < bounds.jaccard {
                continue;
            }
            if wished.is_none_or(|(most, _)| jaccard > most) {
                wished = Some((jaccard, cluster));
            }
            if item.negations == first.negations && best.is_none_or(|(most, _)| jaccard > most) {
                best = Some((jaccard, cluster));
            }
        }
        if let Some((_, cluster)) = wished.filter(|wished| Some(*wished) != best) {
            found.apart.push((at, found.clusters[cluster][0]));
        }
        match best {
            Some((_, cluster)) => found.clusters[cluster].push(at),
            None => found.clusters.push(vec![at]),
        }
    }
    found
}

#[test]
fn v35_to_v38_pairs() {
    let pair = |a, b| clusters(&[a, b]).clusters.len() == 1;
    assert!(
        pair(
            "gateway queue alert provider latency dashboard cron ticket",
            "gateway queue alert provider latency dashboard cron"
        ),
        "V-35"
    );
    assert!(pair("gateway queue alert provider", "gateway queue alert provider cron"), "V-36");
    assert!(
        !pair(
            "gateway queue alert provider latency ticket cron",
            "gateway queue alert provider latency ticket cron open pending"
        ),
        "V-37"
    );
    assert!(!pair("gateway health latency", "gateway health latency queue"), "V-38");
}

#[test]
fn v39_members_are_compared_with_the_first_alone() {
    let found = clusters(&["a b c d", "a b c d e", "a b c d e f"]);
    assert_eq!(found.clusters, [vec![0, 1], vec![2]]);
    assert_eq!(found.apart, []);
}

#[test]
fn v40_a_text_that_denies_stays_apart() {
    let found = clusters(&["a b c d e f g h", "a b c d e f g h i not"]);
    assert_eq!(found.clusters, [vec![0], vec![1]]);
    assert_eq!(found.apart, [(1, 0)], "as a hint (DEDUP-54)");
}

#[test]
fn a_tie_goes_to_the_earliest_and_a_greater_value_wins() {
    let found = clusters(&["a b c d e", "a b c d f", "a b c d"]);
    assert_eq!(found.clusters, [vec![0, 2], vec![1]], "0.8 and 0.8; the first two are at 0.667");
    let found = clusters(&["a b c d e g", "a b c d f g h", "a b c d f g"]);
    assert_eq!(found.clusters, [vec![0], vec![1, 2]], "0.714 and 0.857");
}

#[test]
fn it_stops_when_it_is_told_to() {
    let items = vec![item("a b c d"); 5];
    let mut asked = 0;
    let stopped = cluster(items, BOUNDS, &mut |units| {
        asked += 1;
        assert!(units >= 1);
        asked == 3
    });
    assert_eq!((stopped, asked), (None, 3));
}

/// The look-ups and comparisons for so many texts of one template, each with names of its own.
fn work(texts: usize, names: usize, words: usize) -> u64 {
    let item = |at: usize| {
        let names = (0..names).map(|name| format!("name{at}x{name}"));
        Item { tokens: names.chain((0..words).map(|word| format!("word{word}"))).collect(), negations: 0 }
    };
    let mut done = 0;
    let found = cluster((0..texts).map(item).collect(), BOUNDS, &mut |units| {
        done += units;
        false
    });
    assert_eq!(found.unwrap().clusters.len(), texts, "no two of them are near");
    done
}

#[test]
fn texts_that_are_not_near_are_not_compared_with_each_other() {
    // The names are so few that the sets are almost near: 7 of 9, 14 of 18, 3 of 5.
    for (names, words) in [(1, 7), (2, 14), (1, 3)] {
        assert_eq!(work(500, names, words), 500, "{names} names among {words} words");
    }
}

proptest! {
    #[test]
    fn the_index_finds_what_the_rule_finds(
        sets in prop::collection::vec((prop::collection::btree_set(0_u8..14, 1..12), 0_usize..2), 0..40),
        min_shared in 1_usize..6,
        jaccard in prop::sample::select(vec![0.0, 0.3, 0.5, 2.0 / 3.0, 0.75, 0.78, 0.8, 0.9, 1.0]),
    ) {
        let bounds = Bounds { min_shared, jaccard };
        let item = |(set, negations): (std::collections::BTreeSet<u8>, usize)| Item {
            tokens: set.into_iter().map(|token| format!("t{token:02}")).collect(),
            negations,
        };
        let long_enough = |item: &Item| item.tokens.len() >= min_shared;
        let items: Vec<Item> = sets.into_iter().map(item).filter(long_enough).collect();
        let expected = naive(&items, bounds);
        prop_assert_eq!(cluster(items, bounds, &mut |_| false).unwrap(), expected);
    }
}
