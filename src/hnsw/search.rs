//! The walk: from the entry down the levels, then outwards on one of them.

use std::collections::BinaryHeap;

use super::graph::Graph;
use super::near::{Near, Points, Probe, score_each};
use super::visited::VisitedSet;
use crate::limits::GRAPH_M0;
use crate::vector::prefetch;

/// The number of nodes of the level above at which a walk begins.
const STARTS: usize = 16;

/// Where a walk goes outwards, and how many nodes it keeps.
#[derive(Clone, Copy)]
pub(super) struct LevelBounds {
    pub(super) ef: usize,
    pub(super) level: usize,
}

/// What a walk does with a node that it has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The node may be among the results.
    Take,
    /// The node may not be a result, but the walk passes through it.
    Pass,
    /// The walk ends here, and the caller goes on without the rest.
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
    visited: VisitedSet,
    pool: Pool,
    /// The results of a walk, nearest first.
    sorted: Vec<Near>,
    /// The number of nodes scored in the last walk.
    scored: usize,
    /// A node that the next walk ignores.
    without: Option<u32>,
}

impl Scratch {
    /// The results of the last walk, nearest first.
    pub fn found(&self) -> &[Near] {
        &self.sorted
    }

    /// The number of nodes that the last walk scored.
    pub fn scored(&self) -> usize {
        self.scored
    }
}

/// The nodes that a walk keeps. Taken nodes, at most `ef`, lie nearest first in a sorted list. For a few hundred
/// numbers a sorted list is faster than a heap, because each node is placed once and none is ever removed from the
/// front. The number of nodes that a walk passes through has no bound, so open nodes of that sort lie in a heap.
#[derive(Debug, Default)]
struct Pool {
    taken: Vec<Near>,
    /// For each taken node, whether its links are still to be read.
    open: Vec<bool>,
    passed: BinaryHeap<Near>,
    ef: usize,
    /// No node before this place is open.
    cursor: usize,
}

impl Pool {
    fn begin(&mut self, ef: usize) {
        self.taken.clear();
        self.open.clear();
        self.passed.clear();
        (self.ef, self.cursor) = (ef, 0);
    }

    /// Whether a node would be kept.
    #[inline]
    fn admits(&self, near: Near) -> bool {
        self.taken.len() < self.ef || self.taken.last().is_some_and(|last| *last < near)
    }

    /// Puts a node in its place, with the verdict on it. Returns whether the walk goes on.
    fn put(&mut self, near: Near, verdict: Verdict) -> bool {
        match verdict {
            Verdict::Take => {
                let at = self.taken.partition_point(|other| *other > near);
                self.taken.insert(at, near);
                self.open.insert(at, true);
                self.cursor = self.cursor.min(at);
                self.taken.truncate(self.ef);
                self.open.truncate(self.ef);
            }
            Verdict::Pass => self.passed.push(near),
            Verdict::Stop => return false,
        }
        true
    }

    /// The place of the nearest taken node that is open.
    #[inline]
    fn ahead(&self) -> Option<(usize, Near)> {
        let ahead = self.open.get(self.cursor..)?.iter().position(|open| *open)?;
        let at = self.cursor + ahead;
        Some((at, *self.taken.get(at)?))
    }

    /// The nearest open node, which is closed by this call.
    #[inline]
    fn next(&mut self) -> Option<Near> {
        let own = self.ahead();
        let passed = self.passed.peek().copied().filter(|near| self.admits(*near));
        if let Some(passed) = passed.filter(|passed| own.is_none_or(|(_, own)| own < *passed)) {
            self.passed.pop();
            return Some(passed);
        }
        let (at, near) = own?;
        *self.open.get_mut(at)? = false;
        self.cursor = at + 1;
        Some(near)
    }

    /// The open node that probably comes next.
    #[inline]
    fn peek(&self) -> Option<Near> {
        self.ahead().map(|(_, near)| near).max(self.passed.peek().copied())
    }
}

impl Graph {
    /// Finds the `ef` nearest nodes that `accept` takes. They stand in [`Scratch::found`]. `accept` is asked only
    /// about a node that would get in, and once for a node without twins. A node and its twins are one place of the
    /// list. So a crowd of equal codes does not fill the list and end the walk.
    pub fn search<P: Points + ?Sized>(
        &self,
        points: &P,
        probe: Probe<'_>,
        ef: usize,
        scratch: &mut Scratch,
        mut accept: impl FnMut(u32) -> Verdict,
    ) {
        scratch.sorted.clear();
        scratch.scored = 0;
        let starts = self.approach(points, probe, 0, scratch);
        if !self.has_twins() {
            self.search_level(points, probe, &starts, LevelBounds { ef, level: 0 }, scratch, accept);
            return;
        }
        self.search_level(points, probe, &starts, LevelBounds { ef, level: 0 }, scratch, |slot| {
            let members = std::iter::once(&slot).chain(self.twins(slot));
            members
                .map(|member| accept(*member))
                .find(|verdict| *verdict != Verdict::Pass)
                .unwrap_or(Verdict::Pass)
        });
        self.unfold(ef, scratch, accept);
    }

