//! Which memories have lived to their end? The pass `expire`, and what a write does of its work.
//!
//! What a tier let expire waits in limbo and can be brought back until `undo.horizon`. What a caller had set an end for
//! is erased at once. A protected memory stays stored, and invisible.

use std::cell::Cell;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Result, sound};
use crate::hygiene::accesses::Accesses;
use crate::hygiene::fold::slid;
use crate::hygiene::pass::{Applied, Job, MaintenancePass, PlanInput, Planned, Slice, Step, StepInput};
use crate::hygiene::plan::Stop;
use crate::hygiene::told::{PassReport, details};
use crate::ledger::{Change, Context, Entry, Folded, Ledger};
use crate::model::{
    Actor, ExpiresBy, Kind, MemoryId, NamespaceName, Pass, RuleId, RunId, SupersedeMode, Time,
    TombstoneReason, Vitals, is_zero,
};
use crate::policy::Policy;
use crate::store::control::NamespaceRow;
use crate::store::{NsId, Rows, Snapshot};

/// Protected memories that a report names.
const NAMED_MAX: usize = 20;
/// Memories that are looked at together. A slice may end after each of them, and what it has looked at beyond that is looked at
/// once more.
const SEEN_MAX: usize = 32;

/// The pass `expire`.
pub(crate) struct Expire;

impl MaintenancePass for Expire {
    fn plan(&self, input: PlanInput<'_>, _: Stop<'_>) -> Result<Option<Planned>> {
        let (ns, until) = (input.field.ns, input.field.now);
        let due = ended_at(input.published.snapshot(), ns, until, false)?.len() as u64;
        let job = Expiring {
            namespace: input.namespace.clone(),
            ns,
            until,
            batch: input.policy.purge.batch as usize,
            noted: Arc::clone(&input.field.noted),
            due,
            gone: Gone::default(),
            last: Cell::new(Gone::default()),
            is_over: due == 0,
            run: None,
        };
        Ok(Some(Planned::Jobs(vec![Box::new(job)])))
    }
}

/// Report of the pass `expire`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExpireReport {
    /// Memories that a tier let expire: they wait in limbo until the undo horizon.
    #[serde(skip_serializing_if = "is_zero")]
    pub limbo: u64,
    /// Memories that were erased at once: a caller had set their end, or the policy keeps no limbo.
    #[serde(skip_serializing_if = "is_zero")]
    pub erased: u64,
    /// Expired memories that stay because they are pinned or locked.
    #[serde(skip_serializing_if = "is_zero")]
    pub protected: u64,
    /// Some of these, at most 20 of a namespace: those that expired first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protected_ids: Vec<MemoryId>,
}

// Its job adds to it by itself.
details!(ExpireReport {});

/// The memories whose life was over at `until`, whether that instant has been settled or not: either those that are
/// protected, or those that an automatic actor may remove.
fn ended_at(rows: &Snapshot, ns: NsId, until: Time, protected: bool) -> Result<Vec<MemoryId>> {
    let ended = match protected {
        true => rows.ended_protected(ns, until)?,
        false => rows.ended(ns, until, usize::MAX)?,
    };
    let mut ended: Vec<MemoryId> = ended.into_iter().map(|(_, id)| id).collect();
    for (_, id) in rows.due(ns, until, usize::MAX)? {
        let vitals = sound(rows.vitals(ns, id))?.flatten();
        let vitals = vitals.filter(|vitals| vitals.times.is_expired(until));
        ended.extend(vitals.filter(|vitals| vitals.is_protected() == protected).map(|_| id));
    }
    Ok(ended)
}

/// Whether the life of a memory was over at `until`, and nothing keeps the memory.
fn is_over(vitals: &Vitals, until: Time) -> bool {
    !vitals.waits_for_horizon() && vitals.times.is_expired(until) && !vitals.is_protected()
}

/// Memories that have gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gone {
    /// They wait in limbo.
    pub(crate) limbo: u64,
    /// They were erased.
    pub(crate) erased: u64,
}

impl Gone {
    fn sum(self) -> u64 {
        self.limbo + self.erased
    }
}

struct Expiring {
    namespace: NamespaceName,
    ns: NsId,
    /// Memories whose life ends after it are left to the next run.
    until: Time,
    /// Memories that one slice removes at most.
    batch: usize,
    /// Uses that no commit has counted.
    noted: Arc<Accesses>,
    /// Memories that were to go when the pass began.
    due: u64,
    gone: Gone,
    /// What the present step has removed. A step that is applied again starts anew.
    last: Cell<Gone>,
    is_over: bool,
    run: Option<RunId>,
}

