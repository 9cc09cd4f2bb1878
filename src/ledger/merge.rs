//! Merging: the members of a group of duplicates become one.

use std::collections::BTreeSet;

use serde_json::json;

use crate::error::{Result, sound};
use crate::ledger::applied::{Applied, Merged};
use crate::ledger::change::{Merge, Moves};
use crate::ledger::insert::{tags_fit, unite};
use crate::ledger::limbo::Aside;
use crate::ledger::raised::raised;
use crate::ledger::writer::{Context, End, Ledger, Whole, Why};
use crate::model::{Access, Delta, Holder, MemoryId, Op, Parts, TombstoneReason, Vitals};

/// The row that stays, while it changes.
struct Canonical {
    id: MemoryId,
    parts: Parts,
    /// The end of the row, and who has written it.
    end: End,
}

impl Ledger<'_, '_> {
    pub(super) fn merge(&mut self, context: &Context, merge: Merge, why: Why) -> Result<Applied> {
        let ns = context.ns;
        let (id, version) = merge.canonical;
        let mut merged = Merged::default();
        let before = sound(self.whole(ns, id))?.flatten();
        // The plan was made on an earlier snapshot, so only rows that still have the planned version are
        // merged.
        let fits = |row: &Vitals| row.version == version && row.times.is_current(context.now);
        let Some(whole) = before.filter(|row| fits(&row.vitals)) else {
            merged.skipped = merge.losers.len() as u64;
            return Ok(Applied { merged: Some(merged), ..Applied::default() });
        };
        let end = whole.end();
        let Whole { vitals: before, content: old, .. } = whole;
        let parts = Parts { vitals: before.clone(), content: old.clone(), access: Access::default() };
        let mut canonical = Canonical { id, parts, end };
        // A row that is erased at once has a journal row of its own, which names the row that stays and no other
        // loser.
        let mut apart = why.clone();
        apart.evidence.members = vec![id];
        let mut why = why;
        let (mut deltas, mut erased) = (Vec::new(), Vec::new());
        for (loser, version) in merge.losers {
            let row = sound(self.whole(ns, loser))?.flatten().filter(|whole| {
                let Whole { vitals: row, content, .. } = whole;
                row.version == version
                    && row.times.is_current(context.now)
                    && !row.is_protected()
                    && tags_fit(&canonical.parts.content.tags, &content.tags)
                    && canonical.end.join(&whole.end())
            });
            let Some(whole) = row else {
                merged.skipped += 1;
                continue;
            };
            let Whole { vitals, content, holders } = whole;
            let row = Parts { vitals, content, access: Access::default() };
            self.take_in(context, &mut canonical, loser, &row, &holders, merge.latest_happened_at)?;
            let Parts { vitals: row, content, .. } = row;
            let kept = &mut canonical.parts.vitals;
            // A count of zero counts as one observation (DEDUP-17).
            let count = row.reinforcement_count.max(1);
            let sum = kept.reinforcement_count.saturating_add(count);
            // The sum may have met its bound. Limbo keeps what arrived, so that a return takes back no more.
            let transferred = sum - kept.reinforcement_count;
            kept.reinforcement_count = sum;
            merged.transferred += u64::from(count);
            merged.removed.push(loser);
            why.evidence.members.push(loser);
            let shown = json!({ "id": loser, "reinforcement_count": count, "happened_at": row.happened_at });
            deltas.push(Delta { field: "merged".to_owned(), before: shown, after: json!(null) });
            let reason = TombstoneReason::Collapsed;
            let row = Whole { vitals: row, content, holders };
            let aside = Aside { reason, replaced_by: Some(id), transferred };
            erased.append(&mut self.set_aside(context, loser, row, aside, &apart)?);
        }
        if !merged.removed.is_empty() {
            let Parts { mut vitals, mut content, .. } = canonical.parts;
            // The row keeps their ids, wherever they have gone by then (MODEL-49).
            let known: BTreeSet<_> = content.consolidated_from.iter().copied().collect();
            content.consolidated_from.extend(merged.removed.iter().filter(|id| !known.contains(id)));
            deltas.push(Delta {
                field: "reinforcement_count".to_owned(),
                before: json!(before.reinforcement_count),
                after: json!(vitals.reinforcement_count),
            });
            deltas.extend(raised(&before, &vitals));
            why.evidence.transferred = u32::try_from(merged.transferred).ok();
            vitals.version += 1;
            merged.version = vitals.version;
            // The row's own links, and links to it, may have changed while the losers went.
            self.place_row(context, id, &before, &old, vitals, &content)?;
            let seq = self.clock.next_seq;
            self.journal(context, Op::Merge, Some((id, None)), deltas, why)?;
            if !erased.is_empty() {
                // The step names memories that are erased by now, so it says of them what their purge would have left of it
                // (MODEL-32).
                self.redact_row(ns, seq, |_| true)?;
            }
        }
        Ok(Applied { erased, merged: Some(merged), ..Applied::default() })
    }

    /// Adds what a loser brings to the row that stays: holders with their shares, tags, links, the longest life, the
    /// most durable tier.
    fn take_in(
        &mut self,
        context: &Context,
        canonical: &mut Canonical,
        loser: MemoryId,
        row: &Parts,
        holders: &[Holder],
        latest_happened_at: bool,
    ) -> Result<()> {
        let (ns, id) = (context.ns, canonical.id);
        let Parts { vitals: kept, content: kept_content, .. } = &mut canonical.parts;
        let brought = self.brought_vector(ns, (&row.vitals, &row.content), &kept_content.text)?;
        for holder in holders {
            // A key that another current row holds stays there, so its holder does not move.
            if self.is_taken(context, holder, (loser, &row.vitals.times), id, Moves::All)? {
                continue;
            }
            unite(&mut kept_content.tags, &holder.tags);
            let number = kept.place.give_number()?;
            let copy =
                self.merged_copy(holder.clone(), (&row.content.text, &kept_content.text), brought.as_ref());
            let mut moved = Holder { number, from: Some(loser), since: context.now, ..copy };
            // A memory is not linked to itself (MODEL-24).
            moved.links.retain(|link| link.to != id && link.to != loser);
            self.put_holder(ns, id, &moved)?;
            kept.place.holders += 1;
        }
        kept.set_life(canonical.end.life);
        if latest_happened_at {
            kept.happened_at = kept.happened_at.max(row.vitals.happened_at);
        }
        canonical.parts.merge_fields(row);
        Ok(())
    }
}
