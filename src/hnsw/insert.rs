//! Inserts nodes in batches. In a first step, each new node looks for its neighbours in the graph before the batch and
//! among the earlier nodes of the batch. In a second step, every node to which a link leads takes its new links.
//!
//! Many threads share both steps, and no item of a step reads the result of another. So the result is that of one
//! thread. It is close to the result of one insertion after the other: where a node can't see another one in the graph
//! yet, it compares itself with that one exactly.
//!
//! A node with exactly the code of another node becomes its *twin*. A twin hangs on its host without a link of its
//! own. So a crowd of equal codes takes one place among the neighbours of others, and cannot close itself off.
//!
//! Every node that could be reached stays reachable. A link is lost if a full list gives it up, or if it finds no room
//! in a list. Each lost link is replaced: unless a short path leads from the owner of the list to the same node, the
//! owner or one of its neighbours with room takes the link. A new node that finds no living neighbour has no link at
//! all, and the check of the whole graph links it.

use super::crew::Crew;
use super::graph::{Graph, degree_max};
use super::near::{Near, Points, score_each};
use super::search::{LevelBounds, Scratch};
use super::select::select;
use super::visited::VisitedSet;
use crate::limits::{GRAPH_EF_CONSTRUCTION, GRAPH_M, GRAPH_M0};

/// The number of nearest nodes among which a new node selects its links. Of 200 nodes the farther ones are almost
/// always covered, and comparing them takes a quarter of the time of an insertion.
pub(super) const CANDIDATES_MAX: usize = 2 * GRAPH_M0;
/// A list that overflows is reduced by one part in this many, so that it has room for the next links.
const SLACK: usize = 4;
/// The number of nodes among which a path is searched that replaces a lost link.
const AROUND_MAX: usize = 1_024;

/// A planned link: from `target`, on `level`, to `source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reverse {
    pub(super) target: u32,
    pub(super) level: u8,
    pub(super) source: u32,
}

/// How a new node is linked.
#[derive(Clone, Debug)]
enum NewLinks {
    /// The node gets these links, by level from the bottom up.
    Links(Vec<Vec<u32>>),
    /// The node has the code of this node, of the graph or of the batch.
    Twin(u32),
}

impl Default for NewLinks {
    fn default() -> Self {
        NewLinks::Links(Vec::new())
    }
}

/// The changes of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// The slots of all nodes whose links changed, and of slots that are no longer nodes; ascending.
    pub slots: Vec<u32>,
    /// Of these slots, those that are alive and no longer nodes, because no walk would reach them; ascending.
    pub loose: Vec<u32>,
}

impl Changed {
    pub(super) fn of(mut slots: Vec<u32>, loose: Vec<u32>) -> Self {
        slots.extend(&loose);
        slots.sort_unstable();
        slots.dedup();
        Changed { slots, loose }
    }
}

/// Nodes that took new links.
#[derive(Clone, Debug, Default)]
pub(super) struct Relinked {
    pub(super) slots: Vec<u32>,
    /// The nodes whose list of the lowest level overflowed, with the nodes that the list lost or refused.
    lost: Vec<(u32, Vec<u32>)>,
}

