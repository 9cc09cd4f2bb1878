//! Putting a summary in the place of its sources, inside a write transaction: only if each source is as the plan saw
//! it, and everything at once.

use std::collections::BTreeSet;

use crate::error::{Result, sound};
use crate::hygiene::gc::candidates::may_be_told;
use crate::hygiene::gc::pack::{Shared, shared};
use crate::ingest::{NamespaceWriter, Prepared};
use crate::ledger::{Change, Context, Entry, Ledger};
use crate::model::{
    Actor, Evidence, GroupState, MemoryId, PlanState, RecallGuard, Refusal, RuleId, RunId, RunSort,
    TombstoneReason,
};
use crate::policy::{OnConflict, OnSourceForget, Policy};
use crate::store::control::RunState;
use crate::store::{GroupRow, NsId, PlanRow, PlanRows, Rows, Stamp};

/// What is to be committed.
pub(crate) struct Committing<'c> {
    pub(crate) plan: RunId,
    pub(crate) group: u32,
    /// The sources that the summary is to stand for.
    pub(crate) sources: &'c [MemoryId],
    /// The sources that the summary names.
    pub(crate) named: &'c [String],
    /// The summary as a draft, with what its sources have in common.
    pub(crate) draft: &'c dyn Fn(&Shared) -> Result<Prepared>,
    pub(crate) digest: [u8; 32],
    /// The run of the commit.
    pub(crate) run: RunId,
    /// Memories that the commit may remove.
    pub(crate) budget: u64,
}

/// What became of a summary.
pub(crate) enum Verdict {
    /// The group is committed, now or already before.
    Done(Box<GroupRow>),
    /// Nothing has changed.
    Refused(Refusal, String),
}

/// A plan and a group of it.
///
/// # Errors
/// `Corrupted`.
pub(crate) fn group_of<R: PlanRows>(
    rows: &R,
    ns: NsId,
    plan: RunId,
    group: u32,
) -> Result<Option<(PlanRow, GroupRow)>> {
    Ok(rows.gc_plan(ns, plan)?.zip(rows.gc_group(ns, plan, group)?))
}

/// Commits a group, or says why not. `guard` asks what finds some memories whether it would find the summary.
///
/// # Errors
/// Those of the ledger. The transaction must then be given up.
pub(crate) fn carry_out(
    writer: &mut NamespaceWriter<'_, '_, '_>,
    wanted: &Committing<'_>,
    guard: &dyn Fn(&[MemoryId]) -> Result<RecallGuard>,
) -> Result<Verdict> {
    let ns = writer.context.ns;
    let Some((plan, mut group)) = group_of(&*writer.ledger.tx, ns, wanted.plan, wanted.group)? else {
        return Ok(Verdict::Refused(Refusal::PlanNotFound, "there is no such group".to_owned()));
    };
    if group.state == GroupState::Committed {
        let run = group.run.map(|run| writer.ledger.tx.run(ns, run)).transpose()?.flatten();
        if run.is_some_and(|run| matches!(run.state, RunState::Undoing | RunState::Undone)) {
            let why = "the summary of the group was taken back; plan again".to_owned();
            return Ok(Verdict::Refused(Refusal::PlanClosed, why));
        }
        return Ok(repeated(group, wanted.digest));
    }
    if let Some((refusal, why)) = closed(writer, &plan, &group).or_else(|| foreign(&group, wanted)) {
        return Ok(Verdict::Refused(refusal, why));
    }
    let (kept, skipped) = as_planned(writer, &group, wanted.sources)?;
    let Named { forgotten, untold } = named_of(writer, &skipped, wanted.named)?;
    if let Some((id, refusal)) = untold {
        let why = format!(
            "the summary names memory {id}, which it must not tell of any more; summarize without the memory"
        );
        return Ok(Verdict::Refused(refusal, why));
    }
    let gc = &writer.policy.gc;
    if let Some(id) = forgotten.first().filter(|_| gc.on_source_forget == OnSourceForget::Retire) {
        let why = format!("the summary names memory {id}, which was forgotten; summarize without it");
        return Ok(Verdict::Refused(Refusal::SourceGone, why));
    }
    if let Some((id, refusal)) = skipped.last()
        && (gc.on_conflict == OnConflict::Refuse || kept.len() < gc.min_group as usize)
    {
        return Ok(Verdict::Refused(*refusal, format!("memory {id} is not as the plan saw it")));
    }
    if gc.delete_sources && kept.len() as u64 > wanted.budget {
        let why = format!("{} memories would go, and {} may", kept.len(), wanted.budget);
        return Ok(Verdict::Refused(Refusal::Budget, why));
    }
    let guard = guard(&kept)?;
    if guard.is_below(gc.recall_floor) {
        let RecallGuard { hit_before, hit_after, .. } = guard;
        let why = format!("{hit_before} questions find a source, and {hit_after} would find the summary");
        return Ok(Verdict::Refused(Refusal::RecallBelowFloor, why));
    }
    // The engine carries the round out, row by row; the run is of whoever asked for the round.
    let asked = writer.context.clone();
    let context = Context { actor: Actor::Sweeper, run: Some(wanted.run), ..asked.clone() };
    writer.context = context.clone();
    let by = (RuleId::SUMMARIZE, writer.policy.gc.delete_sources);
    // A source that stays has no say in what the others have in common.
    let shared = shared(&*writer.ledger.tx, ns, &kept)?;
    let summary = writer.store_made(&(wanted.draft)(&shared)?, group.part, &kept, &shared.tags, by)?;
    if !forgotten.is_empty() {
        writer.ledger.note_forgotten(&context, summary, forgotten.len() as u64)?;
    }
    let removed = give_way(writer, &context, &kept, summary)?;
    writer.ledger.note_part(&asked, wanted.run, RunSort::Maintain, [("summarized", kept.len() as u64)])?;
    writer.ledger.end_run(ns, wanted.run, context.now)?;
    group = GroupRow {
        state: GroupState::Committed,
        summary: Some(summary),
        digest: Some(wanted.digest),
        run: Some(wanted.run),
        removed,
        skipped,
        guard: [guard.probes, guard.hit_before, guard.hit_after],
        refusal: None,
        ..group
    };
    writer.ledger.tx.put_gc_group(ns, wanted.plan, wanted.group, &group)?;
    close_plan(writer.ledger, ns, wanted.plan, plan)?;
    Ok(Verdict::Done(Box::new(group)))
}

