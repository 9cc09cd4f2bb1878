//! Which memories are distilled together, and what becomes of the result: it stands beside short-term memories in use, and takes
//! the place of the members of a cluster.

use std::collections::BTreeMap;

use crate::error::{Result, sound};
use crate::hygiene::adjust::{Adjustable, Adjustment, Promotion};
use crate::hygiene::cluster::{Clustering, Member};
use crate::hygiene::pass::PlanInput;
use crate::hygiene::plan::Field;
use crate::hygiene::promote::{candidates, read};
use crate::ingest::{NamespaceWriter, Prepared, owner_of};
use crate::ledger::{Change, Context, Entry, Moves};
use crate::model::{Actor, Evidence, MemoryId, Pass, RuleId, RunId, RunSort, SupersedeMode};
use crate::policy::Policy;
use crate::store::{Rows, Snapshot};

/// The short-term memories that were used often enough, that no consolidation has looked at, and whose end no caller set: those of
/// one partition, owner and validity together, at most `promote.batch` at a time.
///
/// # Errors
/// `Corrupted`, except for damaged rows, which are left out.
pub(crate) fn to_consolidate(field: &Field, rows: &Snapshot, policy: &Policy) -> Result<Vec<Vec<MemoryId>>> {
    let mut alike: BTreeMap<_, Vec<MemoryId>> = BTreeMap::new();
    for id in candidates(field, rows, policy)? {
        let Some(candidate) = read(field, rows, policy, id)? else { continue };
        if candidate.access.last_consolidated_at.is_none() && !candidate.vitals.life().is_promised_end() {
            let owner = owner_of(&candidate.content.metadata);
            let times = &candidate.vitals.times;
            let place = (candidate.vitals.place.partition, owner, times.valid_from, times.valid_to);
            alike.entry(place).or_default().push(id);
        }
    }
    let batch = policy.promote.batch as usize;
    Ok(alike.values().flat_map(|ids| ids.chunks(batch)).map(<[MemoryId]>::to_vec).collect())
}

/// The clusters of which one memory may be made: their members but those that are pinned or locked, or whose end a caller set, at
/// least two, the most important first, at most `promote.batch` of them at a time.
///
/// # Errors
/// `Corrupted`, except for damaged rows, which are left out.
pub(crate) fn to_unite(input: PlanInput<'_>) -> Result<Vec<Vec<MemoryId>>> {
    let found = Clustering::of(input, &mut |_| false)?;
    let open = |cluster: Vec<Member>| {
        // What is made of a member would keep its words past the end that a caller set.
        let is_open = |member: &Member| !member.protected && !member.ends;
        let open = cluster.into_iter().filter(is_open).map(|member| member.id);
        open.take(input.policy.promote.batch as usize).collect::<Vec<_>>()
    };
    let clusters = found.into_iter().flat_map(|found| found.clusters);
    Ok(clusters.map(open).filter(|members| members.len() >= 2).collect())
}

/// What was distilled from memories.
pub(crate) struct Distilled<'d> {
    /// The memories, with the versions that were shown.
    pub(crate) sources: &'d [(MemoryId, u64)],
    /// What they come to.
    pub(crate) draft: &'d Prepared,
    /// The run of the consolidation.
    pub(crate) run: RunId,
}

impl Distilled<'_> {
    /// What is written from now on is written by maintenance, in the run.
    fn begin(&self, writer: &mut NamespaceWriter<'_, '_, '_>) -> Context {
        let context = Context { actor: Actor::Sweeper, run: Some(self.run), ..writer.context.clone() };
        writer.context = context.clone();
        context
    }
}

/// Stores what was distilled with its sources, and notes in the sources that they were looked at; a source of the tier
/// `working` becomes episodic if it was not before. None, and nothing is written, where a source is not as it was shown.
///
/// # Errors
/// Those of the ledger. The transaction must then be given up.
pub(crate) fn consolidate(
    writer: &mut NamespaceWriter<'_, '_, '_>,
    distilled: &Distilled<'_>,
) -> Result<Option<MemoryId>> {
    let (ns, policy) = (writer.context.ns, writer.policy);
    let promotion = Promotion { uses: u64::from(policy.promote.access), ttl: policy.ttl.episodic };
    let context = distilled.begin(writer);
    let (mut changes, mut part, mut sources) = (Vec::new(), 0, Vec::new());
    for &(id, version) in distilled.sources {
        let vitals = writer.ledger.whole_vitals(ns, id)?.filter(|row| row.version == version);
        let access = sound(writer.ledger.tx.access(ns, id))?;
        let Some((vitals, access)) = vitals.zip(access) else { return Ok(None) };
        let before = Adjustable { vitals, access };
        let Some(next) = Adjustment::Consolidate(promotion).of(&before, context.now) else { return Ok(None) };
        part = before.vitals.place.partition;
        sources.push(id);
        let deltas = before.deltas(&next);
        let (vitals, access) = (Box::new(next.vitals), Box::new(next.access));
        changes.push(Change::Adjust { id, version, vitals, access, deltas });
    }
    let rule = RuleId::of_pass(Pass::Promote);
    let made = writer.store_made(distilled.draft, part, &sources, &[], (rule, false))?;
    for change in changes {
        writer.ledger.apply(&context, Entry::new(rule, change))?;
    }
    let count = sources.len() as u64;
    writer.ledger.note_part(&context, distilled.run, RunSort::Maintain, [("consolidated", count)])?;
    Ok(Some(made))
}

/// Stores what was made of a cluster, which supersedes its sources. None, and nothing is written, where a source is not as it
/// was shown, or is protected by now.
///
/// # Errors
/// Those of the ledger. The transaction must then be given up.
pub(crate) fn unite(
    writer: &mut NamespaceWriter<'_, '_, '_>,
    distilled: &Distilled<'_>,
) -> Result<Option<MemoryId>> {
    let ns = writer.context.ns;
    let context = distilled.begin(writer);
    let (mut part, mut sources) = (0, Vec::with_capacity(distilled.sources.len()));
    for &(id, version) in distilled.sources {
        let row = writer.ledger.whole_vitals(ns, id)?.filter(|row| {
            row.version == version && !row.is_protected() && row.times.visible_live(context.now)
        });
        let Some(row) = row else { return Ok(None) };
        part = row.place.partition;
        sources.push(id);
    }
    let rule = RuleId::of_pass(Pass::Cluster);
    let made = writer.store_made(distilled.draft, part, &sources, &[], (rule, false))?;
    for &old in &sources {
        // Keys stay with what they named: the new text is nobody's.
        let (mode, at, moves) = (SupersedeMode::Aggregate, context.now, Moves::None);
        let change = Change::Supersede { old, new: made, mode, at, moves, since: None, via: None };
        writer.ledger.apply(&context, Entry::new(rule, change))?;
    }
    let count = sources.len() as u64;
    writer.ledger.note_part(&context, distilled.run, RunSort::Maintain, [("united", count)])?;
    Ok(Some(made))
}

/// Journals that nothing was distilled from memories for a pass.
///
/// # Errors
/// Those of the ledger.
pub(crate) fn refuse_consolidation(
    writer: &mut NamespaceWriter<'_, '_, '_>,
    pass: Pass,
    members: &[MemoryId],
    why: &str,
) -> Result<()> {
    let evidence =
        Evidence { signature: Some(why.to_owned()), members: members.to_vec(), ..Evidence::default() };
    let context = Context { actor: Actor::Sweeper, ..writer.context.clone() };
    writer.ledger.refuse(&context, RuleId::of_pass(pass), evidence)
}
