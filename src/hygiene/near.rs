//! Which rows say the same? The pass `near-duplicates`: what the write ladder would have made one row had it looked.
//!
//! Rows of equal content come to stand side by side where duplicates were let in (`--no-dedup`), and where a policy came
//! later. In a partition and tier, rows of equal raw text that are alike ([`Likeness`]) are one (step 2); with
//! `write.normalized_match = absorb` spacing and the case of words that are no names may differ. Snapshots
//! are a series and messages with an author and no key belong to families: neither is looked at here, nor is a family
//! made of messages that are stored already.
//!
//! One walk over the index of fingerprints; only rows that share one are read. Kept in memory: the distinct texts of one
//! fingerprint and a fixed-width entry for each row of a group.

use std::collections::HashMap;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::hygiene::collapse::{MergeTotals, ProfileCollapseGroupSample, samples};
use crate::hygiene::grouping::{Groups, Member};
use crate::hygiene::pass::{MaintenancePass, PlanInput, Planned};
use crate::hygiene::plan::{Action, Field, Phase, Plan, Stop};
use crate::hygiene::told::details;
use crate::ingest::{Likeness, is_record_of_its_own, stands_apart};
use crate::model::hex::hex;
use crate::model::{Content, MemoryId, Tier, Vitals};
use crate::policy::{NormalizedMatch, Policy};
use crate::store::keys;
use crate::store::{PartId, Read, Rows, Snapshot, Table, Walk};
use crate::text::form_but_spacing_and_case;

/// Report of the pass `near-duplicates`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NearDuplicateReport {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Current rows that share a fingerprint with another and were compared.
    pub scanned: u64,
    /// Groups in which something can go.
    pub duplicate_groups: u64,
    /// Rows that can go.
    pub duplicates_found: u64,
    /// What a live run did.
    #[serde(flatten)]
    pub totals: MergeTotals,
    /// The first groups by canonical id, at most `collapse.max_samples`.
    pub samples: Vec<ProfileCollapseGroupSample>,
    /// Members of groups that stayed because they are protected.
    pub protected_skipped: u64,
}

details!(NearDuplicateReport {
    numbers {
        scanned "scanned", duplicate_groups "duplicateGroups", duplicates_found "duplicatesFound",
        protected_skipped "protectedSkipped", totals.groups_collapsed "groupsCollapsed",
        totals.duplicates_removed "duplicatesRemoved", totals.reinforcements_applied "reinforcementsApplied"
    }
    lists { samples }
    done {
        totals.groups_collapsed = groups, totals.duplicates_removed = removed,
        totals.reinforcements_applied = transferred
    }
    flags { dry_run = dry_run, totals.run_id = run_id, totals.budget_exhausted = budget_exhausted }
});

/// The pass `near-duplicates`.
pub(crate) struct NearDuplicates;

impl MaintenancePass for NearDuplicates {
    fn plan(&self, input: PlanInput<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let found = plan(input.published.snapshot(), input.field, input.policy, stop)?;
        Ok(found.map(|(plan, report)| Planned::actions(plan, report.scanned, report)))
    }
}

/// Plans the merging of equal rows of a field. None when `stop` ended it.
///
/// # Errors
/// Damage.
pub(crate) fn plan(
    rows: &Snapshot,
    field: &Field,
    policy: &Policy,
    stop: Stop<'_>,
) -> Result<Option<(Plan, NearDuplicateReport)>> {
    let mut search = Search::new(rows, field, policy);
    let (mut run, mut stopped) = (Run::default(), false);
    rows.walk(Table::ByFingerprint, &Walk::prefix(&keys::ns(field.ns)), &mut |key, _| {
        if stop(1) {
            stopped = true;
            return Ok(ControlFlow::Break(()));
        }
        let row = keys::ByFingerprint::read(Table::ByFingerprint, key)?;
        let head = Some((row.part, row.tier, *row.fingerprint));
        if run.head != head {
            search.compare(&mut run)?;
            run.head = head;
            run.ids.clear();
        }
        run.ids.push(row.id);
        Ok(ControlFlow::Continue(()))
    })?;
    if stopped {
        return Ok(None);
    }
    search.compare(&mut run)?;
    let Search { groups, scanned, .. } = search;
    let protected_skipped = groups.protected;
    let Some(found) = groups.into_sorted(rows, field, stop)? else { return Ok(None) };
    let report = NearDuplicateReport {
        dry_run: true,
        scanned,
        duplicate_groups: found.len() as u64,
        duplicates_found: found.iter().map(|group| group.losers.len() as u64).sum(),
        totals: MergeTotals::default(),
        samples: samples(rows, field.ns, &found, policy.collapse.max_samples as usize)?,
        protected_skipped,
    };
    let actions = found.into_iter().map(Action::Merge).collect();
    Ok(Some((Plan { actions, ..Plan::default() }, report)))
}

