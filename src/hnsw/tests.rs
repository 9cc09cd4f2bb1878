//! Invariants of the graph on random vectors, and that it forgets without getting worse.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::limits::GRAPH_M0;
use crate::vector::{UnitVector, encode, unit_scale};

/// Codes of random vectors, with as many dimensions as one wants.
struct Cloud {
    dim: usize,
    codes: Vec<i8>,
    scales: Vec<f32>,
}

impl Points for Cloud {
    fn code(&self, slot: u32) -> &[i8] {
        &self.codes[slot as usize * self.dim..][..self.dim]
    }

    fn scale(&self, slot: u32) -> f32 {
        self.scales[slot as usize]
    }
}

/// Numbers from a seed.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
    }
}

impl Cloud {
    /// `len` vectors around one centre for every `crowd`; a `spread` of 0 makes the vectors of a crowd equal.
    fn new(seed: u64, len: usize, dim: usize, crowd: usize, spread: f32) -> Self {
        let mut rng = Rng(seed);
        let mut cloud = Cloud { dim, codes: vec![0; len * dim], scales: Vec::new() };
        let centres: Vec<Vec<f32>> =
            (0..len.div_ceil(crowd)).map(|_| (0..dim).map(|_| rng.unit() + 0.01).collect()).collect();
        for code in cloud.codes.chunks_exact_mut(dim) {
            let centre = &centres[rng.next() as usize % centres.len()];
            let values: Vec<f32> = centre.iter().map(|value| value + spread * rng.unit()).collect();
            encode(&UnitVector::new("v", &values).unwrap(), code);
            cloud.scales.push(unit_scale(code));
        }
        cloud
    }

    fn len(&self) -> u32 {
        self.scales.len() as u32
    }

    /// The `k` best scores among the slots that are alive.
    fn best(&self, probe: Probe<'_>, k: usize, alive: impl Fn(u32) -> bool) -> Vec<f32> {
        let slots: Vec<u32> = (0..self.len()).filter(|slot| alive(*slot)).collect();
        let mut all = Vec::new();
        near::score_each(self, probe, &slots, |near| all.push(near));
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.iter().take(k).map(|near| near.score()).collect()
    }

    /// Share of the true 10 best that a walk finds, over queries that are vectors of the cloud moved a little.
    fn recall(&self, graph: &Graph, ef: usize, alive: impl Fn(u32) -> bool + Copy) -> f64 {
        let mut scratch = Scratch::default();
        let (mut hits, mut wanted) = (0, 0);
        for slot in (0..self.len()).step_by(self.scales.len().div_ceil(200)) {
            let code: Vec<i8> =
                self.code(slot).iter().zip(0..).map(|(c, at)| c.saturating_add(at % 7 - 3)).collect();
            let probe = Probe { code: &code, scale: self.scale(slot) };
            let best = self.best(probe, 10, alive);
            graph.search(self, probe, ef, &mut scratch, |slot| alive(slot).into());
            let floor = best.last().copied().unwrap_or(f32::INFINITY);
            hits += scratch.found().iter().take(10).filter(|near| near.score() >= floor).count();
            wanted += best.len();
        }
        hits as f64 / wanted as f64
    }
}

fn node(slot: u32) -> (u32, u8) {
    let mut id = [7; 16];
    id[12..].copy_from_slice(&slot.to_be_bytes());
    (slot, level_of(&id))
}

fn insert(graph: &mut Graph, cloud: &Cloud, slots: impl Iterator<Item = u32>, batch: usize, threads: usize) {
    let nodes: Vec<(u32, u8)> = slots.map(node).collect();
    let mut crew = Crew::new(threads);
    for batch in nodes.chunks(batch) {
        let (linked, before) = (graph.len(), graph.clone());
        let changed = graph.insert_batch(cloud, batch, |_| true, &mut crew);
        assert_eq!((graph.len(), changed.loose), (linked + batch.len(), vec![]));
        check_changed(&before, graph, &changed.slots);
        assert_eq!(graph.unreachable(|_| true), Vec::<u32>::new());
    }
}