impl Graph {
    /// Adds nodes, each a slot and its level, in one step. Batches of a few hundred are best: larger batches compare
    /// their members with each other, smaller ones keep fewer threads busy.
    ///
    /// # Panics
    /// If a slot is a node already, or stands twice in the batch.
    pub fn insert_batch<P: Points + ?Sized>(
        &mut self,
        points: &P,
        batch: &[(u32, u8)],
        alive: impl Fn(u32) -> bool + Sync,
        crew: &mut Crew,
    ) -> Changed {
        // The first step reads the graph as it was before the batch, so the order of the threads decides nothing.
        let (graph, entry) = (&*self, self.entry());
        let places = crew.map(batch.len(), |at, scratch| {
            let (earlier, rest) = batch.split_at(at);
            rest.first()
                .map(|&(slot, level)| graph.place_of(points, slot, level, earlier, &alive, scratch))
                .unwrap_or_default()
        });
        let (mut changed, mut reverse) = (Vec::new(), Vec::new());
        let mut sure = true;
        for (&(slot, level), place) in batch.iter().zip(places) {
            assert!(!self.contains(slot), "slot {slot} is a node already");
            changed.push(slot);
            let lists = match place {
                NewLinks::Twin(other) => {
                    self.set_twin(slot, self.host(other).unwrap_or(other));
                    continue;
                }
                NewLinks::Links(lists) => lists,
            };
            self.add_node(slot, level);
            for (level, mut links) in (0_u8..).zip(lists) {
                self.lead_to_hosts(level, &mut links);
                // A node without a link gets no link back, and whoever links to it alone is cut off with it.
                sure &= level > 0 || !links.is_empty();
                self.set_links(slot, usize::from(level), &links);
                reverse.extend(links.iter().map(|&target| Reverse { target, level, source: slot }));
            }
            if self.entry().and_then(|entry| self.level(entry)).is_none_or(|top| top < level) {
                self.set_entry(Some(slot));
            }
        }
        let Relinked { slots, lost } = self.link_back(points, reverse, crew);
        changed.extend(slots);
        let mut visited = VisitedSet::default();
        for (from, lost) in &lost {
            sure &= self.make_up(*from, lost, &mut visited, &mut changed);
        }
        // Walks begin at the entry. After a change of entry, only a check of the whole graph proves that all is
        // reached.
        if sure && self.entry() == entry {
            return Changed::of(changed, Vec::new());
        }
        let rest = self.reconnect(points, alive, crew);
        changed.extend(rest.slots);
        Changed::of(changed, rest.loose)
    }

    /// Replaces twins by their hosts, because links lead to hosts only.
    fn lead_to_hosts(&self, level: u8, links: &mut Vec<u32>) {
        if !links.iter().any(|link| self.host(*link).is_some()) {
            return;
        }
        for link in links.iter_mut() {
            *link = self.host(*link).unwrap_or(*link);
        }
        let mut met = Vec::with_capacity(links.len());
        links.retain(|link| {
            let stays = !met.contains(link) && self.level(*link).is_some_and(|found| found >= level);
            met.push(*link);
            stays
        });
    }

    /// The links of a new node, or the node whose twin it is.
    fn place_of<P: Points + ?Sized>(
        &self,
        points: &P,
        slot: u32,
        level: u8,
        earlier: &[(u32, u8)],
        alive: &(impl Fn(u32) -> bool + Sync),
        scratch: &mut Scratch,
    ) -> NewLinks {
        let probe = points.probe(slot);
        // The earlier nodes of the batch are not in the graph yet, so no walk can find them.
        let peers: Vec<u32> = earlier.iter().map(|(peer, _)| *peer).collect();
        let mut near_peers = Vec::with_capacity(peers.len());
        score_each(points, probe, &peers, |near| near_peers.push(near));
        let mut lists = vec![Vec::new(); usize::from(level) + 1];
        let top = self.entry().and_then(|entry| self.level(entry));
        let mut starts = self.approach(points, probe, usize::from(level), scratch);
        for (level, list) in (0..=level).zip(&mut lists).rev() {
            let mut candidates: Vec<Near> = Vec::new();
            if top.is_some_and(|top| level <= top) {
                let bounds = LevelBounds { ef: GRAPH_EF_CONSTRUCTION, level: usize::from(level) };
                self.search_level(points, probe, &starts, bounds, scratch, |slot| alive(slot).into());
                candidates.extend(scratch.found());
                if !candidates.is_empty() {
                    starts.clone_from(&candidates);
                }
            }
            let high = near_peers.iter().zip(earlier).filter(|(_, (_, peer_level))| *peer_level >= level);
            candidates.extend(high.map(|(near, _)| *near));
            candidates.sort_unstable_by(|a, b| b.cmp(a));
            // On any level a node with the same code ends the work, because a twin needs no links of its own.
            if let Some(twin) = equal(points, slot, &candidates) {
                return NewLinks::Twin(twin);
            }
            candidates.truncate(CANDIDATES_MAX);
            *list = select(points, slot, &candidates, GRAPH_M, GRAPH_M);
        }
        NewLinks::Links(lists)
    }

