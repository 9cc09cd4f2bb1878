//! Which memories are summarized together?

use std::collections::HashMap;

use crate::hygiene::gc::candidates::{Candidate, GroupKey};
use crate::model::GroupState;
use crate::policy::Gc;
use crate::store::{GroupRow, PartId, Stamp};

/// How much a plan and its groups may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupLimits {
    /// Largest number of tokens of the plan.
    pub(crate) plan_tokens: u64,
    /// The number of tokens that suits the writer of the summaries.
    pub(crate) group_tokens: Option<u64>,
}

/// Groups of candidates, the oldest first, within the bounds of the policy and of the plan.
pub(crate) fn groups(mut all: Vec<Candidate>, gc: &Gc, limits: GroupLimits) -> Vec<GroupRow> {
    all.sort_by(|a, b| {
        let by_time = a.created_at.cmp(&b.created_at);
        by_time.then(a.inclusion.total_cmp(&b.inclusion)).then(a.stamp.id.cmp(&b.stamp.id))
    });
    let mut found: Vec<Members> = Vec::new();
    // What was told of one owner is never told as that of another.
    let mut open: HashMap<(PartId, String, GroupKey), usize> = HashMap::new();
    for Candidate { stamp, part, owner, tokens, key, .. } in all {
        let next = found.len();
        let at = open.entry((part, owner, key)).or_insert(next);
        let fits = |group: &Members| {
            group.sources.len() < gc.max_sources as usize
                && group.tokens().saturating_add(tokens) <= gc.max_tokens
        };
        match found.get_mut(*at).filter(|group| fits(group)) {
            Some(group) => group.sources.push((stamp, tokens)),
            None => {
                *at = next;
                found.push(Members { part, sources: vec![(stamp, tokens)] });
            }
        }
    }
    let mut found: Vec<GroupRow> = found
        .into_iter()
        .flat_map(|group| group.divided(limits.group_tokens))
        .map(Members::planned)
        .collect();
    found.retain(|group| group.sources.len() >= gc.min_group as usize);
    let mut left = limits.plan_tokens;
    // The first group that is too much for the plan ends it: a later one is younger.
    let fits = |group: &GroupRow| {
        let fits = group.tokens <= left;
        left = left.saturating_sub(group.tokens);
        fits
    };
    found.into_iter().take(gc.max_groups as usize).take_while(fits).collect()
}

/// Memories of one group, each with its tokens.
struct Members {
    part: PartId,
    sources: Vec<(Stamp, u64)>,
}

impl Members {
    fn tokens(&self) -> u64 {
        self.sources.iter().map(|(_, tokens)| tokens).sum()
    }

    /// Parts of about equal length, as many as come nearest to a number of tokens. Equal parts leave no short rest, whose
    /// summary would be nearly as long as itself.
    fn divided(self, group_tokens: Option<u64>) -> Vec<Members> {
        let whole = self.tokens();
        let parts = group_tokens.map_or(1, |each| ((whole + each / 2) / each.max(1)).max(1));
        let mut all: Vec<Members> = Vec::new();
        let (mut before, mut last) = (0, None);
        for (stamp, tokens) in self.sources {
            // The part in which the middle of the memory lies.
            let middle = before + tokens / 2;
            let at = (u128::from(middle) * u128::from(parts) / u128::from(whole.max(1)))
                .min(u128::from(parts - 1));
            before += tokens;
            match all.last_mut().filter(|_| last == Some(at)) {
                Some(part) => part.sources.push((stamp, tokens)),
                None => all.push(Members { part: self.part, sources: vec![(stamp, tokens)] }),
            }
            last = Some(at);
        }
        all
    }

    fn planned(self) -> GroupRow {
        GroupRow {
            state: GroupState::Planned,
            part: self.part.0,
            tokens: self.tokens(),
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