fn forget(graph: &mut Graph, cloud: &Cloud, dead: &[u32]) {
    let alive = |slot: u32| dead.binary_search(&slot).is_err();
    let mut crew = Crew::new(2);
    let before = graph.clone();
    let orphans = graph.orphans(alive);
    let changed = graph.inherit(cloud, &orphans, alive, |slot| node(slot).1, &mut crew);
    assert_eq!((graph.orphans(alive), &changed.loose), (vec![], &vec![]));
    check_changed(&before, graph, &changed.slots);
    for batch in graph.torn(alive).chunks(64) {
        let before = graph.clone();
        let changed = graph.repair_batch(cloud, batch, alive, &mut crew);
        check_changed(&before, graph, &changed);
    }
    assert_eq!(graph.torn(alive), Vec::<u32>::new());
    // In two parts, so that dead nodes which stay for a while lead to some that are gone; twins go before their hosts.
    let (mut dead, hosts): (Vec<u32>, Vec<u32>) = dead.iter().partition(|slot| graph.host(**slot).is_some());
    dead.extend(hosts);
    let (first, second) = dead.split_at(dead.len() / 2);
    for (gone, others) in [(first, second), (second, &[])] {
        let before = graph.clone();
        let changed = graph.remove(&gone.iter().copied().collect(), others);
        check_changed(&before, graph, &changed);
        check(graph);
    }
    assert_eq!(graph.reconnect(cloud, alive, &mut crew).loose, Vec::<u32>::new());
}

/// Exactly the slots that are named have other links.
fn check_changed(before: &Graph, after: &Graph, changed: &[u32]) {
    assert!(changed.is_sorted_by(|a, b| a < b));
    for slot in after.nodes().filter(|slot| changed.binary_search(slot).is_err()) {
        assert_eq!(before.node(slot), after.node(slot), "slot {slot} changed and was not named");
    }
}

/// Degrees, targets and reachability.
fn check(graph: &Graph) {
    let nodes: Vec<u32> = graph.nodes().collect();
    assert_eq!(nodes.len(), graph.len());
    let highest = nodes.iter().filter_map(|slot| graph.level(*slot)).max();
    assert_eq!(graph.entry().and_then(|entry| graph.level(entry)), highest);
    for &slot in &nodes {
        let node = graph.node(slot).unwrap();
        assert_eq!(node.upper.len(), usize::from(graph.level(slot).unwrap()));
        if let Some(host) = node.host {
            assert!(graph.contains(host) && graph.host(host).is_none() && node.bottom.is_empty());
            assert!(graph.twins(host).contains(&slot), "{host} does not know its twin {slot}");
        }
        assert!(graph.twins(slot).iter().all(|twin| graph.host(*twin) == Some(slot)));
        for level in 0..=node.upper.len() {
            let links = graph.links(slot, level);
            assert!(links.len() <= if level == 0 { GRAPH_M0 } else { GRAPH_M });
            let mut sorted = links.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), links.len(), "slot {slot} has a link twice");
            for &link in links {
                assert_ne!(link, slot);
                assert_eq!(graph.host(link), None, "{slot} leads to the twin {link}");
                let found = graph.level(link).map(usize::from);
                assert!(found.is_some_and(|found| found >= level), "{slot} leads to {link} on {level}");
            }
        }
    }
}

#[test]
fn levels_are_a_function_of_the_id_and_spread_as_they_should() {
    assert_eq!(level_of(&[0; 16]), level_of(&[0; 16]));
    let mut counts = [0_u32; 16];
    for slot in 0..100_000 {
        counts[usize::from(node(slot).1)] += 1;
    }
    // One in 16 of each level rises to the next: 6,250, 390.6 and 24.4 of 100,000, six standard deviations around.
    let above = |level: usize| counts[level..].iter().sum::<u32>();
    assert!((5_790..6_710).contains(&above(1)), "{counts:?}");
    assert!((272..510).contains(&above(2)), "{counts:?}");
    assert!((1..54).contains(&above(3)), "{counts:?}");
}

