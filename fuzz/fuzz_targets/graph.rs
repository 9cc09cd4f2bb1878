//! Bytes as points and as a list of steps on a graph over them: degrees stay in their bounds, links lead to nodes of
//! their level, nothing that is dead is found, and after a repair every node is reached.
//!
//! The first two bytes say how many dimensions and points there are, then come the points, then steps of two bytes.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use oubliette::faults::hnsw::{Crew, Graph, Points, Probe, Scratch, level_of};
use oubliette::limits::{GRAPH_M, GRAPH_M0};

/// Steps of one input.
const STEPS_MAX: usize = 64;
/// Slots, a multiple of the points: far slots have the code of a near one.
const SLOTS: u32 = 512;

struct Cloud {
    dim: usize,
    codes: Vec<i8>,
}

impl Points for Cloud {
    fn code(&self, slot: u32) -> &[i8] {
        let points = self.codes.len() / self.dim;
        &self.codes[slot as usize % points * self.dim..][..self.dim]
    }

    fn scale(&self, slot: u32) -> f32 {
        // Equal codes are not equal points, but for some.
        1.0 / (1 + slot % 3) as f32
    }
}

struct Story {
    cloud: Cloud,
    graph: Graph,
    dead: BTreeSet<u32>,
    crew: Crew,
    scratch: Scratch,
}

impl Story {
    fn step(&mut self, step: u8, what: u8) {
        let Story { cloud, graph, dead, crew, scratch } = self;
        let gone = dead.clone();
        let alive = |slot: u32| !gone.contains(&slot);
        let first = u32::from(what) * 2;
        match step % 8 {
            0..=2 => {
                let rows =
                    (first..).step_by(1 + usize::from(step >> 6)).take(1 + usize::from(step >> 3 & 7) * 5);
                let fresh = rows.map(|slot| slot % SLOTS).filter(|slot| !graph.contains(*slot));
                let fresh: BTreeSet<u32> = fresh.collect();
                // Few ids have a level: those of some slots get one that is no function of chance.
                let level = |slot: u32| match slot % 11 {
                    0 => slot as u8 % 4,
                    _ => level_of(&u128::from(slot).to_be_bytes()),
                };
                let batch: Vec<(u32, u8)> = fresh.iter().map(|slot| (*slot, level(*slot))).collect();
                graph.insert_batch(cloud, &batch, alive, crew);
            }
            3 | 4 => {
                let all: Vec<u32> = graph.nodes().collect();
                dead.extend(all.iter().skip(usize::from(what)).step_by(1 + usize::from(step >> 3)).take(24));
            }
            5 => {
                let torn = graph.torn(alive);
                graph.repair_batch(cloud, &torn[..torn.len().min(usize::from(what))], alive, crew);
            }
            6 => self.repair(usize::from(what)),
            _ => {
                let code: Vec<i8> =
                    cloud.code(first).iter().map(|value| value.wrapping_add(what as i8)).collect();
                let (probe, ef) = (Probe { code: &code, scale: 1.0 }, 1 + usize::from(step >> 3));
                graph.search(cloud, probe, ef, scratch, |slot| alive(slot).into());
                let found = scratch.found();
                assert!(found.len() <= ef && found.is_sorted_by(|a, b| a > b), "not nearest first");
                assert!(found.iter().all(|near| graph.contains(near.slot()) && alive(near.slot())));
                let live = graph.nodes().filter(|slot| alive(*slot)).count();
                assert!(
                    found.len() == ef.min(live) || !graph.unreachable(alive).is_empty(),
                    "too few are found"
                );
            }
        }
    }

    /// Gives the neighbours of all that is dead other links, takes so many out and closes what is left open.
    fn repair(&mut self, most: usize) {
        let Story { cloud, graph, dead, crew, .. } = self;
        let gone = dead.clone();
        let alive = |slot: u32| !gone.contains(&slot);
        let orphans = graph.orphans(alive);
        graph.inherit(cloud, &orphans, alive, |slot| level_of(&u128::from(slot).to_be_bytes()), crew);
        assert!(graph.orphans(alive).is_empty(), "a living twin hangs on a dead node after the repair");
        let torn = graph.torn(alive);
        graph.repair_batch(cloud, &torn, alive, crew);
        assert!(graph.torn(alive).is_empty(), "a live node leads to a dead one after the repair");
        let (now, later): (Vec<u32>, Vec<u32>) =
            (gone.iter().copied().take(most).collect(), gone.iter().copied().skip(most).collect());
        graph.remove(&now.iter().copied().collect(), &later);
        // The dead twins of a host go with it.
        dead.retain(|slot| graph.contains(*slot));
        graph.reconnect(cloud, alive, crew);
        assert!(graph.unreachable(alive).is_empty(), "a live node is reached by nothing after the repair");
        assert!(now.iter().all(|slot| !graph.contains(*slot)));
    }

    /// What holds after every step.
    fn check(&self) {
        let graph = &self.graph;
        let nodes: Vec<u32> = graph.nodes().collect();
        assert_eq!(nodes.len(), graph.len());
        let highest = nodes.iter().filter_map(|slot| graph.level(*slot)).max();
        assert_eq!(
            graph.entry().and_then(|entry| graph.level(entry)),
            highest,
            "the entry is not of the highest level"
        );
        for slot in nodes {
            if let Some(host) = graph.host(slot) {
                assert!(graph.contains(host) && graph.host(host).is_none(), "a twin of a twin, or of none");
                assert!(graph.twins(host).contains(&slot), "a twin that its host does not know");
            }
            for level in 0..=usize::from(graph.level(slot).unwrap()) {
                let links = graph.links(slot, level);
                assert!(links.len() <= if level == 0 { GRAPH_M0 } else { GRAPH_M }, "too many links");
                let distinct: BTreeSet<u32> = links.iter().copied().collect();
                assert!(
                    distinct.len() == links.len() && !distinct.contains(&slot),
                    "a link twice, or to itself"
                );
                let leads = |link: &u32| {
                    graph.host(*link).is_none()
                        && graph.level(*link).is_some_and(|of| usize::from(of) >= level)
                };
                assert!(links.iter().all(leads), "a link to no node of its level");
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&[dim, points], rest)) = data.split_first_chunk::<2>() else { return };
    let (dim, points) = (1 + usize::from(dim % 12), 1 + usize::from(points));
    let Some((codes, steps)) = rest.split_at_checked(dim * points) else { return };
    // As the encoder makes them: -128 is none of its values.
    let codes = codes.iter().map(|byte| byte.cast_signed().max(-127)).collect();
    let cloud = Cloud { dim, codes };
    let (graph, crew, scratch) = (Graph::new(), Crew::new(1), Scratch::default());
    let mut story = Story { cloud, graph, dead: BTreeSet::new(), crew, scratch };
    for step in steps.chunks_exact(2).take(STEPS_MAX) {
        story.step(step[0], step[1]);
        story.check();
    }
    story.repair(usize::MAX);
    story.check();
    assert!(story.graph.torn(|_| true).is_empty());
});
