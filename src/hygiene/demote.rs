//! Which durable memories matter little and were never used? The pass `demote`.
//!
//! The candidates stand in a table of their own, `unused`, by sixteenths of their importance and their last write. So the pass reads the
//! memories that it demotes, and beside them those that only an exempt kind, or the confidence and the tag of the profile `v2`, keeps. A
//! demoted memory has the whole life of an episodic one before it. One use lengthens that life, as it does for any other.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::hygiene::adjust::{Adjustment, Demotion};
use crate::hygiene::pass::{MaintenancePass, PlanInput, Planned};
use crate::hygiene::plan::{Action, Plan, Stop};
use crate::hygiene::score::Worth;
use crate::hygiene::told::details;
use crate::limits::IMPORTANCE_CLASSES;
use crate::model::{Access, Content, MemoryId, Span, Vitals, is_zero};
use crate::policy::DemoteProfile;
use crate::store::{Rows, UsageRows};

/// The tag whose memories the profile `v2` leaves alone.
const HANDOFF_TAG: &str = "handoff";

/// The pass `demote`.
pub(crate) struct Demote;

/// Report of the pass `demote`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DemoteReport {
    /// Unused memories of little importance that were last written long enough ago.
    #[serde(skip_serializing_if = "is_zero")]
    pub unused: u64,
    /// Memories that are episodic now; 0 in a dry run.
    #[serde(skip_serializing_if = "is_zero")]
    pub demoted: u64,
    /// Those of the unused that stay for their kind, and in the profile `v2` for their confidence or the tag `handoff`.
    #[serde(skip_serializing_if = "is_zero")]
    pub exempt: u64,
}

details!(DemoteReport {
    numbers { unused "unused", demoted "demoted", exempt "exempt" }
    done { demoted = mended }
});

impl MaintenancePass for Demote {
    fn plan(&self, input: PlanInput<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let (field, policy) = (input.field, input.policy);
        let (mut plan, mut report) = (Plan::default(), DemoteReport::default());
        let after = policy.sweeper.demote_after;
        if after == Span::ZERO {
            return Ok(Some(Planned::actions(plan, 0, report)));
        }
        let importance = match policy.demote.profile {
            DemoteProfile::V1 => policy.demote.importance,
            DemoteProfile::V2 => policy.demote.v2_importance,
        };
        let older_than = field.now.minus(after);
        let demotion = Demotion { older_than, importance, ttl: policy.ttl.episodic };
        let rows = input.published.snapshot();
        for class in classes_below(importance) {
            for id in rows.unused(field.ns, class, older_than)? {
                if stop(1) {
                    return Ok(None);
                }
                let Some((vitals, content, access)) = read(input, id)? else { continue };
                if f64::from(vitals.importance) >= importance || access.count() > 0 {
                    continue;
                }
                report.unused += 1;
                if is_exempt(input, &vitals, &content, &access) {
                    report.exempt += 1;
                } else {
                    let by = Adjustment::Demote(demotion);
                    plan.actions.push(Action::Adjust { id, version: vitals.version, by });
                }
            }
        }
        let scanned = report.unused;
        Ok(Some(Planned::actions(plan, scanned, report)))
    }
}

/// The classes of importance in which memories below a bar stand.
fn classes_below(importance: f64) -> std::ops::Range<u8> {
    let classes = f64::from(IMPORTANCE_CLASSES);
    0..(importance * classes).ceil().clamp(0.0, classes) as u8
}

/// The parts of a row that tell whether it is demoted; none of a damaged row.
fn read(input: PlanInput<'_>, id: MemoryId) -> Result<Option<(Vitals, Content, Access)>> {
    let (field, rows) = (input.field, input.published.snapshot());
    let Some(vitals) = field.sound(rows.vitals(field.ns, id))?.flatten() else { return Ok(None) };
    let Some(content) = field.sound(rows.content(field.ns, id))?.flatten() else { return Ok(None) };
    Ok(field.access(rows, id)?.map(|access| (vitals, content, access)))
}

/// Whether a memory stays although nobody has used it.
fn is_exempt(input: PlanInput<'_>, vitals: &Vitals, content: &Content, access: &Access) -> bool {
    let demote = &input.policy.demote;
    if demote.exempt_kinds.contains(&content.kind(vitals.kind_code).to_string()) {
        return true;
    }
    match demote.profile {
        DemoteProfile::V1 => false,
        DemoteProfile::V2 => {
            let believed = Worth::of(vitals, access, input.field.now).confidence(input.policy);
            let is_believed = vitals.confidence.is_none() || believed >= demote.v2_confidence;
            is_believed || content.tags.iter().any(|tag| tag == HANDOFF_TAG)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::classes_below;
    use crate::ledger::derived::importance_class;

    #[test]
    fn every_importance_below_a_bar_is_in_a_class_below_it() {
        for bar in [0.0, 0.01, 0.0625, 0.49, 0.5, 0.51, 0.75, 0.999, 1.0] {
            for step in 0..=1_000 {
                let importance = f64::from(step) / 1_000.0;
                let is_read = classes_below(bar).contains(&importance_class(importance));
                assert!(is_read || importance >= bar, "{importance} below {bar}");
            }
        }
        assert_eq!(classes_below(0.5), 0..8, "no memory of the default importance is read");
        assert_eq!(importance_class(1.0), 15);
    }
}
