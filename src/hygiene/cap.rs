//! Which short-term memories are too many? The pass `cap`.
//!
//! The counters by tier say in two look-ups whether a namespace has more of them than the policy allows. Only then are the
//! short-term memories read, from a table of their own, so the pass costs nothing for durable memories.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::hygiene::pass::{MaintenancePass, PlanInput, Planned};
use crate::hygiene::plan::{Action, Plan, Stop};
use crate::hygiene::score::Worth;
use crate::hygiene::told::details;
use crate::model::{MemoryId, Tier, Time, TombstoneReason, is_zero};
use crate::store::Rows;
use crate::store::control::{CounterSort, TOTAL};

/// The pass `cap`.
pub(crate) struct Cap;

/// Report of the pass `cap`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CapReport {
    /// Visible short-term memories, where there were more than the cap.
    #[serde(skip_serializing_if = "is_zero")]
    pub counted: u64,
    /// Memories that went to limbo; 0 in a dry run.
    #[serde(skip_serializing_if = "is_zero")]
    pub evicted: u64,
    /// Those of the counted that are pinned or locked, and stay.
    #[serde(skip_serializing_if = "is_zero")]
    pub protected: u64,
    /// Memories above the cap that stay because too many are protected.
    #[serde(skip_serializing_if = "is_zero")]
    pub cap_held_by_pins: u64,
}

details!(CapReport {
    numbers {
        counted "counted", evicted "evicted", protected "protected", cap_held_by_pins "cap_held_by_pins"
    }
    done { evicted = removed }
});

/// A short-term memory that may go.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidate {
    score: f64,
    last_accessed: Time,
    id: MemoryId,
    version: u64,
    access_seq: u64,
}

impl Candidate {
    /// The order in which they go: the least worth keeping first, of equal ones the one that was used longest ago.
    fn order(&self, other: &Self) -> Ordering {
        let by_score = self.score.total_cmp(&other.score);
        by_score.then(self.last_accessed.cmp(&other.last_accessed)).then(self.id.cmp(&other.id))
    }
}

impl MaintenancePass for Cap {
    fn plan(&self, input: PlanInput<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let cap = u64::try_from(input.policy.sweeper.short_term_cap).unwrap_or(0);
        if cap == 0 || counted(input)? <= cap {
            return Ok(Some(Planned::actions(Plan::default(), 0, CapReport::default())));
        }
        let (field, rows) = (input.field, input.published.snapshot());
        let (mut candidates, mut unreadable, mut report) = (Vec::new(), 0, CapReport::default());
        for id in rows.short_term(field.ns)? {
            if stop(1) {
                return Ok(None);
            }
            let Some(vitals) = field.sound(rows.vitals(field.ns, id))?.flatten() else { continue };
            if !vitals.times.visible_live(field.now) {
                continue;
            }
            report.counted += 1;
            if vitals.is_protected() {
                report.protected += 1;
                continue;
            }
            let Some(access) = field.sound(rows.access(field.ns, id))? else {
                unreadable += 1;
                continue;
            };
            candidates.push(Candidate {
                score: Worth::of(&vitals, &access, field.now).judged(input.judge, id).score(input.policy),
                last_accessed: access.last_accessed(&vitals),
                id,
                version: vitals.version,
                access_seq: access.access_seq,
            });
        }
        let over = report.counted.saturating_sub(cap);
        report.cap_held_by_pins = over.saturating_sub(candidates.len() as u64 + unreadable);
        candidates.sort_unstable_by(Candidate::order);
        candidates.truncate(usize::try_from(over).unwrap_or(usize::MAX));
        let retire = |candidate: Candidate| Action::Retire {
            id: candidate.id,
            version: candidate.version,
            access_seq: Some(candidate.access_seq),
            visible: true,
            reason: TombstoneReason::CapEvicted,
            replaced_by: None,
        };
        let actions = candidates.into_iter().map(retire).collect();
        let scanned = report.counted;
        Ok(Some(Planned::actions(Plan { actions, ..Plan::default() }, scanned, report)))
    }
}

/// Short-term memories of the namespace that are counted as visible.
fn counted(input: PlanInput<'_>) -> Result<u64> {
    let mut counted = 0;
    for tier in [Tier::Working, Tier::Episodic] {
        let rows = input.published.snapshot();
        let counter = rows.counter(input.field.ns, TOTAL, CounterSort::Tier as u8, tier.as_str())?;
        counted += u64::try_from(counter.rows).unwrap_or(0);
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    // V-164: of equal scores the one whose last use is the oldest goes first, then the smallest id.
    #[test]
    fn v164_ties_end_with_the_id() {
        let candidate = |score: f64, used: i64, id: u8| Candidate {
            score,
            last_accessed: Time::from_millis(used),
            id: MemoryId::from_bytes([id; 16]),
            version: 1,
            access_seq: 0,
        };
        let [b, a, c] = [candidate(0.5, 5, b'b'), candidate(0.5, 5, b'a'), candidate(0.5, 9, b'c')];
        let least = candidate(0.4, 99, b'z');
        let mut all = [c, b, a, least];
        all.sort_unstable_by(Candidate::order);
        assert_eq!(all, [least, a, b, c]);
    }
}
