//! The journal: one row for each mutation, in its transaction. Values of erased memories become HMACs.

use serde_json::Value;

use crate::error::{Result, sound};
use crate::ledger::writer::{Context, Ledger, Swept, Why, truth};
use crate::model::{Delta, Holder, JournalRow, MemoryId, Op};
use crate::store::control::{CounterSort as Sort, JournalHeadRow};
use crate::store::{NsId, Rows, Walk, keys};
use crate::text::is_hidden;

impl Ledger<'_, '_> {
    /// Writes the journal row of a mutation.
    pub(crate) fn journal(
        &mut self,
        context: &Context,
        op: Op,
        subject: Option<(MemoryId, Option<u32>)>,
        deltas: Vec<Delta>,
        why: Why,
    ) -> Result<()> {
        let seq = self.clock.next_seq;
        // The clock is written in the same transaction, so a rollback gives the number back.
        self.clock.next_seq += 1;
        let row = JournalRow {
            seq,
            at: context.now,
            actor: context.actor,
            run: context.run,
            op,
            rule: why.rule,
            subject: subject.map(|(id, _)| id),
            holder: subject.and_then(|(_, holder)| holder),
            deltas,
            evidence: why.evidence,
            policy_number: context.policy_number,
            policy_hash: context.policy_hash,
        };
        truth(self.tx).put_journal(context.ns, &row)
    }

    /// Removes rows of the journal for their age, and says from where on it is whole. Returns their number.
    pub(crate) fn end_journal(&mut self, ns: NsId, seqs: &[u64]) -> Result<u64> {
        let Some(last) = seqs.iter().max() else { return Ok(0) };
        let mut rows = Vec::with_capacity(seqs.len());
        for &seq in seqs {
            match sound(self.tx.journal_row(ns, seq))? {
                Some(row) => rows.extend(row),
                None => self.drop_journal_row(ns, seq)?,
            }
        }
        truth(self.tx).delete_journal(ns, &rows)?;
        let from = self.tx.journal_from(ns)?.max(last.saturating_add(1));
        self.tx.put_journal_head(ns, &JournalHeadRow { from })?;
        Ok(seqs.len() as u64)
    }

    /// Counts a write that is not stored, and journals it under `id`.
    pub(crate) fn ignore(&mut self, context: &Context, id: MemoryId, why: Why) -> Result<()> {
        self.counters.add_total(context.ns, Sort::Ignored, 1);
        self.journal(context, Op::Ignore, Some((id, None)), Vec::new(), why)
    }

    /// The last step of the journal by which another row has taken the place of this one, if it is such a step. What the journal tells
    /// of single holders is not read.
    pub(crate) fn last_supersession(
        &self,
        ns: NsId,
        id: MemoryId,
        is: impl Fn(&JournalRow) -> bool,
    ) -> Result<Option<JournalRow>> {
        let steps = Walk::prefix(&keys::journal_holder(ns, id, None));
        for seq in self.tx.journal_numbers(&steps)?.into_iter().rev() {
            let step = sound(self.tx.journal_row(ns, seq))?.flatten();
            let step = step.filter(|step| step.op == Op::Supersede && is(step));
            if step.is_some() {
                return Ok(step);
            }
        }
        Ok(None)
    }

    /// The steps of the journal about a row after one of them, in their order.
    pub(crate) fn told_since(&self, ns: NsId, id: MemoryId, seq: u64) -> Result<Vec<JournalRow>> {
        let mut later = self.tx.journal_numbers(&Walk::prefix(&keys::memory(ns, id)))?;
        later.retain(|at| *at > seq);
        self.tx.journal_rows(ns, later)
    }

