//! Which memories did searches find since the last commit?

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;
use parking_lot::Mutex;

use crate::hygiene::queries::Queries;
use crate::model::{Access, MemoryId, Time};
use crate::policy::Policy;
use crate::store::NsId;

/// The retrievals of one memory that no commit holds yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Noted {
    retrievals: u64,
    /// Sum of the relevances, each 0 to 1.
    sum: f64,
    /// Number of the retrievals that had a relevance.
    scored: u64,
    /// Highest relevance.
    max: f32,
    /// The latest retrieval.
    pub(super) last: Time,
    /// The latest step of the host at which it was retrieved.
    step: Option<u64>,
}

impl Noted {
    /// One retrieval; a relevance outside 0 to 1 counts as the nearer end.
    pub(crate) fn one(at: Time, relevance: Option<f32>, step: Option<u64>) -> Self {
        let relevance = relevance.filter(|relevance| !relevance.is_nan()).map(|given| given.clamp(0.0, 1.0));
        let max = relevance.unwrap_or_default();
        Noted {
            retrievals: 1,
            sum: f64::from(max),
            scored: u64::from(relevance.is_some()),
            max,
            last: at,
            step,
        }
    }

    fn join(&mut self, more: Noted) {
        self.retrievals += more.retrievals;
        self.sum += more.sum;
        self.scored += more.scored;
        self.max = self.max.max(more.max);
        self.last = self.last.max(more.last);
        self.step = self.step.max(more.step);
    }

    /// Whether one of the retrievals answered so well that it protects the memory from pruning for a while, or they are so
    /// many by now.
    pub(super) fn protects(&self, retrievals: u64, policy: &Policy) -> bool {
        let least = policy.protect.retrievals;
        (least > 0 && retrievals >= least) || f64::from(self.max) > policy.prune.protect_relevance
    }

    /// Counts the retrievals in the statistics of the memory.
    pub(super) fn count_in(&self, access: &mut Access) {
        access.retrieval_count = access.retrieval_count.saturating_add(self.retrievals);
        access.relevance_score_sum += self.sum;
        access.relevance_score_count = access.relevance_score_count.saturating_add(self.scored);
        access.relevance_max = access.relevance_max.max(self.max);
        access.last_retrieved = access.last_retrieved.max(Some(self.last));
        access.last_retrieved_step = access.last_retrieved_step.max(self.step);
        access.access_seq = access.access_seq.saturating_add(self.retrievals);
    }
}

/// A memory of a namespace.
type Place = (NsId, MemoryId);

#[derive(Debug, Default)]
struct State {
    /// By namespace.
    noted: BTreeMap<NsId, HashMap<MemoryId, Noted, RandomState>>,
    /// Memories of all namespaces.
    count: usize,
    /// Retrievals that were given up since the handle was opened.
    dropped: u64,
    /// How many memories the writes so far may still count.
    earned: usize,
    /// Memories whose turn comes, the last of them first. When their turn is over, those that were noted meanwhile have theirs,
    /// so each memory has its turn however few are taken at a time.
    turns: Vec<Place>,
}

/// The accesses that a handle has noted and that no commit holds yet. Accesses of one memory are joined. A crash loses them.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    state: Mutex<State>,
    /// The queries that are to be kept.
    pub(crate) queries: Arc<Queries>,
}

impl Accesses {
    /// Notes retrievals of a namespace. A memory beyond the first `most` is given up and counted.
    pub(crate) fn note(
        &self,
        ns: NsId,
        most: usize,
        retrievals: impl IntoIterator<Item = (MemoryId, Noted)>,
    ) {
        self.state.lock().add(ns, retrievals, most);
    }

    /// What is noted of a memory.
    pub(crate) fn of(&self, ns: NsId, id: MemoryId) -> Option<Noted> {
        self.state.lock().noted.get(&ns)?.get(&id).copied()
    }

    /// Number of memories of which something is noted: in a namespace, or in all.
    pub(crate) fn len(&self, ns: Option<NsId>) -> usize {
        let state = self.state.lock();
        ns.map_or(state.count, |ns| state.noted.get(&ns).map_or(0, HashMap::len))
    }

    /// Number of memories, or of queries if they are more, that wait for a commit.
    pub(crate) fn waiting(&self) -> usize {
        self.len(None).max(self.queries.len(None))
    }

    /// How many memories a write counts, which earns `each` of them: all that wait, or `at_once` when so many are earned. To count many
    /// at once costs less, because neighbouring rows share pages and one row of the journal tells of all.
    pub(crate) fn earn(&self, each: usize, at_once: usize) -> usize {
        let waiting = self.waiting();
        let earned = &mut self.state.lock().earned;
        *earned = (*earned + each).min(at_once);
        if *earned < waiting.min(at_once) {
            return 0;
        }
        std::mem::take(earned)
    }

