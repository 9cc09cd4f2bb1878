//! Tombstones, where the policy does not keep them for ever.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::hygiene::pass::Slice;
use crate::hygiene::retention::aged::{Aged, PAGE, RetentionReport, Site, Visit};
use crate::ledger::is_named;
use crate::model::{MemoryId, Span, Time};
use crate::policy::Policy;
use crate::store::{
    AggregateRow, FamilyRow, Id, MessageRows, Read, Rows, Snapshot, Table, Walk, keys, meta_of,
};

/// Which tombstones go.
pub(super) struct Tombstones {
    site: Site,
    /// Those of what was removed before this instant; none: no one does.
    old: Option<Time>,
    /// The memories that aggregates and families name; their tombstones say what became of them.
    of_messages: BTreeSet<Id>,
}

impl Tombstones {
    pub(super) fn of(rows: &Snapshot, policy: &Policy, site: Site) -> Result<Self> {
        let kept = policy.tombstone.retention;
        let old = (kept > Span::ZERO).then(|| site.now.minus(kept).min(site.undoable));
        let mut all = Tombstones { site, old, of_messages: BTreeSet::new() };
        // No index leads from a memory to its aggregate or family, so these are read where they could keep a tombstone.
        let mut is_any = false;
        all.due(rows, None, &mut |_| {
            is_any = true;
            ControlFlow::Break(())
        })?;
        if !is_any {
            return Ok(all);
        }
        let prefix = Walk::prefix(&keys::ns(site.ns));
        rows.walk(Table::Aggregate, &prefix, &mut |key, bytes| {
            let row = sound(meta_of::<AggregateRow>(Table::Aggregate, key, bytes))?;
            all.of_messages.extend(row.and_then(|row| row.memory));
            Ok(ControlFlow::Continue(()))
        })?;
        rows.walk(Table::Family, &prefix, &mut |key, bytes| {
            let row = sound(meta_of::<FamilyRow>(Table::Family, key, bytes))?;
            all.of_messages.extend(row.map(|row| row.first_memory));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// Whether a tombstone goes: it does not while its memory is in limbo, nor while something names the memory.
    fn goes(&self, rows: &impl MessageRows, id: MemoryId) -> Result<bool> {
        let ns = self.site.ns;
        Ok(!self.of_messages.contains(id.as_bytes()) && !rows.has_row(ns, id)? && !is_named(rows, ns, id)?)
    }
}

impl Aged for Tombstones {
    /// When the memory was removed, and its id.
    type Place = (Time, MemoryId);

    const JOURNALED: Option<&'static str> = Some("tombstones");

    fn due(
        &self,
        rows: &Snapshot,
        after: Option<(Time, MemoryId)>,
        visit: Visit<'_, (Time, MemoryId)>,
    ) -> Result<u64> {
        let Some(old) = self.old else { return Ok(0) };
        let mut from = after;
        // A page at a time, because most of what is old may be named.
        loop {
            let page = rows.instants_before(Table::TombstoneTime, self.site.ns, old, from, PAGE)?;
            let Some(last) = page.last() else { return Ok(0) };
            from = Some(*last);
            for (at, id) in page {
                if self.goes(rows, id)? && visit((at, id)).is_break() {
                    return Ok(0);
                }
            }
        }
    }

    fn end(&self, slice: &mut Slice<'_, '_, '_>, page: &[(Time, MemoryId)]) -> Result<u64> {
        let mut over = Vec::with_capacity(page.len());
        for (_, id) in page {
            if self.goes(&*slice.ledger.tx, *id)? {
                over.push(*id);
            }
        }
        slice.ledger.end_tombstones(self.site.ns, &over)
    }

    fn counted(report: &mut RetentionReport) -> &mut u64 {
        &mut report.tombstones
    }
}
