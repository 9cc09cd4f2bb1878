//! Which memories are summarized together?

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::error::Result;
use crate::hygiene::gc::candidates::{Candidate, Candidates, GroupKey};
use crate::model::{GroupState, MemoryId, Time};
use crate::policy::{Gc, Policy};
use crate::store::{GroupRow, NsId, PartId, Snapshot, Stamp};

/// How much a plan and its groups may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupLimits {
    /// Largest number of tokens of the plan.
    pub(crate) plan_tokens: u64,
    /// The number of tokens that suits the writer of the summaries.
    pub(crate) group_tokens: Option<u64>,
}

/// The plans of a namespace one after the other, each without what those before it take.
pub(crate) struct Plans {
    candidates: Candidates,
    limits: GroupLimits,
    /// What was made of the candidates for the plans before; none where more was read since.
    waiting: Option<Waiting>,
}

impl Plans {
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn of(
        rows: &Snapshot,
        (ns, now): (NsId, Time),
        policy: Policy,
        taken: &BTreeSet<MemoryId>,
        limits: GroupLimits,
    ) -> Result<Self> {
        Ok(Plans { candidates: Candidates::of(rows, ns, now, policy, taken)?, limits, waiting: None })
    }

    /// Whether the memories of groups may be summarized still, and are as they were when they were read.
    ///
    /// # Errors
    /// `Corrupted`, where more than single rows is damaged.
    pub(crate) fn are_as_read(&self, rows: &Snapshot, now: Time, groups: &[GroupRow]) -> Result<bool> {
        self.candidates.are_as_read(rows, now, groups)
    }

    /// The number of memories that were looked at so far and can't be read. They are in no group.
    pub(crate) fn damaged(&self) -> u64 {
        self.candidates.damaged()
    }

    /// The groups of the next plan: the oldest of the namespace, within the bounds of the policy and of the plan. Memories are read until
    /// no younger one could change the plan. None where nothing is left to summarize.
    ///
    /// # Errors
    /// `Corrupted`, where more than single rows is damaged.
    pub(crate) fn groups(&mut self, rows: &Snapshot) -> Result<Vec<GroupRow>> {
        loop {
            let is_new = self.waiting.is_none();
            if is_new {
                self.candidates.leave_out_taken();
            }
            let gc = &self.candidates.policy().gc;
            let mut waiting = self.waiting.take().unwrap_or_else(|| {
                let (found, next) = self.candidates.found();
                Waiting::of(found, gc, self.limits, next)
            });
            match waiting.plan(gc, self.limits) {
                // Groups are made of all that is left, once more: what was too little for a group in several of them can be
                // enough for one together.
                Some(groups) if groups.is_empty() && !is_new => {}
                Some(groups) => {
                    self.candidates.take(&groups);
                    self.waiting = Some(waiting);
                    return Ok(groups);
                }
                None => self.candidates.read(rows)?,
            }
        }
    }
}

/// Groups that no plan has yet, in the order of their oldest members, each in the parts that suit the writer of the summaries.
struct Waiting {
    parts: VecDeque<Members>,
    /// Whether behind them stand groups that a memory which was not read yet can still join or make.
    goes_on: bool,
}

impl Waiting {
    fn of(all: &[Candidate], gc: &Gc, limits: GroupLimits, next: Option<Time>) -> Self {
        let mut parts = VecDeque::new();
        let gc = &Gc { max_tokens: gc.max_tokens.min(limits.plan_tokens), ..gc.clone() };
        for group in grouped(all, gc, next) {
            if group.goes_on {
                return Waiting { parts, goes_on: true };
            }
            let divided = group.divided(limits.group_tokens, gc.min_group as usize).into_iter();
            // A memory that alone is too much for a plan would keep all others from theirs.
            let fits = |part: &Members| {
                part.sources.len() >= gc.min_group as usize && part.tokens <= limits.plan_tokens
            };
            parts.extend(divided.filter(fits));
        }
        Waiting { parts, goes_on: next.is_some() }
    }

    /// Takes the first groups, as many as a plan has; none as long as a younger memory could change them.
    fn plan(&mut self, gc: &Gc, limits: GroupLimits) -> Option<Vec<GroupRow>> {
        let (mut plan, mut left) = (Vec::new(), limits.plan_tokens);
        while plan.len() < gc.max_groups as usize {
            // The first group that is too much for the plan ends it: a later one is younger.
            if self.parts.front().is_some_and(|part| part.tokens > left) {
                break;
            }
            let Some(part) = self.parts.pop_front() else {
                return Some(plan).filter(|_| !self.goes_on);
            };
            left -= part.tokens;
            plan.push(part.planned());
        }
        Some(plan)
    }
}

/// Groups in the order of their oldest members. `next` is the instant of the oldest memory that was not read: from it on a
/// memory can still join a group, or make one.
fn grouped(all: &[Candidate], gc: &Gc, next: Option<Time>) -> Vec<Members> {
    let mut groups: Vec<Members> = Vec::new();
    // What was told of one owner is never told as that of another.
    let mut open: HashMap<(PartId, &str, &GroupKey), usize> = HashMap::new();
    for Candidate { stamp, part, owner, tokens, key, .. } in all {
        let new = groups.len();
        let at = open.entry((*part, owner, key)).or_insert(new);
        let fits =
            |group: &Members| group.has_room(gc) && group.tokens.saturating_add(*tokens) <= gc.max_tokens;
        if groups.get(*at).is_none_or(|group| !fits(group)) {
            *at = new;
            groups.push(Members::none_of(*part));
        }
        if let Some(group) = groups.get_mut(*at) {
            group.push(*stamp, *tokens);
        }
    }
    for ((.., key), at) in open {
        if let Some(group) = groups.get_mut(at) {
            group.goes_on = group.has_room(gc) && next.is_some_and(|next| key.goes_on_at(next));
        }
    }
    groups
}