    /// Retrievals that were given up since the handle was opened.
    pub(crate) fn dropped(&self) -> u64 {
        self.state.lock().dropped
    }

    /// The memories of a namespace of which something is noted, by id.
    pub(crate) fn ids(&self, ns: NsId) -> Vec<MemoryId> {
        let mut ids: Vec<_> =
            self.state.lock().noted.get(&ns).into_iter().flat_map(HashMap::keys).copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Hands out what is noted of at most `most` memories of all namespaces, whose turn it is.
    pub(crate) fn take(self: &Arc<Self>, most: usize) -> Taken {
        let mut entries = self.state.lock().take_turns(most);
        // Neighbouring rows are written one after the other.
        entries.sort_unstable_by_key(|(place, _)| *place);
        Taken { from: Arc::clone(self), entries }
    }

    /// Hands out what is noted of memories of a namespace, which are given by id.
    pub(crate) fn take_of(self: &Arc<Self>, ns: NsId, ids: impl IntoIterator<Item = MemoryId>) -> Taken {
        let mut state = self.state.lock();
        let entries = ids.into_iter().filter_map(|id| state.remove((ns, id))).collect();
        Taken { from: Arc::clone(self), entries }
    }
}

impl State {
    /// Joins what is noted of memories of a namespace. A memory beyond the first `most` is given up and counted.
    fn add(&mut self, ns: NsId, all: impl IntoIterator<Item = (MemoryId, Noted)>, most: usize) {
        let of_namespace = self.noted.entry(ns).or_default();
        for (id, one) in all {
            match of_namespace.entry(id) {
                Entry::Occupied(mut known) => known.get_mut().join(one),
                Entry::Vacant(free) if self.count < most => {
                    free.insert(one);
                    self.count += 1;
                }
                Entry::Vacant(_) => self.dropped += one.retrievals,
            }
        }
    }

    fn take_turns(&mut self, most: usize) -> Vec<(Place, Noted)> {
        let mut taken = Vec::with_capacity(most.min(self.count));
        while taken.len() < most && self.count > 0 {
            if self.turns.is_empty() {
                let all = self.noted.iter().flat_map(|(ns, noted)| noted.keys().map(|id| (*ns, *id)));
                self.turns.extend(all);
                self.turns.sort_unstable_by(|a, b| b.cmp(a));
            }
            let turn = self.turns.pop();
            taken.extend(turn.and_then(|place| self.remove(place)));
        }
        taken
    }

    fn remove(&mut self, place: Place) -> Option<(Place, Noted)> {
        let of_namespace = self.noted.get_mut(&place.0)?;
        let noted = of_namespace.remove(&place.1)?;
        self.count -= 1;
        if of_namespace.is_empty() {
            self.noted.remove(&place.0);
        }
        Some((place, noted))
    }
}

/// Accesses that a transaction is to count. What no commit took over goes back when this goes.
#[derive(Debug)]
pub(crate) struct Taken {
    from: Arc<Accesses>,
    entries: Vec<(Place, Noted)>,
}

impl Taken {
    /// The namespaces of the memories, ascending, each with its memories by id.
    pub(crate) fn by_namespace(&self) -> impl Iterator<Item = (NsId, &[(Place, Noted)])> {
        self.entries.chunk_by(|a, b| a.0.0 == b.0.0).filter_map(|all| Some((all.first()?.0.0, all)))
    }

    /// Whether there is nothing to count.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of memories.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Takes the first of them out.
    pub(crate) fn split(&mut self, most: usize) -> Taken {
        let entries = self.entries.drain(..most.min(self.entries.len())).collect();
        Taken { from: Arc::clone(&self.from), entries }
    }

    /// Puts in front what was taken out.
    pub(crate) fn put_back(&mut self, mut first: Taken) {
        self.entries.splice(..0, first.entries.drain(..));
    }

    /// A commit holds the accesses.
    pub(crate) fn is_committed(&mut self) {
        self.entries.clear();
    }

