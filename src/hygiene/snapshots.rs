//! Which snapshots of a series has a later one of its period replaced? `prune_history`, the pass `snapshots`.
//!
//! Kept in memory: a fixed-width entry for each snapshot and the name of each series once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::hygiene::pass::{DueInput, MaintenancePass, PlanInput, Planned};
use crate::hygiene::plan::{Action, Field, Page, Pages, Plan, Stop, visible_of_kind};
use crate::hygiene::told::details;
use crate::model::{
    Kind, MemoryId, Pass, Period, Periods, RunId, Time, TombstoneReason, Vitals, snapshot_time,
};
use crate::policy::Policy;
use crate::store::{PartId, Rows, Snapshot, Table};

/// Rows of a page.
const PAGE_ROWS: usize = 500;

/// Report of `prune_history`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PruneHistoryReport {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Current snapshots that were looked at.
    pub scanned: u64,
    /// Series that they belong to.
    pub series: u64,
    /// Snapshots that a later one of their period replaces, or whose period is past `snapshot.keep_last`.
    pub planned: u64,
    /// Snapshots that went; 0 in a dry run.
    pub deleted: u64,
    /// Snapshots whose timestamp can't be read: they stay.
    pub skipped: u64,
    /// Snapshots that would go and stay because they are protected.
    pub protected_skipped: u64,
    /// The run, for undo.
    #[serde(rename = "run_id")]
    pub run_id: Option<RunId>,
    /// Whether the destruction budget cut the plan.
    #[serde(rename = "budget_exhausted")]
    pub budget_exhausted: bool,
}

details!(PruneHistoryReport {
    numbers {
        scanned "scanned", series "series", planned "planned", deleted "deleted", skipped "skipped",
        protected_skipped "protectedSkipped"
    }
    done { deleted = removed }
    flags { dry_run = dry_run, run_id = run_id, budget_exhausted = budget_exhausted }
});

/// The pass `snapshots`.
pub(crate) struct Snapshots;

impl MaintenancePass for Snapshots {
    fn plan(&self, input: PlanInput<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let (rows, series) = (&**input.published.snapshot(), input.selection.series.as_deref());
        let found = plan(rows, input.field, series, input.policy, stop)?;
        Ok(found.map(|(plan, report)| Planned::actions(plan, report.scanned, report)))
    }

    /// Histories from before there were periods are reduced once by themselves.
    fn is_due(&self, input: &DueInput<'_>) -> Result<bool> {
        for ns in input.namespaces {
            let seen = input.rows.pass(*ns, Pass::Snapshots.as_str())?.is_some();
            if !seen && visible_of_kind(input.rows, *ns, &Kind::Snapshot.to_string())? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn notes_first_look(&self) -> bool {
        true
    }
}

/// A snapshot whose time is known. The order is that of time; of two at one instant the larger id is the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Taken {
    at: Time,
    id: MemoryId,
    version: u64,
    protected: bool,
    visible: bool,
}

/// The snapshots of one series by period.
type Series = BTreeMap<Period, Vec<Taken>>;

/// Plans the pruning of one series, or of all, in the partitions of a field. None when `stop` ended it.
///
/// # Errors
/// Damage; `Invalid` for a time zone of the policy that this machine does not know.
pub(crate) fn plan(
    rows: &Snapshot,
    field: &Field,
    series: Option<&str>,
    policy: &Policy,
    stop: Stop<'_>,
) -> Result<Option<(Plan, PruneHistoryReport)>> {
    let periods = Periods::new(&policy.snapshot.zone, policy.snapshot.period)?;
    let mut report = PruneHistoryReport { dry_run: true, ..PruneHistoryReport::default() };
    let mut all: BTreeMap<PartId, HashMap<String, Series>> = BTreeMap::new();
    let mut unread: BTreeSet<(PartId, String)> = BTreeSet::new();
    let mut pages = Pages::new(field, PAGE_ROWS);
    let code = Kind::Snapshot.code();
    loop {
        let wanted = |vitals: &Vitals| vitals.kind_code == code && vitals.times.is_current(field.now);
        let page = match pages.turn(rows, stop, wanted)? {
            Page::Rows(page) => page,
            Page::End => break,
            Page::Stopped => return Ok(None),
        };
        for (id, vitals) in page {
            let Some(content) = field.sound(rows.content(field.ns, id))? else { continue };
            let Some(content) = content else {
                return Err(Error::corrupted(Table::Memory.name(), id.as_bytes(), "vitals without content"));
            };
            if content.verbatim || series.is_some_and(|series| series != content.series) {
                continue;
            }
            report.scanned += 1;
            let part = PartId(vitals.place.partition);
            let Some(at) = snapshot_time(&content.metadata, vitals.created_at) else {
                report.skipped += 1;
                unread.insert((part, content.series));
                continue;
            };
            let visible = vitals.times.visible_live(field.now);
            let taken = Taken { at, id, version: vitals.version, protected: vitals.is_protected(), visible };
            let of_series = all.entry(part).or_default().entry(content.series).or_default();
            of_series.entry(periods.of(at)).or_default().push(taken);
        }
    }
    let only_unread = |(part, name): &&(PartId, String)| {
        !all.get(part).is_some_and(|named| named.contains_key(name.as_str()))
    };
    report.series = unread.iter().filter(only_unread).count() as u64;
    let mut plan = Plan::default();
    for named in all.into_values() {
        report.series += named.len() as u64;
        let mut named: Vec<_> = named.into_iter().collect();
        named.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (_, series) in named {
            prune(series, policy.snapshot.keep_last as usize, &mut plan, &mut report);
        }
    }
    report.planned = plan.actions.len() as u64;
    Ok(Some((plan, report)))
}

/// The latest of each period stays, of the latest `keep_last` periods; 0 is all of them.
fn prune(series: Series, keep_last: usize, plan: &mut Plan, report: &mut PruneHistoryReport) {
    let over = if keep_last == 0 { 0 } else { series.len().saturating_sub(keep_last) };
    for (at, mut taken) in series.into_values().enumerate() {
        taken.sort_unstable();
        let kept = if at < over { None } else { taken.pop().map(|latest| latest.id) };
        let reason =
            if kept.is_some() { TombstoneReason::SnapshotReplaced } else { TombstoneReason::Retention };
        for Taken { id, version, protected, visible, .. } in taken {
            if protected {
                report.protected_skipped += 1;
            } else {
                plan.actions.push(Action::Retire {
                    id,
                    version,
                    access_seq: None,
                    visible,
                    reason,
                    replaced_by: kept,
                });
            }
        }
    }
}