/// Lets sources give way to their summary, or notes on them that one covers them, as the policy says. Returns how many went.
fn give_way(
    writer: &mut NamespaceWriter<'_, '_, '_>,
    context: &Context,
    sources: &[MemoryId],
    summary: MemoryId,
) -> Result<u64> {
    let deletes = writer.policy.gc.delete_sources;
    for id in sources {
        if deletes {
            let (reason, replaced_by) = (TombstoneReason::Summarized, Some(summary));
            let change = Change::Retire { id: *id, reason, replaced_by };
            writer.ledger.apply(context, Entry::new(RuleId::SUMMARIZE, change))?;
        } else {
            writer.ledger.note_summarized(context, *id)?;
        }
    }
    Ok(if deletes { sources.len() as u64 } else { 0 })
}

fn repeated(group: GroupRow, digest: [u8; 32]) -> Verdict {
    if group.digest == Some(digest) {
        return Verdict::Done(Box::new(group));
    }
    Verdict::Refused(Refusal::AlreadyCommitted, "the group has another summary".to_owned())
}

/// Why nothing of the plan is carried out any more.
fn closed(
    writer: &NamespaceWriter<'_, '_, '_>,
    plan: &PlanRow,
    group: &GroupRow,
) -> Option<(Refusal, String)> {
    let state = plan.state_at(writer.context.now);
    if state != PlanState::Open || !group.is_open() {
        let state = if group.is_open() { state.as_str() } else { group.state.as_str() };
        return Some((Refusal::PlanClosed, format!("it is {state}")));
    }
    let other = plan.policy_hash != writer.context.policy_hash;
    other.then(|| (Refusal::PolicyChanged, "plan again under the policy in force".to_owned()))
}

/// Why the sources are not those of the group, or of the summary.
fn foreign(group: &GroupRow, wanted: &Committing<'_>) -> Option<(Refusal, String)> {
    let planned: BTreeSet<MemoryId> = group.sources.iter().map(|stamp| stamp.id).collect();
    if let Some(id) = wanted.sources.iter().find(|id| !planned.contains(id)) {
        return Some((Refusal::NotInGroup, format!("memory {id} is not one of the group")));
    }
    let committing: BTreeSet<String> = wanted.sources.iter().map(MemoryId::to_string).collect();
    let id = wanted.named.iter().find(|id| !committing.contains(*id))?;
    Some((Refusal::BadProvenance, format!("the summary names {id}, which it does not stand for")))
}

type Skipped = Vec<(MemoryId, Refusal)>;

/// The sources that are as the plan saw them, in the order of the plan, and those that are not.
fn as_planned(
    writer: &NamespaceWriter<'_, '_, '_>,
    group: &GroupRow,
    sources: &[MemoryId],
) -> Result<(Vec<MemoryId>, Skipped)> {
    let wanted: BTreeSet<&MemoryId> = sources.iter().collect();
    let (mut kept, mut skipped) = (Vec::new(), Vec::new());
    for stamp in group.sources.iter().filter(|stamp| wanted.contains(&stamp.id)) {
        match changed(writer.ledger, &writer.context, stamp, writer.policy)? {
            None => kept.push(stamp.id),
            Some(refusal) => skipped.push((stamp.id, refusal)),
        }
    }
    Ok((kept, skipped))
}

