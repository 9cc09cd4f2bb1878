//! Neighbours of many vectors at once are those of a full scan, one by one.

use super::*;
use crate::index::staged::WINDOW;

impl World {
    /// The definition of the neighbours of one.
    fn current_scan(
        &self,
        at: IndexId,
        query: &UnitVector,
        least: f32,
        most: usize,
        now: i64,
    ) -> Vec<Ranked> {
        let now = Time::from_millis(now);
        let mut top = TopK::new(most);
        for ((index, _), (id, vector, times)) in &self.rows {
            let score = dot_f32(query.as_slice(), vector.as_slice());
            if *index == at && times.is_current(now) && times.from() < times.until() && score >= least {
                top.push(score, *id);
            }
        }
        top.into_sorted().into_iter().map(|best| Ranked::near(best.id, best.score)).collect()
    }

    fn queries(&mut self, center: &UnitVector, count: usize) -> Vec<UnitVector> {
        (0..count).map(|at| self.vector((at % 2 == 0).then_some(center))).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_neighbours_of_many_are_those_of_a_full_scan_each(
        seed in any::<u64>(),
        dim in prop::sample::select(vec![2_usize, 64, 384]),
        budget in prop::sample::select(vec![1_usize, usize::MAX]),
        least in prop::sample::select(vec![-1.0_f32, 0.0, 0.5, 0.999]),
        most in prop::sample::select(vec![1_usize, 5, 400]),
    ) {
        let mut world = World::new(dim, seed);
        let center = world.vector(None);
        for round in 0..3 {
            let mut rows = Vec::new();
            for at in 0..20 + world.pick(160) {
                let vector = match world.pick(3) {
                    0 => center.clone(),
                    1 => world.vector(Some(&center)),
                    _ => world.vector(None),
                };
                let from = Some(world.pick(100) as i64).filter(|from| from % 4 == 0);
                let until = Some(world.pick(100) as i64).filter(|until| until % 3 == 0);
                rows.push((index(world.pick(2) as u32), id(round * 1_000 + at as u32), vector, times(from, until)));
            }
            world.add(rows);
            let gone: Vec<_> = world.rows.keys().copied().step_by(7).collect();
            world.release(&gone);
        }
        let published = world.first(budget);
        let queries = world.queries(&center, 9);
        let asked: Vec<_> = queries.iter().collect();
        for now in [-5, 0, 30, 99, 1_000] {
            for part in 0..3 {
                let at = Time::from_millis(now);
                let found = near_many(&published, index(part), &asked, Nearness { least, most, now: at }, 2).unwrap();
                prop_assert_eq!(found.len(), queries.len());
                for (query, hits) in queries.iter().zip(found) {
                    prop_assert_eq!(hits, world.current_scan(index(part), query, least, most, now), "at {}", now);
                }
            }
        }
    }
}

#[test]
fn neighbours_in_a_graph_are_walked_to_and_its_tail_is_scanned() {
    let mut world = World::new(64, 11);
    let center = world.vector(None);
    let fill = |world: &mut World, from: u32, to: u32| {
        let rows: Vec<_> =
            (from..to).map(|at| (index(0), id(at), world.vector(None), times(None, None))).collect();
        world.add(rows);
    };
    fill(&mut world, 0, 2_000);
    let mut published = world.first(usize::MAX);
    link_all(&mut world, &mut published, index(0), 500);
    fill(&mut world, 2_000, 2_100);
    let tail: Vec<_> =
        (3_000..3_004).map(|at| (index(0), id(at), world.vector(Some(&center)), times(None, None))).collect();
    world.add(tail);
    published = world.next(&published);
    assert!(published.view(index(0)).unwrap().linked().is_some());
    let queries = world.queries(&center, 100);
    let asked: Vec<_> = queries.iter().collect();
    let found = near_many(
        &published,
        index(0),
        &asked,
        Nearness { least: 0.3, most: 5, now: Time::from_millis(9) },
        2,
    )
    .unwrap();
    let mut right = 0;
    let mut all = 0;
    for (query, hits) in queries.iter().zip(found) {
        let expected = world.current_scan(index(0), query, 0.3, 5, 9);
        right += expected.iter().filter(|hit| hits.contains(hit)).count();
        all += expected.len();
        assert!(hits.iter().all(|hit| hit.score >= 0.3));
    }
    assert!(all > 250 && right as f64 >= 0.97 * all as f64, "{right} of {all}");
}

#[test]
fn neighbours_of_a_vector_of_another_dimension_are_refused() {
    let mut world = World::new(64, 5);
    let vector = world.vector(None);
    world.add(vec![(index(0), id(1), vector.clone(), times(None, None))]);
    let published = world.first(usize::MAX);
    let other = UnitVector::new("vector", &[1.0; 3]).unwrap();
    let nearness = Nearness { least: 0.5, most: 5, now: Time::from_millis(9) };
    let refused = near_many(&published, index(0), &[&vector, &other], nearness, 1);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    assert!(near_many(&published, index(0), &[], nearness, 1).unwrap().is_empty());
}

/// What a search among the vectors of a transaction looks at has a bound, however many there are.
#[test]
fn staged_vectors_are_looked_for_among_the_last() {
    let mut world = World::new(4, 22);
    let mut staged = Staged::default();
    let (early, late) = (world.vector(None), world.vector(None));
    staged.push(index(0), id(0), &Coded::of(&early));
    for number in 1..WINDOW as u32 + 100 {
        staged.push(index(0), id(number), &Coded::of(&late));
    }
    let found = |staged: &Staged, vector: &UnitVector| {
        staged.near(index(0), vector, 0.999, 10).first().map(|hit| hit.id)
    };
    assert_eq!(found(&staged, &early), None, "it lies before the window");
    assert!(found(&staged, &late).is_some());
    staged.push(index(0), id(0), &Coded::of(&early));
    assert_eq!(found(&staged, &early), Some(id(0)), "its vector was written anew");
    staged.end(index(0), id(0));
    assert_eq!(found(&staged, &early), None);
}

#[test]
fn staged_vectors_are_found_until_they_end() {
    let mut world = World::new(384, 21);
    let center = world.vector(None);
    let mut staged = Staged::default();
    let mut kept = Vec::new();
    for number in 0..200 {
        let vector = world.vector(Some(&center));
        staged.push(index(0), id(number), &Coded::of(&world.vector(None)));
        staged.push(index(0), id(number), &Coded::of(&vector));
        staged.push(index(1), id(number), &Coded::of(&vector));
        if number % 3 == 0 {
            staged.end(index(0), id(number));
        } else {
            kept.push(id(number));
        }
    }
    let ids = |least, most| {
        let near = staged.near(index(0), &center, least, most);
        assert!(near.is_sorted_by(|a, b| a.score >= b.score), "the best first");
        near.into_iter().map(|hit| hit.id).collect::<BTreeSet<_>>()
    };
    assert_eq!(ids(0.9, 1_000), kept.iter().copied().collect());
    assert!(ids(0.9, 3).len() >= 3);
    assert_eq!(ids(1.5, 3), BTreeSet::new());
    assert!(staged.near(index(2), &center, -1.0, 10).is_empty());
    assert!(staged.has(index(0), id(1)) && !staged.has(index(0), id(3)) && staged.has(index(1), id(3)));
}

/// A18: a walk and a scan end when the time is over, with what they have found.
#[test]
fn a_deadline_ends_a_walk_and_a_scan() {
    let mut world = World::new(24, 43);
    let at = index(0);
    let rows = (1..=900).map(|number| (at, id(number), world.vector(None), times(None, None))).collect();
    world.add(rows);
    let mut published = world.first(usize::MAX);
    link_all(&mut world, &mut published, at, 900);
    let query = world.vector(None);
    let published = world.first(usize::MAX);
    let found = |effort, over: &dyn Fn() -> bool| {
        let ask = Ask { stop: Stop(over), ..ask(&query, 10, Time::EPOCH, effort) };
        nearest(&published, Target::Index(at), ask).unwrap()
    };
    let (whole, cut) = (found(Effort::Ef(300), &|| false), found(Effort::Ef(300), &|| true));
    assert!(cut.walked * 2 < whole.walked && !cut.hits.is_empty(), "{cut:?} of {whole:?}");
    assert_eq!((found(Effort::Exact, &|| false).scanned, found(Effort::Exact, &|| true).scanned), (900, 0));
}

/// A walk among nodes that are not visible costs no more than twice what a scan of the visible ones does, wherever these lie.
#[test]
fn rows_that_are_rarely_seen_are_scanned() {
    let mut world = World::new(24, 47);
    let at = index(0);
    let center = world.vector(None);
    // The nearest to the question have ended, and one in a hundred of the others has not.
    let rows: Vec<_> = (1..=3_000)
        .map(|number| {
            let near = number <= 1_500;
            let vector = world.vector(near.then_some(&center));
            let ends = if near || number % 100 > 0 { Some(5) } else { None };
            (at, id(number), vector, times(None, ends))
        })
        .collect();
    world.add(rows);
    let mut published = world.first(usize::MAX);
    link_all(&mut world, &mut published, at, 3_000);
    let published = world.first(usize::MAX);
    let found = |now, effort| {
        nearest(&published, Target::Index(at), ask(&center, 10, Time::from_millis(now), effort)).unwrap()
    };
    assert_eq!(found(0, Effort::default()).regime, "graph");
    let (rare, exact) = (found(9, Effort::default()), found(9, Effort::Exact));
    assert_eq!((rare.hits, rare.walked), (exact.hits, 0), "0.5 % are visible");
}

/// A walk that comes into a crowd which nobody sees is given up, and the index is scanned.
#[test]
fn a_walk_into_a_crowd_that_is_not_visible_is_given_up() {
    let mut world = World::new(24, 53);
    let at = index(0);
    let center = world.vector(None);
    let rows: Vec<_> = (1..=4_000)
        .map(|number| {
            let near = number % 2 == 0;
            let vector = world.vector(near.then_some(&center));
            (at, id(number), vector, times(None, near.then_some(5)))
        })
        .collect();
    world.add(rows);
    let mut published = world.first(usize::MAX);
    link_all(&mut world, &mut published, at, 4_000);
    let published = world.first(usize::MAX);
    let found = |effort| {
        nearest(&published, Target::Index(at), ask(&center, 10, Time::from_millis(9), effort)).unwrap()
    };
    let (walk, exact) = (found(Effort::Ef(16)), found(Effort::Exact));
    assert_eq!((walk.hits, walk.scanned), (exact.hits, exact.scanned), "half are visible, and none is near");
    assert!(walk.walked < 3_000, "walked {}", walk.walked);
}

#[test]
fn the_neighbours_of_many_by_one_bit_codes_are_those_of_a_full_scan() {
    for dim in [64, 200] {
        let mut world = World::new(dim, 17);
        let centers: Vec<_> = (0..40).map(|_| world.vector(None)).collect();
        let rows: Vec<_> = (0..4_300_u32)
            .map(|at| {
                let center = centers.get(at as usize % 50);
                let from = (at % 9 == 0).then_some(50);
                (index(0), id(at), world.vector(center), times(from, None))
            })
            .collect();
        world.add(rows);
        let gone: Vec<_> = world.rows.keys().copied().step_by(7).collect();
        world.release(&gone);
        let published = world.first(usize::MAX);
        assert!(published.view(index(0)).unwrap().bits().is_some());
        // More queries than one block of them has, and so many that threads share them.
        let queries: Vec<_> = (0..3_000).map(|at| world.vector(centers.get(at % 45))).collect();
        let asked: Vec<_> = queries.iter().collect();
        let mut all = 0;
        for (least, most, now) in [(0.5, 5, 9), (0.82, 20, 99), (-1.0, 2, 99)] {
            let nearness = Nearness { least, most, now: Time::from_millis(now) };
            let found = near_many(&published, index(0), &asked, nearness, 3).unwrap();
            assert_eq!(found, near_many(&published, index(0), &asked, nearness, 1).unwrap());
            for (query, hits) in queries.iter().zip(found).step_by(30) {
                all += hits.len();
                assert_eq!(hits, world.current_scan(index(0), query, least, most, now), "{dim} at {least}");
            }
        }
        assert!(all > 1_000, "{all} neighbours");
    }
}

/// A process that writes once does not load the codes of a large index.
#[test]
fn the_first_look_of_one_vector_reads_one_bit_codes_alone() {
    let mut world = World::new(64, 23);
    let centers: Vec<_> = (0..40).map(|_| world.vector(None)).collect();
    let rows: Vec<_> = (0..5_000_u32)
        .map(|at| {
            let from = (at % 9 == 0).then_some(50);
            (index(0), id(at), world.vector(centers.get(at as usize % 50)), times(from, None))
        })
        .collect();
    world.add(rows);
    let gone: Vec<_> = world.rows.keys().copied().step_by(7).collect();
    world.release(&gone);
    let mut all = 0;
    for (center, (least, most, now)) in
        centers.iter().zip([(0.5, 5, 9), (0.82, 20, 99), (-1.0, 2, 99)].into_iter().cycle())
    {
        let query = world.vector(Some(center));
        let published = world.first(usize::MAX);
        let nearness = Nearness { least, most, now: Time::from_millis(now) };
        let look = || near_many(&published, index(0), &[&query], nearness, 1).unwrap();
        let expected = vec![world.current_scan(index(0), &query, least, most, now)];
        assert_eq!(look(), expected, "at {least}");
        assert!(published.loaded(index(0)).is_none());
        assert_eq!(look(), expected, "at {least}");
        assert!(published.loaded(index(0)).is_some(), "whoever writes twice may write more");
        all += expected.iter().flatten().count();
    }
    assert!(all > 100, "{all} neighbours");
}