    /// Replaces each node by those of the node and its twins that `accept` takes, at most `ef` in all.
    fn unfold(&self, ef: usize, scratch: &mut Scratch, mut accept: impl FnMut(u32) -> Verdict) {
        let mut all = Vec::with_capacity(scratch.sorted.len());
        for &near in &scratch.sorted {
            let twins = self.twins(near.slot());
            if all.len() >= ef {
                break;
            }
            if twins.is_empty() {
                all.push(near);
                continue;
            }
            for &member in std::iter::once(&near.slot()).chain(twins) {
                match accept(member) {
                    Verdict::Take => all.push(Near::new(near.score(), member)),
                    Verdict::Pass => {}
                    Verdict::Stop => break,
                }
                if all.len() >= ef {
                    break;
                }
            }
        }
        // Twins share the score of their host but not its slot, so the order among equal scores is made anew.
        all.sort_unstable_by(|a, b| b.cmp(a));
        scratch.sorted = all;
    }

    /// The nodes at which a walk on a level begins: the nearest nodes of the level above. A single node, found
    /// greedily, lies on the wrong side of a gap between two regions often enough to cost recall that no length of a
    /// list brings back.
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
        let bounds = LevelBounds { ef: STARTS, level: level + 1 };
        self.search_level(points, probe, &[start], bounds, scratch, |_| Verdict::Take);
        scratch.sorted.clone()
    }

    /// Like [`Graph::search`] for the code of a node, as if the node were absent. The node must not be the entry, nor
    /// have twins.
    pub fn search_without<P: Points + ?Sized>(
        &self,
        points: &P,
        slot: u32,
        ef: usize,
        scratch: &mut Scratch,
        mut accept: impl FnMut(u32) -> Verdict,
    ) {
        scratch.without = Some(slot);
        let accept = |found: u32| if found == slot { Verdict::Pass } else { accept(found) };
        self.search(points, points.probe(slot), ef, scratch, accept);
        // Later walks use the same scratch memory and must not ignore the node.
        scratch.without = None;
    }

    /// The entry with its score.
    pub(super) fn start<P: Points + ?Sized>(&self, points: &P, probe: Probe<'_>) -> Option<Near> {
        let mut start = None;
        score_each(points, probe, &[self.entry()?], |near| start = Some(near));
        start
    }

    /// Goes from `start` to the nearest node of each level above `bottom`, beginning at the highest level.
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

    /// The `ef` nearest nodes on one level, beginning at `starts`. They stand in [`Scratch::found`].
    pub(super) fn search_level<P: Points + ?Sized>(
        &self,
        points: &P,
        probe: Probe<'_>,
        starts: &[Near],
        bounds: LevelBounds,
        scratch: &mut Scratch,
        mut accept: impl FnMut(u32) -> Verdict,
    ) {
        let LevelBounds { ef, level } = bounds;
        let Scratch { visited, pool, sorted, scored, without } = scratch;
        visited.begin(self.slots());
        pool.begin(ef);
        let mut goes_on = true;
        // A node that counts as visited is never reached, so its links are never followed.
        if let Some(without) = *without {
            visited.insert(without);
        }
        for &start in starts {
            if visited.insert(start.slot()) && pool.admits(start) {
                goes_on &= pool.put(start, accept(start.slot()));
            }
        }
        // No list has more than `GRAPH_M0` links, so the buffer holds every link that was not visited.
        let mut fresh = [0_u32; GRAPH_M0];
        while let Some(nearest) = pool.next().filter(|_| goes_on) {
            if level == 0
                && let Some(next) = pool.peek()
            {
                prefetch(self.list(next.slot()));
            }
            let mut count = 0;
            for &slot in self.links(nearest.slot(), level) {
                // Each link is written, and the next one overwrites a visited link. That needs no branch on `visited`.
                if let Some(place) = fresh.get_mut(count) {
                    *place = slot;
                }
                count += usize::from(visited.insert(slot));
            }
            let (fresh, _) = fresh.split_at(count);
            *scored += count;
            score_each(points, probe, fresh, |near| {
                if pool.admits(near) {
                    goes_on &= pool.put(near, accept(near.slot()));
                }
            });
        }
        sorted.clone_from(&pool.taken);
    }
}