/// The rows that share partition, tier and fingerprint.
#[derive(Default)]
struct Run {
    /// Partition, tier and fingerprint, which they share.
    head: Option<(PartId, Tier, [u8; 16])>,
    ids: Vec<MemoryId>,
}

/// What the texts of rows have in common that are one.
#[derive(PartialEq, Eq, Hash)]
enum Form {
    Text(String),
    /// But for spacing and case.
    Loose(Vec<(bool, String)>),
}

/// The rows of a run that are alike, also in their texts.
type Classes = HashMap<(Likeness<'static>, Form), Vec<Member>>;

struct Search<'s> {
    rows: &'s Snapshot,
    field: &'s Field,
    /// Whether spacing and case may differ, and then the words that are no names.
    loose: bool,
    stopwords: Vec<&'s str>,
    groups: Groups,
    scanned: u64,
}

impl<'s> Search<'s> {
    fn new(rows: &'s Snapshot, field: &'s Field, policy: &'s Policy) -> Self {
        Search {
            rows,
            field,
            loose: policy.write.normalized_match == NormalizedMatch::Absorb,
            stopwords: policy.collapse.stopwords.iter().map(String::as_str).collect(),
            groups: Groups::new(policy.collapse.canonical),
            scanned: 0,
        }
    }

    fn compare(&mut self, run: &mut Run) -> Result<()> {
        let Some((part, _, fingerprint)) = run.head else {
            return Ok(());
        };
        if run.ids.len() < 2 {
            return Ok(());
        }
        run.ids.sort_unstable();
        let mut alike = Classes::new();
        for id in &run.ids {
            let Some(vitals) = self.field.sound(self.rows.vitals(self.field.ns, *id))?.flatten() else {
                continue;
            };
            if !vitals.times.is_current(self.field.now) {
                continue;
            }
            let Some(content) = self.field.sound(self.rows.content(self.field.ns, *id))? else { continue };
            let Some(content) = content else {
                return Err(Error::corrupted(Table::Memory.name(), id.as_bytes(), "vitals without content"));
            };
            if self.field.sound(self.is_left_out(*id, &vitals, &content))?.unwrap_or(true) {
                continue;
            }
            self.scanned += 1;
            let tags = content.tags.len();
            let likeness = Likeness::of_row(&vitals, &content).into_owned();
            let form = match self.loose {
                true => Form::Loose(form_but_spacing_and_case(&content.text, &self.stopwords)),
                false => Form::Text(content.text),
            };
            alike.entry((likeness, form)).or_default().push(Member::of(*id, &vitals, tags, self.field));
        }
        let signature = hex(&fingerprint);
        for members in alike.into_values().filter(|members| members.len() >= 2) {
            self.groups.add(Phase::Content, part, &signature, members.iter().collect());
        }
        Ok(())
    }

    /// What step 2 of the ladder does not look at.
    fn is_left_out(&self, id: MemoryId, vitals: &Vitals, content: &Content) -> Result<bool> {
        let kind = content.kind(vitals.kind_code);
        let mut has_key = false;
        if kind.is_message() {
            has_key = self.rows.holders(self.field.ns, id)?.iter().any(|holder| holder.key.is_some());
        }
        // A memory that went into another would be found by its sources no more.
        Ok(is_record_of_its_own(vitals, content)
            || stands_apart(&kind, content.author_kind.is_some(), has_key)
            || !self.rows.sources(self.field.ns, id)?.is_empty())
    }
}