impl Job for Expiring {
    fn next<'s>(&'s mut self, input: StepInput<'s>) -> Result<Option<Step<'s>>> {
        self.run = input.run;
        let (rows, policy) = (input.rows.min(self.batch), input.policy);
        Ok((!self.is_over).then(|| -> Step<'s> { Box::new(move |slice| self.purge(slice, rows, policy)) }))
    }

    fn applied(&mut self, applied: Applied) {
        let last = self.last.take();
        self.gone.limbo += last.limbo;
        self.gone.erased += last.erased;
        self.is_over = applied.is_last;
    }

    fn tell(&self, rows: &Snapshot, report: &mut PassReport) -> Result<()> {
        report.planned += self.due;
        report.scanned += self.due;
        report.changed += self.gone.sum();
        report.tombstoned += self.gone.sum();
        report.left += self.due.saturating_sub(self.gone.sum());
        // Of a run that has removed nothing no row of the file tells.
        report.run = self.run.filter(|_| self.gone.sum() > 0).or(report.run);
        let mut protected = ended_at(rows, self.ns, self.until, true)?;
        let details = report.report.of::<ExpireReport>();
        details.limbo += self.gone.limbo;
        details.erased += self.gone.erased;
        details.protected += protected.len() as u64;
        protected.truncate(NAMED_MAX);
        details.protected_ids.append(&mut protected);
        Ok(())
    }
}

impl Expiring {
    /// Settles instants that have come, and removes at most `most` of the memories that are over.
    fn purge(&self, slice: &mut Slice<'_, '_, '_>, most: usize, policy: &Policy) -> Result<Applied> {
        let context = Context { actor: Actor::Sweeper, ..slice.context.clone() };
        let (ns, namespace, until, noted) = (self.ns, &self.namespace, self.until, &*self.noted);
        let (mut gone, mut is_enough, mut is_last) = (Gone::default(), false, false);
        while !is_enough && !is_last && gone.sum() < most as u64 {
            let room = SEEN_MAX.min(most - gone.sum() as usize);
            let due = settle_due(slice.ledger, &context, until, room)?;
            let removing = Removing { namespace, until, unsettled: &due.over, most: room, noted, policy };
            let went = expire(slice.ledger, &context, removing, &mut || {
                is_enough = (slice.enough)();
                is_enough
            })?;
            (gone.limbo, gone.erased) = (gone.limbo + went.limbo, gone.erased + went.erased);
            let tx = &*slice.ledger.tx;
            is_last = due.seen < room && tx.ended(ns, until, 1)?.is_empty();
            // The slice may have ended before it came to one of them.
            for (_, id) in &due.over {
                is_last =
                    is_last && !sound(tx.vitals(ns, *id))?.flatten().is_some_and(|row| is_over(&row, until));
            }
        }
        self.last.set(gone);
        Ok(Applied { is_last, ..Applied::rows(gone.sum()) })
    }
}

/// Memories whose end has come and was not settled, with their ends.
pub(crate) type Unsettled = Vec<(Time, MemoryId)>;

/// Instants that have come.
pub(crate) struct Due {
    /// How many were looked at.
    pub(crate) seen: usize,
    /// The memories that are left to be removed.
    pub(crate) over: Unsettled,
}

/// Settles instants of a namespace that have come, at most `most`. Memories whose life was over at `until` are left to be removed:
/// what goes anyway is not written once more before.
///
/// # Errors
/// `Corrupted`.
pub(crate) fn settle_due(
    ledger: &mut Ledger<'_, '_>,
    context: &Context,
    until: Time,
    most: usize,
) -> Result<Due> {
    let mut over = Vec::new();
    let seen = ledger.settle(context, most, |ledger, id| {
        let vitals = sound(ledger.tx.vitals(context.ns, id))?.flatten();
        let end = vitals.filter(|vitals| is_over(vitals, until)).and_then(|vitals| vitals.times.expires_at);
        over.extend(end.map(|end| (end, id)));
        Ok(end.is_some())
    })?;
    Ok(Due { seen, over })
}

/// Which memories are to go.
#[derive(Clone, Copy)]
pub(crate) struct Removing<'n> {
    pub(crate) namespace: &'n NamespaceName,
    /// Those whose life was over at this instant.
    pub(crate) until: Time,
    /// Those of them whose end has come and was not settled, with their ends.
    pub(crate) unsettled: &'n Unsettled,
    /// So many of them, those that were over first.
    pub(crate) most: usize,
    /// Uses that no commit has counted: one before the end moves the end, so the memory is not over.
    pub(crate) noted: &'n Accesses,
    /// What a use moves the end by.
    pub(crate) policy: &'n Policy,
}

impl Removing<'_> {
    /// The end of a memory after a use that waits to be counted; none where no use moves it.
    fn moved_end(&self, ns: NsId, id: MemoryId, vitals: &Vitals) -> Option<Time> {
        slid(vitals, &self.noted.of(ns, id)?, self.policy)
    }
}

