//! Whether a walk can come to every node, and what to do about those where it can't.

use super::crew::Crew;
use super::graph::{Graph, degree_max};
use super::met::Met;
use super::near::Points;
use super::search::Scratch;
use super::select::select;
use crate::limits::GRAPH_M;

impl Graph {
    /// The nodes that are alive and to which no path leads from the entry, ascending.
    pub fn unreachable(&self, alive: impl Fn(u32) -> bool) -> Vec<u32> {
        self.beyond(&self.reached(), alive)
    }

    /// The nodes that are alive and were not met.
    fn beyond(&self, met: &Met, alive: impl Fn(u32) -> bool) -> Vec<u32> {
        self.nodes().filter(|slot| alive(*slot) && !met.contains(*slot)).collect()
    }

    /// Every node to which a path leads: down from the entry, on each level from all that were met above.
    fn reached(&self) -> Met {
        let mut met = Met::none(self.slots());
        let Some(entry) = self.entry() else { return met };
        let mut all = vec![entry];
        for level in (1..=self.level(entry).map_or(0, usize::from)).rev() {
            let mut here = Met::none(self.slots());
            all.retain(|slot| here.meet(*slot));
            let mut at = 0;
            while let Some(&slot) = all.get(at) {
                at += 1;
                all.extend(self.links(slot, level).iter().copied().filter(|link| here.meet(*link)));
            }
        }
        for start in all {
            self.spread(start, &mut met);
        }
        met
    }

    /// Meets all that can be come to from a node on the bottom level.
    fn spread(&self, start: u32, met: &mut Met) {
        let mut open = if met.meet(start) { vec![start] } else { Vec::new() };
        while let Some(slot) = open.pop() {
            open.extend(self.links(slot, 0).iter().copied().filter(|link| met.meet(*link)));
        }
    }

    /// Links every node that is alive and cut off back into the graph. Gives the slots of all nodes whose links
    /// changed, ascending.
    pub fn reconnect<P: Points + ?Sized>(
        &mut self,
        points: &P,
        alive: impl Fn(u32) -> bool + Sync,
        crew: &mut Crew,
    ) -> Vec<u32> {
        let mut changed = Vec::new();
        // A link that is taken from a full node can cut another one off, so it is looked at again. A node gets a
        // link that is not given away in the next round, for the nodes with room come first.
        for _ in 0..ROUNDS_MAX {
            let mut met = self.reached();
            let lost = self.beyond(&met, &alive);
            if lost.is_empty() {
                break;
            }
            let Some(scratch) = crew.own() else { break };
            for slot in lost {
                // What hangs on one that was linked back is reached with it.
                if !met.contains(slot) {
                    changed.extend(self.tie(points, slot, &alive, scratch));
                    self.spread(slot, &mut met);
                }
            }
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// Links a node to what lies near it, and one of these back to it.
    fn tie<P: Points + ?Sized>(
        &mut self,
        points: &P,
        slot: u32,
        alive: &(impl Fn(u32) -> bool + Sync),
        scratch: &mut Scratch,
    ) -> Vec<u32> {
        let near = self.found_anew(points, slot, 0, alive, scratch);
        let Some(nearest) = near.first().map(|near| near.slot()) else { return Vec::new() };
        if self.links(slot, 0).len() < GRAPH_M / 2 {
            let links = select(points, slot, &near, GRAPH_M, GRAPH_M);
            self.set_links(slot, 0, &links);
        }
        let most = degree_max(0);
        let roomy = near.iter().map(|near| near.slot()).find(|slot| self.links(*slot, 0).len() < most);
        let host = roomy.unwrap_or(nearest);
        let mut links = self.links(host, 0).to_vec();
        links.truncate(most - 1);
        links.push(slot);
        self.set_links(host, 0, &links);
        vec![slot, host]
    }
}

/// How often the graph is looked at again.
const ROUNDS_MAX: usize = 16;
