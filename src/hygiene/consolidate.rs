//! Which short-term memories in use are distilled together, and putting the result beside them.

use std::collections::BTreeMap;

use crate::error::{Result, sound};
use crate::hygiene::adjust::{Adjustable, Adjustment, Promotion};
use crate::hygiene::plan::Field;
use crate::hygiene::promote::{candidates, read};
use crate::ingest::{NamespaceWriter, Prepared};
use crate::ledger::{Change, Context, Entry};
use crate::model::{Actor, Evidence, MemoryId, Pass, RuleId, RunId, RunSort};
use crate::policy::Policy;
use crate::store::{Rows, Snapshot};

/// The short-term memories that were used often enough and that no consolidation has looked at: those of one partition
/// together, at most `promote.batch` at a time.
///
/// # Errors
/// `Corrupted`, except for damaged rows, which are left out.
pub(crate) fn to_consolidate(field: &Field, rows: &Snapshot, policy: &Policy) -> Result<Vec<Vec<MemoryId>>> {
    let mut by_partition: BTreeMap<u32, Vec<MemoryId>> = BTreeMap::new();
    for id in candidates(field, rows, policy)? {
        let Some(candidate) = read(field, rows, policy, id)? else { continue };
        if candidate.access.last_consolidated_at.is_none() {
            by_partition.entry(candidate.vitals.place.partition).or_default().push(id);
        }
    }
    let batch = policy.promote.batch as usize;
    Ok(by_partition.values().flat_map(|ids| ids.chunks(batch)).map(<[MemoryId]>::to_vec).collect())
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
    let context = Context { actor: Actor::Sweeper, run: Some(distilled.run), ..writer.context.clone() };
    writer.context = context.clone();
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

/// Journals that nothing was distilled from memories.
///
/// # Errors
/// Those of the ledger.
pub(crate) fn refuse_consolidation(
    writer: &mut NamespaceWriter<'_, '_, '_>,
    members: &[MemoryId],
    why: &str,
) -> Result<()> {
    let evidence =
        Evidence { signature: Some(why.to_owned()), members: members.to_vec(), ..Evidence::default() };
    let context = Context { actor: Actor::Sweeper, ..writer.context.clone() };
    writer.ledger.refuse(&context, RuleId::of_pass(Pass::Promote), evidence)
}
