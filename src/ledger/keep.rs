//! Rows of an export, written as they were: memories in every state, runs that can be undone, messages.

use crate::error::Result;
use crate::index::slots::{self, Filling};
use crate::ledger::applied::Applied;
use crate::ledger::change::Recreated;
use crate::ledger::writer::{Context, Ledger, Why, truth};
use crate::model::{Access, Actor, Joint, JournalRow, Limbo, Link, MemoryId, Op, Parts};
use crate::store::control::{CounterSort as Sort, LimboRow};
use crate::store::{AggregateRow, EventRow, FamilyRow, Id, IndexId, MessageRows, NsId, PartId, Rows};
use crate::vector::{Coded, UnitVector};

impl Ledger<'_, '_> {
    /// Puts a memory back as it was: id, holders, times, statistics, and its row in limbo.
    pub(super) fn recreate(&mut self, context: &Context, row: Recreated, why: Why) -> Result<Applied> {
        let Recreated { id, parts, holders, vector, sources, limbo, payload } = row;
        let ns = context.ns;
        self.refuse_used(ns, id)?;
        let Parts { mut vitals, content, access } = parts;
        vitals.place.payload = payload.is_some();
        vitals.place.usage = access.usage(vitals.tier);
        // The id is new here, so that there is no row to be taken away.
        if payload.is_some() {
            truth(self.tx).put_payload(ns, id, payload.as_ref())?;
        }
        if access != Access::default() {
            truth(self.tx).put_access(ns, id, &access)?;
        }
        let vector = vector.map(|values| UnitVector::new("vector", &values)).transpose()?;
        let Some((at, limbo)) = vitals.times.removed_at.zip(limbo) else {
            if let Some(vector) = &vector {
                let coded = Coded::of(vector);
                let index = IndexId::of(ns, &vitals);
                self.staged.push(index, id, &coded);
                let (commit, times) = (self.clock.commit, &vitals.times);
                let filling = Filling { commit, id, times, coded: &coded };
                vitals.place.slot = Some(slots::claim(self.tx, index, filling)?);
            }
            for holder in &holders {
                self.put_holder(ns, id, holder)?;
            }
            self.join_sources(ns, id, &sources)?;
            self.store_row(context, id, None, vitals, &content)?;
            self.journal(context, Op::Recreate, Some((id, None)), Vec::new(), why)?;
            return Ok(Applied::default());
        };
        // A row in limbo is joined to nothing and has no slot.
        for holder in &holders {
            truth(self.tx).put_holder(ns, id, holder)?;
        }
        let part = PartId(vitals.place.partition);
        let row = limbo_row(&limbo, vector.as_ref(), &sources);
        truth(self.tx).put_limbo(ns, id, at, &row)?;
        self.store_row(context, id, None, vitals, &content)?;
        match &limbo.tombstone {
            Some(tombstone) => {
                truth(self.tx).put_tombstone(ns, tombstone)?;
                self.counters.add(ns, part, Sort::Tombstones, "", 1, 0);
            }
            None => drop(self.bury_in_limbo(context, id, &row)?),
        }
        self.journal(context, Op::Recreate, Some((id, None)), Vec::new(), why)?;
        Ok(Applied::default())
    }

    /// Joins a memory to an end that came after it. Returns false if the memory or its holder no longer
    /// exists.
    pub(crate) fn join(&mut self, ns: NsId, joint: &Joint) -> Result<bool> {
        let there = self.tx.vitals(ns, joint.id)?.is_some_and(|row| row.times.removed_at.is_none());
        let Some(number) = joint.number else {
            if there {
                self.join_sources(ns, joint.id, &[joint.to])?;
            }
            return Ok(there);
        };
        let Some(mut holder) = self.tx.holder(ns, joint.id, number)?.filter(|_| there) else {
            return Ok(false);
        };
        let link = Link { to: joint.to, relation: joint.relation.clone() };
        if let Err(at) = holder.links.binary_search(&link) {
            holder.links.insert(at, link);
            self.put_holder(ns, joint.id, &holder)?;
        }
        Ok(true)
    }

    /// Puts back a journal row that `undo` of its run will need, under the next number.
    pub(crate) fn keep_step(&mut self, context: &Context, step: &JournalRow) -> Result<()> {
        let seq = self.clock.next_seq;
        self.clock.next_seq += 1;
        let (policy_number, policy_hash) = (context.policy_number, context.policy_hash);
        let row = JournalRow { seq, actor: Actor::Sweeper, policy_number, policy_hash, ..step.clone() };
        truth(self.tx).put_journal(context.ns, &row)?;
        let Some(id) = step.subject else { return Ok(()) };
        // A step of an export may tell of a memory that is erased here. Its values must not come back through
        // the journal.
        let erased =
            self.tx.vitals(context.ns, id)?.is_none() && self.tx.tombstone(context.ns, id)?.is_some();
        if erased { self.redact(context.ns, id) } else { Ok(()) }
    }

    /// Puts an aggregate back.
    pub(crate) fn keep_aggregate(&mut self, ns: NsId, id: &Id, row: &AggregateRow) -> Result<()> {
        self.counters.add(ns, PartId(row.part), Sort::Aggregates, "", 1, 0);
        truth(self.tx).put_aggregate(ns, id, row)
    }

    /// Puts a message back, and the slice of the family that it began.
    pub(crate) fn keep_event(
        &mut self,
        ns: NsId,
        id: &Id,
        row: &EventRow,
        family: Option<&FamilyRow>,
    ) -> Result<()> {
        if self.tx.event(ns, id)?.is_none() {
            self.counters.add(ns, PartId(row.part), Sort::Events, "", 1, 0);
        }
        truth(self.tx).put_event(ns, id, row)?;
        let Some(family) = family else { return Ok(()) };
        truth(self.tx).put_family(ns, id, family)?;
        // The line of an aggregate comes before those of its messages, and does not say which of them began the slice.
        if let Some(aggregate) = &family.aggregate
            && let Some(numbers) = self.tx.aggregate(ns, aggregate)?.filter(|numbers| numbers.began != *id)
        {
            truth(self.tx).put_aggregate(ns, aggregate, &AggregateRow { began: *id, ..numbers })?;
        }
        Ok(())
    }
}

fn limbo_row(limbo: &Limbo, vector: Option<&UnitVector>, sources: &[MemoryId]) -> LimboRow {
    LimboRow {
        run: limbo.run,
        reason: limbo.reason,
        replaced_by: limbo.replaced_by,
        replaced: limbo.replaced,
        transferred: limbo.transferred,
        vector: vector.map(|vector| vector.as_slice().to_vec()).unwrap_or_default(),
        sources: sources.to_vec(),
        links: limbo.links.clone(),
    }
}
