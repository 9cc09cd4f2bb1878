//! Journal and tombstones.

use serde_json::Value;

use crate::error::Result;
use crate::hygiene::check::rows::memory_of;
use crate::hygiene::check::{Check, seen};
use crate::hygiene::report::Code;
use crate::model::{JournalRow, RunId};
use crate::record::{At, decode_journal, decode_meta, decode_tombstone};
use crate::store::control::{LimboRow, PassRow};
use crate::store::keys::{self, Parts};
use crate::store::{NsId, Rows, Table};
use crate::vector::UnitVector;

impl Check<'_> {
    pub(super) fn journal(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let row = decode_journal(At::new(Table::Journal.name(), key), value)?;
        let mut parts = Parts(key);
        let (Some(ns), Some(seq)) = (parts.u32().map(NsId), parts.u64()) else { return Ok(()) };
        if row.seq != seq {
            self.find(Code::ValueShape, Table::Journal, key, format!("row {} says the value", row.seq));
        }
        if seq >= self.clock.next_seq || row.at.as_millis() > self.clock.at_ms {
            let what = format!("row {seq} at {} was not written yet", row.at);
            self.find(Code::JournalSeq, Table::Journal, key, what);
        }
        for (id, holder) in row.found_by() {
            if !self.has(Table::JournalSubject, &keys::journal_subject(ns, *id, holder, seq))? {
                let what = format!("row {seq} is not found by memory {id}");
                self.find(Code::JournalSubject, Table::Journal, key, what);
            }
        }
        let Some(id) = row.subject else { return Ok(()) };
        let plain = row.deltas.iter().find(|delta| is_plain(&delta.before) || is_plain(&delta.after));
        if let Some(delta) = plain
            && self.has_tombstone(ns, id)?
            && !self.has(Table::Limbo, &keys::memory(ns, id))?
        {
            let what = format!("{} of {id}, which was erased", delta.field);
            self.find(Code::JournalPlain, Table::Journal, key, what);
        }
        Ok(())
    }

    pub(super) fn journal_subject(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.no_value(Table::JournalSubject, key, value);
        let mut parts = Parts(key);
        let (ns, id, holder) = (parts.u32().map(NsId), parts.id(), parts.u32());
        let (Some(ns), Some((id, holder)), Some(seq)) = (ns, id.zip(holder), parts.u64()) else {
            return Ok(());
        };
        let holder = Some(holder).filter(|number| *number != u32::MAX);
        if let Some(row) = seen(self.snapshot.journal_row(ns, seq))?
            && row.is_none_or(|row| row.found_by().all(|about| about != (&id, holder)))
        {
            let what = format!("row {seq} is not about {id}");
            self.find(Code::JournalSubject, Table::JournalSubject, key, what);
        }
        Ok(())
    }

    pub(super) fn journal_run(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.no_value(Table::JournalRun, key, value);
        let mut parts = Parts(key);
        let (ns, run, seq) = (parts.u32().map(NsId), parts.take::<16>(), parts.u64());
        let (Some(ns), Some(run), Some(seq)) = (ns, run, seq) else { return Ok(()) };
        let of_run = |row: JournalRow| row.run == Some(RunId::from_bytes(run)) && row.can_be_undone();
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
        let at = At::new(Table::Limbo.name(), key);
        let row: LimboRow = decode_meta(Table::Limbo.tag(), at, value)?;
        let Some((ns, id)) = memory_of(key) else { return Ok(()) };
        if !row.vector.is_empty() && UnitVector::from_stored(row.vector).is_none() {
            self.find(Code::Limbo, Table::Limbo, key, "the vector is not of unit length");
        }
        if !self.has_tombstone(ns, id)? {
            self.find(Code::Limbo, Table::Limbo, key, format!("{id} waits here without a tombstone"));
        }
        if let Some(vitals) = self.vitals_of(ns, id)? {
            let since = vitals.and_then(|vitals| vitals.times.removed_at);
            let place = since.map(|since| keys::by_instant(ns, since, id.as_bytes()));
            if place.is_none_or(|place| !self.has(Table::LimboTime, &place).unwrap_or(true)) {
                self.find(Code::Limbo, Table::Limbo, key, format!("{id} is not found by its removal"));
            }
        }
        Ok(())
    }

    pub(super) fn limbo_time(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.no_value(Table::LimboTime, key, value);
        let mut parts = Parts(key);
        let (ns, at, id) = (parts.u32().map(NsId), parts.time(), parts.id());
        let (Some(ns), Some(at), Some(id)) = (ns, at, id) else { return Ok(()) };
        if let Some(vitals) = self.vitals_of(ns, id)?
            && vitals.is_none_or(|vitals| vitals.times.removed_at != Some(at))
        {
            self.find(Code::Limbo, Table::LimboTime, key, format!("{id} was not removed then"));
        }
        Ok(())
    }

    pub(super) fn pass(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        decode_meta::<PassRow>(Table::Pass.tag(), At::new(Table::Pass.name(), key), value).map(|_| ())
    }

    pub(super) fn tombstone(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let tombstone = decode_tombstone(At::new(Table::Tombstone.name(), key), value)?;
        let Some((ns, id)) = memory_of(key) else { return Ok(()) };
        self.counts.add_tombstone(ns);
        if tombstone.id != id {
            let what = format!("the tombstone of {} says the value", tombstone.id);
            self.find(Code::ValueShape, Table::Tombstone, key, what);
        }
        // What waits in limbo has its tombstone already, and no junctions.
        let waits = self.has(Table::Limbo, key)?;
        for table in [Table::Junction, Table::Vitals, Table::Memory, Table::Access, Table::Holder] {
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
            if !self.has(Table::TombstoneHash, &row)? {
                let what = format!("the tombstone of {id} is not found here");
                self.find(Code::TombstoneHash, Table::TombstoneHash, &row, what);
            }
        }
        Ok(())
    }

    pub(super) fn tombstone_hash(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.no_value(Table::TombstoneHash, key, value);
        let mut parts = Parts(key);
        let (ns, hash, id) = (parts.u32().map(NsId), parts.take::<32>(), parts.id());
        let (Some(ns), Some(hash), Some(id)) = (ns, hash, id) else { return Ok(()) };
        if let Some(found) = seen(self.snapshot.tombstone(ns, id))?
            && found.is_none_or(|found| found.content_hash != hash && !found.key_hashes.contains(&hash))
        {
            let what = format!("no tombstone of {id} has it");
            self.find(Code::TombstoneHash, Table::TombstoneHash, key, what);
        }
        Ok(())
    }
}

/// Whether a value may say something about a person.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => !text.starts_with("hmac:"),
        Value::Array(_) | Value::Object(_) => true,
    }
}
