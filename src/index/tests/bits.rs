//! A scan by one-bit codes keeps the recall that was asked for, sees what is visible, and follows every change.

use super::*;
use crate::limits::BITS_SLOTS_MIN;

/// Enough slots for one-bit codes, in crowds around a few centers, some with an end.
pub(super) fn crowded(dim: usize, seed: u64) -> (World, Published) {
    let mut world = World::new(dim, seed);
    let centers: Vec<UnitVector> = (0..40).map(|_| world.vector(None)).collect();
    let mut published = world.first(usize::MAX);
    for part in 0..5 {
        let rows = (0..BITS_SLOTS_MIN / 4).map(|at| {
            let center = &centers[world.pick(40) as usize];
            let noise = world.vector(None);
            let values = center.as_slice().iter().zip(noise.as_slice()).map(|(center, noise)| center + noise);
            let vector = UnitVector::new("vector", &values.collect::<Vec<_>>()).unwrap();
            let until = (at % 3 == 0).then_some(50);
            (index(0), id(part * 100_000 + at + 1), vector, times(None, until))
        });
        let rows = rows.collect();
        world.add(rows);
        // The first view of all is loaded, and the later ones are made from it.
        published = world.next(&published);
        published.view(index(0)).unwrap();
    }
    (world, published)
}

/// The share of the true ten nearest that searches find. Every hit has its true score and may be seen.
fn recall(world: &World, published: &Published, queries: &[UnitVector], now: i64) -> f64 {
    let mut right = 0;
    for query in queries {
        let ask = ask(query, 10, Time::from_millis(now), Effort::Recall(0.999));
        let found = nearest(published, Target::Index(index(0)), ask).unwrap();
        assert!(["bits", "blocks"].contains(&found.regime) && found.hits.len() == 10, "{found:?}");
        assert_eq!(found.damaged, 0, "every row can be read");
        let (exact, visible) =
            world.full_scan(Target::Index(index(0)), query, usize::from(u8::MAX), now, |_| true);
        assert_eq!(found.scanned, visible, "every visible slot, and no other");
        right += found.hits.iter().filter(|hit| exact[..10].contains(hit)).count();
        for hit in &found.hits {
            assert!(exact.contains(hit), "{hit:?} is none of the nearest, or has another score");
        }
    }
    right as f64 / (10 * queries.len()) as f64
}

#[test]
fn the_recall_that_was_asked_for_is_kept() {
    for (dim, seed) in [(64, 3), (100, 5), (384, 7)] {
        let (mut world, mut published) = crowded(dim, seed);
        let rows: Vec<UnitVector> = world.rows.values().map(|row| row.1.clone()).step_by(97).collect();
        let mut queries: Vec<UnitVector> = (0..30).map(|_| world.vector(None)).collect();
        queries.extend(rows.into_iter().take(30));
        for now in [0, 60] {
            let share = recall(&world, &published, &queries, now);
            assert!(share >= 0.995, "{dim} dimensions at {now}: {share}");
        }
        let gone: Vec<_> = world.rows.keys().copied().step_by(2).collect();
        world.release(&gone);
        published = world.next(&published);
        let share = recall(&world, &published, &queries, 0);
        assert!(share >= 0.995, "{dim} dimensions, half of them gone: {share}");
        // What was brought forward finds as much as what is loaded.
        let loaded = world.first(usize::MAX);
        loaded.view(index(0)).unwrap();
        let share = recall(&world, &loaded, &queries, 0);
        assert!(share >= 0.995, "{dim} dimensions, loaded: {share}");
    }
}