#[test]
fn nearness_sorts_by_score_and_then_by_slot() {
    let scores = [-1.5, -0.25, -1e-30, 0.0, 1e-30, 0.25, 1.0];
    for (low, high) in scores.iter().zip(&scores[1..]) {
        assert!(Near::new(*low, 0) < Near::new(*high, u32::MAX - 1), "{low} and {high}");
    }
    assert!(Near::new(0.5, 1) > Near::new(0.5, 2));
    let near = Near::new(-0.25, 77);
    assert_eq!((near.score(), near.slot()), (-0.25, 77));
}

#[test]
fn an_empty_graph_finds_nothing_and_one_node_finds_itself() {
    let cloud = Cloud::new(1, 1, 8, 1, 1.0);
    let (mut graph, mut scratch) = (Graph::new(), Scratch::default());
    graph.search(&cloud, cloud.probe(0), 10, &mut scratch, |_| Verdict::Take);
    assert_eq!(scratch.found(), []);
    insert(&mut graph, &cloud, 0..1, 1, 1);
    graph.search(&cloud, cloud.probe(0), 10, &mut scratch, |_| Verdict::Take);
    assert_eq!(scratch.found().iter().map(|near| near.slot()).collect::<Vec<_>>(), [0]);
    graph.search(&cloud, cloud.probe(0), 10, &mut scratch, |_| Verdict::Pass);
    assert_eq!(scratch.found(), []);
    forget(&mut graph, &cloud, &[0]);
    assert_eq!((graph.len(), graph.entry()), (0, None));
}

#[test]
fn a_batch_is_the_same_whoever_does_it() {
    let cloud = Cloud::new(2, 2_000, 24, 20, 0.5);
    let mut one = Graph::new();
    insert(&mut one, &cloud, 0..2_000, 128, 1);
    for threads in [2, 5] {
        let mut many = Graph::new();
        insert(&mut many, &cloud, 0..2_000, 128, threads);
        assert!((0..2_000).all(|slot| one.node(slot) == many.node(slot)));
        assert_eq!(one.entry(), many.entry());
    }
}

#[test]
fn batches_of_any_size_find_as_well() {
    let cloud = Cloud::new(3, 3_000, 32, 30, 0.6);
    for batch in [1, 64, 1_000] {
        let mut graph = Graph::new();
        insert(&mut graph, &cloud, 0..3_000, batch, 2);
        check(&graph);
        assert_eq!(graph.unreachable(|_| true), Vec::<u32>::new());
        let recall = cloud.recall(&graph, 64, |_| true);
        assert!(recall >= 0.99, "recall {recall} with batches of {batch}");
    }
}

#[test]
fn every_live_node_finds_itself() {
    let cloud = Cloud::new(4, 3_000, 32, 10, 0.7);
    let mut graph = Graph::new();
    insert(&mut graph, &cloud, 0..3_000, 256, 2);
    let dead: Vec<u32> = (0..3_000).filter(|slot| slot % 3 == 0).collect();
    forget(&mut graph, &cloud, &dead);
    check(&graph);
    let mut scratch = Scratch::default();
    for slot in graph.nodes() {
        graph.search(&cloud, cloud.probe(slot), 64, &mut scratch, |_| Verdict::Take);
        assert_eq!(scratch.found()[0].score(), cloud.best(cloud.probe(slot), 1, |s| s == slot)[0], "{slot}");
    }
}

#[test]
fn crowds_of_equal_vectors_stay_connected() {
    // 40 places with 50 equal vectors each: a list of the nearest alone would hold nothing but twins.
    let cloud = Cloud::new(5, 2_000, 16, 50, 0.0);
    let mut graph = Graph::new();
    insert(&mut graph, &cloud, 0..2_000, 256, 2);
    graph.reconnect(&cloud, |_| true, &mut Crew::new(1));
    check(&graph);
    assert_eq!(graph.unreachable(|_| true), Vec::<u32>::new());
    assert!(cloud.recall(&graph, 128, |_| true) >= 0.99);
}

