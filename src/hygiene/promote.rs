//! Which short-term memories have proved useful? The pass `promote`.
//!
//! The candidates stand in a table of their own, `in_use`, by tier and number of uses, until a consolidation has looked at them. A memory of
//! the tier `working` becomes episodic, once in its life. A short text in use becomes durable as it is: the memory itself, with its id,
//! its keys and its writers, so that no copy of it is found beside it.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::hygiene::adjust::{Adjustment, Lasting, Promotion};
use crate::hygiene::pass::{MaintenancePass, PlanInput, Planned};
use crate::hygiene::plan::{Action, Field, Plan, Stop};
use crate::hygiene::told::details;
use crate::limits::USES_MAX;
use crate::model::{Access, Content, Kind, MemoryId, PROCEDURE_TAG, Pass, Tier, Time, Vitals, is_zero};
use crate::policy::Policy;
use crate::store::{Rows, Snapshot, UsageRows};

/// The pass `promote`.
pub(crate) struct Promote;

/// Report of the pass `promote`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PromoteReport {
    /// Short-term memories that were used often enough.
    #[serde(skip_serializing_if = "is_zero")]
    pub in_use: u64,
    /// Memories that are of a more durable tier now; 0 in a dry run.
    #[serde(skip_serializing_if = "is_zero")]
    pub promoted: u64,
    /// Memories that stay short-term because their text is longer than `promote.verbatim_max`.
    #[serde(skip_serializing_if = "is_zero")]
    pub too_long: u64,
}

details!(PromoteReport {
    numbers { in_use "in_use", promoted "promoted", too_long "too_long" }
    done { promoted = mended }
});

impl MaintenancePass for Promote {
    fn plan(&self, input: PlanInput<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let (mut plan, mut report) = (Plan::default(), PromoteReport::default());
        if !is_time(input)? {
            return Ok(Some(Planned::actions(plan, 0, report)));
        }
        let (field, rows, policy) = (input.field, input.published.snapshot(), input.policy);
        for id in candidates(field, rows, policy)? {
            if stop(1) {
                return Ok(None);
            }
            let Some(candidate) = read(field, rows, policy, id)? else { continue };
            report.in_use += 1;
            match candidate.adjustment(policy) {
                Some(by) => {
                    let version = candidate.vitals.version;
                    plan.actions.push(Action::Adjust { id, version, by });
                }
                None => report.too_long += 1,
            }
        }
        let scanned = report.in_use;
        Ok(Some(Planned::actions(plan, scanned, report)))
    }
}

/// Whether `promote.interval` has passed since the pass last changed anything. A call that names the pass does not wait,
/// and neither does what a call before has left.
fn is_time(input: PlanInput<'_>) -> Result<bool> {
    let last = input.published.snapshot().pass(input.field.ns, Pass::Promote.as_str())?;
    let interval = input.policy.promote.interval;
    Ok(input.is_named
        || last.is_none_or(|last| {
            last.open || input.field.now >= Time::from_millis(last.ended_ms).plus(interval)
        }))
}

/// The short-term memories that may have been used often enough, in the order of their ids. Uses that no commit has counted count.
pub(super) fn candidates(field: &Field, rows: &Snapshot, policy: &Policy) -> Result<Vec<MemoryId>> {
    let mut all = field.noted.ids(field.ns);
    for tier in [Tier::Working, Tier::Episodic] {
        // The policy bounds the number by what a row can count.
        let uses = u8::try_from(policy.promote.access).unwrap_or(USES_MAX);
        all.extend(rows.in_use(field.ns, tier, uses)?);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// A short-term memory that was used often enough.
pub(super) struct Candidate {
    pub(super) vitals: Vitals,
    pub(super) content: Content,
    pub(super) access: Access,
}

/// Reads a candidate; none of one that is damaged, gone, protected, used too seldom or done with.
pub(super) fn read(
    field: &Field,
    rows: &Snapshot,
    policy: &Policy,
    id: MemoryId,
) -> Result<Option<Candidate>> {
    let Some(vitals) = field.sound(rows.vitals(field.ns, id))?.flatten() else { return Ok(None) };
    let is_open = vitals.tier.is_short_term() && !vitals.is_protected();
    if !is_open || !vitals.times.visible_live(field.now) {
        return Ok(None);
    }
    let Some(access) = field.access(rows, id)? else { return Ok(None) };
    let has_more = access.last_consolidated_at.is_none()
        || (vitals.tier == Tier::Working && access.promoted_at.is_none());
    if access.count() < u64::from(policy.promote.access) || !has_more {
        return Ok(None);
    }
    let Some(content) = field.sound(rows.content(field.ns, id))?.flatten() else { return Ok(None) };
    Ok(Some(Candidate { vitals, content, access }))
}

impl Candidate {
    /// What becomes of the memory; none where its text is too long to last as it is.
    fn adjustment(&self, policy: &Policy) -> Option<Adjustment> {
        let promote = &policy.promote;
        let uses = u64::from(promote.access);
        let most = promote.verbatim_max as usize;
        let is_short = (1..=most).contains(&self.content.text.chars().take(most + 1).count());
        if is_short && self.access.last_consolidated_at.is_none() {
            let confidence = policy.confidence.fresh as f32;
            return Some(Adjustment::Last(Lasting { uses, tier: self.lasting_tier(), confidence }));
        }
        let is_new = self.vitals.tier == Tier::Working && self.access.promoted_at.is_none();
        is_new.then_some(Adjustment::Promote(Promotion { uses, ttl: policy.ttl.episodic }))
    }

    /// The durable tier of what the memory says.
    fn lasting_tier(&self) -> Tier {
        let is_skill = self.content.kind(self.vitals.kind_code) == Kind::Skill;
        let is_procedure = is_skill || self.content.tags.iter().any(|tag| tag == PROCEDURE_TAG);
        if is_procedure { Tier::Procedural } else { Tier::Semantic }
    }
}
