//! Whether a walk can reach every node, and what is done about nodes that it can't reach.

use std::collections::BTreeSet;

use super::crew::Crew;
use super::graph::{Graph, degree_max};
use super::insert::Changed;
use super::near::Points;
use super::search::Scratch;
use super::select::select;
use super::visited::VisitedSet;
use crate::limits::GRAPH_M;

impl Graph {
    /// The living nodes to which no path leads from the entry on the lowest level, ascending.
    pub fn unreachable(&self, alive: impl Fn(u32) -> bool) -> Vec<u32> {
        self.beyond(&self.reached(), alive)
    }

    /// The living nodes that were not visited, and whose hosts were not visited either.
    fn beyond(&self, visited: &VisitedSet, alive: impl Fn(u32) -> bool) -> Vec<u32> {
        let is_visited =
            |slot: u32| visited.contains(slot) || self.host(slot).is_some_and(|host| visited.contains(host));
        self.nodes().filter(|slot| !is_visited(*slot) && alive(*slot)).collect()
    }

    /// Every node to which a path leads from the entry on the lowest level.
    fn reached(&self) -> VisitedSet {
        let mut visited = VisitedSet::below(self.slots());
        if let Some(entry) = self.entry() {
            self.spread(entry, &mut visited);
        }
        visited
    }

    /// Meets every node that can be reached from a node on the lowest level.
    fn spread(&self, start: u32, visited: &mut VisitedSet) {
        let mut open = if visited.insert(start) { vec![start] } else { Vec::new() };
        while let Some(slot) = open.pop() {
            open.extend(self.links(slot, 0).iter().copied().filter(|link| visited.insert(*link)));
        }
    }

    /// Links every living node that is cut off back into the graph. Nodes for which that fails are removed.
    pub fn reconnect<P: Points + ?Sized>(
        &mut self,
        points: &P,
        alive: impl Fn(u32) -> bool + Sync,
        crew: &mut Crew,
    ) -> Changed {
        let mut changed = Vec::new();
        // A link taken from a full node can cut off another node, so the graph is checked again. In the next round
        // such a link is not given away, because nodes with room come first.
        for _ in 0..ROUNDS_MAX {
            let mut visited = self.reached();
            let lost = self.beyond(&visited, &alive);
            if lost.is_empty() {
                return Changed::of(changed, Vec::new());
            }
            let Some(scratch) = crew.own() else { break };
            for slot in lost {
                // A twin is reached through its host, which is not among the lost nodes if it is not alive.
                let node = self.host(slot).unwrap_or(slot);
                // Nodes behind a node that was linked back are reached with it.
                if !visited.contains(node) {
                    changed.extend(self.tie(points, node, &visited, &alive, scratch));
                    self.spread(node, &mut visited);
                }
            }
        }
        // What is still cut off leaves the graph and is scanned in the tail, so that no search misses it.
        let loose = self.unreachable(&alive);
        let (gone, all): (BTreeSet<u32>, Vec<u32>) =
            (loose.iter().copied().collect(), self.nodes().collect());
        changed.extend(self.remove(&gone, &all));
        Changed::of(changed, loose)
    }

    /// Links a node to nodes near it, and links one of the reachable ones back to it.
    fn tie<P: Points + ?Sized>(
        &mut self,
        points: &P,
        slot: u32,
        visited: &VisitedSet,
        alive: &(impl Fn(u32) -> bool + Sync),
        scratch: &mut Scratch,
    ) -> Vec<u32> {
        // Only a node that walks already reach can lead them to the lost node.
        let is_host = |other: u32| alive(other) && visited.contains(other);
        let near = self.found_anew(points, slot, 0, &is_host, scratch);
        // If no walk comes to a living node, the entry leads to the lost one although it is dead itself.
        let Some(nearest) = near.first().map(|near| near.slot()).or(self.entry()) else { return Vec::new() };
        if !near.is_empty() && self.links(slot, 0).len() < GRAPH_M / 2 {
            let links = select(points, slot, &near, GRAPH_M, GRAPH_M);
            self.set_links(slot, 0, &links);
        }
        let most = degree_max(0);
        let roomy = near.iter().map(|near| near.slot()).find(|slot| self.links(*slot, 0).len() < most);
        let host = roomy.unwrap_or(nearest);
        let mut links = self.links(host, 0).to_vec();
        // A full list gives up its last link. The next round of `reconnect` finds whatever that cuts off.
        links.truncate(most - 1);
        links.push(slot);
        self.set_links(host, 0, &links);
        vec![slot, host]
    }
}

/// How often the graph is checked again.
const ROUNDS_MAX: usize = 16;
