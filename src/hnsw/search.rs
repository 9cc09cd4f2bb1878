//! The walk: from the entry down the levels, then outwards on one of them.

use super::graph::Graph;
use super::met::Met;
use super::near::{Near, Points, Probe, score_each};
use crate::limits::GRAPH_M0;
use crate::vector::prefetch;

/// Nodes of the level above at which a walk begins.
const STARTS: usize = 16;

/// What becomes of a node that a walk has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be among the results.
    Take,
    /// It may not, and is walked through.
    Pass,
    /// The walk ends here: whoever asked has to do without it.
    Stop,
}

impl From<bool> for Verdict {
    fn from(takes: bool) -> Self {
        if takes { Verdict::Take } else { Verdict::Pass }
    }
}

/// Memory that walks use again.
#[derive(Debug, Default)]
pub struct Scratch {
    visited: Met,
    pool: Pool,
    /// What a walk found, nearest first.
    sorted: Vec<Near>,
    /// Nodes scored in the last walk.
    scored: usize,
    /// A node that the next walk does not see.
    without: Option<u32>,
}

impl Scratch {
    /// What the last walk found, nearest first.
    pub fn found(&self) -> &[Near] {
        &self.sorted
    }

    /// How many nodes the last walk scored.
    pub fn scored(&self) -> usize {
        self.scored
    }
}

/// The nodes that a walk keeps, nearest first: those that were taken, at most `ef`, and those that are walked through.
/// Nothing lies behind the last one that was taken once there are `ef`. Sorted lists of a few hundred numbers are
/// faster than two heaps: a node is put in its place once, and none is ever taken out from the front.
#[derive(Debug, Default)]
struct Pool {
    nodes: Vec<Near>,
    /// For each node, whether its links are still to be looked at, and whether it was taken.
    marks: Vec<u8>,
    taken: usize,
    ef: usize,
    /// No node before this place is open.
    cursor: usize,
}

const OPEN: u8 = 1;
const TAKEN: u8 = 2;

impl Pool {
    fn begin(&mut self, ef: usize) {
        self.nodes.clear();
        self.marks.clear();
        (self.taken, self.ef, self.cursor) = (0, ef, 0);
    }

    /// Whether a node would be kept.
    #[inline]
    fn admits(&self, near: Near) -> bool {
        self.taken < self.ef || self.nodes.last().is_some_and(|last| *last < near)
    }

    /// Puts a node in its place, with what became of it; says whether the walk goes on.
    fn put(&mut self, near: Near, verdict: Verdict) -> bool {
        let mark = match verdict {
            Verdict::Take => OPEN | TAKEN,
            Verdict::Pass => OPEN,
            Verdict::Stop => return false,
        };
        let at = self.nodes.partition_point(|other| *other > near);
        self.nodes.insert(at, near);
        self.marks.insert(at, mark);
        self.cursor = self.cursor.min(at);
        self.taken += usize::from(mark & TAKEN != 0);
        if self.taken > self.ef {
            self.drop_last();
        }
        while self.taken == self.ef && self.marks.last().is_some_and(|mark| mark & TAKEN == 0) {
            self.drop_last();
        }
        true
    }

    fn drop_last(&mut self) {
        self.nodes.pop();
        self.taken -= usize::from(self.marks.pop().is_some_and(|mark| mark & TAKEN != 0));
    }

    /// The nearest node that is open, which it closes.
    #[inline]
    fn next(&mut self) -> Option<Near> {
        let rest = self.marks.get_mut(self.cursor..)?;
        let ahead = rest.iter().position(|mark| mark & OPEN != 0)?;
        *rest.get_mut(ahead)? &= !OPEN;
        self.cursor += ahead + 1;
        self.nodes.get(self.cursor - 1).copied()
    }

    /// The open node that comes next as it stands.
    #[inline]
    fn peek(&self) -> Option<Near> {
        let rest = self.marks.get(self.cursor..)?;
        let ahead = rest.iter().position(|mark| mark & OPEN != 0)?;
        self.nodes.get(self.cursor + ahead).copied()
    }

    fn list_taken(&self, sorted: &mut Vec<Near>) {
        sorted.clear();
        let taken = self.nodes.iter().zip(&self.marks).filter(|(_, mark)| **mark & TAKEN != 0);
        sorted.extend(taken.map(|(near, _)| *near));
    }
}

