//! Which superseded rows does nothing stand for any more? `RepairSupersession`, the pass `supersession`.
//!
//! A superseded row says which row took its place. Where that chain leads to a row of the main table, or to a tombstone
//! of a row that was meant to go, all is well. Where it ends in nothing, in a tombstone of a forgotten tag or of an
//! import taken back, or in a circle, an older row must stand again. Only the last row of such a chain is restored: the
//! ones before it then reach a live row, and old facts stay where they are.
//!
//! Kept in memory: for each superseded row whose superseder is superseded as well, the two ids.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::{Result, sound};
use crate::hygiene::pass::{MaintenancePass, PlanInput, Planned};
use crate::hygiene::plan::{Action, Field, Page, Pages, Plan, Stop};
use crate::hygiene::told::details;
use crate::model::order::canonical;
use crate::model::{MemoryId, RunId, TombstoneReason, Vitals};
use crate::store::{NsId, Read, Rows, Snapshot, Table, keys};

/// Rows of a page.
const PAGE_ROWS: usize = 500;

/// Report of the repair of supersession.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RepairSupersessionReport {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Superseded rows that were looked at.
    pub scanned: u64,
    /// Circles that were found.
    pub cycles: u64,
    /// Rows that are, or would be, live again, by id.
    pub restored: Vec<MemoryId>,
    /// Rows of circles that point, or would point, elsewhere, by id.
    pub repointed: Vec<MemoryId>,
    /// The run, for undo.
    #[serde(rename = "run_id")]
    pub run_id: Option<RunId>,
}

details!(RepairSupersessionReport {
    numbers { scanned "scanned", cycles "cycles" }
    lists { restored, repointed }
    flags { dry_run = dry_run, run_id = run_id }
});

/// The pass `supersession`.
pub(crate) struct Supersession;

impl MaintenancePass for Supersession {
    fn plan(&self, input: PlanInput<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let found = plan(input.published.snapshot(), input.field, stop)?;
        Ok(found.map(|(plan, report)| Planned::actions(plan, report.scanned, report)))
    }
}

/// Where a chain leads from a row that took another's place.
enum End {
    /// A row of the main table that is not superseded.
    Row,
    /// This one, which is superseded itself.
    Superseded(MemoryId),
    /// A row that was meant to go.
    Intended,
    /// Nothing stands for it.
    Lost,
}

/// Plans the repair. None when `stop` ended it.
///
/// # Errors
/// Damage.
pub(crate) fn plan(
    rows: &Snapshot,
    field: &Field,
    stop: Stop<'_>,
) -> Result<Option<(Plan, RepairSupersessionReport)>> {
    let mut report = RepairSupersessionReport { dry_run: true, ..RepairSupersessionReport::default() };
    let mut next: BTreeMap<MemoryId, MemoryId> = BTreeMap::new();
    let mut lost: Vec<(MemoryId, u64)> = Vec::new();
    let mut pages = Pages::new(field, PAGE_ROWS);
    loop {
        let wanted = |vitals: &Vitals| vitals.times.superseded.is_some() && vitals.times.removed_at.is_none();
        let page = match pages.turn(rows, stop, wanted)? {
            Page::Rows(page) => page,
            Page::End => break,
            Page::Stopped => return Ok(None),
        };
        for (id, vitals) in page {
            let Some(by) = vitals.times.superseded_by() else { continue };
            report.scanned += 1;
            match end_of(rows, field.ns, by)? {
                End::Row | End::Intended => {}
                End::Superseded(by) => {
                    next.insert(id, by);
                }
                End::Lost => lost.push((id, vitals.version)),
            }
        }
    }
    let mut plan = Plan::default();
    let restore = |(id, version): (MemoryId, u64)| Action::Restore { id, version };
    plan.actions.extend(lost.into_iter().map(restore));
    for cycle in cycles(&next) {
        report.cycles += 1;
        open(rows, field.ns, &cycle, &next, &mut plan)?;
    }
    // Restored rows first: what is to point to one finds it live.
    plan.actions.sort_unstable_by_key(|action| match action {
        Action::Restore { id, .. } => (0, *id),
        Action::Repoint { id, .. } => (1, *id),
        Action::Merge(group) => (2, group.canonical),
        Action::Supersede { by, .. } => (3, *by),
        Action::Retire { id, .. } | Action::Adjust { id, .. } => (4, *id),
        Action::Prune(pruning) => (4, pruning.id),
    });
    for action in &plan.actions {
        match action {
            Action::Restore { id, .. } => report.restored.push(*id),
            Action::Repoint { id, .. } => report.repointed.push(*id),
            Action::Merge(_)
            | Action::Supersede { .. }
            | Action::Retire { .. }
            | Action::Prune(_)
            | Action::Adjust { .. } => {}
        }
    }
    Ok(Some((plan, report)))
}

