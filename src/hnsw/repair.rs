//! Forgetting: the neighbours of removed nodes get other links, and then the nodes are removed.
//!
//! A node that lost links chooses new ones among its other neighbours and those of the removed nodes, by the rule of
//! selection. Its list is filled up to its earlier length. Without the filling, the degree of a graph falls with every
//! round of deletions, and recall falls with it. A node that lost more than half of its links looks for new ones in
//! the whole graph.

use std::collections::BTreeSet;

use super::crew::Crew;
use super::graph::{Graph, degree_max};
use super::insert::{CANDIDATES_MAX, Changed, Reverse};
use super::near::{Near, Points, score_each};
use super::search::{LevelBounds, Scratch};
use super::select::select;
use crate::limits::GRAPH_EF_CONSTRUCTION;

/// The number of nodes among which replacements for the lost links of a node are searched.
const HEIRS_MAX: usize = 256;

impl Graph {
    /// The living nodes with a link to a node that is not alive, ascending.
    pub fn torn(&self, alive: impl Fn(u32) -> bool) -> Vec<u32> {
        let is_torn = |slot: &u32| {
            let levels = 0..=self.level(*slot).map_or(0, usize::from);
            levels.into_iter().any(|level| self.links(*slot, level).iter().any(|link| !alive(*link)))
        };
        self.nodes().filter(|slot| alive(*slot)).filter(is_torn).collect()
    }

    /// The nodes that are not alive but have living twins. A twin takes their place before they are removed.
    pub fn orphans(&self, alive: impl Fn(u32) -> bool) -> Vec<u32> {
        let is_left = |twins: &[u32]| twins.iter().any(|twin| alive(*twin));
        self.hosts().filter(|(host, twins)| !alive(*host) && is_left(twins)).map(|(host, _)| host).collect()
    }

    /// Puts one of the living twins of each of `hosts` in the place of the host. The twin becomes a node with links,
    /// of the level that `level` gives, and the other twins hang on it.
    pub fn inherit<P: Points + ?Sized>(
        &mut self,
        points: &P,
        hosts: &[u32],
        alive: impl Fn(u32) -> bool + Sync,
        level: impl Fn(u32) -> u8,
        crew: &mut Crew,
    ) -> Changed {
        let mut families: Vec<Vec<u32>> = Vec::with_capacity(hosts.len());
        for &host in hosts {
            let living: Vec<u32> = self.twins(host).iter().copied().filter(|twin| alive(*twin)).collect();
            // The twins leave the graph first, because `insert_batch` takes no slot that is a node already.
            living.iter().for_each(|twin| self.take_node(*twin));
            families.push(living);
        }
        let heirs: Vec<(u32, u8)> =
            families.iter().filter_map(|family| family.first().map(|heir| (*heir, level(*heir)))).collect();
        let mut changed = self.insert_batch(points, &heirs, &alive, crew);
        for family in &families {
            let Some((heir, others)) = family.split_first() else { continue };
            // If an heir could not be linked, its family is left to the next batch, too.
            let host = self.contains(*heir).then(|| self.host(*heir).unwrap_or(*heir));
            for &twin in others {
                match host {
                    Some(host) => self.set_twin(twin, host),
                    None => changed.loose.push(twin),
                }
                changed.slots.push(twin);
            }
        }
        changed.loose.sort_unstable();
        Changed::of(changed.slots, changed.loose)
    }