/// Memories of one group, each with its tokens.
struct Members {
    part: PartId,
    sources: Vec<(Stamp, u64)>,
    tokens: u64,
    /// Whether a memory that was not read yet can join.
    goes_on: bool,
}

impl Members {
    fn none_of(part: PartId) -> Self {
        Members { part, sources: Vec::new(), tokens: 0, goes_on: false }
    }

    fn push(&mut self, stamp: Stamp, tokens: u64) {
        self.sources.push((stamp, tokens));
        self.tokens += tokens;
    }

    fn has_room(&self, gc: &Gc) -> bool {
        self.sources.len() < gc.max_sources as usize && self.tokens < gc.max_tokens
    }

    /// Parts of about equal length, as many as come nearest to a number of tokens. Equal parts leave no short rest, whose
    /// summary would be nearly as long as itself. Long memories make longer parts, so that each has at least `least` of them.
    fn divided(self, group_tokens: Option<u64>, least: usize) -> Vec<Members> {
        let whole = self.tokens;
        let parts = group_tokens.map_or(1, |each| ((whole + each / 2) / each.max(1)).max(1));
        let mut all: Vec<Members> = Vec::new();
        let (mut before, mut last) = (0, None);
        for (stamp, tokens) in self.sources {
            // The part in which the middle of the memory lies.
            let middle = before + tokens / 2;
            let at = (u128::from(middle) * u128::from(parts) / u128::from(whole.max(1)))
                .min(u128::from(parts - 1));
            before += tokens;
            if last != Some(at) && all.last().is_none_or(|part| part.sources.len() >= least) {
                all.push(Members::none_of(self.part));
            }
            if let Some(part) = all.last_mut() {
                part.push(stamp, tokens);
            }
            last = Some(at);
        }
        if let Some(rest) = all.pop_if(|rest| rest.sources.len() < least) {
            match all.last_mut() {
                Some(before) => {
                    rest.sources.into_iter().for_each(|(stamp, tokens)| before.push(stamp, tokens))
                }
                None => all.push(rest),
            }
        }
        all
    }

    fn planned(self) -> GroupRow {
        GroupRow {
            state: GroupState::Planned,
            part: self.part.0,
            tokens: self.tokens,
            sources: self.sources.into_iter().map(|(stamp, _)| stamp).collect(),
            summary: None,
            digest: None,
            run: None,
            removed: 0,
            skipped: Vec::new(),
            guard: [0; 3],
            refusal: None,
            reason: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A memory by its instant, its sort of key, which of those keys it has, and its tokens.
    type Made = (i64, u8, u8, u64);

    fn candidate(number: usize, (at, sort, which, tokens): Made) -> Candidate {
        let id = |number: usize| MemoryId::from_bytes((number as u128).to_be_bytes());
        let name = which.to_string();
        let key = match sort {
            0 => GroupKey::Family(vec![which]),
            1 => GroupKey::Thread(name),
            // Days of ten instants.
            2 => GroupKey::ChannelDay(Some(name), at / 10),
            _ => GroupKey::Alone(id(number)),
        };
        Candidate {
            stamp: Stamp { id: id(number), version: 1, access_seq: 0, at_ms: at },
            part: PartId(u32::from(which % 2)),
            owner: String::new(),
            created_at: Time::from_millis(at * 8_640_000),
            inclusion: 0.0,
            tokens,
            key,
        }
    }

    fn planned(all: &[Candidate], gc: &Gc, limits: GroupLimits, next: Option<Time>) -> Option<Vec<GroupRow>> {
        Waiting::of(all, gc, limits, next).plan(gc, limits)
    }

    proptest! {
        /// What is planned of the oldest memories is what is planned of all, or nothing yet.
        #[test]
        fn a_plan_of_the_oldest_is_the_plan_of_all(
            mut made in prop::collection::vec((0_i64..60, 0_u8..4, 0_u8..3, 0_u64..30), 0..80),
            max_groups in 1_u32..5, max_sources in 2_u32..6, max_tokens in 20_u64..80, min_group in 1_u32..4,
            plan_tokens in 10_u64..300, group_tokens in prop::option::of(10_u64..40),
        ) {
            made.sort_unstable();
            let all: Vec<Candidate> = (0..).zip(made).map(|(number, made)| candidate(number, made)).collect();
            let gc = Gc { max_groups, max_sources, max_tokens, min_group, ..Policy::default().gc };
            let limits = GroupLimits { plan_tokens, group_tokens };
            let whole = planned(&all, &gc, limits, None).unwrap();
            prop_assert!(whole.len() <= max_groups as usize);
            for read in 0..all.len() {
                // Memories of one instant are read together.
                let next = all[read].created_at;
                if read > 0 && all[read - 1].created_at == next {
                    continue;
                }
                if let Some(early) = planned(&all[..read], &gc, limits, Some(next)) {
                    prop_assert_eq!(&early, &whole, "after {} of {}", read, all.len());
                }
            }
        }
    }

    #[test]
    fn a_plan_ends_with_what_it_takes() {
        let all: Vec<Candidate> = (0..40).map(|at| candidate(at as usize, (at, 2, 0, 1))).collect();
        let gc = Gc { max_groups: 2, ..Policy::default().gc };
        let limits = GroupLimits { plan_tokens: 1_000, group_tokens: None };
        let early = |read: usize| planned(&all[..read], &gc, limits, Some(all[read].created_at));
        assert_eq!(early(19), None, "the second day goes on");
        assert_eq!(early(20).unwrap().len(), 2);
    }
}
