//! Memories: vitals, content, statistics, and the rows that follow from them.

use crate::error::Result;
use crate::hygiene::check::circles::Settled;
use crate::hygiene::check::state::{Check, seen};
use crate::hygiene::report::Code;
use crate::ledger::derived::{Declared, IndexRow, index_rows, likeness_of, next_due};
use crate::model::{Content, Counted, Kind, MemoryId, Vitals};
use crate::record::{At, decode_vitals};
use crate::store::keys;
use crate::store::{NsId, PartId, Rows, Table};
use crate::text::normal_form;

impl Check<'_> {
    pub(super) fn vitals(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let vitals = decode_vitals(At::new(Table::Vitals.name(), key), value)?;
        let Some((ns, id)) = memory_of(Table::Vitals, key) else { return Ok(()) };
        if !self.knows_part(ns, PartId(vitals.place.partition)) {
            let what = format!("no partition {}", vitals.place.partition);
            self.find(Code::PartitionUnknown, Table::Vitals, key, what);
        }
        if vitals.version == 0 {
            self.find(Code::Version, Table::Vitals, key, "versions begin at 1");
        }
        self.times_of(ns, id, key, &vitals)?;
        self.counted_of(key, &vitals);
        self.usage_of(ns, id, key, &vitals)?;
        let content = seen(self.snapshot.content(ns, id))?;
        for row in index_rows(&vitals, content.iter().flatten().next(), self.declared_in(ns)) {
            let (table, row) = row.place(ns, id);
            if self.lacks(table, &row)? {
                self.find(Code::IndexMissing, table, &row, format!("memory {id} is not found here"));
            }
        }
        let limbo = keys::memory(ns, id);
        let misfits = match vitals.times.removed_at {
            Some(_) => self.lacks(Table::Limbo, &limbo)?,
            None => self.has(Table::Limbo, &limbo)?,
        };
        if misfits {
            self.find(Code::Limbo, Table::Vitals, key, format!("removed at {:?}", vitals.times.removed_at));
        }
        if vitals.place.payload && self.lacks(Table::Payload, key)? {
            self.find(Code::RowMissing, Table::Vitals, key, "a payload that is not there");
        }
        self.superseder_of(ns, id, key, &vitals)?;
        self.slot_of(ns, id, key, &vitals)?;
        match content {
            None => self.counts.blind.extend([ns]),
            Some(None) => {
                self.counts.blind.extend([ns]);
                self.find(Code::ContentMissing, Table::Vitals, key, "vitals without content");
            }
            Some(Some(content)) => {
                self.content_of(key, &vitals, &content);
                self.holders_of(ns, id, key, &vitals, &content)?;
                self.doc_of(ns, id, key, &vitals, &content)?;
                self.counts.add_row(ns, &vitals, &content);
            }
        }
        Ok(())
    }

    fn content_of(&mut self, key: &[u8], vitals: &Vitals, content: &Content) {
        if usize::try_from(vitals.content_bytes) != Ok(content.text.len()) {
            let what = format!("{} bytes where the text has {}", vitals.content_bytes, content.text.len());
            self.find(Code::ContentBytes, Table::Vitals, key, what);
        }
        if (vitals.kind_code == Kind::CUSTOM_CODE) != content.custom_kind.is_some() {
            let what = format!("kind {} with the custom name {:?}", vitals.kind_code, content.custom_kind);
            self.find(Code::Kind, Table::Vitals, key, what);
        }
        if self.deep && vitals.place.fingerprint != normal_form(&content.text).prefix() {
            self.find(Code::Fingerprint, Table::Vitals, key, "the fingerprint is not that of the text");
        }
        if self.deep && vitals.place.likeness != likeness_of(vitals, content) {
            self.find(Code::Fingerprint, Table::Vitals, key, "the likeness is not that of the memory");
        }
    }

    /// World time must not end before it begins, unless a supersession cut it.
    fn times_of(&mut self, ns: NsId, id: MemoryId, key: &[u8], vitals: &Vitals) -> Result<()> {
        let times = &vitals.times;
        if times.recorded_at.as_millis() > self.clock.at_ms {
            let what = format!("recorded at {}, after the last commit", times.recorded_at);
            self.find(Code::Times, Table::Vitals, key, what);
        }
        if let (Some(from), Some(to)) = (times.valid_from, times.own_end())
            && from >= to
            && self.lacks_any(Table::Superseded, &keys::memory(ns, id))?
        {
            self.find(Code::Times, Table::Vitals, key, format!("valid from {from} to {to}"));
        }
        Ok(())
    }

    /// Counted as what it is, unless the instant that changes it is still due.
    fn counted_of(&mut self, key: &[u8], vitals: &Vitals) {
        let Some(now) = self.now else { return };
        let (counted, is) = (vitals.place.counted, Counted::at(&vitals.times, now));
        if counted != is && next_due(&vitals.times, counted).is_none_or(|at| at > now) {
            self.find(Code::Counted, Table::Vitals, key, format!("counted as {counted:?}, it is {is:?}"));
        }
    }

    /// The vitals say of the use of a memory what its statistics say.
    fn usage_of(&mut self, ns: NsId, id: MemoryId, key: &[u8], vitals: &Vitals) -> Result<()> {
        let Some(access) = seen(self.snapshot.access(ns, id))? else { return Ok(()) };
        let (noted, is) = (vitals.place.usage, access.usage(vitals.tier));
        if noted != is {
            self.find(Code::Usage, Table::Vitals, key, format!("used as {noted:?}, it is {is:?}"));
        }
        Ok(())
    }

    fn superseder_of(&mut self, ns: NsId, id: MemoryId, key: &[u8], vitals: &Vitals) -> Result<()> {
        let Some(by) = vitals.times.superseded_by() else { return Ok(()) };
        if self.lacks_row(ns, by)? && self.lacks_tombstone(ns, by)? {
            self.find(
                Code::SupersederMissing,
                Table::Vitals,
                key,
                format!("superseded by {by}, which is gone"),
            );
        }
        if self.settled_ns != Some(ns) {
            self.settled = Settled::default();
            self.settled_ns = Some(ns);
        }
        let snapshot = self.snapshot;
        let circle = self.settled.walk(id, |at| {
            if at == id {
                return Ok(Some(by));
            }
            Ok(seen(snapshot.vitals(ns, at))?.flatten().and_then(|vitals| vitals.times.superseded_by()))
        })?;
        if let Some(id) = circle {
            let what = format!("the chain comes back to {id}");
            self.find(Code::SupersessionCycle, Table::Vitals, key, what);
        }
        Ok(())
    }

    /// A row of a memory must have one.
    pub(super) fn belongs(&mut self, table: Table, key: &[u8]) -> Result<()> {
        if let Some((ns, id)) = memory_of(table, key)
            && self.lacks_row(ns, id)?
        {
            self.find(Code::RowMissing, table, key, format!("no memory {id}"));
        }
        Ok(())
    }

    /// A payload is that of a memory which knows of it.
    pub(super) fn payload(&mut self, key: &[u8]) -> Result<()> {
        self.belongs(Table::Payload, key)?;
        if let Some((ns, id)) = memory_of(Table::Payload, key)
            && let Some(Some(vitals)) = self.vitals_of(ns, id)?
            && !vitals.place.payload
        {
            self.find(Code::RowMissing, Table::Payload, key, format!("memory {id} knows of no payload"));
        }
        Ok(())
    }

    /// A row of a secondary index must be one that its memory asks for.
    pub(super) fn index_row(&mut self, table: Table, key: &[u8]) -> Result<()> {
        let Some((ns, id, row)) = IndexRow::at(table, key) else { return Ok(()) };
        if let IndexRow::Meta(path, _) = &row
            && self.unfinished.get(&ns).is_some_and(|paths| paths.contains(path))
        {
            return Ok(());
        }
        let content = match &row {
            IndexRow::Series(..) | IndexRow::Meta(..) => match seen(self.snapshot.content(ns, id))?.flatten()
            {
                // Damage, or vitals without content: said where the memory is walked.
                None if !self.lacks_row(ns, id)? => return Ok(()),
                content => content,
            },
            _ => None,
        };
        match self.vitals_of(ns, id)? {
            None => {}
            Some(None) => self.find(Code::IndexExtra, table, key, format!("no memory {id}")),
            Some(Some(vitals))
                if !index_rows(&vitals, content.as_ref(), self.declared_in(ns)).contains(&row) =>
            {
                self.find(Code::IndexExtra, table, key, format!("memory {id} does not stand here"));
            }
            Some(Some(_)) => {
                if let IndexRow::ByFingerprint(part, tier, fingerprint, _) = row {
                    self.counts.add_fingerprint(ns, part, tier, fingerprint);
                }
            }
        }
        Ok(())
    }
}

impl Check<'_> {
    fn declared_in(&self, ns: NsId) -> &Declared {
        self.declared.get(&ns).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Namespace and id of a row that is one memory's, or one message's.
pub(super) fn memory_of(table: Table, key: &[u8]) -> Option<(NsId, MemoryId)> {
    let (address, _) = table.address(key);
    address.ns.zip(address.id)
}
