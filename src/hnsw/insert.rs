//! New nodes, in batches: each looks for its neighbours in the graph before the batch and among those that came
//! before it in the batch, then every node that is linked to takes its new links in one step.
//!
//! Both steps are done by many hands, and no item of a step sees what another one gives. So the result is that of one
//! hand, and near the result of one insertion after the other: what a node can't see in the graph yet, it sees
//! exactly.

use super::crew::Crew;
use super::graph::{Graph, degree_max};
use super::near::{Near, Points, score_each};
use super::search::Scratch;
use super::select::select;
use crate::limits::{GRAPH_EF_CONSTRUCTION, GRAPH_M, GRAPH_M0};

/// Nearest nodes among which a new one selects its links. Of 200 the farther ones are almost always covered, and looking
/// at them takes a quarter of the time of an insertion.
pub(super) const CANDIDATES_MAX: usize = 2 * GRAPH_M0;
/// A list that runs over is brought down by one part in so many, so that it has room for the next links.
const SLACK: usize = 4;

/// A link that is to be: from `target`, on `level`, to `source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reverse {
    pub(super) target: u32,
    pub(super) level: u8,
    pub(super) source: u32,
}

impl Graph {
    /// Adds nodes, each a slot and its level, in one step. Batches of a few hundred are best: larger ones compare
    /// their members with each other, smaller ones keep fewer hands busy. Gives the slots of all nodes whose links
    /// changed, ascending.
    ///
    /// # Panics
    /// When a slot is a node already, or stands twice in the batch.
    pub fn insert_batch<P: Points + ?Sized>(
        &mut self,
        points: &P,
        batch: &[(u32, u8)],
        alive: impl Fn(u32) -> bool + Sync,
        crew: &mut Crew,
    ) -> Vec<u32> {
        let graph = &*self;
        let lists = crew.map(batch.len(), |at, scratch| {
            let (earlier, rest) = batch.split_at(at);
            rest.first()
                .map(|node| graph.neighbours(points, *node, earlier, &alive, scratch))
                .unwrap_or_default()
        });
        let mut changed = Vec::new();
        let mut reverse = Vec::new();
        for (&(slot, level), lists) in batch.iter().zip(&lists) {
            assert!(!self.contains(slot), "slot {slot} is a node already");
            self.add_node(slot, level);
            changed.push(slot);
            for (level, links) in (0_u8..).zip(lists) {
                self.set_links(slot, usize::from(level), links);
                reverse.extend(links.iter().map(|&target| Reverse { target, level, source: slot }));
            }
            if self.entry().and_then(|entry| self.level(entry)).is_none_or(|top| top < level) {
                self.set_entry(Some(slot));
            }
        }
        changed.extend(self.link_back(points, reverse, crew));
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// The links of a new node, by level from the bottom up.
    fn neighbours<P: Points + ?Sized>(
        &self,
        points: &P,
        (slot, level): (u32, u8),
        earlier: &[(u32, u8)],
        alive: &(impl Fn(u32) -> bool + Sync),
        scratch: &mut Scratch,
    ) -> Vec<Vec<u32>> {
        let probe = points.probe(slot);
        let peers: Vec<u32> = earlier.iter().map(|(peer, _)| *peer).collect();
        let mut near_peers = Vec::with_capacity(peers.len());
        score_each(points, probe, &peers, |near| near_peers.push(near));
        let mut lists = vec![Vec::new(); usize::from(level) + 1];
        let top = self.entry().and_then(|entry| self.level(entry));
        let mut starts = self.approach(points, probe, usize::from(level), scratch);
        for (level, list) in (0..=level).zip(&mut lists).rev() {
            let mut candidates: Vec<Near> = Vec::new();
            if top.is_some_and(|top| level <= top) {
                let bounds = (GRAPH_EF_CONSTRUCTION, usize::from(level));
                self.search_level(points, probe, &starts, bounds, scratch, |slot| alive(slot).into());
                candidates.extend(scratch.found());
                if !candidates.is_empty() {
                    starts.clone_from(&candidates);
                }
            }
            let high = near_peers.iter().zip(earlier).filter(|(_, (_, peer_level))| *peer_level >= level);
            candidates.extend(high.map(|(near, _)| *near));
            candidates.sort_unstable_by(|a, b| b.cmp(a));
            candidates.truncate(CANDIDATES_MAX);
            *list = select(points, slot, &candidates, GRAPH_M, GRAPH_M);
        }
        lists
    }

    /// Gives the targets of `links` a link back to their source. A target with too many keeps those that lead in
    /// different directions and the nearest of the others. Gives the slots that changed.
    pub(super) fn link_back<P: Points + ?Sized>(
        &mut self,
        points: &P,
        mut links: Vec<Reverse>,
        crew: &mut Crew,
    ) -> Vec<u32> {
        links.sort_unstable();
        links.dedup();
        let groups: Vec<&[Reverse]> =
            links.chunk_by(|a, b| (a.target, a.level) == (b.target, b.level)).collect();
        let graph = &*self;
        let lists = crew.map(groups.len(), |at, _| {
            groups.get(at).map(|group| graph.with_links(points, group)).unwrap_or_default()
        });
        let mut changed = Vec::with_capacity(groups.len());
        for (group, list) in groups.iter().zip(&lists) {
            if let Some(first) = group.first() {
                self.set_links(first.target, usize::from(first.level), list);
                changed.push(first.target);
            }
        }
        changed
    }

    /// The links of the target of a group with those of the group.
    fn with_links<P: Points + ?Sized>(&self, points: &P, group: &[Reverse]) -> Vec<u32> {
        let Some(first) = group.first() else { return Vec::new() };
        let level = usize::from(first.level);
        let mut all = self.links(first.target, level).to_vec();
        for link in group {
            if !all.contains(&link.source) {
                all.push(link.source);
            }
        }
        let most = degree_max(level);
        if all.len() <= most {
            return all;
        }
        let mut candidates = Vec::with_capacity(all.len());
        score_each(points, points.probe(first.target), &all, |near| candidates.push(near));
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        select(points, first.target, &candidates, most, most - most / SLACK)
    }
}