/// Where many vectors are about equally near, most blocks hold a candidate and are read in order.
#[test]
fn near_equal_vectors_are_found_among_each_other() {
    for (dim, seed) in [(96, 13), (1_024, 17)] {
        let mut world = World::new(dim, seed);
        let first = world.first(usize::MAX);
        let ones = |sign: f32| UnitVector::new("vector", &vec![sign; dim]).unwrap();
        let centers = [ones(1.0), ones(-1.0)];
        let near = |world: &mut World, at: usize| {
            let noise = world.vector(None);
            let values = centers[at % 2].as_slice().iter().zip(noise.as_slice());
            UnitVector::new(
                "vector",
                &values.map(|(center, noise)| center + 0.05 * noise).collect::<Vec<_>>(),
            )
            .unwrap()
        };
        let rows = (0..BITS_SLOTS_MIN + 400)
            .map(|at| (index(0), id(at + 1), near(&mut world, at as usize), times(None, None)))
            .collect();
        world.add(rows);
        let published = world.next(&first);
        let mut queries: Vec<UnitVector> = (0..20).map(|at| near(&mut world, at)).collect();
        queries.extend(world.rows.values().map(|row| row.1.clone()).step_by(451));
        let loaded = world.first(usize::MAX);
        loaded.view(index(0)).unwrap();
        for published in [&published, &loaded] {
            let share = recall(&world, published, &queries, 0);
            assert!(share >= 0.995, "{dim} dimensions: {share}");
            let ask = ask(&queries[0], 10, Time::from_millis(0), Effort::Recall(0.999));
            let found = nearest(published, Target::Index(index(0)), ask).unwrap();
            assert_eq!(found.regime, "blocks", "{dim} dimensions");
        }
    }
}

#[test]
fn a_search_that_must_be_certain_and_a_small_index_read_all_codes() {
    let (mut world, published) = crowded(72, 11);
    let query = world.vector(None);
    assert_eq!(world.check(&published, Target::Index(index(0)), &query, 10, 0).regime, "codes");
    let rows = (1..=500).map(|at| (index(1), id(900_000 + at), world.vector(None), times(None, None)));
    let rows = rows.collect();
    world.add(rows);
    let published = world.next(&published);
    let small = ask(&query, 10, Time::from_millis(0), Effort::default());
    let found = nearest(&published, Target::Index(index(1)), small).unwrap();
    assert_eq!(found.hits, world.full_scan(Target::Index(index(1)), &query, 10, 0, |_| true).0);
    assert_eq!(found.regime, "codes");
    // Both in one search.
    let found = nearest(&published, Target::Namespace(NS, SPACE), small).unwrap();
    assert_eq!((found.partitions, found.regime), (2, "bits"));
    assert_eq!(found.scanned, world.full_scan(Target::Namespace(NS, SPACE), &query, 1, 0, |_| true).1);
}

#[test]
fn a_filter_that_names_slots_is_a_mask() {
    let (mut world, published) = crowded(64, 13);
    for _ in 0..20 {
        let query = world.vector(None);
        let mut sieve = ById { world: &world, passes: in_three };
        let ask = ask(&query, 10, Time::from_millis(0), Effort::Recall(0.999));
        let found = nearest_listed(&published, Target::Index(index(0)), ask, &mut sieve, 1).unwrap();
        let expected = world.full_scan(Target::Index(index(0)), &query, 10, 0, in_three).0;
        assert_eq!(found.hits, expected);
    }
}

#[test]
fn the_first_search_of_a_large_index_loads_no_view() {
    let (mut world, _) = crowded(64, 17);
    let query = world.vector(None);
    let searched = |world: &World, published: &Published| {
        let certain = ask(&query, 10, Time::from_millis(0), Effort::Exact);
        let found = nearest(published, Target::Index(index(0)), certain).unwrap();
        assert_eq!(found.hits, world.full_scan(Target::Index(index(0)), &query, 10, 0, |_| true).0);
        (found.regime, published.loaded(index(0)).is_some())
    };
    let published = world.first(usize::MAX);
    assert_eq!(searched(&world, &published), ("codes", false));
    assert_eq!(searched(&world, &published), ("codes", true), "the second one does");
    // Later commits remember it; another opening of the file does not.
    let (snapshot, clock) = world.snapshot();
    assert_eq!(searched(&world, &published.afresh(snapshot, &clock)), ("codes", true));
    assert_eq!(searched(&world, &world.first(usize::MAX)), ("codes", false));
    // A small index is loaded at once.
    let small = (0..100).map(|at| (index(1), id(800_000 + at), world.vector(None), times(None, None)));
    let small = small.collect();
    world.add(small);
    let published = world.first(usize::MAX);
    nearest(&published, Target::Index(index(1)), ask(&query, 10, Time::from_millis(0), Effort::Exact))
        .unwrap();
    assert!(published.loaded(index(1)).is_some());
}
