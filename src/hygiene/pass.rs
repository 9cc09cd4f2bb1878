//! The passes that change memories: each reads one state and answers with a plan (MODEL-34).

use crate::error::Result;
use crate::hygiene::cluster::{self, DedupReport};
use crate::hygiene::collapse::{self, ProfileCollapseReport};
use crate::hygiene::plan::{Field, Plan, Stop};
use crate::hygiene::{chains, near, snapshots};
use crate::index::Published;
use crate::model::RuleId;
use crate::policy::Policy;

/// What a pass looks at.
#[derive(Clone, Copy)]
pub(crate) struct Sight<'s> {
    /// The state that it is planned on.
    pub(crate) published: &'s Published,
    /// Namespace, partitions and instant.
    pub(crate) field: &'s Field,
    /// The policy in effect, with the overrides of the call.
    pub(crate) policy: &'s Policy,
}

/// What a pass tells beside its counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Story {
    /// Nothing.
    #[default]
    None,
    /// Groups of duplicates, with samples.
    Groups(Box<ProfileCollapseReport>),
    /// Clusters of vectors.
    Clusters(Box<DedupReport>),
}

/// What a pass would do.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Planned {
    /// The actions.
    pub(crate) plan: Plan,
    /// Rows that it looked at.
    pub(crate) scanned: u64,
    /// Counts of the plan, by name: the same in a dry run and in a live one.
    pub(crate) counts: Vec<(&'static str, u64)>,
    /// The rest of its report.
    pub(crate) story: Story,
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
}

/// Operational snapshots that differ only in their numbers become one (DEDUP-5 to DEDUP-24).
pub(crate) struct Collapse;

impl Pass for Collapse {
    fn rule(&self) -> RuleId {
        RuleId::COLLAPSE
    }

    fn plan(&self, sight: Sight<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let rows = &**sight.published.snapshot();
        let found = collapse::plan(rows, sight.field, sight.policy, stop)?;
        Ok(found.map(|(plan, report)| Planned {
            plan,
            scanned: report.scanned_profiles,
            counts: report.counts(),
            story: Story::Groups(Box::new(report)),
        }))
    }
}

/// Texts that the write path would have absorbed, and near-equal messages of bots, become one.
pub(crate) struct NearDuplicates;

impl Pass for NearDuplicates {
    fn rule(&self) -> RuleId {
        RuleId::NEAR_DUPLICATES
    }

    fn plan(&self, sight: Sight<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let rows = &**sight.published.snapshot();
        near::plan(rows, sight.field, sight.policy, stop)
    }
}

/// Near-equal vectors are represented by one of them (DEDUP-42 to DEDUP-48).
pub(crate) struct VectorDuplicates;

impl Pass for VectorDuplicates {
    fn rule(&self) -> RuleId {
        RuleId::VECTOR_DUPLICATES
    }

    fn plan(&self, sight: Sight<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        cluster::plan(sight, stop)
    }
}

/// Histories of snapshots are reduced to one a period (DEDUP-69).
pub(crate) struct Snapshots;

impl Pass for Snapshots {
    fn rule(&self) -> RuleId {
        RuleId::PRUNE_SNAPSHOTS
    }

    fn plan(&self, sight: Sight<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let rows = &**sight.published.snapshot();
        snapshots::plan(rows, sight.field, sight.policy, stop)
    }
}

/// Superseded rows whose chain leads nowhere are live again (LIFE-9).
pub(crate) struct Supersession;

impl Pass for Supersession {
    fn rule(&self) -> RuleId {
        RuleId::REPAIR_SUPERSESSION
    }

    fn plan(&self, sight: Sight<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let rows = &**sight.published.snapshot();
        chains::plan(rows, sight.field, stop)
    }
}