    /// Gives the targets of `links` a link back to their source. A target with too many links keeps those that lead in
    /// different directions, and the nearest of the others.
    pub(super) fn link_back<P: Points + ?Sized>(
        &mut self,
        points: &P,
        mut links: Vec<Reverse>,
        crew: &mut Crew,
    ) -> Relinked {
        // Sorted, so that the links of a target lie together and their order does not depend on who found them.
        links.sort_unstable();
        links.dedup();
        let groups: Vec<&[Reverse]> =
            links.chunk_by(|a, b| (a.target, a.level) == (b.target, b.level)).collect();
        let graph = &*self;
        let lists = crew.map(groups.len(), |at, _| {
            groups.get(at).map(|group| graph.with_links(points, group)).unwrap_or_default()
        });
        let mut relinked = Relinked::default();
        for (group, (links, lost)) in groups.iter().zip(lists) {
            let Some(first) = group.first() else { continue };
            self.set_links(first.target, usize::from(first.level), &links);
            relinked.slots.push(first.target);
            // The upper levels are short cuts. Only the lowest level decides whether a walk can reach a node.
            if first.level == 0 && !lost.is_empty() {
                relinked.lost.push((first.target, lost));
            }
        }
        relinked
    }

    /// Makes sure that a path leads from a node to each node that its list has lost. Returns false if there was no
    /// room for a path.
    fn make_up(&mut self, from: u32, lost: &[u32], visited: &mut VisitedSet, changed: &mut Vec<u32>) -> bool {
        visited.begin(self.slots());
        visited.insert(from);
        let mut around = vec![from];
        let mut at = 0;
        let is_done = |visited: &VisitedSet| lost.iter().all(|slot| visited.contains(*slot));
        while let Some(&slot) = around.get(at)
            && around.len() < AROUND_MAX
        {
            at += 1;
            let fresh = self.links(slot, 0).iter().copied().filter(|link| visited.insert(*link));
            around.extend(fresh);
            // The check costs a look at every lost node, so it is made ever more rarely.
            if at.is_power_of_two() && is_done(visited) {
                return true;
            }
        }
        for &slot in lost.iter().filter(|slot| !visited.contains(**slot)) {
            let roomy = around.iter().copied().find(|host| {
                *host != slot && self.host(*host).is_none() && self.links(*host, 0).len() < degree_max(0)
            });
            // If no node around has room, the caller checks the whole graph and links the lost node back.
            let Some(host) = roomy else { return false };
            let mut links = self.links(host, 0).to_vec();
            links.push(slot);
            self.set_links(host, 0, &links);
            changed.push(host);
        }
        true
    }

    /// The links of the target of a group with those of the group added, and the links that found no room.
    fn with_links<P: Points + ?Sized>(&self, points: &P, group: &[Reverse]) -> (Vec<u32>, Vec<u32>) {
        let Some(first) = group.first() else { return Default::default() };
        let level = usize::from(first.level);
        let mut all = self.links(first.target, level).to_vec();
        for link in group {
            if !all.contains(&link.source) {
                all.push(link.source);
            }
        }
        let most = degree_max(level);
        if all.len() <= most {
            return (all, Vec::new());
        }
        let mut candidates = Vec::with_capacity(all.len());
        score_each(points, points.probe(first.target), &all, |near| candidates.push(near));
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        let links = select(points, first.target, &candidates, most, most - most / SLACK);
        all.retain(|slot| !links.contains(slot));
        (links, all)
    }
}

/// The first of `candidates` with exactly the code of a slot. The candidates come nearest first.
fn equal<P: Points + ?Sized>(points: &P, slot: u32, candidates: &[Near]) -> Option<u32> {
    let mut own = f32::INFINITY;
    score_each(points, points.probe(slot), &[slot], |near| own = near.score());
    // Other codes can round to the same score, so the codes themselves are compared.
    let same =
        |other: u32| points.code(other) == points.code(slot) && points.scale(other) == points.scale(slot);
    candidates
        .iter()
        .take_while(|near| near.score() >= own)
        .map(|near| near.slot())
        .find(|other| same(*other))
}