    /// Replaces the links of nodes to dead nodes by other links, in one step. Returns the slots of all nodes whose
    /// links changed, ascending.
    pub fn repair_batch<P: Points + ?Sized>(
        &mut self,
        points: &P,
        batch: &[u32],
        alive: impl Fn(u32) -> bool + Sync,
        crew: &mut Crew,
    ) -> Vec<u32> {
        // All lists are worked out on the graph before the batch, so the number of threads changes nothing.
        let graph = &*self;
        let lists = crew.map(batch.len(), |at, scratch| {
            batch.get(at).map(|&slot| graph.mended(points, slot, &alive, scratch)).unwrap_or_default()
        });
        let mut changed = Vec::new();
        let mut reverse = Vec::new();
        for (&slot, lists) in batch.iter().zip(lists) {
            for (level, links) in lists {
                let before = self.links(slot, usize::from(level));
                let new = links.iter().filter(|link| !before.contains(link));
                // A full list is left as it is: its owner has enough neighbours, and so has this node.
                let roomy = new.filter(|link| self.has_room(**link, usize::from(level)));
                reverse.extend(roomy.map(|&target| Reverse { target, level, source: slot }));
                self.set_links(slot, usize::from(level), &links);
                changed.push(slot);
            }
        }
        changed.extend(self.link_back(points, reverse, crew).slots);
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    fn has_room(&self, slot: u32, level: usize) -> bool {
        self.links(slot, level).len() < degree_max(level)
    }

    /// The new links of a node on the levels on which it lost some.
    fn mended<P: Points + ?Sized>(
        &self,
        points: &P,
        slot: u32,
        alive: &(impl Fn(u32) -> bool + Sync),
        scratch: &mut Scratch,
    ) -> Vec<(u8, Vec<u32>)> {
        let mut lists = Vec::new();
        for level in 0..=self.level(slot).unwrap_or(0) {
            let before = self.links(slot, usize::from(level));
            if before.iter().all(|link| alive(*link)) {
                continue;
            }
            let most = degree_max(usize::from(level));
            let mut candidates = self.heirs(points, slot, usize::from(level), alive);
            let left = before.iter().filter(|link| alive(**link)).count();
            if 2 * left < before.len() {
                candidates.extend(self.found_anew(points, slot, usize::from(level), alive, scratch));
                candidates.sort_unstable_by(|a, b| b.cmp(a));
                candidates.dedup();
                candidates.truncate(CANDIDATES_MAX);
            }
            let links = select(points, slot, &candidates, most, before.len());
            lists.push((level, links));
        }
        lists
    }

    /// The living neighbours of a node and of its dead neighbours, nearest first.
    fn heirs<P: Points + ?Sized>(
        &self,
        points: &P,
        slot: u32,
        level: usize,
        alive: &(impl Fn(u32) -> bool + Sync),
    ) -> Vec<Near> {
        let (mut living, mut dead): (Vec<u32>, Vec<u32>) =
            self.links(slot, level).iter().partition(|link| alive(**link));
        let mut at = 0;
        // Dead nodes behind dead nodes are crossed up to a bound, so that a large gap does not cost a walk over it all.
        while let Some(&gone) = dead.get(at) {
            at += 1;
            for &link in self.links(gone, level) {
                if alive(link) {
                    living.push(link);
                } else if dead.len() < HEIRS_MAX && !dead.contains(&link) {
                    dead.push(link);
                }
            }
            if living.len() >= HEIRS_MAX {
                break;
            }
        }
        living.sort_unstable();
        living.dedup();
        living.retain(|link| *link != slot);
        let mut candidates = Vec::with_capacity(living.len());
        score_each(points, points.probe(slot), &living, |near| candidates.push(near));
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        candidates.truncate(CANDIDATES_MAX);
        candidates
    }

    /// The nearest nodes of the whole graph.
    pub(super) fn found_anew<P: Points + ?Sized>(
        &self,
        points: &P,
        slot: u32,
        level: usize,
        alive: &(impl Fn(u32) -> bool + Sync),
        scratch: &mut Scratch,
    ) -> Vec<Near> {
        let probe = points.probe(slot);
        let starts = self.approach(points, probe, level, scratch);
        let bounds = LevelBounds { ef: GRAPH_EF_CONSTRUCTION, level };
        let accept = |found: u32| (found != slot && alive(found)).into();
        self.search_level(points, probe, &starts, bounds, scratch, accept);
        scratch.found().to_vec()
    }

    /// Removes nodes from the graph, and the twins of a node with the node. Only `others` may still have a link to
    /// them, and lose it. Returns the slots of all nodes that are gone or lost a link, ascending.
    pub fn remove(&mut self, slots: &BTreeSet<u32>, others: &[u32]) -> Vec<u32> {
        let mut changed: Vec<u32> = slots.iter().copied().collect();
        for &other in others {
            for level in 0..=self.level(other).map_or(0, usize::from) {
                let links = self.links(other, level);
                let left: Vec<u32> = links.iter().copied().filter(|link| !slots.contains(link)).collect();
                if left.len() < links.len() {
                    self.set_links(other, level, &left);
                    changed.push(other);
                }
            }
        }
        // Links to the nodes are gone by now, so taking a node out leaves no link that leads nowhere.
        for &slot in slots {
            let twins = self.twins(slot).to_vec();
            twins.iter().for_each(|twin| self.take_node(*twin));
            changed.extend(twins);
            self.take_node(slot);
        }
        if self.entry().is_some_and(|entry| !self.contains(entry)) {
            self.set_entry(self.highest());
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// The node with the lowest slot on the highest level.
    fn highest(&self) -> Option<u32> {
        let linked = self.nodes().filter(|slot| self.host(*slot).is_none());
        linked.max_by_key(|slot| (self.level(*slot), std::cmp::Reverse(*slot)))
    }
}