/// Where the chain leads from `by`. Tombstones of merged rows lead on to what stands in their place.
fn end_of(rows: &Snapshot, ns: NsId, by: MemoryId) -> Result<End> {
    let (mut at, mut met) = (by, BTreeSet::new());
    loop {
        // A row that is damaged is one: it was not lost on purpose.
        let Some(vitals) = sound(rows.vitals(ns, at))? else { return Ok(End::Row) };
        if let Some(vitals) = vitals {
            return Ok(if vitals.times.superseded.is_some() { End::Superseded(at) } else { End::Row });
        }
        let Some(tombstone) = sound(rows.tombstone(ns, at))? else { return Ok(End::Intended) };
        let Some(tombstone) = tombstone else {
            // A row in limbo has its tombstone already; one whose tombstone was swept is still there.
            let in_limbo = rows.look(Table::Limbo, &keys::memory(ns, at), &mut |_| Ok(()))?;
            return Ok(if in_limbo { End::Intended } else { End::Lost });
        };
        match (tombstone.reason, tombstone.replaced_by) {
            (TombstoneReason::ForgetByTag | TombstoneReason::Undone, _) => return Ok(End::Lost),
            (_, Some(next)) if met.insert(at) => at = next,
            _ => return Ok(End::Intended),
        }
    }
}

/// The circles among rows each of which has one next, each from its smallest id on.
fn cycles(next: &BTreeMap<MemoryId, MemoryId>) -> Vec<Vec<MemoryId>> {
    let mut settled: BTreeSet<MemoryId> = BTreeSet::new();
    let mut found = Vec::new();
    for start in next.keys() {
        let (mut path, mut on_path, mut at) = (Vec::new(), BTreeSet::new(), *start);
        while !settled.contains(&at) && on_path.insert(at) {
            path.push(at);
            let Some(by) = next.get(&at) else { break };
            at = *by;
        }
        if on_path.contains(&at) && !settled.contains(&at) && next.contains_key(&at) {
            found.push(path.iter().copied().skip_while(|id| *id != at).collect());
        }
        settled.extend(path);
    }
    found
}

/// The canonical row of a circle is restored, and the others point to it.
fn open(
    rows: &Snapshot,
    ns: NsId,
    cycle: &[MemoryId],
    next: &BTreeMap<MemoryId, MemoryId>,
    plan: &mut Plan,
) -> Result<()> {
    let mut members = Vec::with_capacity(cycle.len());
    for id in cycle {
        if let Some(vitals) = sound(rows.vitals(ns, *id))?.flatten() {
            members.push((vitals.rank(*id), vitals.version));
        }
    }
    members.sort_unstable_by(|a, b| canonical(&a.0, &b.0));
    let mut members = members.into_iter();
    let Some((first, version)) = members.next() else { return Ok(()) };
    plan.actions.push(Action::Restore { id: first.id, version });
    for (rank, version) in members.filter(|(rank, _)| next.get(&rank.id) != Some(&first.id)) {
        plan.actions.push(Action::Repoint { id: rank.id, version, to: first.id });
    }
    Ok(())
}