    /// No commit can hold the accesses: they are given up and counted.
    pub(crate) fn give_up(&mut self) {
        let lost: u64 = self.entries.drain(..).map(|(_, noted)| noted.retrievals).sum();
        self.from.state.lock().dropped += lost;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.entries.is_empty() {
            return;
        }
        let mut state = self.from.state.lock();
        for ((ns, id), one) in self.entries.drain(..) {
            // They had their room before, so the bound does not apply.
            state.add(ns, [(id, one)], usize::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: NsId = NsId(1);

    fn id(number: u8) -> MemoryId {
        MemoryId::from_bytes([number; 16])
    }

    fn at(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    fn noted(all: &Accesses, number: u8) -> Option<u64> {
        all.of(NS, id(number)).map(|noted| noted.retrievals)
    }

    #[test]
    fn v299_repeats_are_joined_and_a_full_buffer_drops_and_counts() {
        let all = Accesses::default();
        for (millis, number) in [1, 1, 2, 3, 4, 5].into_iter().enumerate() {
            all.note(NS, 4, [(id(number), Noted::one(at(millis as i64), Some(0.5), None))]);
        }
        assert_eq!(
            (1..=5).map(|number| noted(&all, number)).collect::<Vec<_>>(),
            [Some(2), Some(1), Some(1), Some(1), None]
        );
        assert_eq!((all.len(None), all.dropped()), (4, 1));
        let mut access = Access::default();
        all.of(NS, id(1)).unwrap().count_in(&mut access);
        assert_eq!((access.retrieval_count, access.access_seq), (2, 2));
        assert_eq!((access.relevance_score_sum, access.relevance_score_count), (1.0, 2));
        assert_eq!(access.last_retrieved, Some(at(1)));
    }

    #[test]
    fn v155_a_relevance_out_of_range_counts_as_the_nearer_end() {
        for (given, sum, scored) in
            [(Some(1.7), 1.0, 1), (Some(-0.3), 0.0, 1), (None, 0.0, 0), (Some(f32::NAN), 0.0, 0)]
        {
            let mut access = Access::default();
            Noted::one(at(1), given, None).count_in(&mut access);
            assert_eq!(
                (access.relevance_score_sum, access.relevance_score_count),
                (sum, scored),
                "{given:?}"
            );
        }
    }

    #[test]
    fn each_memory_has_its_turn() {
        let all = Arc::new(Accesses::default());
        let note = |number| all.note(NS, 9, [(id(number), Noted::one(at(1), None, None))]);
        let take = || {
            let mut taken = all.take(2);
            let numbers: Vec<u8> = taken.entries.iter().map(|((_, id), _)| id.as_bytes()[0]).collect();
            taken.is_committed();
            numbers
        };
        (1..=5).for_each(note);
        assert_eq!(take(), [1, 2]);
        // Those that come again wait behind those that wait already.
        (1..=2).for_each(note);
        assert_eq!([take(), take(), take(), take()], [vec![3, 4], vec![1, 5], vec![2], vec![]]);
    }

    #[test]
    fn a_write_counts_few_at_once_and_many_by_and_by() {
        let all = Arc::new(Accesses::default());
        let note = |numbers: std::ops::RangeInclusive<u8>| {
            all.note(NS, 99, numbers.map(|number| (id(number), Noted::one(at(1), None, None))));
        };
        let write = |_| {
            let mut taken = all.take(all.earn(2, 8));
            let counted = taken.len();
            taken.is_committed();
            counted
        };
        note(1..=2);
        assert_eq!(write(0), 2);
        note(1..=20);
        assert_eq!(Vec::from_iter((0..12).map(write)), [0, 0, 0, 8, 0, 0, 0, 8, 0, 4, 0, 0]);
    }

    #[test]
    fn what_no_commit_took_over_goes_back() {
        let all = Arc::new(Accesses::default());
        for number in 1..=3 {
            all.note(NS, 3, [(id(number), Noted::one(at(1), None, None))]);
        }
        all.note(NsId(2), 9, [(id(1), Noted::one(at(1), None, None))]);
        let taken = all.take_of(NS, [id(1), id(2), id(7)]);
        assert_eq!((all.len(Some(NS)), all.len(None)), (1, 2));
        all.note(NS, 3, [(id(1), Noted::one(at(9), None, None))]);
        drop(taken);
        assert_eq!((noted(&all, 1), all.len(Some(NS))), (Some(2), 3));
        let mut taken = all.take(9);
        assert_eq!(
            taken.by_namespace().map(|(ns, rows)| (ns, rows.len())).collect::<Vec<_>>(),
            [(NS, 3), (NsId(2), 1)]
        );
        taken.is_committed();
        drop(taken);
        assert_eq!((all.len(None), all.dropped()), (0, 0));
        all.note(NS, 3, [(id(1), Noted::one(at(1), None, None))]);
        all.take(9).give_up();
        assert_eq!((all.len(None), all.dropped()), (0, 1));
    }
}