#[test]
fn dead_nodes_are_walked_through_and_never_found() {
    let cloud = Cloud::new(6, 2_000, 24, 20, 0.5);
    let mut graph = Graph::new();
    insert(&mut graph, &cloud, 0..2_000, 256, 2);
    let alive = |slot: u32| !slot.is_multiple_of(10);
    let mut scratch = Scratch::default();
    graph.search(&cloud, cloud.probe(10), 100, &mut scratch, |slot| alive(slot).into());
    assert_eq!(scratch.found().len(), 100);
    assert!(scratch.found().iter().all(|near| alive(near.slot())));
    assert!(cloud.recall(&graph, 64, alive) >= 0.98);
    // New nodes are linked to the living alone.
    let mut grown = graph.clone();
    grown.repair_batch(&cloud, &grown.torn(|slot| slot != 1_999), |slot| slot != 1_999, &mut Crew::new(1));
    grown.remove(&[1_999].into(), &[]);
    let nodes = [node(1_999)];
    grown.insert_batch(&cloud, &nodes, alive, &mut Crew::new(1));
    assert!(grown.links(1_999, 0).iter().all(|link| alive(*link)));
}

#[test]
fn new_nodes_are_reached_where_only_dead_ones_are() {
    for spread in [0.0, 0.5] {
        let cloud = Cloud::new(10, 800, 16, 20, spread);
        let mut graph = Graph::new();
        insert(&mut graph, &cloud, 0..600, 256, 2);
        let alive = |slot: u32| slot >= 600;
        for batch in [600..601, 601..650, 650..800] {
            let nodes: Vec<(u32, u8)> = batch.map(node).collect();
            let changed = graph.insert_batch(&cloud, &nodes, alive, &mut Crew::new(2));
            assert_eq!((changed.loose, graph.unreachable(alive)), (vec![], vec![]));
            check(&graph);
        }
        assert!(cloud.recall(&graph, 64, alive) >= 0.95);
        let dead: Vec<u32> = (0..600).collect();
        forget(&mut graph, &cloud, &dead);
        check(&graph);
        assert_eq!((graph.len(), graph.unreachable(|_| true)), (200, vec![]));
        assert!(cloud.recall(&graph, 64, alive) >= 0.99);
    }
}

#[test]
fn living_twins_of_dead_hosts_are_reached() {
    let cloud = Cloud::new(11, 600, 16, 50, 0.0);
    let mut graph = Graph::new();
    insert(&mut graph, &cloud, 0..400, 256, 2);
    let mut hosts: Vec<u32> = graph.hosts().map(|(host, _)| host).collect();
    hosts.sort_unstable();
    let alive = |slot: u32| hosts.binary_search(&slot).is_err();
    for slot in 400..600 {
        let changed = graph.insert_batch(&cloud, &[node(slot)], alive, &mut Crew::new(1));
        assert_eq!((changed.loose, graph.unreachable(alive)), (vec![], vec![]));
    }
    forget(&mut graph, &cloud, &hosts);
    check(&graph);
    assert_eq!(graph.unreachable(|_| true), Vec::<u32>::new());
}