impl Graph {
    /// Looks for the `ef` nearest nodes that `accept` takes; they stand in [`Scratch::found`]. `accept` is asked once
    /// for a node, and only for one that would get in.
    pub fn search<P: Points + ?Sized>(
        &self,
        points: &P,
        probe: Probe<'_>,
        ef: usize,
        scratch: &mut Scratch,
        accept: impl FnMut(u32) -> Verdict,
    ) {
        scratch.sorted.clear();
        scratch.scored = 0;
        let starts = self.approach(points, probe, 0, scratch);
        self.search_level(points, probe, &starts, (ef, 0), scratch, accept);
    }

    /// Where a walk on a level begins: at the nearest nodes of the level above it. One alone, found greedily, lies on
    /// the wrong side of a gap between two regions often enough to cost recall that no length of a list brings back.
    pub(super) fn approach<P: Points + ?Sized>(
        &self,
        points: &P,
        probe: Probe<'_>,
        level: usize,
        scratch: &mut Scratch,
    ) -> Vec<Near> {
        let Some(start) = self.start(points, probe) else { return Vec::new() };
        let start = self.descend(points, probe, start, level + 1, scratch);
        if self.entry().and_then(|entry| self.level(entry)).is_none_or(|top| usize::from(top) <= level) {
            return vec![start];
        }
        let bounds = (STARTS, level + 1);
        self.search_level(points, probe, &[start], bounds, scratch, |_| Verdict::Take);
        scratch.sorted.clone()
    }

    /// As [`Graph::search`] for the code of a node, as if that node were not there. It must not be the entry.
    pub fn search_without<P: Points + ?Sized>(
        &self,
        points: &P,
        slot: u32,
        ef: usize,
        scratch: &mut Scratch,
        accept: impl FnMut(u32) -> Verdict,
    ) {
        scratch.without = Some(slot);
        self.search(points, points.probe(slot), ef, scratch, accept);
        scratch.without = None;
    }

    /// The entry with its score.
    pub(super) fn start<P: Points + ?Sized>(&self, points: &P, probe: Probe<'_>) -> Option<Near> {
        let mut start = None;
        score_each(points, probe, &[self.entry()?], |near| start = Some(near));
        start
    }

    /// Goes from `start` to the nearest node of each level above `bottom`, from the highest on.
    pub(super) fn descend<P: Points + ?Sized>(
        &self,
        points: &P,
        probe: Probe<'_>,
        start: Near,
        bottom: usize,
        scratch: &mut Scratch,
    ) -> Near {
        let top = self.entry().and_then(|entry| self.level(entry)).map_or(0, usize::from);
        let mut best = start;
        for level in (bottom + 1..=top).rev() {
            loop {
                let before = best;
                let links = self.links(before.slot(), level);
                scratch.scored += links.len();
                score_each(points, probe, links, |near| best = best.max(near));
                if best == before {
                    break;
                }
            }
        }
        best
    }

    /// The `ef` nearest on one level, beginning at `starts`; they stand in [`Scratch::found`].
    pub(super) fn search_level<P: Points + ?Sized>(
        &self,
        points: &P,
        probe: Probe<'_>,
        starts: &[Near],
        (ef, level): (usize, usize),
        scratch: &mut Scratch,
        mut accept: impl FnMut(u32) -> Verdict,
    ) {
        let Scratch { visited, pool, sorted, scored, without } = scratch;
        visited.begin(self.slots());
        pool.begin(ef);
        let mut goes_on = true;
        if let Some(without) = *without {
            visited.meet(without);
        }
        for &start in starts {
            if visited.meet(start.slot()) && pool.admits(start) {
                goes_on &= pool.put(start, accept(start.slot()));
            }
        }
        let mut fresh = [0_u32; GRAPH_M0];
        while let Some(nearest) = pool.next().filter(|_| goes_on) {
            if level == 0
                && let Some(next) = pool.peek()
            {
                prefetch(self.list(next.slot()));
            }
            let mut count = 0;
            for &slot in self.links(nearest.slot(), level) {
                if let Some(place) = fresh.get_mut(count) {
                    *place = slot;
                }
                count += usize::from(visited.meet(slot));
            }
            let (fresh, _) = fresh.split_at(count);
            *scored += count;
            score_each(points, probe, fresh, |near| {
                if pool.admits(near) {
                    goes_on &= pool.put(near, accept(near.slot()));
                }
            });
        }
        pool.list_taken(sorted);
    }
}
