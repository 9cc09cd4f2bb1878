//! What callers ask of plans, and what they are told of them.

use serde::Serialize;

use crate::error::{Result, sound};
use crate::hygiene::gc::probes::past_queries;
use crate::model::{
    GcProbe, GroupState, MemoryId, PlanState, ProbeSource, RecallGuard, Refusal, RunId, Span, Time,
    TimeRange, is_zero,
};
use crate::policy::Gc;
use crate::store::{GroupRow, NsId, PlanRow, Rows, Snapshot};
use crate::summary::Fault;

/// What a plan of summaries is asked for; what is none comes from the policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GcOptions {
    /// Largest number of tokens of all sources; 60,000 by default.
    pub limit_tokens: Option<u64>,
    /// Age above which a memory may be summarized.
    pub age_min: Option<Span>,
    /// Decayed number of inclusions below which a memory may be summarized.
    pub access_threshold: Option<f64>,
    /// The number of tokens that a group should have: one that has more is divided into parts of about this length. None: as
    /// many as the policy allows, or as many as suit the summarizer of a run.
    pub group_tokens: Option<u64>,
    /// Largest number of groups, 1 to 50.
    pub max_groups: Option<u32>,
    /// Questions that must go on to be answered, at most 10 of 1 to 400 characters: each that finds a source before the
    /// commit must find the summary after it, beside those that `gc.auto_probes` adds.
    pub probes: Vec<String>,
}

/// A plan of summaries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GcPlan {
    /// Its id.
    pub plan_id: RunId,
    /// The policy that it was made under.
    pub policy_version: String,
    /// How far it is.
    pub state: PlanState,
    /// When it was made.
    pub created_at: Time,
    /// Instant from which nothing of it is carried out.
    pub expires_at: Time,
    /// Why it was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its groups, the oldest first.
    pub groups: Vec<GcGroup>,
    /// Of a plan without groups: the open plans, which have memories that it could have summarized. Only the call that makes a plan
    /// knows them. Not in JSON while there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<RunId>,
    /// Memories that could not be read when the plan was made, and were left alone. Only the call that makes a plan knows
    /// them. Not in JSON while there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub damaged: u64,
}

/// A group of a plan: memories that become one summary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GcGroup {
    /// Its id within the plan.
    pub group_id: String,
    /// How far it is.
    pub state: GroupState,
    /// The memories.
    pub source_ids: Vec<MemoryId>,
    /// Their estimated tokens.
    pub estimated_tokens: u64,
    /// From the first to the last of them.
    pub time_range: TimeRange,
    /// The channel of the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel_id: Option<String>,
    /// The thread of the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The aggregate of the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate_id: Option<MemoryId>,
    /// The questions that it will be asked, while it waits for its summary: those of the plan's caller, and past queries
    /// (`gc.keep_queries`). What `gc.auto_probes` adds to them is made of the sources when the summary is there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<GcProbe>,
    /// The summary, once it stands in their place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_memory_id: Option<MemoryId>,
    /// The run that put it there, for `undo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Why the last summary was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
    /// Why the group was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A source that had changed since the plan, and stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct GcSkipped {
    /// The memory.
    pub id: MemoryId,
    /// What had changed.
    pub why: Refusal,
}

/// A summary that stands in the place of its sources.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GcCommitted {
    /// The summary.
    pub summary_memory_id: MemoryId,
    /// Sources that went.
    pub deleted_count: u64,
    /// Sources that had changed and stay.
    pub skipped: Vec<GcSkipped>,
    /// Whether what found the sources finds the summary.
    pub recall_guard: RecallGuard,
    /// The run, for `undo`.
    pub run: Option<RunId>,
    /// What was repaired in the summary before it could be read.
    pub repairs: Vec<Fault>,
    /// What was cut or corrected in the summary.
    pub warnings: Vec<Fault>,
}

/// What a committed group came to.
pub(crate) fn committed(group: &GroupRow, repairs: Vec<Fault>, warnings: Vec<Fault>) -> Option<GcCommitted> {
    let [probes, before, after] = group.guard;
    Some(GcCommitted {
        summary_memory_id: group.summary?,
        deleted_count: group.removed,
        skipped: group.skipped.iter().map(|(id, why)| GcSkipped { id: *id, why: *why }).collect(),
        recall_guard: RecallGuard::new(probes, before, after),
        run: group.run,
        repairs,
        warnings,
    })
}

/// A plan as callers are told of it.
///
/// # Errors
/// `Corrupted`, where more than single rows is damaged.
pub(crate) fn plan_told(
    rows: &Snapshot,
    ns: NsId,
    plan_id: RunId,
    row: &PlanRow,
    groups: Vec<(u32, GroupRow)>,
    (now, gc): (Time, &Gc),
) -> Result<GcPlan> {
    let is_open = row.state_at(now) == PlanState::Open;
    let groups = groups.into_iter().map(|(number, group)| -> Result<GcGroup> {
        let probes = match is_open && group.is_open() {
            true => probes_told(rows, ns, row, &group, gc)?,
            false => Vec::new(),
        };
        Ok(GcGroup { probes, ..group_told(rows, ns, number, group)? })
    });
    let hash: String = row.policy_hash.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(GcPlan {
        plan_id,
        policy_version: format!("{}-{hash}", row.policy_number),
        state: row.state_at(now),
        created_at: Time::from_millis(row.created_ms),
        expires_at: Time::from_millis(row.expires_ms),
        reason: row.reason.clone(),
        groups: groups.collect::<Result<_>>()?,
        held_by: Vec::new(),
        damaged: 0,
    })
}

/// The questions that a group will be asked, as far as they are known before its summary.
fn probes_told(rows: &Snapshot, ns: NsId, plan: &PlanRow, group: &GroupRow, gc: &Gc) -> Result<Vec<GcProbe>> {
    let ids: Vec<MemoryId> = group.sources.iter().map(|stamp| stamp.id).collect();
    let past = past_queries(rows, ns, &ids, gc)?.into_iter().map(|row| (row.text, ProbeSource::Query));
    let given = plan.probes.iter().map(|text| (text.clone(), ProbeSource::Caller));
    Ok(given.chain(past).map(|(text, from)| GcProbe { text, from }).collect())
}

fn group_told(rows: &Snapshot, ns: NsId, number: u32, group: GroupRow) -> Result<GcGroup> {
    let times = || group.sources.iter().map(|stamp| Time::from_millis(stamp.at_ms));
    let first = group.sources.first().map(|stamp| sound(rows.content(ns, stamp.id))).transpose()?;
    let first = first.flatten().flatten();
    Ok(GcGroup {
        group_id: number.to_string(),
        state: group.state,
        estimated_tokens: group.tokens,
        time_range: TimeRange {
            start: times().min().unwrap_or(Time::EPOCH),
            end: times().max().unwrap_or(Time::EPOCH),
        },
        source_ids: group.sources.iter().map(|stamp| stamp.id).collect(),
        channel_id: first.as_ref().and_then(|first| first.channel.clone()),
        thread: first.as_ref().and_then(|first| first.thread.clone()),
        aggregate_id: first.and_then(|first| first.aggregate_id),
        probes: Vec::new(),
        summary_memory_id: group.summary,
        run: group.run,
        refusal: group.refusal,
        reason: group.reason,
    })
}
