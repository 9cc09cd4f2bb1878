//! Journal and tombstones.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::Result;
use crate::hygiene::check::state::{Check, seen};
use crate::hygiene::report::Code;
use crate::model::{JournalRow, MemoryId};
use crate::record::{At, decode_journal, decode_tombstone};
use crate::store::control::LimboRow;
use crate::store::keys;
use crate::store::{NsId, Rows, Table, meta_of};
use crate::text::is_hidden;
use crate::vector::UnitVector;

impl Check<'_> {
    pub(super) fn journal(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let row = decode_journal(At::new(Table::Journal.name(), key), value)?;
        let keys::Journal { ns, seq } = keys::Journal::read(Table::Journal, key)?;
        if row.seq != seq {
            self.find(Code::ValueShape, Table::Journal, key, format!("row {} says the value", row.seq));
        }
        if seq >= self.clock.next_seq || row.at.as_millis() > self.clock.at_ms {
            let what = format!("row {seq} at {} was not written yet", row.at);
            self.find(Code::JournalSeq, Table::Journal, key, what);
        }
        for (id, holder) in row.found_by() {
            if self.lacks(Table::JournalSubject, &keys::journal_subject(ns, *id, holder, seq))? {
                let what = format!("row {seq} is not found by memory {id}");
                self.find(Code::JournalSubject, Table::Journal, key, what);
            }
        }
        let Some(id) = row.subject else { return Ok(()) };
        let plain = row.deltas.iter().find(|delta| is_plain(&delta.before) || is_plain(&delta.after));
        if let Some(delta) = plain
            && self.has_tombstone(ns, id)?
            && self.lacks(Table::Limbo, &keys::memory(ns, id))?
        {
            let what = format!("{} of {id}, which was erased", delta.field);
            self.find(Code::JournalPlain, Table::Journal, key, what);
        }
        Ok(())
    }

    pub(super) fn journal_subject(&mut self, key: &[u8]) -> Result<()> {
        let table = Table::JournalSubject;
        let keys::JournalSubject { ns, id, holder, seq } = keys::JournalSubject::read(table, key)?;
        if self.is_about(ns, seq, (id, holder))? == Some(false) {
            let what = format!("row {seq} is not about {id}");
            self.find(Code::JournalSubject, table, key, what);
        }
        Ok(())
    }

    /// Whether a row of the journal is found by a memory; none if the row is damaged. The row of a merge is found by each of
    /// its members, so it is read once and not for each of them.
    fn is_about(&mut self, ns: NsId, seq: u64, about: (MemoryId, Option<u32>)) -> Result<Option<bool>> {
        if let Some(members) = self.merges.of(ns, seq) {
            return Ok(Some(members.contains(&about)));
        }
        let Some(row) = seen(self.snapshot.journal_row(ns, seq))? else { return Ok(None) };
        let Some(row) = row else { return Ok(Some(false)) };
        let found_by: BTreeSet<_> = row.found_by().map(|(id, holder)| (*id, holder)).collect();
        let is_about = found_by.contains(&about);
        self.merges.keep(ns, seq, found_by);
        Ok(Some(is_about))
    }

    pub(super) fn journal_run(&mut self, key: &[u8]) -> Result<()> {
        let keys::JournalRun { ns, run, seq } = keys::JournalRun::read(Table::JournalRun, key)?;
        let of_run = |row: JournalRow| row.run == Some(run) && row.can_be_undone();
        if let Some(row) = seen(self.snapshot.journal_row(ns, seq))?
            && !row.is_some_and(of_run)
        {
            let what = format!("row {seq} is none that its run can take back");
            self.find(Code::JournalRun, Table::JournalRun, key, what);
        }
        Ok(())
    }

    /// A row of limbo has vitals that say since when, a tombstone, and its place in time.
    pub(super) fn limbo(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let row: LimboRow = meta_of(Table::Limbo, key, value)?;
        let keys::Limbo { ns, id } = keys::Limbo::read(Table::Limbo, key)?;
        if !row.vector.is_empty() && UnitVector::from_stored(row.vector).is_none() {
            self.find(Code::Limbo, Table::Limbo, key, "the vector is not of unit length");
        }
        if self.lacks_tombstone(ns, id)? {
            self.find(Code::Limbo, Table::Limbo, key, format!("{id} waits here without a tombstone"));
        }
        if let Some(vitals) = self.vitals_of(ns, id)? {
            let since = vitals.and_then(|vitals| vitals.times.removed_at);
            let place = since.map(|since| keys::by_instant(ns, since, id));
            if place.is_none_or(|place| self.lacks(Table::LimboTime, &place).unwrap_or(false)) {
                self.find(Code::Limbo, Table::Limbo, key, format!("{id} is not found by its removal"));
            }
        }
        Ok(())
    }

    pub(super) fn limbo_time(&mut self, key: &[u8]) -> Result<()> {
        let keys::LimboTime { ns, at, id } = keys::LimboTime::read(Table::LimboTime, key)?;
        if let Some(vitals) = self.vitals_of(ns, id)?
            && vitals.is_none_or(|vitals| vitals.times.removed_at != Some(at))
        {
            self.find(Code::Limbo, Table::LimboTime, key, format!("{id} was not removed then"));
        }
        Ok(())
    }

    pub(super) fn tombstone(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let tombstone = decode_tombstone(At::new(Table::Tombstone.name(), key), value)?;
        let keys::Tombstone { ns, id } = keys::Tombstone::read(Table::Tombstone, key)?;
        self.counts.add_tombstone(ns);
        if tombstone.id != id {
            let what = format!("the tombstone of {} says the value", tombstone.id);
            self.find(Code::ValueShape, Table::Tombstone, key, what);
        }
        // What waits in limbo has its tombstone already, and no junctions.
        let waits = !self.lacks(Table::Limbo, key)?;
        let rows = [Table::Vitals, Table::Memory, Table::Access, Table::Holder, Table::Payload];
        for table in [Table::Junction].into_iter().chain(rows) {
            if waits && table != Table::Junction {
                continue;
            }
            if self.has_any(table, key)? {
                let what = format!("there is a row in {} still", table.name());
                self.find(Code::TombstoneRow, Table::Tombstone, key, what);
            }
        }
        for hash in tombstone.key_hashes.iter().chain([&tombstone.content_hash]) {
            let row = keys::tombstone_hash(ns, hash, id);
            if self.lacks(Table::TombstoneHash, &row)? {
                let what = format!("the tombstone of {id} is not found here");
                self.find(Code::TombstoneHash, Table::TombstoneHash, &row, what);
            }
        }
        let row = keys::by_instant(ns, tombstone.deleted_at, id);
        if self.lacks(Table::TombstoneTime, &row)? {
            let what = format!("the tombstone of {id} is not found here");
            self.find(Code::IndexMissing, Table::TombstoneTime, &row, what);
        }
        Ok(())
    }

    pub(super) fn tombstone_time(&mut self, key: &[u8]) -> Result<()> {
        let keys::TombstoneTime { ns, at, id } = keys::TombstoneTime::read(Table::TombstoneTime, key)?;
        if let Some(found) = seen(self.snapshot.tombstone(ns, id))?
            && found.is_none_or(|found| found.deleted_at != at)
        {
            self.find(Code::IndexExtra, Table::TombstoneTime, key, format!("{id} was not removed then"));
        }
        Ok(())
    }

    pub(super) fn tombstone_hash(&mut self, key: &[u8]) -> Result<()> {
        let keys::TombstoneHash { ns, hash, id } = keys::TombstoneHash::read(Table::TombstoneHash, key)?;
        if self.is_of_tombstone(ns, id, hash)? == Some(false) {
            let what = format!("no tombstone of {id} has it");
            self.find(Code::TombstoneHash, Table::TombstoneHash, key, what);
        }
        Ok(())
    }

    /// Whether a tombstone has a hash; none if the tombstone is damaged. That of a memory of many keys is found by each of
    /// them, so it is read once and not for each of them.
    fn is_of_tombstone(&mut self, ns: NsId, id: MemoryId, hash: &[u8; 32]) -> Result<Option<bool>> {
        if let Some(hashes) = self.stones.of(ns, id) {
            return Ok(Some(hashes.contains(hash)));
        }
        let Some(found) = seen(self.snapshot.tombstone(ns, id))? else { return Ok(None) };
        let Some(found) = found else { return Ok(Some(false)) };
        let hashes: BTreeSet<_> = found.key_hashes.into_iter().chain([found.content_hash]).collect();
        let is_of_tombstone = hashes.contains(hash);
        self.stones.keep(ns, id, hashes);
        Ok(Some(is_of_tombstone))
    }
}

/// Whether a value may say something about a person.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => !is_hidden(text),
        Value::Array(_) | Value::Object(_) => true,
    }
}
