//! Rows of an export put back as they were: ids, holders, states, tombstones (MODEL-48).

use crate::error::{Error, Result};
use crate::ingest::Desk;
use crate::ingest::fields::{fields_of, given_by_code};
use crate::ledger::Change;
use crate::model::{Decision, Evidence, Memory, Outcome, RuleId, Tombstone, check_content};
use crate::store::Rows;
use crate::store::control::SpaceRow;
use crate::text::normal_form;

impl Desk<'_, '_, '_> {
    /// Puts a memory of an export back. A memory that is there already is left as it is: the same file again.
    ///
    /// # Errors
    /// `Conflict` when the id was used and is gone, or a key belongs to another current row.
    pub(crate) fn recreate(&mut self, mut memory: Memory) -> Result<Outcome> {
        let (ns, id) = (self.ns(), memory.id);
        let key = memory.keys.first().cloned();
        let partition = memory.partition.clone();
        let known = self.ledger.tx.vitals(ns, id)?.is_some();
        if !known {
            check_content(&memory.content.text, memory.vector.is_some())?;
            if memory.holders.is_empty() {
                return Err(Error::invalid("holders", "must have at least one entry", "none"));
            }
            self.check_keys(&memory)?;
            let part = self.open_partition(&memory.partition)?;
            let place = &mut memory.vitals.place;
            place.partition = part.0;
            place.fingerprint = normal_form(&memory.content.text).prefix();
            if let Some(vector) = &memory.vector {
                // An export does not say whose vectors it holds: those of the handle's embedder, if they can be.
                let own = self.embeds.clone().filter(|(_, dim)| *dim == vector.len());
                let name = own.map_or_else(|| SpaceRow::CALLER.into(), |(name, _)| name);
                memory.vitals.place.space = self.open_space_of(vector.len(), &name)?.0;
            }
            let fields = fields_of(&memory);
            for holder in &mut memory.holders {
                given_by_code(holder, &fields, self.ledger.secret);
            }
            self.apply(RuleId::IMPORT_ROW, Change::Recreate(Box::new(memory)))?;
        }
        Ok(Outcome {
            id,
            key,
            partition,
            decision: if known { Decision::Unchanged } else { Decision::Stored },
            rule: RuleId::IMPORT_ROW,
            policy_rule: None,
            event: None,
            evidence: Evidence::default(),
            hints: Vec::new(),
            policy_number: self.context.policy_number,
        })
    }

    fn check_keys(&self, memory: &Memory) -> Result<()> {
        if !memory.vitals.times.is_current(self.now()) {
            return Ok(());
        }
        for key in &memory.keys {
            if let Some((other, _)) = self.current_holder(key)? {
                return Err(Error::Conflict {
                    what: format!("key {key}"),
                    why: format!("memory {other} holds it"),
                });
            }
        }
        Ok(())
    }

    /// Puts a tombstone of an export back.
    pub(crate) fn recreate_tombstone(&mut self, tombstone: &Tombstone) -> Result<bool> {
        let ns = self.ns();
        if self.ledger.tx.vitals(ns, tombstone.id)?.is_some() {
            let why = "a memory has this id".to_owned();
            return Err(Error::Conflict { what: format!("tombstone {}", tombstone.id), why });
        }
        self.ledger.keep_tombstone(&self.context, tombstone)
    }
}