#[test]
fn a_walk_can_be_stopped_and_can_leave_a_node_out() {
    let cloud = Cloud::new(9, 1_000, 16, 20, 0.5);
    let mut graph = Graph::new();
    insert(&mut graph, &cloud, 0..1_000, 256, 2);
    let (mut scratch, mut asked) = (Scratch::default(), 0);
    graph.search(&cloud, cloud.probe(5), 500, &mut scratch, |_| {
        asked += 1;
        if asked < 20 { Verdict::Take } else { Verdict::Stop }
    });
    assert!(scratch.found().len() < 20 && asked < 20 + GRAPH_M0);
    let slot = graph.nodes().find(|slot| Some(*slot) != graph.entry()).unwrap();
    graph.search_without(&cloud, slot, 50, &mut scratch, |_| Verdict::Take);
    assert!(scratch.found().len() == 50 && scratch.found().iter().all(|near| near.slot() != slot));
    graph.search(&cloud, cloud.probe(slot), 50, &mut scratch, |_| Verdict::Take);
    assert!(scratch.found().iter().any(|near| near.slot() == slot));
}

#[test]
fn a_graph_that_forgets_is_as_good_as_a_new_one() {
    let cloud = Cloud::new(7, 4_000, 32, 25, 0.6);
    let mut graph = Graph::new();
    insert(&mut graph, &cloud, 0..4_000, 256, 2);
    let mut rng = Rng(70);
    for round in 0..8 {
        // Half of the rounds strike at random, the others strike a region.
        let mut dead: Vec<u32> = if round % 2 == 0 {
            graph.nodes().filter(|_| rng.next() % 10 < 3).collect()
        } else {
            let centre = graph.nodes().nth(rng.next() as usize % graph.len()).unwrap();
            let mut scratch = Scratch::default();
            graph.search(&cloud, cloud.probe(centre), graph.len() * 3 / 10, &mut scratch, |_| Verdict::Take);
            scratch.found().iter().map(|near| near.slot()).collect()
        };
        dead.sort_unstable();
        forget(&mut graph, &cloud, &dead);
        check(&graph);
        assert_eq!(graph.unreachable(|_| true), Vec::<u32>::new());
        assert!(dead.iter().all(|slot| !graph.contains(*slot)));
        insert(&mut graph, &cloud, dead.iter().copied(), 256, 2);
    }
    let mut fresh = Graph::new();
    insert(&mut fresh, &cloud, 0..4_000, 256, 2);
    let (aged, new) = (cloud.recall(&graph, 32, |_| true), cloud.recall(&fresh, 32, |_| true));
    assert!(aged >= new - 0.01, "{aged} after eight rounds, {new} in a new graph");
}

#[test]
fn most_of_a_graph_can_go() {
    let cloud = Cloud::new(8, 3_000, 24, 20, 0.5);
    let mut graph = Graph::new();
    insert(&mut graph, &cloud, 0..3_000, 256, 2);
    let dead: Vec<u32> = (0..3_000).filter(|slot| slot % 20 != 7).collect();
    forget(&mut graph, &cloud, &dead);
    check(&graph);
    assert_eq!(graph.len(), 150);
    assert_eq!(graph.unreachable(|_| true), Vec::<u32>::new());
    assert!(cloud.recall(&graph, 64, |slot| slot % 20 == 7) >= 0.99);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_and_goes_the_graph_holds(
        seed in any::<u64>(),
        dim in 1_usize..20,
        crowd in 1_usize..60,
        spread in prop_oneof![Just(0.0_f32), Just(0.01), Just(1.0)],
        steps in vec((any::<bool>(), 1_usize..120), 1..12),
    ) {
        let cloud = Cloud::new(seed, 400, dim, crowd, spread);
        let mut graph = Graph::new();
        let mut rng = Rng(seed);
        for (grows, count) in steps {
            let mut slots: Vec<u32> = (0..400).filter(|slot| graph.contains(*slot) != grows).collect();
            while slots.len() > count {
                slots.swap_remove(rng.next() as usize % slots.len());
            }
            slots.sort_unstable();
            if grows {
                insert(&mut graph, &cloud, slots.into_iter(), 50, 2);
            } else {
                forget(&mut graph, &cloud, &slots);
            }
            graph.reconnect(&cloud, |_| true, &mut Crew::new(1));
            check(&graph);
            prop_assert_eq!(graph.unreachable(|_| true), Vec::<u32>::new());
        }
    }
}
