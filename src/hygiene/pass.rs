//! The passes that change memories: each reads one state and answers with a plan.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::hygiene::plan::{Field, Plan, Stop};
use crate::hygiene::{chains, cluster, collapse, near, snapshots};
use crate::index::Published;
use crate::model::{RuleId, Tier};
use crate::policy::Policy;

/// What a call asks that no policy says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// Only this series of snapshots.
    pub(crate) series: Option<String>,
    /// Only rows of these tiers; empty: all.
    pub(crate) tiers: BTreeSet<Tier>,
}

impl Asked {
    /// Whether nothing is left out.
    pub(crate) fn is_all(&self) -> bool {
        self.series.is_none() && self.tiers.is_empty()
    }
}

/// What a pass looks at.
#[derive(Clone, Copy)]
pub(crate) struct Sight<'s> {
    /// The state that it is planned on.
    pub(crate) published: &'s Published,
    /// Namespace, partitions and instant.
    pub(crate) field: &'s Field,
    /// The policy in effect, with the overrides of the call.
    pub(crate) policy: &'s Policy,
    /// What of it.
    pub(crate) asked: &'s Asked,
}

/// What a pass would do.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Planned {
    /// The actions.
    pub(crate) plan: Plan,
    /// Rows that it looked at.
    pub(crate) scanned: u64,
    /// Its report, by the names of its type.
    pub(crate) report: Map<String, Value>,
}

impl Planned {
    /// Pairs that a guard kept apart are part of every report, at most as many as it has samples.
    fn new(plan: Plan, scanned: u64, report: &impl Serialize, policy: &Policy) -> Self {
        let mut report = match serde_json::to_value(report) {
            Ok(Value::Object(report)) => report,
            other => unreachable!("a report is an object, not {other:?}"),
        };
        if !plan.hints.is_empty() {
            let told = plan.hints.iter().take(policy.collapse.max_samples as usize);
            let told = told
                .map(|apart| json!({ "id": apart.id, "near": apart.near, "guard": apart.guard.as_str() }));
            report.insert("kept_apart".to_owned(), plan.hints.len().into());
            report.insert("hints".to_owned(), told.collect());
        }
        Planned { plan, scanned, report }
    }
}

/// A maintenance pass over memories.
pub(crate) trait Pass: Sync {
    /// The rule that its journal rows name.
    fn rule(&self) -> RuleId;

    /// What it would do; none when `stop` ended it. It changes nothing.
    ///
    /// # Errors
    /// `Corrupted`; `Invalid` for options out of their bounds.
    fn plan(&self, sight: Sight<'_>, stop: Stop<'_>) -> Result<Option<Planned>>;

    /// Under which names its report tells what a live run did: groups, rows that went, reinforcement that moved.
    fn totals(&self) -> [Option<&'static str>; 3];
}

/// Operational snapshots that differ only in their numbers become one.
pub(crate) struct Collapse;

impl Pass for Collapse {
    fn rule(&self) -> RuleId {
        RuleId::COLLAPSE
    }

    fn plan(&self, sight: Sight<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let rows = &**sight.published.snapshot();
        let found = collapse::plan(rows, sight.field, sight.policy, stop)?;
        Ok(found.map(|(plan, report)| Planned::new(plan, report.scanned_profiles, &report, sight.policy)))
    }

    fn totals(&self) -> [Option<&'static str>; 3] {
        [Some("groupsCollapsed"), Some("duplicatesRemoved"), Some("reinforcementsApplied")]
    }
}

/// Rows of equal text, of which the write path would have made one, become one.
pub(crate) struct NearDuplicates;

impl Pass for NearDuplicates {
    fn rule(&self) -> RuleId {
        RuleId::NEAR_DUPLICATES
    }

    fn plan(&self, sight: Sight<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let rows = &**sight.published.snapshot();
        let found = near::plan(rows, sight.field, sight.policy, stop)?;
        Ok(found.map(|(plan, report)| Planned::new(plan, report.scanned, &report, sight.policy)))
    }

    fn totals(&self) -> [Option<&'static str>; 3] {
        [Some("groupsCollapsed"), Some("duplicatesRemoved"), Some("reinforcementsApplied")]
    }
}

/// Near-equal vectors are represented by one of them.
pub(crate) struct VectorDuplicates;

impl Pass for VectorDuplicates {
    fn rule(&self) -> RuleId {
        RuleId::VECTOR_DUPLICATES
    }

    fn plan(&self, sight: Sight<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let found =
            cluster::plan(sight.published, sight.field, sight.policy, sight.asked.tiers.clone(), stop)?;
        Ok(found.map(|(plan, report)| Planned::new(plan, report.memories_seen, &report, sight.policy)))
    }

    fn totals(&self) -> [Option<&'static str>; 3] {
        [None; 3]
    }
}

/// Histories of snapshots are reduced to one a period.
pub(crate) struct Snapshots;

impl Pass for Snapshots {
    fn rule(&self) -> RuleId {
        RuleId::PRUNE_SNAPSHOTS
    }

    fn plan(&self, sight: Sight<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let rows = &**sight.published.snapshot();
        let found = snapshots::plan(rows, sight.field, sight.asked.series.as_deref(), sight.policy, stop)?;
        Ok(found.map(|(plan, report)| Planned::new(plan, report.scanned, &report, sight.policy)))
    }

    fn totals(&self) -> [Option<&'static str>; 3] {
        [None, Some("deleted"), None]
    }
}

/// Superseded rows whose chain leads nowhere are live again.
pub(crate) struct Supersession;

impl Pass for Supersession {
    fn rule(&self) -> RuleId {
        RuleId::REPAIR_SUPERSESSION
    }

    fn plan(&self, sight: Sight<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let rows = &**sight.published.snapshot();
        let found = chains::plan(rows, sight.field, stop)?;
        Ok(found.map(|(plan, report)| Planned::new(plan, report.scanned, &report, sight.policy)))
    }

    fn totals(&self) -> [Option<&'static str>; 3] {
        [None; 3]
    }
}