/// What became of memories from which the summary was made, and for which it does not stand.
struct Named {
    /// Those that were forgotten since the plan: the summary may still tell of them, as one does whose sources are forgotten after
    /// it.
    forgotten: Vec<MemoryId>,
    /// One of which no summary may tell by now: its end was set since, its truth has ended or is to end, or it is
    /// not true yet. With the refusal.
    untold: Option<(MemoryId, Refusal)>,
}

fn named_of(writer: &NamespaceWriter<'_, '_, '_>, skipped: &Skipped, named: &[String]) -> Result<Named> {
    let (ns, now) = (writer.context.ns, writer.context.now);
    let named: BTreeSet<&String> = named.iter().collect();
    let mut found = Named { forgotten: Vec::new(), untold: None };
    for (id, _) in skipped.iter().filter(|(id, _)| named.contains(&id.to_string())) {
        if !writer.ledger.tx.has_row(ns, *id)? {
            match has_kept_promise(writer, *id)? {
                true => found.untold = Some((*id, Refusal::SourceGone)),
                false => found.forgotten.push(*id),
            }
        } else if let Some(vitals) = writer.ledger.whole_vitals(ns, *id)?
            // An end is one also where it has passed: of the life, while the row waits to be erased, and of the truth. What is only
            // superseded has neither.
            && (vitals.life().is_promised_end() || vitals.times.valid_to.is_some() || vitals.times.from() > now)
        {
            let is_gone = vitals.times.superseded.is_some();
            let refusal = if is_gone { Refusal::SourceGone } else { Refusal::SourceChanged };
            found.untold = Some((*id, refusal));
        }
    }
    Ok(found)
}

/// Whether a row was erased at the end that a caller had set: it never waited in limbo.
fn has_kept_promise(writer: &NamespaceWriter<'_, '_, '_>, id: MemoryId) -> Result<bool> {
    let stone = sound(writer.ledger.tx.tombstone(writer.context.ns, id))?.flatten();
    Ok(stone.is_some_and(|stone| stone.reason == TombstoneReason::Expired && stone.erased_at.is_none()))
}

/// What has changed in a source since the plan.
fn changed(
    ledger: &Ledger<'_, '_>,
    context: &Context,
    stamp: &Stamp,
    policy: &Policy,
) -> Result<Option<Refusal>> {
    let (ns, now) = (context.ns, context.now);
    let row = ledger.whole_vitals(ns, stamp.id)?.filter(|row| row.times.visible_live(now));
    let Some(row) = row else { return Ok(Some(Refusal::SourceGone)) };
    let Some(access) = sound(ledger.tx.access(ns, stamp.id))? else {
        return Ok(Some(Refusal::SourceChanged));
    };
    if row.is_protected() || access.protected_until.is_some_and(|until| until > now) {
        return Ok(Some(Refusal::SourceProtected));
    }
    if row.version != stamp.version || !may_be_told(&row, now) {
        return Ok(Some(Refusal::SourceChanged));
    }
    let is_used = access.access_seq != stamp.access_seq;
    let counts = policy.gc.strict_use
        || access.included_count_at(now, policy.access.tau_days) >= policy.gc.access_threshold;
    Ok((is_used && counts).then_some(Refusal::SourceUsed))
}

/// Notes on the group, if there is one, and in the journal that a summary was refused.
///
/// # Errors
/// Those of the ledger.
pub(crate) fn refuse(
    writer: &mut NamespaceWriter<'_, '_, '_>,
    plan: RunId,
    group: u32,
    refusal: Refusal,
) -> Result<()> {
    let ns = writer.context.ns;
    let evidence = Evidence { signature: Some(refusal.as_str().to_owned()), ..Evidence::default() };
    let context = writer.context.clone();
    writer.ledger.refuse(&context, RuleId::REFUSE_SUMMARY, evidence)?;
    let row = writer.ledger.tx.gc_group(ns, plan, group)?.filter(GroupRow::is_open);
    let Some(row) = row else { return Ok(()) };
    let row = GroupRow { state: GroupState::Refused, refusal: Some(refusal), ..row };
    writer.ledger.tx.put_gc_group(ns, plan, group, &row)
}

/// Closes a plan whose groups are all done.
pub(crate) fn close_plan(ledger: &mut Ledger<'_, '_>, ns: NsId, plan: RunId, row: PlanRow) -> Result<()> {
    let groups = ledger.tx.gc_groups(ns, plan, &row)?;
    if groups.iter().any(|(_, group)| group.is_open()) {
        return Ok(());
    }
    let any = groups.iter().any(|(_, group)| group.state == GroupState::Committed);
    let state = if any { PlanState::Committed } else { PlanState::Aborted };
    ledger.tx.put_gc_plan(ns, plan, &row.ended(state))
}