/// Removes memories whose life is over, and asks `enough` after each of them whether the slice is long enough. What
/// the table of ended memories says is looked up again in each memory, because the table could be damaged.
///
/// # Errors
/// `Corrupted`.
pub(crate) fn expire(
    ledger: &mut Ledger<'_, '_>,
    context: &Context,
    removing: Removing<'_>,
    enough: &mut dyn FnMut() -> bool,
) -> Result<Gone> {
    let (ns, name) = (context.ns, removing.namespace.as_str());
    let mut gone = Gone::default();
    let mut ended = ledger.tx.ended(ns, removing.until, removing.most)?;
    ended.extend_from_slice(removing.unsettled);
    // Most writes find nothing, and must not pay for more than the look.
    if ended.is_empty() {
        return Ok(gone);
    }
    ended.sort_unstable();
    ended.dedup();
    ended.truncate(removing.most);
    let there = ledger.tx.namespace(name)?;
    let Some(mut row) = there.filter(|row| row.number == ns.0 && !row.dropping) else { return Ok(gone) };
    let horizons = (row.horizon_known_ms, row.horizon_valid_ms);
    for (_, id) in ended {
        let vitals = sound(ledger.tx.vitals(ns, id))?.flatten();
        let vitals = vitals.filter(|vitals| is_over(vitals, removing.until));
        match vitals {
            Some(vitals) if move_end(ledger, context, &removing, id, &vitals)? => {}
            Some(vitals) if waits(ledger, context, id, &vitals)? => {
                let (reason, replaced_by) = (TombstoneReason::Expired, None);
                let change = Change::Retire { id, reason, replaced_by };
                ledger.apply(context, Entry::new(RuleId::EXPIRED, change))?;
                gone.limbo += 1;
            }
            Some(vitals) => {
                erase_ended(ledger, context, &mut row, id, &vitals)?;
                gone.erased += 1;
            }
            // The unit itself has changed it since, and has put it where it belongs.
            None if removing.unsettled.iter().any(|(_, open)| *open == id) => {}
            None => ledger.strike_ended(ns, id)?,
        }
        if enough() {
            break;
        }
    }
    if horizons != (row.horizon_known_ms, row.horizon_valid_ms) {
        ledger.tx.put_namespace(name, &row)?;
    }
    Ok(gone)
}

/// Moves the end of a memory that was used before it, if no commit has counted the use yet. It is counted later.
fn move_end(
    ledger: &mut Ledger<'_, '_>,
    context: &Context,
    removing: &Removing<'_>,
    id: MemoryId,
    vitals: &Vitals,
) -> Result<bool> {
    let Some(end) = removing.moved_end(context.ns, id, vitals) else { return Ok(false) };
    let Some(access) = sound(ledger.tx.access(context.ns, id))? else { return Ok(false) };
    let rows = vec![Folded { id, before: vitals.clone(), access, expires_at: Some(end), confidence: None }];
    ledger.apply(context, Entry::new(RuleId::of_pass(Pass::Fold), Change::Fold { rows }))?;
    Ok(true)
}

/// Whether a memory goes to limbo. Lost parts keep a memory from coming back, but not from being erased.
fn waits(ledger: &Ledger<'_, '_>, context: &Context, id: MemoryId, vitals: &Vitals) -> Result<bool> {
    if vitals.expires_by == ExpiresBy::Caller || !context.keeps_limbo {
        return Ok(false);
    }
    Ok(ledger.is_whole(context.ns, id)? && ledger.has_its_vector(context.ns, vitals)?)
}

/// Erases a memory whose life is over, and raises the purge horizons of its namespace. Where a caller set the end of what counts
/// messages, the first message goes as well, unless it is protected: it says the same.
///
/// # Errors
/// `Corrupted`.
pub(crate) fn erase_ended(
    ledger: &mut Ledger<'_, '_>,
    context: &Context,
    row: &mut NamespaceRow,
    id: MemoryId,
    vitals: &Vitals,
) -> Result<()> {
    let ns = context.ns;
    let erase = |ledger: &mut Ledger<'_, '_>, id| {
        let change = Change::Remove { id, reason: TombstoneReason::Expired, replaced_by: None };
        ledger.apply(context, Entry::new(RuleId::of_pass(Pass::Expire), change))
    };
    // Asked before the row goes, because its content names the aggregate. Other memories of the kind count nothing.
    let counts = vitals.kind_code == Kind::Aggregate.code()
        && vitals.life().is_promised_end()
        && sound(ledger.stands_for_messages(ns, id))?.unwrap_or_default();
    let erased = erase(ledger, id)?.erased;
    row.raise_horizons(&vitals.times);
    let before = erased.iter().flat_map(|erased| &erased.predecessors);
    for (first, _) in before.filter(|(_, mode)| counts && *mode == SupersedeMode::Aggregate) {
        let first_row = sound(ledger.tx.vitals(ns, *first))?.flatten();
        if let Some(vitals) = first_row.filter(|vitals| !vitals.is_protected()) {
            erase(ledger, *first)?;
            row.raise_horizons(&vitals.times);
        }
    }
    Ok(())
}
