//! Which memories are summarized together?

use std::collections::HashMap;

use crate::hygiene::gc::candidates::{Candidate, GroupKey};
use crate::model::GroupState;
use crate::policy::Gc;
use crate::store::{GroupRow, PartId, Stamp};

/// Groups of candidates, the oldest first, within the bounds of the policy and of the plan.
pub(crate) fn groups(mut all: Vec<Candidate>, gc: &Gc, limit_tokens: u64) -> Vec<GroupRow> {
    all.sort_by(|a, b| {
        let by_time = a.created_at.cmp(&b.created_at);
        by_time.then(a.inclusion.total_cmp(&b.inclusion)).then(a.stamp.id.cmp(&b.stamp.id))
    });
    let mut found: Vec<GroupRow> = Vec::new();
    let mut open: HashMap<(PartId, GroupKey), usize> = HashMap::new();
    for Candidate { stamp, part, tokens, key, .. } in all {
        let next = found.len();
        let at = open.entry((part, key)).or_insert(next);
        let fits = |group: &GroupRow| {
            group.sources.len() < gc.max_sources as usize
                && group.tokens.saturating_add(tokens) <= gc.max_tokens
        };
        match found.get_mut(*at).filter(|group| fits(group)) {
            Some(group) => {
                group.sources.push(stamp);
                group.tokens += tokens;
            }
            None => {
                *at = next;
                found.push(group_of(part, stamp, tokens));
            }
        }
    }
    found.retain(|group| group.sources.len() >= gc.min_group as usize);
    let mut left = limit_tokens;
    // The first group that is too much for the plan ends it: a later one is younger.
    let fits = |group: &GroupRow| {
        let fits = group.tokens <= left;
        left = left.saturating_sub(group.tokens);
        fits
    };
    found.into_iter().take(gc.max_groups as usize).take_while(fits).collect()
}

fn group_of(part: PartId, stamp: Stamp, tokens: u64) -> GroupRow {
    GroupRow {
        state: GroupState::Planned,
        part: part.0,
        sources: vec![stamp],
        tokens,
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