    /// The first step after one of the journal by which something joined a row and is still in it: a write, or a row that was
    /// merged into it.
    pub(crate) fn joined_since(&self, ns: NsId, id: MemoryId, seq: u64) -> Result<Option<JournalRow>> {
        let mut later = self.tx.journal_numbers(&Walk::prefix(&keys::memory(ns, id)))?;
        for old in self.tx.superseded_by(ns, id)? {
            later.append(&mut self.tx.journal_numbers(&Walk::prefix(&keys::memory(ns, old)))?);
        }
        later.retain(|at| *at > seq);
        for row in self.tx.journal_rows(ns, later)? {
            let is_merged = |loser: MemoryId| -> Result<bool> {
                let vitals = sound(self.tx.vitals(ns, loser))?.flatten();
                Ok(vitals.is_none_or(|vitals| vitals.times.merged_into() == Some(id)))
            };
            let is_in = match (row.op, row.subject, row.holder) {
                (Op::Hold, Some(of), Some(number)) if of == id => {
                    sound(self.tx.holder(ns, id, number))?.flatten().is_some()
                }
                (Op::Merge, Some(of), _) if of == id => {
                    let mut is_in = false;
                    for loser in &row.evidence.members {
                        is_in |= is_merged(*loser)?;
                    }
                    is_in
                }
                (Op::Supersede, Some(loser), _) if row.evidence.members.first() == Some(&id) => {
                    is_merged(loser)?
                }
                _ => false,
            };
            if is_in {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Writes a step of the journal again, with other values.
    pub(crate) fn rewrite_step(&mut self, ns: NsId, row: &JournalRow) -> Result<()> {
        self.swept = None;
        truth(self.tx).rewrite_journal(ns, row)
    }

    /// Replaces the values that a subject brought into the journal by their HMACs.
    pub(super) fn redact(&mut self, ns: NsId, id: MemoryId) -> Result<()> {
        self.redact_wholly(ns, &keys::memory(ns, id))
    }

    /// The same for holders that leave a row to others. Tags that no single holder brought are replaced if no holder
    /// brings them now. If another writer says now what the row says, all such values are replaced.
    pub(super) fn redact_holders(
        &mut self,
        ns: NsId,
        id: MemoryId,
        leaving: &[Holder],
        said_anew: bool,
    ) -> Result<()> {
        for holder in leaving {
            self.redact_wholly(ns, &keys::journal_holder(ns, id, Some(holder.number)))?;
        }
        // A holder that leaves may have brought a tag that an update has taken away since.
        let tags = sound(self.tx.content(ns, id))?.flatten().map(|content| content.tags).unwrap_or_default();
        let is_gone =
            |tag: &Value| tag.as_str().is_some_and(|tag| !tags.iter().any(|brought| brought == tag));
        let names = |value: &Value| value.as_array().is_some_and(|tags| tags.iter().any(is_gone));
        // The steps at which an earlier departure has looked have nothing more to redact, if as much was redacted then.
        let swept = self.swept.take().filter(|swept| {
            let as_much = swept.tags.as_ref().is_none_or(|then| !said_anew && *then == tags);
            swept.of == (ns, id) && as_much
        });
        let from = swept.map_or(0, |swept| swept.next);
        let walk = Walk::prefix(&keys::journal_holder(ns, id, None))
            .starting_at(&keys::journal_subject(ns, id, None, from));
        for seq in self.tx.journal_numbers(&walk)? {
            self.redact_row(ns, seq, |value| said_anew || names(value))?;
        }
        let next = self.clock.next_seq;
        self.swept = Some(Swept { of: (ns, id), next, tags: Some(tags).filter(|_| !said_anew) });
        Ok(())
    }

    /// Replaces a key in the steps of a holder.
    pub(super) fn redact_key(&mut self, ns: NsId, id: MemoryId, number: u32, key: &str) -> Result<()> {
        let steps = Walk::prefix(&keys::journal_holder(ns, id, Some(number)));
        for seq in self.tx.journal_numbers(&steps)? {
            self.redact_row(ns, seq, |value| value.as_str() == Some(key))?;
        }
        Ok(())
    }

    /// Replaces all values and evidence in journal rows by their HMACs: in the rows whose key by subject begins with `prefix`.
    pub(super) fn redact_wholly(&mut self, ns: NsId, prefix: &[u8]) -> Result<()> {
        for seq in self.tx.journal_numbers(&Walk::prefix(prefix))? {
            // A row that tells of many memories is read for the first of them.
            if self.redacted.insert((ns, seq)) {
                self.redact_row(ns, seq, |_| true)?;
            }
        }
        Ok(())
    }

    /// Replaces those values and that evidence of a journal row that `is_gone` names. An unreadable row is removed, because there is no other way to make what it tells unreadable.
    pub(super) fn redact_row(&mut self, ns: NsId, seq: u64, is_gone: impl Fn(&Value) -> bool) -> Result<()> {
        let Some(row) = sound(self.tx.journal_row(ns, seq))? else {
            return self.drop_journal_row(ns, seq);
        };
        let Some(mut row) = row else { return Ok(()) };
        let mut changed = false;
        for delta in &mut row.deltas {
            for value in [&mut delta.before, &mut delta.after] {
                changed |= is_gone(value) && self.redact_value(value);
            }
        }
        if let Some(signature) = row.evidence.signature.take() {
            let mut value = Value::String(signature);
            changed |= is_gone(&value) && self.redact_value(&mut value);
            row.evidence.signature = value.as_str().map(str::to_owned);
        }
        if changed {
            truth(self.tx).rewrite_journal(ns, &row)?;
        }
        Ok(())
    }

    /// Numbers, flags and instants say nothing about a person. Texts, lists and objects may.
    fn redact_value(&self, value: &mut Value) -> bool {
        let hidden = match &*value {
            Value::Null | Value::Bool(_) | Value::Number(_) => return false,
            // An HMAC of an HMAC would differ, so redacting twice must leave the first value.
            Value::String(text) if is_hidden(text) => return false,
            other => self.secret.hidden(&other.to_string()),
        };
        *value = Value::String(hidden);
        true
    }
}
