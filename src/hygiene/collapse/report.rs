//! What the pass `collapse` tells.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::hygiene::plan::{Group, KeptApart, Phase};
use crate::hygiene::told::details;
use crate::model::{MemoryId, RunId, is_zero};
use crate::store::{NsId, Rows, Snapshot};

/// Duplicates that one sample lists; its size tells how many there are.
const SAMPLE_ROWS_MAX: usize = 100;
/// Bytes of a text that a sample shows.
const SUMMARY_BYTES_MAX: usize = 256;

/// Report of the pass `collapse`, in JSON with the names of its document.
///
/// The counts of the plan are the same in a dry run and in a live one; [`totals`](Self::totals) are of a live run alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileCollapseReport {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Current rows of the kinds of `collapse.kinds`.
    pub scanned_profiles: u64,
    /// Those of them that are operational.
    pub operational_profiles: u64,
    /// Distinct signatures of operational rows in a partition, single ones included.
    pub unique_signatures: u64,
    /// Groups in which something can go.
    pub duplicate_groups: u64,
    /// Rows that can go.
    pub duplicates_found: u64,
    /// Groups of equal signatures.
    pub exact_duplicate_groups: u64,
    /// Groups of equal token keys.
    pub token_duplicate_groups: u64,
    /// Groups of near token sets.
    pub fuzzy_duplicate_groups: u64,
    /// What a live run did.
    #[serde(flatten)]
    pub totals: MergeTotals,
    /// The first groups, at most `collapse.max_samples`: exact, token, fuzzy, each by canonical id.
    pub samples: Vec<ProfileCollapseGroupSample>,
    /// Members of groups that stayed because they are protected.
    pub protected_skipped: u64,
    /// Pairs that a guard kept apart.
    #[serde(rename = "kept_apart", default, skip_serializing_if = "is_zero")]
    pub kept_apart: u64,
    /// The first of these pairs, at most `collapse.max_samples`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<KeptApart>,
}

details!(ProfileCollapseReport {
    numbers {
        scanned_profiles "scannedProfiles", operational_profiles "operationalProfiles",
        unique_signatures "uniqueSignatures", duplicate_groups "duplicateGroups",
        duplicates_found "duplicatesFound", exact_duplicate_groups "exactDuplicateGroups",
        token_duplicate_groups "tokenDuplicateGroups", fuzzy_duplicate_groups "fuzzyDuplicateGroups",
        protected_skipped "protectedSkipped", kept_apart "kept_apart",
        totals.groups_collapsed "groupsCollapsed", totals.duplicates_removed "duplicatesRemoved",
        totals.reinforcements_applied "reinforcementsApplied"
    }
    lists { samples, hints }
    done {
        totals.groups_collapsed = groups, totals.duplicates_removed = removed,
        totals.reinforcements_applied = transferred
    }
    flags { dry_run = dry_run, totals.run_id = run_id, totals.budget_exhausted = budget_exhausted }
});

/// What a live run that merges groups of duplicates did; all zero in a dry run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MergeTotals {
    /// Groups of which at least one member went.
    pub groups_collapsed: u64,
    /// Rows that went.
    pub duplicates_removed: u64,
    /// Reinforcement that moved to canonical rows.
    pub reinforcements_applied: u64,
    /// The run, for undo.
    #[serde(rename = "run_id")]
    pub run_id: Option<RunId>,
    /// Whether the destruction budget cut the plan.
    #[serde(rename = "budget_exhausted")]
    pub budget_exhausted: bool,
}

/// A group of duplicates, as a report shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileCollapseGroupSample {
    /// What the members have in common; behind `tokens:` or `fuzzy:` in these phases.
    pub signature: String,
    /// Members: the canonical one, those that go, those that are protected.
    pub group_size: u64,
    /// The member that stays.
    pub canonical_id: MemoryId,
    /// Its text, at most 256 bytes of it.
    pub canonical_summary: String,
    /// Those that go, in canonical order, at most 100.
    pub duplicate_ids: Vec<MemoryId>,
    /// Their texts, at most 256 bytes of each.
    pub duplicate_summaries: Vec<String>,
    /// Reinforcement that all that go bring.
    pub reinforcement_transfer: u64,
}

impl ProfileCollapseReport {
    /// Counts the groups of the plan.
    pub(super) fn count(&mut self, groups: &[Group]) {
        self.duplicate_groups = groups.len() as u64;
        self.duplicates_found = groups.iter().map(|group| group.losers.len() as u64).sum();
        let of = |phase| groups.iter().filter(|group| group.phase == phase).count() as u64;
        self.exact_duplicate_groups = of(Phase::Exact);
        self.token_duplicate_groups = of(Phase::Token);
        self.fuzzy_duplicate_groups = of(Phase::Fuzzy);
    }
}

/// The first `most` groups with their texts.
///
/// # Errors
/// Damage.
pub(in crate::hygiene) fn samples(
    rows: &Snapshot,
    ns: NsId,
    groups: &[Group],
    most: usize,
) -> Result<Vec<ProfileCollapseGroupSample>> {
    let summary = |id| Ok(rows.text(ns, id)?.map(shortened).unwrap_or_default());
    let sample = |group: &Group| {
        let duplicate_ids: Vec<MemoryId> =
            group.losers.iter().take(SAMPLE_ROWS_MAX).map(|loser| loser.id).collect();
        Ok(ProfileCollapseGroupSample {
            signature: group.signature.clone(),
            group_size: group.size(),
            canonical_id: group.canonical,
            canonical_summary: summary(group.canonical)?,
            duplicate_summaries: duplicate_ids.iter().map(|id| summary(*id)).collect::<Result<_>>()?,
            duplicate_ids,
            reinforcement_transfer: group.transfer(),
        })
    };
    groups.iter().take(most).map(sample).collect()
}

/// A text as a report shows it.
fn shortened(mut text: String) -> String {
    const MORE: char = '…';
    if text.len() > SUMMARY_BYTES_MAX {
        let room = SUMMARY_BYTES_MAX - MORE.len_utf8();
        let end = text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= room).last();
        text.truncate(end.unwrap_or(0));
        text.push(MORE);
    }
    text
}
